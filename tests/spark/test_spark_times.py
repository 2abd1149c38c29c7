"""Times and keys on Spark: batch, stream, files that a stream writes, and records for Kafka."""

import datetime as dt
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sessionkit as sk
from sessionkit.errors import NumberOverflow
from tests.kinds import each_kind, group_in_ms
from tests.spark.common import IS_WHOLE, STRATEGIES, collected, in_order, read_stream, write_files

pytest.importorskip("pyspark", reason="pyspark is not installed")

from sessionkit.spark.query.result_folders import NOTE
from sessionkit.spark.types import readable_errors
from tests.optional import SparkSession

pytestmark = pytest.mark.spark

ZONE, SEP = "Europe/Berlin", "\\E.|"  # a separator of characters that mean something in a pattern
CHANGE = dt.datetime(2024, 10, 27, 1, tzinfo=dt.UTC)
KINDS = each_kind(60_000)
UPDATES, FINALS = STRATEGIES
# each kind that is kept in its own way, and each strategy with sessions and with windows
TRIED = {"session": (UPDATES, FINALS), "hopping": (FINALS,), "sliding": (UPDATES,)}
if IS_WHOLE:
    TRIED = dict.fromkeys(KINDS, STRATEGIES)


def night(count: int = 300) -> pa.Table:
    """Records around the hour that clocks in Berlin show twice; late ones and null keys among them."""
    rng = np.random.default_rng(5)
    minutes = np.arange(count) - count // 2 - rng.integers(0, 40, count) * (rng.random(count) < 0.4)
    at = [CHANGE + dt.timedelta(minutes=int(step)) for step in minutes]
    users = np.array(["ada", "é", "x.y", None], object)[rng.integers(0, 4, count)]
    partition = rng.integers(0, 2, count)
    return pa.table(
        {"user": pa.array(users, pa.string()), "status": pa.array(rng.integers(-2, 3, count), pa.int32()),
         "at": pa.array(at, pa.timestamp("us", "UTC")), "part": pa.array(partition, pa.int32()),
         "place": pa.array(np.arange(count)), "amount": rng.integers(0, 9, count)},
    )  # fmt: skip


def plan_for(kind: str, emit: str = "on_window_update", group: Any = sk.group_by_key) -> sk.Plan:
    start = group("user", "status", sep=SEP, timestamp="at", unit=None, partition="part", offset="place")
    return start.windowed_by(KINDS[kind]).emit(emit).aggregate(count=sk.count(), most=sk.max("amount"))


@pytest.fixture
def berlin(spark: SparkSession) -> Iterator[SparkSession]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", ZONE)
    yield spark
    spark.conf.set("spark.sql.session.timeZone", before)


def assert_shown(got: pa.Table, expected: pa.Table) -> None:
    """The same columns of the same types, and the same values; of times the instant, which is all that Spark has."""
    assert got.column_names == expected.column_names
    for name in expected.column_names:
        kind = expected.schema.field(name).type
        if pa.types.is_timestamp(kind):
            assert got.schema.field(name).type == pa.timestamp("us", "UTC"), name
        elif name in ("user", "key_status"):
            assert got.schema.field(name).type == kind, name
        assert got[name].cast(kind).to_pylist() == expected[name].to_pylist(), name


@pytest.mark.parametrize("kind", TRIED)
def test_a_batch_shows_times_and_keys_as_a_local_run_does(berlin: SparkSession, kind: str) -> None:
    table = night()
    for plan in (plan_for(kind, strategy) for strategy in TRIED[kind]):
        df = berlin.createDataFrame(table)
        run = plan.run(df)
        there = table.set_column(2, "at", table["at"].cast(pa.timestamp("us", ZONE)))
        local = plan.run(in_order(there, "part", "place"))
        assert run.timezone == local.timezone == ZONE
        assert_shown(run.table().toArrow(), local.table())
        assert_shown(run.changelog().toArrow(), local.changelog())
        dropped = in_order(local.dropped(), "partition", "offset")
        assert_shown(in_order(run.dropped().toArrow(), "partition", "offset"), dropped)
        assert run.trace.records().columns[:4] == ["partition", "offset", "key", "timestamp_ms"], "traces keep ms"
        number = int(local.trace.records()["offset"][7].as_py())
        partition = int(local.trace.records()["partition"][7].as_py())
        said = run.explain(offset=number, partition=partition)
        whole = local.explain(offset=number, partition=partition)
        assert said == whole.replace(f"partition {partition}, ", ""), "it knows one partition"
        assert said.count(ZONE) == 1


def test_a_key_of_each_type(spark: SparkSession) -> None:
    at = pa.array([0, 1], pa.timestamp("us", "UTC"))
    for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.string(), pa.binary()):
        ids = pa.array([1, 2] if pa.types.is_integer(kind) else ["a", "b"]).cast(kind)
        df = spark.createDataFrame(pa.table({"id": ids, "at": at, "part": [0, 0], "place": [0, 1]}))
        start = sk.group_by_key("id", timestamp="at", partition="part", offset="place")
        table = start.windowed_by(KINDS["tumbling"]).count().run(df).table()
        assert dict(table.dtypes)["id"] == dict(df.dtypes)["id"]
        assert table.toArrow()["id"].to_pylist() == ids.to_pylist()


def test_what_lies_after_the_year_9999_names_the_way_out(spark: SparkSession) -> None:
    far = dt.datetime(9999, 12, 31, 23, 59, tzinfo=dt.UTC)
    df = spark.createDataFrame(
        pa.table({"id": ["a"], "at": pa.array([far], pa.timestamp("us", "UTC")), "part": [0], "place": [0]})
    )
    start = sk.group_by_key("id", timestamp="at", partition="part", offset="place")
    windows = sk.TimeWindows(size="1d", grace="0s")
    told = r"window_end has a time after the year 9999; got \d+ ms; .*run\.trace\.windows\(\)"
    run = start.windowed_by(windows).count().run(df)
    with pytest.raises(NumberOverflow, match=told), readable_errors():
        run.table().collect()
    assert [row.window_start_ms for row in run.trace.windows().collect()] == [
        int(far.timestamp()) // 86_400 * 86_400_000
    ]


@pytest.mark.parametrize("kind", ["session", "hopping"])
def test_a_stream_shows_times_and_keys_as_a_local_run_does(berlin: SparkSession, tmp_path: Path, kind: str) -> None:
    table, plan = night(), plan_for(kind)
    run = plan.stream(read_stream(berlin, write_files(table, tmp_path / "in", [100, 200])))
    there = table.set_column(2, "at", table["at"].cast(pa.timestamp("us", ZONE)))
    local = plan.run(in_order(there, "part", "place"))
    assert run.changelog().columns == local.changelog().column_names
    assert run.dropped().columns == local.dropped(missing_grace=False).column_names
    with collected(run.events(), tmp_path / "checkpoint") as batches:
        events = pa.concat_tables(batches)
    sent = events.filter(pa.compute.not_equal(events["what"], "dropped")).select(local.changelog().column_names)
    assert_shown(in_order(sent, "partition"), in_order(local.changelog(), "partition"))
    progress = run.progress()
    assert progress.timezone == ZONE and f"({ZONE})" in progress.line()


def test_files_of_a_stream_hold_timestamps_that_every_reader_knows(berlin: SparkSession, tmp_path: Path) -> None:
    run = plan_for("session").stream(read_stream(berlin, write_files(night(), tmp_path / "in", [150])))
    run.write(checkpoint=tmp_path / "c", changelog=tmp_path / "sent", available_now=True).awaitTermination()
    files = sorted((tmp_path / "sent").glob("batch=*/*.parquet"))
    for file in files:
        schema = pq.ParquetFile(file).schema
        kinds = {schema.column(i).name: schema.column(i).physical_type for i in range(len(schema))}
        assert {kinds[name] for name in ("window_start", "window_end", "timestamp")} == {"INT64"}, "Spark's is INT96"
    read = pq.read_table(files[0])
    assert read.schema.field("window_start").type in (pa.timestamp("us", "UTC"), pa.timestamp("us", ZONE))
    assert berlin.conf.get("spark.sql.parquet.outputTimestampType") == "INT96", "the user's own is as it was"


def test_a_stream_whose_columns_change_says_so_at_its_next_start(spark: SparkSession, tmp_path: Path) -> None:
    """A version before this one may have called them otherwise; who reads the results is told what they are called."""
    table, checkpoint, plan = night(), tmp_path / "checkpoint", plan_for("session")
    files = write_files(table.slice(0, 200), tmp_path / "in", [])
    begun = plan.stream(read_stream(spark, files))
    begun.write(checkpoint=checkpoint, changelog=tmp_path / "old", available_now=True).awaitTermination()
    old = ["key", "window_start_ms", "window_end_ms", "count", "most", "what", "timestamp_ms", "partition", "offset"]
    (checkpoint / NOTE).write_text(json.dumps({"changelog": old}))
    write_files(table.slice(200), tmp_path / "more", [])
    (tmp_path / "more" / "00000.parquet").rename(files / "00009.parquet")

    def go_on(folder: str) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run = plan.stream(read_stream(spark, files))
            run.write(checkpoint=checkpoint, changelog=tmp_path / folder, available_now=True).awaitTermination()
        return [str(each.message) for each in caught if "columns of" in str(each.message)]

    (said,) = go_on("new")
    assert "key, window_start_ms, window_end_ms, timestamp_ms disappeared, user, key_status, window_start" in said
    assert said.endswith("Write to a new folder or table")
    assert go_on("new") == []
    sent = pq.read_table(tmp_path / "new" / "batch=1")
    expected = plan.run(in_order(table, "part", "place")).changelog()
    later = expected.filter(pa.compute.greater_equal(expected["offset"], 200))
    assert in_order(sent, "partition")["count"].to_pylist() == in_order(later, "partition")["count"].to_pylist()


def test_records_for_kafka_have_keys_and_times_as_they_are_inside(spark: SparkSession) -> None:
    for kind in TRIED:
        run = plan_for(kind).run(spark.createDataFrame(night()))
        rows = plan_for(kind, group=group_in_ms).run(in_order(night(), "part", "place")).changelog().to_pylist()
        times = ("window_end_ms", "window_start_ms") if kind == "session" else ("window_start_ms",)
        keys = [row["key"].encode() + b"".join(row[name].to_bytes(8, "big") for name in times) for row in rows]
        found = sk.to_kafka(run, partitions=3).collect()
        assert len(keys) > 100
        assert sorted(bytes(row.key) for row in found) == sorted(keys)
        assert sk.to_kafka(run, partitions=3, changelog=run.changelog()).collect() == found


@pytest.mark.parametrize("ahead_is", ["drop", "keep"])
def test_records_ahead_of_their_arrival_are_dropped_or_kept_on_spark_as_here(
    spark: SparkSession, tmp_path: Path, ahead_is: Any
) -> None:
    table = night()
    got = np.datetime64(CHANGE.replace(tzinfo=None)) + np.arange(len(table)).astype("m8[m]") - np.timedelta64(150, "m")
    table = table.append_column("got", pa.array(got.astype("M8[us]")).cast(pa.timestamp("us", "UTC")))
    ahead = np.where(np.arange(len(table)) % 50 == 7, 90 * 60_000_000, 0)
    at = pa.array(table["at"].cast(pa.int64()).to_numpy() + ahead).cast(pa.timestamp("us", "UTC"))
    table = table.set_column(table.column_names.index("at"), "at", at)
    places: dict[str, Any] = {"timestamp": "at", "partition": "part", "offset": "place"}
    group = sk.group_by_key("user", **places, arrival="got", max_ahead="5m", ahead=ahead_is)
    plan = group.windowed_by(KINDS["session"]).emit(FINALS).aggregate(count=sk.count(), most=sk.max("amount"))
    local, files = plan.run(table), write_files(table, tmp_path / "in", [100, 200])
    run = plan.run(spark.read.parquet(str(files)))
    dropped = 6 if ahead_is == "drop" else 0
    assert run.metrics() == local.metrics() and local.metrics()["dropped-ahead"] == dropped
    assert set(run.remarks()) >= {each for each in local.remarks() if "ahead" in each} != set()
    names = ("partition", "offset", "reason")
    lost = [in_order(each.select(names), *names).to_pydict() for each in (local.dropped(), run.dropped().toArrow())]
    assert lost[0] == lost[1]
    assert run.table().count() == len(local.table())
    whole = ["partition", "user", "window_start", "window_end", "count", "most"]
    of_ada = local.table().filter(pa.compute.equal(local.table()["user"], "ada"))
    for ours, theirs in ((local.table(), run.by_key().table()), (of_ada, run.of("ada").table())):
        theirs = theirs if isinstance(theirs, pa.Table) else theirs.toArrow()
        rows = [in_order(each.select(whole), *whole[:3]).to_pydict() for each in (ours, theirs)]
        assert rows[0] == rows[1]
    with collected(plan.stream(read_stream(spark, files)).events(), tmp_path / "checkpoint") as batches:
        assert sum(reason == "ahead" for each in batches for reason in each["reason"].to_pylist()) == dropped


def test_ids_of_merges_are_made_of_each_column_of_the_key(berlin: SparkSession) -> None:
    table, plan = in_order(night(), "part", "place"), plan_for("session")
    found, local = plan.run(berlin.createDataFrame(table)).merges(ids="key"), plan.run(table).merges(ids="key")
    assert found.columns == local.column_names
    names = ["earlier_id", "later_id", "session_id", "user", "key_status"]
    assert [tuple(row) for row in found.select(*names).collect()] == [
        tuple(row.values()) for row in local.select(names).to_pylist()
    ]
    assert len(local) > 0
