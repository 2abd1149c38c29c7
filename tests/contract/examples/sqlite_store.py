"""A store of one's own, in one file: windows in a file of SQLite, which comes with Python."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sessionkit.errors import StoreCorrupted, StoreFailed, problem
from sessionkit.stores import Duration, Place, RawKeys, RowStore, SessionRowStore, Times, WindowRowStore, store_kind

TABLES = """
CREATE TABLE IF NOT EXISTS rows (
    partition INTEGER, time_ms INTEGER, key BLOB, start_ms INTEGER, value BLOB NOT NULL,
    PRIMARY KEY (partition, time_ms, key, start_ms)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS of_key ON rows (partition, key, time_ms);
CREATE TABLE IF NOT EXISTS notes (name TEXT PRIMARY KEY, value BLOB NOT NULL);
"""
FIND = "SELECT key, start_ms, time_ms, value FROM rows WHERE partition = ? AND time_ms BETWEEN ? AND ?"
DELETE = "DELETE FROM rows WHERE partition = ? AND key = ? AND start_ms = ? AND time_ms = ?"


class SQLiteRows(RowStore):
    """Rows and notes in a file of SQLite; a transaction that has ended survives a loss of power."""

    def __init__(self, *, name: str, directory: str | os.PathLike[str], retention: Duration | None = None) -> None:
        self.path = Path(directory) / f"{name}.sqlite"
        with self._told():
            # One thread at a time is what every store of sessionkit's sees to.
            self._db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        try:
            with self._told():
                self._db.executescript(TABLES)
            super().__init__(name=name, retention=retention)
        except BaseException:
            self._db.close()
            raise

    def find_rows(self, partition: int, times_ms: Times, keys: RawKeys) -> Iterator[tuple[Place, bytes]]:
        """The rows of a partition whose time and key lie between these bounds."""
        low, high = keys
        of_keys = (" AND key >= ?" * (low is not None)) + (" AND key <= ?" * (high is not None))
        bounds = [key for key in keys if key is not None]
        for *place, value in self._ask(FIND + of_keys, partition, *times_ms, *bounds):
            yield Place(*place), value

    def write_row(self, partition: int, place: Place, value: bytes) -> None:
        """Writes a row."""
        row = (partition, place.time_ms, place.key, place.start_ms, value)
        self._ask("INSERT OR REPLACE INTO rows VALUES (?, ?, ?, ?, ?)", *row)

    def delete_row(self, partition: int, place: Place) -> None:
        """Deletes a row."""
        self._ask(DELETE, partition, *place)

    def read_notes(self) -> Mapping[str, bytes]:
        """All notes."""
        return dict(self._ask("SELECT name, value FROM notes"))

    def write_note(self, name: str, value: bytes) -> None:
        """Writes a note."""
        self._ask("INSERT OR REPLACE INTO notes VALUES (?, ?)", name, value)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """SQLite's savepoints may lie in each other; the outermost is a transaction."""
        self._ask("SAVEPOINT change")
        try:
            yield
        except BaseException:
            self._ask("ROLLBACK TO change")
            raise
        finally:
            self._ask("RELEASE change")

    def close_rows(self) -> None:
        """Closes the file."""
        self._db.close()

    def _ask(self, statement: str, *values: Any) -> list[Any]:
        with self._told():
            return self._db.execute(statement, values).fetchall()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """SQLite's errors as those of sessionkit."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise StoreFailed(
                problem(f"SQLite refused a call on {self.path}", error, "free space and access")
            ) from error
        except sqlite3.DatabaseError as error:
            raise StoreCorrupted(problem(f"{self.path} is damaged", error, "the file as it was written")) from error


@store_kind("sqlite")
class SQLiteSessionStore(SessionRowStore, SQLiteRows):
    """Sessions in a file of SQLite."""


@store_kind("sqlite", of="windows")
class SQLiteWindowStore(WindowRowStore, SQLiteRows):
    """Time and sliding windows in a file of SQLite."""
