"""Records that are read when they are asked for: datasets and Parquet files of Arrow, lazy frames of polars."""

from __future__ import annotations

import sys
from typing import Any

import pyarrow as pa

from sessionkit.errors import InvalidData, problem, shorten
from sessionkit.records.inputs.nested import columns_for
from sessionkit.records.inputs.pandas_columns import check_columns

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
