"""The in-memory window store: a nested map from start time to key, for tumbling, hopping and sliding windows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sortedcontainers import SortedDict

from sessionkit.base.moments import Moment
from sessionkit.errors import InvalidArgument, problem
from sessionkit.stores.base.calls import Keys, WindowCalls
from sessionkit.stores.contract import StoredWindow, store_kind
from sessionkit.stores.memory.base import InMemoryStore, Partition
from sessionkit.stores.rows import check_times


@store_kind("memory", of="windows")
class MemoryWindowStore(WindowCalls, InMemoryStore):
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
        >>> len(list(store.fetch_in_keys("a", "b", 0, 10))), len(list(store.fetch_all(0, 10))), len(list(store.all()))
        (1, 1, 1)
        >>> store.fetch_window("ada", 5).aggregate, list(store.backward_fetch("ada", 6, 10))
        (2, [])
        >>> list(store.backward_all()) == list(store.backward_fetch_all(0, 10)), len(store.to_pandas())
        (True, 1)
        >>> list(store.backward_fetch_in_keys("a", "b", 6, 10)), store.snapshot(0).stream_time_ms
        ([], -1)
        >>> store.read_partitions
        [0]
        >>> store.read_only(), len(list(store.rows()))
        (read-only MemoryWindowStore('windows'): 1 window, kept as long as a plan says, 1)
        >>> store.restart_task()  # as if the application were started again
        >>> store.close()
    """

    def write(self, window: StoredWindow, /, *, partition: int = 0, keep_null: bool = False) -> bool:
        start_ms, aggregate, _, key = window[:4]
        (start_ms,) = check_times(start_ms, of="window")
        if start_ms < 0:
            raise InvalidArgument(problem("a window starts at 0 or later", start_ms, "times up to 2**63 - 1"))
        raw, state = self._raw(key), self._live(partition)
        state.observed_time_ms = max(state.observed_time_ms, start_ms)
        if start_ms <= self._expiry_ms(state):
            return False
        by_key = state.by_time.setdefault(start_ms, SortedDict())
        if aggregate is None and not keep_null:
            by_key.pop(raw, None)
            if not by_key:
                del state.by_time[start_ms]
            return True
        by_key[raw] = window if start_ms is window.window_start_ms else window._replace(window_start_ms=start_ms)
        self._note_kind(key)
        return True

    def fetch_window(self, key: Any, window_start_ms: Moment, *, partition: int = 0) -> StoredWindow | None:
        (start_ms,) = check_times(window_start_ms, of="window")
        raw, state = self._raw(key), self._live(partition)
        if start_ms <= self._expiry_ms(state):
            return None
        return state.by_time.get(start_ms, {}).get(raw)

    def fetch_step_by_step(
        self, key_from: Any, key_to: Any, time_from_ms: int, time_to_ms: int, *, partition: int = 0, backward: bool
    ) -> Iterator[StoredWindow]:
        """`fetch_in_keys` or its backward form, for a reader between whose steps windows are put.

        It sees of them what Kafka's open iterator sees: that stands one step ahead of what it has given.

        Source:
            InMemoryWindowStore.InMemoryWindowStoreIteratorWrapper.
        """
        low, high = self._key_range(key_from, key_to)
        state = self._live(partition)
        first_ms = max(time_from_ms, self._expiry_ms(state) + 1)
        if time_to_ms < first_ms or (low is not None and high is not None and low > high):
            return
        read = object()
        state.open_reads[read] = 0
        try:
            ahead = _neighbour(state, first_ms, time_to_ms, backward=backward)
            while ahead is not None:
                at_ms, by_key = ahead
                state.open_reads[read] = at_ms
                bounds = (first_ms, at_ms - 1) if backward else (at_ms + 1, time_to_ms)
                ahead = _neighbour(state, *bounds, backward=backward)
                yield from self._while_open([by_key[raw] for raw in by_key.irange(low, high, reverse=backward)])
        finally:
            del state.open_reads[read]

    def _find(
        self, keys: Keys, time_from_ms: Moment, time_to_ms: Moment, partition: int, *, backward: bool = False
    ) -> Iterator[StoredWindow]:
        """Windows by start and key bytes. The answer is fixed when the call is made."""
        from_ms, to_ms = check_times(time_from_ms, time_to_ms, of="window")
        if len(keys) == 1:
            raw, by_time = self._raw(keys[0]), self._live(partition).by_time
            of_key = (by_time[start].get(raw) for start in by_time.irange(from_ms, to_ms, reverse=backward))
            return self._while_open([window for window in of_key if window is not None])
        (low, high), by_time = self._key_range(*keys), self._live(partition).by_time
        found = [
            by_time[start][raw]
            for start in by_time.irange(from_ms, to_ms, reverse=backward)
            for raw in by_time[start].irange(low, high, reverse=backward)
        ]
        return self._while_open(found)


def _neighbour(state: Partition, first_ms: int, last_ms: int, *, backward: bool) -> tuple[int, Any] | None:
    """The first time between these two that has windows, with them; backward, the last one."""
    time_ms = next(state.by_time.irange(first_ms, last_ms, reverse=backward), None)
    return None if time_ms is None else (time_ms, state.by_time[time_ms])
