"""Rows of bytes in RocksDB: what is written when, and what survives a loss of power."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sessionkit.errors import StoreLocked
from sessionkit.stores.contract import Snapshot
from sessionkit.stores.locking import _RocksDBUse
from sessionkit.stores.rocksdb.disk import database as module
from sessionkit.stores.rocksdb.disk.database import Database
from sessionkit.stores.rocksdb.disk.folder import StoreFolder
from sessionkit.stores.rocksdb.sessions import RocksDBSessionStore

pytestmark = pytest.mark.lengthy

Batches = list[tuple[bool, list[bytes]]]


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> Batches:
    """(whether it was made sure of, keys) of each batch that is written."""
    found: Batches = []
    write = module._write

    def noted(rdict: Any, owner: bytes, rows: Any, dropped: Any, *, sync: bool) -> None:
        found.append((sync, list(rows)))
        write(rdict, owner, rows, dropped, sync=sync)

    monkeypatch.setattr(module, "_write", noted)
    return found


@pytest.fixture
def database(tmp_path: Path, batches: Batches) -> Iterator[Database]:
    """A new one, of which nothing is noted yet."""
    opened = Database(StoreFolder("rows", tmp_path), {b"first": b"1"})
    batches.clear()
    yield opened
    opened.close()


def store(database: Database, rows: dict[bytes, bytes | None]) -> None:
    with database.transaction():
        database.change(rows)
        database.write(sync=False)


def test_a_new_store_a_commit_and_what_is_left_at_the_end_are_made_sure_of(tmp_path: Path, batches: Batches) -> None:
    """A single change is not: it may wait for the system to write it."""
    with RocksDBSessionStore(name="clicks", directory=tmp_path) as store:
        store.put("ada", 5, 9, 1)
        store.commit_snapshots({0: Snapshot(1, 2, 3)})
        store.put("ada", 15, 19, 1)
        with store.all_or_nothing():
            store.put("ada", 25, 29, 1)
        assert [sync for sync, _ in batches] == [True, False, True, False]
    assert [sync for sync, _ in batches] == [True, False, True, False, True]


def test_a_transaction_is_one_batch(database: Database, batches: Batches) -> None:
    """Which is made sure of if anything in it asks for that."""
    with database.transaction():
        with database.transaction():
            database.change({b"b": b"1"})
            database.write(sync=True)
        database.change({b"a": b"2"})
        database.write(sync=False)
        assert batches == []
    assert batches == [(True, [b"a", b"b"])]
    store(database, {b"c": b"3"})
    assert batches[1:] == [(False, [b"c"])]


def test_what_nobody_asks_to_write_goes_with_the_next_batch(database: Database, batches: Batches) -> None:
    with database.transaction():
        database.change({b"a": b"1"})
    assert batches == [] and database.get(b"a") == b"1"
    store(database, {b"b": None})
    assert batches == [(False, [b"a", b"b"])]


def test_nothing_is_written_where_nothing_waits_unless_it_has_to_be_made_sure_of(
    database: Database, batches: Batches
) -> None:
    """What was written before is, with it."""
    for sync in (False, True):
        with database.transaction():
            database.write(sync=sync)
    assert batches == [(True, [])]


def test_what_fails_is_taken_back_and_asks_for_nothing(database: Database, batches: Batches) -> None:
    with database.transaction():
        database.change({b"a": b"1"})
    with pytest.raises(ZeroDivisionError), database.transaction():
        database.change({b"a": b"2", b"b": b"2"})
        database.write(sync=True)
        raise ZeroDivisionError
    with database.transaction():
        assert [database.get(key) for key in (b"a", b"b")] == [b"1", None]
    assert batches == []


def test_what_is_left_when_it_is_closed_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    first = Database(StoreFolder("rows", tmp_path), {b"first": b"1"})
    with first.transaction():
        first.change({b"a": b"1"})
    first.close()
    again = Database(StoreFolder("rows", tmp_path), {b"first": b"2"})
    assert [again.get(key) for key in (b"first", b"a")] == [b"1", b"1"]
    again.close()


def test_a_transaction_that_is_not_through_when_it_is_closed_leaves_nothing(tmp_path: Path) -> None:
    first = Database(StoreFolder("rows", tmp_path), {})
    with pytest.raises(ZeroDivisionError), first.transaction():
        first.change({b"a": b"1"})
        first.close()
        raise ZeroDivisionError
    again = Database(StoreFolder("rows", tmp_path), {})
    assert again.get(b"a") is None
    again.close()


def test_a_forked_process_closes_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it was given of RocksDB's stays as it is; only its own handle of the lock goes."""
    kept: list[Any] = []
    monkeypatch.setattr(module, "never_drop", kept.append)
    database = Database(StoreFolder("rows", tmp_path), {b"first": b"1"})
    rdict, cursor = database.rdict, database.cursor()
    with database.transaction():
        database.change({b"a": b"1"})
    monkeypatch.setattr(module, "_databases", [database])
    for _ in range(2):  # the second finds nothing to leave
        module._after_fork()
        assert kept == [rdict, cursor.rows]
    assert not database.is_open
    assert database.folder._held is None
    database.close()
    monkeypatch.setattr(_RocksDBUse, "before_fork", True)
    for call in (lambda: database.get(b"first"), database.cursor, database.check_open):
        with pytest.raises(StoreLocked, match="store 'rows' belongs to the process that opened it; got process "):
            call()
    assert rdict.get(b"first") == b"1" and rdict.get(b"a") is None
    assert not (tmp_path / "rows" / "CLOSED").exists()
    cursor.release()
    kept.clear()
    rdict.close()


def test_a_forked_process_opens_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database: Database) -> None:
    assert _RocksDBUse.here  # noted when the first one was opened
    assert database in module._databases
    monkeypatch.setattr(_RocksDBUse, "before_fork", True)
    with pytest.raises(StoreLocked, match="a store on disk cannot be opened"):
        Database(StoreFolder("another", tmp_path), {})
    assert not (tmp_path / "another").exists()


def test_what_was_written_before_is_made_sure_of_when_it_is_closed(tmp_path: Path) -> None:
    class Noting:
        """RocksDB, and what was asked of it."""

        def __getattr__(self, name: str) -> Any:
            asked.append(name)
            return getattr(rdict, name)

    asked: list[str] = []
    database = Database(StoreFolder("rows", tmp_path), {})
    rdict: Any = database._rdict
    database._rdict = Noting()  # type: ignore[assignment]
    database.close()
    assert asked == ["flush_wal", "close"]


# ---- rows, with and without changes that wait


NINE: dict[bytes, bytes | None] = {bytes([9, n]): b"%d" % n for n in range(6)}


@pytest.mark.parametrize("waits", [False, True])
def test_rows_are_those_from_the_first_bound_on_and_before_the_second(database: Database, waits: bool) -> None:
    store(database, NINE)
    with database.transaction():
        if waits:
            database.change({b"\x09\x02": b"new", b"\x09\x03": None, b"\x08": b"", b"\x09\x05": b"last"})
        keys, values = database.rows(b"\x09\x01", b"\x09\x05")
        assert [key[1] for key in keys] == ([1, 2, 4] if waits else [1, 2, 3, 4])
        assert values == ([b"1", b"new", b"4"] if waits else [b"1", b"2", b"3", b"4"])
        every, _ = database.rows(b"", b"\xff")
        assert every == sorted({*every}) and {b"first", b"\x03", b"\x04", b"\x09\x05"} <= set(every)
        assert database.rows(b"\x09\x06", b"\x09\x07") == ([], [])
        assert database.rows(b"\xfe", b"\xff") == ([], [])


def test_it_estimates_how_many_rows_there_are_with_those_that_wait(database: Database) -> None:
    before = database.estimate()
    assert before == 3  # the first one, whose they are, and which store it is
    with database.transaction():
        database.change(NINE)
        assert database.estimate() == before + 6
        database.write(sync=False)
    assert before + 6 <= database.estimate() <= before + 7  # whose they are was written again


def test_a_dropped_range_has_its_first_bound_and_not_its_second(database: Database) -> None:
    store(database, NINE)
    with database.transaction():
        database.change({bytes([9, n, 1]): b"waits" for n in range(6)})
        database.drop(b"\x09\x02", b"\x09\x04")
        database.write(sync=False)
        waiting = database.rows(b"\x09", b"\x0a")[0]
    assert [tuple(key[1:]) for key in waiting] == [(0,), (0, 1), (1,), (1, 1), (4,), (4, 1), (5,), (5, 1)]
    assert database.rows(b"\x09", b"\x0a")[0] == waiting


def test_waiting_rows_at_the_bounds_of_a_dropped_range(database: Database) -> None:
    with database.transaction():
        database.change({bytes([9, n]): b"waits" for n in range(6)})
        database.drop(b"\x09\x02", b"\x09\x04")
        assert [key[1] for key in database.rows(b"\x09", b"\x0a")[0]] == [0, 1, 4, 5]


def test_a_range_is_dropped_only_where_rows_are_stored(database: Database) -> None:
    """Each one that was slows later reads."""
    store(database, {b"\x09\x04": b"stored"})
    with database.transaction():
        database.change({b"\x09\x02": b"waits"})
        database.drop(b"\x09\x02", b"\x09\x04")
        assert (dict(database.pending.rows), database.pending.dropped) == ({}, {})
        database.drop(b"\x09\x02", b"\x09\x05")
        assert database.pending.dropped == {b"\x09\x02": b"\x09\x05"}
        database.drop(b"\x09\x02", b"\x09\x09")
        assert database.pending.dropped == {b"\x09\x02": b"\x09\x05"}


def test_a_range_that_is_dropped_twice_ends_where_the_last_stored_row_was(database: Database) -> None:
    store(database, NINE)
    with database.transaction():
        for last in (3, 2, 5, 4):
            database.drop(b"\x09\x01", bytes([9, last]))
        assert database.pending.dropped == {b"\x09\x01": b"\x09\x05"}
        assert [key[1] for key in database.rows(b"\x09", b"\x0a")[0]] == [0, 5]


def test_a_range_is_dropped_once(database: Database) -> None:
    """What is written into it later stays."""
    store(database, NINE)
    for change in ({}, {b"\x09\x02": b"new"}, {b"\x09\x07": b"other"}):
        with database.transaction():
            if not change:
                database.drop(b"\x09\x00", b"\x09\x05")
            database.change(change)
            database.write(sync=False)
    assert database.rows(b"\x09", b"\x0a") == ([b"\x09\x02", b"\x09\x05", b"\x09\x07"], [b"new", b"5", b"other"])


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize(("backward", "bound", "found"), [
    (False, b"\x09\x02", [2, 3, 4, 5]), (False, b"\x09\x02\x00", [3, 4, 5]), (True, b"\x09\x02", [1, 0]),
    (True, b"\x09\x02\x00", [2, 1, 0]), (True, b"\x0a", [5, 4, 3, 2, 1, 0]), (False, b"\x0a", []),
])  # fmt: skip
def test_a_cursor_goes_from_its_bound_on_or_back_from_before_it(
    database: Database, waits: bool, backward: bool, bound: bytes, found: list[int]
) -> None:
    """Through what is stored and what waits as through one."""
    store(database, {key: value for key, value in NINE.items() if not waits or key[1] % 2})
    with database.transaction():
        database.change({key: value for key, value in NINE.items() if waits and key[1] != 3})
        cursor = database.cursor(backward=backward)
        assert cursor.key is None
        cursor.seek(bound)
        seen = []
        while cursor.key is not None and cursor.key[0] == 9:
            seen.append(cursor.key[1])
            assert cursor.value() == b"%d" % cursor.key[1]
            cursor.step()
        assert seen == found
