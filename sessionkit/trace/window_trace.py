"""The decisions of a run of tumbling, hopping or sliding windows, of which a record meets many."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.base.arrays import Bytes, Codes, Flags, Longs, Rows, arrow_array, arrow_table, distinct, order_by
from sessionkit.base.calls import answers_calls
from sessionkit.base.decisions import ADDED, AHEAD, COPIED, COPIED_ADDED, EFFECTS, IDLE, LATE, OPENED, REASONS, TICK
from sessionkit.base.durations import INT64_MAX
from sessionkit.records.keys import ranks_of
from sessionkit.trace.loops import grouped, moves_stream_time, sizes_of_touches, times_of_touches
from sessionkit.trace.trace import Closes, Trace, status_words, words

TOUCH = 75, "rows, one for each window of each record"  # bytes of a touch, and what it is to a user


class Touches(NamedTuple):
    """One row for each window that a record changed, made or missed, in the order in which Kafka goes through them."""

    record: Longs  # row of the record
    window: Codes  # row of the window; -1: it was closed, so the record does not count in it
    effect: Bytes  # opened, added, copied, copied and added, or late
    start_ms: Longs  # where the window starts
    source: Codes  # row of the window that it is a copy of, -1


@answers_calls("trace", guesses=False, value_of="run")
@dataclass(frozen=True, kw_only=True, repr=False)
class WindowTrace(Trace):
    """Every decision of a run of time or sliding windows; a window's id is its partition, key and start.

    The touches are worked out when they are asked for: there can be many more of them than records.
    """

    ends_ms: Callable[[Any], Any]  # the end of a window that starts then, or of many
    longest_ms: int  # no window ends later after a record that is in it
    inclusive_end: bool  # the end belongs to the window (sliding), or does not (tumbling, hopping)
    find_touches: Callable[[], Touches]
    find_missed: Callable[[], Touches | None] = lambda: None  # where they can be told without all the others
    find_put_ms: Callable[[], Longs] = lambda: np.empty(0, np.int64)  # see `SlidingWindows._put_ms`
    loaded_timestamp_ms: Longs  # of the windows that came from a store, as they came
    noted_newest_ms: Longs | None = None  # a processor notes it: it may delete windows, and begin anew

    @property
    def last_window(self) -> Codes:
        """The last window that each record came to; -1 for none."""
        window = np.full(len(self), -1, np.int32)
        window[self.touches.record] = self.touches.window
        return window

    @property
    def _effects(self) -> tuple[Any, ...]:
        """What each record did to windows: where this is the same, they are."""
        touches = self.touches
        return (self.decision, touches.record, touches.start_ms, touches.effect)

    @cached_property
    def touches(self) -> Touches:
        """Every window that a record met."""
        return self.find_touches()

    @cached_property
    def missed(self) -> Touches:
        """The touches of closed windows: each is a drop, as Kafka counts them."""
        if (found := self.find_missed()) is not None:
            return found
        return Touches(*(column[self.touches.effect == LATE] for column in self.touches))

    @cached_property
    def late_for_some(self) -> Flags:
        mask: Flags = self.decision == LATE
        mask[self.missed.record] = True
        return mask

    @property
    def dropped_at(self) -> Rows:
        """The record of each drop: first those that came too late for a window, once for each, then all others."""
        return np.concatenate([self.missed.record, np.flatnonzero((self.decision > LATE) & self.is_record)])

    @property
    def updated_at(self) -> Rows:
        """The record of each value that goes out on update: one for each window that it changed or made."""
        return self.touches.record[self.touches.effect != LATE]

    @property
    def sent_on_update(self) -> int:
        """How many results go out on update: nothing is ever taken back."""
        return int((self.touches.effect != LATE).sum())

    @property
    def opened_count(self) -> Longs:
        """How many windows each record made."""
        count = np.zeros(len(self), np.int64)
        live = np.flatnonzero(self.touches.window >= 0)
        row, first = np.unique(self.touches.window[live], return_index=True)
        np.add.at(count, self.touches.record[live[first[row >= self.window_columns.loaded_count]]], 1)
        return count

    @property
    def worth_seeing(self) -> Longs:
        """3 for a record that was dropped as late, else 0."""
        return 3 * (self.decision == LATE).astype(np.int64)

    @property
    def longest_made_ms(self) -> int:
        """The longest window: none of them grows after it was made."""
        return self.longest_ms

    @cached_property
    def newest_ms(self) -> Longs:
        """The largest record time in its window after each touch."""
        if self.noted_newest_ms is not None:
            return self.noted_newest_ms
        touches, windows = self.touches, self.window_columns
        out = np.full(len(touches.record), -1, np.int64)
        newest = np.full(len(windows.key), -1, np.int64)
        newest[: windows.loaded_count] = self.loaded_timestamp_ms
        times_of_touches(touches, COPIED, self.batch.timestamp_ms, newest, out)
        return out

    @cached_property
    def sizes(self) -> Longs:
        """How many records of this run each window holds at the end."""
        touches, size = self.touches, np.zeros(len(self.window_columns.key), np.int64)
        sizes_of_touches(touches, OPENED, COPIED, np.zeros(len(touches.record), np.int64), size)
        return size

    def size_of(self, window: int) -> int:
        return int(self.sizes[window])

    def windows_at(self, slot: int, at: Rows, start_ms: Longs, end_ms: Longs) -> Longs:
        """The windows that start then: their bounds never change."""
        own = np.flatnonzero(self.window_slot == slot)
        starts = self.window_columns.start_ms[own]
        order = np.argsort(starts, kind="stable")
        return own[order][np.searchsorted(starts[order], start_ms, side="right") - 1]

    @cached_property
    def _by_window(self) -> tuple[Longs, Longs]:
        return grouped(self.touches.window, len(self.window_columns.key))

    def records_in(self, window: int) -> Longs:
        """The records of this run that a window holds at the end, by their rows: its own, and those that it copied."""
        touches, (first, of_windows) = self.touches, self._by_window
        found, before = [], len(self)
        while window >= 0:
            rows = of_windows[first[window] : first[window + 1]]
            rows = rows[touches.record[rows] < before]
            made = np.flatnonzero(touches.effect[rows] != ADDED)
            if len(made):  # of several times the last: a processor had deleted it
                rows = rows[made[-1] :]
            found.append(touches.record[rows[touches.effect[rows] != COPIED]])
            if not len(made):
                break
            # a copy is of what its source held before the record
            window, before = int(touches.source[rows[0]]), int(touches.record[rows[0]])
        return distinct(np.concatenate(found))

    def windows_of(self, record: int) -> list[int]:
        """The windows that hold a record at the end, by their rows: in which it counts, and what later copied those."""
        touches = self.touches
        own = np.flatnonzero((touches.record == record) & (touches.effect != LATE) & (touches.effect != COPIED))
        windows = set(touches.window[own].tolist())
        if not windows:
            return []
        later = self._touches_like(min(windows))
        later = later[(touches.record[later] > record) & (touches.effect[later] != ADDED)]
        for window, source in zip(touches.window[later].tolist(), touches.source[later].tolist(), strict=True):
            (windows.add if source in windows else windows.discard)(window)
        return sorted(windows)

    def _touches_like(self, window: int) -> Rows:
        """The touches of all windows that have the key and partition of this one."""
        columns = self.window_columns
        alike = (columns.key == columns.key[window]) & (columns.partition == columns.partition[window])
        return np.flatnonzero(np.append(alike, False)[self.touches.window])  # a missed window is -1

    @cached_property
    def missing_ms(self) -> Longs:
        """By how much each touch of a closed window came too late: the grace that it lacked, exactly."""
        missed = self.missed
        return self.close_time_ms[missed.record] - self.last_instant_ms(self.ends_ms(missed.start_ms))

    def last_instant_ms(self, end_ms: Longs) -> Longs:
        """The last time that lies in a window which ends at `end_ms`."""
        return end_ms if self.inclusive_end else end_ms - 1

    def last_instants_ms(self, rows: npt.NDArray[np.integer[Any]]) -> Longs:
        return self.last_instant_ms(self.window_columns.end_ms[rows])

    @property
    def _finals(self) -> tuple[Codes, Longs]:
        """(the window, the record that closed it) of each that became final in this run, in any order."""
        windows = self.window_columns
        row = np.flatnonzero(windows.closed_before < 0).astype(np.int32)
        at = self.passed_by(windows.partition[row], self.last_instants_ms(row))
        is_final = at < len(self)
        return row[is_final], at[is_final]

    def _closes_after(self, last: Longs) -> Closes:
        """The closes with a record that came after this one of its partition, in any order."""
        windows, (row, at) = self.window_columns, self._finals
        is_after = at > last[self.batch.partition[at]]
        row, at = row[is_after], at[is_after]
        return Closes(at, row, windows.start_ms[row], windows.end_ms[row], np.full(len(row), INT64_MAX))

    @cached_property
    def closes(self) -> Closes:
        """Each time that a window became final in this run, in the order in which results go out."""
        windows, (row, at) = self.window_columns, self._finals
        order = order_by(at, windows.start_ms[row], ranks_of(self.keys, windows.key[row]))
        row, at = row[order], at[order]
        return Closes(at, row, windows.start_ms[row], windows.end_ms[row], np.full(len(row), INT64_MAX))

    def _in_windows(self) -> dict[str, Any]:
        """Columns of the records: window_count and missed_count, how many windows each is in and misses."""
        touches = self.touches
        counted = (touches.effect != LATE) & (touches.effect != COPIED)
        counted[1:] &= (touches.window[1:] != touches.window[:-1]) | (touches.record[1:] != touches.record[:-1])
        return {
            "window_count": np.bincount(touches.record[counted], minlength=len(self)),
            "missed_count": np.bincount(self.missed.record, minlength=len(self)),
        }

    def windows(self, rows: Longs | None = None) -> pa.Table:
        """One row a window: partition, key, bounds, largest record time, opened_by, closed_by, status."""
        windows = self.window_columns
        rows = np.arange(len(windows.key)) if rows is None else rows
        closed_by = self.closed_by[rows]
        return arrow_table(
            {
                "partition": self.batch.partitions[windows.partition[rows]],
                "key": self.keys.take(arrow_array(windows.key[rows])),
                "window_start_ms": windows.start_ms[rows],
                "window_end_ms": windows.end_ms[rows],
                "timestamp_ms": windows.timestamp_ms[rows],
                "opened_by": windows.opened_by[rows],
                "closed_by": arrow_array(closed_by, closed_by < 0),
                "status": status_words(np.zeros(len(rows), np.bool_), closed_by >= 0),
            }
        )

    def touched(self) -> pa.Table:
        """One row for each window that a record met: where the record stood, the window's bounds, what it did there."""
        batch, touches = self.batch, self.touches
        at, source = touches.record, touches.source
        source_start_ms = np.append(self.window_columns.start_ms, -1)[source]
        return arrow_table(
            {
                "partition": batch.partitions[batch.partition[at]],
                "offset": batch.offset[at],
                "key": self.keys.take(arrow_array(batch.key[at])),
                "timestamp_ms": batch.timestamp_ms[at],
                "window_start_ms": touches.start_ms,
                "window_end_ms": self.ends_ms(touches.start_ms),
                "effect": words(touches.effect, EFFECTS),
                "copied_from_start_ms": arrow_array(source_start_ms, source < 0),
            }
        )

    def _laws(self) -> Iterator[tuple[str, bool]]:
        touches, windows = self.touches, self.window_columns
        known = np.isin(self.decision, [OPENED, ADDED, *REASONS, TICK, IDLE])
        yield "each record is accepted or dropped, with a reason", bool(known.all())
        live = touches.effect != LATE
        yield "what was missed has no window, all else has one", bool(((touches.window >= 0) == live).all())
        in_range = not len(windows.key) or bool((touches.window < len(windows.key)).all())
        yield "each window that is named is there", in_range
        yield "stream time never falls", self.stream_time_rises()
        is_ahead = (self.decision == AHEAD) | (self.batch.moving_ms < 0)
        before_ms = self.first_stream_time_ms.copy()
        moved = moves_stream_time(self.batch.partition, self.stream_time_ms, is_ahead, before_ms)
        yield "a record that is ahead of its arrival moves no stream time", not moved
        row = touches.window[live]
        at = touches.record[live]
        same = (windows.key[row] == self.batch.key[at]) & (windows.partition[row] == self.batch.partition[at])
        yield "a record stays with its key and partition", bool(same.all())
        yield "a touch names its window's start", bool((windows.start_ms[row] == touches.start_ms[live]).all())
        yield "a window ends where its start says", bool((windows.end_ms == self.ends_ms(windows.start_ms)).all())
        yield from self._laws_of_time()
        yield from self._laws_of_origin()

    def _laws_of_origin(self) -> Iterator[tuple[str, bool]]:
        """Laws on where the windows of this run come from."""
        touches, windows = self.touches, self.window_columns
        is_copy = (touches.effect == COPIED) | (touches.effect == COPIED_ADDED)
        in_range = (touches.source >= -1) & (touches.source < len(windows.key))
        yield "a copy, and nothing else, has a source", bool((in_range & ((touches.source >= 0) == is_copy)).all())
        source, copy = touches.source[is_copy], touches.window[is_copy]
        same = (windows.key[source] == windows.key[copy]) & (windows.partition[source] == windows.partition[copy])
        yield "a copy stays with its key and partition", bool(same.all())
        live = np.flatnonzero(touches.effect != LATE)
        row, first = np.unique(touches.window[live], return_index=True)
        row, first = row[row >= windows.loaded_count], live[first][row >= windows.loaded_count]
        yield "the first touch of a new window makes it", not bool((touches.effect[first] == ADDED).any())
        made_by = self.batch.offset[touches.record[first]]
        yield "a new window is named by the record that made it", bool((windows.opened_by[row] == made_by).all())
        last = np.full(len(windows.key), -1)
        last[touches.window[live]] = live  # of several the last stays
        met = np.flatnonzero(last >= 0)
        newest = bool((windows.timestamp_ms[met] == self.newest_ms[last[met]]).all())
        yield "a window's time is that of its newest record", newest

    def _laws_of_time(self) -> Iterator[tuple[str, bool]]:
        touches, close_time_ms = self.touches, self.close_time_ms
        times = self.batch.timestamp_ms[touches.record]
        last_ms = self.last_instant_ms(self.ends_ms(touches.start_ms))
        counted = (touches.effect != LATE) & (touches.effect != COPIED)
        inside = (touches.start_ms <= times) & (times <= last_ms)
        yield "a record lies in the windows in which it counts", bool(inside[counted].all())
        still_open = last_ms >= close_time_ms[touches.record]
        yield "a record counts in open windows only", bool(still_open[counted].all())
        missed = touches.effect == LATE
        yield "a window that is missed was closed", not bool(still_open[missed].any())
        counts = np.bincount(touches.record[counted], minlength=len(self)) > 0
        yield "an accepted record counts in a window, a dropped one in none", bool((counts == self.accepted).all())
        final = self.closes.window
        yield "a window closes once", len(distinct(final)) == len(final)
