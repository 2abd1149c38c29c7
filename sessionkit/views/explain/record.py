"""Why a record did what it did, in words with the numbers in them."""

from __future__ import annotations

import numpy as np

from sessionkit.base.decisions import IDLE, LATE, OPENED
from sessionkit.base.durations import grace_with, lacked, show_duration
from sessionkit.base.text import escape_html, html_block
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.trace.trace import Trace
from sessionkit.views.words import (
    PLAIN,
    clock,
    decision_in_words,
    in_zone,
    lag_words,
    lower_first,
    record_name,
    span_words,
)
from sessionkit.windows.contract import SessionKind
from sessionkit.windows.missing_grace import missing_grace_ms


class Explanation(str):
    """A few sentences; prints as they are, and shows as a paragraph in a notebook."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html_block(f"<p>{escape_html(self)}</p>")


def explain_record(trace: SessionTrace, windows: SessionKind, index: int) -> Explanation:
    """Why record `index` opened, joined, bridged or was dropped, who had moved stream time, what would keep it."""
    batch, at = trace.batch, clock(trace)
    code, time = int(trace.decision[index]), int(batch.timestamp_ms[index])
    name = record_name(trace, index)
    if code in PLAIN:
        return Explanation(f"{name} {PLAIN[code]}.")
    stream, close = int(trace.stream_time_ms[index]), int(trace.close_time_ms[index])
    words = [f"{name}, event time {at(time)}, {decision_in_words(trace, windows, index)}."]
    line = f"sessions that ended before {at(close)} were closed ({at(stream)}{lag_words(windows, '−')})"
    if code == LATE:
        words.append(f"It arrived when stream time was {at(stream)}, so {line}.")
        words += _closed_near(trace, windows, index)
        missing = int(missing_grace_ms(trace, windows, np.array([index]))[0])
        enough, grace = grace_with(windows.grace_ms, missing), show_duration(windows.grace_ms)
        words.append(
            f"It came {lacked(missing)} too late: with grace {enough} instead of {grace} it would have been kept."
        )
    elif code == OPENED:
        words += _gone_near(trace, windows, index)
    elif time < close:
        behind = show_duration(close - time)
        words.append(
            f"It was late, {behind} behind the close line: {line}. But it was kept, as it touches a session that was "
            "still open."
        )
    words += [who_moved(trace, index), *in_zone(trace)]
    return Explanation(" ".join(words))


def _closed_near(trace: SessionTrace, windows: SessionKind, index: int) -> list[str]:
    """Words for the closed session that a dropped record would have joined."""
    near = _sessions_near(trace, windows, index)
    if not near:
        return [f"No session of its key, open or closed, was {windows.near_in_words()}."]
    span = span_words(clock(trace), *max(near, key=lambda bounds: bounds[1]))
    return [f"The session {span} would have taken it, but was closed already."]


def _gone_near(trace: SessionTrace, windows: SessionKind, index: int) -> list[str]:
    """Words for the session that a record would have joined, had it not been closed or forgotten; none if none is."""
    near = _sessions_near(trace, windows, index)
    if not near:
        return []
    at, (start, end), close = clock(trace), max(near, key=lambda bounds: bounds[1]), int(trace.close_time_ms[index])
    if not windows.is_ever_closed:
        gone = f"was forgotten: {windows.forgets_in_words()}"
    elif end < close:
        gone = f"was closed already: what ended before {at(close)} was"
    else:
        gone = "the store had forgotten it"
    return [f"The session {span_words(at, start, end)} would have taken it, but {gone}."]


def _sessions_near(trace: SessionTrace, windows: SessionKind, index: int) -> list[tuple[int, int]]:
    """(start, end) of the sessions of its key, open or not, that a record would have joined when it came."""
    time = int(trace.batch.timestamp_ms[index])
    columns, batch = trace.window_columns, trace.batch
    mine = (columns.key == batch.key[index]) & (columns.partition == batch.partition[index])
    absorbed_before = columns.merged_into >= 0
    absorbed_before[trace.merges.absorbed[trace.merges.at >= index]] = False
    rows = np.flatnonzero(mine & ~absorbed_before)
    opened = np.flatnonzero(trace.decision == OPENED)
    near = []
    for row in rows.tolist():
        if row >= columns.loaded_count and opened[row - columns.loaded_count] >= index:
            continue
        start, end = trace.bounds_before(row, index)
        first, last = windows.reach_of_ms(start, end)
        if first <= time <= last:
            near.append((start, end))
    return near


def who_moved(trace: Trace, index: int) -> str:
    """Which record had moved stream time to where record `index` met it."""
    batch, at = trace.batch, clock(trace)
    stream = int(trace.stream_time_ms[index])
    if trace.first_stream_time_ms[batch.partition[index]] >= stream:
        return f"Stream time {at(stream)} was loaded from the store, from an earlier run."
    records = np.flatnonzero(batch.partition[: index + 1] == batch.partition[index])
    mover = int(records[np.searchsorted(trace.stream_time_ms[records], stream, side="left")])
    if trace.decision[mover] == IDLE:
        return (
            f"Stream time had been moved to {at(stream)} by {lower_first(record_name(trace, mover))}: the partition "
            "got no record for so long, and this was the smallest stream time of those that did."
        )
    if mover == index:
        return f"It moved stream time to {at(stream)} itself."
    same = (
        "of the same key"
        if batch.key[mover] == batch.key[index]
        else "of another key: stream time belongs to the partition"
    )
    return f"Stream time had been moved to {at(stream)} by {lower_first(record_name(trace, mover))}, {same}."
