"""Sessions that lie within reach of another of their key, which had closed before a late record came in between."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sessionkit.base.arrays import Flags, Longs
from sessionkit.base.durations import enough_ms, show_duration
from sessionkit.base.text import plural
from sessionkit.engine.kernel_run import by_key_and_time
from sessionkit.engine.outcome import Outcome
from sessionkit.windows.contract import SessionKind


class Apart(NamedTuple):
    """How many sessions stay apart so, and a grace that joins them: None if there are none, or without a trace."""

    sessions: int = 0
    grace_ms: int | None = None

    def words(self, windows: Any) -> list[str]:
        """A sentence on them; none if there are none."""
        if not self.sessions:
            return []
        stays, them = ("stays", "it") if self.sessions == 1 else ("stay", "them")
        said = f"{plural(self.sessions, windows.noun)} {stays} apart from another of the same key "
        said += f"{windows.near_in_words()}, as that had closed before a late record came"
        if self.grace_ms is None:
            return [f"{said}; a longer grace joins {them}."]
        return [f"{said}; a grace of {show_duration(enough_ms(self.grace_ms))} joins {them}."]


def sessions_apart(outcome: Outcome, windows: Any) -> Apart:
    """The sessions of a run that stay apart so.

    The grace is the one that each needs for what was kept; more grace keeps more records, which may need more.
    """
    if windows.holds != "sessions" or not windows.is_ever_closed:
        return Apart()
    if outcome.finished is not None:
        pairs = (_pairs(windows, each.key, each.partition, each.start_ms, each.end_ms) for each in outcome.finished)
        return Apart(sum(len(later) for _, later in pairs))
    columns, trace = outcome.window_columns, outcome.kept_trace
    alive = np.flatnonzero(columns.merged_into < 0)
    key, partition = columns.key[alive], columns.partition[alive]
    pairs_found = _pairs(windows, key, partition, columns.start_ms[alive], columns.end_ms[alive])
    closed, later = (alive[rows] for rows in pairs_found)
    if trace is None or not len(later):
        return Apart(int(np.count_nonzero(np.maximum(closed, later) >= columns.loaded_count)))
    # when a record of the later one came that is within reach: the first, or the last where the two overlap
    start_ms, end_ms = columns.start_ms[closed], columns.end_ms[closed]
    reached_ms = np.full(len(columns.key) + 1, -1)
    np.maximum.at(reached_ms, later, windows.reach_of_ms(start_ms, end_ms)[1])
    met = np.flatnonzero(trace.batch.timestamp_ms <= reached_ms[trace.survivor])
    first_ms, last_ms = np.full((2, len(columns.key)), -1)
    last_ms[trace.survivor[met]] = trace.stream_time_ms[met]
    first_ms[trace.survivor[met[::-1]]] = trace.stream_time_ms[met[::-1]]
    came_ms = np.where(columns.start_ms[later] > end_ms, first_ms[later], last_ms[later])
    missing_ms = came_ms - end_ms - windows.close_lag_ms
    count = int(np.count_nonzero(missing_ms > 0))  # of others it was an earlier run, or is a rule of a store
    return Apart(count, int(windows.grace_ms + missing_ms.max()) if count else None)


def _pairs(
    windows: SessionKind, key: npt.NDArray[Any], partition: npt.NDArray[Any], start_ms: Longs, end_ms: Longs
) -> tuple[Longs, Longs]:
    """Rows of sessions within whose reach one of the same key and partition lies that ends later, and of that one.

    All that lie within reach of each other, if only by others in between, have one that is in no such pair.
    """
    codes, numbers, keys = key.astype(np.int64), partition.astype(np.int64), int(key.max(initial=-1)) + 1
    reached_ms = windows.reach_of_ms(start_ms, end_ms)[1]

    def near(closed: Longs, later: Longs) -> Flags:
        is_one = (key[closed] == key[later]) & (partition[closed] == partition[later])
        return is_one & (start_ms[later] <= reached_ms[closed])

    by_start = by_key_and_time(codes, numbers, start_ms, keys)
    if not near(by_start[:-1], by_start[1:]).any():  # where none reaches the next one, none reaches any
        return by_start[:0], by_start[:0]
    by_end = by_key_and_time(codes, numbers, end_ms, keys)
    rank = np.empty(len(key), np.int64)  # by key, partition and start: those of another key are all above, or all below
    rank[by_start] = np.arange(len(key))
    later = by_start[
        np.minimum.accumulate(rank[by_end][::-1])[::-1][1:]
    ]  # of all that end later, the one that begins first
    is_near = near(by_end[:-1], later)
    return by_end[:-1][is_near], later[is_near]
