"""Charts of data of four shapes, looked at by a program: a pair of each of chart, shape, theme and width.

`make pictures` looks at all of them, and keeps them for people to look at.
"""

from itertools import product

import pytest

from tests.optional import Page
from tests.pictures.charts import CHARTS
from tests.pictures.look import THEMES, WIDTHS, draw, faults, figure_of, opened
from tests.pictures.shapes import SHAPES

pytestmark = pytest.mark.browser

CASES = [
    (chart, shape, THEMES[(row + column) % 2], WIDTHS[(row + column // 2) % 4])
    for (row, chart), (column, shape) in product(enumerate(CHARTS), enumerate(SHAPES))
]
page = pytest.fixture(opened, scope="module")


@pytest.mark.parametrize(("chart", "shape", "theme", "width"), CASES)
def test_nothing_is_wrong_with_the_picture(page: Page, chart: str, shape: str, theme: str, width: int) -> None:
    draw(page, figure_of(chart, shape, theme, width), width)
    assert faults(page) == []


WRONG = {
    "leaves the picture": {
        "annotations": [{"text": "far to the right of it", "x": 1, "xref": "paper", "xanchor": "left"}]
    },
    "lie on each other": {"annotations": [{"text": text, "x": 1, "y": 2} for text in ("one label", "another one")]},
    "on a line": {"annotations": [{"text": "right on the line", "x": 1.5, "y": 1.5, "showarrow": False}]},
    "hard to read": {"title": {"text": "pale", "font": {"color": "#cccccc"}}},
    "a line that is hard to see": {
        "shapes": [{"type": "line", "x0": 1, "x1": 2, "y0": 1.2, "y1": 1.2, "line": {"color": "#dddddd"}}]
    },
    "a mark that is hard to see": {"colorway": ["#dddddd"]},
}


@pytest.mark.parametrize("what", WRONG)
def test_the_program_sees_what_is_wrong(page: Page, what: str) -> None:
    figure = {
        "data": [{"x": [1, 2], "y": [1, 2], "mode": "lines+markers", "line": {"shape": "hv"}}],
        "layout": {"height": 300, "paper_bgcolor": "#ffffff", "showlegend": False, **WRONG[what]},
    }
    if what == "a mark that is hard to see":
        figure["data"][0]["mode"] = "markers"
    if what == "on a line":
        figure["data"][0]["line"]["shape"] = "linear"
    draw(page, figure, 700)
    assert any(fault.startswith(what) for fault in faults(page)), faults(page)
