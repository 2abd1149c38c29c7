"""Records of Kafka as columns, and a run's results as records of Kafka; without a broker, which tests/kafka has."""

import json
from typing import Any

import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument, InvalidData, MissingColumn, UnsupportedData
from sessionkit.records.keys import key_bytes
from sessionkit.spark.types import readable_errors
from tests.optional import DataFrame, SparkSession

pytest.importorskip("pyspark", reason="pyspark is not installed")

pytestmark = pytest.mark.spark

LOADED = "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, timestampType int"


def loaded(spark: SparkSession, *records: tuple[bytes | None, bytes | None]) -> DataFrame:
    """What `format("kafka")` gives for these keys and values."""
    rows = [(key, value, "t", 3, 7 + n, None, 0) for n, (key, value) in enumerate(records)]
    return spark.createDataFrame(rows, LOADED)


def read(df: DataFrame) -> list[tuple[Any, ...]]:
    with readable_errors():
        return [tuple(row) for row in df.drop("timestamp").collect()]


def test_keys_and_values_as_text_and_as_bytes(spark: SparkSession) -> None:
    df = loaded(spark, ("é".encode(), b"one"), (None, None), (b"", b""))
    records = sk.from_kafka(df, value="bytes")
    assert records.columns == ["key", "value", "partition", "offset", "timestamp"]
    assert read(records) == [("é", b"one", 3, 7), (None, None, 3, 8), ("", b"", 3, 9)]
    assert read(sk.from_kafka(df, key="bytes", value="string"))[0] == ("é".encode(), "one", 3, 7)


def test_json_gives_a_column_a_field(spark: SparkSession) -> None:
    df = loaded(
        spark,
        (b'{"carrier": "AA"}', b'{"minutes": 5, "at": "2024-01-01T00:00:00Z", "more": []}'),
        (b"{}", b'{"minutes": null}'),
        (None, None),
    )
    records = sk.from_kafka(df, key="carrier string", value="minutes bigint, at timestamp")
    assert records.columns == ["carrier", "minutes", "at", "partition", "offset", "timestamp"]
    rows = records.selectExpr("carrier", "minutes", "unix_millis(at)", "offset").collect()
    assert [tuple(row) for row in rows] == [
        *(("AA", 5, 1_704_067_200_000, 7), (None, None, None, 8), (None, None, None, 9))
    ]


@pytest.mark.parametrize(
    "value",
    [
        *(b'{"minutes": 1', b"", b"null", b"[1]", b'{"minutes": "\xff"}', b'{"minutes": 1} {"minutes": 2}'),
        *(b'{"minutes": "soon"}', b'{"minutes": 9223372036854775808}'),
    ],
)
def test_what_is_no_json_of_the_schema_stops_the_query(spark: SparkSession, value: bytes) -> None:
    records = sk.from_kafka(loaded(spark, (b"a", b'{"minutes": 1}'), (b"b", value)), value="minutes bigint")
    want = r"value of a record .* cannot be read; got offset 8 of partition 3; .*leave it out before from_kafka.*…\)$"
    with pytest.raises(InvalidData, match=want):
        read(records)


def test_a_key_that_is_no_text_stops_the_query(spark: SparkSession) -> None:
    df = loaded(spark, (b"\xff\xfe", b"x"))
    with pytest.raises(InvalidData, match=r"the key of a record .* offset 7 of partition 3; text in UTF-8"):
        read(sk.from_kafka(df, value="string"))
    assert read(sk.from_kafka(df, key="bytes", value="string"))[0][0] == b"\xff\xfe"


def test_what_is_refused_before_anything_runs(spark: SparkSession) -> None:
    df = loaded(spark)
    for clash in ("offset bigint", "minutes bigint, Key string", "a int, a string"):
        with pytest.raises(InvalidArgument, match="two columns of a record of Kafka have the same name"):
            sk.from_kafka(df, value=clash)
    for form in ("", "bigint", "minutes", "minutes bigint,", "no such type"):
        with pytest.raises(
            InvalidArgument, match=r'value= must say how to read the value; got .*; "string", "bytes", or fields'
        ):
            sk.from_kafka(df, value=form)
    with pytest.raises(MissingColumn, match="records of Kafka must have a column 'offset'"):
        sk.from_kafka(df.drop("offset"), value="string")
    with pytest.raises(UnsupportedData, match="column 'value' of records of Kafka must be binary; got string"):
        sk.from_kafka(df.withColumn("value", df.value.cast("string")), value="string")
    with pytest.raises(UnsupportedData, match="these are not records of Kafka on Spark"):
        sk.from_kafka(pa.table({}), value="string")


WINDOWS = {
    "session": sk.SessionWindows(inactivity_gap_ms=10, grace_ms=10),
    "hopping": sk.TimeWindows(size_ms=10, advance_ms=5, grace_ms=10),
    "sliding": sk.SlidingWindows(time_difference_ms=10, grace_ms=10),
}
KEYS: dict[str, list[Any]] = {"string": ["ada", "é", ""], "bigint": [1, -1, 2**62], "binary": [b"ada", b"\xff", b""]}


@pytest.mark.parametrize(("kind", "keys"), [("session", "string"), ("session", "bigint"), ("hopping", "binary")])
def test_results_as_records_of_kafka(spark: SparkSession, kind: str, keys: str) -> None:
    rows = [(KEYS[keys][i % 3], 20 + 7 * (i // 3), None if i % 3 == 1 else i, 0, i) for i in range(9)]
    df = spark.createDataFrame(rows, f"who {keys}, at bigint, n bigint, partition int, offset bigint")
    plan = sk.group_by_key("who", timestamp="at", unit="ms", partition="partition", offset="offset").windowed_by(
        WINDOWS[kind]
    )
    run = plan.aggregate(most=sk.max("n"), least=sk.min("n")).run(df)
    sent = sk.to_kafka(run, partitions=5)
    assert sent.dtypes == [("key", "binary"), ("value", "string"), ("partition", "int")]
    changelog = run.changelog().collect()
    assert len(changelog) > len(rows)
    for got, row in zip(sent.collect(), changelog, strict=True):
        inner = key_bytes(bytes(row.who) if keys == "binary" else row.who)
        times = [row.window_end, row.window_start] if kind == "session" else [row.window_start]
        assert bytes(got.key) == inner + b"".join(key_bytes(round(at.timestamp() * 1_000)) for at in times)
        assert got.partition == sk.partition_for(inner, 5)
        values = {"most": row.most, "least": row.least}
        is_null = row.what == "tombstone" or row.most is None
        assert (got.value is None) == is_null
        assert is_null or json.loads(got.value) == values
    some = sk.to_kafka(run, partitions=5, changelog=run.changelog().where("offset = 8"))
    assert some.count() == sum(row.offset == 8 for row in changelog)


def test_only_a_run_on_spark_and_a_number_of_partitions(spark: SparkSession) -> None:
    table = pa.table({"who": ["a"], "at": [1], "partition": [0], "offset": [0]})
    plan = sk.group_by_key("who", timestamp="at", unit="ms", partition="partition", offset="offset")
    plan = plan.windowed_by(WINDOWS["session"]).count()
    with pytest.raises(InvalidArgument, match="to_kafka writes a run on Spark; got Run"):
        sk.to_kafka(plan.run(table), partitions=1)
    with pytest.raises(InvalidArgument, match="partitions must be an integer of 1 or more; got 0"):
        sk.to_kafka(plan.run(spark.createDataFrame(table)), partitions=0)
