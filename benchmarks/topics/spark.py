"""Spark: batches and streams, beside what Spark has itself."""

from __future__ import annotations

from functools import partial

from benchmarks.data import PARTITIONS
from benchmarks.model import OURS, Case, Side, Topic
from benchmarks.shapes import for_spark
from benchmarks.topics.sessions import WORDS

SHAPES = ("zipf-text", "uniform-text", "zipf-integers")
BATCH_RECORDS = 5_000_000
MICRO_BATCHES = 6
MICRO_RECORDS = (1_000, 200_000, 1_000_000)
PEER = "session_window"


def batch_topic() -> Topic:
    """Its sizes do not depend on how many records other topics have."""
    ours, peer = Side(OURS, "spark.sessions", repeats=1), Side(PEER, "spark.session_window", repeats=1)
    keyed = Side(f"{OURS}, two tasks a partition", "spark.sessions_by_key", repeats=1)
    cases = [
        Case(WORDS[name], partial(for_spark, name, BATCH_RECORDS, 8), BATCH_RECORDS, sides)
        for name, sides in zip(SHAPES, ((ours, keyed, peer), (ours, peer), (ours, peer)), strict=True)
    ]
    apart = partial(for_spark, SHAPES[0], BATCH_RECORDS, 0)
    cases.append(Case("The first of them, a file for each partition", apart, BATCH_RECORDS, (ours, peer)))
    rows = (Side(OURS, "spark.sessionized", repeats=1), Side("window functions", "spark.window_functions", repeats=1))
    cases.append(Case("Each row of the first with its session", cases[0].data, BATCH_RECORDS, rows))
    words = (
        f"From Parquet files, whose rows are in no order, to final sessions with count and sum, written nowhere, "
        f"{PARTITIONS} partitions, on as many cores as the machine has; the second of two calls in a process. Spark's "
        "`session_window` knows no arrival order and drops nothing."
    )
    return Topic("spark", "Spark, batches", words, tuple(cases))


def stream_topic() -> Topic:
    """Micro-batches of three sizes."""
    cases = []
    for name in SHAPES:
        for records in MICRO_RECORDS:
            options = {"records": records}
            ours = Side(OURS, "spark.stream", options, MICRO_BATCHES - 1)
            peer = Side(PEER, "spark.stream_of_spark", options, MICRO_BATCHES - 1)
            data = partial(for_spark, name, records * MICRO_BATCHES, -MICRO_BATCHES)
            title = f"{WORDS[name]}, {records:,} records a micro-batch"
            cases.append(Case(title, data, records, (ours, peer)))
    words = (
        f"Final sessions of {MICRO_BATCHES} micro-batches over one state in RocksDB, {PARTITIONS} partitions, from "
        "when a file is there until its results are out, written nowhere: the fastest of the later ones, and the "
        "first one, with the start of the query."
    )
    return Topic("micro-batches", "Spark, streams", words, tuple(cases), with_first=True)
