"""Small passes over columns that several modules share; most are compiled."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sessionkit.compiled import compiled, compiled_loop
from sessionkit.decisions import TICK

SMALL_PLACE = 64


def decades(values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """The common logarithm, the same on every machine: numpy's last digits are another on another processor."""
    logs: npt.NDArray[np.float64] = np.log10(np.asarray(values, np.float64))
    return np.round(logs, 9)


@compiled
def implicit_offsets(partition, following):  # type: ignore[no-untyped-def]
    """Running number of each record within its partition, from `following[partition]` on, which is moved along."""
    offset = np.empty(partition.shape[0], np.int64)
    for i in range(partition.shape[0]):
        offset[i] = following[partition[i]]
        following[partition[i]] += 1
    return offset


@compiled
def offsets_rise(partition, offset, partition_count):  # type: ignore[no-untyped-def]
    """(row, offset before it) of the first offset that does not rise within its partition; (-1, -1) if all do."""
    last = np.full(partition_count, -1, np.int64)
    for i in range(offset.shape[0]):
        if offset[i] <= last[partition[i]]:
            return i, last[partition[i]]
        last[partition[i]] = offset[i]
    return -1, np.int64(-1)


@compiled_loop
def stream_times(partition, timestamp_ms, rejected, stream_time_ms, out):  # type: ignore[no-untyped-def]
    """Fills `out` with the running maximum of timestamps per partition; `stream_time_ms` holds it before and after.

    A rejected record (null key, bad time) does not move it (Kafka's KStreamSessionWindowAggregate returns before); a
    tick does.
    """
    any_rejected = rejected.shape[0] > 0
    for i in range(timestamp_ms.shape[0]):
        p = partition[i]
        if timestamp_ms[i] > stream_time_ms[p] and not (any_rejected and rejected[i] != 0 and rejected[i] != TICK):
            stream_time_ms[p] = timestamp_ms[i]
        out[i] = stream_time_ms[p]


@compiled
def grouped(codes, size):  # type: ignore[no-untyped-def]
    """(first, rows): the rows with code c, in order, are rows[first[c]:first[c + 1]]; codes below 0 are left out."""
    first = np.zeros(size + 1, np.int64)
    for code in codes:
        if code >= 0:
            first[code + 1] += 1
    for c in range(size):
        first[c + 1] += first[c]
    following = first[:size].copy()
    rows = np.empty(first[size], np.int64)
    for i in range(codes.shape[0]):
        code = codes[i]
        if code >= 0:
            rows[following[code]] = i
            following[code] += 1
    return first, rows


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


@compiled_loop
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


@compiled_loop
def count_updates(window, decision, timestamp_ms, start_after, end_after):  # type: ignore[no-untyped-def]
    """How many rows a changelog on update has: one an accepted record, and its tombstones."""
    rows = 0
    for i in range(window.shape[0]):
        if window[i] >= 0:
            single = start_after[i] == timestamp_ms[i] and end_after[i] == timestamp_ms[i]
            rows += 1 + (0 if single else decision[i] - 1)  # opened 1, added 2, merged 3: it met 0, 1, 2 sessions
    return rows


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
def last_touches(window, merges, at, row):  # type: ignore[no-untyped-def]
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


@compiled_loop
def note_decisions(decision, opened_code, partition, given_offset, following, counts, opened_by):  # type: ignore[no-untyped-def]
    """Adds to `counts` how often each decision was made; fills `opened_by` with the offsets of what opened a window.

    Without given offsets they are counted on in `following`, one number a partition.
    """
    opened = 0
    counted = given_offset.shape[0] == 0
    for i in range(decision.shape[0]):
        p = partition[i]
        counts[decision[i]] += 1
        opened_by[opened] = following[p] if counted else given_offset[i]
        following[p] += 1
        opened += decision[i] == opened_code
    return opened


@compiled_loop
def count_each(codes, counts):  # type: ignore[no-untyped-def]
    """Adds to `counts` how often each code is there."""
    for i in range(codes.shape[0]):
        counts[codes[i]] += 1


@compiled
def partition_codes(numbers, most):  # type: ignore[no-untyped-def]
    """(codes, distinct numbers, rising) of small partition numbers; nothing where one is negative or too large."""
    code_of = np.full(most, -1, np.int32)
    for i in range(numbers.shape[0]):
        if numbers[i] < 0 or numbers[i] >= most:
            return np.empty(0, np.int32), np.empty(0, np.int64)
        code_of[numbers[i]] = 0
    seen = np.flatnonzero(code_of == 0)
    for code in range(seen.shape[0]):
        code_of[seen[code]] = code
    codes = np.empty(numbers.shape[0], np.int32)
    for i in range(numbers.shape[0]):
        codes[i] = code_of[numbers[i]]
    return codes, seen


@compiled
def order_within(place, places, time):  # type: ignore[no-untyped-def]
    """(order by place, 0 to `places` - 1, and then time; ends of the places that are left to be sorted by time).

    A counting sort by place. Times come nearly sorted, so small places are sorted by insertion.
    """
    ends = np.zeros(places + 1, np.int64)
    for i in range(place.shape[0]):
        ends[place[i] + 1] += 1
    for p in range(places):
        ends[p + 1] += ends[p]
    order = np.empty(place.shape[0], np.int64)
    filled = ends[:-1].copy()
    for i in range(place.shape[0]):
        order[filled[place[i]]] = i
        filled[place[i]] += 1
    unsorted = [(np.int64(0), np.int64(0)) for _ in range(0)]
    for p in range(places):
        for at in range(ends[p] + 1, ends[p + 1]):
            if time[order[at - 1]] <= time[order[at]]:
                continue
            if ends[p + 1] - ends[p] > SMALL_PLACE:
                unsorted.append((ends[p], ends[p + 1]))
                break
            row = order[at]
            to = at
            while to > ends[p] and time[order[to - 1]] > time[row]:
                order[to] = order[to - 1]
                to -= 1
            order[to] = row
    return order, unsorted


def order_by_place(places_of: npt.NDArray[np.int64], places: int, time: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Order by place (0 to `places` - 1), then time; faster than a general sort, as there are few places to go to."""
    order: npt.NDArray[np.int64]
    order, unsorted = order_within(places_of, places, time)
    for begin, end in unsorted:
        mine = order[begin:end]
        mine[:] = mine[np.argsort(time[mine])]
    return order
