"""Anything that a plan takes as records, opened as an Arrow table."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from sessionkit.errors import InvalidData, MissingColumn, UnsupportedData, problem, shorten
from sessionkit.records.frames import FrameKind
from sessionkit.records.plain_columns import check_polars
from sessionkit.records.source import Source
from sessionkit.records.times import refuse_mixed_zones

_NOT_ARROW = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, UnicodeError)
SHOWN_NAMES = 400  # characters of a list of columns in an error


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


def open_table(data: Any, wanted: list[str] | None, source: Source) -> Opened:
    """The wanted columns of `data`, or all of them if None.

    Raises:
        UnsupportedData: these are no records, or Arrow cannot read a column.
        MissingColumn: a wanted column is not there.
        InvalidData: a wanted column is there twice.
    """
    if isinstance(data, str | os.PathLike):
        from sessionkit.records.files.tables import read_file

        table, said = read_file(data, wanted, source.keys, dict(source.types))
        return Opened(table=table, frame="arrow", original=table, remarks=tuple(said))
    kind = type(data).__module__.partition(".")[0]
    if not hasattr(data, "__arrow_c_stream__") or (kind in ("pandas", "polars") and not hasattr(data, "columns")):
        want = "a frame with the Arrow stream protocol (pandas, polars, pyarrow, DuckDB) or the path of a Parquet file"
        raise UnsupportedData(problem("these are not records", type(data).__name__, want))
    if kind == "pandas":
        return _from_pandas(data, wanted, source)
    names = None if wanted is None else list(wanted)
    original = data
    if kind == "polars":
        names = _checked(data.columns, names)
        check_polars(data, names)
        data = data[names]
    try:  # what is Arrow's already does not go through its C interface, where a NUL ends a name
        data = pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data
        table = data if isinstance(data, pa.Table) else pa.table(data)
    except _NOT_ARROW as error:
        want = "columns of one type each; text must be valid Unicode, without lone surrogates"
        raise UnsupportedData(problem("the frame cannot be read as columns", shorten(error, 200), want)) from error
    if kind == "polars":
        return Opened(table=table, frame="polars", original=original)
    return Opened(table=table.select(_checked(table.column_names, names)), frame="arrow", original=table)


def _from_pandas(data: Any, wanted: list[str] | None, source: Source) -> Opened:
    objects: dict[str, list[Any]] = {}
    names = _checked(list(data.columns), wanted)
    table = pa.table({name: _from_series(data[name], name, source, objects) for name in names})
    return Opened(table=table, frame="pandas", original=data, objects=objects)


def _checked(names: list[str], wanted: list[str] | None) -> list[str]:
    chosen = names if wanted is None else wanted
    check_columns(names, chosen)
    return chosen


def check_columns(names: list[str], wanted: list[str]) -> None:
    """Refuses data in which a wanted column is not there, or there twice."""
    for name in wanted:
        if names.count(name) == 0:
            have = shorten(", ".join(repr(shorten(other)) for other in names), SHOWN_NAMES) or "no columns"
            raise MissingColumn(problem(f"column {name!r} is not in the data", have, "name one of these in the plan"))
        if names.count(name) > 1:
            got = shorten(names)
            raise InvalidData(problem(f"column {name!r} appears {names.count(name)} times", got, "rename all but one"))


def _from_series(series: Any, name: str, source: Source, objects: dict[str, list[Any]]) -> pa.Array | pa.ChunkedArray:
    """A pandas column in Arrow; what Arrow would refuse or change goes into `objects`, its places into the column."""
    refusal = ""
    try:
        column = pa.array(series, from_pandas=True)
        if (
            series.dtype == object
            and pa.types.is_binary(column.type)
            and any(isinstance(value, str) for value in series)
        ):
            refusal = "bytes beside text"  # Arrow makes bytes of both, so that two keys would be one
    except _NOT_ARROW as error:
        column = None
        refusal = shorten(", ".join(map(str, error.args)) if isinstance(error, pa.ArrowException) else error, 200)
    if name in source.columns():
        if refusal:
            want = "values of one type; a key is text (valid Unicode), an integer of 64 bits or bytes"
            raise UnsupportedData(problem(f"column {name!r} cannot be read", refusal, want))
        if name == source.timestamp and series.dtype == object:
            refuse_mixed_zones(series, name)
    elif refusal or (series.dtype == object and pa.types.is_nested(column.type)):
        objects[name] = [None if null else value for value, null in zip(series, series.isna(), strict=True)]
        return pa.array(np.arange(len(series)))
    return column
