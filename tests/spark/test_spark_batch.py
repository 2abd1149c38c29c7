"""A run on Spark gives what the local run gives: every view, by partition or key, whatever the batches and steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.errors import (
    AggregationFailed,
    InvalidArgument,
    InvalidData,
    MissingColumn,
    NotBuilt,
    SparkUnavailable,
    UnknownRecord,
    UnsupportedData,
)
from tests.optional import DataFrame, SparkSession, nearly
from tests.spark.common import (
    BASE,
    FUNCTIONS,
    GAP_MS,
    GRACE_MS,
    KEYS,
    RECORDS,
    in_order,
    metrics_that_spark_counts,
    records,
    shuffled,
)

if TYPE_CHECKING:
    from sessionkit.spark.batch_run import SparkRun

pytestmark = pytest.mark.spark

BUILT_INS = BASE.aggregate(
    count=sk.count(), total=sk.sum("amount"), ratio=sk.sum("ratio"), least=sk.min("at"), most=sk.max("amount"),
    middle=sk.mean("ratio"), first=sk.first("word"), last=sk.last("word"), words=sk.collect("word"),
    newest=sk.latest("word"), different=sk.count_distinct("word"), often=sk.top("word", 2), half=sk.median("ratio"),
    spent=sk.sum("price"), most_are=sk.quantile("ratio", 0.9, approx=True), **nearly("word"),
)  # fmt: skip


@pytest.fixture
def configured(spark: SparkSession) -> Iterator[Any]:
    """Sets Spark options for one test."""
    changed: dict[str, str] = {}

    def configure(**options: object) -> None:
        for name, value in options.items():
            name = CONFIG[name]
            changed.setdefault(name, str(spark.conf.get(name)))
            spark.conf.set(name, str(value).lower())

    yield configure
    for name, value in changed.items():
        spark.conf.set(name, value)


CONFIG = {
    "adaptive": "spark.sql.adaptive.enabled",
    "batch": "spark.sql.execution.arrow.maxRecordsPerBatch",
    "tasks": "spark.sql.shuffle.partitions",
}


def assert_same(of_spark: DataFrame, local: pa.Table) -> None:
    got = of_spark.toArrow()
    assert got.column_names == local.column_names
    assert got.num_rows == local.num_rows
    for name in local.column_names:
        assert got[name].to_pylist() == local[name].cast(got[name].type).to_pylist(), name


def assert_alike(run: SparkRun, local: sk.Run) -> None:
    """Every view that runs over sessions and those over windows have in the same order."""
    local.trace.check()
    assert_same(run.table(), local.table())
    assert_same(run.changelog(), in_order(local.changelog(), "partition", "offset"))
    assert_same(run.trace.records(), in_order(local.trace.records(), "partition", "offset"))
    assert_same(run.dropped(), in_order(local.dropped(), "partition", "offset"))
    assert run.metrics() == local.metrics()


def assert_all_views(run: SparkRun, local: sk.Run) -> None:
    assert_alike(run, local)
    assert_same(run.trace.windows(), in_order(local.trace.windows(), "partition", "window_id"))
    assert_same(run.dropped(missing_grace=False), in_order(local.dropped(missing_grace=False), "partition", "offset"))
    for level in ("info", "debug"):
        counted = run.kafka_metrics(level=level).toArrow()
        assert counted.to_pylist() == metrics_that_spark_counts(local, level)


@pytest.mark.essential
@pytest.mark.parametrize(
    ("partitions", "adaptive", "batch", "tasks"),
    [(1, True, 50_000, 4), (2, False, 7, 4), (7, True, 64, 4), (7, False, 1_000, 32)],
)
@pytest.mark.usefixtures("small_steps")
def test_every_view_is_the_local_one(
    spark: SparkSession, configured: Any, partitions: int, adaptive: bool, batch: int, tasks: int
) -> None:
    configured(adaptive=adaptive, batch=batch, tasks=tasks)
    table = records(partitions)
    plan = BUILT_INS.emit("on_window_close" if partitions == 2 else "on_window_update")
    local = plan.run(table)
    metrics = local.metrics()
    assert metrics["dropped-late"] > 20
    assert metrics["dropped-null-key"] > 20
    assert metrics["windows-merged"] > 5
    assert_all_views(plan.run(shuffled(spark, table)), local)


@pytest.mark.usefixtures("small_steps")
def test_sessions_without_a_grace(spark: SparkSession) -> None:
    table = records(3)
    times = table["at"].to_numpy().astype("int64")
    slow = table.set_column(1, "at", pa.array((times - times.min()) * 40))
    windows = sk.SessionWindows.until(inactivity_gap="10m", retention="20m")
    keyed = sk.group_by_key("key", timestamp="at", unit="us", partition="partition", offset="offset")
    plan = keyed.windowed_by(windows).aggregate(n=sk.count(), total=sk.sum("amount"))
    local = plan.run(slow)
    assert local.metrics()["windows-merged"] > 5
    assert_all_views(plan.run(shuffled(spark, slow)), local)


@pytest.mark.parametrize("strategy", ["on_window_update", "on_window_close"])
@pytest.mark.usefixtures("small_steps")
def test_functions_and_closed_sessions_that_open_again(spark: SparkSession, strategy: str) -> None:
    table, plan, retention = records(2, seed=5), FUNCTIONS.emit(strategy), f"{GAP_MS + GRACE_MS + 9_000}ms"
    local = plan.run(table, retention=retention)
    assert len(local.trace.reopenings.at) > 0
    run = plan.run(shuffled(spark, table), retention=retention)
    assert_same(run.table(), local.table())
    assert_same(run.changelog(), in_order(local.changelog(), "partition", "offset"))
    assert_same(run.trace.windows(), in_order(local.trace.windows(), "partition", "window_id"))
    assert run.metrics() == local.metrics()


def test_more_partitions_than_tasks(spark: SparkSession, configured: Any) -> None:
    configured(tasks=2)
    table = records(7)
    run = BASE.count().run(shuffled(spark, table))
    assert_same(run.table(), BASE.count().run(table).table())
    assert run.table().rdd.getNumPartitions() == 2


def test_integer_keys_in_order_of_their_bytes(spark: SparkSession) -> None:
    table = records(2)
    codes = pa.array(np.arange(RECORDS) % 5 - 2)
    table = table.set_column(0, "key", codes)
    assert_same(BASE.count().run(shuffled(spark, table)).table(), BASE.count().run(table).table())


def test_several_key_columns_and_hostile_names(spark: SparkSession) -> None:
    table = records(2)
    names = {
        "key": "k`e.y", "at": "<b>at</b>", "partition": "part ition", "offset": "off.set", "amount": "$x$",
        "word": "wo`rd",
    }  # fmt: skip
    table = table.rename_columns([names.get(name, name) for name in table.column_names])
    plan = (
        sk.group_by_key("k`e.y", "$x$", sep="|", timestamp="<b>at</b>", partition="part ition", offset="off.set")
        .windowed_by(sk.SessionWindows(inactivity_gap_ms=GAP_MS, grace_ms=GRACE_MS))
        .aggregate(**{"a.b`c": sk.count(), "<img src=x onerror=alert(1)>": sk.last("wo`rd")})
    )
    run, local = plan.run(shuffled(spark, table)), plan.run(table)
    assert_same(run.table(), local.table())
    assert_same(run.trace.records(), in_order(local.trace.records(), "partition", "offset"))
    assert "<img" not in run._repr_html_()


def test_times_without_a_zone_and_as_numbers(spark: SparkSession) -> None:
    table = records(1)
    naive = table.set_column(1, "at", table["at"].cast(pa.timestamp("us")))
    of_spark = shuffled(spark, table).selectExpr("* except (at)", "cast(at as timestamp_ntz) at")
    plan = dataclasses.replace(BASE, source=dataclasses.replace(BASE.source, timezone="America/New_York")).count()
    assert_same(plan.run(of_spark).table(), plan.run(naive).table())
    numbers = table.set_column(1, "at", table["at"].cast(pa.int64()))
    plan = dataclasses.replace(BASE, source=dataclasses.replace(BASE.source, unit="us")).count()
    assert_same(plan.run(shuffled(spark, numbers)).table(), plan.run(numbers).table())
    with pytest.raises(UnsupportedData, match="without a zone"):
        BASE.count().run(of_spark)
    with pytest.raises(UnsupportedData, match="plain numbers as times"):
        BASE.count().run(shuffled(spark, numbers))


def test_no_records(spark: SparkSession) -> None:
    run = BUILT_INS.run(spark.createDataFrame(records(1).slice(0, 0)))
    assert run.table().count() == 0
    assert run.trace.windows().count() == 0
    assert set(run.metrics().values()) == {0}


def test_words_and_pictures_come_from_one_partition(spark: SparkSession) -> None:
    table = records(2)
    run, local = BASE.count().run(shuffled(spark, table)), BASE.count().run(table)
    late = local.trace.where(reason="late")
    offset, partition = late["offset"][3].as_py(), late["partition"][3].as_py()
    assert run.explain(offset=offset, partition=partition) == BASE.count().run(
        table.filter(pa.compute.equal(table["partition"], partition))
    ).explain(offset=offset, partition=partition)
    with pytest.raises(UnknownRecord, match="needs its partition as well"):
        run.explain(offset=offset)
    with pytest.raises(UnknownRecord, match="not in the run"):
        run.explain(offset=10**9, partition=partition)
    assert run.local().metrics() == local.metrics()
    assert run.most_eventful_key(partition=partition) in KEYS


def test_too_many_records_stay_where_they_are(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sessionkit.spark.batch_run.LOCAL_RECORDS", 100)
    run = BASE.count().run(shuffled(spark, records(1)))
    with pytest.raises(InvalidData, match="partition 2 cannot be held here; got 1,200 records"):
        run.local(2)


def test_nothing_runs_to_be_shown(spark: SparkSession) -> None:
    df = shuffled(spark, records(1))
    before = len(spark.sparkContext.statusTracker().getJobIdsForGroup(None))
    run = BASE.count().run(df)
    assert "one task a partition (partition), in order of offset" in repr(run)
    assert "Nothing has run yet" in run._repr_html_()
    assert len(spark.sparkContext.statusTracker().getJobIdsForGroup(None)) == before


# ---- what is refused


def test_refused_before_anything_runs(spark: SparkSession) -> None:
    df = shuffled(spark, records(1))
    windows = sk.SessionWindows(inactivity_gap="5s", grace="8s")
    with pytest.raises(
        InvalidArgument, match="must name its partition and offset columns; got partition=None, offset=None"
    ):
        sk.group_by_key("key", timestamp="at").windowed_by(windows).count().run(df)
    with pytest.raises(InvalidArgument, match="got partition=None, offset='offset'"):
        sk.group_by_key("key", timestamp="at", offset="offset").windowed_by(windows).count().run(df)
    with pytest.raises(NotBuilt, match="store"):
        BASE.count().run(df, store=sk.open_store("memory", "sessions"))
    with pytest.raises(MissingColumn, match="column 'nowhere' is not in the data"):
        BASE.aggregate(total=sk.sum("nowhere")).run(df)
    with pytest.raises(UnsupportedData, match="cannot use column 'word'"):
        BASE.aggregate(total=sk.sum("word")).run(df)
    with pytest.raises(UnsupportedData, match="offset column 'ratio' must hold integers"):
        sk.group_by_key("key", timestamp="at", partition="partition", offset="ratio").windowed_by(windows).count().run(
            df
        )
    with pytest.raises(UnsupportedData, match="not records on Spark"):
        BASE.count().run(df["key"])


def test_what_only_local_records_offer_is_refused_before_anything_runs(spark: SparkSession) -> None:
    df = spark.sql("SELECT 'a' AS user, true AS yes, 1.5D AS x, date'2024-07-01' AS day, now() AS at, 0 AS p, 1L AS o")

    def run(key: str = "user", at: str = "at", **options: Any) -> Any:
        steps = sk.group_by_key(key, timestamp=at, **(options or {"partition": "p", "offset": "o"}))
        return steps.windowed_by(sk.SessionWindows(inactivity_gap="30s", grace="0s")).count()

    for key in ("yes", "x", "day"):
        with pytest.raises(UnsupportedData, match=f"key column '{key}' has a type that cannot be a key on Spark"):
            run(key).run(df)
    for at in ("user", "day"):
        with pytest.raises(UnsupportedData, match=f"column '{at}' must hold times on Spark; got .*cast"):
            run(at=at).run(df)
    with pytest.raises(InvalidArgument, match='rows on Spark have no order to keep; got sort="timestamp"; partition='):
        run(sort="timestamp").run(df)
    with pytest.raises(InvalidArgument, match="the views of a run on Spark are Spark DataFrames; got frame='arrow'"):
        run().run(df, frame="arrow")


@pytest.mark.essential
@pytest.mark.usefixtures("small_steps")
def test_errors_of_workers_are_one_line(spark: SparkSession) -> None:
    from sessionkit.spark.types import readable_errors

    table = records(1)
    twice = pa.concat_tables([table, table.slice(0, 90)])
    with pytest.raises(InvalidData, match="an offset appears twice") as caught:
        BASE.count().run(shuffled(spark, twice)).metrics()
    assert "\n" not in str(caught.value)
    offset = np.arange(RECORDS)
    offset[89:] -= 1  # the two that are equal fall into different steps
    cut = table.set_column(3, "offset", pa.array(offset))
    with pytest.raises(InvalidData, match=r"partition 2.*: offset 88 after 88"):
        BASE.count().run(shuffled(spark, cut)).metrics()
    at = table["at"].to_pylist()
    at[7] = None
    missing = table.set_column(1, "at", pa.array(at, table["at"].type))
    with pytest.raises(InvalidData, match="column 'at' has missing timestamps"):
        BASE.count().run(shuffled(spark, missing)).metrics()
    place = rf"partition {table['partition'][7]}, offset {table['offset'][7]}"
    told = rf"^column 'at' has missing timestamps; got 1 \({place}\); drop them"
    run = BASE.count().run(shuffled(spark, missing))
    number, offset_there = table["partition"][7].as_py(), table["offset"][7].as_py()
    actions = {
        "metrics": run.metrics, "counts": run.counts, "kafka_metrics": run.kafka_metrics,
        "explain": lambda: run.explain(offset=offset_there, partition=number),
        "plane": lambda: run.plane(table["key"][0].as_py(), partition=number),
        "of": lambda: run.of(table["key"][0].as_py()), "local": run.local,
        "by key": BASE.count().run(shuffled(spark, missing)).by_key().metrics,
    }  # fmt: skip
    for name, action in actions.items():
        with pytest.raises(InvalidData, match=told):
            pytest.fail(f"{name} gives {action()}")
    with readable_errors(), pytest.raises(Exception, match="missing timestamps"):
        BASE.count().run(shuffled(spark, missing)).table().collect()
    nowhere = table.set_column(2, "partition", pa.array([None] * 3 + [0] * (RECORDS - 3), pa.int32()))
    with pytest.raises(InvalidData, match="partition column 'partition' has missing values; got 3"):
        BASE.count().run(shuffled(spark, nowhere)).metrics()
    with pytest.raises(AggregationFailed, match="ZeroDivisionError"), readable_errors():
        broken = BASE.aggregate(broken=sk.reduce(lambda a, b: 1 // 0, "amount"))
        broken.run(shuffled(spark, table)).with_types(broken="int").table().collect()


def test_columns_that_spark_cannot_compute_are_one_line(spark: SparkSession) -> None:
    """A cast that failed in Java came up as Spark's own error in actions of ours."""
    df = spark.sql(
        "SELECT 'a' AS key, CAST(CONCAT('ban', id) AS timestamp) AS at, 0 AS partition, id AS offset FROM range(3)"
    )
    told = (
        r"^Spark cannot compute the columns of the records; got \[CAST_INVALID_INPUT\] The value 'ban\d' .*; values of"
    )
    with pytest.raises(InvalidData, match=told) as caught:
        BASE.count().run(df).metrics()
    assert "\n" not in str(caught.value)


def test_workers_without_the_library_are_named() -> None:
    from sessionkit.spark.types import readable_errors

    with pytest.raises(SparkUnavailable, match=r"No module named 'pyarrow'; os\.environ"), readable_errors():
        raise RuntimeError("Traceback … ModuleNotFoundError: No module named 'pyarrow' …")
    # of a bare Python, to which only the package itself was brought: the first that it misses
    with pytest.raises(SparkUnavailable, match=r"No module named 'lazy_loader'; os\.environ"), readable_errors():
        raise RuntimeError("…/sessionkit/__init__.py\", line 3 … ModuleNotFoundError: No module named 'lazy_loader'\n")
    with pytest.raises(RuntimeError, match="something else"), readable_errors():
        raise RuntimeError("something else")


def test_types_of_functions(spark: SparkSession) -> None:
    from sessionkit.spark.types import readable_errors

    df = shuffled(spark, records(1))
    plan = BASE.aggregate(
        tally=sk.aggregation(
            initializer=dict,
            aggregator=lambda key, value, a: {**a, str(value): a.get(str(value), 0) + 1},
            merger=lambda key, a, b: {word: a.get(word, 0) + b.get(word, 0) for word in {**a, **b}},
            value="word",
        )
    )
    with readable_errors():
        counted = plan.run(df).with_types(tally="map<string, int>").table().toArrow()["tally"].to_pylist()
    assert [dict(entries) for entries in counted] == plan.run(records(1))._outcome.folds["tally"].results(
        _rows(plan.run(records(1)))
    ).tolist()
    with pytest.raises(UnsupportedData, match="does not fit into struct<w1: int32>"), readable_errors():
        plan.run(df).with_types(tally="struct<w1: int>").table().collect()
    with pytest.raises(InvalidArgument, match="with_types takes names of aggregations"):
        plan.run(df).with_types(other="int")
    functions = {
        "initializer": lambda: None,
        "aggregator": lambda key, value, a: None,
        "merger": lambda key, a, b: None,
    }
    nothing = BASE.aggregate(nothing=sk.aggregation(**functions))
    with pytest.raises(UnsupportedData, match="the type of 'nothing' cannot be determined"):
        nothing.run(df).table()


def _rows(run: sk.Run) -> Any:
    from sessionkit.views.tables import table_rows

    return table_rows(run._outcome)
