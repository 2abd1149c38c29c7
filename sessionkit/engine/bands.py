"""Decides the records of a run band by band, in threads; each leaves its windows in the order of a table."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from sessionkit.aggregations.contract import Aggregation
from sessionkit.aggregations.folds import make_fold
from sessionkit.base.arrays import Codes, Longs
from sessionkit.base.compiled import compiled_loop
from sessionkit.base.process import few_at_once, in_threads, shares, side_by_side, thread_count
from sessionkit.engine.outcome import FinishedWindows, closed_before_ms
from sessionkit.records.batch import RecordBatch, taken
from sessionkit.records.loops import stream_times
from sessionkit.stores.contract import no_columns
from sessionkit.trace.loops import closed_windows, grouped, order_by_place
from sessionkit.trace.slots import NO_REJECTIONS, Slots
from sessionkit.trace.trace import WindowColumns
from sessionkit.windows.contract import WindowKind
from sessionkit.windows.feed import PlacedFeed

BAND = 65_536  # records, unless one slot has more: the memory that a band touches stays in the processor's cache
AT_ONCE = 2**20  # records of the bands that many threads decide side by side


class Placed(NamedTuple):
    """The records of a batch with their slots and stream times."""

    slots: Slots
    slot: Codes  # of each record; -1: rejected
    stream_time_ms: Longs  # of each record's partition, with the record
    last_stream_time_ms: Longs  # of each partition
    rank: Longs  # place of each key in the order of its bytes


class Bands(NamedTuple):
    """The records that were not rejected, band by band, each in the order of arrival.

    Slots are numbered by partition and key bytes; those of a band follow each other.
    """

    rows: Codes
    slot: Codes  # of each of these rows
    first_row: Longs  # of each band, and of one behind the last
    first_slot: Longs
    slots: Slots

    @property
    def band_count(self) -> int:
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

    def order() -> Longs:
        stream_times(batch.partition, batch.moving_ms, rejected, last, stair)
        return batch.key_ranks

    rank, slot = side_by_side(
        order, lambda: slots.number(batch.key, batch.partition, np.empty(len(batch), np.int32), rejected)
    )
    return Placed(slots, slot, stair, last, rank)


def cut(placed: Placed, partitions: int) -> Bands:
    """Bands of about as many records each, but never less than all of a slot."""
    slots, slot = placed.slots, placed.slot
    by_key = grouped(placed.rank[slots.key], len(placed.rank))[1]
    order = by_key[grouped(slots.partition[by_key], partitions)[1]]
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


@compiled_loop
def count_records(slot, place, counts):  # type: ignore[no-untyped-def]
    """Adds to `counts` how many of the records each slot has, by the slots' places."""
    for i in range(slot.shape[0]):
        if slot[i] >= 0:
            counts[place[slot[i]]] += 1


@compiled_loop
def deal_records(lo, slot, place, band, following, rows, places):  # type: ignore[no-untyped-def]
    """Appends each record from `lo` on to its band: its row, and the place of its slot; `band` is that of each place.

    `following` has where the next record of each band goes.
    """
    for i in range(slot.shape[0]):
        if slot[i] >= 0:
            p = place[slot[i]]
            to = following[band[p]]
            rows[to], places[to] = lo + i, p
            following[band[p]] = to + 1


@compiled_loop
def take_times(rows, timestamp_ms, stream_time_ms, times, stair):  # type: ignore[no-untyped-def]
    """Fills `times` and `stair` with the time and the stream time of the records at `rows`."""
    for i in range(rows.shape[0]):
        row = rows[i]
        times[i] = timestamp_ms[row]
        stair[i] = stream_time_ms[row]


@compiled_loop
def sample_records(slot, every, rows):  # type: ignore[no-untyped-def]
    """Fills `rows` with the first records of each so-manieth slot (a power of two); returns how many there are."""
    count, mask = 0, every - 1
    for i in range(slot.shape[0]):
        if slot[i] >= 0 and slot[i] & mask == 0:
            rows[count] = i
            count += 1
            if count == rows.shape[0]:
                break
    return count


class Decided(NamedTuple):
    """The outcome of the records of a band."""

    windows: FinishedWindows
    decisions: Longs  # how many records met each
    missed_count: int
    merge_count: int


# Stands for the keys and names of a band's records. Python functions, which take keys, are not run in bands; to name a
# record, the run is made again in the order of arrival.
_NOT_TOLD: Any = SimpleNamespace(keys=lambda lo, count: [None] * count, words=lambda record: "a record")


class BandRun:
    """A run over a batch of which no trace is kept, and before which there was no state."""

    def __init__(
        self,
        windows: WindowKind,
        aggregations: Mapping[str, Aggregation],
        batch: RecordBatch,
        retention_ms: int,
        form: Any,
    ) -> None:
        self._windows, self._aggregations, self._batch = windows, aggregations, batch
        self._retention_ms, self._form = retention_ms, form
        self._none = no_columns(windows.holds, batch.keys.type, aggregations)
        placed = place_records(batch)
        self._bands, self._stair = cut(placed, len(batch.partitions)), placed.stream_time_ms
        self.stream_time_ms = placed.last_stream_time_ms  # of each partition
        self._ends_before_ms = closed_before_ms(windows, self.stream_time_ms)

    def decide(self) -> list[Decided]:
        """Decides all bands; those that follow each other in a table do so here."""
        sizes = np.diff(self._bands.first_row).tolist()
        return in_threads(self._decide, range(self._bands.band_count), few_at_once(sizes, AT_ONCE))

    def _feed(self, rows: Codes, slot: Codes, slots: Slots, values: Mapping[str, Any]) -> PlacedFeed:
        times, stair = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        take_times(rows, self._batch.timestamp_ms, self._stair, times, stair)
        none: Codes = np.empty(0, np.int32)  # a record is known by its slot
        batch = self._batch.replace(
            key=none, partition=none, timestamp_ms=times, values=values, rejected=None, still=None, given_offset=None
        )
        return PlacedFeed(batch, slots, slot, stair)

    def _decide(self, number: int) -> Decided:
        rows, slot, slots = self._bands.band(number)
        values = {name: taken(column, rows.astype(np.intp)) for name, column in self._batch.values.items()}
        feed = self._feed(rows, slot, slots, values)
        folds = {
            name: make_fold(aggregation, values, self._none.aggregates[name], _NOT_TOLD, feed.batch.timestamp_ms)
            for name, aggregation in self._aggregations.items()
        }
        decided: Any = self._windows.run(feed, folds, self._retention_ms)
        columns = self._form.columns(decided, self._none, feed)
        shown = self._shown(columns, decided.slot, slots.count)
        key, partition, start_ms, end_ms = (column[shown] for column in columns[:4])
        closed = closed_windows(end_ms, partition, columns.merged_into[shown], self._ends_before_ms)
        results = {name: fold.results(shown) for name, fold in folds.items()}
        if len(partition) and partition[0] == partition[-1]:  # they are in order, and nearly all bands in one
            partition = np.broadcast_to(partition[0], len(partition))
        windows = FinishedWindows(key, partition, start_ms, end_ms, closed, results)
        return Decided(windows, feed.counts, self._form.missed_count(feed, decided), decided.merge_count)

    def _shown(self, columns: WindowColumns, slot: Codes, slots: int) -> Longs:
        order = order_by_place(slot.astype(np.int64), slots, columns.start_ms)
        is_shown = columns.are_results(self._windows.trailing_only) & (columns.merged_into < 0)
        return order if is_shown.all() else order[is_shown[order]]
