"""A kind of window of one's own, in one file: the calendar days of a time zone, where a day has 23 to 25 hours."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt

from sessionkit.errors import InvalidArgument, NumberOverflow, problem
from sessionkit.windows import (
    ADDED,
    LATE,
    OPENED,
    Aggregates,
    Columns,
    Decided,
    Duration,
    Feed,
    Processor,
    Store,
    StoredWindow,
    Touches,
    WindowStore,
    WindowTouch,
    by_start,
    compiled_loop,
    duration_code,
    length_ms,
    retention_ms,
    show_duration,
    window_kind,
)

Times = TypeVar("Times", int, npt.NDArray[np.int64])
HOUR_MS = 3_600_000
FIRST, LAST = dt.date(1970, 1, 1), dt.date(2200, 1, 1)


@cache
def midnights_ms(timezone: str) -> npt.NDArray[np.int64]:
    """When each day from 1970 to 2200 begins there: int64, rising; the first is cut, as no window begins before 0."""
    zone = ZoneInfo(timezone)
    days = (FIRST + dt.timedelta(day) for day in range((LAST - FIRST).days + 1))
    starts = [int(dt.datetime(day.year, day.month, day.day, tzinfo=zone).timestamp()) * 1_000 for day in days]
    return np.unique(np.maximum(np.array([0, *starts], np.int64), 0))


@compiled_loop
def day_is_late(end_ms, close_time_ms):  # type: ignore[no-untyped-def]
    """THE late rule: the end is not in the day, so it closes with it. Two int64; processor and kernel both ask here."""
    return end_ms <= close_time_ms


@compiled_loop
def decide(slot, day, midnights, stream_time_ms, grace, decision):  # type: ignore[no-untyped-def]
    """Marks what is late, all else as added; how many are late. One search a record was made before, in `day`.

    slot: int32; day, midnights, stream_time_ms: int64; decision: uint8, to be filled; all of one dimension.
    """
    late = 0
    for i in range(slot.shape[0]):
        if slot[i] >= 0:
            is_late = day_is_late(midnights[day[i] + 1], stream_time_ms[i] - grace)
            decision[i] = LATE if is_late else ADDED
            late += is_late
    return late


@window_kind
@dataclass(frozen=True, init=False)
class CalendarDays:
    """The days of a time zone, from midnight to midnight: each record is in one; the start is in it, the end is not.

    Args:
        timezone: a name of the IANA time zone database, such as "Europe/Berlin".
        grace: how long after midnight a day still takes late records; `grace_ms` in milliseconds.
    Raises:
        InvalidArgument: there is no such zone, or no such grace.
    Example:
        >>> CalendarDays(timezone="Europe/Berlin", grace="1h")
        CalendarDays(timezone="Europe/Berlin", grace="1h")
    """

    timezone: str
    grace_ms: int

    noun = "day"
    holds = "windows"
    reach_ms = 25 * HOUR_MS
    reach_name = "a day"
    advance_ms = None  # one day is not as long as another
    inclusive_end = False
    takes_null_values = True
    is_ever_closed = True
    trailing_only = False
    caches_on_close = False
    not_in_kafka = ("Kafka has no windows of calendar days", "no deployment")

    def __init__(self, *, timezone: str, grace: Duration | None = None, grace_ms: int | None = None) -> None:
        try:
            midnights_ms(timezone)
        except (ZoneInfoNotFoundError, ValueError, TypeError) as error:
            raise InvalidArgument(problem("there is no such time zone", repr(timezone), '"Europe/Berlin"')) from error
        object.__setattr__(self, "timezone", timezone)
        object.__setattr__(self, "grace_ms", length_ms(grace, grace_ms, "grace"))

    @property
    def close_lag_ms(self) -> int:
        """Time that is subtracted from stream time to get the close time."""
        return self.grace_ms

    @property
    def _midnights(self) -> npt.NDArray[np.int64]:
        return midnights_ms(self.timezone)

    @staticmethod
    def is_late(end_ms: int, close_time_ms: int) -> bool:
        """THE late rule, as the kernel asks it."""
        return bool(day_is_late(end_ms, close_time_ms))

    def retention_ms(self, retention: Duration | None) -> int:
        """`retention`, or the longest day and the grace."""
        return retention_ms(retention, self.reach_ms + self.grace_ms, "25 hours + grace")

    def days_of(self, times_ms: Any) -> npt.NDArray[np.int64]:
        """Which day each of these times is in, counted from the first.

        Raises:
            NumberOverflow: a time after 2199.
        """
        day = np.searchsorted(self._midnights, times_ms, side="right") - 1
        if np.size(day) and np.max(day) + 1 >= len(self._midnights):
            raise NumberOverflow(problem("the days are known up to 2199", int(np.max(times_ms)), "an earlier time"))
        return day

    def windows_for(self, timestamp_ms: int) -> list[tuple[int, int]]:
        """(start, end) of the day."""
        day = int(self.days_of(timestamp_ms))
        return [(int(self._midnights[day]), int(self._midnights[day + 1]))]

    def ends_ms(self, starts_ms: Times) -> Times:
        """The midnights after these times."""
        ends = self._midnights[self.days_of(starts_ms) + 1]
        return ends if isinstance(starts_ms, np.ndarray) else int(ends)

    def last_instant_ms(self, stored: StoredWindow, /) -> int:
        """The last millisecond of a stored day."""
        return self.ends_ms(stored.window_start_ms) - 1

    def last_instants_ms(self, timestamps_ms: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The last milliseconds of the days of these times, each once, rising."""
        return np.unique(self.ends_ms(timestamps_ms) - 1)

    def oldest_kept_end_ms(self, stream_time_ms: Times, retention_ms: int) -> Times:
        """Days that end before this are met by no later record."""
        return stream_time_ms - self.grace_ms + 1

    def forgets_in_words(self) -> str:
        """A day is closed before it is forgotten."""
        return "a day is closed before it is forgotten"

    def processor(self, aggregates: Aggregates, store: Store, partition: int, **options: Any) -> DayProcessor:
        """The record-at-a-time processor of one partition."""
        return DayProcessor(self, aggregates, cast(WindowStore, store), partition, **options)

    def run(self, feed: Feed, folds: Mapping[str, Any], retention_ms: int) -> Decided:
        """The pass over columns: one search and one window a record."""
        days = _Days(self, feed)
        for columns, record, window, _ in days.steps():
            for fold in folds.values():
                fold.grow(len(days.slot))
                fold.feed_touches(record, window, columns.lo)
        return days.decided()

    def touches(self, feed: Feed) -> Touches:
        """Every day that a record met or missed, in order of arrival."""
        days, kept = _Days(self, feed), []
        for columns, record, window, opened in days.steps():
            all_rows = np.flatnonzero(columns.slot >= 0)
            row = np.full(len(columns.slot), -1, np.int32)
            effect = np.full(len(columns.slot), LATE, np.uint8)
            row[record], effect[record] = window, np.where(opened, OPENED, ADDED)
            start_ms = self._midnights[self.days_of(columns.timestamp_ms[all_rows])]
            kept.append((all_rows + columns.lo, row[all_rows], effect[all_rows], start_ms))
        kinds = (np.int64, np.int32, np.uint8, np.int64)
        joined = [
            np.concatenate([np.empty(0, kind), *(part[i] for part in kept)]).astype(kind)
            for i, kind in enumerate(kinds)
        ]
        return Touches(*joined, source=np.full(len(joined[0]), -1, np.int32))

    def missed(self, feed: Feed) -> None:
        """None: the touches of closed windows are not known without all the others."""

    def arguments(self) -> tuple[Callable[..., Any], dict[str, Any]]:
        """(callable, keyword arguments) that make these windows again."""
        return CalendarDays, {"timezone": self.timezone, "grace_ms": self.grace_ms}

    def in_words(self) -> str:
        """The parameters as a person says them."""
        return f"calendar days of {self.timezone}, grace {show_duration(self.grace_ms)}"

    def code(self) -> str:
        """The Python expression that makes them, after `from tests.contract.examples.calendar_days import …`."""
        return repr(self)

    def __repr__(self) -> str:
        return f'CalendarDays(timezone="{self.timezone}", grace="{duration_code(self.grace_ms)}")'


class DayProcessor(Processor[WindowStore]):
    """One record at a time, over a store: the reference that the pass over columns is held against."""

    def __init__(
        self, windows: CalendarDays, aggregates: Aggregates, store: WindowStore, partition: int, **options: Any
    ) -> None:
        super().__init__(aggregates, store, partition, **options)
        self._windows = windows

    def process(self, key: Any, value: Any, timestamp_ms: int, offset: int) -> list[WindowTouch]:
        """Takes one record in."""
        self.stream_time_ms = max(self.stream_time_ms, timestamp_ms)
        ((start_ms, end_ms),) = self._windows.windows_for(timestamp_ms)
        if self._windows.is_late(end_ms, self.stream_time_ms - self._windows.grace_ms):
            return [WindowTouch(LATE, start_ms, end_ms)]
        old = self._store.fetch_window(key, start_ms, partition=self._partition)
        before = self._aggregates.initializer() if old is None else old.aggregate
        aggregate = self._aggregates.aggregator(key, value, before)
        newest_ms = timestamp_ms if old is None else max(timestamp_ms, old.timestamp_ms)
        window = StoredWindow(start_ms, aggregate, newest_ms, key, offset if old is None else old.opened_by)
        stored = self._store.write(window, partition=self._partition, keep_null=True)
        shown = None if self._aggregates.is_null(aggregate) else aggregate
        effect, was = (OPENED, None) if old is None else (ADDED, old.aggregate)
        return [WindowTouch(effect, start_ms, end_ms, shown, newest_ms, old=was, stored=stored)]

    def closed(self) -> list[StoredWindow]:
        """The days that became final with the last record, by start."""
        close_ms, before_ms = self.stream_time_ms - self._windows.grace_ms, self._schedule.last_close_time_ms
        if not self._schedule.is_due(close_ms) or close_ms < 0:
            return []
        self._schedule.last_close_time_ms = close_ms
        found = self._store.fetch_all(0, close_ms, partition=self._partition)
        return by_start(day for day in found if before_ms <= self._windows.last_instant_ms(day) < close_ms)


class _Days:
    """The days of one run as they come up, numbered in order; first those that were there before."""

    def __init__(self, windows: CalendarDays, feed: Feed) -> None:
        self._windows, self._feed, loaded = windows, feed, feed.loaded
        self.slot: list[int] = loaded.slot.tolist()
        self._start: list[int] = loaded.start_ms.tolist()
        self._newest = loaded.timestamp_ms.astype(np.int64)
        self._opened_at: list[int] = [-1] * len(self.slot)
        day = windows.days_of(loaded.start_ms).tolist()
        self._row_of = {place: row for row, place in enumerate(zip(self.slot, day, strict=True))}
        self._late = 0

    def steps(self) -> Any:
        """(columns, places of the records that count, the row of the day of each, whether it opened it), by chunk."""
        for columns in self._feed.chunks():
            yield self._step(columns)

    def _step(self, columns: Columns) -> tuple[Columns, Any, Any, Any]:
        windows, midnights = self._windows, midnights_ms(self._windows.timezone)
        day = np.zeros(len(columns.slot), np.int64)
        usable = columns.slot >= 0
        day[usable] = windows.days_of(columns.timestamp_ms[usable])
        late = (columns.slot, day, midnights, columns.stream_time_ms, windows.grace_ms, columns.decision)
        self._late += decide(*late)
        record = np.flatnonzero(usable & (columns.decision != LATE))
        place = columns.slot[record] * np.int64(len(midnights)) + day[record]
        each, first, number = np.unique(place, return_index=True, return_inverse=True)
        rows = np.empty(len(each), np.int32)
        opened = np.zeros(len(record), np.bool_)
        for at in np.argsort(first, kind="stable").tolist():  # days are numbered as they come up
            slot, its_day = divmod(int(each[at]), len(midnights))
            row = self._row_of.get((slot, its_day))
            if row is None:
                row = self._row_of[slot, its_day] = len(self.slot)
                self.slot.append(slot)
                self._start.append(int(midnights[its_day]))
                self._opened_at.append(columns.lo + int(record[first[at]]))
                opened[first[at]] = True
            rows[at] = row
        window = rows[number]
        columns.decision[record[opened]] = OPENED
        self._newest = np.concatenate([self._newest, np.full(len(self.slot) - len(self._newest), -1)])
        np.maximum.at(self._newest, window, columns.timestamp_ms[record])
        return columns, record, window, opened

    def decided(self) -> Decided:
        """What the run left behind."""
        return Decided(
            np.array(self.slot, np.int32),
            np.array(self._start, np.int64),
            self._newest,
            np.array(self._opened_at, np.int64),
            int(self._late),
        )
