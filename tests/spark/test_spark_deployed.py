"""A deployment on Spark: each partition is an application of its own, equal to the local run of that partition."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument, NotBuilt
from tests.optional import SparkSession
from tests.spark.common import BASE, STRATEGIES, WINDOWS, records, shuffled

pytestmark = pytest.mark.spark

NAMED = {"count": sk.count(), "total": sk.sum("amount")}
HOWS: dict[str, dict[str, Any]] = {
    "plain": {},
    "rocksdb with a cache": {"caching": "4 kB", "commit_interval": "2s"},
    "started again": {"store": "memory", "restarts": [40, (160, "changelog"), 700]},
    "by a clock": {"clock": "at", "emit_interval": "3s"},
}


def local_runs(plan: sk.Plan, table: pa.Table, how: dict[str, Any]) -> dict[int, sk.Run]:
    """A local run of each partition, in order; a restart behind its last record does not come about there."""
    found = {}
    for number in sorted(pc.unique(table["partition"]).to_pylist()):
        part = table.filter(pc.equal(table["partition"], number))
        rows = [each for each in how.get("restarts", ()) if (each if isinstance(each, int) else each[0]) < len(part)]
        found[number] = plan.run(part, deployment=sk.Deployment(**{**how, "restarts": rows}))
    return found


def assert_equal(of_spark: Any, local: list[pa.Table]) -> None:
    got = of_spark.toArrow()
    rows = [row for table in local for row in table.cast(got.select(table.column_names).schema).to_pylist()]
    lives = [{"life": 0, **row} for row in rows] if "life" in got.column_names else rows
    assert [dict(sorted(row.items())) for row in got.to_pylist()] == [dict(sorted(row.items())) for row in lives]


@pytest.mark.essential
@pytest.mark.parametrize("partitions", [1, 7])
@pytest.mark.parametrize(("kind", "how"), [
    ("session", "plain"), ("tumbling", "rocksdb with a cache"), ("hopping", "started again"), ("session", "by a clock"),
    ("sliding", "plain"),
])  # fmt: skip
def test_each_partition_is_an_application(spark: SparkSession, kind: str, how: str, partitions: int) -> None:
    strategy = STRATEGIES[how == "by a clock" or partitions == 7]
    plan, table = BASE.windowed_by(WINDOWS[kind]).aggregate(**NAMED).emit(strategy), records(partitions)
    run = plan.run(shuffled(spark, table), deployment=sk.Deployment(**HOWS[how]))
    local = local_runs(plan, table, HOWS[how])
    assert_equal(run.changelog(), [each.changelog() for each in local.values()])
    counted: dict[str, int] = {}
    for each in local.values():
        for name, count in each.metrics().items():
            counted[name] = counted.get(name, 0) + count
    windows = {name for name in counted if name.startswith("windows")} if how == "started again" else set()
    assert run.metrics() == {name: count for name, count in counted.items() if name not in windows}
    assert "an application a partition" in repr(run)
    if how == "started again":
        with pytest.raises(NotBuilt, match="this view is of one life of an application"):
            run.table()
        return
    assert_equal(run.kafka_metrics(level="debug"), [each.kafka_metrics(level="debug") for each in local.values()])
    assert_equal(run.table(), [each.table() for each in local.values()])
    assert_equal(run.dropped(missing_grace=False), [each.dropped(missing_grace=False) for each in local.values()])
    assert_equal(run.trace.records(), [each.trace.records() for each in local.values()])
    assert run.latency()._waits.total == sum(len(each.latency().delay_ms) for each in local.values())
    assert run.clock().late_count == sum(int(each.trace.late_for_some.sum()) for each in local.values())


def test_what_a_deployment_on_spark_tells_of_a_partition(spark: SparkSession) -> None:
    plan, table = BASE.aggregate(**NAMED), records(2)
    frame, how = shuffled(spark, table), sk.Deployment(caching="4 kB")
    run = plan.run(frame, deployment=how)
    sent = run.local(0).changelog()
    assert sent.to_pylist() == local_runs(plan, table, {"caching": "4 kB"})[0].changelog().cast(sent.schema).to_pylist()
    assert str(run.explain(offset=table["offset"][0].as_py(), partition=table["partition"][0].as_py()))
    assert run.plane("ada", partition=0).data
    for call, kind, match in (
        (run.by_key, InvalidArgument, "deployments do not run by key"),
        (lambda: run.of("ada"), InvalidArgument, "deployments keep all keys together"),
        (run.assign, NotBuilt, "assign does not know a deployment on Spark"),
        (lambda: run.compare(plan.run(frame)), NotBuilt, "deployments on Spark are not compared"),
        (lambda: plan.run(frame, deployment="kafka"), InvalidArgument, "deployment takes a deployment"),  # type: ignore[call-overload]
    ):
        with pytest.raises(kind, match=match):
            call()


def test_suppress_by_bytes_in_a_deployment(spark: SparkSession) -> None:
    plan, table = BASE.aggregate(**NAMED).suppress("until_time_limit", "5s", max_bytes=2_000), records(2)
    run = plan.run(shuffled(spark, table), deployment=sk.Deployment.plain())
    numbers = sorted(pc.unique(table["partition"]).to_pylist())
    parts = [table.filter(pc.equal(table["partition"], number)) for number in numbers]
    plain = [plan.run(part, deployment=sk.Deployment.plain()) for part in parts]
    assert_equal(run.changelog(), [each.changelog() for each in plain])
    buffers = [each.suppress_buffer() for each in plain]
    assert_equal(run.suppress_buffer().table(), [each.table() for each in buffers])
    assert run.suppress_buffer().most_records == max(each.most_records for each in buffers)
    assert run.suppress_buffer().most_bytes == max(each.most_bytes for each in buffers) > 0
