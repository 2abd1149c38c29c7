"""The demo as a user starts it: what it writes and shows is what the same plan gives in this process."""

import base64
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sessionkit as sk
from sessionkit.errors import SparkUnavailable
from sessionkit.spark.environment.java_home import use_java
from tests.kinds import flights_by_route
from tests.spark.session import OWN_SPARK

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.xdist_group(OWN_SPARK)]

TABLE_COLUMNS = ["carrier", "origin", "window_start", "window_end", "count", "mean_delay", "status", "partition"]
STEPS = [
    "starting Spark", "reading the records", "writing table", "writing changelog", "writing trace/records",
    "writing trace/windows", "done",
]  # fmt: skip
ASIDE = ["counting", "drawing the report"]  # beside the writing
LOADS = {"src", "href", "srcset", "data", "poster", "action", "formaction", "background", "xlink:href"}


class Demo(NamedTuple):
    """One run of the command, and where its results are."""

    code: int
    out: str
    error: str
    folder: Path


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    try:
        use_java()
    except SparkUnavailable as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("demo")
    command = [sys.executable, "-m", "sessionkit", "demo", "--spark", "--out", str(folder)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=300, check=False)
    yield Demo(done.returncode, done.stdout, done.stderr, folder)


@pytest.fixture(scope="module")
def local() -> sk.Run:
    plan = flights_by_route().windowed_by(sk.SessionWindows(inactivity_gap="1h", grace="30m"))
    run: sk.Run = plan.aggregate(count=sk.count(), mean_delay=sk.mean("dep_delay")).run(sk.load_sample("flights"))
    return run


def written(demo: Demo, name: str) -> pa.Table:
    """What was written, in order of the file names."""
    files = sorted((demo.folder / name).glob("*.parquet"))
    assert files, f"no Parquet file in {name}: {demo.error}"
    assert (demo.folder / name / "_SUCCESS").exists()
    return pa.concat_tables([pq.read_table(file) for file in files])


def rows(table: Any, *columns: str) -> list[tuple[Any, ...]]:
    """The rows, with every missing value None."""
    if isinstance(table, pd.DataFrame):
        table = pa.Table.from_pandas(table, preserve_index=False)
    return list(zip(*(table[name].to_pylist() for name in columns), strict=True))


def test_it_ends_well_and_says_how_far_it_is(demo: Demo, local: sk.Run) -> None:
    assert demo.code == 0, demo.error
    assert "Traceback" not in demo.error
    shown = demo.out.replace(f"{demo.folder}/", "").splitlines()
    steps = [re.sub(r"^\[ *\d+\.\d s\] ", "", line) for line in shown[:-3]]
    assert [step for step in steps if step not in ASIDE] == STEPS
    assert [step for step in steps if step in ASIDE] == ASIDE
    m = local.metrics()
    assert shown[-3:] == [
        f"{m['process-total']:,} records, {m['windows']:,} sessions ({m['windows-open']:,} still open), "
        f"{m['windows-merged']:,} merges, {m['dropped-records-total']:,} dropped (3.35%)",
        "table, changelog, trace: Parquet",
        "report.html: open it in a browser",
    ]


def test_the_table_is_that_of_the_local_run(demo: Demo, local: sk.Run) -> None:
    table, expected = written(demo, "table"), local.table()
    assert table.column_names == TABLE_COLUMNS == list(expected.columns)
    assert rows(table, *TABLE_COLUMNS) == rows(expected, *TABLE_COLUMNS)
    places = rows(table, "partition", "carrier", "origin", "window_start")
    order = [(partition, f"{carrier}@{origin}".encode(), start) for partition, carrier, origin, start in places]
    assert order == sorted(order)
    assert "Times are in UTC." in (demo.folder / "report.html").read_text(encoding="utf-8")
    status = table["status"].to_pylist()
    assert (status.count("open"), status.count("closed")) == (
        local.metrics()["windows-open"],
        local.metrics()["windows-closed"],
    )
    assert status.count("open") > 0


@pytest.mark.parametrize("name", ["changelog", "trace/records", "trace/windows"])
def test_the_changelog_and_the_trace_are_those_of_the_local_run(demo: Demo, local: sk.Run, name: str) -> None:
    table, expected = written(demo, name), attrgetter(name.replace("/", "."))(local)()
    assert table.column_names == list(getattr(expected, "column_names", getattr(expected, "columns", [])))
    assert table.num_rows == len(expected)
    assert rows(table, *table.column_names) == rows(expected, *table.column_names)


class Page(HTMLParser):
    """What a page says in its tiles, and all that it would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tiles: dict[str, str] = {}
        self.loaded: list[tuple[str, str]] = []
        self.styles: list[str] = []
        self.tags: list[str] = []
        self._number = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loaded += [(tag, value or "") for name, value in attrs if name in LOADS]
        self.styles += [value or "" for name, value in attrs if name == "style"]

    def handle_data(self, data: str) -> None:
        tag = self.tags[-1] if self.tags else ""
        if tag == "style":
            self.styles.append(data)
        elif tag == "b":
            self._number = data
        elif tag == "span":
            self.tiles[data] = self._number


def test_the_tiles_of_the_page_are_the_counts(demo: Demo, local: sk.Run) -> None:
    tiles = Page((demo.folder / "report.html").read_text(encoding="utf-8")).tiles
    m = local.metrics()
    expected = {
        "records": m["process-total"],
        "sessions": m["windows"],
        "merges": m["windows-merged"],
        "late but kept": int(local.trace.late_but_kept.sum()),
        "dropped": m["dropped-records-total"],
    }
    assert {name: tiles[name] for name in expected} == {name: f"{number:,}" for name, number in expected.items()}
    assert min(expected.values()) > 0


def test_the_page_loads_nothing(demo: Demo) -> None:
    page = Page((demo.folder / "report.html").read_text(encoding="utf-8"))
    files = {"sessions.csv", "keys.csv", "days.csv", "dropped.csv"}
    data = [place.partition(",")[2] for _, place in page.loaded if place.startswith("data:text/csv;base64,")]
    assert len(data) == len(page.loaded) and {base64.b64decode(text) for text in data} == {
        (demo.folder / file).read_bytes()
        for file in files  # the page holds them, so that it can be mailed alone
    }
    assert {path.name for path in demo.folder.glob("*.csv")} == files
    assert [style for style in page.styles if re.search(r"url\(|@import", style)] == []
    assert {"link", "iframe", "object", "embed", "img", "base"}.isdisjoint(page.tags)
