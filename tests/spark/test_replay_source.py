"""A file played as a stream: all of it, once, in order, at the speed that was asked for."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

import sessionkit as sk
from sessionkit.errors import InvalidArgument, MissingColumn
from sessionkit.records.samples import sample_path
from sessionkit.spark.reading import replay_source
from sessionkit.spark.reading.replay_source import ReplayReader, ReplaySource, Stretch
from tests.kinds import flights_by_route
from tests.optional import SparkSession
from tests.spark.common import assert_events, collected

FLIGHTS = str(sample_path("flights"))
PLAN = flights_by_route().windowed_by(sk.SessionWindows(inactivity_gap="1h", grace="30m")).count()


@pytest.mark.spark
def test_the_flights_as_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    spark.dataSource.register(ReplaySource)
    stream = spark.readStream.format("sessionkit.replay").options(path=FLIGHTS, rowsPerBatch=15_000).load()
    assert assert_events(PLAN.stream(stream), PLAN.run(pq.read_table(FLIGHTS)), tmp_path / "checkpoint") == 2


@pytest.mark.spark
def test_a_stopped_query_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    """A file without partition and offset is one partition, numbered by row."""
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"n": range(1_000)}), path, row_group_size=130)
    spark.dataSource.register(ReplaySource)
    source = spark.readStream.format("sessionkit.replay").option("path", str(path))
    query = (
        source.option("rowsPerSecond", 20)
        .load()
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    while not any(progress["numInputRows"] for progress in query.recentProgress):
        query.awaitTermination(0.2)
    query.stop()
    before = sum(progress["numInputRows"] for progress in query.recentProgress)
    assert 0 < before < 1_000
    with collected(source.option("rowsPerBatch", 300).load(), tmp_path / "checkpoint") as batches:
        rest = pa.concat_tables(batches)
    assert rest["n"].to_pylist() == rest["offset"].to_pylist() == list(range(1_000 - len(rest), 1_000))
    assert before <= 1_000 - len(rest) < 1_000 and set(rest["partition"].to_pylist()) == {0}
    assert max(len(batch) for batch in batches) <= 300


def played(reader: ReplayReader, at_s: list[float], monkeypatch: pytest.MonkeyPatch, first: int = 0) -> list[int]:
    rows = []
    for second in at_s:
        monkeypatch.setattr(replay_source.time, "monotonic", lambda second=second: 50 + second)
        first = reader.latestOffset({"row": first}, ReadMaxRows(10**9))["row"]
        rows.append(first)
    return rows


def test_rows_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"path": FLIGHTS, "rowspersecond": "100"}
    assert played(ReplayReader(options), [0, 1, 2.5, 10**6], monkeypatch) == [0, 100, 250, 28_491]
    assert played(ReplayReader(options), [0, 1], monkeypatch, first=28_400) == [28_400, 28_491]


def test_as_fast_as_it_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"path": FLIGHTS, "speed": "3600", "arrival": "departed"}
    departed = pq.read_table(FLIGHTS)["departed"].cast(pa.int64()).to_numpy()
    hours = (np.maximum.accumulate(departed) - departed[0]) / 3_600_000
    at_s = [0.0, 1, 24, 300, 10**6]
    assert played(ReplayReader(options), at_s, monkeypatch) == [int((hours <= second).sum()) for second in at_s]
    assert hours[-1] > 300


def test_limits() -> None:
    reader = ReplayReader({"path": FLIGHTS, "rowsPerSecond": "1"})
    reader.prepareForTriggerAvailableNow()
    assert reader.latestOffset({"row": 5}, reader.getDefaultReadLimit()) == {"row": 10_005}
    assert reader.latestOffset({"row": 5}, ReadAllAvailable()) == {"row": 28_491}
    assert reader.partitions({"row": 7}, {"row": 7}) == []
    whole = pq.read_table(FLIGHTS)
    part = pa.Table.from_batches(reader.read(Stretch(9_990, 10_020)))
    assert part["offset"].to_pylist() == whole["offset"].slice(9_990, 30).to_pylist()


@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
def test_times_of_any_zone(tmp_path: Path, zone: str | None) -> None:
    path = tmp_path / "times.parquet"
    pq.write_table(pa.table({"at": pa.array([1, 2**50], pa.timestamp("us", zone))}), path)
    reader = ReplayReader({"path": str(path)})
    part = pa.Table.from_batches(reader.read(Stretch(0, 2)))
    assert part["at"].cast(pa.int64()).to_pylist() == [1, 2**50]


@pytest.mark.parametrize(("options", "said"), [
    ({}, "no path"), ({"path": FLIGHTS, "rowsPerMinute": "5"}, "no such option; got 'rowsPerMinute'"),
    ({"path": FLIGHTS, "rowsPerBatch": "many"}, "rowsPerBatch is a number above 0; got 'many'"),
    ({"path": FLIGHTS, "rowsPerSecond": "0"}, "rowsPerSecond is a number above 0; got '0'"),
    ({"path": FLIGHTS, "speed": "2"}, "speed needs the times of arrival"),
    ({"path": FLIGHTS, "speed": "2", "arrival": "carrier"}, "is not a column of times; got string"),
])  # fmt: skip
def test_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        ReplayReader(options)


def test_no_such_column() -> None:
    with pytest.raises(MissingColumn, match="landed"):
        ReplayReader({"path": FLIGHTS, "speed": "2", "arrival": "landed"})
