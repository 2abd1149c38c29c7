"""Frames of libraries that may not be installed."""

from typing import assert_type

import pandas as pd
import polars as pl
from pyspark.sql import DataFrame

import sessionkit as sk
from sessionkit.run import Run
from sessionkit.spark.batch_run import SparkRun
from sessionkit.spark.stream_run import StreamRun
from sessionkit.spark.views.summaries import SparkAudit
from sessionkit.views.explain.record import Explanation

sessions = sk.SessionWindows(inactivity_gap="30m", grace="10m")
grouped = sk.group_by_key("user", timestamp="at", partition="partition", offset="offset")
plan = grouped.windowed_by(sessions).count()


def of_polars(clicks: pl.DataFrame, lazy: pl.LazyFrame) -> None:
    """A lazy frame gives one that is not."""
    assert_type(plan.run(clicks), Run[pl.DataFrame])
    assert_type(plan.run(clicks).table(), pl.DataFrame)
    assert_type(plan.run(lazy).dropped(), pl.DataFrame)
    assert_type(plan.run("clicks.csv", frame="polars").table(), pl.DataFrame)
    assert_type(plan.run(clicks).assign(clicks), pl.DataFrame)
    assert_type(plan.run(lazy).compare(plan.run(lazy)).table(), pl.DataFrame)
    assert_type(sk.audit(plan, clicks).table(), pl.DataFrame)
    assert_type(sk.sweep(plan, lazy, grace=["1h"]).table(), pl.DataFrame)
    assert_type(sk.sessionize(lazy, by="user", at="at", gap="30m"), pl.DataFrame)
    assert_type(sk.open_trace("records", frame="polars").dropped(reason="late"), pl.DataFrame)
    plan.run(clicks).table().fliter()  # type: ignore


def of_spark(clicks: DataFrame) -> None:
    """What a plan gives depends on the kind of its frame."""
    run = plan.run(clicks, retention="1h")
    assert_type(run, SparkRun)
    assert_type(run.table(), DataFrame)
    assert_type(run.explain(offset=3, partition=0), Explanation)
    assert_type(sk.sessionize(clicks, by="user", at="at", gap="30m"), DataFrame)
    assert_type(run.by_key().table(), DataFrame)
    run.of("ada").plane("ada").show()
    assert_type(sk.sweep(plan, clicks, grace=["1h"]).table(), pd.DataFrame)
    assert_type(run.losses(3), DataFrame)
    audit = sk.audit(plan, clicks, sk.Deployment(store="memory"))
    assert_type(audit, SparkAudit)
    assert_type(audit.differences(), DataFrame)
    assert_type(audit.cure, SparkAudit | None)
    assert_type(audit.local(3).words(), list[str])
    audit.figure()  # type: ignore
    run.emisions("ada")  # type: ignore
    plan.run(clicks, strore=None)  # type: ignore
    plan.run(clicks, parallelism="key")  # type: ignore


def of_a_stream(clicks: DataFrame) -> None:
    """A stream has a verb of its own, as its type is that of a batch."""
    run = plan.stream(clicks)
    assert_type(run, StreamRun)
    assert_type(run.events(), DataFrame)
    run.write(checkpoint="checkpoint", changelog="sessions", every="10s").awaitTermination()
    run.by_key()  # type: ignore
    run.write(changelog="sessions")  # type: ignore
    plan.stream(clicks, keys=["ada"])  # type: ignore
