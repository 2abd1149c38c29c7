"""Records on their way through a shuffle of Spark's, as Arrow streams: of batches in slices, of streams a run as a row.

A record in Arrow's own form costs Spark a hundredth of a row. Slices stay small as Spark hands many rows over at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.base.arrays import Longs
from sessionkit.errors import InvalidData, problem
from sessionkit.records.places import not_after
from sessionkit.spark.worker.spent import Laps

SLICE_BYTES = 2_048  # times the 50,000 rows that Spark may hand over at once: what each of Java's tasks has to hold
MOST_RECORDS = 500_000  # in one row, which its task holds in memory as a whole
BLOCK = 2**20  # offsets that are sorted at once, so that a partition of any size fits into a task
SLICES = pa.schema(
    [
        ("place", pa.int32()),  # the task that it is for
        ("partition", pa.int64()),
        ("turn", pa.int64()),  # its place in the order of the partition
        ("piece", pa.int64()),  # there can be several for one turn
        ("number", pa.int32()),  # of the slice
        ("data", pa.binary()),
    ]
)
ORDER = ("partition", "turn", "piece", "number")

RUN_SCHEMA = pa.schema({"slot": pa.int32(), "partition": pa.int64(), "first_offset": pa.int64(), "data": pa.binary()})
# What waiting for the records of a run and packing them took is told beside it, and must not go through the shuffle:
# a lost task's rows have to come out the same again, else Spark 4.2 ends a job that has written some of its results.
PACKED_US = ("read_us", "pack_us")
PACKED_SCHEMA = pa.schema([*RUN_SCHEMA, *((name, pa.int64()) for name in PACKED_US)])
_SLOTS = 1_024


# ---- tables as slices


class Piece(NamedTuple):
    """Some records of one partition, as an Arrow stream."""

    partition: int
    turn: int
    data: pa.Buffer

    def table(self) -> pa.Table:
        return pa.ipc.open_stream(self.data).read_all()


def slices_of(place: int, partition: int, turn: int, piece: int, table: pa.Table) -> pa.RecordBatch:
    """The rows (`SLICES`) of one piece."""
    data = pa.py_buffer(to_stream(table.to_batches()))
    bounds = np.append(np.arange(0, data.size, SLICE_BYTES), data.size).astype(np.int32)
    count = len(bounds) - 1
    heads = [np.full(count, number) for number in (place, partition, turn, piece)]
    arrays = [pa.array(head, field.type) for head, field in zip(heads, SLICES, strict=False)]
    arrays.append(pa.array(np.arange(count), pa.int32()))
    arrays.append(pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(bounds), data]))
    return pa.RecordBatch.from_arrays(arrays, schema=SLICES)


def pieces_in(batches: Iterable[pa.RecordBatch]) -> Iterator[Piece]:
    """The pieces, from their slices in `ORDER`; a piece is copied only where it is cut by the end of a batch."""
    slices: list[pa.Buffer] = []
    partition = turn = -1
    for batch in batches:
        if not batch.num_rows:
            continue
        partitions, turns, numbers = (batch[name].to_numpy() for name in ("partition", "turn", "number"))
        begins = np.flatnonzero(numbers == 0).tolist()
        for begin, end in pairwise(sorted({0, *begins, batch.num_rows})):
            if slices and numbers[begin] == 0:
                yield Piece(partition, turn, _joined(slices))
                slices = []
            partition, turn = int(partitions[begin]), int(turns[begin])
            slices.append(_bytes(batch["data"], begin, end))
    if slices:
        yield Piece(partition, turn, _joined(slices))


def _joined(buffers: list[pa.Buffer]) -> pa.Buffer:
    return buffers[0] if len(buffers) == 1 else pa.py_buffer(b"".join(buffers))


def _bytes(column: pa.Array, begin: int, end: int) -> pa.Buffer:
    """The bytes of rows `begin` to `end`, which lie there without a gap."""
    _, bounds, data = column.buffers()
    width = np.int64 if pa.types.is_large_binary(column.type) else np.int32
    place: npt.NDArray[np.integer] = np.frombuffer(bounds, width)
    first, last = int(place[column.offset + begin]), int(place[column.offset + end])
    return data.slice(first, last - first)


# ---- records in no order, by partition and block of offsets


def by_block(
    batches: Iterable[pa.RecordBatch], where: tuple[int, int], names: tuple[str, str], first: int, width: int, task: int
) -> Iterator[pa.RecordBatch]:
    """The records as slices, in pieces of one block of offsets of one partition; each must have both.

    Args:
        where: places of the columns of partition and offset; `names` are what the input calls them.
        first: the smallest partition number, of which `width` in a row share a place.
        task: number of this task, as several make pieces of one block.
    """
    parts_of: dict[tuple[int, int], list[pa.RecordBatch]] = {}
    count, piece = 0, task << 32
    for batch in batches:
        for number, part in by_partition(batch, *where, names):
            block = part.column(where[1]).to_numpy() // BLOCK
            for begin, end in pairwise([0, *(np.flatnonzero(np.diff(block)) + 1).tolist(), len(block)]):
                parts_of.setdefault((number, int(block[begin])), []).append(part.slice(begin, end - begin))
        count += batch.num_rows
        if count >= MOST_RECORDS:
            for (number, turn), parts in parts_of.items():
                yield slices_of((number - first) // width, number, turn, piece, pa.Table.from_batches(parts))
            parts_of, count, piece = {}, 0, piece + 1
    for (number, turn), parts in parts_of.items():
        yield slices_of((number - first) // width, number, turn, piece, pa.Table.from_batches(parts))


def in_order(batches: Iterable[pa.RecordBatch], offset: int) -> Iterator[pa.RecordBatch]:
    """The records of those slices by rising offset, a block at a time; `offset` is the place of its column."""
    for _, pieces in groupby(pieces_in(batches), key=lambda piece: (piece.partition, piece.turn)):
        table = pa.concat_tables(piece.table() for piece in pieces).combine_chunks()
        at = table.column(offset).to_numpy()
        if (at[1:] < at[:-1]).any():
            table = table.take(pa.array(np.argsort(at, kind="stable")))
        yield from table.to_batches()


# ---- runs of records of one partition, a row each


class Packed(NamedTuple):
    """Records of one partition in rising offset order, as an Arrow stream."""

    partition: int
    first_offset: int
    data: bytes


def pack(
    batches: Iterable[pa.RecordBatch], partition: int, offset: int, names: tuple[str, str]
) -> Iterator[pa.RecordBatch]:
    """One row (`PACKED_SCHEMA`) for the records of each partition in `batches`; more of them, if they are many.

    Args:
        partition, offset: places of the columns that say where a record is.
        names: what the input calls them, for an error.
    """
    parts_of: dict[int, list[pa.RecordBatch]] = {}
    counts: dict[int, int] = {}
    laps = Laps(batches)
    for batch in laps:
        for number, part in by_partition(batch, partition, offset, names):
            parts_of.setdefault(number, []).append(part)
            counts[number] = counts.get(number, 0) + part.num_rows
            if counts[number] >= MOST_RECORDS:
                yield _run(number, parts_of.pop(number), offset, laps)
                counts[number] = 0
    for number, parts in parts_of.items():
        yield _run(number, parts, offset, laps)


def by_partition(
    batch: pa.RecordBatch, partition: int, offset: int, names: tuple[str, str]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The records of each partition, by offset."""
    for name, place in zip(names, (partition, offset), strict=True):
        if batch.column(place).null_count:
            want = "a partition and an offset for every record"
            got = f"{batch.column(place).null_count:,}"
            raise InvalidData(problem(f"column {name!r} has missing values", got, want))
    if not batch.num_rows:
        return
    number, at = (batch.column(place).to_numpy().astype(np.int64) for place in (partition, offset))
    if int(number.min()) < 0:
        raise InvalidData(problem("a partition number must be 0 or more", int(number.min()), "Kafka counts from 0"))
    same = number[1:] == number[:-1]
    if not np.where(same, at[1:] > at[:-1], number[1:] > number[:-1]).all():
        order = np.lexsort((at, number))
        batch, number = batch.take(pa.array(order)), number[order]
        same = number[1:] == number[:-1]
    for begin, end in pairwise([0, *(np.flatnonzero(~same) + 1).tolist(), len(number)]):
        yield int(number[begin]), batch.slice(begin, end - begin)


def _run(number: int, parts: list[pa.RecordBatch], offset: int, laps: Laps[pa.RecordBatch]) -> pa.RecordBatch:
    first = min(int(part.column(offset)[0].as_py()) for part in parts)
    row = [slot_of(number), number, first, to_stream(parts), *laps.lap()]
    arrays = [pa.array([value], field.type) for value, field in zip(row, PACKED_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=PACKED_SCHEMA)


def to_stream(batches: list[pa.RecordBatch]) -> bytes:
    """Batches of one schema as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def unpacked(packed: Iterable[Packed], offset: int) -> pa.Table:
    """All records of one partition by rising offset, each once, whatever order the runs came in."""
    runs = sorted(packed, key=lambda run: run.first_offset)
    table = pa.concat_tables(pa.ipc.open_stream(run.data).read_all() for run in runs).combine_chunks()
    at = table.column(offset).to_numpy().astype(np.int64)
    if (at[1:] > at[:-1]).all():
        return table
    order = np.argsort(at, kind="stable")
    at = at[order]
    twice = np.flatnonzero(at[1:] == at[:-1])
    if len(twice):
        raise not_after(runs[0].partition, int(at[twice[0]]), int(at[twice[0]]))
    return table.take(pa.array(order)).combine_chunks()


# ---- which task a partition goes to


def slot_of(partition: int) -> int:
    """The number that stands for a partition in a shuffle, so that neighbours go to different tasks.

    Spark deals numbers out by their hash. That of `slot_of(p)` is `p` modulo 1,024: with 2, 4, 8, … tasks, partition p
    goes to task p modulo their number. It never changes, as Spark keeps state under it.
    """
    return int(_slots(partition // _SLOTS)[partition % _SLOTS])


@cache
def _slots(turn: int) -> Longs:
    """For each remainder the (turn + 1)-th number whose hash leaves it."""
    found = np.full(_SLOTS, -1)
    seen = np.zeros(_SLOTS, np.int64)
    first = 0
    while (found < 0).any():
        numbers = np.arange(first, first + 64 * _SLOTS)
        first += len(numbers)
        left = spark_hash(numbers) % _SLOTS
        order = np.argsort(left, kind="stable")
        numbers, left = numbers[order], left[order]
        start = np.searchsorted(left, np.arange(_SLOTS))
        count = np.bincount(left, minlength=_SLOTS)
        wanted = turn - seen
        here = (found < 0) & (wanted < count)
        found[here] = numbers[(start + wanted)[here]]
        seen += count
    return found


def spark_hash(numbers: Longs) -> Longs:
    """Spark's `hash` of 32-bit integers (Murmur3 with seed 42), as numbers of 0 and more."""
    mask = np.uint64(0xFFFFFFFF)

    def turned(value: npt.NDArray[np.uint64], bits: int) -> npt.NDArray[np.uint64]:
        return ((value << np.uint64(bits)) | (value >> np.uint64(32 - bits))) & mask

    mixed = numbers.astype(np.uint64) & mask
    mixed = (turned((mixed * np.uint64(0xCC9E2D51)) & mask, 15) * np.uint64(0x1B873593)) & mask
    h = (turned(np.uint64(42) ^ mixed, 13) * np.uint64(5) + np.uint64(0xE6546B64)) & mask
    h ^= np.uint64(4)  # the length in bytes
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h = ((h ^ (h >> np.uint64(shift))) * np.uint64(factor)) & mask
    return (h ^ (h >> np.uint64(16))).astype(np.int64)
