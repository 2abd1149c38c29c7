"""Calendar windows: days, weeks, months, quarters and years of a time zone."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple, cast, get_args

import numpy as np

from sessionkit.base.arrays import Longs, distinct
from sessionkit.base.calls import answers_names, called_as
from sessionkit.base.durations import MAX_DURATION_MS, Duration, duration_code, length_ms, retention_ms, show_duration
from sessionkit.base.moments import known_zone, zone_of
from sessionkit.base.text import one_of
from sessionkit.errors import InvalidArgument, NumberOverflow, problem
from sessionkit.stores.contract import Store, WindowStore
from sessionkit.windows.contract import Times, window_kind
from sessionkit.windows.feed import Decided, Feed
from sessionkit.windows.hopping import EndsProcessor, OfATime
from sessionkit.windows.hopping_kernel import Lengths, run_by_record
from sessionkit.windows.processor import Aggregates

Unit = Literal["day", "week", "month", "quarter", "year"]
Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
EPOCH, END = dt.date(1970, 1, 1), dt.date(2200, 1, 1)
SECOND = dt.timedelta(seconds=1)


def _first_second(date: dt.date, zone: dt.tzinfo) -> int:
    """The second since 1970 with which a date begins in a zone; of a date that the zone left out, that of the next."""
    midnight = dt.datetime(date.year, date.month, date.day, tzinfo=zone)
    before, after = cast(dt.timedelta, midnight.utcoffset()), cast(dt.timedelta, midnight.replace(fold=1).utcoffset())
    local = (date - EPOCH) // SECOND
    first, last = local - after // SECOND, local - before // SECOND
    while last - first > 1:  # the clock jumped over midnight: where is found by bisection
        middle = (first + last) // 2
        jumped = dt.datetime.fromtimestamp(middle, zone).utcoffset() == after
        first, last = (first, middle) if jumped else (middle, last)
    return last


def _begins(date: dt.date, unit: Unit, first_weekday: int) -> bool:
    """Whether a unit begins with this date."""
    if unit == "week":
        return date.weekday() == first_weekday
    months = {"day": 0, "month": 1, "quarter": 3, "year": 12}[unit]
    return not months or (date.day == 1 and (date.month - 1) % months == 0)


class _Bounds(NamedTuple):
    """When the windows of a calendar begin, rising from 0; the last bound is only an end. Also their even grid."""

    at_ms: Longs
    longest_ms: int

    def number(self, times_ms: Any) -> Any:
        """Which window each of these times is in."""
        return np.clip(np.searchsorted(self.at_ms, times_ms, side="right") - 1, 0, len(self.at_ms) - 2)

    def moved(self, times_ms: Longs, /) -> Longs:
        """These times as if all windows were as long as the longest."""
        number = self.number(times_ms)
        moved: Longs = times_ms - self.at_ms[number] + number * self.longest_ms
        return moved

    def back(self, moved_ms: Longs, /) -> Longs:
        """Times on the even grid as they were."""
        number, after_ms = np.divmod(moved_ms, self.longest_ms)
        return self.at_ms[number] + after_ms


@cache
def _bounds(unit: Unit, timezone: str, first_weekday: int) -> _Bounds:
    zone, dates = zone_of(timezone), map(dt.date.fromordinal, range(EPOCH.toordinal(), END.toordinal() + 1))
    starts = [1_000 * _first_second(date, zone) for date in dates if _begins(date, unit, first_weekday)]
    at_ms = distinct(np.maximum(np.array([0, *starts], np.int64), 0))
    at_ms.flags.writeable = False
    return _Bounds(at_ms, int(np.diff(at_ms).max()))


@window_kind
@answers_names("sk.CalendarWindows")
@dataclass(frozen=True, init=False)
class CalendarWindows(OfATime):
    """The days, weeks, months, quarters or years of a time zone: a record is in one; its start is in it, its end not.

    A day begins at the first instant of its date, so that one has 23, 24 or 25 hours where clocks change, and a date
    that was left out has none. Longer windows begin with their first day. A window closes once stream time reaches its
    end plus `grace`. The first is cut at 0, 1970-01-01 in UTC; the last ends with 2199. Kafka has no such windows.

    Args:
        unit: "day", "week", "month", "quarter" or "year".
        timezone: a name of the IANA time zone database, such as "Europe/Berlin".
        grace: how long after its end a window still takes late records; 0 is allowed, leaving it out is not.
        week_starts: the first day of weeks, "monday" to "sunday"; of weeks alone.
        grace_ms: the same as a number, in whole milliseconds.
    Raises:
        InvalidArgument: there is no such unit, zone or weekday; or the grace is missing, given twice or out of bounds.
        NumberOverflow: by a run, over a record after 2199.
        NotBuilt: by what is Kafka's, such as a deployment or an audit, and by the exports.
    Source:
        The IANA time zone database, as Python's `zoneinfo` has it.
    Example:
        >>> CalendarWindows("day", timezone="Europe/Berlin", grace="1h").windows_for(1_774_750_000_000)
        [(1774738800000, 1774821600000)]
    """

    unit: Unit
    timezone: str
    grace_ms: int
    week_starts: Weekday

    advance_ms = None  # one is not as long as another
    caches_on_close = False
    not_in_kafka = ("Kafka has no calendar windows", 'sk.TimeWindows(size="1d", …), the days of UTC')

    @called_as('sk.CalendarWindows("day", timezone="Europe/Berlin", grace="1h")')
    def __init__(
        self,
        unit: Unit,
        *,
        timezone: str,
        grace: Duration | None = None,
        week_starts: Weekday = "monday",
        grace_ms: int | None = None,
    ) -> None:
        object.__setattr__(self, "unit", one_of("unit", unit, get_args(Unit)))
        object.__setattr__(self, "timezone", known_zone(str(timezone)))
        object.__setattr__(self, "grace_ms", length_ms(grace, grace_ms, "grace"))
        object.__setattr__(self, "week_starts", one_of("week_starts", week_starts, get_args(Weekday)))
        if unit != "week" and week_starts != "monday":
            got = f"{unit!r} with week_starts={week_starts!r}"
            raise InvalidArgument(problem("week_starts is of weeks alone", got, "leave it out"))
        if self.reach_ms + self.grace_ms > MAX_DURATION_MS:
            got = f"{self.reach_ms + self.grace_ms} ms"
            raise InvalidArgument(problem("window and grace together must be at most 2**62 ms", got, "shorten grace"))

    @property
    def _bounds(self) -> _Bounds:
        return _bounds(self.unit, self.timezone, get_args(Weekday).index(self.week_starts))

    @property
    def reach_ms(self) -> int:
        """How far after its time a record's window can end: the longest there is."""
        return self._bounds.longest_ms

    @property
    def reach_name(self) -> str:
        """What `reach_ms` is."""
        return f"longest {self.unit}"

    def retention_ms(self, retention: Duration | None) -> int:
        """How long a window can be found, from its start: `retention`, or the smallest allowed.

        Raises:
            InvalidArgument: shorter than the longest window and the grace.
        """
        return retention_ms(retention, self.reach_ms + self.grace_ms, f"the {self.reach_name} + grace")

    def bounds_ms(self, times_ms: Longs) -> Longs:
        """The bounds of the windows of these times, and of those between them."""
        numbers = self._bounds.number(times_ms) if len(times_ms) else np.zeros(1, np.int64)
        return self._bounds.at_ms[numbers.min() : numbers.max() + 2]

    def windows_for(self, timestamp_ms: int) -> list[tuple[int, int]]:
        """(start, end) of the one window that a record of this time is in.

        Raises:
            NumberOverflow: a time after the last window.
        """
        self._check_latest(timestamp_ms)
        number = int(self._bounds.number(timestamp_ms))
        return [(int(self._bounds.at_ms[number]), int(self._bounds.at_ms[number + 1]))]

    def ends_ms(self, starts_ms: Times) -> Times:
        """The ends of windows that start at these times."""
        ends = self._bounds.at_ms[self._bounds.number(starts_ms) + 1]
        found: Any = ends if np.ndim(starts_ms) else int(ends)
        return found

    def last_instants_ms(self, timestamps_ms: Longs) -> Longs:
        """The last instants of the windows of these times, each once, rising."""
        return distinct(self.ends_ms(timestamps_ms) - 1)

    def processor(self, aggregates: Aggregates, store: Store, partition: int, **options: Any) -> EndsProcessor:
        """The record-at-a-time processor of one partition."""
        return EndsProcessor(self, aggregates, cast(WindowStore, store), partition, **options)

    def run(self, feed: Feed, folds: Mapping[str, Any], retention_ms: int) -> Decided:
        """The compiled pass over columns: that of tumbling windows, on an even grid."""
        if len(feed):
            self._check_latest(int(feed.batch.timestamp_ms.max()))
        return run_by_record(self._lengths, feed, folds)

    @property
    def _lengths(self) -> Lengths:
        return Lengths(self.reach_ms, self.reach_ms, self.grace_ms, self._bounds)

    def _check_latest(self, timestamp_ms: int) -> None:
        if timestamp_ms >= (end_ms := int(self._bounds.at_ms[-1])):
            what = f"the {self.unit}s of a calendar are known up to the end of 2199"
            raise NumberOverflow(problem(what, f"timestamp {timestamp_ms}", f"a time before {end_ms}"))

    def arguments(self) -> tuple[Callable[..., Any], dict[str, Any]]:
        """(callable, keyword arguments) that make these windows again."""
        fields = ("unit", "timezone", "week_starts", "grace_ms")
        return CalendarWindows, {name: getattr(self, name) for name in fields}

    def in_words(self) -> str:
        """The parameters as a person says them."""
        weekday = f" from {self.week_starts.capitalize()}" if self.unit == "week" else ""
        return f"calendar {self.unit}s{weekday} of {self.timezone}, grace {show_duration(self.grace_ms)}"

    def __repr__(self) -> str:
        weekday = "" if self.week_starts == "monday" else f', week_starts="{self.week_starts}"'
        grace = f'grace="{duration_code(self.grace_ms)}"'
        return f'CalendarWindows("{self.unit}", timezone="{self.timezone}", {grace}{weekday})'
