"""The record cache: order of a flush, tombstones, eviction, and reads that see it over the store."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument, NotBuilt
from sessionkit.stores.cache.sessions import CachingSessionStore, Flushed
from sessionkit.stores.cache.windows import CachingWindowStore
from sessionkit.stores.memory.sessions import MemorySessionStore
from sessionkit.stores.memory.windows import MemoryWindowStore
from tests.deployments import A_SESSION, A_WINDOW, run_deployed
from tests.kinds import group_in_ms

GAP_10 = sk.SessionWindows(inactivity_gap_ms=10, grace_ms=1_000)


class Cached:
    """A caching store, and what it has forwarded."""

    kinds: tuple[Any, Any]

    def __init__(self, most_bytes: int | None = None, retention: str | None = None) -> None:
        self.sent: list[tuple[Any, ...]] = []
        below, caching = self.kinds
        self.below = below(retention=retention)
        self.store = caching(self.below, self._take, most_bytes)

    def flush(self) -> list[tuple[Any, ...]]:
        """What this flush forwards."""
        self.sent.clear()
        self.store.flush()
        return list(self.sent)


class Sessions(Cached):
    """It forwards (key, start, end, new value, old value)."""

    kinds = (MemorySessionStore, CachingSessionStore)

    def _take(self, flushed: Flushed) -> None:
        self.sent.append((flushed.key, flushed.id.start_ms, flushed.id.end_ms, flushed.new, flushed.old))


class Windows(Cached):
    """It forwards (key, start, new value, old value, timestamp)."""

    kinds = (MemoryWindowStore, CachingWindowStore)

    def _take(self, flushed: Flushed) -> None:
        self.sent.append((flushed.key, flushed.id.start_ms, flushed.new, flushed.old, flushed.timestamp_ms))


def spans(found: Any) -> list[tuple[Any, ...]]:
    return [(s.key, s.window_start_ms, s.window_end_ms, s.aggregate) for s in found]


def starts(found: Any) -> list[tuple[Any, ...]]:
    return [(w.key, w.window_start_ms, w.aggregate) for w in found]


# ---- a flush


def test_nothing_reaches_the_store_or_anyone_downstream_before_a_flush() -> None:
    windows, sessions = Windows(), Sessions()
    assert windows.store.put("a", 0, 1, 5)
    assert sessions.store.put("a", 0, 5, 1)
    assert (windows.sent, sessions.sent) == ([], [])
    assert len(windows.below) == len(sessions.below) == 0
    assert windows.flush() == [("a", 0, 1, None, 5)]
    assert sessions.flush() == [("a", 0, 5, 1, None)]
    assert starts(windows.below.all()) == [("a", 0, 1)]
    assert spans(sessions.below.all()) == [("a", 0, 5, 1)]
    assert windows.flush() == sessions.flush() == []


def test_a_flush_is_in_the_order_of_the_last_writes() -> None:
    windows = Windows()
    for key, start, value in (("b", 10, 1), ("a", 0, 1), ("c", 20, 1), ("b", 10, 2), ("a", 0, 2)):
        windows.store.put(key, start, value, start)
    assert windows.flush() == [("c", 20, 1, None, 20), ("b", 10, 2, None, 10), ("a", 0, 2, None, 0)]
    windows.store.put("a", 0, 3, 0)
    windows.store.put("c", 20, 3, 20)
    windows.store.fetch_window("a", 0)  # a read is no write
    assert windows.flush() == [("a", 0, 3, 2, 0), ("c", 20, 3, 1, 20)]


def test_many_updates_of_a_window_are_one() -> None:
    windows = Windows()
    for value in range(5):
        windows.store.put("a", 0, value, value)
    assert windows.flush() == [("a", 0, 4, None, 4)]
    windows.store.put("a", 0, 9, 9)
    assert windows.flush() == [("a", 0, 9, 4, 9)]


def test_who_opened_and_when_newest_go_through_to_the_store() -> None:
    windows, sessions = Windows(), Sessions()
    windows.store.put("a", 0, 1, 7, opened_by=3)
    sessions.store.put("a", 0, 5, 1, opened_by=4)
    windows.flush(), sessions.flush()
    assert windows.below.fetch_window("a", 0)[1:5] == (1, 7, "a", 3)  # type: ignore[index]
    assert next(sessions.below.all()).opened_by == 4


# ---- tombstones


def test_what_nobody_has_seen_goes_without_a_trace() -> None:
    sessions = Sessions()
    sessions.store.put("a", 0, 0, 1)
    sessions.store.put("a", 10, 10, 1)
    for time in (0, 10):
        sessions.store.remove("a", time, time)
    sessions.store.put("a", 0, 10, 3)
    assert sessions.flush() == [("a", 0, 10, 3, None)]
    windows = Windows()
    windows.store.put("a", 0, 1, 5)
    windows.store.put("a", 0, None, 6)
    assert windows.flush() == []
    assert len(windows.below) == 0


def test_what_the_store_shows_gets_a_tombstone() -> None:
    sessions = Sessions()
    sessions.store.put("a", 0, 0, 1)
    sessions.store.put("a", 10, 10, 1)
    sessions.flush()
    for time in (0, 10):
        sessions.store.remove("a", time, time)
    sessions.store.put("a", 0, 10, 3)
    assert sessions.flush() == [("a", 0, 0, None, 1), ("a", 10, 10, None, 1), ("a", 0, 10, 3, None)]
    assert spans(sessions.below.all()) == [("a", 0, 10, 3)]
    assert sessions.flush() == []
    windows = Windows()
    windows.store.put("a", 0, 1, 5)
    windows.flush()
    windows.store.put("a", 0, None, 6)
    assert windows.flush() == [("a", 0, None, 1, 6)]
    assert len(windows.below) == 0


def test_removed_and_put_again_is_one_update() -> None:
    sessions = Sessions()
    sessions.store.put("a", 0, 10, 1)
    sessions.flush()
    sessions.store.remove("a", 0, 10)
    sessions.store.put("a", 0, 10, 2)
    assert sessions.flush() == [("a", 0, 10, 2, 1)]


def test_what_the_store_has_expired_gets_no_tombstone() -> None:
    """The cache shows it all the while."""
    sessions, windows = Sessions(retention="10ms"), Windows(retention="10ms")
    sessions.store.put("a", 0, 5, 1)
    windows.store.put("a", 5, 1, 5)
    sessions.flush(), windows.flush()
    sessions.store.put("b", 15, 15, 1)
    windows.store.put("b", 15, 1, 15)
    sessions.flush(), windows.flush()
    assert spans(sessions.below.all()) == [("b", 15, 15, 1)]
    assert sessions.store.fetch_session("a", 0, 5) == 1
    assert starts(windows.below.all()) == [("b", 15, 1)]
    assert windows.store.fetch_window("a", 5) is not None
    sessions.store.remove("a", 0, 5)
    windows.store.put("a", 5, None, 6)
    assert sessions.flush() == windows.flush() == []


def test_an_update_that_the_store_refuses_is_forwarded_and_counted() -> None:
    sessions, windows = Sessions(retention="10ms"), Windows(retention="10ms")
    sessions.store.put("a", 0, 5, 1)
    sessions.store.put("b", 15, 15, 1)
    windows.store.put("b", 15, 1, 15)
    windows.store.put("a", 5, 1, 5)  # written after b, so the store has moved on
    assert len(sessions.flush()) == len(windows.flush()) == 2
    assert (sessions.store.refused_count, windows.store.refused_count) == (0, 1)
    sessions.store.put("a", 0, 5, 2)
    assert sessions.flush() == [("a", 0, 5, 2, None)]
    assert sessions.store.refused_count == 1


def test_a_null_that_is_kept_is_a_value() -> None:
    sessions = Sessions()
    sessions.store.put("a", 0, 5, None, keep_null=True)
    assert spans(sessions.store.all()) == [("a", 0, 5, None)]
    assert sessions.store.fetch_session("a", 0, 5) is None
    windows = Windows()
    windows.store.put("a", 0, None, 5, keep_null=True)
    assert starts(windows.store.all()) == [("a", 0, None)]


# ---- eviction


def test_an_evicted_entry_that_is_dirty_takes_all_dirty_ones_with_it_and_goes_first() -> None:
    windows = Windows(3 * A_WINDOW)
    for start in (0, 10, 20):
        windows.store.put("a", start, start, start)
    windows.store.fetch_window("a", 0)  # used again: now [10, ...) is the least used
    assert windows.sent == []
    windows.store.put("a", 30, 30, 30)
    assert [row[1] for row in windows.sent] == [10, 0, 20, 30]
    assert windows.flush() == []
    assert [start for _, start, _ in starts(windows.below.all())] == [0, 10, 20, 30]


def test_an_evicted_entry_that_is_clean_goes_alone() -> None:
    windows = Windows(2 * A_WINDOW)
    windows.store.put("a", 0, 1, 0)
    windows.flush()
    windows.store.put("a", 10, 1, 10)
    windows.sent.clear()
    windows.store.put("a", 20, 1, 20)
    assert windows.sent == []
    assert [row[1] for row in windows.flush()] == [10, 20]


def test_a_write_is_a_use() -> None:
    windows = Windows(2 * A_WINDOW)
    for start in (0, 10, 0, 20):
        windows.store.put("a", start, start, start)
    assert [row[1] for row in windows.sent] == [10, 0, 20]


@pytest.mark.parametrize(("most_bytes", "kept"), [(0, 0), (A_WINDOW - 1, 0), (A_WINDOW, 1), (2 * A_WINDOW - 1, 1)])
def test_a_cache_of_no_or_one_entry(most_bytes: int, kept: int) -> None:
    windows = Windows(most_bytes)
    windows.store.put("a", 0, 1, 0)
    assert len(windows.sent) == 1 - kept
    windows.store.put("a", 10, 1, 10)
    assert [row[1] for row in windows.sent] == [0, 10]
    assert starts(windows.store.all()) == [("a", 0, 1), ("a", 10, 1)]


def test_an_evicted_removal_is_seen_no_longer_in_the_cache_but_is_done() -> None:
    sessions = Sessions(2 * A_SESSION)
    sessions.store.put("a", 0, 0, 1)
    sessions.flush()
    sessions.store.remove("a", 0, 0)
    sessions.store.put("b", 5, 5, 1)
    sessions.store.put("c", 6, 6, 1)
    assert sessions.sent[-3:] == [("a", 0, 0, None, 1), ("b", 5, 5, 1, None), ("c", 6, 6, 1, None)]
    assert spans(sessions.store.all()) == [("b", 5, 5, 1), ("c", 6, 6, 1)]


# ---- reads


@pytest.fixture
def windows() -> Windows:
    """In the store a0 a10 b10 a20; in the cache a10 is another, b10 is gone, and a5 and b30 are new."""
    both = Windows()
    for key, start in (("a", 0), ("a", 10), ("b", 10), ("a", 20)):
        both.below.put(key, start, "store", start)
    both.store.put("a", 10, "cache", 10)
    both.store.put("b", 10, None, 10)
    both.store.put("a", 5, "cache", 5)
    both.store.put("b", 30, "cache", 30)
    return both


A0, A5, A10, A20, B30 = (
    ("a", 0, "store"), ("a", 5, "cache"), ("a", 10, "cache"), ("a", 20, "store"), ("b", 30, "cache"),
)  # fmt: skip
WINDOW_READS: dict[str, tuple[Callable[[Any, str], Any], list[Any]]] = {
    "all": (lambda store, way: getattr(store, way + "all")(), [A0, A5, A10, A20, B30]),
    "fetch_all": (lambda store, way: getattr(store, way + "fetch_all")(5, 20), [A5, A10, A20]),
    "fetch": (lambda store, way: getattr(store, way + "fetch")("a", 0, 10), [A0, A5, A10]),
    "fetch of b": (lambda store, way: getattr(store, way + "fetch")("b", 0, 99), [B30]),
    "fetch_in_keys": (lambda store, way: getattr(store, way + "fetch_in_keys")("a", "b", 10, 30), [A10, A20, B30]),
    "keys from b": (lambda store, way: getattr(store, way + "fetch_in_keys")("b", None, 0, 99), [B30]),
    "keys to a": (lambda store, way: getattr(store, way + "fetch_in_keys")(None, "a", 1, 99), [A5, A10, A20]),
}


@pytest.mark.parametrize("name", WINDOW_READS)
def test_reads_of_windows_see_the_cache_over_the_store(windows: Windows, name: str) -> None:
    read, expected = WINDOW_READS[name]
    for _ in ("before", "after a flush"):
        assert starts(read(windows.store, "")) == expected
        assert starts(read(windows.store, "backward_")) == expected[::-1]
        windows.flush()
    assert starts(read(windows.below, "")) == expected


def test_an_answer_is_fixed_when_the_call_is_made(windows: Windows) -> None:
    answers = [read(windows.store, way) for read, _ in WINDOW_READS.values() for way in ("", "backward_")]
    for key, start in (("a", 0), ("a", 5), ("b", 30)):
        windows.store.put(key, start, None, start)
    windows.flush()
    expected = [found[::step] for _, found in WINDOW_READS.values() for step in (1, -1)]
    assert [starts(answer) for answer in answers] == expected


def test_one_window_is_read_from_the_cache_first(windows: Windows) -> None:
    found = {start: windows.store.fetch_window("a", start) for start in (0, 5, 10, 15)}
    assert {start: None if window is None else window.aggregate for start, window in found.items()} == {
        0: "store",
        5: "cache",
        10: "cache",
        15: None,
    }
    assert windows.store.fetch_window("b", 10) is None


@pytest.fixture
def sessions() -> Sessions:
    """In the store a 0-5, a 20-25, b 20-21; in the cache a 0-5 is another, b is gone, and a 40-40 and c 1-9 are new."""
    both = Sessions()
    for key, start, end in (("a", 0, 5), ("a", 20, 25), ("b", 20, 21)):
        both.below.put(key, start, end, "store")
    both.store.put("a", 0, 5, "cache")
    both.store.remove("b", 20, 21)
    both.store.put("a", 40, 40, "cache")
    both.store.put("c", 1, 9, "cache")
    return both


A05, A2025, A40, C19 = ("a", 0, 5, "cache"), ("a", 20, 25, "store"), ("a", 40, 40, "cache"), ("c", 1, 9, "cache")
SESSION_READS: dict[str, tuple[str, tuple[Any, ...], list[Any]]] = {
    "fetch": ("fetch", ("a",), [A05, A2025, A40]),
    "fetch of keys": ("fetch", ("b", "c"), [C19]),
    "fetch of all keys": ("fetch", (None, None), [A05, C19, A2025, A40]),
    "find": ("find_sessions", ("a", 5, 20), [A05, A2025]),
    "find, end too early": ("find_sessions", ("a", 6, 39), [A2025]),
    "find in keys": ("find_sessions_in_keys", ("a", "c", 9, 40), [C19, A2025, A40]),
    "find in keys, start too late": ("find_sessions_in_keys", (None, None, 0, 0), [A05]),
    "a range of keys that goes backwards": ("find_sessions_in_keys", ("c", "a", 0, 99), []),
}


@pytest.mark.parametrize("name", SESSION_READS)
def test_reads_of_sessions_see_the_cache_over_the_store(sessions: Sessions, name: str) -> None:
    call, bounds, expected = SESSION_READS[name]
    for _ in ("before", "after a flush"):
        assert spans(getattr(sessions.store, call)(*bounds)) == expected
        assert spans(getattr(sessions.store, "backward_" + call)(*bounds)) == expected[::-1]
        sessions.flush()
    assert spans(getattr(sessions.below, call)(*bounds)) == expected


def test_one_session_is_read_from_the_cache_first(sessions: Sessions) -> None:
    assert sessions.store.fetch_session("a", 0, 5) == "cache"
    assert sessions.store.fetch_session("a", 20, 25) == "store"
    assert sessions.store.fetch_session("b", 20, 21) is None
    assert sessions.store.fetch_session("a", 0, 6) is None
    assert spans(sessions.store.all()) == [A05, C19, A2025, A40]


def test_a_session_at_times_that_cannot_be_is_none(sessions: Sessions) -> None:
    """Time 0 can be."""
    sessions.store.put("a", 0, 0, "first")
    assert sessions.store.fetch_session("a", 0, 0) == "first"
    assert [sessions.store.fetch_session("a", *span) for span in ((-1, 5), (5, -1), (-1, -1))] == [None] * 3


def test_sessions_are_not_found_by_end() -> None:
    """Kafka's caching store does not offer it either."""
    with pytest.raises(NotBuilt, match="a cached store cannot find sessions by end; got find_sessions_by_end; "):
        Sessions().store.find_sessions_by_end(0, 10)


def test_partitions_are_apart() -> None:
    windows, sessions = Windows(), Sessions()
    for partition in (0, 3):
        windows.store.put("a", 0, partition, 0, partition=partition)
        sessions.store.put("a", 0, 0, partition, partition=partition)
    for partition in (0, 3):
        assert starts(windows.store.all(partition=partition)) == [("a", 0, partition)]
        assert spans(sessions.store.fetch("a", partition=partition)) == [("a", 0, 0, partition)]
    assert starts(windows.store.all(partition=1)) == []
    windows.flush(), sessions.flush()
    assert starts(windows.below.all(partition=3)) == [("a", 0, 3)]
    assert spans(sessions.below.all(partition=3)) == [("a", 0, 0, 3)]


# ---- under a plan


def run_of(windows: Any, rows: list[tuple[str, int]], **options: Any) -> sk.Run:
    table = pa.table({"key": [key for key, _ in rows], "time": [time for _, time in rows]})
    plan = group_in_ms("key", timestamp="time").windowed_by(windows)
    emit = options.pop("emit", "on_window_update")
    run = run_deployed(plan.emit(emit).count(), table, **options)
    run.trace.check()
    return run


def log(run: sk.Run) -> list[tuple[Any, ...]]:
    names = ("offset", "what", "key", "window_start_ms", "window_end_ms", "count", "timestamp_ms")
    return [tuple(row[name] for name in names) for row in run.changelog().to_pylist()]


def test_only_kafka_has_a_cache() -> None:
    plan = group_in_ms("key", timestamp="time").windowed_by(GAP_10).count()
    table = pa.table({"key": ["a"], "time": [1]})
    for option in ({"caching": True}, {"commit_every": 1}, {"emit_interval": "1s"}):
        with pytest.raises(InvalidArgument, match="cannot be called like this; got an unexpected keyword"):
            plan.run(table, **option)


def test_a_session_made_and_merged_between_two_commits_leaves_no_trace() -> None:
    rows = [("a", 0), ("a", 20), ("a", 10)]
    assert log(run_of(GAP_10, rows)) == [
        (0, "update", "a", 0, 0, 1, 0),
        (1, "update", "a", 20, 20, 1, 20),
        (2, "tombstone", "a", 0, 0, None, 0),
        (2, "tombstone", "a", 20, 20, None, 20),
        (2, "update", "a", 0, 20, 3, 20),
    ]
    assert log(run_of(GAP_10, rows, caching=True)) == [(2, "update", "a", 0, 20, 3, 20)]
    assert log(run_of(GAP_10, rows, caching=True, commit_every=[0])) == [
        (0, "update", "a", 0, 0, 1, 0),
        (2, "tombstone", "a", 0, 0, None, 0),
        (2, "update", "a", 0, 20, 3, 20),
    ]


def test_a_record_inside_its_session_has_no_tombstone_with_the_cache() -> None:
    """Without it Kafka withdraws [0, 8] before it sends [0, 8] again."""
    rows = [("a", 0), ("a", 8), ("a", 5)]
    assert [row[:2] for row in log(run_of(GAP_10, rows))][-2:] == [(2, "tombstone"), (2, "update")]
    assert log(run_of(GAP_10, rows, caching=True, commit_every=1)) == [
        (0, "update", "a", 0, 0, 1, 0),
        (1, "tombstone", "a", 0, 0, None, 0),
        (1, "update", "a", 0, 8, 2, 8),
        (2, "update", "a", 0, 8, 3, 8),
    ]


@pytest.mark.parametrize(
    ("commit_every", "offsets"),
    [(1, [0, 1, 2, 3, 4]), (2, [1, 1, 3, 3, 4]), ([1, 3], [1, 1, 3, 3, 4]), (99, [4, 4, 4, 4, 4]), (None, [4] * 5)],
)
def test_commits(commit_every: Any, offsets: list[int]) -> None:
    """The end of a run is one, too."""
    rows = [("a", 0), ("a", 10), ("a", 20), ("a", 30), ("a", 40)]
    run = run_of(sk.TimeWindows(size_ms=10, grace_ms=100), rows, caching=True, commit_every=commit_every)
    assert [row[0] for row in log(run)] == offsets
    assert [row[3] for row in log(run)] == [0, 10, 20, 30, 40]


def test_an_eviction_forwards_between_commits() -> None:
    rows = [("a", 0), ("b", 1), ("a", 2), ("c", 3), ("d", 4)]
    run = run_of(sk.TimeWindows(size_ms=10, grace_ms=100), rows, caching=f"{2 * A_WINDOW}B")
    assert [(row[0], row[2], row[5]) for row in log(run)] == [(3, "b", 1), (3, "a", 2), (3, "c", 1), (4, "d", 1)]
    whole = run_of(sk.TimeWindows(size_ms=10, grace_ms=100), rows)
    assert run.table().equals(whole.table())


def test_old_values_are_those_of_the_last_flush() -> None:
    rows = [("a", 0), ("a", 1), ("a", 2), ("a", 3)]
    run = run_of(sk.TimeWindows(size_ms=10, grace_ms=100), rows, caching=True, commit_every=2)
    found = run.changelog(old_values=True).to_pylist()
    assert [(row["count"], row["old_count"]) for row in found] == [(2, None), (4, 2)]


def test_on_close_turns_the_cache_off_but_not_for_tumbling_and_hopping_windows() -> None:
    """[0, 10) has left the store by the time it is final: only a cache still has it."""
    rows = [("a", 0), ("a", 20)]
    for windows, finals in (
        (sk.TimeWindows(size_ms=10, grace=0), 1),
        (sk.SessionWindows(inactivity_gap_ms=1, grace=0), 0),
    ):
        assert len(log(run_of(windows, rows, emit="on_window_close"))) == 0
        cached = run_of(windows, rows, emit="on_window_close", caching=True)
        assert len(log(cached)) == finals
        assert isinstance(cached._store, CachingWindowStore) is bool(finals)


def test_a_cached_session_is_joined_though_the_store_has_expired_it() -> None:
    """Retention 5: at stream time 5 the session at 0 has left the store, but 1 still finds it in the cache."""
    windows = sk.SessionWindows(inactivity_gap_ms=2, grace_ms=3)
    rows = [("a", 0), ("b", 5), ("a", 1)]
    counts = {
        caching: {row[2:5]: row[5] for row in log(run_of(windows, rows, caching=caching))} for caching in (False, True)
    }
    assert counts[False]["a", 1, 1] == 1
    assert counts[True]["a", 0, 1] == 2


def test_a_refused_result_is_a_drop_of_the_record_that_committed() -> None:
    """Retention 15: once 30 is in the store, [15, 15] is refused, though it was open and is sent on."""
    windows, rows = sk.SessionWindows(inactivity_gap_ms=10, grace_ms=5), [("b", 30), ("a", 15), ("c", 20)]
    plain, run = run_of(windows, rows), run_of(windows, rows, caching=True)
    assert [each.deployed and each.deployed.refused for each in (plain, run)] == [(1,), (2,)]
    assert [row[:3] for row in log(run)] == [(2, "update", "b"), (2, "update", "a"), (2, "update", "c")]
    assert [s.key for s in run._store.all()] == ["a", "c", "b"]  # the cache does not know retention
    assert [s.key for s in run._store.store.all()] == ["c", "b"]
    m = run.metrics()
    assert (m["dropped-records-total"], m["dropped-expired"], m["dropped-late"]) == (1, 1, 0)


def test_two_runs_over_one_store_are_one_run_committed_in_between() -> None:
    rows = [("a", 0), ("a", 20), ("a", 10), ("b", 30), ("a", 12)]
    whole = run_of(GAP_10, rows, caching=True, commit_every=[2])
    with sk.open_store("memory", "sessions", retention="2000ms") as store:
        first, second = (run_of(GAP_10, part, caching=True, store=store) for part in (rows[:3], rows[3:]))
        assert log(first) + log(second) == log(whole)
        assert store.snapshot(0)[:2] == (4, 30)  # position and stream time


PARTITIONED = pa.table({"key": ["a", "b"], "time": [1, 2], "partition": [0, 1]})


@pytest.mark.parametrize("windows", [sk.TimeWindows(size_ms=10, grace=0), GAP_10])
def test_a_flushed_result_is_in_the_partition_of_its_window(windows: Any) -> None:
    """The commit at the end comes with a record of partition 1, and flushes the windows of partition 0 as well."""
    plan = group_in_ms("key", timestamp="time", partition="partition").windowed_by(windows).count()
    cached = run_deployed(plan, PARTITIONED, caching=True)
    found = [(row["partition"], row["key"]) for row in cached.changelog().to_pylist()]
    assert found == [(0, "a"), (1, "b")]
