"""A life over tumbling, hopping or sliding windows, which a store keeps by their starts."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from sessionkit.base.arrays import Flags, Longs, Rows, order_by
from sessionkit.base.decisions import LATE
from sessionkit.deployed.compiled.life import CompiledLife
from sessionkit.windows.finals import Finals, find_final_windows
from sessionkit.windows.sliding.shown import latest_put_ms


class WindowLife(CompiledLife):
    """Of tumbling and hopping windows, which a store keeps by their starts; a new one has all that are open."""

    @property
    def refused(self) -> tuple[int, ...]:
        return ()

    @property
    def _lengths_ms(self) -> tuple[int, int]:
        return self._windows.reach_ms, self._windows.advance_ms or 0

    @property
    def is_played(self) -> bool:
        """No record changes a window that the store did not show any more when the task was started again."""
        shown_ms = self._observed_before_ms - self._how.retention_ms + 1 - self._boundary_ms
        if (shown_ms <= 0).all():
            return True
        touches, own = self._trace.touches, self._trace.batch.partition
        live = np.flatnonzero(touches.effect != LATE)
        return not (touches.start_ms[live] < shown_ms[own[touches.record[live]]]).any()

    @property
    def observed_ms(self) -> Longs:
        stream_ms = np.array([each.stream_time_ms for each in self._outcome.snapshots.values()], np.int64)
        return np.maximum(self._newest_start_ms(stream_ms), self._observed_before_ms)

    @property
    def _times_ms(self) -> Longs:
        return self._outcome.window_columns.start_ms

    def _last_instants_ms(self, times_ms: Longs) -> Longs:
        return self._windows.ends_ms(times_ms) - (not self._windows.inclusive_end)

    def _newest_start_ms(self, stream_time_ms: Longs) -> Longs:
        advance_ms = self._windows.advance_ms or 1
        return np.maximum(stream_time_ms // advance_ms * advance_ms, -1)

    def _observed_with_ms(self, records: Longs) -> Longs:
        """The latest start that was put into the store of their partition, with each of these records."""
        trace = self._trace
        before_ms = self._observed_before_ms[trace.batch.partition[records]]
        return np.maximum(self._newest_start_ms(trace.stream_time_ms[records]), before_ms)

    def _visible_from_ms(self) -> Longs:
        """The first start that the store shows at each look."""
        observed_ms = self._observed_with_ms(self._looks[0].at)
        return observed_ms - self._how.retention_ms + 1 - self._boundary_ms

    def _seen(self, found: Finals) -> Finals:
        """Those of the windows of looks that are there."""
        return found

    @cached_property
    def _finals(self) -> Finals:
        trace, (looks, _), columns = self._trace, self._looks, self._outcome.window_columns
        touches, last = trace.touches, np.full(len(columns.key), -1)
        live = np.flatnonzero(touches.effect != LATE)
        last[touches.window[live]] = live
        room = Finals.room(len(columns.key))
        count = find_final_windows(
            columns.start_ms, columns.end_ms, columns.partition, last, looks, self._visible_from_ms(), room
        )
        found = self._seen(room.take(slice(count)))
        rank = self._outcome.key_ranks[columns.key[found.window]]
        return found.take(order_by(*self._in_turn(found), found.start_ms, rank))

    def _final_times_ms(self, found: Finals) -> Longs:
        times_ms: Longs = self._outcome.window_columns.timestamp_ms[found.window]
        return times_ms

    @cached_property
    def held_rows(self) -> Rows:
        columns = self._outcome.window_columns
        return np.flatnonzero(columns.start_ms >= self._held_from_ms(self.observed_ms)[columns.partition])


class SlidingLife(WindowLife):
    """Of sliding windows: where they start, and so what the store has observed, the records say."""

    @property
    def _lengths_ms(self) -> tuple[int, int]:
        return self._windows.reach_ms - 1, 0

    @property
    def _may_look(self) -> Flags:
        """Neither with a record that is late as a whole, nor with one before the first whole window."""
        return super()._may_look & self._is_in_time & (self._trace.batch.timestamp_ms >= self._lengths_ms[0])

    @property
    def _is_in_time(self) -> Flags:
        """The records that are not late as a whole."""
        last_ms = self._trace.batch.timestamp_ms + self._lengths_ms[0]
        is_open: Flags = last_ms >= self._close_ms(np.arange(len(self._trace)))
        return is_open

    @property
    def is_played(self) -> bool:
        """On a store that is not new, each record is shown the window that ends with it: then all that start later."""
        if not self._outcome.window_columns.loaded_count and (self._observed_before_ms == -1).all():
            return True
        assert self._expiry is not None, "behind a cache the store is new"
        own_ms = np.maximum(self._trace.batch.timestamp_ms - self._lengths_ms[0], 0)
        is_hidden = own_ms < self._expiry.found_from_ms
        return not (is_hidden & (self._trace.decision <= LATE) & self._is_in_time).any()

    @cached_property
    def _put_ms(self) -> Longs:
        return latest_put_ms(self._trace, self._observed_before_ms)

    @property
    def observed_ms(self) -> Longs:
        observed_ms, columns = self._observed_before_ms.copy(), self._outcome.window_columns
        if columns.loaded_count:
            np.maximum.at(observed_ms, self._trace.batch.partition, self._put_ms)
        else:
            np.maximum.at(observed_ms, columns.partition, columns.start_ms)
        return observed_ms

    def _observed_with_ms(self, records: Longs) -> Longs:
        return self._put_ms[records]
