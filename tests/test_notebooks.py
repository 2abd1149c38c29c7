"""The committed notebooks: small, without widget state, and readable as a page where no script runs."""

from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.xdist_group("notebooks")  # nbformat and nbconvert take seconds to load

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))
TUTORIALS = [path for path in NOTEBOOKS if not path.stem.startswith("explore_")]  # the others explore data
PLOTLY = "application/vnd.plotly.v1+json"
WIDGET = "application/vnd.jupyter.widget-view+json"


@cache
def read(path: Path) -> Any:
    import nbformat  # not where tests are collected

    return nbformat.read(path, 4)


def test_they_are_numbered_in_the_order_of_reading_and_each_is_in_the_list() -> None:
    listed = (NOTEBOOKS[0].parent / "README.md").read_text(encoding="utf-8")
    assert all(f"({path.name})" in listed for path in NOTEBOOKS)
    for number, path in enumerate(TUTORIALS, 1):
        assert path.stem.startswith(f"{number:02}_")
        assert read(path).cells[0].source.startswith(f"# {number} · ")
    assert 8 <= len(TUTORIALS) <= 13


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
class TestEach:
    def test_it_is_small_and_holds_no_widget_state(self, path: Path) -> None:
        assert path.stat().st_size < 1_000_000
        assert "widgets" not in read(path).metadata

    def test_it_is_short(self, path: Path) -> None:
        texts = (cell.source.split("<details>")[0] for cell in read(path).cells if cell.cell_type == "markdown")
        assert sum(len(text.split()) for text in texts) < (1_000 if path in TUTORIALS else 1_500)

    def test_its_links_lead_to_files(self, path: Path) -> None:
        for cell in read(path).cells:
            if cell.cell_type == "markdown":
                for target in (part.split(")")[0] for part in cell.source.split("](")[1:]):
                    assert target.startswith("https://") or (path.parent / target).exists(), target

    def test_as_a_page_it_shows_every_figure_and_board_as_a_picture(self, path: Path) -> None:
        nbconvert = pytest.importorskip("nbconvert")
        notebook = read(path)
        outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
        shown = [output.data for output in outputs if {PLOTLY, WIDGET} & set(output.get("data", {}))]
        boxes = ("HBox(", "VBox(")  # have no picture: those of what is in them stand in other cells
        figures = sum(not data.get("text/plain", "").startswith(boxes) for data in shown)
        page, _ = nbconvert.HTMLExporter().from_notebook_node(notebook)
        found = _Pictures(page).found
        assert len([source for source in found if source.startswith("data:image/png;base64,")]) == figures
        assert not [source for source in found if source.startswith(("http:", "https:", "//"))]


class _Pictures(HTMLParser):
    """The sources of a page's pictures."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "img":
            self.found.append(dict(attrs).get("src") or "")
