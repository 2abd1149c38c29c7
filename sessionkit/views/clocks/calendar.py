"""A span of time as a calendar: cells such as hours, one after the other, each with its row and column in a grid."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sessionkit.base.durations import show_duration
from sessionkit.base.moments import show_time, zone_of

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
# A column and the cells in it, from the finest calendar to the coarsest, each for so many columns.
STEPS = ((10, 1), (100, 10), (SECOND, 100), (MINUTE, SECOND), (HOUR, MINUTE), (DAY, HOUR))
MOST_COLUMNS, MOST_WEEKS, MOST_YEARS_OF_WEEKS = 62, 170, 12
MOST_DATES_MS = 200 * 365 * DAY  # what is longer is no calendar: it is shown in numbers
MOST_TICKS = 11
ROUND, HOURS = (1, 2, 5, 10, 20, 50, 100, 200, 500), (1, 2, 3, 6, 12)
_UNITS = {1: "millisecond", SECOND: "second", MINUTE: "minute", HOUR: "hour", DAY: "day"}
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MS = dt.timedelta(milliseconds=1)

Ticks = list[tuple[int, str]]  # places of rows or columns, and what is written there


class Calendar(NamedTuple):
    """Cells that follow each other without a gap: `edges_ms` has where each begins, and where the last one ends."""

    unit: str  # what a cell is: "hour"
    timezone: str  # by whose clock; "" where it counts from zero
    edges_ms: npt.NDArray[np.int64]
    names: list[str]  # of each cell, as a sentence says it
    row: npt.NDArray[np.int64]
    column: npt.NDArray[np.int64]
    row_ticks: Ticks
    column_ticks: Ticks
    row_title: str
    column_title: str
    row_count: int
    column_count: int
    skipped: list[tuple[int, int, str]]  # row, column and name of what no clock showed

    def cell_of(self, times_ms: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The cell of each time, -1 for those outside."""
        cell = np.searchsorted(self.edges_ms, times_ms, side="right") - 1
        return np.where(cell < len(self.names), cell, -1)


def calendar(low_ms: int, high_ms: int, timezone: str, *, has_dates: bool) -> Calendar:
    """The calendar for this span, both ends included; without dates it counts from zero."""
    span = high_ms - low_ms
    fine = next(((column, cell) for column, cell in STEPS if span // column < MOST_COLUMNS), None)
    if fine is None and has_dates and span <= MOST_DATES_MS:
        return _of_dates(low_ms, high_ms, timezone)
    if fine is None or not has_dates:
        column_ms, cell_ms = fine or _in_tens_of_days(span)
        return _in_numbers(low_ms, high_ms, column_ms, cell_ms)
    if fine == (DAY, HOUR):
        return _days_by_hour(low_ms, high_ms, timezone)
    return _of_a_day(low_ms, high_ms, *fine, timezone)


def _in_tens_of_days(span_ms: int) -> tuple[int, int]:
    column_ms = 10 * DAY
    while span_ms // column_ms >= MOST_COLUMNS:
        column_ms *= 10
    return column_ms, column_ms // 10


def _in_numbers(low_ms: int, high_ms: int, column_ms: int, cell_ms: int) -> Calendar:
    first = low_ms // cell_ms
    number = np.arange(first, high_ms // cell_ms + 1)
    per_column = column_ms // cell_ms
    column = number // per_column
    cells = range(per_column)
    return Calendar(
        unit=_unit(cell_ms),
        timezone="",
        edges_ms=np.append(number, number[-1] + 1) * cell_ms,
        names=[f"{show_duration(each)} to {show_duration(each + cell_ms)}" for each in (number * cell_ms).tolist()],
        row=number % per_column,
        column=column - column[0],
        row_ticks=_ticks(cells, lambda cell: cell, lambda cell: f"+{show_duration(cell * cell_ms)}"),
        column_ticks=_ticks(
            range(column[0], column[-1] + 1), lambda each: each, lambda each: show_duration(each * column_ms)
        ),
        row_title="and so much later",
        column_title="event time",
        row_count=per_column,
        column_count=int(column[-1] - column[0]) + 1,
        skipped=[],
    )


def _of_a_day(low_ms: int, high_ms: int, column_ms: int, cell_ms: int, timezone: str) -> Calendar:
    """Hours by minute, minutes by second, and shorter: columns follow each other as time passes."""
    zone = zone_of(timezone)
    first = low_ms - (low_ms + _ahead_ms(low_ms, zone)) % cell_ms
    edges = np.arange(first, high_ms + cell_ms, cell_ms)
    edges = edges[: int(np.searchsorted(edges, high_ms, side="right")) + 1]
    edges = edges if edges[-1] > high_ms else np.append(edges, edges[-1] + cell_ms)
    starts = edges[:-1].tolist()
    ahead = np.array([_ahead_ms(ms, zone) for ms in starts], np.int64)
    clock = edges[:-1] + ahead
    begins = np.flatnonzero(np.append(True, (np.diff(clock // column_ms) != 0) | (np.diff(ahead) != 0)))
    column = np.searchsorted(begins, np.arange(len(clock)), side="right") - 1
    moments = [_moment(int(clock[at] // column_ms * column_ms)) for at in begins]
    again = [at > 0 and moments[at] <= moments[at - 1] for at in range(len(moments))]

    def said(at: int) -> str:
        finest = "minutes" if column_ms >= MINUTE else "seconds" if column_ms >= SECOND else "milliseconds"
        shown = moments[at].time().isoformat(finest)
        day = f"<br>{_short(moments[at])}" if not at or moments[at].date() != moments[at - 1].date() else ""
        return f"{shown}{'<br>again' if again[at] else ''}{day}"

    def number(at: int) -> int:
        return int((moments[at] - moments[at].replace(hour=0, minute=0, second=0, microsecond=0)) / _MS) // column_ms

    unit = _unit(cell_ms)
    return Calendar(
        unit=unit,
        timezone=timezone,
        edges_ms=edges,
        names=[_clock_name(ms, timezone) for ms in starts],
        row=clock % column_ms // cell_ms,
        column=column,
        row_ticks=_ticks(range(column_ms // cell_ms), lambda at: at, lambda at: f"{at * (cell_ms % SECOND or 1)}"),
        column_ticks=_ticks(range(len(moments)), number, said, HOURS if column_ms == HOUR else ROUND),
        row_title=unit if cell_ms >= SECOND else "milliseconds",
        column_title="",
        row_count=column_ms // cell_ms,
        column_count=len(moments),
        skipped=[],
    )


def _days_by_hour(low_ms: int, high_ms: int, timezone: str) -> Calendar:
    """Days by hour: an hour that clocks show twice has a row of its own, and one that they skip is named."""
    zone = zone_of(timezone)
    edges = _edges(_hours(_local(low_ms, zone), _local(high_ms, zone)), low_ms, high_ms, zone, again=True)
    starts = [_local(ms, zone) for ms in edges[:-1].tolist()]
    first = starts[0].date()
    hours = [(start.hour, bool(start.fold)) for start in starts]
    rows = sorted({*((hour, False) for hour in range(24)), *hours})
    place = {each: at for at, each in enumerate(rows)}
    column = np.array([(start.date() - first).days for start in starts])
    days = [first + dt.timedelta(day) for day in range(int(column[-1]) + 1)]
    shown = {(start.date(), start.hour) for start in starts}
    skipped = [
        (place[hour, False], day, f"{days[day]} {hour:02}:00")
        for day in range(len(days))
        for hour in range(24)
        if (days[day], hour) not in shown
        and (days[0], starts[0].hour) < (days[day], hour) < (days[-1], starts[-1].hour)
    ]
    return Calendar(
        unit="hour",
        timezone=timezone,
        edges_ms=edges,
        names=[_clock_name(ms, timezone) for ms in edges[:-1].tolist()],
        row=np.array([place[each] for each in hours]),
        column=column,
        row_ticks=[
            (at, f"{hour:02}:00{' again' if again else ''}")
            for at, (hour, again) in enumerate(rows)
            if again or hour % 3 == 0
        ],
        column_ticks=_day_ticks(days),
        row_title="hour",
        column_title="day" if len(days) <= MOST_TICKS else "day, with the date of each Monday",
        row_count=len(rows),
        column_count=len(days),
        skipped=skipped,
    )


def _of_dates(low_ms: int, high_ms: int, timezone: str) -> Calendar:
    """Weeks by weekday, years by week of the year, or years by month."""
    zone = zone_of(timezone)
    low, high = _local(low_ms, zone), _local(high_ms, zone)
    if (high - low).days < MOST_WEEKS * 7:
        return _weeks_by_weekday(low, high, low_ms, high_ms, timezone)
    if high.year - low.year < MOST_YEARS_OF_WEEKS:
        return _years_by_week(low, high, low_ms, high_ms, timezone)
    months = (dt.datetime(at // 12, at % 12 + 1, 1) for at in range(low.year * 12, high.year * 12 + 12))
    edges = _edges([*months, dt.datetime(high.year + 1, 1, 1)], low_ms, high_ms, zone)
    starts = [_local(ms, zone) for ms in edges[:-1].tolist()]
    years = range(low.year, high.year + 1)
    return Calendar(
        unit="month",
        timezone=timezone,
        edges_ms=edges,
        names=[f"{MONTHS[start.month - 1]} {start.year}" for start in starts],
        row=np.array([start.month - 1 for start in starts]),
        column=np.array([start.year - low.year for start in starts]),
        row_ticks=[(at, name) for at, name in enumerate(MONTHS)],
        column_ticks=_ticks(years, lambda year: year, str),
        row_title="",
        column_title="year",
        row_count=12,
        column_count=len(years),
        skipped=[],
    )


def _weeks_by_weekday(low: dt.datetime, high: dt.datetime, low_ms: int, high_ms: int, timezone: str) -> Calendar:
    zone = zone_of(timezone)
    days = [low.date() + dt.timedelta(day) for day in range((high.date() - low.date()).days + 2)]
    edges = _edges((dt.datetime.combine(day, dt.time()) for day in days), low_ms, high_ms, zone)
    shown = [_local(ms, zone).date() for ms in edges[:-1].tolist()]
    monday = shown[0] - dt.timedelta(shown[0].weekday())
    weeks = [monday + dt.timedelta(7 * week) for week in range((shown[-1] - monday).days // 7 + 1)]
    return Calendar(
        unit="day",
        timezone=timezone,
        edges_ms=edges,
        names=[f"{WEEKDAYS[day.weekday()]}, {day}" for day in shown],
        row=np.array([day.weekday() for day in shown]),
        column=np.array([(day - monday).days // 7 for day in shown]),
        row_ticks=[(at, name) for at, name in enumerate(WEEKDAYS)],
        column_ticks=_week_ticks(weeks),
        row_title="",
        column_title="week",
        row_count=7,
        column_count=len(weeks),
        skipped=[],
    )


def _years_by_week(low: dt.datetime, high: dt.datetime, low_ms: int, high_ms: int, timezone: str) -> Calendar:
    zone = zone_of(timezone)
    monday = low.date() - dt.timedelta(low.weekday())
    count = (high.date() - monday).days // 7 + 2
    mondays = [dt.datetime.combine(monday, dt.time()) + dt.timedelta(7 * week) for week in range(count)]
    edges = _edges(mondays, low_ms, high_ms, zone)
    weeks = [_local(ms, zone).isocalendar() for ms in edges[:-1].tolist()]
    years = range(weeks[0].year, weeks[-1].year + 1)
    starts = [dt.date.fromisocalendar(week.year, week.week, 1) for week in weeks]
    return Calendar(
        unit="week",
        timezone=timezone,
        edges_ms=edges,
        names=[f"week {week.week} of {week.year} (from {start})" for week, start in zip(weeks, starts, strict=True)],
        row=np.array([week.year - years[0] for week in weeks]),
        column=np.array([week.week - 1 for week in weeks]),
        row_ticks=[(at, str(year)) for at, year in enumerate(years)],
        column_ticks=[(week - 1, str(week)) for week in (1, *range(5, 54, 5))],
        row_title="year",
        column_title="week of the year",
        row_count=len(years),
        column_count=53,
        skipped=[],
    )


# ---- clocks of a zone


def _local(ms: int, zone: dt.tzinfo) -> dt.datetime:
    """What the clock shows, without its zone; `fold` says whether it is the second time."""
    return (_EPOCH + ms * _MS).astimezone(zone).replace(tzinfo=None)


def _unit(cell_ms: int) -> str:
    return _UNITS.get(cell_ms, f"stretch of {show_duration(cell_ms)}")


def _ahead_ms(ms: int, zone: dt.tzinfo) -> int:
    return int(((_EPOCH + ms * _MS).astimezone(zone).utcoffset() or dt.timedelta()) / _MS)


def _moment(clock_ms: int) -> dt.datetime:
    return (_EPOCH + clock_ms * _MS).replace(tzinfo=None)


def _hours(low: dt.datetime, high: dt.datetime) -> Iterable[dt.datetime]:
    """Full hours that clocks show around this span."""
    start = low.replace(minute=0, second=0, microsecond=0, fold=0) - dt.timedelta(hours=3)
    count = int((high - start) / dt.timedelta(hours=1)) + 6
    return (start + dt.timedelta(hours=hour) for hour in range(count))


def _edges(
    clocks: Iterable[dt.datetime], low_ms: int, high_ms: int, zone: dt.tzinfo, *, again: bool = False
) -> npt.NDArray[np.int64]:
    """When the clock shows these times: from the last one that is not after the span's start to the first behind it.

    Args:
        again: also the second time, where clocks show it twice.
    """
    found = np.array(sorted({ms for clock in clocks for ms in _instants(clock, zone)[: 2 if again else 1]}), np.int64)
    first = int(np.searchsorted(found, low_ms, side="right")) - 1
    last = int(np.searchsorted(found, high_ms, side="right"))
    return found[max(first, 0) : last + 1]


def _instants(clock: dt.datetime, zone: dt.tzinfo) -> list[int]:
    """The moments at which clocks show this: one, or two; of a time that they skip, one after it."""
    first, second = (clock.replace(tzinfo=zone, fold=fold).astimezone(dt.UTC) for fold in (0, 1))
    is_twice = second.astimezone(zone).replace(tzinfo=None, fold=0) == clock
    return [(moment - _EPOCH) // _MS for moment in ([first, second] if is_twice else [first])]


def _clock_name(ms: int, timezone: str) -> str:
    """The moment as sentences say it, without seconds where there are none."""
    shown = show_time(ms, timezone)
    return f"{shown[:16]}{shown[19:]}" if shown[16:19] == ":00" and "." not in shown else shown


def _short(day: dt.date) -> str:
    return f"{day.day} {MONTHS[day.month - 1][:3]}"


# ---- what is written beside a grid


def _ticks(
    numbers: Sequence[int],
    value: Callable[[int], int],
    said: Callable[[int], str],
    steps: Sequence[int] = ROUND,
) -> Ticks:
    """Places at round values, so many that their names have room."""
    for step in steps:
        found = [number for number in numbers if value(number) % step == 0]
        if len(found) <= MOST_TICKS:
            break
    return [(number - numbers[0], said(number)) for number in found or [numbers[0]]]


def _day_ticks(days: list[dt.date]) -> Ticks:
    """Each day, or each Monday; the first of a year with its number."""
    chosen = days if len(days) <= MOST_TICKS else [day for day in days if day.weekday() == 0]
    is_first = [at == 0 or day.year != chosen[at - 1].year for at, day in enumerate(chosen)]
    return [
        ((day - days[0]).days, f"{_short(day)}<br>{day.year}" if first else _short(day))
        for day, first in zip(chosen, is_first, strict=True)
    ]


def _week_ticks(weeks: list[dt.date]) -> Ticks:
    """The weeks in which a month, a quarter or a half of a year begins."""
    sundays = [monday + dt.timedelta(6) for monday in weeks]
    firsts = {at: sunday for at, sunday in enumerate(sundays) if sunday.day <= 7}
    for months in (1, 3, 6, 12):
        found = {at: day for at, day in firsts.items() if (day.month - 1) % months == 0}
        if len(found) <= MOST_TICKS:
            break
    first_of_year = {day.year: at for at, day in reversed(found.items())}
    return [
        (at, MONTHS[day.month - 1][:3] + (f"<br>{day.year}" if first_of_year[day.year] == at else ""))
        for at, day in found.items()
    ]
