"""Nexmark's queries 11 (user sessions), 5 (hot auctions) and 7 (the highest bid), over a file of bids."""

from __future__ import annotations

from typing import Any

from benchmarks.jobs import flink
from benchmarks.jobs.peers import run_in_duckdb
from benchmarks.jobs.sessions import Job
from benchmarks.long.stages import spark_session

LATE = "1s"  # more than a group of 1,000 events is out of order


def q11(path: str) -> Job:
    """Bids of each bidder in each session; a trace keeps what each bid did."""

    def call() -> Any:
        import sessionkit as sk

        bids = sk.group_by_key("bidder", timestamp="time")
        sessions = bids.windowed_by(sk.SessionWindows(inactivity_gap="10s", grace=LATE))
        return sessions.count().run(path, frame="arrow").table()

    return call


def q5(path: str) -> Job:
    """Of each 10 s, every 2 s, the auctions with the most bids."""

    def call() -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        import sessionkit as sk

        bids = sk.group_by_key("auction", timestamp="time")
        windows = bids.windowed_by(sk.TimeWindows(size="10s", advance="2s", grace=LATE))
        table = (
            windows.count().run(path, trace=False, frame="arrow").table().select(["auction", "window_start", "count"])
        )
        most = pa.TableGroupBy(table, "window_start").aggregate([("count", "max")])
        return table.join(most, "window_start").filter(pc.field("count") == pc.field("count_max"))

    return call


def q7(path: str) -> Job:
    """Of each 10 s the highest price, of all bidders together."""

    def call() -> Any:
        import sessionkit as sk

        bids = sk.group_by_key(timestamp="time").windowed_by(sk.TimeWindows(size="10s", grace=LATE))
        return bids.aggregate(price=sk.max("price")).run(path, frame="arrow").table()

    return call


def polars_q11(path: str) -> Job:
    def call() -> Any:
        import polars as pl

        bids = pl.scan_parquet(path).select("bidder", "time").sort("bidder", "time")
        pause = pl.col("time").diff() > pl.duration(seconds=10)
        begins = (pause | (pl.col("bidder") != pl.col("bidder").shift())).fill_null(True)
        sessions = bids.with_columns(session=begins.cum_sum()).group_by("session")
        time = pl.col("time")
        return sessions.agg(
            pl.col("bidder").first(), time.min().alias("start"), time.max().alias("end"), pl.len().alias("count")
        ).collect()

    return call


def polars_q5(path: str) -> Job:
    def call() -> Any:
        import polars as pl

        pane = pl.col("time").dt.truncate("2s").alias("start")
        panes = pl.scan_parquet(path).group_by("auction", pane).agg(pl.len().alias("count"))
        steps = (pl.duration(seconds=2 * back) for back in range(5))
        shifted = pl.concat([panes.with_columns(start=pl.col("start") - step) for step in steps])
        windows = shifted.group_by("auction", "start").agg(pl.col("count").sum())
        return windows.filter(pl.col("count") == pl.col("count").max().over("start")).collect()

    return call


def polars_q7(path: str) -> Job:
    def call() -> Any:
        import polars as pl

        window = pl.col("time").dt.truncate("10s").alias("start")
        return pl.scan_parquet(path).group_by(window).agg(pl.col("price").max()).collect()

    return call


def spark_q11(path: str) -> Job:
    from pyspark.sql import functions as F

    bids = spark_session().read.parquet(path)
    session = F.session_window("time", "10 seconds")
    return lambda: bids.groupBy("bidder", session).agg(F.count("*").alias("count")).toArrow()


def spark_q5(path: str) -> Job:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    bids = spark_session().read.parquet(path)
    window = F.window("time", "10 seconds", "2 seconds")
    counted = bids.groupBy("auction", window.alias("window")).agg(F.count("*").alias("count"))
    most = F.max("count").over(Window.partitionBy("window"))
    return lambda: counted.withColumn("most", most).filter("count = most").drop("window").toArrow()


def spark_q7(path: str) -> Job:
    from pyspark.sql import functions as F

    bids = spark_session().read.parquet(path)
    return lambda: bids.groupBy(F.window("time", "10 seconds")).agg(F.max("price").alias("price")).toArrow()


def flink_q11(path: str) -> Job:
    return flink.nexmark(path, "q11")


def flink_q5(path: str) -> Job:
    return flink.nexmark(path, "q5")


def flink_q7(path: str) -> Job:
    call = flink.nexmark(path, "q7")
    return lambda: call()[0]  # a price is no count


def duckdb_q11(path: str) -> Job:
    return run_in_duckdb(
        "with cut as (select bidder, time, case when time - lag(time) over w <= interval '10 seconds' then 0 else 1 end"
        " as begins from read_parquet(?) window w as (partition by bidder order by time)), "
        "numbered as (select *, sum(begins) over (partition by bidder order by time) as session from cut) "
        'select bidder, min(time) as start, max(time) as "end", count(*) as count '
        "from numbered group by bidder, session",
        path,
    )


def duckdb_q5(path: str) -> Job:
    return run_in_duckdb(
        "with panes as (select auction, time_bucket(interval '2 seconds', time) as start, count(*) as count "
        "from read_parquet(?) group by all), windows as (select auction, start - to_seconds(back * 2) as start, "
        "sum(count) as count from panes, range(5) as shifts(back) group by all) "
        "select * from windows qualify count = max(count) over (partition by start)",
        path,
    )


def duckdb_q7(path: str) -> Job:
    bucket = "time_bucket(interval '10 seconds', time)"
    return run_in_duckdb(f"select {bucket} as start, max(price) as price from read_parquet(?) group by all", path)  # noqa: S608
