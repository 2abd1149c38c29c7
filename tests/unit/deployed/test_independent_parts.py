"""Parts of the records on which no others have an effect, by hand."""

from typing import Any

import numpy as np
import pytest

import sessionkit as sk
from sessionkit.deployed.independent_parts import WHOLE, Parts
from tests.kinds import batch_of

SESSIONS = sk.SessionWindows(inactivity_gap_ms=10, grace_ms=5)
SLIDING = sk.SlidingWindows(time_difference_ms=10, grace_ms=5)
HOPPING = sk.TimeWindows(size_ms=20, advance_ms=10, grace_ms=5)


def parts_of(windows: Any, times: list[int], ask: list[int]) -> list[Any]:
    """The number of the part that a window of this time is in, the first part being 0."""
    parts = Parts(windows, batch_of(*(("a", time, 0) for time in times)), is_one=False)
    return [parts(0, b"a", time)[2] for time in ask]  # type: ignore[index]


def test_sessions_of_a_key_are_apart_after_a_pause_longer_than_the_gap() -> None:
    assert parts_of(SESSIONS, [0, 10, 21, 31], [0, 5, 10, 21, 31]) == [0, 0, 0, 1, 1]


def test_sliding_windows_are_apart_after_a_pause_of_two_windows() -> None:
    reach = 2 * SLIDING.reach_ms
    assert parts_of(SLIDING, [0, reach, 2 * reach + 1], [0, reach, 2 * reach + 1]) == [0, 0, 1]


def test_a_hopping_window_is_a_part_by_itself() -> None:
    parts = Parts(HOPPING, batch_of(("a", 3, 0)), is_one=False)
    assert parts.window(0, b"a", 0, 20) == (0, b"a", 0) != parts.window(0, b"a", 10, 30)


def test_a_session_is_found_by_its_end_and_a_sliding_window_by_its_start() -> None:
    sessions = Parts(SESSIONS, batch_of(("a", 0, 0), ("a", 100, 0)), is_one=False)
    assert sessions.window(0, b"a", 0, 100) == sessions(0, b"a", 100) != sessions(0, b"a", 0)
    sliding = Parts(SLIDING, batch_of(("a", 0, 0), ("a", 100, 0)), is_one=False)
    assert sliding.window(0, b"a", 0, 100) == sliding(0, b"a", 0) != sliding(0, b"a", 100)


def test_keys_and_partitions_are_apart() -> None:
    parts = Parts(SESSIONS, batch_of(("a", 0, 0), ("b", 5, 0), ("a", 7, 3)), is_one=False)
    assert len({parts(0, b"a", 0), parts(0, b"b", 5), parts(3, b"a", 7)}) == 3


def test_with_a_cache_all_records_are_one_part() -> None:
    parts = Parts(SESSIONS, batch_of(("a", 0, 0), ("a", 500, 0)), is_one=True)
    assert parts(0, b"a", 0) == parts(0, b"a", 500) == WHOLE


def test_records_without_a_key_make_no_part() -> None:
    parts = Parts(SESSIONS, batch_of(("a", 0, 0), (None, 8, 0), ("a", 16, 0)), is_one=False)
    assert parts(0, b"a", 0) != parts(0, b"a", 16)


@pytest.mark.parametrize(
    ("windows", "times", "span_ms"),
    [
        (SESSIONS, [], 0),
        (SESSIONS, [5, 90, 40], 85),
        (SLIDING, [5, 90, 40], 85 + 10),
        (HOPPING, [0, 7], 0),  # no window is closed
        (HOPPING, [0, 24], 0),
        (HOPPING, [0, 25], 45),  # 25 closes [-20, 0] … [0, 20]: it lies 45 after the earliest start
        (HOPPING, [0, 60, 30, 61], 80),  # 60 closes it; what comes at 30 is late for every window of its own
    ],
)
def test_how_far_behind_the_store_can_need_a_window(windows: Any, times: list[int], span_ms: int) -> None:
    assert Parts(windows, batch_of(*(("a", time, 0) for time in times)), is_one=False).span_ms == span_ms


def test_where_looks_wait_the_whole_span_counts() -> None:
    for newest in (7, 25):  # 7 closes no window
        batch = batch_of(("a", 0, 0), ("a", newest, 0))
        assert Parts(HOPPING, batch, is_one=False, waits=True).span_ms == newest + 20


def test_each_partition_has_its_own_stream_time() -> None:
    rows = [("a", 0, 0), ("b", 1_000, 1), ("a", 7, 0)]
    assert Parts(HOPPING, batch_of(*rows), is_one=False).span_ms == 0


@pytest.mark.parametrize("late", [0, 1])
def test_records_that_are_late_whatever_is_forgotten_do_not_matter(late: int) -> None:
    batch = batch_of(("a", 0, 0), ("b", 0, 0), ("a", 50, 1))
    parts = Parts(SESSIONS, batch, is_one=False)
    parts.skip_late(batch, lambda: np.arange(3) == late)
    asked = [(0, b"a", 0), (0, b"b", 0), (1, b"a", 50), (0, b"a", 1)]
    assert [parts.matters(*each) for each in asked] == [late != 0, late != 1, True, True]


def test_a_time_that_is_late_once_and_kept_once_matters() -> None:
    batch = batch_of(("a", 5, 0), ("a", 5, 0))
    parts = Parts(SESSIONS, batch, is_one=False)
    parts.skip_late(batch, lambda: np.array([False, True]))
    assert parts.matters(0, b"a", 5)


@pytest.mark.parametrize(("windows", "is_one"), [(HOPPING, False), (SLIDING, False), (SESSIONS, True)])
def test_elsewhere_every_record_matters(windows: Any, is_one: bool) -> None:
    batch = batch_of(("a", 5, 0))
    parts = Parts(windows, batch, is_one=is_one)
    parts.skip_late(batch, lambda: np.array([True]))
    assert parts.matters(0, b"a", 5)
