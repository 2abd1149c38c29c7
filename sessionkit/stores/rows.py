"""Sessions between a store and the kernel: rows of a store as columns, and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from sessionkit.contracts import SessionColumns, StoredSession
from sessionkit.durations import INT64_MAX
from sessionkit.errors import InvalidArgument, problem
from sessionkit.text import shorten

KEY_TYPES: dict[type, pa.DataType] = {str: pa.large_string(), int: pa.int64(), bytes: pa.large_binary()}


def check_times(*times_ms: Any, of: str) -> list[int]:
    """The times as Python's integers; what lies beyond 64 bits becomes the nearest that does not.

    Raises:
        InvalidArgument: one of them is no integer.
    """
    for time_ms in times_ms:
        if not isinstance(time_ms, int | np.integer) or isinstance(time_ms, bool):
            want = "milliseconds since 1970 as an int"
            raise InvalidArgument(problem(f"a time of a {of} must be an integer", shorten(repr(time_ms)), want))
    return [min(max(int(time_ms), -1 - INT64_MAX), INT64_MAX) for time_ms in times_ms]


def as_columns(found: list[tuple[int, StoredSession]], key_type: pa.DataType, names: tuple[str, ...]) -> SessionColumns:
    """Sessions with their partitions as columns; several aggregations are taken out of their struct by name."""
    sessions = [session for _, session in found]
    aggregates: dict[str, Any] = {}
    for name in names:
        column = np.empty(len(sessions), object)
        column[:] = [s.aggregate if len(names) == 1 else s.aggregate[name] for s in sessions]
        aggregates[name] = column
    return SessionColumns(
        pa.array([s.key for s in sessions], key_type),
        np.array([partition for partition, _ in found], np.int64),
        np.array([s.window_start_ms for s in sessions], np.int64),
        np.array([s.window_end_ms for s in sessions], np.int64),
        np.array([s.opened_by for s in sessions], np.int64),
        np.array([s.closed_by for s in sessions], np.int64),
        aggregates,
    )


def as_sessions(columns: SessionColumns) -> Iterator[tuple[int, StoredSession]]:
    """Columns as (partition, session); several aggregations become one struct."""
    names, aggregates = list(columns.aggregates), columns.aggregates.values()
    values = [column.to_pylist() if isinstance(column, pa.Array) else list(column) for column in aggregates]
    rows = zip(*(column.tolist() for column in columns[1:6]), columns.key.to_pylist(), *values, strict=True)
    for partition, start, end, opened_by, closed_by, key, *parts in rows:
        aggregate = parts[0] if len(names) == 1 else dict(zip(names, parts, strict=True))
        yield partition, StoredSession(start, end, aggregate, key, opened_by, closed_by)
