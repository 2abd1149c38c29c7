"""A partition's records by key: dealt out, so that many tasks share it, picked where they lie, or dropped and why.

A task gets the records of its keys, and the ticks that they need.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.arrays import Flags, Longs, Rows, distinct
from sessionkit.base.decisions import TICK
from sessionkit.engine.chosen_keys import PartitionSoFar
from sessionkit.records.batch import RecordBatch
from sessionkit.records.keys import codes_among, key_bytes
from sessionkit.spark.worker.shuffle import Piece, pieces_in, slices_of, spark_hash
from sessionkit.steps.job import STEP_RECORDS, Job, fit
from sessionkit.steps.partition_run import BATCH_RECORDS, PartitionRun, cut, partitions
from sessionkit.steps.views import columns_of
from sessionkit.views.dropped import dropped_rows
from sessionkit.windows.contract import SessionKind, WindowKind

PLACE = "place"  # of chosen rows: how many records of its partition came before each
_OWN = ("offset", "timestamp_ms", "rejected", "still", "key")


def row_number_name(schema: pa.Schema) -> str:
    """The name of the column that keeps the rows of one record in order."""
    name = "row"
    while name in schema.names:
        name += "_"
    return name


# ---- one partition after another, in offset order


def deal(
    job: Job,
    batches: Iterator[pa.RecordBatch],
    *,
    shares: int,
    first: int,
    width: int,
    others: tuple[WindowKind, ...] = (),
) -> Iterator[pa.RecordBatch]:
    """Slices with the records of each partition for each of its `shares`, and what windows of `others` need, too.

    `first` is the smallest partition number, of which `width` in a row share a task.
    """
    for number, tables in partitions(job, batches):
        so_far = [PartitionSoFar(windows, shares) for windows in (job.windows, *others)]
        place = (number - first) // width * shares
        for turn, table in enumerate(tables):
            for share, part in enumerate(_parts(so_far, job.read(table), shares)):
                if part.num_rows:
                    yield slices_of(place + share, number, turn, 0, part)


def choose(
    job: Job, keys: list[Any], partition: int | None, schema: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Rows of these keys and their ticks, as they came, of one partition after another; each one's last row, too.

    Only `partition` is looked at, unless it is None. The last column of `schema` is the place of a row.
    """
    for number, tables in partitions(job, batches):
        if partition not in (None, number):
            continue
        so_far, count, rest = PartitionSoFar(job.windows), 0, schema.empty_table()
        for table in tables:
            batch = job.read(table)
            chosen = np.isin(batch.key, codes_among(batch.keys, keys))
            (rows,) = so_far.needed_rows(batch.timestamp_ms, batch.moving_ms, batch.rejected, [chosen])
            placed = table.append_column(PLACE, pa.array(np.arange(count, count + len(batch))))
            count, last = count + len(batch), len(batch) - 1
            rest = placed.slice(last, 0 if len(rows) and rows[-1] == last else 1)  # up to it the partition was read
            yield from placed.take(pa.array(rows)).rename_columns(schema.names).cast(schema).to_batches()
        yield from rest.rename_columns(schema.names).cast(schema).to_batches()


def shares_of(keys: pa.Array, shares: int) -> Longs:
    """Which share each key belongs to: another hash than Kafka's, by which keys came into their partition."""
    if pa.types.is_integer(keys.type):
        numbers = keys.to_numpy().astype(np.int64)
        return spark_hash(spark_hash(numbers >> 32) ^ (numbers & 0xFFFFFFFF)) % shares
    checksums = [zlib.crc32(key_bytes(key)) for key in keys.to_pylist()]
    return spark_hash(np.array(checksums, np.int64)) % shares


def _parts(so_far: list[PartitionSoFar], batch: RecordBatch, shares: int) -> Iterator[pa.Table]:
    """The part that each share gets of the next records of a partition."""
    share = np.append(shares_of(batch.keys, shares), 0)[batch.key]  # a null key, code -1, takes the last
    masks = [share == number for number in range(shares)]
    times_ms, moving_ms = batch.timestamp_ms, batch.moving_ms
    needed = (each.needed_rows(times_ms, moving_ms, batch.rejected, masks) for each in so_far)
    for number, of_each in enumerate(zip(*needed, strict=True)):
        rows = of_each[0] if len(of_each) == 1 else distinct(np.concatenate(of_each))
        yield _part(batch, rows, share[rows] != number)


def _part(batch: RecordBatch, rows: Rows, tick: Flags) -> pa.Table:
    rejected = np.zeros(len(rows), np.uint8) if batch.rejected is None else batch.rejected[rows]
    place, key = pa.array(rows, mask=tick), batch.key[rows]
    columns: list[Any] = [
        batch.offset[rows],
        batch.timestamp_ms[rows],
        np.where(tick, np.uint8(TICK), rejected),
        pa.array(np.zeros(len(rows), np.bool_) if batch.still is None else batch.still[rows]),
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
    tables: list[pa.Table] = []
    for piece in pieces:
        tables.append(piece.table())
        if sum(table.num_rows for table in tables) >= job.step_records:
            yield from partition.take(records_of(job, number, tables))
            tables = []
    if tables:
        yield from partition.take(records_of(job, number, tables))
    yield from partition.finish()


def records_of(job: Job, number: int, tables: list[pa.Table]) -> RecordBatch:
    """The records and ticks of a share as the engine reads them."""
    table = pa.concat_tables(tables).combine_chunks()
    code = pc.dictionary_encode(table["key"]).combine_chunks()
    rejected, still = table["rejected"].to_numpy(), table["still"].to_numpy()
    return RecordBatch(
        keys=code.dictionary,
        key=code.indices.fill_null(-1).to_numpy().astype(np.int32),
        timestamp_ms=table["timestamp_ms"].to_numpy(),
        partition=np.zeros(len(table), np.int32),
        partitions=np.full(1, number, np.int64),
        rejected=rejected if rejected.any() else None,
        still=still if still.any() else None,
        given_offset=table["offset"].to_numpy(),
        values={name: table[f"v{place}"].combine_chunks() for place, name in enumerate(job.value_columns)},
    )


# ---- `dropped()` of sessions with the grace that was missing: a replay of each key, after a shuffle by key


def add_missing_grace(
    batches: Iterator[pa.RecordBatch], windows: SessionKind, retention_ms: int, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The dropped ones of these records, with the grace that they lacked; `batches` go by partition, key and offset."""
    rest: pa.Table | None = None
    for _, table in cut(batches, "partition", STEP_RECORDS):
        table = table if rest is None else pa.concat_tables([rest, table])
        last = _key_starts(table)[-1]
        rest = table.slice(last)
        yield from _dropped_with_grace(table.slice(0, last), windows, retention_ms, schema)
    if rest is not None:
        yield from _dropped_with_grace(rest, windows, retention_ms, schema)


def _key_starts(table: pa.Table) -> Rows:
    """First row of each (partition, key)."""
    code = table["key"].combine_chunks().dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False)
    partition = table["partition"].to_numpy()
    starts = (code[1:] != code[:-1]) | (partition[1:] != partition[:-1])
    return np.append(0, np.flatnonzero(starts) + 1)


def _dropped_with_grace(
    table: pa.Table, windows: SessionKind, retention_ms: int, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    if not table.num_rows:
        return
    starts = _key_starts(table)
    ends = np.append(starts[1:], table.num_rows)
    late = np.asarray(pc.equal(table["reason"], "late").fill_null(False))
    counted = np.asarray(pc.or_(pc.is_null(table["reason"]), pc.equal(table["reason"], "late").fill_null(False)))
    times = table["timestamp_ms"].fill_null(-1).to_numpy()
    stair = table["stream_time_ms"].to_numpy()
    missing, none = np.zeros(table.num_rows, np.int64), np.empty(0, np.int64)
    for key in distinct(np.searchsorted(starts, np.flatnonzero(late), "right") - 1).tolist():
        rows = starts[key] + np.flatnonzero(counted[starts[key] : ends[key]])
        behind = np.flatnonzero(late[rows])
        missing[rows[behind]] = windows.missing_grace_ms(times[rows], stair[rows], behind, retention_ms, (none, none))
    dropped = dropped_rows(table, late, missing, windows.grace_ms)
    yield from fit(columns_of(dropped), schema).to_batches(max_chunksize=BATCH_RECORDS)
