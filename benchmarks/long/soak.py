"""A stream through which 5 million keys pass: what its processes, its checkpoint and its shared memory come to hold."""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.data import FOLDER, START_MS
from benchmarks.long.stream import ROCKSDB
from benchmarks.running.memory import peak_bytes
from benchmarks.settings import GAP_MS, GRACE_MS

KEYS, BATCHES, PARTITIONS = 5_000_000, 80, 4
SPAN_MS = 40 * 60_000  # in which all of them come and go: a session lives for gap + grace and a little more
# Spark keeps what it needs to go back so many micro-batches, and clears the rest away every so often (a minute, if not
# told): a run of minutes would see that only once or twice.
CLEANING = {
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.stateStore.maintenanceInterval": "10s",
}
MIB = 2**20


class Held(NamedTuple):
    """What is held when a micro-batch is done."""

    largest_worker: int
    workers: int
    peak: int  # of any worker until now
    java: int
    checkpoint: int
    shared: int
    windows: int


def arrivals() -> Path:
    """A file for each micro-batch: each key has one session of about 2 records, 1 % of them too late."""
    folder = FOLDER / f"soak-{KEYS}"
    if folder.exists():
        return folder
    rng = np.random.default_rng(6)
    length = rng.geometric(0.5, KEYS)
    key = np.repeat(np.arange(KEYS), length)
    pause = rng.exponential(8_000, len(key)).astype(np.int64)
    first = np.cumsum(length) - length
    pause[first] = 0
    since = np.cumsum(pause)
    time = rng.integers(0, SPAN_MS, KEYS)[key] + since - since[first][key]
    late = np.where(rng.random(len(key)) < 0.01, rng.integers(GAP_MS + GRACE_MS, 5 * GRACE_MS, len(key)), 0)
    arrival = np.argsort(time + late, kind="stable")
    key, time = key[arrival], time[arrival]
    partition = (key % PARTITIONS).astype(np.int32)
    offset = np.empty(len(key), np.int64)
    for number in range(PARTITIONS):
        mine = partition == number
        offset[mine] = np.arange(int(mine.sum()))
    aside = folder.with_name(f".{folder.name}")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    for number, rows in enumerate(np.array_split(np.arange(len(key)), BATCHES)):
        columns = {
            "partition": partition[rows],
            "offset": offset[rows],
            "key": pa.array(key[rows]).cast(pa.string()),
            "ts": pa.array((START_MS + time[rows]) * 1000, pa.timestamp("us", tz="UTC")),
            "value": np.round(rng.gamma(2.0, 10.0, len(rows)), 2),
        }
        pq.write_table(pa.table(columns), aside / f"{number:03}.parquet")
        os.utime(aside / f"{number:03}.parquet", (1_700_000_000 + number * 10,) * 2)
    aside.rename(folder)
    return folder


def measure() -> None:
    """Runs it in a process of its own, which prints a table, and its last quarter beside its first."""
    arrivals()
    with tempfile.TemporaryFile("w+") as log:
        done = subprocess.run([sys.executable, "-m", "benchmarks.long.soak"], stderr=log, check=False)
        log.seek(0)
        if done.returncode:
            raise RuntimeError(log.read()[-3_000:])


def _watched(place: Path, shared: Path) -> Held:
    java, workers, peak = 0, [0], 0
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess, OSError):  # Spark ends idle workers
            name, resident = child.name(), child.memory_info().rss
            if name == "java":
                java += resident
            elif name.startswith("python"):
                workers.append(resident)
                peak = max(peak, peak_bytes(child.pid))
    return Held(
        largest_worker=max(workers),
        workers=sum(workers),
        peak=peak,
        java=java,
        checkpoint=_size(place),
        shared=_size(shared),
        windows=_windows(shared),
    )


def _size(folder: Path) -> int:
    sizes = 0
    for file in folder.rglob("*"):
        try:
            sizes += file.stat().st_size if file.is_file() else 0
        except FileNotFoundError:  # Spark cleans up meanwhile
            continue
    return sizes


def _windows(shared: Path) -> int:
    """Those in the newest file of each partition."""
    newest: dict[str, Path] = {}
    for file in sorted(shared.glob("[0-9]*.arrow"), key=lambda file: file.stat().st_mtime_ns):
        newest[file.name.split("-")[0]] = file
    count = 0
    for file in newest.values():
        with pa.memory_map(str(file)) as source:
            count += pa.ipc.open_file(source).read_all().num_rows
    return count


def _query(place: Path, tell: Callable[[int, Held], None]) -> Any:
    import sessionkit as sk
    from benchmarks.long.stages import spark_session
    from sessionkit.spark.worker.shared_files import shared_folder

    spark = spark_session(memory="1g")
    spark.conf.set("spark.sql.shuffle.partitions", PARTITIONS)
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    spark.conf.set("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")
    for name, value in CLEANING.items():
        spark.conf.set(name, value)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    folder = str(arrivals())
    records = spark.readStream.schema(spark.read.parquet(folder).schema).option("maxFilesPerTrigger", 1).parquet(folder)
    keyed = sk.group_by_key("key", timestamp="ts", partition="partition", offset="offset")
    windows = sk.SessionWindows(inactivity_gap_ms=GAP_MS, grace_ms=GRACE_MS)
    run = keyed.windowed_by(windows).aggregate(count=sk.count(), total=sk.sum("value")).stream(records)
    shared = shared_folder() / run._name

    def write(frame: Any, batch: int) -> None:
        frame.write.format("noop").mode("overwrite").save()
        tell(batch, _watched(place, shared))

    query = run.events().writeStream.foreachBatch(write).option("checkpointLocation", str(place))
    query.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


def _main() -> None:
    told: list[Held] = []
    records = sum(pq.read_metadata(file).num_rows for file in arrivals().glob("*.parquet"))
    print(
        f"\nSoak: {records:,} records of {KEYS:,} keys in {BATCHES} micro-batches, {PARTITIONS} partitions, "
        f"gap {GAP_MS // 1000} s, grace {GRACE_MS // 1000} s; MiB after a micro-batch"
    )
    print(
        "  batch  largest worker  all workers  peak of a worker   java  checkpoint  /dev/shm  live windows", flush=True
    )

    def tell(batch: int, held: Held) -> None:
        told.append(held)
        if batch % 8 == 7:
            mib = [f"{size / MIB:,.0f}" for size in held[:-1]]
            widths = (14, 11, 16, 5, 10, 8)
            cells = "  ".join(f"{cell:>{width}}" for cell, width in zip(mib, widths, strict=True))
            print(f"  {batch:>5}  {cells}  {held.windows:>12,}", flush=True)

    with tempfile.TemporaryDirectory() as place:
        _query(Path(place), tell)
    quarter = len(told) // 4
    print("  median of the last quarter of the micro-batches beside that of the first:")
    for name, values in zip(Held._fields, zip(*told, strict=True), strict=True):
        unit, noun = (1, "") if name == "windows" else (MIB, " MiB")
        first, last = (statistics.median(part) / unit for part in (values[:quarter], values[-quarter:]))
        print(f"    {name.replace('_', ' '):<15} {first:>10,.0f} to {last:>10,.0f}{noun}, {last / first:.2f}")


if __name__ == "__main__":
    _main()
