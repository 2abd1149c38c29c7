"""Compiled loops of what a run shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sessionkit.base.arrays import Floats, Longs
from sessionkit.base.compiled import compiled, compiled_loop


def decades(values: npt.ArrayLike) -> Floats:
    """The common logarithm, the same on every machine: numpy's last digits are another on another processor."""
    logs: Floats = np.log10(np.asarray(values, np.float64))
    return np.round(logs, 9)


@compiled
def rows_in_view(mask, start_ms, end_ms, slot, lane_of, first_ms, last_ms):  # type: ignore[no-untyped-def]
    """The rows under `mask` that reach into a span of time and whose slot has a lane."""
    rows, count = np.empty(mask.shape[0], np.int64), 0
    for i in range(mask.shape[0]):
        if mask[i] and end_ms[i] >= first_ms and start_ms[i] <= last_ms and lane_of[slot[i]] >= 0:
            rows[count] = i
            count += 1
    return rows[:count].copy()


def shown_places(*columns: Any) -> tuple[Longs, Longs]:
    """(rows, place of each): the windows that a table shows, and where they belong among `keys` a partition.

    A window is shown if it is a result that no other absorbed, and was not closed before the run. The columns are those
    of `_find_shown`, which makes no array: a fresh process would load numba's compiler for it.
    """
    count = len(columns[2])
    rows, place = np.empty(count, np.int64), np.empty(count, np.int64)
    found = _find_shown(*columns, rows, place)
    return rows[:found], place[:found]


@compiled_loop
def _find_shown(rank, keys, key, partition, merged_into, closed_before, is_result, rows, place):  # type: ignore[no-untyped-def]
    n = 0
    for i in range(key.shape[0]):
        if merged_into[i] < 0 and closed_before[i] < 0 and is_result[i]:
            rows[n] = i
            place[n] = rank[key[i]] + keys * partition[i]
            n += 1
    return n


# ---- rows of each window, for assignments


FEW, FEW_EACH = 64, 8  # steps, and more for each row, in which rows are put in order faster than by a sort


@compiled_loop
def count_rows(window, ended_in, timestamp_ms, found, position, before, newest, rows, spent, unordered):  # type: ignore[no-untyped-def]
    """Numbers the rows of each window by time, then by arrival; returns how many windows have rows that are far off.

    The rows of a window are a list from the newest to the oldest. A row that steps back is put into its place, and
    those after it move on; a window where that takes long is left to `order_rows`.

    Args:
        window: int32, one a record: the window it came to, -1 for none; `ended_in` (int64, one a window) what became
            of that.
        found: int32, to be filled: the window that each record ended up in.
        position: int64, to be filled: its number among the records of that window, 0 for none.
        before: int32, one a record, to be filled: the row before it in time in the same window, -1 for none.
        newest, rows, spent: int64, one a window, holding -1, 0 and 0: filled with its newest row, how many rows it has,
            and how many steps it took to put them in order.
        unordered: bool, one a window, holding False: True where it is left to `order_rows`.
    """
    left = 0
    for i in range(window.shape[0]):
        w = window[i]
        if w < 0:
            found[i] = -1
            position[i] = 0
            continue
        w = ended_in[w]
        found[i] = w
        rows[w] += 1
        later = np.int64(-1)
        row = newest[w]
        steps = 0
        if not unordered[w]:
            while row >= 0 and timestamp_ms[row] > timestamp_ms[i]:
                position[row] += 1
                later = row
                row = before[row]
                steps += 1
            spent[w] += steps
            if spent[w] > FEW + FEW_EACH * rows[w]:
                unordered[w] = True
                left += 1
        position[i] = rows[w] - steps
        before[i] = row
        if later >= 0:
            before[later] = i
        else:
            newest[w] = i
    return left


@compiled
def order_rows(found, rows, timestamp_ms, unordered, position):  # type: ignore[no-untyped-def]
    """Numbers the rows of unordered windows anew: by time, then by arrival. Arguments as in `count_rows`."""
    first = np.empty(rows.shape[0], np.int64)
    total = 0
    longest = 0
    for w in range(rows.shape[0]):
        first[w] = total
        if unordered[w]:
            total += rows[w]
            longest = max(longest, rows[w])
    members = np.empty(total, np.int64)
    following = first.copy()
    for i in range(found.shape[0]):
        w = found[i]
        if w >= 0 and unordered[w]:
            members[following[w]] = i
            following[w] += 1
    times = np.empty(longest, np.int64)
    for w in range(rows.shape[0]):
        if not unordered[w]:
            continue
        own = members[first[w] : following[w]]
        for at in range(own.shape[0]):
            times[at] = timestamp_ms[own[at]]
        order = np.argsort(times[: own.shape[0]], kind="mergesort")
        for at in range(own.shape[0]):
            position[own[order[at]]] = at + 1


@compiled_loop
def tell_rows(found, told, row_number, row_start_ms, row_end_ms, row_count):  # type: ignore[no-untyped-def]
    """Fills the columns of records with what is told of their windows, a line each; 0 where a record is in none."""
    for i in range(found.shape[0]):
        w = found[i]
        if w < 0:
            row_number[i] = row_start_ms[i] = row_end_ms[i] = row_count[i] = 0
        else:
            row_number[i] = told[w, 0]
            row_start_ms[i] = told[w, 1]
            row_end_ms[i] = told[w, 2]
            row_count[i] = told[w, 3]


@compiled
def group_tied(before, after, alive_before, alive_after):  # type: ignore[no-untyped-def]
    """(group of each row, groups): rows of two runs that are tied together, however far, are in one group.

    The i-th tie is between row `before[i]` of one run and row `after[i]` of the other. Groups are numbered as they
    come in the rows, first those of `before`; a row that is not alive is in none: -1.
    """
    count = alive_before.shape[0]
    parent = np.arange(count + alive_after.shape[0])
    for i in range(before.shape[0]):
        one, other = np.int64(before[i]), np.int64(count + after[i])
        while parent[one] != one:
            parent[one] = parent[parent[one]]
            one = parent[one]
        while parent[other] != other:
            parent[other] = parent[parent[other]]
            other = parent[other]
        parent[max(one, other)] = min(one, other)
    groups = 0
    group = np.full(parent.shape[0], -1)
    for row in range(parent.shape[0]):
        if alive_before[row] if row < count else alive_after[row - count]:
            root = row
            while parent[root] != root:
                root = parent[root]
            if group[root] < 0:
                group[root] = groups
                groups += 1
            parent[row] = root
            group[row] = group[root]
    return group, groups


@compiled
def rows_of_places(partition, key, start_ms, end_ms, other_partition, other_key, other_start_ms, other_end_ms):  # type: ignore[no-untyped-def]
    """For each place of the second table the row of the first one that has it, -1 if none has."""
    size = 16
    while size < 2 * key.shape[0]:
        size *= 2
    taken = np.full(size, -1)
    for row in range(key.shape[0]):
        at = _hashed(partition[row], key[row], start_ms[row], end_ms[row]) & (size - 1)
        while taken[at] >= 0:
            at = (at + 1) & (size - 1)
        taken[at] = row
    found = np.full(other_key.shape[0], -1)
    for row in range(other_key.shape[0]):
        place = (other_partition[row], other_key[row], other_start_ms[row], other_end_ms[row])
        at = _hashed(other_partition[row], other_key[row], other_start_ms[row], other_end_ms[row]) & (size - 1)
        while taken[at] >= 0:
            mine = taken[at]
            if (partition[mine], key[mine], start_ms[mine], end_ms[mine]) == place:
                found[row] = mine
                break
            at = (at + 1) & (size - 1)
    return found


@compiled
def _hashed(partition, key, start_ms, end_ms):  # type: ignore[no-untyped-def]
    found = np.int64(partition) * 1_000_003 + key
    found = (found * 1_000_003 + start_ms) * 1_000_003 + end_ms
    found ^= found >> 29
    found *= 0x1B87_3593_CC9E_2D51
    return found ^ (found >> 32)
