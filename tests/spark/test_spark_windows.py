"""Tumbling, hopping and sliding windows on Spark give what the local run gives, in every view."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.errors import NotBuilt
from tests.optional import SparkSession
from tests.spark.common import (
    STRATEGIES,
    WINDOWS,
    assert_events,
    in_order,
    plan_of,
    read_stream,
    records,
    shuffled,
    write_files,
)
from tests.spark.test_spark_batch import assert_alike, assert_same

if TYPE_CHECKING:
    from sessionkit.spark.batch_run import SparkRun

pytestmark = pytest.mark.spark


def assert_all_views(run: SparkRun, local: sk.Run) -> None:
    assert_alike(run, local)
    assert_same(run.trace.touched(), in_order(local.trace.touched(), "partition", "offset"))
    by_key = local.trace.windows()
    by_key = by_key.append_column("bytes", pa.array([key.encode() for key in by_key["key"].to_pylist()]))
    expected = in_order(by_key, "partition", "bytes", "window_start_ms").drop_columns("bytes")
    assert_same(run.trace.windows(), expected)


@pytest.mark.parametrize(
    ("kind", "partitions"), [("hopping", 1), ("tumbling", 2), ("sliding", 2), ("hopping", 7), ("sliding", 7)]
)
@pytest.mark.usefixtures("small_steps")
def test_every_view_is_the_local_one(spark: SparkSession, kind: str, partitions: int) -> None:
    plan = plan_of(WINDOWS[kind], STRATEGIES[partitions % 2])
    table = records(partitions)
    local = plan.run(table)
    assert local.metrics()["dropped-late"] > 20
    assert_all_views(plan.run(shuffled(spark, table)), local)


MOVED = {
    "calendar": sk.CalendarWindows("day", timezone="America/New_York", grace="6h"),
    "offset": sk.TimeWindows(size="1d", offset="6h", grace="6h"),
    "hopping with an offset": sk.TimeWindows(size="1d", advance="7h", offset="90m", grace="6h"),
}


def over_weeks(partitions: int) -> pa.Table:
    """The records further apart: over weeks, around the night in which New York's clocks go back."""
    table = records(partitions)
    at = np.asarray(table["at"].cast(pa.int64())) // 1000
    times = 1_698_700_000_000 + (at - 1_700_000_000_000) * 5_000 // partitions
    return table.set_column(1, "at", pa.array(times * 1000, pa.timestamp("us", tz="UTC")))


@pytest.mark.parametrize(("kind", "partitions"), [("calendar", 2), ("offset", 1), ("hopping with an offset", 2)])
@pytest.mark.usefixtures("small_steps")
def test_windows_that_kafka_has_not(spark: SparkSession, kind: str, partitions: int) -> None:
    plan, table = plan_of(MOVED[kind], STRATEGIES[partitions % 2]), over_weeks(partitions)
    local = plan.run(table)
    assert local.metrics()["dropped-late"] > 9 and local.metrics()["windows"] > 50
    assert_all_views(plan.run(shuffled(spark, table)), local)


@pytest.mark.parametrize("kind", ["calendar", "offset"])
def test_streams_of_windows_that_kafka_has_not(spark: SparkSession, kind: str, tmp_path: Path) -> None:
    plan, table = plan_of(MOVED[kind], "on_window_close"), over_weeks(2)
    folder = write_files(table, tmp_path / "in", [300, 700])
    run = plan.stream(read_stream(spark, folder))
    assert assert_events(run, plan.run(table), tmp_path / "checkpoint") == 3


def test_trailing_only(spark: SparkSession) -> None:
    windows = sk.SlidingWindows(time_difference_ms=5_000, grace_ms=4_000, trailing_only=True)
    plan, table = plan_of(windows, "on_window_close"), records(2)
    local, run = plan.run(table), plan.run(shuffled(spark, table))
    assert_same(run.table(), local.table())
    assert_same(run.changelog(), in_order(local.changelog(), "partition", "offset"))
    assert run.metrics() == local.metrics()


def test_what_a_run_says_of_itself(spark: SparkSession) -> None:
    run = plan_of(WINDOWS["hopping"], "on_window_update").run(shuffled(spark, records(1)))
    assert "windows on Spark · size 5 s, advance 1 s 700 ms, grace 4 s · one task a partition" in repr(run)
    sessions = plan_of(sk.SessionWindows(inactivity_gap_ms=1, grace_ms=1), "on_window_update")
    with pytest.raises(NotBuilt, match="a trace of sessions has no touches"):
        sessions.run(shuffled(spark, records(1))).trace.touched()
