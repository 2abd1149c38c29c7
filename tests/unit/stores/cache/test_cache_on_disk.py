"""The record cache before a store on disk: it is read segment by segment, and a read uses what it goes through."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sessionkit.stores.cache.sessions import CachingSessionStore
from sessionkit.stores.cache.windows import CachingWindowStore
from sessionkit.stores.rocksdb.sessions import RocksDBSessionStore
from sessionkit.stores.rocksdb.windows import RocksDBWindowStore

pytestmark = pytest.mark.lengthy
ROOMY = 5_000  # bytes: a cache with a limit that is never reached
FORMS = ("ordinary", "by time")
FORMS_OF_ANSWERS = (*FORMS, "by time, with an index")


class Noticing(RocksDBWindowStore):
    """A store that is told which times a read of a limited cache has compared, as an audit is."""

    def __init__(self, **options: Any) -> None:
        self.noticed: list[tuple[int, int]] = []
        super().__init__(**options)

    def notice_segments(self, time_ms: int, other_ms: int) -> None:
        self.noticed.append((time_ms, other_ms))


@contextmanager
def cached_windows(
    directory: Path, form: str, most: int | None = ROOMY, segment_interval: str = "10ms"
) -> Iterator[CachingWindowStore]:
    options = {"time_ordered": form.startswith("by time"), "index": form.endswith("index")}
    with Noticing(name="windows", directory=directory, segment_interval=segment_interval, **options) as below:
        yield CachingWindowStore(below, lambda flushed: None, most)


@contextmanager
def cached_sessions(directory: Path, most: int | None = ROOMY, **options: Any) -> Iterator[CachingSessionStore]:
    with RocksDBSessionStore(name="sessions", directory=directory, segment_interval="10ms", **options) as below:
        yield CachingSessionStore(below, lambda flushed: None, most)


def put(store: Any, *names: str) -> None:
    """Windows of these names: "a5" is of key a and starts at 5; "a3-8" is a session."""
    for name in names:
        key, (start, *end) = name[0], map(int, name[1:].split("-"))
        if end:
            store.put(key, start, end[0], name)
        else:
            store.put(key, start, name, start)


def names(found: Any) -> str:
    return " ".join(each.aggregate for each in found)


def used(store: Any) -> str:
    """What is cached, the least used first."""
    cache = store._caches[0]
    return " ".join(cache._by_place[at].stored.aggregate for at in cache._by_use)


def read(store: Any, found: Any) -> tuple[str, str]:
    """(what is found, what is cached then)."""
    return names(found), used(store)


# ---- what is read


IN_STORE, IN_CACHE = ("a0", "b4", "a9", "a13", "b13", "c30"), ("a2", "b4", "a11", "b25", "a25", "a41")
WINDOW_READS: list[tuple[str, tuple[Any, ...]]] = [
    *(("fetch", ("a", first, last)) for first, last in ((0, 99), (2, 9), (3, 10), (11, 25), (14, 24), (26, 40))),
    *(("fetch_in_keys", ("a", "b", first, last)) for first, last in ((0, 99), (4, 13), (5, 11), (12, 24))),
    *(("fetch_in_keys", (None, "a", 1, 25)), ("fetch_in_keys", ("b", None, 1, 30))),
    *(("fetch_all", bounds) for bounds in ((0, 99), (-5, 4), (5, 25), (9, 10), (31, 40))),
    ("all", ()),
]


@pytest.mark.parametrize("form", FORMS_OF_ANSWERS)
@pytest.mark.parametrize("most", [None, ROOMY])
def test_a_read_of_windows_is_what_the_store_answers_after_a_flush(tmp_path: Path, form: str, most: int | None) -> None:
    with cached_windows(tmp_path, form, most) as store:
        put(store.store, *IN_STORE)
        put(store, *IN_CACHE)
        store.put("c", 30, None, 30)
        reads = [(way + call, bounds) for call, bounds in WINDOW_READS for way in ("", "backward_")]
        before = [names(getattr(store, call)(*bounds)) for call, bounds in reads]
        assert names(store.fetch("a", 2, 11)) == "a2 a9 a11"
        assert names(store.fetch_in_keys("a", "b", 0, 10)) == ("a0 a2 b4 a9" if form == "by time" else "a0 a2 a9 b4")
        store.flush()
        assert [names(getattr(store.store, call)(*bounds)) for call, bounds in reads] == before
        assert [names(getattr(store, call)(*bounds)) for call, bounds in reads] == before


SESSION_READS: list[tuple[str, tuple[Any, ...]]] = [
    *(("find_sessions", ("a", earliest, latest)) for earliest, latest in ((0, 99), (5, 5), (6, 22), (15, 14))),
    *(("find_sessions_in_keys", (*keys, 5, 22)) for keys in (("a", "b"), ("b", "c"), (None, "a"), ("b", None))),
    *(("fetch", ("a",)), ("fetch", ("a", "b")), ("fetch", (None, None))),
]


@pytest.mark.parametrize("time_ordered", [False, True])
@pytest.mark.parametrize("most", [None, ROOMY])
def test_a_read_of_sessions_is_what_the_store_answers_after_a_flush(
    tmp_path: Path, time_ordered: bool, most: int | None
) -> None:
    with cached_sessions(tmp_path, most, time_ordered=time_ordered) as store:
        put(store.store, "a0-5", "b4-9", "a3-9", "a22-30", "c30-30")
        put(store, "a1-5", "b4-9", "a5-9", "a9-15", "b25-25", "a40-41")
        store.remove("c", 30, 30)
        reads = [(way + call, bounds) for call, bounds in SESSION_READS for way in ("", "backward_")]
        before = [names(getattr(store, call)(*bounds)) for call, bounds in reads]
        assert names(store.find_sessions("a", 9, 22)) == "a3-9 a5-9 a9-15 a22-30"
        store.flush()
        assert [names(getattr(store.store, call)(*bounds)) for call, bounds in reads] == before
        assert [names(getattr(store, call)(*bounds)) for call, bounds in reads] == before


@pytest.mark.parametrize("form", FORMS)
def test_an_empty_cache_is_read(tmp_path: Path, form: str) -> None:
    with cached_windows(tmp_path / "windows", form) as windows, cached_sessions(tmp_path / "sessions") as sessions:
        put(windows.store, "a5")
        put(sessions.store, "a5-5")
        for way in ("", "backward_"):
            assert names(getattr(windows, way + "fetch")("a", 0, 99)) == "a5"
            assert names(getattr(sessions, way + "find_sessions")("a", 0, 99)) == "a5-5"


# ---- what a read uses


def test_in_order_of_time_a_read_of_a_key_uses_all_keys_up_to_the_first_entry_behind_it(tmp_path: Path) -> None:
    """Backward it begins at the end of the last segment."""
    with cached_windows(tmp_path, "by time") as store:
        put(store, "b22", "a12", "a9", "a7", "b3", "a5", "a1")
        assert used(store) == "b22 a12 a9 a7 b3 a5 a1"
        assert read(store, store.fetch("a", 2, 5)) == ("a5", "b22 a12 a9 a1 b3 a5 a7")
        assert read(store, store.backward_fetch("a", 5, 8)) == ("a7 a5", "b22 a12 a1 a9 a7 a5 b3")


def test_in_order_of_time_a_read_uses_nothing_in_segments_behind_its_times(tmp_path: Path) -> None:
    with cached_windows(tmp_path, "by time") as store:
        put(store, "b22", "a12", "a9", "a7", "a1")
        assert read(store, store.fetch("a", 8, 15)) == ("a9 a12", "b22 a7 a1 a9 a12")
        assert read(store, store.backward_fetch("a", 8, 15)) == ("a12 a9", "b22 a1 a12 a9 a7")
        assert read(store, store.backward_fetch("b", 20, 10**12)) == ("b22", "a1 a12 a9 a7 b22")
        assert read(store, store.fetch("a", 10, 19)) == ("a12", "a1 a9 a7 b22 a12")
        assert read(store, store.fetch_all(10, 10)) == ("", "a1 a9 a7 b22 a12")


def test_in_order_of_keys_a_read_of_a_key_uses_its_entries_alone(tmp_path: Path) -> None:
    """Backward all from the beginning of the first segment on."""
    with cached_windows(tmp_path, "ordinary") as store:
        put(store, "b22", "a12", "a1", "a9", "a7", "b3", "a5")
        assert read(store, store.fetch("a", 2, 7)) == ("a5 a7", "b22 a12 a1 a9 b3 a5 a7")
        assert read(store, store.fetch("a", 9, 12)) == ("a9 a12", "b22 a1 b3 a5 a7 a9 a12")
        assert read(store, store.backward_fetch("a", 6, 8)) == ("a7", "b22 b3 a9 a12 a7 a5 a1")
        assert read(store, store.backward_fetch("a", 9, 11)) == ("a9", "b22 b3 a12 a9 a7 a5 a1")


def test_in_order_of_keys_a_read_of_a_range_of_keys_uses_its_segments_whole(tmp_path: Path) -> None:
    with cached_windows(tmp_path, "ordinary") as store:
        put(store, "b22", "c9", "a12", "b3", "a5")
        assert read(store, store.fetch_in_keys("b", "c", 4, 9)) == ("c9", "b22 a12 a5 b3 c9")
        assert read(store, store.backward_fetch_in_keys("a", "b", 10, 11)) == ("", "b22 a5 b3 c9 a12")


@pytest.mark.parametrize("form", FORMS)
def test_the_first_segment_is_that_of_time_0(tmp_path: Path, form: str) -> None:
    with cached_windows(tmp_path, form, segment_interval="1ms") as store:
        put(store, "a1", "b5", "a0", "b0")
        for way in ("", "backward_"):
            assert names(getattr(store, way + "fetch")("a", 0, 0)) == "a0"
            assert used(store).startswith("a1 b5 ")


def test_a_read_of_a_keys_sessions_uses_its_entries_from_the_first_end_on(tmp_path: Path) -> None:
    with cached_sessions(tmp_path) as store:
        put(store, "a21-25", "b0-6", "a11-14", "a3-8", "a0-5")
        assert read(store, store.find_sessions("a", 6, 12)) == ("a3-8 a11-14", "b0-6 a0-5 a3-8 a11-14 a21-25")
        assert read(store, store.backward_find_sessions("a", 5, 12)) == (
            "a11-14 a3-8 a0-5",
            "b0-6 a21-25 a11-14 a3-8 a0-5",
        )
        assert read(store, store.find_sessions("a", 15, 30)) == ("a21-25", "b0-6 a11-14 a3-8 a0-5 a21-25")


def test_a_session_that_ends_with_its_segment_is_used_if_it_starts_in_time(tmp_path: Path) -> None:
    """Where it ends before, its start is not asked."""
    with cached_sessions(tmp_path) as store:
        put(store, "a5-9", "a5-8", "a4-9", "b0-0")
        assert read(store, store.find_sessions("a", 0, 4)) == ("a4-9", "a5-9 b0-0 a5-8 a4-9")


@pytest.mark.parametrize("way", ["", "backward_"])
def test_a_key_that_goes_on_with_a_nul_byte_is_used_in_the_first_segment_alone(tmp_path: Path, way: str) -> None:
    """As bytes, "a\\0" from 12 on lies before "a" from 10 on, where the second segment of a read begins."""
    with (
        cached_windows(tmp_path / "windows", "ordinary") as windows,
        cached_sessions(tmp_path / "sessions") as sessions,
    ):
        windows.put("a\0", 12, "nul 12", 12), windows.put("a\0", 2, "nul 2", 2)
        sessions.put("a\0", 12, 12, "nul 12"), sessions.put("a\0", 2, 2, "nul 2")
        put(windows, "b1", "a11")
        put(sessions, "b1-1", "a11-11")
        assert names(getattr(windows, way + "fetch")("a", 0, 19)) == "a11"
        assert names(getattr(sessions, way + "find_sessions")("a", 0, 19)) == "a11-11"
        assert used(windows) == ("nul 12 b1 a11 nul 2" if way else "nul 12 b1 nul 2 a11")
        assert used(sessions) == ("nul 12 b1-1 a11-11 nul 2" if way else "nul 12 b1-1 nul 2 a11-11")


def test_a_store_that_asks_is_told_which_entry_comes_next_behind_a_read(tmp_path: Path) -> None:
    """Whether it lies in the last segment of the read decides whether the read uses it."""
    with cached_windows(tmp_path, "by time") as store:
        put(store, "a5", "b7", "a12")
        for last in (4, 5, 6, 7, 12, 99):
            list(store.fetch("a", 0, last))
        assert isinstance(store.store, Noticing)
        assert store.store.noticed == [(5, 4), (7, 5), (7, 6), (12, 7)]


@pytest.mark.parametrize(("form", "most"), [("by time", None), ("ordinary", ROOMY)])
def test_a_store_is_told_nothing_where_no_order_of_use_depends_on_it(
    tmp_path: Path, form: str, most: int | None
) -> None:
    with cached_windows(tmp_path, form, most) as store:
        put(store, "a5", "b7", "a12")
        list(store.fetch("a", 0, 6)), list(store.fetch_in_keys("a", "b", 0, 6))
        assert isinstance(store.store, Noticing) and store.store.noticed == []


@pytest.mark.parametrize("form", FORMS)
def test_a_read_of_one_moment_finds_what_waits_in_the_cache(tmp_path: Path, form: str) -> None:
    with cached_windows(tmp_path, form) as cache:
        put(cache, "a4", "a5", "b5", "a6")
        assert names(cache.fetch_all(5, 5)) == "a5 b5"
        assert names(cache.backward_fetch_all(5, 5)) == "b5 a5"
        assert names(cache.fetch_all(6, 5)) == ""
