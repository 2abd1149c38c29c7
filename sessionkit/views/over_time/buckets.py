"""A run in equal stretches of event time: how many records, windows and drops each of them has."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sessionkit.base.arrays import Longs
from sessionkit.base.durations import DAY, show_duration
from sessionkit.base.moments import clock_changes
from sessionkit.engine.outcome import Outcome
from sessionkit.records.time_statistics import usual_span
from sessionkit.trace.trace import Trace
from sessionkit.views.drawing.time_axis import ROUND_MS, to_the_minute
from sessionkit.views.tables import table_rows
from sessionkit.views.words import clock, zone_named

MOST = 96  # bars of a picture
_MONDAY = 3 * DAY  # the first day of 1970 was a Thursday
# a numpy unit, how many of it, the letters of a time that name one (None: all), and how long one is
_OF_CLOCKS = [("ms", ms, None, show_duration(ms)) for ms in ROUND_MS if ms < DAY]
_WITHOUT_DATES = [("ms", ms, None, show_duration(ms)) for ms in (DAY * 10**power for power in range(11))]
_OF_DATES = (
    *(("D", 1, 10, "one day"), ("D", 7, 10, "one week"), ("M", 1, 7, "one month"), ("M", 3, 7, "one quarter")),
    *(("Y", 1, 4, "one year"), ("Y", 10, 4, "ten years"), ("Y", 100, 4, "a hundred years")),
)


class Buckets(NamedTuple):
    """The stretches, named as a sentence names them, with what each of them has; a record counts at its own time."""

    length: str  # of one: "10 min", "one week"
    names: list[str]
    records: Longs
    windows: Longs  # that begin in it
    dropped: Longs  # records in no window, or that missed one
    outside: int  # records far from all others, which are in none


def buckets(outcome: Outcome) -> Buckets | None:
    """The stretches of a run, at most `MOST` of them; None where no record has a time."""
    trace: Trace = outcome.kept_trace
    placed = trace.is_record & trace.batch.usable
    times, lost = trace.batch.timestamp_ms, trace.late_for_some | ~trace.accepted
    starts = outcome.window_columns.start_ms[table_rows(outcome)]
    if not placed.any():
        return None
    both = np.concatenate([times[placed], starts])
    first, last = usual_span(both)
    shown = both[(both >= first) & (both <= last)]
    length, letters, edges = _edges(int(shown.min()), int(shown.max()), trace)
    each_of = (times[placed], starts, times[placed & lost])
    records, windows, dropped = (np.histogram(each, edges)[0] for each in each_of)
    at = clock(trace)
    names = [to_the_minute(at(ms)[:letters]) for ms in edges[:-1].tolist()]
    if length == "one quarter":
        names = [f"{name[:4]} Q{int(name[5:]) // 3 + 1}" for name in names]
    return Buckets(length, names, records, windows, dropped, int(placed.sum() - records.sum()))


def _edges(low_ms: int, high_ms: int, trace: Trace) -> tuple[str, int | None, Longs]:
    """(length, letters of a name, where each stretch begins and the last one ends) of the shortest that are few enough.

    Stretches of hours or less are equally long; those of days and more are whole in the clocks of the run's zone.
    """
    zone = zone_named(trace)
    changes = clock_changes(zone or "UTC", high_ms + 2 * DAY)
    low, high = changes.local([low_ms, high_ms]).tolist()
    ahead_ms = low - low_ms
    for unit, count, letters, length in (*_OF_CLOCKS, *(_OF_DATES if zone else _WITHOUT_DATES)):
        shift_ms = _MONDAY if count == 7 else 0
        span = np.array([low, high if letters else high_ms + ahead_ms], "M8[ms]") + shift_ms
        begin, end = (span.astype(f"M8[{unit}]").astype(np.int64) // count).tolist()
        if end - begin < MOST:
            stretches = (np.arange(begin, end + 2) * count).astype(f"M8[{unit}]")
            local = stretches.astype("M8[ms]").astype(np.int64) - shift_ms
            return length, letters, changes.first_at(local) if letters else local - ahead_ms
    raise AssertionError("the longest are few enough for all times")
