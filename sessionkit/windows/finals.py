"""Final results by Kafka's rules, over what a kernel decided: when they are looked for, and which sessions are found.

The looks of a partition cut time into spans one behind the other, so that a window can be found by one of them alone:
the first whose span reaches its time. What is left is whether the window was in the store then, as it was.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sessionkit.base.arrays import Codes, Longs
from sessionkit.base.compiled import compiled_loop
from sessionkit.base.durations import INT64_MAX


class Looks(NamedTuple):
    """Each look for final results: its record, and the span of times, ends of sessions or else starts, that it reads.

    In order of partition, and within that of record.
    """

    at: Longs
    lowest_ms: Longs
    highest_ms: Longs
    first: Longs  # that of each partition; and how many there are


@compiled_loop
def _windows_differ(t, other, length, advance):  # type: ignore[no-untyped-def]
    """Whether two times lie in different windows; `other` is not before 0."""
    if t // advance != other // advance:
        return True
    return max(0, t - length + advance) // advance != max(0, other - length + advance) // advance


@compiled_loop
def find_looks(  # type: ignore[no-untyped-def]
    rows, first, may_look, stream_time_ms, clock_ms, close_lag, length, advance, interval, last, at, lowest_ms,
    highest_ms,
):  # fmt: skip
    """Notes the looks of one partition, whose records are `rows`; (how many there are then, the last close time).

    Windows start at the multiples of `advance`; it is 0 of others. `length` is how long they are behind their times.

    Source: AbstractKStreamTimeWindowAggregateProcessor.maybeForwardFinalResult; see also the processors' `closed`.
    """
    following = 0
    count = first
    for place in range(rows.shape[0]):
        i = rows[place]
        if not may_look[i]:
            continue
        now = clock_ms[i] if clock_ms.shape[0] else 0
        if now < following:
            continue
        following = now + interval
        close = stream_time_ms[i] - close_lag
        if last != -1 and close <= last:
            continue
        if advance:
            lowest, highest = (0 if last == -1 else max(0, last - length) + 1), close - length
            if highest < 0 or (last != -1 and not _windows_differ(highest, lowest - 1, length, advance)):
                continue
        else:
            lowest, highest = max(0, last - length), close - 1 - length
            if highest < lowest:
                continue
        last = close
        at[count], lowest_ms[count], highest_ms[count] = i, lowest, highest
        count += 1
    return count, last


@compiled_loop
def _look_for(looks, p, time, until):  # type: ignore[no-untyped-def]
    """The look of a partition whose span has this time, if it comes before record `until`; else -1."""
    low, high = looks.first[p], looks.first[p + 1]
    end = high
    while low < high:
        middle = (low + high) // 2
        if looks.highest_ms[middle] >= time:
            high = middle
        else:
            low = middle + 1
    if low == end or looks.lowest_ms[low] > time or looks.at[low] >= until:
        return -1
    return low


@compiled_loop
def find_final_sessions(  # type: ignore[no-untyped-def]
    window, merges, start_ms, end_ms, loaded_start_ms, loaded_end_ms, close_ms, partition, looks, held_from_ms,
    until, found,
):  # fmt: skip
    """Notes each session that a look finds as (look, window, start, end, record after which it was so); how many.

    `until` has room for a record of each session: at first none touches it again. `close_ms` is the close time with
    each record, `held_from_ms` the first end that the store has at each look. A loaded session that nothing has touched
    has record -1.
    """
    count = 0
    m = merges.at.shape[0]
    records = window.shape[0]
    for step in range(records + loaded_start_ms.shape[0]):
        i = records - 1 - step
        if i >= 0:
            w, start, end = window[i], start_ms[i], end_ms[i]
        else:
            i, w = -1, step - records
            start, end = loaded_start_ms[w], loaded_end_ms[w]
        if w < 0:
            continue
        after = until[w]
        if after == records or close_ms[after] > end:  # else no look comes in between that is late enough
            k = _look_for(looks, partition[w], end, after)
            if k >= 0 and end >= held_from_ms[k]:
                found.look[count], found.window[count], found.step[count] = k, w, i
                found.start_ms[count], found.end_ms[count] = start, end
                count += 1
        if i >= 0:
            until[w] = i
            while m > 0 and merges.at[m - 1] == i:
                m -= 1
                until[merges.absorbed[m]] = i
    return count


@compiled_loop
def find_final_windows(start_ms, partition, looks, visible_from_ms, look, window):  # type: ignore[no-untyped-def]
    """Notes (look, window) of each time window that a look finds; how many. It stays as it is, since it closed before.

    `visible_from_ms` is the first start that the store shows at each look.
    """
    count = 0
    for w in range(start_ms.shape[0]):
        k = _look_for(looks, partition[w], start_ms[w], INT64_MAX)
        if k >= 0 and start_ms[w] >= visible_from_ms[k]:
            look[count], window[count] = k, w
            count += 1
    return count


class Finals(NamedTuple):
    """Windows that looks found, as they were then."""

    look: Longs
    window: Codes
    start_ms: Longs
    end_ms: Longs
    step: Longs  # after which it was so; -1: as it was loaded; AT_END: it stays so

    @classmethod
    def room(cls, count: int) -> Finals:
        """Room for so many; memory that none of them needs is never touched."""
        longs = [np.empty(count, np.int64) for _ in range(4)]
        return cls(longs[0], np.empty(count, np.int32), *longs[1:])

    def take(self, rows: Longs | slice) -> Finals:
        """Those at `rows`."""
        taken: Any = [column[rows] for column in self]
        return Finals(*taken)
