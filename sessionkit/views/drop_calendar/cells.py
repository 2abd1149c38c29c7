"""A span of time as a calendar, hours by day or days by week in a grid; and when most drops come, in a sentence."""

from __future__ import annotations

import datetime as dt
from typing import NamedTuple

import numpy as np

from sessionkit.base.arrays import Floats, Longs, distinct
from sessionkit.base.durations import DAY, HOUR
from sessionkit.base.moments import clock_changes, show_time
from sessionkit.views.drawing.time_axis import to_the_minute

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
MOST_DAYS_OF_HOURS = 62  # of more, a cell is a day
MOST_MS = 50 * 366 * DAY  # a longer span has no calendar
MOST_TICKS = 11

Ticks = list[tuple[int, str]]  # places of rows or columns, and what is written there


class Calendar(NamedTuple):
    """Cells that follow each other without a gap: `edges_ms` has where each begins, and where the last one ends."""

    unit: str  # what a cell is: "hour" or "day"
    timezone: str  # by whose clock
    edges_ms: Longs
    names: list[str]  # of each cell, as a sentence says it
    row: Longs
    column: Longs
    row_ticks: Ticks
    column_ticks: Ticks
    row_title: str
    column_title: str
    row_count: int
    column_count: int
    skipped: list[tuple[int, int, str]]  # row, column and name of what no clock showed

    def cell_of(self, times_ms: Longs) -> Longs:
        """The cell of each time, -1 for those outside."""
        cell = np.searchsorted(self.edges_ms, times_ms, side="right") - 1
        return np.where(cell < len(self.names), cell, -1)


def calendar(low_ms: int, high_ms: int, timezone: str) -> Calendar:
    """The calendar for this span, both ends included; it may be as long as `MOST_MS`."""
    if high_ms - low_ms < MOST_DAYS_OF_HOURS * DAY:
        return _days_by_hour(low_ms, high_ms, timezone)
    return _weeks_by_weekday(low_ms, high_ms, timezone)


def _days_by_hour(low_ms: int, high_ms: int, timezone: str) -> Calendar:
    """Days by hour: an hour that clocks show twice has a row of its own, and one that they skip is named."""
    clock = clock_changes(timezone, high_ms + 2 * DAY)
    around = np.arange(int(clock.local(low_ms)) // HOUR - 3, int(clock.local(high_ms)) // HOUR + 6) * HOUR
    edges = _edges(np.append(clock.first_at(around), clock.last_at(around)), low_ms, high_ms)
    local = clock.local(edges[:-1])
    shown, again = local // HOUR, clock.first_at(local) < edges[:-1]
    hours = list(zip((shown % 24).tolist(), again.tolist(), strict=True))
    rows = sorted({*((hour, False) for hour in range(24)), *hours})
    place = {each: at for at, each in enumerate(rows)}
    column = shown // 24 - shown[0] // 24
    days = (shown[0] // 24 + np.arange(column[-1] + 1)).astype("datetime64[D]").tolist()
    skipped = np.setdiff1d(np.arange(shown[0], shown[-1]), shown) - shown[0] // 24 * 24
    return Calendar(
        unit="hour",
        timezone=timezone,
        edges_ms=edges,
        names=[to_the_minute(show_time(ms, timezone)) for ms in edges[:-1].tolist()],
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
        skipped=[(place[h % 24, False], h // 24, f"{days[h // 24]} {h % 24:02}:00") for h in skipped.tolist()],
    )


def _weeks_by_weekday(low_ms: int, high_ms: int, timezone: str) -> Calendar:
    clock = clock_changes(timezone, high_ms + 2 * DAY)
    midnights = np.arange(int(clock.local(low_ms)) // DAY, int(clock.local(high_ms)) // DAY + 2) * DAY
    edges = _edges(clock.first_at(midnights), low_ms, high_ms)
    shown: list[dt.date] = (clock.local(edges[:-1]) // DAY).astype("datetime64[D]").tolist()
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


def _edges(found_ms: Longs, low_ms: int, high_ms: int) -> Longs:
    """Of these moments those from the last one that is not after the span's start to the first behind it."""
    found = distinct(found_ms)
    first = int(np.searchsorted(found, low_ms, side="right")) - 1
    last = int(np.searchsorted(found, high_ms, side="right"))
    return found[max(first, 0) : last + 1]


def _short(day: dt.date) -> str:
    return f"{day.day} {MONTHS[day.month - 1][:3]}"


# ---- what is written beside a grid


def _day_ticks(days: list[dt.date]) -> Ticks:
    """Each day, or each Monday; the first of a year with its number."""
    chosen = days if len(days) <= MOST_TICKS else [day for day in days if day.weekday() == 0]
    is_first = [at == 0 or day.year != chosen[at - 1].year for at, day in enumerate(chosen)]
    return [
        ((day - days[0]).days, f"{_short(day)}<br>{day.year}" if first else _short(day))
        for day, first in zip(chosen, is_first, strict=True)
    ]


def _week_ticks(weeks: list[dt.date]) -> Ticks:
    """The weeks in which a month, a quarter, a half of a year, a year or several years begin."""
    sundays = [monday + dt.timedelta(6) for monday in weeks]
    firsts = {at: sunday for at, sunday in enumerate(sundays) if sunday.day <= 7}
    for months in (1, 3, 6, 12, 24, 60):
        found = {at: day for at, day in firsts.items() if (12 * day.year + day.month - 1) % months == 0}
        if len(found) <= MOST_TICKS:
            break
    first_of_year = {day.year: at for at, day in reversed(found.items())}
    return [
        (at, MONTHS[day.month - 1][:3] + (f"<br>{day.year}" if first_of_year[day.year] == at else ""))
        for at, day in found.items()
    ]


QUARTER = 900_000  # hours of all zones begin at quarters of an hour
MOST_QUARTERS = 1_000_000  # nearly thirty years
LEAST_DAYS, LEAST_DAYS_FOR_WEEKDAYS = 3, 21
LEAST_DROPS = 20
LEAST_SHARE, LEAST_RATIO = 0.5, 2.0  # of the drops, and how much larger than the share of all records
LEAST_OF_AN_HOUR = 0.005  # of the drops: what an hour more must bring
MOST_OF_ONE_DAY = 0.5  # of the drops: else it is one day's trouble, and nothing usual
_EPOCH_WEEKDAY = 3  # 1970 began with a Thursday
_GROUPS = (
    *(((day,), f"{name}s") for day, name in enumerate(WEEKDAYS)),
    ((0, 1, 2, 3, 4), "Mondays to Fridays"),
    ((5, 6), "Saturdays and Sundays"),
)
_EVERY_DAY = (tuple(range(7)), "")


class UsualTime(NamedTuple):
    """Hours of some days of the week, with the shares of the drops and of all records that are of them."""

    days: tuple[int, ...]
    hours: tuple[int, ...]
    words: str
    drop_share: float
    record_share: float


def usual_time(start_ms: Longs, records: Longs, drops: Longs, timezone: str) -> UsualTime | None:
    """When most drops happen, if that is at the same hours, or on the same days, again and again.

    Of all stretches of hours and groups of days it is the one that most parts drops from other records. What is given
    are quarters of an hour with records, in order, and how many records and drops each has.
    """
    low_ms, high_ms = int(start_ms[0]), int(start_ms[-1])
    if len(start_ms) > MOST_QUARTERS or high_ms - low_ms < LEAST_DAYS * DAY or drops.sum() < LEAST_DROPS:
        return None
    clock = clock_changes(timezone, high_ms).local(start_ms)
    day, hour = clock // DAY, clock % DAY // HOUR
    weekday = (day + _EPOCH_WEEKDAY) % 7
    usual = np.zeros((2, 7, 24))
    for row, numbers in enumerate((records, drops)):
        np.add.at(usual[row], (weekday, hour), numbers)
    usual /= usual.sum(axis=(1, 2), keepdims=True)
    found = _most_parted(usual[0], usual[1], with_weekdays=high_ms - low_ms >= LEAST_DAYS_FOR_WEEKDAYS * DAY)
    if found is None:
        return None
    inside = np.isin(weekday, found.days) & np.isin(hour, found.hours)
    per_day = np.bincount(day[inside] - day.min(), weights=drops[inside])
    return found if per_day.max() <= MOST_OF_ONE_DAY * per_day.sum() else None


def _most_parted(records: Floats, drops: Floats, *, with_weekdays: bool) -> UsualTime | None:
    best: UsualTime | None = None
    most = -np.inf
    for days, name in (_EVERY_DAY, *(_GROUPS if with_weekdays else ())):
        for length in (*range(1, 13), 24):
            if length == 24 and not name:
                continue  # that is always
            for start in range(1 if length == 24 else 24 if not name else 25 - length):
                hours = tuple((start + step) % 24 for step in range(length))
                place = np.ix_(days, hours)
                mine, all_of = float(drops[place].sum()), float(records[place].sum())
                if mine < LEAST_SHARE or mine < LEAST_RATIO * all_of:
                    continue
                worth = mine - all_of - LEAST_OF_AN_HOUR * length
                if worth > most:
                    most, best = worth, UsualTime(days, hours, _words(name, start, length), mine, all_of)
    return best


def _words(days: str, start: int, length: int) -> str:
    between = "" if length == 24 else f"between {start:02}:00 and {(start + length - 1) % 24 + 1:02}:00"
    return f"on {days} {between}".strip() if days else between


def whole_percents(share: float) -> str:
    """A share as sentences say it; never all or nothing of what is not."""
    return f"{round(100 * share)}%" if share in (0, 1) else f"{min(max(round(100 * share), 1), 99)}%"
