"""Every sliding window that a record met, one row each, in the order in which Kafka forwards them."""

from __future__ import annotations

import numpy as np

from sessionkit.base.compiled import compiled_loop, inlined
from sessionkit.base.decisions import ADDED, COPIED, COPIED_ADDED, LATE, OPENED
from sessionkit.base.process import check_room
from sessionkit.trace.window_trace import TOUCH, Touches
from sessionkit.windows.sliding.places import place_from
from sessionkit.windows.sliding.steps import TWICE, open_from
from sessionkit.windows.sliding.structure import SlidingStructure

NO_WINDOW = -1


@inlined
def _emit(touches, following, i, window, effect, start_ms, source):  # type: ignore[no-untyped-def]
    """Writes one more row of record i; without room for rows it is only counted."""
    at = following[i]
    following[i] = at + 1
    if touches.record.shape[0] > 0:
        touches.record[at] = i
        touches.window[at] = window
        touches.effect[at] = effect
        touches.start_ms[at] = start_ms
        touches.source[at] = source


@compiled_loop
def _emit_met(touches, following, i, window, start_ms, earliest):  # type: ignore[no-untyped-def]
    """Writes the row of a window that was there before the record."""
    if start_ms >= earliest:
        _emit(touches, following, i, window, ADDED, start_ms, NO_WINDOW)
    else:
        _emit(touches, following, i, NO_WINDOW, LATE, start_ms, NO_WINDOW)


@compiled_loop
def _emit_made(touches, following, i, window, start_ms, t, source, source_window):  # type: ignore[no-untyped-def]
    """Writes the row of a window that the record made; two where Kafka makes it twice."""
    if start_ms > t:
        _emit(touches, following, i, window, COPIED, start_ms, source_window)
    elif source >= 0:
        _emit(touches, following, i, window, COPIED_ADDED, start_ms, source_window)
    else:
        _emit(touches, following, i, window, OPENED, start_ms, NO_WINDOW)
        if source == TWICE:
            _emit(touches, following, i, window, OPENED, start_ms, NO_WINDOW)


@inlined
def _next_made(operations, starts, windows, t, at, following, i, touches):  # type: ignore[no-untyped-def]
    place, source = operations.made_place[at], operations.made_source[at]
    source_window = windows[source] if source >= 0 else NO_WINDOW
    _emit_made(touches, following, i, windows[place], starts[place], t, source, source_window)
    return at + 1


@compiled_loop
def _touch(records, operations, starts, windows, opened_at, j, at, missed, following, touches):  # type: ignore[no-untyped-def]
    """The rows of one record: windows of its slot that were there, the one after the record before, its own two.

    `starts` and `windows` are those of the slot; `at` and `missed` its first rows among what was made and missed.
    """
    i = operations.record[j]
    t, difference = records.timestamp_ms[i], records.time_difference_ms
    earliest = open_from(records.stream_time_ms[i], records.grace_ms, difference)
    own_ms, early = max(0, t - difference), t < difference
    first = place_from(starts, 0, starts.shape[0], own_ms)
    end = place_from(starts, first, starts.shape[0], t + 1)
    has_own = first < end and starts[first] == own_ms and opened_at[windows[first]] < i
    for step in range(first, end):
        place = step if early else first + end - 1 - step
        if opened_at[windows[place]] < i and not (early and starts[place] == own_ms):
            _emit_met(touches, following, i, windows[place], starts[place], earliest)
    last = at + operations.made_count[j]
    if early and at < last and starts[operations.made_place[at]] > t:
        at = _next_made(operations, starts, windows, t, at, following, i, touches)
    start_ms = starts[operations.made_place[at]] if at < last else own_ms
    if start_ms <= t and (start_ms != own_ms or (at < last and operations.made_source[at] == TWICE)):
        at = _next_made(operations, starts, windows, t, at, following, i, touches)
    if missed < operations.missed_at.shape[0] and operations.missed_at[missed] == i:
        _emit(touches, following, i, NO_WINDOW, LATE, operations.missed_start_ms[missed], NO_WINDOW)
    if has_own:
        if early:
            _emit_met(touches, following, i, windows[first], own_ms, earliest)
    elif own_ms < earliest:
        _emit(touches, following, i, NO_WINDOW, LATE, own_ms, NO_WINDOW)
    while at < last:
        at = _next_made(operations, starts, windows, t, at, following, i, touches)


@compiled_loop
def run_touches(records, operations, place_start_ms, opened_at, following, touches):  # type: ignore[no-untyped-def]
    """Writes the rows of each record from `following[record]` on, which is moved along."""
    missed = 0
    for s in range(operations.record_ends.shape[0] - 1):
        base, end = operations.window_ends[s], operations.window_ends[s + 1]
        starts, windows = place_start_ms[base:end], operations.window[base:end]
        at = operations.made_ends[s]
        for j in range(operations.record_ends[s], operations.record_ends[s + 1]):
            _touch(records, operations, starts, windows, opened_at, j, at, missed, following, touches)
            at += operations.made_count[j]
            if missed < operations.missed_at.shape[0] and operations.missed_at[missed] == operations.record[j]:
                missed += 1
    difference = records.time_difference_ms
    for i in range(records.slot.shape[0]):
        t = records.timestamp_ms[i]
        earliest = open_from(records.stream_time_ms[i], records.grace_ms, difference)
        if records.slot[i] >= 0 and t < earliest:  # late as a whole: Kafka names the window that ends with the record
            _emit(touches, following, i, NO_WINDOW, LATE, max(0, t - difference), NO_WINDOW)


def _room(rows: int) -> Touches:
    return Touches(
        record=np.empty(rows, np.int64),
        window=np.empty(rows, np.int32),
        effect=np.empty(rows, np.uint8),
        start_ms=np.empty(rows, np.int64),
        source=np.empty(rows, np.int32),
    )


def sliding_touches(structure: SlidingStructure) -> Touches:
    """Every window that a record changed, made or missed: as many rows as Kafka forwards results and counts drops.

    What a record's COPIED row copies is what the source held before the record, as its COPIED_ADDED row does. A window
    that Kafka makes twice for one record has two OPENED rows, of the same contents.
    """
    operations = structure.operations
    place_start_ms = structure.start_ms[operations.window]
    count = np.zeros(len(structure.decision), np.int64)
    run_touches(structure.records, operations, place_start_ms, structure.opened_at, count, _room(0))
    following = np.cumsum(count) - count
    check_room(int(count.sum()), *TOUCH)
    touches = _room(int(count.sum()))
    if len(touches.record):
        run_touches(structure.records, operations, place_start_ms, structure.opened_at, following, touches)
    return touches
