"""The store on disk for tumbling, hopping and sliding windows: KIP-94's segments, KIP-825's form in order of time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessionkit.base.moments import Moment
from sessionkit.stores.base.calls import Keys, WindowCalls
from sessionkit.stores.contract import StoredWindow, store_kind
from sessionkit.stores.rocksdb.base import PersistentStore
from sessionkit.stores.rows import check_times
from sessionkit.stores.typed_bytes import WINDOWS, Place


@store_kind("rocksdb", of="windows")
class RocksDBWindowStore(WindowCalls, PersistentStore):
    """Windows of fixed length in a folder on disk, with the calls of Kafka's WindowStore and its RocksDB's behaviour.

    What the session store says of retention, durability and aggregates holds here, too, with a window's start in the
    place of a session's end. The time-ordered form keeps the window that starts just `retention` behind visible.

    Args:
        name: of the folder; Kafka's rule: 1 to 249 of A-Z, a-z, 0-9, ".", "_", "-", and not "." or "..".
        directory: where the folder is, or will be made.
        retention: how long a window is kept, in stream time, counted from its start.
        time_ordered: Kafka's form for emit-on-close: ranges come by start and key.
        index: of a time-ordered store: find the windows of a key without walking over those of others, as Kafka does
            under sliding windows. A range of keys then comes by segment, key and start.
        segment_interval: the length of a segment; half of the retention and at least a minute, if not given.
    Raises:
        StoreMismatch: it was made with other settings. StoreLocked: it is open already. StoreCorrupted.
        StoreUnavailable: rocksdict is not installed.
    Source:
        KIP-94, KIP-825; RocksDBTimestampedWindowStore, RocksDBTimeOrderedWindowStore.
    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> with RocksDBWindowStore(name="hourly", directory=folder.name) as windows:
        ...     windows.put("ada", 0, 2, 9)
        ...     windows.fetch_window("ada", 0).aggregate
        True
        2
        >>> folder.cleanup()
    """

    layout = WINDOWS

    def fetch_window(self, key: Any, window_start_ms: Moment, *, partition: int = 0) -> StoredWindow | None:
        (start_ms,) = check_times(window_start_ms, of=self.noun)
        place = Place(self._raw(key), start_ms, start_ms)
        fields = self._get(place, partition)
        return None if fields is None else self._stored(place, fields)

    def fetch_step_by_step(
        self, key_from: Any, key_to: Any, time_from_ms: int, time_to_ms: int, *, partition: int = 0, backward: bool
    ) -> Iterator[StoredWindow]:
        """`fetch_in_keys` or its backward form, for a reader between whose steps windows are put.

        It sees of them what Kafka's open iterator sees: the segments that are there now, each as it is when the reader
        comes to it, and nothing of one that has expired.

        Source:
            SegmentIterator.
        """
        low, high = self._key_range(key_from, key_to)
        from_ms, to_ms = check_times(time_from_ms, time_to_ms, of=self.noun)
        question = self._question(partition, from_ms, to_ms, backward=backward)._replace(low=low, high=high)
        for segment in self._space.segments_with_rows(self._database, question):
            first_ms, last_ms = self.segments.span_ms(segment)
            part = question._replace(from_ms=max(first_ms, question.from_ms), to_ms=min(last_ms, to_ms))
            for row in list(self._rows(part)):
                if self._state(partition).first_segment > segment:
                    break
                yield self._stored(row.place, self._fields(row.at, row.raw))

    def _find(
        self, keys: Keys, time_from_ms: Moment, time_to_ms: Moment, partition: int, *, backward: bool = False
    ) -> Iterator[StoredWindow]:
        """Windows by segment, then key and start; in a time-ordered store without an index by start and key."""
        low, high = self._key_range(*keys)
        from_ms, to_ms = check_times(time_from_ms, time_to_ms, of=self.noun)
        question = self._question(partition, from_ms, to_ms, backward=backward)
        return self._listed(question._replace(low=low, high=high))

    def _find_all(
        self, time_from_ms: Moment, time_to_ms: Moment, partition: int, *, backward: bool = False
    ) -> Iterator[StoredWindow]:
        """Windows by segment, key and start, so not by time in a segment; in a time-ordered store by start and key."""
        from_ms, to_ms = check_times(time_from_ms, time_to_ms, of=self.noun)
        return self._listed(self._question(partition, from_ms, to_ms, backward=backward, by_time=True))
