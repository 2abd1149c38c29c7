"""Runs the record-at-a-time processor over a batch: what it did becomes a trace, what it sent on a list."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.aggregations.contract import Aggregation
from sessionkit.aggregations.folds import function_failed, record_values, typed_column, value_column
from sessionkit.base.arrays import Longs
from sessionkit.base.decisions import TICK
from sessionkit.base.durations import check_reach
from sessionkit.base.process import without_collections
from sessionkit.base.progress import progress
from sessionkit.deployed.changelog import LoggedStore
from sessionkit.deployed.deployment import Commits, Life, Restart
from sessionkit.deployed.loaded import loaded_windows
from sessionkit.deployed.recorder import Forwarded, Result, SessionRecorder, WindowRecorder
from sessionkit.deployed.suppressed_results import SuppressedResults
from sessionkit.engine.memory import check_steps
from sessionkit.engine.outcome import (
    Outcome,
    RecordsInWords,
    decision_counts,
    position_after,
    snapshots_after,
    without_replayed,
)
from sessionkit.errors import BufferFull, NumberOverflow
from sessionkit.records.batch import RecordBatch
from sessionkit.records.frames import python_objects
from sessionkit.stores.cache.sessions import CachingSessionStore, Flushed
from sessionkit.stores.cache.windows import CachingWindowStore
from sessionkit.stores.contract import Snapshot, Store, Stored, TaskStore
from sessionkit.stores.rows import as_columns
from sessionkit.suppression.buffer import TimeOrderedBuffer
from sessionkit.suppression.settings import Suppression
from sessionkit.windows.contract import WindowKind, has_cache
from sessionkit.windows.processor import Aggregates, EmitSchedule

if TYPE_CHECKING:
    from sessionkit.deployed.compiled.suppress import HeldBuffer
    from sessionkit.run import Run
    from sessionkit.windows.finals import Looks

CACHES: Mapping[str, Callable[..., CachingSessionStore | CachingWindowStore]] = {
    "sessions": CachingSessionStore,
    "windows": CachingWindowStore,
}
RECORDERS: Mapping[str, type[SessionRecorder | WindowRecorder]] = {
    "sessions": SessionRecorder,
    "windows": WindowRecorder,
}


class Look(NamedTuple):
    """One look for final results: at which record, how many went out, and how long that took by the clock."""

    at: int
    partition: int  # its code
    sent: int
    took_ms: int


@dataclass(frozen=True)
class Deployed:
    """Everything that a deployment did with the records, beside the decisions that its trace tells.

    Of a run that was started again it is all that the lives did, one after the other.

    Example:
        >>> done = plan.run(monday, deployment=sk.Deployment.plain(restarts=[1])).deployed
        >>> len(done.forwarded), done.refused, [life.metrics()["process-total"] for life in done.lives]
        (4, (), [2, 1])
    """

    forwarded: Sequence[Forwarded]  # results that were sent on, each with its row
    refused: tuple[int, ...]  # the row of each result that was forwarded, but that the store did not keep
    looks: Sequence[Look]  # each look for final results
    clock_ms: Sequence[int] | None  # the wall clock at each record; None: none is known
    buffers: Sequence[TimeOrderedBuffer[Forwarded] | HeldBuffer] = ()  # of suppress, one a partition; none without it
    waiting: Sequence[Forwarded] = ()  # what they hold back at the end
    spans: Looks | None = None  # the times that each look reads; if told
    seen_ms: Mapping[int, Longs] | None = None  # last instants of windows that reads see at the end; if told
    answers: Any = None  # what another retention could change of what the store shows; if told
    committed_count: int = 0  # how many of the records the last commit covers: all, unless the task was killed
    buffers_left: Sequence[TimeOrderedBuffer[Forwarded]] = ()  # as the last commit before a restart has them
    lives: Sequence[Run] = ()  # a run from each start of the task to its end
    restarts: Sequence[Restart] = ()


class Processed(NamedTuple):
    """The outcome of a run of the processor; `store` is the store behind its cache, as queries see it."""

    outcome: Outcome
    deployed: Deployed
    store: Store


class ProcessorFold:
    """The aggregates that the processor computed, behind the interface of a fold."""

    def __init__(
        self, aggregation: Aggregation, kind: pa.DataType | None, last: list[Any], after: list[Any], loaded: list[Any]
    ) -> None:
        self._aggregation, self._kind, self._last, self._after, self._loaded = aggregation, kind, last, after, loaded

    def column(self, aggregates: list[Any]) -> pa.Array | npt.NDArray[np.object_]:
        results = [None if aggregate is None else self._aggregation.result(aggregate) for aggregate in aggregates]
        return python_objects(results) if self._kind is None else typed_column(results, self._kind)

    def aggregates(self, rows: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.object_]:
        return python_objects([self._last[row] for row in rows])

    def results(self, rows: npt.NDArray[np.integer[Any]]) -> pa.Array | npt.NDArray[np.object_]:
        return self.column([self._last[row] for row in rows])

    def loaded_results(self) -> pa.Array | npt.NDArray[np.object_]:
        return self.column(self._loaded)

    def running(self, *_: Any) -> pa.Array | npt.NDArray[np.object_]:
        """The result of its window after each record (sessions) or each touch (other windows)."""
        return self.column(self._after)


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
        lambda aggregate: aggregate is None or all(value is None for value in aggregate.values()),
    )


def _values(aggregations: Mapping[str, Aggregation], batch: RecordBatch) -> list[Any]:
    columns = {
        name: record_values(value_column(aggregation, batch.values, batch.timestamp_ms), 0, len(batch))
        for name, aggregation in aggregations.items()
    }
    if len(columns) == 1:
        return next(iter(columns.values()))
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


class _ProcessorRun:
    """One run: the processors of the partitions, their store with or without a cache, and what they forwarded."""

    def __init__(
        self,
        windows: WindowKind,
        aggregations: Mapping[str, Aggregation],
        batch: RecordBatch,
        store: TaskStore,
        how: Life,
        before: Mapping[int, Snapshot],
        suppression: Suppression | None,
    ) -> None:
        self.windows, self.aggregations, self.batch, self.how = windows, aggregations, batch, how
        self._results = None
        if suppression is not None:
            self._results = SuppressedResults(suppression, windows, aggregations, batch, how.buffers)
        self._buffers_left = [] if self._results is None else self._results.committed()
        self._store = store
        self.forwarded: list[Forwarded] = []
        self.refused: list[int] = []
        self.looks: list[Look] = []
        self._given_ms = how.clock.tolist() if isinstance(how.clock, np.ndarray) else how.clock
        self.clock_ms: list[int] = []
        self._at = -1
        self._commits, self.committed_count = Commits(how), 0
        self._last_of = dict.fromkeys(range(len(batch.partitions)), 0)  # the last record of each partition
        self._code_of = {number: code for code, number in enumerate(batch.partitions.tolist())}
        self.cache = self._cache(store)
        self.schedules = [self._schedule(before[p]) for p in batch.partitions.tolist()]
        self.committed_close_times = [schedule.last_close_time_ms for schedule in self.schedules]
        front: Any = store if self.cache is None else self.cache
        if how.changelog is not None:
            front = LoggedStore(front, how.changelog, is_cache=self.cache is not None)
        self.processors = [
            windows.processor(
                combined(aggregations),
                front,
                p,
                kafka=how.kafka,
                retention_ms=how.retention_ms,
                stream_time_ms=before[p].stream_time_ms,
                schedule=schedule,
            )
            for p, schedule in zip(batch.partitions.tolist(), self.schedules, strict=True)
        ]

    def _cache(self, store: TaskStore) -> CachingSessionStore | CachingWindowStore | None:
        """The cache in front of the store, if there is one."""
        if not has_cache(self.windows, self.how.emit, self.how.caching):
            return None
        most_bytes = None if self.how.caching is True else self.how.caching
        on_flush = self._on_flush if self.how.emit == "on_window_update" else None
        behind = store if self.how.changelog is None else LoggedStore(store, self.how.changelog, has_cache=True)
        return CACHES[self.windows.holds](behind, on_flush, most_bytes)

    def _schedule(self, before: Snapshot) -> EmitSchedule:
        if self.how.clock is None:
            return EmitSchedule(before.last_close_time_ms)
        return EmitSchedule(before.last_close_time_ms, self.how.emit_interval_ms, lambda: self.clock_ms[-1])

    def _now_ms(self) -> int:
        if (clock := self._given_ms) is None:
            return 0
        return clock() if callable(clock) else clock[self._at]

    def _on_flush(self, flushed: Flushed) -> None:
        start_ms, end_ms = flushed.id.start_ms, flushed.id.end_ms
        if self.windows.holds == "windows":
            end_ms = self.windows.ends_ms(start_ms)
        what = "tombstone" if flushed.new is None else "update"
        result = Result(what, start_ms, end_ms, flushed.new, flushed.timestamp_ms, flushed.old, flushed.old)
        partition = self._code_of[flushed.id.partition]
        self._forward(Forwarded(self._last_of[partition], partition, flushed.key, result, flushed=True))

    def _forward(self, result: Forwarded) -> None:
        """Sends a result downstream, or to the buffer of suppress, and then what that lets go."""
        self.forwarded += [result] if self._results is None else self._results.put(result)

    def run(self, recorder: SessionRecorder | WindowRecorder, keys: list[Any]) -> None:
        batch, values = self.batch, _values(self.aggregations, self.batch)
        codes, times = batch.key.tolist(), batch.timestamp_ms.tolist()
        partitions, offsets = batch.partition.tolist(), batch.offset.tolist()
        with progress("replaying the records", len(batch)) as reached:
            for i in range(len(batch)):
                if not i % 1_000:
                    reached(i)
                self._at = self._last_of[partitions[i]] = i
                self.clock_ms.append(self._now_ms())
                if batch.rejected is not None and batch.rejected[i]:
                    recorder.decision[i] = batch.rejected[i]
                    if batch.rejected[i] >= TICK:  # it moves stream time without a record
                        self.processors[partitions[i]].tick(times[i])
                        if self.how.emit == "on_window_close":
                            self._emit(recorder, partitions[i])
                else:
                    self._process(recorder, keys[codes[i]], values[i], times[i], offsets[i], partitions[i])
                    self._note_refused()  # by the store, when something was evicted
                if self._commits.is_due(i, self.clock_ms[-1]):
                    self._commit()
        if self.how.restart != "killed":
            self._commit()

    def processed(self, outcome: Outcome) -> Processed:
        """The outcome of the run with what the deployment did, and the store."""
        buffers = () if self._results is None else tuple(self._results.buffers)
        deployed = Deployed(
            forwarded=self.forwarded,
            refused=tuple(self.refused),
            looks=self.looks,
            clock_ms=None if self.how.clock is None or self.how.is_stream_time else self.clock_ms,
            buffers=buffers,
            waiting=[result for buffer in buffers for result in buffer.held()],
            committed_count=self.committed_count,
            buffers_left=self._buffers_left,
        )
        return Processed(outcome, deployed, self._store if self.cache is None else self.cache)

    def _process(self, recorder: Any, key: Any, value: Any, timestamp_ms: int, offset: int, partition: int) -> None:
        i, processor = self._at, self.processors[partition]
        if self.how.changelog is not None:
            self.how.changelog.time_ms = timestamp_ms
        try:
            touch = processor.process(key, value, timestamp_ms, offset)
        except (NumberOverflow, BufferFull):  # of a cache that let go of a result
            raise
        except Exception as error:
            codes = ", ".join(a.code for a in self.aggregations.values())
            raise function_failed(codes, RecordsInWords(self.batch).words(i), error) from error
        close_time_ms = processor.stream_time_ms - self.windows.close_lag_ms
        self.refused += [i] * recorder.take(i, touch, key, partition, close_time_ms)
        if self.how.emit == "on_window_close":
            self._emit(recorder, partition)
        elif self.cache is None:
            for result in recorder.updates(touch, timestamp_ms):
                self._forward(Forwarded(i, partition, key, result))

    def _emit(self, recorder: Any, partition: int) -> None:
        schedule, started_ms = self.schedules[partition], self._now_ms()
        before = schedule.last_close_time_ms
        closed: list[Stored] = self.processors[partition].closed()
        self.forwarded += [Forwarded(self._at, partition, each.key, recorder.final(each)) for each in closed]
        if schedule.last_close_time_ms != before:
            self.looks.append(Look(self._at, partition, len(closed), self._now_ms() - started_ms))

    def _commit(self) -> None:
        if self.cache is not None:
            self.cache.flush()
            self._note_refused()
        if self._results is not None and self.how.restart is not None:
            self._buffers_left = self._results.committed()
        self.committed_count = self._at + 1
        self.committed_close_times = [schedule.last_close_time_ms for schedule in self.schedules]

    def _note_refused(self) -> None:
        if self.cache is not None:
            self.refused += [self._at] * self.cache.refused_count
            self.cache.refused_count = 0


def run_processor(
    windows: WindowKind,
    aggregations: Mapping[str, Aggregation],
    batch: RecordBatch,
    store: TaskStore,
    how: Life,
    bound: Mapping[str, Any] | None = None,
    suppression: Suppression | None = None,
) -> Processed:
    """Runs the processors of all partitions over the batch, and commits to the store or leaves it as it was.

    `bound` is what the store notes of the plan, `suppression` what holds its results back.
    """
    if len(batch):
        check_reach(int(batch.timestamp_ms.max()), windows.reach_ms, windows.reach_name)
    numbers = batch.partitions.tolist()
    before = {p: store.snapshot(p) for p in numbers}
    batch, _ = without_replayed(batch, before)
    check_steps(windows, batch)
    first_stream_time = np.array([before[p].stream_time_ms for p in numbers], np.int64)
    loaded, keys = loaded_windows(windows, store, batch, first_stream_time, before, how)
    known = keys.to_pylist()
    recorder = RECORDERS[windows.holds](windows, batch, {key: code for code, key in enumerate(known)})
    for partition, each in loaded:
        recorder.load(each, partition)
    first_aggregates = list(recorder.last)
    run = _ProcessorRun(windows, aggregations, batch, store, how, before, suppression)
    with store.all_or_nothing():
        with without_collections():
            run.run(recorder, known)
        if bound is not None:
            store.bind(bound)
        stream_time = np.array([processor.stream_time_ms for processor in run.processors], np.int64)
        close_time = stream_time - windows.close_lag_ms
        emitted = np.array(run.committed_close_times, np.int64)
        looked_at = emitted if how.kafka and how.emit == "on_window_close" else close_time
        position = position_after(batch, before, run.committed_count)
        snapshots = snapshots_after(numbers, position, stream_time, looked_at, before)
        store.commit_snapshots(snapshots, frozenset(aggregations))
    columns = recorder.columns()
    limits = {"close_lag_ms": windows.close_lag_ms, "retention_ms": how.retention_ms}
    trace = recorder.trace(keys, columns, **limits, first_stream_time_ms=first_stream_time)
    last_instant = columns.end_ms if windows.inclusive_end else columns.end_ms - 1
    outcome = Outcome(
        batch=batch,
        keys=keys,
        window_columns=columns,
        folds=_folds(run, recorder, first_aggregates),
        loaded=as_columns(windows.holds, [(numbers[code], each) for code, each in loaded], keys.type, ()),
        kept_trace=trace,
        closed=(last_instant < close_time[columns.partition]) & (columns.merged_into < 0),
        snapshots=snapshots,
        dropped=decision_counts(np.bincount(recorder.decision)),
        missed_count=recorder.missed_count,
        merge_count=recorder.merge_count,
        retention_ms=how.retention_ms,
        trailing_only=windows.trailing_only,
    )
    return run.processed(outcome)


def _folds(run: _ProcessorRun, recorder: SessionRecorder | WindowRecorder, loaded: list[Any]) -> dict[str, Any]:
    folds, several, kept = {}, len(run.aggregations) > 1, (recorder.last, recorder.after, loaded)
    for name, aggregation in run.aggregations.items():
        kind = None
        if aggregation.parts:
            column = value_column(aggregation, run.batch.values, run.batch.timestamp_ms)
            kind = aggregation.result_type(None if column is None else column.type)
        columns = ([None if a is None else a[name] for a in each] if several else each for each in kept)
        folds[name] = ProcessorFold(aggregation, kind, *columns)
    return folds
