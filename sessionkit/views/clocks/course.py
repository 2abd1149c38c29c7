"""How the stream times of partitions moved beside each other, record by record in the order of arrival."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sessionkit.trace.trace import Trace

Integers = npt.NDArray[np.int64]


class Stands(NamedTuple):
    """Each time that a partition had one stream time: from when on, until when, by partition and order.

    A place is a number of records that have arrived: 0 is before the first one.
    """

    partition: Integers  # its code
    time_ms: Integers
    first: Integers  # the place from which it stood there
    last: Integers  # the last place at which it did


class Course:
    """The stream time of each partition beside the newest one of all, the leader's.

    A partition has none before its first record that moves it, unless a store brought one.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.count = len(trace.batch.partitions)

    @cached_property
    def leader_ms(self) -> Integers:
        """The newest stream time of all partitions, at each place; -1 while there is none."""
        first = int(self._trace.first_stream_time_ms.max(initial=-1))
        return np.maximum.accumulate(np.append(first, self._trace.stream_time_ms))

    @cached_property
    def stands(self) -> Stands:
        """Every stream time that a partition had."""
        trace = self._trace
        partition, brought = trace.batch.partition.astype(np.int64), trace.first_stream_time_ms
        codes = np.concatenate([np.arange(self.count), partition])
        times = np.concatenate([brought, trace.stream_time_ms])
        place = np.concatenate([np.zeros(self.count, np.int64), np.arange(1, len(partition) + 1)])
        order = np.argsort(codes, kind="stable")
        codes, times, place = codes[order], times[order], place[order]
        moved = np.append(True, (np.diff(times) > 0) | (np.diff(codes) > 0)) & (times >= 0)
        codes, times, place = codes[moved], times[moved], place[moved]
        is_last = np.append(np.diff(codes) > 0, True)[: len(codes)]
        last = np.where(is_last, len(partition), np.append(place[1:], 0)[: len(codes)] - 1)
        return Stands(codes, times, place, last)

    @cached_property
    def behind_ms(self) -> tuple[Integers, Integers]:
        """How far behind the leader each stand was, as it began and as it ended."""
        stands, leader = self.stands, self.leader_ms
        return leader[stands.first] - stands.time_ms, leader[stands.last] - stands.time_ms

    @cached_property
    def moved_on_ms(self) -> Integers:
        """By how much the leader went on during each stand."""
        begin, end = self.behind_ms
        return end - begin

    @cached_property
    def mean_behind_ms(self) -> npt.NDArray[np.float64]:
        """How far each partition was behind on average of the arrivals since it has a stream time; NaN if never."""
        stands = self.stands
        summed = np.cumsum(np.append(0.0, self.leader_ms.astype(np.float64)))
        first = np.maximum(stands.first, 1)  # place 0 is after no arrival
        arrivals = np.maximum(stands.last - first + 1, 0)
        total = summed[stands.last + 1] - summed[first] - stands.time_ms * arrivals.astype(np.float64)
        total = np.where(arrivals > 0, total, 0.0)
        sums, counts = (np.bincount(stands.partition, weights, self.count) for weights in (total, arrivals))
        return np.divide(sums, counts, out=np.full(self.count, np.nan), where=counts > 0)

    @cached_property
    def most_behind_ms(self) -> Integers:
        """How far each partition was behind at most; -1 if it never had a stream time."""
        most = np.full(self.count, -1)
        np.maximum.at(most, self.stands.partition, self.behind_ms[1])
        return most

    @cached_property
    def last_stand(self) -> Integers:
        """The stand of each partition at the end; -1 if it never had a stream time."""
        last = np.full(self.count, -1)
        last[self.stands.partition] = np.arange(len(self.stands.partition))
        return last

    @cached_property
    def led_count(self) -> Integers:
        """After how many arrivals each partition was the leader: the one that reached the newest time first."""
        trace, leader = self._trace, self.leader_ms
        took = trace.stream_time_ms > leader[:-1]
        since = np.maximum.accumulate(np.where(took, np.arange(len(took)), -1))
        holder = trace.batch.partition[since].astype(np.int64)
        first = int(np.argmax(trace.first_stream_time_ms)) if self.count and leader[0] >= 0 else -1
        holder = np.where(since >= 0, holder, first)
        return np.bincount(holder[holder >= 0], minlength=self.count)

    @cached_property
    def record_count(self) -> Integers:
        """How many records each partition has."""
        return np.bincount(self._trace.batch.partition[self._trace.is_record], minlength=self.count)

    @property
    def comes_one_after_the_other(self) -> bool:
        """Whether the rows stand partition by partition: how these arrived beside each other is then not known."""
        partition, seen = self._trace.batch.partition, int((self.record_count > 0).sum())
        steps = np.diff(partition)
        in_turn = bool((steps >= 0).all()) and int((steps > 0).sum()) == seen - 1
        return in_turn and seen > 1 and len(partition) > 2 * seen
