"""The in-memory window store: a nested map from start time to key, for tumbling, hopping and sliding windows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from sortedcontainers import SortedDict

from sessionkit.contracts import FixedColumns, StoredWindow, store_kind
from sessionkit.durations import Duration
from sessionkit.errors import InvalidArgument, problem
from sessionkit.stores.in_memory import InMemoryStore, OpenRead, Partition, kind_of
from sessionkit.stores.rows import as_fixed_columns, as_windows, check_times


@store_kind("memory", of="windows")
class MemoryWindowStore(InMemoryStore):
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

    noun, columns = "window", ("key", "window_start_ms", "aggregate", "timestamp_ms")

    def __init__(self, *, retention: Duration | None = None, name: str = "windows") -> None:
        super().__init__(retention=retention, name=name)

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
        (window_start_ms,) = check_times(window_start_ms, of="window")
        if window_start_ms < 0:
            raise InvalidArgument(problem("a window starts at 0 or later", window_start_ms, "times up to 2**63 - 1"))
        raw, mine = self._raw(key), self._live(partition)
        mine.observed_time_ms = max(mine.observed_time_ms, window_start_ms)
        if window_start_ms <= self._expiry_ms(mine):
            return False
        by_key = mine.by_time.setdefault(window_start_ms, SortedDict())
        if aggregate is None and not keep_null:
            by_key.pop(raw, None)
            if not by_key:
                del mine.by_time[window_start_ms]
            return True
        self._key_kind = kind_of(key)
        by_key[raw] = StoredWindow(window_start_ms, aggregate, timestamp_ms, key, opened_by, closed_by)
        return True

    def fetch_window(self, key: Any, window_start_ms: int, *, partition: int = 0) -> StoredWindow | None:
        """The window of `key` that starts then; None if there is none.

        Source:
            WindowStore.fetch(key, time).
        """
        raw, mine = self._raw(key), self._live(partition)
        if window_start_ms <= self._expiry_ms(mine):
            return None
        found: StoredWindow | None = mine.by_time.get(window_start_ms, {}).get(raw)
        return found

    def fetch(self, key: Any, time_from_ms: int, time_to_ms: int, *, partition: int = 0) -> Iterator[StoredWindow]:
        """Windows of `key` that start between the two times, both included, by rising start.

        Source:
            WindowStore.fetch(key, timeFrom, timeTo).
        """
        raw, by_time = self._raw(key), self._live(partition).by_time
        found = (by_time[start].get(raw) for start in by_time.irange(time_from_ms, time_to_ms))
        return iter([window for window in found if window is not None])

    def fetch_to_update(
        self, key: Any, time_from_ms: int, time_to_ms: int, *, partition: int = 0, backward: bool = False
    ) -> Iterator[StoredWindow]:
        """`fetch` or `backward_fetch` for the processor, which puts windows between the steps of its read."""
        read = self.backward_fetch if backward else self.fetch
        return read(key, time_from_ms, time_to_ms, partition=partition)

    def fetch_in_keys(
        self, key_from: Any, key_to: Any, time_from_ms: int, time_to_ms: int, *, partition: int = 0
    ) -> Iterator[StoredWindow]:
        """The same for all keys of a range (bounds included, None: open), by start and key bytes."""
        low, high = self._key_range(key_from, key_to)
        by_time = self._live(partition).by_time
        found = [
            by_time[start][raw]
            for start in by_time.irange(time_from_ms, time_to_ms)
            for raw in by_time[start].irange(low, high)
        ]
        return iter(found)

    def fetch_step_by_step(
        self, key_from: Any, key_to: Any, time_from_ms: int, time_to_ms: int, *, partition: int = 0, backward: bool
    ) -> Iterator[StoredWindow]:
        """`fetch_in_keys` or its backward form, for a reader between whose steps windows are put.

        It sees of them what Kafka's open iterator sees: that stands one step ahead of what it has given.

        Source:
            InMemoryWindowStore.InMemoryWindowStoreIteratorWrapper.
        """
        low, high = self._key_range(key_from, key_to)
        mine = self._live(partition)
        first_ms = max(time_from_ms, self._expiry_ms(mine) + 1)
        if time_to_ms < first_ms or (low is not None and high is not None and low > high):
            return
        mine.open_reads.append(read := OpenRead(0))
        try:
            ahead = _neighbour(mine, first_ms, time_to_ms, backward=backward)
            while ahead is not None:
                read.time_ms, by_key = ahead
                bounds = (first_ms, read.time_ms - 1) if backward else (read.time_ms + 1, time_to_ms)
                ahead = _neighbour(mine, *bounds, backward=backward)
                yield from [by_key[raw] for raw in by_key.irange(low, high, reverse=backward)]
        finally:
            mine.open_reads.remove(read)

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

    # ---- inside

    def _all(self, partition: int) -> Iterator[StoredWindow]:
        return self.all(partition=partition)

    def _time_of(self, each: StoredWindow) -> int:
        return each.window_start_ms

    def _as_columns(self, found: list[Any], key_type: pa.DataType, names: tuple[str, ...]) -> FixedColumns:
        return as_fixed_columns(found, key_type, names)

    def _replace(self, removes: FixedColumns | None, puts: FixedColumns) -> None:
        for partition, window in () if removes is None else as_windows(removes):
            self.put(window.key, window.window_start_ms, None, window.timestamp_ms, partition=partition)
        for partition, window in as_windows(puts):
            place = (window.key, window.window_start_ms, window.aggregate, window.timestamp_ms)
            ids = {"opened_by": window.opened_by, "closed_by": window.closed_by}
            self.put(*place, partition=partition, keep_null=True, **ids)

    def _each(self, held: Any) -> Iterator[tuple[int, Any]]:
        return as_windows(held)

    @staticmethod
    def sort_key(raw: bytes, start_ms: int, end_ms: int) -> tuple[int, bytes]:
        """The order in which ranges over keys come."""
        return start_ms, raw


def _neighbour(mine: Partition, first_ms: int, last_ms: int, *, backward: bool) -> tuple[int, Any] | None:
    """The first time between these two that has windows, with them; backward, the last one."""
    time_ms = next(mine.by_time.irange(first_ms, last_ms, reverse=backward), None)
    return None if time_ms is None else (time_ms, mine.by_time[time_ms])
