"""A query that runs, watched in JupyterLab: real Spark, real micro-batches; the page shows what the query came to."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sessionkit.records.samples import sample_path
from tests.browser.lab import Server, Visit
from tests.browser.test_widgets import RAN
from tests.hostile.test_markup import PAYLOADS

pytestmark = pytest.mark.browser

ROWS, BATCH = 2_000, 500
HEAD = """import os, sys, warnings
os.environ["PYSPARK_PYTHON"] = sys.executable
import sessionkit as sk
from sessionkit.spark.environment.java_home import use_java
from sessionkit.replay_source import ReplaySource
from pyspark.sql import SparkSession
use_java()
options = {{"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
           "spark.sql.shuffle.partitions": "2", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}}
spark = SparkSession.builder.master("local[2]").config(map=options).getOrCreate()
spark.dataSource.register(ReplaySource)
stream = spark.readStream.format("sessionkit.replay").options(path={path!r}, rowsPerBatch={batch}).load()
plan = (sk.group_by_key("key", timestamp="scheduled", timezone="UTC", partition="partition", offset="offset")
        .windowed_by(sk.SessionWindows(inactivity_gap="1h", grace="30m")).count())
run = plan.stream(stream)
query = run.write(checkpoint="checkpoint", changelog="changelog", name="flights", available_now=True)
board = sk.watch(query, keys=["DL@JFK"])
board"""


# What the board says that the query does, at every moment.
SEEN = """() => {
  window.seen = [];
  setInterval(() => {
    const text = document.querySelector('.sessionkit-doing')?.textContent;
    if (text && window.seen.at(-1) !== text) window.seen.push(text);
  }, 100);
}"""


def played(folder: Path) -> str:
    """Flights as a file to play, some of them under keys that are markup."""
    flights = pq.read_table(sample_path("flights")).slice(0, ROWS)
    keys = [
        f"{carrier}@{origin}"
        for carrier, origin in zip(*(flights[c].to_pylist() for c in ("carrier", "origin")), strict=True)
    ]
    keys[::20] = [PAYLOADS[i % len(PAYLOADS)] for i in range(len(keys[::20]))]
    path = folder / "played.parquet"
    pq.write_table(flights.append_column("key", pa.array(keys)), path)
    return str(path)


def test_a_query_is_watched_to_its_end(visit: Visit, server: Server) -> None:
    name = server.write(
        "watch.ipynb",
        HEAD.format(path=played(server.folder), batch=BATCH),
        "query.awaitTermination()\nprint('records', run.metrics()['process-total'])",
    )
    visit.open_lab(name, run=False)
    visit.page.evaluate(SEEN)
    visit.run_all(patience_ms=300_000)  # Spark starts in it
    page = visit.page
    page.locator(".jp-OutputArea-output", has_text=f"records {ROWS}").wait_for()
    page.locator(".sessionkit-words", has_text=f"micro-batch {ROWS // BATCH - 1} ").filter(has_text="ended").wait_for()
    seen = page.evaluate("() => window.seen")
    waited = [
        text for text in seen if text.startswith("No micro-batch has ended yet. Micro-batch 0 has been running for")
    ]
    assert len(waited) > 1  # the seconds go on
    assert page.locator(".sessionkit-doing p").count() == 0  # nothing goes on any more
    assert page.locator(".sessionkit-words", has_text="running the plan").count()
    counts = page.locator(".sessionkit-counts").first
    assert counts.locator("div", has_text="records").first.locator("b").inner_text() == f"{ROWS:,}"
    table = page.locator(".sessionkit-table table").first
    assert table.locator("tr").count() == 1 + 1
    visit.wait_drawn()
    bars = page.locator(".sessionkit-picture .barlayer .point")
    assert bars.count() > 0
    revision = visit.wait_drawn()
    field = page.get_by_placeholder("a, b, c; else the newest")
    field.fill("")
    field.press("Enter")  # the newest, hostile ones among them
    visit.wait_drawn(revision + 1)
    assert page.evaluate(RAN) == []
    page.locator(".jp-OutputArea").first.screenshot(path=str(server.folder / "watch.png"))
