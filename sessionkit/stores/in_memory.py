"""What the two stores in memory share: partitions, keys, expiry, what a plan binds, and how they show themselves."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from types import TracebackType
from typing import Any, TypeVar

import pyarrow as pa
from sortedcontainers import SortedDict

from sessionkit.contracts import Snapshot
from sessionkit.durations import Duration, duration_ms
from sessionkit.errors import InvalidArgument, StoreClosed, problem
from sessionkit.keys import key_bytes
from sessionkit.stores.binding import check_bound, check_results
from sessionkit.stores.columns import ColumnState
from sessionkit.stores.rows import KEY_TYPES
from sessionkit.stores.shown import ShownStore
from sessionkit.text import shorten

S = TypeVar("S", bound="InMemoryStore")


class OpenRead:
    """A read that goes on while windows are put: nothing expires from the time on at which it stands."""

    def __init__(self, time_ms: int) -> None:
        self.time_ms = time_ms


class Partition:
    """One partition's windows by the time that the store keeps them by, what it has observed, how far it was read."""

    def __init__(self) -> None:
        self.by_time: SortedDict = SortedDict()  # session end, or window start → key bytes → what the store holds there
        self.observed_time_ms = -1
        self.snapshot = Snapshot()
        self.open_reads: list[OpenRead] = []

    def copy(self) -> Partition:
        """The same windows in maps of its own."""
        twin = Partition()
        twin.observed_time_ms, twin.snapshot = self.observed_time_ms, self.snapshot
        for time_ms, by_key in self.by_time.items():
            twin.by_time[time_ms] = SortedDict(
                (raw, held.copy() if isinstance(held, SortedDict) else held) for raw, held in by_key.items()
            )
        return twin


class InMemoryStore(ShownStore):
    """A nested map from time to key, a partition each. Kafka clears what has expired at each put and each read."""

    is_persistent = False

    def __init__(self, *, retention: Duration | None = None, name: str) -> None:
        super().__init__(name)
        self.retention_ms = None if retention is None else duration_ms(retention, "retention")
        self._maps: dict[int, Partition] = {}
        # What plans load and commit stays in columns, until one of Kafka's calls asks for the maps. A store that
        # expires by itself has maps only: its clock moves with each put.
        self._columns: ColumnState | None = None if self.retention_ms is not None else ColumnState(f"{self.noun}s")
        self._key_kind: type | None = None  # of the first key put: as bytes, 1 and "\0\0\0\0\0\0\0\1" are one
        self._names: frozenset[str] | None = None  # of the aggregations that a plan committed
        self._windows: dict[str, Any] | None = None  # parameters of the windows that a plan keeps here
        self._open = True

    # ---- state between runs

    def snapshot(self, partition: int) -> Snapshot:
        """How far the partition has been read."""
        self._check_open()
        columns = self._bulk()
        return self._of(partition).snapshot if columns is None else columns.snapshot(partition)

    def load(self, keys: pa.Array, before_ms: Mapping[int, int], names: tuple[str, ...]) -> Any:
        """Windows of these keys, and of any key those that end (windows of one length: start) before the time given."""
        self.check_names(names)
        self._to_columns(keys.type)
        columns = self._bulk()
        if columns is not None:
            return columns.load(keys, before_ms, names)
        wanted = {key_bytes(key) for key in keys.to_pylist()}
        found = [
            (partition, each)
            for partition, until_ms in before_ms.items()
            for each in self._all(partition)
            if self._time_of(each) < until_ms or key_bytes(each.key) in wanted
        ]
        return self._as_columns(found, self._key_type(keys.type), names)

    def commit(self, removes: Any, puts: Any, snapshots: Mapping[int, Snapshot]) -> None:
        """Takes a run over, all or nothing: what it loaded and so removed, what it wrote, and how far it came."""
        self._check_open()
        columns = self._bulk()
        if columns is not None and columns.is_loaded(removes):
            columns.commit(removes, puts, snapshots)
            self._key_kind = next((kind for kind, held in KEY_TYPES.items() if held == puts.key.type), None)
            self._names = frozenset(puts.aggregates) or self._names
            return
        with self.all_or_nothing():
            self._replace(removes, puts)
            self.commit_snapshots(snapshots, puts.aggregates.keys())

    def commit_snapshots(self, snapshots: Mapping[int, Snapshot], names: Collection[str] = ()) -> None:
        """Takes over how far a run came, whose windows the calls of Kafka have written already."""
        for partition, snapshot in snapshots.items():
            self._of(partition).snapshot = snapshot
        self._names = frozenset(names) or self._names

    def restart_task(self) -> None:
        """What Kafka Streams forgets when its task is stopped and started again: the stream time of each partition.

        It is restored neither from the store nor from what was committed, so late records count until newer ones have
        moved it on. The store itself is rebuilt from its changelog as it was.

        Source:
            KStreamSessionWindowAggregate; InMemorySessionStore.
        """
        self._check_open()
        for mine in self._partitions.values():
            mine.snapshot = mine.snapshot._replace(stream_time_ms=-1)

    def check_names(self, names: Iterable[str]) -> None:
        """Refuses a plan whose results are called otherwise than those in the store.

        Raises:
            InvalidData: with the names in it and those in the plan.
        """
        self._check_open()
        check_results(self.name, self._names, names)

    def check_windows(self, windows: Mapping[str, Any]) -> None:
        """Refuses a plan whose windows, keys or results are not those that the store is bound to.

        Raises:
            StoreMismatch: with what differs.
        """
        self._check_open()
        check_bound(self.name, self._windows, dict(windows))

    def bind(self, windows: Mapping[str, Any]) -> None:
        """Notes what the windows in it are; a plan with others is refused from then on.

        Raises:
            StoreMismatch: it is bound to others already.
        """
        self.check_windows(windows)
        self._windows = dict(windows)

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """What is done inside stays only if nothing raises. Other threads wait until it is through."""
        with self.lock:
            before = {number: mine.copy() for number, mine in self._partitions.items()}
            bound = (self._key_kind, self._names, self._windows)
            try:
                yield
            except BaseException:
                self._maps = before
                self._key_kind, self._names, self._windows = bound
                raise

    def close(self) -> None:
        """Closes the store; every later call raises."""
        self._open = False
        self._maps.clear()

    def __enter__(self: S) -> S:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- to look at

    @property
    def partitions(self) -> list[int]:
        """The numbers of the partitions of which it holds windows, rising."""
        self._check_open()
        columns = self._bulk()
        if columns is not None:
            return [number for number, _, _ in columns.edges()]
        return [number for number in sorted(self._partitions) if self._live(number).by_time]

    @property
    def _is_open(self) -> bool:
        return self._open

    def _count(self, limit: int | None) -> int:
        self._check_open()
        columns = self._bulk()
        if columns is not None:
            return len(columns) if limit is None else min(len(columns), limit)
        return sum(1 for _ in islice(self._table(), limit))

    def _table(self) -> Iterator[tuple[Any, ...]]:
        self._check_open()
        columns = self._bulk()
        if columns is None:
            return ((p, *self._shown(each)) for p in self.partitions for each in self._all(p))
        return self._rows(columns.ordered())

    def _first(self, most: int) -> Iterator[tuple[Any, ...]]:
        columns = self._bulk()
        return super()._first(most) if columns is None else self._rows(columns.ordered(most))

    def _rows(self, held: Any) -> Iterator[tuple[Any, ...]]:
        return iter(()) if held is None else ((p, *self._shown(each)) for p, each in self._each(held))

    def _facts(self) -> Iterator[str]:
        columns = self._bulk()
        if columns is not None:
            held = columns.edges()
            yield from self._facts_of_times([(oldest, p) for p, oldest, _ in held], [newest for *_, newest in held])
            return
        edges = [(self._live(p).by_time, p) for p in self.partitions]
        oldest = [(by_time.peekitem(0)[0], p) for by_time, p in edges]
        yield from self._facts_of_times(oldest, [by_time.peekitem(-1)[0] for by_time, _ in edges])

    # ---- columns and maps: the same windows are in one of them

    def _bulk(self) -> ColumnState | None:
        """The columns, unless the windows are in maps."""
        return None if self._maps else self._columns

    @property
    def _partitions(self) -> dict[int, Partition]:
        """The maps; what was in columns moves there first."""
        if self._columns is not None and self._columns.snapshots:
            held, snapshots = self._columns.take_all()
            for number, snapshot in snapshots.items():
                self._maps.setdefault(number, Partition()).snapshot = snapshot
            if held is not None:
                self._replace(None, held)
        return self._maps

    def _to_columns(self, key_type: pa.DataType) -> None:
        """Moves what is in maps to columns, if this store may hold columns and a plan wrote all of it."""
        if self._columns is None or not self._maps or self._names is None:
            return
        names = tuple(sorted(self._names))
        rows = [(partition, each) for partition in sorted(self._maps) for each in self._all(partition)]
        snapshots = {number: mine.snapshot for number, mine in self._maps.items()}
        columns = self._as_columns(rows, self._key_type(key_type), names)
        self._maps = {}
        self._columns.fill(columns, snapshots)

    def _key_type(self, otherwise: pa.DataType) -> pa.DataType:
        return otherwise if self._key_kind is None else KEY_TYPES[self._key_kind]

    def _all(self, partition: int) -> Iterator[Any]:
        raise NotImplementedError

    def _time_of(self, each: Any) -> int:
        raise NotImplementedError

    def _each(self, held: Any) -> Iterator[tuple[int, Any]]:
        """Columns as (partition, what the store holds)."""
        raise NotImplementedError

    @staticmethod
    def _shown(each: Any) -> tuple[Any, ...]:
        """What `columns` names of it."""
        return (each.key, *each[:3])

    def _as_columns(self, found: list[tuple[int, Any]], key_type: pa.DataType, names: tuple[str, ...]) -> Any:
        raise NotImplementedError

    def _replace(self, removes: Any, puts: Any) -> None:
        raise NotImplementedError

    # ---- inside

    def _check_open(self) -> None:
        if not self._open:
            raise StoreClosed(problem(f"store {self.name!r} is closed", "a call", "open it again"))

    def _raw(self, key: Any) -> bytes:
        self._check_open()
        raw = key_bytes(key)
        if self._key_kind is not None and self._key_kind is not kind_of(key):
            want = f"its keys are {self._key_kind.__name__}: one type of key a store"
            raise InvalidArgument(problem(f"store {self.name!r} holds keys of another type", shorten(repr(key)), want))
        return raw

    def _key_range(self, key_from: Any, key_to: Any) -> tuple[bytes | None, bytes | None]:
        return None if key_from is None else self._raw(key_from), None if key_to is None else self._raw(key_to)

    def _of(self, partition: int) -> Partition:
        self._check_open()
        partitions = self._partitions
        mine = partitions.get(partition)
        if mine is None:
            mine = partitions[partition] = Partition()
        return mine

    def _expiry_ms(self, mine: Partition) -> int:
        return -1 if self.retention_ms is None else mine.observed_time_ms - self.retention_ms

    def _live(self, partition: int) -> Partition:
        """The partition without what has expired."""
        mine = self._of(partition)
        expired_ms = min([self._expiry_ms(mine), *(read.time_ms - 1 for read in mine.open_reads)])
        while mine.by_time and mine.by_time.peekitem(0)[0] <= expired_ms:
            mine.by_time.popitem(0)
        return mine


def kind_of(key: Any) -> type:
    """The type of a key as a store tells types apart."""
    return next((kind for kind in (str, bytes) if isinstance(key, kind)), int)
