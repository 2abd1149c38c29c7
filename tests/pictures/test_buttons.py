"""The buttons of every picture, as a browser draws them: none sends the picture, with its keys and times, elsewhere."""

import json
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import plotly.io as pio
import pytest

import sessionkit as sk
from tests.optional import Browser, Page
from tests.pictures.charts import CHARTS, drawn
from tests.pictures.look import figure_of, opened, sending

pytestmark = pytest.mark.browser

DRAW = "figure => Plotly.newPlot(document.body, figure.data, figure.layout, {...figure.config, displayModeBar: true})"
page = pytest.fixture(opened, scope="module")


def sending_of(page: Page, figure: dict[str, Any]) -> list[str]:
    page.evaluate(DRAW, figure)
    return sending(page)


@pytest.mark.parametrize("chart", CHARTS)
def test_no_picture_offers_to_send_itself_away(page: Page, chart: str) -> None:
    assert sending_of(page, figure_of(chart, "change of clocks", "light", 700)) == []


def test_the_button_of_what_is_shown_is_pressed(page: Page) -> None:
    """In three pictures two or more buttons looked alike, whatever was shown."""
    drop = drawn("change of clocks").run.drop_calendar().figure()
    shape = drawn("change of clocks").shape
    heat = sk.sweep(shape.plan, shape.table, inactivity_gap=["1m", "1h"], grace=["0s", "1h"]).heat_map()
    for figure in (drop, heat):
        page.evaluate(DRAW, json.loads(figure.to_json()))
        labels = page.locator(".updatemenu-button")
        for place in (1, 0):
            labels.nth(place).click()
            assert [each[0] for each in labels.all_text_contents()] == [
                "●" if at == place else "○" for at in range(labels.count())
            ]


OVERLAP = """() => {
  const [bar, title] = [".modebar", ".gtitle"].map((name) => document.querySelector(name).getBoundingClientRect());
  return Math.min(bar.right, title.right) - Math.max(bar.left, title.left);
}"""


@pytest.mark.parametrize("chart", CHARTS)
def test_no_button_stands_over_the_title(page: Page, chart: str) -> None:
    figure = figure_of(chart, "change of clocks", "light", 700)
    for width in (figure["layout"].get("width", 700), 700):
        figure["layout"]["width"] = width
        page.evaluate(DRAW, figure)
        assert page.evaluate(OVERLAP) <= 0


def test_no_picture_of_a_board_offers_it_either(page: Page) -> None:
    shape, run = drawn("change of clocks").shape, drawn("change of clocks").run
    with sk.open_store("memory", "clicks") as store:
        shape.plan.run(shape.table, store=store)
        boards = [sk.tune(shape.plan, shape.table), sk.play(run, run.most_eventful_key()), sk.browse(store)]
        for board in boards:
            assert sending_of(page, json.loads(board.figure().to_json())) == []
            for picture in board.figures.values():
                assert sending_of(page, json.loads(picture["figure"])) == []


@pytest.mark.parametrize("renderer", ["write_html", "plotly_mimetype", "notebook", "iframe"])
def test_however_a_figure_is_shown(
    page: Page, browser: Browser, renderer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `show` and a notebook's renderers show it, and as a page of its own."""
    figure = drawn("change of clocks").run.plane()
    if renderer == "plotly_mimetype":
        (shown,) = pio.renderers[renderer].to_mimebundle(figure.to_dict()).values()
        assert sending_of(page, json.loads(json.dumps(shown))) == []
        return
    monkeypatch.chdir(tmp_path)
    if renderer == "write_html":
        figure.write_html("page.html")
    elif renderer == "iframe":
        figure.show(renderer=renderer)
    else:
        html = pio.renderers[renderer].to_mimebundle(figure.to_dict())["text/html"]
        Path("page.html").write_text(f"<!doctype html><script>{pio._html.get_plotlyjs()}</script>{html}")
    (place,) = tmp_path.rglob("*.html")
    with browser.new_context(offline=True) as context:
        tab = context.new_page()
        tab.goto(place.as_uri())
        tab.locator(".modebar-btn").first.wait_for(state="attached")
        assert sending(tab) == []


def test_the_program_sees_a_button_that_sends(page: Page) -> None:
    assert sending_of(page, {"data": [], "layout": json.loads(go.Figure().to_json())["layout"]}) == ["Share chart..."]
