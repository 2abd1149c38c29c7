"""The windows of a store that a life of the task can meet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from sessionkit.base.arrays import Longs
from sessionkit.deployed.deployment import Life
from sessionkit.deployed.forgetting import ForgettingSessions
from sessionkit.engine.outcome import newest_times
from sessionkit.records.batch import RecordBatch
from sessionkit.stores.contract import Snapshot, TaskStore
from sessionkit.windows.contract import WindowKind


def loaded_windows(
    windows: WindowKind,
    store: TaskStore,
    batch: RecordBatch,
    stream_time_ms: Longs,
    before: Mapping[int, Snapshot],
    how: Life,
) -> tuple[list[tuple[int, Any]], pa.Array]:
    """(windows of the store that this batch can touch or close, by code of their partition; all keys)."""
    newest, known = newest_times(batch, stream_time_ms), set(batch.keys.to_pylist())
    stored: list[tuple[int, Any]] = []
    for code, p in enumerate(batch.partitions.tolist()):
        close_ms, seen = newest[code] - windows.close_lag_ms, store.all(partition=p)
        of = [each for each in seen if each.key in known or windows.last_instant_ms(each) < close_ms]
        if isinstance(store, ForgettingSessions) and how.emit == "on_window_close":
            hidden = store.left_to_looks(before[p].last_close_time_ms, partition=p)
            of += [each for each in hidden if each.window_end_ms < close_ms]
        stored += [(code, each) for each in of]
    extra = list(dict.fromkeys(each.key for _, each in stored if each.key not in known))
    keys = pa.concat_arrays([batch.keys, pa.array(extra, batch.keys.type)]) if extra else batch.keys
    return stored, keys
