"""Runs a window kind over a batch of records: stream time, decisions, closes; state in and out of a store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.aggregations import Aggregation
from sessionkit.columns import note_decisions, slots_of, stream_times
from sessionkit.compiled import announce_compiling
from sessionkit.contracts import BulkStore, SessionColumns, Snapshot
from sessionkit.decisions import LATE, OPENED, REPLAYED, TICK
from sessionkit.durations import check_reach
from sessionkit.errors import InvalidData, problem
from sessionkit.folds import Fold, make_fold
from sessionkit.records import RecordBatch
from sessionkit.session_trace import Reopenings, SessionTrace
from sessionkit.text import shorten
from sessionkit.trace import Merges, WindowColumns
from sessionkit.window_columns import CHUNK, NO_REJECTIONS, slot_count
from sessionkit.windows.session import SessionWindows
from sessionkit.windows.session_kernel import Events, SessionKernel, run_sessions

NO_OFFSETS = np.empty(0, np.int64)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a run left behind: its windows and their aggregates, and the trace if it was kept."""

    batch: RecordBatch
    keys: pa.Array
    window_columns: WindowColumns
    closed: npt.NDArray[np.bool_]  # by the end of the run, for each window
    folds: Mapping[str, Fold]
    loaded: Any  # SessionColumns or FixedColumns
    snapshots: Mapping[int, Snapshot]
    dropped: Mapping[int, int]  # how many records for each decision
    missed_count: int  # how many times a record came too late for a window
    merge_count: int
    trailing_only: bool = False  # of sliding windows those alone count as results that end with a record
    kept_trace: Any  # SessionTrace or WindowTrace; None if it was not kept

    @cached_property
    def describe(self) -> Callable[[int], tuple[Any, str]]:
        """Gives the key of record i, and words for where it is."""
        return describer(self.batch)


def describer(batch: RecordBatch) -> Callable[[int], tuple[Any, str]]:
    """A function that gives the key of record i, and words for where it is."""
    keys: list[Any] = []

    def describe(i: int) -> tuple[Any, str]:
        if not keys:
            keys.extend(batch.keys.to_pylist())
        key = keys[batch.key[i]]
        at = f"partition {batch.partitions[batch.partition[i]]}, offset {batch.offset[i]}"
        return key, f"record of key {shorten(repr(key))} at {at}, time {batch.timestamp_ms[i]}"

    return describe


def run_kernel(
    windows: SessionWindows,
    aggregations: Mapping[str, Aggregation],
    batch: RecordBatch,
    *,
    retention_ms: int,
    store: BulkStore | None = None,
    keep_trace: bool = True,
) -> Outcome:
    """Runs the compiled pass; with a store, from the state in it (nothing is written back: see `commit`)."""
    if len(batch):
        check_reach(int(batch.timestamp_ms.max()), windows.inactivity_gap_ms, "inactivity_gap")
    numbers = batch.partitions.tolist()
    snapshots = {p: store.snapshot(p) if store is not None else Snapshot() for p in numbers}
    batch, position = without_replayed(batch, snapshots)
    first_stream_time = np.array([snapshots[p].stream_time_ms for p in numbers], np.int64)
    loaded, key_of_loaded, keys = load_sessions(windows, aggregations, batch, store, first_stream_time)

    slots = slot_count(len(keys), len(numbers))
    kernel = windows.kernel(retention_ms)
    partition_of_loaded = np.searchsorted(batch.partitions, loaded.partition)
    slot_of_loaded = (key_of_loaded * len(numbers) + partition_of_loaded).astype(np.int32)
    kernel.load(slot_of_loaded, loaded.start_ms, loaded.end_ms, loaded.closed_by >= 0, slots, expected=len(batch))
    describe = describer(batch)
    folds = {
        name: make_fold(aggregation, batch.values, loaded.aggregates[name], describe)
        for name, aggregation in aggregations.items()
    }
    drive = _Drive(kernel, batch, slots, first_stream_time, folds, keep_trace)
    announce_compiling(run_sessions)
    drive.run()

    if batch.given_offset is None:
        position = drive.next_offset - 1
    columns = _window_columns(kernel, loaded, drive.opened_by, len(numbers))
    close_time = drive.stream_time_ms - windows.close_lag_ms
    limits = {"close_lag_ms": windows.close_lag_ms, "retention_ms": retention_ms}
    trace = drive.trace(keys, columns, loaded, limits) if keep_trace else None
    if trace is not None:  # the kernel shortens its paths to the survivor; the trace names who absorbed whom
        columns.merged_into[trace.merges.absorbed] = trace.merges.into
    return Outcome(
        batch=batch,
        keys=keys,
        window_columns=columns,
        folds=folds,
        loaded=loaded,
        kept_trace=trace,
        closed=(columns.end_ms < close_time[columns.partition]) & (columns.merged_into < 0),
        snapshots=snapshots_after(numbers, position, drive.stream_time_ms, close_time, snapshots),
        dropped=drive.decision_counts(),
        missed_count=drive.decision_counts().get(LATE, 0),
        merge_count=drive.merge_count,
    )


def snapshots_after(
    numbers: list[int],
    position: npt.NDArray[np.int64],
    stream_time_ms: npt.NDArray[np.int64],
    close_time_ms: npt.NDArray[np.int64],
    before: Mapping[int, Snapshot],
) -> dict[int, Snapshot]:
    """How far each partition has come; a close time never goes back."""
    rows = zip(numbers, position.tolist(), stream_time_ms.tolist(), close_time_ms.tolist(), strict=True)
    return {p: Snapshot(at, time, max(before[p].last_close_time_ms, close)) for p, at, time, close in rows}


def _window_columns(
    kernel: SessionKernel, loaded: SessionColumns, opened_by: list[npt.NDArray[np.int64]], partitions: int
) -> WindowColumns:
    """The kernel's sessions as the columns of a trace."""
    sessions, count = kernel.sessions, len(loaded.start_ms)
    key, partition = np.divmod(sessions["slot"], np.int32(max(1, partitions)))
    closed_before = np.full(kernel.count, -1, np.int64)
    closed_before[:count] = np.where(sessions["closed"][:count] != 0, loaded.closed_by, -1)
    end_ms = sessions["end"].copy()
    return WindowColumns(
        key=key,
        partition=partition,
        start_ms=sessions["start"].copy(),
        end_ms=end_ms,
        opened_by=np.concatenate([loaded.opened_by, *opened_by]),
        merged_into=sessions["merged_into"].copy(),
        closed_before=closed_before,
        timestamp_ms=end_ms,
        loaded_count=count,
    )


def without_replayed(
    batch: RecordBatch, snapshots: Mapping[int, Snapshot]
) -> tuple[RecordBatch, npt.NDArray[np.int64]]:
    """The batch with its offsets counted on from the store's position, and what was read before marked as such."""
    before = np.array([snapshots[p].position for p in batch.partitions.tolist()], np.int64)
    if batch.given_offset is None:
        return batch.replace(first_offset=before + 1), before  # the drive counts on from there
    position = before.copy()
    np.maximum.at(position, batch.partition, batch.given_offset)
    if (before < 0).all():
        return batch, position
    replayed = batch.given_offset <= before[batch.partition]
    if not replayed.any():
        return batch, position
    rejected = np.zeros(len(batch), np.uint8) if batch.rejected is None else batch.rejected.copy()
    rejected[replayed] = REPLAYED
    return batch.replace(rejected=rejected), position


def load_sessions(
    windows: SessionWindows,
    aggregations: Mapping[str, Aggregation],
    batch: RecordBatch,
    store: BulkStore | None,
    stream_time_ms: npt.NDArray[np.int64],
) -> tuple[SessionColumns, npt.NDArray[np.int64], pa.Array]:
    """(sessions of the store that this batch can touch or close, by key and time; their key codes; all keys)."""
    names = tuple(aggregations)
    if store is None:
        return no_sessions(batch.keys.type, names), np.empty(0, np.int64), batch.keys
    newest = newest_times(batch, stream_time_ms)
    close_time = {p: int(newest[i]) - windows.close_lag_ms for i, p in enumerate(batch.partitions.tolist())}
    loaded = store.load(batch.keys, close_time, names)
    code, keys = codes_of(loaded.key, batch.keys)
    order = np.lexsort((loaded.end_ms, loaded.partition, code))
    return loaded.take(order), code[order], keys


def newest_times(batch: RecordBatch, stream_time_ms: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Stream time of each partition at the end of the batch, from what it was before."""
    newest = stream_time_ms.copy()
    counted = slice(None) if batch.rejected is None else (batch.rejected == 0) | (batch.rejected == TICK)
    np.maximum.at(newest, batch.partition[counted], batch.timestamp_ms[counted])
    return newest


def codes_of(held: pa.Array, known: pa.Array) -> tuple[npt.NDArray[np.int64], pa.Array]:
    """(code of each key that a store holds, all keys): those of the records first, then the others.

    Raises:
        InvalidData: they are of another type.
    """
    if held.type != known.type and len(held):
        want = "one type of key a store"
        raise InvalidData(problem("the store holds keys of another type", f"{held.type}, records {known.type}", want))
    code = pc.index_in(held, value_set=known)
    if not code.null_count:
        return np.asarray(code, np.int64), known
    keys = pa.concat_arrays([known, held.filter(code.is_null()).unique()])
    return np.asarray(pc.index_in(held, value_set=keys), np.int64), keys


def no_sessions(key_type: pa.DataType, names: tuple[str, ...]) -> SessionColumns:
    """No sessions, as columns."""
    none = np.empty(0, np.int64)
    return SessionColumns(
        pa.array([], key_type), none, none, none, none, none, {name: np.empty(0, object) for name in names}
    )


def decision_counts(counts: npt.NDArray[np.int64]) -> dict[int, int]:
    """How many records met each decision that was made; a tick is no record."""
    return {int(code): int(counts[code]) for code in np.flatnonzero(counts) if code != TICK}


class _Drive:
    """Feeds a batch to a kernel and its folds, a chunk at a time."""

    def __init__(
        self,
        kernel: SessionKernel,
        batch: RecordBatch,
        slots: int,
        first_stream_time_ms: npt.NDArray[np.int64],
        folds: Mapping[str, Fold],
        keep: bool,
    ) -> None:
        self._kernel, self._batch, self._slots, self._folds, self._keep = kernel, batch, slots, folds, keep
        size = len(batch) if keep else min(CHUNK, len(batch))
        self._decision, self._window = np.empty(size, np.uint8), np.empty(size, np.int32)
        self._stair = np.empty(min(CHUNK, len(batch)), np.int64)
        self._slot = np.empty(min(CHUNK, len(batch)), np.int32)
        self._opened_by = np.empty(min(CHUNK, len(batch)), np.int64)
        self._first_stream_time_ms = first_stream_time_ms
        self.stream_time_ms = first_stream_time_ms.copy()
        self.next_offset = (
            np.zeros_like(first_stream_time_ms) if batch.first_offset is None else batch.first_offset.copy()
        )
        self.opened_by: list[npt.NDArray[np.int64]] = []
        self._events: list[Events] = []
        self._counts = np.zeros(256, np.int64)
        self.merge_count = 0

    def run(self) -> None:
        """Takes every record in."""
        for lo in range(0, len(self._batch), CHUNK):
            self._chunk(lo, min(lo + CHUNK, len(self._batch)))

    def _chunk(self, lo: int, hi: int) -> None:
        batch, count = self._batch, hi - lo
        place = slice(lo, hi) if self._keep else slice(0, count)
        decision, window = self._decision[place], self._window[place]
        rejected = NO_REJECTIONS if batch.rejected is None else batch.rejected[lo:hi]
        partition, times = batch.partition[lo:hi], batch.timestamp_ms[lo:hi]
        before = self.stream_time_ms.copy()
        stair, slot = self._stair[:count], self._slot[:count]
        stream_times(partition, times, rejected, self.stream_time_ms, stair)
        slots_of(batch.key[lo:hi], partition, len(batch.partitions), rejected, slot, decision, window)
        events = self._kernel.feed(slot, self._slots, times, stair, before, decision, window)
        merges = Merges(events.merge_at, events.merge_into, events.merge_absorbed)
        for fold in self._folds.values():
            fold.grow(self._kernel.count)
            fold.feed(window, decision, merges, lo)
        self._note(events, decision, lo)

    def _note(self, events: Events, decision: npt.NDArray[np.uint8], lo: int) -> None:
        batch, hi = self._batch, lo + len(decision)
        given = NO_OFFSETS if batch.given_offset is None else batch.given_offset[lo:hi]
        columns = (batch.partition[lo:hi], given, self.next_offset, self._counts, self._opened_by)
        self.opened_by.append(self._opened_by[: note_decisions(decision, OPENED, *columns)].copy())
        self.merge_count += len(events.merge_at)
        if self._keep:
            copies: Any = (column.copy() for column in events)
            kept = Events(*copies)
            kept.merge_at[:] += lo
            kept.reopen_at[:] += lo
            self._events.append(kept)

    def decision_counts(self) -> dict[int, int]:
        """How many records met each decision."""
        return decision_counts(self._counts)

    def trace(
        self, keys: pa.Array, columns: WindowColumns, loaded: SessionColumns, limits: Mapping[str, int]
    ) -> SessionTrace:
        """All that was decided."""
        kinds = (np.int64, np.int32, np.int32, np.int64, np.int32, np.int64, np.int64)
        joined = [
            np.concatenate([np.empty(0, kind), *(events[i] for events in self._events)]).astype(kind, copy=False)
            for i, kind in enumerate(kinds)
        ]
        return SessionTrace(
            batch=self._batch,
            keys=keys,
            decision=self._decision,
            window=self._window,
            window_columns=columns,
            merges=Merges(*joined[:3]),
            reopenings=Reopenings(*joined[3:]),
            **limits,
            first_stream_time_ms=self._first_stream_time_ms,
            loaded_start_ms=loaded.start_ms,
            loaded_end_ms=loaded.end_ms,
        )
