"""What of a kernel's run is particular to sessions: what is loaded, and what their columns and their trace are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.base.decisions import LATE
from sessionkit.stores.contract import SessionColumns
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.trace.window_columns import WindowColumns
from sessionkit.windows.contract import WindowKind
from sessionkit.windows.feed import DecidedSessions, Feed, Loaded

Times = npt.NDArray[np.int64]


class SessionRun:
    """One run of a kind of window of which a store holds sessions."""

    def __init__(self, windows: WindowKind, retention_ms: int) -> None:
        self._windows, self._retention_ms = windows, retention_ms

    @staticmethod
    def none(key_type: pa.DataType, names: tuple[str, ...]) -> SessionColumns:
        """No sessions, as columns."""
        none = np.empty(0, np.int64)
        aggregates = {name: np.empty(0, object) for name in names}
        return SessionColumns(pa.nulls(0, key_type), none, none, none, none, none, aggregates)

    def loads_before_ms(self, stream_time_ms: Times) -> Times:
        """The end before which all sessions are loaded, as they become final at this stream time."""
        return stream_time_ms - self._windows.close_lag_ms

    @staticmethod
    def time_of(state: SessionColumns) -> Times:
        """What the sessions of a key are sorted by."""
        return state.end_ms

    @staticmethod
    def loaded(slot: npt.NDArray[np.int32], state: SessionColumns) -> Loaded:
        """What was loaded, as the kernel takes it."""
        return Loaded(slot, state.start_ms, state.end_ms, state.closed_by >= 0)

    @staticmethod
    def columns(decided: DecidedSessions, state: SessionColumns, feed: Feed) -> WindowColumns:
        """The kernel's sessions as the columns of a trace."""
        count = len(state.start_ms)
        # else nobody looks
        opened_by = decided.opened_by if feed.keeps_offsets else [np.full(len(decided.slot) - count, -1)]
        closed_before = np.full(len(decided.slot), -1, np.int64)
        closed_before[:count] = np.where(decided.is_closed, state.closed_by, -1)
        return WindowColumns(
            key=feed.slots.key[decided.slot],
            partition=feed.slots.partition[decided.slot],
            start_ms=decided.start_ms,
            end_ms=decided.end_ms,
            opened_by=np.concatenate([state.opened_by, *opened_by]),
            merged_into=decided.merged_into,
            closed_before=closed_before,
            timestamp_ms=decided.end_ms,
            loaded_count=count,
        )

    def trace(
        self, feed: Feed, decided: DecidedSessions, keys: pa.Array, columns: WindowColumns, state: SessionColumns
    ) -> SessionTrace:
        """All that was decided."""
        trace = SessionTrace(
            batch=feed.batch,
            keys=keys,
            decision=feed.decision,
            window=decided.window,
            window_columns=columns,
            merges=decided.merges,
            reopenings=decided.reopenings,
            close_lag_ms=self._windows.close_lag_ms,
            retention_ms=self._retention_ms,
            first_stream_time_ms=feed.first_stream_time_ms,
            loaded_start_ms=state.start_ms,
            loaded_end_ms=state.end_ms,
        )
        # the kernel shortens its paths to the survivor; the trace names who absorbed whom
        columns.merged_into[trace.merges.absorbed] = trace.merges.into
        return trace

    @staticmethod
    def missed_count(feed: Feed, decided: DecidedSessions) -> int:
        """How many times a record came too late for a session."""
        return int(feed.counts[LATE])

    @staticmethod
    def merge_count(decided: DecidedSessions) -> int:
        """How many sessions were absorbed."""
        return decided.merge_count
