"""From topic to topic through Spark and through Kafka Streams itself, on one real broker: the same records come out."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.spark.types import readable_errors
from tests.differential.live import live_app, state_folder
from tests.differential.oracle import build, skipped_without

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
from confluent_kafka.admin import AdminClient

from examples.kafka.topics import Record, create_topics, producer, read_all
from tests.deployments import audit_deployed
from tests.kafka.common import broker_for, read_up_to
from tests.kinds import in_ms, shown_in_ms
from tests.optional import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FLIGHTS, PARTITIONS = 3_000, 4
GAP_MS, GRACE_MS = 20 * 60_000, 10 * 60_000
UPDATES_RETENTION_MS = GAP_MS + GRACE_MS + 1
INPUT, UPDATES, FINALS = "flights", "updates", "finals"
BESIDE, RESTARTED = "beside", "restarted"  # what Kafka Streams writes: one application, and one that is restarted
FIRST_LIFE = 1_535  # so many flights, and the next one of its partition is late

ON_SPARK = (
    sk.group_by_key("key", timestamp="timestamp", partition="partition", offset="offset")
    .windowed_by(sk.SessionWindows(inactivity_gap_ms=GAP_MS, grace_ms=GRACE_MS))
    .aggregate(count=sk.count(), total=sk.sum("dep_delay"), most=sk.max("dep_delay"))
)
PLAN = shown_in_ms(ON_SPARK)
ON_CLOSE = PLAN.emit("on_window_close")
# the application has no cache, and looks for final results at each record
AS_DEPLOYED: dict[str, Any] = {"store": "rocksdb", "caching": False, "commit_interval": None, "emit_interval": "0s"}


class Outcome(NamedTuple):
    """What is in the topics and in the Parquet files in the end, and the input as a table."""

    records: pa.Table  # those of the first life come first
    topics: dict[str, list[Record]]
    parquet: pa.Table


@pytest.fixture(scope="module")
def outcome(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcome]:
    with skipped_without():
        build()
    with broker_for(spark) as address, AdminClient({"bootstrap.servers": address}) as admin:
        topics = [name + of for name in (UPDATES, FINALS) for of in ("", BESIDE, RESTARTED)]
        create_topics(address, INPUT, *topics, partitions=PARTITIONS)
        beside, restarted = _app(address, BESIDE), _app(address, RESTARTED)
        with state_folder() as folder, state_folder() as other:
            _produce(address, slice(0, FIRST_LIFE))
            with live_app(restarted, other) as first:
                first.wait_until(lambda: read_up_to(admin, RESTARTED, INPUT, PARTITIONS) == FIRST_LIFE, seconds=60)
            before = read_all(address, INPUT)
            _produce(address, slice(FIRST_LIFE, FLIGHTS))
            with live_app(beside, folder) as app, live_app(restarted, other) as second:
                parquet = _run_on_spark(spark, address, tmp_path_factory.mktemp("kafka"))
                app.wait_until(lambda: read_up_to(admin, BESIDE, INPUT, PARTITIONS) == FLIGHTS, seconds=60)
                second.wait_until(lambda: read_up_to(admin, RESTARTED, INPUT, PARTITIONS) == FLIGHTS, seconds=60)
        later = [record for record in read_all(address, INPUT) if record not in set(before)]
        yield Outcome(_table([*before, *later]), {topic: read_all(address, topic) for topic in topics}, parquet)


def _produce(address: str, rows: slice) -> None:
    flights = sk.load_sample("flights").iloc[rows]
    keys = flights["carrier"] + "@" + flights["origin"]
    times_ms = flights["scheduled"].to_numpy().astype("datetime64[ms]").astype(int).tolist()
    with producer(address) as writer:
        for key, ms, delay in zip(keys, times_ms, flights["dep_delay"].tolist(), strict=True):
            writer.produce(INPUT, key=key, value=json.dumps({"dep_delay": delay}), timestamp=ms)
        assert writer.flush(30) == 0


def _app(address: str, name: str) -> dict[str, Any]:
    updates = {"output": UPDATES + name, "emit": "on_update", "retention_ms": UPDATES_RETENTION_MS}
    finals = {"output": FINALS + name, "emit": "on_close"}  # with Kafka's own retention, where it loses results
    spec = {"bootstrap": address, "application": name, "input": INPUT, "field": "dep_delay"}
    return {**spec, "gap_ms": GAP_MS, "grace_ms": GRACE_MS, "results": [updates, finals]}


def _run_on_spark(spark: SparkSession, address: str, folder: Path) -> pa.Table:
    """Updates to a topic and to Parquet from one query, finals by Spark's own sink; what is in Parquet."""
    kafka = {"kafka.bootstrap.servers": address}
    loaded = (
        spark.readStream.format("kafka")
        .options(**kafka, subscribe=INPUT, startingOffsets="earliest", maxOffsetsPerTrigger=str(FLIGHTS // 2))
        .load()
    )
    records = sk.from_kafka(loaded, value="dep_delay bigint")
    updates, finals = PLAN.stream(records), ON_CLOSE.stream(records)

    def write(batch: DataFrame, number: int) -> None:
        batch.persist()
        sent = sk.to_kafka(updates, partitions=PARTITIONS, changelog=batch)
        sent.write.format("kafka").options(**kafka, topic=UPDATES).save()
        batch.write.parquet(str(folder / "parquet" / f"batch={number}"))
        batch.unpersist()

    writers = {
        UPDATES: updates.changelog().writeStream.foreachBatch(write),
        FINALS: sk.to_kafka(finals, partitions=PARTITIONS).writeStream.format("kafka").options(**kafka, topic=FINALS),
    }
    for name, writer in writers.items():
        query = writer.option("checkpointLocation", str(folder / name)).trigger(availableNow=True).start()
        with readable_errors():
            query.awaitTermination()
        assert len(query.recentProgress) >= 2
    return spark.read.parquet(str(folder / "parquet")).toArrow()


def _table(records: list[Record]) -> pa.Table:
    columns: dict[str, Any] = {
        "key": [record.key.decode() for record in records],
        "timestamp": pa.array([record.timestamp_ms for record in records], pa.timestamp("ms", "UTC")),
        "dep_delay": [json.loads(record.value or "")["dep_delay"] for record in records],
        "partition": [record.partition for record in records],
        "offset": [record.offset for record in records],
    }
    return pa.table(columns)


def _sent(records: list[Record]) -> list[tuple[int, bytes, bytes | None]]:
    return [(record.partition, record.key, record.value) for record in records]


Window = tuple[int, str, int, int, str]  # partition, key, start, end, value


def _windows(records: list[Record]) -> list[Window]:
    """What was sent, in order; a tombstone has no value."""
    return [
        (
            record.partition,
            record.key[:-16].decode(),
            int.from_bytes(record.key[-8:], "big"),
            int.from_bytes(record.key[-16:-8], "big"),
            (record.value or b"").decode(),
        )
        for record in records
    ]


def _each_once(records: list[Record]) -> set[Window]:
    found = _windows(records)
    assert len(set(found)) == len(found)
    return set(found)


def _window(row: dict[str, Any], side: str = "") -> Window:
    """What the audit says that one side sends."""
    value = (
        ""
        if row.get("what") == "tombstone"
        else json.dumps({name: row[side + name] for name in ("count", "total", "most")}, separators=(",", ":"))
    )
    return row["partition"], row["key"], row["window_start_ms"], row["window_end_ms"], value


def test_the_flights_lie_where_kafka_puts_them(outcome: Outcome) -> None:
    keys, numbers = outcome.records["key"].to_pylist(), outcome.records["partition"].to_pylist()
    assert numbers == [sk.partition_for(key, PARTITIONS) for key in keys]
    assert set(numbers) == set(range(PARTITIONS))


def test_updates_are_those_of_kafka_streams(outcome: Outcome) -> None:
    """Windowed keys, values and tombstones, byte for byte and in order, partition by partition.

    Kafka Streams gives each result the end of its session as timestamp; Spark's sink can set none.
    """
    ours, kafka = outcome.topics[UPDATES], outcome.topics[UPDATES + BESIDE]
    assert _sent(ours) == _sent(kafka)
    assert len(ours) > FLIGHTS
    assert sum(record.value is None for record in ours) > 1_000
    assert all(record.timestamp_ms == int.from_bytes(record.key[-16:-8], "big") for record in kafka)


def test_finals_differ_from_kafka_streams_as_the_audit_says(outcome: Outcome) -> None:
    """Kafka's store forgets sessions that close late, and loses a record that it accepts at the last moment."""
    ours, kafka = _each_once(outcome.topics[FINALS]), _each_once(outcome.topics[FINALS + BESIDE])
    audit = audit_deployed(ON_CLOSE, outcome.records, **AS_DEPLOYED)
    rows = audit.differences().to_pylist()
    lost = {_window(row) for row in rows if row["verdict"] == "lost"}
    only_in_kafka = {_window(row, "kafka_") for row in rows if row["verdict"] == "only in Kafka"}
    assert len(rows) == len(lost) + len(only_in_kafka)
    assert (ours - kafka, kafka - ours) == (lost, only_in_kafka)
    assert len(ours & kafka) > 100
    assert len(lost) > 100
    assert only_in_kafka


@pytest.mark.parametrize("name", [UPDATES, FINALS])
def test_a_restarted_kafka_streams_sends_what_the_audit_says(outcome: Outcome, name: str) -> None:
    """Its stream time starts anew, and its store expires nothing until the next put: record by record, in order."""
    plan, retention = (PLAN, UPDATES_RETENTION_MS) if name == UPDATES else (ON_CLOSE, None)
    audit = audit_deployed(plan, outcome.records, retention=in_ms(retention), restarts=[FIRST_LIFE - 1], **AS_DEPLOYED)
    told = [_window(row) for life in audit._lives for row in life.changelog().to_pylist()]
    kafka = _windows(outcome.topics[name + RESTARTED])
    assert sorted(told, key=lambda window: window[0]) == kafka
    # what closed before is not sent again, so among the finals no late record shows
    assert (kafka == _windows(outcome.topics[name + BESIDE])) is (name == FINALS)
    assert audit.counts()["late_but_counted"] == 3


def test_parquet_holds_the_local_changelog(outcome: Outcome) -> None:
    expected = ON_SPARK.run(outcome.records).changelog()
    order = [("partition", "ascending"), ("offset", "ascending")]
    got = outcome.parquet.sort_by(order).select(expected.column_names)  # a stable sort: tombstones stay before values
    assert got.to_pylist() == expected.sort_by(order).cast(got.schema).to_pylist()
