"""The widgets in JupyterLab: moved by keyboard, counted as they are drawn, reloaded, and given hostile text."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from sessionkit.base.decisions import LATE, MERGED
from sessionkit.base.durations import duration_ms, show_duration
from tests.browser.lab import PACKAGE, Server, Visit, visiting
from tests.hostile.test_markup import PAYLOADS
from tests.optional import Browser
from tests.unit.widgets.test_tuner import SESSIONS, clicks, spent_in

pytestmark = pytest.mark.browser

COUNT = 100  # records: few enough for a plane to show all of them
HEAD = f"""import sessionkit as sk
from tests.unit.widgets.test_tuner import SESSIONS, clicks, spent_in
data, plan = clicks({COUNT}), spent_in(SESSIONS)"""
DRAWN = """nth => {
  const place = document.querySelectorAll('.sessionkit-picture')[nth];
  const found = {};
  if (!place) return found;  // for a moment, while a view is exchanged
  for (const trace of place.querySelectorAll('.scatterlayer .trace')) {
    const name = trace.__data__[0].trace.name.split(/[ ,:(]/)[0];
    found[name] = (found[name] ?? 0) + trace.querySelectorAll('path.point').length;
  }
  return found;
}"""
FIELDS = "() => [...document.querySelectorAll('.sessionkit-slider input[type=text]')].map(field => field.value)"
RAN = """() => [...document.querySelectorAll('.jp-OutputArea')].flatMap(area => [
  ...area.querySelectorAll('img[src="x"], iframe, object, embed, video, form[action], base, marquee, details'),
  ...[...area.querySelectorAll('*')].filter(e => [...e.attributes].some(a =>
    a.name.startsWith('on') || /^\\s*javascript:/i.test(a.value))),
]).map(e => e.outerHTML.slice(0, 200))"""


def drawn(visit: Visit, nth: int = 0) -> dict[str, int]:
    """How many points each kind of mark has in a picture, as they lie in the page."""
    return {name: count for name, count in visit.page.evaluate(DRAWN, nth).items() if count}


def expected(key: str | None = None, **windows: Any) -> dict[str, int]:
    """The marks of a fresh run, of one key or of all."""
    trace = spent_in(SESSIONS).with_windows(**windows).run(clicks(COUNT)).trace
    mine = trace.batch.key >= 0 if key is None else trace.batch.key == trace.keys.to_pylist().index(key)
    merged, late = trace.decision == MERGED, trace.decision == LATE
    saved = trace.late_but_kept & ~merged
    masks = {"bridge": merged, "dropped": late, "late": saved, "record": ~merged & ~late & ~saved}
    return {name: int((mask & mine).sum()) for name, mask in masks.items() if (mask & mine).any()}


def marks(visit: Visit, nth: int = 0) -> dict[str, int]:
    """The marks of records alone."""
    return {name: count for name, count in drawn(visit, nth).items() if name in ("bridge", "dropped", "late", "record")}


def comes_to(visit: Visit, marked: dict[str, int]) -> None:
    """The marks are drawn as they should be: now, or after a moment."""
    until = time.monotonic() + 20
    # looked at once a round: a picture on the way to the last one may look the same
    while (found := marks(visit)) != marked and time.monotonic() < until:
        visit.page.wait_for_timeout(100)
    assert found == marked


def press(visit: Visit, keys: list[str], slider: int) -> None:
    """Keys on a slider."""
    handle = visit.page.locator(".sessionkit-slider input[type=range]").nth(slider)
    for key in keys:
        handle.press(key)


def length(visit: Visit, slider: int) -> str:
    return str(visit.page.locator(".sessionkit-slider input[type=text]").nth(slider).input_value())


class TestTune:
    @pytest.fixture(scope="class")
    @classmethod
    def visit(cls, server: Server, lab: Visit) -> Iterator[Visit]:
        """The board in one page for all of these tests."""
        name = server.write("tune.ipynb", HEAD, "board = sk.tune(plan, data)\nboard")
        with lab.anew() as page:
            page.open_lab(name)
            page.wait_drawn()
            yield page

    def show(self, visit: Visit, view: str) -> None:
        visit.page.get_by_role("tab", name=view, exact=True).click()

    def key(self, visit: Visit) -> str:
        return str(visit.page.locator("[data-control=key] select").evaluate("e => e.selectedOptions[0].text"))

    def settings(self, visit: Visit) -> dict[str, str]:
        """What the sliders say, as the browser shows it."""
        return {"inactivity_gap": length(visit, 0), "grace": length(visit, 1)}

    def start(self, visit: Visit, gap: str, grace: str, view: str) -> None:
        for slider, text in enumerate((gap, grace)):
            field = visit.page.locator(".sessionkit-slider input[type=text]").nth(slider)
            field.fill(text)
            field.press("Enter")
        said = [show_duration(duration_ms(text, "length")) for text in (gap, grace)]
        visit.page.wait_for_function(f"said => ({FIELDS})().every((text, i) => text === said[i])", arg=said)
        self.show(visit, view)

    def test_the_plane_follows_the_keyboard(self, visit: Visit) -> None:
        key = self.key(visit)
        before = expected(key)
        assert set(before) == {"bridge", "dropped", "late", "record"}
        comes_to(visit, before)
        press(visit, ["ArrowRight"] * 3, slider=1)  # to lengths whose marks are not those of a length before
        after = expected(key, **self.settings(visit))
        assert self.settings(visit)["grace"] == "10 min"
        assert after != before
        comes_to(visit, after)
        press(visit, ["ArrowLeft"] * 3, slider=0)
        assert self.settings(visit)["inactivity_gap"] == "1 min"
        comes_to(visit, expected(key, **self.settings(visit)))

    def test_a_slider_is_named_and_says_its_length(self, visit: Visit) -> None:
        self.start(visit, "5m", "15m", "one key")
        slider = visit.page.get_by_label("grace", exact=True)
        said = slider.get_attribute("aria-valuetext")
        press(visit, ["ArrowRight"], slider=1)
        assert (said, slider.get_attribute("aria-valuetext")) == ("15 min", "20 min")
        assert "dropped" in (visit.page.locator(".sessionkit-picture").first.get_attribute("aria-label") or "")

    def test_a_length_is_typed(self, visit: Visit) -> None:
        self.start(visit, "1m", "37s", "one key")
        field = visit.page.locator(".sessionkit-slider input[type=text]").nth(1)
        comes_to(visit, expected(self.key(visit), inactivity_gap="1m", grace_ms=37_000))
        field.fill("soon")
        field.press("Enter")
        visit.page.get_by_role("alert").filter(has_text="a number with a unit").wait_for()
        assert field.get_attribute("aria-invalid") == "true"
        field.fill("2m")
        field.press("Enter")
        visit.page.wait_for_function("() => !document.querySelector('[role=alert]:not(:empty)')")
        comes_to(visit, expected(self.key(visit), inactivity_gap="1m", grace="2m"))

    def test_the_lanes_follow_and_zoom(self, visit: Visit) -> None:
        self.start(visit, "1m", "2m", "many keys")
        visit.page.get_by_role("radio", name="everything", exact=True).click()
        comes_to(visit, expected(inactivity_gap="1m", grace="2m"))
        press(visit, ["ArrowRight"] * 3, slider=0)
        everything = expected(**self.settings(visit))
        assert set(everything) == {"bridge", "dropped", "late", "record"}
        comes_to(visit, everything)
        drawn_x = """() => document.querySelector('.sessionkit-picture').data
          .flatMap(trace => trace.mode === 'markers' ? trace.x : []).length"""
        before = visit.page.evaluate(drawn_x)
        visit.page.locator(".sessionkit-picture").press("+")
        visit.page.wait_for_function(f"before => ({drawn_x})() < before", arg=before)
        assert 0 < sum(marks(visit).values()) < sum(everything.values())

    def test_a_click_says_why(self, visit: Visit) -> None:
        self.start(visit, "5m", "0s", "one key")
        comes_to(visit, expected(self.key(visit), inactivity_gap="5m", grace="0s"))
        visit.page.evaluate(
            """() => { const place = document.querySelector('.sessionkit-picture');
              const data = place.data.find(trace => trace.name.startsWith('dropped'));
              place.emit('plotly_click', {points: [{data, x: data.x[0], y: data.y[0]}]}); }"""
        )
        visit.page.locator(".sessionkit-words").filter(has_text="was dropped: too late").wait_for()

    def test_a_cell_of_the_grid_sets_both_sliders(self, visit: Visit) -> None:
        self.start(visit, "5m", "2m", "what settings cost")
        before = self.settings(visit)
        visit.page.wait_for_selector(".sessionkit-picture .heatmaplayer .hm")
        visit.page.wait_for_timeout(500)
        box = visit.page.locator(".sessionkit-picture .nsewdrag").first.bounding_box()
        assert box is not None
        visit.page.mouse.click(box["x"] + 8, box["y"] + 8)  # the cell in the corner: smallest gap, largest grace
        changed = f"before => ({FIELDS})().every((text, i) => text !== before[i])"
        visit.page.wait_for_function(changed, arg=[*before.values()])
        self.show(visit, "one key")
        comes_to(visit, expected(self.key(visit), **self.settings(visit)))

    def test_a_snapshot_and_the_code(self, visit: Visit) -> None:
        visit.page.get_by_role("button", name="keep as snapshot").click()
        press(visit, ["ArrowRight"], slider=0)
        visit.page.locator(".sessionkit-counts").filter(has_text="compared with the snapshot").wait_for()
        self.show(visit, "compared with the snapshot")
        visit.page.locator(".sessionkit-words").filter(has_text="stay as they are").wait_for()
        self.show(visit, "as code")
        gap = length(visit, 0).replace(" min", "m").replace(" s", "s")
        visit.page.locator(".sessionkit-code pre").filter(has_text=f'inactivity_gap="{gap}"').wait_for()

    def test_a_reload_keeps_the_picture(self, visit: Visit) -> None:
        self.start(visit, "5m", "90s", "one key")
        press(visit, ["ArrowRight"], slider=1)
        key, settings = self.key(visit), self.settings(visit)
        comes_to(visit, expected(key, **settings))
        visit.reload()
        visit.wait_drawn()
        comes_to(visit, expected(key, **settings))
        assert (self.key(visit), self.settings(visit)) == (key, settings)
        press(visit, ["ArrowLeft"] * 2, slider=1)  # and it still lives
        assert self.settings(visit) != settings
        comes_to(visit, expected(key, **self.settings(visit)))

    def test_it_follows_a_dark_theme(self, visit: Visit) -> None:
        ground = "colour => document.querySelector('.sessionkit-picture .main-svg')?.style.background === colour"
        for is_light, colour in (("false", "rgb(18, 22, 28)"), ("true", "rgb(255, 255, 255)")):
            visit.page.evaluate("is_light => { document.body.dataset.jpThemeLight = is_light; }", is_light)
            visit.page.wait_for_function(ground, arg=colour)

    def test_nothing_of_it_is_saved(self, visit: Visit, server: Server) -> None:
        saved = (server.folder / "tune.ipynb").read_text()
        assert len(saved) < 20_000
        assert "figure" not in saved


@pytest.mark.essential
def test_play_and_browse(visit: Visit, server: Server) -> None:
    name = server.write(
        "play.ipynb",
        HEAD,
        "player = sk.play(plan.run(data), 'ana')\nplayer",
        "store = sk.open_store('memory', 'clicks-store')\nrun = plan.run(data, store=store)\nsk.browse(store)",
    )
    visit.open_lab(name)
    visit.wait_drawn()
    curtain = "y => document.querySelector('.sessionkit-picture').layout.shapes?.[0].y0 === y"
    press(visit, ["Home"], slider=0)
    visit.page.wait_for_function(curtain, arg=0.6)
    press(visit, ["ArrowRight"] * 3, slider=0)
    visit.page.wait_for_function(curtain, arg=3.6)
    visit.page.locator(".sessionkit-words").filter(has_text="Record ").first.wait_for()
    visit.page.get_by_role("button", name="play the arrivals").click()
    visit.page.wait_for_function(curtain, arg=5.6)
    visit.wait_drawn(nth=1)
    bars = visit.page.locator(".sessionkit-picture").nth(1).locator(".barlayer .point").count()
    store_rows = visit.page.locator(".sessionkit-table table tr").count() - 1
    assert bars == store_rows > 0


@pytest.mark.essential
def test_hostile_text_is_text_everywhere(visit: Visit, server: Server) -> None:
    """Keys and values: in each view of the board, in the player, the browser, and what a run shows of itself."""
    dialogs: list[str] = []
    visit.page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    assert len(PAYLOADS) >= 40
    name = server.write(
        "hostile.ipynb",
        """import pandas as pd, sessionkit as sk
from tests.hostile.test_markup import PAYLOADS
MINUTE = 60_000
steps = [0, 2, 21, 11, 70, 45, 5]
rows = [(text, step * MINUTE + i, text) for step in steps for i, text in enumerate(PAYLOADS)]
data = pd.DataFrame(rows, columns=["<img src=x onerror=alert(1)>", "at", "value"])
plan = (sk.group_by_key("<img src=x onerror=alert(1)>", timestamp="at", unit="ms")
        .windowed_by(sk.SessionWindows(inactivity_gap="10m", grace="20m"))
        .aggregate(**{"<script>alert(1)</script>": sk.last("value")}))
run = plan.run(data)
store = sk.open_store("memory", "hostile-store")
plan.run(data, store=store);""",
        "board = sk.tune(plan, data)\nboard",
        "sk.play(run, PAYLOADS[6])",
        "sk.browse(store)",
        "run",
        "run.compare(plan.with_windows(grace='0s').run(data))",
        "run.lineage(PAYLOADS[6], int(run.table().iloc[0]['window_start_ms'])) if False else run.latency()",
        "run.explain(offset=6)",
        "plan.to_ksql() if False else plan",
        "store",
    )
    visit.open_lab(name)
    visit.wait_drawn()
    visit.page.get_by_role("button", name="keep as snapshot").click()
    for view in (
        "many keys", "what settings cost", "who loses the most", "compared with the snapshot", "as code", "one key",
    ):  # fmt: skip
        visit.page.get_by_role("tab", name=view, exact=True).click()
        visit.page.wait_for_timeout(700)
        assert visit.page.evaluate(RAN) == []
    for text in PAYLOADS[::6]:
        visit.page.locator("[data-control=key] select").first.select_option(index=PAYLOADS.index(text))
        visit.page.wait_for_timeout(200)
    assert visit.page.evaluate(RAN) == []
    assert dialogs == []


@pytest.mark.parametrize("kind", ["notebooks", "voila/render"])
def test_in_notebook_7_and_voila(server: Server, browser: Browser, kind: str) -> None:
    name = server.write("short.ipynb", HEAD + "\nsk.tune(plan, data)")
    with visiting(server, browser) as visit:
        visit.page.goto(server.url(kind, name))
        if kind == "notebooks":
            visit.settle()
            visit.run_all()
        visit.wait_drawn()
        board = TestTune()
        key = board.key(visit)
        comes_to(visit, expected(key))
        press(visit, ["ArrowRight"] * 2, slider=1)
        assert board.settings(visit)["grace"] == "5 min"
        comes_to(visit, expected(key, **board.settings(visit)))
        known = ("cdn.jsdelivr.net/npm/@fortawesome", "cdnjs.cloudflare.com/ajax/libs/mathjax")  # Voila's own page
        ours = [url for url in visit.outside if not any(part in url for part in known)]
        assert ours == []
        assert kind != "notebooks" or visit.outside == []


def test_the_widget_notebook(visit: Visit, server: Server) -> None:
    (source,) = (PACKAGE / "notebooks").glob("*widgets*.ipynb")
    for file in (source, PACKAGE / "docs" / "tune.png"):
        (server.folder / file.parent.name).mkdir(exist_ok=True)
        (server.folder / file.parent.name / file.name).write_bytes(file.read_bytes())
    visit.open_lab(f"{source.parent.name}/{source.name}")
    revision, before = visit.wait_drawn(), marks(visit)
    press(visit, ["ArrowLeft"] * 4, slider=1)
    visit.wait_drawn(revision + 1)
    visit.page.wait_for_timeout(1_000)
    assert marks(visit) != before
    assert visit.page.locator(".jp-MarkdownOutput img").first.evaluate("e => e.naturalWidth") > 0
