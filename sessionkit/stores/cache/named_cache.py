"""One partition's entries in the record cache of KIP-63: by last use, and the dirty ones by last write."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from sortedcontainers import SortedDict, SortedList

from sessionkit.stores.sizes import RECORD_BYTES


class EntryId(NamedTuple):
    """The identity of a cached entry: its partition, its key and its bounds."""

    partition: int
    raw: bytes
    start_ms: int
    end_ms: int


class Entry(NamedTuple):
    """A cached entry and where it lies: its segment and its store key, as bytes that sort as Kafka's."""

    at: bytes
    id: EntryId
    key: Any
    stored: Any  # StoredSession, StoredWindow, or None: deleted
    timestamp_ms: int
    size: int = 0  # bytes, where the budget counts them


_TAKEN: Any = object()  # in the place of what comes next and was not asked for yet
# Of each entry beside its key and its value: three references, a flag, and where its record was.
ENTRY_BYTES = 8 + 8 + 8 + 1 + RECORD_BYTES


class Budget:
    """The bytes that the caches of all partitions share, and how many are in use.

    Args:
        most: how many there are; None: there is no limit, and they are not counted. `math.inf` counts them.
    Source:
        ThreadCache; NamedCache.LRUNode, LRUCacheEntry, ProcessorRecordContext.
    """

    def __init__(self, most: float | None) -> None:
        self.most, self.held, self.most_held = most, 0, 0

    def add(self, size: int) -> None:
        self.held += size
        self.most_held = max(self.most_held, self.held)

    @property
    def is_exceeded(self) -> bool:
        """True if entries have to go."""
        return self.most is not None and self.held > self.most


class NamedCache:
    """The cache of one partition. Where the budget is exceeded, the partition that is written to gives its own.

    Source:
        NamedCache, ThreadCache.
    """

    def __init__(self, write: Callable[[Entry], None], budget: Budget) -> None:
        self._write, self._budget = write, budget
        self.can_evict = budget.most not in (None, math.inf)  # so that it matters which entries are used
        self._by_place: SortedDict = SortedDict()  # at → Entry
        self._by_use: OrderedDict[bytes, None] = OrderedDict()  # kept only where entries can be evicted
        self._dirty: dict[bytes, None] = {}
        self._of_key: dict[bytes, SortedList] = {}  # kept only where none can
        self.newest_ms = -1  # the largest time by which an entry was put into a segment

    def __len__(self) -> int:
        return len(self._by_place)

    def get(self, at: bytes) -> Entry | None:
        entry: Entry | None = self._by_place.get(at)
        if entry is not None and self.can_evict:
            self._by_use.move_to_end(at)
        return entry

    def put(self, entry: Entry) -> None:
        """Writes an entry; too many of them, and the least used ones go."""
        at = entry.at
        before: Entry | None = self._by_place.get(at)
        is_new = before is None
        self._by_place[at] = entry
        self._budget.add(entry.size - (0 if before is None else before.size))
        if self.can_evict:
            self._by_use[at] = None
            self._by_use.move_to_end(at)
        elif is_new:
            self._of_key.setdefault(entry.id.raw, SortedList()).add(at)
        self._dirty.pop(at, None)
        self._dirty[at] = None
        while self._budget.is_exceeded and self._by_place:
            self._evict()
        self.newest_ms = max(self.newest_ms, entry.id.end_ms)

    def flush(self, evicted: Iterable[Entry] = ()) -> None:
        """Writes every dirty entry in order of their last writes, and before them those that were evicted."""
        dirty = list(self._dirty)
        self._dirty.clear()
        for entry in [*evicted, *(self._by_place[at] for at in dirty)]:
            self._write(entry)
        for at in dirty:
            if self._by_place[at].stored is None:
                self._forget(at)

    def are_written(self, newest_ms: int) -> None:
        """The store has all entries already; this is the largest time by which one was ever put."""
        self._dirty.clear()
        self.newest_ms = newest_ms

    def between(
        self, low: bytes | None, high: bytes | None, *, key: bytes | None = None, backward: bool = False
    ) -> Iterator[Entry]:
        """The entries between two places, both included. Which ones is decided now; reaching one is a use of it.

        Where uses do not matter and only entries of `key` are wanted, the others are not gone through.
        """
        ordered = self._by_place if self.can_evict or key is None else self._of_key.get(key)
        if ordered is None:
            return iter(())
        places = list(ordered.irange(low, high))
        if backward:
            places.reverse()
        return (entry for at in places if (entry := self.get(at)) is not None)

    def place_after(self, bound: bytes, *, backward: bool = False) -> bytes | None:
        """The first place at or behind the bound; backward: the last one before it."""
        found = self._by_place.bisect_left(bound) - backward
        return self._by_place.keys()[found] if 0 <= found < len(self._by_place) else None

    def _evict(self) -> None:
        at = next(iter(self._by_use))
        evicted: Entry = self._by_place[at]
        is_dirty = at in self._dirty
        self._forget(at)
        if is_dirty:
            self.flush([evicted])

    def _forget(self, at: bytes) -> None:
        entry: Entry = self._by_place.pop(at)
        self._by_use.pop(at, None)
        self._dirty.pop(at, None)
        self._budget.held -= entry.size
        if not self.can_evict:
            of_key = self._of_key[entry.id.raw]
            of_key.remove(at)
            if not of_key:
                del self._of_key[entry.id.raw]


def merged(
    cached: Iterator[Entry],
    stored: Iterator[Any],
    place_of: Callable[[Any], bytes],
    *,
    backward: bool = False,
    overlooks: bool = False,
) -> Iterator[Any]:
    """The cache's answer and the store's as one, step by step; where both know a window the cache is right.

    Kafka compares a deleted entry with the store's next as if it always went forward: backward it `overlooks` a
    deletion that the store comes to later. (If the store has no such window, Kafka fails where this goes on.)

    Source:
        AbstractMergedSortedCacheStoreIterator.
    """
    entry: Any = _TAKEN
    row = _TAKEN
    while True:
        entry = next(cached, None) if entry is _TAKEN else entry  # only now: a row may be written meanwhile
        row = next(stored, None) if row is _TAKEN else row
        if entry is None and row is None:
            return
        order = _order(entry, None if row is None else place_of(row), backward=backward)
        if entry is not None and entry.stored is None and (order <= 0 or (overlooks and backward)):
            entry, row = _TAKEN, _TAKEN if order == 0 else row
        elif order > 0:
            yield row
            row = _TAKEN
        else:
            yield entry.stored
            entry, row = _TAKEN, _TAKEN if order == 0 else row


def _order(entry: Entry | None, theirs: bytes | None, *, backward: bool) -> int:
    """Below 0: the entry comes first; 0: both are the same window; above 0: the store's comes first."""
    if entry is None or theirs is None:
        return 1 if entry is None else -1
    order = (entry.at > theirs) - (entry.at < theirs)
    return -order if backward else order
