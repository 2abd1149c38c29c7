"""Rows of bytes in RocksDB: read past what waits to be written, and written in one batch or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast
from weakref import WeakSet

from sortedcontainers import SortedDict

from sessionkit.errors import StoreClosed, StoreCorrupted, problem
from sessionkit.stores.locking import never_drop, note_rocksdb, refuse_after_fork
from sessionkit.stores.rocksdb.disk.folder import OWNER, StoreFolder

if TYPE_CHECKING:
    from rocksdict import Rdict, RdictIter

T = TypeVar("T")
_MADE_FOR = b"\x04"  # the row that is written when the store is made, and never again: which one it is


@dataclass
class Pending:
    """Changes that wait to be written: rows (None: deleted) by key, and ranges (start: end) deleted before them."""

    rows: SortedDict = field(default_factory=SortedDict)
    dropped: dict[bytes, bytes] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.rows or self.dropped)

    def range_with(self, key: bytes) -> tuple[bytes, bytes] | None:
        """The dropped range that this stored row lies in."""
        return next((range_ for range_ in self.dropped.items() if range_[0] <= key < range_[1]), None)

    def copy(self) -> Pending:
        """A twin in maps of its own: what is written to one is not in the other."""
        return Pending(self.rows.copy(), self.dropped.copy())


NOTHING_PENDING = Pending()


class Cursor:
    """Goes over rows in one direction; `key` is the row it stands on, None at the end.

    It sees the database as it was when the cursor was made. While changes wait to be written, there must be no new
    ones before it is at its end.
    """

    def __init__(self, database: Database, rows: RdictIter, backward: bool) -> None:
        self.key: bytes | None = None
        self._database, self.rows, self._backward = database, rows, backward
        self._pending = database.pending if database.pending else NOTHING_PENDING
        self._waiting: Iterator[bytes] = iter(())
        self._next_waiting: bytes | None = None
        self._is_waiting = False  # the row it stands on is one that waits to be written

    def seek(self, bound: bytes) -> None:
        """Moves to the first row at or behind `bound`; backward, to the last one before it."""
        self._database.call(self._seek, bound)
        between = (None, bound) if self._backward else (bound, None)
        self._waiting = self._pending.rows.irange(
            *between, inclusive=(True, not self._backward), reverse=self._backward
        )
        self._next_waiting = next(self._waiting, None)
        self._settle()

    def step(self) -> None:
        """Moves to the next row in its direction."""
        if self._is_waiting:
            self._next_waiting = next(self._waiting, None)
        else:
            self._advance()
        self._settle()

    def release(self) -> None:
        """Lets the database go; it stays open as long as anyone reads it."""
        del self.rows

    def value(self) -> bytes:
        if self._is_waiting:
            return self._pending.rows[self.key]
        return self._database.call(self.rows.value)

    def corrupted(self, got: str) -> StoreCorrupted:
        """The error for a row that cannot be."""
        return self._database.folder.corrupted(got)

    def _advance(self) -> None:
        self._database.check_open()
        self._database.call(self.rows.prev if self._backward else self.rows.next)

    def _seek(self, bound: bytes) -> None:
        self._database.check_open()
        if not self._backward:
            self.rows.seek(bound)
            return
        self.rows.seek_for_prev(bound)
        if self.rows.valid() and self.rows.key() == bound:
            self.rows.prev()

    def _settle(self) -> None:
        """Moves to the nearer of the two next rows: a waiting row hides the stored one, a deleted row is skipped."""
        stored = self._stored()
        while self._next_waiting is not None:
            waiting = self._next_waiting
            if stored is not None and stored != waiting and (stored < waiting) != self._backward:
                break
            if stored == waiting:
                self._advance()
                stored = self._stored()
            if self._pending.rows[waiting] is not None:
                self.key, self._is_waiting = waiting, True
                return
            self._next_waiting = next(self._waiting, None)
        self.key, self._is_waiting = stored, False

    def _stored(self) -> bytes | None:
        """The key of the stored row. RocksDB ends a scan at a damaged block, and says so only when asked."""
        while self.rows.valid():
            key: bytes = self.rows.key()
            dropped = self._pending.range_with(key)
            if dropped is None:
                return key
            self._database.call(self._seek, dropped[0] if self._backward else dropped[1])
        self._database.call(self.rows.status)
        return None


class Database:
    """The rows of one store.

    Changes gather in `pending` until `write`. Inside `transaction` nothing is written, and an error takes back what
    was changed there; what a finished transaction left goes out with the next write.
    """

    def __init__(self, folder: StoreFolder, first: dict[bytes, bytes | None]) -> None:
        """Opens the folder; a new one is made with the rows `first`."""
        note_rocksdb()
        from sessionkit.stores.rocksdb.disk.open_strictly import open_strictly

        self.folder, self.pending = folder, Pending()
        self._rdict: Rdict | None = None
        self._depth, self._wanted = 0, ""
        self._cursors: WeakSet[Cursor] = WeakSet()
        if folder.is_new:
            folder.create(lambda path: self._fill(path, first))
        folder.hold()
        try:
            self._rdict = self.call(open_strictly, str(folder.rows), create=False)
        except BaseException:
            folder.release()
            raise
        _databases.add(self)
        try:
            if self.get(_MADE_FOR) != folder.id:
                raise folder.corrupted("its tables are another store's")
        except BaseException:
            self.close()
            raise

    def _fill(self, path: Any, first: dict[bytes, bytes | None]) -> None:
        from sessionkit.stores.rocksdb.disk.open_strictly import open_strictly

        try:
            rdict = open_strictly(str(path), create=True)
            try:
                _write(rdict, self.folder.id, {**first, _MADE_FOR: self.folder.id}, {}, sync=True)
            finally:
                rdict.close()
        except Exception as error:
            if type(error) is not Exception:  # rocksdict raises no narrower class
                raise
            raise OSError(str(error)) from error  # nothing was there that could be damaged

    # ---- reading

    def get(self, key: bytes) -> bytes | None:
        """The value of this row; None if there is none."""
        if key in self.pending.rows:
            return self.pending.rows[key]
        if self.pending.range_with(key):
            return None
        return self.call(self.rdict.get, key)

    def cursor(self, *, backward: bool = False) -> Cursor:
        """A new cursor, which stands nowhere yet."""
        cursor = Cursor(self, self.call(self.rdict.iter), backward)
        self._cursors.add(cursor)
        return cursor

    def rows(self, low: bytes, high: bytes) -> tuple[list[bytes], list[bytes]]:
        """(keys, values) of every row from `low` on and before `high`."""
        if not self.pending:
            return self.call(_rows_between, self.rdict, low, high)
        keys, values, cursor = [], [], self.cursor()
        cursor.seek(low)
        while cursor.key is not None and cursor.key < high:
            keys.append(cursor.key)
            values.append(cursor.value())
            cursor.step()
        return keys, values

    def estimate(self) -> int:
        """About how many rows there are."""
        return (self.call(self.rdict.property_int_value, "rocksdb.estimate-num-keys") or 0) + len(self.pending.rows)

    # ---- writing

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Keeps what is changed inside the block only if nothing raises; it may lie in another transaction."""
        saved = self.pending.copy() if self.pending else None
        self._depth += 1
        try:
            yield
            sync = self._wanted == "sync"
            if self._depth == 1 and self._wanted and (self.pending or sync):
                self.call(_write, self.rdict, self.folder.id, self.pending.rows, self.pending.dropped, sync=sync)
                self.pending = Pending()
        except BaseException:
            self.pending = saved or Pending()
            raise
        finally:
            self._depth -= 1
            if not self._depth:
                self._wanted = ""

    def change(self, rows: Mapping[bytes, bytes | None]) -> None:
        """Rows to write, or to delete where the value is None."""
        self.pending.rows.update(rows)

    def drop(self, low: bytes, high: bytes) -> None:
        """Deletes every row from `low` on and before `high`."""
        if not self._has_rows(low, high):
            return
        for key in list(self.pending.rows.irange(low, high, inclusive=(True, False))):
            del self.pending.rows[key]
        if self._has_rows(low, high):  # a range that was dropped slows later reads: none without need
            self.pending.dropped[low] = high  # behind an earlier one that begins there, as a row was seen

    def _has_rows(self, low: bytes, high: bytes) -> bool:
        cursor = self.cursor()
        cursor.seek(low)
        return cursor.key is not None and cursor.key < high

    def write(self, *, sync: bool) -> None:
        """Asks for all that waits to be written in one batch when the outermost transaction ends; `sync`: to disk."""
        self._wanted = "sync" if sync else self._wanted or "plain"

    # ---- open and closed

    @property
    def rdict(self) -> Rdict:
        """RocksDB itself; refused where it was closed, or belongs to the process that this one was forked from."""
        self.check_open()
        return cast("Rdict", self._rdict)

    def check_open(self) -> None:
        """Refuses what needs RocksDB where that was closed, or is another process's."""
        if self._rdict is None:
            refuse_after_fork(f"store {self.folder.name!r} belongs to the process that opened it")
            raise StoreClosed(problem(f"store {self.folder.name!r} is closed", "a call", "open it again"))

    def leave_to_parent(self) -> None:
        """In a forked process: closes nothing and writes nothing, as all of it is still the other process's."""
        if self._rdict is not None:
            never_drop(self._rdict)
            for cursor in self._cursors:
                never_drop(cursor.rows)
            self.folder.release()  # this process's handle alone: with it open, the folder would stay locked
        self._rdict = None

    @property
    def is_open(self) -> bool:
        """False once it was closed."""
        return self._rdict is not None

    def close(self) -> None:
        """Writes what finished transactions left, and closes the folder whole."""
        if self._rdict is None:
            return
        rdict, self._rdict = self._rdict, None
        try:
            if self.pending and not self._depth:
                self.call(_write, rdict, self.folder.id, self.pending.rows, self.pending.dropped, sync=True)
            self.call(rdict.flush_wal)
        finally:
            for cursor in list(self._cursors):  # each would keep the files open
                cursor.release()
            try:
                self.call(rdict.close)
                self.folder.seal()
            finally:
                self.folder.release()

    def call(self, function: Callable[..., T], *arguments: Any, **options: Any) -> T:
        """The function's answer; RocksDB's errors become this library's."""
        try:
            return function(*arguments, **options)
        except Exception as error:
            if type(error) is not Exception:  # rocksdict raises no narrower class
                raise
            raise self.folder.translated(str(error)) from error


def _after_fork() -> None:
    for database in list(_databases):
        database.leave_to_parent()


_databases: WeakSet[Database] = WeakSet()
if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_after_fork)


def _rows_between(rdict: Rdict, low: bytes, high: bytes) -> tuple[list[bytes], list[bytes]]:
    keys: list[bytes] = []
    values: list[bytes] = []
    while True:
        for key, value in cast("Iterator[tuple[bytes, bytes]]", rdict.items(from_key=low)):
            if key >= high:
                return keys, values
            keys.append(key)
            values.append(value)
        # There are no more rows, or the next one cannot be read: this fast way does not tell, a cursor does.
        low = keys[-1] + b"\x00" if keys else low
        rows = rdict.iter()
        rows.seek(low)
        if not rows.valid():
            rows.status()
            return keys, values


def _write(
    rdict: Rdict, owner: bytes, rows: dict[bytes, bytes | None], dropped: Mapping[bytes, bytes], *, sync: bool
) -> None:
    from rocksdict import WriteBatch, WriteOptions

    batch, options = WriteBatch(raw_mode=True), WriteOptions()
    if rows or dropped:
        batch.put(OWNER, owner)  # the first: see damage_in_logs
    for low, high in dropped.items():
        batch.delete_range(low, high)
    for key, value in dict.items(rows):  # SortedDict's own items() looks each row up
        if value is None:
            batch.delete(key)
        else:
            batch.put(key, value)
    options.sync = sync
    rdict.write(batch, options)
