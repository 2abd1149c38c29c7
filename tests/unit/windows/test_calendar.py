"""Calendar windows, and time windows with an offset, against plain Python."""

import datetime as dt
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, get_args
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument, NotBuilt, NumberOverflow, UnsupportedData
from sessionkit.report.page import Findings, page
from sessionkit.windows.calendar import Unit, Weekday
from tests.interpreted import fewer
from tests.kinds import plan_of

MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
NOW_MS = 1_767_225_600_000  # 2026-01-01
# A zone and a year in which its clocks did something that a rule of thumb gets wrong.
YEARS = [
    ("Australia/Lord_Howe", 2024), ("Pacific/Apia", 2011), ("Asia/Kathmandu", 1986), ("America/St_Johns", 2009),
    ("Africa/Casablanca", 2024), ("Antarctica/Casey", 2009), ("Antarctica/Troll", 2024), ("America/Sao_Paulo", 2017),
    ("Asia/Tehran", 2021), ("America/Havana", 2024), ("Africa/Cairo", 2010), ("Africa/Monrovia", 1972),
    ("Pacific/Kwajalein", 1993), ("Europe/Berlin", 2026), ("America/New_York", 2026), ("UTC", 2026),
]  # fmt: skip


def dates(zone: str, first_ms: int, last_ms: int, step_ms: int = MINUTE_MS) -> Iterator[tuple[int, dt.date]]:
    """(time, latest date that has begun there by then), minute by minute: what the clock on the wall has shown."""
    there, latest = ZoneInfo(zone), dt.date.min
    for time_ms in range(first_ms, last_ms, step_ms):
        latest = max(latest, dt.datetime.fromtimestamp(time_ms / 1000, there).date())
        yield time_ms, latest


def starts_of_days(zone: str, year: int) -> list[int]:
    """When each date of a year began, found by quarters of an hour and then, where the date changed, by seconds."""
    first_ms = int(dt.datetime(year, 1, 1, tzinfo=dt.UTC).timestamp()) * 1000 - 2 * DAY_MS
    found, quarters = [], dates(zone, first_ms, first_ms + 370 * DAY_MS, 15 * MINUTE_MS)
    for (before_ms, before), (after_ms, after) in pairwise(quarters):
        if after > before:
            by_minute = pairwise(dates(zone, before_ms, after_ms + MINUTE_MS))
            minute_ms = next(at for (at, old), (_, new) in by_minute if new > old)
            by_second = pairwise(dates(zone, minute_ms, minute_ms + MINUTE_MS + 1000, 1000))
            found.append(next(at for (_, old), (at, new) in by_second if new > old))
    return found


@pytest.mark.thorough
@pytest.mark.parametrize(("zone", "year"), YEARS)
def test_days_begin_with_their_date(zone: str, year: int) -> None:
    days, expected = sk.CalendarWindows("day", timezone=zone, grace=0), starts_of_days(zone, year)
    for start_ms, end_ms in pairwise(expected):
        for time_ms in (start_ms, start_ms + 1, (start_ms + end_ms) // 2, end_ms - 1):
            assert days.windows_for(time_ms) == [(start_ms, end_ms)], dt.datetime.fromtimestamp(start_ms / 1000, dt.UTC)
    assert days.reach_ms >= max(end - start for start, end in pairwise(expected))


def hours_of(zone: str, noon: str) -> float:
    at = pd.Timestamp(noon, tz="UTC").value // 1_000_000
    ((start_ms, end_ms),) = sk.CalendarWindows("day", timezone=zone, grace=0).windows_for(at)
    return (end_ms - start_ms) / HOUR_MS


@pytest.mark.parametrize(
    ("zone", "noon", "hours"),
    [
        ("Europe/Berlin", "2026-03-29 12:00", 23), ("Europe/Berlin", "2026-10-25 12:00", 25),
        ("Australia/Lord_Howe", "2024-10-06 02:00", 23.5), ("Australia/Lord_Howe", "2024-04-07 02:00", 24.5),
        ("America/St_Johns", "2009-10-31 15:00", 24 + 1 / 60 - 1 / 60), ("America/St_Johns", "2009-11-01 15:00", 25),
        ("Pacific/Apia", "2011-12-29 22:00", 24), ("Pacific/Apia", "2011-12-30 22:00", 24),
        ("Antarctica/Casey", "2009-10-17 20:00", 21), ("Antarctica/Casey", "2010-03-04 20:00", 27),
        ("Antarctica/Troll", "2024-03-31 12:00", 22),
        ("Antarctica/Troll", "2024-10-27 12:00", 26), ("Asia/Kathmandu", "1985-12-31 20:00", 23.75),
        ("Africa/Cairo", "2010-04-30 12:00", 23), ("America/Sao_Paulo", "2017-10-15 12:00", 23),
    ],
)  # fmt: skip
def test_a_day_has_its_hours(zone: str, noon: str, hours: float) -> None:
    assert hours_of(zone, noon) == hours


def test_a_date_that_was_left_out_has_no_day() -> None:
    """Apia went from 29 to 31 December 2011."""
    day = sk.CalendarWindows("day", timezone="Pacific/Apia", grace=0)
    _, end_ms = day.windows_for(int(dt.datetime(2011, 12, 30, 5, tzinfo=dt.UTC).timestamp()) * 1000)[0]
    begins = dt.datetime.fromtimestamp(end_ms / 1000, ZoneInfo("Pacific/Apia"))
    assert begins.isoformat() == "2011-12-31T00:00:00+14:00"
    week = sk.CalendarWindows("week", timezone="Pacific/Apia", grace=0, week_starts="friday")
    assert week.windows_for(end_ms)[0][0] == end_ms  # that Friday was left out


def begin_of(unit: str, date: dt.date, first_weekday: int) -> dt.date:
    """The first date of the unit that a date is in."""
    if unit == "day":
        return date
    if unit == "week":
        return date - dt.timedelta((date.weekday() - first_weekday) % 7)
    month = {"month": date.month, "quarter": (date.month - 1) // 3 * 3 + 1, "year": 1}[unit]
    return date.replace(month=month, day=1)


@pytest.mark.parametrize("unit", get_args(Unit))
@pytest.mark.parametrize("weekday", [0, 3, 6])
def test_each_unit_begins_with_its_first_day(unit: Unit, weekday: int) -> None:
    if unit != "week" and weekday:
        return
    zone, rng = ZoneInfo("America/New_York"), np.random.default_rng(weekday)
    names: tuple[Weekday, ...] = get_args(Weekday)
    windows = sk.CalendarWindows(unit, timezone=str(zone), grace="1h", week_starts=names[weekday])
    for time_ms in rng.integers(10 * DAY_MS * 365, 200 * DAY_MS * 365, 300).tolist():
        ((start_ms, end_ms),) = windows.windows_for(time_ms)
        date = dt.datetime.fromtimestamp(time_ms / 1000, zone).date()
        first = begin_of(unit, date, weekday)
        following = begin_of(unit, first + dt.timedelta({"day": 1, "week": 7, "month": 31}.get(unit, 0) or 92), weekday)
        if unit == "year":
            following = first.replace(year=first.year + 1)
        for at_ms, expected in ((start_ms, first), (end_ms, following)):
            midnight = dt.datetime.fromtimestamp(at_ms / 1000, zone)
            assert midnight == dt.datetime(expected.year, expected.month, expected.day, tzinfo=zone)


def test_the_first_window_is_cut_and_the_last_ends_with_2199() -> None:
    for unit in get_args(Unit):
        windows = sk.CalendarWindows(unit, timezone="America/New_York", grace=0)
        assert windows.windows_for(0)[0][0] == 0
        late = pa.table({"key": ["a"], "at": [7_400_000_000_000]})
        for ask, given in ((windows.windows_for, 7_400_000_000_000), (plan_of(windows).run, late)):
            with pytest.raises(NumberOverflow, match="known up to the end of 2199; got timestamp 7400000000000"):
                ask(given)  # type: ignore[operator]
    first = sk.CalendarWindows("day", timezone="America/New_York", grace=0)
    assert first.windows_for(5) == [(0, 5 * HOUR_MS)]


@pytest.mark.parametrize(
    ("arguments", "telling"),
    [
        ({"timezone": "Europe/Nowhere"}, "timezone must be a zone of the IANA database; got 'Europe/Nowhere'"),
        ({"timezone": "Berlin"}, 'timezone="Europe/Berlin"'),
        ({"unit": "decade"}, "unit must be a known choice; got 'decade'"),
        ({"unit": "week", "week_starts": "Monday"}, "week_starts must be a known choice; got 'Monday'"),
        ({"week_starts": "sunday"}, "week_starts is of weeks alone; got 'day' with week_starts='sunday'"),
        ({"grace": None}, "grace must be given"),
        ({"grace": "-1h"}, "grace"),
        ({"grace": None, "grace_ms": 2**62}, "window and grace together must be at most 2"),
    ],
)
def test_what_is_no_calendar_is_refused(arguments: dict[str, Any], telling: str) -> None:
    given: dict[str, Any] = {"unit": "day", "timezone": "UTC", "grace": "1h", **arguments}
    with pytest.raises(InvalidArgument) as caught:
        sk.CalendarWindows(given.pop("unit"), **given)
    assert telling in str(caught.value)


def test_a_zone_must_be_chosen() -> None:
    with pytest.raises(InvalidArgument, match="timezone"):
        sk.CalendarWindows("day", grace="1h")  # type: ignore[call-arg]


def moved(size: int, advance: int, offset: int, time_ms: int) -> list[tuple[int, int]]:
    """The windows of a time by counting: they start `offset` after the multiples; one that began before 0 is cut."""
    first = offset - advance if offset else 0
    starts = [start for start in range(first, time_ms + 1, advance) if start <= time_ms < start + size]
    return [(max(0, start), start + size) for start in starts]


@pytest.mark.parametrize("seed", range(3))
def test_an_offset_moves_all_windows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(60):
        size = int(rng.integers(1, 30))
        advance = int(rng.integers(1, size + 1))
        offset = int(rng.integers(0, advance))
        windows = sk.TimeWindows(size_ms=size, advance_ms=advance, offset_ms=offset, grace_ms=0)
        for time_ms in range(70):
            assert windows.windows_for(time_ms) == moved(size, advance, offset, time_ms)
            for start_ms, end_ms in windows.windows_for(time_ms):
                assert windows.ends_ms(start_ms) == end_ms


@pytest.mark.parametrize("offset", ["0h", "6h", "90m", "23h59m"])
def test_an_offset_is_that_of_pandas(offset: str) -> None:
    rng = np.random.default_rng(5)
    times = pd.to_datetime(np.sort(rng.integers(NOW_MS, NOW_MS + 20 * DAY_MS, 200)), unit="ms", utc=True)
    frame = pd.DataFrame({"key": "a", "at": times, "n": rng.integers(0, 9, 200)})
    plan = sk.group_by_key("key", timestamp="at").windowed_by(sk.TimeWindows(size="1d", offset=offset, grace="0s"))
    found = plan.aggregate(total=sk.sum("n")).run(frame).table()
    by_pandas = frame.resample("24h", on="at", origin="epoch", offset=pd.Timedelta(offset))["n"].sum()
    assert found["window_start"].tolist() == by_pandas.index.tolist()
    assert found["total"].tolist() == by_pandas.tolist()


@pytest.mark.parametrize(("offset", "want"), [("1h", "less than the advance, 1 h"), ("-5m", "55m"), ("2h", "less")])
def test_an_offset_is_less_than_the_advance(offset: str, want: str) -> None:
    with pytest.raises(InvalidArgument, match=want):
        sk.TimeWindows(size="2h", advance="1h", offset=offset, grace=0)


MOVED = sk.TimeWindows(size="1d", offset="6h", grace="2h")
CALENDAR = sk.CalendarWindows("day", timezone="Europe/Berlin", grace="2h")


def test_an_offset_is_said() -> None:
    assert repr(MOVED) == 'TimeWindows(size="1d", offset="6h", grace="2h")'
    assert MOVED.in_words() == "size 1 d, offset 6 h, grace 2 h"
    assert repr(sk.TimeWindows(size="1d", offset=0, grace="2h")) == 'TimeWindows(size="1d", grace="2h")'
    assert CALENDAR.in_words() == "calendar days of Europe/Berlin, grace 2 h"


@pytest.mark.parametrize("windows", [MOVED, CALENDAR], ids=["offset", "calendar"])
def test_what_is_kafkas_is_refused(windows: Any) -> None:
    plan = plan_of(windows)
    table = pa.table({"key": ["a", "b"], "at": [NOW_MS, NOW_MS + 5]})
    for call in (
        lambda: plan.run(table, deployment=sk.Deployment()), lambda: sk.audit(plan, table), plan.to_java, plan.to_ksql,
    ):  # fmt: skip
        with pytest.raises(NotBuilt, match=r"got (sk\.)?(TimeWindows|CalendarWindows)"):
            call()


def test_exports_that_know_an_offset_write_it() -> None:
    hopping = plan_of(sk.TimeWindows(size="1d", advance="6h", offset="90m", grace="2h"))
    assert "INTERVAL '1' DAY, INTERVAL '6' HOUR))" in plan_of(MOVED).to_flink_sql().code
    assert "INTERVAL '6' HOUR, INTERVAL '1' DAY, INTERVAL '90' MINUTE))" in hopping.to_flink_sql().code
    assert 'F.window("event_time", "24 hours", startTime="6 hours")' in plan_of(MOVED).to_spark().code
    assert 'F.window("event_time", "24 hours", "6 hours", startTime="1 hour 30 minutes")' in hopping.to_spark().code
    for export in (plan_of(CALENDAR).to_flink_sql, plan_of(CALENDAR).to_spark):
        with pytest.raises(NotBuilt, match=r'sk.TimeWindows\(size="1d", …\), the days of UTC'):
            export()


@pytest.mark.parametrize("kind", ["memory", "rocksdb"])
@pytest.mark.parametrize("windows", [MOVED, CALENDAR], ids=["offset", "calendar"])
@pytest.mark.parametrize("emit", ["on_window_update", "on_window_close"])
def test_any_cut_over_a_store_gives_the_same(windows: Any, kind: Any, emit: str, tmp_path: Any) -> None:
    rng = np.random.default_rng(8)
    times = NOW_MS + np.sort(rng.integers(0, 300, 90)) * HOUR_MS - rng.integers(0, 9, 90) * HOUR_MS
    table = pa.table({"key": rng.choice(["ada", "bob"], 90), "at": times, "n": rng.integers(0, 9, 90)})
    plan = plan_of(windows, emit, {"n": sk.count(), "least": sk.min("n"), "first": sk.first("n")})
    whole, parts = plan.run(table), []
    options = {"directory": tmp_path} if kind == "rocksdb" else {}
    with sk.open_store(kind, "days", of="windows", **options) as store:
        for lo, hi in pairwise([0, 20, 21, 60, 90]):
            parts.append(plan.run(table.slice(lo, hi - lo), store=store))
    assert [row for part in parts for row in part.changelog().to_pylist()] == whole.changelog().to_pylist()
    assert plan.run(table).assign(table)["window_id"].null_count == whole.metrics()["dropped-records-total"]


@pytest.mark.parametrize("windows", [MOVED, CALENDAR], ids=["offset", "calendar"])
def test_the_final_results_of_suppress_are_those_of_emit_on_close(windows: Any) -> None:
    rng = np.random.default_rng(9)
    times = NOW_MS + np.sort(rng.integers(0, 300, 90)) * HOUR_MS - rng.integers(0, 9, 90) * HOUR_MS
    table = pa.table({"key": rng.choice(["ada", "bob"], 90), "at": times})
    plan = plan_of(windows).suppress("until_window_closes")
    closed = plan_of(windows, "on_window_close").run(table).changelog()
    names = ["key", "window_start_ms", "window_end_ms", "count"]
    sent = plan.run(table).changelog().select(names)
    assert len(sent) > 10 and sorted(map(repr, sent.to_pylist())) == sorted(map(repr, closed.select(names).to_pylist()))


@pytest.mark.parametrize(
    ("windows", "said"),
    [
        (MOVED, "one begins every <b>1 d</b>. Windows are moved by <b>6 h</b>."),
        (CALENDAR, "windows are <b>calendar days of Europe/Berlin, grace 2 h</b>."),
    ],
    ids=["offset", "calendar"],
)
def test_a_report_says_which_windows_they_are(windows: Any, said: str) -> None:
    run = plan_of(windows).run(pa.table({"key": ["a", "b"], "at": [NOW_MS, NOW_MS + 5]}))
    text = page(Findings(title="clicks", plan=run.plan, counts=run.metrics(), local=run))
    assert said in text and "data-what-if" in text and "cannot recompute" not in text


def plain(windows: Any, times: list[int]) -> dict[tuple[int, int], int]:
    """How many records each window holds: record by record, against the stream time, in plain Python."""
    counts: dict[tuple[int, int], int] = {}
    for place, time_ms in enumerate(times):
        close_ms = max(times[: place + 1]) - windows.grace_ms
        for bounds in windows.windows_for(time_ms):
            if bounds[1] > close_ms:
                counts[bounds] = counts.get(bounds, 0) + 1
    return counts


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:column 'at' read as ms lies outside")  # as the first window is tried, too
@pytest.mark.parametrize("seed", range(fewer(30)))
def test_runs_are_those_of_plain_python(seed: int) -> None:
    rng = np.random.default_rng(seed)
    zone, unit = YEARS[seed % len(YEARS)][0], get_args(Unit)[seed % 5]
    size = int(rng.integers(2, 60)) * HOUR_MS
    advance = int(rng.integers(1, size))
    kinds = [
        sk.CalendarWindows(unit, timezone=zone, grace_ms=int(rng.integers(0, 3 * DAY_MS))),
        sk.TimeWindows(size_ms=size, offset_ms=int(rng.integers(0, size)), grace_ms=int(rng.integers(0, DAY_MS))),
        sk.TimeWindows(size_ms=size, advance_ms=max(advance, size // 9), offset_ms=advance // 9, grace_ms=HOUR_MS),
    ]
    base = int(rng.choice([0, 1_300_000_000_000, NOW_MS]))
    times = base + np.sort(rng.integers(0, 400, 80)) * 3 * HOUR_MS + rng.integers(0, 40 * HOUR_MS, 80)
    table = pa.table({"key": ["a"] * 80, "at": times})
    for windows in kinds:
        for trace in (True, False):
            found = plan_of(windows).run(table, trace=trace).table().to_pylist()
            counted = {(row["window_start_ms"], row["window_end_ms"]): row["count"] for row in found}
            assert counted == plain(windows, times.tolist()), (seed, windows, trace)


def test_an_argument_of_the_other_kind_is_answered_with_that_kind() -> None:
    days: Any = sk.TimeWindows
    with pytest.raises(sk.errors.InvalidArgument, match=r"sk\.CalendarWindows.*has days of a zone"):
        days(size="1d", timezone="Europe/Berlin", grace="0s")
    zoned: Any = sk.CalendarWindows
    with pytest.raises(sk.errors.InvalidArgument, match=r"sk\.TimeWindows.*offset"):
        zoned("day", timezone="UTC", offset="6h", grace="0s")


def test_days_of_a_zone_are_shown_in_it_unless_the_records_zone_is_named() -> None:
    at = pd.to_datetime(["2026-03-01 23:30", "2026-03-02 22:30"], utc=True)
    clicks = pd.DataFrame({"user": "ada", "at": at})
    days = sk.CalendarWindows("day", timezone="Europe/Berlin", grace="0s")
    for named, starts in (
        ({}, "2026-03-02 00:00:00+01:00"),
        ({"timezone": "UTC"}, "2026-03-01 23:00:00+00:00"),
        ({"timezone": "Asia/Tokyo"}, "2026-03-02 08:00:00+09:00"),
    ):
        plan = sk.group_by_key("user", timestamp="at", **named).windowed_by(days).count()
        assert plan.run(clicks).table()["window_start"].astype(str).tolist() == [starts]
    plan = sk.group_by_key("user", timestamp="at").windowed_by(days)
    hours = plan.windowed_by(sk.TimeWindows(size="1h", grace="0s")).count()
    assert hours.run(clicks).timezone == "UTC"
    clocks = clicks.assign(at=clicks["at"].dt.tz_localize(None))
    with pytest.raises(UnsupportedData, match="timezone="):  # whose clocks these are, the windows do not say
        plan.count().run(clocks)


@pytest.mark.parametrize(("offset", "same"), [("-8h", "16h"), ("-1d", "0s"), (" -30m", "23h30m")])
def test_an_offset_below_zero_is_led_to_the_same_windows(offset: str, same: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        sk.TimeWindows(size="1d", offset=offset, grace="0s")
    assert str(caught.value) == (
        f'offset must not be negative; got {offset!r}; offset="{same}", which are the same windows'
    )
