"""A plan on a stream gives what the local run gives, over any micro-batches; what it cannot do exactly, it refuses."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sessionkit as sk
from sessionkit import steps
from sessionkit.errors import InvalidArgument, NotBuilt, UnsupportedData
from tests.spark.test_spark_batch import BASE, FUNCTIONS, in_order, records

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sessionkit.streaming import StreamRun

pytestmark = pytest.mark.spark

WINDOWS: dict[str, Any] = {
    "session": sk.SessionWindows(inactivity_gap=5_000, grace=8_000),
    "tumbling": sk.TimeWindows(size=5_000, grace=4_000),
    "hopping": sk.TimeWindows(size=5_000, advance=1_700, grace=4_000),
    "sliding": sk.SlidingWindows(time_difference=5_000, grace=4_000),
}
STRATEGIES = ("on_window_update", "on_window_close")


def plan_of(windows: Any, strategy: str) -> sk.Plan:
    named = {"count": sk.count(), "total": sk.sum("amount"), "last": sk.last("word"), "words": sk.collect("word")}
    return BASE.windowed_by(windows).aggregate(**named).emit(strategy)


def write_files(table: pa.Table, folder: Path, cuts: list[int], *, seed: int = 3) -> Path:
    """A file for each stretch of arrivals, its rows shuffled: each partition's offsets rise from file to file."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    for number, (begin, end) in enumerate(zip([0, *cuts], [*cuts, len(table)], strict=True)):
        part = table.slice(begin, end - begin)
        pq.write_table(part.take(pa.array(rng.permutation(len(part)))), folder / f"{number:05}.parquet")
    for number, file in enumerate(sorted(folder.iterdir())):
        stamp = 1_700_000_000 + number
        import os

        os.utime(file, (stamp, stamp))
    return folder


def read_stream(spark: SparkSession, folder: Path, *, files: int = 1) -> DataFrame:
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", files).parquet(str(folder))


@contextlib.contextmanager
def collected(df: DataFrame, checkpoint: Path) -> Iterator[list[pa.Table]]:
    """What each micro-batch gives, in order."""
    batches: list[pa.Table] = []
    query = (
        df.writeStream.foreachBatch(lambda batch, _: batches.append(batch.toArrow()))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
        yield batches
    finally:
        query.stop()


def assert_events(run: StreamRun, local: sk.Run, checkpoint: Path) -> int:
    """All events of all micro-batches, per partition in order, are those of the local run; how many batches."""
    with collected(run.events(), checkpoint) as batches:
        events = pa.concat_tables(batches)
    changelog, dropped = local.changelog(), local.dropped(missing_grace=False)
    for number in np.unique(events["partition"].to_numpy()):
        mine = events.filter(pa.compute.equal(events["partition"], int(number)))
        assert (np.diff(mine["offset"].to_numpy()) >= 0).all()
    sent = events.filter(pa.compute.not_equal(events["what"], "dropped"))
    lost = events.filter(pa.compute.equal(events["what"], "dropped"))
    for got, expected in ((sent, changelog), (lost, dropped)):
        assert got.num_rows == expected.num_rows
        got = in_order(got, "partition")
        expected = in_order(expected, "partition", "offset")
        for name in expected.column_names:
            assert got[name].to_pylist() == expected[name].cast(got[name].type).to_pylist(), name
    return len(batches)


@pytest.mark.parametrize(
    ("kind", "strategy", "partitions", "files"),
    [
        ("session", "on_window_update", 2, 9),
        ("session", "on_window_close", 7, 4),
        ("tumbling", "on_window_update", 7, 1),
        ("hopping", "on_window_close", 1, 9),
        ("sliding", "on_window_close", 2, 4),
        ("sliding", "on_window_update", 1, 4),
    ],
)
def test_events_are_those_of_the_local_run(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    strategy: str,
    partitions: int,
    files: int,
) -> None:
    monkeypatch.setattr(steps, "STEP_RECORDS", 90)
    table, plan = records(partitions), plan_of(WINDOWS[kind], strategy)
    cuts = sorted(np.random.default_rng(files).choice(len(table), files - 1, replace=False).tolist())
    folder = write_files(table, tmp_path / "in", cuts)
    run = plan.run(read_stream(spark, folder))
    assert assert_events(run, plan.run(table), tmp_path / "checkpoint") == files
