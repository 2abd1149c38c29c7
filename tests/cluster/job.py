"""The driver of the tests on a cluster: `python -m tests.cluster.job FOLDER MASTER ARCHIVE` does what its input says.

A line such as "batch 3" or "stream 4" is a round. Its results are files in FOLDER/results, where a round is killed at
what FOLDER/kills names: a record in a task, or the moment before or after results are written.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import sessionkit as sk
from sessionkit.spark import prepare, readable_errors
from sessionkit.spark.query.result_folders import BatchFolder
from tests.spark.common import BASE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PLAN = BASE.aggregate(total=sk.sum("amount"), words=sk.collect("word"))
WAITING = "waiting"  # the record waits for as long as its mark is there
VIEWS = ("table", "changelog", "dropped", "metrics")
ON_THE_CLUSTER = {
    "spark.executorEnv.PYTHONPATH": "./deps",
    "spark.executor.memory": "600m",
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData",
    "spark.speculation": "true",
    "spark.speculation.multiplier": "1.2",
    "spark.speculation.quantile": "0.5",
    "spark.task.maxFailures": "8",
    "spark.locality.wait": "0",
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "1s",
    "spark.files.useFetchCache": "false",
    "spark.sql.shuffle.partitions": "3",
}


def deadly(folder: Path) -> sk.Plan:
    """The plan with a count that kills, once, at each record whose offset is the name of a file in FOLDER/kills."""
    kills = folder / "kills"

    def parent(number: int) -> int:
        return int((Path("/proc") / str(number) / "stat").read_text().rpartition(")")[2].split()[1])

    def add(key: object, value: int, count: int) -> int:
        with contextlib.suppress(FileNotFoundError):
            mark = kills / str(value)
            kind = mark.read_text()
            while kind == WAITING and mark.exists():
                time.sleep(0.05)
            mark.unlink()
            here = os.getpid()
            executor = parent(parent(here))
            if kind == "driver":
                os.killpg(int((kills.parent / "driver").read_text()), signal.SIGKILL)
            elif kind in ("executor", "worker"):
                os.kill(executor if kind == "executor" else parent(executor), signal.SIGKILL)
            else:
                os.kill(here, signal.SIGKILL)
            time.sleep(0.3)
        return count + 1

    counted = sk.aggregation(initializer=int, aggregator=add, merger=lambda key, a, b: a + b, value="offset")
    named = dict(PLAN._aggregations)
    return BASE.aggregate(counted=counted, **named)


class Driver:
    """One Spark application."""

    def __init__(self, folder: Path, master: str, archive: str) -> None:
        from tests.spark.session import OPTIONS

        self._folder = folder
        (folder / "driver").write_text(str(os.getpid()))
        from pyspark.sql import SparkSession

        options = {**OPTIONS, **ON_THE_CLUSTER, "spark.archives": f"{archive}#deps"}
        del options["spark.python.daemon.module"]
        builder = SparkSession.builder.master(master).appName("sessionkit on a cluster").config(map=options)
        self.spark: SparkSession = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("ERROR")
        self._plan = deadly(folder)

    def do(self, kind: str, number: str) -> None:
        with readable_errors():
            getattr(self, kind)(self._folder / "results" / number)

    def batch(self, place: Path) -> None:
        run = self._plan.run(self.spark.read.parquet(str(self._folder / "in"))).with_types(counted="bigint")
        place.mkdir(parents=True, exist_ok=True)
        for view in VIEWS:
            if (place / view).exists():  # of a driver before this one
                continue
            self.now(f"batch, {view}()")
            found: Any = getattr(run, view)()
            aside = place / f".{view}"
            if view == "metrics":
                aside.write_text(json.dumps(found))
            else:
                pq.write_table(found.toArrow(), aside)
            aside.rename(place / view)

    def stream(self, place: Path) -> None:
        source = str(self._folder / "in")
        schema = self.spark.read.parquet(source).schema
        arrivals = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(source)
        run = self._plan.stream(arrivals).with_types(counted="bigint")
        checkpoint = f"{place}-checkpoint"
        folder = BatchFolder(str(place), checkpoint)
        (self._folder / "shared").open("a").write(f"{run._name}\n")

        def write(rows: DataFrame, batch: int) -> None:
            self.now("stream, results are written")
            self.hit("before")
            folder(rows, batch)
            self.hit("after")
            self.now("stream, a micro-batch")

        self.now("stream, a micro-batch")
        run.write(checkpoint=checkpoint, events=write, available_now=True).awaitTermination()

    def prepare(self, place: Path) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(str(prepare(self.spark, PLAN)))

    def where(self, place: Path) -> None:
        """Which package and Python the executors have, and whether a bare one has what the archive brings."""

        def look(batches: Any) -> Any:
            import importlib
            import os
            import sys

            for _ in batches:
                found = str(importlib.import_module("sessionkit").__file__)
                yield pa.RecordBatch.from_pydict({"at": [found], "python": [sys.prefix], "in": [os.getcwd()]})

        place.parent.mkdir(parents=True, exist_ok=True)
        rows = self.spark.range(0, 3, 1, 3).mapInArrow(look, "at string, python string, in string").toArrow()
        place.write_text(json.dumps(rows.to_pylist()))

    def now(self, phase: str) -> None:
        aside = self._folder / ".phase"
        aside.write_text(phase)
        aside.rename(self._folder / "phase")

    def hit(self, moment: str) -> None:
        """Kills this driver, or has the harness kill what it chose, if a file in FOLDER/kills says so."""
        mark = self._folder / "kills" / moment
        with contextlib.suppress(FileNotFoundError):
            kind = mark.read_text()
            if kind == "driver":
                mark.unlink()
                os.killpg(os.getpid(), signal.SIGKILL)
            end = time.monotonic() + 20
            while mark.exists() and time.monotonic() < end:  # until it is done
                time.sleep(0.02)


def main(folder: Path, master: str, archive: str) -> None:
    driver = Driver(folder, master, archive)
    print("ready", flush=True)
    for line in sys.stdin:
        try:
            driver.do(*line.split())
            print("done", line, end="", flush=True)
        except Exception as error:
            print("failed", json.dumps(f"{type(error).__name__}: {error}"[:3_000]), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
