"""Parquet as it is read everywhere here: where pages carry checksums, these are verified."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sessionkit.base.process import few_at_once, in_threads
from sessionkit.errors import InvalidData, problem, shorten
from sessionkit.records.files.landing import Landing

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_READ_AT_ONCE = 2**26  # bytes of row groups that many threads read side by side


def open_parquet(file: Any, **options: Any) -> pq.ParquetFile:
    """The file, which may also be an open one, to read parts of it. Arrow's errors stay as they are: see `readable`."""
    import pyarrow.parquet as pq

    return pq.ParquetFile(file, page_checksum_verification=True, **options)


def parquet_names(file: Any) -> list[str]:
    """The names of the columns in a Parquet file, which may also be an open one. Arrow's errors stay as they are."""
    import pyarrow.parquet as pq

    names: list[str] = pq.read_schema(file).names
    return names


def read_parquet(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> pa.Table:
    """The file, or these columns of it.

    Raises:
        InvalidData: it cannot be read, or a page is not what was written.
    """
    with readable(path):
        return parquet_table(path, columns)


def parquet_table(
    file: Any,
    columns: Sequence[str] | None = None,
    dictionaries: Sequence[str] = (),
    milliseconds: Collection[str] = (),
) -> pa.Table:
    """The file, which may also be an open one, or these columns of it. Arrow's errors stay as they are.

    Row groups are read side by side: each gives one chunk with one dictionary, where Arrow's own way gives many. Of
    the times in columns `milliseconds` nothing finer is wanted.
    """
    opened = pa.OSFile(os.fspath(file)) if isinstance(file, str | os.PathLike) else file
    options = {"read_dictionary": [name for name in dictionaries if columns is None or name in columns]}
    with open_parquet(opened, **options) as whole:
        count, names = whole.metadata.num_row_groups, None if columns is None else list(columns)
        if count < 2 or isinstance(opened, pa.PythonFile):  # which serves one thread
            return whole.read(columns=names)

        groups = [whole.metadata.row_group(number) for number in range(count)]
        landing = Landing([each.num_rows for each in groups], milliseconds)

        def group(number: int) -> pa.Table:
            with open_parquet(opened, metadata=whole.metadata, **options) as own:
                return landing.land(number, own.read_row_group(number, columns=names, use_threads=False))

        sizes = [each.total_byte_size for each in groups]
        return landing.joined(in_threads(group, range(count), few_at_once(sizes, _READ_AT_ONCE)))


@contextmanager
def readable(path: str | os.PathLike[str]) -> Iterator[None]:
    """What Arrow says of a file that it cannot read, as `InvalidData`."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        name = shorten(os.path.basename(path))
        raise InvalidData(
            problem("the file cannot be read", shorten(error, 200), f"check that {name} is complete")
        ) from error
