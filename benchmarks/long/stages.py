"""A batch on Spark: beside Spark's own windows, and where its time goes. `python -m benchmarks stages`

Two layouts: any input, which is shuffled, and a row group a partition, which the tasks read themselves.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.data import PARTITIONS, kept_apart, shuffled
from benchmarks.settings import GAP_MS, GRACE_MS

RECORDS, ROUNDS = 10_000_000, 3


def spark_session(memory: str = "6g") -> Any:
    """A Spark on two cores, with the settings that the batch runs want."""
    from sessionkit.spark.batch_run import BATCH_SETTINGS
    from sessionkit.spark.environment.java_home import use_java

    use_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable  # the workers' Python is this one
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", memory).config("spark.driver.host", "127.0.0.1")
    builder = builder.config("spark.driver.maxResultSize", "4g")
    for name, value in BATCH_SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _run(path: str) -> Any:
    import sessionkit as sk

    windows = sk.SessionWindows(inactivity_gap_ms=GAP_MS, grace_ms=GRACE_MS)
    keyed = sk.group_by_key("key", timestamp="ts", partition="partition", offset="offset")
    plan = keyed.windowed_by(windows).aggregate(count=sk.count(), total=sk.sum("value"))
    return plan.run(spark_session().read.parquet(path))


def table(path: str) -> Any:
    """Sessions, exact."""
    return _run(path).table()


def trace(path: str) -> Any:
    """And the decision on each record."""
    return _run(path).trace.records()


def by_key(path: str) -> Any:
    """Two tasks a partition."""
    spark_session().conf.set("spark.sql.shuffle.partitions", 2 * PARTITIONS)
    return _run(path).by_key().table()


def session_window(path: str) -> Any:
    """Spark's own, of other semantics."""
    from pyspark.sql import functions as F

    window = F.session_window("ts", f"{GAP_MS // 1000} seconds")
    return spark_session().read.parquet(path).groupBy("key", window).agg(F.count("*"), F.sum("value"))


def scan(path: str) -> Any:
    """Spark reads the files."""
    return spark_session().read.parquet(path)


def scan_arrow(path: str) -> Any:
    """And hands the rows to Python and back."""
    records = spark_session().read.parquet(path)
    return records.mapInArrow(_unchanged, records.schema)


def shuffle(path: str) -> Any:
    """Or packs them there, for a shuffle by partition."""
    return _run(path)._packed


def shuffle_order(path: str) -> Any:
    """And unpacks and sorts them behind it; nothing comes out. Of files with a row group a partition: they are read."""
    import pyarrow as pa

    return _run(path)._over_partitions(_nothing, pa.schema([("none", pa.int64())]))


def _unchanged(batches: Iterator[Any]) -> Iterator[Any]:
    yield from batches


def _nothing(batches: Iterator[Any]) -> Iterator[Any]:
    for _ in batches:
        yield from ()


SIDES = (table, session_window)
ANY_INPUT = (scan, scan_arrow, shuffle, shuffle_order, table, trace, by_key)
KEPT_APART = (shuffle_order, table, trace)


def _seconds(job: Callable[[str], Any], folder: Path) -> float:
    began = time.perf_counter()
    job(str(folder)).write.format("noop").mode("overwrite").save()
    return time.perf_counter() - began


def measure() -> None:
    """Prints both sides in turn, then each stage; the first round, in which Java warms up, is not counted."""
    layouts = (
        ("any input", shuffled(RECORDS), ANY_INPUT),
        ("a row group a partition", kept_apart(RECORDS), KEPT_APART),
    )
    for words, folder, stages in layouts:
        rounds = [[_seconds(side, folder) for side in SIDES] for _ in range(ROUNDS + 1)][1:]
        ratio = statistics.median(theirs / ours for ours, theirs in rounds)
        print(f"\nSpark, {words}, {RECORDS:,} records: sessions, beside Spark's own session_window")
        for side, seconds in zip(SIDES, zip(*rounds, strict=True), strict=True):
            print(f"  {side.__name__:<16} {statistics.median(seconds):6.2f} s ({min(seconds):.2f}-{max(seconds):.2f})")
        print(f"  ratio, round by round {ratio:.1f}\n  up to each stage:", flush=True)
        for job in stages:
            print(f"  {job.__name__:<16} {min(_seconds(job, folder) for _ in range(2)):6.2f} s", flush=True)
