"""docs/versions.md names the versions of tests/versions, and pyproject.toml takes them."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.differential.oracle import KAFKA_VERSION, OLDER_VERSIONS
from tests.versions.environments import ENVIRONMENTS, LOCKED, RESOLVED_ONLY, Environment

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "versions.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LISTED = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=lambda each: each.name)
def test_an_environment_is_on_the_page_and_within_the_bounds(environment: Environment) -> None:
    rows = [line.split("|")[1:4] for line in PAGE.splitlines() if line.startswith("|")]
    shown = [[cell.strip() for cell in row] for row in rows]
    assert any(
        (python.startswith(environment.python), pandas.startswith(environment.pandas), pyspark == environment.pyspark)
        == (True, True, True)
        for python, pandas, pyspark in shown
    )
    asked = {each.name: each.specifier for each in map(Requirement, PROJECT["dependencies"])}
    asked |= {each.name: each.specifier for each in map(Requirement, PROJECT["optional-dependencies"]["spark"])}
    assert f"{environment.pandas}.3" in asked["pandas"]
    assert environment.pyspark in asked["pyspark"]
    assert environment.python in LISTED


def test_versions_that_are_only_resolved_and_those_of_kafka_are_on_the_page() -> None:
    assert all(f"Python {version}" in PAGE for version in RESOLVED_ONLY)
    assert all(version in PAGE for version in (KAFKA_VERSION, *OLDER_VERSIONS))


def test_the_lock_has_the_set_that_is_named() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert re.search(rf"^pandas=={re.escape(LOCKED.pandas)}\.", lock, re.MULTILINE)
    assert re.search(rf"^pyspark=={re.escape(LOCKED.pyspark)} ", lock, re.MULTILINE)
