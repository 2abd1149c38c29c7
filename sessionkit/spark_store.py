"""The windows in a query's checkpoint as a store to read from, in a notebook."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from sessionkit.contracts import Snapshot
from sessionkit.errors import InvalidArgument, SparkUnavailable, problem
from sessionkit.stores.chunks import Chunk, ChunkedState
from sessionkit.text import shorten

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_checkpoint(checkpoint: str | os.PathLike[str], batch: int | None) -> tuple[str, list[ChunkedState]]:
    """(what it holds, "sessions" or "windows"; the state of each partition) after a micro-batch, the last if not given.

    Raises:
        InvalidArgument: there is no such checkpoint or micro-batch, or it is of another kind of query.
        SparkUnavailable: no Spark session runs in this process.
    """
    spark = _session()
    heads = _variable(spark, checkpoint, "head", batch).selectExpr("key.slot", "value.*").collect()
    rows = _variable(spark, checkpoint, "chunks", batch).selectExpr(
        "key.slot", "user_map_key.number", "user_map_value.rows", "user_map_value.gone"
    )
    chunks: dict[int, list[Chunk]] = {}
    for slot, number, data, gone in rows.collect():
        chunks.setdefault(slot, []).append(Chunk(number, bytes(data), bytes(gone)))
    states = []
    for head in heads:
        snapshot = Snapshot(head.position, head.stream_time_ms, head.last_close_time_ms)
        states.append(ChunkedState.read(head.holds, head.partition, chunks.get(head.slot, []), snapshot))
    return heads[0].holds if heads else "sessions", sorted(states, key=lambda state: state.partition)


def fill(store: Any, states: list[ChunkedState]) -> None:
    """Puts these states into an empty store."""
    for state in states:
        held, snapshots = state.take_all()
        if held is not None:
            store.commit(held.take(np.empty(0, np.intp)), held, snapshots)


def _session() -> SparkSession:
    from pyspark.sql import SparkSession

    spark = SparkSession.getActiveSession()
    if spark is None:
        want = "SparkSession.builder.getOrCreate() first"
        raise SparkUnavailable(problem("a checkpoint is read by Spark", "no Spark session in this process", want))
    return spark


def _variable(spark: SparkSession, checkpoint: str | os.PathLike[str], name: str, batch: int | None) -> DataFrame:
    reader = spark.read.format("statestore").option("stateVarName", name)
    reader = reader if batch is None else reader.option("batchId", batch)
    try:
        return reader.load(os.fspath(checkpoint))
    except Exception as error:
        want = "the checkpointLocation of a query that sessionkit runs, and one of its committed micro-batches"
        got = f"{os.fspath(checkpoint)}, batch {'the last' if batch is None else batch} ({shorten(error, 120)})"
        raise InvalidArgument(problem("there is no state to read", got, want)) from error
