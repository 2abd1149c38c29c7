"""Late records from topic to topic over a real broker: as they came, byte for byte, with headers that say why."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.spark.types import readable_errors

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")

from examples.kafka.topics import Record, create_topics, producer, read_all
from tests.kafka.common import broker_for
from tests.optional import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FLIGHTS, PARTITIONS = 2_000, 3
INPUT = "flights"
OF_BATCH, OF_STREAM, OF_WRITE, PLACED = "late-batch", "late-stream", "late-write", "late-placed"
OUTPUTS = (OF_BATCH, OF_STREAM, OF_WRITE, PLACED)
OF_WHOLE_DATA = {"closed_by", "enough_grace_ms"}

PLAN = (
    sk.group_by_key("key", timestamp="timestamp", partition="partition", offset="offset")
    .windowed_by(sk.SessionWindows(inactivity_gap="20m", grace="10m"))
    .aggregate(flights=sk.count(), total=sk.sum("dep_delay"))
)

Header = dict[str, str]
Place = tuple[int, int]


class Outcome(NamedTuple):
    """What is in the topics in the end."""

    came: dict[Place, Record]
    sent: dict[str, list[tuple[Record, Header]]]


@pytest.fixture(scope="module")
def outcome(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcome]:
    with broker_for(spark) as address:
        create_topics(address, INPUT, *OUTPUTS, partitions=PARTITIONS)
        _produce(address)
        with readable_errors():
            _run_on_spark(spark, address, tmp_path_factory.mktemp("kafka"))
        came = {record[:2]: record for record in read_all(address, INPUT)}
        yield Outcome(came, {topic: _with_headers(spark, address, topic) for topic in OUTPUTS})


def _produce(address: str) -> None:
    """With what the plan does not read, and now and then without a value."""
    flights = sk.load_sample("flights").iloc[:FLIGHTS]
    keys = flights["carrier"] + "@" + flights["origin"]
    times_ms = flights["scheduled"].to_numpy().astype("datetime64[ms]").astype(int).tolist()
    with producer(address) as writer:
        for number, (key, ms, delay) in enumerate(zip(keys, times_ms, flights["dep_delay"].tolist(), strict=True)):
            value = None if number % 50 == 49 else json.dumps({"dep_delay": delay, "note": f"é {number}"})
            writer.produce(INPUT, key=key, value=value, timestamp=ms)
        assert writer.flush(30) == 0


def _run_on_spark(spark: SparkSession, address: str, folder: Path) -> None:
    """By Spark's sink from a batch, from a stream, and from a function of run.write, with and without a partition."""
    kafka = {"kafka.bootstrap.servers": address}
    options = {**kafka, "subscribe": INPUT, "startingOffsets": "earliest"}
    loaded = spark.read.format("kafka").options(**options).load()
    batch = PLAN.run(sk.from_kafka(loaded, value="bytes").selectExpr("*", DELAY))
    sk.to_kafka(batch, rows="dropped").write.format("kafka").options(**kafka, topic=OF_BATCH).save()
    placed = sk.to_kafka(batch, rows="dropped", partitions=PARTITIONS)
    placed.write.format("kafka").options(**kafka, topic=PLACED).save()

    loaded = spark.readStream.format("kafka").options(**options, maxOffsetsPerTrigger=str(FLIGHTS // 2)).load()
    stream = PLAN.stream(sk.from_kafka(loaded, value="bytes").selectExpr("*", DELAY))

    def to_topic(rows: DataFrame, _: int) -> None:
        records = sk.to_kafka(stream, rows="dropped", dropped=rows)
        records.write.format("kafka").options(**kafka, topic=OF_WRITE).save()

    writer = sk.to_kafka(stream, rows="dropped").writeStream.format("kafka").options(**kafka, topic=OF_STREAM)
    query = writer.option("checkpointLocation", str(folder / "own")).trigger(availableNow=True).start()
    query.awaitTermination()
    assert len(query.recentProgress) >= 2
    stream.write(checkpoint=folder / "write", dropped=to_topic, available_now=True).awaitTermination()


DELAY = "get_json_object(cast(value AS string), '$.dep_delay')::bigint AS dep_delay"


def _with_headers(spark: SparkSession, address: str, topic: str) -> list[tuple[Record, Header]]:
    options = {"kafka.bootstrap.servers": address, "subscribe": topic, "includeHeaders": "true"}
    rows = spark.read.format("kafka").options(**options).load().orderBy("partition", "offset").collect()
    found = []
    for row, record in zip(rows, read_all(address, topic), strict=True):
        assert (row.partition, row.offset) == record[:2]
        found.append((record, {header.key: bytes(header.value).decode() for header in row.headers}))
    return found


def _local(outcome: Outcome) -> list[dict[str, Any]]:
    """The dropped records of a local run over what lies in the topic."""
    records = [outcome.came[place] for place in sorted(outcome.came)]
    columns: dict[str, Any] = {
        "key": [record.key.decode() for record in records],
        "timestamp": pa.array([record.timestamp_ms for record in records], pa.timestamp("ms", "UTC")),
        "dep_delay": [None if record.value is None else json.loads(record.value)["dep_delay"] for record in records],
        "partition": [record.partition for record in records],
        "offset": [record.offset for record in records],
    }
    rows: list[dict[str, Any]] = PLAN.run(pa.table(columns)).dropped().to_pylist()
    return rows


def _place(said: Header) -> Place:
    return int(said["partition"]), int(said["offset"])


@pytest.mark.parametrize("topic", OUTPUTS)
def test_what_was_dropped_comes_out_as_it_went_in(outcome: Outcome, topic: str) -> None:
    """The same keys and values, in the same partitions (the topics have as many), and in the same order."""
    sent = outcome.sent[topic]
    assert len(sent) > 100
    assert [_place(said) for _, said in sent] == [(row["partition"], row["offset"]) for row in _local(outcome)]
    for record, said in sent:
        came = outcome.came[_place(said)]
        assert (record.partition, record.key, record.value) == (came.partition, came.key, came.value)
        assert int(said["timestamp_ms"]) == came.timestamp_ms
    assert any(record.value is None for record, _ in sent)


@pytest.mark.parametrize("topic", OUTPUTS)
def test_headers_say_how_late_and_what_would_have_kept_it(outcome: Outcome, topic: str) -> None:
    for (_, said), row in zip(outcome.sent[topic], _local(outcome), strict=True):
        lateness = row["stream_time"] - row["timestamp"]
        assert said["reason"] == row["reason"] == "late"
        assert int(said["lateness_ms"]) == lateness.total_seconds() * 1_000
        assert int(said["close_time_ms"]) == int(said["stream_time_ms"]) - 30 * 60_000
        assert said.keys() & OF_WHOLE_DATA == (OF_WHOLE_DATA if topic in (OF_BATCH, PLACED) else set())
        if topic in (OF_BATCH, PLACED):
            assert int(said["enough_grace_ms"]) == row["enough_grace_ms"]
            closing = outcome.came[row["partition"], int(said["closed_by"])]
            assert closing.timestamp_ms > int(said["stream_time_ms"]) - row["missing_grace_ms"]
            assert closing.offset < row["offset"]
