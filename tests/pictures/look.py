"""Draws charts in a browser, says what is wrong with them, and keeps them in out/pictures: `make pictures`."""

import json
import sys
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import sessionkit as sk
from sessionkit.views.drawing.grammar import LEAST_WIDTH, plotly_script
from tests.optional import Browser, Page
from tests.pictures.charts import CHARTS
from tests.pictures.shapes import SHAPES

THEMES, WIDTHS = ("light", "dark"), (375, 700, 1_000, 1_600)
OUT = Path(__file__).parents[2] / "out" / "pictures"
FAULTS = (Path(__file__).parent / "faults.js").read_text(encoding="utf-8")
DRAW = """async ([figure, width]) => {
  const room = document.createElement('div');
  room.style.width = `${width}px`;
  document.body.replaceChildren(room);
  await Plotly.newPlot(room, figure.data, figure.layout, {displayModeBar: false});
}"""

TITLES = "buttons => buttons.map((button) => button.dataset.title ?? '')"
SENDING = ("share", "cloud", "upload", "studio", "server", "edit chart")


def figure_of(chart: str, shape: str, theme: str, width: int) -> dict[str, Any]:
    """The figure of a chart, as plotly.js takes it: laid out for a phone, or for any room."""
    if width >= LEAST_WIDTH:
        return _laid_out(chart, shape, theme, None)
    return _laid_out(chart, shape, theme, width)


@cache
def _laid_out(chart: str, shape: str, theme: str, width: int | None) -> dict[str, Any]:
    sk.options.width = width
    try:
        figure: dict[str, Any] = json.loads(CHARTS[chart](shape, theme).to_json())
    finally:
        sk.options.width = None
    return figure


def opened(browser: Browser) -> Iterator[Page]:
    """A page on which figures are drawn, one after the other, as a fixture has it."""
    page = browser.new_page(viewport={"width": 1_640, "height": 1_200})
    page.set_content(f"<!doctype html><script>{plotly_script()}</script>")
    yield page
    page.close()


def draw(page: Page, figure: dict[str, Any], width: int) -> None:
    """Draws a figure in a room of this width."""
    page.evaluate(DRAW, [figure, width])


def faults(page: Page) -> list[str]:
    """What is wrong with the figure that is drawn."""
    found: list[str] = page.evaluate(FAULTS)
    return found


def sending(page: Page) -> list[str]:
    """The buttons that send a picture elsewhere, of all pictures on a page that have buttons."""
    titles: list[str] = page.locator(".modebar-btn").evaluate_all(TITLES)
    assert "Zoom" in titles, titles
    return [title for title in titles if any(word in title.lower() for word in SENDING)]


def main(charts: list[str]) -> None:
    """All of them, and how many were found wrong."""
    from playwright.sync_api import sync_playwright

    from tests.conftest import CHROMIUM_ARGUMENTS, chromium

    OUT.mkdir(parents=True, exist_ok=True)
    count, wrong = 0, 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=CHROMIUM_ARGUMENTS)
        page = next(opened(browser))
        for shape, chart, theme, width in product(SHAPES, charts or CHARTS, THEMES, WIDTHS):
            draw(page, figure_of(chart, shape, theme, width), width)
            page.locator(".js-plotly-plot").screenshot(path=OUT / f"{chart}, {shape}, {theme}, {width}.png")
            found = faults(page)
            count, wrong = count + 1, wrong + bool(found)
            for fault in found:
                print(f"{chart}, {shape}, {theme}, {width}: {fault}", flush=True)
        browser.close()
    print(f"{count} pictures, {wrong} of them wrong")


if __name__ == "__main__":
    main(sys.argv[1:])
