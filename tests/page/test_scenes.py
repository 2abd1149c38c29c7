"""Bars, polygons, stairs, marks and sentences of the page are those of the package's own charts and explanations."""

import html
import re
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.base.decisions import LATE
from sessionkit.errors import shorten
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.views.drawing.grammar import Outline, growing
from sessionkit.views.drawing.simple_frame import ROW_LETTERS
from sessionkit.views.explain.figure import MARK, chain_figure
from sessionkit.views.lanes.lanes import lane_scene
from sessionkit.views.page.sample import sample
from sessionkit.views.plane.plane import plane_scene
from tests.optional import Page as Tab
from tests.page.scenes import as_drawn, drawing
from tests.page.streams import PARTITIONS, drawn
from tests.pictures.shapes import SHAPES
from tests.shapes import SHAPES as FRAMES
from tests.shapes import plan_of_shape

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore:column 'at' read as ms:UserWarning")]

RUNS = 12
EXPLAINED = 60  # records of a run
CHAINS = 6  # of late ones among them
CHAIN_ROWS = ("record", "close", "stream", "mover")
tab = pytest.fixture(drawing, scope="module")


def points(outline: Outline) -> dict[str, list[Any]]:
    return {"x": outline.x_ms, "y": outline.y}


def reach(scene: Any) -> Outline:
    found = Outline()
    for life in scene.lives:
        steps = [(row, *scene.window.reach_of_ms(*bounds)) for row, *bounds in life.steps]
        found.add(*growing(steps, life.end))
    return found


def assert_same_plane(scene: Any, ours: dict[str, Any]) -> None:
    """One key's plane."""
    trace, history = scene.trace, scene.history
    assert ours["rows"] == scene.rows.tolist()
    if not len(scene.rows):
        return
    assert ours["streamLine"] == points(scene.stream_line)
    assert ours["closeLine"] == points(scene.close_line)
    assert [ours["away"], ours["lacking"]] == [points(line) for line in scene.tethers]
    lives = [[life.window, [list(step) for step in life.steps], life.end, life.how] for life in scene.lives]
    assert sorted(ours["lives"]) == sorted(lives)
    caps = [[cap.window, cap.at, cap.start_ms, cap.end_ms, cap.size.record_count] for cap in scene.caps]
    assert sorted(ours["caps"]) == sorted(caps)
    beyond = 2 * (max(scene.x_range_ms) > 2**53)  # the room beside what is drawn may lie beyond the exact numbers
    assert np.allclose(ours["xRange"], scene.x_range_ms, rtol=0, atol=beyond)
    if isinstance(trace, SessionTrace):
        for name, outline in (("bodies", scene.bodies), ("reach", reach(scene)), ("bars", scene.bars)):
            assert ours[name] == points(outline), name
        assert dict(map(tuple, ours["missing"])) == scene.missing_ms
        kinds = (scene.drops, history.merges, history.late_but_kept, [], history.reopened, history.plain)
    else:
        assert ours["layers"] == [points(layer) for layer in scene.layers]
        assert ours["feet"] == points(scene.feet)
        missed = zip(trace.missed.record[scene.missed].tolist(), scene.ends_ms(scene.missed).tolist(), strict=True)
        assert sorted(map(tuple, ours["missedEnds"])) == sorted(missed)
        kinds = (scene.drops, [], history.late_but_kept, history.partly_late, [], history.plain)
    for ours_of_kind, rows in zip(ours["marks"], kinds, strict=False):
        assert ours_of_kind == scene.shown(np.asarray(rows, np.int64)).tolist()


def assert_same_lanes(scene: Any, ours: dict[str, Any], order: dict[int, int]) -> None:
    """The lanes of many keys; `order` is the number of each key on the page."""
    trace, board = scene.trace, scene.board
    partitions = len(trace.batch.partitions)
    assert ours["lanes"] == [order[lane.key] * partitions + lane.partition for lane in board.lanes]
    assert [ours["first"], ours["last"]] == [board.first_ms, board.last_ms]
    columns = trace.window_columns

    def bars(windows: Any) -> list[list[int]]:
        bounds = (columns.start_ms[windows].tolist(), columns.end_ms[windows].tolist())
        return [list(each) for each in zip(*bounds, board.heights(windows), strict=True)]

    assert ours["open"] == bars(scene.open_windows)
    assert ours["closed"] == bars(board.windows[trace.closed_by[board.windows] >= 0])
    assert ours["drops"] == scene.drops.tolist()
    assert dict(zip(ours["drops"], ours["lacked"], strict=False)) == dict(list(scene.missing_ms.items())[:300])
    assert ours["shown"] == board.records.tolist()
    now = scene.stream_time_ms
    assert ours["clocks"] == ([None, None] if now is None else [now - trace.close_lag_ms, now])
    beyond = 2 * (max(scene.x_range_ms) > 2**53)
    assert np.allclose(ours["range"], scene.x_range_ms, rtol=0, atol=beyond)
    if isinstance(trace, SessionTrace):
        assert ours["former"] == [list(each) for each in zip(*(part.tolist() for part in scene.former), strict=True)]
    else:
        assert dict(map(tuple, ours["sublanes"])) == scene.sublane


def assert_drawn_alike(tab: Tab, run: sk.Run, keys: list[tuple[int, int]], sort: str = "drops") -> int:
    """Planes of these keys (codes) and partitions (codes), the lanes, and explanations of some records."""
    trace, windows = run.trace, run.plan._complete_windows
    order = {code: number for number, code in enumerate(sample(trace, None, max(len(trace), 1)).keys.tolist())}
    rng = np.random.default_rng(1)
    told = rng.permutation(len(trace))[:EXPLAINED]
    ours = as_drawn(tab, run, [(order[key], partition) for key, partition in keys], sort, told.tolist())
    for (key, partition), plane in zip(keys, ours["planes"], strict=True):
        number = int(trace.batch.partitions[partition])
        assert_same_plane(plane_scene(trace, windows, trace.keys[key].as_py(), partition=number), plane)
    assert_same_lanes(lane_scene(trace, windows, sort=sort, most_drawn=10**9), ours, order)  # type: ignore[arg-type]
    for index, words in zip(told.tolist(), ours["explained"], strict=True):
        partition, offset = int(trace.batch.partitions[trace.batch.partition[index]]), int(trace.batch.offset[index])
        assert words == run.explain(offset=offset, partition=partition).replace("key )", "key (empty))")
    late = trace.late_for_some[told] | trace.late_but_kept[told]
    in_time = ~late & (trace.decision[told] <= LATE)
    some = np.flatnonzero(late)[:CHAINS].tolist() + np.flatnonzero(in_time)[:1].tolist()
    for place in some:
        found = as_the_package(ours["chains"][place], trace.batch.timestamp_ms)
        assert found == chain(trace, windows, int(told[place]))
    return len(keys)


def chain(trace: Any, windows: Any, index: int) -> dict[str, Any]:
    """The chain of a decision as the package draws it."""
    with patch("sessionkit.views.explain.figure.event_time_axis"):  # times stay numbers
        figure = chain_figure(trace, windows, index, theme=None)
    kinds = {(2, "dot"): "lacking", (7, None): "wide", (2, None): "thin"}
    lines = []
    for each in (each for each in figure.data if each.mode == "lines"):
        row = CHAIN_ROWS[round(sum(each.y) / 2 - MARK)]
        lines.append([row, *each.x, kinds[each.line.width, each.line.dash], each.y[0] != each.y[1]])
    marks = [[CHAIN_ROWS[round(each.y[0] - MARK)], each.x[0], each.marker.symbol] for each in figure.data[len(lines) :]]
    notes = sorted(figure.layout.annotations, key=lambda note: note.y)
    said = [html.unescape(note.text.replace("<br>", " ")).replace("key )", "key (empty))") for note in notes]
    heading = html.unescape(re.sub("<.*?>", "", figure.layout.title.text.replace("<br>", " ")))
    title = re.findall(r"^Why .*? (?:was kept|was dropped|missed a window)", heading)[0]
    note = "".join(re.findall(r"[\d,]+ records? came too late for this stream time", heading))
    return {"title": title.replace("key )", "key (empty))"), "said": said, "lines": lines, "marks": marks, "note": note}


def as_the_package(chain: Any, at: Any) -> Any:
    """A chain of the page with the package's names for how its lines and marks look."""
    widths = {"lacking": "lacking", "wait": "wide", "moved": "wide", "missed": "wide"}
    symbols = {"drop": "x", "record": "circle", "mover": "diamond"}
    lines = [[row, low, high, widths.get(kind, "thin"), bool(up)] for row, low, high, kind, *up in chain["lines"]]
    marks = [[row, int(at[index]), symbols[kind]] for row, index, kind in chain["marks"]]
    said = [shorten(words, ROW_LETTERS) for words in chain["said"]]
    return {**chain, "lines": lines, "marks": marks, "said": said, "note": chain["note"].removesuffix(".")}


@pytest.mark.parametrize("kind", ["session", "tumbling", "hopping"])
def test_random_runs_are_drawn_and_explained_alike(tab: Tab, kind: str) -> None:
    for seed in range(RUNS):
        run = drawn(kind, 1_000 + seed)
        trace = run.trace
        seen = np.unique(np.stack([trace.batch.key, trace.batch.partition], axis=1)[trace.batch.key >= 0], axis=0)
        chosen = np.random.default_rng(seed).permutation(len(seen))[:PARTITIONS]
        sort = ("drops", "merges", "activity", "key")[seed % 4]
        assert assert_drawn_alike(tab, run, [tuple(pair) for pair in seen[chosen].tolist()], sort) > 20


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("kind", ["session", "hopping"])
def test_other_shapes_of_data_are_drawn_and_explained_alike(tab: Tab, name: str, kind: str) -> None:
    shape = SHAPES[name]()
    plan = shape.plan
    if kind == "hopping":
        gap = plan._complete_windows.reach_ms
        plan = plan.windowed_by(sk.TimeWindows(size_ms=3 * gap, advance_ms=gap, grace_ms=gap))
    run = plan.run(shape.table)
    counts = np.bincount(run.trace.batch.key)
    keys = [run.trace.keys.index(run.most_eventful_key()).as_py(), int(np.argmax(counts)), int(np.argmin(counts))]
    assert_drawn_alike(tab, run, [(key, 0) for key in dict.fromkeys(keys)])


@pytest.mark.parametrize("name", ["few_records_behind", "few_records_ahead"])
def test_records_of_clocks_that_were_never_set_are_drawn_alike(tab: Tab, name: str) -> None:
    """The first span is that of nearly all records, on the page as in the package."""
    assert_drawn_alike(tab, plan_of_shape("1h").run(FRAMES[name]()), [(0, 0)])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "windows", [sk.SessionWindows(inactivity_gap_ms=7, grace_ms=3), sk.TimeWindows(size_ms=12, grace_ms=0)]
)
def test_records_that_are_ahead_and_kept_are_drawn_and_explained_alike(tab: Tab, windows: Any, seed: int) -> None:
    """They move no stream time; the first record of each partition is one of them."""
    rng = np.random.default_rng(seed)
    came, partition = np.arange(120), np.append([0, 1], rng.integers(0, 2, 118))
    is_ahead = np.append([True, True], rng.random(118) < 0.2)
    at = np.where(is_ahead, came + rng.integers(21, 60, 120), np.maximum(came - rng.integers(0, 15, 120), 0))
    data = {"who": rng.choice(["ada", "bob"], 120), "at": at, "came": came, "part": partition}
    group = sk.group_by_key(
        "who", timestamp="at", unit="ms", partition="part", arrival="came", max_ahead="20ms", ahead="keep"
    )
    run = group.windowed_by(windows).count().run(pa.table(data))
    assert (run.trace.batch.timestamp_ms > run.trace.stream_time_ms).sum() > 9
    assert_drawn_alike(tab, run, [(0, 0), (0, 1), (1, 0)])


@pytest.mark.parametrize("windows", [
    sk.CalendarWindows("day", timezone="Europe/Berlin", grace="2h"),
    sk.CalendarWindows("week", timezone="America/St_Johns", week_starts="sunday", grace=0),
    sk.TimeWindows(size="1d", offset="6h", grace="3h"),
    sk.TimeWindows(size="9h", advance="2h", offset="1h", grace="1h"),
], ids=str)  # fmt: skip
@pytest.mark.parametrize("seed", range(4))
def test_windows_of_a_calendar_or_with_an_offset_are_drawn_and_explained_alike(
    tab: Tab, windows: Any, seed: int
) -> None:
    """Over a night in which clocks change."""
    rng = np.random.default_rng(seed)
    first_ms, hour = 1_774_600_000_000, 3_600_000
    at = first_ms + np.arange(150) * hour - (rng.random(150) < 0.3) * rng.integers(0, 60 * hour, 150)
    data = {"who": rng.choice(["ada", "bob"], 150), "at": at, "part": rng.integers(0, 2, 150)}
    group = sk.group_by_key("who", timestamp="at", unit="ms", partition="part")
    run = group.windowed_by(windows).count().run(pa.table(data))
    assert (run.trace.decision == LATE).any() or "week" in str(windows)
    assert_drawn_alike(tab, run, [(0, 0), (0, 1), (1, 0)])


@pytest.mark.parametrize("count", [0, 1])
def test_no_record_and_one_are_drawn(tab: Tab, count: int) -> None:
    data = {"who": ["ada"][:count], "at": [5_000][:count]}
    windows = sk.SessionWindows(inactivity_gap="10s", grace="5s")
    plan = sk.group_by_key("who", timestamp="at", unit="ms").windowed_by(windows)
    table = pa.table({"who": pa.array(data["who"], pa.string()), "at": pa.array(data["at"], pa.int64())})
    assert_drawn_alike(tab, plan.count().run(table), [(0, 0)][:count])
