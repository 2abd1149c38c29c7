"""The boards in marimo, which has no ipywidgets: moved by keyboard and by mouse, drawn, linked, saved."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.lab import PACKAGE, PATIENCE_MS, free_port, wait_for_server
from tests.optional import Browser, Page
from tests.pictures.look import sending

pytestmark = pytest.mark.browser

NOTEBOOK = """import marimo

app = marimo.App(width="full")


@app.cell
def _():
    import sessionkit as sk
    from tests.unit.widgets.test_tuner import SESSIONS, clicks, spent_in

    data, plan = clicks(100), spent_in(SESSIONS)
    return data, plan, sk


@app.cell
def _(data, plan, sk):
    board = sk.tune(plan, data)
    board
    return (board,)


@app.cell
def _(data, plan, sk):
    player = sk.play(plan.run(data), "ana")
    player
    return (player,)


@app.cell
def _(data, plan, sk):
    store = sk.open_store("memory", "clicks-store")
    plan.run(data, store=store)
    sk.browse(store)
    return


if __name__ == "__main__":
    app.run()
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a marimo app that shows the boards."""
    pytest.importorskip("marimo", reason="marimo is not installed")
    home = tmp_path_factory.mktemp("marimo")
    (home / "boards.py").write_text(NOTEBOOK)
    port = free_port()
    environment = {**os.environ, "HOME": str(home), "PYTHONPATH": str(PACKAGE)}
    command = [sys.executable, "-m", "marimo", "run", "boards.py", "--headless", "--no-token", "--host", "127.0.0.1"]
    log = home / "log"
    with (
        log.open("w") as out,
        subprocess.Popen([*command, "--port", str(port)], cwd=home, env=environment, stdout=out, stderr=out) as process,
    ):
        try:
            wait_for_server(port, process, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(20)


@pytest.fixture(scope="module")
def page(address: str, browser: Browser) -> Iterator[Page]:
    """A page of the app; at its end nothing was asked of another machine, and nothing went wrong on the console."""
    context = browser.new_context(viewport={"width": 1366, "height": 768}, accept_downloads=True)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    outside: list[str] = []
    errors: list[str] = []
    home = (address, address.replace("http", "ws"), "data:", "blob:")
    page.on("request", lambda request: None if request.url.startswith(home) else outside.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)[:300]))
    page.on("console", lambda line: errors.append(line.text[:300]) if line.type == "error" else None)
    page.goto(address)
    page.locator(".sessionkit-picture[data-revision]").nth(2).wait_for()
    yield page
    context.close()
    assert outside == []
    assert errors == []


def test_the_tuner(page: Page, tmp_path: Path) -> None:
    tuner = page.locator(".sessionkit-board").nth(0)
    picture = tuner.locator(".sessionkit-picture").first
    before = int(picture.get_attribute("data-revision") or 0)
    slider = tuner.get_by_label("grace", exact=True)
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    tuner.locator(f".sessionkit-picture[data-revision='{before + 1}'], [data-revision='{before + 2}']").first.wait_for()
    assert slider.get_attribute("aria-valuetext") == "5 min"
    assert tuner.locator(".scatterlayer path.point").count() > 0
    box, bars = picture.bounding_box(), picture.locator(".main-svg").first.bounding_box()
    assert box is not None and bars is not None
    assert abs(box["y"] - bars["y"]) < 2  # plotly's styles are there, too: its layers lie over one another
    tuner.get_by_role("tab", name="many keys").click()
    tuner.locator("figcaption", has_text="4 keys").wait_for()
    name = tuner.locator(".ytick text").filter(has_text="cy")
    name.first.click()
    tuner.locator("figcaption", has_text="Key “cy”").wait_for()
    assert tuner.locator("[data-control=key] select").evaluate("e => e.selectedOptions[0].text") == "cy"
    picture.press("ArrowUp")
    tuner.locator(".sessionkit-words p", has_text="(key cy)").wait_for()
    with page.expect_download() as waiting:
        tuner.get_by_role("button", name="save the picture as SVG").click()
    waiting.value.save_as(tmp_path / "plane.svg")
    assert "Key “cy”" in (tmp_path / "plane.svg").read_text(encoding="utf-8")


def test_the_player_and_the_store(page: Page) -> None:
    player, store = page.locator(".sessionkit-board").nth(1), page.locator(".sessionkit-board").nth(2)
    from playwright.sync_api import expect

    slider = player.get_by_label("arrived", exact=True)
    slider.press("Home")
    said = player.locator(".sessionkit-words p").first
    first = said.inner_text()
    slider.press("ArrowRight")
    expect(said).not_to_have_text(first)
    player.get_by_role("button", name="play the arrivals").click()
    page.wait_for_function("e => +e.value >= 3", arg=slider.element_handle())
    rows = store.locator(".sessionkit-table tbody tr")
    assert rows.count() == store.locator(".barlayer .point").count() > 0
    field = store.get_by_label("key holds")
    field.fill("nobody")
    field.press("Enter")
    store.locator(".sessionkit-words p", has_text="No session").wait_for()


def test_no_picture_offers_to_send_itself_away(page: Page) -> None:
    assert sending(page) == []


def test_it_follows_the_theme(page: Page) -> None:
    place = page.locator(".sessionkit-picture .main-svg").first
    for theme, colour in (("dark", "rgb(18, 22, 28)"), ("light", "rgb(255, 255, 255)")):
        page.evaluate(
            """theme => { for (const e of [document.body, document.documentElement]) {
              e.classList.remove('dark', 'light'); e.classList.add(theme); e.dataset.theme = theme; } }""",
            theme,
        )
        page.wait_for_function("([e, colour]) => e.style.background === colour", arg=[place.element_handle(), colour])
