"""Deployments on Spark: each partition is an application, and what it sends and counts is what a local run says."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import sessionkit as sk
from tests.conformance.cases import STRATEGIES, plan_of
from tests.reliability._deployments_drawn import Case, draw, drawn_records
from tests.reliability.pieces import Outcome
from tests.spark.session import start_spark

PIECE, GOAL = 100, 2_000
STREAMS = 25  # of one plan and deployment, a partition each: as many as a job of Spark is worth
START_MS = 1_767_225_600_000
KEYED = sk.group_by_key("key", timestamp="at", unit="ms", partition="partition", offset="offset")
AGGREGATIONS = {"count": sk.count(), "sum": sk.sum("value"), "collect": sk.collect("value")}


def check(seed: int, count: int) -> Outcome:
    """`count` streams, of which each 25 have a plan and a deployment in common."""
    spark, noted, wrong = start_spark(), Counter[str](), list[str]()
    for first in range(0, count, STREAMS):
        rng = Random(f"deployed on Spark/{seed}/{first}")
        case = draw(seed, first)
        plan, settings = _plan(case), _settings(case, rng)
        parts = [_stream(case, rng, number) for number in range(min(STREAMS, count - first))]
        rows = pa.concat_tables(parts)
        frame = spark.createDataFrame(rows.take(pa.array(rng.sample(range(len(rows)), len(rows)))))
        run = plan.run(frame.repartition(3), deployment=sk.Deployment(**settings))
        sent, counted, expected = run.changelog().toArrow(), run.metrics(), Counter[str]()
        for number, part in enumerate(parts):
            local = plan.run(part, deployment=sk.Deployment(**_of_so_many(settings, len(part))))
            mine, theirs = sent.filter(pc.equal(sent["partition"], number)), local.changelog()
            if _rows(mine, mine.schema) != _rows(theirs, mine.schema):
                wrong.append(f"seed {seed}, stream {first + number}: {plan!r}, {settings}: the changelog differs")
            expected.update(local.metrics())
            noted["records"] += len(part)
            noted["sent"] += len(mine)
        differ = {name: (told, expected[name]) for name, told in counted.items() if told != expected[name]}
        if differ:
            wrong.append(f"seed {seed}, streams from {first}: {plan!r}, {settings}: {differ}")
        noted.update([case["window"]["kind"], case["emit"], "lives" if settings["restarts"] else "one life"])
    return Outcome(count, wrong, dict(noted))


def _plan(case: Case) -> sk.Plan:
    windows, what = plan_of(case).windows, case["aggregation"]
    assert windows is not None
    return KEYED.windowed_by(windows).emit(STRATEGIES[case["emit"]]).aggregate(found=AGGREGATIONS[what])


def _settings(case: Case, rng: Random) -> dict[str, Any]:
    cache, retention_ms = case["caching"], case["window"].get("retention_ms")
    interval_ms = case.get("commit_interval_ms")
    rows = sorted(rng.sample(range(30), rng.choice((0, 0, 1, 2, 3))))
    return {
        "store": {"in_memory": "memory", "rocksdb": "rocksdb"}[case["store"]],
        "retention": None if retention_ms is None else f"{retention_ms}ms",
        "caching": f"{cache['bytes']}B" if isinstance(cache, dict) else cache,
        "commit_every": case["commit_every"],
        "commit_interval": None if interval_ms is None else f"{interval_ms}ms",
        "emit_interval": f"{case.get('emit_interval_ms', 0)}ms",
        "clock": rng.choice((None, "clock")),
        "restarts": [(row, rng.choice(("disk", "changelog", "killed"))) for row in rows],
    }


def _of_so_many(settings: dict[str, Any], count: int) -> dict[str, Any]:
    """The same, without what would come behind the last record: it does not come about on Spark."""
    return {**settings, "restarts": [each for each in settings["restarts"] if each[0] < count]}


def _stream(case: Case, rng: Random, number: int) -> pa.Table:
    records = drawn_records(rng, case["window"], walks_segments=True)
    clock = accumulate(rng.choice((0, 1, 10, 1_000, 30_000)) for _ in records)
    columns = {
        "key": pa.array([each["key"] for each in records], pa.string()),
        "value": pa.array([each["value"] for each in records], pa.int64()),
        "at": pa.array([START_MS + each["timestamp"] for each in records], pa.int64()),
        "clock": pa.array([START_MS + ms for ms in clock], pa.int64()),
        "partition": pa.array([number] * len(records), pa.int32()),
        "offset": pa.array(accumulate(rng.randint(1, 3) for _ in records), pa.int64()),
    }
    return pa.table(columns)


def _rows(table: Any, like: pa.Schema) -> list[dict[str, Any]]:
    """The rows with these types, of life 0 if the table knows of one life alone."""
    schema = pa.schema([like.field(name) for name in table.column_names])
    return [dict(sorted({"life": 0, **row}.items())) for row in table.cast(schema).to_pylist()]
