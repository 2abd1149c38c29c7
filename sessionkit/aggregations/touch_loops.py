"""Compiled loops that fold a column over touches: record `record[j]` is added to window `window[j]`, in this order.

For windows that never merge, where a record is in many of them. `valid` tells which values are not null; it is empty
where all count. In shapes, t are the touches, n the records, w the windows (with room for more), and p the places of
values: those that were loaded, and those of the records from `base` on.
"""

from __future__ import annotations

from sessionkit.base.compiled import compiled_loop
from sessionkit.windows.loops import is_better


@compiled_loop
def total_of_touches(record, window, values, valid, checks, total):  # type: ignore[no-untyped-def]
    """Adds values in the order of arrival, or counts records; returns the record at which 64 bits were not enough, -1.

    `record` int64 (t,), `window` int32 (t,), `values` int64 or float64 (n,), or None to count; `valid` bool (n,) or
    (0,), `checks` True for integers, else None; `total` int64 or float64 (w,).
    """
    every = valid.shape[0] == 0
    for j in range(window.shape[0]):
        i = record[j]
        if every or valid[i]:
            held = total[window[j]]
            value = 1 if values is None else values[i]
            new = held + value
            if checks is not None and ((held ^ new) & (value ^ new)) < 0:
                return i
            total[window[j]] = new
    return -1


@compiled_loop
def best_of_touches(record, window, base, values, valid, largest, best):  # type: ignore[no-untyped-def]
    """Position (in `values`) of the smallest or largest value of each window, without values of the first or last one.

    `record` int64 (t,), `window` int32 (t,), `base` an integer, `values` int64 or float64 (p,), or None; `valid` bool
    (p,) or (0,), `largest` a bool, `best` int64 (w,).
    """
    every = valid.shape[0] == 0
    for j in range(window.shape[0]):
        at = base + record[j]
        if (every or valid[at]) and is_better(values, largest, best[window[j]], at):
            best[window[j]] = at


@compiled_loop
def total_of_spans(spans, values, valid, checks, total):  # type: ignore[no-untyped-def]
    """Adds values to the windows of their spans, in each in the order of arrival, or counts records.

    Returns the first record at which 64 bits were not enough, -1 if they were. `spans` rows of `SPAN` (r,), `values`
    int64 or float64 (n,), or None to count; `valid` bool (n,) or (0,), `checks` True for integers, else None; `total`
    int64 or float64 (w,).
    """
    every = valid.shape[0] == 0
    failed = -1
    for j in range(spans.shape[0]):
        i = spans[j].record
        if every or valid[i]:
            value, wrong = 1 if values is None else values[i], 0
            part = total[spans[j].first : spans[j].first + spans[j].count]
            for at in range(part.shape[0]):
                new = part[at] + value
                if checks is not None:
                    wrong |= (part[at] ^ new) & (value ^ new)
                part[at] = new
            if wrong < 0 and (failed < 0 or i < failed):
                failed = i
    return failed


@compiled_loop
def best_of_spans(spans, base, values, valid, largest, best):  # type: ignore[no-untyped-def]
    """Position of the best value, as in `best_of_touches`, of the windows of each record's span.

    `spans` rows of `SPAN` (r,), `base` an integer, `values` int64 or float64 (p,), or None; `valid` bool (p,) or (0,),
    `largest` a bool, `best` int64 (w,).
    """
    every = valid.shape[0] == 0
    for j in range(spans.shape[0]):
        at = base + spans[j].record
        if every or valid[at]:
            for w in range(spans[j].first, spans[j].first + spans[j].count):
                if is_better(values, largest, best[w], at):
                    best[w] = at
