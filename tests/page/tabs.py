"""Pages of runs, opened from disk without a network."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sessionkit as sk
from tests.optional import Browser
from tests.optional import Page as Tab


def visits(browser: Browser, tmp_path: Path) -> Iterator[Any]:
    """Opens the page of a run, as a fixture has it; at the end nothing was asked for and nothing went wrong."""
    contexts, asked, told = [], [], []

    def visit(
        run: sk.Run, *, theme: str = "light", width: int = 1366, height: int = 768, touch: bool = False, **options: Any
    ) -> Tab:
        place = run.write_html(tmp_path / f"page {len(contexts)}.html", **options)
        look: Any = {"viewport": {"width": width, "height": height}, "color_scheme": theme, "has_touch": touch}
        context = browser.new_context(**look, offline=True)
        contexts.append(context)
        tab = context.new_page()
        tab.on("request", lambda request: asked.append(request.url))
        tab.on("console", lambda line: told.append(line.text))
        tab.on("pageerror", lambda error: told.append(str(error)))
        tab.goto(place.as_uri())
        tab.wait_for_selector(".what-if[data-ready]")
        return tab

    yield visit
    for context in contexts:
        context.close()
    assert [url for url in asked if not url.startswith("file:")] == [] and len(asked) == len(contexts)
    assert [line for line in told if not line.startswith("Canvas2D: Multiple readback")] == []  # our own tests do that


def painted(tab: Tab) -> None:
    tab.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
