"""Compiled loops that fold a column over the sessions that its records were put into.

`window[i]` is the row of the window that record i belongs to (-1: none), `merges` names the rows that were joined just
before a record was added, oldest first: `at` int64, `into` and `absorbed` int32. `valid` tells which values are not
null; it is empty where all count. `running`, if it is not empty, receives the accumulator after each record.

In shapes, n are the records, m the merges, w the windows (with room for more), and p the places of values: those that
were loaded, and those of the records from `base` on.
"""

from __future__ import annotations

import numpy as np

from sessionkit.base.compiled import NOTHING, compiled, compiled_loop


@compiled_loop
def fold_count(window, merges, valid, total, running):  # type: ignore[no-untyped-def]
    """Counts records; with `valid`, only those whose value is not null.

    `window` int32 (n,), `merges` (m,), `valid` bool (n,) or (0,), `total` int64 (w,), `running` int64 (n,) or (0,).
    """
    m = 0
    every = valid.shape[0] == 0
    for i in range(window.shape[0]):
        w = window[i]
        if w < 0:
            continue
        if m < merges.at.shape[0] and merges.at[m] == i:
            total[w] += total[merges.absorbed[m]]
            m += 1
        if every or valid[i]:
            total[w] += 1
        if running.shape[0]:
            running[i] = total[w]


@compiled_loop
def fold_float_sum(window, merges, values, valid, total, running):  # type: ignore[no-untyped-def]
    """Adds floats in the order of arrival, and two sessions as older + newer: never by subtracting.

    `window` int32 (n,), `merges` (m,), `values` float64 (n,), `valid` bool (n,) or (0,), `total` float64 (w,),
    `running` float64 (n,) or (0,).
    """
    m = 0
    every = valid.shape[0] == 0
    for i in range(window.shape[0]):
        w = window[i]
        if w < 0:
            continue
        if m < merges.at.shape[0] and merges.at[m] == i:
            total[w] += total[merges.absorbed[m]]
            m += 1
        if every or valid[i]:
            total[w] += values[i]
        if running.shape[0]:
            running[i] = total[w]


@compiled_loop
def fold_int_sum(window, merges, values, valid, total, running):  # type: ignore[no-untyped-def]
    """Adds integers; returns the record at which 64 bits were not enough, -1 if they were.

    `window` int32 (n,), `merges` (m,), `values` int64 (n,), `valid` bool (n,) or (0,), `total` int64 (w,), `running`
    int64 (n,) or (0,).
    """
    m = 0
    every = valid.shape[0] == 0
    for i in range(window.shape[0]):
        w = window[i]
        if w < 0:
            continue
        old = total[w]
        if m < merges.at.shape[0] and merges.at[m] == i:
            other = total[merges.absorbed[m]]
            joined = old + other
            if ((old ^ joined) & (other ^ joined)) < 0:
                return i
            old = joined
            m += 1
        if every or valid[i]:
            new = old + values[i]
            if ((old ^ new) & (values[i] ^ new)) < 0:
                return i
            old = new
        total[w] = old
        if running.shape[0]:
            running[i] = old
    return -1


@compiled_loop
def fold_extreme(window, merges, base, values, valid, largest, best, running):  # type: ignore[no-untyped-def]
    """Position (in `values`) of the smallest or largest value of each window; of equal ones the first.

    `window` int32 (n,), `merges` (m,), `base` an integer, `values` int64 or float64 (p,), `valid` bool (p,) or (0,),
    `largest` a bool, `best` int64 (w,), `running` int64 (n,) or (0,).
    """
    m = 0
    every = valid.shape[0] == 0
    for i in range(window.shape[0]):
        w = window[i]
        if w < 0:
            continue
        if m < merges.at.shape[0] and merges.at[m] == i:
            best[w] = _better(values, largest, best[w], best[merges.absorbed[m]])
            m += 1
        if every or valid[base + i]:
            best[w] = _better(values, largest, best[w], base + i)
        if running.shape[0]:
            running[i] = best[w]


@compiled_loop
def _better(values, largest, one, other):  # type: ignore[no-untyped-def]
    """The position of the better value: `values` int64 or float64 (p,), `largest` a bool, the positions integers."""
    if one == NOTHING or other == NOTHING:
        return other if one == NOTHING else one
    if largest:
        return other if values[other] > values[one] else one
    return other if values[other] < values[one] else one


@compiled_loop
def fold_position(window, merges, base, valid, last, position, running):  # type: ignore[no-untyped-def]
    """Position of the first or last value of each window that is not null.

    `window` int32 (n,), `merges` (m,), `base` an integer, `valid` bool (p,) or (0,), `last` a bool, `position` int64
    (w,), `running` int64 (n,) or (0,).
    """
    m = 0
    every = valid.shape[0] == 0
    for i in range(window.shape[0]):
        w = window[i]
        if w < 0:
            continue
        if m < merges.at.shape[0] and merges.at[m] == i:
            other = position[merges.absorbed[m]]
            if other != NOTHING and (last or position[w] == NOTHING):
                position[w] = other
            m += 1
        if (every or valid[base + i]) and (last or position[w] == NOTHING):
            position[w] = base + i
        if running.shape[0]:
            running[i] = position[w]


@compiled_loop
def fold_chains(window, merges, base, first, last, following):  # type: ignore[no-untyped-def]
    """Chains the values of each window: `first` and `last` a window, `following` a value; a merge joins two chains.

    `window` int32 (n,), `merges` (m,), `base` an integer, `first` and `last` int64 (w,), `following` int64 (p,).
    """
    m = 0
    for i in range(window.shape[0]):
        w = window[i]
        if w < 0:
            continue
        if m < merges.at.shape[0] and merges.at[m] == i:
            other = merges.absorbed[m]
            if first[other] != NOTHING:
                if first[w] == NOTHING:
                    first[w] = first[other]
                else:
                    following[last[w]] = first[other]
                last[w] = last[other]
            m += 1
        if first[w] == NOTHING:
            first[w] = base + i
        else:
            following[last[w]] = base + i
        last[w] = base + i


@compiled
def unchain(rows, first, last, following):  # type: ignore[no-untyped-def]
    """(ends, positions): the chains of `rows`, one behind the other.

    `rows` integers (r,), `first` and `last` int64 (w,), `following` int64 (p,); `ends` are int64 (r + 1,).
    """
    ends = np.zeros(rows.shape[0] + 1, np.int64)
    for at in range(rows.shape[0]):
        length = 0
        position = first[rows[at]]
        while position != NOTHING:
            length += 1
            if position == last[rows[at]]:
                break
            position = following[position]
        ends[at + 1] = ends[at] + length
    positions = np.empty(ends[-1], np.int64)
    for at in range(rows.shape[0]):
        position = first[rows[at]]
        for place in range(ends[at], ends[at + 1]):
            positions[place] = position
            position = following[position]
    return ends, positions
