"""The in-memory session store: Kafka's calls, its order, its expiry, its errors; and what it shows of itself."""

import weakref
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument, InvalidData
from sessionkit.stores.contract import Snapshot
from sessionkit.stores.memory.sessions import MemorySessionStore
from tests.contract.stores_model import Spans, spans_of
from tests.contract.stores_model import session_columns as columns
from tests.kinds import group_in_ms


def filled(spans: Spans, **options: Any) -> MemorySessionStore:
    """A store with these sessions, each with its own span as the aggregate."""
    store = MemorySessionStore(**options)
    for key, start, end in spans:
        assert store.put(key, start, end, f"{key}{start}-{end}")
    return store


# ---- KIP-445's nested map: end, key, start

EQUAL_ENDS: Spans = [("b", 5, 9), ("a", 1, 9), ("a", 7, 9), ("a", 0, 3), ("b", 20, 20), ("a", 4, 9), ("", 9, 9)]
IN_ORDER: Spans = [("a", 0, 3), ("", 9, 9), ("a", 7, 9), ("a", 4, 9), ("a", 1, 9), ("b", 5, 9), ("b", 20, 20)]


def test_order_is_end_then_key_then_falling_start() -> None:
    store = filled(EQUAL_ENDS)
    assert spans_of(store.all()) == IN_ORDER
    assert spans_of(store.fetch(None, None)) == IN_ORDER
    assert spans_of(store.find_sessions_by_end(0, 20)) == IN_ORDER
    assert spans_of(store.find_sessions_in_keys(None, None, 0, 20)) == IN_ORDER
    assert spans_of(store.fetch("a")) == [span for span in IN_ORDER if span[0] == "a"]


def test_a_backward_range() -> None:
    """Kafka's in-memory store throws on fetch and on times, and finds nothing in a range of keys of findSessions."""
    store = filled([("a", 0, 9), ("b", 0, 9)])
    with pytest.raises(InvalidArgument, match="a range of keys must not go backwards; got 'b' to 'a'; swap them"):
        store.fetch("b", "a")
    with pytest.raises(InvalidArgument, match="must not go backwards"):
        store.backward_fetch("b", "a")
    assert list(store.find_sessions_in_keys("b", "a", 0, 9)) == []
    with pytest.raises(InvalidArgument, match="a range of times must not go backwards; got 9 to 8; swap them"):
        store.find_sessions_by_end(9, 8)


@pytest.mark.parametrize(("low", "high", "found"), [(9, 9, True), (0, 8, False), (10, 20, False), (0, 9, True)])
def test_bounds_of_ends_are_inclusive(low: int, high: int, found: bool) -> None:
    assert bool(list(filled([("ada", 5, 9)]).find_sessions_by_end(low, high))) is found


def test_remove_takes_exactly_one() -> None:
    store = filled([("ada", 5, 9), ("ada", 6, 9), ("bob", 5, 9)])
    store.remove("ada", 5, 9)
    for key, start, end in (("ada", 5, 9), ("ada", 5, 8), ("eve", 5, 9)):
        store.remove(key, start, end)
    assert spans_of(store.all()) == [("ada", 6, 9), ("bob", 5, 9)]


# ---- expiry (Kafka's InMemorySessionStore)


def test_a_put_at_the_boundary_is_refused() -> None:
    store = MemorySessionStore(retention="10ms")
    assert store.put("ada", 0, 100, 1)
    assert not store.put("ada", 0, 90, 2)  # 90 <= 100 - 10
    assert store.put("ada", 0, 91, 3)
    assert [s.window_end_ms for s in store.all()] == [91, 100]


def test_observed_time_moves_before_the_check_so_that_no_retention_keeps_nothing() -> None:
    store = MemorySessionStore(retention=0)
    assert not store.put("ada", 5, 5, 1)
    assert list(store.all()) == []


def test_a_refused_put_moves_time_and_a_null_too_late_deletes_nothing() -> None:
    store = MemorySessionStore(retention="10ms")
    store.put("ada", 50, 100, 1)
    assert not store.put("ada", 0, 90, None)
    assert store.put("ada", 50, 110, 2)
    assert [s.window_end_ms for s in store.all()] == [110]


def test_every_read_hides_what_has_expired() -> None:
    def expiring() -> MemorySessionStore:
        store = filled([("ada", 0, 90), ("ada", 0, 91)], retention="10ms")
        store.put("bob", 100, 100, 1)
        return store

    assert expiring().fetch_session("ada", 0, 90) is None
    assert expiring().fetch_session("ada", 0, 91) == "ada0-91"
    left: Spans = [("ada", 0, 91), ("bob", 100, 100)]
    reads = (
        ("all",),
        ("fetch", None, None),
        ("find_sessions_in_keys", "a", "c", 0, 200),
        ("find_sessions_by_end", 0, 200),
    )
    for name, *bounds in reads:
        assert spans_of(getattr(expiring(), name)(*bounds)) == left, name
    assert spans_of(expiring().find_sessions("ada", 0, 200)) == left[:1]
    assert spans_of(expiring().fetch("ada")) == left[:1]
    assert spans_of(expiring().backward_fetch(None, None)) == left[::-1]
    assert len(expiring()) == 2


def test_without_retention_nothing_expires() -> None:
    store = filled([("ada", 0, 0), ("ada", 2**62, 2**62)])
    assert repr(store) == "MemorySessionStore('sessions'): 2 sessions, kept as long as a plan says"


# ---- errors


def test_times_of_a_question_must_be_integers() -> None:
    store = filled([("ada", 5, 9)])
    for ask in (
        lambda: store.find_sessions("ada", 0.0, 10),  # type: ignore[arg-type]
        lambda: store.find_sessions_by_end("0", 10),  # type: ignore[arg-type]
        lambda: store.fetch_session("ada", None, 10),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidArgument, match="a time of a session must be a moment"):
            ask()


def test_a_closed_store_holds_no_memory() -> None:
    class Kept:
        """A value that can be watched."""

    store, value = MemorySessionStore(), Kept()
    store.put("ada", 5, 9, value)
    watched = weakref.ref(value)
    del value
    assert watched() is not None
    store.close()
    assert watched() is None


# ---- the bulk calls


def test_what_was_committed_is_loaded() -> None:
    store = MemorySessionStore()
    snapshots = {0: Snapshot(17, 900, 800), 2: Snapshot(4, 50, -1)}
    store.commit(columns([]), columns([("a", 0, 1, 5, 3, -1, 10), ("b", 2, 7, 9, 8, 11, None)]), snapshots)
    assert (store.snapshot(0), store.snapshot(2), store.snapshot(1)) == (*snapshots.values(), Snapshot())
    loaded = store.load(pa.array(["a", "b"]), {0: 0, 2: 0}, ("count",))
    assert loaded.key.to_pylist() == ["a", "b"]
    assert [column.tolist() for column in loaded[1:6]] == [[0, 2], [1, 7], [5, 9], [3, 8], [-1, 11]]
    assert loaded.aggregates["count"].tolist() == [10, None]
    store.commit(loaded, columns([("a", 0, 1, 6, 3, -1, 11)]), {})
    assert spans_of(store.all()) == [("a", 1, 6)]
    assert spans_of(store.all(partition=2)) == []
    assert store.snapshot(0) == snapshots[0]


def test_loaded_are_the_keys_asked_for_and_what_will_close() -> None:
    store = filled([("a", 0, 5), ("b", 0, 6), ("c", 0, 100)])
    loaded = store.load(pa.array(["c", "x"]), {0: 6}, ("value",))
    assert loaded.key.to_pylist() == ["a", "c"]
    assert len(store.load(pa.array(["a"]), {}, ("value",)).key) == 0


def test_several_aggregations_are_one_stored_value() -> None:
    plan = group_in_ms("user")
    plan = plan.windowed_by(sk.SessionWindows(inactivity_gap="1s", grace="1s")).aggregate(
        n=sk.count(), total=sk.sum("v")
    )
    with sk.open_store("memory", "clicks") as store:
        plan.run(pd.DataFrame({"user": ["ada"], "at": [5], "v": [2]}), store=store)
        assert [session[:4] for session in store.all()] == [(5, 5, {"n": 1, "total": 2}, "ada")]


def test_records_with_other_keys_are_refused() -> None:
    plan = group_in_ms("user").windowed_by(sk.SessionWindows(inactivity_gap_ms=1, grace_ms=1)).count()
    with sk.open_store("memory", "clicks") as store:
        plan.run(pd.DataFrame({"user": ["ada"], "at": [5]}), store=store)
        with pytest.raises(InvalidData, match="the store holds keys of another type; got large_string, records int64"):
            plan.run(pd.DataFrame({"user": [1], "at": [600]}), store=store)


# ---- to look at


@pytest.mark.parametrize(
    "windows", [sk.SessionWindows(inactivity_gap_ms=5, grace=0), sk.TimeWindows(size_ms=5, grace=0)]
)
def test_a_look_at_a_store_leaves_its_columns_where_they_are(windows: Any) -> None:
    """Where a plan committed, a look moved every window into maps: a million of them took a minute and gigabytes."""
    rng = np.random.default_rng(7)
    size = 2_000
    columns = {"user": rng.integers(0, 50, size), "at": rng.integers(0, 900, size), "p": rng.integers(0, 3, size)}
    steps = group_in_ms("user", partition="p").windowed_by(windows)
    of = "sessions" if isinstance(windows, sk.SessionWindows) else "windows"
    store = sk.open_store("memory", "clicks", of=of)
    twin = sk.open_store("memory", "clicks", of=of)
    for each in (store, twin):
        grown = windows.arguments()[1]
        steps.with_windows(**{**grown, "grace_ms": 3_600_000}).aggregate(n=sk.count(), last=sk.last("at")).run(
            pa.table(columns), store=each
        )
    twin._partitions  # noqa: B018  this one has maps
    assert twin._maps
    assert store._repr_html_() == twin._repr_html_()
    assert (repr(store), store.facts(), len(store)) == (repr(twin), twin.facts(), len(twin))
    assert store.to_pandas().equals(twin.to_pandas())
    assert list(store.rows()) == list(twin.rows())
    assert store.partitions == twin.partitions == [0, 1, 2]
    assert not store._maps
