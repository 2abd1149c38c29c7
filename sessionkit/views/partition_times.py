"""The stream times of partitions beside each other: how far each is behind the one that is ahead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.base.arrays import Floats, Longs
from sessionkit.base.calls import answers_calls
from sessionkit.base.text import plural
from sessionkit.records.frames import Frame
from sessionkit.trace.trace import Trace
from sessionkit.views.tables import frame_of
from sessionkit.windows.contract import WindowKind


class Stands(NamedTuple):
    """Each time that a partition had one stream time: from when on, until when, by partition and order.

    A place is a number of records that have arrived: 0 is before the first one.
    """

    partition: Longs  # its code
    time_ms: Longs
    first: Longs  # the place from which it stood there
    last: Longs  # the last place at which it did


@answers_calls("times")
@dataclass(frozen=True, repr=False)
class PartitionTimes(Generic[Frame]):
    """How far the stream time of each partition is behind that of the one that is ahead, arrival by arrival.

    A partition closes its windows by its own stream time alone: while no record moves it, nothing of it becomes final,
    however far the others are. `table()` has the numbers.

    Example:
        >>> start = sk.group_by_key("carrier", timestamp="scheduled", timezone="UTC", partitions=3)
        >>> times = start.windowed_by(waves.windows).count().run(flights).partition_times()
        >>> times.table()[["partition", "behind_ms", "stood_still_ms"]].values.tolist()
        [[0, 0, 20760000], [1, 5760000, 28320000], [2, 4800000, 9840000]]
    """

    trace: Trace
    windows: WindowKind

    def table(self) -> Frame:
        """One row per partition: partition, records, stream_time, and how far it is behind the one that is ahead.

        `behind_ms` is at the end, `mean_behind_ms` on average of the arrivals, `most_behind_ms` at most. `moved_on_ms`
        is how far the leader went since the partition last moved, `stood_still_ms` the most that it ever went while the
        partition stood still. `led_count` is after how many arrivals the partition was the leader itself, `open_count`
        how many of its windows nothing has closed.
        """
        trace, batch, count = self.trace, self.trace.batch, len(self.trace.batch.partitions)
        leader = np.maximum.accumulate(np.append(trace.first_stream_time_ms.max(initial=-1), trace.stream_time_ms))
        stands = _stands(trace)
        begin, end = leader[stands.first] - stands.time_ms, leader[stands.last] - stands.time_ms
        last = np.full(count, -1)
        last[stands.partition] = np.arange(len(stands.partition))
        most, still = np.full(count, -1), np.full(count, -1)
        np.maximum.at(most, stands.partition, end)
        np.maximum.at(still, stands.partition, end - begin)
        never, mean = last < 0, _mean_behind_ms(stands, leader, count)
        is_open = trace.is_standing & (trace.closed_by < 0)

        def of_last(values: npt.NDArray[Any]) -> pa.Array:
            return pa.array(np.append(values, 0)[last], mask=never)

        found = {
            "partition": batch.partitions,
            "records": np.bincount(batch.partition[trace.is_record], minlength=count),
            "stream_time_ms": of_last(stands.time_ms),
            "behind_ms": of_last(end),
            "mean_behind_ms": pa.array(mean, mask=np.isnan(mean)),
            "most_behind_ms": pa.array(most, mask=never),
            "moved_on_ms": of_last(end - begin),
            "stood_still_ms": pa.array(still, mask=never),
            "led_count": _led_count(trace, leader),
            "open_count": np.bincount(trace.window_columns.partition[is_open], minlength=count),
        }
        return frame_of(found, batch)

    def __repr__(self) -> str:
        partition, count = self.trace.batch.partition, len(self.trace.batch.partitions)
        if count <= 1 or not len(partition):
            return "There is one partition: nothing is ahead of it or behind it." if count else "There are no records."
        said = f"{plural(count, 'partition')}; .table() says how far each is behind the one that is ahead."
        steps, seen = np.diff(partition), len(np.unique(partition))
        if seen > 1 and (steps >= 0).all() and int((steps > 0).sum()) == seen - 1 and len(partition) > 2 * seen:
            said += " The rows stand partition by partition: how these arrived beside each other is not known."
        return said


def _stands(trace: Trace) -> Stands:
    """Every stream time that a partition had: it has none before its first record, unless a store brought one."""
    count, partition = len(trace.batch.partitions), trace.batch.partition.astype(np.int64)
    codes = np.concatenate([np.arange(count), partition])
    times = np.concatenate([trace.first_stream_time_ms, trace.stream_time_ms])
    place = np.concatenate([np.zeros(count, np.int64), np.arange(1, len(partition) + 1)])
    order = np.argsort(codes, kind="stable")
    codes, times, place = codes[order], times[order], place[order]
    moved = np.append(True, (np.diff(times) > 0) | (np.diff(codes) > 0)) & (times >= 0)
    codes, times, place = codes[moved], times[moved], place[moved]
    is_last = np.append(np.diff(codes) > 0, True)[: len(codes)]
    last = np.where(is_last, len(partition), np.append(place[1:], 0)[: len(codes)] - 1)
    return Stands(codes, times, place, last)


def _mean_behind_ms(stands: Stands, leader_ms: Longs, count: int) -> Floats:
    """How far each partition was behind on average of the arrivals since it has a stream time; NaN if never."""
    summed = np.cumsum(np.append(0.0, leader_ms.astype(np.float64)))
    first = np.maximum(stands.first, 1)  # place 0 is after no arrival
    arrivals = np.maximum(stands.last - first + 1, 0)
    total = summed[stands.last + 1] - summed[first] - stands.time_ms * arrivals.astype(np.float64)
    total = np.where(arrivals > 0, total, 0.0)
    sums, counts = (np.bincount(stands.partition, weights, count) for weights in (total, arrivals))
    return np.divide(sums, counts, out=np.full(count, np.nan), where=counts > 0)


def _led_count(trace: Trace, leader_ms: Longs) -> Longs:
    """After how many arrivals each partition was the leader: the one that reached the newest time first."""
    took, count = trace.stream_time_ms > leader_ms[:-1], len(trace.batch.partitions)
    since = np.maximum.accumulate(np.where(took, np.arange(len(took)), -1))
    holder = trace.batch.partition[since].astype(np.int64)
    first = int(np.argmax(trace.first_stream_time_ms)) if count and leader_ms[0] >= 0 else -1
    holder = np.where(since >= 0, holder, first)
    return np.bincount(holder[holder >= 0], minlength=count)
