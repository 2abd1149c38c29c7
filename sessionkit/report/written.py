"""Tables as files that other programs read: CSV, or Parquet."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from sessionkit.base.result_folders import taken
from sessionkit.errors import InvalidArgument, UnsupportedData, errors_as, problem, shorten

FORMATS = ("csv", "parquet")


def write_table(table: pa.Table, path: Path) -> None:
    """Writes a table to a path that ends in .csv or .parquet."""
    if path.suffix.lower() in (".parquet", ".pq"):
        import pyarrow.parquet as pq

        pq.write_table(table, path)
    else:
        with path.open("wb") as file:
            write_csv(table, file)


def write_csv(table: pa.Table, file: BinaryIO) -> None:
    """Writes a table as CSV: times with their offset from UTC, lists and structs as JSON, missing values as nothing."""
    from pyarrow import csv

    columns = [_as_plain(column, name) for name, column in zip(table.column_names, table.columns, strict=True)]
    csv.write_csv(pa.Table.from_arrays(columns, names=table.column_names), file)


def _as_plain(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_nested(kind):
        texts = [None if value is None else json.dumps(value, default=str) for value in column.to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.large_string())])
    if pa.types.is_duration(kind) or pa.types.is_large_binary(kind) or pa.types.is_string_view(kind):
        want = "--out with a name that ends in .parquet, which takes it as it is"
        with errors_as(UnsupportedData, f"column {name!r} cannot be written as text", want, pa.ArrowException):
            return column.cast(pa.large_string() if not pa.types.is_duration(kind) else pa.int64())
    return column


def check_free(path: Path, *, overwrite: bool) -> None:
    """Refuses a path where something is already, and one whose ending says neither CSV nor Parquet."""
    if path.suffix.lower() not in (".csv", ".parquet", ".pq"):
        want = "a name that ends in .csv or .parquet"
        raise InvalidArgument(problem("--out names a file of an unknown kind", shorten(path, 500), want))
    if path.is_dir() or (os.path.lexists(path) and not overwrite):
        raise taken(path)


def as_arrow(frame: Any) -> pa.Table:
    """A frame of any kind as an Arrow table, without the index of pandas."""
    if isinstance(frame, pa.Table):
        return frame
    return pa.Table.from_pandas(frame, preserve_index=False)
