"""The in-memory window store: a nested map from start time to key, for tumbling, hopping and sliding windows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import pyarrow as pa
from sortedcontainers import SortedDict

from sessionkit.contracts import FixedColumns, Snapshot, StoredWindow, store_kind
from sessionkit.durations import Duration, duration_ms
from sessionkit.errors import InvalidData, StoreClosed, problem
from sessionkit.keys import key_bytes
from sessionkit.stores.rows import KEY_TYPES, as_fixed_columns, as_windows


class _Partition:
    """One partition's windows: start time → key bytes → window, and what the store has observed."""

    def __init__(self) -> None:
        self.by_start: SortedDict = SortedDict()
        self.observed_time_ms = -1
        self.snapshot = Snapshot()

    def copy(self) -> _Partition:
        """The same windows in maps of its own."""
        twin = _Partition()
        twin.observed_time_ms, twin.snapshot = self.observed_time_ms, self.snapshot
        twin.by_start.update((start_ms, by_key.copy()) for start_ms, by_key in self.by_start.items())
        return twin


@store_kind("memory", of="windows")
class MemoryWindowStore:
    """Windows of fixed length in memory, with the calls of Kafka's WindowStore.

    Without `retention` nothing expires by itself. With it the store behaves as Kafka's InMemoryWindowStore: a window
    whose start lies `retention` or more behind the latest start put is refused, or gone.

    Args:
        retention: how long a window is kept, in stream time, counted from its start.
        name: shown in errors and in the notebook.
    Source:
        KIP-428; InMemoryWindowStore.
    Example:
        >>> store = MemoryWindowStore()
        >>> store.put("ada", 5, 2, 9)
        True
        >>> [window[:3] for window in store.fetch("ada", 0, 10)]
        [(5, 2, 9)]
    """

    def __init__(self, *, retention: Duration | None = None, name: str = "windows") -> None:
        self.name = name
        self.retention_ms = None if retention is None else duration_ms(retention, "retention")
        self._partitions: dict[int, _Partition] = {}
        self._names: frozenset[str] = frozenset()  # of the aggregations that a plan committed
        self._open = True

    # ---- Kafka's calls

    def put(
        self,
        key: Any,
        window_start_ms: int,
        aggregate: Any,
        timestamp_ms: int,
        *,
        partition: int = 0,
        opened_by: int = -1,
        closed_by: int = -1,
        keep_null: bool = False,
    ) -> bool:
        """Writes a window; False if it is expired and was refused. A null aggregate deletes, unless `keep_null`."""
        raw, mine = key_bytes(key), self._live(partition)
        mine.observed_time_ms = max(mine.observed_time_ms, window_start_ms)
        if window_start_ms <= self._expiry_ms(mine):
            return False
        by_key = mine.by_start.setdefault(window_start_ms, SortedDict())
        if aggregate is None and not keep_null:
            by_key.pop(raw, None)
            if not by_key:
                del mine.by_start[window_start_ms]
            return True
        by_key[raw] = StoredWindow(window_start_ms, aggregate, timestamp_ms, key, opened_by, closed_by)
        return True

    def fetch_window(self, key: Any, window_start_ms: int, *, partition: int = 0) -> StoredWindow | None:
        """The window of `key` that starts then; None if there is none.

        Source:
            WindowStore.fetch(key, time).
        """
        found: StoredWindow | None = self._live(partition).by_start.get(window_start_ms, {}).get(key_bytes(key))
        return found

    def fetch(self, key: Any, time_from_ms: int, time_to_ms: int, *, partition: int = 0) -> Iterator[StoredWindow]:
        """Windows of `key` that start between the two times, both included, by rising start.

        Source:
            WindowStore.fetch(key, timeFrom, timeTo).
        """
        raw, by_start = key_bytes(key), self._live(partition).by_start
        found = (by_start[start].get(raw) for start in by_start.irange(time_from_ms, time_to_ms))
        return iter([window for window in found if window is not None])

    def fetch_in_keys(
        self, key_from: Any, key_to: Any, time_from_ms: int, time_to_ms: int, *, partition: int = 0
    ) -> Iterator[StoredWindow]:
        """The same for all keys of a range (bounds included, None: open), by start and key bytes."""
        low, high = (None if key is None else key_bytes(key) for key in (key_from, key_to))
        by_start = self._live(partition).by_start
        found = [
            by_start[start][raw]
            for start in by_start.irange(time_from_ms, time_to_ms)
            for raw in by_start[start].irange(low, high)
        ]
        return iter(found)

    def fetch_all(self, time_from_ms: int, time_to_ms: int, *, partition: int = 0) -> Iterator[StoredWindow]:
        """Windows of all keys that start between the two times, both included, by start and key bytes."""
        return self.fetch_in_keys(None, None, time_from_ms, time_to_ms, partition=partition)

    def all(self, *, partition: int = 0) -> Iterator[StoredWindow]:
        """Every window, by start and key bytes."""
        return self.fetch_in_keys(None, None, 0, self._of(partition).observed_time_ms, partition=partition)

    def backward_fetch(
        self, key: Any, time_from_ms: int, time_to_ms: int, *, partition: int = 0
    ) -> Iterator[StoredWindow]:
        """`fetch` from the end."""
        return reversed(list(self.fetch(key, time_from_ms, time_to_ms, partition=partition)))

    def backward_fetch_in_keys(
        self, key_from: Any, key_to: Any, time_from_ms: int, time_to_ms: int, *, partition: int = 0
    ) -> Iterator[StoredWindow]:
        """`fetch_in_keys` from the end."""
        return reversed(list(self.fetch_in_keys(key_from, key_to, time_from_ms, time_to_ms, partition=partition)))

    def backward_fetch_all(self, time_from_ms: int, time_to_ms: int, *, partition: int = 0) -> Iterator[StoredWindow]:
        """`fetch_all` from the end."""
        return reversed(list(self.fetch_all(time_from_ms, time_to_ms, partition=partition)))

    def backward_all(self, *, partition: int = 0) -> Iterator[StoredWindow]:
        """`all` from the end."""
        return reversed(list(self.all(partition=partition)))

    # ---- state between runs

    def snapshot(self, partition: int) -> Snapshot:
        """How far the partition has been read."""
        return self._of(partition).snapshot

    def load(self, keys: pa.Array, before_ms: Mapping[int, int], names: tuple[str, ...]) -> FixedColumns:
        """Windows of these keys, and of any key those that start before the time given for their partition."""
        self.check_names(names)
        wanted = {key_bytes(key) for key in keys.to_pylist()}
        found = [
            (partition, window)
            for partition, time_ms in before_ms.items()
            for window in self.all(partition=partition)
            if window.window_start_ms < time_ms or key_bytes(window.key) in wanted
        ]
        held = next((KEY_TYPES[kind] for kind in KEY_TYPES if found and isinstance(found[0][1].key, kind)), keys.type)
        return as_fixed_columns(found, held, names)

    def commit(self, removes: FixedColumns, puts: FixedColumns, snapshots: Mapping[int, Snapshot]) -> None:
        """Takes a run over, all or nothing: what it removed, what it wrote, and how far it came."""
        with self.all_or_nothing():
            for partition, window in as_windows(removes):
                self.put(window.key, window.window_start_ms, None, window.timestamp_ms, partition=partition)
            for partition, window in as_windows(puts):
                place = (window.key, window.window_start_ms, window.aggregate, window.timestamp_ms)
                ids = {"opened_by": window.opened_by, "closed_by": window.closed_by}
                self.put(*place, partition=partition, keep_null=True, **ids)
            self.commit_snapshots(snapshots, frozenset(puts.aggregates))

    def commit_snapshots(self, snapshots: Mapping[int, Snapshot], names: frozenset[str] = frozenset()) -> None:
        """Takes over how far a run came, whose windows the calls above have written already."""
        for partition, snapshot in snapshots.items():
            self._of(partition).snapshot = snapshot
        self._names = names or self._names

    def check_names(self, names: Iterable[str]) -> None:
        """Refuses a plan whose results are called otherwise than those in the store."""
        if self._names and self._names != set(names):
            got = f"{sorted(self._names)} in it, {sorted(names)} in the plan"
            want = "one plan a store, or the same names"
            raise InvalidData(problem(f"store {self.name!r} holds the results of another plan", got, want))

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """What is done inside stays only if nothing raises."""
        before = {number: mine.copy() for number, mine in self._partitions.items()}
        try:
            yield
        except BaseException:
            self._partitions = before
            raise

    def close(self) -> None:
        """Closes the store; every later call raises."""
        self._open = False
        self._partitions.clear()

    def __enter__(self) -> MemoryWindowStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return sum(len(by_key) for p in list(self._partitions) for by_key in self._live(p).by_start.values())

    # ---- inside

    @staticmethod
    def sort_key(raw: bytes, start_ms: int, end_ms: int) -> tuple[int, bytes]:
        """The order in which ranges over keys come."""
        return start_ms, raw

    def _of(self, partition: int) -> _Partition:
        if not self._open:
            raise StoreClosed(problem(f"store {self.name!r} is closed", "a call", "open it again"))
        return self._partitions.setdefault(partition, _Partition())

    def _expiry_ms(self, mine: _Partition) -> int:
        return -1 if self.retention_ms is None else mine.observed_time_ms - self.retention_ms

    def _live(self, partition: int) -> _Partition:
        """The partition without what has expired: Kafka clears it at each put and each read."""
        mine = self._of(partition)
        while mine.by_start and mine.by_start.peekitem(0)[0] <= self._expiry_ms(mine):
            mine.by_start.popitem(0)
        return mine
