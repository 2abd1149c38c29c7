"""Compiled loops of what a run shows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sessionkit.base.compiled import compiled, compiled_loop


def decades(values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """The common logarithm, the same on every machine: numpy's last digits are another on another processor."""
    logs: npt.NDArray[np.float64] = np.log10(np.asarray(values, np.float64))
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


@compiled
def update_rows(window, decision, timestamp_ms, merges, start_after, end_after, start, end, rows):  # type: ignore[no-untyped-def]
    """(record, window, start, end, is tombstone) of each forwarded row, from the bounds of windows when loaded.

    A record withdraws the sessions that it met, oldest first, and then forwards the new one. Nothing is withdrawn
    where the session is still the one point at the record's own time (KStreamSessionWindowAggregate).
    """
    at = np.empty(rows, np.int64)
    of = np.empty(rows, np.int32)
    row_start = np.empty(rows, np.int64)
    row_end = np.empty(rows, np.int64)
    tombstone = np.zeros(rows, np.bool_)
    n = 0
    m = 0
    for i in range(window.shape[0]):
        w = window[i]
        if w < 0:
            continue
        other = -1
        if m < merges.at.shape[0] and merges.at[m] == i:
            other = merges.absorbed[m]
            m += 1
        single = start_after[i] == timestamp_ms[i] and end_after[i] == timestamp_ms[i]
        if decision[i] > 1 and not single:
            at[n], of[n], row_start[n], row_end[n], tombstone[n] = i, w, start[w], end[w], True
            n += 1
            if other >= 0:
                at[n], of[n], row_start[n], row_end[n], tombstone[n] = i, other, start[other], end[other], True
                n += 1
        start[w] = start_after[i]
        end[w] = end_after[i]
        at[n], of[n], row_start[n], row_end[n] = i, w, start[w], end[w]
        n += 1
    return at, of, row_start, row_end, tombstone


@compiled
def last_touches(window, at, row):  # type: ignore[no-untyped-def]
    """For each (record, window): the last record before it that is in the window; -1 if there is none. `at` rises."""
    out = np.full(at.shape[0], np.int64(-1))
    size = 0
    for k in range(row.shape[0]):
        size = max(size, row[k] + 1)
    last = np.full(size, np.int64(-1))
    k = 0
    for i in range(window.shape[0]):
        while k < at.shape[0] and at[k] == i:
            out[k] = last[row[k]]
            k += 1
        w = window[i]
        if 0 <= w < size:
            last[w] = i
    return out


def shown_places(
    rank: npt.NDArray[np.int64],
    keys: int,
    key: npt.NDArray[np.int32],
    partition: npt.NDArray[np.int32],
    merged_into: npt.NDArray[np.int32],
    closed_before: npt.NDArray[np.int64],
    is_result: npt.NDArray[np.bool_],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(rows, place of each): the windows that a table shows, and where they belong among `keys` a partition.

    A window is shown if it is a result that no other absorbed, and was not closed before the run.
    """
    rows, place = np.empty(len(key), np.int64), np.empty(len(key), np.int64)
    count = _find_shown(rank, keys, key, partition, merged_into, closed_before, is_result, rows, place)
    return rows[:count], place[:count]


@compiled_loop
def _find_shown(  # type: ignore[no-untyped-def]
    rank, keys, key, partition, merged_into, closed_before, is_result, rows, place
):
    n = 0
    for i in range(key.shape[0]):
        if merged_into[i] < 0 and closed_before[i] < 0 and is_result[i]:
            rows[n] = i
            place[n] = rank[key[i]] + keys * partition[i]
            n += 1
    return n
