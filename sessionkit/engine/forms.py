"""What of a kernel's run is particular to sessions, and to windows: what is loaded, their columns and their trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sessionkit.base.arrays import Longs
from sessionkit.base.decisions import LATE
from sessionkit.records.batch import RecordBatch
from sessionkit.stores.contract import FixedColumns, SessionColumns
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.trace.trace import WindowColumns
from sessionkit.trace.window_trace import WindowTrace
from sessionkit.windows.contract import WindowKind
from sessionkit.windows.feed import Decided, DecidedSessions, Feed


class SessionRun:
    """One run of a kind of window of which a store holds sessions."""

    def __init__(self, windows: WindowKind, retention_ms: int) -> None:
        self._windows, self._retention_ms = windows, retention_ms

    def loads_before_ms(self, stream_time_ms: Longs) -> Longs:
        """The end before which all sessions are loaded, as they become final at this stream time."""
        return stream_time_ms - self._windows.close_lag_ms

    @staticmethod
    def columns(decided: DecidedSessions, state: SessionColumns, feed: Feed) -> WindowColumns:
        """The kernel's sessions as the columns of a trace."""
        none = [np.full(len(decided.slot) - len(state.start_ms), -1)]  # unread then
        opened_by = np.concatenate([state.opened_by, *(decided.opened_by if feed.keeps_offsets else none)])
        closed_by, merged_into = np.where(decided.is_closed, state.closed_by, -1), decided.merged_into
        bounds = {"end_ms": decided.end_ms, "timestamp_ms": decided.end_ms}
        return _columns(decided, feed, closed_by, opened_by=opened_by, merged_into=merged_into, **bounds)

    def trace(
        self, feed: Feed, decided: DecidedSessions, keys: pa.Array, columns: WindowColumns, state: SessionColumns
    ) -> SessionTrace:
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


# ---- time and sliding windows, of which a record meets any number


class WindowRun:
    """One run of a kind of window that a store knows by key and start."""

    def __init__(self, windows: WindowKind, retention_ms: int) -> None:
        self._windows = windows

    def loads_before_ms(self, stream_time_ms: Longs) -> Longs:
        """The start before which all windows are loaded, as they become final at this stream time."""
        windows = self._windows
        # a window is closed when its last instant lies before the close time
        close_ms = stream_time_ms - windows.close_lag_ms + (0 if windows.inclusive_end else 1)
        low, high = close_ms - windows.reach_ms - 1, np.maximum(close_ms, 0)
        while (high - low > 1).any():  # ends rise with starts: closed at `low`, open at `high`
            middle = low + (high - low) // 2
            is_closed = (middle < 0) | (windows.ends_ms(np.maximum(middle, 0)) < close_ms)
            low, high = np.where(is_closed, middle, low), np.where(is_closed, high, middle)
        return high

    def columns(self, decided: Decided, state: FixedColumns, feed: Feed) -> WindowColumns:
        new, none = decided.opened_at[len(state.start_ms) :], np.full(len(decided.slot), -1, np.int32)
        offsets = offsets_at(feed.batch, new) if feed.keeps_offsets else new  # unread otherwise
        opened_by = np.concatenate([state.opened_by, offsets])
        bounds = {"end_ms": self._windows.ends_ms(decided.start_ms), "timestamp_ms": decided.timestamp_ms}
        return _columns(decided, feed, state.closed_by, opened_by=opened_by, merged_into=none, **bounds)

    def trace(
        self, feed: Feed, decided: Decided, keys: pa.Array, columns: WindowColumns, state: FixedColumns
    ) -> WindowTrace:
        """The trace of the run; its touches are worked out when somebody asks for them."""
        windows = self._windows
        sliding: Any = windows  # which alone are asked what was put
        again = Feed(feed.batch, feed.loaded, feed.slots, feed.first_stream_time_ms, keep=True, expiry=feed.expiry)
        return WindowTrace(
            batch=feed.batch,
            keys=keys,
            decision=feed.decision,
            window_columns=columns,
            close_lag_ms=windows.close_lag_ms,
            first_stream_time_ms=feed.first_stream_time_ms,
            ends_ms=windows.ends_ms,
            longest_ms=windows.reach_ms,
            inclusive_end=windows.inclusive_end,
            find_touches=lambda: windows.touches(again),
            find_missed=lambda: windows.missed(again),
            find_put_ms=lambda: sliding._put_ms(again),
            loaded_timestamp_ms=state.timestamp_ms,
        )

    @staticmethod
    def missed_count(feed: Feed, decided: Decided) -> int:
        return decided.missed_count


def _columns(decided: Decided | DecidedSessions, feed: Feed, closed_by: Longs, **more: Any) -> WindowColumns:
    """The kernel's windows as the columns of a trace; `closed_by` is that of the loaded ones, which come first."""
    key, partition = feed.slots.key[decided.slot], feed.slots.partition[decided.slot]
    more["closed_before"] = np.full(len(decided.slot), -1, np.int64)
    more["closed_before"][: len(closed_by)] = closed_by
    return WindowColumns(key, partition, decided.start_ms, loaded_count=len(closed_by), **more)


def offsets_at(batch: RecordBatch, rows: Longs) -> Longs:
    """Offsets of the records at `rows`, without counting through all records where there is one partition only."""
    if batch.given_offset is not None or len(batch.partitions) != 1:
        return batch.offset[rows]
    first = 0 if batch.first_offset is None else int(batch.first_offset[0])
    return rows + first
