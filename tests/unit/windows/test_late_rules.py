"""One late rule a kind: where a kernel derives its bound instead of asking, the bound says what the rule says."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.windows.contract import WINDOW_KINDS
from sessionkit.windows.hopping_kernel import window_is_late
from sessionkit.windows.sliding.steps import open_from, sliding_is_late

KINDS: list[Any] = [
    sk.SessionWindows(inactivity_gap_ms=7, grace_ms=3),
    sk.TimeWindows(size_ms=10, advance_ms=4, grace_ms=3),
    sk.CalendarWindows("day", timezone="Europe/Berlin", grace_ms=3),
    sk.SlidingWindows(time_difference_ms=5, grace_ms=3),
]


def test_every_kind_has_a_rule() -> None:
    assert {type(windows) for windows in KINDS} == set(WINDOW_KINDS)


@pytest.mark.parametrize("windows", KINDS, ids=lambda windows: type(windows).__name__)
def test_a_window_is_late_from_its_last_instant_on(windows: Any) -> None:
    """The last time that lies in the window is the last at which it is open: one rule with two readings."""
    for end_ms in (0, 1, 12, 2**53, 2**62):
        last_ms = end_ms if windows.inclusive_end else end_ms - 1
        assert [windows.is_late(end_ms, last_ms + step) for step in (-1, 0, 1)] == [False, False, True]


@pytest.mark.parametrize("grace", [0, 1, 6])
def test_the_sliding_kernel_opens_what_is_not_late(grace: int) -> None:
    """No window starts before 0 or ends at 0, so the kernel has an earliest start instead of the rule."""
    for difference in (1, 5):
        for stream_time_ms in range(-1, 30):
            earliest = open_from(stream_time_ms, grace, difference)
            for start_ms in range(30):
                is_late = sliding_is_late(start_ms + difference, stream_time_ms - grace)
                assert is_late == (start_ms < earliest), (difference, stream_time_ms, start_ms)


def test_the_kernel_of_hopping_windows_misses_what_is_late() -> None:
    """What it misses is worked out by a division; the rule, asked window by window, says the same."""
    rng = np.random.default_rng(4)
    for _ in range(60):
        size = int(rng.integers(1, 20))
        windows = sk.TimeWindows(
            size_ms=size, advance_ms=int(rng.integers(1, size + 1)), grace_ms=int(rng.integers(0, 9))
        )
        plan = sk.group_by_key("k", timestamp="t", unit="ms").windowed_by(windows).count()
        times = rng.integers(0, 60, 25).tolist()
        missed = plan.run(pa.table({"k": ["a"] * 25, "t": times})).trace.missed
        stream = np.maximum.accumulate(times).tolist()
        expected = [
            (row, start_ms)
            for row, (time_ms, now_ms) in enumerate(zip(times, stream, strict=True))
            for start_ms, end_ms in windows.windows_for(time_ms)
            if window_is_late(end_ms, now_ms - windows.grace_ms)
        ]
        assert list(zip(missed.record.tolist(), missed.start_ms.tolist(), strict=True)) == expected, windows
