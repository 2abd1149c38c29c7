"""200 million records on Spark, and what its processes come to hold. `python -m benchmarks large_batch`"""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.data import DAY_RECORDS, DAY_US, FOLDER, PARTITIONS, visits
from benchmarks.long.stages import spark_session, table

DAYS, MIB = 20, 2**20


def arrivals() -> Path:
    """A file a day: the visits of one day again and again, each after the one before, the rows in no order."""
    folder = FOLDER / f"large-{DAYS}"
    if folder.exists():
        return folder
    aside, day = folder.with_name(f".{folder.name}"), pq.read_table(visits(DAY_RECORDS))
    aside.mkdir(parents=True, exist_ok=True)
    day = day.take(pa.array(np.random.default_rng(2013).permutation(len(day))))
    width = pc.max(day["offset"]).as_py() + 1
    for number in range(DAYS):
        later = pc.add(day["ts"], pa.scalar(number * DAY_US, pa.duration("us")))
        moved = day.set_column(day.column_names.index("ts"), "ts", later)
        offset = pc.add(day["offset"], number * width)
        moved = moved.set_column(day.column_names.index("offset"), "offset", offset)
        pq.write_table(moved, aside / f"{number:02}.parquet", row_group_size=1_000_000, compression="zstd")
    aside.rename(folder)
    return folder


def measure() -> None:
    """Prints the time, and the most that Java, one Python worker and all of them together held."""
    folder, done = arrivals(), threading.Event()
    most = dict.fromkeys(("Java", "a Python worker", "all Python workers"), 0)
    spark_session("2g")

    def watch() -> None:
        while not done.wait(0.5):
            java, workers = 0, [0]
            for child in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    name, resident = child.name(), child.memory_info().rss
                    java += resident if name == "java" else 0
                    workers += [resident] if name.startswith("python") else []
            for name, held in zip(most, (java, max(workers), sum(workers)), strict=True):
                most[name] = max(most[name], held)

    watcher = threading.Thread(target=watch)
    watcher.start()
    begun = time.perf_counter()
    table(str(folder)).write.format("noop").mode("overwrite").save()
    seconds = time.perf_counter() - begun
    done.set()
    watcher.join()
    held = ", ".join(f"{name} {size / MIB:,.0f} MiB" for name, size in most.items())
    records = DAYS * DAY_RECORDS
    speed = f"{seconds:.0f} s, {records / seconds:,.0f} a second"
    print(f"\nSpark, {records:,} records, {PARTITIONS} partitions: {speed}; {held}")
