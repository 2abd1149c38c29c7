"""Moving about the page: the strips above its pictures, the wheel, two fingers; and what stays on a small screen."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.views.plane.marks import _ticks
from tests.optional import Page as Tab
from tests.page.scenes import drawing
from tests.page.tabs import painted, visits
from tests.pictures.shapes import SHAPES

pytestmark = pytest.mark.browser
opened = pytest.fixture(visits)
empty = pytest.fixture(drawing)
SPAN = "[whatIf.first, whatIf.last]"
ROWS = "[whatIf.rows[0], whatIf.rows.at(-1), whatIf.rows.length]"


@pytest.fixture(scope="module")
def clocks() -> sk.Run:
    shape = SHAPES["change of clocks"]()
    run: sk.Run = shape.plan.run(shape.table)
    return run


def strip(tab: Tab, place: str = ".lanes") -> Any:
    """The strip above a picture, in the middle of the screen."""
    found = tab.locator(f"{place} .minimap")
    found.evaluate("e => e.scrollIntoView({ block: 'center' })")
    return found


def pull(tab: Tab, box: Any, begin: float, end: float) -> None:
    """Drags the mouse from one part of a strip to another."""
    y = box["y"] + box["height"] / 2
    tab.mouse.move(box["x"] + begin * box["width"], y)
    tab.mouse.down()
    tab.mouse.move(box["x"] + (begin + end) / 2 * box["width"], y)
    tab.mouse.move(box["x"] + end * box["width"], y)
    tab.mouse.up()
    painted(tab)


class Fingers:
    """Fingers on a screen, as the browser gets them."""

    def __init__(self, tab: Tab) -> None:
        self._tab, self._session = tab, tab.context.new_cdp_session(tab)

    def move(self, *steps: list[tuple[float, float]]) -> None:
        """Puts fingers down at the first step, moves them over the others and lifts them."""
        kinds = ["touchStart", *["touchMove"] * (len(steps) - 1), "touchEnd"]
        for kind, places in zip(kinds, [*steps, []], strict=True):
            points = [{"x": x, "y": y, "id": finger} for finger, (x, y) in enumerate(places)]
            self._session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        painted(self._tab)


def test_a_drag_on_the_strip_chooses_the_times_of_the_lanes(clocks: sk.Run, opened: Any) -> None:
    tab = opened(clocks)
    times = strip(tab)
    low, high = (int(times.locator(".grip.both").get_attribute(f"aria-value{name}")) for name in ("min", "max"))
    box = times.bounding_box()
    tab.get_by_role("button", name="all times", exact=True).click()
    pull(tab, box, 0.5, 0.75)  # the brush is over all: a new one
    first, last = tab.evaluate(SPAN)
    pixel = (high - low) / box["width"]
    assert abs(first - (low + high) / 2) < 2 * pixel and abs(last - (low + 0.75 * (high - low))) < 2 * pixel
    pull(tab, box, 0.6, 0.4)  # the brush is moved whole
    moved = tab.evaluate(SPAN)
    assert abs(moved[0] - first + 0.2 * (high - low)) < 2 * pixel and abs(moved[1] - moved[0] - (last - first)) < 2
    edge = times.locator(".grip.last").bounding_box()
    part = (edge["x"] + 3 - box["x"]) / box["width"]
    pull(tab, box, part, part + 0.1)
    wider = tab.evaluate(SPAN)
    assert wider[0] == moved[0] and abs(wider[1] - moved[1] - 0.1 * (high - low)) < 2 * pixel
    tab.mouse.click(box["x"] + 0.95 * box["width"], box["y"] + 8)  # beside it: it comes there, as far as there is room
    painted(tab)
    assert abs(tab.evaluate(SPAN)[1] - high) < 0.2 * (high - low) and tab.evaluate(SPAN)[0] > wider[0]
    inside = tab.evaluate("whatIf.lanes.scene.shown.map((i) => whatIf.records.time[i])")
    assert inside and min(inside) >= tab.evaluate(SPAN)[0] and max(inside) <= tab.evaluate(SPAN)[1]


def test_the_strip_has_all_records_and_drops(clocks: sk.Run, opened: Any) -> None:
    """Bars of records where there are records, red ones where drops are; fewer once grace is long."""
    tab = opened(clocks)
    drops = tab.locator(".lanes .minimap .drops")
    before = (drops.get_attribute("d") or "").count("M")
    assert 0 < before <= int((clocks.trace.decision == 10).sum())
    tab.locator("#sk-grace").press("End")
    painted(tab)
    assert (drops.get_attribute("d") or "").count("M") < before


def test_the_keyboard_moves_the_strip(clocks: sk.Run, opened: Any) -> None:
    tab = opened(clocks)
    tab.get_by_role("button", name="all times", exact=True).click()
    whole = tab.evaluate(SPAN)
    begins, ends, both = (tab.locator(f".lanes .grip.{name}") for name in ("first", "last", "both"))
    assert begins.get_attribute("role") == ends.get_attribute("role") == both.get_attribute("role") == "slider"
    begins.press("PageUp")
    ends.press("ArrowLeft")
    first, last = tab.evaluate(SPAN)
    length = whole[1] - whole[0]
    assert abs(first - whole[0] - length / 10) < 2 and abs(whole[1] - last - length / 100) < 2
    assert int(begins.get_attribute("aria-valuenow")) == first
    assert "2024-10-2" in (begins.get_attribute("aria-valuetext") or "")
    both.press("Home")
    assert tab.evaluate(SPAN)[0] == whole[0]
    both.press("End")
    assert tab.evaluate(SPAN)[1] == whole[1]
    arrivals = tab.locator(".one .grip.both")
    before = tab.evaluate(ROWS)
    arrivals.press("PageUp")
    assert tab.evaluate(ROWS)[0] > before[0]


def test_a_drag_chooses_arrivals_of_the_plane(clocks: sk.Run, opened: Any) -> None:
    tab = opened(clocks)
    box = strip(tab, ".one").bounding_box()
    now = tab.locator(".one .grip.both").bounding_box()
    middle = (now["x"] + now["width"] / 2 - box["x"]) / box["width"]
    begin = 0.1 if middle > 0.5 else 0.9
    pull(tab, box, begin, begin + 0.05)
    first, last, count = tab.evaluate(ROWS)
    length = len(clocks.trace)
    assert abs(first - begin * length) < 0.05 * length and abs(last - (begin + 0.05) * length) < 0.05 * length
    assert 20 < count <= 120
    assert "offsets" in tab.locator(".one .words").inner_text()
    pull(tab, box, begin, begin + 0.001)  # too few to show: it stays
    assert tab.evaluate(ROWS)[2] >= 6


@pytest.mark.parametrize("place", [".lanes canvas", ".plane svg"])
def test_the_wheel_scrolls_the_page_and_zooms_with_ctrl(clocks: sk.Run, opened: Any, place: str) -> None:
    tab, asked = opened(clocks), SPAN if "canvas" in place else ROWS
    picture = tab.locator(place)
    picture.evaluate("e => e.scrollIntoView({ block: 'center' })")
    box = picture.bounding_box()
    tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    before, at = tab.evaluate(asked), tab.evaluate("scrollY")
    tab.keyboard.down("Control")
    tab.mouse.wheel(0, -100)
    tab.wait_for_function(f"() => String({asked}) !== '{','.join(map(str, before))}'")
    closer = tab.evaluate(asked)
    assert closer[1] - closer[0] < before[1] - before[0] and tab.evaluate("scrollY") == at
    tab.mouse.wheel(0, 100)
    tab.wait_for_function(f"() => String({asked}) !== '{','.join(map(str, closer))}'")
    tab.keyboard.up("Control")
    tab.mouse.wheel(0, -120)
    tab.wait_for_function(f"() => scrollY !== {at}")


def test_over_an_axis_the_wheel_zooms(clocks: sk.Run, opened: Any) -> None:
    tab = opened(clocks)
    axis = tab.locator(".lanes .axis")
    axis.evaluate("e => e.scrollIntoView({ block: 'center' })")
    box, at = axis.bounding_box(), tab.evaluate("scrollY")
    tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + 10)
    before = tab.evaluate(SPAN)
    tab.mouse.wheel(0, -50)
    tab.wait_for_function(f"() => whatIf.first > {before[0]} && whatIf.last < {before[1]}")
    assert tab.evaluate("scrollY") == at
    for _ in range(40):
        tab.mouse.wheel(0, 100)
    tab.wait_for_function("() => String([whatIf.first, whatIf.last]) === String(whatIf.whole)")


def test_two_fingers_zoom_and_one_moves_the_strip(clocks: sk.Run, opened: Any) -> None:
    tab = opened(clocks, width=375, height=667, touch=True)
    fingers, canvas = Fingers(tab), tab.locator(".lanes canvas")
    canvas.evaluate("e => e.scrollIntoView({ block: 'center' })")
    x, y, before = 240, 330, tab.evaluate(SPAN)
    fingers.move(*([(x - apart, y), (x + apart, y)] for apart in (20, 30, 40, 60)))
    first, last = tab.evaluate(SPAN)
    assert before[0] < first < last < before[1]
    assert (last - first) / (before[1] - before[0]) == pytest.approx(1 / 3, rel=0.05)
    box = strip(tab).bounding_box()
    brush, y = tab.locator(".lanes .grip.both").bounding_box(), box["y"] + box["height"] / 2
    begin = brush["x"] + brush["width"] / 2
    away = 60 if begin < box["x"] + box["width"] / 2 else -60
    fingers.move(*([(begin + part * away, y)] for part in (0, 0.3, 0.6, 1)))
    assert np.sign(tab.evaluate(SPAN)[0] - first) == np.sign(away)
    tab.locator(".plane svg").evaluate("e => e.scrollIntoView({ block: 'center' })")
    rows = tab.evaluate(ROWS)
    fingers.move(*([(x - apart, 330), (x + apart, 330)] for apart in (20, 30, 40, 60)))
    assert tab.evaluate(ROWS)[2] < rows[2] and tab.evaluate("window.visualViewport.scale") == 1


@pytest.fixture
def alike() -> Iterator[sk.Run]:
    """Forty keys that begin alike, and one that is long."""
    keys = [f"python3-packages/web/module-{number:02}" for number in range(40)]
    rng = np.random.default_rng(5)
    at = np.sort(rng.integers(0, 10**9, 3_000)) + 10**12
    table = pa.table({"who": pa.array(keys).take(pa.array(rng.integers(0, 40, 3_000))), "at": pa.array(at)})
    plan = sk.group_by_key("who", timestamp="at", unit="ms")
    yield plan.windowed_by(sk.SessionWindows(inactivity_gap="1h", grace="5m")).count().run(table)


@pytest.mark.parametrize("kind", ["session", "hopping"])
def test_on_a_phone_sliders_axis_and_legend_stay_above_long_lanes(alike: sk.Run, opened: Any, kind: str) -> None:
    run = alike
    if kind == "hopping":
        table = run.trace.records().select(["key", "timestamp_ms"])
        plan = sk.group_by_key("key", timestamp="timestamp_ms", unit="ms")
        run = plan.windowed_by(sk.TimeWindows(size="2h", advance="1h", grace="5m")).count().run(table)
    tab = opened(run, width=375, height=667, touch=True)
    assert tab.evaluate("document.documentElement.scrollWidth") == 375
    tab.evaluate("scrollTo(0, document.querySelector('canvas').getBoundingClientRect().top + 500)")
    painted(tab)
    floor = 0.0
    for part in ("#sk-gap, #sk-size", ".counts", ".lanes .legend", ".lanes .axis"):
        box = tab.locator(part).first.bounding_box()
        assert box["y"] >= floor and box["y"] + box["height"] < 300, part
        floor = box["y"]
    assert tab.locator(".told").bounding_box()["y"] > 450  # there are 150 pixels of lanes between them
    names = tab.evaluate("whatIf.lanes.names")
    assert len(set(names)) == len(names) == 40 and all("…" in name for name in names)


def test_keys_are_cut_where_they_can_be_told_apart(empty: Tab) -> None:
    cut = "(texts) => { const pen = document.createElement('canvas').getContext('2d'); return fitted(pen, texts, 60); }"
    middle = empty.evaluate(cut, ["one/long/name/of/a/package", "two/long/name/of/a/module"])
    assert [name[0] + name[-1] for name in middle] == ["oe", "te"] and all("…" in name[2:-2] for name in middle)
    ends = empty.evaluate(cut, [f"the-same-long-beginning-{number:04}-lib" for number in range(0, 9999, 111)])
    assert len(set(ends)) == len(ends)
    middles = empty.evaluate(cut, [f"boiler-room/thermometer-{number}/temperature" for number in range(6)])
    assert len(set(middles)) == 6
    names = [f"boiler-room/thermometer-{number}/temperature" for number in range(6)]
    others = empty.evaluate(cut, [*names, "a-long-name-of-another-kind"])
    assert len(set(others)) == 7
    assert empty.evaluate(cut, ["a", "é", ""]) == ["a", "é", ""]


def test_the_chain_follows_the_sliders(opened: Any) -> None:
    data = {"who": ["ada", "bob", "ada", "ada", "bob"], "at": [0, 900_000, 100_000, 9_000, 950_000]}
    plan = sk.group_by_key("who", timestamp="at", unit="ms").windowed_by(
        sk.SessionWindows(inactivity_gap="10s", grace="5s")
    )
    run = plan.count().run(pa.table(data))
    tab = opened(run)
    assert tab.locator(".chain").is_hidden()
    for grace in ("5s", "45s", "2m"):
        tab.locator(".slider input[type=text]").nth(1).fill(grace)
        tab.locator(".slider input[type=text]").nth(1).press("Enter")
        painted(tab)
        tab.evaluate("whatIf.select(whatIf.records.slot[2], { kind: 'record', record: 2 })")
        figure = plan.with_windows(grace=grace).count().run(pa.table(data)).explain(offset=2).figure()
        said = [note.text for note in sorted(figure.layout.annotations, key=lambda note: -note.y)]
        assert tab.locator(".chain div > div > p").all_inner_texts() == said
        assert tab.locator(".chain summary").inner_text() == "Why record 2 (key ada) was dropped"
        assert tab.locator(".chain path.drop").count() == tab.locator(".chain path.mover").count() == 1
    tab.locator(".slider input[type=text]").nth(1).fill("30m")
    tab.locator(".slider input[type=text]").nth(1).press("Enter")
    painted(tab)
    assert tab.locator(".chain").is_hidden()  # it is not late any more
    tab.locator(".code button").click()
    assert tab.locator(".chain").is_visible()
    tab.locator(".canvas canvas").press("ArrowDown")  # other words: no chain of another record beside them
    assert tab.locator(".chain").is_hidden()
    some = opened(run, keys=["ada"])
    some.evaluate("whatIf.select(whatIf.records.slot[1], { kind: 'record', record: 1 })")
    mover, stream, *_ = some.locator(".chain div > div > p").all_inner_texts()
    assert mover == "A record that is not in this page moved stream time" and stream == "Stream time: 15 min"


def test_arrivals_have_the_ticks_of_the_package(empty: Tab) -> None:
    """Round offsets where they have room, as on the plane of the package."""
    rng = np.random.default_rng(4)

    class Room:
        def y(self, rows: Any) -> Any:
            return 700 - 5.5 * np.asarray(rows)

    offsets = [np.cumsum(rng.integers(1, most, size)) + rng.integers(0, 50_000) for most, size in
               [(2, 1), (2, 2), (2, 9), (3, 120), (9, 77), (400, 120), (9_000, 30), (10**6, 120)]]  # fmt: skip
    offsets.append(np.concatenate([np.arange(60), np.arange(60) + 10**9]))
    for offset in offsets:
        found = empty.evaluate("all => arrivalTicks(all, (row) => 700 - 5.5 * row)", offset.tolist())
        places, words = _ticks(offset, Room())  # type: ignore[arg-type]
        assert [word for _, word in found] == words
        assert np.allclose([place for place, _ in found], places)


def come_true(tab: Tab, what: str) -> None:
    """The page forbids what playwright waits by."""
    for _ in range(250):
        if tab.evaluate(what):
            return
        tab.wait_for_timeout(20)
    raise AssertionError(what)


def test_a_picture_out_of_sight_follows_the_sliders_too(opened: Any) -> None:
    data = {"who": [f"key {each % 20}" for each in range(400)], "at": [each * 1_000 for each in range(400)]}
    windows = sk.SessionWindows(inactivity_gap="30s", grace="0s")
    plan = sk.group_by_key("who", timestamp="at", unit="ms").windowed_by(windows)
    tab = opened(plan.count().run(pa.table(data)), height=500)
    for seen, hidden in (("lanes", "plane"), ("plane", "lanes")):
        picture = {"lanes": ".canvas canvas", "plane": ".plane svg"}
        tab.locator(picture[seen]).evaluate("each => each.scrollIntoView({ block: 'center' })")
        apart = f"whatIf.outOfSight.has(whatIf.{hidden}.place) && !whatIf.outOfSight.has(whatIf.{seen}.place)"
        come_true(tab, apart)
        before = [int(tab.locator(picture[name]).get_attribute("data-drawn")) for name in (seen, hidden)]
        tab.evaluate(f"whatIf.set('gap', {10_000 if seen == 'lanes' else 15_000})")
        painted(tab)
        assert int(tab.locator(picture[seen]).get_attribute("data-drawn")) == before[0] + 1
        come_true(tab, f"+document.querySelector('{picture[hidden]}').dataset.drawn === {before[1] + 1}")
        assert tab.evaluate("whatIf.lanes.scene.done === whatIf.done && whatIf.history.done === whatIf.done")
