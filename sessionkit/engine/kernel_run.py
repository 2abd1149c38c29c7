"""Runs a kind of window over a batch of records by its compiled kernel; state in and out of a store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.aggregations.contract import Aggregation
from sessionkit.aggregations.folds import make_fold
from sessionkit.base.durations import check_reach
from sessionkit.engine.outcome import (
    Outcome,
    RecordsInWords,
    codes_of,
    decision_counts,
    newest_times,
    snapshots_after,
    without_replayed,
)
from sessionkit.engine.session_run import SessionRun
from sessionkit.engine.window_run import WindowRun
from sessionkit.records.batch import RecordBatch
from sessionkit.stores.contract import BulkStore, Snapshot
from sessionkit.trace.loops import are_few_places, closed_windows, order_by_place
from sessionkit.trace.slots import Slots
from sessionkit.windows.contract import WindowKind
from sessionkit.windows.feed import Feed

Times = npt.NDArray[np.int64]
RUNS: Mapping[str, type[SessionRun | WindowRun]] = {"sessions": SessionRun, "windows": WindowRun}


def run_kernel(
    windows: WindowKind,
    aggregations: Mapping[str, Aggregation],
    batch: RecordBatch,
    *,
    retention_ms: int,
    store: BulkStore | None = None,
    keep_trace: bool = True,
) -> Outcome:
    """Runs the compiled pass; with a store, from the state in it (nothing is written back: see `commit`)."""
    if len(batch):
        check_reach(int(batch.timestamp_ms.max()), windows.reach_ms, windows.reach_name)
    numbers = batch.partitions.tolist()
    before = dict.fromkeys(numbers, Snapshot()) if store is None else {p: store.snapshot(p) for p in numbers}
    batch, position = without_replayed(batch, before)
    first_stream_time = np.array([before[p].stream_time_ms for p in numbers], np.int64)
    form = RUNS[windows.holds](windows, retention_ms)
    state, code, keys = _load(form, tuple(aggregations), batch, store, first_stream_time)
    slots = Slots(len(keys), len(numbers), len(code) + len(batch))
    partition = np.searchsorted(batch.partitions, state.partition).astype(np.int32)
    slot = slots.number(code.astype(np.int32), partition, np.empty(len(code), np.int32))
    feed = Feed(batch, form.loaded(slot, state), slots, first_stream_time, keep=keep_trace)
    described = RecordsInWords(batch)
    folds = {
        name: make_fold(aggregation, batch.values, state.aggregates[name], described)
        for name, aggregation in aggregations.items()
    }
    decided: Any = windows.run(feed, folds, retention_ms)
    columns = form.columns(decided, state, feed, keep_offsets=keep_trace or store is not None)
    close_time = feed.stream_time_ms - windows.close_lag_ms
    ends_before = close_time + (0 if windows.inclusive_end else 1)  # the last instant of others is before their end
    if batch.given_offset is None:
        position = position + feed.record_counts
    return Outcome(
        batch=batch,
        keys=keys,
        window_columns=columns,
        folds=folds,
        loaded=state,
        kept_trace=form.trace(feed, decided, keys, columns, state) if keep_trace else None,
        closed=closed_windows(columns.end_ms, columns.partition, columns.merged_into, ends_before),
        snapshots=snapshots_after(numbers, position, feed.stream_time_ms, close_time, before),
        dropped=decision_counts(feed.counts),
        missed_count=form.missed_count(feed, decided),
        merge_count=form.merge_count(decided),
        retention_ms=retention_ms,
        trailing_only=windows.trailing_only,
    )


def _load(
    form: Any,
    names: tuple[str, ...],
    batch: RecordBatch,
    store: BulkStore | None,
    stream_time_ms: npt.NDArray[np.int64],
) -> tuple[Any, npt.NDArray[np.int64], pa.Array]:
    """(windows of the store that this batch can touch or close, by key and time; their key codes; all keys)."""
    if store is None:
        return form.none(batch.keys.type, names), np.empty(0, np.int64), batch.keys
    closes = form.loads_before_ms(newest_times(batch, stream_time_ms))
    state = store.load(batch.keys, dict(zip(batch.partitions.tolist(), closes.tolist(), strict=True)), names)
    code, keys = codes_of(state.key, batch.keys)
    order = _by_key_and_time(code, state.partition, form.time_of(state), len(keys))
    return state.take(order), code[order], keys


def _by_key_and_time(code: Times, partition: Times, time_ms: Times, keys: int) -> Times:
    """The order of the loaded windows by key, partition and time."""
    partitions = int(partition.max(initial=0)) + 1
    if are_few_places(keys * partitions, len(code)):
        return order_by_place(code * partitions + partition, keys * partitions, time_ms)
    return np.lexsort((time_ms, partition, code))
