"""Base of the two stores in memory: partitions, expiry, and the same windows as columns or in maps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any

import pyarrow as pa
from sortedcontainers import SortedDict

from sessionkit.base.durations import Duration, duration_ms
from sessionkit.base.text import one_of
from sessionkit.records.keys import key_bytes
from sessionkit.stores.base.store import BaseStore
from sessionkit.stores.contract import RESTARTS, Snapshot, StoredColumns, StoredSession
from sessionkit.stores.rows import KEY_TYPES, as_stored, time_of
from sessionkit.stores.state.column_state import ColumnState


class Partition:
    """One partition's windows by the time that the store keeps them by, what it has observed, how far it was read."""

    def __init__(self) -> None:
        self._by_time: SortedDict = SortedDict()
        self.waiting: StoredColumns | None = None  # what a compiled run left, until somebody asks for it in the map
        self.observed_time_ms = -1
        self.snapshot = Snapshot()
        # Where each read stands that goes on while windows are put: nothing expires from that time on.
        self.open_reads: dict[object, int] = {}

    @property
    def by_time(self) -> SortedDict:
        """Session end, or window start → key bytes → what the store holds there."""
        if self.waiting is not None:
            found: dict[int, dict[bytes, Any]] = {}
            for _, each in as_stored(self.waiting):
                at, raw = found.setdefault(time_of(each), {}), key_bytes(each.key)
                if isinstance(each, StoredSession):
                    at.setdefault(raw, SortedDict())[each.window_start_ms] = each
                else:
                    at[raw] = each
            self._by_time = SortedDict({time_ms: SortedDict(by_key) for time_ms, by_key in found.items()})
            self.waiting = None
        return self._by_time

    def copy(self) -> Partition:
        """A twin with these windows in maps of its own: what is put into one is not in the other."""
        twin = Partition()
        twin.observed_time_ms, twin.snapshot = self.observed_time_ms, self.snapshot
        twin.waiting = self.waiting
        if twin.waiting is not None:
            return twin
        for time_ms, by_key in self.by_time.items():
            twin.by_time[time_ms] = SortedDict(
                (raw, held.copy() if isinstance(held, SortedDict) else held) for raw, held in by_key.items()
            )
        return twin


class InMemoryStore(BaseStore):
    """A nested map from time to key, a partition each. Kafka clears what has expired at each put and each read."""

    def __init__(self, *, retention: Duration | None = None, name: str | None = None) -> None:
        super().__init__(
            self.holds if name is None else name, None if retention is None else duration_ms(retention, "retention")
        )
        self._maps: defaultdict[int, Partition] = defaultdict(Partition)
        # What plans load and commit stays in columns, until one of Kafka's calls asks for the maps. A store that
        # expires by itself has maps only: its clock moves with each put.
        self._columns: ColumnState | None = None if self.retention_ms is not None else ColumnState(self.holds)

    # ---- state between runs

    @property
    def read_partitions(self) -> list[int]:
        """The numbers of the partitions of which it knows how far they were read, rising."""
        self._check_open()
        columns = self._bulk()
        return sorted(self._partitions) if columns is None else columns.read_partitions

    def snapshot(self, partition: int) -> Snapshot:
        self._check_open()
        columns = self._bulk()
        return self._of(partition).snapshot if columns is None else columns.snapshot(partition)

    def load(self, keys: pa.Array, before_ms: Mapping[int, int], names: tuple[str, ...]) -> Any:
        self.check_names(names)
        self._to_columns(keys.type)
        columns = self._bulk()
        return super().load(keys, before_ms, names) if columns is None else columns.load(keys, before_ms, names)

    def commit(self, removes: Any, puts: Any, snapshots: Mapping[int, Snapshot]) -> None:
        self._check_open()
        columns = self._bulk()
        if columns is None or not columns.is_loaded(removes):
            super().commit(removes, puts, snapshots)
            return
        columns.commit(removes, puts, snapshots)
        self._note(key_kind=next((kind for kind, held in KEY_TYPES.items() if held == puts.key.type), None))
        self._note_names(puts.aggregates)

    def commit_snapshots(self, snapshots: Mapping[int, Snapshot], names: Collection[str] = ()) -> None:
        """Takes over how far a run came, whose windows the calls of Kafka have written already."""
        for partition, snapshot in snapshots.items():
            self._of(partition).snapshot = snapshot
        self._note_names(names)

    def restart_task(self, kind: str = "disk") -> None:
        """Forgets the stream time of each partition, as Kafka Streams does when its task is stopped and started again.

        It is restored neither from the store nor from what was committed, so late records count until newer ones have
        moved it on. The store itself is rebuilt from its changelog as it was, whatever `kind` of restart it is.

        Source:
            KStreamSessionWindowAggregate; InMemorySessionStore.
        """
        self._check_open()
        one_of("kind", kind, RESTARTS)
        for state in self._partitions.values():
            state.snapshot = state.snapshot._replace(stream_time_ms=-1)

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        with self.lock:
            before = {number: state.copy() for number, state in self._partitions.items()}
            noted = self._noted
            try:
                yield
            except BaseException:
                self._maps, self._noted = defaultdict(Partition, before), noted
                raise

    def close(self) -> None:
        self._open = False
        self._maps.clear()

    # ---- to look at

    @property
    def partitions(self) -> list[int]:
        self._check_open()
        columns = self._bulk()
        if columns is not None:
            return [number for number, _, _ in columns.edges()]
        return [number for number in sorted(self._partitions) if self._live(number).by_time]

    def _count(self, limit: int | None) -> int:
        self._check_open()
        columns = self._bulk()
        if columns is not None:
            return len(columns) if limit is None else min(len(columns), limit)
        return sum(1 for _ in islice(self._table(), limit))

    def _table(self) -> Iterator[tuple[Any, ...]]:
        self._check_open()
        columns = self._bulk()
        return super()._table() if columns is None else self._rows(columns.ordered())

    def _first(self, most: int) -> Iterator[tuple[Any, ...]]:
        columns = self._bulk()
        return super()._first(most) if columns is None else self._rows(columns.ordered(most))

    @staticmethod
    def _rows(held: StoredColumns | None) -> Iterator[tuple[Any, ...]]:
        return iter(()) if held is None else ((p, each.key, *each[:3]) for p, each in as_stored(held))

    def _facts(self) -> Iterator[str]:
        columns = self._bulk()
        if columns is not None:
            bounds = columns.edges()
            yield from self._facts_of_times([(oldest, p) for p, oldest, _ in bounds], [newest for *_, newest in bounds])
            return
        edges = [(self._live(p).by_time, p) for p in self.partitions]
        oldest = [(by_time.peekitem(0)[0], p) for by_time, p in edges]
        yield from self._facts_of_times(oldest, [by_time.peekitem(-1)[0] for by_time, _ in edges])

    # ---- columns and maps: the same windows are in one of them

    def _bulk(self) -> ColumnState | None:
        """The columns, unless the windows are in maps."""
        return None if self._maps else self._columns

    @property
    def _partitions(self) -> defaultdict[int, Partition]:
        """The maps; what was in columns moves there first."""
        if self._columns is not None and self._columns.snapshots:
            columns, snapshots = self._columns.take_all()
            for number, snapshot in snapshots.items():
                self._maps[number].snapshot = snapshot
            if columns is not None:
                self._write_all(columns)
        return self._maps

    def _to_columns(self, key_type: pa.DataType) -> None:
        """Moves what is in maps to columns, if this store may hold columns and a plan wrote all of it."""
        if self._columns is None or not self._maps or self._noted.names is None:
            return
        rows = [(partition, each) for partition in sorted(self._maps) for each in self.all(partition=partition)]
        snapshots = {number: state.snapshot for number, state in self._maps.items()}
        columns = self._as_columns(rows, key_type, tuple(self._noted.names))
        self._maps.clear()
        self._columns.fill(columns, snapshots)

    def _of(self, partition: int) -> Partition:
        self._check_open()
        return self._partitions[partition]

    def _expiry_ms(self, state: Partition) -> int:
        return -1 if self.retention_ms is None else state.observed_time_ms - self.retention_ms

    def _live(self, partition: int) -> Partition:
        state = self._of(partition)
        expired_ms = min([self._expiry_ms(state), *(time_ms - 1 for time_ms in state.open_reads.values())])
        while state.by_time and state.by_time.peekitem(0)[0] <= expired_ms:
            state.by_time.popitem(0)
        return state
