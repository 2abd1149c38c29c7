"""Base of the stores on disk: settings, partitions and their clocks, and windows in and out.

Many windows at once go as columns where they hold only numbers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from itertools import chain, compress, islice, repeat
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.arrays import Flags
from sessionkit.base.durations import INT64_MAX, Duration
from sessionkit.base.text import one_of
from sessionkit.errors import InvalidArgument, StoreCorrupted, StoreUnavailable, install, problem
from sessionkit.records.keys import MAX_KEY_BYTES, key_bytes
from sessionkit.stores.base.store import COUNTED_ROWS, State, WrittenStore
from sessionkit.stores.contract import RESTARTS, Snapshot, Stored, StoredColumns
from sessionkit.stores.rocksdb import columns as column_codec
from sessionkit.stores.rocksdb.disk.database import Database
from sessionkit.stores.rocksdb.disk.folder import StoreFolder
from sessionkit.stores.rocksdb.row_space import HEADER, ROWS, STATE, Question, Row, RowSpace
from sessionkit.stores.rows import KEY_TYPES, as_stored, place_of
from sessionkit.stores.segments import Segments
from sessionkit.stores.typed_bytes import Layout, Place, pack_value, unpack_key, unpack_value

AT_ONCE = 20  # reading a row with all others costs that much less than finding it by its key


class PersistentStore(WrittenStore):
    """The base of the session store and the window store on disk."""

    layout: ClassVar[Layout]
    is_persistent: ClassVar[bool] = True
    longest_key: ClassVar[int] = MAX_KEY_BYTES
    boundary_is_visible: bool = False

    def __init__(
        self,
        *,
        name: str,
        directory: str | os.PathLike[str],
        retention: Duration | None = None,
        time_ordered: bool = False,
        index: bool = False,
        segment_interval: Duration | None = None,
    ) -> None:
        if index and not time_ordered:
            want = "time_ordered=True with it; the ordinary form is in order of keys already"
            raise InvalidArgument(problem("an index belongs to a time-ordered store", "index=True", want))
        if find_spec("rocksdict") is None:
            raise StoreUnavailable(problem("a store on disk needs RocksDB", "no rocksdict", install("rocksdb")))
        self.segments = Segments.of(retention, segment_interval)
        self.segment_interval_ms = self.segments.interval_ms
        settings = {"segment_interval_ms": self.segment_interval_ms, "time_ordered": time_ordered, "index": index}
        super().__init__(name, self.segments.retention_ms, **settings)
        self.time_ordered, self.has_index = time_ordered, index
        self.boundary_is_visible = time_ordered and not self.layout.has_end
        self._space = RowSpace(self.layout, self.segments, time_ordered, index)
        self._newest_ms: dict[int, int] = {}  # the largest time in each partition's changelog, as of the last restart
        self._database = Database(StoreFolder(name, directory), {HEADER: self._packed_header(HEADER)})
        try:
            raw = self._database.get(HEADER)
            if raw is None:
                raise self._database.folder.corrupted("it has no header")
            self._read_header(self._fields(HEADER, raw))
            for key, value in zip(*self._database.rows(STATE, ROWS), strict=True):  # of the partitions committed
                observed_ms, first_segment, *snapshot = self._fields(key, value)
                self._states[int.from_bytes(key[1:])] = State(observed_ms, first_segment, Snapshot(*snapshot))
        except BaseException:
            self._database.close()
            raise

    # ---- state between runs

    def restart_task(self, kind: str = "disk") -> None:
        """Forgets the stream time of each partition, as Kafka Streams does when its task is stopped and started again.

        So late records count until newer ones have moved it on. On the same "disk" it also forgets the time that the
        store has observed, so that nothing expires until the next put; segments that were dropped stay so. A store that
        is restored from its "changelog" has observed the largest time that was ever put, and what has expired by that
        is gone. One that was "killed" is restored from where its files end, and has observed what it had before.

        Args:
            kind: "disk", "changelog" or "killed".
        Source:
            KStreamSessionWindowAggregate; AbstractSegments, AbstractRocksDBSegmentedBytesStore.restoreAllInternal.
        """
        one_of("kind", kind, RESTARTS)
        for number, state in self._states.items():
            self._newest_ms[number] = max(self._newest_ms.get(number, -1), state.observed_time_ms)
        with self.all_or_nothing():
            for number, state in list(self._states.items()):
                observed_ms = {"disk": -1, "changelog": self._newest_ms[number], "killed": state.observed_time_ms}[kind]
                self._states[number] = State(snapshot=state.snapshot._replace(stream_time_ms=-1))
                if observed_ms >= 0:
                    self._observe(number, observed_ms)
            self.commit_snapshots({number: state.snapshot for number, state in self._states.items()})

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

    def _transaction(self) -> AbstractContextManager[None]:
        """What is changed inside is in memory first, where every read sees it.

        It reaches the disk as one batch with the next commit, the next single change, or when the store is closed: so
        windows and the position they belong to are never apart.
        """
        return self._database.transaction()

    def close(self) -> None:
        """Writes what is left and closes the store; every later call raises."""
        self._database.close()

    # ---- to look at

    @property
    def partitions(self) -> list[int]:
        return self._space.partitions(self._database)

    @property
    def _is_open(self) -> bool:
        return self._database.is_open

    def _facts(self) -> Iterator[str]:
        oldest = [(place.time_ms, partition) for partition in self.partitions for place in self._edge(partition)]
        newest = [place.time_ms for p in self.partitions for place in self._edge(p, backward=True)]
        yield from self._facts_of_times(oldest, newest, at_boundary=self.boundary_is_visible)
        size = self._database.folder.size_bytes()
        yield f"{size / 1e6:,.1f} MB on disk, in {self._database.folder.path}"

    def _edge(self, partition: int, *, backward: bool = False) -> list[Place]:
        """The row with the smallest time, or the largest; segments are in order of time, rows in them need not be."""
        question = self._question(partition, backward=backward)
        found: Place | None = None
        for row in islice(self._space.walk(self._database, question, values=False), COUNTED_ROWS):
            if found is not None and self.segments.id_of(row.place.time_ms) != self.segments.id_of(found.time_ms):
                break
            if found is None or (row.place.time_ms > found.time_ms) == backward:
                found = row.place
        return [] if found is None else [found]

    def _count(self, limit: int | None) -> int:
        walks = (self._space.walk(self._database, self._question(p), values=False) for p in self.partitions)
        return sum(1 for _ in islice(chain.from_iterable(walks), limit))

    def _check_open(self) -> None:
        self._database.check_open()

    # ---- for the two stores: rows

    def _visible_ms(self, partition: int) -> int:
        observed = self._state(partition).observed_time_ms
        return self.segments.first_visible_ms(observed, at_boundary=self.boundary_is_visible)

    def _question(
        self, partition: int, from_ms: int = 0, to_ms: int = INT64_MAX, *, backward: bool = False, by_time: bool = False
    ) -> Question:
        from_ms = max(from_ms, self._visible_ms(partition))
        return Question(int(partition), from_ms, to_ms, backward=backward, by_time=by_time)

    def _rows(self, question: Question) -> Iterator[Row]:
        return self._space.walk(self._database, question)

    def _fields(self, at: bytes, raw: bytes) -> tuple[Any, ...]:
        return self._unpacked(unpack_value, raw, at)

    def _unpacked(self, unpack: Callable[..., Any], *arguments: Any) -> Any:
        """What `unpack` makes of some bytes; if they are damaged, so is the store."""
        try:
            return unpack(*arguments)
        except StoreCorrupted as error:
            raise self._database.folder.corrupted(error) from error

    def _listed(self, question: Question) -> Iterator[Any]:
        """The windows asked for, in the order of their rows."""
        return (self._stored(row.place, self._fields(row.at, row.raw)) for row in self._rows(question))

    def _stored(self, place: Place, fields: tuple[Any, ...]) -> Any:
        key = self._unpacked(unpack_key, place.key, self._noted.key_kind or "unknown")
        return self.layout.stored(place, key, fields)

    def _get(self, place: Place, partition: int) -> tuple[Any, ...] | None:
        """The fields of one row; None if there is none that reads see."""
        if place.start_ms < 0 or place.time_ms < self._visible_ms(partition):
            return None
        at = self._space.row(int(partition), place)
        raw = self._database.get(at)
        return None if raw is None else self._fields(at, raw)

    def write(self, stored: Stored, /, *, partition: int = 0, keep_null: bool = False) -> bool:
        """Writes a window; False if its segment has expired. A null aggregate deletes, unless `keep_null`."""
        place = place_of(self._raw(stored.key), stored)
        fields = None if stored.aggregate is None and not keep_null else self.layout.fields_of(stored)
        partition = self._number(partition)
        with self._written():
            is_live = self.segments.id_of(place.time_ms) >= self._observe(partition, place.time_ms).first_segment
            if is_live:
                if fields is not None:
                    self._note_kind(stored.key)
                self._database.change(self._row(partition, place, fields))
        return is_live

    def _remove(self, place: Place, partition: int) -> None:
        """Deletes a row. Kafka's stores observe its time, too, but drop nothing."""
        partition = self._number(partition)
        with self._written():
            self._observe(partition, place.time_ms, drop=False)
            self._database.change(self._row(partition, place, None))

    def _observe(self, partition: int, time_ms: int, *, drop: bool = True) -> State:
        """The partition has seen this time: segments that have expired are dropped."""
        state = self._states.get(partition, State())
        observed_ms = max(state.observed_time_ms, time_ms)
        first = max(state.first_segment, self.segments.oldest_live(observed_ms) if drop else 0)
        if first > state.first_segment:
            self._database.drop(self._space.partition(partition), self._space.segment(partition, first))
        if (observed_ms, first) != state[:2]:
            self._states[partition] = state = state._replace(observed_time_ms=observed_ms, first_segment=first)
        return state

    def _row(self, partition: int, place: Place, fields: tuple[Any, ...] | None) -> dict[bytes, bytes | None]:
        at, index = self._space.row(partition, place), self._space.index_row(partition, place)
        rows = {at: None if fields is None else pack_value(fields, at)}
        if index is not None:
            rows[index] = None if fields is None else b""
        return rows

    @contextmanager
    def _written(self) -> Iterator[None]:
        """A change: part of the transaction it is made in, else a batch of its own."""
        if self._depth:
            yield
            return
        with self.all_or_nothing():
            yield
            self._database.write(sync=False)

    def _note_run(self, snapshots: Mapping[int, Snapshot], names: Collection[str]) -> None:
        super()._note_run(snapshots, names)
        self._database.write(sync=True)

    def _keep(self, partition: int, state: State) -> None:
        self._states[partition] = state
        at = STATE + partition.to_bytes(4)
        note = (state.observed_time_ms, state.first_segment, *state.snapshot.noted())
        self._database.change({at: pack_value(note, at)})

    def _note(self, **changes: Any) -> None:
        with self._written():
            super()._note(**changes)
            self._database.change({HEADER: self._packed_header(HEADER)})

    # ---- many windows at once

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
                self._remove(place_of(self._raw(each.key), each), partition)
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


def _by_partition(columns: StoredColumns) -> Iterator[tuple[int, Flags]]:
    """(partition, mask of its windows) of each partition."""
    for partition in np.unique(columns.partition).tolist():
        yield partition, columns.partition == partition
