"""The gallery: a picture for every chart, none of them large, each below the code that draws it."""

import re

import pytest

from tests.docs.gallery import MOST_BYTES, PAGE, pictures
from tests.docs.pages import ROOT
from tests.pictures.charts import CHARTS

FOLDER = ROOT / "docs" / "gallery"
NAMES = {"gap": "suggest_gap", "grace": "suggest_grace"}
AGAIN = {"days": "lanes", "days_compared": "comparison"}  # more pictures of a chart, with other windows


def test_every_chart_has_its_picture_on_the_page() -> None:
    charts = [chart for chart in CHARTS if chart != "arrivals"]  # the plane once more, with a slider
    assert set(AGAIN.values()) <= set(charts)
    names = [*(NAMES.get(chart, chart.replace(" ", "_")) for chart in charts), *AGAIN]
    shown = {f"gallery/{name}.png" for name in names}
    assert set(pictures()) == shown
    assert {f"gallery/{file.name}" for file in FOLDER.iterdir()} == shown


@pytest.mark.parametrize("name", sorted(pictures()))
def test_a_picture_is_small_and_stands_below_the_code_that_draws_it(name: str) -> None:
    picture = (ROOT / "docs" / name).read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert 2_000 < len(picture) <= MOST_BYTES
    above = [block for block in PAGE.blocks if block.language == "python" and block.line < pictures()[name]]
    assert re.search(r"^figure = ", above[-1].code, re.MULTILINE)
