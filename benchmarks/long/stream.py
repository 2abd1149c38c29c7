"""A stream of many micro-batches over a growing state: sessionkit beside Spark's own `session_window`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.data import FOLDER

RECORDS, BATCHES, PARTITIONS, KEYS = 5_000_000, 10, 4, 2_000_000
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SIDES = ("sessionkit", "session_window")


def arrivals() -> Path:
    """A file for each micro-batch, rows in no order; 2 million keys, of which nearly all stay open."""
    folder = FOLDER / f"stream-{RECORDS}"
    if folder.exists():
        return folder
    rng = np.random.default_rng(3)
    size = RECORDS // BATCHES // PARTITIONS
    aside = folder.with_name(f".{folder.name}")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    for batch in range(BATCHES):
        offset = np.tile(np.arange(batch * size, (batch + 1) * size), PARTITIONS)
        partition = np.repeat(np.arange(PARTITIONS), size)
        columns = {
            "partition": partition.astype(np.int32),
            "offset": offset,
            "key": rng.integers(0, KEYS // PARTITIONS, len(offset)) * PARTITIONS + partition,
            "ts": pa.array(
                (1_700_000_000_000 + offset + rng.integers(-500, 500, len(offset))) * 1000, pa.timestamp("us", tz="UTC")
            ),
            "value": np.round(rng.gamma(2.0, 10.0, len(offset)), 2),
        }
        table = pa.table(columns).take(pa.array(rng.permutation(len(offset))))
        pq.write_table(table, aside / f"{batch:02}.parquet")
        os.utime(aside / f"{batch:02}.parquet", (1_700_000_000 + batch * 10,) * 2)
    aside.rename(folder)
    return folder


def measure(rounds: int = 2) -> None:
    """Runs both in turn, each in a fresh process, and prints what each micro-batch took."""
    print(f"\nStreaming: {RECORDS:,} records in {BATCHES} micro-batches, {PARTITIONS} partitions, nothing written")
    arrivals()
    for _ in range(rounds):
        found = {side: _run(side) for side in SIDES}
        for side, told in found.items():
            seconds = told["seconds"]
            batches = " ".join(f"{each:.1f}" for each in seconds)
            print(
                f"  {side:<15} {told['whole']:6.1f} s in all, micro-batches {batches} s; 2 to {BATCHES} together "
                f"{sum(seconds[1:]):.1f} s, the last is {seconds[-1] / seconds[2]:.2f} of the third; "
                f"state {told['bytes'] / 2**20:,.0f} MiB"
                + (
                    f", {told['windows']:,} windows live, {told['chunks'] / told['windows']:.0f} bytes each"
                    if told["windows"]
                    else ""
                ),
                flush=True,
            )
        ours, theirs = (found[side] for side in SIDES)
        later = sum(theirs["seconds"][1:]) / sum(ours["seconds"][1:])
        print(
            f"  ratio: in all {theirs['whole'] / ours['whole']:.2f}, micro-batches 2 to {BATCHES} {later:.2f}",
            flush=True,
        )


def _run(side: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.long.stream", side], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-3_000:])
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def _query(side: str) -> dict[str, Any]:
    from pyspark.sql import functions as F

    import sessionkit as sk
    from benchmarks.long.stages import spark_session

    spark = spark_session()
    spark.conf.set("spark.sql.shuffle.partitions", PARTITIONS)
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    spark.conf.set("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    folder = str(arrivals())
    records = spark.readStream.schema(spark.read.parquet(folder).schema).option("maxFilesPerTrigger", 1).parquet(folder)
    if side == "sessionkit":
        windows = sk.SessionWindows(inactivity_gap="1h", grace="1h")
        keyed = sk.group_by_key("key", timestamp="ts", partition="partition", offset="offset")
        results = keyed.windowed_by(windows).aggregate(count=sk.count(), total=sk.sum("value")).stream(records).events()
    else:
        late = records.withWatermark("ts", "1 hour")
        results = late.groupBy("key", F.session_window("ts", "1 hour")).agg(F.count("*"), F.sum("value"))
    with tempfile.TemporaryDirectory() as place:
        begun = time.perf_counter()
        query = (
            results.writeStream.format("noop").option("checkpointLocation", place).trigger(availableNow=True).start()
        )
        query.awaitTermination()
        whole = time.perf_counter() - begun
        seconds = [progress["durationMs"]["triggerExecution"] / 1000 for progress in query.recentProgress]
        size = sum(file.stat().st_size for file in Path(place).rglob("*") if file.is_file())
        windows = chunks = 0
        if side == "sessionkit":
            head, stored = (
                spark.read.format("statestore").option("stateVarName", name).load(place) for name in ("head", "chunks")
            )
            windows = head.selectExpr("sum(value.windows)").collect()[0][0]
            bytes_of = "sum(length(user_map_value.rows) + length(user_map_value.gone))"
            chunks = stored.selectExpr(bytes_of).collect()[0][0]
    spark.stop()
    return {"whole": whole, "seconds": seconds[:BATCHES], "bytes": size, "windows": windows, "chunks": chunks}


if __name__ == "__main__":
    print(json.dumps(_query(sys.argv[1])))
