"""The record cache against a model of what anyone may see of it, and cached runs beside runs without a cache."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import sessionkit as sk
from sessionkit.stores.cache.sessions import CachingSessionStore, Flushed
from sessionkit.stores.cache.windows import CachingWindowStore
from sessionkit.stores.memory.sessions import MemorySessionStore
from sessionkit.stores.memory.windows import MemoryWindowStore
from tests.deployments import A_SESSION, A_WINDOW, AN_ENTRY, run_deployed
from tests.interpreted import fewer
from tests.kinds import group_in_ms, table_of

KEYS = st.sampled_from(["", "a", "b"])
TIMES = st.integers(0, 20)
FOR_EVER = "1000000s"


Place = tuple[str, int]


def at(place: Place) -> bytes:
    """Where Kafka's cache has the entry of a window in memory."""
    key, start = place
    return start.to_bytes(8) + key.encode() + start.to_bytes(8) + bytes(4)


class CacheMachine(RuleBasedStateMachine):
    """A cache that never holds more bytes than it may."""

    store: Any
    most: int | None

    @invariant()
    def the_cache_is_no_larger_than_it_may_be(self) -> None:
        if hasattr(self, "store") and self.most is not None:
            entries = [each for cache in self.store._caches.values() for each in cache._by_place.values()]
            assert self.store._budget.held == sum(each.size for each in entries) <= self.most


class WindowMachine(CacheMachine):
    """A caching window store beside one dict that every write goes to at once.

    Only what is behind the cache may lag: whoever reads through it, or adds up what it forwards, sees the dict.
    """

    @initialize(most=st.none() | st.integers(0, 5 * A_WINDOW))
    def open(self, most: int | None) -> None:
        self.below = MemoryWindowStore()
        self.store = CachingWindowStore(self.below, self.take, most)
        self.most = most
        self.model: dict[Place, tuple[int, int]] = {}
        self.downstream: dict[Place, tuple[int, int]] = {}
        self.shown: set[Place] = set()  # downstream at the last flush
        self.used: list[Place] = []  # what is cached, the least used first
        self.written: list[Place] = []  # since the last flush, by last write
        self.sent: list[Place] = []
        self.count = 0

    def take(self, flushed: Flushed) -> None:
        place = (flushed.key, flushed.id.start_ms)
        before = self.downstream.pop(place, None)
        assert flushed.old == (None if before is None else before[0])
        if flushed.new is not None:
            self.downstream[place] = (flushed.new, flushed.timestamp_ms)
        self.sent.append(place)

    @property
    def held(self) -> int:
        """The bytes of what is cached: a deletion has no value."""
        return sum(AN_ENTRY + len(at(place)) + 16 * (place in self.model) for place in self.used)

    def expect_flush(self, order: list[Place]) -> None:
        """All of `order` has come out, but for what was deleted before anyone saw it; the store has it, too."""
        assert self.sent == [place for place in order if place in self.model or place in self.shown]
        assert self.downstream == self.model
        below = {(w.key, w.window_start_ms): (w.aggregate, w.timestamp_ms) for w in self.below.all()}
        assert below == self.model
        self.used = [place for place in self.used if place in self.model]  # a removal stays until it is written
        self.shown, self.written, self.sent = set(self.model), [], []

    def write(self, place: Place, value: int | None, newest: int) -> None:
        self.used = [each for each in self.used if each != place] + [place]
        self.written = [each for each in self.written if each != place] + [place]
        if value is None:
            self.model.pop(place, None)
        else:
            self.model[place] = (value, newest)
        self.store.put(*place, value, newest)
        while self.most is not None and self.held > self.most:
            evicted = self.used[0]
            if evicted in self.written:
                self.expect_flush([evicted, *(each for each in self.written if each != evicted)])
            self.used = [each for each in self.used if each != evicted]
        assert self.sent == []

    @rule(key=KEYS, start=TIMES, newest=TIMES)
    def put(self, key: str, start: int, newest: int) -> None:
        self.count += 1
        self.write((key, start), self.count, newest)

    @rule(data=st.data(), key=KEYS, start=TIMES)
    def delete(self, data: st.DataObject, key: str, start: int) -> None:
        if self.model and data.draw(st.booleans()):
            key, start = data.draw(st.sampled_from(sorted(self.model)))
        self.write((key, start), None, start)

    @rule()
    def flush(self) -> None:
        self.store.flush()
        self.expect_flush(self.written)

    @rule(key=KEYS, start=TIMES)
    def fetch_window(self, key: str, start: int) -> None:
        if (key, start) in self.used:
            self.used = [each for each in self.used if each != (key, start)] + [(key, start)]
        found = self.store.fetch_window(key, start)
        assert (None if found is None else found[1:3]) == self.model.get((key, start))

    def use(self, first: bytes, last: bytes, *, backward: bool = False) -> None:
        """A read goes through all that is cached between these places, whatever it looks for."""
        met = sorted((place for place in self.used if first <= at(place) <= last), key=at, reverse=backward)
        self.used = [place for place in self.used if place not in met] + met

    @rule(key=KEYS, low=TIMES, high=TIMES)
    def fetch(self, key: str, low: int, high: int) -> None:
        expected = sorted(start for other, start in self.model if other == key and low <= start <= high)
        places = bytes(8) + key.encode() + bytes(12), at((key, high))
        assert [w.window_start_ms for w in self.store.fetch(key, low, high)] == expected
        assert [w.window_start_ms for w in self.store.backward_fetch(key, low, high)] == expected[::-1]
        if low <= high:
            self.use(*places)
            self.use(*places, backward=True)

    @invariant()
    def all_is_the_model(self) -> None:
        if hasattr(self, "store"):
            found = [(w.window_start_ms, w.key, w.aggregate, w.timestamp_ms) for w in self.store.all()]
            assert found == sorted((start, key, *value) for (key, start), value in self.model.items())
            self.use(b"", b"\xff")


class SessionMachine(CacheMachine):
    """A caching session store beside one dict that every write goes to at once."""

    @initialize(most=st.none() | st.integers(0, 5 * A_SESSION))
    def open(self, most: int | None) -> None:
        self.below = MemorySessionStore()
        self.store = CachingSessionStore(self.below, self.take, most)
        self.most = most
        self.model: dict[tuple[str, int, int], int] = {}
        self.downstream: dict[tuple[str, int, int], int] = {}
        self.count = 0

    def take(self, flushed: Flushed) -> None:
        place = (flushed.key, flushed.id.start_ms, flushed.id.end_ms)
        assert flushed.timestamp_ms == flushed.id.end_ms
        before = self.downstream.pop(place, None)
        assert flushed.old == before
        assert flushed.new is not None or before is not None, "a tombstone for what nobody has seen"
        if flushed.new is not None:
            self.downstream[place] = flushed.new

    @rule(key=KEYS, start=TIMES, length=st.integers(0, 4))
    def put(self, key: str, start: int, length: int) -> None:
        self.count += 1
        self.model[key, start, start + length] = self.count
        self.store.put(key, start, start + length, self.count)

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        if self.model:
            place = data.draw(st.sampled_from(sorted(self.model)))
            del self.model[place]
            self.store.remove(*place)

    @rule()
    def flush(self) -> None:
        self.store.flush()
        assert self.downstream == self.model
        assert {(s.key, *s[:2]): s.aggregate for s in self.below.all()} == self.model

    @rule(key=KEYS, end=TIMES, start=TIMES)
    def find_sessions(self, key: str, end: int, start: int) -> None:
        expected = [each for each in self.model if each[0] == key and each[2] >= end and each[1] <= start]
        expected.sort(key=lambda each: (each[2], -each[1]))
        assert [(s.key, *s[:2]) for s in self.store.find_sessions(key, end, start)] == expected
        assert [(s.key, *s[:2]) for s in self.store.backward_find_sessions(key, end, start)] == expected[::-1]

    @rule(key=KEYS, start=TIMES, length=st.integers(0, 4))
    def fetch_session(self, key: str, start: int, length: int) -> None:
        assert self.store.fetch_session(key, start, start + length) == self.model.get((key, start, start + length))

    @invariant()
    def all_is_the_model(self) -> None:
        if hasattr(self, "store"):
            found = [(s.window_end_ms, s.key, -s.window_start_ms, s.aggregate) for s in self.store.all()]
            assert found == sorted((end, key, -start, value) for (key, start, end), value in self.model.items())


@pytest.mark.parametrize("machine", [WindowMachine, SessionMachine])
def test_any_calls_on_a_cached_store(machine: type[CacheMachine]) -> None:
    many = settings(max_examples=fewer(150), stateful_step_count=40, deadline=None)
    run_state_machine_as_test(machine, settings=many)


# ---- cached runs


ROWS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 60), st.integers(-2, 2)), max_size=25)
WINDOWS = st.one_of(
    st.builds(sk.SessionWindows, inactivity_gap_ms=st.integers(0, 8), grace_ms=st.integers(0, 20)),
    st.builds(
        lambda advance, times, grace: sk.TimeWindows(size_ms=advance * times, advance_ms=advance, grace_ms=grace),
        st.integers(1, 6),
        st.integers(1, 3),
        st.integers(0, 20),
    ),
    st.builds(sk.SlidingWindows, time_difference_ms=st.integers(1, 10), grace_ms=st.integers(0, 20)),
)


def _null_on_two(key: str, value: int, aggregate: list[int] | None) -> list[int] | None:
    return None if value == 2 else [*(aggregate or []), value]


def _joined(key: str, older: list[int] | None, newer: list[int] | None) -> list[int]:
    return [*(older or []), *(newer or [])]


OWN = sk.aggregation(initializer=list, aggregator=_null_on_two, merger=_joined, value="v")


def run_of(windows: Any, rows: list[tuple[str, int, int]], own: Any = OWN, **options: Any) -> sk.Run:
    table = table_of(rows, key=pa.string(), time=pa.int64(), v=pa.int64())
    plan = group_in_ms("key", timestamp="time").windowed_by(windows).aggregate(own=own)
    return run_deployed(plan, table, retention=FOR_EVER, **options)


def stored(store: Any) -> list[Any]:
    return [tuple(each)[:5] for each in store.all()]


def last_values(run: sk.Run) -> dict[tuple[Any, ...], tuple[Any, int]]:
    """What the changelog comes to for each window; null is none."""
    last: dict[tuple[Any, ...], tuple[Any, int]] = {}
    for row in run.changelog().to_pylist():
        window = (row["key"], row["window_start_ms"], row["window_end_ms"])
        last.pop(window, None)
        if row["own"] is not None:
            last[window] = (row["own"], row["timestamp_ms"])
    return last


@pytest.mark.thorough
@settings(max_examples=fewer(200))
@given(WINDOWS, ROWS, st.sampled_from([True, "1 B", "200 B", "500 B"]), st.data())
def test_a_cached_run_ends_where_one_without_a_cache_ends(
    windows: Any, rows: list[tuple[str, int, int]], caching: Any, data: st.DataObject
) -> None:
    """As long as the store expires nothing, which only the store knows of."""
    commits = data.draw(st.none() | st.lists(st.integers(0, max(0, len(rows) - 1)), max_size=6))
    plain = run_of(windows, rows)
    cached = run_of(windows, rows, caching=caching, commit_every=commits)
    assert stored(cached._store) == stored(cached._store.store) == stored(plain._store)
    assert last_values(cached) == last_values(plain)
    assert cached.trace.records().equals(plain.trace.records())
    assert cached.trace.windows().equals(plain.trace.windows())
    assert cached.deployed is not None and not cached.deployed.refused


@settings(max_examples=fewer(200))
@given(WINDOWS, ROWS)
def test_a_commit_after_each_record_forwards_the_last_update_of_each_window(
    windows: Any, rows: list[tuple[str, int, int]]
) -> None:
    """What each record brings is the same once its own back and forth is left out."""
    plain = run_of(windows, rows, sk.collect("v"))
    cached = run_of(windows, rows, sk.collect("v"), caching=True, commit_every=1)
    found = [{}, {}]
    for run, by_record in zip((plain, cached), found, strict=True):
        for row in run.changelog().to_pylist():
            window = (row["key"], row["window_start_ms"], row["window_end_ms"])
            by_record.setdefault(row["offset"], {})[window] = (row["what"], row["own"], row["timestamp_ms"])
    assert found[0] == found[1]
    seen = [(row["offset"], row["window_start_ms"], row["window_end_ms"]) for row in cached.changelog().to_pylist()]
    assert len(seen) == len(set(seen)), "one result a window and commit"
