"""Runs windows of one length over a batch of records: what a compiled kernel decides, folded as it goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.aggregations import Aggregation
from sessionkit.contracts import BulkStore, FixedColumns, Snapshot
from sessionkit.durations import check_reach
from sessionkit.engine import (
    Outcome,
    codes_of,
    decision_counts,
    describer,
    newest_times,
    snapshots_after,
    without_replayed,
)
from sessionkit.folds import make_fold
from sessionkit.records import RecordBatch
from sessionkit.trace import WindowColumns
from sessionkit.window_columns import Decided, Feed, Loaded, slot_count
from sessionkit.window_trace import Touches, WindowTrace


class WindowKernel(Protocol):
    """A compiled pass over the records of a run."""

    def run(self, feed: Feed, folds: Mapping[str, Any]) -> Decided:
        """Decides every record and folds it into its windows."""

    def touches(self, feed: Feed) -> Touches:
        """Every window that a record met, in Kafka's order; the windows are numbered as in `run`."""


def run_window_kernel(
    windows: Any,
    aggregations: Mapping[str, Aggregation],
    batch: RecordBatch,
    *,
    store: BulkStore | None = None,
    keep_trace: bool = True,
) -> Outcome:
    """Runs the compiled pass of these windows; with a store, from the state in it (nothing is written back)."""
    if len(batch):
        check_reach(int(batch.timestamp_ms.max()), windows.reach_ms, windows.reach_name)
    numbers = batch.partitions.tolist()
    before = {p: store.snapshot(p) if store is not None else Snapshot() for p in numbers}
    batch, position = without_replayed(batch, before)
    first_stream_time = np.array([before[p].stream_time_ms for p in numbers], np.int64)
    state, code, keys = _load(windows, tuple(aggregations), batch, store, first_stream_time)
    slot = (code * len(numbers) + np.searchsorted(batch.partitions, state.partition)).astype(np.int32)
    loaded = Loaded(slot, state.start_ms, state.timestamp_ms)
    slots = slot_count(len(keys), len(numbers))
    feed = Feed(batch, loaded, slots, first_stream_time, keep=keep_trace)
    describe = describer(batch)
    folds = {
        name: make_fold(aggregation, batch.values, state.aggregates[name], describe)
        for name, aggregation in aggregations.items()
    }
    kernel: WindowKernel = windows.kernel()
    decided = kernel.run(feed, folds)
    columns = _window_columns(windows, decided, state, batch, keep_offsets=keep_trace or store is not None)
    close_time = feed.stream_time_ms - windows.close_lag_ms
    last_instant = columns.end_ms if windows.inclusive_end else columns.end_ms - 1
    if batch.given_offset is None:
        position = position + feed.record_counts
    return Outcome(
        batch=batch,
        keys=keys,
        window_columns=columns,
        folds=folds,
        loaded=state,
        kept_trace=_trace(windows, feed, keys, columns, state) if keep_trace else None,
        closed=last_instant < close_time[columns.partition],
        snapshots=snapshots_after(numbers, position, feed.stream_time_ms, close_time, before),
        dropped=decision_counts(feed.counts),
        missed_count=decided.missed_count,
        merge_count=0,
        trailing_only=windows.trailing_only,
    )


def _load(
    windows: Any,
    names: tuple[str, ...],
    batch: RecordBatch,
    store: BulkStore | None,
    stream_time_ms: npt.NDArray[np.int64],
) -> tuple[FixedColumns, npt.NDArray[np.int64], pa.Array]:
    """(windows of the store that this batch can touch or close, by key and start; their key codes; all keys)."""
    if store is None:
        return no_windows(batch.keys.type, names), np.empty(0, np.int64), batch.keys
    newest = newest_times(batch, stream_time_ms)
    # a window is closed when its last instant lies before the close time, so when its start lies before this
    reach = windows.close_lag_ms + windows.length_ms - (0 if windows.inclusive_end else 1)
    closes = {p: int(newest[i]) - reach for i, p in enumerate(batch.partitions.tolist())}
    state = store.load(batch.keys, closes, names)
    code, keys = codes_of(state.key, batch.keys)
    order = np.lexsort((state.start_ms, state.partition, code))
    return state.take(order), code[order], keys


def no_windows(key_type: pa.DataType, names: tuple[str, ...]) -> FixedColumns:
    """No windows, as columns."""
    none = np.empty(0, np.int64)
    aggregates = {name: np.empty(0, object) for name in names}
    return FixedColumns(pa.array([], key_type), none, none, none, none, none, aggregates)


def _window_columns(
    windows: Any, decided: Decided, state: FixedColumns, batch: RecordBatch, *, keep_offsets: bool
) -> WindowColumns:
    key, partition = np.divmod(decided.slot, np.int32(max(1, len(batch.partitions))))
    count = len(state.start_ms)
    new = decided.opened_at[count:]
    offsets = offsets_at(batch, new) if keep_offsets else new  # else nobody looks
    closed_before = np.full(len(key), -1, np.int64)
    closed_before[:count] = state.closed_by
    return WindowColumns(
        key=key,
        partition=partition,
        start_ms=decided.start_ms,
        end_ms=decided.start_ms + windows.length_ms,
        opened_by=np.concatenate([state.opened_by, offsets]),
        merged_into=np.full(len(key), -1, np.int32),
        closed_before=closed_before,
        timestamp_ms=decided.timestamp_ms,
        loaded_count=count,
    )


def _trace(windows: Any, feed: Feed, keys: pa.Array, columns: WindowColumns, state: FixedColumns) -> WindowTrace:
    missed = getattr(windows.kernel(), "missed", None)
    again = Feed(feed.batch, feed.loaded, feed.slots, feed.first_stream_time_ms, keep=True)
    return WindowTrace(
        batch=feed.batch,
        keys=keys,
        decision=feed.decision,
        window_columns=columns,
        close_lag_ms=windows.close_lag_ms,
        first_stream_time_ms=feed.first_stream_time_ms,
        length_ms=windows.length_ms,
        inclusive_end=windows.inclusive_end,
        find_touches=lambda: windows.kernel().touches(again),
        find_missed=None if missed is None else lambda: missed(again),
        loaded_timestamp_ms=state.timestamp_ms,
    )


def offsets_at(batch: RecordBatch, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Offsets of the records at `rows`, without counting through all records where there is one partition only."""
    if batch.given_offset is not None or len(batch.partitions) != 1:
        offsets: npt.NDArray[np.int64] = batch.offset[rows]
        return offsets
    first = 0 if batch.first_offset is None else int(batch.first_offset[0])
    return rows + first
