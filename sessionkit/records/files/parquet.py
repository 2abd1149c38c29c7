"""Parquet as it is read everywhere here: checksums are verified, and row groups are read side by side."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.base.arrays import NUMBERS, arrow_array, is_null, numpy_array
from sessionkit.base.process import few_at_once, in_threads
from sessionkit.errors import InvalidData, errors_as, shorten
from sessionkit.records.files.content import Content
from sessionkit.records.times import FINER

if TYPE_CHECKING:
    import pyarrow.parquet as pq


class Landing:
    """The columns of all rows, to be filled part by part, each by a thread of its own.

    `rows` is how many each part has; of the times in columns `milliseconds` with a zone nothing finer is wanted.
    """

    def __init__(self, rows: Sequence[int], milliseconds: Collection[str] = ()) -> None:
        self._ends = np.cumsum([0, *rows])
        self._milliseconds = milliseconds
        self._room: dict[str, npt.NDArray[Any]] = {}
        self._kept: set[str] = set()  # columns of which a part stays as it was read

    def land(self, number: int, part: pa.Table) -> pa.Table:
        """The part with its numbers over the memory of all rows; text, and numbers of which some are missing, stay."""
        first, behind = self._ends[number : number + 2].tolist()
        if len(part) != behind - first:
            raise pa.ArrowInvalid(f"row groups have {len(part)} rows in place of {behind - first}")
        columns = [self._landed(name, part[name], slice(first, behind)) for name in part.column_names]
        return pa.table(columns, part.column_names)

    def _landed(self, name: str, column: pa.ChunkedArray, rows: slice) -> pa.ChunkedArray:
        kind, finer = column.type, 1
        if name in self._milliseconds and pa.types.is_timestamp(kind) and kind.tz is not None:
            finer = FINER.get(kind.unit, 1)
            kind = kind if finer == 1 else pa.timestamp("ms", kind.tz)
        numbers = column.cast(pa.int64()) if pa.types.is_timestamp(kind) else column
        if numbers.type not in NUMBERS or column.null_count:
            self._kept.add(name)
            if finer == 1:
                return column
            return arrow_array(numpy_array(numbers) // finer, is_null(numbers)).cast(kind)
        room = self._room_for(name, NUMBERS[numbers.type])
        at = rows.start
        for chunk in numbers.chunks:
            here = room[at : at + len(chunk)]
            at += len(chunk)
            if finer == 1:
                here[:] = numpy_array(chunk)
            else:
                np.floor_divide(numpy_array(chunk), finer, out=here)
        return pa.chunked_array([_as_arrow(room[rows], kind)])

    def _room_for(self, name: str, kind: np.dtype[Any]) -> npt.NDArray[Any]:
        rows = int(self._ends[-1])
        try:
            return self._room.setdefault(name, np.empty(rows, kind))  # another thread may have been first
        except (MemoryError, ValueError) as error:
            raise pa.ArrowInvalid(f"it says that it has {rows:,} rows, for which there is no memory") from error

    def joined(self, parts: Sequence[pa.Table]) -> pa.Table:
        """All rows, from the parts that landed."""
        table = pa.concat_tables(parts)
        for at, name in enumerate(table.column_names):
            if name in self._room and name not in self._kept:
                table = table.set_column(at, name, _as_arrow(self._room[name], table[name].type))
        return table


def _as_arrow(numbers: npt.NDArray[Any], kind: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(numbers)])


_READ_AT_ONCE = 2**26  # bytes of row groups that many threads read side by side
_READ_TOGETHER = 2**17  # rows of groups that one thread reads together


def open_parquet(file: Any, **options: Any) -> pq.ParquetFile:
    """The file, which may also be an open one, to read parts of it. Arrow's errors stay as they are: see `readable`."""
    import pyarrow.parquet as pq

    return pq.ParquetFile(file, page_checksum_verification=True, **options)


def rows_of(content: Content) -> int:
    """How many rows a Parquet file says that it has."""
    with readable(content.name), open_parquet(content.seekable()) as file:
        return int(file.metadata.num_rows)


def parquet_names(file: Any) -> list[str]:
    """The names of the columns in a Parquet file, which may also be an open one. Arrow's errors stay as they are."""
    import pyarrow.parquet as pq

    return pq.read_schema(file).names


def read_parquet(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> pa.Table:
    """The file, or these columns of it; `InvalidData` where it cannot be read, or a page is not what was written."""
    with readable(path):
        return parquet_table(path, columns)


def parquet_table(
    file: Any,
    columns: Sequence[str] | None = None,
    dictionaries: Sequence[str] = (),
    milliseconds: Collection[str] = (),
) -> pa.Table:
    """The file, which may also be an open one, or these columns of it. Arrow's errors stay as they are.

    Row groups are read side by side: each gives one chunk with one dictionary, where Arrow's own way gives many. Small
    ones are read together. Of the times in columns `milliseconds` nothing finer is wanted.
    """
    opened = pa.OSFile(os.fspath(file)) if isinstance(file, str | os.PathLike) else file
    options = {"read_dictionary": [name for name in dictionaries if columns is None or name in columns]}
    with open_parquet(opened, **options) as whole:
        count, names = whole.metadata.num_row_groups, None if columns is None else list(columns)
        if count < 2 or isinstance(opened, pa.PythonFile):  # which serves one thread
            return whole.read(columns=names)

        groups = [whole.metadata.row_group(number) for number in range(count)]
        rows, sizes = [each.num_rows for each in groups], [each.total_byte_size for each in groups]
        turns = np.cumsum(rows) // _READ_TOGETHER  # those of one number are read together
        firsts = [0, *(np.flatnonzero(np.diff(turns)) + 1).tolist()]
        spans = [range(first, behind) for first, behind in pairwise([*firsts, count])]
        landing = Landing([sum(rows[span.start : span.stop]) for span in spans], milliseconds)

        def read(number: int) -> pa.Table:
            with open_parquet(opened, metadata=whole.metadata, **options) as own:
                return landing.land(number, own.read_row_groups(spans[number], columns=names, use_threads=False))

        sizes = [sum(sizes[span.start : span.stop]) for span in spans]
        return landing.joined(in_threads(read, range(len(spans)), few_at_once(sizes, _READ_AT_ONCE)))


def readable(path: str | os.PathLike[str]) -> AbstractContextManager[None]:
    """Arrow's error on a file that it cannot read, as `InvalidData`."""
    want = f"check that {shorten(os.path.basename(path))} is complete"
    return errors_as(InvalidData, "the file cannot be read", want, (pa.ArrowException, OSError), 200)
