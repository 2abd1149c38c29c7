"""The in-memory window store: Kafka's calls, its order, its expiry, and what stays after an error."""

from typing import Any

import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.errors import StoreMismatch
from sessionkit.stores.contract import Snapshot
from sessionkit.stores.memory.windows import MemoryWindowStore
from tests.contract.stores_model import Starts, starts_of
from tests.kinds import group_in_ms


def filled(starts: Starts, **options: Any) -> MemoryWindowStore:
    """A store with these windows; aggregate and timestamp tell them apart."""
    store = MemoryWindowStore(**options)
    for key, start in starts:
        assert store.put(key, start, f"{key}{start}", start + 1)
    return store


# ---- Kafka's calls and their orders: start, then key bytes

MIXED: Starts = [("b", 5), ("a", 40), ("c", 0), ("a", 7), ("b", 40), ("aa", 40), ("", 40), ("a", 95)]
IN_ORDER: Starts = [("c", 0), ("b", 5), ("a", 7), ("", 40), ("a", 40), ("aa", 40), ("b", 40), ("a", 95)]


@pytest.mark.parametrize(
    ("call", "bounds", "expected"),
    [
        ("all", (), IN_ORDER), ("fetch_all", (0, 95), IN_ORDER), ("fetch_all", (5, 40), IN_ORDER[1:7]),
        ("fetch_all", (6, 39), [("a", 7)]), ("fetch_all", (8, 39), []), ("fetch_all", (-5, 2**63 - 1), IN_ORDER),
        ("fetch_all", (40, 5), []),
        ("fetch", ("a", 0, 99), [("a", 7), ("a", 40), ("a", 95)]), ("fetch", ("a", 7, 40), [("a", 7), ("a", 40)]),
        ("fetch", ("a", 8, 39), []), ("fetch", ("a", 40, 7), []), ("fetch", ("x", 0, 99), []),
        ("fetch_in_keys", (None, None, 0, 99), IN_ORDER),
        ("fetch_in_keys", ("a", "b", 5, 40), [("b", 5), ("a", 7), ("a", 40), ("aa", 40), ("b", 40)]),
        ("fetch_in_keys", ("aa", None, 0, 99), [("c", 0), ("b", 5), ("aa", 40), ("b", 40)]),
        ("fetch_in_keys", (None, "a", 0, 99), [("a", 7), ("", 40), ("a", 40), ("a", 95)]),
        ("fetch_in_keys", ("ab", "az", 0, 99), []), ("fetch_in_keys", ("b", "a", 0, 99), []),
    ],
)  # fmt: skip
def test_ranges_include_both_bounds_and_come_backwards_too(
    call: str, bounds: tuple[Any, ...], expected: Starts
) -> None:
    store = filled(MIXED)
    assert starts_of(getattr(store, call)(*bounds)) == expected
    assert starts_of(getattr(store, "backward_" + call)(*bounds)) == expected[::-1]


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
    assert repr(store) == "MemoryWindowStore('windows'): 2 windows, kept as long as a plan says"


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


def test_a_run_that_failed_leaves_no_type_of_key_behind() -> None:
    store = MemoryWindowStore()
    with pytest.raises(Stopped), store.all_or_nothing():
        store.put(1, 5, 1, 5)
        raise Stopped
    assert len(store) == 0
    assert store.put("ada", 5, 1, 5)


# ---- plans: runs in columns, calls in between, and what a store is bound to


PLAN = group_in_ms("user", offset="offset", partition="partition")


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
            StoreMismatch, match=r"store 'hourly' was made with other settings; got windows 'TimeWindows"
        ):
            plan.with_windows(size_ms=20, advance_ms=10).run(clicks(("ada", 7, 0, 2)), store=store)


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


def test_a_restarted_task_has_forgotten_the_stream_time_alone() -> None:
    for options in ({}, {"retention": "10ms"}):
        store = filled([("a", 5)], **options)
        store.commit_snapshots({0: Snapshot(7, 8, 9)})
        store.restart_task()
        assert store.snapshot(0) == Snapshot(7, -1, 9)
        assert starts_of(store.all()) == [("a", 5)]
