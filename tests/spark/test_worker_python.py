"""Spark's workers run the Python of the job, though the environment is not activated and PATH leads to another one."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sessionkit.errors import SparkUnavailable
from sessionkit.spark.environment.java_home import find_java
from sessionkit.spark.environment.worker_python import settle_worker_python
from sessionkit.spark.types import readable_errors
from tests.optional import SparkSession
from tests.spark.common import BASE, records, shuffled
from tests.spark.session import OPTIONS, OWN_SPARK

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
OPERATIONS = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
JOB = """
import json, sys
from pyspark.sql import SparkSession

folder, settings = sys.argv[1], json.loads(sys.argv[2])
spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
spark.sparkContext.setLogLevel("OFF")

import pyarrow.parquet as pq
import sessionkit as sk
from sessionkit.replay_source import ReplaySource

kafka = spark.sql(
    "SELECT encode(string(id % 2), 'UTF-8') AS key, encode('{\\"amount\\": 2}', 'UTF-8') AS value, "
    "int(0) AS partition, id AS offset, timestamp_millis(id * 1000) AS timestamp FROM range(4)"
)
plan = (
    sk.group_by_key("key", timestamp="timestamp", partition="partition", offset="offset")
    .windowed_by(sk.SessionWindows(inactivity_gap="5s", grace="1s"))
    .aggregate(amount=sk.sum("amount"))
)
frame = sk.from_kafka(kafka, value="amount bigint")
pq.write_table(frame.toArrow(), folder + "/records.parquet")
spark.dataSource.register(ReplaySource)

run = plan.run(frame)
found = {"batch": run.table().toPandas()["amount"].tolist()}
found["to_kafka"] = [row["partition"] for row in sk.to_kafka(run, partitions=1).collect()]
stream = spark.readStream.format("sessionkit.replay").option("path", folder + "/records.parquet").load()
query = plan.stream(stream).write(checkpoint=folder + "/state", changelog=folder + "/out", available_now=True)
query.awaitTermination()
found["stream"] = spark.read.parquet(folder + "/out").count()
found["read_state"] = [row["amount"] for row in sk.read_state(folder + "/state").collect()]
print("found", json.dumps(found))
"""


@pytest.fixture(scope="module")
def other_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A `python3` without any package: Python's own, by itself."""
    python = tmp_path_factory.mktemp("other") / "python3"
    base = getattr(sys, "_base_executable", sys.executable)
    python.write_text(f'#!/bin/sh\nexec "{base}" -I -S "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    return python


@pytest.mark.xdist_group(OWN_SPARK)
def test_a_job_from_an_environment_that_is_not_activated(other_python: Path, tmp_path: Path) -> None:
    """Batch, stream, the replay source, Kafka's records and a state, on a session that was there before the import."""
    (tmp_path / "job.py").write_text(JOB, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "VIRTUAL_ENV"))}
    environment |= {
        "PATH": f"{other_python.parent}{os.pathsep}{environment['PATH']}",
        "JAVA_HOME": str(find_java().home),
        "PYTHONPATH": str(ROOT),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    quick = {name: value for name, value in OPTIONS.items() if name != "spark.sql.shuffle.partitions"}
    command = [sys.executable, "job.py", str(tmp_path), json.dumps(quick)]
    done = subprocess.run(
        command, check=False, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    found = json.loads(done.stdout.partition("found ")[2])
    assert found == {"batch": [4, 4], "to_kafka": [0] * 6, "stream": 6, "read_state": [4, 4]}


# ---- what the user set


def test_a_python_of_the_users_own_that_cannot_run_the_plan_is_refused_before_anything_runs(
    spark: SparkSession, other_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = shuffled(spark, records(1).slice(0, 10))
    context = spark.sparkContext
    monkeypatch.setattr(context, "pythonExec", str(other_python))
    with pytest.raises(SparkUnavailable, match=r"got .*/python3, which lacks sessionkit, .*PYSPARK_PYTHON") as refused:
        BASE.count().run(frame)
    told = str(refused.value).replace(str(other_python), "/usr/bin/python3")
    assert f"sessionkit.errors.SparkUnavailable: {told}\n" in OPERATIONS
    old = tmp_path / "python3.9"
    old.write_text("#!/bin/sh\necho 3.9\n", encoding="utf-8")
    old.chmod(0o755)
    monkeypatch.setattr(context, "pythonExec", str(old))
    with pytest.raises(SparkUnavailable, match=r"python3\.9, which is Python 3\.9, not 3\."):
        BASE.count().run(frame)
    monkeypatch.setattr(context, "pythonExec", "no-such-python")
    with pytest.raises(SparkUnavailable, match="'no-such-python', which is no program on this machine"):
        BASE.count().run(frame)


def test_a_setting_that_spark_was_started_with_stays(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine"
    mine.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    mine.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(mine))
    BASE.count().run(shuffled(spark, records(1).slice(0, 10)))
    assert spark.sparkContext.pythonExec == str(mine)


def test_on_a_cluster_the_python_to_set_is_told(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    frame, context = shuffled(spark, records(1).slice(0, 10)), spark.sparkContext
    monkeypatch.setattr(context, "pythonExec", "python3")
    monkeypatch.setattr(context, "master", "spark://somewhere:7077")
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    with pytest.warns(UserWarning, match=r'workers run the "python3" of their machines.*\n.*PYSPARK_PYTHON'):
        BASE.count().run(frame)
    assert context.pythonExec == "python3"
    monkeypatch.setenv("PYSPARK_PYTHON", "python3")
    BASE.count().run(frame)  # says nothing: warnings are errors here


def test_a_server_of_spark_connect_started_by_this_process_is_checked(
    other_python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session: Any = SimpleNamespace()  # one of Spark Connect has no SparkContext
    settle_worker_python(session)  # of a server elsewhere nothing is known
    monkeypatch.setenv("SPARK_LOCAL_REMOTE", "1")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    settle_worker_python(session)
    monkeypatch.setenv("PYSPARK_PYTHON", str(other_python))
    with pytest.raises(SparkUnavailable, match="which lacks sessionkit"):
        settle_worker_python(session)


def test_an_error_of_another_pythons_version_is_one_line() -> None:
    text = (
        "org.apache.spark.api.python.PythonException: pyspark.errors.exceptions.base.PySparkRuntimeError: "
        "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.11, PySpark "
        "cannot run with different minor versions.\n\tat org.apache.spark…"
    )
    with (
        pytest.raises(SparkUnavailable, match=r"different version: 3\.9 than that in driver: 3\.11;"),
        readable_errors(),
    ):
        raise RuntimeError(text)
