"""The stores of which kernels know the rules: what is in them as columns, without a row for each window."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pyarrow as pa

from sessionkit.base.arrays import Longs, last_of_same, numpy_array
from sessionkit.deployed.forgetting import ForgettingSessions, ForgettingStore, ForgettingWindows
from sessionkit.stores.cache.windows import CachingWindowStore
from sessionkit.stores.contract import StoredColumns
from sessionkit.stores.memory.sessions import MemorySessionStore
from sessionkit.stores.memory.windows import MemoryWindowStore
from sessionkit.stores.rows import as_columns

KernelStore: TypeAlias = MemorySessionStore | MemoryWindowStore | ForgettingSessions | ForgettingWindows


def is_known(store: object) -> bool:
    """Whether kernels know what this store shows."""
    if isinstance(store, ForgettingStore):
        return store.is_persistent and not store.notices
    return type(store) in (MemorySessionStore, MemoryWindowStore) and store.retention_ms is not None  # type: ignore[attr-defined]


def observed_ms(store: KernelStore, partition: int) -> int:
    """The largest time that was put into a partition since the store was opened; -1 if none was."""
    if isinstance(store, ForgettingStore):
        return store._partitions[partition].observed_ms
    return store._of(partition).observed_time_ms


def boundary_of(store: KernelStore) -> int:
    """1 if reads see a window that is just `retention` behind, else 0."""
    return store._boundary_ms if isinstance(store, ForgettingStore) else 0


def columns_of(store: KernelStore, partition: int, key_type: pa.DataType, names: tuple[str, ...]) -> StoredColumns:
    """All that a partition holds."""
    state = store._partitions[partition] if isinstance(store, ForgettingStore) else store._of(partition)
    waiting = state.waiting
    if waiting is not None and waiting.key.type == key_type and tuple(waiting.aggregates) == names:
        return waiting
    if isinstance(store, ForgettingStore):  # also what reads do not see any more
        held = [row.stored for row in store._partitions[partition].by_time.values()]
    else:
        held = list(store.all(partition=partition))
    return as_columns(store.holds, [(partition, each) for each in held], key_type, names)


def found_at_end(store: KernelStore | CachingWindowStore, partition: int) -> StoredColumns | None:
    """What a look for final results would find of what a compiled run has left in a partition; None: it is rows."""
    if isinstance(store, CachingWindowStore):
        return None if store.shown is None else store.shown(partition)
    if not isinstance(store, ForgettingStore):
        left = store._of(partition).waiting
    else:
        state = store._partitions[partition]
        left = state.waiting
        if left is not None and store.holds == "windows":  # of sessions it finds all that live segments hold
            first_ms = state.observed_ms - store.retention_ms + 1 - store._boundary_ms
            left = left.take(np.flatnonzero(left.time_ms >= first_ms))
    return left


def take_over(store: KernelStore, partition: int, columns: StoredColumns, observed_ms: int) -> None:
    """Puts what a run left in a partition in place of all that it held, and the time that it has observed."""
    if isinstance(store, ForgettingStore):
        state = store._partitions[partition]
        state.waiting, state.observed_ms, state.dropped_at_ms = columns, observed_ms, observed_ms
        return
    held = store._of(partition)
    held.waiting, held.observed_time_ms = columns, observed_ms
    if len(columns.key):
        store._note_kind(columns.key[0].as_py())


def take_out(store: KernelStore, partition: int, key: pa.Array, start_ms: Longs, time_ms: Longs) -> bool:
    """Takes windows, each given once, out of what a run left in a partition; False if that is in columns no more."""
    state = store._partitions[partition] if isinstance(store, ForgettingStore) else store._of(partition)
    left = state.waiting
    if left is None:
        return False
    code = numpy_array(pa.concat_arrays([left.key, key.cast(left.key.type)]).dictionary_encode().indices)
    stays = last_of_same(code, np.append(left.start_ms, start_ms), np.append(left.time_ms, time_ms))
    state.waiting = left.take(np.flatnonzero(stays[: len(left.key)]))
    return True
