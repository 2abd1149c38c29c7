"""The records of a run as the kernels read them, and what those leave behind."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from sessionkit.base.arrays import Bytes, Codes, Flags, Longs
from sessionkit.base.compiled import NOTHING, compiled_loop, inlined
from sessionkit.base.process import Hand, at_once
from sessionkit.base.progress import Reached
from sessionkit.records.batch import RecordBatch
from sessionkit.records.loops import stream_times
from sessionkit.trace.session_trace import Reopenings
from sessionkit.trace.slots import NO_REJECTIONS, Slots
from sessionkit.trace.trace import Merges

CHUNK = 131_072  # records at a time: the memory that a chunk touches stays in the processor's cache
AHEAD = 128  # records whose windows are read before they are needed
MANY_ROWS = 2**25  # fewer windows have room at once: memory that is not used costs nothing


@compiled_loop
def count_decisions(decision, partition, counts, record_counts):  # type: ignore[no-untyped-def]
    """Adds to `counts` how often each decision was made, and to `record_counts` how many records each partition has."""
    for i in range(decision.shape[0]):
        counts[decision[i]] += 1
        record_counts[partition[i]] += 1


@compiled_loop
def count_each(codes, counts):  # type: ignore[no-untyped-def]
    """Adds to `counts` how often each code is there."""
    for i in range(codes.shape[0]):
        counts[codes[i]] += 1


@inlined
def is_better(values, largest, held, at):  # type: ignore[no-untyped-def]
    """Whether the value at `at` takes the place of the one at `held`: it is smaller, or larger; of equal ones no.

    Without values (None) positions alone count: the first one stays, or the last one is taken.
    """
    if held == NOTHING:
        return True
    if values is None:
        return largest
    return values[at] > values[held] if largest else values[at] < values[held]


NOTHING_HIDDEN = np.empty(0, np.int64)
NOTHING_SAID = np.empty(0, np.bool_)


class Columns(NamedTuple):
    """Some records as a kernel reads them, from record `lo` of the batch on; `decision` is to be filled."""

    lo: int
    slot: Codes  # -1: rejected, its reason is in `decision`
    timestamp_ms: Longs
    stream_time_ms: Longs  # of the record's partition, with the record
    first_stream_time_ms: Longs  # of each partition, before them
    slot_partition: Codes  # of each slot
    decision: Bytes


class Room(NamedTuple):
    """Room for what a piece of the records gets beside its own columns."""

    slot: Codes
    stream_time_ms: Longs
    decision: Bytes  # none where all are kept


class Decided(NamedTuple):
    """The outcome of a kernel: its windows as columns, and how many times a record was too late for one."""

    slot: Codes
    start_ms: Longs
    timestamp_ms: Longs
    opened_at: Longs  # row of the record that opened it
    missed_count: int

    @property
    def merge_count(self) -> int:
        """Number of absorbed windows: 0, as those that a store knows by their start never merge."""
        return 0


class DecidedSessions(NamedTuple):
    """The outcome of the kernel of sessions."""

    slot: Codes
    start_ms: Longs
    end_ms: Longs
    merged_into: Codes  # row of the session that absorbed it, -1
    is_closed: Flags  # of those that were there before: they are as closed as they came
    opened_by: list[Longs]  # offsets of the records that opened the new ones, in pieces
    window: Codes  # of each record, if the feed keeps them; -1 for a dropped one
    merges: Merges
    reopenings: Reopenings
    merge_count: int


class Loaded(NamedTuple):
    """The windows that were there before the records, sorted by slot and start."""

    slot: Codes
    start_ms: Longs
    timestamp_ms: Longs  # of the newest record in it; of a session that is its end
    is_closed: Flags  # by a run before


class Expiry(NamedTuple):
    """Of a run by the rules of Kafka's stores: what decides which windows a store shows, and takes."""

    observed_ms: Longs  # the largest time put into each partition of the store; a run moves it on
    null_values: Flags  # records that leave an aggregate null if nothing else is in it; empty: there are none
    cached: Any = None  # the kernel of sessions behind a record cache, which shows some that the store has forgotten
    boundary_ms: int = 0  # 1: the store shows a window just `retention` behind
    found_from_ms: Longs = NOTHING_HIDDEN  # of sliding windows: the first start that it shows to each record
    hangs_on_retention: Flags = NOTHING_SAID  # of sliding windows: whether another retention could show others


NONE_NULL = np.empty(0, np.bool_)
NOTHING_LOADED = Loaded(np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_))


class Feed:
    """The records of a run, whole or a chunk at a time, with their slots and stream times, and the loaded windows."""

    def __init__(
        self,
        batch: RecordBatch,
        loaded: Loaded,
        slots: Slots,
        first_stream_time_ms: Longs,
        *,
        keep: bool,
        keep_offsets: bool = True,
        hand: Hand = at_once,
        reached: Reached = lambda done, words="", /: None,
        expiry: Expiry | None = None,
    ) -> None:
        """Decisions are kept or not, and so is by which records windows were opened.

        What can be done beside the kernel is handed over to `hand`; `reached` is told how many records are done.
        `expiry` is there where Kafka's stores decide what is found.
        """
        self.expiry = expiry
        self.batch, self.loaded, self.slots, self.hand, self.reached = batch, loaded, slots, hand, reached
        self.keep, self.keeps_offsets = keep, keep_offsets
        self.first_stream_time_ms = first_stream_time_ms
        self.stream_time_ms = first_stream_time_ms.copy()
        self.decision = np.empty(len(batch) if keep else 0, np.uint8)
        self.counts = np.zeros(256, np.int64)  # records by decision
        self.record_counts = np.zeros(len(batch.partitions), np.int64)  # records by partition

    def __len__(self) -> int:
        return len(self.batch)

    @property
    def piece(self) -> int:
        """How many records the largest of the chunks has."""
        return min(CHUNK, len(self))

    def chunks(self) -> Iterator[Columns]:
        """The records in pieces that stay in the processor's cache; what a piece holds is overwritten by the next.

        The next piece is placed, and what was decided of the one before is counted, beside the one that is given. What
        a piece holds also stays until all is done that was handed over before the next one was asked for.
        """
        self.stream_time_ms = self.first_stream_time_ms.copy()
        self.counts[:] = 0
        self.record_counts[:] = 0
        size, hand = CHUNK, self.hand
        first, second = self._room(min(size, len(self))), self._room(min(size, max(0, len(self) - size)))
        following = [hand(partial(self._columns, 0, size, first))] if len(self) else []
        for lo in range(0, len(self), size):
            self.reached(lo)
            columns = following.pop()()
            if lo + size < len(self):
                first, second = second, first
                following.append(hand(partial(self._columns, lo + size, size, first)))
                if lo == 0:
                    hand(lambda: self.batch.key_ranks)  # which a table asks for later
            yield columns
            hand(partial(self._count, columns))

    def whole(self) -> Columns:
        """All records at once."""
        self.stream_time_ms = self.first_stream_time_ms.copy()
        return self._columns(0, len(self), self._room(len(self)))

    def decide(self, columns: Columns, decision: Bytes) -> None:
        """Takes over what a kernel decided of all records at once, where it was not rejected."""
        np.copyto(columns.decision, decision, where=columns.slot >= 0)
        self.counts[:], self.record_counts[:] = 0, 0
        self._count(columns)

    def _count(self, columns: Columns) -> None:
        partition = self.batch.partition[columns.lo : columns.lo + len(columns.slot)]
        count_decisions(columns.decision, partition, self.counts, self.record_counts)

    def _room(self, size: int) -> Room:
        return Room(np.empty(size, np.int32), np.empty(size, np.int64), np.empty(0 if self.keep else size, np.uint8))

    def _columns(self, lo: int, size: int, room: Room) -> Columns:
        count = min(size, len(self) - lo)
        slot, stair = room.slot[:count], room.stream_time_ms[:count]
        decision = self.decision[lo : lo + count] if self.keep else room.decision[:count]
        times, before = self.batch.timestamp_ms[lo : lo + count], self.stream_time_ms.copy()
        self.place(lo, lo + count, slot, stair, decision)
        return Columns(lo, slot, times, stair, before, self.slots.partition, decision)

    def place(self, lo: int, hi: int, slot: Any, stair: Any, decision: Any) -> None:
        """Fills in slot and stream time of the records from `lo` to `hi`, and the decision on the rejected ones."""
        batch = self.batch
        rejected = NO_REJECTIONS if batch.rejected is None else batch.rejected[lo:hi]
        partition = batch.partition[lo:hi]
        stream_times(partition, batch.moving_ms[lo:hi], rejected, self.stream_time_ms, stair)
        self.slots.number(batch.key[lo:hi], partition, slot, rejected)
        np.copyto(decision[: len(rejected)], rejected, where=rejected != 0)


class PlacedFeed(Feed):
    """Records of which slots and stream times are known; nothing was there before them, and no decision is kept.

    Their slots are by partition. Keys and partitions of the records are not looked at.
    """

    def __init__(self, batch: RecordBatch, slots: Slots, slot: Codes, stream_time_ms: Longs) -> None:
        before = np.full(len(batch.partitions), -1, np.int64)
        super().__init__(batch, NOTHING_LOADED, slots, before, keep=False, keep_offsets=False)
        self._slot, self._stair = slot, stream_time_ms

    def _count(self, columns: Columns) -> None:
        count_each(columns.decision, self.counts)

    def _room(self, size: int) -> Room:
        return Room(self._slot[:0], self._stair[:0], np.empty(size, np.uint8))

    def _columns(self, lo: int, size: int, room: Room) -> Columns:
        rows = slice(lo, min(lo + size, len(self)))
        slot, stair, before = self._slot[rows], self._stair[rows], self.stream_time_ms.copy()
        partition = self.slots.partition
        if len(slot):  # a stream time never falls: that of a partition's last record stays
            is_one = partition[0] == partition[-1]
            self.stream_time_ms[partition[0] if is_one else partition[slot]] = stair[-1] if is_one else stair
        return Columns(lo, slot, self.batch.timestamp_ms[rows], stair, before, partition, room.decision[: len(slot)])
