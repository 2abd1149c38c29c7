"""Boards as a person meets them: all on one screen, linked by mouse and by keyboard, pictures to save."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.lab import Server, Visit
from tests.optional import Locator
from tests.pictures.look import sending

pytestmark = pytest.mark.browser

FLIGHTS = """import sessionkit as sk
flights = sk.load_sample("flights")
waves = (sk.group_by_key("carrier", "origin", sep="@", timestamp="scheduled", timezone="UTC")
         .windowed_by(sk.SessionWindows(inactivity_gap="1h", grace="1h")).count())"""
SMALL = {"width": 1366, "height": 768}
# What is cut: text that is wider than its box, or that leaves the board.
CUT = """() => {
  const board = document.querySelector('.sessionkit-board').getBoundingClientRect();
  return [...document.querySelectorAll('.sessionkit-board :is(button, label, p, b, small, span, li, input, select)')]
    .filter(e => e.getClientRects().length && !e.closest('.sessionkit-picture'))
    .filter(e => {
      const box = e.getBoundingClientRect();
      return box.left < board.left - 1 || box.right > board.right + 1 || (e.tagName !== 'INPUT'
        && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== 'inline');
    })
    .map(e => e.outerHTML.slice(0, 160));
}"""


def box(part: Locator) -> dict[str, float]:
    for _ in range(50):  # what is just being drawn anew has no box for a moment
        if (found := part.bounding_box()) is not None:
            break
        part.page.wait_for_timeout(100)
    assert found is not None
    return {**found, "bottom": found["y"] + found["height"], "right": found["x"] + found["width"]}


def boxes(visit: Visit) -> dict[str, dict[str, float]]:
    parts = ("board", "sliders", "counts", "views", "picture", "words", "tools")
    return {name: box(visit.page.locator(f".sessionkit-{name}:visible").first) for name in parts}


def resize(visit: Visit, width: int, height: int) -> None:
    """Gives the window a size, and waits until JupyterLab has laid itself out for it."""
    visit.page.set_viewport_size({"width": width, "height": height})
    visit.page.wait_for_function(
        """width => {
          const panel = document.querySelector('#jp-main-dock-panel').getBoundingClientRect();
          return innerWidth === width && Math.abs(width - panel.right) < 100;
        }""",
        arg=width,
    )


def settle(visit: Visit) -> None:
    """Waits until the board is drawn for its room, and nothing is under way."""
    visit.page.evaluate("() => { delete window.wasThen; }")  # what was steady before says nothing
    visit.page.wait_for_function(
        """() => {
          const room = document.querySelector('.sessionkit-room');
          const place = document.querySelector('.sessionkit-picture');
          const strip = document.querySelector('.sessionkit-strip');
          if (!place?._fullLayout || (strip && strip.dataset.revision !== place.dataset.revision)) return false;
          const width = Math.min(Math.max(Math.floor(room.clientWidth / 20) * 20, 600), 2400);
          const now = `${place.dataset.revision} ${place._fullLayout.width}`;
          const isSteady = window.wasThen === now && place._fullLayout.width === width;
          window.wasThen = now;
          return isSteady;
        }""",
        polling=400,
    )


def selected(visit: Visit) -> str:
    return str(visit.page.locator("[data-control=key] select").evaluate("e => e.selectedOptions[0].text"))


def view(visit: Visit) -> str:
    return str(visit.page.locator(".sessionkit-views [aria-selected=true]").inner_text())


def shown(visit: Visit, name: str) -> None:
    """Waits until a view is shown, and its pictures are drawn."""
    visit.page.wait_for_function(
        """name => {
          const board = document.querySelector('.sessionkit-board');
          return board.querySelector('.sessionkit-views [aria-selected=true]').textContent === name &&
            [...board.querySelectorAll('.sessionkit-picture, .sessionkit-strip')]
              .every(e => e.dataset.revision === board.dataset.revision);
        }""",
        arg=name,
    )


class TestTheFlights:
    @pytest.fixture(scope="class")
    @classmethod
    def visit(cls, server: Server, lab: Visit) -> Iterator[Visit]:
        """A board of the flights in a small window, for all of these tests."""
        name = server.write("flights.ipynb", FLIGHTS, "board = sk.tune(waves, flights)\nboard")
        with lab.anew(**SMALL) as page:
            page.open_lab(name)
            page.wait_drawn()
            yield page

    @pytest.fixture(autouse=True)
    def _small(self, visit: Visit) -> None:
        resize(visit, **SMALL)
        self.show(visit, "one key")
        settle(visit)

    def show(self, visit: Visit, name: str) -> None:
        visit.page.locator(".sessionkit-views").get_by_role("tab", name=name, exact=True).click()
        shown(visit, name)

    @pytest.mark.parametrize("name", ["one key", "many keys"])
    def test_all_of_it_is_on_one_screen(self, visit: Visit, name: str) -> None:
        self.show(visit, name)
        settle(visit)
        visit.page.locator(".sessionkit-board").evaluate("e => e.scrollIntoView({block: 'start'})")
        visit.page.wait_for_timeout(300)
        screen, found = box(visit.page.locator(".jp-WindowedPanel-outer").first), boxes(visit)
        print(json.dumps(found))
        assert found["board"]["width"] >= 900
        for part in ("sliders", "counts", "views", "picture", "tools"):
            assert screen["y"] - 1 <= found[part]["y"] and found[part]["bottom"] <= screen["bottom"] + 1, part
        assert 250 <= found["picture"]["height"] <= 420  # with a strip below it
        assert found["sliders"]["height"] < 40  # side by side
        assert found["counts"]["height"] < 60  # one row
        words = found["words"]
        assert words["x"] >= found["picture"]["right"] - 1  # beside the picture, on the same screen
        assert words["y"] < found["picture"]["bottom"]

    def test_a_leader_line_ends_at_its_label_and_goes_with_it(self, visit: Visit) -> None:
        """It is drawn as a shape, and a shape would stay where the point and the label are no longer shown."""
        lines = """() => {
          const { annotations, shapes = [] } = document.querySelector('.sessionkit-picture').layout;
          const label = (line) => annotations.find(each => each.x === line.xanchor && each.y === line.yanchor);
          const leaders = shapes.filter(each => each.xsizemode === 'pixel');
          const atLabel = leaders.filter(each => label(each).xshift === each.x1 && label(each).yshift === each.y1);
          return [leaders.length, atLabel.length, annotations.filter(each => each.showarrow).length];
        }"""
        leaders, at_label, arrows = visit.page.evaluate(lines)
        assert leaders == at_label > 0
        assert arrows == 0
        visit.page.locator(".sessionkit-picture").press("+")
        visit.page.wait_for_function(f"count => ({lines})()[2] === count", arg=leaders)
        assert visit.page.evaluate(lines)[0] == 0

    def test_two_columns_where_there_is_room(self, visit: Visit) -> None:
        resize(visit, 1900, 1000)
        settle(visit)
        found = boxes(visit)
        for part in ("sliders", "counts", "words"):
            assert found[part]["right"] <= found["picture"]["x"] + 1
        assert found["picture"]["width"] > 900

    @pytest.mark.parametrize("width", [900, 1000, 1100, 1250])
    def test_nothing_is_cut_in_a_narrow_window(self, visit: Visit, width: int) -> None:
        resize(visit, width, 900)
        for name in ("many keys", "who loses the most", "one key"):
            self.show(visit, name)
            if name != "who loses the most":  # a table
                settle(visit)
            assert visit.page.evaluate(CUT) == []
        found = boxes(visit)
        assert found["picture"]["right"] <= found["board"]["right"] + 1

    @pytest.mark.essential
    def test_a_lane_a_drop_and_a_key_by_mouse(self, visit: Visit) -> None:
        self.show(visit, "many keys")
        settle(visit)
        names = visit.page.locator(".sessionkit-picture .ytick text")
        key = str(names.nth(2).text_content())
        names.nth(2).click()
        shown(visit, "one key")
        assert selected(visit) == key
        visit.page.locator(f".sessionkit-figure figcaption:has-text('{key}')").wait_for()
        self.show(visit, "many keys")
        visit.page.wait_for_function(
            """key => [...document.querySelectorAll('.sessionkit-picture .ytick text')]
              .some(e => e.textContent === '▸' + key)""",
            arg=key,
        )
        dropped = visit.page.evaluate_handle(
            """() => [...document.querySelectorAll('.sessionkit-picture .scatterlayer .trace')]
              .find(e => e.__data__[0].trace.name.startsWith('dropped')).querySelector('path.point')"""
        ).as_element()
        assert dropped is not None
        at = dropped.bounding_box()
        assert at is not None
        visit.page.mouse.move(at["x"] + at["width"] / 2 + 1, at["y"] + at["height"] / 2 + 1)
        visit.page.wait_for_timeout(400)
        visit.page.mouse.click(at["x"] + at["width"] / 2, at["y"] + at["height"] / 2)
        visit.page.locator(".sessionkit-words p", has_text="was dropped: too late").wait_for()
        said = visit.page.locator(".sessionkit-words p", has_text="was dropped: too late").inner_text()
        assert f"(key {selected(visit)})" in said

    @pytest.mark.parametrize("name", ["one key", "many keys"])
    def test_the_frame_of_the_strip_by_mouse_and_by_keyboard(self, visit: Visit, name: str) -> None:
        self.show(visit, name)
        settle(visit)
        strip = visit.page.locator(".sessionkit-strip")
        edge = "e => String(e._fullLayout.shapes[0].x0)"
        moved = ".sessionkit-strip')._fullLayout.shapes[0].x0) !== before"
        before = strip.evaluate(edge)
        strip.press("ArrowRight")
        visit.page.wait_for_function(f"before => String(document.querySelector('{moved}", arg=before)
        shown(visit, name)
        settle(visit)
        before, at = strip.evaluate(edge), box(strip.locator(".shapelayer path").first)
        visit.page.mouse.move((at["x"] + at["right"]) / 2, (at["y"] + at["bottom"]) / 2)
        visit.page.mouse.down()
        visit.page.mouse.move((at["x"] + at["right"]) / 2 - 60, (at["y"] + at["bottom"]) / 2, steps=6)
        visit.page.mouse.up()
        visit.page.wait_for_function(f"before => String(document.querySelector('{moved}", arg=before)
        shown(visit, name)

    def test_a_key_of_the_table_by_mouse(self, visit: Visit) -> None:
        self.show(visit, "who loses the most")
        button = visit.page.locator(".sessionkit-table tbody tr").nth(4).get_by_role("button")
        key = button.inner_text()
        button.click()
        visit.page.locator(f".sessionkit-figure figcaption:has-text('{key}')").wait_for()
        assert (selected(visit), view(visit)) == (key, "one key")

    def test_by_keyboard_from_the_tabs_to_a_record(self, visit: Visit) -> None:
        """Tab to the views, an arrow to the lanes, down to a key, Enter to its plane, up to a record."""
        page = visit.page
        page.locator(".sessionkit-views [aria-selected=true]").focus()
        page.keyboard.press("ArrowRight")
        shown(visit, "many keys")
        assert page.evaluate("() => document.activeElement.textContent") == "many keys"
        settle(visit)
        page.keyboard.press("Tab")
        assert "sessionkit-picture" in page.evaluate("() => document.activeElement.className")
        before = selected(visit)
        page.keyboard.press("ArrowDown")
        page.wait_for_function(
            "before => document.querySelector('[data-control=key] select').selectedOptions[0].text !== before",
            arg=before,
        )
        key = selected(visit)
        page.keyboard.press("Enter")
        page.locator(f".sessionkit-figure figcaption:has-text('{key}')").wait_for()
        page.locator(".sessionkit-picture").focus()
        page.keyboard.press("ArrowUp")
        page.locator(".sessionkit-words p", has_text=f"(key {key})").wait_for()
        assert page.locator(".jp-Notebook.jp-mod-commandMode .jp-mod-selected").count() <= 1  # still the same cell

    def test_the_grid_by_keyboard(self, visit: Visit) -> None:
        self.show(visit, "what settings cost")
        visit.page.wait_for_selector(".sessionkit-picture .heatmaplayer .hm")
        fields = "() => [...document.querySelectorAll('.sessionkit-slider input[type=text]')].map(e => e.value)"
        before = visit.page.evaluate(fields)
        visit.page.locator(".sessionkit-picture").first.press("ArrowRight")
        visit.page.wait_for_function(f"before => ({fields})()[0] !== before[0]", arg=before)
        visit.page.locator(".sessionkit-picture").first.press("ArrowLeft")
        visit.page.wait_for_function(f"before => ({fields})()[0] === before[0]", arg=before)

    @pytest.mark.parametrize("kind", ["svg", "png"])
    def test_a_picture_is_saved(self, visit: Visit, tmp_path: Path, kind: str) -> None:
        with visit.page.expect_download() as waiting:
            visit.page.get_by_role("button", name=f"save the picture as {kind.upper()}").click()
        path = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(path)
        content = path.read_bytes()
        assert path.suffix == f".{kind}"
        assert content.startswith(b"<svg" if kind == "svg" else b"\x89PNG")
        if kind == "svg":
            assert "records kept" in content.decode()  # with its title, which stands beside it on the board
            assert "close line" in content.decode()  # and its legend


def test_the_words_of_the_player_are_beside_its_slider(visit: Visit, server: Server) -> None:
    name = server.write("player.ipynb", FLIGHTS, "player = sk.play(waves.run(flights), 'FL@LGA')\nplayer")
    visit.page.set_viewport_size(SMALL)  # type: ignore[arg-type]
    visit.open_lab(name)
    visit.wait_drawn()
    for width in (900, 1366, 1900):
        resize(visit, width, 768)
        settle(visit)
        slider, words = (
            box(visit.page.locator(".sessionkit-slider")),
            box(visit.page.locator(".sessionkit-words:visible")),
        )
        assert 0 < words["y"] - slider["y"] < 200


def test_no_picture_in_a_notebook_offers_to_send_itself_away(visit: Visit, server: Server) -> None:
    """A board, a figure that is the value of a cell, one that is shown, and a result that shows itself as one."""
    run = "run = waves.run(flights)\nrun.plane()"
    name = server.write("figures.ipynb", FLIGHTS, "sk.tune(waves, flights)", run, "run.lanes().show()", "run.latency()")
    visit.open_lab(name)
    visit.wait_drawn()
    visit.page.wait_for_function("() => document.querySelectorAll('.modebar').length >= 4")
    assert sending(visit.page) == []


def typed(visit: Visit, fields: Locator, nth: int, text: str) -> None:
    """Waits until a field says so."""
    arg = [fields.nth(nth).element_handle(), text]
    visit.page.wait_for_function("([field, text]) => field.value === text", arg=arg)


def test_a_board_is_linked_and_stands_beside_another(visit: Visit, server: Server) -> None:
    """Its settings were no traits, so that no slider of one's own could move it."""
    cell = """import ipywidgets
gap = ipywidgets.IntSlider(value=60, min=5, max=240, description="gap in min")
one, other = (sk.tune(waves, flights) for _ in range(2))
minutes = (lambda value: value * 60_000, lambda value: value // 60_000)
ipywidgets.link((gap, "value"), (one, "gap"), transform=minutes)
ipywidgets.link((one, "grace"), (other, "grace"))
ipywidgets.VBox([gap, ipywidgets.HBox([one, other])])"""
    visit.open_lab(server.write("linked.ipynb", FLIGHTS, cell))
    page = visit.page
    boards = page.locator(".sessionkit-board")
    boards.nth(1).locator(".sessionkit-picture").wait_for()
    first, second = (box(boards.nth(at)) for at in (0, 1))
    assert abs(first["y"] - second["y"]) < 5
    assert first["right"] <= second["x"] + 1
    gaps, graces = (boards.get_by_label(f"{name}, typed") for name in ("inactivity gap", "grace"))
    page.locator(".widget-hslider [role=slider]").press("ArrowRight")
    typed(visit, gaps, 0, "1 h 1 min")
    assert gaps.nth(1).input_value() == "1 h"
    graces.nth(1).fill("2h")
    graces.nth(1).press("Enter")
    typed(visit, graces, 0, "2 h")
