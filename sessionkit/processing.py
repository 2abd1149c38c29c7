"""Runs the record-at-a-time processor over a batch and writes down what it did as a trace, and what it forwarded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.aggregations import Aggregation
from sessionkit.contracts import SessionColumns, StoredSession
from sessionkit.durations import check_reach
from sessionkit.engine import Outcome, describer, load_sessions, no_sessions, snapshots_after, without_replayed
from sessionkit.errors import AggregationFailed, NumberOverflow, problem
from sessionkit.folds import record_values, value_columns
from sessionkit.records import RecordBatch
from sessionkit.stores.memory import MemorySessionStore
from sessionkit.text import shorten
from sessionkit.trace import LATE, MERGED, OPENED, Merges, Reopenings, Trace, WindowColumns
from sessionkit.windows.session import Aggregates, SessionProcessor, SessionWindows, Touch


class Forwarded(NamedTuple):
    """One result that went downstream: after which record, of what kind, and how many records were dropped by then."""

    at: int
    what: str
    key: Any
    window_start_ms: int
    window_end_ms: int
    aggregate: Any
    timestamp_ms: int


class ProcessorFold:
    """The aggregates that the processor computed, behind the interface of a fold."""

    def __init__(
        self, aggregation: Aggregation, kind: pa.DataType | None, last: list[Any], after: list[Any], loaded: list[Any]
    ) -> None:
        self._aggregation, self._kind, self._last, self._after, self._loaded = aggregation, kind, last, after, loaded

    def column(self, aggregates: list[Any]) -> pa.Array | npt.NDArray[np.object_]:
        """Aggregates as results."""
        results = [None if aggregate is None else self._aggregation.result(aggregate) for aggregate in aggregates]
        if self._kind is not None:
            return pa.array(results, self._kind)
        out = np.empty(len(results), object)
        out[:] = results
        return out

    def aggregates(self, rows: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.object_]:
        """What the store was given last for the windows at `rows`."""
        out = np.empty(len(rows), object)
        out[:] = [self._last[row] for row in rows]
        return out

    def results(self, rows: npt.NDArray[np.integer[Any]]) -> pa.Array | npt.NDArray[np.object_]:
        """What a user sees for the windows at `rows`."""
        return self.column([self._last[row] for row in rows])

    def loaded_results(self) -> pa.Array | npt.NDArray[np.object_]:
        """The results of the windows that came from a store, as they came."""
        return self.column(self._loaded)

    def running(self, window: Any, decision: Any, merges: Any) -> pa.Array | npt.NDArray[np.object_]:
        """The result of its window after each record."""
        return self.column(self._after)


class _Recorder:
    """Turns what the processor tells into the columns of a trace."""

    def __init__(self, count: int, loaded: SessionColumns, key_code: Mapping[Any, int]) -> None:
        self.decision = np.zeros(count, np.uint8)
        self.window = np.full(count, -1, np.int32)
        self.rows: list[list[int]] = []  # key, partition code, start, end, opened_by, merged_into, closed_before
        self.merges: list[tuple[int, int, int]] = []
        self.reopenings: list[tuple[int, int, int, int]] = []
        self.key_code = key_code
        self._row_of: dict[tuple[int, Any, int], int] = {}
        self.loaded_count = len(loaded.start_ms)

    def add_window(self, key: Any, partition: int, start: int, end: int, opened_by: int, closed_by: int = -1) -> int:
        row = len(self.rows)
        self.rows.append([self.key_code[key], partition, start, end, opened_by, -1, closed_by])
        self._row_of[partition, key, opened_by] = row
        return row

    def row_of(self, partition: int, session: StoredSession) -> int:
        return self._row_of[partition, session.key, session.opened_by]

    def touch(self, i: int, touch: Touch, key: Any, partition: int, offset: int, close_time_ms: int) -> None:
        self.decision[i] = touch.decision
        if touch.decision == LATE:
            return
        rows = [self.row_of(partition, session) for session in touch.found]
        for row, session in zip(rows, touch.found, strict=True):
            if session.window_end_ms < close_time_ms:
                if self.rows[row][6] < 0:
                    self.reopenings.append((i, row, session.window_start_ms, session.window_end_ms))
                self.rows[row][6] = -1
        if touch.decision == OPENED:
            rows = [self.add_window(key, partition, touch.start_ms, touch.end_ms, offset)]
        self.window[i] = rows[0]
        self.rows[rows[0]][2:4] = [touch.start_ms, touch.end_ms]
        if touch.decision == MERGED:
            for absorbed in rows[1:]:
                self.merges.append((i, rows[0], absorbed))
                self.rows[absorbed][5] = rows[0]

    def events(self) -> tuple[Merges, Reopenings]:
        """What happened beside the decisions."""
        at, into, absorbed = np.array(self.merges, np.int64).reshape(-1, 3).T
        reopened_at, row, start, end = np.array(self.reopenings, np.int64).reshape(-1, 4).T
        merges = Merges(at, into.astype(np.int32), absorbed.astype(np.int32))
        return merges, Reopenings(reopened_at, row.astype(np.int32), start, end)

    def columns(self) -> WindowColumns:
        table = np.array(self.rows, np.int64).reshape(-1, 7).T
        kinds = (np.int32, np.int32, np.int64, np.int64, np.int64, np.int32, np.int64)
        columns: Any = [column.astype(kind) for column, kind in zip(table, kinds, strict=True)]
        return WindowColumns._make([*columns, self.loaded_count])


def combined(aggregations: Mapping[str, Aggregation]) -> Aggregates:
    """The functions of all named aggregations as those of one whose aggregate is a dict by name."""
    named = list(aggregations.items())
    if len(named) == 1:
        only = named[0][1]
        return Aggregates(only.initializer, only.aggregator, only.merger, lambda aggregate: aggregate is None)
    return Aggregates(
        lambda: {name: a.initializer() for name, a in named},
        lambda key, value, aggregate: {name: a.aggregator(key, value[name], aggregate[name]) for name, a in named},
        lambda key, older, newer: {name: a.merger(key, older[name], newer[name]) for name, a in named},
        lambda aggregate: all(value is None for value in aggregate.values()),
    )


def _values(aggregations: Mapping[str, Aggregation], batch: RecordBatch) -> list[Any]:
    columns = {
        name: record_values(value_columns(aggregation, batch.values), 0, len(batch))
        for name, aggregation in aggregations.items()
    }
    if len(columns) == 1:
        return next(iter(columns.values()))
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


class _ProcessorRun:
    """One run: the processors of the partitions, their store, and what they forwarded."""

    def __init__(
        self,
        windows: SessionWindows,
        aggregations: Mapping[str, Aggregation],
        batch: RecordBatch,
        *,
        kafka: bool,
        retention_ms: int,
        emit: str,
        store: Any,
    ) -> None:
        self.aggregations, self.batch, self.kafka, self.emit = aggregations, batch, kafka, emit
        self.windows, self.store = windows, store
        self.numbers = batch.partitions.tolist()
        self.before = {p: store.snapshot(p) for p in self.numbers}
        self.processors = [
            SessionProcessor(
                windows,
                combined(aggregations),
                store,
                p,
                kafka=kafka,
                retention_ms=retention_ms,
                stream_time_ms=self.before[p].stream_time_ms,
                last_close_time_ms=self.before[p].last_close_time_ms,
            )
            for p in self.numbers
        ]
        self.loaded: SessionColumns = no_sessions(batch.keys.type, tuple(aggregations))
        self.forwarded: list[Forwarded] = []
        self.refused: list[int] = []
        self.last: list[Any] = []
        self.after: list[Any] = [None] * len(batch)

    def run(self, recorder: _Recorder, keys: list[Any]) -> None:
        """Processes the batch."""
        batch, values = self.batch, _values(self.aggregations, self.batch)
        describe = describer(batch)
        codes, times = batch.key.tolist(), batch.timestamp_ms.tolist()
        partitions, offsets = batch.partition.tolist(), batch.offset.tolist()
        for i in range(len(batch)):
            if batch.rejected is not None and batch.rejected[i]:
                recorder.decision[i] = batch.rejected[i]
                continue
            p, processor = partitions[i], self.processors[partitions[i]]
            try:
                touch = processor.process(keys[codes[i]], values[i], times[i], offsets[i])
            except NumberOverflow:
                raise
            except Exception as error:
                names = ", ".join(a.code for a in self.aggregations.values())
                got = f"{type(error).__name__}: {shorten(error, 200)}"
                text = problem(f"{names} failed at {describe(i)[1]}", got, "nothing of this run was committed")
                raise AggregationFailed(text) from error
            close_time_ms = processor.stream_time_ms - self.windows.close_lag_ms
            recorder.touch(i, touch, keys[codes[i]], p, offsets[i], close_time_ms)
            if touch.decision != LATE:
                self._accepted(i, recorder, touch, keys[codes[i]], times[i])
            if self.emit == "on_window_close":
                self._finals(i, processor)

    def _accepted(self, i: int, recorder: _Recorder, touch: Touch, key: Any, timestamp_ms: int) -> None:
        row = int(recorder.window[i])
        if row == len(self.last):
            self.last.append(None)
        self.last[row] = self.after[i] = touch.aggregate
        if not touch.stored:
            self.refused.append(i)
        if self.emit == "on_window_update":
            if (touch.start_ms, touch.end_ms) != (timestamp_ms, timestamp_ms):
                for s in touch.found:
                    bounds = (s.window_start_ms, s.window_end_ms)
                    self.forwarded.append(Forwarded(i, "tombstone", key, *bounds, None, s.window_end_ms))
            bounds = (touch.start_ms, touch.end_ms)
            self.forwarded.append(Forwarded(i, "update", key, *bounds, touch.aggregate, touch.end_ms))

    def _finals(self, i: int, processor: SessionProcessor) -> None:
        for s in processor.closed():
            bounds = (s.window_start_ms, s.window_end_ms)
            self.forwarded.append(Forwarded(i, "final", s.key, *bounds, s.aggregate, s.window_end_ms))


def run_processor(
    windows: SessionWindows,
    aggregations: Mapping[str, Aggregation],
    batch: RecordBatch,
    *,
    rules: str,
    retention_ms: int,
    emit: str,
    store: MemorySessionStore | None = None,
) -> tuple[Outcome, list[Forwarded], list[int]]:
    """(outcome, what was forwarded in order, records whose session the store refused to keep)."""
    if len(batch):
        check_reach(int(batch.timestamp_ms.max()), windows.inactivity_gap_ms, "inactivity_gap")
    kafka = rules == "kafka"
    store = MemorySessionStore(retention=retention_ms if kafka else None) if store is None else store
    numbers = batch.partitions.tolist()
    before = {p: store.snapshot(p) for p in numbers}
    batch, position = without_replayed(batch, before)
    if batch.given_offset is None:
        position = position + np.bincount(batch.partition, minlength=len(numbers))
    first_stream_time = np.array([before[p].stream_time_ms for p in numbers], np.int64)
    loaded, _, key_array = load_sessions(windows, aggregations, batch, store, first_stream_time)
    keys = key_array.to_pylist()
    recorder = _Recorder(len(batch), loaded, {key: code for code, key in enumerate(keys)})
    run = _ProcessorRun(windows, aggregations, batch, kafka=kafka, retention_ms=retention_ms, emit=emit, store=store)
    _add_loaded(recorder, run, loaded)
    with store.all_or_nothing():
        run.run(recorder, keys)

    columns = recorder.columns()
    stream_time = np.array([processor.stream_time_ms for processor in run.processors], np.int64)
    merges, reopenings = recorder.events()
    trace = Trace(
        batch=batch,
        keys=key_array,
        decision=recorder.decision,
        window=recorder.window,
        window_columns=columns,
        merges=merges,
        reopenings=reopenings,
        close_lag_ms=windows.close_lag_ms,
        retention_ms=retention_ms,
        first_stream_time_ms=first_stream_time,
        loaded_start_ms=loaded.start_ms,
        loaded_end_ms=loaded.end_ms,
    )
    close_time = stream_time - windows.close_lag_ms
    outcome = Outcome(
        batch=batch,
        keys=key_array,
        window_columns=columns,
        folds=_folds(run),
        loaded=loaded,
        kept_trace=trace,
        closed=(columns.end_ms < close_time[columns.partition]) & (columns.merged_into < 0),
        snapshots=snapshots_after(numbers, position, stream_time, close_time, before),
        dropped=dict(zip(*(a.tolist() for a in np.unique(recorder.decision, return_counts=True)), strict=True)),
        merge_count=len(recorder.merges),
    )
    return outcome, run.forwarded, run.refused


def _add_loaded(recorder: _Recorder, run: _ProcessorRun, loaded: SessionColumns) -> None:
    code = np.searchsorted(run.batch.partitions, loaded.partition).tolist()
    numbers = (column.tolist() for column in (loaded.start_ms, loaded.end_ms, loaded.opened_by, loaded.closed_by))
    for key, partition, *row in zip(loaded.key.to_pylist(), code, *numbers, strict=True):
        recorder.add_window(key, partition, *row)
    columns = [list(loaded.aggregates[name]) for name in run.aggregations]
    names = list(run.aggregations)
    run.loaded = loaded
    run.last = (
        columns[0] if len(names) == 1 else [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    )


def _folds(run: _ProcessorRun) -> dict[str, Any]:
    folds, several = {}, len(run.aggregations) > 1
    for name, aggregation in run.aggregations.items():
        kind = None
        if aggregation.accumulators:
            kind = aggregation.result_type([run.batch.values[column].type for column in aggregation.columns])
        last, after = ([_named(a, name) for a in column] if several else column for column in (run.last, run.after))
        folds[name] = ProcessorFold(aggregation, kind, last, after, list(run.loaded.aggregates[name]))
    return folds


def _named(aggregate: Any, name: str) -> Any:
    return None if aggregate is None else aggregate[name]
