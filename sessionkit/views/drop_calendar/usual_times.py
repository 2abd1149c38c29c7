"""Hours of the day and days of the week from which most drops come, as a sentence says them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sessionkit.base.moments import clock_changes
from sessionkit.views.drop_calendar.cells import DAY, HOUR, WEEKDAYS

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


def usual_time(
    times_ms: npt.NDArray[np.int64], dropped: npt.NDArray[np.bool_], low_ms: int, high_ms: int, timezone: str
) -> UsualTime | None:
    """When most drops happen, if that is at the same hours, or on the same days, again and again.

    Of all stretches of hours and groups of days it is the one that most parts drops from other records.
    """
    first = low_ms // QUARTER
    count = high_ms // QUARTER - first + 1
    if count > MOST_QUARTERS or (high_ms - low_ms) < LEAST_DAYS * DAY or int(dropped.sum()) < LEAST_DROPS:
        return None
    quarter = times_ms // QUARTER - first
    records = np.bincount(quarter, minlength=count)
    drops = np.bincount(quarter[dropped], minlength=count)
    seen = np.flatnonzero(records)
    clock = clock_changes(timezone, high_ms).local((seen + first) * QUARTER)
    day, hour = clock // DAY, clock % DAY // HOUR
    weekday = (day + _EPOCH_WEEKDAY) % 7
    usual = np.zeros((2, 7, 24))
    for row, numbers in enumerate((records, drops)):
        np.add.at(usual[row], (weekday, hour), numbers[seen])
    usual /= usual.sum(axis=(1, 2), keepdims=True)
    found = _most_parted(usual[0], usual[1], with_weekdays=high_ms - low_ms >= LEAST_DAYS_FOR_WEEKDAYS * DAY)
    if found is None:
        return None
    inside = np.isin(weekday, found.days) & np.isin(hour, found.hours)
    per_day = np.bincount(day[inside] - day.min(), weights=drops[seen][inside])
    return found if per_day.max() <= MOST_OF_ONE_DAY * per_day.sum() else None


def _most_parted(
    records: npt.NDArray[np.float64], drops: npt.NDArray[np.float64], *, with_weekdays: bool
) -> UsualTime | None:
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
