"""The outcome of a run over one batch of records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.aggregations.folds import Fold
from sessionkit.base.arrays import Codes, Flags, Longs, Rows
from sessionkit.base.decisions import REPLAYED, TICK
from sessionkit.errors import InvalidData, problem, shorten
from sessionkit.records.batch import RecordBatch
from sessionkit.records.keys import key_ranks
from sessionkit.stores.contract import Snapshot, rows_of
from sessionkit.trace.trace import WindowColumns
from sessionkit.windows.contract import WindowKind

UNKNOWN = -(2**40)  # rows of a window that a store does not know: less than nothing, whatever is added


class FinishedWindows(NamedTuple):
    """Windows that a table shows, in its order, with their results; what led to them is not known any more."""

    key: Codes
    partition: Codes
    start_ms: Longs
    end_ms: Longs
    closed: Flags
    results: Mapping[str, pa.Array]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of a run: its windows and their aggregates, and the trace if it was kept."""

    batch: RecordBatch
    keys: pa.Array
    window_columns: WindowColumns
    closed: Flags  # by the end of the run, for each window
    folds: Mapping[str, Fold]  # by which results are made, where they are not finished
    loaded: Any  # SessionColumns or FixedColumns
    row_counts: Fold | None = None  # how many records count in each window, of those in a store
    snapshots: Mapping[int, Snapshot]
    dropped: Mapping[int, int]  # how many records for each decision
    missed_count: int  # how many times a record came too late for a window
    merge_count: int
    retention_ms: int
    finished: Sequence[FinishedWindows] | None = None  # of a run in bands: all windows; the columns have none then
    trailing_only: bool = False  # of sliding windows those alone count as results that end with a record
    kept_trace: Any  # SessionTrace or WindowTrace; None if it was not kept

    @property
    def key_ranks(self) -> Longs:
        return self.batch.key_ranks if self.keys is self.batch.keys else key_ranks(self.keys)

    @property
    def earlier_rows(self) -> Longs:
        """How many records earlier runs put into each window that was loaded; -1 where the store does not know."""
        return rows_of(self.loaded)

    def rows_at(self, rows: Rows) -> Longs | None:
        """How many records count in these windows, with those of earlier runs; -1 where these are not known."""
        if self.row_counts is None:
            return None
        counts: Longs = np.asarray(self.row_counts.aggregates(rows), np.int64)
        return np.maximum(counts, -1)

    @cached_property
    def is_result(self) -> Flags:
        """True for each window that is a result: all of them, or (trailing only) those that end with a record."""
        return self.window_columns.are_results(self.trailing_only)

    @cached_property
    def result_count(self) -> int:
        """How many windows are results and were not absorbed by another."""
        if self.finished is not None:
            return sum(len(band.key) for band in self.finished)
        return int(np.count_nonzero((self.window_columns.merged_into < 0) & self.is_result))

    @cached_property
    def closed_count(self) -> int:
        """How many of the results are closed at the end of the run."""
        if self.finished is not None:
            return sum(int(np.count_nonzero(band.closed)) for band in self.finished)
        return int(np.count_nonzero(self.closed & self.is_result))


class RecordsInWords:
    """The keys of a batch's records, for functions in Python, and words for where a record is, for their errors."""

    def __init__(self, batch: RecordBatch) -> None:
        self._batch = batch

    @cached_property
    def _distinct(self) -> list[Any]:
        keys: list[Any] = self._batch.keys.to_pylist()
        return [*keys, None]  # code -1

    def keys(self, lo: int, count: int) -> list[Any]:
        """The keys of `count` records from `lo` on, None for a null key."""
        distinct = self._distinct
        return [distinct[code] for code in self._batch.key[lo : lo + count].tolist()]

    def words(self, record: int) -> str:
        batch = self._batch
        (key,) = self.keys(record, 1)
        at = f"partition {batch.partitions[batch.partition[record]]}, offset {batch.offset[record]}"
        return f"record of key {shorten(repr(key))} at {at}, time {batch.timestamp_ms[record]}"


def closed_before_ms(windows: WindowKind, stream_time_ms: Longs) -> Longs:
    """The end before which windows are closed at these stream times."""
    # the last instant of windows that do not include their end is before it
    return stream_time_ms - windows.close_lag_ms + (0 if windows.inclusive_end else 1)


def snapshots_after(
    numbers: list[int], position: Longs, stream_time_ms: Longs, close_time_ms: Longs, before: Mapping[int, Snapshot]
) -> dict[int, Snapshot]:
    """How far each partition has come; a close time never goes back."""
    rows = zip(numbers, position.tolist(), stream_time_ms.tolist(), close_time_ms.tolist(), strict=True)
    return {p: Snapshot(at, time, max(before[p].last_close_time_ms, close)) for p, at, time, close in rows}


def without_replayed(batch: RecordBatch, snapshots: Mapping[int, Snapshot]) -> tuple[RecordBatch, Longs]:
    """The batch with its offsets counted on from the store's position, and what was read before marked as such."""
    before = np.array([snapshots[p].position for p in batch.partitions.tolist()], np.int64)
    if batch.given_offset is None:
        # the drive counts on from there
        return batch if (before < 0).all() else batch.replace(first_offset=before + 1), before
    position = before.copy()
    np.maximum.at(position, batch.partition, batch.given_offset)
    if (before < 0).all():
        return batch, position
    replayed = batch.given_offset <= before[batch.partition]
    if batch.rejected is not None:
        replayed &= batch.rejected < TICK
    if not replayed.any():
        return batch, position
    rejected = np.zeros(len(batch), np.uint8) if batch.rejected is None else batch.rejected.copy()
    rejected[replayed] = REPLAYED
    return batch.replace(rejected=rejected), position


def position_after(batch: RecordBatch, before: Mapping[int, Snapshot], count: int) -> Longs:
    """How far each partition has been read with the first `count` records of the batch."""
    position = np.array([before[p].position for p in batch.partitions.tolist()], np.int64)
    partition = batch.partition[:count]
    if batch.given_offset is None:
        return position + np.bincount(partition, minlength=len(position))
    np.maximum.at(position, partition, batch.given_offset[:count])
    return position


def newest_times(batch: RecordBatch, stream_time_ms: Longs) -> Longs:
    """Stream time of each partition at the end of the batch, from what it was before."""
    newest = stream_time_ms.copy()
    counted = slice(None) if batch.rejected is None else (batch.rejected == 0) | (batch.rejected >= TICK)
    np.maximum.at(newest, batch.partition[counted], batch.moving_ms[counted])
    return newest


def codes_of(held: pa.Array, known: pa.Array) -> tuple[Longs, pa.Array]:
    """(code of each key that a store holds, all keys): the records' keys first; refuses those of another type."""
    if held.type != known.type and len(held):
        want = "use keys of one type in a store"
        raise InvalidData(problem("the store holds keys of another type", f"{held.type}, records {known.type}", want))
    code, keys = pc.index_in(held, value_set=known), known
    if code.null_count:
        others = held.filter(code.is_null()).dictionary_encode()
        code = pc.replace_with_mask(code, code.is_null(), pc.add(others.indices, pa.scalar(len(known), pa.int32())))
        keys = pa.concat_arrays([known, others.dictionary])
    return np.asarray(code, np.int64), keys


def decision_counts(counts: Longs) -> dict[int, int]:
    """How many records met each decision that was made; a tick is no record."""
    return {int(code): int(counts[code]) for code in np.flatnonzero(counts) if code < TICK}
