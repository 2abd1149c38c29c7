"""Anything that a plan takes as records, opened as an Arrow table."""

from __future__ import annotations

import dataclasses
import io
import os
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sessionkit.errors import InvalidData, MissingColumn, SessionkitError, UnsupportedData, errors_as, problem, shorten
from sessionkit.records.frames import FrameKind, python_objects, to_frame
from sessionkit.records.inputs.nested import columns_for, field_of, perhaps, root_of, with_fields
from sessionkit.records.inputs.pandas_columns import NOT_ARROW, check_columns, from_series
from sessionkit.records.inputs.plain_columns import check_polars
from sessionkit.records.source import Source

if TYPE_CHECKING:
    from sessionkit.records.files.found import Found

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
        if is_path(data):
            return perhaps(first_rows(data), wanted)
        data = frame_of_rows(data) if isinstance(data, list | tuple) else data
        return perhaps(_arrow_table(data.head(100) if hasattr(data, "head") else data), wanted)
    return ""


def _opened(data: Any, wanted: list[str] | None, source: Source, milliseconds: Collection[str]) -> Opened:
    if is_files(data):
        return _from_files(data, wanted, source, milliseconds)
    if hasattr(data, "__arrow_c_stream__") and (
        library_of(data) not in ("pandas", "polars") or hasattr(data, "columns")
    ):
        return _from_frame(data, wanted, source)
    if isinstance(data, list | tuple):
        return _from_frame(frame_of_rows(data), wanted, source)
    if isinstance(data, Mapping):
        return _from_frame(frame_of_columns(data), wanted, source)
    if is_arrow(data, "pyarrow.dataset", "Dataset") or is_arrow(data, "pyarrow.parquet", "ParquetFile"):
        table = scanned(data, wanted)
        return Opened(table=with_fields(table, wanted), frame="arrow", original=table)
    if library_of(data) == "polars" and hasattr(data, "collect"):
        return _from_polars(collected(data, wanted), wanted)
    if hasattr(data, "read") and not isinstance(data, io.TextIOBase):
        return _from_files(_in_buffer(data), wanted, source, ())
    raise UnsupportedData(problem("these are not records", type(data).__name__, _call_for(data) or _TAKEN))


def is_path(data: Any) -> bool:
    """True for what names a file or several."""
    return isinstance(data, str | os.PathLike)


def is_files(data: Any) -> bool:
    """True for one path, or a list of some."""
    return is_path(data) or (isinstance(data, list | tuple) and bool(data) and all(map(is_path, data)))


def library_of(data: Any) -> str:
    """The name of the library whose object this is."""
    return type(data).__module__.partition(".")[0]


def _call_for(data: Any) -> str:
    """The call that would make records of `data`, where it is clear which one is meant."""
    if isinstance(data, bytes | bytearray | memoryview):
        return "io.BytesIO(data) if these are the bytes of a file"
    if isinstance(data, io.TextIOBase):
        return 'a file opened as binary: open(path, "rb"), or io.BytesIO(text.encode())'
    if isinstance(data, Iterator):
        return "list(rows), if these are dicts"
    if library_of(data) == "numpy":
        return "pandas.DataFrame(array, columns=[…])"
    return "data.to_frame()" if hasattr(data, "to_frame") else ""


def _from_frame(data: Any, wanted: list[str] | None, source: Source) -> Opened:
    if library_of(data) == "pandas":
        objects: dict[str, list[Any]] = {}
        levels = [name for name in data.index.names if name is not None and name not in data.columns]
        is_bare = hasattr(data.index, "tz") and data.index.name is None
        way = "df.rename_axis({!r}), which names its index of times" if is_bare else ""
        _checked([*data.columns, *levels], wanted, way)
        chosen = list(data.columns) if wanted is None else wanted
        table = pa.table({name: _pandas_column(data, name, source, objects) for name in chosen})
        return Opened(table=table, frame="pandas", original=data, objects=objects)
    if library_of(data) == "polars":
        return _from_polars(data, wanted)
    table = _arrow_table(data)
    chosen = table.select(_checked(table.column_names, wanted))
    return Opened(table=with_fields(chosen, wanted), frame="arrow", original=table)


def _pandas_column(data: Any, name: str, source: Source, objects: dict[str, list[Any]]) -> pa.Array | pa.ChunkedArray:
    """The column `name` of a pandas frame: one of its columns, a level of its index, or a field inside a column."""
    if name in data.columns:
        return from_series(data[name], name, source, objects)
    if name in data.index.names:
        return from_series(data.index.get_level_values(name).to_series(), name, source, objects)
    root = root_of(list(data.columns), name)
    return field_of(_arrow_table({root: data[root]})[root], name, list(data.columns))


def _from_polars(data: Any, wanted: list[str] | None) -> Opened:
    names = _checked(data.columns, wanted)
    return Opened(table=with_fields(_arrow_table(data[names]), wanted), frame="polars", original=data)


def _from_files(data: Any, wanted: list[str] | None, source: Source, milliseconds: Collection[str]) -> Opened:
    from sessionkit.records.files.tables import read_file

    form = {**source.text_form, "timezone": source.timezone}
    table, remarks = read_file(data, wanted, source.keys, source.text_types, milliseconds, **form)
    return Opened(table=table, frame="pandas", original=table, remarks=tuple(remarks))


def _in_buffer(data: Any) -> Found:
    """The content of an open file, as if a path had led to it."""
    from sessionkit.records.files.content import content_of_buffer
    from sessionkit.records.files.found import Found
    from sessionkit.records.files.parquet import readable

    path = data.name if isinstance(getattr(data, "name", None), str) else "the buffer"
    name = os.path.basename(path)
    raw = data.read()
    if not isinstance(raw, bytes):
        want = 'a file opened as binary: open(path, "rb"), or io.BytesIO(text.encode())'
        raise UnsupportedData(problem("an open file must give bytes", type(raw).__name__, want))
    with readable(name):
        return Found([content_of_buffer(name, path, pa.py_buffer(raw))], name)


def _arrow_table(data: Any) -> pa.Table:
    if is_arrow(data, "polars", "DataFrame"):
        check_polars(data)
    want = "columns of one type each; text must be valid Unicode, without lone surrogates"
    with errors_as(UnsupportedData, "the frame cannot be read as columns", want, NOT_ARROW, 200):
        # Arrow's own tables do not go through its C interface, where a NUL ends a name
        data = pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data
        return data if isinstance(data, pa.Table) else pa.table(data)


def _checked(names: list[str], wanted: list[str] | None, way: str = "") -> list[str]:
    chosen = names if wanted is None else columns_for(names, wanted)
    check_columns(names, chosen, way)
    return chosen


_FILE = "__filename"  # what Arrow calls the file that a row came from


def is_arrow(data: Any, module: str, name: str) -> bool:
    """True if `data` is of this class; its module is not loaded for that: who has such an object has loaded it."""
    found = getattr(sys.modules.get(module), name, None)
    return found is not None and isinstance(data, found)


def scanned(data: Any, wanted: list[str] | None) -> pa.Table:
    """The wanted columns, or all; those of a dataset's files in the order of the names of the files."""
    is_file = not is_arrow(data, "pyarrow.dataset", "Dataset")
    names = (data.schema_arrow if is_file else data.schema).names
    chosen = _checked(names, wanted)
    want = "check that its files are complete"
    with errors_as(InvalidData, "the dataset cannot be read", want, (pa.ArrowException, OSError), 200):
        if is_file:
            return data.read(columns=chosen).select(chosen)
        files = list(getattr(data, "files", []))
        if files == sorted(files):
            return data.to_table(columns=chosen)
        return data.to_table(columns=[*chosen, _FILE]).sort_by(_FILE).select(chosen)


def collected(data: Any, wanted: list[str] | None) -> Any:
    """The wanted columns of a lazy frame of polars, or all, as a frame; `InvalidData` where it cannot be computed."""
    from polars.exceptions import PolarsError

    want = "a LazyFrame whose collect() gives a frame"
    with errors_as(InvalidData, "the LazyFrame cannot be collected", want, (PolarsError, OSError), 200):
        chosen = _checked(data.collect_schema().names(), wanted)
        return (data if wanted is None else data.select(chosen)).collect(engine="streaming")


def open_whole(data: Any, source: Source, more: Sequence[str] = ()) -> Opened:
    """All columns of `data` as the original, and as the table those that the source names, and `more`."""
    from sessionkit.records.files.tables import check_named

    wanted = list(dict.fromkeys([*source.columns(), *more]))
    is_of_library = library_of(data) in ("pandas", "polars") and hasattr(data, "__arrow_c_stream__")
    if is_of_library or isinstance(data, pa.Table):
        return open_table(data, wanted, source)
    read = open_table(data, None, source)
    whole = read.original
    whole = to_frame(whole, read.frame) if isinstance(whole, pa.Table) else whole
    if is_path(data):
        check_named(data, read.table, wanted)
    opened = open_table(whole, wanted, source)
    return dataclasses.replace(opened, remarks=read.remarks)


def frame_of_rows(rows: Sequence[Any]) -> Any:
    """A row for each dict, with a column for each name in any of them; what a dict lacks is missing."""
    for place, row in enumerate(rows):
        if not isinstance(row, Mapping):
            got = f"row {place}: {type(row).__name__}"
            want = "a list of dicts, a list of paths, or pandas.DataFrame(rows, columns=[…]) of tuples"
            raise UnsupportedData(problem("a list must hold records", got, want))
    names = dict.fromkeys(name for row in rows for name in row)
    return _frame({name: [row.get(name) for row in rows] for name in names}, len(rows))


def frame_of_columns(columns: Mapping[str, Any]) -> Any:
    """A column for each name, from equally long lists, tuples, or arrays of NumPy, pandas or Arrow."""
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
    """A series made from objects; integers beside a missing one stay integers, of which pandas would make floats."""
    import pandas as pd

    if isinstance(column, pd.Series):
        return column.reset_index(drop=True)
    if isinstance(column, np.ndarray) and column.dtype != object and column.ndim == 1:
        return pd.Series(column)
    values = column.to_pylist() if isinstance(column, pa.Array | pa.ChunkedArray) else list(column)
    series = pd.Series(python_objects(values), dtype=object)
    if not (series.hasnans and pd.api.types.infer_dtype(series) == "integer"):
        return series.infer_objects()
    for kind in ("Int64", "UInt64"):
        with suppress(OverflowError):
            return series.astype(kind)
    return series
