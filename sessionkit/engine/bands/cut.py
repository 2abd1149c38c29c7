"""How the records of a run are cut: bands of slots that follow each other in the order of a table."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sessionkit.base.process import in_threads, shares, side_by_side, thread_count
from sessionkit.engine.bands.loops import count_records, deal_records
from sessionkit.records.batch import RecordBatch
from sessionkit.records.loops import stream_times
from sessionkit.trace.loops import grouped
from sessionkit.trace.slots import NO_REJECTIONS, Slots

BAND = 65_536  # records, unless one slot has more: what a band touches stays in the processor's cache
AT_ONCE = 2**20  # records of the bands that many threads decide side by side
Codes = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.int64]


class Placed(NamedTuple):
    """The records of a batch with their slots and stream times."""

    slots: Slots
    slot: Codes  # of each record; -1: rejected
    stream_time_ms: Numbers  # of each record's partition, with the record
    last_stream_time_ms: Numbers  # of each partition
    rank: Numbers  # place of each key in the order of its bytes


class Bands(NamedTuple):
    """The records that were not rejected, band by band, each in the order of arrival.

    Slots are numbered by partition and key bytes; those of a band follow each other.
    """

    rows: Codes
    slot: Codes  # of each of these rows
    first_row: Numbers  # of each band, and of one behind the last
    first_slot: Numbers
    slots: Slots

    @property
    def band_count(self) -> int:
        """How many bands there are."""
        return len(self.first_row) - 1

    def band(self, number: int) -> tuple[Codes, Codes, Slots]:
        """(the rows of a band, their slots among those of the band, these slots)."""
        records = slice(*self.first_row[number : number + 2])
        first, behind = self.first_slot[number : number + 2].tolist()
        own = Slots.known(self.slots.key[first:behind], self.slots.partition[first:behind])
        return self.rows[records], self.slot[records] - np.int32(first), own


def place_records(batch: RecordBatch) -> Placed:
    """Slots and stream times of all records, found side by side; nothing came before them."""
    rejected = NO_REJECTIONS if batch.rejected is None else batch.rejected
    slots = Slots(len(batch.keys), len(batch.partitions), len(batch))
    last, stair = np.full(len(batch.partitions), -1, np.int64), np.empty(len(batch), np.int64)

    def order() -> Numbers:
        stream_times(batch.partition, batch.timestamp_ms, rejected, last, stair)
        return batch.key_ranks

    rank, slot = side_by_side(
        order, lambda: slots.number(batch.key, batch.partition, np.empty(len(batch), np.int32), rejected)
    )
    return Placed(slots, slot, stair, last, rank)


def cut(placed: Placed, partitions: int) -> Bands:
    """Bands of about as many records each, but never less than all of a slot."""
    slots, slot = placed.slots, placed.slot
    order = _table_order(placed, partitions)
    place = np.empty(slots.count, np.int32)
    place[order] = np.arange(slots.count, dtype=np.int32)
    spans = shares(len(slot), place.nbytes)

    def count(span: slice) -> Codes:
        counts = np.zeros(slots.count, np.int32)
        count_records(slot[span], place, counts)
        return counts

    counts = in_threads(count, spans)
    of_slots = np.sum(counts, axis=0, dtype=np.int64)
    ends = np.cumsum(of_slots)
    size = min(BAND, AT_ONCE // thread_count()) or 1
    wanted = (ends - of_slots) // size  # a slot that is larger leaves numbers out
    starts = np.append(0, np.flatnonzero(np.diff(wanted)) + 1) if slots.count else np.empty(0, np.int64)
    band = np.repeat(np.arange(len(starts), dtype=np.int32), np.diff(starts, append=slots.count))
    first_row = np.append(0, ends)[np.append(starts, slots.count)]
    rows, places = np.empty(int(first_row[-1]), np.int32), np.empty(int(first_row[-1]), np.int32)
    in_pieces = np.array([np.add.reduceat(each, starts, dtype=np.int64) for each in counts])
    before = np.cumsum(in_pieces, axis=0) - in_pieces

    def deal(number: int) -> None:
        following = first_row[:-1] + before[number]
        deal_records(spans[number].start, slot[spans[number]], place, band, following, rows, places)

    in_threads(deal, range(len(spans)))
    ordered = Slots.known(slots.key[order], slots.partition[order])
    return Bands(rows, places, first_row, np.append(starts, slots.count), ordered)


def _table_order(placed: Placed, partitions: int) -> Numbers:
    """The slots by partition and key bytes."""
    slots = placed.slots
    by_key = grouped(placed.rank[slots.key], len(placed.rank))[1]
    order: Numbers = by_key[grouped(slots.partition[by_key], partitions)[1]]
    return order
