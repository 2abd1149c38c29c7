"""The record cache of KIP-63 in front of a store of tumbling, hopping or sliding windows."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from sessionkit.base.moments import Moment
from sessionkit.records.keys import key_bytes
from sessionkit.stores.base.calls import Keys, WindowCalls
from sessionkit.stores.cache.named_cache import Entry, EntryId, merged
from sessionkit.stores.cache.sessions import CachedWindows, CachingStore, Flushed, OnFlush, between_keys, bounds_of
from sessionkit.stores.contract import StoredWindow
from sessionkit.stores.rows import check_times, while_open
from sessionkit.stores.typed_bytes import BY_TIME

_PLACE, _SEQUENCE = struct.Struct(">Q"), struct.Struct(">I")
_LAST_SEQUENCE = 2**31 - 1  # Kafka numbers duplicates; an aggregation has none


class CachingWindowStore(WindowCalls, CachingStore[CachedWindows]):
    """A window store behind the record cache. Source: KIP-63; CachingWindowStore, TimeOrderedCachingWindowStore."""

    def __init__(self, store: CachedWindows, on_flush: OnFlush, most_bytes: float | None = None) -> None:
        super().__init__(store, on_flush, most_bytes)
        self._by_time: bool = store.is_persistent and store.time_ordered
        self._notice_segments = getattr(store, "notice_segments", None)  # of an audit

    def _place(
        self, raw: bytes, start_ms: int, segment: int | None = None, sequence: int = 0, *, in_index: bool = False
    ) -> bytes:
        """The place in the cache of an entry of this key and start; with the last sequence number a bound behind it."""
        at, start = _PLACE.pack(self._segment(start_ms) if segment is None else segment), _PLACE.pack(start_ms)
        at += BY_TIME + start + raw if self._by_time and not in_index else raw + start
        return at + _SEQUENCE.pack(sequence)

    def _write(self, entry: Entry) -> None:
        id = entry.id
        before = self.store.fetch_window(entry.key, id.start_ms, partition=id.partition)
        old = None if before is None else before.aggregate
        new = None if entry.stored is None else entry.stored.aggregate
        if new is None and old is None and self._on_flush is not None:
            return
        window = entry.stored or StoredWindow(id.start_ms, None, entry.timestamp_ms, entry.key)
        self.refused_count += not self.store.write(window, partition=id.partition)
        self._forward(Flushed(id, entry.key, new, old, entry.timestamp_ms))

    def write(self, window: StoredWindow, /, *, partition: int = 0, keep_null: bool = False) -> bool:
        start_ms, aggregate, timestamp_ms, key = window[:4]
        id = EntryId(partition, key_bytes(key), start_ms, start_ms)
        stored = None if aggregate is None and not keep_null else window
        entry = Entry(self._place(id.raw, start_ms), id, key, stored, timestamp_ms)
        self._put(entry, aggregate, more_bytes=8)  # its timestamp
        return True

    def fetch_window(self, key: Any, window_start_ms: Moment, *, partition: int = 0) -> StoredWindow | None:
        (start_ms,) = check_times(window_start_ms, of="window")
        entry = self._cache(partition).get(self._place(key_bytes(key), start_ms)) if start_ms >= 0 else None
        window: StoredWindow | None
        window = self.store.fetch_window(key, start_ms, partition=partition) if entry is None else entry.stored
        return window

    def fetch_to_update(
        self, key: Any, time_from_ms: int, time_to_ms: int, *, partition: int = 0, backward: bool = False
    ) -> Iterator[StoredWindow]:
        """`fetch` or `backward_fetch` for the processor, which puts windows between the steps of its read.

        What is evicted meanwhile goes from the cache, where the read is to come to it yet, to the store.
        """
        raw, from_ms, to_ms = key_bytes(key), time_from_ms, time_to_ms
        if self._budget.most is None:
            found = self.store._find((key,), from_ms, to_ms, partition, backward=backward)
        else:
            found = self.store.fetch_step_by_step(key, key, from_ms, to_ms, partition=partition, backward=backward)
        cached = between_keys(self._cached(raw, raw, from_ms, to_ms, partition, backward=backward), raw, raw)
        return self._merged(cached, found, from_ms, to_ms, backward=backward, overlooks=True)

    def _find(
        self, keys: Keys, from_ms: Moment, to_ms: Moment, partition: int, *, backward: bool = False
    ) -> Iterator[StoredWindow]:
        from_ms, to_ms = check_times(from_ms, to_ms, of="window")
        keys, low, high = bounds_of(keys)
        if from_ms > to_ms or (low is not None and high is not None and low > high):
            return iter(())
        found = self.store._find(keys, from_ms, to_ms, partition, backward=backward)
        cached = between_keys(self._cached(low, high, from_ms, to_ms, partition, backward=backward), low, high)
        in_index = self._by_time and self.store.has_index and len(keys) > 1  # the store goes by its index
        if in_index:
            by_key = (each._replace(at=self._place(each.id.raw, each.id.start_ms, in_index=True)) for each in cached)
            cached = iter(sorted(by_key, key=lambda each: each.at, reverse=backward))
        every = list(self._merged(cached, found, from_ms, to_ms, in_index=in_index, backward=backward))
        return while_open(self.store._check_open, every)

    def _find_all(
        self, from_ms: Moment, to_ms: Moment, partition: int, *, backward: bool = False
    ) -> Iterator[StoredWindow]:
        from_ms, to_ms = check_times(from_ms, to_ms, of="window")
        found, cache = self.store._find_all(from_ms, to_ms, partition, backward=backward), self._cache(partition)
        cached: Iterator[Entry] = iter(())
        if self._by_time and from_ms <= to_ms:
            cached = self._cached(None, None, from_ms, to_ms, partition, backward=backward)
        elif from_ms <= to_ms and (cache.can_evict or self.store.is_persistent):  # Kafka goes through all
            cached = cache.between(None, None, backward=backward)
        elif from_ms <= to_ms:
            low, high = _PLACE.pack(max(from_ms, 0)), _PLACE.pack(max(to_ms, -1) + 1)
            cached = cache.between(low, high, backward=backward)
        return while_open(self.store._check_open, list(self._merged(cached, found, from_ms, to_ms, backward=backward)))

    def _merged(
        self,
        cached: Iterator[Entry],
        stored: Iterator[StoredWindow],
        from_ms: int,
        to_ms: int,
        *,
        backward: bool,
        in_index: bool = False,
        overlooks: bool = False,
    ) -> Iterator[StoredWindow]:
        def place_of(window: StoredWindow) -> bytes:
            return self._place(key_bytes(window.key), window.window_start_ms, in_index=in_index)

        near = (entry for entry in cached if from_ms <= entry.id.start_ms <= to_ms)
        return merged(near, stored, place_of, backward=backward, overlooks=overlooks)

    def _cached(
        self, low: bytes | None, high: bytes | None, from_ms: int, to_ms: int, partition: int, *, backward: bool
    ) -> Iterator[Entry]:
        cache = self._cache(partition)
        from_ms, to_ms = max(from_ms, 0), max(to_ms, 0)
        one = low if low == high else None
        if one is not None and not cache.can_evict:
            behind = self._place(one, to_ms, sequence=_LAST_SEQUENCE)
            yield from cache.between(self._place(one, from_ms), behind, key=one, backward=backward)
            return
        if not self.store.is_persistent:
            first = None if low is None else _PLACE.pack(0) + low + bytes(12)
            last = None if high is None else _PLACE.pack(to_ms) + _upper_range(high, to_ms)
            yield from cache.between(first, last, key=one, backward=backward)
            return
        if self._by_time and cache.can_evict and self._notice_segments is not None:
            ahead = cache.place_after(_PLACE.pack(self._segment(to_ms)) + BY_TIME + _PLACE.pack(to_ms + 1))
            if ahead is not None:  # the walk uses it, too, if it is in the last segment
                self._notice_segments(_PLACE.unpack_from(ahead, _PLACE.size + len(BY_TIME))[0], to_ms)
        for segment, begin_ms, end_ms in self._segments(cache, from_ms, to_ms, backward=backward):
            low_place, high_place = _PLACE.pack(segment), _PLACE.pack(segment + 1)
            first_ms = begin_ms if backward else max(begin_ms, from_ms)
            if self._by_time:
                low_place += BY_TIME + _PLACE.pack(first_ms)
            elif one is not None:
                low_place = self._place(one, first_ms, segment)
                high_place = self._place(one, min(to_ms, end_ms), segment, _LAST_SEQUENCE)
            for entry in cache.between(low_place, high_place, key=one, backward=backward):
                yield entry
                if self._by_time and (entry.id.start_ms < from_ms if backward else entry.id.start_ms > to_ms):
                    return


def _upper_range(high: bytes, to_ms: int) -> bytes:
    """Up to where Kafka looks in a segment for keys up to `high`: not far enough for some that hold NUL bytes.

    Source:
        OrderedBytes.upperRange.
    """
    suffix = _PLACE.pack(to_ms) + _SEQUENCE.pack(_LAST_SEQUENCE)
    small = next((at for at in range(1, len(high)) if high[at] < suffix[0]), len(high))
    return high[:small] + suffix
