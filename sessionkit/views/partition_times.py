"""The stream times of partitions beside each other: who is ahead, who is behind, who stands still."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.base.calls import answers_calls
from sessionkit.base.durations import show_duration
from sessionkit.base.text import escape_html, html_block, plural
from sessionkit.trace.trace import Trace
from sessionkit.views.drop_calendar.cells import DAY, HOUR, MINUTE, SECOND, whole_percents
from sessionkit.views.tables import frame_of
from sessionkit.views.words import clock, in_zone, zone_named
from sessionkit.windows.contract import WindowKind

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


MUCH_AHEAD, LEAST_AHEAD = 1.5, 0.1  # times as often as if all took turns, and in this share of the arrivals
NAMED = 3  # partitions that stand still; the others are counted
# A length of at least so much is said to the next so much.
_ROUNDED = ((10 * DAY, DAY), (DAY, HOUR), (HOUR, MINUTE), (10 * SECOND, SECOND), (SECOND, 100))


@answers_calls("times")
@dataclass(frozen=True, repr=False)
class PartitionTimes:
    """How far the stream time of each partition is behind that of the one that is ahead, arrival by arrival.

    A partition closes its windows by its own stream time alone: while no record moves it, nothing of it becomes final,
    however far the others are. A notebook shows its sentences; `table()` has the numbers.

    Example:
        >>> start = sk.group_by_key("carrier", timestamp="scheduled", timezone="UTC", partitions=3)
        >>> times = start.windowed_by(waves.windows).count().run(flights).partition_times()
        >>> print(times.words()[1])
        Partition 1 stood still at 2013-07-04 21:08:00 while the others moved on by 7 h 52 min, and then went on.
        >>> times.table()["behind_ms"].tolist()
        [0, 5760000, 4800000]
    """

    trace: Trace
    windows: WindowKind

    def table(self) -> Any:
        """One row per partition: partition, records, stream_time, and how far it is behind the one that is ahead.

        `behind_ms` is at the end, `mean_behind_ms` on average of the arrivals, `most_behind_ms` at most. `moved_on_ms`
        is how far the leader went since the partition last moved, `led_count` after how many arrivals it was the leader
        itself, and `open_count` how many of its windows nothing has closed.
        """
        course, batch = self._course, self.trace.batch
        begin, end = course.behind_ms
        last, never = course.last_stand, course.last_stand < 0

        def of_last(values: npt.NDArray[Any]) -> pa.Array:
            return pa.array(np.append(values, 0)[last], mask=never)

        found = {
            "partition": batch.partitions,
            "records": course.record_count,
            "stream_time_ms": of_last(course.stands.time_ms),
            "behind_ms": of_last(end),
            "mean_behind_ms": pa.array(course.mean_behind_ms, mask=np.isnan(course.mean_behind_ms)),
            "most_behind_ms": pa.array(course.most_behind_ms, mask=never),
            "moved_on_ms": of_last(end - begin),
            "led_count": course.led_count,
            "open_count": self._open_count,
        }
        return frame_of(found, batch)

    def words(self) -> list[str]:
        """Who is ahead, who is furthest behind, and who stands still while the others move on."""
        if not len(self.trace):
            return ["There are no records."]
        if len(self.trace.batch.partitions) == 1:
            return ["There is one partition: nothing is ahead of it or behind it."]
        if not self._seen:
            return ["No partition has a stream time: no record moved one."]
        if self._seen == 1:
            (only,) = np.flatnonzero(self._course.last_stand >= 0).tolist()
            return [f"Only partition {self._name(only)} has a stream time: no record moved another one."]
        if self._course.comes_one_after_the_other:
            return [
                "The rows stand partition by partition: how these arrived beside each other is not known.",
                *self._at_end(),
                *self._without_time(),
            ]
        return [*self._ahead_and_behind(), *self._standing(), *self._without_time()]

    def _ahead_and_behind(self) -> list[str]:
        course = self._course
        if not course.most_behind_ms.max():
            return [f"All {self._seen:,} partitions have the same stream time, at any moment."]
        ahead = int(np.argmax(course.led_count))
        share = whole_percents(int(course.led_count[ahead]) / len(self.trace))
        behind = int(np.nanargmax(course.mean_behind_ms))
        mean, most = int(course.mean_behind_ms[behind]), int(course.most_behind_ms[behind])
        name = self._name(behind)
        last = f"partition {name} is furthest behind, by {about(mean)} on average and {about(most)} at most."
        if course.led_count[ahead] < max(MUCH_AHEAD / self._seen, LEAST_AHEAD) * len(self.trace):  # they take turns
            return [last.capitalize()]
        return [f"Partition {self._name(ahead)} is ahead after {share} of the arrivals; {last}"]

    def _at_end(self) -> list[str]:
        course = self._course
        order = np.argsort(course.behind_ms[1][course.last_stand] * (course.last_stand >= 0), kind="stable")
        behind = int(order[-1])
        lag = int(course.behind_ms[1][course.last_stand[behind]])
        if not lag:
            return ["All end at the same stream time."]
        return [
            f"At the end partition {self._name(behind)} is furthest behind, by {about(lag)}{self._left_open(behind)}."
        ]

    def _standing(self) -> list[str]:
        """The partitions that stand still at the end, else the longest time that one did before."""
        course, stands = self._course, self._course.stands
        moved_on = course.moved_on_ms
        at_end = course.last_stand[course.last_stand >= 0]
        still = at_end[moved_on[at_end] > self._standstill_ms]
        still = still[np.argsort(-moved_on[still], kind="stable")]
        said = [self._stands(int(stand)) for stand in still[:NAMED]]
        if (more := len(still) - NAMED) > 0:
            said.append(f"{more:,} more {'stands' if more == 1 else 'stand'} still as well.")
        longest = int(np.argmax(moved_on))
        if said or moved_on[longest] <= self._standstill_ms:
            return said
        when = self._when(int(stands.time_ms[longest]))
        name = self._name(int(stands.partition[longest]))
        return [
            f"Partition {name} stood still at {when} while {self._others} moved on by "
            f"{about(int(moved_on[longest]))}, and then went on."
        ]

    def _stands(self, stand: int) -> str:
        stands, moved_on = self._course.stands, int(self._course.moved_on_ms[stand])
        partition, when = int(stands.partition[stand]), self._when(int(stands.time_ms[stand]))
        name, left = self._name(partition), self._left_open(partition)
        return f"Partition {name} stands still at {when} while {self._others} moved on by {about(moved_on)}{left}."

    @property
    def _others(self) -> str:
        return "the other" if self._seen == 2 else "the others"

    def _left_open(self, partition: int) -> str:
        count, noun = int(self._open_count[partition]), self.windows.noun
        if not count:
            return f": none of its {noun}s is open"
        return f": its open {noun} stays open" if count == 1 else f": its {count:,} open {noun}s stay open"

    def _without_time(self) -> list[str]:
        without = np.flatnonzero(self._course.last_stand < 0)
        if not len(without):
            return []
        if len(without) == 1:
            return [f"Partition {self._name(int(without[0]))} has no stream time: no record moved it."]
        return [f"{plural(len(without), 'partition')} have no stream time: no record moved them."]

    def _when(self, ms: int) -> str:
        """A stream time, to the second where it is a date."""
        return clock(self.trace)(ms // SECOND * SECOND if zone_named(self.trace) else ms)

    def _name(self, code: int) -> int:
        return int(self.trace.batch.partitions[code])

    @cached_property
    def _course(self) -> Course:
        return Course(self.trace)

    @property
    def _seen(self) -> int:
        """How many partitions have a stream time."""
        return int((self._course.last_stand >= 0).sum())

    @property
    def _standstill_ms(self) -> int:
        """When the leader went on by more than this, each window that was open would be final in a moving partition."""
        return int(self.windows.close_lag_ms + self.trace.longest_made_ms)

    @cached_property
    def _open_count(self) -> npt.NDArray[np.int64]:
        """How many windows of each partition nothing has closed."""
        is_open = self.trace.is_standing & (self.trace.closed_by < 0)
        return np.bincount(self.trace.window_columns.partition[is_open], minlength=self._course.count)

    @property
    def _said(self) -> list[str]:
        return [*self.words(), *(in_zone(self.trace) if self._seen > 1 else [])]

    def __repr__(self) -> str:
        return " ".join(self._said)

    def _repr_html_(self) -> str:
        return html_block("".join(f"<p>{escape_html(line)}</p>" for line in self._said))


def about(ms: int) -> str:
    """A length as a person says it, without the digits that do not matter.

    Example:
        >>> about(7_384_913), about(93_784_913), about(61_999), about(0)
        ('2 h 3 min', '1 d 2 h', '1 min 2 s', '0 s')
    """
    step = next((step for least, step in _ROUNDED if ms >= least), 1)
    return show_duration((ms + step // 2) // step * step)
