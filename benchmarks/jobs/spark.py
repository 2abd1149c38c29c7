"""Spark: our batches and streams, and what Spark has itself for the same questions."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.data import PARTITIONS
from benchmarks.jobs.peers import GAP_MINUTES, spark_windows
from benchmarks.jobs.sessions import Job, plan
from benchmarks.long.stages import spark_session
from benchmarks.long.stream import ROCKSDB
from benchmarks.settings import GAP


def _done(frame: Any) -> int:
    """Runs it, and writes nothing."""
    frame.write.format("noop").mode("overwrite").save()
    return 0


def sessions(path: str) -> Job:
    """Exact, one task a partition."""
    spark, visits = spark_session(), plan(offset="offset")
    return lambda: _done(visits.run(spark.read.parquet(path)).table())


def sessions_by_key(path: str) -> Job:
    """The same answers of two tasks a partition."""
    spark, visits = spark_session(), plan(offset="offset")
    spark.conf.set("spark.sql.shuffle.partitions", 2 * PARTITIONS)
    return lambda: _done(visits.run(spark.read.parquet(path)).by_key().table())


def session_window(path: str) -> Job:
    """Spark's own."""
    spark = spark_session()
    return lambda: _done(spark_windows(spark.read.parquet(path)))


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
    finals = plan(offset="offset").emit("on_window_close")
    return _micro_batches(path, records, lambda rows: finals.stream(rows).changelog())


def stream_of_spark(path: str, records: int) -> Job:
    """Those of Spark's own windows, by a watermark as long as our grace."""
    return _micro_batches(path, records, lambda rows: spark_windows(rows.withWatermark("ts", "5 minutes")))


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
    schema, query, read = spark.read.parquet(path).schema, None, 0

    def call() -> int:
        nonlocal query, read
        file = next(files)
        os.link(file, folder / file.name)
        if query is None:
            rows = spark.readStream.schema(schema).parquet(str(folder))
            writer = results(rows).writeStream.format("noop").option("checkpointLocation", f"{place.name}/checkpoint")
            query = writer.start()
        read += records
        while sum(each["numInputRows"] for each in query.recentProgress) < read:
            query.processAllAvailable()
        return 0

    return call
