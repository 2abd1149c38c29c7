"""The session kernel where a key has many open sessions, by hand: its list is walked, then moved to cells."""

import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.windows.session_kernel import LONG_WALK
from tests.kinds import group_in_ms

GAP = 2
LAST = 10 * 2 * LONG_WALK  # sessions at 0, 10, 20, …, LAST: a record at their beginning walks further than that


def trace_of(at: list[int], grace: int) -> SessionTrace:
    """What becomes of one key's records at these times."""
    windows = sk.SessionWindows(inactivity_gap_ms=GAP, grace_ms=grace)
    plan = group_in_ms("key").windowed_by(windows).count()
    trace = plan.run(pd.DataFrame({"key": "a", "at": at})).trace
    assert isinstance(trace, SessionTrace)
    trace.check()
    return trace


def decided(*times: int, grace: int) -> SessionTrace:
    """What becomes of them after sessions at 0, 10, … LAST."""
    return trace_of([*range(0, LAST + 1, 10), *times], grace)


def last(trace: SessionTrace, count: int) -> list[tuple[str, int]]:
    """The decision of the last records, and the start of the session that each is in (-1: none)."""
    rows, windows = trace.records().to_pylist()[-count:], trace.windows().to_pylist()
    starts = {row["window_id"]: row["window_start_ms"] for row in windows}
    return [(row["decision"], starts.get(row["window_id"], -1)) for row in rows]


def test_a_session_that_ends_at_the_horizon_goes_along_to_the_cells() -> None:
    """A session that is not older than the retention can still be joined: its end and the horizon are the same."""
    trace = decided(11, 1, grace=LAST - GAP)  # retention: gap + grace, so the horizon is 0
    assert last(trace, 2) == [("added", 10), ("added", 0)]


def test_a_session_before_the_horizon_does_not() -> None:
    trace = decided(21, 2, grace=LAST - GAP - 1)
    assert last(trace, 2) == [("added", 20), ("opened", 2)]


@pytest.mark.parametrize("walked", [True, False])
def test_the_cells_decide_as_the_list_does(walked: bool) -> None:
    """Joined from before and from behind, at the gap and a millisecond beyond it, inside, between two, and late."""
    times = [308, 313, 322, 327, 341, 348, 315, 344, 346]
    grace = 10 * LAST
    before = [*range(0, LAST + 1, 10), 1] if walked else range(300, 351, 10)  # few sessions stay a list
    trace = trace_of([*before, *times], grace)
    assert last(trace, len(times)) == [
        ("added", 308), ("opened", 313), ("added", 320), ("opened", 327), ("added", 340), ("added", 348),
        ("added", 313), ("opened", 344), ("merged", 344),
    ]  # fmt: skip


def test_a_late_record_in_the_cells_counts_where_it_touches_an_open_session() -> None:
    """The close time is LAST - grace - gap = 100: what ends before it is dropped, unless it joins what does not."""
    trace = decided(98, 96, 93, 94, grace=LAST - 100 - GAP)
    assert last(trace, 4) == [("added", 94), ("added", 94), ("dropped", -1), ("added", 94)]


def test_the_cells_grow_with_a_session_that_is_wide() -> None:
    """A session that covers more cells than there were at first, and records inside of it."""
    wide = list(range(LAST + 20, LAST + 20 + 3_000 * GAP, GAP))
    trace = decided(1, *wide, LAST + 20 + 2_000 * GAP + 1, grace=100 * LAST)
    assert last(trace, 1) == [("added", LAST + 20)]
    assert trace.windows().num_rows == LAST // 10 + 2


def test_the_very_first_session_stays_where_all_behind_it_in_the_list_have_expired() -> None:
    """It was opened first and begins last: a record before it cuts the list behind it, and it is found again."""
    windows = sk.SessionWindows(inactivity_gap_ms=GAP, grace_ms=120)  # at 200 what ended before 78 has expired
    plan = group_in_ms("key").windowed_by(windows).count()
    run = plan.run(pd.DataFrame({"key": [*"aabaa"], "at": [100, 50, 200, 80, 101]}))
    assert [(row["key"], row["window_start_ms"], row["count"]) for row in run.table().to_dict("records")] == [
        ("a", 50, 1),
        ("a", 80, 1),
        ("a", 100, 2),
        ("b", 200, 1),
    ]
