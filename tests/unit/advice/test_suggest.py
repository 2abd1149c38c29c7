"""Proposals for gap and grace: found where they are, unsure where they are not, and met when they are tried."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__ as BEST
from numpy._core._multiarray_umath import __cpu_features__ as CAN

import sessionkit as sk
from sessionkit.errors import InvalidArgument
from sessionkit.views.drawing.grammar import LEAST_WIDTH
from tests.headings import heading
from tests.shapes import plan_of_shape

ROOT = Path(__file__).parents[3]
FLIGHTS = sk.load_sample("flights")
HOUR = 3_600_000
START = 1_767_225_600_000  # 2026


def by(*keys: str) -> sk.Plan:
    sep = "@" if len(keys) > 1 else None
    times = {"timestamp": "scheduled", "timezone": "UTC", "partition": "partition", "offset": "offset"}
    keyed = sk.group_by_key(*keys, sep=sep, **times)
    return keyed.windowed_by(sk.SessionWindows(inactivity_gap="1h", grace="30m")).count()


def visits(pause_ms: Any, size: int = 2_000, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"user": rng.choice(list("abc"), size), "at": np.cumsum(pause_ms(rng, size)).astype(np.int64)})


PLAN = sk.group_by_key("user", timestamp="at", unit="ms")


# ---- gap


def test_the_known_valley_of_the_flights() -> None:
    found = sk.suggest_gap(by("carrier", "origin"), FLIGHTS)
    assert 4.7 * HOUR < (found.gap_ms or 0) < 5.7 * HOUR
    assert found.depth > 1.8
    assert found.burst_ms is None
    assert repr(found).startswith("gap 5 h 18 min: pauses of about 5 h 18 min are rare")


@pytest.mark.parametrize("key", ["dest", "tailnum", "origin"])
def test_it_says_where_it_is_unsure(key: str) -> None:
    found = sk.suggest_gap(by(key), FLIGHTS)
    assert found.gap_ms is None
    assert found.depth < 1.3
    assert repr(found).startswith("unsure: ")
    assert key in repr(found)


def test_a_weak_valley_is_named_with_its_depth() -> None:
    assert "lies at 5 h 54 min, but pauses beside it are only 1.27 times as frequent" in repr(
        sk.suggest_gap(by("dest"), FLIGHTS)
    )


def test_bursts_are_no_visits() -> None:
    """Records land within a second of each other, or after half an hour: a valley of some seconds is no session gap."""

    def pauses(rng: Any, size: int) -> Any:
        return np.where(rng.random(size) < 0.8, rng.lognormal(np.log(300), 0.5, size), rng.lognormal(13, 0.8, size))

    data = visits(pauses)
    data["user"] = "a"
    found = sk.suggest_gap(PLAN, data)
    assert found.gap_ms is None
    assert 1_000 < (found.burst_ms or 0) < 60_000
    assert "separates bursts of records, not visits: do not take it for a session gap" in repr(found)


def test_nearly_all_pauses_are_alike() -> None:
    """A sensor that reports each five minutes, and sometimes does not for a while: "no gap separates them"."""
    pauses = np.full(9_000, 300)
    pauses[::300] = [900, 1_200, 1_500, 2_400, 3_600, 4_500] * 5
    at = pd.Timestamp("2020-01-01", tz="UTC") + pd.to_timedelta(np.cumsum(pauses), unit="s")
    found = sk.suggest_gap(plan_of_shape(), pd.DataFrame({"user": "a", "at": at}))
    assert found.gap_ms is None and found.beat_ms == 300_000
    assert "pauses are about 5 min long, as of a device that reports so often: a gap of 15 min parts" in repr(found)


@pytest.mark.parametrize("size", [0, 1, 50])
def test_few_pauses_tell_nothing(size: int) -> None:
    found = sk.suggest_gap(PLAN, visits(lambda rng, size: rng.integers(1, 9, size), size))
    assert found.gap_ms is None
    assert "too few to judge (at least 100)" in repr(found)
    assert len(found.figure().data[0].x) == 0


def test_the_pauses_of_a_key_are_taken_in_order_of_time() -> None:
    data = visits(lambda rng, size: rng.lognormal(9, 2, size))
    shuffled = data.sample(frac=1, random_state=3)
    assert repr(sk.suggest_gap(PLAN, shuffled)) == repr(sk.suggest_gap(PLAN, data))


def test_names_are_escaped() -> None:
    bad = "<img src=x onerror=alert(1)>"
    data = visits(lambda rng, size: rng.lognormal(9, 2, size)).rename(columns={"user": bad})
    found = sk.suggest_gap(sk.group_by_key(bad, timestamp="at", unit="ms"), data)
    assert bad not in heading(found.figure())
    assert found._repr_mimebundle_()["text/plain"] == repr(found)


def test_remarks_stand_apart_as_sentences() -> None:
    found = sk.suggest_gap(PLAN, visits(lambda rng, size: rng.lognormal(9, 2, size)))
    noted = dataclasses.replace(found, remarks=("'at' is read as %Y/%m/%d; format= names another way", "1 has no key."))
    assert repr(noted).endswith("'at' is read as %Y/%m/%d; format= names another way. 1 has no key.")


# ---- grace


@pytest.mark.parametrize("keep", [0.95, 0.99, 0.999, 1.0])
@pytest.mark.parametrize("gap", ["1h", "2h"])
def test_the_share_is_met_and_a_millisecond_less_misses_it(keep: float, gap: str) -> None:
    plan = by("carrier", "origin")
    found = sk.suggest_grace(plan, FLIGHTS, gap=gap, keep=keep)

    def share(grace_ms: int) -> float:
        metrics = plan.with_windows(inactivity_gap=gap, grace_ms=grace_ms).run(FLIGHTS).metrics()
        return float(1 - metrics["dropped-late"] / len(FLIGHTS))

    assert found.kept_share == share(found.grace_ms) >= keep
    assert found.grace_ms == 0 or share(found.grace_ms - 1) < keep
    assert found.plan.windows == sk.SessionWindows(inactivity_gap=gap, grace_ms=found.grace_ms)


@pytest.mark.parametrize(
    "windows", [sk.TimeWindows(size="1h", grace=0), sk.SlidingWindows(time_difference="1h", grace=0)], ids=repr
)
def test_any_kind_of_windows(windows: Any) -> None:
    plan = by("carrier").windowed_by(windows)
    found = sk.suggest_grace(plan, FLIGHTS, keep=0.98)
    kept = plan.with_windows(grace_ms=found.grace_ms).run(FLIGHTS).trace.accepted.mean()
    assert found.kept_share == pytest.approx(kept)
    assert kept >= 0.98


def test_a_share_that_is_just_met_is_enough() -> None:
    """7 of 100 records are dropped: 93 of 100 are kept, though 1 - 0.07 is less than 0.93 in binary fractions."""
    rows = pd.DataFrame({"user": "a", "at": [*range(1_000, 1_093), *[0] * 7]})
    plan = PLAN.windowed_by(sk.TimeWindows(size_ms=10, grace=0)).count()
    found = sk.suggest_grace(plan, rows, keep=0.93)
    assert (found.grace_ms, found.kept_share) == (0, 0.93)


def test_records_without_a_key_are_not_counted() -> None:
    data = pd.DataFrame({"user": ["a", None, "a", "a"], "at": [100, 50, 0, 101]})
    plan = PLAN.windowed_by(sk.SessionWindows(inactivity_gap_ms=1, grace=0)).count()
    found = sk.suggest_grace(plan, data, keep=1.0)
    assert (found.records, found.grace_ms, found.kept_share) == (3, 99, 1.0)


@pytest.mark.parametrize("keep", [-0.1, 1.1, 99.9])
def test_keep_is_a_share(keep: float) -> None:
    with pytest.raises(InvalidArgument, match=r"keep is a share of the records; got .*; 0 to 1"):
        sk.suggest_grace(by("dest"), FLIGHTS, keep=keep)


def test_without_windows_there_is_no_grace() -> None:
    with pytest.raises(InvalidArgument, match="the plan has no windows"):
        sk.suggest_grace(
            by("dest").windowed_by(sk.TimeWindows(size_ms=1, grace=0)).__class__(by("dest").source), FLIGHTS
        )


# ---- sweeps


def test_every_cell_is_an_exact_run() -> None:
    plan = by("carrier", "origin")
    swept = sk.sweep(plan, FLIGHTS, inactivity_gap=["1h", "2h"], grace=[0, "30m", "2h"])
    for gap in ("1h", "2h"):
        for grace in (0, "30m", "2h"):
            metrics = plan.with_windows(inactivity_gap=gap, grace=grace).run(FLIGHTS).metrics()
            cell = swept.cell(inactivity_gap=gap, grace=grace)
            assert cell.dropped == metrics["dropped-late"]
            assert (cell.windows, cell.merges) == (metrics["windows"], metrics["windows-merged"])
            assert cell.dropped_share == metrics["dropped-late"] / len(FLIGHTS)
            assert cell.delay_ms == cell.plan.windows.close_lag_ms
    table = swept.table()
    assert table["inactivity_gap_ms"].tolist() == [HOUR] * 3 + [2 * HOUR] * 3
    assert len(table) == 6


def test_a_setting_that_another_one_beats_is_dominated() -> None:
    swept = sk.sweep(
        by("carrier", "origin"), FLIGHTS, inactivity_gap=["30m", "1h", "2h"], grace=[0, "30m", "12h", "15h"]
    )
    cells = list(zip(swept.cells, swept.is_dominated.tolist(), strict=True))
    for cell, beaten in cells:
        better = [
            other
            for other, _ in cells
            if other.dropped <= cell.dropped
            and (other.apart or 0) <= (cell.apart or 0)
            and other.delay_ms <= cell.delay_ms
            and (other.dropped, other.apart, other.delay_ms) != (cell.dropped, cell.apart, cell.delay_ms)
        ]
        assert beaten == bool(better)
    assert any(beaten for _, beaten in cells)
    assert not all(beaten for _, beaten in cells)


@pytest.mark.parametrize(
    ("windows", "values"),
    [(sk.TimeWindows(size="1h", grace=0), {"size": ["30m", "1h"], "grace": [0, "10m"]}),
     (sk.TimeWindows(size="1h", grace=0), {"advance": ["30m", "1h"]}),
     (sk.SlidingWindows(time_difference="1h", grace=0), {"time_difference": ["10m", "20m"], "grace": ["1h"]}),
     (sk.SessionWindows.until(inactivity_gap="1h", retention="1d"), {"retention": ["2h", "1d"]})],
    ids=repr,
)  # fmt: skip
def test_sweeps_of_other_windows(windows: Any, values: Any) -> None:
    plan = by("carrier").windowed_by(windows)
    swept = sk.sweep(plan, FLIGHTS, **values)
    for cell in swept.cells:
        assert cell.windows == plan.with_windows(**cell.settings).run(FLIGHTS).metrics()["windows"]
    assert len({tuple(cell.settings.values()) for cell in swept.cells}) == len(swept.cells)


@pytest.mark.parametrize(("values", "telling"), [
    ({}, "a sweep needs values"), ({"grace": []}, "a sweep needs values"),
    ({"size": ["1h"]}, "SessionWindows has no such parameter; got 'size'"),
    ({"grace": range(20_000)}, "the sweep has too many cells; got 20,000; at most 10,000"),
])  # fmt: skip
def test_sweeps_that_cannot_be(values: Any, telling: str) -> None:
    with pytest.raises(InvalidArgument, match=telling):
        sk.sweep(by("dest"), FLIGHTS, **values)


def test_a_cell_that_is_not_there() -> None:
    swept = sk.sweep(by("dest"), FLIGHTS, grace=["1h"])
    with pytest.raises(InvalidArgument, match=r"the sweep has no such cell; got .*; one of grace=\['1 h'\]"):
        swept.cell(grace="2h")


# ---- pictures


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pictures_draw_what_was_found(theme: Any) -> None:
    plan = by("carrier", "origin")
    gap, grace = sk.suggest_gap(plan, FLIGHTS), sk.suggest_grace(plan, FLIGHTS, keep=0.98)
    assert gap.figure(theme=theme).layout.shapes[-1].x0 == gap.gap_ms
    assert grace.figure(theme=theme).layout.shapes[0].x0 == grace.grace_ms
    swept = sk.sweep(plan, FLIGHTS, inactivity_gap=["1h", "2h"], grace=[0, "30m", "2h"])
    grid = swept.heat_map(theme=theme).data[0]
    assert [list(row) for row in grid.text] == [["5.97", "1.50"], ["3.35", "0.84"], ["0.74", "0.16"]]
    marks = [trace for trace in swept.pareto(theme=theme).data if trace.mode == "markers"]
    assert sum(len(trace.x) for trace in marks) == 6
    assert len({trace.marker.symbol.removesuffix("-open") for trace in marks}) == 2
    greyed = [len(trace.x) for trace in marks if trace.marker.symbol.endswith("-open")]
    assert sum(greyed) == int(swept.is_dominated.sum())


def figures() -> list[str]:
    """What is drawn from logarithms, as JSON."""
    plan = by("carrier", "origin")
    swept = sk.sweep(plan, FLIGHTS, inactivity_gap=["1h", "2h"], grace=[0, "30m"])
    return [sk.suggest_gap(plan, FLIGHTS).figure().to_json(), swept.heat_map().to_json()]


@pytest.mark.slow
def test_pictures_are_the_same_on_another_processor() -> None:
    """numpy takes the processor's best instructions, and log10, exp and power end in other digits with others."""
    plain = {"NPY_DISABLE_CPU_FEATURES": " ".join(feature for feature in BEST if CAN[feature])}
    code = "import json; from tests.unit.advice.test_suggest import figures; print(json.dumps(figures()))"
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **plain}, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == figures()


def test_the_legend_of_a_pareto_chart_has_room_for_every_gap() -> None:
    """Six gaps and the stair were seven entries in three rows of three, and the third row was cut off."""
    swept = sk.sweep(by("dest"), FLIGHTS[:2_000], inactivity_gap=["30m", "1h", "2h", "3h", "4h", "6h"], grace=[0])
    layout = swept.pareto().layout
    columns = (LEAST_WIDTH - layout.margin.l - layout.margin.r) // (layout.legend.entrywidth + 46)
    rows = -(-7 // columns)
    assert layout.margin.b >= 58 + 21 * rows


def test_a_picture_does_not_carry_the_template_of_plotly() -> None:
    swept = sk.sweep(by("dest"), FLIGHTS[:500], inactivity_gap=["1h", "2h"], grace=[0, "1h"])
    for figure in (swept.pareto(), swept.heat_map()):
        assert figure.layout.template.to_plotly_json() == {"data": {"scatter": [{"type": "scatter"}]}}


def test_one_dropped_record_is_not_drawn_as_none() -> None:
    at = [0, 10_000, 1_000, *[5_000] * 12, *range(10_000, 47_000)]
    frame = pd.DataFrame({"key": ["a"] * len(at), "at": at})
    plan = sk.group_by_key("key", timestamp="at", unit="ms")
    plan = plan.windowed_by(sk.SessionWindows(inactivity_gap_ms=1_000, grace=0)).count()
    swept = sk.sweep(plan, frame, inactivity_gap=["1s"], grace_ms=[0, 5_000, 60_000])
    assert [cell.dropped for cell in swept.cells] == [13, 1, 0]
    _, one, none = (y for trace in swept.pareto().data if trace.mode == "markers" for y in trace.y)
    assert none <= one / 2
    places = swept.pareto().layout.yaxis.tickvals
    assert places[0] == none and min(places[1:]) > 2 * none, "their names would lie over each other"


def test_a_heat_map_has_two_sides() -> None:
    swept = sk.sweep(by("dest"), FLIGHTS, grace=[0, "1h"])
    with pytest.raises(InvalidArgument, match="a heat map has two sides"):
        swept.heat_map()
    with pytest.raises(InvalidArgument, match="measure must be a known choice"):
        sk.sweep(by("dest"), FLIGHTS, grace=[0], inactivity_gap=["1h"]).heat_map("speed")


def test_a_valley_between_the_paces_of_two_keys_is_no_gap() -> None:
    """Collars that report every 2 and every 10 minutes: the gap between left each fix of the slow one alone."""
    minutes = [*range(0, 3_000, 10), *range(0, 3_000, 2)]
    frame = pd.DataFrame({"user": ["slow"] * 300 + ["fast"] * 1_500, "at": START + np.array(minutes) * 60_000})
    found = sk.suggest_gap(PLAN, frame)
    assert found.gap_ms is None
    assert "A valley at 4 min 30 s parts keys of different pace, not visits" in str(found)
    pauses = frame.assign(at=frame["at"] + ((frame["at"] - START) // (6 * HOUR)) * 5 * HOUR)
    found = sk.suggest_gap(PLAN, pauses)
    assert found.gap_ms is None or 10 * 60_000 < found.gap_ms < 5 * HOUR


def test_times_in_whole_hours_have_the_valley_that_they_have_in_minutes() -> None:
    """Tables booked by the hour: the peaks at 1, 2 and 3 hours hid the night between two days."""
    rng = np.random.default_rng(0)
    rows = [
        (user, 24 * day + hour)
        for user in range(40)
        for day in range(90)
        if rng.random() < 0.85
        for hour in rng.choice([17, 18, 18, 19, 19, 19, 20, 20, 21, 22], rng.integers(1, 6))
    ]
    frame = pd.DataFrame(rows, columns=["user", "hour"]).sort_values("hour")
    plain = sk.suggest_gap(PLAN, frame.assign(at=START + frame["hour"] * HOUR))
    finer = sk.suggest_gap(PLAN, frame.assign(at=START + frame["hour"] * HOUR + rng.integers(0, HOUR // 2, len(frame))))
    assert plain.gap_ms in (7 * HOUR, 8 * HOUR) and plain.depth > 50
    assert 7 * HOUR < (finer.gap_ms or 0) < 9 * HOUR


def test_the_picture_of_a_grace_says_one_that_is_enough() -> None:
    """Its title rounded down, to a grace with which more records were dropped than were asked for."""
    at = [0, 4_300_000, *range(4_300_001, 4_300_021), 88_989]
    records = pd.DataFrame({"key": "a", "at": np.array(at) + 1_767_225_600_000})
    plan = sk.group_by_key("key", timestamp="at", unit="ms").windowed_by(sk.TimeWindows(size="1ms", grace=0))
    found = sk.suggest_grace(plan, records, keep=1)
    title, marker = found.figure().layout.title.text, found.figure().layout.annotations[0].text
    assert found.grace_ms > 70 * 60_000 and "A grace of 1 h 11 min keeps 100%" in title
    assert marker == "<b>grace 1 h 11 min</b>"
