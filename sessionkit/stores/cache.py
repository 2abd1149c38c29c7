"""The record cache of KIP-63 in front of a store: many updates of one window become one, until a commit or an eviction.

The cache knows nothing of retention: what the store has expired stays readable here until it is evicted.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

from sessionkit.contracts import StoredSession
from sessionkit.durations import INT64_MAX
from sessionkit.errors import NotBuilt, problem
from sessionkit.keys import key_bytes
from sessionkit.stores.named_cache import Budget, Entry, EntryId, NamedCache, merged
from sessionkit.stores.read_only import ReadOnlyStore
from sessionkit.stores.rows import check_times

_SEGMENT, _TIMES = struct.Struct(">Q"), struct.Struct(">QQ")


class Flushed(NamedTuple):
    """One entry that the cache hands on: its id and key, what it holds now (None: deleted), what the store held."""

    id: EntryId
    key: Any
    new: Any
    old: Any
    timestamp_ms: int


OnFlush: TypeAlias = Callable[[Flushed], None] | None


class CachingStore:
    """What the two caching stores share.

    Where nothing is forwarded (`on_flush` None, as on close), all that is flushed is put, deletions of nothing, too.
    """

    def __init__(self, store: Any, on_flush: OnFlush, max_entries: int | None = None) -> None:
        self.store, self.refused_count = store, 0
        self._on_flush = on_flush
        self._budget = Budget(max_entries)
        self._caches: dict[int, NamedCache] = {}
        # Kafka says of a store in memory that each millisecond is a segment
        self._interval_ms: int = store.segments.interval_ms if store.is_persistent else 1

    def flush(self) -> None:
        """Writes what the store has not seen yet and forwards it: what a commit does."""
        for partition in sorted(self._caches):
            self._caches[partition].flush()

    def read_only(self) -> ReadOnlyStore:
        """Cache and store without their writes, as queries see them."""
        return ReadOnlyStore(self)

    @property
    def partitions(self) -> list[int]:
        """The numbers of the partitions of which the store or the cache holds windows, rising."""
        return sorted({*self.store.partitions, *(number for number, cache in self._caches.items() if len(cache))})

    def _write(self, entry: Entry) -> None:
        raise NotImplementedError

    def _forward(self, flushed: Flushed) -> None:
        if self._on_flush is not None:
            self._on_flush(flushed)

    def _cache(self, partition: int) -> NamedCache:
        if partition not in self._caches:
            self._caches[partition] = NamedCache(self._write, self._budget)
        return self._caches[partition]

    def _segment(self, time_ms: int) -> int:
        return time_ms // self._interval_ms

    def _segments(
        self, cache: NamedCache, first_ms: int, last_ms: int, *, backward: bool = False
    ) -> Iterator[tuple[int, int, int]]:
        """(number, first time, last time) of the segments between the two times that have entries, as they are reached.

        Source:
            CachingWindowStore.CacheIteratorWrapper, CachingSessionStore.CacheIteratorWrapper.
        """
        step = -1 if backward else 1
        segment = self._segment(max(min(last_ms, cache.newest_ms), 0) if backward else first_ms)
        while True:
            yield segment, segment * self._interval_ms, (segment + 1) * self._interval_ms - 1
            bound = segment if backward else segment + 1
            place = cache.place_after(bound.to_bytes(8), backward=backward)
            if place is None:
                return
            segment = int.from_bytes(place[:8])
            end = self._segment(first_ms if backward else max(min(last_ms, cache.newest_ms), 0))
            if segment * step > end * step:
                return


def between_keys(cached: Iterator[Entry], low: bytes | None, high: bytes | None) -> Iterator[Entry]:
    """Those of keys in a range."""
    return (e for e in cached if (low is None or e.id.raw >= low) and (high is None or e.id.raw <= high))


class CachingSessionStore(CachingStore):
    """A session store behind the record cache.

    Source:
        KIP-63, KIP-94; CachingSessionStore.
    """

    def _place(self, raw: bytes, start_ms: int, end_ms: int, segment: int | None = None) -> bytes:
        """Where such an entry lies."""
        segment = self._segment(end_ms) if segment is None else segment
        return _SEGMENT.pack(segment) + raw + _TIMES.pack(end_ms, start_ms)

    def _order(self, raw: bytes, start_ms: int, end_ms: int) -> bytes:
        """Sorts as the store's rows come: in memory later starts first, other than in Kafka's cache."""
        return self._place(raw, start_ms if self.store.is_persistent else INT64_MAX - start_ms, end_ms)

    def _order_of(self, session: StoredSession) -> bytes:
        return self._order(key_bytes(session.key), session.window_start_ms, session.window_end_ms)

    def _in_order(self, entries: Iterator[Entry]) -> Iterator[Entry]:
        """Sessions of a key that end together, of which only one can be there that is not deleted, as in the store."""
        ordered = (entry._replace(at=self._order(*entry.id[1:])) for entry in entries)
        for _, together in groupby(ordered, lambda entry: (entry.id.end_ms, entry.id.raw)):
            yield from list(together)[:: 1 if self.store.is_persistent else -1]

    def _write(self, entry: Entry) -> None:
        id = entry.id
        place = (entry.key, id.start_ms, id.end_ms)
        old = self.store.fetch_session(*place, partition=id.partition)
        if entry.stored is None and old is None and self._on_flush is not None:
            return  # neither the store nor anyone downstream has seen it
        aggregate, opened_by = (None, -1) if entry.stored is None else (entry.stored.aggregate, entry.stored.opened_by)
        self.refused_count += not self.store.put(*place, aggregate, partition=id.partition, opened_by=opened_by)
        self._forward(Flushed(id, entry.key, aggregate, old, id.end_ms))

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
        id = EntryId(partition, key_bytes(key), window_start_ms, window_end_ms)
        stored = None if aggregate is None and not keep_null else session
        at = self._place(id.raw, window_start_ms, window_end_ms)
        self._cache(partition).put(Entry(at, id, key, stored, window_end_ms))
        return True

    def remove(self, key: Any, window_start_ms: int, window_end_ms: int, *, partition: int = 0) -> None:
        """Marks a session as removed."""
        self.put(key, window_start_ms, window_end_ms, None, partition=partition)

    def find_sessions(
        self, key: Any, earliest_session_end_ms: int, latest_session_start_ms: int, *, partition: int = 0
    ) -> Iterator[StoredSession]:
        """Sessions of `key` that end at or after the one time and start at or before the other."""
        return self._found(key, key, earliest_session_end_ms, latest_session_start_ms, partition)

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
        return self._found(key_from, key_to, earliest_session_end_ms, latest_session_start_ms, partition)

    def _found(
        self, key_from: Any, key_to: Any, earliest_ms: int, latest_ms: int, partition: int, *, backward: bool = False
    ) -> Iterator[StoredSession]:
        earliest_ms, latest_ms = check_times(earliest_ms, latest_ms, of="session")
        low, high = (None if key is None else key_bytes(key) for key in (key_from, key_to))
        if low is not None and high is not None and low > high:
            return iter(())
        way = "backward_find_sessions" if backward else "find_sessions"
        keys, way = ((key_from,), way) if low == high and low is not None else ((key_from, key_to), way + "_in_keys")
        found = getattr(self.store, way)(*keys, earliest_ms, latest_ms, partition=partition)
        cached = self._cached(low, high, earliest_ms, latest_ms, partition, backward=backward)
        near = (e for e in cached if e.id.end_ms >= earliest_ms and e.id.start_ms <= latest_ms)
        entries = self._in_order(between_keys(near, low, high))
        return iter(list(merged(entries, found, self._order_of, backward=backward)))

    def _cached(
        self, low: bytes | None, high: bytes | None, earliest_ms: int, latest_ms: int, partition: int, *, backward: bool
    ) -> Iterator[Entry]:
        """What Kafka goes through: more than what is asked for."""
        cache = self._cache(partition)
        earliest_ms, latest_ms = max(earliest_ms, 0), max(latest_ms, 0)
        if low is None or low != high:
            yield from cache.between(None, None, backward=backward)
        elif not self.store.is_persistent or not cache.can_evict:
            last = self._place(low, latest_ms, INT64_MAX)
            yield from cache.between(self._place(low, 0, earliest_ms), last, key=low, backward=backward)
        else:
            for segment, begin_ms, end_ms in self._segments(cache, earliest_ms, cache.newest_ms, backward=backward):
                first = self._place(low, 0, max(begin_ms, earliest_ms), segment)
                last = self._place(low, min(latest_ms, end_ms), end_ms, segment)
                yield from cache.between(first, last, key=low, backward=backward)

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
        start_ms, end_ms = check_times(earliest_session_end_ms, latest_session_start_ms, of="session")
        place = self._place(key_bytes(key), start_ms, end_ms) if min(start_ms, end_ms) >= 0 else b""
        entry = self._cache(partition).get(place)
        if entry is None:
            return self.store.fetch_session(key, start_ms, end_ms, partition=partition)
        return None if entry.stored is None else entry.stored.aggregate

    def fetch(self, key: Any, key_to: Any = ..., *, partition: int = 0) -> Iterator[StoredSession]:
        """All sessions of `key`; with `key_to` those of all keys from `key` to `key_to`, both included."""
        if key_to is ...:
            return self.find_sessions(key, 0, INT64_MAX, partition=partition)
        return self.find_sessions_in_keys(key, key_to, 0, INT64_MAX, partition=partition)

    def all(self, *, partition: int = 0) -> Iterator[StoredSession]:
        """Every session, in the store's own order."""
        return self.fetch(None, None, partition=partition)

    def backward_find_sessions(
        self, key: Any, earliest_session_end_ms: int, latest_session_start_ms: int, *, partition: int = 0
    ) -> Iterator[StoredSession]:
        """`find_sessions` from the end."""
        return self._found(key, key, earliest_session_end_ms, latest_session_start_ms, partition, backward=True)

    def backward_find_sessions_in_keys(
        self,
        key_from: Any,
        key_to: Any,
        earliest_session_end_ms: int,
        latest_session_start_ms: int,
        *,
        partition: int = 0,
    ) -> Iterator[StoredSession]:
        """`find_sessions_in_keys` from the end."""
        times = (earliest_session_end_ms, latest_session_start_ms)
        return self._found(key_from, key_to, *times, partition, backward=True)

    def backward_fetch(self, key: Any, key_to: Any = ..., *, partition: int = 0) -> Iterator[StoredSession]:
        """`fetch` from the end."""
        return self._found(key, key if key_to is ... else key_to, 0, INT64_MAX, partition, backward=True)
