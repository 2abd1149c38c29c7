"""What times have beyond their millisecond."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.arrays import Longs, numpy_array
from sessionkit.base.process import in_threads, shares
from sessionkit.records.inputs.plain_columns import decoded
from sessionkit.records.source import Source
from sessionkit.records.time_text import is_text_type
from sessionkit.records.times import FINER

_FINER_TEXT = r"[.,]\d{3}(?P<rest>\d{1,6})"


def beyond_milliseconds(column: pa.ChunkedArray, source: Source) -> Longs | None:
    """The nanoseconds that each time has beyond its millisecond; None where none has any, and 0 for a missing time."""
    if is_text_type(column.type):
        text = decoded(column)
        if source.format is not None or not pc.any(pc.match_substring_regex(text, _FINER_TEXT)).as_py():
            return None
        digits = pc.struct_field(pc.extract_regex(text, _FINER_TEXT), "rest")
        return numpy_array(pc.utf8_rpad(digits, 6, "0").cast(pa.int64()))
    unit = column.type.unit if pa.types.is_timestamp(column.type) else source.unit
    if unit not in FINER or pa.types.is_date(column.type) or pa.types.is_null(column.type):
        return None
    times, most = numpy_array(column.cast(pa.int64())), FINER[unit]
    if not any(in_threads(lambda rows: bool((times[rows] % most).any()), shares(len(times)))):
        return None
    return times % most * (1_000_000 // most)
