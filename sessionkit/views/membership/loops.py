"""Compiled loops that number the rows of each window, and tell each row what is known of its window."""

from __future__ import annotations

import numpy as np

from sessionkit.base.compiled import compiled, compiled_loop

FEW = 32  # rows that are sorted faster by moving them one by one


@compiled_loop
def count_rows(window, ended_in, timestamp_ms, found, position, newest_ms, rows, steps_back):  # type: ignore[no-untyped-def]
    """Numbers the rows of each window in the order of arrival; returns how many windows have rows that step back.

    Args:
        window: int32, one a record: the window it came to, -1 for none; `ended_in` (int64, one a window) what became
            of that.
        found: int32, to be filled: the window that each record ended up in.
        position: int64, to be filled: its number among the records of that window, 0 for none.
        newest_ms, rows: int64, one a window, holding -1 and 0: filled with its newest time and how many rows it has.
        steps_back: bool, one a window, holding False: True where a row is older than one before it.
    """
    unsorted = 0
    for i in range(window.shape[0]):
        w = window[i]
        if w < 0:
            found[i] = -1
            position[i] = 0
            continue
        w = ended_in[w]
        found[i] = w
        rows[w] += 1
        position[i] = rows[w]
        if timestamp_ms[i] >= newest_ms[w]:
            newest_ms[w] = timestamp_ms[i]
        elif not steps_back[w]:
            steps_back[w] = True
            unsorted += 1
    return unsorted


@compiled
def order_rows(found, rows, timestamp_ms, steps_back, position):  # type: ignore[no-untyped-def]
    """Numbers the rows of those windows that step back anew: by time, then by arrival. Arguments as in `count_rows`."""
    first = np.empty(rows.shape[0], np.int64)
    total = 0
    longest = 0
    for w in range(rows.shape[0]):
        first[w] = total
        if steps_back[w]:
            total += rows[w]
            longest = max(longest, rows[w])
    members = np.empty(total, np.int64)
    following = first.copy()
    for i in range(found.shape[0]):
        w = found[i]
        if w >= 0 and steps_back[w]:
            members[following[w]] = i
            following[w] += 1
    times = np.empty(longest, np.int64)
    for w in range(rows.shape[0]):
        if not steps_back[w]:
            continue
        own = members[first[w] : following[w]]
        if own.shape[0] > FEW:
            for at in range(own.shape[0]):
                times[at] = timestamp_ms[own[at]]
            order = np.argsort(times[: own.shape[0]], kind="mergesort")
            for at in range(own.shape[0]):
                position[own[order[at]]] = at + 1
            continue
        for at in range(1, own.shape[0]):
            row = own[at]
            to = at
            while to > 0 and timestamp_ms[own[to - 1]] > timestamp_ms[row]:
                own[to] = own[to - 1]
                to -= 1
            own[to] = row
        for at in range(own.shape[0]):
            position[own[at]] = at + 1


@compiled_loop
def tell_rows(found, number, start_ms, end_ms, rows, row_number, row_start_ms, row_end_ms, row_count):  # type: ignore[no-untyped-def]
    """Fills the columns of records with what is known of their windows; 0 where a record is in none."""
    for i in range(found.shape[0]):
        w = found[i]
        if w < 0:
            row_number[i] = row_start_ms[i] = row_end_ms[i] = row_count[i] = 0
        else:
            row_number[i] = number[w]
            row_start_ms[i] = start_ms[w]
            row_end_ms[i] = end_ms[w]
            row_count[i] = rows[w]
