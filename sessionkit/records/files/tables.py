"""Records from a file: only the columns that a plan names, key columns as dictionaries."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from sessionkit.errors import InvalidArgument, InvalidData, MissingColumn, problem, shorten
from sessionkit.records.files.parquet import read_parquet
from sessionkit.records.files.text import FromFile, names_of, read_csv


def read_file(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    keys: Sequence[str] = (),
    types: Mapping[str, str] | None = None,
) -> FromFile:
    """`columns` of a Parquet or CSV file (all of them, if None), in the file's row order.

    Args:
        keys: the key columns: dictionaries if the file is Parquet, text if it is text.
        types: of columns of a text file, which has none of its own.
    Raises:
        InvalidArgument: no such file, or one that is neither Parquet nor CSV.
        MissingColumn: a column is not in the file.
        InvalidData: the file cannot be read, or has two columns of one name.
    """
    file = Path(path)
    if not os.path.isfile(path):  # Path.is_file raises where a name is too long, such as the text of a whole file
        raise InvalidArgument(problem("there is no such file", shorten(path, 200), "the path of a Parquet or CSV file"))
    endings = [suffix.lower() for suffix in file.suffixes]
    try:
        if endings[-1:] in ([".parquet"], [".pq"]):
            return FromFile(_parquet(file, columns, keys), [])
        if ".csv" in endings:
            _check(names_of(file), columns, file)
            return read_csv(file, columns, keys, types or {})
    except (pa.ArrowInvalid, OSError) as error:
        raise InvalidData(
            problem("the file cannot be read", shorten(error, 200), f"check that {file.name} is complete")
        ) from error
    raise InvalidArgument(problem("the file is of an unknown kind", file.name, "a name that ends in .parquet or .csv"))


def parquet_schema(path: str | os.PathLike[str]) -> pa.Schema | None:
    """The columns of a Parquet file; None for a file of another kind."""
    import pyarrow.parquet as pq

    try:
        return pq.read_schema(path)
    except (pa.ArrowInvalid, OSError):
        return None


def _parquet(file: Path, columns: Sequence[str] | None, keys: Sequence[str]) -> pa.Table:
    import pyarrow.parquet as pq

    names = pq.read_schema(file).names
    _check(names, columns, file)
    return read_parquet(file, names if columns is None else list(columns), read_dictionary=list(keys))


def _check(names: Sequence[str], columns: Sequence[str] | None, file: Path) -> None:
    for name in names if columns is None else columns:
        if name not in names:
            want = "name one of these in the plan"
            raise MissingColumn(problem(f"column {name!r} is not in {file.name}", shorten(list(names), 500), want))
        if list(names).count(name) > 1:
            want = "rename all but one"
            raise InvalidData(
                problem(f"column {name!r} is in {file.name} more than once", shorten(list(names), 500), want)
            )
