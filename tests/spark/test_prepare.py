"""Compiled loops are loaded in each Python worker before a first job."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
import sessionkit as sk
from sessionkit.spark import prepare
from sessionkit.spark.worker.task_wrapper import worker_task
from tests.optional import SparkSession
from tests.spark.common import BASE

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parents[2]
LOADED = """
import sys
from sessionkit.spark import prepare
from sessionkit.windows.session_kernel import run_sessions
print(prepare(), len(run_sessions.signatures), "pyspark" in sys.modules)
"""


def test_each_worker_has_the_loops_of_the_plan(spark: SparkSession) -> None:
    def signatures(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from sessionkit.windows.session_kernel import run_sessions

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"count": [len(run_sessions.signatures)]})

    before = dict(spark.conf.getAll)
    assert 1 <= prepare(spark, BASE.count()) <= 2
    assert dict(spark.conf.getAll) == before
    rows = spark.range(0, 2, 1, 2).mapInArrow(worker_task(signatures), "count long").collect()
    assert min(row[0] for row in rows) >= 1


@pytest.mark.slow
def test_without_a_session_this_process_has_them_and_no_spark_is_loaded() -> None:
    command = [sys.executable, "-c", LOADED]
    done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, check=True)
    workers, signatures, pyspark = done.stdout.split()
    assert (workers, pyspark) == ("1", "False") and int(signatures) >= 1


@pytest.mark.parametrize("windows", [sk.SlidingWindows(time_difference="1s", grace="1s"), None])
def test_a_plan_without_windows_is_refused_as_where_it_runs(windows: sk.SlidingWindows | None) -> None:
    plan = sk.group_by_key("key", timestamp="at")
    if windows is None:
        with pytest.raises(sk.errors.SessionkitError, match="windowed_by"):
            prepare(None, plan)
    else:
        assert prepare(None, plan.windowed_by(windows).count()) == 1
