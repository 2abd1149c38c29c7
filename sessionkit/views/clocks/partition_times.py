"""The stream times of partitions beside each other: who is ahead, who is behind, who stands still."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.base.calls import answers_calls
from sessionkit.base.durations import show_duration
from sessionkit.base.text import escape_html, html_block, plural
from sessionkit.trace.trace import Trace
from sessionkit.views.clocks.calendar import DAY, HOUR, MINUTE, SECOND
from sessionkit.views.clocks.course import Course
from sessionkit.views.clocks.usual_times import whole_percents
from sessionkit.views.tables import frame_of
from sessionkit.views.words import clock, in_zone, zone_named
from sessionkit.windows.contract import WindowKind

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
