"""Runs a kind of window over a batch of records by its compiled kernel; state in and out of a store."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from sessionkit.aggregations.built_ins import count
from sessionkit.aggregations.contract import Aggregation
from sessionkit.aggregations.folds import make_fold
from sessionkit.base.arrays import Longs
from sessionkit.base.durations import check_reach
from sessionkit.base.process import handing_over, thread_count
from sessionkit.base.progress import progress
from sessionkit.engine.bands import BAND, BandRun, sample_records
from sessionkit.engine.forms import SessionRun, WindowRun
from sessionkit.engine.memory import check_windows
from sessionkit.engine.outcome import (
    UNKNOWN,
    Outcome,
    RecordsInWords,
    closed_before_ms,
    codes_of,
    decision_counts,
    newest_times,
    snapshots_after,
    without_replayed,
)
from sessionkit.errors import NumberOverflow
from sessionkit.records.batch import RecordBatch
from sessionkit.stores.contract import BulkStore, Snapshot, no_columns, rows_of
from sessionkit.trace.loops import are_few_places, closed_windows, order_by_place
from sessionkit.trace.slots import Slots
from sessionkit.trace.trace import NO_WINDOWS
from sessionkit.windows.contract import WindowKind, do_overlap
from sessionkit.windows.feed import CHUNK, Expiry, Feed, Loaded, count_each

FEWEST_RECORDS = 4 * BAND  # fewer are near the processor as they are
LARGE = 2**24  # records whose memory counts more than the time to get it anew
MANY_WINDOWS = 0.45  # windows a record, shared by the threads, from which cutting gains more than it costs
SAMPLED_KEYS = 256  # one of so many keys tells how many windows there are
SAMPLE = 16_384  # records
_ROWS = "\0rows"  # no name of a user's aggregation
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
    check_windows(windows, batch)
    if store is None and not keep_trace and _gains_by_bands(windows, aggregations, batch, retention_ms):
        with suppress(NumberOverflow):  # which record it is, the order of arrival tells
            return _run_in_bands(windows, aggregations, batch, retention_ms)
    return _run_as_they_came(windows, aggregations, batch, retention_ms, store, keep_trace=keep_trace)


def _run_as_they_came(
    windows: WindowKind,
    aggregations: Mapping[str, Aggregation],
    batch: RecordBatch,
    retention_ms: int,
    store: BulkStore | None,
    *,
    keep_trace: bool,
) -> Outcome:
    numbers = batch.partitions.tolist()
    before = dict.fromkeys(numbers, Snapshot()) if store is None else {p: store.snapshot(p) for p in numbers}
    batch, position = without_replayed(batch, before)
    form = RUNS[windows.holds](windows, retention_ms)
    state, code, keys = _load(windows, form, tuple(aggregations), batch, store, stream_times_of(batch, before))
    return run_from(
        Start(before, position, state, code, keys),
        windows,
        aggregations,
        batch,
        retention_ms,
        keep_trace=keep_trace,
        keep_offsets=keep_trace or store is not None,
        # what `Run.assign` asks of the next run
        count_rows=store is not None and keep_trace and not do_overlap(windows),
    )


class Start(NamedTuple):
    """Where a run begins: how far each partition was read, and the windows that were there, by key and time."""

    before: Mapping[int, Snapshot]
    position: Longs  # of each partition at the end of the run, if the records say it
    state: Any  # SessionColumns or FixedColumns
    code: Longs  # of the key of each of these windows
    keys: pa.Array


def stream_times_of(batch: RecordBatch, before: Mapping[int, Snapshot]) -> Longs:
    """The stream time of each partition of the batch, as these snapshots have it."""
    return np.array([before[p].stream_time_ms for p in batch.partitions.tolist()], np.int64)


def run_from(
    start: Start,
    windows: WindowKind,
    aggregations: Mapping[str, Aggregation],
    batch: RecordBatch,
    retention_ms: int,
    *,
    keep_trace: bool,
    keep_offsets: bool,
    count_rows: bool,
    expiry: Expiry | None = None,
) -> Outcome:
    """The compiled pass from what was there before; with `expiry` Kafka's stores decide what a record finds."""
    before, position, state, code, keys = start
    numbers, form = batch.partitions.tolist(), RUNS[windows.holds](windows, retention_ms)
    slots = Slots(len(keys), len(numbers), len(code) + len(batch))
    partition = np.searchsorted(batch.partitions, state.partition).astype(np.int32)
    slot = slots.number(code.astype(np.int32), partition, np.empty(len(code), np.int32))
    described = RecordsInWords(batch)
    folds = {
        name: make_fold(aggregation, batch.values, state.aggregates[name], described, batch.timestamp_ms)
        for name, aggregation in aggregations.items()
    }
    rows_before = np.where((rows := rows_of(state)) < 0, UNKNOWN, rows)
    row_counts = make_fold(count(), {}, pa.array(rows_before), described) if count_rows else None
    is_long = len(batch) > CHUNK
    with handing_over(worth_it=is_long) as hand, progress("running the plan", len(batch)) as reached:
        feed = Feed(
            batch,
            Loaded(slot, state.start_ms, state.timestamp_ms, state.closed_by >= 0),
            slots,
            stream_times_of(batch, before),
            keep=keep_trace,
            keep_offsets=keep_offsets,
            hand=hand,
            reached=reached,
            expiry=expiry,
        )
        decided: Any = windows.run(feed, folds if row_counts is None else {**folds, _ROWS: row_counts}, retention_ms)
    columns = form.columns(decided, state, feed)
    close_time, ends_before = feed.stream_time_ms - windows.close_lag_ms, closed_before_ms(windows, feed.stream_time_ms)
    if batch.given_offset is None:
        position = position + feed.record_counts
    return Outcome(
        batch=batch,
        keys=keys,
        window_columns=columns,
        folds=folds,
        loaded=state,
        row_counts=row_counts,
        kept_trace=form.trace(feed, decided, keys, columns, state) if keep_trace else None,
        closed=closed_windows(columns.end_ms, columns.partition, columns.merged_into, ends_before),
        snapshots=snapshots_after(numbers, position, feed.stream_time_ms, close_time, before),
        dropped=decision_counts(feed.counts),
        missed_count=form.missed_count(feed, decided),
        merge_count=decided.merge_count,
        retention_ms=retention_ms,
        trailing_only=windows.trailing_only,
    )


def _gains_by_bands(
    windows: WindowKind, aggregations: Mapping[str, Aggregation], batch: RecordBatch, retention_ms: int
) -> bool:
    """Whether the records are many, and those of a few keys make many windows; functions want the order of arrival."""
    if len(batch) < FEWEST_RECORDS or not all(aggregation.parts for aggregation in aggregations.values()):
        return False
    every = 1 << (min(SAMPLED_KEYS, max(1, len(batch.keys) // SAMPLED_KEYS)).bit_length() - 1)
    rows = np.empty(SAMPLE, np.intp)
    rows = rows[: sample_records(batch.key, every, rows)]
    looked_through = int(rows[-1]) + 1 if len(rows) == SAMPLE else len(batch)
    some = batch.replace(values={}).take(rows)
    made = _run_as_they_came(windows, {}, some, retention_ms, None, keep_trace=False)
    # of all keys there are so many: the records of some tell less, as a few keys may have most of all records
    return len(rows) > 0 and len(made.window_columns.key) * every >= MANY_WINDOWS / thread_count() * looked_through


def _run_in_bands(
    windows: WindowKind, aggregations: Mapping[str, Aggregation], batch: RecordBatch, retention_ms: int
) -> Outcome:
    if len(batch) >= LARGE:
        pa.default_memory_pool().release_unused()  # reading leaves as much behind as there are records
    form, numbers = RUNS[windows.holds](windows, retention_ms), batch.partitions.tolist()
    run = BandRun(windows, aggregations, batch, retention_ms, form)
    decided, before = run.decide(), dict.fromkeys(numbers, Snapshot())
    counts = np.sum([band.decisions for band in decided], axis=0)
    if batch.rejected is not None:
        count_each(batch.rejected[batch.rejected != 0], counts)
    batch, position = without_replayed(batch, before)
    if batch.given_offset is None:
        count_each(batch.partition, position)
    close_time = run.stream_time_ms - windows.close_lag_ms
    return Outcome(
        batch=batch,
        keys=batch.keys,
        window_columns=NO_WINDOWS,
        folds={},
        loaded=no_columns(windows.holds, batch.keys.type, ()),
        kept_trace=None,
        closed=np.empty(0, np.bool_),
        snapshots=snapshots_after(numbers, position, run.stream_time_ms, close_time, before),
        dropped=decision_counts(counts),
        missed_count=sum(band.missed_count for band in decided),
        merge_count=sum(band.merge_count for band in decided),
        retention_ms=retention_ms,
        finished=[band.windows for band in decided],
    )


def _load(
    windows: WindowKind,
    form: SessionRun | WindowRun,
    names: tuple[str, ...],
    batch: RecordBatch,
    store: BulkStore | None,
    stream_time_ms: Longs,
) -> tuple[Any, Longs, pa.Array]:
    """(windows of the store that this batch can touch or close, by key and time; their key codes; all keys)."""
    if store is None:
        return no_columns(windows.holds, batch.keys.type, names), np.empty(0, np.int64), batch.keys
    closes = form.loads_before_ms(newest_times(batch, stream_time_ms))
    state = store.load(batch.keys, dict(zip(batch.partitions.tolist(), closes.tolist(), strict=True)), names)
    code, keys = codes_of(state.key, batch.keys)
    order = by_key_and_time(code, state.partition, state.time_ms, len(keys))
    return state.take(order), code[order], keys


def by_key_and_time(code: Longs, partition: Longs, time_ms: Longs, keys: int) -> Longs:
    """The order of rows by key and partition, and within these by time."""
    partitions = int(partition.max(initial=0)) + 1
    if are_few_places(keys * partitions, len(code)):
        return order_by_place(code * partitions + partition, keys * partitions, time_ms)
    return np.lexsort((time_ms, partition, code))
