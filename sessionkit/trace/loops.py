"""Compiled loops over the columns of a trace."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from sessionkit.base.arrays import Codes, Flags, Longs, Rows, order_by
from sessionkit.base.compiled import compiled, compiled_loop
from sessionkit.base.process import in_threads, thread_count

SMALL_PLACE = 64  # rows that are sorted by insertion, whatever it takes
STEPS = 4  # a row that insertion may take in larger places
MANY_ROWS = 200_000  # from here on they are sorted in threads
FEW_PLACES = 65_536  # a sort by counting is quick where there are not many more places than rows


def grouped(codes: npt.NDArray[Any], size: int) -> tuple[Longs, Longs]:
    """(first, rows): the rows with code c, in order, are rows[first[c]:first[c + 1]]; codes below 0 are left out."""
    first, following, rows = np.zeros(size + 1, np.int64), np.empty(size, np.int64), np.empty(len(codes), np.int64)
    _group(codes, size, first, following, rows)
    return first, rows[: first[size]]


@compiled_loop
def _group(codes, size, first, following, rows):  # type: ignore[no-untyped-def]
    for i in range(codes.shape[0]):
        if codes[i] >= 0:
            first[codes[i] + 1] += 1
    for c in range(size):
        first[c + 1] += first[c]
        following[c] = first[c]
    for i in range(codes.shape[0]):
        code = codes[i]
        if code >= 0:
            rows[following[code]] = i
            following[code] += 1


def closed_windows(end_ms: Longs, partition: Codes, merged_into: Codes, close_time_ms: Longs) -> Flags:
    """True for each window that ends before the close time of its partition and that no other absorbed."""
    closed = np.empty(len(end_ms), np.bool_)
    _find_closed(end_ms, partition, merged_into, close_time_ms, closed)
    return closed


@compiled_loop
def _find_closed(end_ms, partition, merged_into, close_time_ms, closed):  # type: ignore[no-untyped-def]
    for i in range(end_ms.shape[0]):
        closed[i] = merged_into[i] < 0 and end_ms[i] < close_time_ms[partition[i]]


@compiled
def first_passing(first, rows, stream_time_ms, partition, instant_ms, nothing):  # type: ignore[no-untyped-def]
    """For each instant the first record of its partition with a larger stream time; `nothing` where there is none.

    `rows` and their `stream_time_ms` are by partition, from `first` on. An instant is looked for around where the one
    before it was found: they come nearly sorted.
    """
    found = np.full(partition.shape[0], nothing)
    last = first[:-1].copy()
    for k in range(partition.shape[0]):
        p, instant = partition[k], instant_ms[k]
        low, high, at, step = first[p], first[p + 1], last[p], 1
        if at < high and stream_time_ms[at] <= instant:
            while at + step < high and stream_time_ms[at + step] <= instant:
                step *= 2
            low, high = at + step // 2 + 1, min(high, at + step)
        else:
            while at - step >= low and stream_time_ms[at - step] > instant:
                step *= 2
            low, high = max(low, at - step), at
        low += np.searchsorted(stream_time_ms[low:high], instant, side="right")
        last[p] = low
        if low < first[p + 1]:
            found[k] = rows[low]
    return found


@compiled_loop
def moves_stream_time(partition, stream_time_ms, marked, newest_ms):  # type: ignore[no-untyped-def]
    """Whether a marked record moved stream time; `newest_ms` holds that of each partition, and is moved along."""
    for i in range(partition.shape[0]):
        if marked[i] and stream_time_ms[i] != newest_ms[partition[i]]:
            return True
        newest_ms[partition[i]] = stream_time_ms[i]
    return False


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
def mark_overlapping(rows, slot, start_ms, end_ms, overlaps):  # type: ignore[no-untyped-def]
    """Marks windows that have an instant in common with another one of their slot; `rows` go by slot and start."""
    first = 0  # of those that hang together
    largest = np.int64(-1)
    for place in range(rows.shape[0]):
        row = rows[place]
        if place and slot[row] == slot[rows[place - 1]] and start_ms[row] <= largest:
            overlaps[row] = overlaps[rows[first]] = True
            largest = max(largest, end_ms[row])
        else:
            first, largest = place, end_ms[row]


@compiled_loop
def count_updates(window, decision, timestamp_ms, start_after, end_after):  # type: ignore[no-untyped-def]
    """How many rows a changelog on update has: one an accepted record, and its tombstones."""
    rows = np.int64(0)
    for i in range(window.shape[0]):
        if window[i] >= 0:
            single = start_after[i] == timestamp_ms[i] and end_after[i] == timestamp_ms[i]
            met = 0 if single else np.int64(decision[i]) - 1  # opened 1, added 2, merged 3: it met 0, 1, 2 sessions
            rows += 1 + met
    return rows


@compiled_loop
def times_of_touches(touches, copied, timestamp_ms, newest_ms, out):  # type: ignore[no-untyped-def]
    """Fills `out` with the largest record time in the window after each touch; `newest_ms` is that of each window."""
    for j in range(touches.window.shape[0]):
        w = touches.window[j]
        if w < 0:
            continue
        if touches.source[j] >= 0:
            newest_ms[w] = max(newest_ms[w], newest_ms[touches.source[j]])
        if touches.effect[j] != copied:
            newest_ms[w] = max(newest_ms[w], timestamp_ms[touches.record[j]])
        out[j] = newest_ms[w]


@compiled_loop
def sizes_of_touches(touches, opened, copied, held, size):  # type: ignore[no-untyped-def]
    """Counts the records that each window holds; a copy starts with what the source held before (`held`: scratch)."""
    low, count = 0, touches.record.shape[0]
    while low < count:
        high = low
        while high < count and touches.record[high] == touches.record[low]:
            high += 1
        for j in range(low, high):
            if touches.source[j] >= 0:
                held[j] = size[touches.source[j]]
        for j in range(low, high):
            if touches.window[j] >= 0:
                if touches.source[j] >= 0:
                    size[touches.window[j]] = held[j]
                elif touches.effect[j] == opened:  # anew, where a processor had deleted it
                    size[touches.window[j]] = 0
                if touches.effect[j] != copied:
                    size[touches.window[j]] += 1
        low = high


@compiled_loop
def _count_places(place, ends):  # type: ignore[no-untyped-def]
    """Makes `ends`, zeros, say where the rows of each place begin: those of the next begin where they end."""
    for i in range(place.shape[0]):
        ends[place[i] + 1] += 1
    for p in range(ends.shape[0] - 1):
        ends[p + 1] += ends[p]


@compiled_loop
def _order_within(place, time, ends, first, behind, following, order, unsorted):  # type: ignore[no-untyped-def]
    """Fills the part of `order` that is of the places from `first` on and before `behind`, by place and then time.

    A counting sort by place. Times come nearly sorted, so places are sorted by insertion, unless that takes many steps
    in a large one. Returns how many of them are left to be sorted by time: `unsorted` int64 (m, 2) receives where those
    begin and end. `following` is scratch.
    """
    for p in range(first, behind):
        following[p] = ends[p]
    for i in range(place.shape[0]):
        p = place[i]
        if first <= p < behind:
            order[following[p]] = i
            following[p] += 1
    left = 0
    for p in range(first, behind):
        size = ends[p + 1] - ends[p]
        steps = 0 if size <= SMALL_PLACE else -STEPS * size
        for at in range(ends[p] + 1, ends[p + 1]):
            if time[order[at - 1]] <= time[order[at]]:
                continue
            if steps > 0 and size > SMALL_PLACE:
                unsorted[left, 0] = ends[p]
                unsorted[left, 1] = ends[p + 1]
                left += 1
                break
            row = order[at]
            to = at
            while to > ends[p] and time[order[to - 1]] > time[row]:
                order[to] = order[to - 1]
                to -= 1
            order[to] = row
            steps += at - to
    return left


def are_few_places(places: int, rows: int) -> bool:
    """Whether so many rows are ordered by counting their places, rather than by comparing them."""
    return places <= max(rows, FEW_PLACES)


def order_by_place(places_of: Longs, places: int, time: Longs) -> Longs:
    """Order by place (0 to `places` - 1), then time; faster than a general sort, as there are few places to go to."""
    order, following, ends = np.empty(len(time), np.int64), np.empty(places, np.int64), np.zeros(places + 1, np.int64)
    _count_places(places_of, ends)

    def sort(span: tuple[int, int]) -> None:
        unsorted = np.empty((int(ends[span[1]] - ends[span[0]]) // SMALL_PLACE, 2), np.int64)
        left = _order_within(places_of, time, ends, *span, following, order, unsorted)
        for begin, end in unsorted[:left].tolist():
            rows = order[begin:end]
            rows[:] = rows[_by_time(time[rows])]

    shares = thread_count() if len(time) >= MANY_ROWS else 1
    edges = [0, *np.searchsorted(ends, np.arange(1, shares) * len(time) // shares).tolist(), places]
    in_threads(sort, pairwise(edges))
    return order


def order_of_windows(rank: Longs, keys: int, start_ms: Longs, partition: Longs | Codes | None) -> Longs:
    """Order by the rank of the key (0 to `keys` - 1), then start, then partition, if there are several."""
    return order_by_place(rank, keys, start_ms) if partition is None else order_by(rank, start_ms, partition)


def _by_time(time: Longs) -> Rows:
    """A stable order. Times are rarely equal, and numpy sorts four times as fast where it need not be stable."""
    order = np.argsort(time)
    found = time[order]
    return np.argsort(time, kind="stable") if (found[1:] == found[:-1]).any() else order


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


def largest_so_far(number: Longs, partition: Codes, before: Longs) -> Longs:
    """The largest number in the partition of each row up to it; `before` is that of each partition at first."""
    found, (first, rows) = np.empty_like(number), grouped(partition, len(before))
    for code, at_first in enumerate(before.tolist()):
        own = rows[first[code] : first[code + 1]]
        found[own] = np.maximum(np.maximum.accumulate(number[own]), at_first)
    return found
