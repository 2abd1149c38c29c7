"""A deployment's life over columns: what `processor_run` does record by record, by the kernels.

The kernel decides which windows a record finds, under the rules by which Kafka's store forgets. All else follows from
that, column by column: the results that are sent, the looks for final ones, what the store refuses and holds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow.compute as pc

from sessionkit.aggregations.accumulators import LOOPS
from sessionkit.aggregations.contract import Aggregation
from sessionkit.aggregations.folds import value_column
from sessionkit.base.arrays import Flags, Longs, arrow_array, is_null
from sessionkit.base.decisions import OPENED, TICK
from sessionkit.base.durations import check_reach
from sessionkit.deployed.deployment import Commits, Life
from sessionkit.deployed.kernel_stores import KernelStore, columns_of, is_known, observed_ms, segments_of, take_over
from sessionkit.deployed.processor_run import Deployed, Look, Processed
from sessionkit.deployed.sent_results import LazyRows, SentResults
from sessionkit.engine.kernel_run import Start, by_key_and_time, run_from, stream_times_of
from sessionkit.engine.outcome import Outcome, codes_of, newest_times, position_after, snapshots_after, without_replayed
from sessionkit.records.batch import RecordBatch
from sessionkit.stores.contract import COLUMNS, Snapshot, StoredColumns, no_columns
from sessionkit.stores.rows import joined_columns
from sessionkit.suppression.settings import Suppression
from sessionkit.trace.loops import grouped
from sessionkit.trace.sent import FINAL, NO_VALUE, Sent, sent_by_sessions
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.windows.contract import WindowKind
from sessionkit.windows.feed import NONE_NULL, Expiry
from sessionkit.windows.finals import Finals, Looks, find_final_sessions, find_looks
from sessionkit.windows.session import SessionWindows

NEVER_NULL = ("count", "count_values", "sum")  # loops whose aggregate is a number from the beginning


def runs_compiled(
    windows: WindowKind,
    aggregations: Mapping[str, Aggregation],
    batch: RecordBatch,
    store: Any,
    how: Life,
    suppression: Suppression | None,
) -> bool:
    """Whether the kernels know all rules of this life; else the processor plays it."""
    has_cache = how.caching is not False and (how.emit == "on_window_update" or windows.caches_on_close)
    loops = [part.loop for aggregation in aggregations.values() for part in aggregation.parts]
    return (
        type(windows) is SessionWindows
        and how.kafka
        and not has_cache
        and suppression is None
        and not callable(how.clock)
        and all(aggregation.parts for aggregation in aggregations.values())
        and all(LOOPS[loop].knows_every_step for loop in loops)
        and (batch.rejected is None or bool((batch.rejected < TICK).all()))
        and is_known(store)
        and _rises(store, batch)
    )


def _rises(store: KernelStore, batch: RecordBatch) -> bool:
    """Whether the store has observed what stream time has passed, as it has unless somebody put windows by hand."""
    return all(store.snapshot(p).stream_time_ms <= observed_ms(store, p) for p in batch.partitions.tolist())


def run_compiled(
    windows: WindowKind,
    aggregations: Mapping[str, Aggregation],
    batch: RecordBatch,
    store: Any,
    how: Life,
    bound: Mapping[str, Any] | None = None,
) -> Processed:
    """One life over the batch, by the kernels, and its commit to the store."""
    if len(batch):
        check_reach(int(batch.timestamp_ms.max()), windows.reach_ms, windows.reach_name)
    numbers = batch.partitions.tolist()
    before = {p: store.snapshot(p) for p in numbers}
    batch, position = without_replayed(batch, before)
    observed = np.array([observed_ms(store, p) for p in numbers], np.int64)
    expiry = Expiry(observed.copy(), _null_values(aggregations, batch))
    columns = {p: columns_of(store, p, batch.keys.type, tuple(aggregations)) for p in numbers}
    start, rest = _start(windows, tuple(aggregations), batch, columns, before, position)
    options: Any = {"keep_trace": True, "keep_offsets": True, "count_rows": True, "expiry": expiry}
    outcome = run_from(start, windows, aggregations, batch, how.retention_ms, **options)
    life = _Life(windows, outcome, store, how, before, observed, expiry)
    committed_count = _committed_count(how, len(batch))
    outcome = dataclasses.replace(outcome, snapshots=life.snapshots(committed_count), row_counts=None)
    held = life.held()
    with store.all_or_nothing():
        for p, time_ms in zip(numbers, expiry.observed_ms.tolist(), strict=True):
            take_over(store, p, joined_columns(rest[p], held.take(np.flatnonzero(held.partition == p))), time_ms)
        if bound is not None:
            store.bind(bound)
        store.commit_snapshots(outcome.snapshots, frozenset(aggregations))
    deployed = Deployed(
        forwarded=SentResults(outcome, life.sent),
        refused=life.refused,
        looks=life.looks,
        clock_ms=None if how.clock is None or how.is_stream_time else how.clock,  # type: ignore[arg-type]
        committed_count=committed_count,
    )
    return Processed(outcome, deployed, store)


def _start(
    windows: WindowKind,
    names: tuple[str, ...],
    batch: RecordBatch,
    columns: Mapping[int, StoredColumns],
    before: Mapping[int, Snapshot],
    position: Longs,
) -> tuple[Start, dict[int, StoredColumns]]:
    """What the batch can touch or close of the windows in the store, and for each partition the others."""
    newest_ms = newest_times(batch, stream_times_of(batch, before)) - windows.close_lag_ms
    state, rest = None, {}
    for (p, each), close_ms in zip(columns.items(), newest_ms.tolist(), strict=True):
        is_met = ~is_null(pc.index_in(each.key, value_set=batch.keys)) | (each.timestamp_ms < close_ms)
        met, rest[p] = each.take(np.flatnonzero(is_met)), each.take(np.flatnonzero(~is_met))
        state = met if state is None else joined_columns(state, met)
    if state is None:
        state = no_columns(windows.holds, batch.keys.type, names)
    code, keys = codes_of(state.key, batch.keys)
    order = by_key_and_time(code, state.partition, state.time_ms, len(keys))
    return Start(before, position, state.take(order), code[order], keys), rest


def _null_values(aggregations: Mapping[str, Aggregation], batch: RecordBatch) -> Flags:
    """True for each record after which the aggregates of a new window are all null; empty if there is none."""
    if any(part.loop in NEVER_NULL for aggregation in aggregations.values() for part in aggregation.parts):
        return NONE_NULL
    columns: list[Any] = [value_column(aggregation, batch.values) for aggregation in aggregations.values()]
    null: Flags = np.logical_and.reduce([is_null(column) for column in columns])
    return null if null.any() else NONE_NULL


def _committed_count(how: Life, count: int) -> int:
    """How many of the records the last commit covers: all, unless the task is killed."""
    if how.restart != "killed":
        return count
    commits, clock, committed = Commits(how), how.clock, 0
    for i in range(count):
        if commits.is_due(i, 0 if clock is None else clock[i]):  # type: ignore[index]  # it is no function
            committed = i + 1
    return committed


class _Life:
    """What follows from the decisions of a life of the task: what it sent, what it committed, what its store holds."""

    def __init__(
        self,
        windows: WindowKind,
        outcome: Outcome,
        store: Any,
        how: Life,
        before: Mapping[int, Snapshot],
        observed_before_ms: Longs,
        expiry: Expiry,
    ) -> None:
        self._windows, self._outcome, self._how, self._before = windows, outcome, how, before
        self._observed_before_ms, self._expiry = observed_before_ms, expiry
        self._segments = segments_of(store)
        self._trace: SessionTrace = outcome.kept_trace
        opened = np.flatnonzero(self._trace.decision == OPENED)
        self._opened_at = opened
        null = expiry.null_values
        self._deleting = self._trace.window[opened[null[opened]] if len(null) else opened[:0]]

    def _held_from_ms(self, observed_ms: Longs) -> Longs:
        """The first end that the store has when it has observed these times; on disk all in live segments."""
        if self._segments is None:
            return observed_ms - self._how.retention_ms + 1
        interval_ms = self._segments.interval_ms
        return np.maximum(observed_ms - self._how.retention_ms, 0) // interval_ms * interval_ms

    def _observed_ms(self, records: Longs) -> Longs:
        """The largest time that was put into the store of their partition, with each of these records."""
        trace = self._trace
        return np.maximum(self._observed_before_ms[trace.batch.partition[records]], trace.stream_time_ms[records])

    @property
    def refused(self) -> tuple[int, ...]:
        """The record of each session that the store refused; one on disk that was new refuses none."""
        if self._segments is not None:
            return ()
        at = self._opened_at
        is_refused = self._trace.batch.timestamp_ms[at] < self._held_from_ms(self._observed_ms(at))
        return tuple(at[is_refused].tolist())

    # ---- final results

    @cached_property
    def _looks(self) -> tuple[Looks, Longs]:
        """(each look for final results, the close time of each partition after all of them)."""
        trace, how = self._trace, self._how
        first, rows = grouped(trace.batch.partition, len(self._before))
        clock_ms = np.empty(0, np.int64) if how.clock is None else np.asarray(how.clock, np.int64)
        lag_ms, interval_ms = self._windows.close_lag_ms, how.emit_interval_ms
        at, lowest, highest = (np.empty(len(trace), np.int64) for _ in range(3))
        looks = Looks(at, lowest, highest, np.zeros(len(first), np.int64))
        closed_ms = self._closed_before_ms.copy()
        for p, last in enumerate(closed_ms.tolist()):
            own = rows[first[p] : first[p + 1]]
            looks.first[p + 1], closed_ms[p] = find_looks(
                own, looks.first[p], trace.decision, trace.stream_time_ms, clock_ms, lag_ms, interval_ms,
                last, at, lowest, highest,
            )  # fmt: skip
        count = looks.first[-1]
        return Looks(at[:count], lowest[:count], highest[:count], looks.first), closed_ms

    @property
    def _closed_before_ms(self) -> Longs:
        return np.array([each.last_close_time_ms for each in self._before.values()], np.int64)

    def snapshots(self, committed_count: int) -> dict[int, Snapshot]:
        """How far each partition came, as the last commit has it."""
        outcome, now = self._outcome, self._outcome.snapshots.values()
        closed_ms = np.array([each.last_close_time_ms for each in now], np.int64)
        if self._how.emit == "on_window_close":
            looks, closed_ms = self._looks
            if committed_count < len(self._trace):
                closed_ms = self._closed_before_ms
                at = looks.at[looks.at < committed_count]  # within a partition they rise: of several the last stays
                closed_ms[self._trace.batch.partition[at]] = self._close_ms(at)
        position = position_after(outcome.batch, self._before, committed_count)
        stream_ms = np.array([each.stream_time_ms for each in now], np.int64)
        return snapshots_after(list(self._before), position, stream_ms, closed_ms, self._before)

    def _close_ms(self, records: Longs) -> Longs:
        return self._trace.stream_time_ms[records] - self._windows.close_lag_ms

    @cached_property
    def _finals(self) -> Finals:
        """Each final result, in the order in which they go out."""
        trace, (looks, _), outcome = self._trace, self._looks, self._outcome
        columns = outcome.window_columns
        held_from_ms = self._held_from_ms(self._observed_ms(looks.at))
        until = np.full(len(columns.key), len(trace), np.int64)
        room = Finals.room(len(trace) + columns.loaded_count)
        count = find_final_sessions(
            trace.window, trace.merges, *trace.bounds_after, trace.loaded_start_ms, trace.loaded_end_ms,
            self._close_ms(np.arange(len(trace))), columns.partition, looks, held_from_ms, until, room,
        )  # fmt: skip
        found = room.take(slice(count)).take(slice(None, None, -1))  # in the order of the records
        rank = outcome.key_ranks[columns.key[found.window]]
        places = (-found.start_ms, rank) if self._segments is None else (rank, found.start_ms)
        order = np.lexsort((*places, found.end_ms))
        if len(self._before) > 1:  # in one partition a later end is never found by an earlier look
            order = order[np.argsort(looks.at[found.look[order]], kind="stable")]
        found, rank = found.take(order), rank[order]
        # on disk a session that no read finds any more is there until one is put, or deleted, with its key and bounds
        same = (found.look[1:] == found.look[:-1]) & (rank[1:] == rank[:-1])
        same &= (found.start_ms[1:] == found.start_ms[:-1]) & (found.end_ms[1:] == found.end_ms[:-1])
        is_last = np.append(~same, True)[: len(found.look)]
        return found.take(np.flatnonzero(is_last & ~np.isin(found.window, self._deleting)))

    @property
    def looks(self) -> Sequence[Look]:
        """Each look for final results, in the order of the records."""
        if self._how.emit == "on_window_update":
            return ()
        looks, _ = self._looks

        def rows() -> list[Look]:
            sent = np.bincount(self._finals.look, minlength=len(looks.at))
            order = np.argsort(looks.at)
            at = looks.at[order]
            columns = (at, self._trace.batch.partition[at], sent[order], np.zeros_like(at))
            return [Look(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]

        return LazyRows(lambda: len(looks.at), rows)

    def sent(self) -> Sent:
        """All results that went downstream."""
        if self._how.emit == "on_window_update":
            return sent_by_sessions(self._trace)
        found, (looks, _) = self._finals, self._looks
        what, nothing = np.full(len(found.look), FINAL, np.uint8), np.full(len(found.look), NO_VALUE)
        at, ends_ms = looks.at[found.look], found.end_ms
        return Sent(what, at, found.window, found.start_ms, ends_ms, ends_ms, found.step, lambda: nothing)

    # ---- the store

    def held(self) -> StoredColumns:
        """What the store holds at the end."""
        outcome, trace = self._outcome, self._trace
        columns = outcome.window_columns
        held_from_ms = self._held_from_ms(self._expiry.observed_ms)[columns.partition]
        rows = np.flatnonzero((columns.merged_into < 0) & (columns.end_ms >= held_from_ms))
        if self._segments is not None:  # what is put at the place of a session that no read finds overwrites it
            places = (columns.end_ms[rows], columns.start_ms[rows], columns.key[rows], columns.partition[rows])
            order = np.lexsort((rows, *places))
            differs = np.any([np.diff(place[order]) != 0 for place in places], axis=0)
            rows = np.sort(rows[order[np.append(differs, True)[: len(rows)]]])
        rows = rows[~np.isin(rows, self._deleting)]
        touched = np.zeros(len(columns.key), np.bool_)
        touched[trace.window[trace.window >= 0]] = True
        return COLUMNS[self._windows.holds](
            outcome.keys.take(arrow_array(columns.key[rows])),
            outcome.batch.partitions[columns.partition[rows]],
            columns.start_ms[rows],
            columns.timestamp_ms[rows],
            columns.opened_by[rows],
            np.where(touched, -1, columns.closed_before)[rows],
            {name: fold.aggregates(rows) for name, fold in outcome.folds.items()},
            outcome.rows_at(rows),
        )
