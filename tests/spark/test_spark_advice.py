"""Sweeps and suggestions of a Spark DataFrame are those of the same records here, fields and words."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sessionkit as sk
from sessionkit.advice.sweep import Sweep
from sessionkit.errors import InvalidArgument, InvalidData, NotBuilt
from tests.optional import DataFrame, SparkSession
from tests.shapes import SHAPES, plan_of_shape
from tests.spark.common import (
    BASE,
    IS_WHOLE,
    WINDOWS,
    in_order,
    in_turn,
    plan_of,
    read_stream,
    records,
    shuffled,
    write_files,
)

pytestmark = pytest.mark.spark

TRAILING = sk.SlidingWindows(time_difference_ms=5_000, grace_ms=4_000, trailing_only=True)
ASKED: dict[str, Callable[[Any], object]] = {
    "a sweep": lambda data: sk.sweep(BASE, data, grace=[0]),
    "a suggestion": lambda data: sk.suggest_gap(BASE, data),
    "a suggestion of a grace": lambda data: sk.suggest_grace(BASE, data),
}
PLACED = {"partition": "partition", "offset": "offset"}


def table_of(partitions: int, seed: int = 3) -> pa.Table:
    """Records in order of partition and offset, as a run on Spark has them; with a key that is a mark."""
    table = records(partitions, seed)
    keys = pc.if_else(pc.equal(table["key"], "a.b"), "NULL", table["key"])
    return in_order(table.set_column(0, "key", keys), "partition", "offset")


def told(found: Any) -> dict[str, Any]:
    """All fields of a suggestion, and its words."""
    plan = {"plan": repr(found.plan)} if hasattr(found, "plan") else {}
    return {**vars(found), **plan, "curve": [each.tolist() for each in found.curve], "words": found.words()}


def assert_same_sweep(plan: sk.Plan, here: pa.Table, there: DataFrame, **values: Any) -> Sweep:
    local, on_spark = sk.sweep(plan, here, **values), sk.sweep(plan, there, **values)
    assert on_spark.cells == local.cells
    assert repr(on_spark) == repr(local)
    assert isinstance(on_spark.table(), pd.DataFrame)
    return on_spark


@pytest.mark.parametrize(("kind", "partitions"), in_turn([*WINDOWS, "trailing"], (2, 7, 1)))
def test_a_sweep_is_the_local_one(spark: SparkSession, kind: str, partitions: int) -> None:
    windows: Any = {**WINDOWS, "trailing": TRAILING}[kind]
    plan, table = plan_of(windows, "on_window_close"), table_of(partitions)
    found = assert_same_sweep(plan, table, shuffled(spark, table), grace_ms=[0, 3_000, 40_000])
    assert found.cells[0].dropped > 20
    assert kind != "session" or found.cells[1].apart > 0


def test_a_sweep_needs_no_aggregation_and_takes_plans_that_wait(spark: SparkSession) -> None:
    table = table_of(2)
    there = shuffled(spark, table)
    waiting = BASE.count().suppress("until_window_closes", max_bytes=1_000, when_full="shut_down")
    for plan in (BASE, waiting):
        assert_same_sweep(plan, table, there, inactivity_gap=["1s", "5s"], grace=[0, "5s"])


def test_a_sweep_is_as_many_jobs_for_one_cell_as_for_many(spark: SparkSession) -> None:
    there = shuffled(spark, table_of(2)).cache()

    def jobs(graces: range) -> int:
        name = f"{len(graces)} cells"
        spark.sparkContext.setJobGroup(name, name)
        sk.sweep(BASE.count(), there, grace_ms=graces)
        return len(spark.sparkContext.statusTracker().getJobIdsForGroup(name))

    there.count()
    assert jobs(range(1)) == jobs(range(20))


@pytest.mark.parametrize(("kind", "partitions"), in_turn([*WINDOWS, "trailing"], (3, 1, 7)))
def test_a_suggested_grace_is_the_local_one(spark: SparkSession, kind: str, partitions: int) -> None:
    plan, table = BASE.windowed_by({**WINDOWS, "trailing": TRAILING}[kind]).count(), table_of(partitions)
    local, on_spark = (sk.suggest_grace(plan, data, keep=0.97) for data in (table, shuffled(spark, table)))
    assert told(on_spark) == told(local)
    assert 0 < local.grace_ms < 18_000
    assert any("'NULL' in 'key' is a key like any other" in said for said in local.remarks)
    assert any("have no key" in said for said in local.remarks)


def two_paces(partitions: int) -> pa.Table:
    """A collar that reports every 10 minutes and one every 2, from one partition after another."""
    minutes = np.array([*range(0, 3_000, 10), *range(0, 3_000, 2)])
    at = pa.array(1_700_000_000_000_000 + minutes * 60_000_000, pa.timestamp("us", tz="UTC"))
    number = (minutes * partitions // 3_000).astype(np.int32)
    table = pa.table({"key": ["slow"] * 300 + ["fast"] * 1_500, "at": at, "partition": number}).sort_by("at")
    return in_order(table.append_column("offset", pa.array(np.arange(len(table)))), *PLACED)


def few(partitions: int) -> pa.Table:
    return records(partitions).slice(0, 40)


@pytest.mark.parametrize(("make", "partitions"), in_turn([two_paces, table_of, few], (2, 7, 1)))
def test_a_suggested_gap_is_the_local_one(
    spark: SparkSession, make: Callable[[int], pa.Table], partitions: int
) -> None:
    table = make(partitions)
    local, on_spark = (sk.suggest_gap(BASE, data) for data in (table, shuffled(spark, table)))
    assert told(on_spark) == told(local)
    assert make is not two_paces or local.pace_ms is not None


@pytest.mark.parametrize("name", [
    name if name == "few_records_behind" else pytest.param(name, marks=pytest.mark.thorough)
    for name in [*SHAPES][:: 1 if IS_WHOLE else 2]
])  # fmt: skip
def test_why_records_are_late_is_told_as_here(spark: SparkSession, name: str) -> None:
    place = [*SHAPES].index(name)
    table, source = SHAPES[name](), {"timezone": "Europe/Berlin"} if name == "clock_change" else {}
    partitions = np.random.default_rng(place).integers(0, 3, len(table))
    table["partition"] = [0 * partitions, partitions, pd.factorize(table["user"])[0] % 3][place % 3]
    table["offset"] = table.groupby("partition").cumcount()
    table = table.sort_values([*PLACED]).reset_index(drop=True)
    plan, there = plan_of_shape(**PLACED, **source), spark.createDataFrame(table.sample(frac=1, random_state=1)).cache()
    assert told(sk.suggest_grace(plan, there)) == told(sk.suggest_grace(plan, table))
    assert told(sk.suggest_gap(plan, there)) == told(sk.suggest_gap(plan, table))
    assert repr(sk.sweep(plan, there, grace=[0, "10m"])) == repr(sk.sweep(plan, table, grace=[0, "10m"]))


def test_no_records_are_as_here(spark: SparkSession) -> None:
    table = table_of(1).slice(0, 0)
    there = spark.createDataFrame(shuffled(spark, table_of(1)).limit(0).toArrow())
    assert_same_sweep(BASE, table, there, grace=[0, "5s"])
    assert told(sk.suggest_gap(BASE, there)) == told(sk.suggest_gap(BASE, table))
    assert told(sk.suggest_grace(BASE, there)) == told(sk.suggest_grace(BASE, table))


@pytest.mark.parametrize("what", ASKED)
def test_a_stream_is_refused(spark: SparkSession, what: str, tmp_path: Path) -> None:
    stream = read_stream(spark, write_files(records(1).slice(0, 10), tmp_path / "in", []))
    said = rf"{' '.join(what.split()[:2])} cannot run on a stream.*streaming DataFrame.*spark\.read"
    with pytest.raises(InvalidArgument, match=said):
        ASKED[what](stream)


def test_what_a_run_on_spark_refuses_is_refused_alike(spark: SparkSession) -> None:
    table = table_of(1).slice(0, 50)
    there = shuffled(spark, table)
    bare = sk.group_by_key("key", timestamp="at").windowed_by(WINDOWS["session"])
    for ask in (lambda plan: sk.sweep(plan, there, grace=[0]), lambda plan: sk.suggest_gap(plan, there)):
        with pytest.raises(InvalidArgument, match="must name its partition and offset columns"):
            ask(bare)
    idle = sk.group_by_key("key", timestamp="at", idle_after="1m", arrival="at", **PLACED)
    with pytest.raises(NotBuilt, match="each partition is a task that does not see the others"):
        sk.suggest_grace(idle.windowed_by(WINDOWS["session"]), there)
    with pytest.raises(InvalidArgument, match="the plan has no windows"):
        sk.suggest_grace(sk.group_by_key("key", timestamp="at", **PLACED), there)
    timeless = table.set_column(1, "at", pc.if_else(pc.equal(table["key"], "ada"), None, table["at"]))
    with pytest.raises(InvalidData, match=r"column .at. has missing timestamps.*partition 2, offset"):
        sk.suggest_gap(BASE, shuffled(spark, timeless))
