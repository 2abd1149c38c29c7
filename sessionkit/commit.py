"""Writes what a run left behind into its store: one commit, or nothing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.contracts import BulkStore, SessionColumns
from sessionkit.engine import Outcome


def commit(outcome: Outcome, store: BulkStore, retention_ms: int) -> None:
    """Takes out what was loaded, puts back what can still be found, and moves each partition's position and clock."""
    rows = np.flatnonzero(alive(outcome) & findable(outcome, retention_ms))
    store.commit(outcome.loaded, sessions_at(outcome, rows), outcome.snapshots)


def alive(outcome: Outcome) -> npt.NDArray[np.bool_]:
    """True for each window that was not absorbed by another."""
    mask: npt.NDArray[np.bool_] = outcome.window_columns.merged_into < 0
    return mask


def findable(outcome: Outcome, retention_ms: int) -> npt.NDArray[np.bool_]:
    """True for each window that a later record can still find."""
    stream_time_ms = [outcome.snapshots[p].stream_time_ms for p in outcome.batch.partitions.tolist()]
    horizon = np.array(stream_time_ms, np.int64) - retention_ms
    windows = outcome.window_columns
    mask: npt.NDArray[np.bool_] = windows.end_ms >= horizon[windows.partition]
    return mask


def sessions_at(outcome: Outcome, rows: npt.NDArray[np.intp]) -> SessionColumns:
    """The windows at `rows` as a store takes them.

    Without a trace nobody asked which record closed a window; the last one read then stands for it.
    """
    windows, numbers = outcome.window_columns, outcome.batch.partitions
    if outcome.kept_trace is not None:
        closed_by = outcome.kept_trace.closed_by[rows]
    else:
        position = np.array([outcome.snapshots[p].position for p in numbers.tolist()], np.int64)
        closed_by = np.where(outcome.closed[rows], position[windows.partition[rows]], -1)
    return SessionColumns(
        outcome.keys.take(pa.array(windows.key[rows])),
        numbers[windows.partition[rows]],
        windows.start_ms[rows],
        windows.end_ms[rows],
        windows.opened_by[rows],
        closed_by,
        {name: fold.aggregates(rows) for name, fold in outcome.folds.items()},
    )
