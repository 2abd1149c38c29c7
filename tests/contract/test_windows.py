"""What every kind of window promises: each test runs over the registry, and over the examples that are not in it."""

import dataclasses
import inspect
from itertools import pairwise, permutations
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sessionkit as sk
from sessionkit.deployed.deployment import Life
from sessionkit.deployed.lives import memory_store
from sessionkit.errors import InvalidArgument, NotBuilt
from sessionkit.windows import WINDOW_KINDS, SessionKind, WindowKind, window_kind
from tests.contract.examples import calendar_days, shift_sessions
from tests.contract.kinds import EXAMPLES, HOUR_MS, KINDS, plan_over, records, rows_of
from tests.deployments import run_deployed
from tests.interpreted import fewer
from tests.kinds import plan_of

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def strategies_of(windows: WindowKind) -> list[str]:
    kept = [] if windows.trailing_only else ["on_window_update"]
    return [*kept, "on_window_close"] if windows.is_ever_closed else kept


def test_every_kind_is_tried() -> None:
    assert {type(windows) for windows in KINDS.values()} == set(WINDOW_KINDS)


def test_every_kind_has_what_the_contract_names(windows: WindowKind) -> None:
    contracts = (WindowKind, SessionKind) if windows.holds == "sessions" else (WindowKind,)
    named = [name for contract in contracts for name in vars(contract) if not name.startswith("_")]
    assert [name for name in named if not hasattr(type(windows), name) and not hasattr(windows, name)] == []
    silent = [name for name in named if callable(getattr(windows, name)) and not inspect.getdoc(getattr(windows, name))]
    assert silent == []


def test_parameters_are_called_as_the_contract_calls_them(windows: WindowKind) -> None:
    """Else a type checker takes no such windows, as `windowed_by(sk.SessionWindows(…))` once was refused."""

    def called(function: Any) -> list[tuple[str, Any]]:
        parameters = inspect.signature(function).parameters.values()
        return [(each.name, each.kind) for each in parameters if each.name != "self" and each.kind in POSITIONAL]

    session_members = vars(SessionKind) if windows.holds == "sessions" else {}
    for name, member in {**vars(WindowKind), **session_members}.items():
        if inspect.isfunction(member) and name[0] != "_":
            assert called(member) == called(getattr(windows, name)), name


@pytest.mark.parametrize("lacking", ["near_in_words", "close_lag_parts", "is_late"])
def test_a_class_that_lacks_a_member_is_no_kind(lacking: str) -> None:
    members = {name: member for name, member in vars(shift_sessions.ShiftSessions).items() if name != lacking}
    with pytest.raises(InvalidArgument, match=f"Unfinished is no kind of window; got a class without {lacking};"):
        window_kind(type("Unfinished", (), members))
    assert [kind for kind in WINDOW_KINDS if kind.__name__ == "Unfinished"] == []


def test_they_are_made_again_from_what_they_say(windows: WindowKind) -> None:
    make, arguments = windows.arguments()
    assert make(**arguments) == windows
    longer = make(**{**arguments, "grace_ms" if "grace_ms" in arguments else "retention_ms": 11 * HOUR_MS})
    assert longer != windows and hash(longer) != hash(windows)
    examples = {type(example).__name__: type(example) for example in EXAMPLES.values()}
    assert eval(windows.code(), {"sk": sk, **examples}) == windows  # noqa: S307
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


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(fewer(12)))
def test_kernel_and_processor_agree(windows: WindowKind, seed: int) -> None:
    table = records(seed)
    for emit in strategies_of(windows):
        plan = plan_over(windows, emit)
        by_kernel = plan.run(table)
        by_kernel.trace.check()
        retention_ms = windows.retention_ms(None)
        how = Life(retention_ms=retention_ms, emit=emit, kafka=False)
        by_processor = plan._run_life(by_kernel._outcome.batch, memory_store(windows, None), how)
        by_processor.trace.check()
        assert by_kernel.trace.records().equals(by_processor.trace.records()), seed
        assert rows_of(by_kernel.changelog()) == rows_of(by_processor.changelog()), seed
        assert rows_of(by_kernel.table()) == rows_of(by_processor.table()), seed


@pytest.mark.thorough
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


@pytest.mark.parametrize("name", [name for name, windows in KINDS.items() if windows.holds == "sessions"])
def test_a_record_joins_the_sessions_that_reach_it(name: str) -> None:
    windows = cast(SessionKind, KINDS[name])
    run, near = plan_over(windows, "on_window_update").run(records(4)), 0
    trace, columns = run.trace, run.trace.window_columns
    for index in np.flatnonzero(trace.accepted).tolist():
        absorbed, at = trace.merges.absorbed, trace.merges.at
        met = {int(trace.window[index]), *absorbed[at == index].tolist()}
        known = set(trace.window[:index][trace.accepted[:index]].tolist()) - set(absorbed[at < index].tolist())
        place = (trace.batch.key[index], trace.batch.partition[index])
        for row in [row for row in known if (columns.key[row], columns.partition[row]) == place]:
            start_ms, end_ms = trace.bounds_before(row, index)
            if end_ms >= windows.oldest_kept_end_ms(int(trace.stream_time_ms[index]), trace.retention_ms):
                first_ms, last_ms = windows.reach_of_ms(start_ms, end_ms)
                assert (first_ms <= trace.batch.timestamp_ms[index] <= last_ms) == (row in met), (row, index)
                near += row in met
    assert near > 30
    bounds = (columns.start_ms, columns.end_ms)
    one_by_one = [windows.reach_of_ms(*pair) for pair in zip(*(ms.tolist() for ms in bounds), strict=True)]
    assert np.array(one_by_one).T.tolist() == [ms.tolist() for ms in windows.reach_of_ms(*bounds)]


@pytest.mark.parametrize("over_a_store", [False, True])
def test_missing_grace_is_exact(windows: WindowKind, over_a_store: bool) -> None:
    if not windows.is_ever_closed:
        return
    table, cut = records(5, 200), 120 if over_a_store else 0

    def late_with(grace_ms: int) -> pa.Table:
        plan = plan_over(windows, "on_window_close").with_windows(grace_ms=grace_ms)
        with sk.open_store("memory", "kept", of=windows.holds) as store:
            plan.run(table[:cut], store=store, retention="99d")
            found = plan.run(table[cut:], store=store, retention="99d").dropped()
        return found.filter(pc.equal(found["reason"], "late"))

    def place_of(row: dict[str, Any]) -> tuple[int | None, ...]:
        return row["offset"], row.get("window_start_ms")

    rows, asked = rows_of(late_with(windows.grace_ms)), np.random.default_rng(1)
    assert len(rows) > 5
    for row in (rows[at] for at in asked.choice(len(rows), 5, replace=False)):
        late_still = [rows_of(late_with(row["enough_grace_ms"] - ms)) for ms in (0, 1)]
        assert [place_of(row) in map(place_of, still) for still in late_still] == [False, True]
        assert row["enough_grace_ms"] == windows.grace_ms + row["missing_grace_ms"]


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
    with pytest.raises(NotBuilt, match=what):
        run_deployed(plan, table)
    with pytest.raises(NotBuilt, match=what):
        sk.audit(plan, table)


def test_a_record_is_a_step_of_each_window_that_holds_it(windows: WindowKind) -> None:
    emit = strategies_of(windows)[-1]
    plan = plan_of(windows, emit, {"n": sk.count()}, partition="partition", offset="offset", label="value")
    run = plan.run(records(3))
    for key in run.trace.keys.to_pylist():
        mine = run.table().filter(pc.equal(run.table()["key"], key))
        steps = rows_of(run.steps(key).table())
        last = [step for step, after in pairwise([*steps, {"position": 1}]) if after["position"] == 1]
        told = [(each["partition"], each["window_start_ms"], each["position"]) for each in last]
        assert sorted(told) == sorted((each["partition"], each["window_start_ms"], each["n"]) for each in rows_of(mine))


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


class TestShiftSessions:
    """The example, by hand: shifts of eight hours, and a pause of one."""

    SHIFTS = shift_sessions.ShiftSessions(pause="1h", shift="8h", grace="9h")

    def bounds(self, *hours: float) -> list[tuple[float, float]]:
        table = pa.table({"key": ["ada"] * len(hours), "at": [int(hour * HOUR_MS) for hour in hours]})
        rows = rows_of(plan_of(self.SHIFTS, "on_window_update").run(table).table())
        return [(row["window_start_ms"] / HOUR_MS, row["window_end_ms"] / HOUR_MS) for row in rows]

    def test_a_session_ends_with_the_shift(self) -> None:
        assert self.bounds(6.5, 7.5, 8, 8.5) == [(6.5, 7.5), (8, 8.5)]

    def test_a_late_record_bridges_two_of_a_shift_and_none_of_two_shifts(self) -> None:
        assert self.bounds(5, 6.5, 5.75) == [(5, 6.5)]
        assert self.bounds(7, 8.5, 7.75) == [(7, 7.75), (8.5, 8.5)]

    def test_the_order_of_arrival_does_not_matter(self) -> None:
        hours = (5, 5.5, 6.5, 7.75, 8, 8.25)
        assert {tuple(self.bounds(*order)) for order in permutations(hours)} == {((5, 6.5), (7.75, 7.75), (8, 8.25))}

    def test_words_say_pause_and_shift(self) -> None:
        table = pa.table({"key": ["ada"] * 4, "at": [int(hour * HOUR_MS) for hour in (5, 5.5, 20, 7)]})
        run = plan_of(self.SHIFTS, "on_window_close").run(table)
        assert "found none of its key to join in the shift and within the pause of 1 h." in run.explain(offset=0)
        late = str(run.explain(offset=3))
        assert "were closed (20 h − pause 1 h − grace 9 h)" in late
        assert "No session of its key, open or closed, was in the shift and within the pause of 1 h." in late

    def test_a_shift_has_a_length(self) -> None:
        with pytest.raises(InvalidArgument, match="a shift must have a length; got 0 ms"):
            shift_sessions.ShiftSessions(pause="1h", shift=0, grace=0)
