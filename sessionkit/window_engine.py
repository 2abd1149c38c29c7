"""Runs windows of one length over a batch of records: what a compiled kernel decides, folded as it goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sessionkit.aggregations import Aggregation
from sessionkit.contracts import Snapshot
from sessionkit.durations import check_reach
from sessionkit.engine import Outcome, describer, no_sessions, snapshots_after
from sessionkit.folds import make_fold
from sessionkit.records import RecordBatch
from sessionkit.trace import WindowColumns
from sessionkit.window_columns import Decided, Feed
from sessionkit.window_trace import Touches, WindowTrace


class WindowKernel(Protocol):
    """A compiled pass over the records of a run."""

    def run(self, feed: Feed, folds: Mapping[str, Any]) -> Decided:
        """Decides every record and folds it into its windows."""

    def touches(self, feed: Feed) -> Touches:
        """Every window that a record met, in Kafka's order; the windows are numbered as in `run`."""


def run_window_kernel(
    windows: Any, aggregations: Mapping[str, Aggregation], batch: RecordBatch, *, keep_trace: bool
) -> Outcome:
    """Runs the compiled pass of these windows."""
    if len(batch):
        check_reach(int(batch.timestamp_ms.max()), windows.reach_ms, windows.reach_name)
    numbers = batch.partitions.tolist()
    before = {p: Snapshot() for p in numbers}
    first_stream_time = np.full(len(numbers), -1, np.int64)
    feed = Feed(batch, first_stream_time, keep=keep_trace)
    loaded = no_sessions(batch.keys.type, tuple(aggregations))
    describe = describer(batch)
    folds = {
        name: make_fold(aggregation, batch.values, loaded.aggregates[name], describe)
        for name, aggregation in aggregations.items()
    }
    decided: Decided = windows.kernel().run(feed, folds)
    key, partition = np.divmod(decided.slot, np.int32(max(1, len(numbers))))
    columns = WindowColumns(
        key=key,
        partition=partition,
        start_ms=decided.start_ms,
        end_ms=decided.start_ms + windows.length_ms,
        opened_by=offsets_at(batch, decided.opened_at) if keep_trace else decided.opened_at,  # else nobody looks
        merged_into=np.full(len(key), -1, np.int32),
        closed_before=np.full(len(key), -1, np.int64),
        timestamp_ms=decided.timestamp_ms,
        loaded_count=0,
    )
    close_time = feed.stream_time_ms - windows.close_lag_ms
    last_instant = columns.end_ms if windows.inclusive_end else columns.end_ms - 1
    position = feed.record_counts - 1
    if batch.given_offset is not None:
        position[:] = -1
        np.maximum.at(position, batch.partition, batch.given_offset)
    return Outcome(
        batch=batch,
        keys=batch.keys,
        window_columns=columns,
        folds=folds,
        loaded=loaded,
        kept_trace=_trace(windows, feed, columns, first_stream_time) if keep_trace else None,
        closed=last_instant < close_time[columns.partition],
        snapshots=snapshots_after(numbers, position, feed.stream_time_ms, close_time, before),
        dropped={int(code): int(feed.counts[code]) for code in np.flatnonzero(feed.counts)},
        missed_count=decided.missed_count,
        merge_count=0,
        trailing_only=getattr(windows, "trailing_only", False),
    )


def _trace(windows: Any, feed: Feed, columns: WindowColumns, first_stream_time: npt.NDArray[np.int64]) -> WindowTrace:
    batch = feed.batch
    again: Callable[[], Touches] = lambda: windows.kernel().touches(Feed(batch, first_stream_time, keep=True))  # noqa: E731
    return WindowTrace(
        batch=batch,
        keys=batch.keys,
        decision=feed.decision,
        window_columns=columns,
        close_lag_ms=windows.close_lag_ms,
        first_stream_time_ms=first_stream_time,
        length_ms=windows.length_ms,
        inclusive_end=windows.inclusive_end,
        find_touches=again,
        loaded_timestamp_ms=np.empty(0, np.int64),
    )


def offsets_at(batch: RecordBatch, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Offsets of the records at `rows`, without counting through all records where there is one partition only."""
    if batch.given_offset is not None or len(batch.partitions) > 1:
        offsets: npt.NDArray[np.int64] = batch.offset[rows]
        return offsets
    first = 0 if batch.first_offset is None else int(batch.first_offset[0])
    return rows + first
