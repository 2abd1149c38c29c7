"""Sessions that lie within reach of another of their key, which had closed before a late record came in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sessionkit.base.arrays import Codes, Flags, Longs
from sessionkit.base.durations import enough_ms, show_duration
from sessionkit.base.text import plural
from sessionkit.engine.kernel_run import by_key_and_time
from sessionkit.engine.outcome import Outcome
from sessionkit.records.batch import RecordBatch
from sessionkit.trace.loops import order_by_place
from sessionkit.windows.contract import SessionKind


class Apart(NamedTuple):
    """How many sessions stay apart so, and a grace that joins them: None if there are none, or without a trace."""

    sessions: int = 0
    grace_ms: int | None = None

    def words(self, windows: Any, dropped: int = 0) -> list[str]:
        """A sentence on them; none if there are none. More grace keeps some of the `dropped` records as well."""
        if not self.sessions:
            return []
        stays, them = ("stays", "it") if self.sessions == 1 else ("stay", "them")
        said = f"{plural(self.sessions, windows.noun)} {stays} apart from another of the same key "
        said += f"{windows.near_in_words()}, as that had closed before a late record came"
        if self.grace_ms is None:
            return [f"{said}; a longer grace joins {them}."]
        said += f"; a grace of {show_duration(enough_ms(self.grace_ms))} joins {them}."
        more = " It also keeps more records, whose sessions may stay apart in turn; "
        return [said + (f"{more}sk.suggest_grace finds a grace that joins all." if dropped else "")]


def latest_by_ms(batch: RecordBatch) -> Longs:
    """How far behind stream time the latest record of each key came, where nothing was read before the batch."""
    by_ms, rows = np.zeros(len(batch.keys), np.int64), np.flatnonzero(batch.usable)
    behind_ms = batch.stream_times_ms(np.full(len(batch.partitions), -1)) - batch.timestamp_ms
    np.maximum.at(by_ms, batch.key[rows], behind_ms[rows])
    return by_ms


def sessions_apart(outcome: Outcome, windows: Any, by_ms: Callable[[], Longs] | None = None) -> Apart:
    """The sessions of a run that stay apart so.

    The grace is the one that each needs for what was kept; more grace keeps more records, which may need more.
    `by_ms`, as of `latest_by_ms`, spares a look at the keys of which no record came late enough.
    """
    if windows.holds != "sessions" or not windows.is_ever_closed:
        return Apart()
    is_late = None if by_ms is None else by_ms() > windows.grace_ms
    if is_late is not None and not is_late.any():
        return Apart()
    if outcome.finished is not None:  # in the order of a table
        pairs = (_pairs(windows, each, _rows_of(each.key, is_late)) for each in outcome.finished)
        return Apart(sum(len(later) for _, later in pairs))
    columns, trace = outcome.window_columns, outcome.kept_trace
    rows = _rows_of(columns.key, is_late)
    rows = rows[columns.merged_into[rows] < 0]
    number = np.arange(len(outcome.keys)) if is_late is None else np.cumsum(is_late) - 1  # few are sorted sooner
    code, partition = number[columns.key[rows]], columns.partition[rows].astype(np.int64)
    by_start = by_key_and_time(code, partition, columns.start_ms[rows], int(code.max(initial=-1)) + 1)
    closed, later = _pairs(windows, columns, rows[by_start])
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


def _rows_of(key: Codes, is_late: Flags | None) -> Longs:
    return np.arange(len(key)) if is_late is None else np.flatnonzero(is_late[key])


def _pairs(windows: SessionKind, sessions: Any, rows: Longs) -> tuple[Longs, Longs]:
    """Rows of sessions within whose reach one of the same key and partition lies that ends later, and of that one.

    All that lie within reach of each other, if only by others in between, have one that is in no such pair. Looked for
    among these rows, which are in order of key, partition and start.
    """
    reached_ms = windows.reach_of_ms(sessions.start_ms, sessions.end_ms)[1][rows]
    key, partition, start_ms = sessions.key[rows], sessions.partition[rows], sessions.start_ms[rows]
    is_one = (key[1:] == key[:-1]) & (partition[1:] == partition[:-1])
    place, is_met = np.cumsum(np.append(0, ~is_one)[: len(rows)]), np.zeros(len(rows), np.bool_)
    # in a place where none reaches the next one, none reaches any
    is_met[place[:-1][is_one & (start_ms[1:] <= reached_ms[:-1])]] = True
    chosen = is_met[place]
    rows, place, start_ms, reached_ms = (column[chosen] for column in (rows, place, start_ms, reached_ms))
    by_end = order_by_place(place, int(place.max(initial=-1)) + 1, sessions.end_ms[rows])
    # of all that end later, the one that begins first
    closed, later = by_end[:-1], np.minimum.accumulate(by_end[::-1])[::-1][1:]
    is_near = (place[closed] == place[later]) & (start_ms[later] <= reached_ms[closed])
    return rows[closed[is_near]], rows[later[is_near]]
