"""Tables of a run in a notebook: by mouse and by keyboard, in both themes, wide, and with hostile text."""

from pathlib import Path

import pytest

from tests.browser.lab import Server, Visit, visiting
from tests.browser.test_widgets import RAN
from tests.hostile.test_markup import PAYLOADS
from tests.optional import Browser, Locator

pytestmark = pytest.mark.browser

HEAD = """import sessionkit as sk
start = sk.group_by_key("carrier", "origin", sep="@", timestamp="scheduled", timezone="America/New_York")
windows = sk.SessionWindows(inactivity_gap="1h", grace="30m")
run = start.windowed_by(windows).aggregate(flights=sk.count(), miles=sk.sum("distance")).run(sk.load_sample("flights"))
"""
SAID = ".sessionkit-table .said"
IS_LIGHT = 'document.querySelector("body").dataset.jpThemeLight'


def rows(visit: Visit) -> Locator:
    return visit.page.locator(".sessionkit-table tbody tr")


def says(visit: Visit, text: str) -> None:
    """The number of rows reads so: now, or after a moment."""
    visit.page.locator(SAID, has_text=text).wait_for()


def column(visit: Visit, title: str) -> list[str]:
    """The cells of a column on this page."""
    titles = visit.page.locator(".sessionkit-table thead th").all_inner_texts()
    place = [each.strip().rstrip("▲▼").strip() for each in titles].index(title)
    return rows(visit).locator(f"td:nth-child({place + 1})").all_inner_texts()


def head(visit: Visit, title: str) -> Locator:
    return visit.page.locator(".sessionkit-table thead th", has_text=title)


def focused(visit: Visit) -> int:
    """The row of the page that has the keyboard; -1 for none."""
    return int(
        visit.page.evaluate(
            "() => [...document.querySelectorAll('.sessionkit-table tbody tr')].indexOf(document.activeElement)"
        )
    )


def test_by_mouse(visit: Visit, server: Server) -> None:
    visit.open_lab(server.write("table_mouse.ipynb", HEAD, 'sk.browse(run, "dropped")'))
    says(visit, "rows 1–50 of 955")
    assert rows(visit).count() == 50
    assert visit.page.get_by_text("Times are in America/New_York.").count()
    grace = head(visit, "missing grace")
    for way, first in (("ascending", "1 min"), ("descending", "13 h 54 min"), ("none", "35 min")):
        grace.locator("button").click()
        visit.page.locator(f'.sessionkit-table th[aria-sort="{way}"]', has_text="missing grace").wait_for()
        assert column(visit, "missing grace")[0] == first
    visit.page.get_by_role("button", name="last page").click()
    says(visit, "rows 951–955 of 955")
    assert visit.page.get_by_role("button", name="next page").is_disabled()
    visit.page.get_by_role("button", name="previous page").click()
    says(visit, "rows 901–950 of 955")
    visit.page.get_by_role("searchbox").fill("jfk")
    says(visit, "that fit, of 955 drops")
    assert set(column(visit, "origin")) == {"JFK"}
    visit.page.get_by_label("column to filter").select_option(label="timestamp")
    visit.page.get_by_label("from", exact=True).fill("2013-07-04")
    visit.page.get_by_label("to", exact=True).fill("2013-07-05")
    visit.page.get_by_role("button", name="filter", exact=True).click()
    chip = visit.page.get_by_role("button", name="no longer timestamp from 2013-07-04 to 2013-07-05")
    chip.wait_for()
    assert {text[:10] for text in column(visit, "timestamp")} <= {"2013-07-04", "2013-07-05"}
    chip.click()
    chip.wait_for(state="detached")
    visit.page.get_by_label("from", exact=True).fill("soon")
    visit.page.get_by_role("button", name="filter", exact=True).click()
    visit.page.locator('.sessionkit-table [role="alert"]', has_text="a bound").wait_for()
    rows(visit).nth(3).click()
    words = visit.page.locator(".sessionkit-table .words", has_text="was dropped: too late")
    words.wait_for()
    assert "@JFK" in words.inner_text()
    assert rows(visit).nth(3).get_attribute("aria-selected") == "true"


def test_by_keyboard(visit: Visit, server: Server) -> None:
    visit.open_lab(server.write("table_keys.ipynb", HEAD, "sk.browse(run)"))
    says(visit, "rows 1–50 of 4,382")
    press = visit.page.keyboard.press
    head(visit, "miles").locator("button").focus()
    press("Enter")
    visit.page.locator('.sessionkit-table th[aria-sort="ascending"]').wait_for()
    press("Enter")  # the head keeps the keyboard
    visit.page.locator('.sessionkit-table th[aria-sort="descending"]').wait_for()
    miles = [int(text.replace(",", "")) for text in column(visit, "miles")]
    assert miles == sorted(miles, reverse=True)
    rows(visit).first.focus()
    for key, place in (("ArrowDown", 1), ("ArrowDown", 2), ("ArrowUp", 1), ("End", 49), ("Home", 0)):
        press(key)
        assert focused(visit) == place
    assert visit.page.locator('.sessionkit-table tbody tr[tabindex="0"]').count() == 1
    press("PageDown")
    says(visit, "rows 51–100 of 4,382")
    assert focused(visit) == 0
    press("ArrowUp")
    says(visit, "rows 1–50 of 4,382")
    assert focused(visit) == 49
    press("ArrowDown")
    says(visit, "rows 51–100 of 4,382")
    press("Enter")
    visit.page.locator(".sessionkit-table .words", has_text="Session of key").wait_for()
    assert visit.page.locator(".jp-Notebook.jp-mod-editMode").count() == 0  # Enter was the table's own


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_it_is_seen_in_both_themes(visit: Visit, server: Server, theme: str, tmp_path: Path) -> None:
    visit.open_lab(server.write(f"table_{theme}.ipynb", HEAD, 'sk.browse(run, "changelog")'))
    says(visit, "rows 1–50 of 50,400")
    name = f"JupyterLab {theme.title()}"
    visit.page.evaluate("theme => jupyterapp.commands.execute('apputils:change-theme', {theme})", name)
    visit.page.wait_for_function(f"() => {IS_LIGHT} === '{str(theme == 'light').lower()}'")
    visit.page.wait_for_timeout(500)
    rows(visit).nth(2).click()
    visit.page.locator(".sessionkit-table .words p").first.wait_for()
    visit.page.locator(".sessionkit-table").screenshot(path=tmp_path / "table.png")
    for part in ("tbody td", "thead th button", ".said", ".words p", "input", "select", ".foot button"):
        contrast = visit.page.evaluate(CONTRAST, f".sessionkit-table {part}")
        assert contrast >= 4.5, (part, contrast)


# of a text and what is behind it
CONTRAST = """place => {
  const light = ([r, g, b]) => [r, g, b].map((part) => part / 255)
    .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
  const numbers = (colour) => (colour.match(/[\\d.]+/g) || []).map(Number);
  const element = [...document.querySelectorAll(place)].find((each) => !each.disabled);
  let ground = null;
  for (let behind = element; behind && !ground; behind = behind.parentElement) {
    const [r, g, b, a = 1] = numbers(getComputedStyle(behind).backgroundColor);
    if (a === 1) ground = [r, g, b];
  }
  const both = [numbers(getComputedStyle(element).color), ground ?? [255, 255, 255]];
  const [dark, bright] = both.map(light).sort((a, b) => a - b);
  return (bright + 0.05) / (dark + 0.05);
}"""


def test_hostile_text_is_text(visit: Visit, server: Server) -> None:
    dialogs: list[str] = []
    visit.page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    name = server.write(
        "table_hostile.ipynb",
        """import pandas as pd, sessionkit as sk
from tests.hostile.test_markup import PAYLOADS
steps = [0, 2, 21, 11, 70, 45, 5]
rows = [(text, step * 60_000 + i, text) for step in steps for i, text in enumerate(PAYLOADS)]
data = pd.DataFrame(rows, columns=["<img src=x onerror=alert(1)>", "at", "value"])
plan = (sk.group_by_key("<img src=x onerror=alert(1)>", timestamp="at", unit="ms")
        .windowed_by(sk.SessionWindows(inactivity_gap="10m", grace="20m"))
        .aggregate(**{"<script>alert(1)</script>": sk.last("value")}))
run = plan.run(data)""",
        "sk.browse(run)",
    )
    visit.open_lab(name)
    says(visit, "rows 1–50 of")
    for text in PAYLOADS[::5]:
        before = visit.page.locator(SAID).inner_text()
        visit.page.get_by_role("searchbox").fill(text)
        visit.page.wait_for_function(
            f"said => document.querySelector('{SAID}').textContent !== said || said.includes('fit')", arg=before
        )
        visit.page.wait_for_timeout(350)
        if rows(visit).count():
            rows(visit).first.click()
            visit.page.wait_for_timeout(100)
    assert visit.page.evaluate(RAN) == []
    assert dialogs == []


@pytest.mark.parametrize("kind", ["notebooks", "voila/render"])
def test_in_notebook_7_and_voila(server: Server, browser: Browser, kind: str) -> None:
    name = server.write("table_short.ipynb", HEAD + '\nsk.browse(run, "dropped")')
    with visiting(server, browser) as visit:
        visit.page.goto(server.url(kind, name))
        if kind == "notebooks":
            visit.settle()
            visit.run_all()
        says(visit, "rows 1–50 of 955")
        rows(visit).first.click()
        visit.page.locator(".sessionkit-table .words", has_text="was dropped").wait_for()
        head(visit, "carrier").locator("button").click()
        visit.page.locator('.sessionkit-table th[aria-sort="ascending"]').wait_for()
        assert column(visit, "carrier") == sorted(column(visit, "carrier"))
        assert kind != "notebooks" or visit.outside == []


def test_a_wide_table_scrolls_inside_its_box(visit: Visit, server: Server) -> None:
    wide = "results = {f'result_number_{i}': sk.count() for i in range(30)}"
    more = "run = start.windowed_by(windows).aggregate(**results).run(sk.load_sample('flights'))\nsk.browse(run)"
    visit.open_lab(server.write("table_wide.ipynb", HEAD, f"{wide}\n{more}"))
    says(visit, "rows 1–50 of 4,382")
    box, area = visit.page.locator(".sessionkit-table .box"), visit.page.locator(".jp-OutputArea-output").last
    assert box.evaluate("e => e.scrollWidth > e.clientWidth")
    assert area.evaluate("e => e.scrollWidth <= e.clientWidth + 1")
