"""Queries that are to be killed: `python -m tests.fault.stream_child FOLDER SINK …`, files of FOLDER/in to its sinks.

FOLDER/files: the file sink, read by its log. FOLDER/table: a folder a micro-batch, written over if that is done again.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import sessionkit as sk
from sessionkit.spark.query.result_folders import BatchFolder
from tests.optional import DataFrame, SparkSession
from tests.spark.common import BASE, read_stream
from tests.spark.session import start_spark

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

    from sessionkit.spark.stream_run import StreamRun


def deadly(folder: Path) -> sk.Plan:
    """A plan whose worker is killed, once, at each record whose offset is the name of a file in FOLDER/kills."""
    kills = folder / "kills"

    def add(key: object, value: int, count: int) -> int:
        with contextlib.suppress(FileNotFoundError):
            (kills / str(value)).unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return count + 1

    counted = sk.aggregation(initializer=int, aggregator=add, merger=lambda key, a, b: a + b, value="offset")
    return BASE.aggregate(counted=counted, total=sk.sum("amount"), words=sk.collect("word"))


def run_of(spark: SparkSession, folder: Path) -> StreamRun:
    return deadly(folder).stream(read_stream(spark, folder / "in")).with_types(counted="bigint")


def start(run: StreamRun, folder: Path, sink: str, aside: Callable[[str], None] | None = None) -> StreamingQuery:
    """Reads what is there, a file a micro-batch, and ends; calls `aside` before and after the table is written."""
    checkpoint, table = str(folder / "checkpoint" / sink), folder / "table"
    if sink == "files":
        writer = run.events().writeStream.option("checkpointLocation", checkpoint).format("parquet")
        return writer.option("path", str(folder / "files")).trigger(availableNow=True).start()

    def write(batch: DataFrame, number: int) -> None:
        assert aside is not None
        aside("before")
        BatchFolder(str(table), checkpoint)(batch, number)
        aside("after")

    return run.write(checkpoint=checkpoint, events=write if aside else table, available_now=True)


def main(folder: Path, sinks: list[str]) -> None:
    """All at once; a worker that dies is tried again, as on a cluster."""
    spark = start_spark("local[2,4]")
    run = run_of(spark, folder)
    for query in [start(run, folder, sink) for sink in sinks]:
        query.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
