"""The same questions in Polars, DuckDB, pandas and Spark: without arrival order, grace and late records."""

from __future__ import annotations

from typing import Any

from benchmarks.jobs.sessions import Job, with_steps

GAP_US, GAP_MINUTES = 30 * 60 * 1_000_000, 30


def polars_sessions(path: str, coded: bool = False, in_memory: bool = False) -> Job:
    """Sorted by key and time, cut where the pause is longer than the gap.

    `coded`: text keys become numbers before, and stay so; `in_memory`: the frame is read before.
    """
    read = _read_before(path) if in_memory else None

    def call() -> Any:
        import polars as pl

        key = pl.col("key").cast(pl.Categorical).to_physical() if coded else pl.col("key")
        rows = (pl.scan_parquet(path) if read is None else read).select(key, pl.col("ts").cast(pl.Int64), "value")
        ends = (pl.col("ts").diff() > GAP_US) | (pl.col("key") != pl.col("key").shift())
        sessions = rows.sort("key", "ts").with_columns(session=ends.fill_null(True).cum_sum())
        return (
            sessions.group_by("session")
            .agg(
                pl.col("key").first(),
                pl.col("ts").min().alias("start"),
                pl.col("ts").max().alias("end"),
                pl.len().alias("count"),
                pl.col("value").sum().alias("total"),
            )
            .collect()
        )

    return call


def _read_before(path: str) -> Any:
    import polars as pl

    return pl.read_parquet(path).lazy()


def polars_rows(path: str, rule: str = "") -> Job:
    """Each row with its session: sorted, cut, a group-by of which each row takes its own. The rows stay sorted."""
    import polars as pl

    frame = with_steps(pl.read_parquet(path)) if rule else pl.read_parquet(path)
    cuts = {
        "": False,
        "new_when": pl.col("campaign") != pl.col("campaign").shift(),
        "starts_when": (pl.col("event") == 1) & pl.col("key").shift().is_not_null(),
        "ends_when": pl.col("event").shift() == 1,
        "new_at": pl.col("ts").dt.date() != pl.col("ts").dt.date().shift(),
    }

    def call() -> Any:
        begins = (pl.col("key") != pl.col("key").shift()) | (pl.col("ts").diff() > pl.duration(minutes=GAP_MINUTES))
        begins = begins | cuts[rule]
        rows = frame.sort("key", "ts").with_columns(session_id=begins.fill_null(False).cum_sum()).with_row_index("row")
        bounds = [pl.col("ts").first().alias("session_start"), pl.col("ts").last().alias("session_end")]
        first = pl.col("row").first().alias("first")
        of_each = rows.group_by("session_id", maintain_order=True).agg(*bounds, pl.len().alias("session_rows"), first)
        found = rows.hstack(of_each[rows["session_id"]].drop("session_id"))
        position = pl.col("row") - pl.col("first") + 1
        return found.with_columns(position_in_session=position, late=pl.lit(False)).drop("row", "first")

    return call


def polars_panes(path: str, size: str, windows: int = 1, advance_minutes: int = 0) -> Job:
    """A group-by on truncated times; for hopping windows one more, over the windows that each pane is in."""

    def call() -> Any:
        import polars as pl

        pane = pl.col("ts").dt.truncate(size).alias("start")
        count, total = pl.len().alias("count"), pl.col("value").sum().alias("total")
        panes = pl.scan_parquet(path).group_by("key", pane).agg(count, total)
        if windows > 1:
            steps = [pl.duration(minutes=back * advance_minutes) for back in range(windows)]
            shifted = pl.concat([panes.with_columns(start=pl.col("start") - step) for step in steps])
            panes = shifted.group_by("key", "start").agg(pl.col("count").sum(), pl.col("total").sum())
        return panes.collect()

    return call


def polars_rolling(path: str, seconds: int) -> Job:
    """The window that ends at each record: one row a record."""

    def call() -> Any:
        import polars as pl

        rows = pl.read_parquet(path).sort("key", "ts")
        rolled = rows.rolling("ts", period=f"{seconds}s", closed="both", group_by="key")
        return rolled.agg(pl.len().alias("count"), pl.col("value").sum().alias("total"))

    return call


def duckdb_sessions(path: str) -> Job:
    return run_in_duckdb(
        "with cut as (select key, ts, value, case when ts - lag(ts) over w <= interval '30 minutes' then 0 else 1 end "
        "as begins from read_parquet(?) window w as (partition by key order by ts)), "
        "numbered as (select *, sum(begins) over (partition by key order by ts) as session from cut) "
        'select key, min(ts) as start, max(ts) as "end", count(*) as count, sum(value) as total '
        "from numbered group by key, session",
        path,
    )


def duckdb_panes(path: str, minutes: int, windows: int = 1, advance_minutes: int = 0) -> Job:
    bucket = f"time_bucket(interval '{minutes} minutes', ts)"
    panes = f"select key, {bucket} as start, count(*) as count, sum(value) as total from read_parquet(?) group by all"  # noqa: S608
    if windows == 1:
        return run_in_duckdb(panes, path)
    return run_in_duckdb(
        f"with panes as ({panes}) select key, start - to_minutes(back * {advance_minutes}) as start, "  # noqa: S608
        f"sum(count) as count, sum(total) as total from panes, range({windows}) as shifts(back) group by all",
        path,
    )


def run_in_duckdb(query: str, path: str) -> Job:
    """The query over a file, as an Arrow table."""

    def call() -> Any:
        import duckdb

        return duckdb.execute(query, [path]).to_arrow_table()

    return call


def pandas_sessions(path: str) -> Job:
    def call() -> Any:
        import pandas as pd

        rows = pd.read_parquet(path, columns=["key", "ts", "value"]).sort_values(["key", "ts"], kind="stable")
        begins = (rows["key"] != rows["key"].shift()) | (rows["ts"].diff() > pd.Timedelta(minutes=GAP_MINUTES))
        grouped = rows.groupby(begins.cumsum())
        found = grouped.agg(
            key=("key", "first"), start=("ts", "min"), end=("ts", "max"), count=("ts", "size"), total=("value", "sum")
        )
        return found.reset_index(drop=True)

    return call


def spark_sessions(path: str) -> Job:
    """Spark's own `session_window`, in batch, on all cores; the results are collected as Arrow."""
    from benchmarks.long.stages import spark_session

    spark = spark_session()

    return lambda: spark_windows(spark.read.parquet(path)).toArrow()


def spark_windows(records: Any) -> Any:
    """A count and a sum of each window, in a batch and in a stream."""
    from pyspark.sql import functions as F

    grouped = records.groupBy("key", F.session_window("ts", f"{GAP_MINUTES} minutes"))
    return grouped.agg(F.count("*").alias("count"), F.sum("value").alias("total"))
