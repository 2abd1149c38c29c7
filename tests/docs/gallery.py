"""Draws the pictures of docs/gallery.md with the code that stands above them: `make gallery`."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from sessionkit.views.drawing.grammar import plotly_script
from tests.conftest import CHROMIUM_ARGUMENTS, chromium
from tests.docs.pages import ROOT, Page
from tests.docs.test_pages import run_python
from tests.optional import Browser
from tests.pictures.look import draw

if TYPE_CHECKING:
    import plotly.graph_objects as go

PAGE = Page(ROOT / "docs" / "gallery.md")
MOST_BYTES, WIDTH = 60_000, 1_000
SCALES = (1.0, 0.85, 0.7, 0.6, 0.5)
_PICTURE = re.compile(r"!\[[^\]]+\]\((gallery/[a-z_]+\.png)\)")


def pictures() -> dict[str, int]:
    """Each picture of the page, with the line in which it stands."""
    lines = PAGE.path.read_text(encoding="utf-8").splitlines()
    return {found[1]: number for number, line in enumerate(lines, 1) if (found := _PICTURE.search(line))}


def small_png(browser: Browser, figure: go.Figure) -> bytes:
    """The figure as a picture that is as large as it may be."""
    for scale in SCALES:
        page = browser.new_page(device_scale_factor=scale, viewport={"width": 1_600, "height": 1_200})
        page.set_content(f"<!doctype html><script>{plotly_script()}</script>")
        draw(page, json.loads(str(figure.to_json())), WIDTH)
        picture = page.locator(".js-plotly-plot .svg-container").screenshot()
        page.close()
        if len(picture) <= MOST_BYTES:
            break
    return picture


def main() -> None:
    """Runs the page from top to bottom: a picture is of the figure that was made last above it."""
    from playwright.sync_api import sync_playwright

    places = {line: ROOT / "docs" / name for name, line in pictures().items()}
    names: dict[str, Any] = {"__name__": "__main__"}
    blocks = [block for block in PAGE.blocks if block.language == "python"]
    ends = [block.line for block in blocks[1:]] + [max(places) + 1]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=CHROMIUM_ARGUMENTS)
        for block, end in zip(blocks, ends, strict=True):
            run_python(PAGE, block, names)
            for line, path in places.items():
                if block.line < line < end:
                    path.parent.mkdir(exist_ok=True)
                    path.write_bytes(small_png(browser, names["figure"]))
        browser.close()


if __name__ == "__main__":
    main()
