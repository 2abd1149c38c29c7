"""Spark: our batches and streams, and what Spark has itself for the same questions."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.data import PARTITIONS
from benchmarks.jobs.peers import GAP_MINUTES
from benchmarks.jobs.sessions import Job
from benchmarks.long.stages import spark_session
from benchmarks.settings import GAP, GRACE

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def _plan() -> Any:
    import sessionkit as sk

    windows = sk.SessionWindows(inactivity_gap=GAP, grace=GRACE)
    keyed = sk.group_by_key("key", timestamp="ts", partition="partition", offset="offset").windowed_by(windows)
    return keyed.aggregate(count=sk.count(), total=sk.sum("value"))


def _done(frame: Any) -> int:
    """Runs it, and writes nothing."""
    frame.write.format("noop").mode("overwrite").save()
    return 0


def sessions(path: str) -> Job:
    """Exact, one task a partition."""
    spark, plan = spark_session(), _plan()
    return lambda: _done(plan.run(spark.read.parquet(path)).table())


def sessions_by_key(path: str) -> Job:
    """The same answers of two tasks a partition."""
    spark, plan = spark_session(), _plan()
    spark.conf.set("spark.sql.shuffle.partitions", 2 * PARTITIONS)
    return lambda: _done(plan.run(spark.read.parquet(path)).by_key().table())


def session_window(path: str) -> Job:
    """Spark's own."""
    spark = spark_session()

    def call() -> int:
        return _done(_windowed(spark.read.parquet(path)))

    return call


def _windowed(records: Any) -> Any:
    from pyspark.sql import functions as F

    grouped = records.groupBy("key", F.session_window("ts", f"{GAP_MINUTES} minutes"))
    return grouped.agg(F.count("*").alias("count"), F.sum("value").alias("total"))


def sessionized(path: str) -> Job:
    """Each row with its session."""
    import sessionkit as sk

    spark = spark_session()
    return lambda: _done(sk.sessionize(spark.read.parquet(path), by="key", at="ts", gap=GAP))


def window_functions(path: str) -> Job:
    """The same columns by window functions."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    spark = spark_session()

    def call() -> int:
        rows = spark.read.parquet(path)
        in_order = Window.partitionBy("key").orderBy("ts")
        pause = F.col("ts").cast("double") - F.lag("ts").over(in_order).cast("double")
        begins = F.coalesce((pause > GAP_MINUTES * 60).cast("int"), F.lit(1))
        numbered = rows.withColumn("begins", begins).withColumn("session_id", F.sum("begins").over(in_order))
        session = Window.partitionBy("key", "session_id")
        columns = {
            "session_start": F.min("ts").over(session),
            "session_end": F.max("ts").over(session),
            "session_rows": F.count("*").over(session),
            "position_in_session": F.row_number().over(session.orderBy("ts")),
        }
        return _done(numbered.drop("begins").withColumns(columns))

    return call


def stream(path: str, records: int) -> Job:
    """Final sessions as they close."""
    return _micro_batches(path, records, lambda rows: _plan().emit("on_window_close").stream(rows).changelog())


def stream_of_spark(path: str, records: int) -> Job:
    """Those of Spark's own windows, by a watermark as long as our grace."""
    return _micro_batches(path, records, lambda rows: _windowed(rows.withWatermark("ts", "5 minutes")))


def _micro_batches(path: str, records: int, results: Any) -> Job:
    """Each call gives the query one more file, and waits until what comes of it is out."""
    spark = spark_session()
    spark.conf.set("spark.sql.shuffle.partitions", PARTITIONS)
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    spark.conf.set("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    place = tempfile.TemporaryDirectory()
    folder = Path(place.name, "records")
    folder.mkdir()
    files = iter(sorted(Path(path).iterdir()))
    schema, read, queries = spark.read.parquet(path).schema, 0, [place]

    def call() -> int:
        nonlocal read
        file = next(files)
        os.link(file, folder / file.name)
        if len(queries) == 1:
            rows = spark.readStream.schema(schema).parquet(str(folder))
            writer = results(rows).writeStream.format("noop").option("checkpointLocation", f"{place.name}/checkpoint")
            queries.append(writer.start())
        read += records
        while sum(each["numInputRows"] for each in queries[1].recentProgress) < read:
            queries[1].processAllAvailable()
        return 0

    return call
