"""Keys and values as Kafka's own serializers write them, asked from Kafka Streams for time and sliding windows."""

import base64

import pyarrow as pa
import pytest

import sessionkit as sk
from tests.differential.exported import job
from tests.differential.oracle import Oracle, skipped_without
from tests.kinds import group_in_ms
from tests.optional import SparkSession

pytest.importorskip("pyspark", reason="pyspark is not installed")

pytestmark = pytest.mark.spark


def test_hopping_windows_are_written_as_kafka_writes_them(spark: SparkSession) -> None:
    plan = (
        group_in_ms("who", partition="partition", offset="offset")
        .windowed_by(sk.TimeWindows(size_ms=10, advance_ms=4, grace_ms=5))
        .aggregate(count=sk.count(), total=sk.sum("n"))
    )
    rows = [{"who": "aéb"[i % 3], "at": 20 + 3 * i - 9 * (i % 2), "n": i} for i in range(12)]
    with skipped_without(), Oracle("--exported") as oracle:
        answer = oracle.ask(job(plan.to_java(types={"n": "bigint"}), rows, "who"))
    sent = [each for step in answer["sent"] for each in step]
    kafka = [(base64.b64decode(each["key"]), base64.b64decode(each["value"])) for each in sent]
    places = {"partition": [0] * len(rows), "offset": [*range(len(rows))]}
    table = pa.table({**pa.Table.from_pylist(rows).to_pydict(), **places})
    ours = sk.to_kafka(plan.run(spark.createDataFrame(table)), partitions=1).collect()
    assert [(bytes(row.key), row.value.encode()) for row in ours] == kafka
    assert len(kafka) > 2 * len(rows)
