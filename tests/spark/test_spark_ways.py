"""The ways that records take on Spark: read from Parquet by the tasks, shuffled, by key. All give the local results."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sessionkit.errors import InvalidArgument, InvalidData
from sessionkit.spark.query.running import cores_at_least
from sessionkit.spark.reading.tasks import shares_for
from tests.optional import SparkSession
from tests.spark.test_spark_batch import BASE, BUILT_INS, FUNCTIONS, assert_all_views, assert_same, records, shuffled
from tests.spark.test_spark_windows import WINDOWS, plan_of
from tests.spark.test_spark_windows import assert_all_views as assert_all_window_views

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("small_steps")]
STRAIGHT = "straight from the Parquet files"


@pytest.fixture
def in_new_york(spark: SparkSession) -> Iterator[None]:
    """Spark hands times over in this zone."""
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield
    spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.fixture
def nine_tasks(spark: SparkSession) -> Iterator[None]:
    """As many as Spark makes after a shuffle."""
    usual = str(spark.conf.get("spark.sql.shuffle.partitions"))
    spark.conf.set("spark.sql.shuffle.partitions", "9")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", usual)


def kept_apart(folder: Path, table: pa.Table, **options: Any) -> str:
    """Files of several row groups, each with one partition; offsets do not overlap, one row group is in no order."""
    folder.mkdir()
    writers: dict[int, pq.ParquetWriter] = {}
    for number in np.unique(table["partition"].to_numpy()):
        mine = table.filter(pa.compute.equal(table["partition"], int(number)))
        for part in range(3):
            rows = np.arange(part * len(mine) // 3, (part + 1) * len(mine) // 3)
            rows = rows[::-1] if part == 1 else rows
            if part not in writers:
                writers[part] = pq.ParquetWriter(folder / f"{part} ü.parquet", table.schema, **options)
            writers[part].write_table(mine.take(pa.array(rows)))
    for writer in writers.values():
        writer.close()
    return str(folder)


@pytest.mark.usefixtures("in_new_york")
def test_row_groups_that_tasks_read_themselves(spark: SparkSession, tmp_path: Path) -> None:
    table = records(3)
    df = spark.read.parquet(kept_apart(tmp_path / "apart", table, use_dictionary=["word"]))
    run = BUILT_INS.run(df.withColumnRenamed("unused", "other").select("*"))
    before = len(spark.sparkContext.statusTracker().getJobIdsForGroup(None))
    assert STRAIGHT in repr(run)
    assert len(spark.sparkContext.statusTracker().getJobIdsForGroup(None)) == before
    assert_all_views(run, BUILT_INS.run(table))


def test_folders_that_name_the_partition(spark: SparkSession, tmp_path: Path) -> None:
    table = records(2)
    spark.createDataFrame(table).coalesce(1).sortWithinPartitions("partition", "offset").write.partitionBy(
        "partition"
    ).parquet(str(tmp_path / "folders"))
    df = spark.read.parquet(str(tmp_path / "folders"))
    plan = plan_of(WINDOWS["hopping"], "on_window_close")
    run, local = plan.run(df), plan.run(table)
    assert STRAIGHT in repr(run)
    assert_same(run.table(), local.table())
    file = next((tmp_path / "folders").glob("partition=0/*.parquet"))
    pq.write_table(pq.read_table(file).slice(5), file)
    with pytest.raises(InvalidData, match="a file has changed since the run was created"):
        run.metrics()
    file.unlink()
    assert "shuffled" in repr(plan.run(df))


def test_whatever_is_more_than_such_a_scan_is_shuffled(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    table = records(2)
    df = spark.read.parquet(kept_apart(tmp_path / "apart", table))
    sums = df.groupBy("partition", "offset").agg(F.first("key").alias("key"), F.first("at").alias("at"))
    cached = spark.read.option("mergeSchema", True).parquet(str(tmp_path / "apart"))
    plan = BASE.count()
    assert STRAIGHT in repr(plan.run(cached))
    other = {
        "Filter": df.where("offset > 200"), "Limit": df.limit(10), "Union": df.union(df),
        "Sample": df.sample(0.5, seed=1), "Join": df.join(spark.range(1), F.col("offset") == F.col("id")),
        "Aggregate": sums, "Deduplicate|Aggregate": df.dropDuplicates(["partition", "offset"]),
        "Upper": df.withColumn("key", F.upper("key")),
        "Cast": df.withColumn("at", F.col("at").cast("timestamp_ntz")).withColumn("at", F.col("at").cast("timestamp")),
        "Literal": df.withColumn("key", F.lit("ada")), "Sort": df.sort("key"),
        "ignorecorruptfiles": spark.read.option("ignoreCorruptFiles", True).parquet(str(tmp_path / "apart")),
        "LogicalRDD|LocalRelation|LogicalRelation": spark.createDataFrame(table),
    }  # fmt: skip
    for reason, frame in other.items():
        said = repr(plan.run(frame))
        assert "so they are shuffled and sorted first (" in said
        assert any(each in said for each in reason.split("|")), said
    assert_same(plan.run(other["Filter"]).table(), plan.run(table.filter(pa.compute.field("offset") > 200)).table())
    cached.cache()
    try:
        assert "InMemoryRelation" in repr(plan.run(cached))
    finally:
        cached.unpersist()


@pytest.mark.parametrize(("kind", "strategy"), [("sessions", "on_window_close"), ("sliding", "on_window_update")])
@pytest.mark.usefixtures("nine_tasks")
def test_by_key(spark: SparkSession, tmp_path: Path, kind: str, strategy: str) -> None:
    table = records(2)  # partitions 0 to 3: two shares each
    if kind == "sessions":
        plan = BUILT_INS.emit(strategy)
        run = plan.run(shuffled(spark, table)).by_key()
        assert "shuffled" in repr(run)
        assert_all_views(run, plan.run(table))
        assert run._rows(run._job("table", run._empty.table().schema)).rdd.getNumPartitions() == 8
    else:
        plan = plan_of(WINDOWS[kind], strategy)
        run = plan.run(spark.read.parquet(kept_apart(tmp_path / "apart", table))).by_key()
        assert STRAIGHT in repr(run)
        assert_all_window_views(run, plan.run(table))
    assert "deals the records out by key" in repr(run)


def test_functions_by_key(spark: SparkSession) -> None:
    table = records(1)  # partition 2 only: four shares
    run = FUNCTIONS.run(shuffled(spark, table)).by_key()
    assert_same(run.table(), FUNCTIONS.run(table).table())


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_by_key_without_a_number_of_tasks(unset: SparkSession, monkeypatch: pytest.MonkeyPatch, adaptive: str) -> None:
    """Each of Spark's 200 tasks has to start: 5 million records took twice as long as with 8."""
    table = records(2)  # partitions 0 to 3
    plan, df = BUILT_INS.emit("on_window_update"), shuffled(unset, table)
    usual = str(unset.conf.get("spark.sql.adaptive.enabled"))
    unset.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        for fewest, shares in ((100_000, 1), (len(table) // 12, 3), (1, 4)):
            monkeypatch.setattr("sessionkit.spark.reading.tasks.FEWEST_OF_A_SHARE", fewest)
            run = plan.run(df).by_key()
            tasks = run._rows(run._job("table", run._empty.table().schema)).rdd.getNumPartitions()
            assert (run._shares, tasks) == (shares, 4 * shares)
            assert_same(run.table(), plan.run(table).table())
        assert run.metrics() == plan.run(table).metrics()
        unset.conf.set("spark.sql.shuffle.partitions", "21")
        assert plan.run(df).by_key()._shares == 5, "the number that a user has set"
    finally:
        unset.conf.set("spark.sql.adaptive.enabled", usual)


@pytest.mark.parametrize(
    ("master", "cores", "records_of_one", "shares"),
    [
        ("local[2]", 2, 1_250_000, 4),
        ("local[1]", 1, 99_999, 1),
        ("local[*]", 64, 10**9, 32),
        ("yarn", 2, 10**9, 32),  # which may show more cores later
        ("yarn", 1_000, 10**9, 32),
        ("yarn", 1_000, 500_000, 5),
        ("", 0, 10**9, 32),  # through Spark Connect
    ],
)
def test_shares_of_a_partition(master: str, cores: int, records_of_one: int, shares: int) -> None:
    session: Any = SimpleNamespace()
    if master:
        session._sc = SimpleNamespace(master=master, defaultParallelism=cores)
    assert shares_for(cores_at_least(session), records_of_one) == shares


def test_a_stream_has_a_verb_of_its_own(spark: SparkSession) -> None:
    plan, table = BASE.count(), records(1)
    stream = spark.readStream.format("rate").load()
    stream = stream.selectExpr("cast(value as string) key", "timestamp at", "0 partition", "value offset")
    with pytest.raises(InvalidArgument, match=r"run takes records that are all there; .*; plan\.stream\(df\)"):
        plan.run(stream)
    with pytest.raises(InvalidArgument, match=r"stream takes a streaming DataFrame; .*; plan\.run\(df\)"):
        plan.stream(shuffled(spark, table))
    with pytest.raises(InvalidArgument, match=r"a stream is a DataFrame of Spark; got Table; .*plan\.run\(data\)"):
        plan.stream(table)
    with pytest.raises(
        InvalidArgument, match=r"Plan\.stream cannot be called like this; .*'store'; plan\.stream\(df\)"
    ):
        plan.stream(stream, store=None)  # type: ignore[call-arg]
    assert not hasattr(plan.run(table), "by_key") and not hasattr(plan.stream(stream), "by_key")
