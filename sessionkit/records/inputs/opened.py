"""Anything that a plan takes as records, opened as an Arrow table."""

from __future__ import annotations

import dataclasses
import io
import os
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from sessionkit.errors import InvalidData, MissingColumn, SessionkitError, UnsupportedData, problem, shorten
from sessionkit.records.frames import FrameKind, to_frame
from sessionkit.records.inputs.nested import columns_for, field_of, perhaps, root_of, with_fields
from sessionkit.records.inputs.pandas_columns import NOT_ARROW, check_columns, from_series
from sessionkit.records.inputs.plain_columns import check_polars
from sessionkit.records.source import Source

_TAKEN = (
    "a frame (pandas, polars, pyarrow, DuckDB), the path of a file, folder or glob, an open binary file, "
    "a list of dicts or a dict of columns"
)


@dataclass(frozen=True, kw_only=True)
class Opened:
    """Records as a table, and what is to be known of where they came from.

    `original` has the rows, the index and the columns that the user gave: the frame itself, or the table that was read.
    `objects` are the columns that Arrow cannot hold; the table has their row numbers instead.
    """

    table: pa.Table
    frame: FrameKind
    original: Any
    objects: dict[str, list[Any]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()  # on how they were read


def open_table(data: Any, wanted: list[str] | None, source: Source, *, milliseconds: Collection[str] = ()) -> Opened:
    """The wanted columns of `data`, or all of them if None.

    Args:
        milliseconds: columns of times of which nothing finer is wanted; those of files may then come as it.
    Raises:
        UnsupportedData: these are no records, or Arrow cannot read a column.
        MissingColumn: a wanted column is not there.
        InvalidData: a wanted column is there twice, or a file cannot be read.
        InvalidArgument: there is no such file.
    """
    try:
        return _opened(data, wanted, source, milliseconds)
    except MissingColumn as error:
        raise MissingColumn(f"{error}{_perhaps(data, wanted or [])}") from error


def _perhaps(data: Any, wanted: list[str]) -> str:
    from sessionkit.records.files.tables import first_rows

    with suppress(SessionkitError, TypeError):  # it has no rows that could be looked at
        if _is_path(data):
            return perhaps(first_rows(data), wanted)
        data = frame_of_rows(data) if isinstance(data, list | tuple) else data
        return perhaps(_arrow_table(data.head(100) if hasattr(data, "head") else data), wanted)
    return ""


def _opened(data: Any, wanted: list[str] | None, source: Source, milliseconds: Collection[str]) -> Opened:
    if _is_path(data) or (isinstance(data, list | tuple) and data and all(map(_is_path, data))):
        from sessionkit.records.files.tables import read_file

        table, said = read_file(data, wanted, source.keys, source.text_types, milliseconds, **source.text_form)
        return Opened(table=table, frame="pandas", original=table, remarks=tuple(said))
    if hasattr(data, "__arrow_c_stream__") and (_library(data) not in ("pandas", "polars") or hasattr(data, "columns")):
        return _from_frame(data, wanted, source)
    if isinstance(data, list | tuple):
        return _from_frame(frame_of_rows(data), wanted, source)
    if isinstance(data, Mapping):
        return _from_frame(frame_of_columns(data), wanted, source)
    if is_scan(data):
        table = scanned(data, wanted)
        return Opened(table=with_fields(table, wanted), frame="arrow", original=table)
    if _library(data) == "polars" and hasattr(data, "collect"):
        return _from_polars(collected(data, wanted), wanted)
    if hasattr(data, "read") and not isinstance(data, io.TextIOBase):
        return _from_buffer(data, wanted, source)
    raise UnsupportedData(problem("these are not records", type(data).__name__, _call_for(data) or _TAKEN))


def _is_path(data: Any) -> bool:
    return isinstance(data, str | os.PathLike)


def _library(data: Any) -> str:
    return type(data).__module__.partition(".")[0]


def _call_for(data: Any) -> str:
    """The call that makes records of it, where there is one that is easily meant."""
    if isinstance(data, bytes | bytearray | memoryview):
        return "io.BytesIO(data) if these are the bytes of a file"
    if isinstance(data, io.TextIOBase):
        return 'a file opened as binary: open(path, "rb"), or io.BytesIO(text.encode())'
    if isinstance(data, Iterator):
        return "list(rows), if these are dicts"
    if _library(data) == "numpy":
        return "pandas.DataFrame(array, columns=[…])"
    return "data.to_frame()" if hasattr(data, "to_frame") else ""


def _from_frame(data: Any, wanted: list[str] | None, source: Source) -> Opened:
    if _library(data) == "pandas":
        objects: dict[str, list[Any]] = {}
        levels = [name for name in data.index.names if name is not None and name not in data.columns]
        is_bare = hasattr(data.index, "tz") and data.index.name is None
        way = "df.rename_axis({!r}), which names its index of times" if is_bare else ""
        _checked([*data.columns, *levels], wanted, way)
        chosen = list(data.columns) if wanted is None else wanted
        table = pa.table({name: _pandas_column(data, name, source, objects) for name in chosen})
        return Opened(table=table, frame="pandas", original=data, objects=objects)
    if _library(data) == "polars":
        return _from_polars(data, wanted)
    table = _arrow_table(data)
    chosen = table.select(_checked(table.column_names, wanted))
    return Opened(table=with_fields(chosen, wanted), frame="arrow", original=table)


def _pandas_column(data: Any, name: str, source: Source, objects: dict[str, list[Any]]) -> pa.Array | pa.ChunkedArray:
    """A column, a level of the index, or a field in a column."""
    if name in data.columns:
        return from_series(data[name], name, source, objects)
    if name in data.index.names:
        return from_series(data.index.get_level_values(name).to_series(), name, source, objects)
    root = root_of(list(data.columns), name)
    return field_of(_arrow_table({root: data[root]})[root], name, list(data.columns))


def _from_polars(data: Any, wanted: list[str] | None) -> Opened:
    names = _checked(data.columns, wanted)
    check_polars(data, names)
    return Opened(table=with_fields(_arrow_table(data[names]), wanted), frame="polars", original=data)


def _from_buffer(data: Any, wanted: list[str] | None, source: Source) -> Opened:
    from sessionkit.records.files.tables import read_buffer

    given = getattr(data, "name", None)
    name = os.path.basename(given) if isinstance(given, str) else "the buffer"
    raw = data.read()
    if not isinstance(raw, bytes):
        want = 'a file opened as binary: open(path, "rb"), or io.BytesIO(text.encode())'
        raise UnsupportedData(problem("an open file must give bytes", type(raw).__name__, want))
    raw = pa.py_buffer(raw)
    table, said = read_buffer(name, raw, wanted, source.keys, source.text_types, **source.text_form)
    return Opened(table=table, frame="pandas", original=table, remarks=tuple(said))


def _arrow_table(data: Any) -> pa.Table:
    try:  # what is Arrow's already does not go through its C interface, where a NUL ends a name
        data = pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data
        return data if isinstance(data, pa.Table) else pa.table(data)
    except NOT_ARROW as error:
        want = "columns of one type each; text must be valid Unicode, without lone surrogates"
        raise UnsupportedData(problem("the frame cannot be read as columns", shorten(error, 200), want)) from error


def _checked(names: list[str], wanted: list[str] | None, way: str = "") -> list[str]:
    chosen = names if wanted is None else columns_for(names, wanted)
    check_columns(names, chosen, way)
    return chosen


_FILE = "__filename"  # what Arrow calls the file that a row came from


def is_scan(data: Any) -> bool:
    """True for a dataset or a Parquet file of Arrow, told without loading what reads them."""
    return _is(data, "pyarrow.dataset", "Dataset") or _is(data, "pyarrow.parquet", "ParquetFile")


def _is(data: Any, module: str, name: str) -> bool:
    """Whoever has such an object has loaded its module."""
    found = getattr(sys.modules.get(module), name, None)
    return found is not None and isinstance(data, found)


def scanned(data: Any, wanted: list[str] | None) -> pa.Table:
    """The wanted columns, or all; those of a dataset's files in the order of the names of the files.

    Raises:
        MissingColumn: a wanted column is not there.
        InvalidData: a wanted column is there twice, or a file cannot be read.
    """
    is_file = not _is(data, "pyarrow.dataset", "Dataset")
    names = (data.schema_arrow if is_file else data.schema).names
    chosen = names if wanted is None else columns_for(names, wanted)
    check_columns(names, chosen)
    try:
        if is_file:
            return data.read(columns=chosen).select(chosen)
        files = list(getattr(data, "files", []))
        if files == sorted(files):
            return data.to_table(columns=chosen)
        table = data.to_table(columns=[*chosen, _FILE])
        return table.sort_by(_FILE).select(chosen)
    except (pa.ArrowException, OSError) as error:
        raise InvalidData(
            problem("the dataset cannot be read", shorten(error, 200), "check that its files are complete")
        ) from error


def collected(data: Any, wanted: list[str] | None) -> Any:
    """The wanted columns of a lazy frame of polars, or all, as a frame.

    Raises:
        MissingColumn: a wanted column is not there.
        InvalidData: what it stands for cannot be computed.
    """
    import polars

    try:
        names = data.collect_schema().names()
        chosen = columns_for(names, wanted or [])
        check_columns(names, chosen)
        return (data if wanted is None else data.select(chosen)).collect(engine="streaming")
    except (polars.exceptions.PolarsError, OSError) as error:
        want = "a LazyFrame whose collect() gives a frame"
        raise InvalidData(problem("the LazyFrame cannot be collected", shorten(error, 200), want)) from error


def open_whole(data: Any, source: Source) -> Opened:
    """All columns of `data` as the original, and those that the source names as the table.

    Columns of a frame that the source does not name are not looked at.

    Raises:
        UnsupportedData, MissingColumn, InvalidData: as `open_table` does.
    """
    if _is_frame(data):
        return open_table(data, source.columns(), source)
    read = open_table(data, None, source)
    whole = read.original
    whole = to_frame(whole, read.frame) if isinstance(whole, pa.Table) else whole
    opened = open_table(whole, source.columns(), source)
    return dataclasses.replace(opened, remarks=read.remarks)


def _is_frame(data: Any) -> bool:
    is_of_library = type(data).__module__.partition(".")[0] in ("pandas", "polars")
    return isinstance(data, pa.Table) or (is_of_library and hasattr(data, "__arrow_c_stream__"))


def frame_of_rows(rows: Sequence[Any]) -> Any:
    """A row for each dict, with a column for each name in any of them; what a dict lacks is missing.

    Raises:
        UnsupportedData: a row is no dict.
    """
    for place, row in enumerate(rows):
        if not isinstance(row, Mapping):
            got = f"row {place}: {type(row).__name__}"
            want = "a list of dicts, a list of paths, or pandas.DataFrame(rows, columns=[…]) of tuples"
            raise UnsupportedData(problem("a list must hold records", got, want))
    names = dict.fromkeys(name for row in rows for name in row)
    return _frame({name: [row.get(name) for row in rows] for name in names}, len(rows))


def frame_of_columns(columns: Mapping[str, Any]) -> Any:
    """A column for each name, from a list, a tuple, or an array of NumPy, pandas or Arrow.

    Raises:
        UnsupportedData: a column is a single value.
        InvalidData: the columns are not equally long.
    """
    lengths = {name: _length(name, column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        got = ", ".join(f"{shorten(repr(name))}: {length:,}" for name, length in lengths.items())
        raise InvalidData(problem("the columns are not equally long", shorten(got, 200), "a value for each record"))
    return _frame(columns, next(iter(lengths.values()), 0))


def _length(name: str, column: Any) -> int:
    if isinstance(column, str | bytes | Mapping) or not (hasattr(column, "__len__") and hasattr(column, "__iter__")):
        got = f"{shorten(repr(name))}: {shorten(repr(column))}"
        raise UnsupportedData(problem("a dict must hold columns", got, "a list for each column, or a list of dicts"))
    return len(column)


def _frame(columns: Mapping[str, Any], rows: int) -> Any:
    import pandas as pd

    return pd.DataFrame({name: _series(column) for name, column in columns.items()}, index=range(rows))


def _series(column: Any) -> Any:
    """As objects first, and integers beside a missing one as nullable integers: pandas would make floats of them."""
    import pandas as pd

    if isinstance(column, pd.Series):
        return column.reset_index(drop=True)
    if isinstance(column, np.ndarray) and column.dtype != object and column.ndim == 1:
        return pd.Series(column)
    values = column.to_pylist() if isinstance(column, pa.Array | pa.ChunkedArray) else list(column)
    out = np.empty(len(values), object)
    out[:] = values
    series = pd.Series(out, dtype=object)
    if not (series.hasnans and pd.api.types.infer_dtype(out) == "integer"):
        return series.infer_objects()
    for kind in ("Int64", "UInt64"):
        with suppress(OverflowError):
            return series.astype(kind)
    return series
