"""Compiled loops that fold a column over the windows that its records were put into.

`window[i]` is the row of the window that record i belongs to (-1: none), `merges` names the rows that were joined just
before a record was added, oldest first: `at` int64, `into` and `absorbed` int32. `valid` tells which values are not
null; it is empty where all count. `running`, if it is not empty, receives the accumulator after each record.

The loops over touches are for windows that never merge, where a record is in many of them: record `record[j]` is added
to window `window[j]`, in this order.

In shapes, n are the records, m the merges, t the touches, w the windows (with room for more), and p the places of
values: those that were loaded, and those of the records from `base` on.
"""

import numpy as np

from sessionkit.base.compiled import NOTHING, compiled, compiled_loop
from sessionkit.windows.feed import is_better


@compiled_loop
def fold_total(window, merges, values, valid, checks, total, running):  # type: ignore[no-untyped-def]
    """Adds values in the order of arrival, and two sessions as older + newer, never by subtracting; or counts records.

    Returns the record at which 64 bits were not enough, -1 if they were. `window` int32 (n,), `merges` (m,), `values`
    int64 or float64 (n,), or None to count; `valid` bool (n,) or (0,), `checks` True for integers, else None; `total`
    int64 or float64 (w,), `running` of the same type (n,) or (0,).
    """
    m = 0
    every = valid.shape[0] == 0
    for i in range(window.shape[0]):
        w = window[i]
        if w < 0:
            continue
        held = total[w]
        if m < merges.at.shape[0] and merges.at[m] == i:
            other = total[merges.absorbed[m]]
            joined = held + other
            if checks is not None and ((held ^ joined) & (other ^ joined)) < 0:
                return i
            held = joined
            m += 1
        if every or valid[i]:
            value = 1 if values is None else values[i]
            new = held + value
            if checks is not None and ((held ^ new) & (value ^ new)) < 0:
                return i
            held = new
        total[w] = held
        if running.shape[0]:
            running[i] = held
    return -1


@compiled_loop
def fold_best(window, merges, base, values, valid, largest, best, running):  # type: ignore[no-untyped-def]
    """Position (in `values`) of the smallest or largest value of each window, of equal ones the first.

    Without values that of the first or last one that is not null. `window` int32 (n,), `merges` (m,), `base` an
    integer, `values` int64 or float64 (p,), or None; `valid` bool (p,) or (0,), `largest` a bool, `best` int64 (w,),
    `running` int64 (n,) or (0,).
    """
    m = 0
    every = valid.shape[0] == 0
    for i in range(window.shape[0]):
        w = window[i]
        if w < 0:
            continue
        if m < merges.at.shape[0] and merges.at[m] == i:
            other = best[merges.absorbed[m]]
            if other != NOTHING and is_better(values, largest, best[w], other):
                best[w] = other
            m += 1
        if (every or valid[base + i]) and is_better(values, largest, best[w], base + i):
            best[w] = base + i
        if running.shape[0]:
            running[i] = best[w]


@compiled_loop
def fold_lists(window, merges, length, into, behind, place):  # type: ignore[no-untyped-def]
    """Places the values in the lists of their windows; a merge puts one list behind another.

    `window` int32 (n,), `merges` (m,), `length` and `into` and `behind` int64 (w,): how many values a list has, of an
    absorbed window the one that took it, and how many values stood there before its own. `place` int32 (n,) receives
    the place of each value in its list.
    """
    m = 0
    for i in range(window.shape[0]):
        w = window[i]
        if w < 0:
            continue
        if m < merges.at.shape[0] and merges.at[m] == i:
            other = merges.absorbed[m]
            into[other] = w
            behind[other] = length[w]
            length[w] += length[other]
            m += 1
        place[i] = length[w]
        length[w] += 1


@compiled
def shorten_ways(into, behind):  # type: ignore[no-untyped-def]
    """Leads each absorbed window straight to the one that stands, with all that stood before its values there.

    `into` and `behind` int64 (w,), as of `fold_lists`; both are changed.
    """
    for w in range(into.shape[0]):
        root, total = w, np.int64(0)
        while into[root] != NOTHING:
            total += behind[root]
            root = into[root]
        step = w
        while step != root:
            following, own = into[step], behind[step]
            into[step], behind[step] = root, total
            total -= own
            step = following


@compiled
def listed(rows, length, into, behind, window, place):  # type: ignore[no-untyped-def]
    """(ends, links): the lists of `rows`, one behind the other, by the numbers of their links.

    `rows` integers (r,), `window` and `place` int32 (p,): the window of each link (-1: none), and its place in the list
    of it; the others as `shorten_ways` leaves them. `ends` are int64 (r + 1,). The list of an absorbed window is the
    part that it is of the list of the one that stands.
    """
    ends = np.zeros(rows.shape[0] + 1, np.int64)
    begin = np.full(length.shape[0], NOTHING, np.int64)  # of the whole list of each window that stands
    total, are_whole = np.int64(0), True
    for at in range(rows.shape[0]):
        w = rows[at]
        ends[at + 1] = ends[at] + length[w]
        root = w if into[w] == NOTHING else into[w]
        if begin[root] == NOTHING:
            begin[root] = total
            total += length[root]
            are_whole &= root == w
        else:
            are_whole = False
    links = np.empty(total, np.int64)
    for link in range(window.shape[0]):
        w = window[link]
        if w < 0:
            continue
        before = np.int64(0)
        if into[w] != NOTHING:
            before = behind[w]
            w = into[w]
        if begin[w] != NOTHING:
            links[begin[w] + before + place[link]] = link
    if are_whole:
        return ends, links
    parts = np.empty(ends[-1], np.int64)
    for at in range(rows.shape[0]):
        w = rows[at]
        first = begin[w] if into[w] == NOTHING else begin[into[w]] + behind[w]
        for to in range(length[w]):
            parts[ends[at] + to] = links[first + to]
    return ends, parts


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
