"""Writes what a run left behind into its store: one commit, or nothing."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sessionkit.contracts import SessionColumns, SessionStore
from sessionkit.engine import Outcome


def commit(outcome: Outcome, store: SessionStore, retention_ms: int) -> None:
    """Takes out what was loaded, puts back what can still be found, and moves each partition's position and clock."""
    windows, numbers = outcome.window_columns, outcome.batch.partitions
    assert outcome.kept_trace is not None
    horizon = outcome.kept_trace.last_stream_time_ms - retention_ms
    rows = np.flatnonzero((windows.merged_into < 0) & (windows.end_ms >= horizon[windows.partition]))
    puts = SessionColumns(
        outcome.keys.take(pa.array(windows.key[rows])),
        numbers[windows.partition[rows]],
        windows.start_ms[rows],
        windows.end_ms[rows],
        windows.opened_by[rows],
        outcome.kept_trace.closed_by[rows],
        {name: fold.aggregates(rows) for name, fold in outcome.folds.items()},
    )
    store.commit(outcome.loaded, puts, outcome.snapshots)
