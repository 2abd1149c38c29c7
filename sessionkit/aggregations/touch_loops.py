"""Compiled loops that fold a column over touches: record `record[j]` is added to window `window[j]`, in this order.

For windows that never merge, where a record is in many of them. `valid` tells which values are not null; it is empty
where all count. In shapes, t are the touches, n the records, w the windows (with room for more), and p the places of
values: those that were loaded, and those of the records from `base` on.
"""

from __future__ import annotations

from sessionkit.aggregations import fold_loops
from sessionkit.base.compiled import NOTHING, compiled_loop


@compiled_loop
def count_touches(record, window, valid, total):  # type: ignore[no-untyped-def]
    """Counts records; with `valid`, only those whose value is not null.

    `record` int64 (t,), `window` int32 (t,), `valid` bool (n,) or (0,), `total` int64 (w,).
    """
    every = valid.shape[0] == 0
    for j in range(window.shape[0]):
        if every or valid[record[j]]:
            total[window[j]] += 1


@compiled_loop
def float_sum_of_touches(record, window, values, valid, total):  # type: ignore[no-untyped-def]
    """Adds floats in the order of arrival.

    `record` int64 (t,), `window` int32 (t,), `values` float64 (n,), `valid` bool (n,) or (0,), `total` float64 (w,).
    """
    every = valid.shape[0] == 0
    for j in range(window.shape[0]):
        if every or valid[record[j]]:
            total[window[j]] += values[record[j]]


@compiled_loop
def int_sum_of_touches(record, window, values, valid, total):  # type: ignore[no-untyped-def]
    """Adds integers; returns the touch at which 64 bits were not enough, -1 if they were.

    `record` int64 (t,), `window` int32 (t,), `values` int64 (n,), `valid` bool (n,) or (0,), `total` int64 (w,).
    """
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
    """Position (in `values`) of the smallest or largest value of each window; of equal ones the first.

    `record` int64 (t,), `window` int32 (t,), `base` an integer, `values` int64 or float64 (p,), `valid` bool (p,) or
    (0,), `largest` a bool, `best` int64 (w,).
    """
    every = valid.shape[0] == 0
    for j in range(window.shape[0]):
        at = base + record[j]
        if every or valid[at]:
            held = best[window[j]]
            if held == NOTHING or (values[at] > values[held] if largest else values[at] < values[held]):
                best[window[j]] = at


@compiled_loop
def position_of_touches(record, window, base, valid, last, position):  # type: ignore[no-untyped-def]
    """Position of the first or last value of each window that is not null.

    `record` int64 (t,), `window` int32 (t,), `base` an integer, `valid` bool (p,) or (0,), `last` a bool, `position`
    int64 (w,).
    """
    every = valid.shape[0] == 0
    for j in range(window.shape[0]):
        at = base + record[j]
        if (every or valid[at]) and (last or position[window[j]] == NOTHING):
            position[window[j]] = at


@compiled_loop
def count_spans(spans, valid, total):  # type: ignore[no-untyped-def]
    """Counts records in the windows of their spans; with `valid`, only those whose value is not null.

    `spans` rows of `SPAN` (r,), here and below; `valid` bool (n,) or (0,), `total` int64 (w,).
    """
    every = valid.shape[0] == 0
    for j in range(spans.shape[0]):
        if every or valid[spans[j].record]:
            part = total[spans[j].first : spans[j].first + spans[j].count]
            for at in range(part.shape[0]):
                part[at] += 1


@compiled_loop
def float_sum_of_spans(spans, values, valid, total):  # type: ignore[no-untyped-def]
    """Adds floats, in each window in the order of arrival.

    `values` float64 (n,), `valid` bool (n,) or (0,), `total` float64 (w,).
    """
    every = valid.shape[0] == 0
    for j in range(spans.shape[0]):
        i = spans[j].record
        if every or valid[i]:
            value = values[i]
            part = total[spans[j].first : spans[j].first + spans[j].count]
            for at in range(part.shape[0]):
                part[at] += value
    return -1


@compiled_loop
def int_sum_of_spans(spans, values, valid, total):  # type: ignore[no-untyped-def]
    """Adds integers; returns the first record at which 64 bits were not enough, -1 if they were.

    `values` int64 (n,), `valid` bool (n,) or (0,), `total` int64 (w,).
    """
    every = valid.shape[0] == 0
    failed = -1
    for j in range(spans.shape[0]):
        i = spans[j].record
        if every or valid[i]:
            value, wrong = values[i], 0
            part = total[spans[j].first : spans[j].first + spans[j].count]
            for at in range(part.shape[0]):
                new = part[at] + value
                wrong |= (part[at] ^ new) & (value ^ new)
                part[at] = new
            if wrong < 0 and (failed < 0 or i < failed):
                failed = i
    return failed


SPAN_SUMS = {fold_loops.fold_float_sum: float_sum_of_spans, fold_loops.fold_int_sum: int_sum_of_spans}


@compiled_loop
def extreme_of_spans(spans, base, values, valid, largest, best):  # type: ignore[no-untyped-def]
    """Position (in `values`) of the smallest or largest value of each window; of equal ones the first.

    `base` an integer, `values` int64 or float64 (p,), `valid` bool (p,) or (0,), `largest` a bool, `best` int64 (w,).
    """
    every = valid.shape[0] == 0
    for j in range(spans.shape[0]):
        at = base + spans[j].record
        if every or valid[at]:
            for w in range(spans[j].first, spans[j].first + spans[j].count):
                held = best[w]
                if held == NOTHING or (values[at] > values[held] if largest else values[at] < values[held]):
                    best[w] = at


@compiled_loop
def position_of_spans(spans, base, valid, last, position):  # type: ignore[no-untyped-def]
    """Position of the first or last value of each window that is not null.

    `base` an integer, `valid` bool (p,) or (0,), `last` a bool, `position` int64 (w,).
    """
    every = valid.shape[0] == 0
    for j in range(spans.shape[0]):
        at = base + spans[j].record
        if every or valid[at]:
            for w in range(spans[j].first, spans[j].first + spans[j].count):
                if last or position[w] == NOTHING:
                    position[w] = at
