"""Writes what a run left behind into its store: one commit, or nothing."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sessionkit.base.arrays import Flags, Longs, Rows
from sessionkit.engine.idle_partitions import with_arrivals
from sessionkit.engine.outcome import Outcome
from sessionkit.stores.contract import COLUMNS, BulkStore, StoredColumns
from sessionkit.windows.contract import WindowKind


def commit(outcome: Outcome, store: BulkStore, windows: WindowKind, retention_ms: int) -> None:
    """Takes out what was loaded, puts back what can still be found, and moves each partition's position and clock."""
    rows = np.flatnonzero(alive(outcome) & findable(outcome, windows, retention_ms))
    columns = columns_at(outcome, rows, windows.holds, _closed_by(outcome, rows))
    store.commit(outcome.loaded, columns, with_arrivals(outcome))


def columns_at(outcome: Outcome, rows: Rows, holds: str, closed_by: Longs) -> StoredColumns:
    """The sessions, or the time and sliding windows, at `rows` as a store takes them, with what closed each of them."""
    columns = outcome.window_columns
    return COLUMNS[holds](
        outcome.keys.take(pa.array(columns.key[rows])),
        outcome.batch.partitions[columns.partition[rows]],
        columns.start_ms[rows],
        columns.timestamp_ms[rows],
        columns.opened_by[rows],
        closed_by,
        {name: fold.aggregates(rows) for name, fold in outcome.folds.items()},
        outcome.rows_at(rows),
    )


def alive(outcome: Outcome) -> Flags:
    """True for each window that was not absorbed by another."""
    return outcome.window_columns.merged_into < 0


def findable(outcome: Outcome, windows: WindowKind, retention_ms: int) -> Flags:
    """True for each window that a later record can still find, or build on."""
    stream_time_ms = [outcome.snapshots[p].stream_time_ms for p in outcome.batch.partitions.tolist()]
    oldest = windows.oldest_kept_end_ms(np.array(stream_time_ms, np.int64), retention_ms)
    columns = outcome.window_columns
    return columns.end_ms >= oldest[columns.partition]


def _closed_by(outcome: Outcome, rows: Rows) -> Longs:
    """Offset of the record that closed each window, -1 while it is open.

    Without a trace nobody asked which record it was; the last one read then stands for it.
    """
    windows = outcome.window_columns
    if outcome.kept_trace is not None:
        return outcome.kept_trace.closed_by_of(rows)
    position = np.array([outcome.snapshots[p].position for p in outcome.batch.partitions.tolist()], np.int64)
    now = np.where(outcome.closed[rows], position[windows.partition[rows]], -1)
    before = windows.closed_before[rows]
    return np.where(before >= 0, before, now)
