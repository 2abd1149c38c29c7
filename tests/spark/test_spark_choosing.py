"""Given a Spark DataFrame, what chooses settings is right, or says how to hand it the records."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument
from sessionkit.widgets.tuner import Tuner
from tests.optional import SparkSession
from tests.spark.common import STRATEGIES, WINDOWS, plan_of, read_stream, records, shuffled, write_files

pytestmark = pytest.mark.spark

PLAN = plan_of(WINDOWS["session"], "on_window_close")
IN_MS = sk.group_by_key("key", timestamp="ms", unit="ms").windowed_by(WINDOWS["session"]).count()


@pytest.mark.parametrize("ask", [
    pytest.param(lambda data: sk.audit(PLAN, data), id="audit"),
    pytest.param(lambda data: sk.audit(IN_MS, data), id="audit of integer times"),
    pytest.param(lambda data: sk.suggest_gap(PLAN, data), id="suggest_gap"),
    pytest.param(lambda data: sk.suggest_grace(PLAN, data), id="suggest_grace"),
    pytest.param(lambda data: Tuner(PLAN, data), id="tune"),
])  # fmt: skip
def test_what_goes_through_the_records_in_order_takes_them_from_here(
    spark: SparkSession, ask: Callable[[Any], object]
) -> None:
    """Spark's rows have no order: an audit of them would be one of another stream."""
    table = records(2)
    data = shuffled(spark, table.append_column("ms", table["at"].cast(pa.int64())))
    with pytest.raises(InvalidArgument, match=r"needs local records.*a Spark DataFrame.*\.orderBy\(.*toPandas"):
        ask(data)


def test_only_runs_at_hand_are_compared(spark: SparkSession) -> None:
    table = records(1).slice(0, 100)
    local, run = PLAN.run(table), PLAN.run(shuffled(spark, table))
    with pytest.raises(InvalidArgument, match=r"compare takes local runs; got SparkRun.*\.local\("):
        local.compare(run)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="compare takes local runs; got str"):
        local.compare("another")  # type: ignore[arg-type]
    assert local.compare(run.local()).counts()["changed"] == 0


@pytest.mark.parametrize("kind", [*WINDOWS, "trailing"])
def test_a_sweep_on_spark_is_the_local_one(spark: SparkSession, kind: str) -> None:
    trailing = sk.SlidingWindows(time_difference_ms=5_000, grace_ms=4_000, trailing_only=True)
    windows = trailing if kind == "trailing" else WINDOWS[kind]
    plan, table = plan_of(windows, STRATEGIES[1]), records(2)
    here, there = (sk.sweep(plan, data, grace_ms=[0, 3_000]) for data in (table.to_pandas(), shuffled(spark, table)))
    assert there.cells == tuple(dataclasses.replace(cell, apart=None) for cell in here.cells)
    assert here.cells[0].dropped > 20
    assert here.cells[0].windows == plan.with_windows(grace=0).run(table).metrics()["windows"]


def test_a_stream_is_not_swept(spark: SparkSession, tmp_path: Path) -> None:
    stream = read_stream(spark, write_files(records(1).slice(0, 10), tmp_path / "in", []))
    with pytest.raises(InvalidArgument, match=r"a sweep cannot run on a stream.*streaming DataFrame.*spark\.read"):
        sk.sweep(PLAN, stream, grace=[0])
