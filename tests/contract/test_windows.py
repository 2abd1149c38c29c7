"""What every kind of window promises: each test runs over the registry, and over the example that is not in it."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.deployed.deployment import Life
from sessionkit.deployed.task_stores import memory_store
from sessionkit.errors import InvalidArgument, NotBuilt
from sessionkit.windows import WINDOW_KINDS, WindowKind
from tests.contract.examples import calendar_days
from tests.deployments import run_deployed
from tests.interpreted import fewer
from tests.kinds import plan_of

HOUR_MS = 3_600_000
# some of each kind; a new kind in the registry has to be put here, which the first test says
KINDS: dict[str, WindowKind] = {
    "sessions": sk.SessionWindows(inactivity_gap="2h", grace="3h"),
    "until": sk.SessionWindows.until(inactivity_gap="2h", retention="9h"),
    "tumbling": sk.TimeWindows(size="5h", grace="2h"),
    "hopping": sk.TimeWindows(size="5h", advance="2h", grace="1h"),
    "sliding": sk.SlidingWindows(time_difference="3h", grace="2h"),
    "trailing": sk.SlidingWindows(time_difference="3h", grace="2h", trailing_only=True),
    "days": calendar_days.CalendarDays(timezone="America/New_York", grace="4h"),
}
EXAMPLES = ("days",)
# The example registers itself when it is imported. It is taken out again at once, and put back for these tests alone.
WINDOW_KINDS.remove(calendar_days.CalendarDays)


@pytest.fixture(autouse=True, scope="module")
def _registered() -> Iterator[None]:
    WINDOW_KINDS.append(calendar_days.CalendarDays)
    yield
    WINDOW_KINDS.remove(calendar_days.CalendarDays)


@pytest.fixture(params=KINDS)
def windows(request: pytest.FixtureRequest) -> WindowKind:
    return KINDS[request.param]


def plan_over(windows: WindowKind, emit: str = "on_window_close") -> sk.Plan:
    emit = emit if windows.is_ever_closed else "on_window_update"
    named = {"n": sk.count(), "most": sk.max("value"), "total": sk.sum("value")}
    return plan_of(windows, emit, named, partition="partition", offset="offset")


def strategies_of(windows: WindowKind) -> list[str]:
    kept = [] if windows.trailing_only else ["on_window_update"]
    return [*kept, "on_window_close"] if windows.is_ever_closed else kept


def records(seed: int, count: int = 300, first_ms: int = 1_383_000_000_000) -> pa.Table:
    """Two weeks around a change of clocks, in two partitions; late, equal and missing times' worth of everything."""
    rng = np.random.default_rng(seed)
    partition = np.sort(rng.integers(0, 2, count))
    times = first_ms + np.sort(rng.integers(0, 14 * 24, count)) * HOUR_MS + rng.integers(-9, 9, count) * HOUR_MS
    times[rng.random(count) < 0.1] -= 30 * HOUR_MS
    return pa.table(
        {
            "key": pa.array(rng.choice(["ada", "bob", "cy"], count), mask=rng.random(count) < 0.03),
            "at": times + rng.integers(0, 2, count),
            "value": pa.array(rng.integers(-9, 9, count), mask=rng.random(count) < 0.1),
            "partition": partition,
            "offset": np.arange(count),
        }
    )


def rows_of(table: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def test_every_kind_is_tried() -> None:
    assert {type(windows) for windows in KINDS.values()} == set(WINDOW_KINDS)


def test_every_kind_has_what_the_contract_names(windows: WindowKind) -> None:
    named = [name for name in vars(WindowKind) if not name.startswith("_")]
    assert [name for name in named if not hasattr(type(windows), name) and not hasattr(windows, name)] == []
    silent = [name for name in named if callable(getattr(windows, name)) and not inspect.getdoc(getattr(windows, name))]
    assert silent == []


def test_they_are_made_again_from_what_they_say(windows: WindowKind) -> None:
    make, arguments = windows.arguments()
    assert make(**arguments) == windows
    longer = make(**{**arguments, "grace_ms" if "grace_ms" in arguments else "retention_ms": 11 * HOUR_MS})
    assert longer != windows and hash(longer) != hash(windows)
    assert eval(windows.code(), {"sk": sk, "CalendarDays": calendar_days.CalendarDays}) == windows  # noqa: S307
    assert windows.in_words() and windows.noun
    with pytest.raises(dataclasses.FrozenInstanceError):
        windows.grace_ms = 5  # type: ignore[misc]


def test_retention_covers_what_can_be_met(windows: WindowKind) -> None:
    smallest_ms = windows.retention_ms(None)
    if windows.is_ever_closed:
        assert windows.retention_ms(f"{smallest_ms + 5}ms") == smallest_ms + 5
        with pytest.raises(InvalidArgument, match="retention"):
            windows.retention_ms(f"{smallest_ms - 1}ms")


def test_times_lie_in_the_windows_of_them(windows: WindowKind) -> None:
    times = np.append(np.random.default_rng(3).integers(0, 2**42, 200), [0, 1, 3_600_000])
    said = windows.last_instants_ms(times)
    assert (np.diff(said) > 0).all()
    for time_ms in times.tolist():
        for start_ms, end_ms in windows.windows_for(time_ms):
            assert 0 <= start_ms <= end_ms <= time_ms + windows.reach_ms
            assert end_ms - (0 if windows.inclusive_end else 1) in said
            if windows.holds == "windows":
                assert windows.ends_ms(start_ms) == end_ms
                assert windows.ends_ms(np.array([start_ms])).tolist() == [end_ms]


def test_late_begins_behind_the_last_instant(windows: WindowKind) -> None:
    _, end_ms = windows.windows_for(1_383_000_000_000)[0]
    last_ms = end_ms if windows.inclusive_end else end_ms - 1
    assert [windows.is_late(end_ms, last_ms + step) for step in (-1, 0, 1)] == [False, False, True]


@pytest.mark.parametrize("seed", range(fewer(12)))
def test_kernel_and_processor_agree(windows: WindowKind, seed: int) -> None:
    table = records(seed)
    for emit in strategies_of(windows):
        plan = plan_over(windows, emit)
        by_kernel = plan.run(table)
        by_kernel.trace.check()
        retention_ms = windows.retention_ms(None)
        how = Life(retention_ms=retention_ms, emit=emit, kafka=False)
        by_processor = plan.run_life(by_kernel.outcome.batch, memory_store(windows, None), how)
        by_processor.trace.check()
        assert by_kernel.trace.records().equals(by_processor.trace.records()), seed
        assert rows_of(by_kernel.changelog()) == rows_of(by_processor.changelog()), seed
        assert rows_of(by_kernel.table()) == rows_of(by_processor.table()), seed


@pytest.mark.parametrize("seed", range(fewer(6)))
def test_any_cut_over_a_store_gives_the_same(windows: WindowKind, seed: int) -> None:
    table = records(seed)
    plan = plan_over(windows)
    whole, parts = plan.run(table), []
    store = sk.open_store("memory", "clicks", of=windows.holds)
    for lo, hi in pairwise([0, *sorted(np.random.default_rng(seed).integers(0, len(table), 3)), len(table)]):
        parts.append(plan.run(table.slice(lo, hi - lo), store=store))
    assert [row for part in parts for row in rows_of(part.changelog())] == rows_of(whole.changelog())
    assert sum(part.metrics()["dropped-records-total"] for part in parts) == whole.metrics()["dropped-records-total"]


def test_every_view_shows_them(windows: WindowKind) -> None:
    run = plan_over(windows).run(records(1))
    late = run.dropped()
    assert len(run.table()) and len(run.changelog()) and len(late)
    first = rows_of(run.table())[0]
    assert windows.noun in str(run.explain(key=first["key"], window_start=first["window_start_ms"])).lower()
    assert str(run.explain(offset=0, partition=0))
    for row in rows_of(late)[:3]:
        assert str(run.explain(offset=row["offset"], partition=row["partition"]))
    assert len(run.plane("ada", partition=0).data) and len(run.lanes().data)
    assert "UTC" in run._repr_html_() or windows.noun in run._repr_html_()


def test_kafka_has_them_or_is_said_not_to(windows: WindowKind) -> None:
    plan, table = plan_over(windows, "on_window_close" if windows.trailing_only else "on_window_update"), records(2, 60)
    if windows.not_in_kafka is None:
        assert len(run_deployed(plan, table).changelog())
        return
    what, _ = windows.not_in_kafka
    with pytest.raises(InvalidArgument, match=what):
        run_deployed(plan, table)
    with pytest.raises(InvalidArgument, match=what):
        sk.audit(plan, table)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_export_that_knows_no_such_windows_says_so(name: str) -> None:
    plan = plan_over(KINDS[name])
    for export in (plan.to_java, plan.to_ksql, plan.to_flink_sql, plan.to_spark):
        with pytest.raises(NotBuilt):
            str(export())


class TestCalendarDays:
    """The example, by hand: Sunday, 3 November 2013 had 25 hours in New York."""

    def test_a_day_has_as_many_hours_as_it_had(self) -> None:
        days = calendar_days.CalendarDays(timezone="America/New_York", grace=0)
        noons = [1_383_411_600_000 + day * 86_400_000 for day in range(3)]
        lengths = [(end - start) // HOUR_MS for noon in noons for start, end in days.windows_for(noon)]
        assert lengths == [24, 25, 24]

    def test_an_unknown_zone_is_refused(self) -> None:
        with pytest.raises(InvalidArgument, match="no such time zone; got 'Europe/Nowhere'"):
            calendar_days.CalendarDays(timezone="Europe/Nowhere", grace=0)
