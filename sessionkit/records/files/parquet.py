"""Parquet as it is read everywhere here: where pages carry checksums, these are verified."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sessionkit.errors import InvalidData, problem, shorten

if TYPE_CHECKING:
    import pyarrow.parquet as pq


def open_parquet(path: str | os.PathLike[str], **options: Any) -> pq.ParquetFile:
    """The file, to read parts of it. Arrow's errors stay as they are: see `readable`."""
    import pyarrow.parquet as pq

    return pq.ParquetFile(path, page_checksum_verification=True, **options)


def read_parquet(path: str | os.PathLike[str], columns: Sequence[str] | None = None, **options: Any) -> pa.Table:
    """The file, or these columns of it.

    Raises:
        InvalidData: it cannot be read, or a page is not what was written.
    """
    import pyarrow.parquet as pq

    with readable(path):
        return pq.read_table(path, columns=columns, page_checksum_verification=True, **options)


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
