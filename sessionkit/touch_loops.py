"""The compiled accumulators over touches: record `record[j]` is added to window `window[j]`, in this order.

For windows of one length, where a record is in many of them and nothing ever merges.
"""

from __future__ import annotations

from sessionkit import fold_loops
from sessionkit.compiled import compiled_loop
from sessionkit.fold_loops import NOTHING


@compiled_loop
def count_touches(record, window, valid, total):  # type: ignore[no-untyped-def]
    """Counts records; with `valid`, only those whose value is not null."""
    every = valid.shape[0] == 0
    for j in range(window.shape[0]):
        if every or valid[record[j]]:
            total[window[j]] += 1


@compiled_loop
def float_sum_of_touches(record, window, values, valid, total):  # type: ignore[no-untyped-def]
    """Adds floats in the order of arrival."""
    every = valid.shape[0] == 0
    for j in range(window.shape[0]):
        if every or valid[record[j]]:
            total[window[j]] += values[record[j]]


@compiled_loop
def int_sum_of_touches(record, window, values, valid, total):  # type: ignore[no-untyped-def]
    """Adds integers; returns the touch at which 64 bits were not enough, -1 if they were."""
    every = valid.shape[0] == 0
    for j in range(window.shape[0]):
        if every or valid[record[j]]:
            old = total[window[j]]
            value = values[record[j]]
            new = old + value
            if ((old ^ new) & (value ^ new)) < 0:
                return j
            total[window[j]] = new
    return -1


SUMS = {fold_loops.fold_float_sum: float_sum_of_touches, fold_loops.fold_int_sum: int_sum_of_touches}


@compiled_loop
def extreme_of_touches(record, window, base, values, valid, largest, best):  # type: ignore[no-untyped-def]
    """Position (in `values`) of the smallest or largest value of each window; of equal ones the first."""
    every = valid.shape[0] == 0
    for j in range(window.shape[0]):
        at = base + record[j]
        if every or valid[at]:
            held = best[window[j]]
            if held == NOTHING or (values[at] > values[held] if largest else values[at] < values[held]):
                best[window[j]] = at


@compiled_loop
def position_of_touches(record, window, base, valid, last, position):  # type: ignore[no-untyped-def]
    """Position of the first or last value of each window that is not null."""
    every = valid.shape[0] == 0
    for j in range(window.shape[0]):
        at = base + record[j]
        if (every or valid[at]) and (last or position[window[j]] == NOTHING):
            position[window[j]] = at


@compiled_loop
def times_of_touches(record, window, effect, source, copied, timestamp_ms, newest_ms, out):  # type: ignore[no-untyped-def]
    """Fills `out` with the largest record time in the window after each touch; `newest_ms` is that of each window."""
    for j in range(window.shape[0]):
        w = window[j]
        if w < 0:
            continue
        if source[j] >= 0:
            newest_ms[w] = max(newest_ms[w], newest_ms[source[j]])
        if effect[j] != copied:
            newest_ms[w] = max(newest_ms[w], timestamp_ms[record[j]])
        out[j] = newest_ms[w]


@compiled_loop
def sizes_of_touches(record, window, effect, source, opened, copied, held, size):  # type: ignore[no-untyped-def]
    """Counts the records that each window holds; a copy starts with what the source held before (`held`: scratch)."""
    low, touches = 0, window.shape[0]
    while low < touches:
        high = low
        while high < touches and record[high] == record[low]:
            high += 1
        for j in range(low, high):
            if source[j] >= 0:
                held[j] = size[source[j]]
        for j in range(low, high):
            if window[j] >= 0:
                if source[j] >= 0:
                    size[window[j]] = held[j]
                elif effect[j] == opened:  # anew, where a processor had deleted it
                    size[window[j]] = 0
                if effect[j] != copied:
                    size[window[j]] += 1
        low = high
