"""Windows between a store and a kernel: rows of a store as columns, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from sessionkit.base.arrays import joined
from sessionkit.base.durations import INT64_MAX
from sessionkit.base.moments import moment_ms
from sessionkit.errors import InvalidArgument, problem
from sessionkit.records.frames import python_objects
from sessionkit.stores.contract import (
    COLUMNS,
    SessionColumns,
    Stored,
    StoredColumns,
    StoredSession,
    StoredWindow,
    rows_of,
)
from sessionkit.stores.typed_bytes import Place

KEY_TYPES: dict[str, pa.DataType] = {"str": pa.large_string(), "int": pa.int64(), "bytes": pa.large_binary()}
_FIELDS = {  # as the columns have them
    "sessions": ("window_start_ms", "window_end_ms", "opened_by", "closed_by"),
    "windows": ("window_start_ms", "timestamp_ms", "opened_by", "closed_by"),
}


def check_times(*times_ms: Any, of: str) -> list[int]:
    """The times, of moments as well, in ms; what lies beyond 64 bits becomes the nearest that does not."""
    found = [ms if type(ms) is int else moment_ms(ms, f"a time of a {of}") for ms in times_ms]
    return [min(max(ms, -1 - INT64_MAX), INT64_MAX) for ms in found]


def place_of(raw: bytes, stored: Stored) -> Place:
    """Where a session or window of this key belongs; refuses times that none can have."""
    return _session_place(raw, stored) if isinstance(stored, StoredSession) else _window_place(raw, stored)


def _session_place(raw: bytes, session: StoredSession) -> Place:
    start_ms, end_ms = check_times(*session[:2], of="session")
    if not 0 <= session.window_start_ms <= session.window_end_ms <= INT64_MAX:
        got = f"[{session.window_start_ms}, {session.window_end_ms}]"
        want = "swap them" if start_ms > end_ms else "times from 0 to 2**63 - 1"
        raise InvalidArgument(problem("a session starts at 0 or later and does not end before", got, want))
    return Place(raw, start_ms, end_ms)


def _window_place(raw: bytes, window: StoredWindow) -> Place:
    start_ms, timestamp_ms = check_times(window.window_start_ms, window.timestamp_ms, of="window")
    if not 0 <= window.window_start_ms <= INT64_MAX or timestamp_ms != window.timestamp_ms:
        got = f"start {window.window_start_ms}, timestamp {window.timestamp_ms}"
        raise InvalidArgument(problem("a window starts at 0 or later", got, "times up to 2**63 - 1"))
    return Place(raw, start_ms, start_ms)


def time_of(stored: Stored) -> int:
    """The time by which a store keeps a window: a session's end, another window's start."""
    return stored.window_end_ms if isinstance(stored, StoredSession) else stored.window_start_ms


def as_columns(
    of: str, found: list[tuple[int, Stored]], key_type: pa.DataType, names: tuple[str, ...]
) -> StoredColumns:
    """Sessions, or windows, with their partitions as columns; several aggregations are taken out of their struct."""
    stored = [each for _, each in found]
    aggregates = {
        name: python_objects([each.aggregate if len(names) == 1 else each.aggregate[name] for each in stored])
        for name in names
    }
    start, *others = (np.array([getattr(each, field) for each in stored], np.int64) for field in _FIELDS[of])
    partition = np.array([partition for partition, _ in found], np.int64)
    counts = np.array([each.rows for each in stored], np.int64)
    rows = counts if (counts >= 0).any() else None
    return COLUMNS[of](pa.array([each.key for each in stored], key_type), partition, start, *others, aggregates, rows)


def joined_columns(first: StoredColumns, second: StoredColumns) -> StoredColumns:
    """The windows of both, those of the first before."""
    if not len(first.key):
        return second
    numbers = [np.concatenate(pair) for pair in zip(first[1:6], second[1:6], strict=True)]
    rows = np.concatenate([rows_of(first), rows_of(second)])
    key = pa.concat_arrays([first.key, second.key.cast(first.key.type)])
    together: Any = (key, *numbers, joined(first.aggregates, second.aggregates), rows)
    return type(first)(*together)


def as_stored(columns: StoredColumns) -> Iterator[tuple[int, Stored]]:
    """Columns as (partition, session), or (partition, window); several aggregations become one struct."""
    rows = row_by_row(columns)
    if isinstance(columns, SessionColumns):
        for (partition, start, end, *others), key, aggregate in rows:
            yield partition, StoredSession(start, end, aggregate, key, *others)
    else:
        for (partition, start, timestamp, *others), key, aggregate in rows:
            yield partition, StoredWindow(start, aggregate, timestamp, key, *others)


def row_by_row(columns: StoredColumns) -> Iterator[tuple[tuple[int, ...], Any, Any]]:
    """((partition, start, end or timestamp, opened by, closed by, rows), key, aggregate) of each window."""
    names, aggregates = list(columns.aggregates), columns.aggregates.values()
    values = [column.to_pylist() if isinstance(column, pa.Array) else list(column) for column in aggregates]
    numbers = zip(*(column.tolist() for column in (*columns[1:6], rows_of(columns))), strict=True)
    for row, key, *parts in zip(numbers, columns.key.to_pylist(), *values, strict=True):
        yield row, key, parts[0] if len(names) == 1 else dict(zip(names, parts, strict=True))


def while_open(check: Callable[[], object], found: Iterable[Any]) -> Iterator[Any]:
    """The items found, one by one; `check` raises as soon as the store is closed."""
    check()
    for each in found:
        yield each
        check()
