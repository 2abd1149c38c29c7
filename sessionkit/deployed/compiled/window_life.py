"""A life over tumbling, hopping or sliding windows, which a store keeps by their starts."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from sessionkit.base.arrays import Codes, Flags, Longs, Rows, order_by
from sessionkit.base.decisions import LATE
from sessionkit.deployed.compiled.life import CompiledLife
from sessionkit.trace.sent import AT_END
from sessionkit.windows.finals import Finals, find_final_windows
from sessionkit.windows.sliding.shown import last_behind_ms, latest_put_ms, run_put_with


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

    @property
    def _found(self) -> tuple[Longs, Codes]:
        """(the look that finds it, the window) of each final result."""
        (looks, _), columns = self._looks, self._outcome.window_columns
        look, window = np.empty(len(columns.key), np.int64), np.empty(len(columns.key), np.int32)
        count = find_final_windows(columns.start_ms, columns.partition, looks, self._visible_from_ms(), look, window)
        return look[:count], window[:count]

    @property
    def finals(self) -> Callable[[], tuple[Codes, Longs]] | None:
        def found() -> tuple[Codes, Longs]:
            look, window = self._found
            return window, self._looks[0].at[look]

        return found if self._how.emit == "on_window_close" else None

    @cached_property
    def _finals(self) -> Finals:
        look, window = self._found
        columns = self._outcome.window_columns
        steps = np.full(len(window), AT_END)
        found = Finals(look, window, columns.start_ms[window], columns.end_ms[window], steps)
        rank = self._outcome.key_ranks[columns.key[window]]
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
        if self._outcome.window_columns.loaded_count:
            return latest_put_ms(self._trace, self._observed_before_ms)
        assert self._expiry is not None, "on close there is no cache"
        put_ms, behind_ms = np.empty(len(self._trace), np.int64), self._how.retention_ms - 1 + self._boundary_ms
        run_put_with(self._expiry.found_from_ms, self._trace.batch.partition, self.observed_ms, behind_ms, put_ms)
        return put_ms

    @property
    def observed_ms(self) -> Longs:
        observed_ms, columns = self._observed_before_ms.copy(), self._outcome.window_columns
        if columns.loaded_count:
            np.maximum.at(observed_ms, self._trace.batch.partition, self._put_ms)
        else:
            np.maximum.at(observed_ms, columns.partition, columns.start_ms)
        return observed_ms

    @property
    def answers(self) -> Any:
        """How far behind windows lie of which another retention could show the records more, or fewer."""
        windows: Any = self._windows
        hangs = self._expiry is not None and self._expiry.hangs_on_retention[0]
        return last_behind_ms(windows.time_difference_ms, windows.grace_ms, self._boundary_ms) if hangs else []

    def _observed_with_ms(self, records: Longs) -> Longs:
        return self._put_ms[records]
