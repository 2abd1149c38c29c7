"""The record cache of KIP-63 in front of a store: many updates of one window become one, until a commit or an eviction.

The cache knows nothing of retention: what the store has expired stays readable here until it is evicted.
"""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from sessionkit.base.durations import INT64_MAX
from sessionkit.base.moments import Moment
from sessionkit.errors import NotBuilt, problem
from sessionkit.records.keys import key_bytes
from sessionkit.stores.base.calls import Keys, SessionCalls
from sessionkit.stores.cache.named_cache import ENTRY_BYTES, Budget, Entry, EntryId, NamedCache, merged
from sessionkit.stores.contract import SessionStore, Store, StoredColumns, StoredSession, StoredWindow, WindowStore
from sessionkit.stores.read_only import ReadOnlyStore
from sessionkit.stores.rows import check_times, while_open
from sessionkit.stores.sizes import value_bytes


class CachedStore(Store, Protocol):
    """A store behind a cache, whatever it holds; the calls are those of `SessionCalls` or `WindowCalls`."""

    @property
    def is_persistent(self) -> bool:
        """Kafka's word for one on disk: its ranges come by segment, key and time; others by time and key."""

    @property
    def segment_interval_ms(self) -> int:
        """How long its segments are, of which the cache goes through one after the other; 1 in memory, as in Kafka."""

    def _check_open(self) -> None:
        """Raises StoreClosed once the store is closed, as each of its own calls does."""

    def _find(
        self, keys: Keys, from_ms: Moment, to_ms: Moment, partition: int, /, *, backward: bool = False
    ) -> Iterator[Any]:
        """Windows of these keys: those that start between the two times, or sessions that meet that span."""


class CachedSessions(SessionStore, CachedStore, Protocol):
    """A session store behind a cache."""

    def fetch_session(
        self, key: Any, earliest_session_end_ms: Moment, latest_session_start_ms: Moment, *, partition: int = 0
    ) -> Any:
        """The aggregate of the session that starts at the first time and ends at the second; None if there is none."""


class CachedWindows(WindowStore, CachedStore, Protocol):
    """A window store behind a cache."""

    @property
    def time_ordered(self) -> bool:
        """KIP-825's form on disk: ranges come by start and key."""

    @property
    def has_index(self) -> bool:
        """Whether a time-ordered store has an index: then its ranges of keys come by segment, key and start again."""

    def _find_all(
        self, time_from_ms: Moment, time_to_ms: Moment, partition: int, *, backward: bool = False
    ) -> Iterator[StoredWindow]:
        """Windows of all keys that start between the two times, both included."""

    def fetch_step_by_step(
        self, key_from: Any, key_to: Any, time_from_ms: int, time_to_ms: int, *, partition: int = 0, backward: bool
    ) -> Iterator[StoredWindow]:
        """Windows of a range of keys: it sees what a limited cache evicts where it has not come to yet."""


_SEGMENT, _TIMES = struct.Struct(">Q"), struct.Struct(">QQ")


class Flushed(NamedTuple):
    """One entry that the cache hands on: its id and key, what it holds now (None: deleted), what the store held."""

    id: EntryId
    key: Any
    new: Any
    old: Any
    timestamp_ms: int


OnFlush: TypeAlias = Callable[[Flushed], None] | None
CS = TypeVar("CS", bound=CachedStore)


class CachingStore(Generic[CS]):
    """Base of the two caching stores.

    Where nothing is forwarded (`on_flush` None, as on close), all that is flushed is put, deletions of nothing, too.
    """

    holds: ClassVar[str]

    def __init__(self, store: CS, on_flush: OnFlush, most_bytes: float | None = None) -> None:
        self.store, self.refused_count = store, 0
        self._on_flush = on_flush
        self._budget = Budget(most_bytes)
        self._named: dict[int, NamedCache] = {}
        self._waiting: Callable[[Any], None] | None = None
        self.shown: Callable[[int], StoredColumns] | None = None  # what reads of a partition see, if that is told
        self._interval_ms = store.segment_interval_ms

    @property
    def _caches(self) -> dict[int, NamedCache]:
        """The cache of each partition."""
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            waiting(self)
        return self._named

    def take_over(self, most_held: int, entries: Callable[[Any], None]) -> None:
        """Stands for a cache that held so many bytes at most; `entries` puts into it what it holds, once needed."""
        self._budget.most_held, self._waiting = most_held, entries

    def are_written(self, partition: int, newest_ms: int) -> None:
        """The store has all entries of a partition, the newest of which ever put had this time."""
        self._cache(partition).are_written(newest_ms)

    def flush(self) -> None:
        """Writes what the store has not seen yet and forwards it: what a commit does."""
        for partition in sorted(self._caches):
            self._caches[partition].flush()

    @property
    def most_held(self) -> int:
        """The most bytes that the caches of all partitions held at once, where they are counted."""
        return self._budget.most_held

    def read_only(self) -> ReadOnlyStore:
        """Cache and store without their writes, as queries see them."""
        return ReadOnlyStore(self)

    @property
    def partitions(self) -> list[int]:
        """The numbers of the partitions of which the store or the cache holds windows, rising."""
        return sorted({*self.store.partitions, *(number for number, cache in self._caches.items() if len(cache))})

    @abstractmethod
    def all(self, *, partition: int = 0) -> Iterator[Any]:
        """Every window of a partition, in the store's own order."""

    def __len__(self) -> int:
        return sum(1 for number in self.partitions for _ in self.all(partition=number))

    @abstractmethod
    def _write(self, entry: Entry) -> None:
        """Hands an entry on to the store."""

    def _put(self, entry: Entry, value: Any, more_bytes: int = 0) -> None:
        """Writes an entry to its cache; `more_bytes` is what stands beside the value."""
        if self._budget.most is not None:
            value_size = 0 if entry.stored is None else more_bytes + value_bytes(value)
            entry = entry._replace(size=ENTRY_BYTES + len(entry.at) + value_size)
        self._cache(entry.id.partition).put(entry)

    def _forward(self, flushed: Flushed) -> None:
        if self._on_flush is not None:
            self._on_flush(flushed)

    def _cache(self, partition: int) -> NamedCache:
        self.store._check_open()
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
        segment = self._segment(max(min(last_ms, cache.newest_ms), 0) if backward else first_ms)
        while True:
            yield segment, segment * self._interval_ms, (segment + 1) * self._interval_ms - 1
            bound = segment if backward else segment + 1
            place = cache.place_after(bound.to_bytes(8), backward=backward)
            if place is None:
                return
            segment = int.from_bytes(place[:8])
            end = self._segment(first_ms if backward else max(min(last_ms, cache.newest_ms), 0))
            if (segment < end) if backward else (segment > end):
                return


def bounds_of(keys: Keys) -> tuple[Keys, bytes | None, bytes | None]:
    """The keys, one where both ends of a range are the same, and the bytes of the first and last; None: an open end."""
    low, high = (None if key is None else key_bytes(key) for key in (keys[0], keys[-1]))
    return keys[:1] if low is not None and low == high else keys, low, high


def between_keys(cached: Iterator[Entry], low: bytes | None, high: bytes | None) -> Iterator[Entry]:
    """The entries of keys from `low` to `high`, both included; None is an open end."""
    return (e for e in cached if (low is None or e.id.raw >= low) and (high is None or e.id.raw <= high))


class _LaterStartFirst(bytes):
    """A place in the cache, as Kafka compares two: key, end and start in one row; of one key and end the later start
    comes first, as in the store in memory."""

    def __lt__(self, other: bytes) -> bool:
        ours, theirs = bytes(self), bytes(other)
        return theirs < ours if ours[:-8] == theirs[:-8] else ours < theirs

    def __gt__(self, other: bytes) -> bool:
        ours, theirs = bytes(self), bytes(other)
        return theirs > ours if ours[:-8] == theirs[:-8] else ours > theirs


class CachingSessionStore(SessionCalls, CachingStore[CachedSessions]):
    """A session store behind the record cache. Source: KIP-63, KIP-94; CachingSessionStore."""

    def _place(self, raw: bytes, start_ms: int, end_ms: int, segment: int | None = None) -> bytes:
        """The place in the cache of an entry with this key and these times."""
        segment = self._segment(end_ms) if segment is None else segment
        return _SEGMENT.pack(segment) + raw + _TIMES.pack(end_ms, start_ms)

    def _order(self, place: bytes) -> bytes:
        """The place in a form that compares the entries of the cache with those of the store."""
        return place if self.store.is_persistent else _LaterStartFirst(place)

    def _order_of(self, session: StoredSession) -> bytes:
        return self._order(self._place(key_bytes(session.key), session.window_start_ms, session.window_end_ms))

    def _in_order(self, entries: Iterator[Entry]) -> Iterator[Entry]:
        """The entries in the store's order: in memory the later of a key's sessions that end together is first."""
        ordered = (entry._replace(at=self._order(self._place(*entry.id[1:]))) for entry in entries)
        for _, together in groupby(ordered, lambda entry: (entry.id.end_ms, entry.id.raw)):
            yield from list(together)[:: 1 if self.store.is_persistent else -1]

    def _write(self, entry: Entry) -> None:
        id = entry.id
        old = self.store.fetch_session(entry.key, id.start_ms, id.end_ms, partition=id.partition)
        if entry.stored is None and old is None and self._on_flush is not None:
            return  # neither the store nor anyone downstream has seen it
        session = entry.stored or StoredSession(id.start_ms, id.end_ms, None, entry.key)
        aggregate = session.aggregate
        self.refused_count += not self.store.write(session, partition=id.partition)
        self._forward(Flushed(id, entry.key, aggregate, old, id.end_ms))

    def write(self, session: StoredSession, /, *, partition: int = 0, keep_null: bool = False) -> bool:
        start_ms, end_ms, aggregate, key = session[:4]
        id = EntryId(partition, key_bytes(key), start_ms, end_ms)
        stored = None if aggregate is None and not keep_null else session
        self._put(Entry(self._place(id.raw, start_ms, end_ms), id, key, stored, end_ms), aggregate)
        return True

    def remove(self, key: Any, window_start_ms: int, window_end_ms: int, *, partition: int = 0) -> None:
        """Marks a session as removed."""
        self.write(StoredSession(window_start_ms, window_end_ms, None, key), partition=partition)

    def _find(
        self, keys: Keys, earliest_end_ms: Moment, latest_start_ms: Moment, partition: int, *, backward: bool = False
    ) -> Iterator[StoredSession]:
        earliest_ms, latest_ms = check_times(earliest_end_ms, latest_start_ms, of="session")
        keys, low, high = bounds_of(keys)
        if low is not None and high is not None and low > high:
            return iter(())
        found = self.store._find(keys, earliest_ms, latest_ms, partition, backward=backward)
        cached = self._cached(low, high, earliest_ms, latest_ms, partition, backward=backward)
        near = (e for e in cached if e.id.end_ms >= earliest_ms and e.id.start_ms <= latest_ms)
        entries = list(between_keys(near, low, high))
        if not entries:
            return while_open(self.store._check_open, list(found))
        every = list(merged(self._in_order(iter(entries)), found, self._order_of, backward=backward))
        return while_open(self.store._check_open, every)

    def _cached(
        self, low: bytes | None, high: bytes | None, earliest_ms: int, latest_ms: int, partition: int, *, backward: bool
    ) -> Iterator[Entry]:
        """The cached entries that Kafka goes through, which are more than those asked for."""
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
        self, earliest_session_end_ms: Moment, latest_session_end_ms: Moment, *, partition: int = 0
    ) -> Iterator[StoredSession]:
        """Refused, as Kafka's caching store does not offer it: emit-on-close turns the cache off."""
        want = "the store itself, or find_sessions of a key"
        raise NotBuilt(problem("a cached store cannot find sessions by end", "find_sessions_by_end", want))

    def fetch_session(
        self, key: Any, earliest_session_end_ms: Moment, latest_session_start_ms: Moment, *, partition: int = 0
    ) -> Any:
        """The aggregate of exactly this session; None if there is none."""
        start_ms, end_ms = check_times(earliest_session_end_ms, latest_session_start_ms, of="session")
        place = self._place(key_bytes(key), start_ms, end_ms) if min(start_ms, end_ms) >= 0 else b""
        entry = self._cache(partition).get(place)
        if entry is None:
            return self.store.fetch_session(key, start_ms, end_ms, partition=partition)
        return None if entry.stored is None else entry.stored.aggregate
