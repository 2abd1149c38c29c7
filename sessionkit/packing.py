"""Runs of records of one partition as one row each, for the way through a shuffle; and back.

A row of Spark's costs as much to hand to Python as a hundred records in Arrow's own form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.errors import InvalidData, problem

MOST_RECORDS = 500_000  # in one row, which its task holds in memory as a whole
RUN_SCHEMA = pa.schema(
    [
        ("slot", pa.int32()),
        ("partition", pa.int64()),
        ("first_offset", pa.int64()),
        ("data", pa.binary()),
    ]
)
_SLOTS = 1_024


class Packed(NamedTuple):
    """Records of one partition in rising offset order, as an Arrow stream."""

    partition: int
    first_offset: int
    data: bytes


def pack(
    batches: Iterable[pa.RecordBatch], partition: int, offset: int, names: tuple[str, str]
) -> Iterator[pa.RecordBatch]:
    """One row (`RUN_SCHEMA`) for the records of each partition in `batches`; more of them, if they are many.

    Args:
        partition, offset: places of the columns that say where a record is.
        names: what the input calls them, for an error.
    Raises:
        InvalidData: a record without a partition or an offset.
    """
    held: dict[int, list[pa.RecordBatch]] = {}
    counts: dict[int, int] = {}
    for batch in batches:
        for number, part in by_partition(batch, partition, offset, names):
            held.setdefault(number, []).append(part)
            counts[number] = counts.get(number, 0) + part.num_rows
            if counts[number] >= MOST_RECORDS:
                yield _run(number, held.pop(number), offset)
                counts[number] = 0
    for number, parts in held.items():
        yield _run(number, parts, offset)


def by_partition(
    batch: pa.RecordBatch, partition: int, offset: int, names: tuple[str, str]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The records of each partition, by offset."""
    for name, place in zip(names, (partition, offset), strict=True):
        if batch.column(place).null_count:
            want = "each record is in one partition, at one offset"
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


def _run(number: int, parts: list[pa.RecordBatch], offset: int) -> pa.RecordBatch:
    first = min(int(part.column(offset)[0].as_py()) for part in parts)
    row = [[slot_of(number)], [number], [first], [to_stream(parts)]]
    arrays = [pa.array(column, field.type) for column, field in zip(row, RUN_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=RUN_SCHEMA)


def to_stream(batches: list[pa.RecordBatch]) -> bytes:
    """Batches of one schema as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    raw: bytes = sink.getvalue().to_pybytes()
    return raw


def in_order(packed: Iterable[Packed], offset: int, name: str) -> pa.Table:
    """All records of one partition by rising offset, whatever order the runs came in, and whether or not they overlap.

    Raises:
        InvalidData: an offset is there twice.
    """
    runs = sorted(packed, key=lambda run: run.first_offset)
    table = pa.concat_tables(pa.ipc.open_stream(run.data).read_all() for run in runs).combine_chunks()
    at = _offsets(table, offset)
    if (at[1:] > at[:-1]).all():
        return table
    order = np.argsort(at, kind="stable")
    at = at[order]
    twice = np.flatnonzero(at[1:] == at[:-1])
    if len(twice):
        got = f"partition {runs[0].partition}: {int(at[twice[0]])}"
        raise InvalidData(problem(f"an offset ({name!r}) is there twice", got, "each record once"))
    return table.take(pa.array(order)).combine_chunks()


def _offsets(table: pa.Table, offset: int) -> npt.NDArray[np.int64]:
    return table.column(offset).to_numpy().astype(np.int64)


# ---- which task a partition goes to


def slot_of(partition: int) -> int:
    """The number that stands for a partition in a shuffle, so that neighbours go to different tasks.

    Spark deals numbers out by their hash. That of `slot_of(p)` is `p` modulo 1,024: with 2, 4, 8, … tasks, partition p
    goes to task p modulo their number. It never changes, as Spark keeps state under it.

    Example:
        >>> [slot_of(partition) for partition in range(4)]
        [1021, 94, 1007, 991]
    """
    return int(_slots(partition // _SLOTS)[partition % _SLOTS])


@cache
def _slots(turn: int) -> npt.NDArray[np.int64]:
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


def spark_hash(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
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
