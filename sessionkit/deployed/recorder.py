"""Turns what a processor tells, record by record, into the columns of a trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from sessionkit.base.decisions import ADDED, COPIED, COPIED_ADDED, LATE, MERGED, OPENED
from sessionkit.records.batch import RecordBatch
from sessionkit.stores.contract import StoredSession, StoredWindow
from sessionkit.trace.session_trace import Reopenings, SessionTrace
from sessionkit.trace.trace import Merges, Trace, WindowColumns
from sessionkit.trace.window_trace import Touches, WindowTrace
from sessionkit.windows.contract import WindowKind
from sessionkit.windows.processor import WindowTouch
from sessionkit.windows.session import Touch

KINDS = (np.int32, np.int32, np.int64, np.int64, np.int64, np.int32, np.int64, np.int64)
START, END, MERGED_INTO, CLOSED_BEFORE, TIMESTAMP = 2, 3, 5, 6, 7  # some of the places in a row


class Result(NamedTuple):
    """A result that goes downstream: what it is, its window, the new aggregate, the one that it replaces."""

    what: str
    window_start_ms: int
    window_end_ms: int
    aggregate: Any
    timestamp_ms: int
    old: Any = None
    replaced: Any = None  # what Kafka says of that: of a new window what it began with


class Forwarded(NamedTuple):
    """One result that went downstream: after which record, what it was, and whether a flush of the cache sent it."""

    at: int
    partition: int  # its code
    key: Any
    result: Result
    flushed: bool = False
    offset: int = -1  # that of the record, while suppress holds it back; `at` may be one of an earlier life


class Recorder:
    """Base of the recorders of all kinds: decisions, rows of windows, and their aggregates."""

    def __init__(self, windows: WindowKind, batch: RecordBatch, key_code: Mapping[Any, int]) -> None:
        self.windows, self.batch, self.key_code = windows, batch, key_code
        self.decision = np.zeros(len(batch), np.uint8)
        self.rows: list[list[int]] = []
        self.last: list[Any] = []  # aggregate of each window, as the processor gave it last
        self._row_of: dict[tuple[int, Any, int], int] = {}
        self.loaded_count = 0

    def columns(self) -> WindowColumns:
        table = np.array(self.rows, np.int64).reshape(-1, len(KINDS)).T
        columns: Any = [column.astype(kind) for column, kind in zip(table, KINDS, strict=True)]
        return WindowColumns._make([*columns, self.loaded_count])

    def _common(self, keys: pa.Array, columns: WindowColumns) -> dict[str, Any]:
        return {"batch": self.batch, "keys": keys, "decision": self.decision, "window_columns": columns}


class SessionRecorder(Recorder):
    """Sessions: a record is in one window, which may have absorbed others."""

    def __init__(self, windows: WindowKind, batch: RecordBatch, key_code: Mapping[Any, int]) -> None:
        super().__init__(windows, batch, key_code)
        self.window = np.full(len(batch), -1, np.int32)
        self.after: list[Any] = [None] * len(batch)  # aggregate of its window after each record
        self._merges: list[tuple[int, int, int]] = []
        self._reopenings: list[tuple[int, int, int, int]] = []
        self._bounds: list[tuple[int, int]] = []

    def load(self, session: StoredSession, partition: int) -> None:
        """A session that was in the store before the run."""
        bounds = (session.window_start_ms, session.window_end_ms)
        self._add(session.key, partition, bounds, session.opened_by, session.aggregate, session.closed_by)
        self._bounds.append(bounds)
        self.loaded_count += 1

    def _add(
        self, key: Any, partition: int, bounds: tuple[int, int], opened_by: int, aggregate: Any, closed_by: int = -1
    ) -> int:
        row = len(self.rows)
        self.rows.append([self.key_code[key], partition, *bounds, opened_by, -1, closed_by, bounds[1]])
        self.last.append(aggregate)
        self._row_of[partition, key, opened_by] = row
        return row

    def take(self, i: int, touch: Touch, key: Any, partition: int, close_time_ms: int) -> int:
        """Writes down what record i did; gives how many of its results the store refused to keep."""
        self.decision[i] = touch.decision
        if touch.decision == LATE:
            return 0
        rows = [self._row_of[partition, key, session.opened_by] for session in touch.found]
        for row, session in zip(rows, touch.found, strict=True):
            if session.window_end_ms < close_time_ms:
                if self.rows[row][CLOSED_BEFORE] < 0:
                    self._reopenings.append((i, row, session.window_start_ms, session.window_end_ms))
                self.rows[row][CLOSED_BEFORE] = -1
        bounds = (touch.start_ms, touch.end_ms)
        if touch.decision == OPENED:
            rows = [self._add(key, partition, bounds, int(self.batch.offset[i]), None)]
        self.window[i] = rows[0]
        self.last[rows[0]] = self.after[i] = touch.aggregate
        self.rows[rows[0]][START : END + 1] = bounds
        self.rows[rows[0]][TIMESTAMP] = touch.end_ms
        if touch.decision == MERGED:
            for absorbed in rows[1:]:
                self._merges.append((i, rows[0], absorbed))
                self.rows[absorbed][MERGED_INTO] = rows[0]
        return 0 if touch.stored else 1

    @staticmethod
    def updates(touch: Touch, timestamp_ms: int) -> Iterator[Result]:
        """Results that Kafka forwards on update: tombstones for the sessions that were withdrawn, then the new one."""
        if touch.decision == LATE:
            return
        if (touch.start_ms, touch.end_ms) != (timestamp_ms, timestamp_ms):
            for s in touch.found:
                start_ms, end_ms, old = s.window_start_ms, s.window_end_ms, s.aggregate
                yield Result("tombstone", start_ms, end_ms, None, end_ms, old, old)
        yield Result("update", touch.start_ms, touch.end_ms, touch.aggregate, touch.end_ms)

    @staticmethod
    def final(session: StoredSession) -> Result:
        return Result("final", session.window_start_ms, session.window_end_ms, session.aggregate, session.window_end_ms)

    @property
    def merge_count(self) -> int:
        return len(self._merges)

    @property
    def missed_count(self) -> int:
        return int((self.decision == LATE).sum())

    def trace(self, keys: pa.Array, columns: WindowColumns, **options: Any) -> Trace:
        at, into, absorbed = np.array(self._merges, np.int64).reshape(-1, 3).T
        reopened_at, row, start, end = np.array(self._reopenings, np.int64).reshape(-1, 4).T
        loaded_start, loaded_end = np.array(self._bounds, np.int64).reshape(-1, 2).T
        return SessionTrace(
            **self._common(keys, columns),
            window=self.window,
            merges=Merges(at, into.astype(np.int32), absorbed.astype(np.int32)),
            reopenings=Reopenings(reopened_at, row.astype(np.int32), start, end),
            loaded_start_ms=loaded_start,
            loaded_end_ms=loaded_end,
            **options,
        )


class WindowRecorder(Recorder):
    """Time and sliding windows: a record meets any number of them."""

    merge_count = 0

    def __init__(self, windows: WindowKind, batch: RecordBatch, key_code: Mapping[Any, int]) -> None:
        super().__init__(windows, batch, key_code)
        self.after: list[Any] = []  # aggregate of the window after each touch
        self._touches: list[tuple[int, int, int, int, int]] = []
        self._newest_ms: list[int] = []  # in the window after each touch
        self._loaded_times: list[int] = []

    def load(self, window: StoredWindow, partition: int) -> None:
        """A window that was in the store before the run."""
        self._row(window.key, partition, window.window_start_ms, window.opened_by, window.closed_by)
        self.last[-1] = window.aggregate
        self.rows[-1][TIMESTAMP] = window.timestamp_ms
        self._loaded_times.append(window.timestamp_ms)
        self.loaded_count += 1

    def _row(self, key: Any, partition: int, start_ms: int, opened_by: int, closed_by: int = -1) -> int:
        row = self._row_of.get((partition, key, start_ms))
        if row is None:
            row = self._row_of[partition, key, start_ms] = len(self.rows)
            bounds = (start_ms, self.windows.ends_ms(start_ms))
            self.rows.append([self.key_code[key], partition, *bounds, opened_by, -1, closed_by, -1])
            self.last.append(None)
        return row

    def take(self, i: int, touches: list[WindowTouch], key: Any, partition: int, close_time_ms: int) -> int:
        effects = {touch.effect for touch in touches}
        counted = effects & {OPENED, ADDED, COPIED_ADDED}
        self.decision[i] = LATE if not counted else ADDED if counted == {ADDED} else OPENED
        for touch in touches:
            row = source = -1
            if touch.effect != LATE:
                row = self._row(key, partition, touch.start_ms, int(self.batch.offset[i]))
                self.last[row] = touch.aggregate
                self.rows[row][TIMESTAMP] = touch.timestamp_ms
                if touch.effect in (COPIED, COPIED_ADDED):
                    source = self._row_of[partition, key, touch.source_start_ms]
            self._touches.append((i, row, touch.effect, touch.start_ms, source))
            self._newest_ms.append(touch.timestamp_ms)
            self.after.append(touch.aggregate)
        return sum(not touch.stored for touch in touches)

    @staticmethod
    def updates(touches: list[WindowTouch], timestamp_ms: int) -> Iterator[Result]:
        """Results that Kafka forwards on update: every window that has changed."""
        for touch in touches:
            if touch.effect != LATE:
                start_ms, end_ms, at_ms = touch.start_ms, touch.end_ms, touch.timestamp_ms
                yield Result("update", start_ms, end_ms, touch.aggregate, at_ms, touch.old, touch.replaced)

    def final(self, window: StoredWindow) -> Result:
        start_ms = window.window_start_ms
        end_ms = self.windows.ends_ms(start_ms)
        return Result("final", start_ms, end_ms, window.aggregate, window.timestamp_ms)

    @property
    def missed_count(self) -> int:
        return sum(effect == LATE for _, _, effect, _, _ in self._touches)

    def trace(self, keys: pa.Array, columns: WindowColumns, **options: Any) -> Trace:
        table = np.array(self._touches, np.int64).reshape(-1, 5).T
        kinds = (np.int64, np.int32, np.uint8, np.int64, np.int32)
        touches = Touches(*(column.astype(kind) for column, kind in zip(table, kinds, strict=True)))
        options.pop("retention_ms")
        return WindowTrace(
            **self._common(keys, columns),
            ends_ms=self.windows.ends_ms,
            longest_ms=self.windows.reach_ms,
            inclusive_end=self.windows.inclusive_end,
            find_touches=lambda: touches,
            loaded_timestamp_ms=np.array(self._loaded_times, np.int64),
            noted_newest_ms=np.array(self._newest_ms, np.int64),
            **options,
        )
