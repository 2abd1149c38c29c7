"""Sessions as columns, with the bulk calls of a store and nothing else: the state between two steps of one run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.contracts import SessionColumns, Snapshot
from sessionkit.durations import INT64_MAX


class ColumnState:
    """The sessions that can still be found, and how far each partition was read.

    A session is known by its partition and the offset of the record that opened it, so it holds what runs committed
    and nothing that was put by hand.

    Example:
        >>> ColumnState().snapshot(0).position
        -1
    """

    def __init__(self) -> None:
        self._sessions: SessionColumns | None = None
        self._snapshots: dict[int, Snapshot] = {}

    def __len__(self) -> int:
        return 0 if self._sessions is None else len(self._sessions.start_ms)

    def snapshot(self, partition: int) -> Snapshot:
        """How far the partition has been read, and its clock."""
        return self._snapshots.get(partition, Snapshot())

    def load(self, keys: pa.Array, close_time_ms: Mapping[int, int], names: tuple[str, ...]) -> SessionColumns:
        """Sessions of these keys, and those of any key that will be closed, of the partitions in `close_time_ms`."""
        held = self._sessions
        if held is None or not close_time_ms:
            return _none(keys.type, names)
        limit = np.full(len(held.partition), -1, np.int64)  # -1: another partition, nothing ends before it
        mine = np.zeros(len(held.partition), np.bool_)
        for partition, close_ms in close_time_ms.items():
            here = held.partition == partition
            mine |= here
            limit[here] = close_ms
        wanted = mine & (held.end_ms < limit)
        if len(keys):
            wanted |= mine & np.asarray(pc.is_in(held.key, value_set=keys))
        return held if wanted.all() else held.take(np.flatnonzero(wanted))

    def load_all(self, keys: pa.Array, close_time_ms: Mapping[int, int], names: tuple[str, ...]) -> SessionColumns:
        """Every session of the partitions in `close_time_ms`, in place of `load`: to bring a run to its end."""
        return self.load(keys, dict.fromkeys(close_time_ms, INT64_MAX), names)

    def commit(self, removes: SessionColumns, puts: SessionColumns, snapshots: Mapping[int, Snapshot]) -> None:
        """Takes a step over: what it removed, what it wrote, and how far it came."""
        assert not len(puts.opened_by) or int(puts.opened_by.min()) >= 0
        self._snapshots.update(snapshots)
        stays = self._stays(removes)
        self._sessions = puts if stays is None or not len(stays.start_ms) else _joined(stays, puts)

    def _stays(self, removes: SessionColumns) -> SessionColumns | None:
        held = self._sessions
        if held is None or not len(removes.start_ms):
            return held
        gone = np.zeros(len(held.partition), np.bool_)
        for partition in np.unique(removes.partition):
            here = held.partition == partition
            gone |= here & np.isin(held.opened_by, removes.opened_by[removes.partition == partition])
        return held.take(np.flatnonzero(~gone))


def _none(key_type: pa.DataType, names: tuple[str, ...]) -> SessionColumns:
    nothing = np.empty(0, np.int64)
    empty = {name: np.empty(0, object) for name in names}
    return SessionColumns(pa.array([], key_type), nothing, nothing, nothing, nothing, nothing, empty)


def _joined(first: SessionColumns, second: SessionColumns) -> SessionColumns:
    aggregates = {name: _one_column(column, second.aggregates[name]) for name, column in first.aggregates.items()}
    return SessionColumns(
        pa.concat_arrays([first.key, second.key]),
        np.concatenate([first.partition, second.partition]),
        np.concatenate([first.start_ms, second.start_ms]),
        np.concatenate([first.end_ms, second.end_ms]),
        np.concatenate([first.opened_by, second.opened_by]),
        np.concatenate([first.closed_by, second.closed_by]),
        aggregates,
    )


def _one_column(first: Any, second: Any) -> Any:
    return pa.concat_arrays([first, second]) if isinstance(first, pa.Array) else np.concatenate([first, second])
