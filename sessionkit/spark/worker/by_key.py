"""A partition's records dealt out by key, so that many tasks share it.

A task gets the records of its keys, and the ticks that they need.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.decisions import TICK
from sessionkit.engine.chosen_keys import PartitionSoFar
from sessionkit.records.batch import RecordBatch
from sessionkit.records.keys import key_bytes
from sessionkit.spark.worker.shuffle import Piece, pieces_in, slices_of, spark_hash
from sessionkit.steps.job import Job
from sessionkit.steps.partition_run import PartitionRun, cut

_OWN = ("offset", "timestamp_ms", "rejected", "key")


def row_number_name(schema: pa.Schema) -> str:
    """What the column is called that keeps the rows of one record in order."""
    name = "row"
    while name in schema.names:
        name += "_"
    return name


# ---- dealing out: one partition after another, in offset order


def deal(
    job: Job, batches: Iterator[pa.RecordBatch], *, shares: int, first: int, width: int
) -> Iterator[pa.RecordBatch]:
    """The records of each partition for each of its `shares`, as slices.

    Args:
        first: the smallest partition number.
        width: how many partition numbers share a task.
    """
    named = (batch.rename_columns(list(job.columns)) for batch in batches)
    steps = cut(named, str(job.source.partition), job.step_records)
    for number, tables in groupby(steps, key=lambda step: step[0]):
        so_far = PartitionSoFar(job.windows, shares)
        place = (int(number) - first) // width * shares
        for turn, (_, table) in enumerate(tables):
            for share, part in enumerate(_parts(so_far, job.read(table), shares)):
                if part.num_rows:
                    yield slices_of(place + share, int(number), turn, 0, part)


def shares_of(keys: pa.Array, shares: int) -> npt.NDArray[np.int64]:
    """Which share each key belongs to: another hash than Kafka's, by which keys came into their partition."""
    if pa.types.is_integer(keys.type):
        numbers = keys.to_numpy().astype(np.int64)
        return spark_hash(spark_hash(numbers >> 32) ^ (numbers & 0xFFFFFFFF)) % shares
    checksums = [zlib.crc32(key_bytes(key)) for key in keys.to_pylist()]
    return spark_hash(np.array(checksums, np.int64)) % shares


def _parts(so_far: PartitionSoFar, batch: RecordBatch, shares: int) -> Iterator[pa.Table]:
    """The next records of a partition: what each share gets of them."""
    share = np.append(shares_of(batch.keys, shares), 0)[batch.key]  # a null key, code -1, takes the last
    mine = (share == number for number in range(shares))
    for number, rows in enumerate(so_far.needed_rows(batch.timestamp_ms, batch.rejected, mine)):
        yield _part(batch, rows, share[rows] != number)


def _part(batch: RecordBatch, rows: npt.NDArray[np.intp], tick: npt.NDArray[np.bool_]) -> pa.Table:
    rejected = np.zeros(len(rows), np.uint8) if batch.rejected is None else batch.rejected[rows]
    place, key = pa.array(rows, mask=tick), batch.key[rows]
    columns: list[Any] = [
        batch.offset[rows],
        batch.timestamp_ms[rows],
        np.where(tick, np.uint8(TICK), rejected),
        batch.keys.take(pa.array(key, mask=tick | (key < 0))),
        *(column.take(place) for column in batch.values.values()),  # type: ignore[union-attr]
    ]
    return pa.table(columns, names=[*_OWN, *(f"v{number}" for number in range(len(batch.values)))])


# ---- a share of each partition, in a task of its own


def run_dealt(job: Job, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The view's rows for a share of each partition, with a running number as their last column."""
    name = row_number_name(job.schema)
    for number, pieces in groupby(pieces_in(batches), key=lambda piece: piece.partition):
        first = 0
        for batch in _run_share(job, number, pieces):
            yield batch.append_column(name, pa.array(np.arange(first, first + batch.num_rows)))
            first += batch.num_rows


def _run_share(job: Job, number: int, pieces: Iterator[Piece]) -> Iterator[pa.RecordBatch]:
    partition = PartitionRun(job, number)
    held: list[pa.Table] = []
    for piece in pieces:
        held.append(piece.table())
        if sum(table.num_rows for table in held) >= job.step_records:
            yield from partition.take(_records(job, number, held))
            held = []
    if held:
        yield from partition.take(_records(job, number, held))
    yield from partition.finish()


def _records(job: Job, number: int, tables: list[pa.Table]) -> RecordBatch:
    """The records and ticks of a share as the engine reads them."""
    table = pa.concat_tables(tables).combine_chunks()
    code = pc.dictionary_encode(table["key"]).combine_chunks()
    rejected = table["rejected"].to_numpy()
    return RecordBatch(
        keys=code.dictionary,
        key=code.indices.fill_null(-1).to_numpy().astype(np.int32),
        timestamp_ms=table["timestamp_ms"].to_numpy(),
        partition=np.zeros(len(table), np.int32),
        partitions=np.full(1, number, np.int64),
        rejected=rejected if rejected.any() else None,
        given_offset=table["offset"].to_numpy(),
        values={name: _whole(table[f"v{place}"]) for place, name in enumerate(job.value_columns)},
    )


def _whole(column: pa.ChunkedArray) -> pa.Array:
    joined = column.combine_chunks()
    return joined if isinstance(joined, pa.Array) else pa.concat_arrays(joined.chunks)
