"""The columns of results as a person reads them: keys under their own names, times as timestamps with a zone."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.arrays import arrow_array, as_arrow, numpy_array, texts
from sessionkit.base.moments import zone_of
from sessionkit.errors import NumberOverflow, UnsupportedData, errors_as, problem

# Columns of times in milliseconds, and their names as timestamps.
TIMES = {
    "window_start_ms": "window_start",
    "window_end_ms": "window_end",
    "timestamp_ms": "timestamp",
    "stream_time_ms": "stream_time",
    "closes_at_ms": "closes_at",
}
_BESIDE_RESULTS = ("partition", "offset", "what", "status")
# Names that no aggregation can have, as the views that show it have columns of these names.
TAKEN = frozenset({"key", *_BESIDE_RESULTS, *TIMES})
TAKEN_BY_TIMES = frozenset(TIMES.values())
# Names that no key column can have in the results of any view.
_TAKEN_FOR_KEYS = frozenset(
    {
        *(*_BESIDE_RESULTS, *TIMES, *TIMES.values(), "batch"),
        *("decision", "reason", "window_id", "merged_count", "missing_grace_ms", "enough_grace_ms"),
        *("closed_by", "lateness_ms", "close_time_ms", "close_time", "record"),
        *("delay_ms", "waited_ms", "records", "late", "share", "merges"),
        *("start", "end", "before_count", "after_count", "before_bounds", "after_bounds"),
        *("verdict", "sent_count", "moved_ms"),
        *("earlier_start", "earlier_end", "later_start", "later_end"),
        *("position", "label", "pause_ms"),
    }
)
_MOST_TEXT = 2**31  # bytes in one column of Arrow's plain text
UNLESS_SO_LATE = "a finer unit= if they are not so late, or run.trace.windows(), which has times as integers"
_LAST_YEAR_END = dt.datetime(9999, 12, 31, 23, 59, 59, 999_000)
_EPOCH = dt.datetime(1970, 1, 1)


def shown_key(name: str) -> str:
    """The name of a key column in results: its own, unless a column of some view has it.

    Example:
        >>> shown_key("author"), shown_key("status")
        ('author', 'key_status')
    """
    return f"key_{name}" if name in _TAKEN_FOR_KEYS else name


def last_shown_ms(timezone: str) -> int:
    """The last time that a clock in this zone, or in UTC, shows before the year 10000."""
    ahead = zone_of(timezone).utcoffset(_LAST_YEAR_END) or dt.timedelta()
    return (_LAST_YEAR_END - _EPOCH - max(ahead, dt.timedelta())) // dt.timedelta(milliseconds=1)


@dataclass(frozen=True)
class ResultForm:
    """How the results of a plan show its key and its times.

    `keys` are the names and types of the key columns in the input, which `sep` joins to one. Without any, results show
    no key; None shows everything as it is stored, see `AS_STORED`.
    """

    keys: tuple[tuple[str, pa.DataType], ...] | None
    sep: str | None
    timezone: str

    def shown(self, columns: Mapping[str, Any], times: Mapping[str, str] = TIMES) -> dict[str, Any]:
        """The columns with the key as its own columns, and those that `times` names as timestamps under other names.

        Raises:
            NumberOverflow: a time after the year 9999.
        """
        if self.keys is None:
            return dict(columns)
        found: dict[str, Any] = {}
        for name, column in columns.items():
            if name == "key":
                found.update(self._key_columns(as_arrow(column), self.keys))
            elif name in times:
                found[times[name]] = timestamps(as_arrow(column), times[name], self.timezone)
            else:
                found[name] = column
        return found

    def distinct(self, keys: pa.Array, rows: int) -> pa.Array:
        """The distinct keys, in the type of a single key column if `rows` of them fit into that type."""
        kind = self.keys[0][1] if self.keys is not None and len(self.keys) == 1 else pa.null()
        if not pa.types.is_string(kind) or not pa.types.is_large_string(keys.type):
            return keys
        longest = pc.max(pc.binary_length(keys)).as_py() or 0
        return keys.cast(kind) if longest * max(rows, len(keys)) < _MOST_TEXT else keys

    def _key_columns(
        self, joined: pa.Array | pa.ChunkedArray, keys: tuple[tuple[str, pa.DataType], ...]
    ) -> dict[str, Any]:
        if not keys:
            return {}
        if len(keys) == 1:
            [(name, kind)] = keys
            return {shown_key(name): _typed(joined, kind, name)}
        coded = joined.dictionary_encode()
        coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
        # a column of several keys is text, and the separator is in none of them but the last
        parts = [text.split(str(self.sep), len(keys) - 1) for text in coded.dictionary.to_pylist()]
        found = {}
        for place, (name, kind) in enumerate(keys):
            part = texts([each[place] if place < len(each) else None for each in parts], large=True)
            found[shown_key(name)] = _typed(part, kind, name).take(coded.indices)
        return found


# The joined key, and times in milliseconds: what a task of Spark gives, whose views are shown once they are whole.
AS_STORED = ResultForm(None, None, "UTC")


def _typed(column: pa.Array | pa.ChunkedArray, kind: pa.DataType, name: str) -> pa.Array | pa.ChunkedArray:
    if column.type == kind:
        return column
    if pa.types.is_string(kind) and pa.types.is_large_string(column.type) and column.nbytes >= _MOST_TEXT:
        return column  # as long as it is, it has only the larger type
    what = f"a key does not fit into the type of column {name!r}"  # from a store that another plan wrote
    want = f"records in which this column is {str(column.type).removeprefix('large_')}, as in the store"
    with errors_as(UnsupportedData, what, want, pa.ArrowInvalid):
        return column.cast(kind)


def timestamps(column: pa.Array | pa.ChunkedArray, name: str, timezone: str) -> pa.Array | pa.ChunkedArray:
    """Milliseconds since the epoch, or lists of them, as timestamps in the zone, none after the year 9999."""
    kind, last = pa.timestamp("ms", timezone), last_shown_ms(timezone)
    leaves = column
    while pa.types.is_list(leaves.type):  # of bounds
        kind, leaves = pa.list_(kind), leaves.flatten()
    latest = pc.max(leaves).as_py()
    if latest is not None and latest > last:
        raise NumberOverflow(problem(f"{name} has a time after the year 9999", f"{latest} ms", UNLESS_SO_LATE))
    if name == "stream_time":  # -1 before any was known
        times_ms = numpy_array(column)
        column = arrow_array(times_ms, times_ms < 0)
    return column.cast(kind)
