"""Draws the README's pictures: `python -m docs.make_pictures` (needs kaleido, JupyterLab and Chromium)."""

import shutil
import tempfile
from pathlib import Path

import pandas as pd
from playwright.sync_api import Browser, sync_playwright

import sessionkit as sk
from tests.browser.lab import serving, visiting
from tests.conftest import CHROMIUM_ARGUMENTS, CHROMIUM_NAMES

HERE = Path(__file__).parent
# The stream of the plane: ana's sessions grow, merge and close; one of her records comes too late, one just in time.
MINUTES = (
    ("ana", 2),
    ("bo", 4),
    ("ana", 7),
    ("ana", 11),
    ("bo", 13),
    ("ana", 24),
    ("ana", 17),
    ("bo", 27),
    ("ana", 30),
    ("cy", 36),
    ("ana", 45),
    ("cy", 47),
    ("ana", 52),
    ("ana", 27),
    ("bo", 58),
    ("ana", 41),
    ("ana", 57),
    ("cy", 66),
    ("bo", 42),
    ("ana", 63),
    ("cy", 79),
    ("ana", 82),
)

BOARD = """import sessionkit as sk
flights = sk.load_sample("flights")
waves = (sk.group_by_key("carrier", "origin", sep="@", timestamp="scheduled", timezone="UTC")
         .windowed_by(sk.SessionWindows(inactivity_gap="1h", grace="1h")).count())
sk.tune(waves, flights)"""


TABLE = """<!doctype html><style>
body {{ margin: 0; padding: 12px; display: inline-block; font: 13px sans-serif; {look} }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
th, td {{ padding: 5px 14px 5px 4px; text-align: left; }}
tr {{ border-bottom: 1px solid #8884; }}
</style><body>{table}</body>"""
LOOKS = {"light": "background: #ffffff; color: #1f2933", "dark": "background: #12161c; color: #e4e7eb"}


def photograph_table(browser: Browser, table: str) -> None:
    """Writes what a notebook shows of a run."""
    for theme, look in LOOKS.items():
        page = browser.new_page(device_scale_factor=1.5)
        page.set_content(TABLE.format(look=look, table=table))
        page.locator("body").screenshot(path=HERE / f"table_{theme}.png")
        page.close()


def photograph_board(browser: Browser) -> None:
    """Writes what JupyterLab shows of `sk.tune`."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "notebooks"
        folder.mkdir()
        with serving(folder, Path(home)) as server:
            name = server.write("board.ipynb", BOARD)
            with visiting(server, browser, viewport={"width": 1580, "height": 1000}) as visit:
                visit.open_lab(name)
                visit.wait_drawn()
                visit.page.wait_for_timeout(2_000)
                visit.page.locator(".jp-OutputArea-output").first.screenshot(path=HERE / "tune.png")


def main() -> None:
    """Writes the pictures beside this file."""
    records = pd.DataFrame(MINUTES, columns=["user", "at"])
    records["at"] = pd.Timestamp("2026-03-02 09:00", tz="UTC") + pd.to_timedelta(records["at"], unit="min")
    windows = sk.SessionWindows(inactivity_gap="10m", grace="5m")
    run = sk.group_by_key("user", timestamp="at").windowed_by(windows).count().run(records)
    for theme in ("light", "dark"):
        run.plane("ana", theme=theme).write_image(HERE / f"plane_{theme}.png", scale=1.2)
    chromium = next(path for name in CHROMIUM_NAMES if (path := shutil.which(name)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_ARGUMENTS)
        photograph_table(browser, run._repr_html_())
        photograph_board(browser)
        browser.close()


if __name__ == "__main__":
    main()
