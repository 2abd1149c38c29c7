"""How long the board of `sk.tune` takes in JupyterLab, and the page with sliders: from a key press to the picture."""

from __future__ import annotations

import shutil
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from benchmarks.data import visits
from tests.browser.lab import Visit, serving, visiting
from tests.conftest import CHROMIUM_ARGUMENTS, CHROMIUM_NAMES
from tests.pictures.shapes import history

if TYPE_CHECKING:
    from playwright.sync_api import Page

STEPS = 20
SLIDERS = ".sessionkit-slider input[type=range]"
FLIGHTS = """import sessionkit as sk
data = sk.load_sample("flights")
plan = (sk.group_by_key("carrier", "origin", sep="@", timestamp="scheduled", timezone="UTC")
        .windowed_by(sk.SessionWindows(inactivity_gap="1h", grace="1h")).count())"""
VISITS = """import pyarrow.parquet as pq, sessionkit as sk
data = pq.read_table({path!r})
plan = (sk.group_by_key("key", timestamp="ts", unit="ms", partition="partition", offset="offset")
        .windowed_by(sk.SessionWindows(inactivity_gap="30s", grace="60s")).count())"""
HISTORY = """import sessionkit as sk
data = {path!r}
plan = {plan}"""
# When the newest revision was drawn and painted, and when the key was pressed, by the page's own clock.
WATCH = """() => {
  const place = document.querySelector('.sessionkit-picture');
  const press = () => { window.pressed = performance.now(); };
  addEventListener('input', press, true);
  addEventListener('keydown', press, true);
  const seen = () => requestAnimationFrame(() => setTimeout(() => { window.painted = performance.now(); }));
  new MutationObserver((all) => all.some((each) => each.oldValue !== place.dataset.revision) && seen())
    .observe(place, { attributeFilter: ['data-revision'], attributeOldValue: true });
}"""


# Of a page, which draws in the frame after the key press.
WATCH_PAGE = """() => addEventListener('input', () => {
  window.pressed = performance.now();
  requestAnimationFrame(() => setTimeout(() => { window.painted = performance.now(); }));
}, true)"""


def measure() -> None:
    """Prints the median of some steps for each size."""
    from playwright.sync_api import sync_playwright

    chromium = next((path for name in CHROMIUM_NAMES if (path := shutil.which(name))), None)
    if chromium is None:
        print("\nThe widgets were not measured: there is no Chromium")
        return
    print("\nsk.tune in JupyterLab, from a key press to the painted picture (median, and the range)")
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        folder = Path(home) / "notebooks"
        folder.mkdir()
        commits = history()
        pq.write_table(commits.table, folder / "commits.parquet")
        of_commits = HISTORY.format(path=str(folder / "commits.parquet"), plan=commits.plan)
        with serving(folder, Path(home)) as server:
            browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_ARGUMENTS)
            for records, head in (
                (len(commits.table), of_commits),
                (28_491, FLIGHTS),
                (1_000_000, VISITS.format(path=str(visits(1_000_000)))),
                (3_000_000, VISITS.format(path=str(visits(3_000_000)))),
            ):
                name = server.write(f"tune-{records}.ipynb", head, "sk.tune(plan, data)")
                with visiting(server, browser) as visit:
                    visit.open_lab(name)
                    visit.wait_drawn()
                    _print_steps(visit, records)
            page = browser.new_page()
            page.goto(commits.plan.run(commits.table).write_html(folder / "page.html").as_uri())
            page.evaluate(WATCH_PAGE)
            _say(len(commits.table), "a step of the page's slider", _steps(page, "input[type=range]"))
            browser.close()


def _print_steps(visit: Visit, records: int) -> None:
    visit.page.wait_for_timeout(2_000)
    visit.page.evaluate(WATCH)
    _say(records, "a step of the slider, one key", _steps(visit.page))
    visit.page.get_by_role("tab", name="many keys", exact=True).click()
    for words in ("as many as fit", "up to 40", "everything"):
        visit.page.get_by_role("radio", name=words, exact=True).click()
        visit.page.wait_for_timeout(5_000)
        visit.page.evaluate(WATCH)
        _say(records, f"a step of the slider, many keys, {words}", _steps(visit.page))
    visit.page.locator(".sessionkit-picture").focus()
    _say(
        records,
        "zooming and moving",
        [_press(visit.page, key) for key in ["+", "+", "ArrowRight", "+", "ArrowLeft", "+", "-"]],
    )


def _steps(page: Page, sliders: str = SLIDERS) -> list[float]:
    """Each step is a length that was not tried before: nothing is known of it."""
    found = []
    for slider in (1, 0):
        page.locator(sliders).nth(slider).focus()
        page.keyboard.press("Home")
        page.wait_for_timeout(3_000)
        found += [_press(page, "ArrowRight") for _ in range(STEPS // 2)]
    return found


def _press(page: Page, key: str) -> float:
    before = page.evaluate("() => window.painted ?? 0")
    page.keyboard.press(key)
    page.wait_for_function("before => window.painted > before", arg=before, timeout=60_000, polling=20)
    page.wait_for_timeout(300)
    return float(page.evaluate("() => window.painted - window.pressed"))


def _say(records: int, what: str, ms: list[float]) -> None:
    print(
        f"  {records:>9,} records  {what:<32} {statistics.median(ms):5.0f} ms ({min(ms):.0f}-{max(ms):.0f})",
        flush=True,
    )
