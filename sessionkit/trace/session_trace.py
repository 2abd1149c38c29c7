"""The decisions of a run of session windows, which grow, merge, and may be re-opened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.base.arrays import Codes, Flags, Longs, Rows, arrow_array, arrow_table, distinct, order_by
from sessionkit.base.calls import answers_calls
from sessionkit.base.decisions import AHEAD, DECISIONS, IDLE, LATE, MERGED, OPENED, REASONS, TICK
from sessionkit.base.durations import INT64_MAX
from sessionkit.records.keys import ranks_of
from sessionkit.trace.loops import bounds_after, count_updates, grouped, moves_stream_time
from sessionkit.trace.trace import Closes, Trace, status_words

NOT_YET = np.int64(-1)  # no record has closed the window


class Reopenings(NamedTuple):
    """Closed sessions that a record touched while they were still retained, as they were before it."""

    at: Longs
    window: Codes
    start_ms: Longs
    end_ms: Longs


@answers_calls("trace", guesses=False, value_of="run")
@dataclass(frozen=True, kw_only=True, repr=False)
class SessionTrace(Trace):
    """Every decision of a run of session windows.

    `window[i]` is the row of the window to which record i belonged once it was in (-1: none).
    """

    window: Codes
    reopenings: Reopenings
    retention_ms: int  # a session can be found while its end is at most this far behind stream time
    loaded_start_ms: Longs  # bounds of the windows that came from a store, as they came
    loaded_end_ms: Longs

    @property
    def last_window(self) -> Codes:
        """The session that each record came to; -1 for a dropped one."""
        return self.window

    @cached_property
    def survivor(self) -> Longs:
        """The session that each record is in at the end, after every merge; -1 for a dropped one."""
        return np.append(self.ended_in, -1)[self.window]

    @property
    def _effects(self) -> tuple[Any, ...]:
        """What each record did to sessions: where this is the same, they are."""
        return (self.decision, *self.bounds_after, self.merges.at)

    @cached_property
    def bounds_after(self) -> tuple[Longs, Longs]:
        """(start, end) of the record's window once the record is in it; -1 for a dropped record."""
        times_ms, count = self.batch.timestamp_ms, len(self.window_columns.key)
        return bounds_after(self.window, times_ms, self.merges, self.loaded_start_ms, self.loaded_end_ms, count)

    @cached_property
    def _by_window(self) -> tuple[Longs, Longs]:
        return grouped(self.window, len(self.window_columns.key))

    def records_of(self, window: int) -> Longs:
        """The records that went into a window, before and after it took in others."""
        first, rows = self._by_window
        return rows[first[window] : first[window + 1]]

    def records_in(self, window: int) -> Longs:
        """The records of this run that a session holds at the end, by their rows."""
        first, rows = self._by_survivor
        return rows[first[window] : first[window + 1]]

    @cached_property
    def _by_survivor(self) -> tuple[Longs, Longs]:
        return grouped(self.survivor, len(self.window_columns.key))

    def bounds_before(self, window: int, index: int) -> tuple[int, int]:
        """Bounds of a window just before record `index`."""
        rows = self.records_of(window)
        earlier = int(np.searchsorted(rows, index))
        if not earlier:
            return int(self.loaded_start_ms[window]), int(self.loaded_end_ms[window])
        last = rows[earlier - 1]
        return int(self.bounds_after[0][last]), int(self.bounds_after[1][last])

    def last_instants_ms(self, rows: npt.NDArray[np.integer[Any]]) -> Longs:
        """The last instant of each of these sessions: their end is in them."""
        return self.window_columns.end_ms[rows]

    def _closes_after(self, last: Longs) -> Closes:
        """The closes with a record that came after this one of its partition, in any order."""
        closes = self.closes
        rows = np.flatnonzero(closes.at > last[self.batch.partition[closes.at]])
        return Closes._make(column[rows] for column in closes)

    @cached_property
    def closes(self) -> Closes:
        windows, reopened = self.window_columns, self.reopenings
        row = np.flatnonzero((windows.merged_into < 0) & (windows.closed_before < 0)).astype(np.int32)
        at = self.passed_by(windows.partition[row], self.last_instants_ms(row))
        row, at = row[at < len(self)], at[at < len(self)]
        end_of_run = np.full(len(row), INT64_MAX)
        before = self.passed_by(windows.partition[reopened.window], reopened.end_ms)
        columns = (
            np.concatenate([before, at]),
            np.concatenate([reopened.window, row]),
            np.concatenate([reopened.start_ms, windows.start_ms[row]]),
            np.concatenate([reopened.end_ms, windows.end_ms[row]]),
            np.concatenate([reopened.at, end_of_run]),
        )
        order = order_by(columns[0], columns[3], ranks_of(self.keys, windows.key[columns[1]]))
        return Closes(*(column[order] for column in columns))

    @cached_property
    def late_for_some(self) -> Flags:
        """True for each record that was dropped as late: a session takes a record in, or no session does."""
        return self.decision == LATE

    @property
    def dropped_at(self) -> Rows:
        """The record of each drop: each record that is in no session."""
        return np.flatnonzero(~self.accepted & self.is_record)

    @property
    def updated_at(self) -> Rows:
        """The record of each value that goes out on update: each record that is in a session."""
        return np.flatnonzero(self.accepted)

    @property
    def sent_on_update(self) -> int:
        """How many results go out on update: a session for each accepted record, and what it took back for it."""
        return int(count_updates(self.window, self.decision, self.batch.timestamp_ms, *self.bounds_after))

    @property
    def opened_count(self) -> Longs:
        """How many sessions more are open with each record: opened or re-opened ones, less those that it absorbed."""
        count = (self.decision == OPENED).astype(np.int64)
        np.subtract.at(count, self.merges.at, 1)
        np.add.at(count, self.reopenings.at, 1)
        return count

    @property
    def worth_seeing(self) -> Longs:
        """3 for a drop or a bridge, 2 for a record that was late but kept, else 0."""
        marked = (self.decision == LATE) | (self.decision == MERGED)
        return 3 * marked.astype(np.int64) + 2 * self.late_but_kept

    @property
    def longest_made_ms(self) -> int:
        """0, as a session begins as a single moment."""
        return 0

    @cached_property
    def sizes(self) -> Longs:
        """How many records of this run each session holds at the end, with those of the sessions that it absorbed."""
        return np.bincount(self.survivor[self.survivor >= 0], minlength=len(self.window_columns.key))

    def size_of(self, window: int) -> int:
        return int(self.sizes[window])

    def windows_at(self, slot: int, at: Rows, start_ms: Longs, end_ms: Longs) -> Longs:
        """The sessions that had these bounds after these records: of several the one that had them last."""
        loaded = np.flatnonzero(self.window_slot[: self.window_columns.loaded_count] == slot)
        bounds = zip(self.loaded_start_ms[loaded].tolist(), self.loaded_end_ms[loaded].tolist(), strict=True)
        known = dict(zip(bounds, loaded.tolist(), strict=True))
        own = np.flatnonzero((self.slot == slot) & self.accepted)
        after = zip(*(bound[own].tolist() for bound in self.bounds_after), strict=True)
        steps = zip(own.tolist(), after, self.window[own].tolist(), strict=True)
        step = next(steps, None)
        found = []
        for record, start, end in zip(at.tolist(), start_ms.tolist(), end_ms.tolist(), strict=True):
            while step is not None and step[0] <= record:
                known[step[1]] = step[2]
                step = next(steps, None)
            found.append(known[start, end])
        return np.array(found, np.int64)

    def _in_windows(self) -> dict[str, Any]:
        """Columns of the records: window_id, and merged_count, how many sessions each ended."""
        merged_count = np.zeros(len(self), np.int32)
        np.add.at(merged_count, self.merges.at, 1)
        window_id = np.append(self.window_columns.opened_by, NOT_YET)[self.window]
        return {"window_id": arrow_array(window_id, self.window < 0), "merged_count": merged_count}

    def windows(self, rows: Longs | None = None) -> pa.Table:
        """One row a window: window_id, partition, key, bounds, opened_by, closed_by, merged_into, parents, status."""
        windows = self.window_columns
        rows = np.arange(len(windows.key)) if rows is None else rows
        into, closed_by = windows.merged_into[rows], self.closed_by[rows]
        opened_by = np.append(windows.opened_by, NOT_YET)
        return arrow_table(
            {
                "window_id": windows.opened_by[rows],
                "partition": self.batch.partitions[windows.partition[rows]],
                "key": self.keys.take(arrow_array(windows.key[rows])),
                "window_start_ms": windows.start_ms[rows],
                "window_end_ms": windows.end_ms[rows],
                "opened_by": windows.opened_by[rows],
                "closed_by": arrow_array(closed_by, (closed_by < 0) | (into >= 0)),
                "merged_into": arrow_array(opened_by[into], into < 0),
                "parents": self._parents(rows),
                "status": status_words(into >= 0, closed_by >= 0),
            }
        )

    def _parents(self, rows: Longs) -> pa.Array:
        """Ids of the sessions that each window absorbed, in the order in which it did."""
        order = np.argsort(self.merges.into, kind="stable")
        count = np.bincount(self.merges.into, minlength=len(self.window_columns.key))
        ends = np.cumsum(count)
        ids = self.window_columns.opened_by[self.merges.absorbed[order]]
        lists = pa.ListArray.from_arrays(arrow_array(np.append(0, ends).astype(np.int32)), arrow_array(ids))
        return lists.take(arrow_array(rows))

    def _laws(self) -> Iterator[tuple[str, bool]]:
        windows, merges, opened = self.window_columns, self.merges, self.decision == OPENED
        loaded, count = windows.loaded_count, len(windows.key)
        known = np.isin(self.decision, [*DECISIONS, *REASONS, TICK, IDLE])
        yield "each record is accepted or dropped, with a reason", bool(known.all())
        has_window = self.window >= 0
        yield "an accepted record has a window, a dropped one has none", bool((self.accepted == has_window).all())
        rows = np.concatenate([self.window[has_window], merges.into, merges.absorbed, self.reopenings.window])
        yield "each window that is named is there", not len(rows) or 0 <= rows.min() <= rows.max() < count
        in_order = np.array_equal(self.window[opened], np.arange(loaded, count))
        yield "windows are numbered as they are opened", in_order
        bridges = np.flatnonzero(self.decision == MERGED)
        yield "a record that merges absorbs a session", np.array_equal(distinct(merges.at), bridges)
        yield "a session is absorbed once", len(distinct(merges.absorbed)) == len(merges.absorbed)
        marked = np.flatnonzero(windows.merged_into >= 0)
        yield "what was absorbed is marked so", np.array_equal(np.sort(merges.absorbed), marked)
        yield from self._laws_of_time()

    def _laws_of_time(self) -> Iterator[tuple[str, bool]]:
        windows, batch, kept = self.window_columns, self.batch, self.accepted
        yield "stream time never falls", self.stream_time_rises()
        is_ahead = (self.decision == AHEAD) | (self.batch.moving_ms < 0)
        before_ms = self.first_stream_time_ms.copy()
        moved = moves_stream_time(self.batch.partition, self.stream_time_ms, is_ahead, before_ms)
        yield "a record that is ahead of its arrival moves no stream time", not moved
        same_key = windows.key[self.window[kept]] == batch.key[kept]
        same_partition = windows.partition[self.window[kept]] == batch.partition[kept]
        yield "a record stays with its key and partition", bool((same_key & same_partition).all())
        start, end = (bound[kept] for bound in self.bounds_after)
        inside = (start <= batch.timestamp_ms[kept]) & (end >= batch.timestamp_ms[kept])
        yield "a record lies in its window", bool(inside.all())
        yield "a record is kept by a session that is open", bool((end >= self.close_time_ms[kept]).all())
        late = self.decision == LATE
        older = batch.timestamp_ms[late] < self.close_time_ms[late]
        yield "a late record is older than the close line", bool(older.all())
        yield "bounds end where the last touch left them", self._bounds_agree()
        final = self.closes.window[self.closes.until == INT64_MAX]
        yield "a session closes once, unless it is re-opened", len(distinct(final)) == len(final)

    def _bounds_agree(self) -> bool:
        start, end = self.loaded_start_ms, self.loaded_end_ms
        size = len(self.window_columns.key)
        lowest, highest = np.full(size, INT64_MAX), np.full(size, -1)
        lowest[: len(start)], highest[: len(end)] = start, end
        kept = self.accepted
        np.minimum.at(lowest, self.window[kept], self.bounds_after[0][kept])
        np.maximum.at(highest, self.window[kept], self.bounds_after[1][kept])
        return bool((lowest == self.window_columns.start_ms).all() and (highest == self.window_columns.end_ms).all())
