"""What every session store promises: Kafka's calls, answered as a plain list of sessions would answer them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import sessionkit as sk
from sessionkit.contracts import SessionColumns, Snapshot
from sessionkit.errors import InvalidArgument, StoreClosed

KEYS = st.sampled_from(["", "a", "aa", "b", "é"])
PARTITIONS = st.sampled_from([0, 3])
TIMES = st.integers(0, 30)
BOUNDS = st.integers(-2, 32)


class Session(NamedTuple):
    """A session of the model."""

    partition: int
    key: str
    start_ms: int
    end_ms: int
    aggregate: Any


class NaiveStore:
    """The model: a list, searched from one end to the other."""

    def __init__(self, retention_ms: int | None) -> None:
        self.sessions: list[Session] = []
        self.observed: dict[int, int] = {}
        self.retention_ms = retention_ms

    def is_expired(self, partition: int, end_ms: int) -> bool:
        observed = self.observed.get(partition, -1)
        return self.retention_ms is not None and end_ms <= observed - self.retention_ms

    def put(self, session: Session) -> bool:
        self.observed[session.partition] = max(self.observed.get(session.partition, -1), session.end_ms)
        refused = self.is_expired(session.partition, session.end_ms)
        self.sessions = [s for s in self.sessions if not self.is_expired(s.partition, s.end_ms)]
        if not refused:
            self.sessions = [s for s in self.sessions if s[:4] != session[:4]]
            self.sessions += [session] if session.aggregate is not None else []
        return not refused

    def remove(self, partition: int, key: str, start_ms: int, end_ms: int) -> None:
        self.sessions = [s for s in self.sessions if s[:4] != (partition, key, start_ms, end_ms)]

    def find(self, partition: int, ends: tuple[int, int] = (0, 99), latest_start_ms: int = 99) -> list[Session]:
        """By end, key bytes and falling start, as Kafka's in-memory store."""
        found = (s for s in self.sessions if s.partition == partition)
        found = (s for s in found if ends[0] <= s.end_ms <= ends[1] and s.start_ms <= latest_start_ms)
        return sorted(found, key=lambda s: (s.end_ms, s.key.encode(), -s.start_ms))


def in_range(sessions: Iterable[Session], low: str | None, high: str | None) -> list[Session]:
    return [s for s in sessions if (low is None or low <= s.key) and (high is None or s.key <= high)]


class Machine(RuleBasedStateMachine):
    """Any calls in any order on a store in memory; tests/unit/test_rocksdb.py compares the one on disk with it."""

    @initialize(retention=st.none() | st.integers(0, 12))
    def open(self, retention: int | None) -> None:
        self.store = sk.open_store("memory", "machine", retention=retention)
        self.model = NaiveStore(retention)
        self.count = 0

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()

    def same(self, found: Iterable[Any], expected: list[Session], partition: int) -> None:
        ours = [Session(partition, s.key, *s[:3]) for s in found]
        assert ours == expected

    @rule(key=KEYS, partition=PARTITIONS, start=TIMES, length=st.integers(0, 9))
    def put(self, key: str, partition: int, start: int, length: int) -> None:
        self.count += 1
        session = Session(partition, key, start, start + length, self.count)
        kept = self.store.put(key, start, start + length, self.count, partition=partition)
        assert kept == self.model.put(session)

    @rule(key=KEYS, partition=PARTITIONS, start=TIMES, length=st.integers(0, 9))
    def put_null(self, key: str, partition: int, start: int, length: int) -> None:
        kept = self.store.put(key, start, start + length, None, partition=partition)
        assert kept == self.model.put(Session(partition, key, start, start + length, None))

    @rule(data=st.data(), partition=PARTITIONS)
    def put_again_or_remove(self, data: st.DataObject, partition: int) -> None:
        there = self.model.find(partition)
        if there:
            session = data.draw(st.sampled_from(there))
            if data.draw(st.booleans()):
                self.store.remove(session.key, session.start_ms, session.end_ms, partition=partition)
                self.model.remove(*session[:4])
            else:
                self.count += 1
                self.store.put(session.key, session.start_ms, session.end_ms, self.count, partition=partition)
                self.model.put(session._replace(aggregate=self.count))

    @rule(key=KEYS, partition=PARTITIONS, start=TIMES, end=TIMES)
    def remove_perhaps_nothing(self, key: str, partition: int, start: int, end: int) -> None:
        self.store.remove(key, start, end, partition=partition)
        self.model.remove(partition, key, start, end)

    @rule(key=KEYS, partition=PARTITIONS, end=BOUNDS, start=BOUNDS)
    def find_sessions(self, key: str, partition: int, end: int, start: int) -> None:
        expected = [s for s in self.model.find(partition, (end, 99), start) if s.key == key]
        self.same(self.store.find_sessions(key, end, start, partition=partition), expected, partition)
        self.same(self.store.backward_find_sessions(key, end, start, partition=partition), expected[::-1], partition)

    @rule(low=KEYS | st.none(), high=KEYS | st.none(), partition=PARTITIONS, end=BOUNDS, start=BOUNDS)
    def find_sessions_in_keys(self, low: str | None, high: str | None, partition: int, end: int, start: int) -> None:
        expected = in_range(self.model.find(partition, (end, 99), start), low, high)
        bounds = (low, high, end, start)
        self.same(self.store.find_sessions_in_keys(*bounds, partition=partition), expected, partition)
        self.same(self.store.backward_find_sessions_in_keys(*bounds, partition=partition), expected[::-1], partition)

    @rule(partition=PARTITIONS, low=BOUNDS, high=BOUNDS)
    def find_sessions_by_end(self, partition: int, low: int, high: int) -> None:
        if low > high:
            with pytest.raises(sk.errors.InvalidArgument, match="a range of times must not go backwards"):
                self.store.find_sessions_by_end(low, high, partition=partition)
            return
        expected = self.model.find(partition, (low, high))
        self.same(self.store.find_sessions_by_end(low, high, partition=partition), expected, partition)

    @rule(key=KEYS, partition=PARTITIONS, start=TIMES, end=TIMES)
    def fetch_session(self, key: str, partition: int, start: int, end: int) -> None:
        expected = [s.aggregate for s in self.model.find(partition) if s[1:4] == (key, start, end)]
        assert self.store.fetch_session(key, start, end, partition=partition) == (expected[0] if expected else None)

    @rule(key=KEYS, partition=PARTITIONS)
    def fetch(self, key: str, partition: int) -> None:
        expected = [s for s in self.model.find(partition) if s.key == key]
        self.same(self.store.fetch(key, partition=partition), expected, partition)
        self.same(self.store.backward_fetch(key, partition=partition), expected[::-1], partition)

    @rule(low=KEYS | st.none(), high=KEYS | st.none(), partition=PARTITIONS)
    def fetch_range(self, low: str | None, high: str | None, partition: int) -> None:
        if low is not None and high is not None and low > high and self.model.find(partition):
            with pytest.raises(InvalidArgument):
                self.store.fetch(low, high, partition=partition)
            return
        expected = in_range(self.model.find(partition), low, high)
        self.same(self.store.fetch(low, high, partition=partition), expected, partition)
        self.same(self.store.backward_fetch(low, high, partition=partition), expected[::-1], partition)

    @rule(keys=st.lists(KEYS, unique=True), partition=PARTITIONS, close=BOUNDS)
    def load(self, keys: list[str], partition: int, close: int) -> None:
        expected = [s for s in self.model.find(partition) if s.key in keys or s.end_ms < close]
        loaded = self.store.load(pa.array(keys, pa.large_string()), {partition: close}, ("value",))
        columns = (loaded.partition, loaded.key.to_pylist(), loaded.start_ms, loaded.end_ms, loaded.aggregates["value"])
        assert sorted(zip(*map(list, columns), strict=True)) == sorted(tuple(s) for s in expected)

    @rule(partition=PARTITIONS, data=st.data(), position=st.integers(0, 99))
    def commit(self, partition: int, data: st.DataObject, position: int) -> None:
        """What a run loaded goes out, what it made comes in, and its position with it."""
        gone = data.draw(
            st.lists(st.sampled_from(self.model.find(partition)), unique=True)
            if self.model.find(partition)
            else st.just([])
        )
        spans = st.tuples(st.just(partition), KEYS, TIMES, st.integers(31, 40), st.integers(100, 999))
        new = [Session(*span) for span in data.draw(st.lists(spans, max_size=3, unique_by=lambda s: s[1:4]))]
        self.store.commit(columns_of(gone), columns_of(new), {partition: Snapshot(position, 40, 30)})
        for session in gone:
            self.model.remove(*session[:4])
        for session in new:
            self.model.put(session)
        assert self.store.snapshot(partition) == Snapshot(position, 40, 30)

    @invariant()
    def all_sessions_are_there(self) -> None:
        if hasattr(self, "store"):
            for partition in (0, 3):
                self.same(self.store.all(partition=partition), self.model.find(partition), partition)


def columns_of(sessions: list[Session]) -> SessionColumns:
    none = np.full(len(sessions), -1)
    values = np.empty(len(sessions), object)
    values[:] = [s.aggregate for s in sessions]
    return SessionColumns(
        pa.array([s.key for s in sessions], pa.large_string()),
        np.array([s.partition for s in sessions], np.int64),
        np.array([s.start_ms for s in sessions], np.int64),
        np.array([s.end_ms for s in sessions], np.int64),
        none,
        none,
        {"value": values},
    )


KINDS = ("memory", "rocksdb")


def _open(kind: str, folder: Path) -> Any:
    return sk.open_store(kind, "clicks", directory=folder if kind == "rocksdb" else None)


def test_any_calls_in_any_order() -> None:
    run_state_machine_as_test(Machine, settings=settings(max_examples=120, stateful_step_count=30))


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_is_a_context_and_then_closed(kind: str, tmp_path: Path) -> None:
    with _open(kind, tmp_path) as store:
        store.put("ada", 5, 9, 2)
        assert [session[:3] for session in store.find_sessions("ada", 0, 10)] == [(5, 9, 2)]
    for name, *arguments in (("put", "ada", 5, 9, 2), ("fetch", "ada"), ("snapshot", 0)):
        with pytest.raises(StoreClosed, match="store 'clicks' is closed"):
            getattr(store, str(name))(*arguments)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("keys", [["a", "b"], [1, -1], [b"a", b"\xff"]])
def test_every_type_of_key(kind: str, tmp_path: Path, keys: list[Any]) -> None:
    with _open(kind, tmp_path) as store:
        for key in keys:
            store.put(key, 5, 9, 1)
        assert [s.key for s in store.all()] == keys  # -1 behind 1: its bytes are larger
        assert [s.key for s in store.fetch(keys[1])] == keys[1:]


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_fails_leaves_its_store_as_it_was(kind: str, tmp_path: Path) -> None:
    table = pa.table({"user": ["ada", "ada", "bob"], "at": [5, 6, 900], "v": [1, 2, 0]})
    plan = sk.group_by_key("user", timestamp="at", unit="ms")
    plan = plan.windowed_by(sk.SessionWindows(inactivity_gap=10, grace=10)).reduce(lambda a, b: a // b, "v")
    with _open(kind, tmp_path) as store:
        plan.run(table.slice(0, 2), store=store)
        before = list(store.all()), store.snapshot(0)
        bad = pa.table({"user": ["eve", "ada", "ada"], "at": [7, 7, 8], "v": [1, 1, 0]})
        with pytest.raises(sk.errors.AggregationFailed, match="nothing of this run was committed"):
            plan.run(bad, store=store)
        assert (list(store.all()), store.snapshot(0)) == before


@pytest.mark.parametrize("kind", KINDS)
def test_an_offset_that_was_read_is_a_replay(kind: str, tmp_path: Path) -> None:
    plan = sk.group_by_key("user", timestamp="at", unit="ms", offset="offset")
    plan = plan.windowed_by(sk.SessionWindows(inactivity_gap=10, grace=10)).count()
    first = pa.table({"user": ["ada"] * 3, "at": [5, 6, 7], "offset": [0, 1, 5]})
    again = pa.table({"user": ["ada"] * 3, "at": [6, 7, 8], "offset": [4, 5, 6]})
    with _open(kind, tmp_path) as store:
        plan.run(first, store=store)
        run = plan.run(again, store=store)
        assert run.table()["count"].to_pylist() == [4]
        assert run.dropped()["reason"].to_pylist() == ["replayed", "replayed"]
        assert run.metrics()["replayed-records"] == 2
        assert store.snapshot(0).position == 6
