"""Dropped records as an output: as they came, with how late they were, what closed their windows, what would keep them.

With a broker: tests/kafka/test_dropped_records.py.
"""

import base64
import datetime as dt
import json
import os
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument, MissingColumn, UnsupportedData
from sessionkit.records.keys import key_bytes
from tests.kinds import shown_in_ms
from tests.optional import DataFrame, SparkSession
from tests.spark.common import BASE, GRACE_MS, WINDOWS, collected, plan_of, read_stream, records, shuffled, write_files

pytest.importorskip("pyspark", reason="pyspark is not installed")

pytestmark = pytest.mark.spark

Sent = tuple[bytes | None, str | bytes | None, dict[str, str]]  # key, value, headers
OF_WHOLE_DATA = ("closed_by", "enough_grace_ms")


def sent(rows: Iterable[Any]) -> list[Sent]:
    """Records of Kafka, and that no header is there twice."""
    found = []
    for row in rows:
        headers = {header.key: header.value.decode() for header in row.headers}
        assert len(headers) == len(row.headers)
        found.append((None if row.key is None else bytes(row.key), row.value, headers))
    return found


def of_tables(batches: list[pa.Table]) -> list[Sent]:
    return [
        (row["key"], row["value"], {header["key"]: header["value"].decode() for header in row["headers"]})
        for row in pa.concat_tables(batches).to_pylist()
    ]


def in_order(found: list[Sent]) -> list[Sent]:
    def place(one: Sent) -> tuple[int, ...]:
        return tuple(int(one[2].get(name, -1)) for name in ("partition", "offset", "window_start_ms"))

    return sorted(found, key=place)


def without(found: list[Sent], names: Iterable[str]) -> list[Sent]:
    return [(key, value, {name: said[name] for name in said if name not in names}) for key, value, said in found]


def expected(plan: sk.Plan, table: pa.Table) -> list[Sent]:
    """What a local run says, and which record closed a window by a search through all of them."""
    local = shown_in_ms(plan).run(table)
    trace, lag_ms = local.trace, local.plan.windows.close_lag_ms
    seen = trace.records().to_pylist()
    came = {(row["partition"], row["offset"]): row for row in table.to_pylist()}
    found: list[Sent] = []
    for row in local.dropped().to_pylist():
        names = ("reason", "partition", "offset", "timestamp_ms", "stream_time_ms", "enough_grace_ms")
        said = {name: row[name] for name in (*names, "window_start_ms", "window_end_ms") if name in row}
        if row["reason"] == "late":
            open_until_ms = row["stream_time_ms"] - row["missing_grace_ms"]
            closing = (
                each["offset"]
                for each in seen
                if each["partition"] == row["partition"] and each["stream_time_ms"] > open_until_ms
            )
            said["lateness_ms"] = row["stream_time_ms"] - row["timestamp_ms"]
            said["close_time_ms"] = row["stream_time_ms"] - lag_ms
            said["closed_by"] = next(closing)
        record = came[row["partition"], row["offset"]]
        at = record["at"].strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        value = {name: record[name] for name in ("amount", "price", "ratio", "word", "unused")}
        price = value["price"]  # all of its digits, as a number
        value["price"] = None if price is None else "price"
        key = None if row["key"] is None else key_bytes(row["key"])
        text = json.dumps({"at": at, **value}, separators=(",", ":")).replace(':"price"', f":{price}")
        found.append((key, text, {name: str(each) for name, each in said.items() if each is not None}))
    return found


def closed_by_of_windows(local: sk.Run) -> dict[tuple[int, str, int], int]:
    """Which record closed each window that the trace has, by partition, key and start."""
    return {
        (row["partition"], row["key"], row["window_start_ms"]): row["closed_by"]
        for row in local.trace.windows().to_pylist()
    }


@pytest.mark.parametrize("kind", WINDOWS)
def test_dropped_records_of_a_batch_say_what_a_local_run_says(spark: SparkSession, kind: str) -> None:
    table, plan = records(2), plan_of(WINDOWS[kind], "on_window_update")
    local = plan.run(table)
    rows = sk.to_kafka(plan.run(shuffled(spark, table)), rows="dropped", partitions=5)
    assert rows.columns == ["key", "value", "partition", "timestamp", "headers"]
    collected_rows = rows.collect()
    found = sent(collected_rows)
    assert in_order(found) == in_order(expected(plan, table))
    assert {said["reason"] for _, _, said in found} >= {"late", "null_key"}
    for row, (key, _, said) in zip(collected_rows, found, strict=True):
        assert row.partition == (None if key is None else sk.partition_for(key, 5))
        assert row.timestamp.timestamp() * 1_000 == pytest.approx(int(said["timestamp_ms"]), abs=1e-3)
    if kind != "session":  # these windows are in the trace, if another record made them
        closed, compared = closed_by_of_windows(local), 0
        for key, _, said in found:
            window = (int(said["partition"]), "" if key is None else key.decode(), int(said.get("window_start_ms", -1)))
            if window in closed:
                assert int(said["closed_by"]) == closed[window]
                compared += 1
        assert compared > 20


def test_what_closed_a_session_and_which_grace_would_have_kept_a_record(spark: SparkSession) -> None:
    """By hand: gap 10, grace 5: a session that ends at e is closed by the first stream time from e + 16 on."""
    times = [("ada", 100), ("bob", 116), ("bob", 117), ("ada", 100), ("ada", 94), ("bob", 140), ("ada", 99)]
    rows = [(key, ms, n, 0, 10 + n) for n, (key, ms) in enumerate(times)]
    df = spark.createDataFrame(rows, "key string, at long, n int, partition int, offset long")
    plan = sk.group_by_key("key", timestamp="at", unit="ms", partition="partition", offset="offset")
    run = plan.windowed_by(sk.SessionWindows(inactivity_gap_ms=10, grace_ms=5)).count().run(df)
    assert [
        (said["offset"], said["lateness_ms"], said["close_time_ms"], said["closed_by"], said["enough_grace_ms"])
        for _, _, said in sent(sk.to_kafka(run, rows="dropped").collect())
    ] == [
        ("13", "17", "102", "11", "7"),  # the session at 100 was closed by the record at 116
        ("14", "23", "102", "11", "7"),  # it would have joined that session, too, which ended at 100 and not at 94
        ("16", "41", "125", "11", "30"),
    ]


def test_a_record_before_the_one_that_closed_its_window_counts(spark: SparkSession) -> None:
    """`closed_by` is the line between the places where the record would have counted and where it is dropped."""
    table = records(1).slice(0, 300)
    table = table.filter(pa.compute.is_valid(table["key"]))
    plan = BASE.windowed_by(WINDOWS["tumbling"]).count()
    found = [said for _, _, said in sent(sk.to_kafka(plan.run(shuffled(spark, table)), rows="dropped").collect())]
    offsets = table["offset"].to_numpy()
    assert len(found) > 20
    for said in found[:20]:
        late, closing = (np.flatnonzero(offsets == int(said[name]))[0] for name in ("offset", "closed_by"))
        for place, is_kept in ((closing, True), (closing + 1, False)):
            order = [*range(place), late, *(row for row in range(place, len(table)) if row != late)]
            moved = table.take(pa.array(order)).set_column(3, "offset", pa.array(offsets))
            assert (int(offsets[place]) not in plan.run(moved).dropped()["offset"].to_pylist()) == is_kept


def test_by_key_gives_the_same(spark: SparkSession) -> None:
    table, plan = records(2), plan_of(WINDOWS["session"], "on_window_update")
    run = plan.run(shuffled(spark, table)).by_key()
    found = sent(sk.to_kafka(run, rows="dropped").collect())
    assert in_order(found) == in_order(expected(plan, table))


def test_the_value_is_the_record_as_it_came(spark: SparkSession) -> None:
    """Every column of the DataFrame, whether the plan reads it or not; sk.from_kafka reads the value back."""
    row = {
        "user": "a\"'<é", "at": dt.datetime(2026, 3, 2, 9, 0, 0, 123456), "price": Decimal("1.50"), "tags": ["x", None],
        "of.what": {"n": 2**62}, "raw": b"\x00\xff", "nothing": None, "p": 0, "o": 7,
    }  # fmt: skip
    fields = "user string, at timestamp, price decimal(9,2), tags array<string>, `of.what` struct<n: long>, raw binary"
    later = {**row, "user": "bob", "at": row["at"] + dt.timedelta(hours=1), "o": 6}
    df = spark.createDataFrame([row, later], f"{fields}, nothing string, p int, o long")
    plan = sk.group_by_key("user", timestamp="at", partition="p", offset="o")
    plan = plan.windowed_by(sk.SessionWindows(inactivity_gap="1m", grace="0s")).count()
    [(key, value, said)] = sent(sk.to_kafka(plan.run(df), rows="dropped").collect())
    assert key == row["user"].encode() and said["offset"] == "7"
    assert json.loads(value or "") == {
        "user": row["user"], "at": "2026-03-02T09:00:00.123456Z", "price": 1.5, "tags": ["x", None],
        "of.what": {"n": 2**62}, "raw": base64.b64encode(b"\x00\xff").decode(), "nothing": None,
    }  # fmt: skip
    again = spark.createDataFrame([(key, value.encode(), 0, 1, row["at"])], KAFKA)  # type: ignore[union-attr]
    [back] = sk.from_kafka(again, value=f"{fields}, nothing string").drop("key", "offset").collect()
    assert {name: back[name] for name in row if name in back} == {
        name: row[name] if name != "of.what" else back[name] for name in row if name in back
    }
    assert back["of.what"].n == 2**62


KAFKA = "key binary, value binary, partition int, offset long, timestamp timestamp"
AT = dt.datetime(2026, 3, 2, 9)


@pytest.mark.parametrize(("form", "value"), [("bytes", b'{"n":1,"m":2}'), ("string", '{"n":1,"m":2}')])
def test_a_value_that_was_not_taken_apart_goes_out_as_it_is(spark: SparkSession, form: str, value: Any) -> None:
    """Also beside columns that were made of it."""
    from pyspark.sql import functions as F

    rows = [(b"bob", b"{}", 0, 0, AT + dt.timedelta(hours=1)), (b"ada", b'{"n":1,"m":2}', 0, 1, AT)]
    loaded = sk.from_kafka(spark.createDataFrame([*rows, (b"ada", None, 0, 2, AT)], KAFKA), value=form)
    found = sent(sk.to_kafka(from_topic().run(loaded), rows="dropped").collect())
    assert [(key, each) for key, each, _ in found] == [(b"ada", value), (b"ada", None)]
    made = loaded.withColumn("n", F.get_json_object(loaded.value.cast("string"), "$.n").cast("int"))
    plan = from_topic().aggregate(most=sk.max("n"))
    assert [each for _, each, _ in sent(sk.to_kafka(plan.run(made), rows="dropped").collect())] == [value, None]


def test_a_value_in_json_goes_out_as_it_came_in(spark: SparkSession) -> None:
    """What a record of Kafka has beside its value is not in it; a record without a value still has none."""
    rows = [(b"bob", b"{}", 0, 0, AT + dt.timedelta(hours=1)), (b"ada", b'{"n":1,"m":2}', 0, 1, AT)]
    loaded = sk.from_kafka(spark.createDataFrame([*rows, (b"ada", None, 0, 2, AT)], KAFKA), value="n bigint, m bigint")
    found = sent(sk.to_kafka(from_topic().run(loaded), rows="dropped").collect())
    assert [(key, each) for key, each, _ in found] == [(b"ada", '{"n":1,"m":2}'), (b"ada", None)]
    nothing_else = loaded.drop("n", "m")
    assert [each for _, each, _ in sent(sk.to_kafka(from_topic().run(nothing_else), rows="dropped").collect())] == [
        None,
        None,
    ]


def test_a_time_and_a_key_that_are_not_those_of_kafka_are_in_the_value(spark: SparkSession) -> None:
    """Though they have the names: the time is a number of seconds, and the key is one of two columns."""
    rows = [("a", "x", 100, 0, 0), ("a", "x", 1, 0, 1)]
    df = spark.createDataFrame(rows, "key string, page string, timestamp long, partition int, offset long")
    plan = sk.group_by_key(
        "key", "page", sep="|", timestamp="timestamp", unit="s", partition="partition", offset="offset"
    )
    run = plan.windowed_by(sk.SessionWindows(inactivity_gap="1s", grace="0s")).count().run(df)
    [(key, value, said)] = sent(sk.to_kafka(run, rows="dropped").collect())
    assert (key, json.loads(value or "")) == (b"a|x", {"key": "a", "page": "x", "timestamp": 1})
    assert said["timestamp_ms"] == "1000"


def from_topic() -> sk.Plan:
    plan = sk.group_by_key("key", timestamp="timestamp", partition="partition", offset="offset")
    return plan.windowed_by(sk.SessionWindows(inactivity_gap="1m", grace="0s")).count()


def test_what_no_window_closed_has_only_a_reason(spark: SparkSession) -> None:
    schema = "user string, page string, at long, n int, p int, o long"
    rows = [("a", "x", 10, 1, 0, 0), ("a", None, 11, 1, 0, 1), ("a", "x", None, 1, 0, 2), ("a", "x", -5, 1, 0, 3)]
    plan = sk.group_by_key("user", "page", sep="|", timestamp="at", unit="ms", partition="p", offset="o",
                           on_bad_time="drop")  # fmt: skip
    plan = plan.windowed_by(sk.SlidingWindows(time_difference_ms=5, grace_ms=5)).aggregate(total=sk.sum("n"))
    df = spark.createDataFrame([*rows, ("a", "x", 12, None, 0, 4)], schema)
    found = sent(sk.to_kafka(plan.run(df), rows="dropped", partitions=2).collect())
    assert [(key, said["reason"], said["offset"]) for key, _, said in found] == [
        (None, "null_key", "1"), (b"a|x", "bad_time", "2"), (b"a|x", "negative_time", "3"), (b"a|x", "null_value", "4"),
    ]  # fmt: skip
    assert [said.get("timestamp_ms") for *_, said in found] == ["11", None, "-5", "12"]
    assert all(said.keys() <= {"reason", "partition", "offset", "timestamp_ms", "stream_time_ms"} for *_, said in found)
    assert json.loads(found[0][1] or "") == {"user": "a", "page": None, "at": 11, "n": 1}


# ---- on a stream


@pytest.mark.parametrize("kind", ["session", "hopping"])
def test_a_stream_sends_the_same_without_what_needs_whole_data(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    table, plan = records(2), plan_of(WINDOWS[kind], "on_window_close")
    run = plan.stream(read_stream(spark, write_files(table, tmp_path / "in", [400, 800])))
    with collected(sk.to_kafka(run, rows="dropped"), tmp_path / "checkpoint") as batches:
        found = of_tables(batches)
    assert len(batches) == 3
    absent = OF_WHOLE_DATA if kind == "session" else ("closed_by",)
    assert in_order(found) == in_order(without(expected(plan, table), absent))
    assert sum(said["reason"] == "late" for *_, said in found) > 50


@pytest.fixture
def compiling(spark: SparkSession) -> Iterator[SparkSession]:
    """A session that compiles its queries, as those of users do: only there is a null found where none may be."""
    settings = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "CODEGEN_ONLY"}
    before = {name: str(spark.conf.get(name)) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value)


def test_write_writes_the_records_beside_the_results(compiling: SparkSession, tmp_path: Path) -> None:
    """Files and a topic have the same; what else the query writes is as it is without records."""
    from pyspark.sql import functions as F

    spark = compiling
    table = records(2)
    plan = sk.group_by_key("key", "word", sep="|", timestamp="at", partition="partition", offset="offset")
    plan = plan.windowed_by(WINDOWS["session"]).aggregate(total=sk.sum("amount"))
    stream = read_stream(spark, write_files(table, tmp_path / "in", [700]))
    run = plan.stream(stream.selectExpr("*", "1 AS one", "named_struct('two', 2) AS never_null"))
    topic: list[Sent] = []
    written: list[DataFrame] = []

    def to_topic(rows: DataFrame, _: int) -> None:
        topic.extend(sent(sk.to_kafka(run, rows="dropped", dropped=rows).collect()))
        written.append(rows)

    late = {"folder": tmp_path / "late", "function": to_topic}
    for name, sink in late.items():
        query = run.write(
            checkpoint=tmp_path / f"of {name}", dropped=sink, changelog=tmp_path / f"changelog of {name}",
            available_now=True,
        )  # fmt: skip
        query.awaitTermination()
    files = spark.read.parquet(str(tmp_path / "late"))
    of_batch = plan.run(shuffled(spark, table).selectExpr("*", "1 AS one", "named_struct('two', 2) AS never_null"))
    of_batch = of_batch.dropped(missing_grace=False, records=True)
    names = of_batch.columns
    assert names == [
        *("partition", "offset", "key", "word", "timestamp", "stream_time", "reason"),
        *("lateness_ms", "close_time", "record"),
    ]
    assert files.columns == [*names, "batch"] and written[0].columns == names
    order = ("partition", "offset")
    assert files.select(*names).orderBy(*order).collect() == of_batch.orderBy(*order).collect()
    lags = files.where("reason = 'late'").select(
        F.min(F.unix_millis("stream_time") - F.unix_millis("close_time")),
        F.max(F.unix_millis("stream_time") - F.unix_millis("close_time")),
    )
    assert [tuple(row) for row in lags.collect()] == [(13_000, 13_000)]
    of_files = sent(sk.to_kafka(run, rows="dropped", dropped=files.drop("batch")).collect())
    assert in_order(topic) == in_order(of_files) and len(topic) > 100
    assert {"close_time_ms", "lateness_ms"} <= {name for *_, said in topic for name in said}
    changelog = plan.run(table).changelog()
    got = (
        spark.read.parquet(str(tmp_path / "changelog of folder")).drop("batch").toArrow().select(changelog.column_names)
    )
    assert sorted(map(repr, got.to_pylist())) == sorted(map(repr, changelog.cast(got.schema).to_pylist()))


def test_only_some_of_the_dropped_records(spark: SparkSession) -> None:
    table = records(2)
    run = BASE.count().run(shuffled(spark, table))
    late = run.dropped(records=True).where("reason = 'late'")
    found = sent(sk.to_kafka(run, rows="dropped", dropped=late).collect())
    everything = sent(sk.to_kafka(run, rows="dropped").collect())
    assert in_order(found) == in_order([each for each in everything if each[2]["reason"] == "late"])
    assert 0 < len(found) < len(everything)
    assert all(int(said["enough_grace_ms"]) > GRACE_MS for *_, said in found)


# ---- what is refused


def test_what_to_kafka_refuses_of_dropped_records(spark: SparkSession) -> None:
    df = shuffled(spark, records(1))
    run = BASE.count().run(df)
    with pytest.raises(
        InvalidArgument, match=r"""rows must be a view of the run; got 'late'; "changelog" or "dropped"$"""
    ):
        sk.to_kafka(run, rows="late", partitions=1)  # type: ignore[arg-type]
    with pytest.raises(
        InvalidArgument, match=r'changelog= goes with .*; got rows="dropped"; rows="changelog", or dropped='
    ):
        sk.to_kafka(run, rows="dropped", changelog=run.changelog())
    with pytest.raises(
        InvalidArgument, match=r'dropped= goes with .*; got rows="changelog"; rows="dropped", or changelog='
    ):
        sk.to_kafka(run, partitions=1, dropped=run.dropped())
    with pytest.raises(MissingColumn, match=r"must have a column 'record'; got .*rows of run.dropped\(records=True\)"):
        sk.to_kafka(run, rows="dropped", dropped=run.dropped())
    with pytest.raises(InvalidArgument, match="partitions must be an integer of 1 or more; got None"):
        sk.to_kafka(run)
    with pytest.raises(InvalidArgument, match="partitions must be an integer of 1 or more; got 0"):
        sk.to_kafka(run, rows="dropped", partitions=0)
    with pytest.raises(InvalidArgument, match="to_kafka writes a run on Spark; got Run"):
        sk.to_kafka(BASE.count().run(records(1)), rows="dropped")
    twice = BASE.count().run(df.select("*", df.word.alias("Word")))
    with pytest.raises(
        InvalidArgument, match=r"cannot be given as it came; got two columns 'word'; .* different names"
    ):
        twice.dropped(records=True)


def test_a_column_that_workers_cannot_hold_is_refused_where_records_travel(spark: SparkSession, tmp_path: Path) -> None:
    """Without it a query that goes on from its checkpoint writes its dropped records from then on."""
    table, folder, checkpoint = records(1), tmp_path / "in", tmp_path / "checkpoint"
    write_files(table.slice(0, 400), folder, [])
    run = BASE.count().stream(read_stream(spark, folder).selectExpr("*", "make_interval(1) AS odd"))
    with pytest.raises(
        UnsupportedData, match=r"cannot be given as it came; got .*; leave its column out before plan\.run"
    ):
        run.write(checkpoint=checkpoint, dropped=tmp_path / "late")
    assert not checkpoint.exists()
    run.write(checkpoint=checkpoint, events=tmp_path / "events", available_now=True).awaitTermination()
    later = write_files(table.slice(400), tmp_path / "more", []) / "00000.parquet"
    os.utime(later, (1_700_000_009,) * 2)
    later.rename(folder / "later.parquet")
    run = BASE.count().stream(read_stream(spark, folder))
    run.write(checkpoint=checkpoint, dropped=tmp_path / "late", available_now=True).awaitTermination()
    local = BASE.count().run(table).dropped()
    offsets = [offset for offset in local["offset"].to_pylist() if offset >= table["offset"][400].as_py()]
    late = spark.read.parquet(str(tmp_path / "late"))
    assert sorted(row[0] for row in late.select("offset").collect()) == offsets != []
    words = dict(zip(table["offset"].to_pylist(), table["word"].to_pylist(), strict=True))
    assert all(json.loads(row.record)["word"] == words[row.offset] for row in late.collect())
