"""The windows in a query's checkpoint as a store to read from, in a notebook."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sessionkit.base.calls import called_as
from sessionkit.base.text import plural
from sessionkit.errors import InvalidArgument, SparkUnavailable, StoreCorrupted, problem, shorten
from sessionkit.spark import functions as F
from sessionkit.spark.environment.worker_python import settle_worker_python
from sessionkit.spark.reading.tasks import mapped
from sessionkit.spark.types import check_files, damage, damage_told, spark_schema
from sessionkit.spark.worker.by_key import row_number_name
from sessionkit.spark.worker.stream_partition import waiting
from sessionkit.steps.job import Job
from sessionkit.stores.contract import Snapshot, read_only_kind
from sessionkit.stores.read_only import ReadOnlyStore
from sessionkit.stores.registry import DEFAULT_KIND, store_class
from sessionkit.stores.state.chunked_state import Chunk, ChunkedState, sum_of_chunks
from sessionkit.windows.contract import WindowKind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@called_as('sk.read_state("checkpoint")')
def read_state(checkpoint: str | os.PathLike[str], *, batch: int | None = None) -> DataFrame:
    """The windows in a query's checkpoint as a DataFrame, read by Spark's workers: nothing comes to this process.

    Columns: partition, key, window_start_ms, window_end_ms (of time and sliding windows instead timestamp_ms, the
    largest of a record in it), and each aggregation's accumulator by its name: `mean` has sum and count; what a Python
    function made is shown as text.

    Args:
        checkpoint: the query's checkpointLocation.
        batch: after this micro-batch; the last one if not given.
    Raises:
        InvalidArgument: there is no such checkpoint or micro-batch, or it is of another kind of query.
        StoreCorrupted: a file is damaged or missing; the error names it if Spark does.
        SparkUnavailable: no Spark session runs in this process, or its workers' Python cannot run sessionkit.
    Example:
        >>> sk.read_state("state").groupBy("partition").count().show()  # doctest: +SKIP
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    settle_worker_python(_session())
    heads, chunks = _heads(checkpoint, batch), _chunks(checkpoint, batch)
    largest = F.max_by(F.struct("number", "rows", "gone"), F.length("rows"))
    ((numbers, found),) = _collected(chunks.agg(F.collect_list(F.struct("slot", "number")), largest), checkpoint)
    check_chunks(checkpoint, heads, numbers)
    state_of = {head.slot: (head.holds, head.partition, head.windows) for head in heads}
    of = heads[0].holds if heads else "sessions"
    raw = [Chunk(found.number, bytes(found.rows), bytes(found.gone))] if found else []
    found = spark_schema(ChunkedState.read(of, 0, raw, Snapshot()).to_table().schema)
    zone = chunks.sparkSession.conf.get("spark.sql.session.timeZone")
    schema = to_arrow_schema(found, timezone=zone)  # a worker has to give exactly these types

    def windows(log: pa.Table) -> pa.Table:
        of, partition, count = state_of[log["slot"][0].as_py()]
        chunks = zip(*(log[name].to_pylist() for name in Chunk._fields), strict=True)
        state = ChunkedState.read(of, partition, itertools.starmap(Chunk, chunks), Snapshot(), windows=count)
        table = state.to_table()
        return table.cast(schema) if table.num_rows else schema.empty_table()

    return chunks.groupBy("slot").applyInArrow(windows, found)


@read_only_kind("spark")
def open_checkpoint(*, checkpoint: str | os.PathLike[str], batch: int | None = None) -> ReadOnlyStore:
    """The windows in a query's checkpoint as a store to read from: see `open_store`."""
    heads, rows = _heads(checkpoint, batch), _chunks(checkpoint, batch)
    chunks: dict[int, list[Chunk]] = {}
    for slot, number, data, gone in _collected(rows, checkpoint):
        chunks.setdefault(slot, []).append(Chunk(number, bytes(data), bytes(gone)))
    check_chunks(checkpoint, heads, ((slot, chunk.number) for slot, log in chunks.items() for chunk in log))
    store = store_class(DEFAULT_KIND, heads[0].holds if heads else "sessions")(name="checkpoint")
    for head in sorted(heads, key=lambda head: head.partition):
        snapshot = Snapshot(head.position, head.stream_time_ms, head.last_close_time_ms)
        log = chunks.get(head.slot, [])
        try:
            state = ChunkedState.read(head.holds, head.partition, log, snapshot, windows=head.windows)
        except StoreCorrupted as error:
            raise damage(str(error), os.fspath(checkpoint)) from None
        columns, snapshots = state.take_all()
        if columns is not None:
            store.commit(columns.take(np.empty(0, np.intp)), columns, snapshots)
    return ReadOnlyStore(store)


def check_chunks(checkpoint: str | os.PathLike[str], heads: Sequence[Any], found: Iterable[tuple[int, int]]) -> None:
    """Compares the chunks, (slot, number), with those that the heads tell of: Spark can lose some without a word."""
    tokens = {head.slot: head.token for head in heads}
    logs: dict[int, list[int]] = {slot: [] for slot in tokens}
    for slot, number in found:
        logs.setdefault(slot, []).append(number)
    for slot, log in logs.items():
        if slot not in tokens or tokens[slot][32:] not in ("", sum_of_chunks(log)):
            text = f"{plural(len(log), 'chunk')} of state key {slot}, which are not those that were written"
            raise damage(text, os.fspath(checkpoint))


def _heads(checkpoint: str | os.PathLike[str], batch: int | None, of: str = "") -> list[Any]:
    if (java := getattr(_session(), "_jvm", None)) is not None:
        check_files(os.fspath(checkpoint), java)
    heads = _variable(_session(), checkpoint, f"{of}head", batch).selectExpr("key.slot", "value.*")
    return _collected(heads, checkpoint)


def _chunks(checkpoint: str | os.PathLike[str], batch: int | None, of: str = "") -> DataFrame:
    chunks = _variable(_session(), checkpoint, f"{of}chunks", batch)
    return chunks.selectExpr("key.slot", "user_map_key.number", "user_map_value.rows", "user_map_value.gone")


def _session() -> SparkSession:
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    try:
        spark = SparkSession.active()
        _ = spark.streams.active  # reading a state asks for what only the manager of queries starts
        return spark
    except PySparkRuntimeError as error:
        got, want = "no Spark session in this process", "SparkSession.builder.getOrCreate() first"
        raise SparkUnavailable(problem("reading a checkpoint needs Spark", got, want)) from error


def _variable(spark: SparkSession, checkpoint: str | os.PathLike[str], name: str, batch: int | None) -> DataFrame:
    reader = spark.read.format("statestore").option("stateVarName", name)
    reader = reader if batch is None else reader.option("batchId", batch)
    try:
        return reader.load(os.fspath(checkpoint))
    except Exception as error:
        folder = Path(checkpoint)
        commits = folder / "commits"
        if (folder / "state").is_dir() and (commits if batch is None else commits / str(batch)).exists():
            is_sure = type(error).__module__ == "py4j.protocol" or "INVALID_CONF_VALUE" in str(error)
            found = (damage if is_sure else damage_told)(str(error), str(folder))  # Java's own, such as of a broken log
            if found is not None:
                raise found from None
        want = "the checkpointLocation of a query that sessionkit runs, and one of its committed micro-batches"
        got = f"{os.fspath(checkpoint)}, batch {'the last' if batch is None else batch} ({shorten(error, 120)})"
        raise InvalidArgument(problem("there is no state to read", got, want)) from None


def _collected(df: DataFrame, checkpoint: str | os.PathLike[str]) -> list[Any]:
    try:
        return df.collect()
    except Exception as error:
        raise damage_told(str(error), os.fspath(checkpoint)) or error from None


def waiting_results(checkpoint: str, job: Job, batch: int) -> tuple[list[Any], DataFrame]:
    """(how far the buffer of suppress of each partition came, what waits in them) after a micro-batch of a query."""
    heads, chunks = _heads(checkpoint, batch, "buffer_"), _chunks(checkpoint, batch, "buffer_")
    check_chunks(checkpoint, heads, _collected(chunks.select("slot", "number"), checkpoint))
    parts = ("partition", "position", "stream_time_ms", "last_close_time_ms", "windows")
    came = {head.slot: tuple(head[part] for part in parts) for head in heads}
    number = row_number_name(job.schema)
    job = dataclasses.replace(job, schema=job.schema.append(pa.field(number, pa.int64())))
    logs = chunks.groupBy("slot").agg(F.collect_list(F.struct(*Chunk._fields)))
    return heads, mapped(logs, partial(waiting, job, came), job.schema).orderBy("partition", number).drop(number)


KEPT_WINDOWS = 400  # of the chosen keys, closed ones among them; the oldest go


def newest_windows(checkpoint: str, windows: WindowKind, keys: Sequence[str], most: int) -> list[dict[str, Any]]:
    """The newest windows in a checkpoint: of these keys, or of the keys that have the newest ones.

    A row is partition, key, window_start_ms, window_end_ms, last_ms (the last instant in it) and the accumulators.

    Args:
        windows: the plan's, which say how long a window is.
        keys: as text.
        most: so many keys; the rest are left out.
    """
    state = read_state(checkpoint)
    if keys:
        state = state.where(F.col("key").cast("string").isin(list(keys)))
    rows = [row.asDict() for row in state.orderBy(F.col("window_start_ms").desc()).limit(KEPT_WINDOWS).collect()]
    chosen = list(dict.fromkeys(row["key"] for row in rows))[:most]
    for row in rows:
        if "window_end_ms" not in row:
            row["window_end_ms"] = windows.ends_ms(row["window_start_ms"])
            del row["timestamp_ms"]
        row["last_ms"] = row["window_end_ms"] - (0 if windows.inclusive_end else 1)
    return [row for row in rows if row["key"] in chosen]
