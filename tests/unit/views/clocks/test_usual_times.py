"""The hours and weekdays of most drops, on data where they are known."""

import numpy as np
import pandas as pd
import pytest

from sessionkit.views.drop_calendar.cells import QUARTER, UsualTime, usual_time

ZONE = "Europe/Berlin"


def found(times: pd.DatetimeIndex, dropped: np.ndarray, zone: str = ZONE) -> UsualTime | None:
    ms = times.as_unit("ms").asi8
    start_ms, number = np.unique(ms // QUARTER * QUARTER, return_inverse=True)
    records, drops = (np.bincount(number, weights, len(start_ms)) for weights in (None, dropped))
    return usual_time(start_ms, records, drops.astype(np.int64), zone)


def random_times(days: int, count: int = 20_000) -> pd.DatetimeIndex:
    rng, start = np.random.default_rng(days), pd.Timestamp("2024-02-05", tz=ZONE).value // 10**6
    return pd.to_datetime(start + np.sort(rng.integers(0, days * 86_400_000, count)), unit="ms", utc=True)


def test_weekdays_and_hours_by_the_clock_of_the_zone() -> None:
    times = random_times(120)  # with a change of clocks
    local = times.tz_convert(ZONE)
    inside = (local.day_of_week == 0) & (local.hour >= 6) & (local.hour < 8)
    some = np.random.default_rng(1).random(len(times))
    dropped = np.where(inside, some < 0.7, some < 0.001)
    usual = found(times, dropped)
    assert usual is not None
    assert usual.words == "on Mondays between 06:00 and 08:00"
    assert usual.drop_share == pytest.approx(dropped[inside].sum() / dropped.sum())
    assert usual.record_share == pytest.approx(inside.mean())
    assert found(times, dropped, "UTC").words != usual.words  # type: ignore[union-attr]


@pytest.mark.parametrize(("days", "hours", "words"), [
    (range(7), (23, 0, 1), "between 23:00 and 02:00"), ((5, 6), range(24), "on Saturdays and Sundays"),
    (range(5), (9, 10), "on Mondays to Fridays between 09:00 and 11:00"),
])  # fmt: skip
def test_how_it_is_said(days: range, hours: range, words: str) -> None:
    times = random_times(90)
    local = times.tz_convert(ZONE)
    inside = np.isin(local.day_of_week, [*days]) & np.isin(local.hour, [*hours])
    usual = found(times, inside)
    assert usual is not None
    assert (usual.words, usual.drop_share) == (words, 1)


def test_nothing_is_usual_of_one_day_or_of_few_drops_or_of_what_all_records_do() -> None:
    times = random_times(90)
    local = times.tz_convert(ZONE)
    assert found(times, np.asarray(local.normalize() == local.normalize()[5_000])) is None  # one bad day
    assert found(times, np.arange(len(times)) % 2_000 == 7) is None  # ten drops
    assert found(times, np.random.default_rng(2).random(len(times)) < 0.2) is None
    by_day = times[np.asarray((local.hour >= 9) & (local.hour < 12))]
    assert found(by_day, np.random.default_rng(3).random(len(by_day)) < 0.2) is None
    assert found(times[:300], np.ones(300, bool)) is None  # a day
