"""ISO 8601 texts as timestamps, each with its own zone."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.errors import InvalidData, problem, shorten
from sessionkit.records.row_names import row_name
from sessionkit.records.source import Source

_DAY = r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
_CLOCK = r"(?:[01]\d|2[0-3])(?::[0-5]\d(?::[0-5]\d(?:[.,]\d+)?)?)?"
_OFFSET = r"[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?"
_ZONE = rf"(?:[Zz]|UTC|GMT|{_OFFSET})"
_TIME = rf"^\s*{_DAY}(?:[Tt ]\s*{_CLOCK}\s*{_ZONE}?)?\s*$"
_WITH_ZONE = rf"[Tt ]\s*{_CLOCK}\s*{_ZONE}\s*$"
# What people write and Arrow does not read: (what is found, what it becomes).
_WRITTEN_OTHERWISE = (
    (r"^\s*(\S{10})[Tt ]\s*(\S.*)$", r"\1T\2"),
    (r"\s*(?:[Zz]|UTC|GMT)\s*$", "Z"),
    (rf"\s+({_OFFSET})\s*$", r"\1"),
    (r"[.,](\d{1,3})\d*", r".\1"),  # a time finer than a millisecond is rounded down
    (r"^\s+|\s+$", ""),
)


def is_text_type(kind: pa.DataType) -> bool:
    """True for a column of text, also one that is coded."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def of_text(column: pa.ChunkedArray, source: Source) -> tuple[pa.ChunkedArray | None, pa.ChunkedArray | None]:
    """(instants, timestamps without a zone) of texts, each where a text is one; or numbers, where there is a unit.

    An empty text is a missing time, and so is one that is no time under `on_bad_time="drop"`.

    Raises:
        InvalidData: a text that is no time.
    """
    text = column.cast(pa.large_string())
    nothing = pa.scalar(None, text.type)
    text = pc.if_else(pc.match_substring_regex(text, r"^\s*$"), nothing, text)
    if source.unit is not None and pc.all(pc.match_substring_regex(text, r"^-?([1-8]?\d{1,18})$")).as_py() is not False:
        return text.cast(pa.int64()), None
    if text.null_count < len(text):
        for kind in (pa.timestamp("ns", "UTC"), pa.timestamp("ns")):  # most texts are what Arrow reads by itself
            try:
                times = text.cast(kind)
            except pa.ArrowInvalid:
                continue
            return (times, None) if kind.tz else (None, times)
    is_time = pc.and_(pc.match_substring_regex(text, _TIME), pc.invert(_on_no_day(text)))
    text = _usable(text, is_time, source)
    is_zoned = pc.match_substring_regex(text, _WITH_ZONE)
    for written, iso in _WRITTEN_OTHERWISE:
        text = pc.replace_substring_regex(text, written, iso)
    zoned = pc.if_else(is_zoned, text, nothing).cast(pa.timestamp("ms", "UTC"))
    local = pc.if_else(is_zoned, nothing, text).cast(pa.timestamp("ms"))
    has_local = local.null_count < len(local)
    return (None if has_local and zoned.null_count == len(zoned) else zoned), (local if has_local else None)


def _on_no_day(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """True where the day is one that its month has not, such as February 30."""
    days = pc.utf8_slice_codeunits(pc.utf8_ltrim_whitespace(text), 0, 10)
    late = pc.unique(pc.drop_null(pc.if_else(pc.match_substring_regex(days, r"-(?:29|3\d)$"), days, None)))
    wrong = [day for day in late.to_pylist() if not _is_day(day)]
    return pc.is_in(days, pa.array(wrong, days.type))


def _is_day(text: str) -> bool:
    try:
        return dt.date.fromisoformat(text) is not None
    except ValueError:
        return False


def _usable(text: pa.ChunkedArray, is_time: pa.ChunkedArray, source: Source) -> pa.ChunkedArray:
    wrong = np.flatnonzero(~np.asarray(pc.fill_null(is_time, True)))
    if len(wrong) and source.on_bad_time != "drop":
        row = int(wrong[0])
        got = f"{len(wrong):,}, the first in {row_name(row)}: {shorten(repr(text[row].as_py()))}"
        want = 'ISO 8601 such as "2024-07-01T00:10:00+02:00", or on_bad_time="drop", which counts them as dropped'
        raise InvalidData(problem(f"column {source.timestamp!r} has texts that are no times", got, want))
    return pc.if_else(is_time, text, pa.scalar(None, text.type)) if len(wrong) else text
