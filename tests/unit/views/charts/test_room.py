"""What charts make of the room that they have: a phone, a wide screen, and data with little in it."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument
from sessionkit.views.drawing.measured_text import key_labels, text_width
from sessionkit.views.drawing.time_axis import lengths_axis

DAY = 86_400_000
START = 19_700 * DAY
PLAN = sk.group_by_key("who", timestamp="at", unit="ms").windowed_by(
    sk.SessionWindows(inactivity_gap="1h", grace="30m")
)


@pytest.fixture
def phone() -> Iterator[None]:
    sk.options.width = 375
    yield
    sk.options.width = None


def run_of(keys: list[str], hours: list[float], gap: str = "1h") -> Any:
    table = {"who": keys, "at": [START + round(hour * 3_600_000) for hour in hours]}
    plan = PLAN.count().with_windows(inactivity_gap=gap)
    return plan.run(table)


@pytest.mark.usefixtures("phone")
def test_every_figure_has_the_width_that_was_asked_for() -> None:
    run = run_of(["a", "b", "a"], [0, 5, 9])
    figures = [run.plane("a"), run.lanes(), run.latency().figure(), run.open_windows().figure(), run.clock().figure()]
    figures += [run.drop_calendar().figure(), run.emissions("a").figure(), run.explain(offset=0).figure()]
    assert [figure.layout.width for figure in figures] == [375] * len(figures)
    for figure in figures:
        lines = figure.layout.title.text.split("<br>")
        assert max((text_width(line, 13) for line in lines[1:]), default=0) <= 375


@pytest.mark.parametrize("width", [359, True, "wide", 0])
def test_a_width_without_room_for_words_is_refused(width: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"width|room"):
        sk.options.width = width
    assert sk.options.width is None


def test_captions_are_as_wide_as_a_wide_picture() -> None:
    run = run_of([f"key {number}" for number in range(60)], [number / 7 for number in range(60)])
    narrow, wide = (run.lanes(width=width).layout.title.text.count("<br>") for width in (600, 1_600))
    assert wide < narrow


def test_keys_that_would_be_cut_alike_are_cut_where_they_differ() -> None:
    keys = [f"boiler-room/thermometer-{number}/temperature" for number in (7, 11)]
    found = key_labels(keys, 20)
    assert len(set(found)) == 2
    assert "7" in found[0]
    assert "11" in found[1]
    assert max(map(len, found)) <= 20
    assert key_labels(["", "x" * 30, "x" * 29], 9)[0] == "(empty)"
    assert len(set(key_labels(["a<b" * 9, "a<b" * 9 + "c"], 12))) == 2


def test_keys_that_are_cut_alike_stay_apart_beside_others() -> None:
    keys = [*(f"boiler-room/thermometer-{number}/temperature" for number in range(3)), "a long name of another kind"]
    found = key_labels([*keys, "", "(empty)"], 20)
    assert len(set(found[:4])) == 4
    assert found[4:] == ["(empty)", "(empty)"]


def test_an_axis_between_two_round_lengths_has_no_ticks_and_is_drawn() -> None:
    assert lengths_axis(70_000, 80_000, logarithmic=True, room=200)["tickvals"] == []


def test_two_keys_that_are_cut_alike_have_two_lanes_in_a_comparison() -> None:
    keys = [f"boiler-room/thermometer-{number}/temperature" for number in (7, 8)]
    runs = [run_of([*keys, *keys], [0, 0.1, 1.5, 1.6], gap) for gap in ("1h", "3h")]
    lanes = runs[0].compare(runs[1]).figure().layout.yaxis.categoryarray
    assert len(set(lanes)) == 4


def test_nothing_that_changes_is_said_without_an_empty_plot() -> None:
    run = run_of(["a", "a"], [0, 9])
    figure = run.compare(run).figure()
    assert figure.layout.title.text.startswith("<b><span style='font-size:19px'>Nothing changes")
    assert not figure.layout.xaxis.visible


def test_axis_and_legend_stand_on_top_of_long_lanes_and_below_short_ones() -> None:
    long = run_of([f"key {number}" for number in range(60)], [number / 7 for number in range(60)]).lanes()
    short = run_of(["a", "b"], [0, 1]).lanes()
    assert (long.layout.xaxis.side, short.layout.xaxis.side) == ("top", None)
    assert long.layout.legend.y > 0.8 > short.layout.legend.y


def test_a_session_of_one_record_has_a_time_axis_of_seconds_and_no_axis_of_merges() -> None:
    figure = run_of(["a", "b"], [0, 5]).lineage("a", START).figure()
    low, high = figure.layout.xaxis.range
    assert high - low >= 60_000
    assert not figure.layout.yaxis.visible


def test_waits_that_read_alike_have_one_name() -> None:
    figure = run_of(["a", "b"], [0, 5]).latency().figure()
    names = [note.text for note in figure.layout.annotations]
    assert names == ["the least: 1 h 30 min", "50% and 100%: 5 h"]


def sweep(hours: list[float]) -> Any:
    table = {"who": ["a"] * len(hours), "at": [START + round(hour * 3_600_000) for hour in hours]}
    return sk.sweep(PLAN.count(), table, inactivity_gap=["30m", "1h", "2h"], grace=["0s", "1h"])


def test_colours_of_a_sweep_are_explained_for_each_measure() -> None:
    figure = sweep([0, 5, 4, 3.9, 9, 8.5, 7]).heat_map()
    bar = figure.data[0].colorbar
    assert len(bar.tickvals) == len(bar.ticktext) >= 2
    assert figure.data[0].zmin <= min(bar.tickvals) < max(bar.tickvals) <= figure.data[0].zmax
    assert bar.title.text == "% of the records dropped as late"
    changes = [button.args[0] for button in figure.layout.updatemenus[0].buttons]
    assert [change["colorbar.title.text"][0] for change in changes][1:] == [
        "windows",
        "merges",
        "wait for a final result",
    ]


def test_a_sweep_that_drops_nearly_all_has_the_colour_of_that_and_says_why() -> None:
    """It was white, as one that drops nothing, on a scale to 920 %, with two names of ticks over each other."""
    found = sweep([*range(400, 0, -4)])
    least = min(cell.dropped_share for cell in found.cells)
    assert least > 0.9
    grid = found.heat_map().data[0]
    assert grid.zmax == 0 and (grid.z.min() - grid.zmin) / (grid.zmax - grid.zmin) > 0.9
    assert len(grid.colorbar.tickvals) == 1
    assert "because the newest row stands first" in repr(found)
    assert "because" not in repr(sweep([0, 5, 4, 9]))


def test_the_name_of_a_long_gap_stands_before_its_line() -> None:
    hours = np.cumsum([*[0.01] * 40, 3.0] * 6).tolist()
    figure = sk.suggest_gap(
        PLAN.count(), {"who": ["a"] * len(hours), "at": [START + round(h * 3.6e6) for h in hours]}
    ).figure()
    (note,) = [each for each in figure.layout.annotations if each.text.startswith("<b>gap")]
    low, high = figure.layout.xaxis.range
    assert (note.xanchor == "right") == (note.x > low + 0.65 * (high - low))


def test_a_sweep_in_which_nothing_is_dropped_says_so() -> None:
    figure = sweep([0, 1, 2]).heat_map()
    assert "no setting drops a record" in figure.layout.title.text
    assert not figure.data[0].showscale


def test_shares_that_are_close_to_each_other_have_two_ticks() -> None:
    axis = sweep([0, 5, 4, 3.9, 9, 8.5, 7]).pareto().layout.yaxis
    assert len(axis.tickvals) >= 2
