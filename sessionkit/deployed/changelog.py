"""What a store's changelog tells when an application is started again without its disk.

Kafka Streams 4.4.0 does not restore all of it: it looks up the timestamp of the last entry, and begins at the first
entry that is no older than that by more than the retention. Windows that were written before are not in the store.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from sessionkit.base.arrays import Longs, Rows, last_of_same, numpy_array
from sessionkit.base.decisions import LATE
from sessionkit.deployed.compiled.stores import take_out
from sessionkit.deployed.forgetting import ForgettingStore
from sessionkit.records.keys import key_bytes
from sessionkit.stores.cache.named_cache import EntryId
from sessionkit.stores.contract import Stored, StoredWindow
from sessionkit.stores.rows import time_of
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.trace.trace import Trace
from sessionkit.trace.window_trace import WindowTrace


class Changelog:
    """The timestamps of what was written to a store, by which a restore leaves windows out.

    `time_ms` is that of the record that is processed. An entry of a session has the timestamp of the record by which
    it changed, one of another window the largest of its records.

    Args:
        retention_ms, is_on_disk: of the store.
        held_ms: of each partition that a store on disk holds from the beginning on, the largest time in it.
    Source:
        StoreChangelogReader.seekByRetentionFromPolledRecords (KAFKA-13499); ChangeLoggingSessionBytesStore;
        AbstractSegments.committedOffset.
    """

    def __init__(self, retention_ms: int, *, is_on_disk: bool, held_ms: Mapping[int, int]) -> None:
        self.time_ms, self._retention_ms, self._is_on_disk = -1, retention_ms, is_on_disk
        self._stopped_ms = dict(held_ms)  # of each partition the largest time in it, as of its last stop in peace
        self._put_ms: defaultdict[int, int] = defaultdict(lambda: -1)  # the largest time that was put since
        self._changed_ms: dict[EntryId, int] = {}  # of sessions, also of those that a cache still holds
        self._last_ms: dict[int, int] = {}  # of the last entry of each partition
        self._newest_ms: defaultdict[int, int] = defaultdict(lambda: -1)  # of all its entries
        # the key, and the newest entry up to the window's last one; or both as columns, while kernels play
        self._windows: dict[EntryId, tuple[Any, int]] = {}
        self._columns: _Windows | None = None

    def changed(self, place: EntryId) -> None:
        """Notes with which record a session changes."""
        self._changed_ms[place] = self.time_ms

    def add(self, place: EntryId, key: Any, timestamp_ms: int | None, *, is_deleted: bool) -> None:
        """Notes an entry; without a timestamp with that of the record by which it changed."""
        time_ms = self._changed_ms.pop(place, self.time_ms) if timestamp_ms is None else timestamp_ms
        self._last_ms[place.partition] = time_ms
        self._put_ms[place.partition] = max(self._put_ms[place.partition], place.end_ms)
        newest_ms = self._newest_ms[place.partition] = max(self._newest_ms[place.partition], time_ms)
        self._to_rows()
        if is_deleted:
            self._windows.pop(place, None)
        else:
            self._windows[place] = (key, newest_ms)

    def add_all(self, trace: Trace, held: Rows) -> None:
        """Notes the entries of a life that was not played record by record, and at its end these rows were held."""
        columns = trace.window_columns
        newest_of = np.full(len(columns.key), -1)  # the newest entry up to each window's last one
        if isinstance(trace, SessionTrace):
            at = np.flatnonzero(trace.accepted)
            window, time_ms, end_ms = trace.survivor[at], trace.batch.timestamp_ms[at], columns.end_ms
        else:
            assert isinstance(trace, WindowTrace)
            live = np.flatnonzero(trace.touches.effect != LATE)
            at, window = trace.touches.record[live].astype(np.intp), trace.touches.window[live].astype(np.int64)
            time_ms, end_ms = trace.newest_ms[live], columns.start_ms
        for code, number in enumerate(trace.batch.partitions.tolist()):
            mine = np.flatnonzero(trace.batch.partition[at] == code)
            newest_ms = np.maximum.accumulate(np.append(self._newest_ms[number], time_ms[mine]))
            self._last_ms[number] = int(time_ms[mine[-1]]) if len(mine) else self._last_ms.get(number, -1)
            self._newest_ms[number] = int(newest_ms[-1])
            self._put_ms[number] = int(end_ms[window[mine]].max(initial=self._put_ms[number]))
            newest_of[window[mine]] = newest_ms[1:]  # of one that changed several times the last stays
        held = held[newest_of[held] >= 0]
        key, number = trace.keys.take(pa.array(columns.key[held])), trace.batch.partitions[columns.partition[held]]
        found = _Windows(key, number, columns.start_ms[held], end_ms[held], newest_of[held])
        self._columns = self._to_columns(key.type).followed_by(found)

    def restore(self, store: Any, kind: str) -> None:
        """Takes out of the store what it does not have after a restart of this kind."""
        self._changed_ms.clear()
        if kind == "disk" and self._is_on_disk:
            self._stopped_ms |= {p: max(ms, self._stopped_ms.get(p, -1)) for p, ms in self._put_ms.items() if ms >= 0}
            self._put_ms.clear()
            return
        if kind == "changelog":
            self._stopped_ms.clear()
        if self._columns is not None and self._restore_columns(store):
            return
        self._to_rows()
        for place, (key, newest_ms) in list(self._windows.items()):
            behind_ms, stopped_ms = self._last_ms[place.partition] - newest_ms, self._stopped_ms.get(place.partition)
            since_ms = None if stopped_ms is None else (stopped_ms, self._put_ms[place.partition])
            if isinstance(store, ForgettingStore):
                store.restore_from(place.partition, place.raw, place.start_ms, place.end_ms, behind_ms, since_ms)
            elif not 0 < self._retention_ms < behind_ms:
                continue  # Kafka takes 0 for no retention, and restores all
            elif since_ms is not None and store.segments.is_live(*since_ms):
                continue
            elif store.holds == "sessions":
                store.remove(key, place.start_ms, place.end_ms, partition=place.partition)
            else:
                store.write(StoredWindow(place.start_ms, None, newest_ms, key), partition=place.partition)

    def _restore_columns(self, store: Any) -> bool:
        """The same of what kernels have left in the store, if nobody has asked for its windows since."""
        assert self._columns is not None, "there are some"
        is_out = np.zeros(len(self._columns.newest_ms), np.bool_)
        for number in np.unique(self._columns.partition).tolist():
            mine, stopped_ms = self._columns.partition == number, self._stopped_ms.get(number)
            is_on_disk = stopped_ms is not None and store.segments.is_live(stopped_ms, self._put_ms[number])
            if self._retention_ms > 0 and not is_on_disk:
                is_out |= mine & (self._last_ms[number] - self._columns.newest_ms > self._retention_ms)
            gone = self._columns.take(np.flatnonzero(is_out & mine))
            if not take_out(store, number, gone.key, gone.start_ms, gone.end_ms):
                return False
        self._columns = self._columns.take(np.flatnonzero(~is_out))
        return True

    def _to_rows(self) -> None:
        """Puts what is known as columns beside the rest."""
        if self._columns is not None:
            columns, self._columns = self._columns, None
            rows = zip(columns.key.to_pylist(), *(column.tolist() for column in columns[1:]), strict=True)
            self._windows |= {EntryId(p, key_bytes(key), *bounds): (key, ms) for key, p, *bounds, ms in rows}

    def _to_columns(self, key_type: pa.DataType) -> _Windows:
        """All that is known as columns."""
        if self._columns is not None:
            return self._columns
        rows = [(key, place.partition, *place[2:], newest_ms) for place, (key, newest_ms) in self._windows.items()]
        self._windows.clear()
        key, *numbers = zip(*rows, strict=True) if rows else [()] * 5
        return _Windows(pa.array(key, key_type), *(np.array(column, np.int64) for column in numbers))


class _Windows(NamedTuple):
    """Windows, each once, and the newest entry of the changelog up to the last one of each."""

    key: pa.Array
    partition: Longs
    start_ms: Longs
    end_ms: Longs  # of others than sessions their starts, by which a store keeps them
    newest_ms: Longs

    def take(self, rows: Rows) -> _Windows:
        return _Windows(self.key.take(pa.array(rows)), *(column[rows] for column in self[1:]))

    def followed_by(self, later: _Windows) -> _Windows:
        """Both, where what is later counts."""
        key = pa.concat_arrays([self.key, later.key])
        both = _Windows(key, *(np.concatenate(pair) for pair in zip(self[1:], later[1:], strict=True)))
        code = numpy_array(key.dictionary_encode().indices)
        return both.take(np.flatnonzero(last_of_same(code, both.partition, both.start_ms, both.end_ms)))


class LoggedStore:
    """A store, or a cache in front of it, whose changes a changelog takes note of; all else is the store's own."""

    def __init__(self, store: Any, changelog: Changelog, *, has_cache: bool = False, is_cache: bool = False) -> None:
        self._logged, self._changelog = store, changelog
        self._sees_change, self._sees_entry = not has_cache, not is_cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._logged, name)

    def write(self, window: Stored, /, *, partition: int = 0, keep_null: bool = False) -> bool:
        place = EntryId(partition, key_bytes(window.key), window.window_start_ms, time_of(window))
        time_ms = window.timestamp_ms if isinstance(window, StoredWindow) else None
        self._note(place, window.key, time_ms, is_deleted=window.aggregate is None and not keep_null)
        return bool(self._logged.write(window, partition=partition, keep_null=keep_null))

    def remove(self, key: Any, window_start_ms: int, window_end_ms: int, *, partition: int = 0) -> None:
        place = EntryId(partition, key_bytes(key), window_start_ms, window_end_ms)
        self._note(place, key, None, is_deleted=True)
        self._logged.remove(key, window_start_ms, window_end_ms, partition=partition)

    def _note(self, place: EntryId, key: Any, timestamp_ms: int | None, *, is_deleted: bool) -> None:
        if self._sees_change and timestamp_ms is None:
            self._changelog.changed(place)
        if self._sees_entry:
            self._changelog.add(place, key, timestamp_ms, is_deleted=is_deleted)
