"""Draws the README's pictures: `python -m docs.make_pictures` (needs kaleido, JupyterLab and Chromium)."""

import shutil
import tempfile
from pathlib import Path

import pandas as pd

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


def photograph_board() -> None:
    """Writes what JupyterLab shows of `sk.tune`."""
    from playwright.sync_api import sync_playwright

    chromium = next(path for name in CHROMIUM_NAMES if (path := shutil.which(name)))
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        folder = Path(home) / "notebooks"
        folder.mkdir()
        with serving(folder, Path(home)) as server:
            browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_ARGUMENTS)
            name = server.write("board.ipynb", BOARD)
            with visiting(server, browser, viewport={"width": 1580, "height": 1000}) as visit:
                visit.open_lab(name)
                visit.wait_drawn()
                visit.page.wait_for_timeout(2_000)
                visit.page.locator(".jp-OutputArea-output").first.screenshot(path=HERE / "tune.png")
            browser.close()


def main() -> None:
    """Writes the pictures beside this file."""
    records = pd.DataFrame(MINUTES, columns=["key", "minute"])
    plan = (
        sk.group_by_key("key", timestamp="minute", unit="ms")
        .windowed_by(sk.SessionWindows(inactivity_gap="10m", grace="5m"))
        .count()
    )
    run = plan.run(records.assign(minute=records["minute"] * 60_000))
    for theme in ("light", "dark"):
        run.plane("ana", theme=theme).write_image(HERE / f"plane_{theme}.png", scale=1.2)
    photograph_board()


if __name__ == "__main__":
    main()
