"""Hopping windows slot by slot: all windows of a slot (a key in a partition) by start, and of each record its span.

In the order of arrival the windows that a record meets lie anywhere; slot by slot they are neighbours, so that a record
is told by two numbers however many windows it meets, and adding it to them becomes vector instructions. What a window
holds is added up in the same order all the same: its records are of one slot, and a slot's keep their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sessionkit.base.arrays import Codes, Longs
from sessionkit.base.compiled import announce_compiling, compiled_loop
from sessionkit.base.decisions import ADDED, LATE, OPENED
from sessionkit.windows.feed import Decided, Feed
from sessionkit.windows.hopping_kernel import MANY_WINDOWS, Lengths, window_is_late

# A record's windows are `count` rows from `first` on; until its slot is done, `first` is the oldest one's index (its
# start as a multiple of the advance). A record that was late counts in none.
SPAN = np.dtype([("first", "i8"), ("time", "i8"), ("record", "i4"), ("count", "i4")], align=True)
FEW_WINDOWS = 5  # a record, below which it costs more to sort records by slot than it saves
SLOT, WINDOWS, MISSED = range(3)  # places in `counters`


class SlotWindows(NamedTuple):
    """Windows by slot and start; `number` is the start as a multiple of the advance."""

    number: Longs
    timestamp_ms: Longs
    opened_at: Longs
    slot: Codes


@compiled_loop
def sort_spans(slot, times, stair, size, advance, grace, filled, spans, decision, counters):  # type: ignore[no-untyped-def]
    """Fills `spans` by slot, a slot's in order of arrival; in the end those of slot s are before `filled[s + 1]`."""
    for i in range(slot.shape[0]):
        if slot[i] >= 0:
            filled[slot[i] + 2] += 1
    for s in range(2, filled.shape[0]):
        filled[s] += filled[s - 1]
    overlap, short = (size - advance) // advance, (size - advance) % advance
    highest = since = missed = 0
    for i in range(slot.shape[0]):
        if slot[i] < 0:
            continue
        t = times[i]
        if not 0 <= t - since < advance:  # a division costs as much as the rest
            highest = t // advance
            since = highest * advance
        first = max(0, highest - overlap - (t - since < short))
        lowest, close = first, stair[i] - grace
        if window_is_late(first * advance + size, close):
            lowest = min((close - size) // advance, highest) + 1
        missed += lowest - first
        decision[i] = LATE if lowest > highest else ADDED
        at = filled[slot[i] + 1]
        filled[slot[i] + 1] = at + 1
        spans[at].first, spans[at].time = lowest, t
        spans[at].record, spans[at].count = i, highest - lowest + 1
    counters[MISSED] = missed


@compiled_loop
def _open(windows, base, behind, top, lowest, count, t, i):  # type: ignore[no-untyped-def]
    """Puts the windows from `lowest` on that are not there among the others; returns the new top.

    The others of the slot are the rows from `base` to `top`; from `behind` on they are newer.
    """
    begin = behind
    while begin > base and windows.number[begin - 1] >= lowest:
        begin -= 1
    more = count - (behind - begin)
    for row in range(top - 1, behind - 1, -1):
        windows.number[row + more] = windows.number[row]
        windows.timestamp_ms[row + more] = windows.timestamp_ms[row]
        windows.opened_at[row + more] = windows.opened_at[row]
    old = behind - 1
    for row in range(begin + count - 1, begin - 1, -1):
        index = lowest + row - begin
        if old >= begin and windows.number[old] == index:
            windows.timestamp_ms[row] = max(windows.timestamp_ms[old], t)
            windows.opened_at[row] = windows.opened_at[old]
            old -= 1
        else:
            windows.timestamp_ms[row] = t
            windows.opened_at[row] = i
        windows.number[row] = index
    return top + more


@compiled_loop
def _set_rows(spans, index, row, last):  # type: ignore[no-untyped-def]
    """Tells each record of a slot the row of its first window, which is near that of the record before."""
    for j in range(spans.shape[0]):
        if spans[j].count > 0:
            lowest = spans[j].first
            while row < last and index[row] < lowest:
                row += 1
            while index[row] > lowest:
                row -= 1
            spans[j].first = row


@compiled_loop
def run_slots(ends, spans, windows, decision, counters):  # type: ignore[no-untyped-def]
    """Makes the windows, slot by slot; stops before a slot for which there is not enough room."""
    top = counters[WINDOWS]
    for s in range(counters[SLOT], ends.shape[0] - 1):
        base = top
        for j in range(ends[s], ends[s + 1]):
            count, lowest, t = spans[j].count, spans[j].first, spans[j].time
            if count <= 0:
                continue
            if top + count > windows.number.shape[0]:
                counters[SLOT], counters[WINDOWS] = s, base
                return False
            highest = lowest + count - 1
            behind = top
            while behind > base and windows.number[behind - 1] > highest:
                behind -= 1
            first = behind - count
            if first >= base and windows.number[first] == lowest:
                newest = windows.timestamp_ms[first:behind]
                for at in range(newest.shape[0]):
                    newest[at] = max(newest[at], t)
            else:
                found = top
                top = _open(windows, base, behind, top, lowest, count, t, spans[j].record)
                if top > found:
                    decision[spans[j].record] = OPENED
        windows.slot[base:top] = s
        if top > base:
            _set_rows(spans[ends[s] : ends[s + 1]], windows.number, base, top - 1)
    counters[SLOT], counters[WINDOWS] = ends.shape[0] - 1, top
    return True


def goes_by_slot(feed: Feed, folds: Mapping[str, Any], lengths: Lengths) -> bool:
    """Whether the windows of a run can be found slot by slot, and quicker so than record by record.

    A trace numbers windows in the order in which they were opened, and Python functions are called in that of arrival.
    """
    few = lengths.a_record >= FEW_WINDOWS and lengths.open_at_once <= MANY_WINDOWS
    return few and not feed.keep and not len(feed.loaded.slot) and all(fold.takes_spans for fold in folds.values())


def run_by_slot(feed: Feed, lengths: Lengths) -> tuple[Decided, npt.NDArray[np.void]]:
    """(the windows by slot and start, the spans of the records); into the feed what was decided.

    Nothing was loaded, and few windows of a slot are open at once.
    """
    announce_compiling(run_slots, "tumbling and hopping windows")
    columns, counters = lengths.moved(feed.whole()), np.zeros(3, np.int64)
    filled = np.zeros(feed.slots.count + 2, np.int64)
    spans = np.empty(len(feed), SPAN)
    sort_spans(
        columns.slot, columns.timestamp_ms, columns.stream_time_ms, lengths.size_ms, lengths.advance_ms,
        lengths.grace_ms, filled, spans, columns.decision, counters,
    )  # fmt: skip
    ends = filled[:-1]
    spans = spans[: int(ends[-1])]
    most = lengths.a_record
    windows = _room(None, 0, len(spans) // 4 * min(most, 8) + most)  # pages that are not used cost nothing
    while not run_slots(ends, spans, windows, columns.decision, counters):
        windows = _room(windows, int(counters[WINDOWS]), len(windows.number) * 3 // 2)
    feed.decide(columns, columns.decision)
    count = int(counters[WINDOWS])
    start_ms = windows.number[:count]
    start_ms *= lengths.advance_ms
    start_ms, timestamp_ms = lengths.back(start_ms), lengths.back(windows.timestamp_ms[:count])
    return Decided(
        windows.slot[:count], start_ms, timestamp_ms, windows.opened_at[:count], int(counters[MISSED])
    ), spans


def _room(windows: SlotWindows | None, count: int, size: int) -> SlotWindows:
    """Room for `size` windows, which begins with the first `count` of those that are there."""
    longs = [np.empty(size, np.int64) for _ in range(3)]
    room = SlotWindows(longs[0], longs[1], longs[2], np.empty(size, np.int32))
    if windows is not None:
        columns: Iterable[tuple[Any, Any]] = zip(room, windows, strict=True)
        for new, old in columns:
            new[:count] = old[:count]
    return room
