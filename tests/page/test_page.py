"""A page with sliders, opened from disk without a network: what it shows is what the plan decides."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument, InvalidData, NotBuilt, UnknownRecord, WriteFailed
from sessionkit.views.page.sample import sample
from sessionkit.widgets.tuner import LADDER_MS
from tests.deployments import run_deployed
from tests.optional import Page as Tab
from tests.page.streams import drawn, one_huge_key
from tests.page.tabs import painted, visits
from tests.pictures.shapes import SHAPES

FLIGHTS = Path(__file__).parents[2] / "data" / "flights-2013-07.parquet"
FLIGHTS_PLAN = (
    sk.group_by_key(
        "carrier", "origin", sep="@", timestamp="scheduled", timezone="UTC", partition="partition", offset="offset"
    )
    .windowed_by(sk.SessionWindows(inactivity_gap="1h", grace="30m"))
    .aggregate(count=sk.count(), mean_delay=sk.mean("dep_delay"), all=sk.collect("dep_delay"))
)
BY_WHO = sk.group_by_key("who", timestamp="at", unit="ms")


@pytest.fixture(scope="module")
def flights() -> sk.Run:
    run: sk.Run = FLIGHTS_PLAN.run(FLIGHTS)
    return run


@pytest.fixture(scope="module")
def small() -> sk.Run:
    """A few records of two keys."""
    data = {"who": ["ada", "bob", "ada", "ada", "bob"], "at": [0, 5_000, 100_000, 9_000, 200_000], "n": [1, 2, 3, 4, 5]}
    plan = BY_WHO.windowed_by(sk.SessionWindows(inactivity_gap="10s", grace="5s"))
    run: sk.Run = plan.aggregate(count=sk.count(), total=sk.sum("n")).run(pa.table(data))
    return run


# ---- what is written


def carried(text: str) -> Any:
    """What the page has for its script."""
    (found,) = re.findall(r"data-what-if>(.*?)</script>", text)
    return json.loads(found)


def test_the_page_is_written_in_one_piece(small: sk.Run, tmp_path: Path) -> None:
    place = tmp_path / "a page.html"
    assert small.write_html(place) == place
    first = place.read_text(encoding="utf-8")
    assert small.write_html(str(place), title="another") == place
    assert "<h1>who: gap 10 s, grace 5 s</h1>" in first and "<h1>another</h1>" in place.read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["a page.html"]
    assert "src=" not in first and "http:" not in first.replace("http://www.w3.org/2000/svg", "")


def test_where_a_page_cannot_be_written_nothing_is_left(small: sk.Run, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("mine")
    for place in ("none/page.html", "folder", "file/page.html"):
        with pytest.raises(WriteFailed, match=r"the file cannot be written; got .*; a folder that exists"):
            small.write_html(tmp_path / place)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder"]
    if os.geteuid():
        (tmp_path / "folder").chmod(0o500)
        with pytest.raises(WriteFailed, match="Permission denied"):
            small.write_html(tmp_path / "folder" / "page.html")


def test_what_no_page_can_recompute_is_refused(small: sk.Run, tmp_path: Path) -> None:
    place, data = tmp_path / "page.html", pa.table({"who": ["ada"], "at": [5]})
    plan = BY_WHO.count()
    sessions = plan.windowed_by(sk.SessionWindows(inactivity_gap_ms=5, grace_ms=5))
    sliding = plan.windowed_by(sk.SlidingWindows(time_difference_ms=5, grace_ms=5)).run(data)
    endless = plan.windowed_by(sk.SessionWindows.until(inactivity_gap_ms=5, retention_ms=100)).run(data)
    for run, words in ((sliding, "draw others"), (endless, "a grace"), (run_deployed(sessions, data), "a deployment")):
        with pytest.raises(NotBuilt, match=words):
            run.write_html(place)
    moved = plan.windowed_by(sk.TimeWindows(size_ms=6, offset_ms=2, grace_ms=5))
    moved.run(pa.table({"who": ["ada"], "at": [6]})).write_html(place)
    with pytest.raises(NotBuilt, match="the page cuts no window at 1970"):
        moved.run(data).write_html(place)
    with sk.open_store("memory", "clicks") as store:
        sessions.run(data, store=store).write_html(place)
        with pytest.raises(NotBuilt, match="goes on from what a store held"):
            sessions.run(pa.table({"who": ["ada"], "at": [7]}), store=store).write_html(place)
    for at, taken in ((2**53 - 11, True), (2**53 - 10, False)):
        run = sessions.run(pa.table({"who": ["ada"], "at": [at]}))
        if taken:
            assert run.write_html(place) == place
        else:
            with pytest.raises(InvalidData, match=r"below 2\*\*53"):
                run.write_html(place)
    with pytest.raises(UnknownRecord, match="this key is not in the run"):
        small.write_html(place, keys=["eve"])


def test_a_sample_is_of_whole_keys_at_the_stream_time_of_all(tmp_path: Path) -> None:
    run = SHAPES["sparse years"]().plan.run(SHAPES["sparse years"]().table)
    text = run.write_html(tmp_path / "page.html", most_records=3_000).read_text(encoding="utf-8")
    chosen = sample(run.trace, None, 3_000, run.most_eventful_key())
    assert 2_900 < len(chosen.rows) <= 3_000 and run.most_eventful_key() in carried(text)["keys"]
    everything, carried_keys = run.trace.batch.key, run.trace.batch.key[chosen.rows]
    for code in chosen.keys.tolist():
        assert (carried_keys == code).sum() == (everything == code).sum()
    part = f"{len(chosen.keys):,} of {len(run.trace.keys)} keys"
    said = f"It shows {part} and {len(chosen.rows):,} of {run.trace.record_count:,} records: the key with most to see"
    assert f'<p class="partly"><b>This page carries only a part of the run.</b> {said}, and as many others' in text
    assert carried(text)["told"]["lastStream"] == run.trace.last_stream_time_ms.tolist()
    one = run.write_html(tmp_path / "one.html", keys=[run.most_eventful_key()]).read_text(encoding="utf-8")
    assert carried(one)["keys"] == [run.most_eventful_key()] and f"1 of {len(run.trace.keys)} keys and " in one
    assert 'class="partly"' not in one and "Left out" not in one  # it is what was asked for; nobody else is named
    with pytest.raises(InvalidArgument, match="too many for a page"):
        run.write_html(tmp_path / "one.html", keys=[run.most_eventful_key()], most_records=1)


def test_a_page_carries_the_key_with_most_to_see_however_large_it_is_and_says_so_in_red(tmp_path: Path) -> None:
    run = one_huge_key(sk.SessionWindows(inactivity_gap="2m", grace="1m"))
    text = run.write_html(tmp_path / "page.html", most_records=4_000).read_text(encoding="utf-8")
    found = carried(text)
    assert "the huge one" in found["keys"] and len(found["keys"]) == 41
    (red,) = re.findall('<p class="partly">(.*?)</p>', text)
    assert "It shows 41 of 41 keys and 4,000 of 21,125 records" in red and "Left out" not in red
    (low, high), words = re.findall(r"number ([\d,]+) to ([\d,]+)", red)[0], found["cut"]["words"]
    assert int(high.replace(",", "")) - int(low.replace(",", "")) + 1 == 4_000 - 1_125
    assert "Of the 20,000 records of “the huge one”, of which the whole run dropped 87, the page carries" in red
    assert (
        f"number {low} to {high} in order of arrival; a session that goes beyond these is cut there, and a late record"
        in words
    )
    metrics = run.metrics()
    assert found["whole"]["dropped"] == 87 and found["whole"]["windows"] == metrics["windows"]
    few = run.write_html(tmp_path / "few.html", most_records=200).read_text(encoding="utf-8")
    (red,) = re.findall('<p class="partly">(.*?)</p>', few)
    assert "the huge one" in carried(few)["keys"]
    left, at = [key for key in run.trace.keys.to_pylist() if key not in carried(few)["keys"]], "records, 0 dropped"
    sizes = sorted(
        (int((run.trace.batch.key == run.trace.keys.index(key).as_py()).sum()) for key in left), reverse=True
    )
    assert [int(each) for each in re.findall(rf"“key \d\d” \((\d+) {at}\)", red)] == sizes[:3]
    assert f"{len(left) - 3} more keys ({sum(sizes[3:]):,} {at})" in red
    hidden = run.write_html(tmp_path / "hidden.html", most_records=200, hide_keys=True).read_text(encoding="utf-8")
    assert f"Left out: a key ({sizes[0]} {at}), a key" in hidden
    assert not [key for key in run.trace.keys.to_pylist() if key in hidden]
    one = run.write_html(tmp_path / "one.html", most_records=1).read_text(encoding="utf-8")
    assert carried(one)["keys"] == ["the huge one"] and "(20,000 records" not in one
    nobody = {"who": pa.array([None] * 5, pa.string()), "at": range(5), "n": range(5)}
    none = run.plan.run(pa.table(nobody)).write_html(tmp_path / "none.html", most_records=3).read_text(encoding="utf-8")
    assert "It shows" not in none and "Left out: 5 records without a key." in none


def test_the_page_says_what_it_carries_and_what_it_leaves_out(flights: sk.Run, tmp_path: Path) -> None:
    text = flights.write_html(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "This page carries the keys and times of 28,491 records of 33 keys." in text
    assert "only count, sum, min, max and mean of numbers are computed here: all." in text
    assert len(text.encode()) < 1_500_000
    hidden = flights.write_html(tmp_path / "hidden.html", hide_keys=True).read_text(encoding="utf-8")
    assert "the times of 28,491 records of 33 keys: the keys are only numbered." in hidden
    assert "EV@EWR" in text and not [key for key in flights.trace.keys.to_pylist() if key in hidden]
    assert carried(hidden)["keys"][:2] == ["key 1", "key 2"]


# ---- in the browser


opened = pytest.fixture(visits)


def shown(tab: Tab) -> dict[str, str]:
    """The counts by their names."""
    tiles = tab.locator(".count")
    return dict(zip(tiles.locator("span").all_inner_texts(), tiles.locator("b").all_inner_texts(), strict=True))


def assert_counts(tab: Tab, run: sk.Run) -> None:
    metrics, late = run.metrics(), int((run.trace.decision == 10).sum())
    found = shown(tab)
    noun = run.plan._complete_windows.noun
    assert found[noun if metrics["windows"] == 1 else f"{noun}s"] == f"{metrics['windows']:,}"
    assert found["dropped"] == f"{late:,}"
    assert (
        f"{metrics['windows-closed']:,} final, {metrics['windows-open']:,} open" in tab.locator(".counts").inner_text()
    )
    if "merges" in found:
        assert found["merges"] == f"{metrics['windows-merged']:,}"


@pytest.mark.browser
def test_a_slider_shows_what_the_plan_would_decide(flights: sk.Run, opened: Any) -> None:
    """By the arrow keys, and by any length in the field beside it."""
    tab = opened(flights)
    assert_counts(tab, flights)
    settings = {"inactivity_gap_ms": 3_600_000, "grace_ms": 1_800_000}
    for key, name in (("gap", "inactivity_gap_ms"), ("grace", "grace_ms"), ("grace", "grace_ms")):
        tab.locator(f"#sk-{key}").press("ArrowRight")
        settings[name] = next(ms for ms in LADDER_MS if ms > settings[name])
        painted(tab)
        assert_counts(tab, FLIGHTS_PLAN.with_windows(**settings).run(FLIGHTS))
        assert tab.locator(f"#sk-{key}").get_attribute("aria-valuetext") == sk.base.durations.show_duration(
            settings[name]
        )
    field = tab.locator(".slider input[type=text]").first
    field.fill("47 minutes")
    field.press("Enter")
    painted(tab)
    settings["inactivity_gap_ms"] = 47 * 60_000
    assert_counts(tab, FLIGHTS_PLAN.with_windows(**settings).run(FLIGHTS))
    assert 'plan.with_windows(inactivity_gap="47m", grace="1h")' in tab.locator(".code").inner_text()
    field.fill("soon")
    field.press("Enter")
    assert "is no length of time" in tab.locator(".refused").inner_text()
    tab.locator(".code button").click()
    assert_counts(tab, flights)


@pytest.mark.browser
def test_hopping_windows_have_a_slider_for_the_advance(flights: sk.Run, opened: Any) -> None:
    plan = FLIGHTS_PLAN.windowed_by(sk.TimeWindows(size="1h", grace="15m"))
    tab = opened(plan.run(FLIGHTS))
    assert "the size: windows that do not overlap" in (tab.locator("#sk-advance").get_attribute("aria-valuetext") or "")
    tab.locator("#sk-size").press("ArrowRight")
    painted(tab)
    assert_counts(tab, plan.with_windows(size="90m").run(FLIGHTS))
    tab.locator("#sk-advance").press("ArrowLeft")
    painted(tab)
    assert_counts(tab, plan.with_windows(size="90m", advance="1h").run(FLIGHTS))
    assert "partly late" in shown(tab)
    tab.locator(".slider input[type=text]").first.fill("30d")
    tab.locator(".slider input[type=text]").first.press("Enter")
    painted(tab)
    assert "each record would be in 720 windows: choose a longer advance" in tab.locator(".refused").inner_text()
    assert_counts(tab, plan.with_windows(size="90m", advance="1h").run(FLIGHTS))
    tab.locator(".slider input[type=text]").first.fill("90m")
    tab.locator(".slider input[type=text]").first.press("Enter")
    painted(tab)
    assert tab.locator(".refused").is_hidden()
    tab.locator(".slider input[type=text]").nth(1).fill("2h")
    tab.locator(".slider input[type=text]").nth(1).press("Enter")
    painted(tab)
    assert "advance must be more than 0 and at most the size" in tab.locator(".refused").inner_text()


@pytest.mark.browser
def test_beside_the_numbers_of_a_part_stand_those_of_the_whole_run(opened: Any) -> None:
    for windows in (
        sk.SessionWindows(inactivity_gap="2m", grace="1m"),
        sk.TimeWindows(size="10m", advance="2m", grace="1m"),
    ):
        run = one_huge_key(windows)
        whole, part = opened(run), opened(run, most_records=300)
        assert whole.locator(".whole").count() == 0 and whole.locator(".partly").count() == 0
        counts = {name: count for name, count in shown(whole).items() if name != "until final"}
        told = part.locator(".count:has(.whole)")
        names = told.locator("span").all_inner_texts()
        assert dict(zip(names, told.locator(".whole").all_inner_texts(), strict=True)) == {
            name: f"{count} in the whole run" for name, count in counts.items()
        }
        assert shown(part) != shown(whole)
        red, tiles = part.locator(".partly"), part.locator(".counts")
        assert red.evaluate("e => getComputedStyle(e).color") == "rgb(179, 38, 30)"
        assert red.bounding_box()["y"] < tiles.bounding_box()["y"]
        assert "the page carries number" in part.locator(".one .words").inner_text()
        part.locator("#sk-grace").press("End")
        painted(part)
        assert part.locator(".whole").first.inner_text().endswith("in the whole run as it was run")


@pytest.mark.browser
def test_records_that_no_lengths_can_keep_have_a_tile(opened: Any) -> None:
    plan = BY_WHO.windowed_by(sk.SessionWindows(inactivity_gap="9ms", grace=0))
    run = plan.count().run({"who": ["a", None, "a", None], "at": [0, 1, 2, 3]})
    assert (shown(opened(run))["dropped"], shown(opened(run))["unusable"]) == ("0", "2")


@pytest.mark.browser
def test_a_click_and_the_keys_explain(small: sk.Run, opened: Any) -> None:
    tab = opened(small)
    words = tab.locator(".why")
    canvas = tab.locator(".canvas canvas")
    said = set()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight", "Enter"):
        canvas.press(key)
        said.add(words.inner_text())
    assert len(said) > 2
    marks = tab.locator(".plane svg [data-thing]")
    told = set()
    for number in range(marks.count()):
        marks.nth(number).dispatch_event("click")
        told.add(words.inner_text())
    assert {str(small.explain(offset=offset)) for offset in (0, 2, 3)} <= told
    assert any(each.startswith("Session of ada, ") for each in told)
    tab.locator(".plane svg").press("ArrowUp")
    tab.locator(".plane svg").press("Enter")
    assert words.inner_text() in told
    tab.locator("#sk-find").fill("bo")
    assert "Key “bob”" in tab.locator(".one h2").inner_text()
    tab.locator(".list summary").click()
    tab.locator(".list tbody tr").first.wait_for()  # the list tells of being opened a moment later
    assert tab.locator(".list tbody tr").count() == 2
    assert tab.locator(".list thead th").all_inner_texts() == ["start", "end", "records", "", "count", "total"]
    assert tab.locator(".list tbody tr").first.locator("td").all_inner_texts() == ["5 s", "5 s", "1", "final", "1", "2"]


@pytest.mark.browser
def test_keys_go_from_drop_to_drop_and_find_a_key(flights: sk.Run, opened: Any) -> None:
    tab = opened(flights)
    plane, words, told = tab.locator(".plane svg"), tab.locator(".why"), list[str]()
    for key in ("]", "]", "ArrowUp", "["):
        plane.press(key)
        told.append(words.inner_text())
    first, second, between, again = told
    assert all("dropped" in each for each in (first, second))
    assert first != second != between
    assert again == second
    plane.press("/")
    assert tab.evaluate("document.activeElement.id") == "sk-find"
    tab.keyboard.type("a/b")
    assert tab.locator("#sk-find").input_value() == "a/b"


@pytest.mark.browser
def test_what_is_chosen_in_the_lanes_is_shown_in_the_plane(flights: sk.Run, opened: Any) -> None:
    """A drop of another key, by the keyboard: its plane, at the stretch of arrivals where it is, with a ring."""
    tab = opened(flights)
    canvas, ring = tab.locator("canvas"), tab.locator(".ring")
    assert ring.get_attribute("visibility") == "hidden"
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "Enter"):
        canvas.press(key)
    while "was dropped" not in tab.locator(".why").inner_text():
        canvas.press("ArrowRight")
        canvas.press("Enter")
    key = re.findall(r"^Record \d+ \(.*?key (.*?)\)", tab.locator(".why").inner_text())[0]
    assert f"Key “{key}”" in tab.locator(".one h2").inner_text()
    assert ring.get_attribute("visibility") == "visible"
    places = tab.locator("path.drop[data-thing]").evaluate_all(
        "all => all.map((mark) => mark.getAttribute('transform'))"
    )
    centre = f"translate({float(ring.get_attribute('cx')):.1f} {float(ring.get_attribute('cy')):.1f})"
    assert centre in places


@pytest.mark.browser
@pytest.mark.parametrize("width", [360, 700, 1366, 2400])
def test_nothing_is_cut_from_narrow_to_wide(opened: Any, width: int) -> None:
    shape = SHAPES["change of clocks"]()
    for theme in ("light", "dark"):
        tab = opened(shape.plan.run(shape.table), width=width, theme=theme)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        boxes = tab.evaluate(
            "[...document.querySelectorAll('canvas, .plane svg')].map(e => e.getBoundingClientRect().right)"
        )
        assert len(boxes) == 2 and max(boxes) <= width
        assert "Europe/Berlin" in tab.locator(".lanes .words").inner_text()


@pytest.mark.browser
def test_it_prints_in_light_colours(flights: sk.Run, opened: Any) -> None:
    tab = opened(flights, theme="dark")
    corner = "() => [...document.querySelector('canvas').getContext('2d').getImageData(3, 3, 1, 1).data].slice(0, 3)"
    dark = tab.evaluate(corner)
    tab.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert tab.evaluate(corner) != dark and min(tab.evaluate(corner)) > 200
    tab.set_viewport_size({"width": 800, "height": 768})  # paper is narrower: everything is drawn anew
    tab.wait_for_timeout(200)
    assert min(tab.evaluate(corner)) > 200
    tab.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert tab.evaluate(corner) == dark
    assert len(tab.pdf()) > 10_000


@pytest.mark.browser
@pytest.mark.filterwarnings("ignore:column 'at' read as ms:UserWarning")
@pytest.mark.parametrize("kind", ["session", "tumbling", "hopping"])
def test_many_partitions_and_toy_data_are_shown(opened: Any, kind: str) -> None:
    for seed in (3, 5):
        run = drawn(kind, seed)
        tab = opened(run)
        assert_counts(tab, run)
        tab.locator("#sk-grace").press("End")
        painted(tab)
        assert tab.locator(".refused").is_visible() or "against the plan" in tab.locator(".counts").inner_text()


@pytest.mark.browser
def test_no_record_and_one_are_a_page(opened: Any) -> None:
    plan = BY_WHO.windowed_by(sk.SessionWindows(inactivity_gap="10s", grace="5s"))
    for count in (0, 1):
        table = pa.table({"who": pa.array(["ada"][:count], pa.string()), "at": pa.array([5][:count], pa.int64())})
        run = plan.count().run(table)
        tab = opened(run)
        assert_counts(tab, run)
        tab.locator("#sk-gap").press("ArrowRight")
        painted(tab)
        assert_counts(tab, run)


STEPS = """async () => {
  const sliders = document.querySelectorAll(".slider input[type=range]");
  const times = [];
  for (let step = 0; step < 40; step++) {
    const slider = sliders[step % 2];
    const began = performance.now();
    slider.value = Number(slider.value) + ((step >> 1) % 6 < 3 ? 1 : -1);
    slider.dispatchEvent(new Event("input"));
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    times.push(performance.now() - began);
  }
  return times.sort((a, b) => a - b)[times.length / 2];
}"""


@pytest.mark.browser
def test_how_long_a_step_of_a_slider_takes(flights: sk.Run, opened: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Printed, as a busy machine takes any time: from the slider's event to the second frame after it."""
    tab = opened(flights)
    before = shown(tab)
    median = tab.evaluate(STEPS)
    assert shown(tab).keys() == before.keys()
    with capsys.disabled():
        print(f"\nslider to painted picture, 28,491 flights: median {median:.0f} ms of 40 steps")
