"""Lanes of more records than can be drawn one by one: what is shown as colour adds up, what stands out keeps a mark."""

import json
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

import sessionkit as sk
from sessionkit.base.decisions import LATE, MERGED
from sessionkit.views.drawing.grammar import MOST_SVG_POINTS
from sessionkit.views.lanes.density import MOST_DRAWN
from sessionkit.views.lanes.lanes import draw_lanes, lane_scene
from tests.headings import heading
from tests.kinds import group_in_ms
from tests.shapes import SHAPES, plan_of_shape
from tests.unit.views.charts.test_charts import HOSTILE, MINUTE, _unit, named

SECOND, HOUR = 1_000, 3_600_000
WINDOWS = {
    "session": sk.SessionWindows(inactivity_gap="30s", grace="30s"),
    "tumbling": sk.TimeWindows(size="1m", grace="30s"),
    "hopping": sk.TimeWindows(size="4m", advance="1m", grace="30s"),
    "sliding": sk.SlidingWindows(time_difference="20s", grace="30s"),
}
of_each_kind = pytest.mark.parametrize("kind", WINDOWS)
COUNT = 30_000


def run_of(windows: Any, keys: list[str], partitions: int = 1) -> sk.Run:
    """Records a second apart, of which some come minutes late."""
    rng = np.random.default_rng(7)
    late = rng.exponential(90 * SECOND, COUNT) * (rng.random(COUNT) < 0.2)
    key = rng.zipf(1.4, COUNT) % len(keys)
    data = pd.DataFrame({"at": (HOUR + np.arange(COUNT) * SECOND - late).astype(np.int64), "p": key % partitions})
    data["key"] = pd.array([keys[each] for each in key], "string")
    plan = group_in_ms("key", partition="p").windowed_by(windows)
    run: sk.Run = plan.count().run(data)
    return run


@pytest.fixture(scope="module", params=[1, 3], ids=["one partition", "three partitions"])
def runs(request: pytest.FixtureRequest) -> dict[str, sk.Run]:
    keys = [f"key {number:02}" for number in range(12)]
    return {kind: run_of(windows, keys, request.param) for kind, windows in WINDOWS.items()}


def heat(figure: go.Figure) -> Any:
    """The counts, a row for each lane, from the bottom."""
    return np.array([row for row in named(figure, "density").z if row], np.float64)


def is_density(figure: go.Figure) -> bool:
    return any(each.type == "heatmap" for each in figure.data)


@of_each_kind
def test_density_adds_up_to_the_records_in_the_span(runs: dict[str, sk.Run], kind: str) -> None:
    run = runs[kind]
    times = run.trace.batch.timestamp_ms
    assert int(np.nansum(heat(run.lanes(start=0)))) == COUNT
    first, last = HOUR + 2 * HOUR, HOUR + 8 * HOUR
    part = run.lanes(start=first, end=last)
    inside = (times >= first) & (times <= last)
    assert int(np.nansum(heat(part))) == int(inside.sum()) > MOST_DRAWN
    assert f"{inside.sum():,} records: shown as density; zoom in to see each" in heading(part)
    assert named(part, "records: 1 to").showlegend
    names = [text.removeprefix("<b>").partition("<")[0] for text in part.layout.yaxis.ticktext]
    assert len(names) == len(heat(part))
    for name, row in zip(names[::-1], heat(part), strict=True):
        mine = run.trace.batch.key == run.trace.keys.to_pylist().index(name)
        assert int(np.nansum(row)) == int((mine & inside).sum())


@of_each_kind
def test_what_stands_out_has_a_mark_in_every_cell_that_holds_it(runs: dict[str, sk.Run], kind: str) -> None:
    run = runs[kind]
    trace, figure = run.trace, runs[kind].lanes(start=0, width=1_120)
    masks = {"dropped": trace.decision == LATE}
    if kind == "session":
        masks["bridge"] = trace.decision == MERGED
        masks["late, saved"] = trace.late_but_kept & (trace.decision != MERGED)
    else:
        some = np.zeros(len(trace), np.bool_)
        some[trace.missed.record] = True
        masks["too late for"] = some & trace.accepted
        masks["late, but"] = trace.late_but_kept & ~some
    low, high = figure.layout.xaxis.range
    unit = _unit(figure)
    plot = figure.layout.width - figure.layout.margin.l - figure.layout.margin.r
    heights = dict(zip(figure.layout.yaxis.ticktext, figure.layout.yaxis.tickvals, strict=True))
    names = np.array([heights[f"<b>{key}</b>"] for key in trace.keys.to_pylist()])
    assert masks["dropped"].any() and (kind != "session" or masks["bridge"].any())
    for name, mask in masks.items():
        drawn = named(figure, name)
        assert sum(drawn.customdata) == mask.sum()
        marked = {
            (round(y), int((x - low) / (high - low) * (plot // 8))) for x, y in zip(drawn.x, drawn.y, strict=True)
        }
        column = ((trace.batch.timestamp_ms[mask] / unit - low) / (high - low) * (plot // 8)).astype(int)
        held = set(zip(names[trace.batch.key[mask]].tolist(), column.tolist(), strict=True))
        assert marked == held and len(drawn.x) == len(held)  # at most one of a kind for a cell, and never none
    assert sum(len(named(figure, name).x) for name in masks) <= MOST_SVG_POINTS
    assert all(each.type == "scatter" for each in figure.data if each.name != "density")  # WebGL lies below the colour


def test_marks_say_how_many_they_stand_for(runs: dict[str, sk.Run]) -> None:
    drops = named(runs["session"].lanes(start=0), "dropped")
    many = int(np.argmax(drops.customdata))
    assert drops.hovertext[many].startswith(f"<b>dropped: {drops.customdata[many]:,}</b><br>")
    assert " to " in drops.hovertext[many] and "first of them: offset" in drops.hovertext[many]
    lone = drops.customdata.index(1)
    assert "first of them" not in drops.hovertext[lone]


@of_each_kind
def test_zooming_in_gives_the_ordinary_lanes(runs: dict[str, sk.Run], kind: str) -> None:
    run = runs[kind]
    first, last = HOUR + 4 * HOUR, HOUR + 4 * HOUR + 10 * MINUTE
    assert is_density(run.lanes(start=first))
    near = run.lanes(start=first, end=last)
    assert not is_density(near)
    alone = draw_lanes(lane_scene(run.trace, run.plan.windows, start=first, end=last))
    assert near.to_json() == alone.to_json()  # what the run keeps for its pictures changes none of them
    assert sum(len(each.x) for each in near.data if each.mode == "markers" and each.showlegend) == int(
        ((run.trace.batch.timestamp_ms >= first) & (run.trace.batch.timestamp_ms <= last)).sum()
    )


def test_a_span_beyond_the_data_shows_all_of_it(runs: dict[str, sk.Run]) -> None:
    run = runs["session"]
    everything = run.lanes(start=0).to_json()
    assert run.lanes(start=0, end=10**15).to_json() == everything
    assert run.lanes(end=10**15).to_json() == everything
    assert "shown:" not in heading(run.lanes(start=0))


def test_a_part_that_nobody_asked_for_is_drawn_record_by_record(runs: dict[str, sk.Run]) -> None:
    figure = runs["session"].lanes()
    assert not is_density(figure) and "the part with the most to see" in heading(figure)


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_plotly_finds_no_fault_with_the_density(runs: dict[str, sk.Run], theme: Any) -> None:
    for kind in WINDOWS:
        figure = runs[kind].lanes(start=0, most=3, theme=theme)
        checked = go.Figure(figure.to_dict())
        assert json.loads(checked.to_json()) == json.loads(figure.to_json())
        assert len(figure.to_json()) < 1_000_000


def test_keys_in_the_density_are_text() -> None:
    figure = run_of(WINDOWS["session"], HOSTILE).lanes(start=0)
    assert is_density(figure)
    written = figure.to_json()
    for bad in ("<img", "<script", "</script", r"$\\href", "javascript:alert(1)}{x}$", "\x00"):
        assert bad not in written
    templates = {each.hovertemplate for each in figure.data}
    assert templates == {None, "%{hovertext}<extra></extra>", "records here: %{z:,}<extra></extra>"}


# ---- rims that would hide what they are to tell apart


def _rims(figure: go.Figure) -> set[float]:
    return {each.marker.line.width for each in figure.data if each.name == "record"}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("windows", [WINDOWS["session"], sk.TimeWindows(size="1h", grace="1m")])
def test_records_that_lie_over_each_other_have_no_rims(windows: Any, theme: Any) -> None:
    at = pd.date_range("2026-04-01", periods=9_000, freq="2s")
    crowd = pd.DataFrame({"user": "ada", "at": at})
    few = pd.DataFrame({"user": "bob", "at": at[::450]})
    plan = sk.group_by_key("user", timestamp="at", timezone="UTC").windowed_by(windows).count()
    run = plan.run(pd.concat([crowd, few]).sort_values("at", kind="stable"))
    for width in (700, 1200):
        assert _rims(run.lanes(theme=theme, width=width)) == {0}
    assert min(_rims(run.lanes(keys=["bob"], theme=theme))) > 0, "the few of one key stand apart"
    assert _rims(run.plane(key="ada", from_offset=0, until_offset=4_000, theme=theme)) == {0}
    assert min(_rims(run.plane(key="ada", theme=theme))) > 0


@pytest.mark.parametrize(("name", "said"), [
    ("few_records_behind", "20 records lie outside this span, far off"),
    ("few_records_ahead", "1 record lies outside this span, far off"),
])  # fmt: skip
def test_clocks_that_were_never_set_do_not_stretch_the_lanes(name: str, said: str) -> None:
    """The lanes were 55 years wide, with all other records in one pixel."""
    run = plan_of_shape("1h").run(SHAPES[name]())
    scene = lane_scene(run.trace, run.plan._complete_windows)
    low, high = scene.x_range_ms
    assert high - low < 20 * 24 * HOUR and len(scene.board.records) > 1_000
    assert said in " ".join(heading(run.lanes()).split())
    board = sk.tune(plan_of_shape("1h"), SHAPES[name]())
    board._view.value = "lanes"
    board.set(grace="2h")
    assert said in str(board.figures["lanes"])
    whole = lane_scene(run.trace, run.plan._complete_windows, start=0)
    assert whole.x_range_ms[1] - whole.x_range_ms[0] > 1_000 * 24 * HOUR and not whole.board.far_off
