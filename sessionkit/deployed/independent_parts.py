"""Parts of the records on which no others have an effect, whatever a store forgets: windows, or chains of records."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable

import numpy as np

from sessionkit.base.arrays import Flags, Longs
from sessionkit.records.batch import RecordBatch
from sessionkit.records.keys import key_bytes
from sessionkit.windows.contract import WindowKind

WHOLE = "the whole"


class Whole:
    """All records as one part, to which everything belongs."""

    span_ms = 0  # how far behind the store's time a window can lie that is needed yet, at most

    def __call__(self, partition: int, raw: bytes, time_ms: int, /) -> Hashable:
        """The part to which a window belongs that the store keeps by this time."""
        return WHOLE

    def matters(self, partition: int, raw: bytes, time_ms: int, /) -> bool:
        """Whether what a record of this time finds can change anything."""
        return True


class Parts(Whole):
    """Which part a window belongs to.

    A tumbling or hopping window is one by itself. Sessions and sliding windows of a key may meet where its records are
    close to each other, whatever is found: a part ends where a pause is too long for that. What the store has observed
    is the same for all of them, with any retention. With a cache it is not, and after a restart it need not be: then
    all records are one part.
    """

    def __init__(self, windows: WindowKind, batch: RecordBatch, *, is_one: bool, waits: bool = False) -> None:
        self._windows, self.is_one = windows, is_one
        self._late: set[tuple[int, bytes, int]] = set()
        self._ends: dict[tuple[int, bytes], list[int]] = {}  # the last record of each part
        self.span_ms = span_ms(windows, batch, waits=waits)
        if windows.advance_ms is not None:
            return
        # sliding windows: twice the time difference, and the millisecond between two windows on each side
        reach_ms = windows.reach_ms if windows.holds == "sessions" else 2 * windows.reach_ms
        for of, times in _times_of_keys(batch).items():
            is_last = np.diff(times, append=np.iinfo(np.int64).max) > reach_ms
            self._ends[of] = times[is_last].tolist()

    def __call__(self, partition: int, raw: bytes, time_ms: int, /) -> Hashable:
        if self.is_one:
            return WHOLE
        if self._windows.advance_ms is not None:
            return partition, raw, time_ms
        return partition, raw, bisect_left(self._ends[partition, raw], time_ms)

    def window(self, partition: int, raw: bytes, start_ms: int, end_ms: int) -> Hashable:
        """The part to which a window belongs: a store keeps a session by its end, and others by their start."""
        return self(partition, raw, end_ms if self._windows.holds == "sessions" else start_ms)

    def skip_late(self, batch: RecordBatch, find_late: Callable[[], Flags]) -> None:
        """Leaves out the records that are late though nothing was ever forgotten, so with any retention.

        A session that was forgotten is no longer met, which makes what meets the others smaller, never larger.
        """
        if self.is_one or self._windows.holds != "sessions":
            return
        keys, numbers = batch.keys.to_pylist(), batch.partitions.tolist()

        def places(rows: Flags) -> set[tuple[int, bytes, int]]:
            codes, times_ms = batch.partition[rows].tolist(), batch.timestamp_ms[rows].tolist()
            found = zip(codes, batch.key[rows].tolist(), times_ms, strict=True)
            return {(numbers[code], key_bytes(keys[key]), time_ms) for code, key, time_ms in found}

        usable, is_late = batch.usable, find_late()
        self._late = places(usable & is_late) - places(usable & ~is_late)

    def matters(self, partition: int, raw: bytes, time_ms: int, /) -> bool:
        return (partition, raw, time_ms) not in self._late


def span_ms(windows: WindowKind, batch: RecordBatch, *, waits: bool) -> int:
    """How far behind the store can need a window: final ones it does not, unless the look for them waits."""
    times = batch.timestamp_ms
    if not len(times):
        return 0
    length_ms = windows.ends_ms(0) if windows.holds == "windows" else 0
    if waits or windows.advance_ms is None:
        return int(times.max() - times.min()) + length_ms
    longest = 0
    for partition in range(len(batch.partitions)):
        mask = batch.usable & (batch.partition == partition)
        stream = np.maximum.accumulate(times[mask])
        closed_by = times[mask] + length_ms + windows.grace_ms
        closes = np.searchsorted(stream, closed_by)
        is_needed = (closed_by >= stream) & (closes < len(stream))
        starts_ms = times[mask][is_needed] - length_ms
        longest = max(longest, int((stream[closes[is_needed]] - starts_ms).max(initial=0)))
    return longest


def _times_of_keys(batch: RecordBatch) -> dict[tuple[int, bytes], Longs]:
    order = np.lexsort((batch.timestamp_ms, batch.partition, batch.key))
    order = order[batch.usable[order]]
    key, partition, times = batch.key[order], batch.partition[order], batch.timestamp_ms[order]
    edges = np.flatnonzero((np.diff(key) != 0) | (np.diff(partition) != 0)) + 1
    found: dict[tuple[int, bytes], Longs] = {}
    keys, numbers = batch.keys.to_pylist(), batch.partitions.tolist()
    for first, part in zip([0, *edges.tolist()], np.split(times, edges), strict=True):
        if len(part):
            found[numbers[partition[first]], key_bytes(keys[key[first]])] = part
    return found
