"""What a picture shows of real data when nothing was asked for: sessions beside drops, not a wall of tethers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument
from sessionkit.views.drawing.grammar import FLUID_WIDTHS
from sessionkit.views.plane.plane import plane_scene
from sessionkit.views.scenes.scene import Plane
from tests.unit.views.charts.test_charts import MINUTE, boxes, heading, labels, named, pieces, run_of

DAY = 1_440  # rows have minutes
SESSIONS = sk.SessionWindows(inactivity_gap="10m", grace="5m")
KINDS = {
    "session": SESSIONS,
    "tumbling": sk.TimeWindows(size="10m", grace="5m"),
    "hopping": sk.TimeWindows(size="10m", advance="5m", grace="5m"),
    "sliding": sk.SlidingWindows(time_difference="10m", grace="5m"),
}


def bursts(count: int, begin: int = 20_000 * DAY) -> list[tuple[str, int]]:
    """Four records, each minute one, then half an hour of nothing."""
    return [("ana", begin + n // 4 * 30 + n % 4) for n in range(count)]


def history_with_a_merged_branch() -> list[tuple[str, int]]:
    """Years of one key with long silences, in which a branch of 300 records from a year before arrives at once."""
    rng = np.random.default_rng(3)
    days = np.cumsum(rng.choice([1, 2, 9, 60], 120, p=[0.5, 0.3, 0.15, 0.05]))
    own = [("ana", int((20_000 + day) * DAY + n * 3)) for day in days for n in range(rng.integers(1, 9))]
    branch = [("ana", 19_630 * DAY + n * DAY) for n in range(300)]
    return [*own[:250], *branch, *own[250:]]


def scene_of(rows: list[tuple[str, int]], windows: Any, key: str = "ana", **options: Any) -> Plane:
    run = run_of(rows, windows)
    return plane_scene(run.trace, run._windows, key, **options)


@pytest.mark.parametrize("windows", KINDS.values(), ids=KINDS)
def test_the_first_picture_is_no_wall_of_tethers(windows: Any) -> None:
    """It was the 120 rows with most drops: tethers over a year, and no session."""
    scene = scene_of(history_with_a_merged_branch(), windows)
    kept = scene.trace.accepted[scene.shown(scene.history.timed)]
    assert kept.sum() > len(kept) / 2
    assert len({cap.window for cap in scene.caps}) >= 4


def test_the_first_picture_shows_the_drop_among_sessions() -> None:
    rows = bursts(600)
    rows[431] = ("ana", rows[431][1] - 45)
    scene = scene_of(rows, SESSIONS)
    assert scene.drops.tolist() == [431] and len(scene.caps) >= 4


@pytest.mark.parametrize("windows", KINDS.values(), ids=KINDS)
def test_where_nothing_is_dropped_windows_are_shown_and_it_is_said(windows: Any) -> None:
    beats = [
        (name, 20_000 * DAY + n) for n in range(600) for name in ("ana", "bo") if name == "bo" or not 200 < n < 260
    ]
    run = run_of(beats, windows)
    figure = run.plane("ana")
    assert "none of its records was dropped: the picture shows" in heading(figure)
    assert len(named(figure, "closed: the result").x) > 0
    seen = "" if "shown:" in heading(run.lanes()) else f": the lanes show {len(run.table()):,} {run._windows.noun}s"
    assert f"nothing was dropped{seen}" in heading(run.lanes())
    assert "the lanes show" not in heading(run.lanes(start="2024-10-05", end="2024-10-07"))
    assert "what has the most records" in heading(run.lanes())


def test_without_drops_and_merges_the_key_with_most_windows_comes_first() -> None:
    rows = [
        (name, 20_000 * DAY + n) for n in range(60) for name in ("ana", "bo") if name == "ana" or n not in range(20, 40)
    ]
    assert run_of(rows, SESSIONS).most_eventful_key() == "bo"


def test_a_drop_is_shown_although_more_nights_lie_around_it() -> None:
    """A bike had seven trips dropped in a year, and the part shown had none, as fewer nights lay between others."""
    pauses = [60 if n % (20 if n < 400 else 17) == 0 else 12 for n in range(800)]
    trips = [("ana", 20_000 * DAY + at) for at in np.cumsum(pauses).tolist()]
    trips[605] = ("ana", trips[604][1] - 40)
    assert len(named(run_of(trips, SESSIONS).plane(), "dropped").x) == 1


def test_that_no_drop_is_in_the_part_is_said() -> None:
    rows = bursts(600)
    rows[431] = ("ana", rows[431][1] - 45)
    figure = run_of(rows, SESSIONS).plane("ana", last=60)
    assert "its dropped record is not in this part: the picture shows 16 sessions" in heading(figure)


# ---- many tethers, and marks that are far off


@pytest.mark.parametrize("windows", KINDS.values(), ids=KINDS)
def test_many_tethers_become_one_area_with_one_label(windows: Any) -> None:
    old = [("ana", 19_999 * DAY + n) for n in range(20)]
    figure = run_of([*bursts(20), *old, *bursts(8, 20_001 * DAY), old[3]], windows).plane("ana", width=1_120)
    (area,) = pieces(named(figure, "many dropped"))
    assert sorted(set(area[1])) == list(range(20, 40))
    assert len(pieces(named(figure, "missing grace"))) == 1  # of the drop that is alone
    assert [text.startswith("<b>20 records dropped</b>") for text in labels(figure, "crowd")] == [True]
    assert len(named(figure, "◂").x) + len(named(figure, "dropped").x) == 21


def test_few_tethers_stay_lines() -> None:
    rows = bursts(40)
    for n in (11, 15, 19):
        rows[n] = ("ana", rows[n][1] - 60)
    figure = run_of(rows, SESSIONS).plane("ana")
    assert len(named(figure, "many dropped").x) == 0 and len(pieces(named(figure, "missing grace"))) == 3


@pytest.mark.parametrize("width", [None, *FLUID_WIDTHS[1:3]])
@pytest.mark.parametrize("windows", KINDS.values(), ids=KINDS)
def test_a_drop_from_long_before_stands_at_the_edge(windows: Any, width: int | None) -> None:
    """One drop of the day before pressed everything else into a fiftieth of the width."""
    rows = bursts(24)
    rows.insert(13, ("ana", rows[0][1] - DAY))
    run = run_of(rows, windows)
    figure = run.plane("ana", width=width)
    scene = plane_scene(run.trace, run._windows, "ana")
    low, high = scene.x_range_ms
    assert scene.far.tolist() == [13] and high - low < 5 * 60 * MINUTE
    assert low < scene.at_ms(scene.far)[0] < run.trace.batch.timestamp_ms.max() - 2 * 60 * MINUTE
    (text,) = labels(figure, "dropped")
    assert "◂ dropped" in text and scene.axis.show(rows[13][1] * MINUTE) in text
    assert scene.axis.show(rows[13][1] * MINUTE) in named(figure, "◂").hovertext[0]
    assert width is None or all(left >= 0 for left, *_ in boxes(figure))


def test_where_all_was_dropped_nothing_is_far() -> None:
    scene = scene_of([("bo", 20_000 * DAY), *[("ana", (9_000 + n) * DAY) for n in range(9)]], SESSIONS)
    assert len(scene.far) == 0 and scene.x_range_ms[0] <= 9_000 * DAY * MINUTE


def test_a_board_rings_a_far_drop_at_the_edge() -> None:
    run_views = pytest.importorskip("sessionkit.widgets.run_views")
    rows = bursts(24)
    rows.insert(13, ("ana", rows[0][1] - DAY))
    run, view = run_of(rows, SESSIONS), run_views.PlaneView()
    picture = view.draw(run, "ana", run_views.Look(), run_views.Chosen("ana", 0, 13))
    assert picture.figure.data[-1].name == "chosen"
    assert list(picture.figure.data[-1].x) == list(named(picture.figure, "◂").x)


# ---- which part


def test_last_is_a_number_of_records() -> None:
    """`last=60` meant "up to offset 60", and showed no record of a key that came later."""
    rows = [("bo", 19_000 * DAY + n) for n in range(200)] + bursts(80)
    scene = scene_of(rows, SESSIONS, last=60)
    assert scene.shown(scene.history.own).tolist() == list(range(220, 280))
    assert "shown: offsets 220 to 279 of 0 to 279" in heading(run_of(rows, SESSIONS).plane("ana", last=60))


def test_last_of_a_rare_key_among_many_records_shows_them_all() -> None:
    rows = [("ana" if n % 50 == 7 else "bo", 20_000 * DAY + n * 7) for n in range(5_000)]
    scene = scene_of(rows, SESSIONS, last=90)
    own = scene.shown(scene.history.own)
    assert len(own) == 90 and len(scene.rows) < 600


def test_more_than_there_are_is_said_with_the_option_for_offsets() -> None:
    figure = run_of(bursts(20), SESSIONS).plane("ana", last=2_000)
    assert "the key has 20 records here, and all are shown (up to an offset: until_offset=2000)" in heading(figure)


@pytest.mark.parametrize(
    ("asked", "got"),
    [({"last": 0}, "last=0"), ({"last": 9, "from_offset": 3}, "last=9, from_offset=3"), ({"last": "9"}, "text|str")],
)
def test_last_is_refused_where_it_has_no_meaning(asked: dict[str, Any], got: str) -> None:
    with pytest.raises(InvalidArgument, match=got):
        run_of(bursts(20), SESSIONS).plane("ana", **asked)


def test_old_calls_are_answered_with_the_new_names() -> None:
    run = run_of(bursts(20), SESSIONS)
    with pytest.raises(InvalidArgument, match="'first'; from_offset= is the nearest name"):
        run.plane("ana", first=3, last=9)  # type: ignore[call-arg]
    with pytest.raises(InvalidArgument, match="'last'; until_offset= is the nearest name"):
        run.emissions("ana").figure(last=9)  # type: ignore[call-arg]


# ---- lanes


@pytest.mark.parametrize("windows", KINDS.values(), ids=KINDS)
def test_lanes_begin_where_something_was_kept(windows: Any) -> None:
    """Days with nothing but drops were most eventful."""
    old = [("ana", 19_630 * DAY + n % 40 * 20) for n in range(900)]
    run = run_of([*bursts(2_000), *old], windows)
    shown = [pd.Timestamp(each, unit="ms") for each in run.lanes().layout.xaxis.range]
    assert shown[0] > pd.Timestamp(19_999 * DAY * MINUTE, unit="ms")
