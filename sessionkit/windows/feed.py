"""The records of a run as the kernels read them, and what those leave behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sessionkit.records.batch import RecordBatch
from sessionkit.trace.loops import stream_times
from sessionkit.trace.session_trace import Reopenings
from sessionkit.trace.slots import NO_REJECTIONS, Slots
from sessionkit.trace.trace import Merges
from sessionkit.windows.loops import count_each

Slot = npt.NDArray[np.int32]
Times = npt.NDArray[np.int64]
CHUNK = 131_072  # records at a time: what a chunk touches stays in the processor's cache


class Columns(NamedTuple):
    """Some records as a kernel reads them, from record `lo` of the batch on; `decision` is to be filled."""

    lo: int
    slot: npt.NDArray[np.int32]  # -1: rejected, its reason is in `decision`
    timestamp_ms: npt.NDArray[np.int64]
    stream_time_ms: npt.NDArray[np.int64]  # of the record's partition, with the record
    first_stream_time_ms: npt.NDArray[np.int64]  # of each partition, before them
    slot_partition: npt.NDArray[np.int32]  # of each slot
    decision: npt.NDArray[np.uint8]


class Decided(NamedTuple):
    """What a kernel leaves behind: its windows as columns, and how many times a record was too late for one."""

    slot: npt.NDArray[np.int32]
    start_ms: npt.NDArray[np.int64]
    timestamp_ms: npt.NDArray[np.int64]
    opened_at: npt.NDArray[np.int64]  # row of the record that opened it
    missed_count: int


class DecidedSessions(NamedTuple):
    """What the kernel of sessions leaves behind."""

    slot: npt.NDArray[np.int32]
    start_ms: npt.NDArray[np.int64]
    end_ms: npt.NDArray[np.int64]
    merged_into: npt.NDArray[np.int32]  # row of the session that absorbed it, -1
    is_closed: npt.NDArray[np.bool_]  # of those that were there before: they are as closed as they came
    opened_by: list[npt.NDArray[np.int64]]  # offsets of the records that opened the new ones, in pieces
    window: npt.NDArray[np.int32]  # of each record, if the feed keeps them; -1 for a dropped one
    merges: Merges
    reopenings: Reopenings
    merge_count: int


class Loaded(NamedTuple):
    """The windows that were there before the records, sorted by slot and start."""

    slot: npt.NDArray[np.int32]
    start_ms: npt.NDArray[np.int64]
    timestamp_ms: npt.NDArray[np.int64]  # of the newest record in it; of a session that is its end
    is_closed: npt.NDArray[np.bool_]  # by a run before


NOTHING_LOADED = Loaded(np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_))


class Feed:
    """The records of a run, whole or a chunk at a time, with their slots and stream times, and the loaded windows."""

    def __init__(
        self,
        batch: RecordBatch,
        loaded: Loaded,
        slots: Slots,
        first_stream_time_ms: npt.NDArray[np.int64],
        *,
        keep: bool,
    ) -> None:
        self.batch, self.loaded, self.slots, self.keep = batch, loaded, slots, keep
        self.first_stream_time_ms = first_stream_time_ms
        self.stream_time_ms = first_stream_time_ms.copy()
        self.decision = np.empty(len(batch) if keep else 0, np.uint8)
        self.counts = np.zeros(256, np.int64)  # records by decision
        self.record_counts = np.zeros(len(batch.partitions), np.int64)  # records by partition

    def __len__(self) -> int:
        return len(self.batch)

    def chunks(self, size: int | None = None) -> Iterator[Columns]:
        """The records in pieces that stay in the processor's cache; what a piece holds is overwritten by the next."""
        self.stream_time_ms = self.first_stream_time_ms.copy()
        self.counts[:] = 0
        self.record_counts[:] = 0
        size = CHUNK if size is None else size
        room = min(size, len(self))
        slot, stair = np.empty(room, np.int32), np.empty(room, np.int64)
        own = np.empty(0 if len(self.decision) else room, np.uint8)
        for lo in range(0, len(self), size):
            count = min(size, len(self) - lo)
            decision = self.decision[lo : lo + count] if len(self.decision) else own[:count]
            yield self._columns(lo, count, slot[:count], stair[:count], decision)
            count_each(decision, self.counts)
            count_each(self.batch.partition[lo : lo + count], self.record_counts)

    def whole(self) -> Columns:
        """All records at once."""
        for columns in self.chunks(max(1, len(self))):
            return columns
        return self._columns(0, 0, np.empty(0, np.int32), np.empty(0, np.int64), self.decision[:0])

    def decide(self, columns: Columns, decision: npt.NDArray[np.uint8]) -> None:
        """Takes over what a kernel decided of all records at once, where it was not rejected."""
        np.copyto(columns.decision, decision, where=columns.slot >= 0)
        self.counts[:], self.record_counts[:] = 0, 0
        count_each(columns.decision, self.counts)
        count_each(self.batch.partition, self.record_counts)

    def _columns(self, lo: int, count: int, slot: Any, stair: Any, decision: Any) -> Columns:
        times, before = self.batch.timestamp_ms[lo : lo + count], self.stream_time_ms.copy()
        self.place(lo, lo + count, slot, stair, decision)
        return Columns(lo, slot, times, stair, before, self.slots.partition, decision)

    def place(self, lo: int, hi: int, slot: Any, stair: Any, decision: Any) -> None:
        """Fills in slot and stream time of the records from `lo` to `hi`, and the decision on the rejected ones."""
        batch = self.batch
        rejected = NO_REJECTIONS if batch.rejected is None else batch.rejected[lo:hi]
        partition = batch.partition[lo:hi]
        stream_times(partition, batch.timestamp_ms[lo:hi], rejected, self.stream_time_ms, stair)
        self.slots.number(batch.key[lo:hi], partition, slot, rejected)
        np.copyto(decision[: len(rejected)], rejected, where=rejected != 0)


class PlacedFeed(Feed):
    """Records of which slots and stream times are known; nothing was there before them, and no decision is kept."""

    def __init__(self, batch: RecordBatch, slots: Slots, slot: Slot, stream_time_ms: Times) -> None:
        super().__init__(batch, NOTHING_LOADED, slots, np.full(len(batch.partitions), -1, np.int64), keep=False)
        self._slot, self._stair = slot, stream_time_ms

    def place(self, lo: int, hi: int, slot: Any, stair: Any, decision: Any) -> None:
        """Fills in slot and stream time of the records from `lo` to `hi`, of which none is rejected."""
        slot[:], stair[:] = self._slot[lo:hi], self._stair[lo:hi]
        self.stream_time_ms[self.batch.partition[lo:hi]] = stair  # it never falls: that of the last record stays
