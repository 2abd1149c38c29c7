"""Draws charts in a browser, says what is wrong with them, and keeps them in out/pictures: `make pictures`."""

from __future__ import annotations

import json
import sys
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sessionkit.views.charts.drawing.script import plotly_script
from tests.pictures.charts import CHARTS
from tests.pictures.shapes import SHAPES

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

THEMES, WIDTHS = ("light", "dark"), (700, 1_600)
OUT = Path(__file__).parents[2] / "out" / "pictures"
FAULTS = (Path(__file__).parent / "faults.js").read_text(encoding="utf-8")
DRAW = """async ([figure, width]) => {
  const room = document.createElement('div');
  room.style.width = `${width}px`;
  document.body.replaceChildren(room);
  await Plotly.newPlot(room, figure.data, figure.layout, {displayModeBar: false});
}"""


@cache
def figure_of(chart: str, shape: str, theme: str) -> dict[str, Any]:
    """The figure of a chart, as plotly.js takes it."""
    figure: dict[str, Any] = json.loads(CHARTS[chart](shape, theme).to_json())
    return figure


def opened(browser: Browser) -> Page:
    """A page on which figures are drawn, one after the other."""
    page = browser.new_page(viewport={"width": 1_640, "height": 1_200})
    page.set_content(f"<!doctype html><script>{plotly_script()}</script>")
    return page


def faults(page: Page, chart: str, shape: str, theme: str, width: int, keep: Path | None = None) -> list[str]:
    """What is wrong with this chart of this data in a room of this width."""
    page.evaluate(DRAW, [figure_of(chart, shape, theme), width])
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        page.locator(".js-plotly-plot").screenshot(path=keep / f"{chart}, {shape}, {theme}, {width}.png")
    found: list[str] = page.evaluate(FAULTS)
    return found


def main(charts: list[str]) -> None:
    """All of them, and how many were found wrong."""
    from playwright.sync_api import sync_playwright

    from tests.conftest import CHROMIUM_ARGUMENTS, chromium

    count, wrong = 0, 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=CHROMIUM_ARGUMENTS)
        page = opened(browser)
        for shape, chart, theme, width in product(SHAPES, charts or CHARTS, THEMES, WIDTHS):
            found = faults(page, chart, shape, theme, width, OUT)
            count, wrong = count + 1, wrong + bool(found)
            for fault in found:
                print(f"{chart}, {shape}, {theme}, {width}: {fault}", flush=True)
        browser.close()
    print(f"{count} pictures, {wrong} of them wrong")


if __name__ == "__main__":
    main(sys.argv[1:])
