"""The life of one window in words: what it grew from, what closed it, or why it has not closed yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sessionkit.base.arrays import Longs
from sessionkit.base.decisions import ADDED, COPIED
from sessionkit.base.durations import about, show_duration
from sessionkit.base.text import of_key, plural
from sessionkit.errors import UnknownRecord, problem, shorten
from sessionkit.records.keys import code_of_key
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.trace.trace import Trace
from sessionkit.trace.window_trace import WindowTrace
from sessionkit.views.explain.record import Explanation
from sessionkit.views.words import clock, idle_rule, in_zone, lag_words, lower_first, record_name, zone_named
from sessionkit.windows.contract import SessionKind, WindowKind

NAMED_RECORDS = 3


def explain_life(trace: Trace, windows: WindowKind, key: Any, start_ms: int, partition: int | None) -> Explanation:
    """Where the window came from, what it holds, and when it closed or will close."""
    row = find_window(trace, key, start_ms, partition)
    at, columns = clock(trace), trace.window_columns
    bounds = int(columns.start_ms[row]), int(columns.end_ms[row])
    span = at(bounds[0]) if bounds[0] == bounds[1] else f"{at(bounds[0])} to {at(bounds[1])}"
    size = plural(trace.size_of(row), "record")
    size += " and what it held before this run" if row < columns.loaded_count else ""
    words = [f"{windows.noun.capitalize()} of {of_key(key)}{_where(trace, row)}, {span}: {size}."]
    if row >= columns.loaded_count:
        opened = (trace.batch.partition == columns.partition[row]) & (trace.batch.offset == columns.opened_by[row])
        words.append(f"It was opened by {lower_first(record_name(trace, int(opened.argmax()), ''))}.")
    words += HISTORY[type(trace)](trace, windows, row, at)
    closed_by = int(trace.closed_by[row])
    words.append(_closed(trace, windows, row, closed_by, at) if closed_by >= 0 else _open(trace, windows, row, at))
    words += in_zone(trace)
    return Explanation(" ".join(words))


def find_window(trace: Trace, key: Any, start_ms: int, partition: int | None) -> int:
    """The row of the window of `key` that starts then and was not absorbed, if there is exactly one."""
    columns, numbers = trace.window_columns, trace.batch.partitions
    mine = (columns.key == code_of_key(trace.keys, key)) & (columns.start_ms == start_ms) & (columns.merged_into < 0)
    if partition is not None:
        mine &= numbers[columns.partition] == partition
    rows = np.flatnonzero(mine)
    if len(rows) > 1 and partition is None and len(np.unique(columns.partition[rows])) > 1:
        want = f"partition= one of {shorten(numbers[columns.partition[rows]].tolist())}"
        raise UnknownRecord(problem("several partitions hold such a window", f"key {shorten(repr(key))}", want))
    if not len(rows):
        zone = f" ({zone_named(trace)})" if zone_named(trace) else ""
        got = f"key {shorten(repr(key))}, window_start {clock(trace)(start_ms)}{zone}"
        starts = columns.start_ms[(columns.key == code_of_key(trace.keys, key)) & (columns.merged_into < 0)]
        want = "a key and a start from run.table()"
        if len(starts):
            nearest = clock(trace)(int(starts[np.argmin(np.abs(starts - start_ms))]))
            want = f"the nearest of this key starts at {nearest}; run.table() has them all"
        raise UnknownRecord(problem("the run has no such window", got, want))
    return int(rows[-1])


def _where(trace: Trace, row: int) -> str:
    """The partition of a window in brackets, where there are several: an offset is known only with it."""
    numbers = trace.batch.partitions
    return f" (partition {numbers[trace.window_columns.partition[row]]})" if len(numbers) > 1 else ""


def _merged(trace: SessionTrace, windows: SessionKind, row: int, at: Callable[[int], str]) -> list[str]:
    """Of a session: those that it absorbed, and its longest pause."""
    bridges, said = trace.merges.at[trace.ended_in[trace.merges.into] == row], []
    if len(bridges):
        became = plural(len(bridges) + 1, "session")
        said = [f"It is {became} that became one, by {_named(trace, bridges, at)}."]
    return [*said, *_longest_pause(trace, windows, row, at)]


def _copied(trace: WindowTrace, windows: WindowKind, row: int, at: Callable[[int], str]) -> list[str]:
    """Of a sliding window that began as a copy: of which one, and what that brought along."""
    touches, start_ms = trace.touches, trace.window_columns.start_ms
    made = np.flatnonzero((touches.window == row) & (touches.effect != ADDED))[-1:]  # a processor may delete it before
    if not len(made) or touches.source[made[0]] < 0:
        return []
    copied_ms = int(start_ms[touches.source[made[0]]])
    words = [f"It began as a copy of the window {at(copied_ms)} to {at(trace.ends_ms(copied_ms))}, as that was before."]
    if touches.effect[made[0]] == COPIED:
        words[0] = f"{words[0][:-1]}; the record itself is not in it."
    held = trace.records_in(row)
    early = held[trace.batch.timestamp_ms[held] < start_ms[row]]
    if len(early):
        named = _named(trace, early, at)
        words.append(f"That brought {named} along, from before its start: Kafka Streams copies a window whole.")
    return words


def _named(trace: Trace, records: Longs, at: Callable[[int], str]) -> str:
    """The first of these records of a window, with their times."""
    first, times = records[:NAMED_RECORDS].tolist(), trace.batch.timestamp_ms
    named = ", ".join(lower_first(record_name(trace, i, f"at {at(int(times[i]))}")) for i in first)
    return named + (f" and {len(records) - len(first):,} more" if len(records) > len(first) else "")


def _longest_pause(trace: SessionTrace, windows: SessionKind, row: int, at: Callable[[int], str]) -> list[str]:
    """Where a smaller gap would have cut a session first: why it is so long."""
    if row < trace.window_columns.loaded_count:
        return []
    times = np.sort(trace.batch.timestamp_ms[trace.survivor == row])
    pauses = np.diff(times)
    if not len(pauses) or not pauses.max():
        return []
    longest = int(np.argmax(pauses))
    said, name = show_duration(int(pauses[longest])), next(iter(windows.close_lag_parts))
    return [f"Its longest pause is {said}, after {at(int(times[longest]))}: a {name} below that would cut it there."]


# What a window grew from.
HISTORY: dict[type[Trace], Callable[[Any, Any, int, Callable[[int], str]], list[str]]] = {
    SessionTrace: _merged,
    WindowTrace: _copied,
}


def _closed(trace: Trace, windows: WindowKind, row: int, closed_by: int, at: Callable[[int], str]) -> str:
    closes_ms = closing_time_ms(windows, int(trace.window_columns.end_ms[row]))
    code = trace.window_columns.partition[row]
    has_passed = (trace.stream_time_ms >= closes_ms) & (trace.batch.offset == closed_by)  # a record, or ticks after it
    found = np.flatnonzero((trace.batch.partition == code) & has_passed)
    if not len(found) or trace.window_columns.closed_before[row] >= 0:
        rule = ", or the rule for idle partitions after it" if trace.batch.idle is not None else ""
        return f"It was closed in an earlier run, by the record at offset {closed_by}{_where(trace, row)}{rule}."
    i = int(found[0])
    return (
        f"It closed once stream time reached {at(closes_ms)} ({_lag(windows)}): "
        f"{lower_first(record_name(trace, i))} moved it to {at(int(trace.stream_time_ms[i]))}."
    )


def _open(trace: Trace, windows: WindowKind, row: int, at: Callable[[int], str]) -> str:
    code = trace.window_columns.partition[row]
    now = int(trace.last_stream_time_ms[code])
    if not windows.is_ever_closed:
        return f"It never closes; {windows.forgets_in_words()}. Stream time is {at(now)}."
    closes_ms = closing_time_ms(windows, int(trace.window_columns.end_ms[row]))
    mine = np.flatnonzero(trace.batch.partition == code)
    since = ""
    if len(mine):
        mover = int(mine[np.searchsorted(trace.stream_time_ms[mine], trace.stream_time_ms[mine[-1]])])
        behind = trace.batch.count_after(mover, int(mine[-1]))
        later = f"; the {plural(behind, 'record')} after it did not move it on" if behind else ""
        since = f" {record_name(trace, mover, '')} was the last to move it{later}."
    moves = "Only records of its partition move stream time: without one the window stays open for ever."
    if rule := idle_rule(trace.batch):
        moves = f"Records of its partition move stream time, and the rule for idle partitions ({rule})."
    return (
        f"It is still open: stream time is {at(now)}; it closes when stream time reaches {at(closes_ms)} "
        f"({_lag(windows)}), {about(closes_ms - now)} from now.{since} {moves}"
    )


def closing_time_ms(windows: WindowKind, end_ms: int) -> int:
    """The stream time at which a window that ends then is closed."""
    return end_ms + int(windows.close_lag_ms) + (1 if windows.inclusive_end else 0)


def _lag(windows: WindowKind) -> str:
    return ("past its end" if windows.inclusive_end else "its end") + lag_words(windows, "+")
