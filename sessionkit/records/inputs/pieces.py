"""Anything that a plan takes as records, opened as tables that follow each other."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from sessionkit.errors import InvalidData, errors_as
from sessionkit.records.inputs.nested import columns_for, with_fields
from sessionkit.records.inputs.opened import Opened, is_arrow, is_files, library_of, open_table
from sessionkit.records.inputs.pandas_columns import check_columns
from sessionkit.records.source import Source


class Pieces(NamedTuple):
    """Records in pieces: `head` has none, but what all of them have; `rows` is how many there are, if that is known.

    `marks` tell what they are, for a later call that goes on: "" where nothing does. `read` gives those from a row on,
    about so many at a time.
    """

    head: Opened
    rows: int | None
    marks: str
    read: Callable[[int, int], Iterator[Opened]]


# The columns of these names, about so many rows at a time.
_Batches: TypeAlias = Callable[[list[str], int], Iterator[pa.RecordBatch]]


def open_pieces(data: Any, wanted: list[str], source: Source) -> Pieces:
    """The wanted columns of `data` in pieces.

    Files, datasets and readers of Arrow are read as they are wanted. All else is in memory already, and is cut.

    Raises:
        As `open_table`; of text files, later: a row that is of another type than the first.
    """
    if is_files(data):
        return of_files(data, wanted, source)
    if is_arrow(data, "pyarrow.dataset", "Dataset"):
        fragments = sorted(data.get_fragments(), key=lambda each: str(getattr(each, "path", "")))
        rows = sum(each.count_rows() for each in fragments)
        schema = data.schema
        return _of_stream(
            schema, rows, wanted,
            lambda names, most: (
                batch for each in fragments for batch in each.to_batches(schema=schema, columns=names, batch_size=most)
            ),
        )  # fmt: skip
    if is_arrow(data, "pyarrow.parquet", "ParquetFile"):
        rows = data.metadata.num_rows
        return _of_stream(data.schema_arrow, rows, wanted, lambda names, most: data.iter_batches(most, columns=names))
    is_stream = hasattr(data, "__arrow_c_stream__") and not isinstance(data, pa.Table | pa.RecordBatch)
    if is_stream and library_of(data) not in ("pandas", "polars"):
        reader = data if isinstance(data, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(data)
        return _of_stream(reader.schema, None, wanted, lambda names, most: (each.select(names) for each in reader))
    return _of_table(open_table(data, wanted, source))


def of_files(data: Any, wanted: list[str] | None, source: Source) -> Pieces:
    """The wanted columns of files, or all of them, in pieces."""
    from sessionkit.records.files.pieces import file_pieces

    form = {**source.text_form, "timezone": source.timezone}
    files = file_pieces(data, wanted, source.keys, source.text_types, **form)
    empty, remarks = files.head
    head = Opened(table=empty, frame="pandas", original=empty, remarks=tuple(remarks))

    def read(first: int, most: int) -> Iterator[Opened]:
        for table in files.read(first, most):
            yield dataclasses.replace(head, table=table, original=None)

    return Pieces(head, files.rows, "\n".join(files.marks) if all(files.marks) else "", read)


def _of_stream(
    schema: pa.Schema,
    rows: int | None,
    wanted: list[str],
    batches: Callable[[list[str], int], Iterator[pa.RecordBatch]],
) -> Pieces:
    names = columns_for(schema.names, wanted)
    check_columns(schema.names, names)
    empty = with_fields(schema.empty_table().select(names), wanted)
    head = Opened(table=empty, frame="arrow", original=empty)

    def read(first: int, most: int) -> Iterator[Opened]:
        want = "check that its files are complete"
        with errors_as(InvalidData, "the records cannot be read", want, (pa.ArrowException, OSError), 200):
            for batch in batches(names, most):
                table = with_fields(pa.Table.from_batches([batch]).select(names), wanted)
                yield dataclasses.replace(head, table=table.slice(first), original=None)
                first = max(0, first - len(table))

    return Pieces(head, rows, "", read)


def _of_table(opened: Opened) -> Pieces:
    def read(first: int, most: int) -> Iterator[Opened]:
        for at in range(first, len(opened.table), most):
            yield dataclasses.replace(opened, table=opened.table.slice(at, most), original=None)

    head = dataclasses.replace(opened, table=opened.table.slice(0, 0), original=None)
    return Pieces(head, len(opened.table), "", read)
