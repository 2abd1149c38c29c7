"""Windows as columns, with the bulk calls of a store and nothing else: the state between two steps of one run."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.arrays import Longs, joined
from sessionkit.records.keys import ranks_of
from sessionkit.stores.contract import COLUMNS, Snapshot, StoredColumns, no_columns, rows_of


class ColumnState:
    """The windows that can still be found, and how far each partition was read.

    What a run loads it takes out again when it commits, so a commit replaces the rows of the load before it.

    Args:
        of: "sessions", or "windows" (time and sliding ones).
    """

    def __init__(self, of: str = "sessions") -> None:
        self._of = of
        self._held: StoredColumns | None = None
        self._loaded = np.empty(0, np.bool_)  # the rows of `_held` that the last load gave away
        self.untouched = 0  # the first of them, which were filled in and never given away
        self.snapshots: dict[int, Snapshot] = {}

    def __len__(self) -> int:
        return 0 if self._held is None else len(self._held.start_ms)

    @property
    def read_partitions(self) -> list[int]:
        return sorted(self.snapshots)

    def snapshot(self, partition: int) -> Snapshot:
        return self.snapshots.get(partition, Snapshot())

    def load(self, keys: pa.Array, before_ms: Mapping[int, int], names: tuple[str, ...]) -> StoredColumns:
        windows = self._held
        if windows is None or not before_ms:
            self._loaded = np.zeros(len(self), np.bool_)
            return no_columns(self._of, keys.type, names)
        limit = np.full(len(windows.partition), -1, np.int64)  # -1: another partition, nothing lies before it
        known = np.zeros(len(windows.partition), np.bool_)
        for partition, until_ms in before_ms.items():
            mask = windows.partition == partition
            known |= mask
            limit[mask] = until_ms
        time_ms = windows.time_ms
        self._loaded = known & (time_ms < limit)
        if windows.key.type != keys.type:
            self._loaded = known  # the run will say that its keys are of another type
        elif len(keys):
            others = np.flatnonzero(known & ~self._loaded)
            self._loaded[others] = pc.is_in(windows.key.take(pa.array(others)), value_set=keys)
        return windows if self._loaded.all() else windows.take(np.flatnonzero(self._loaded))

    def edges(self) -> list[tuple[int, int, int]]:
        """(partition, oldest time, newest time) of each partition, by the time that a store keeps windows by."""
        if self._held is None:
            return []
        partition, time_ms = self._held.partition, self._held.time_ms
        pairs = ((number, time_ms[partition == number]) for number in np.unique(partition).tolist())
        return [(number, int(times.min()), int(times.max())) for number, times in pairs]

    def ordered(self, most: int | None = None) -> StoredColumns | None:
        """The windows in the order of maps: by partition, time, key bytes, falling start, `most` of them."""
        windows = self._held
        if windows is None:
            return None
        time_ms = windows.time_ms
        rows = np.lexsort((time_ms, windows.partition))
        if most is not None and most < len(rows):
            last = rows[most - 1]
            ties = (time_ms[rows[most:]] == time_ms[last]) & (windows.partition[rows[most:]] == windows.partition[last])
            rows = rows[: most + int(ties.sum())]  # among those of one time the keys decide
        chosen = windows.take(rows)
        keys = chosen.key.dictionary_encode()
        ranks = ranks_of(keys.dictionary, keys.indices.to_numpy())  # equal keys have one rank: then the start decides
        order = np.lexsort((-chosen.start_ms, ranks, chosen.time_ms, chosen.partition))
        return chosen.take(order[:most])

    def is_loaded(self, removes: StoredColumns) -> bool:
        """True if these are the windows that the last load gave away, as far as their number tells."""
        return len(removes.start_ms) == int(self._loaded.sum())

    def fill(self, columns: StoredColumns, snapshots: Mapping[int, Snapshot], *, untouched: int | None = None) -> None:
        """Takes in everything at once; no load has given the first ones away, all of them if no number is given."""
        self._held, self.snapshots = columns, dict(snapshots)
        self._loaded = np.zeros(len(self), np.bool_)
        self.untouched = len(self) if untouched is None else untouched

    @property
    def everything(self) -> StoredColumns | None:
        """All windows; None before there were any."""
        return self._held

    def touched(self) -> StoredColumns | None:
        """The windows without those that were filled in and that no load gave away since."""
        rows = np.arange(self.untouched, len(self))
        return self._held if self._held is None or not self.untouched else self._held.take(rows)

    def take_all(self) -> tuple[StoredColumns | None, dict[int, Snapshot]]:
        everything = (self._held, self.snapshots)
        self._held, self.snapshots, self._loaded = None, {}, np.empty(0, np.bool_)
        return everything

    def commit(self, removes: StoredColumns, puts: StoredColumns, snapshots: Mapping[int, Snapshot]) -> None:
        """Takes a step over: what it loaded, `removes`, is replaced by what it wrote, and how far it came is noted."""
        assert self.is_loaded(removes), "a commit follows the load of its run"
        self.snapshots.update(snapshots)
        windows = self._held
        self.untouched = int(np.count_nonzero(~self._loaded[: self.untouched]))
        if windows is None or self._loaded.all():
            self._held = puts
        else:
            stays = windows.take(np.flatnonzero(~self._loaded)) if self._loaded.any() else windows
            self._held = self._joined(stays, puts)
        self._loaded = np.zeros(len(self), np.bool_)

    def _joined(self, first: StoredColumns, second: StoredColumns) -> StoredColumns:
        numbers: list[Longs] = [np.concatenate(pair) for pair in zip(first[1:6], second[1:6], strict=True)]
        aggregates = joined(first.aggregates, second.aggregates)
        rows = None if first.rows is second.rows is None else np.concatenate([rows_of(first), rows_of(second)])
        return COLUMNS[self._of](pa.concat_arrays([first.key, second.key]), *numbers, aggregates, rows)
