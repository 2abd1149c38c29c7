"""A frame with all of its columns, of which a source names some."""

from __future__ import annotations

import dataclasses
from typing import Any

import pyarrow as pa

from sessionkit.records.frames import to_frame
from sessionkit.records.inputs.opened import Opened, open_table
from sessionkit.records.source import Source


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
