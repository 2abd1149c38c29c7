"""Decides the records of a run band by band, in threads; each leaves its windows in the order of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sessionkit.aggregations.contract import Aggregation
from sessionkit.aggregations.folds import make_fold
from sessionkit.base.process import few_at_once, in_threads
from sessionkit.engine.bands.cut import AT_ONCE, cut, place_records
from sessionkit.engine.bands.loops import take_times
from sessionkit.engine.outcome import FinishedWindows, closed_before_ms
from sessionkit.records.batch import RecordBatch, taken
from sessionkit.trace.loops import closed_windows, order_by_place
from sessionkit.trace.slots import Slots
from sessionkit.trace.window_columns import WindowColumns
from sessionkit.windows.contract import WindowKind
from sessionkit.windows.feed import PlacedFeed

Codes = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.int64]


class Decided(NamedTuple):
    """What the records of a band come to."""

    windows: FinishedWindows
    decisions: Numbers  # how many records met each
    missed_count: int
    merge_count: int


class _NotTold:
    """Where a record of a band was: whoever wants to tell it makes the run again, in the order of arrival."""

    @staticmethod
    def keys(lo: int, count: int) -> list[Any]:
        """No keys: functions in Python, which take them, are not run in bands."""
        return [None] * count

    @staticmethod
    def words(record: int) -> str:
        """No words."""
        return "a record"


NOT_TOLD = _NotTold()


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
        self._none = form.none(batch.keys.type, tuple(aggregations))
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
            key=none, partition=none, timestamp_ms=times, values=values, rejected=None, given_offset=None
        )
        return PlacedFeed(batch, slots, slot, stair)

    def _decide(self, number: int) -> Decided:
        rows, slot, slots = self._bands.band(number)
        values = {name: taken(column, rows.astype(np.intp)) for name, column in self._batch.values.items()}
        feed = self._feed(rows, slot, slots, values)
        folds = {
            name: make_fold(aggregation, values, self._none.aggregates[name], NOT_TOLD)
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
        counted = (self._form.missed_count(feed, decided), self._form.merge_count(decided))
        return Decided(windows, feed.counts, *counted)

    def _shown(self, columns: WindowColumns, slot: Codes, slots: int) -> Numbers:
        """The windows that a table shows, in its order."""
        order = order_by_place(slot.astype(np.int64), slots, columns.start_ms)
        is_shown = columns.are_results(self._windows.trailing_only) & (columns.merged_into < 0)
        return order if is_shown.all() else order[is_shown[order]]
