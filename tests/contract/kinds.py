"""The kinds of windows that the contract is tried on: the registry, and the examples that are not in it."""

from typing import Any

import numpy as np
import pyarrow as pa

import sessionkit as sk
from sessionkit.windows import WINDOW_KINDS, WindowKind
from tests.contract.examples import calendar_days, shift_sessions
from tests.kinds import plan_of

HOUR_MS = 3_600_000
EXAMPLES: dict[str, WindowKind] = {
    "days": calendar_days.CalendarDays(timezone="America/New_York", grace="4h"),
    "shifts": shift_sessions.ShiftSessions(pause="3h", shift="8h", grace="3h"),
}
# some of each kind; a new kind in the registry has to be put here, which the first test of `test_windows.py` says
KINDS: dict[str, WindowKind] = {
    "sessions": sk.SessionWindows(inactivity_gap="2h", grace="3h"),
    "until": sk.SessionWindows.until(inactivity_gap="2h", retention="9h"),
    "tumbling": sk.TimeWindows(size="5h", grace="2h"),
    "hopping": sk.TimeWindows(size="5h", advance="2h", grace="1h"),
    "tumbling moved": sk.TimeWindows(size="5h", offset="90m", grace="2h"),
    "hopping moved": sk.TimeWindows(size="5h", advance="2h", offset="30m", grace="1h"),
    "hopping moved, many": sk.TimeWindows(size="5h", advance="5m", offset="2m", grace="1h"),
    "calendar": sk.CalendarWindows("day", timezone="America/New_York", grace="4h"),
    "weeks": sk.CalendarWindows("week", timezone="Europe/Berlin", grace="0s", week_starts="saturday"),
    "sliding": sk.SlidingWindows(time_difference="3h", grace="2h"),
    "trailing": sk.SlidingWindows(time_difference="3h", grace="2h", trailing_only=True),
    **EXAMPLES,
}
# An example registers itself when it is imported. It is taken out again at once, and put back for these tests alone.
for example in EXAMPLES.values():
    WINDOW_KINDS.remove(type(example))


def plan_over(windows: WindowKind, emit: str = "on_window_close") -> sk.Plan:
    """A plan of three aggregations over these windows."""
    emit = emit if windows.is_ever_closed else "on_window_update"
    named = {"n": sk.count(), "most": sk.max("value"), "total": sk.sum("value")}
    return plan_of(windows, emit, named, partition="partition", offset="offset")


def records(seed: int, count: int = 300, first_ms: int = 1_383_000_000_000) -> pa.Table:
    """Two weeks around a change of clocks, in two partitions; late, equal and missing times' worth of everything."""
    rng = np.random.default_rng(seed)
    partition = np.sort(rng.integers(0, 2, count))
    times = first_ms + np.sort(rng.integers(0, 14 * 24, count)) * HOUR_MS + rng.integers(-9, 9, count) * HOUR_MS
    times[rng.random(count) < 0.1] -= 30 * HOUR_MS
    return pa.table(
        {"key": pa.array(rng.choice(["ada", "bob", "cy"], count), mask=rng.random(count) < 0.03),
         "at": times + rng.integers(0, 2, count),
         "value": pa.array(rng.integers(-9, 9, count), mask=rng.random(count) < 0.1), "partition": partition,
         "offset": np.arange(count)},
    )  # fmt: skip


def rows_of(table: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows
