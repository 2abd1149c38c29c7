"""`run.of(*keys)` on Spark: the local run of some keys, whichever way their records come."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sessionkit.errors import BufferFull, InvalidArgument, InvalidData, UnknownRecord
from sessionkit.spark import batch_run
from sessionkit.spark.types import readable_errors
from tests.optional import SparkSession
from tests.spark.common import BASE, STRATEGIES, WINDOWS, in_order, plan_of, records, shuffled
from tests.spark.test_spark_batch import assert_same
from tests.spark.test_spark_ways import STRAIGHT, kept_apart

if TYPE_CHECKING:
    from sessionkit.run import Run

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("small_steps")]


def assert_same_run(one: Run, other: Run) -> None:
    """All that the two tell of their records is the same."""
    for view in ("table", "changelog", "dropped"):
        assert getattr(one, view)().equals(getattr(other, view)()), view
    assert one.trace.records().equals(other.trace.records())
    assert one.trace.windows().equals(other.trace.windows())
    assert one.metrics() == other.metrics()
    assert one.summary() == other.summary()


@pytest.mark.parametrize("kind", WINDOWS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_it_is_the_local_run_of_these_keys(spark: SparkSession, kind: str, strategy: str) -> None:
    table = records(3)
    plan = plan_of(WINDOWS[kind], strategy)
    local = table.sort_by([("partition", "ascending"), ("offset", "ascending")])
    run = plan.run(shuffled(spark, table))
    for keys in (["ada"], ["", "<img src=x onerror=alert(1)>"]):
        assert_same_run(run.of(*keys), plan.run(local, keys=keys))


def test_files_that_tasks_read_themselves(spark: SparkSession, tmp_path: Path) -> None:
    table = records(3)
    run = BASE.count().run(spark.read.parquet(kept_apart(tmp_path / "apart", table)))
    assert STRAIGHT in run._how()
    local = table.sort_by([("partition", "ascending"), ("offset", "ascending")])
    assert_same_run(run.of("bob"), BASE.count().run(local, keys=["bob"]))


def test_one_partition_of_a_key(spark: SparkSession) -> None:
    table = records(3)
    run = BASE.count().run(shuffled(spark, table))
    one = run.of("ada", partition=1)
    assert one.table()["partition"].unique().to_pylist() == [1]
    assert one.table().equals(run.of("ada").table().filter(run.of("ada").table()["partition"].to_numpy() == 1))
    first = one.trace.records()["offset"][0].as_py()
    assert str(one.explain(offset=first)) == str(run.explain(offset=first, partition=1))


def test_integer_keys(spark: SparkSession) -> None:
    table = records(2)
    table = table.set_column(0, "key", table["amount"])
    plan = BASE.count()
    local = table.sort_by([("partition", "ascending"), ("offset", "ascending")])
    assert_same_run(plan.run(shuffled(spark, table)).of(7, -3), plan.run(local, keys=[7, -3]))


def test_a_picture_of_a_key_collects_its_records_alone(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    run = BASE.count().run(shuffled(spark, records(2)))
    monkeypatch.setattr(batch_run, "LOCAL_RECORDS", 900)  # the whole has 1,200
    assert run.plane("ada", partition=0).data
    with pytest.raises(InvalidData, match="cannot be held here"):
        run.local()


def test_what_is_refused(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    run = BASE.count().run(shuffled(spark, records(2)))
    with pytest.raises(UnknownRecord, match="this DataFrame has no record of this key; got 'nobody'"):
        run.of("ada", "nobody")
    with pytest.raises(UnknownRecord, match="partition 77 has no record of this key"):
        run.of("ada", partition=77)
    with pytest.raises(UnknownRecord, match="no record of this key; got 3"):
        run.of(3)
    with pytest.raises(InvalidArgument, match="no key is named"):
        run.of()
    monkeypatch.setattr(batch_run, "LOCAL_RECORDS", 10)
    with pytest.raises(InvalidData, match="these keys cannot be held here"):
        run.of("ada")


@pytest.mark.parametrize("kind", WINDOWS)
def test_suppress_is_the_local_one(spark: SparkSession, kind: str) -> None:
    table = records(3)
    local = table.sort_by([("partition", "ascending"), ("offset", "ascending")])
    base = plan_of(WINDOWS[kind], "on_window_update")
    for plan in (base.suppress("until_window_closes"), base.suppress("until_time_limit", "3s", max_records=20)):
        expected = in_order(plan.run(local).changelog(), "partition", "offset")
        assert_same(plan.run(shuffled(spark, table)).changelog(), expected)
        assert len(expected) > 50


def test_what_suppress_does_not_do_on_spark_is_refused(spark: SparkSession) -> None:
    df = shuffled(spark, records(1))
    plan = BASE.count().suppress("until_window_closes")
    with pytest.raises(InvalidArgument, match="suppress and deployments do not run by key"):
        plan.run(df).by_key()
    with pytest.raises(InvalidArgument, match="suppress and deployments keep all keys together"):
        plan.run(df).of("ada")
    for name, room in (("max_records", 1), ("max_bytes", 100)):
        full = BASE.count().suppress("until_window_closes", **{name: room}).run(df)  # type: ignore[arg-type]
        with pytest.raises(BufferFull, match=f"suppress is full at partition 2.*, with {name}="), readable_errors():
            full.changelog().collect()
