"""A query that is to be killed: `python -m tests.fault.stream_child FOLDER`, files of FOLDER/in to FOLDER/out."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import sessionkit as sk
from sessionkit.java import use_java

PLAN = (
    sk.group_by_key("key", timestamp="at", unit="us", partition="partition", offset="offset")
    .windowed_by(sk.SessionWindows(inactivity_gap=5_000, grace=8_000))
    .aggregate(count=sk.count(), total=sk.sum("amount"), words=sk.collect("word"))
)


def main(folder: Path) -> None:
    """Reads what is there, a file a micro-batch, and ends."""
    use_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    options = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in options.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    schema = spark.read.parquet(str(folder / "in")).schema
    records = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    query = (
        PLAN.run(records)
        .events()
        .writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
