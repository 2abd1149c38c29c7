"""The versions of Python are listed in pyproject.toml alone; whatever names them besides is compared with that."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LISTED = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
FIRST, LAST, NEXT = LISTED[0], LISTED[-1], f"3.{int(LISTED[-1][2:]) + 1}"


def test_what_is_required_is_what_is_listed() -> None:
    assert PROJECT["project"]["requires-python"] == f">={FIRST},<{NEXT}"
    assert PROJECT["tool"]["mypy"]["python_version"] == FIRST


@pytest.mark.parametrize(("file", "texts"), [
    ("Makefile", [" ".join(f"python{version}" for version in LISTED[::-1]), f"need {FIRST} to {LAST} with venv"]),
    ("Makefile", [f"({FIRST.replace('.', ', ')}) <= sys.version_info[:2] <= ({LAST.replace('.', ', ')})"]),
    ("README.md", [f"Python {FIRST} to {LAST},"]), ("CONTRIBUTING.md", [f"Python {FIRST} to {LAST},"]),
    ("environment.yml", [f"python>={FIRST},<{NEXT}"]),
    (".github/workflows/ci.yml", [", ".join(f'"{version}"' for version in LISTED)]),
])  # fmt: skip
def test_who_names_them_names_these(file: str, texts: list[str]) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    assert [each for each in texts if each not in text] == []


def test_actions_are_pinned_to_a_commit() -> None:
    text = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    used = re.findall(r"uses: (\S+)(.*)", text)
    assert used
    for action, comment in used:
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action) and re.fullmatch(r" # v[\d.]+", comment), action


def test_the_changelog_has_at_most_ten_lines_for_a_release() -> None:
    versions = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    released = {text.splitlines()[0]: text.splitlines()[1:] for text in versions if "unreleased" not in text[:40]}
    assert released
    assert {name: lines for name, lines in released.items() if sum(line != "" for line in lines) > 10} == {}


def test_an_environment_of_conda_has_what_the_tutorials_and_their_tests_need() -> None:
    text = (ROOT / "environment.yml").read_text(encoding="utf-8")
    assert re.findall(r"^      - (.+)$", text, re.MULTILINE) == [
        "-e .[tutorials]", "pyspark", "pandas", "ipywidgets", "plotly", "nbval",
    ]  # fmt: skip
    assert any(each.startswith("nbval") for each in PROJECT["project"]["optional-dependencies"]["tutorials"])
