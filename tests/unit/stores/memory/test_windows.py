"""The in-memory window store: Kafka's calls, its order, its expiry, and what stays after an error."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import sessionkit as sk
from sessionkit.errors import AggregationFailed, InvalidArgument, InvalidData, StoreClosed, StoreMismatch
from sessionkit.stores.contract import Snapshot
from sessionkit.stores.memory.windows import MemoryWindowStore
from tests.deployments import run_deployed
from tests.interpreted import fewer
from tests.kinds import in_ms

Starts = list[tuple[Any, int]]


def filled(starts: Starts, **options: Any) -> MemoryWindowStore:
    """A store with these windows; aggregate and timestamp tell them apart."""
    store = MemoryWindowStore(**options)
    for key, start in starts:
        assert store.put(key, start, f"{key}{start}", start + 1)
    return store


def starts_of(found: Any) -> Starts:
    return [(w.key, w.window_start_ms) for w in found]


# ---- Kafka's calls and their orders: start, then key bytes

MIXED: Starts = [("b", 5), ("a", 40), ("c", 0), ("a", 7), ("b", 40), ("aa", 40), ("", 40), ("a", 95)]
IN_ORDER: Starts = [("c", 0), ("b", 5), ("a", 7), ("", 40), ("a", 40), ("aa", 40), ("b", 40), ("a", 95)]


@pytest.mark.parametrize(
    ("call", "bounds", "expected"),
    [
        ("all", (), IN_ORDER),
        ("fetch_all", (0, 95), IN_ORDER),
        ("fetch_all", (5, 40), IN_ORDER[1:7]),
        ("fetch_all", (6, 39), [("a", 7)]),
        ("fetch_all", (8, 39), []),
        ("fetch_all", (-5, 2**63 - 1), IN_ORDER),
        ("fetch_all", (40, 5), []),
        ("fetch", ("a", 0, 99), [("a", 7), ("a", 40), ("a", 95)]),
        ("fetch", ("a", 7, 40), [("a", 7), ("a", 40)]),
        ("fetch", ("a", 8, 39), []),
        ("fetch", ("a", 40, 7), []),
        ("fetch", ("x", 0, 99), []),
        ("fetch_in_keys", (None, None, 0, 99), IN_ORDER),
        ("fetch_in_keys", ("a", "b", 5, 40), [("b", 5), ("a", 7), ("a", 40), ("aa", 40), ("b", 40)]),
        ("fetch_in_keys", ("aa", None, 0, 99), [("c", 0), ("b", 5), ("aa", 40), ("b", 40)]),
        ("fetch_in_keys", (None, "a", 0, 99), [("a", 7), ("", 40), ("a", 40), ("a", 95)]),
        ("fetch_in_keys", ("ab", "az", 0, 99), []),
        ("fetch_in_keys", ("b", "a", 0, 99), []),
    ],
)
def test_ranges_include_both_bounds_and_come_backwards_too(
    call: str, bounds: tuple[Any, ...], expected: Starts
) -> None:
    store = filled(MIXED)
    assert starts_of(getattr(store, call)(*bounds)) == expected
    assert starts_of(getattr(store, "backward_" + call)(*bounds)) == expected[::-1]


def test_keys_are_in_the_order_of_their_bytes() -> None:
    keys = ["\U0001f600", "\uffff", "é", "z", "a", "aa", "B", ""]  # UTF-16 has the first two the other way round
    store = filled([(key, 5) for key in keys])
    assert [w.key for w in store.all()] == ["", "B", "a", "aa", "z", "é", "\uffff", "\U0001f600"]
    numbers = filled([(key, 5) for key in (-1, 5, 0, -(2**63))])
    assert [w.key for w in numbers.all()] == [0, 5, -(2**63), -1]


def test_one_window_is_fetched_by_key_and_start() -> None:
    store = filled([("ada", 5)])
    found = store.fetch_window("ada", 5)
    assert found is not None
    assert found[:4] == (5, "ada5", 6, "ada")
    assert store.fetch_window("ada", 6) is None
    assert store.fetch_window("bob", 5) is None


def test_a_window_is_kept_as_it_was_put() -> None:
    store = MemoryWindowStore()
    store.put("ada", 5, [1], 9, opened_by=3, closed_by=4)
    assert tuple(next(store.all())) == (5, [1], 9, "ada", 3, 4, -1)
    store.put("ada", 5, [2], 8)
    assert tuple(next(store.all())) == (5, [2], 8, "ada", -1, -1, -1)
    assert len(store) == 1


def test_null_deletes_unless_it_is_to_be_kept() -> None:
    store = filled([("ada", 5), ("bob", 5), ("ada", 9)])
    assert store.put("ada", 5, None, 6)
    assert starts_of(store.all()) == [("bob", 5), ("ada", 9)]
    assert store.put("ada", 5, None, 6)  # there is nothing to delete
    assert store.put("ada", 9, None, 6)
    assert len(store) == 1
    assert store.put("ada", 9, None, 7, keep_null=True)
    assert [tuple(w)[:3] for w in store.fetch("ada", 0, 99)] == [(9, None, 7)]


def test_an_answer_is_fixed_when_the_call_is_made() -> None:
    store = filled([("ada", 5), ("bob", 5), ("cat", 9)])
    found = store.all()
    next(found)
    store.put("bob", 5, None, 6)
    store.put("eve", 5, 1, 6)
    assert starts_of(found) == [("bob", 5), ("cat", 9)]


def test_partitions_are_apart() -> None:
    store = MemoryWindowStore(retention="10ms")
    store.put("ada", 5, "here", 5, partition=0)
    store.put("ada", 900, "there", 900, partition=3)
    store.put("ada", 895, "there", 900, partition=3)
    assert starts_of(store.all()) == [("ada", 5)]  # the clock of partition 3 has not moved that of 0
    assert starts_of(store.all(partition=3)) == [("ada", 895), ("ada", 900)]
    assert list(store.all(partition=1)) == []
    assert store.fetch_window("ada", 900) is None
    assert store.fetch_window("ada", 5, partition=3) is None
    store.put("ada", 5, None, 5, partition=0)
    assert len(store) == 2
    assert starts_of(store.backward_fetch("ada", 0, 999, partition=3)) == [("ada", 900), ("ada", 895)]
    assert starts_of(store.fetch_in_keys("a", "b", 0, 999, partition=3)) == [("ada", 895), ("ada", 900)]


# ---- expiry (Kafka's InMemoryWindowStore)


@pytest.mark.parametrize(("start", "is_kept"), [(100, True), (91, True), (90, False), (0, False)])
def test_a_put_is_refused_once_it_lies_retention_behind(start: int, is_kept: bool) -> None:
    store = filled([("ada", 100)], retention="10ms")
    assert store.put("bob", start, 1, start) is is_kept
    assert (store.fetch_window("bob", start) is not None) is is_kept


def test_every_read_hides_what_has_expired() -> None:
    def expiring() -> MemoryWindowStore:
        store = filled([("ada", 90), ("ada", 91)], retention="10ms")
        store.put("bob", 100, 1, 100)
        return store

    assert expiring().fetch_window("ada", 90) is None
    assert expiring().fetch_window("ada", 91) is not None
    left: Starts = [("ada", 91), ("bob", 100)]
    reads: list[tuple[Any, ...]] = [("all",), ("fetch_all", 0, 200), ("fetch_in_keys", "a", "c", 0, 200)]
    for name, *bounds in reads:
        assert starts_of(getattr(expiring(), name)(*bounds)) == left, name
        assert starts_of(getattr(expiring(), "backward_" + name)(*bounds)) == left[::-1], name
    assert starts_of(expiring().fetch("ada", 0, 200)) == left[:1]
    assert starts_of(expiring().backward_fetch("ada", 0, 200)) == left[:1]
    assert len(expiring()) == 2


def test_observed_time_is_the_largest_start_and_moves_before_the_check() -> None:
    """Not stream time, and not the timestamp that comes with a window."""
    store = MemoryWindowStore(retention="10ms")
    assert store.put("ada", 5, 1, 900)
    assert store.put("ada", 0, 1, 5)
    none = MemoryWindowStore(retention=0)
    assert not none.put("ada", 5, 1, 5)
    assert list(none.all()) == []


def test_a_null_moves_time_and_one_that_is_too_late_deletes_nothing() -> None:
    store = filled([("ada", 100)], retention="10ms")
    assert not store.put("ada", 90, None, 90)
    assert store.put("bob", 109, None, 109)
    assert starts_of(store.all()) == [("ada", 100)]
    assert store.put("bob", 110, None, 110)
    assert starts_of(store.all()) == []


def test_without_retention_nothing_expires() -> None:
    store = filled([("ada", 2**62), ("ada", 0)])
    assert starts_of(store.all()) == [("ada", 0), ("ada", 2**62)]


def test_retention_is_a_duration() -> None:
    assert MemoryWindowStore(retention="1h").retention_ms == 3_600_000
    with pytest.raises(InvalidArgument, match="retention must be 0 ms or more; got -1 ms"):
        MemoryWindowStore(retention="-1ms")


# ---- what stays after an error


class Stopped(Exception):
    """The test's own."""


def test_all_or_nothing() -> None:
    store = filled([("ada", 5), ("bob", 7)], retention="50ms")
    store.commit_snapshots({0: Snapshot(3, 9, 1)})
    with pytest.raises(Stopped), store.all_or_nothing():
        store.put("ada", 5, "other", 9)
        store.put("bob", 7, None, 9)
        store.put("eve", 99, "new", 99)
        store.put("eve", 99, "new", 99, partition=4)
        store.commit_snapshots({0: Snapshot(8, 99, 2)})
        assert starts_of(store.all()) == [("eve", 99)]
        raise Stopped
    assert [w.aggregate for w in store.all()] == ["ada5", "bob7"]
    assert list(store.all(partition=4)) == []
    assert store.snapshot(0) == Snapshot(3, 9, 1)
    assert store.put("cat", 8, 1, 8)  # and observed time is back, too
    with store.all_or_nothing():
        store.put("eve", 9, "new", 9)
    assert starts_of(store.all()) == [("ada", 5), ("bob", 7), ("cat", 8), ("eve", 9)]


def test_snapshots_are_by_partition() -> None:
    store = MemoryWindowStore()
    store.commit_snapshots({0: Snapshot(3, 9, 1), 7: Snapshot(5, 5, 5)})
    store.commit_snapshots({0: Snapshot(4, 9, 1)})
    assert (store.snapshot(0), store.snapshot(7), store.snapshot(1)) == (
        Snapshot(4, 9, 1),
        Snapshot(5, 5, 5),
        Snapshot(),
    )


def _fails_on_the_third(key: str, value: object, aggregate: int) -> int:
    if aggregate == 2:
        raise RuntimeError("enough")
    return aggregate + 1


@pytest.mark.parametrize(
    "windows", [sk.TimeWindows(size_ms=10, grace_ms=100), sk.SlidingWindows(time_difference_ms=10, grace_ms=100)]
)
def test_an_aggregation_that_raises_leaves_the_store_as_it_was(windows: Any) -> None:
    own = sk.aggregation(initializer=int, aggregator=_fails_on_the_third, merger=lambda key, a, b: a + b)
    plan = sk.group_by_key("key", timestamp="time", unit="ms", times="ms").windowed_by(windows).aggregate(own=own)
    with sk.open_store("memory", "counts", of="windows", retention="1000ms") as store:
        run_deployed(plan, pd.DataFrame({"key": ["a", "a"], "time": [20, 50]}), store=store)
        before = (list(store.all()), store.snapshot(0))
        with pytest.raises(AggregationFailed, match=r"key 'a' at partition 0, offset 4.*enough.*nothing of this run"):
            run_deployed(plan, pd.DataFrame({"key": ["a"] * 3, "time": [90, 90, 90]}), store=store)
        assert (list(store.all()), store.snapshot(0)) == before


def test_a_run_that_failed_leaves_no_type_of_key_behind() -> None:
    store = MemoryWindowStore()
    with pytest.raises(Stopped), store.all_or_nothing():
        store.put(1, 5, 1, 5)
        raise Stopped
    assert len(store) == 0
    assert store.put("ada", 5, 1, 5)


# ---- plans: runs in columns, calls in between, and what a store is bound to


PLAN = sk.group_by_key("user", timestamp="at", unit="ms", offset="offset", partition="partition", times="ms")


def clicks(*rows: tuple[str, int, int, int]) -> pd.DataFrame:
    """(user, time, partition, offset)."""
    return pd.DataFrame(rows, columns=["user", "at", "partition", "offset"])


def test_what_runs_leave_is_there_for_every_call_and_for_the_next_run() -> None:
    """d = 10: ada's 20 and 30, then her 25, which takes from what the first run left."""
    plan = PLAN.windowed_by(sk.SlidingWindows(time_difference_ms=10, grace_ms=100)).aggregate(n=sk.count())
    for look in (False, True):
        with sk.open_store("memory", "hourly", of="windows") as store:
            plan.run(clicks(("ada", 20, 0, 0), ("bob", 50, 3, 0), ("ada", 30, 0, 1)), store=store)
            if look:
                assert [tuple(w)[:5] for w in store.fetch("ada", 0, 99)] == [
                    (10, 1, 20, "ada", 0),
                    (20, 2, 30, "ada", 1),
                    (21, 1, 30, "ada", 1),
                ]
                assert len(store) == 4
            assert (store.snapshot(0)[:2], store.snapshot(3)[:2], store.snapshot(1)) == ((1, 30), (0, 50), Snapshot())
            plan.run(clicks(("ada", 25, 0, 2)), store=store)
            held = [(w.window_start_ms, w.aggregate, w.timestamp_ms, w.opened_by) for w in store.all()]
            assert held == [(10, 1, 20, 0), (15, 2, 25, 2), (20, 3, 30, 1), (21, 2, 30, 1), (26, 1, 30, 2)]
            assert starts_of(store.all(partition=3)) == [("bob", 40)]


def test_several_aggregations_are_one_stored_value() -> None:
    plan = PLAN.windowed_by(sk.TimeWindows(size_ms=10, grace=0)).aggregate(n=sk.count(), newest=sk.max("offset"))
    with sk.open_store("memory", "hourly", of="windows") as store:
        plan.run(clicks(("ada", 5, 0, 0), ("ada", 6, 0, 1)), store=store)
        assert [tuple(w)[:4] for w in store.all()] == [(0, {"n": 2, "newest": 1}, 6, "ada")]
        with pytest.raises(
            InvalidData, match=r"store 'hourly' holds the results of another plan; got \['n', 'newest'\] in"
        ):
            PLAN.windowed_by(sk.TimeWindows(size_ms=10, grace=0)).count().run(clicks(("ada", 7, 0, 2)), store=store)
        with pytest.raises(
            StoreMismatch, match=r"store 'hourly' was made with other settings; got windows 'TimeWindows"
        ):
            plan.with_windows(size_ms=20, advance_ms=10).run(clicks(("ada", 7, 0, 2)), store=store)


@pytest.mark.parametrize("key", ["\0\0\0\0\0\0\0\1", b"\0\0\0\0\0\0\0\1"])
def test_a_store_has_one_type_of_key(key: Any) -> None:
    """As bytes, the integer 1 and this text are the same."""
    store = filled([(1, 5)])
    for call in (lambda: store.put(key, 5, 2, 6), lambda: store.fetch(key, 0, 9), lambda: store.fetch_window(key, 5)):
        with pytest.raises(InvalidArgument, match=r"holds keys of another type; got .*; its keys are int"):
            call()
    assert [w.aggregate for w in store.all()] == ["15"]


# ---- times that cannot be


@pytest.mark.parametrize("start", [-1, 1.5, True, None, "5"])
def test_a_start_that_cannot_be_is_refused(start: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"a time of a window must be a moment|a window starts at 0 or later"):
        MemoryWindowStore().put("ada", start, 1, 5)


# ---- to look at


def test_it_shows_itself() -> None:
    store = filled([("bob", 5), ("ada", 7)], name="clicks", retention="1m")
    store.put("<b>", 8, [1], 9, partition=4)
    assert repr(store) == "MemoryWindowStore('clicks'): 3 windows, kept for 1 min"
    assert repr(MemoryWindowStore()) == "MemoryWindowStore('windows'): 0 windows, kept for ever"
    frame = store.to_pandas()
    assert frame.columns.tolist() == ["partition", "key", "window_start_ms", "aggregate", "timestamp_ms"]
    assert frame.to_numpy().tolist() == [[0, "bob", 5, "bob5", 6], [0, "ada", 7, "ada7", 8], [4, "<b>", 8, [1], 9]]
    shown = store._repr_html_()
    assert "<td>0</td><td>bob</td><td>5</td><td>bob5</td><td>6</td>" in shown
    assert "<td>&lt;b&gt;</td>" in shown


# ---- read step by step, while windows are put


def test_a_read_step_by_step_gives_neighbours_and_both_bounds() -> None:
    store = filled([("a", start) for start in (4, 5, 6, 8)])
    for backward in (False, True):
        for bounds, found in (((5, 6), [5, 6]), ((5, 5), [5]), ((7, 7), []), ((6, 5), []), ((0, 9), [4, 5, 6, 8])):
            steps = store.fetch_step_by_step("a", "a", *bounds, backward=backward)
            assert [w.window_start_ms for w in steps] == found[:: -1 if backward else 1]
    assert list(store.fetch_step_by_step("b", "a", 0, 9, backward=False)) == []
    assert starts_of(store.fetch_step_by_step(None, "a", 0, 4, backward=False)) == [("a", 4)]


def test_a_read_that_has_ended_keeps_nothing_from_expiring() -> None:
    store = filled([("a", start) for start in (4, 5, 6)], retention="10ms")
    reads = [store.fetch_step_by_step("a", "a", 0, 9, backward=False) for _ in range(2)]
    assert len(list(reads[0])) == 3 and next(reads[1]).window_start_ms == 4
    reads[1].close()  # type: ignore[attr-defined]
    store.put("a", 100, "a100", 100)
    assert starts_of(store.all()) == [("a", 100)]


def test_nothing_expires_from_the_time_on_at_which_a_read_stands() -> None:
    """Kafka keeps it for the open iterator; once that is at its end, the next put lets it go."""
    store = filled([("a", start) for start in (5, 6, 14)], retention="10ms")
    steps = store.fetch_step_by_step("a", "a", 0, 99, backward=False)
    assert [next(steps).window_start_ms for _ in range(2)] == [5, 6]
    for start in (20, 30):
        store.put("a", start, "late", start)
    assert starts_of(store.fetch_step_by_step("a", "a", 0, 99, backward=False)) == [("a", 30)]  # a new one
    assert list(store._maps[0].by_time) == [6, 14, 20, 30]
    assert [w.window_start_ms for w in steps] == [14, 20, 30]
    assert starts_of(store.all()) == [("a", 30)]
    assert list(store._maps[0].by_time) == [30]


def test_a_start_of_numpys_comes_back_as_one_of_pythons() -> None:
    store = MemoryWindowStore()
    store.put("a", np.int64(5), 1, 9)  # type: ignore[arg-type]
    (window,) = store.all()
    assert type(window.window_start_ms) is int
    assert window == (5, 1, 9, "a", -1, -1, -1)


def test_a_restarted_task_has_forgotten_the_stream_time_alone() -> None:
    for options in ({}, {"retention": "10ms"}):
        store = filled([("a", 5)], **options)
        store.commit_snapshots({0: Snapshot(7, 8, 9)})
        store.restart_task()
        assert store.snapshot(0) == Snapshot(7, -1, 9)
        assert starts_of(store.all()) == [("a", 5)]


# ---- closed, and opened by name

CALLS: dict[str, tuple[Any, ...]] = {
    "put": ("ada", 5, 1, 9),
    "fetch_window": ("ada", 5),
    "fetch": ("ada", 0, 10),
    "backward_fetch": ("ada", 0, 10),
    "fetch_in_keys": ("a", "b", 0, 10),
    "backward_fetch_in_keys": ("a", "b", 0, 10),
    "fetch_all": (0, 10),
    "backward_fetch_all": (0, 10),
    "all": (),
    "backward_all": (),
    "snapshot": (0,),
    "check_names": (["count"],),
    "check_windows": ({"kind": "TimeWindows"},),
    "to_pandas": (),
    "__len__": (),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_closed_store_refuses_every_call(name: str) -> None:
    with filled([("ada", 5)], name="hourly") as store:
        getattr(store, name)(*CALLS[name])
    with pytest.raises(StoreClosed, match="store 'hourly' is closed; got a call; open it again"):
        getattr(store, name)(*CALLS[name])
    store.close()  # again: nothing to do
    assert repr(store) == "MemoryWindowStore('hourly'): closed"
    assert "closed" in store._repr_html_()


def test_a_closed_store_takes_no_commit() -> None:
    store = MemoryWindowStore()
    store.close()
    with pytest.raises(StoreClosed):
        store.commit_snapshots({0: Snapshot()})


@pytest.mark.parametrize("key", [None, 1.0, True, ("a",), object(), "\ud800", 2**63])
def test_what_is_no_key(key: Any) -> None:
    store = filled([("ada", 5)])
    for call in (lambda: store.put(key, 5, 1, 9), lambda: store.fetch(key, 0, 9), lambda: store.fetch_window(key, 5)):
        with pytest.raises(InvalidArgument, match="this cannot be a key"):
            call()
    assert starts_of(store.all()) == [("ada", 5)]


def test_open_store() -> None:
    with sk.open_store("memory", "hourly", of="windows", retention="1h") as store:
        assert isinstance(store, MemoryWindowStore)
        assert (store.name, store.retention_ms) == ("hourly", 3_600_000)
    with pytest.raises(InvalidArgument, match=r"of must be a known choice; got 'window'; one of 'sessions', 'windows'"):
        sk.open_store("memory", "hourly", of="window")


def test_a_store_holds_sessions_or_windows() -> None:
    plan, table = (
        sk.group_by_key("key", timestamp="time", unit="ms", times="ms"),
        pd.DataFrame({"key": ["a"], "time": [5]}),
    )
    kinds = {"windows": sk.SessionWindows(inactivity_gap_ms=5, grace=0), "sessions": sk.TimeWindows(size_ms=5, grace=0)}
    for of, windows in kinds.items():
        other = "sessions" if of == "windows" else "windows"
        with (
            sk.open_store("memory", "hourly", of=of) as store,
            pytest.raises(InvalidArgument, match=rf"store must be a store of {other}; got .*of=\"{other}\"\)"),
        ):
            plan.windowed_by(windows).count().run(table, store=store)


# ---- any calls in any order, as a plain list would answer them


class Window(NamedTuple):
    """A window of the model."""

    start_ms: int
    key: str
    aggregate: int


class Machine(RuleBasedStateMachine):
    """Puts, deletions and reads of two partitions, with or without retention."""

    @initialize(retention=st.none() | st.integers(0, 12))
    def open(self, retention: int | None) -> None:
        self.store = MemoryWindowStore(retention=in_ms(retention))
        self.retention_ms = retention
        self.model: dict[int, list[Window]] = {0: [], 3: []}
        self.observed = {0: -1, 3: -1}
        self.count = 0

    def is_expired(self, partition: int, start: int) -> bool:
        return self.retention_ms is not None and start <= self.observed[partition] - self.retention_ms

    @rule(
        key=st.sampled_from(["", "a", "b"]),
        partition=st.sampled_from([0, 3]),
        start=st.integers(0, 30),
        null=st.booleans(),
    )
    def put(self, key: str, partition: int, start: int, null: bool) -> None:
        self.count += 1
        self.observed[partition] = max(self.observed[partition], start)
        refused = self.is_expired(partition, start)
        kept = [w for w in self.model[partition] if not self.is_expired(partition, w.start_ms)]
        if not refused:
            kept = [w for w in kept if w[:2] != (start, key)]
            kept += [] if null else [Window(start, key, self.count)]
        self.model[partition] = sorted(kept)
        done = self.store.put(key, start, None if null else self.count, start + 5, partition=partition)
        assert done is not refused

    @rule(
        key=st.sampled_from(["", "a", "b"]),
        partition=st.sampled_from([0, 3]),
        low=st.integers(-2, 32),
        size=st.integers(0, 9),
    )
    def fetch(self, key: str, partition: int, low: int, size: int) -> None:
        held = [w for w in self.model[partition] if low <= w.start_ms <= low + size]
        bounds = (low, low + size)
        assert self.found(self.store.fetch_all(*bounds, partition=partition)) == held
        of_key = self.found(self.store.backward_fetch(key, *bounds, partition=partition))
        assert of_key == [w for w in held[::-1] if w.key == key]
        in_keys = self.found(self.store.fetch_in_keys(key, None, *bounds, partition=partition))
        assert in_keys == [w for w in held if w.key >= key]

    @staticmethod
    def found(windows: Any) -> list[Window]:
        return [Window(w.window_start_ms, w.key, w.aggregate) for w in windows]

    @invariant()
    def all_is_the_model(self) -> None:
        if hasattr(self, "store"):
            for partition, held in self.model.items():
                assert self.found(self.store.all(partition=partition)) == held
            assert len(self.store) == sum(map(len, self.model.values()))


@pytest.mark.slow
def test_any_calls() -> None:
    run_state_machine_as_test(Machine, settings=settings(max_examples=fewer(40), stateful_step_count=30, deadline=None))
