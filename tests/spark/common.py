"""What the tests on Spark share: records, plans, streams of files, and what equal results are."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sessionkit as sk
from sessionkit.spark.types import readable_errors
from tests.optional import DataFrame, SparkSession, nearly

if TYPE_CHECKING:
    from sessionkit.spark.stream_run import StreamRun

# `make streaming`: every combination, where `make test-all` takes a selection
IS_WHOLE = os.environ.get("SESSIONKIT_PRODUCT") == "1"
GAP_MS, GRACE_MS = 5_000, 8_000
RECORDS = 1_200
KEYS = ["ada", "bob", "cy", "é", "", "a.b", "<img src=x onerror=alert(1)>", None]


def in_turn(kinds: Iterable[Any], numbers: Sequence[int]) -> list[tuple[Any, int]]:
    """Each of the kinds with one of the numbers, by turns; with all of them if all combinations are wanted."""
    return [
        (kind, number)
        for place, kind in enumerate(kinds)
        for number in (numbers if IS_WHOLE else [numbers[place % len(numbers)]])
    ]


def records(partitions: int, seed: int = 3) -> pa.Table:
    """Records in order of arrival: late ones, bridges, null keys and values, partition numbers with a hole."""
    rng = np.random.default_rng(seed)
    number = rng.integers(0, partitions, RECORDS) + (np.arange(RECORDS) % partitions == partitions - 1) * 2
    offset = np.empty(RECORDS, np.int64)
    for p in np.unique(number):
        offset[number == p] = 100 + np.cumsum(rng.integers(1, 4, (number == p).sum()))
    at = (
        1_700_000_000_000
        + np.cumsum(rng.integers(0, 1_000 // partitions, RECORDS))
        - rng.integers(0, 18_000, RECORDS) * (rng.random(RECORDS) < 0.6)
    )
    amount = rng.integers(-50, 50, RECORDS)
    return pa.table(
        {"key": pa.array([KEYS[i] for i in rng.integers(0, len(KEYS), RECORDS)], pa.string()),
         "at": pa.array(at * 1000, pa.timestamp("us", tz="UTC")), "partition": pa.array(number, pa.int32()),
         "offset": offset, "amount": pa.array(amount, mask=rng.random(RECORDS) < 0.1),
         "price": pa.array(amount, mask=amount > 40).cast(pa.decimal128(21, 2)),
         "ratio": pa.array(amount / 7, mask=rng.random(RECORDS) < 0.1),
         "word": pa.array([None if i % 11 == 0 else f"w{i % 5}" for i in range(RECORDS)], pa.string()),
         "unused": np.zeros(RECORDS)},
    )  # fmt: skip


def shuffled(spark: SparkSession, table: pa.Table, files: int = 3) -> DataFrame:
    order = np.random.default_rng(8).permutation(len(table))
    return spark.createDataFrame(table.take(pa.array(order))).repartition(files)


BASE = sk.group_by_key("key", timestamp="at", partition="partition", offset="offset").windowed_by(
    sk.SessionWindows(inactivity_gap_ms=GAP_MS, grace_ms=GRACE_MS)
)
FUNCTIONS = BASE.aggregate(
    longest=sk.aggregation(
        initializer=str,
        aggregator=lambda key, value, aggregate: max(aggregate, value or "", key=len),
        merger=lambda key, older, newer: max(older, newer, key=len),
        value="word",
    ),
    span=sk.aggregation(
        initializer=lambda: {"n": 0, "sum": 0.0},
        aggregator=lambda key, value, a: {
            "n": a["n"] + 1,
            "sum": a["sum"] + (value["ratio"] or 0) + (value["amount"] or 0),
        },
        merger=lambda key, a, b: {"n": a["n"] + b["n"], "sum": a["sum"] + b["sum"]},
        value=("ratio", "amount"),
    ),
    smallest=sk.reduce(lambda a, b: b if a is None else a if b is None else min(a, b), "amount"),
)


def in_order(table: pa.Table, *names: str) -> pa.Table:
    """By these columns, what is equal in the order that it had."""
    place = pa.table({**{name: table[name] for name in names}, "row": np.arange(len(table))})
    return table.take(pa.compute.sort_indices(place, [(name, "ascending") for name in place.column_names]))


WINDOWS: dict[str, Any] = {
    "session": sk.SessionWindows(inactivity_gap_ms=GAP_MS, grace_ms=GRACE_MS),
    "tumbling": sk.TimeWindows(size_ms=5_000, grace_ms=4_000),
    "hopping": sk.TimeWindows(size_ms=5_000, advance_ms=1_700, grace_ms=4_000),
    "sliding": sk.SlidingWindows(time_difference_ms=5_000, grace_ms=4_000),
}
STRATEGIES = ("on_window_update", "on_window_close")


def plan_of(windows: Any, strategy: str) -> sk.Plan:
    named = {
        "count": sk.count(), "total": sk.sum("amount"), "least": sk.min("at"), "most": sk.max("amount"),
        "first": sk.first("word"), "last": sk.last("word"), "words": sk.collect("word"),
        "newest": sk.latest("word"), "different": sk.count_distinct("word"),
        "often": sk.top("word", 2), "spent": sk.sum("price"), "near": sk.median("amount", approx=True),
        **nearly("word"),
    }  # fmt: skip
    return BASE.windowed_by(windows).aggregate(**named).emit(strategy)


# ---- streams


def write_files(table: pa.Table, folder: Path, cuts: list[int], *, seed: int = 3) -> Path:
    """A file for each stretch of arrivals, its rows shuffled: each partition's offsets rise from file to file."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    for number, (begin, end) in enumerate(pairwise([0, *cuts, len(table)])):
        part, file = table.slice(begin, end - begin), folder / f"{number:05}.parquet"
        pq.write_table(part.take(pa.array(rng.permutation(len(part)))), file)
        os.utime(file, (1_700_000_000 + number,) * 2)  # Spark takes the oldest first
    return folder


def read_stream(spark: SparkSession, folder: Path) -> DataFrame:
    """A file a micro-batch."""
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


@contextlib.contextmanager
def collected(df: DataFrame, checkpoint: Path) -> Iterator[list[pa.Table]]:
    """What each micro-batch gives, in order."""
    batches: list[pa.Table] = []
    query = (
        df.writeStream.foreachBatch(lambda batch, _: batches.append(batch.toArrow()))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
        yield batches
    finally:
        query.stop()


def run_through(df: DataFrame, checkpoint: Path) -> None:
    with readable_errors(), collected(df, checkpoint):
        pass


def assert_events(run: StreamRun, local: sk.Run, checkpoint: Path) -> int:
    """All events of all micro-batches are those of the local run; how many batches."""
    with collected(run.events(), checkpoint) as batches:
        assert_same_events(pa.concat_tables(batches), local)
    return len(batches)


def assert_same_events(events: pa.Table, local: sk.Run) -> None:
    """Each event of the local run once, with the same values, per partition in the same order, and no other."""
    for number in pa.compute.unique(events["partition"]):
        offsets = events.filter(pa.compute.equal(events["partition"], number))["offset"].to_numpy()
        assert (np.diff(offsets) >= 0).all()
    is_dropped = pa.compute.equal(events["what"], "dropped")
    for got, expected in (
        (events.filter(pa.compute.invert(is_dropped)), local.changelog()),
        (events.filter(is_dropped), local.dropped(missing_grace=False)),
    ):
        assert got.num_rows == expected.num_rows
        got, expected = in_order(got, "partition"), in_order(expected, "partition", "offset")
        for name in expected.column_names:
            assert got[name].to_pylist() == expected[name].cast(got[name].type).to_pylist(), name


def metrics_that_spark_counts(local: sk.Run, level: str) -> list[dict[str, Any]]:
    """The metrics of a local run without those of lateness, which no counter of Spark's knows."""
    rows: list[dict[str, Any]] = local.kafka_metrics(level=level).to_pylist()
    return [row for row in rows if not row["name"].startswith("record-lateness")]
