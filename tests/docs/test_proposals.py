"""The page of the four proposals: each row names a test that there is."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = [
    line.strip("| ").split(" | ")
    for line in (ROOT / "docs" / "proposals.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and "---" not in line and not line.startswith("| in the proposal")
]


@cache
def names_of_tests() -> set[str]:
    found: set[str] = set()
    for file in (ROOT / "tests").rglob("test_*.py"):
        found.update(re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE))
    return found


@pytest.mark.parametrize("row", ROWS, ids=[row[0][:60] for row in ROWS])
def test_each_row_names_a_test_that_there_is(row: list[str]) -> None:
    named = re.findall(r"`(test_\w+)`", row[-1])
    assert named or "not here" in row[-1], row
    assert set(named) <= names_of_tests()


def test_all_rows_are_read() -> None:
    assert len(ROWS) > 35
