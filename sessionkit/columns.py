"""Small compiled passes over columns that several modules share."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def implicit_offsets(partition, first):  # type: ignore[no-untyped-def]
    """Running number of each record within its partition, from `first[partition]` on."""
    following = first.copy()
    offset = np.empty(partition.shape[0], np.int64)
    for i in range(partition.shape[0]):
        offset[i] = following[partition[i]]
        following[partition[i]] += 1
    return offset


@njit(cache=True, nogil=True)
def offsets_rise(partition, offset, partition_count):  # type: ignore[no-untyped-def]
    """(row, offset before it) of the first offset that does not rise within its partition; (-1, -1) if all do."""
    last = np.full(partition_count, -1, np.int64)
    for i in range(offset.shape[0]):
        if offset[i] <= last[partition[i]]:
            return i, last[partition[i]]
        last[partition[i]] = offset[i]
    return -1, np.int64(-1)


@njit(cache=True, nogil=True)
def stream_times(partition, timestamp_ms, rejected, stream_time_ms, out):  # type: ignore[no-untyped-def]
    """Fills `out` with the running maximum of timestamps per partition; `stream_time_ms` holds it before and after.

    A rejected record (null key, bad time) does not move it (Kafka's KStreamSessionWindowAggregate returns before).
    """
    any_rejected = rejected.shape[0] > 0
    for i in range(timestamp_ms.shape[0]):
        p = partition[i]
        if timestamp_ms[i] > stream_time_ms[p] and not (any_rejected and rejected[i] != 0):
            stream_time_ms[p] = timestamp_ms[i]
        out[i] = stream_time_ms[p]


@njit(cache=True, nogil=True)
def bounds_after(window, timestamp_ms, merges, loaded_start_ms, loaded_end_ms, window_count):  # type: ignore[no-untyped-def]
    """(start, end) of each record's window once the record is in it; -1, -1 for a record that was dropped."""
    start = np.full(window_count, np.int64(2**63 - 1))
    end = np.full(window_count, np.int64(-1))
    start[: loaded_start_ms.shape[0]] = loaded_start_ms
    end[: loaded_end_ms.shape[0]] = loaded_end_ms
    start_after = np.full(window.shape[0], np.int64(-1))
    end_after = np.full(window.shape[0], np.int64(-1))
    m = 0
    for i in range(window.shape[0]):
        w = window[i]
        if w < 0:
            continue
        while m < merges.at.shape[0] and merges.at[m] == i:
            start[w] = min(start[w], start[merges.absorbed[m]])
            end[w] = max(end[w], end[merges.absorbed[m]])
            m += 1
        start[w] = min(start[w], timestamp_ms[i])
        end[w] = max(end[w], timestamp_ms[i])
        start_after[i] = start[w]
        end_after[i] = end[w]
    return start_after, end_after


@njit(cache=True, nogil=True)
def slots_of(key, partition, partition_count, rejected, slot, decision, window):  # type: ignore[no-untyped-def]
    """Fills `slot` with one number a (key, partition), -1 for a rejected record, whose reason becomes its decision."""
    any_rejected = rejected.shape[0] > 0
    for i in range(key.shape[0]):
        if any_rejected and rejected[i] != 0:
            slot[i] = -1
            decision[i] = rejected[i]
            window[i] = -1
        else:
            slot[i] = key[i] * partition_count + partition[i]
