"""Stores as plain lists, searched from one end to the other, and any calls in any order on a store beside one."""

import inspect
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import sessionkit as sk
from sessionkit.errors import InvalidArgument, NotBuilt
from sessionkit.stores import FixedColumns, SessionColumns, Snapshot, store_class
from sessionkit.stores.rocksdb.row_space import RowSpace
from sessionkit.stores.typed_bytes import Place
from tests.kinds import in_ms

Spans = list[tuple[Any, int, int]]  # of sessions: key, start, end
Starts = list[tuple[Any, int]]
KEYS = st.sampled_from(["", "a", "aa", "b", "é"])
PARTITIONS = st.sampled_from([0, 3])
TIMES = st.integers(0, 30)
BOUNDS = st.integers(-2, 32)


def opened(kind: str, of: str, folder: Path, name: str = "clicks", **options: Any) -> Any:
    """A store of this kind; one that lies in a folder lies in this one."""
    place = {"directory": folder} if "directory" in inspect.signature(store_class(kind, of)).parameters else {}
    return sk.open_store(kind, name, of=of, **place, **options)


def put(store: Any, key: Any, time_ms: int, aggregate: Any, **options: Any) -> bool:
    """Puts a session that ends then, or a window that starts then."""
    last = (time_ms, aggregate) if store.holds == "sessions" else (aggregate, time_ms)
    kept: bool = store.put(key, time_ms, *last, **options)
    return kept


def times_of(store: Any, **options: Any) -> list[tuple[Any, int]]:
    return sorted((each.key, each.window_start_ms) for each in store.all(**options))


def spans_of(found: Any) -> Spans:
    return [(s.key, s.window_start_ms, s.window_end_ms) for s in found]


def starts_of(found: Any) -> Starts:
    return [(w.key, w.window_start_ms) for w in found]


def sort_key(space: RowSpace, place: Place) -> bytes:
    """Bytes by which places sort in the order of a range of keys of a store on disk."""
    return (space.index_row(0, place) or space.row(0, place))[5:]


def session_columns(rows: list[tuple[Any, ...]], name: str = "count") -> SessionColumns:
    """(key, partition, start, end, opened_by, closed_by, aggregate) as columns."""
    keys, *numbers, aggregates = map(list, zip(*rows, strict=True)) if rows else ([], *([[]] * 5), [])
    partition, start, end, opened_by, closed_by = (np.array(column, np.int64) for column in numbers)
    values = np.empty(len(aggregates), object)
    values[:] = aggregates
    return SessionColumns(
        pa.array(keys, pa.large_string()), partition, start, end, opened_by, closed_by, {name: values}
    )


class Row(NamedTuple):
    """A session of the model; of a window the end is its start."""

    partition: int
    key: str
    start_ms: int
    end_ms: int
    aggregate: Any


class Model:
    """What a store promises that forgets as Kafka's in memory do, or not at all."""

    def __init__(self, retention_ms: int | None) -> None:
        self.rows: list[Row] = []
        self.observed: dict[int, int] = {}
        self.retention_ms = retention_ms

    def is_expired(self, partition: int, time_ms: int) -> bool:
        observed = self.observed.get(partition, -1)
        return self.retention_ms is not None and time_ms <= observed - self.retention_ms

    def put(self, row: Row) -> bool:
        self.observed[row.partition] = max(self.observed.get(row.partition, -1), row.end_ms)
        refused = self.is_expired(row.partition, row.end_ms)
        self.rows = [r for r in self.rows if not self.is_expired(r.partition, r.end_ms)]
        if not refused:
            self.rows = [r for r in self.rows if r[:4] != row[:4]]
            self.rows += [row] if row.aggregate is not None else []
        return not refused

    def remove(self, row: Row) -> None:
        self.rows = [r for r in self.rows if r[:4] != row[:4]]

    def find(self, partition: int, times: tuple[int, int] = (0, 99), latest_start_ms: int = 99) -> list[Row]:
        """By time, key bytes and falling start, as Kafka's in-memory stores give them."""
        found = (r for r in self.rows if r.partition == partition)
        found = (r for r in found if times[0] <= r.end_ms <= times[1] and r.start_ms <= latest_start_ms)
        return sorted(found, key=lambda r: (r.end_ms, r.key.encode(), -r.start_ms))


class KafkaRows:
    """What Kafka's RocksDB stores keep, as a list: (key, …, time) and the value; whole segments expire."""

    def __init__(self, retention: int | None, interval: int) -> None:
        self.rows: dict[Any, int] = {}
        self.retention, self.interval, self.observed = retention, interval, -1

    def put(self, row: tuple[Any, ...], value: int | None) -> bool:
        self.observed = max(self.observed, row[-1])
        behind = 0 if self.retention is None else self.observed - self.retention
        live = behind // self.interval if behind >= 0 else -(-behind // self.interval)
        self.rows = {at: v for at, v in self.rows.items() if at[-1] // self.interval >= live}
        if row[-1] // self.interval < live:
            return False
        self.rows.pop(row, None)
        self.rows.update({} if value is None else {row: value})
        return True


def in_range(rows: Iterable[Row], low: str | None, high: str | None) -> list[Row]:
    return [r for r in rows if (low is None or low <= r.key) and (high is None or r.key <= high)]


class Machine(RuleBasedStateMachine):
    """What both kinds of stores have: puts, a run's load and commit, blocks that fail, and everything in it."""

    of: ClassVar[str]
    store_kind: ClassVar[str]

    @initialize(retention=st.none() | st.integers(0, 12))
    def open(self, retention: int | None) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.store = opened(self.store_kind, self.of, self.folder)
        # Segments expire together, which only the store on disk does: its own tests compare that with Kafka's rules.
        self.in_segments = self.store.is_persistent
        if not self.in_segments and retention is not None:
            self.store.close()
            shutil.rmtree(self.folder)
            self.folder.mkdir()
            self.store = opened(self.store_kind, self.of, self.folder, retention=in_ms(retention))
        self.model, self.count = Model(None if self.in_segments else retention), 0

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            shutil.rmtree(self.folder)

    def row(self, partition: int, key: str, start: int, length: int, aggregate: Any) -> Row:
        return Row(partition, key, start, start + length if self.of == "sessions" else start, aggregate)

    def seen(self, partition: int, stored: Any) -> Row:
        end_ms = stored.window_end_ms if self.of == "sessions" else stored.window_start_ms
        return Row(partition, stored.key, stored.window_start_ms, end_ms, stored.aggregate)

    def put(self, row: Row) -> None:
        last = (row.end_ms, row.aggregate) if self.of == "sessions" else (row.aggregate, row.start_ms + 5)
        kept = self.store.put(row.key, row.start_ms, *last, partition=row.partition)
        assert kept is self.model.put(row)

    def same(self, found: Iterable[Any], expected: list[Row], partition: int, *, backward: bool = False) -> None:
        ours = [self.seen(partition, each) for each in found]
        if self.in_segments:  # its own order, in which each key's windows rise
            for key in {r.key for r in ours}:
                ends = [r.end_ms for r in ours if r.key == key]
                assert ends == sorted(ends, reverse=backward)
            ours, expected = sorted(ours), sorted(expected)
        assert ours == (expected if self.in_segments or not backward else expected[::-1])

    @rule(key=KEYS, partition=PARTITIONS, start=TIMES, length=st.integers(0, 9), null=st.integers(0, 3))
    def put_any(self, key: str, partition: int, start: int, length: int, null: int) -> None:
        self.count += 1
        self.put(self.row(partition, key, start, length, None if null == 0 else self.count))

    @rule(data=st.data(), partition=PARTITIONS, null=st.booleans())
    def put_again(self, data: st.DataObject, partition: int, null: bool) -> None:
        there = self.model.find(partition)
        if there:
            self.count += 1
            row = data.draw(st.sampled_from(there))
            self.put(row._replace(aggregate=None if null else self.count))

    @rule(keys=st.lists(KEYS, unique=True), partition=PARTITIONS, close=BOUNDS)
    def load(self, keys: list[str], partition: int, close: int) -> None:
        expected = [r for r in self.model.find(partition) if r.key in keys or r.end_ms < close]
        loaded = self.store.load(pa.array(keys, pa.large_string()), {partition: close}, ("value",))
        ends = loaded.end_ms if self.of == "sessions" else loaded.start_ms
        columns = (loaded.partition, loaded.key.to_pylist(), loaded.start_ms, ends, listed(loaded.aggregates["value"]))
        assert sorted(zip(*map(list, columns), strict=True)) == sorted(tuple(r) for r in expected)

    @rule(partition=PARTITIONS, data=st.data(), position=st.integers(0, 99))
    def commit(self, partition: int, data: st.DataObject, position: int) -> None:
        """What a run loaded goes out, what it made comes in, and its position with it."""
        there = self.model.find(partition)
        gone = data.draw(st.lists(st.sampled_from(there), unique=True) if there else st.just([]))
        new_ones = st.builds(
            self.row, st.just(partition), KEYS, st.integers(31, 33), st.integers(0, 7), st.integers(100, 999)
        )
        new = data.draw(st.lists(new_ones, max_size=3, unique_by=lambda r: r[:4]))
        self.store.commit(self.columns(gone), self.columns(new), {partition: Snapshot(position, 40, 30)})
        for row in gone:
            self.model.remove(row)
        for row in new:
            self.model.put(row)
        assert self.store.snapshot(partition) == Snapshot(position, 40, 30)

    @rule(key=KEYS, partition=PARTITIONS, start=TIMES, fails=st.booleans())
    def block(self, key: str, partition: int, start: int, fails: bool) -> None:
        """A block in a block takes back what is its own; the outer one all that was done in it."""
        before = (list(self.model.rows), dict(self.model.observed))
        with pytest.raises(KeyError), self.store.all_or_nothing():
            self.put(self.row(partition, key, start, 1, "in a block"))
            if fails:
                inner = (list(self.model.rows), dict(self.model.observed))
                with pytest.raises(ZeroDivisionError), self.store.all_or_nothing():
                    self.put(self.row(partition, key, start, 2, "in a block in it"))
                    raise ZeroDivisionError
                self.model.rows, self.model.observed = inner
                self.same(self.store.all(partition=partition), self.model.find(partition), partition)
            raise KeyError
        self.model.rows, self.model.observed = before

    @invariant()
    def all_is_the_model(self) -> None:
        if hasattr(self, "store"):
            for partition in (0, 3):
                self.same(self.store.all(partition=partition), self.model.find(partition), partition)
            assert len(self.store) == len(self.model.rows)
            assert self.store.partitions == sorted({r.partition for r in self.model.rows})

    def columns(self, rows: list[Row]) -> SessionColumns | FixedColumns:
        none = np.full(len(rows), -1)
        values = np.empty(len(rows), object)
        values[:] = [r.aggregate for r in rows]
        keys = pa.array([r.key for r in rows], pa.large_string())
        partition, start, end = (np.array([r[at] for r in rows], np.int64) for at in (0, 2, 3))
        if self.of == "sessions":
            return SessionColumns(keys, partition, start, end, none, none, {"value": values})
        return FixedColumns(keys, partition, start, start + 5, none, none, {"value": values})


def listed(column: Any) -> list[Any]:
    return list(column.to_pylist() if isinstance(column, pa.Array) else column)


class SessionMachine(Machine):
    """The calls of Kafka's session store."""

    of = "sessions"

    @rule(data=st.data(), partition=PARTITIONS)
    def remove(self, data: st.DataObject, partition: int) -> None:
        there = self.model.find(partition)
        if there:
            row = data.draw(st.sampled_from(there))
            self.store.remove(row.key, row.start_ms, row.end_ms, partition=partition)
            self.model.remove(row)

    @rule(key=KEYS, partition=PARTITIONS, start=TIMES, end=TIMES)
    def remove_perhaps_nothing(self, key: str, partition: int, start: int, end: int) -> None:
        self.store.remove(key, start, end, partition=partition)
        self.model.remove(Row(partition, key, start, end, None))

    @rule(key=KEYS, partition=PARTITIONS, end=BOUNDS, start=BOUNDS)
    def find_sessions(self, key: str, partition: int, end: int, start: int) -> None:
        expected = [r for r in self.model.find(partition, (end, 99), start) if r.key == key]
        place = {"partition": partition}
        self.same(self.store.find_sessions(key, end, start, **place), expected, partition)
        self.same(self.store.backward_find_sessions(key, end, start, **place), expected, partition, backward=True)

    @rule(low=KEYS | st.none(), high=KEYS | st.none(), partition=PARTITIONS, end=BOUNDS, start=BOUNDS)
    def find_sessions_in_keys(self, low: str | None, high: str | None, partition: int, end: int, start: int) -> None:
        expected, bounds = in_range(self.model.find(partition, (end, 99), start), low, high), (low, high, end, start)
        place = {"partition": partition}
        self.same(self.store.find_sessions_in_keys(*bounds, **place), expected, partition)
        self.same(self.store.backward_find_sessions_in_keys(*bounds, **place), expected, partition, backward=True)

    @rule(partition=PARTITIONS, low=BOUNDS, high=BOUNDS)
    def find_sessions_by_end(self, partition: int, low: int, high: int) -> None:
        """Kafka refuses times that go backwards in memory; on disk only if that is over segments."""
        try:
            found = list(self.store.find_sessions_by_end(low, high, partition=partition))
        except NotBuilt:
            assert not self.store.time_ordered
            assert self.in_segments
        except InvalidArgument as error:
            assert "a range of times must not go backwards" in str(error)
            assert low > high
        else:
            assert low <= high or self.in_segments
            self.same(found, self.model.find(partition, (low, high)), partition)

    @rule(key=KEYS, partition=PARTITIONS, start=TIMES, end=TIMES)
    def fetch_session(self, key: str, partition: int, start: int, end: int) -> None:
        expected = [r.aggregate for r in self.model.find(partition) if r[1:4] == (key, start, end)]
        assert self.store.fetch_session(key, start, end, partition=partition) == (expected[0] if expected else None)

    @rule(key=KEYS, partition=PARTITIONS)
    def fetch(self, key: str, partition: int) -> None:
        expected = [r for r in self.model.find(partition) if r.key == key]
        self.same(self.store.fetch(key, partition=partition), expected, partition)
        self.same(self.store.backward_fetch(key, partition=partition), expected, partition, backward=True)

    @rule(low=KEYS | st.none(), high=KEYS | st.none(), partition=PARTITIONS)
    def fetch_range(self, low: str | None, high: str | None, partition: int) -> None:
        """Kafka refuses a range that goes backwards in memory, if it holds anything at all; others find nothing."""
        is_backward = low is not None and high is not None and low > high
        if self.store_kind == "memory" and is_backward and self.model.find(partition):
            with pytest.raises(InvalidArgument):
                self.store.fetch(low, high, partition=partition)
            return
        expected = in_range(self.model.find(partition), low, high)
        self.same(self.store.fetch(low, high, partition=partition), expected, partition)
        self.same(self.store.backward_fetch(low, high, partition=partition), expected, partition, backward=True)


class WindowMachine(Machine):
    """The calls of Kafka's window store."""

    of = "windows"

    @rule(key=KEYS, partition=PARTITIONS, start=TIMES)
    def fetch_window(self, key: str, partition: int, start: int) -> None:
        expected = [r.aggregate for r in self.model.find(partition) if r[1:3] == (key, start)]
        found = self.store.fetch_window(key, start, partition=partition)
        assert found is None if not expected else found[:4] == (start, expected[0], start + 5, key)

    @rule(key=KEYS, partition=PARTITIONS, first=BOUNDS, last=BOUNDS)
    def fetch(self, key: str, partition: int, first: int, last: int) -> None:
        expected = [r for r in self.model.find(partition, (first, last)) if r.key == key]
        asked, place = (key, first, last), {"partition": partition}
        self.same(self.store.fetch(*asked, **place), expected, partition)
        self.same(self.store.backward_fetch(*asked, **place), expected, partition, backward=True)
        for backward in (False, True):
            for found in (
                self.store.fetch_to_update(*asked, **place, backward=backward),
                self.store.fetch_step_by_step(key, *asked, **place, backward=backward),
            ):
                self.same(found, expected, partition, backward=backward)

    @rule(low=KEYS | st.none(), high=KEYS | st.none(), partition=PARTITIONS, first=BOUNDS, last=BOUNDS)
    def fetch_in_keys(self, low: str | None, high: str | None, partition: int, first: int, last: int) -> None:
        expected, asked = in_range(self.model.find(partition, (first, last)), low, high), (low, high, first, last)
        self.same(self.store.fetch_in_keys(*asked, partition=partition), expected, partition)
        self.same(self.store.backward_fetch_in_keys(*asked, partition=partition), expected, partition, backward=True)

    @rule(partition=PARTITIONS, first=BOUNDS, last=BOUNDS)
    def fetch_all(self, partition: int, first: int, last: int) -> None:
        expected, place = self.model.find(partition, (first, last)), {"partition": partition}
        self.same(self.store.fetch_all(first, last, **place), expected, partition)
        self.same(self.store.backward_fetch_all(first, last, **place), expected, partition, backward=True)
        self.same(self.store.backward_all(**place), self.model.find(partition), partition, backward=True)

    @rule(key=KEYS, partition=PARTITIONS, first=TIMES, last=TIMES, backward=st.booleans())
    def put_between_steps(self, key: str, partition: int, first: int, last: int, backward: bool) -> None:
        """A read goes on while windows are put: one where it has not come to yet is seen, as it is by then."""
        steps = self.store.fetch_step_by_step(key, key, first, last, partition=partition, backward=backward)
        there = [r for r in self.model.find(partition, (first, last)) if r.key == key]
        met = next(steps, None)
        assert (met is None) == (not there)
        if met is None:
            return
        later = there[0] if backward else there[-1]
        if len(there) > 2 and self.model.retention_ms is None and not self.in_segments:
            self.put(later._replace(aggregate="while it was read"))
            assert [each.aggregate for each in steps][-1] == "while it was read"
        steps.close()


class OnDisk(Machine):
    """Rows on disk in many segments, in one of some orders; the store is closed and opened again in between."""

    store_kind = "rocksdb"
    forms: ClassVar[list[dict[str, Any]]]

    @initialize(data=st.data())
    def open(self, data: st.DataObject) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.options = {"segment_interval": "7ms", **data.draw(st.sampled_from(self.forms))}
        self.store = opened(self.store_kind, self.of, self.folder, **self.options)
        self.in_segments, self.model, self.count = True, Model(None), 0

    @rule(commits=st.booleans())
    def reopen(self, commits: bool) -> None:
        if commits:
            self.store.commit_snapshots({3: Snapshot(1, 2, 3)})
        before = self.store.snapshot(3)
        self.store.close()
        self.store = opened(self.store_kind, self.of, self.folder, **self.options)
        assert self.store.snapshot(3) == before


MACHINES: tuple[type[Machine], ...] = (SessionMachine, WindowMachine)
