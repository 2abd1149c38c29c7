"""Which views docs/spark.md says that a run has are those that it has."""

import re

import pytest

import sessionkit as sk
from tests.docs.pages import ROOT

pytest.importorskip("pyspark", reason="pyspark is not installed")

NO_VIEWS = {"plan", "timezone"}


def offered(kind: type) -> set[str]:
    """What tab completion offers of such a run, without what only says that there is no such view."""
    names = {name for name in dir(object.__new__(kind)) if not name.startswith("_")}
    refusing = {name for name in names if "NoReturn" in str(getattr(vars(kind).get(name), "__annotations__", ""))}
    return names - refusing - NO_VIEWS


def test_the_table_of_views_is_what_the_classes_have() -> None:
    """The page said "the same views", and 14 of them were missing."""
    from sessionkit.spark.batch_run import SparkRun
    from sessionkit.spark.stream_run import StreamRun

    page = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (\S+) \| (\S+) \| (\S+) \|$", page, re.MULTILINE)
    said = {name: cells for name, *cells in rows}
    kinds = [offered(kind) for kind in (sk.Run, SparkRun, StreamRun)]
    assert "table" not in kinds[2] and "table" in kinds[1]
    expected = {}
    for name in sorted(set().union(*kinds)):
        local, batch, stream = (name in kind for kind in kinds)
        expected[name] = ["yes" if local else "no", "yes" if batch else "no", "yes" if stream else "no"]
    assert said == expected
    assert list(said) == sorted(said)
