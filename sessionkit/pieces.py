"""Tables on their way through a shuffle of Spark's: each as an Arrow stream, cut into slices of a few kilobytes.

A record in Arrow's own form costs Spark a hundredth of a row. Slices stay small as Spark hands many rows over at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.packing import MOST_RECORDS, by_partition, to_stream

SLICE_BYTES = 16_384  # times the 50,000 rows that Spark may hand over at once: less than the 2 GiB where bytes end
BLOCK = 2**20  # offsets that are sorted at once, so that a partition of any size fits into a task
SLICES = pa.schema(
    [
        ("place", pa.int32()),  # the task that it is for
        ("partition", pa.int64()),
        ("turn", pa.int64()),  # what of the partition comes first
        ("piece", pa.int64()),  # there can be several for one turn
        ("number", pa.int32()),  # of the slice
        ("data", pa.binary()),
    ]
)
ORDER = ("partition", "turn", "piece", "number")


class Piece(NamedTuple):
    """Some records of one partition, as an Arrow stream."""

    partition: int
    turn: int
    data: pa.Buffer

    def table(self) -> pa.Table:
        """The records."""
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
    held: list[pa.Buffer] = []
    where = (-1, -1)
    for batch in batches:
        if not batch.num_rows:
            continue
        partition, turn, number = (batch[name].to_numpy() for name in ("partition", "turn", "number"))
        begins = np.flatnonzero(number == 0).tolist()
        for begin, end in pairwise(sorted({0, *begins, batch.num_rows})):
            if held and number[begin] == 0:
                yield Piece(*where, _joined(held))
                held = []
            where = (int(partition[begin]), int(turn[begin]))
            held.append(_bytes(batch["data"], begin, end))
    if held:
        yield Piece(*where, _joined(held))


def _joined(buffers: list[pa.Buffer]) -> pa.Buffer:
    return buffers[0] if len(buffers) == 1 else pa.py_buffer(b"".join(buffers))


def _bytes(column: pa.Array, begin: int, end: int) -> pa.Buffer:
    """What rows `begin` to `end` hold, which lies there without a gap."""
    _, bounds, data = column.buffers()
    width = np.int64 if pa.types.is_large_binary(column.type) else np.int32
    place: npt.NDArray[np.integer] = np.frombuffer(bounds, width)
    first, last = int(place[column.offset + begin]), int(place[column.offset + end])
    return data.slice(first, last - first)


# ---- records in no order, by partition and block of offsets


def by_block(
    batches: Iterable[pa.RecordBatch], where: tuple[int, int], names: tuple[str, str], first: int, width: int, task: int
) -> Iterator[pa.RecordBatch]:
    """The records as slices, in pieces of one block of offsets of one partition.

    Args:
        where: places of the columns of partition and offset; `names` are what the input calls them.
        first: the smallest partition number, of which `width` in a row share a place.
        task: number of this task, as several make pieces of one block.
    Raises:
        InvalidData: a record without a partition or an offset.
    """
    held: dict[tuple[int, int], list[pa.RecordBatch]] = {}
    count, piece = 0, task << 32
    for batch in batches:
        for number, part in by_partition(batch, *where, names):
            block = part.column(where[1]).to_numpy() // BLOCK
            for begin, end in pairwise([0, *(np.flatnonzero(np.diff(block)) + 1).tolist(), len(block)]):
                held.setdefault((number, int(block[begin])), []).append(part.slice(begin, end - begin))
        count += batch.num_rows
        if count >= MOST_RECORDS:
            for (number, turn), parts in held.items():
                yield slices_of((number - first) // width, number, turn, piece, pa.Table.from_batches(parts))
            held, count, piece = {}, 0, piece + 1
    for (number, turn), parts in held.items():
        yield slices_of((number - first) // width, number, turn, piece, pa.Table.from_batches(parts))


def in_order(batches: Iterable[pa.RecordBatch], offset: int) -> Iterator[pa.RecordBatch]:
    """The records of those slices by rising offset, a block at a time; `offset` is the place of its column."""
    for _, pieces in groupby(pieces_in(batches), key=lambda piece: (piece.partition, piece.turn)):
        table = pa.concat_tables(piece.table() for piece in pieces).combine_chunks()
        at = table.column(offset).to_numpy()
        if (at[1:] < at[:-1]).any():
            table = table.take(pa.array(np.argsort(at, kind="stable")))
        yield from table.to_batches()
