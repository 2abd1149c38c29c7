"""What is timed, one job a function, each in a process of its own: `python -m benchmarks.jobs NAME FILE REPEATS`."""

from __future__ import annotations

import functools
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.data import GAP_MS, GRACE_MS, SLIDING_GRACE_MS

JOBS: dict[str, Callable[[str], Any]] = {}


def job(function: Callable[[str], Any]) -> Callable[[str], Any]:
    """Registers a job under its name; it returns how many rows came out."""
    JOBS[function.__name__] = function
    return function


def _plan(grace_ms: int = GRACE_MS, **source: Any) -> Any:
    import sessionkit as sk

    return (
        sk.group_by_key("key", timestamp="ts", partition="partition", **source)
        .windowed_by(sk.SessionWindows(inactivity_gap_ms=GAP_MS, grace_ms=grace_ms))
        .aggregate(count=sk.count(), total=sk.sum("value"))
    )


@job
def sessionkit_finals(path: str) -> int:
    return len(_plan().run(path, trace=False, frame="arrow").table())


@job
def sessionkit_trace(path: str) -> int:
    return len(_plan().run(path, frame="arrow").table())


@job
def sessionkit_never_late(path: str) -> int:
    """Every session stays open: nothing is late, nothing closes."""
    return len(_plan(grace_ms=2**61).run(path, trace=False, frame="arrow").table())


@job
def polars_sessions(path: str) -> int:
    """Sorted by key and time, cut where the pause is longer than the gap. No arrival order, no grace, no drops."""
    import polars as pl

    pause = pl.col("ts").diff() > GAP_MS * 1000
    query = (
        pl.scan_parquet(path)
        .select("key", pl.col("ts").cast(pl.Int64), "value")
        .sort("key", "ts")
        .with_columns(session=(pause | (pl.col("key") != pl.col("key").shift())).fill_null(True).cum_sum())
        .group_by("session")
        .agg(
            pl.col("key").first(),
            pl.col("ts").min().alias("start"),
            pl.col("ts").max().alias("end"),
            pl.len().alias("count"),
            pl.col("value").sum().alias("total"),
        )
    )
    return int(query.collect().height)


@functools.cache
def _rows(path: str) -> Any:
    import polars as pl

    return pl.read_parquet(path)


@job
def sessionize_rows(path: str) -> int:
    """Each row of a polars frame with its session; the rows stay in their order."""
    import sessionkit as sk

    return len(sk.sessionize(_rows(path), by="key", at="ts", gap=f"{GAP_MS}ms"))


@job
def polars_rows_over(path: str) -> int:
    """The idiom: sort, shift, cumulative sum, and the same columns over the sessions. The rows stay sorted."""
    import polars as pl

    session = pl.col("session_id")
    return len(
        _polars_session_ids(_rows(path)).with_columns(
            session_start=pl.col("ts").min().over(session),
            session_end=pl.col("ts").max().over(session),
            session_rows=pl.len().over(session),
            position_in_session=pl.int_range(1, pl.len() + 1).over(session),
            late=pl.lit(False),
        )
    )


@job
def polars_rows_taken(path: str) -> int:
    """The same with less work: a group-by over the sorted sessions, of which each row takes its own."""
    import polars as pl

    rows = _polars_session_ids(_rows(path)).with_row_index("row")
    first = pl.col("row").first().alias("first")
    bounds = [pl.col("ts").first().alias("session_start"), pl.col("ts").last().alias("session_end")]
    of_each = rows.group_by("session_id", maintain_order=True).agg(*bounds, pl.len().alias("session_rows"), first)
    taken = of_each[rows["session_id"]].drop("session_id")
    found = rows.hstack(taken).with_columns(position_in_session=pl.col("row") - pl.col("first") + 1, late=pl.lit(False))
    return len(found.drop("row", "first"))


def _polars_session_ids(rows: Any) -> Any:
    import polars as pl

    begins = (pl.col("key") != pl.col("key").shift()) | (pl.col("ts").diff() > pl.duration(milliseconds=GAP_MS))
    return rows.sort("key", "ts").with_columns(session_id=begins.fill_null(False).cum_sum())


TUMBLING = {"size": "5m"}
HOPPING = {"size": "5m", "advance": "1m"}


def _time_plan(**windows: str) -> Any:
    import sessionkit as sk

    return (
        sk.group_by_key("key", timestamp="ts", partition="partition")
        .windowed_by(sk.TimeWindows(grace_ms=GRACE_MS, **windows))
        .aggregate(count=sk.count(), total=sk.sum("value"))
    )


@job
def sessionkit_tumbling(path: str) -> int:
    return len(_time_plan(**TUMBLING).run(path, trace=False, frame="arrow").table())


@job
def sessionkit_hopping(path: str) -> int:
    return len(_time_plan(**HOPPING).run(path, trace=False, frame="arrow").table())


def _sliding(path: str, seconds: int) -> int:
    import sessionkit as sk

    plan = (
        sk.group_by_key("key", timestamp="ts", partition="partition")
        .windowed_by(sk.SlidingWindows(time_difference=f"{seconds}s", grace_ms=SLIDING_GRACE_MS))
        .emit("on_window_close")
        .aggregate(count=sk.count(), total=sk.sum("value"))
    )
    return len(plan.run(path, trace=False, frame="arrow").table())


@job
def sliding_over_4(path: str) -> int:
    return _sliding(path, 4)


@job
def sliding_over_100(path: str) -> int:
    return _sliding(path, 100)


@job
def sliding_over_1800(path: str) -> int:
    return _sliding(path, 1_800)


@job
def one_run(path: str) -> int:
    """A million records from an Arrow table, which is read once: what loading and committing state is held against."""
    return len(_plan().run(_million(path), trace=False).table())


@functools.cache
def _million(path: str) -> Any:
    import pyarrow.parquet as pq

    return pq.read_table(path).slice(0, 1_000_000)


@functools.cache
def _state() -> Any:
    """100,000 open sessions as a run commits them: keys, a snapshot, columns."""
    import numpy as np
    import pyarrow as pa

    from sessionkit.stores.contract import SessionColumns, Snapshot

    number = np.arange(100_000)
    keys = pa.array([f"user-{i:07d}" for i in range(100_000)], pa.large_string())
    start = 1_700_000_000_000 + number * 10
    count = {"count": pa.array(number), "total": pa.array(number / 3)}
    none = np.full(100_000, -1, np.int64)
    columns = SessionColumns(keys, np.zeros(100_000, np.int64), start, start + 5, number, none, count)
    return keys, columns, {0: Snapshot(1_000_000, 1_700_001_000_000, 1_699_999_000_000)}


@functools.cache
def _store(kind: str) -> Any:
    import tempfile

    import sessionkit as sk

    on_disk = {"directory": tempfile.mkdtemp(prefix="sessionkit-bench-")} if kind == "rocksdb" else {}
    store = sk.open_store(kind, "bench", **on_disk)
    keys, columns, snapshots = _state()
    store.commit(store.load(keys, {0: 0}, ("count", "total")), columns, snapshots)
    return store


def _load_and_commit(kind: str) -> int:
    keys, columns, snapshots = _state()
    store = _store(kind)
    loaded = store.load(keys, {0: 0}, ("count", "total"))
    store.commit(loaded, columns, snapshots)
    return len(loaded.start_ms)


@job
def state_in_memory(path: str) -> int:
    return _load_and_commit("memory")


@job
def state_on_rocksdb(path: str) -> int:
    return _load_and_commit("rocksdb")


def _sweep(plan: Any, data: Any) -> int:
    """20 gaps by 20 graces."""
    import sessionkit as sk

    gaps, graces = ([f"{round(step * 60_000 * 1.35**i)}ms" for i in range(20)] for step in (1.0, 0.5))
    return len(sk.sweep(plan, data, inactivity_gap=gaps, grace=graces).cells)


@job
def sweep_flights(path: str) -> int:
    import sessionkit as sk

    keyed = sk.group_by_key("carrier", "origin", sep="@", timestamp="scheduled", timezone="UTC", offset="offset")
    plan = keyed.windowed_by(sk.SessionWindows(inactivity_gap="1h", grace="30m")).count()
    return _sweep(plan, sk.load_sample("flights"))


@job
def sweep_million(path: str) -> int:
    return _sweep(_plan(), _million(path))


def _polars_panes(path: str, width: str) -> Any:
    import polars as pl

    pane = pl.col("ts").dt.truncate(width).alias("start")
    return (
        pl.scan_parquet(path).group_by("key", pane).agg(pl.len().alias("count"), pl.col("value").sum().alias("total"))
    )


@job
def polars_tumbling(path: str) -> int:
    """Group-by on truncated times: no arrival order, no grace, no drops."""
    return int(_polars_panes(path, "5m").collect().height)


@job
def polars_hopping(path: str) -> int:
    """One group-by for minutes, and one for the five windows that each minute is in."""
    import polars as pl

    minutes = _polars_panes(path, "1m")
    shifted = [minutes.with_columns(start=pl.col("start") - pl.duration(minutes=back)) for back in range(5)]
    windows = pl.concat(shifted).group_by("key", "start").agg(pl.col("count").sum(), pl.col("total").sum())
    return int(windows.collect().height)


@job
def duckdb_tumbling(path: str) -> int:
    return _duckdb(
        "select key, time_bucket(interval '5 minutes', ts) as start, count(*) as count, sum(value) as total "
        "from read_parquet(?) group by all",
        path,
    )


@job
def duckdb_hopping(path: str) -> int:
    return _duckdb(
        "with minutes as (select key, time_bucket(interval '1 minute', ts) as minute, count(*) as count, "
        "sum(value) as total from read_parquet(?) group by all) "
        "select key, minute - to_minutes(back) as start, sum(count) as count, sum(total) as total "
        "from minutes, range(5) as shifts(back) group by all",
        path,
    )


def _duckdb(query: str, path: str) -> int:
    import duckdb

    return int(duckdb.execute(query, [path]).to_arrow_table().num_rows)


def _spark(memory: str = "6g") -> Any:
    from sessionkit.spark.batch_run import BATCH_SETTINGS
    from sessionkit.spark.environment.java_home import use_java

    use_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable  # the workers' Python is this one
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", memory).config("spark.driver.host", "127.0.0.1")
    for name, value in BATCH_SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _drain(frame: Any) -> int:
    frame.write.format("noop").mode("overwrite").save()
    return 0


def _spark_run(path: str, parallelism: str = "partition") -> Any:
    return _plan(offset="offset").run(_spark().read.parquet(path), parallelism=parallelism)


@job
def spark_sessionkit(path: str) -> int:
    return _drain(_spark_run(path).table())


@job
def spark_sessionkit_trace(path: str) -> int:
    return _drain(_spark_run(path).trace.records())


@job
def spark_sessionkit_by_key(path: str) -> int:
    """Two tasks a partition."""
    from benchmarks.data import PARTITIONS

    _spark().conf.set("spark.sql.shuffle.partitions", 2 * PARTITIONS)
    return _drain(_spark_run(path, "key").table())


@job
def spark_session_window(path: str) -> int:
    from pyspark.sql import functions as F

    records = _spark().read.parquet(path)
    window = F.session_window("ts", f"{GAP_MS // 1000} seconds")
    return _drain(records.groupBy("key", window).agg(F.count("*"), F.sum("value")))


# Where the time goes: the way of the records, up to some stage of it.


@job
def stage_scan(path: str) -> int:
    """Spark reads the files."""
    return _drain(_spark().read.parquet(path))


@job
def stage_scan_arrow(path: str) -> int:
    """And hands the rows to Python and back."""
    records = _spark().read.parquet(path)
    return _drain(records.mapInArrow(_unchanged, records.schema))


@job
def stage_shuffle(path: str) -> int:
    """Or packs them there, for a shuffle by partition."""
    return _drain(_spark_run(path)._packed)


@job
def stage_shuffle_order(path: str) -> int:
    """And unpacks and sorts them behind it; nothing comes out."""
    return _drain(_through_python(_spark_run(path)))


@job
def stage_read(path: str) -> int:
    """The tasks read the files themselves; nothing comes out."""
    return _drain(_through_python(_spark_run(path)))


def _through_python(run: Any) -> Any:
    import pyarrow as pa

    return run._over_partitions(_nothing, pa.schema([("none", pa.int64())]))


def _unchanged(batches: Any) -> Any:
    yield from batches


def _nothing(batches: Any) -> Any:
    for _ in batches:
        yield from ()


@job
def first_table(path: str) -> int:
    """Import, read the flights, first table: in a fresh process each time."""
    code = (
        "import sessionkit as sk; plan = sk.group_by_key('carrier', 'origin', sep='@', timestamp='scheduled', "
        "timezone='UTC').windowed_by(sk.SessionWindows(inactivity_gap='1h', grace='30m')).count(); "
        "plan.run(sk.load_sample('flights')).table()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    return 0


def run(name: str, path: str, repeats: int) -> dict[str, Any]:
    """The job in a process of its own: seconds of each repeat (one more before them is not counted), peak memory."""
    command = [sys.executable, "-m", "benchmarks.jobs", name, path, str(repeats)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return dict(json.loads(out.splitlines()[-1]))


def _main() -> None:
    name, path, repeats = sys.argv[1], sys.argv[2], int(sys.argv[3])
    seconds, rows = [], 0
    for _ in range(repeats + 1):
        began = time.perf_counter()
        rows = JOBS[name](path)
        seconds.append(time.perf_counter() - began)
    who = resource.RUSAGE_SELF
    print(json.dumps({"seconds": seconds[1:], "rows": rows, "peak_mib": resource.getrusage(who).ru_maxrss / 1024}))


if __name__ == "__main__":
    _main()
