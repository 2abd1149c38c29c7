"""The record cache of KIP-63 in front of a store: many updates of one window become one, until a commit or an eviction.

The cache knows nothing of retention: what the store has expired stays readable here until it is evicted.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

from sessionkit.contracts import StoredSession, StoredWindow
from sessionkit.durations import INT64_MAX
from sessionkit.errors import NotBuilt, problem
from sessionkit.keys import key_bytes
from sessionkit.stores.read_only import ReadOnlyStore


class EntryId(NamedTuple):
    """What a cached entry is known by."""

    partition: int
    raw: bytes
    start_ms: int
    end_ms: int


class Flushed(NamedTuple):
    """One entry that the cache hands on: its id and key, what it holds now (None: deleted), what the store held."""

    id: EntryId
    key: Any
    new: Any
    old: Any
    timestamp_ms: int


class _Entry(NamedTuple):
    key: Any
    stored: Any  # StoredSession, StoredWindow, or None: deleted
    timestamp_ms: int


OnFlush: TypeAlias = Callable[[Flushed], None]


class _Cache:
    """Entries by last use, the dirty ones by last write; too many of them, and the least used one goes.

    Source:
        NamedCache, ThreadCache.
    """

    def __init__(self, write: Callable[[EntryId, _Entry], None], max_entries: int | None) -> None:
        self._write, self._max_entries = write, max_entries
        self._entries: OrderedDict[EntryId, _Entry] = OrderedDict()
        self._dirty: dict[EntryId, None] = {}
        self._of_key: defaultdict[tuple[int, bytes], set[EntryId]] = defaultdict(set)

    def get(self, id: EntryId) -> _Entry | None:
        entry = self._entries.get(id)
        if entry is not None:
            self._entries.move_to_end(id)
        return entry

    def put(self, id: EntryId, entry: _Entry) -> None:
        self._entries[id] = entry
        self._entries.move_to_end(id)
        self._of_key[id[:2]].add(id)
        self._dirty.pop(id, None)
        self._dirty[id] = None
        while self._max_entries is not None and len(self._entries) > self._max_entries:
            oldest = next(iter(self._entries))
            if oldest in self._dirty:
                self.flush(first=oldest)
            self._forget(oldest)

    def flush(self, first: EntryId | None = None) -> None:
        """Writes every dirty entry, in order of their last writes; `first` goes before all others."""
        order = list(self._dirty)
        if first is not None:
            order.remove(first)
            order.insert(0, first)
        self._dirty.clear()
        for id in order:
            entry = self._entries[id]
            self._write(id, entry)
            if entry.stored is None:
                self._forget(id)

    def _forget(self, id: EntryId) -> None:
        if self._entries.pop(id, None) is not None:
            self._of_key[id[:2]].discard(id)

    def of_key(self, partition: int, raw: bytes) -> list[tuple[EntryId, Any]]:
        return [(id, self._entries[id].stored) for id in self._of_key.get((partition, raw), ())]

    def partitions(self) -> set[int]:
        return {id.partition for id in self._entries}

    def of_partition(self, partition: int) -> list[tuple[EntryId, Any]]:
        return [(id, entry.stored) for id, entry in self._entries.items() if id.partition == partition]

    def __len__(self) -> int:
        return len(self._entries)


class CachingStore:
    """What the two caching stores share."""

    def __init__(self, store: Any, on_flush: OnFlush, max_entries: int | None = None) -> None:
        self.store, self.refused_count = store, 0
        self._on_flush = on_flush
        self._cache = _Cache(self._write, max_entries)

    def flush(self) -> None:
        """Writes what the store has not seen yet and forwards it: what a commit does."""
        self._cache.flush()

    def read_only(self) -> ReadOnlyStore:
        """Cache and store without their writes, as queries see them."""
        return ReadOnlyStore(self)

    @property
    def partitions(self) -> list[int]:
        """The numbers of the partitions of which the store or the cache holds windows, rising."""
        return sorted({*self.store.partitions, *self._cache.partitions()})

    def _write(self, id: EntryId, entry: _Entry) -> None:
        raise NotImplementedError

    def _merge(
        self, found: Iterator[Any], cached: list[tuple[EntryId, Any]], partition: int, order: Callable[[EntryId], Any]
    ) -> list[Any]:
        """The store's answer and the cache's as one; where both know a window the cache is right."""
        merged = {self._id(partition, stored): stored for stored in found}
        merged.update(cached)
        return [merged[id] for id in sorted(merged, key=order) if merged[id] is not None]

    def _id(self, partition: int, stored: Any) -> EntryId:
        raise NotImplementedError

    def _order(self, id: EntryId) -> Any:
        return self.store.sort_key(id.raw, id.start_ms, id.end_ms)


class CachingSessionStore(CachingStore):
    """A session store behind the record cache.

    Source:
        KIP-63, KIP-94; CachingSessionStore.
    """

    def _id(self, partition: int, stored: StoredSession) -> EntryId:
        return EntryId(partition, key_bytes(stored.key), stored.window_start_ms, stored.window_end_ms)

    def _write(self, id: EntryId, entry: _Entry) -> None:
        place = (entry.key, id.start_ms, id.end_ms)
        old = self.store.fetch_session(*place, partition=id.partition)
        if entry.stored is None:
            if old is None:
                return  # neither the store nor anyone downstream has seen it
            self.store.remove(*place, partition=id.partition)
            self._on_flush(Flushed(id, entry.key, None, old, id.end_ms))
            return
        s = entry.stored
        self.refused_count += not self.store.put(*place, s.aggregate, partition=id.partition, opened_by=s.opened_by)
        self._on_flush(Flushed(id, entry.key, s.aggregate, old, id.end_ms))

    def put(
        self,
        key: Any,
        window_start_ms: int,
        window_end_ms: int,
        aggregate: Any,
        *,
        partition: int = 0,
        opened_by: int = -1,
        closed_by: int = -1,
        keep_null: bool = False,
    ) -> bool:
        """Writes a session to the cache."""
        session = StoredSession(window_start_ms, window_end_ms, aggregate, key, opened_by, closed_by)
        entry = _Entry(key, None if aggregate is None and not keep_null else session, window_end_ms)
        self._cache.put(EntryId(partition, key_bytes(key), window_start_ms, window_end_ms), entry)
        return True

    def remove(self, key: Any, window_start_ms: int, window_end_ms: int, *, partition: int = 0) -> None:
        """Marks a session as removed."""
        self.put(key, window_start_ms, window_end_ms, None, partition=partition)

    def find_sessions(
        self, key: Any, earliest_session_end_ms: int, latest_session_start_ms: int, *, partition: int = 0
    ) -> Iterator[StoredSession]:
        """Sessions of `key` that end at or after the one time and start at or before the other."""
        times = (earliest_session_end_ms, latest_session_start_ms)
        found = self.store.find_sessions(key, *times, partition=partition)
        cached = self._near(self._cache.of_key(partition, key_bytes(key)), *times)
        return iter(self._merge(found, cached, partition, self._order))

    def find_sessions_in_keys(
        self,
        key_from: Any,
        key_to: Any,
        earliest_session_end_ms: int,
        latest_session_start_ms: int,
        *,
        partition: int = 0,
    ) -> Iterator[StoredSession]:
        """The same for all keys of a range (bounds included, None: open)."""
        low, high = (None if key is None else key_bytes(key) for key in (key_from, key_to))
        if low is not None and high is not None and low > high:
            return iter(())
        times = (earliest_session_end_ms, latest_session_start_ms)
        found = self.store.find_sessions_in_keys(key_from, key_to, *times, partition=partition)
        cached = self._near(_between(self._cache.of_partition(partition), low, high), *times)
        return iter(self._merge(found, cached, partition, self._order))

    @staticmethod
    def _near(cached: list[tuple[EntryId, Any]], earliest_end_ms: int, latest_start_ms: int) -> list[Any]:
        return [(id, s) for id, s in cached if id.end_ms >= earliest_end_ms and id.start_ms <= latest_start_ms]

    def find_sessions_by_end(
        self, earliest_session_end_ms: int, latest_session_end_ms: int, *, partition: int = 0
    ) -> Iterator[StoredSession]:
        """Kafka's caching session store does not offer it: emit-on-close turns the cache off.

        Raises:
            NotBuilt: always.
        """
        want = "the store itself, or find_sessions of a key"
        raise NotBuilt(problem("a cached store finds no sessions by end", "find_sessions_by_end", want))

    def fetch_session(
        self, key: Any, earliest_session_end_ms: int, latest_session_start_ms: int, *, partition: int = 0
    ) -> Any:
        """The aggregate of exactly this session; None if there is none."""
        id = EntryId(partition, key_bytes(key), earliest_session_end_ms, latest_session_start_ms)
        entry = self._cache.get(id)
        if entry is None:
            return self.store.fetch_session(key, id.start_ms, id.end_ms, partition=partition)
        return None if entry.stored is None else entry.stored.aggregate

    def fetch(self, key: Any, key_to: Any = ..., *, partition: int = 0) -> Iterator[StoredSession]:
        """All sessions of `key`; with `key_to` those of all keys from `key` to `key_to`, both included."""
        if key_to is ...:
            return self.find_sessions(key, 0, INT64_MAX, partition=partition)
        return self.find_sessions_in_keys(key, key_to, 0, INT64_MAX, partition=partition)

    def all(self, *, partition: int = 0) -> Iterator[StoredSession]:
        """Every session, in the store's own order."""
        return self.fetch(None, None, partition=partition)

    def backward_find_sessions(self, *args: Any, partition: int = 0) -> Iterator[StoredSession]:
        """`find_sessions` from the end."""
        return reversed(list(self.find_sessions(*args, partition=partition)))

    def backward_find_sessions_in_keys(self, *args: Any, partition: int = 0) -> Iterator[StoredSession]:
        """`find_sessions_in_keys` from the end."""
        return reversed(list(self.find_sessions_in_keys(*args, partition=partition)))

    def backward_fetch(self, *args: Any, partition: int = 0) -> Iterator[StoredSession]:
        """`fetch` from the end."""
        return reversed(list(self.fetch(*args, partition=partition)))


class CachingWindowStore(CachingStore):
    """A window store behind the record cache.

    Source:
        KIP-63; CachingWindowStore, TimeOrderedCachingWindowStore.
    """

    def _id(self, partition: int, stored: StoredWindow) -> EntryId:
        return EntryId(partition, key_bytes(stored.key), stored.window_start_ms, stored.window_start_ms)

    def _write(self, id: EntryId, entry: _Entry) -> None:
        place = {"partition": id.partition}
        before = self.store.fetch_window(entry.key, id.start_ms, **place)
        old = None if before is None else before.aggregate
        new = None if entry.stored is None else entry.stored.aggregate
        if new is None and old is None:
            return
        opened_by = -1 if entry.stored is None else entry.stored.opened_by
        put = (entry.key, id.start_ms, new, entry.timestamp_ms)
        self.refused_count += not self.store.put(*put, opened_by=opened_by, **place)
        self._on_flush(Flushed(id, entry.key, new, old, entry.timestamp_ms))

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
        """Writes a window to the cache."""
        window = StoredWindow(window_start_ms, aggregate, timestamp_ms, key, opened_by, closed_by)
        entry = _Entry(key, None if aggregate is None and not keep_null else window, timestamp_ms)
        self._cache.put(EntryId(partition, key_bytes(key), window_start_ms, window_start_ms), entry)
        return True

    def fetch_window(self, key: Any, window_start_ms: int, *, partition: int = 0) -> StoredWindow | None:
        """The window of `key` that starts then; None if there is none."""
        entry = self._cache.get(EntryId(partition, key_bytes(key), window_start_ms, window_start_ms))
        if entry is None:
            found: StoredWindow | None = self.store.fetch_window(key, window_start_ms, partition=partition)
            return found
        window: StoredWindow | None = entry.stored
        return window

    def fetch(self, key: Any, time_from_ms: int, time_to_ms: int, *, partition: int = 0) -> Iterator[StoredWindow]:
        """Windows of `key` that start between the two times, both included, by rising start."""
        found = self.store.fetch(key, time_from_ms, time_to_ms, partition=partition)
        cached = _starting(self._cache.of_key(partition, key_bytes(key)), time_from_ms, time_to_ms)
        return iter(self._merge(found, cached, partition, self._order))

    def backward_fetch(
        self, key: Any, time_from_ms: int, time_to_ms: int, *, partition: int = 0
    ) -> Iterator[StoredWindow]:
        """`fetch` from the end."""
        return reversed(list(self.fetch(key, time_from_ms, time_to_ms, partition=partition)))

    def fetch_in_keys(
        self, key_from: Any, key_to: Any, time_from_ms: int, time_to_ms: int, *, partition: int = 0
    ) -> Iterator[StoredWindow]:
        """The same for all keys of a range (bounds included, None: open)."""
        low, high = (None if key is None else key_bytes(key) for key in (key_from, key_to))
        found = self.store.fetch_in_keys(key_from, key_to, time_from_ms, time_to_ms, partition=partition)
        cached = _starting(_between(self._cache.of_partition(partition), low, high), time_from_ms, time_to_ms)
        return iter(self._merge(found, cached, partition, self._order))

    def fetch_all(self, time_from_ms: int, time_to_ms: int, *, partition: int = 0) -> Iterator[StoredWindow]:
        """Windows of all keys that start between the two times, both included, in the store's own order."""
        found = self.store.fetch_all(time_from_ms, time_to_ms, partition=partition)
        cached = _starting(self._cache.of_partition(partition), time_from_ms, time_to_ms)
        return iter(self._merge(found, cached, partition, self._order))

    def all(self, *, partition: int = 0) -> Iterator[StoredWindow]:
        """Every window, in the store's own order."""
        cached = self._cache.of_partition(partition)
        return iter(self._merge(self.store.all(partition=partition), cached, partition, self._order))

    def backward_fetch_in_keys(self, *args: Any, partition: int = 0) -> Iterator[StoredWindow]:
        """`fetch_in_keys` from the end."""
        return reversed(list(self.fetch_in_keys(*args, partition=partition)))

    def backward_fetch_all(self, *args: Any, partition: int = 0) -> Iterator[StoredWindow]:
        """`fetch_all` from the end."""
        return reversed(list(self.fetch_all(*args, partition=partition)))

    def backward_all(self, *, partition: int = 0) -> Iterator[StoredWindow]:
        """`all` from the end."""
        return reversed(list(self.all(partition=partition)))


def _between(cached: list[tuple[EntryId, Any]], low: bytes | None, high: bytes | None) -> list[tuple[EntryId, Any]]:
    return [(id, s) for id, s in cached if (low is None or id.raw >= low) and (high is None or id.raw <= high)]


def _starting(cached: list[tuple[EntryId, Any]], first_ms: int, last_ms: int) -> list[tuple[EntryId, Any]]:
    return [(id, s) for id, s in cached if first_ms <= id.start_ms <= last_ms]
