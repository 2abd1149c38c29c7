"""What a plan needs of a store on disk: windows in and out as columns, many at once where they hold only numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import compress, repeat
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.arrays import Flags
from sessionkit.base.durations import INT64_MAX
from sessionkit.records.keys import key_bytes
from sessionkit.stores.contract import Snapshot, StoredColumns
from sessionkit.stores.rocksdb import columns as column_codec
from sessionkit.stores.rocksdb.base import PersistentStore
from sessionkit.stores.rocksdb.row_space import Question, Row
from sessionkit.stores.rows import KEY_TYPES, as_stored
from sessionkit.stores.typed_bytes import Place

AT_ONCE = 20  # reading a row with all others costs that much less than finding it by its key


class PersistentBulkStore(PersistentStore):
    """A store on disk that takes over whole runs."""

    def load(self, keys: pa.Array, before_ms: Mapping[int, int], names: tuple[str, ...]) -> Any:
        self.check_names(names)
        many = AT_ONCE * len(keys) >= self._database.estimate()
        if many:
            columns = self._load_at_once(keys, before_ms, names)
            if columns is not None:
                return columns
        wanted = sorted({key_bytes(key) for key in keys.to_pylist()})
        found = [
            (int(partition), self._stored(row.place, self._fields(row.at, row.raw)))
            for partition, until_ms in before_ms.items()
            for row in self._needed(int(partition), int(until_ms), wanted, many=many)
        ]
        return self._as_columns(found, keys.type, names)

    def commit(self, removes: Any, puts: Any, snapshots: Mapping[int, Snapshot]) -> None:
        """Takes a run over in one batch: what it removed, what it wrote, and how far it came.

        The time that the store has observed is stored with the position: see `commit_snapshots`.
        """
        with self.all_or_nothing():
            self._remove_columns(removes)
            self._put_columns(puts)
            self._note_run(snapshots, puts.aggregates.keys())

    def _load_at_once(self, keys: pa.Array, before_ms: Mapping[int, int], names: tuple[str, ...]) -> Any:
        """The windows that `load` gives, from one pass over all rows; None if they must be read one by one."""
        at, values = [], []
        for partition in before_ms:
            rows = self._space.value_rows(self._database, int(partition), self._visible_ms(int(partition)))
            at += rows[0]
            values += rows[1]
        columns = column_codec.unpack(self._space, at, values, self._noted.key_kind or "unknown", names)
        if columns is None:
            return None
        wanted = np.ones(len(columns.key), np.bool_)  # keys of another type: the run will say so
        if columns.key.type == keys.type:
            wanted = np.array(pc.is_in(columns.key, value_set=keys))
        for partition, mask in _by_partition(columns):
            wanted[mask] |= columns.time_ms[mask] < before_ms[partition]
            wanted[mask] &= columns.time_ms[mask] >= self._visible_ms(partition)
        return columns if wanted.all() else columns.take(np.flatnonzero(wanted))

    def _needed(self, partition: int, until_ms: int, wanted: list[bytes], *, many: bool) -> Iterator[Row]:
        """The rows that `load` gives of one partition. Few keys are found one by one; for many all rows are read."""
        question = self._question(partition)
        if many:
            chosen = frozenset(wanted)
            for row in self._rows(question):
                if row.place.time_ms < until_ms or row.place.key in chosen:
                    yield row
            return
        yield from self._rows(question._replace(to_ms=min(until_ms - 1, INT64_MAX), by_time=True))
        open_ones = question._replace(from_ms=max(question.from_ms, until_ms))
        for raw in wanted:
            yield from self._rows(open_ones._replace(low=raw, high=raw))

    def _remove_columns(self, columns: StoredColumns) -> None:
        packed = column_codec.pack_places(self._space, columns) if self._holds_keys_like(columns.key) else None
        if packed is None:
            for partition, each in as_stored(columns):
                self._remove(self._place_of(each), partition)
            return
        for partition, mask in _by_partition(columns):
            self._observe(partition, int(columns.time_ms[mask].max()), drop=False)
        for rows in packed:
            self._database.change(dict.fromkeys(rows.to_numpy(zero_copy_only=False)))

    def _put_columns(self, columns: StoredColumns) -> None:
        packed = column_codec.pack_places(self._space, columns) if self._holds_keys_like(columns.key) else None
        fields = None if packed is None else column_codec.pack_fields(packed[0], columns)
        if packed is None or fields is None:
            self._write_all(columns)
            return
        is_live = np.empty(len(columns.key), np.bool_)
        for partition, mask in _by_partition(columns):
            first = self._observe(partition, int(columns.time_ms[mask].max())).first_segment
            is_live[mask] = columns.time_ms[mask] // self.segments.interval_ms >= first
        if is_live.any():
            self._note_kind(columns.key[0].as_py())
        for rows, values in zip(packed, [fields.to_numpy(zero_copy_only=False), repeat(b"")], strict=False):
            self._database.change(
                dict(compress(zip(rows.to_numpy(zero_copy_only=False), values, strict=False), is_live))
            )

    def _holds_keys_like(self, keys: pa.Array) -> bool:
        kind = self._noted.key_kind
        return kind is None or keys.type == KEY_TYPES[kind]

    def _listed(self, question: Question) -> Iterator[Any]:
        """The windows asked for, in the order of their rows."""
        return (self._stored(row.place, self._fields(row.at, row.raw)) for row in self._rows(question))

    def _stored(self, place: Place, fields: tuple[Any, ...]) -> Any:
        return self.layout.stored(place, self._key(place.key), fields)


def _by_partition(columns: StoredColumns) -> Iterator[tuple[int, Flags]]:
    """(partition, mask of its windows) of each partition."""
    for partition in np.unique(columns.partition).tolist():
        yield partition, columns.partition == partition
