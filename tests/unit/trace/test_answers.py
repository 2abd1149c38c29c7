"""What the views ask of a trace, by hand: which records sent, opened or were dropped, and which windows hold them."""

import numpy as np
import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.trace.window_trace import WindowTrace
from tests.kinds import plan_of

# key, time, what it does with sessions of a gap of 10 and a grace of 85
ARRIVALS = [
    ("a", 6, "opened"),
    ("a", 100, "opened"),
    ("a", 8, "added"),
    ("a", 2, "added"),  # behind the close time, 5, and kept: its session ends at 8
    ("a", 26, "opened"),
    ("a", 17, "merged"),  # [0, 8] and [26, 26]
    ("b", 3, "dropped"),
    ("a", 500, "opened"),
    ("a", 12, "dropped"),
    (None, 501, "dropped"),
]
DATA = pd.DataFrame({"key": [row[0] for row in ARRIVALS], "at": [row[1] for row in ARRIVALS]})


def trace_of(windows: sk.SessionWindows | sk.TimeWindows | sk.SlidingWindows) -> SessionTrace | WindowTrace:
    trace = (
        plan_of(windows, "on_window_update", {"n": sk.count()}, key="key", timestamp="at", unit="ms").run(DATA).trace
    )
    trace.check()
    assert isinstance(trace, SessionTrace | WindowTrace)
    return trace


@pytest.fixture(scope="module")
def sessions() -> SessionTrace:
    trace = trace_of(sk.SessionWindows(inactivity_gap_ms=10, grace_ms=85))
    assert isinstance(trace, SessionTrace)
    assert trace.records()["decision"].to_pylist() == [row[2] for row in ARRIVALS]
    return trace


@pytest.fixture(scope="module")
def windows() -> WindowTrace:
    trace = trace_of(sk.TimeWindows(size_ms=20, advance_ms=10, grace_ms=85))
    assert isinstance(trace, WindowTrace)
    return trace


def test_sessions_say_what_each_record_did(sessions: SessionTrace) -> None:
    assert sessions.dropped_at.tolist() == [6, 8, 9]
    assert sessions.updated_at.tolist() == [0, 1, 2, 3, 4, 5, 7]
    assert sessions.sent_on_update == 4 * 1 + 2 * 2 + 3  # a tombstone for what was added to, two for what was merged
    assert sessions.opened_count.tolist() == [1, 1, 0, 0, 1, -1, 0, 1, 0, 0]
    assert sessions.worth_seeing.tolist() == [0, 0, 0, 2, 0, 3, 3, 0, 3, 0]
    assert sessions.longest_made_ms == 0


def test_sessions_are_known_by_the_bounds_that_they_had(sessions: SessionTrace) -> None:
    at, start_ms, end_ms = np.array([1, 3, 4, 5]), np.array([100, 2, 26, 2]), np.array([100, 8, 26, 26])
    assert sessions.windows_at(0, at, start_ms, end_ms).tolist() == [1, 0, 2, 0]
    assert [sessions.size_of(window) for window in range(4)] == [5, 1, 0, 1]  # the third was absorbed by the first


def test_windows_say_what_each_record_did(windows: WindowTrace) -> None:
    assert windows.dropped_at.tolist() == [8, 8, 9]  # late for two windows, then what has no key
    assert windows.updated_at.tolist() == [0, 1, 1, 2, 3, 4, 4, 5, 5, 6, 7, 7]
    assert windows.sent_on_update == 12
    assert windows.opened_count.tolist() == [1, 2, 0, 0, 2, 0, 1, 2, 0, 0]
    assert windows.worth_seeing.tolist() == [0, 0, 0, 0, 0, 0, 0, 0, 3, 0]
    assert windows.longest_made_ms == 20
    assert windows.newest_ms.tolist() == [6, 100, 100, 8, 8, 26, 26, 17, 26, 3, 500, 500, -1, -1]


def test_windows_are_known_by_their_start(windows: WindowTrace) -> None:
    at, start_ms = np.array([1, 5, 5]), np.array([90, 10, 0])
    assert windows.windows_at(0, at, start_ms, start_ms + 20).tolist() == [1, 3, 0]
    assert windows.windows_at(1, at[:1], np.array([0]), np.array([20])).tolist() == [5]
    assert [windows.size_of(window) for window in range(8)] == [4, 1, 1, 2, 1, 1, 1, 1]
    assert [windows.records_in(window).tolist() for window in range(4)] == [[0, 2, 3, 5], [1], [1], [4, 5]]
