"""Decides the records of a run band by band, in threads, and joins the windows of the bands in the order of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.aggregations.contract import Aggregation
from sessionkit.aggregations.folds import make_fold
from sessionkit.base.process import in_threads
from sessionkit.engine.bands.cut import Bands, cut, place_records
from sessionkit.engine.bands.loops import take_times
from sessionkit.engine.outcome import RecordsInWords, closed_before_ms
from sessionkit.records.batch import RecordBatch, taken
from sessionkit.trace.loops import closed_windows, order_by_place
from sessionkit.trace.slots import Slots
from sessionkit.trace.window_columns import WindowColumns
from sessionkit.windows.contract import WindowKind
from sessionkit.windows.feed import PlacedFeed
from sessionkit.windows.loops import count_each

Codes = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.int64]


class Finished(NamedTuple):
    """The windows of a band that a table shows, in its order, with their results, and what was counted."""

    key: Codes
    partition: Codes
    start_ms: Numbers
    end_ms: Numbers
    closed: npt.NDArray[np.bool_]
    results: dict[str, pa.Array]
    decisions: Numbers
    missed_count: int
    merge_count: int

    def columns(self) -> WindowColumns:
        """The windows as columns; what no table shows is not known any more."""
        unknown, none = np.broadcast_to(np.int64(-1), len(self.key)), np.broadcast_to(np.int32(-1), len(self.key))
        bounds = (self.key, self.partition, self.start_ms, self.end_ms)
        return WindowColumns(*bounds, unknown, none, unknown, unknown, loaded_count=0)


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
        self._placed = place_records(batch)
        self.stream_time_ms = self._placed.last_stream_time_ms  # of each partition
        self._ends_before_ms = closed_before_ms(windows, self.stream_time_ms)

    def finished(self) -> Finished:
        """What all bands come to, and what was rejected before."""
        bands = cut(self._placed, len(self._batch.partitions))
        found = _joined(in_threads(lambda number: self._decide(bands, number), range(bands.band_count)))
        if self._batch.rejected is not None:
            count_each(self._batch.rejected[self._batch.rejected != 0], found.decisions)
        return found

    def _feed(self, rows: Codes, slot: Codes, slots: Slots, values: Mapping[str, Any]) -> PlacedFeed:
        times, stair = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        take_times(rows, self._batch.timestamp_ms, self._placed.stream_time_ms, times, stair)
        batch = self._batch.replace(
            key=slots.key[slot],
            partition=slots.partition[slot],
            timestamp_ms=times,
            values=values,
            rejected=None,
            given_offset=None,
        )
        return PlacedFeed(batch, slots, slot, stair)

    def _decide(self, bands: Bands, number: int) -> Finished:
        rows, slot, slots = bands.band(number)
        values = {name: taken(column, rows.astype(np.intp)) for name, column in self._batch.values.items()}
        feed = self._feed(rows, slot, slots, values)
        folds = {
            name: make_fold(aggregation, values, self._none.aggregates[name], RecordsInWords(feed.batch))
            for name, aggregation in self._aggregations.items()
        }
        decided: Any = self._windows.run(feed, folds, self._retention_ms)
        columns = self._form.columns(decided, self._none, feed, keep_offsets=False)
        shown = self._shown(columns, decided.slot, slots.count)
        key, partition, start_ms, end_ms = (column[shown] for column in columns[:4])
        return Finished(
            key,
            partition,
            start_ms,
            end_ms,
            closed_windows(end_ms, partition, columns.merged_into[shown], self._ends_before_ms),
            {name: fold.results(shown) for name, fold in folds.items()},
            feed.counts,
            self._form.missed_count(feed, decided),
            self._form.merge_count(decided),
        )

    def _shown(self, columns: WindowColumns, slot: Codes, slots: int) -> Numbers:
        """The windows that a table shows, in its order."""
        order = order_by_place(slot.astype(np.int64), slots, columns.start_ms)
        is_shown = columns.are_results(self._windows.trailing_only) & (columns.merged_into < 0)
        return order if is_shown.all() else order[is_shown[order]]


def _joined(bands: list[Finished]) -> Finished:
    """The bands as one; what they hold is freed column by column."""
    names = list(bands[0].results)
    columns: list[list[Any]] = [list(column) for column in zip(*(band[:5] for band in bands), strict=True)]
    columns += [[band.results.pop(name) for band in bands] for name in names]
    decisions = np.sum([band.decisions for band in bands], axis=0)
    missed, merges = sum(band.missed_count for band in bands), sum(band.merge_count for band in bands)
    bands.clear()
    key, partition, start_ms, end_ms, closed, *results = in_threads(_join, columns)
    of_names = dict(zip(names, results, strict=True))
    return Finished(key, partition, start_ms, end_ms, closed, of_names, decisions, missed, merges)


def _join(column: list[Any]) -> Any:
    whole = pa.concat_arrays(column) if isinstance(column[0], pa.Array) else np.concatenate(column)
    column.clear()
    return whole
