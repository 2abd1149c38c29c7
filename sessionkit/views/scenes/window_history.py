"""What one key did in one partition, in time or sliding windows: which records were late for which, and each life."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from sessionkit.base.arrays import Longs, distinct
from sessionkit.trace.window_trace import WindowTrace
from sessionkit.views.scenes.key_rows import Cap, KeyRows, Size, Spans
from sessionkit.windows.contract import WindowKind

Ends: TypeAlias = Callable[[Longs], Longs]


class WindowHistory(KeyRows[WindowTrace]):
    """The records and the time or sliding windows of one key in one partition of a trace."""

    @property
    def wait_ms(self) -> int:
        """How long a window can still be met: its length, and the grace."""
        return self.trace.longest_ms + self.trace.close_lag_ms

    @cached_property
    def overlap(self) -> int:
        return depth(self.trace.window_columns.start_ms[self.windows], self.trace.ends_ms)

    @property
    def events(self) -> dict[str, Longs]:
        return {"partly_late": self.partly_late, "late_but_kept": self.late_but_kept}

    @cached_property
    def missed(self) -> Longs:
        """Rows of `trace.missed` that are the key's: each is a window that had closed before a record of it."""
        missed, columns = self.trace.missed, self.trace.window_columns
        mine = np.flatnonzero(np.isin(missed.record, self.own))
        if not self.trailing_only:
            return mine
        start_ms, made = missed.start_ms[mine], columns.start_ms[self.windows]
        would_be = self.trace.ends_ms(start_ms) == self.trace.batch.timestamp_ms[missed.record[mine]]
        return mine[would_be | np.isin(start_ms, made)]

    @cached_property
    def partly_late(self) -> Longs:
        """Records that came too late for some of their windows, and still count in others."""
        rows = distinct(self.trace.missed.record[self.missed])
        return rows[self.trace.accepted[rows]]

    @cached_property
    def late_but_kept(self) -> Longs:
        """Records left of the close line that count in all their windows."""
        late = self.own[self.trace.late_but_kept[self.own]]
        return late[~np.isin(late, self.partly_late)]

    @cached_property
    def plain(self) -> Longs:
        """Records that came in time."""
        kept = self.own[self.trace.accepted[self.own]]
        return kept[~np.isin(kept, np.append(self.partly_late, self.late_but_kept))]

    def caps(self, first: int, last: int) -> list[Cap]:
        trace, closes, mine = self.trace, self.trace.closes, self.closes_between(first, last)
        windows = closes.window[mine]
        had_more = (windows < trace.window_columns.loaded_count).tolist()
        sizes = (Size(*each) for each in zip(trace.sizes[windows].tolist(), had_more, strict=True))
        columns = (closes.window, closes.at, closes.start_ms, closes.end_ms)
        return [Cap(*each) for each in zip(*(column[mine].tolist() for column in columns), sizes, strict=True)]

    @cached_property
    def _born(self) -> dict[int, int]:
        """The record that made each window; -1: it was there before the run."""
        columns, offset = self.trace.window_columns, self.trace.batch.offset[self.own]
        made = self.windows[self.windows >= columns.loaded_count]
        records = self.own[np.searchsorted(offset, columns.opened_by[made])]
        return {**dict.fromkeys(self.windows.tolist(), -1), **dict(zip(made.tolist(), records.tolist(), strict=True))}

    @cached_property
    def spans(self) -> Spans:
        closes, end = self.trace.closes, np.full(len(self.windows), len(self.trace))
        end[np.searchsorted(self.windows, closes.window[self.closes])] = closes.at[self.closes]
        how = np.where(end < len(self.trace), "closed", "open")
        return Spans(self.windows, np.array([*self._born.values()], np.int64), end, how)

    def steps(self, windows: list[int], first: int, last: int) -> dict[int, list[tuple[int, int, int]]]:
        """(record, start, end) of each window: its bounds never change."""
        columns = self.trace.window_columns
        return {
            window: [(self._born[window], int(columns.start_ms[window]), int(columns.end_ms[window]))]
            for window in windows
        }


def size_of(trace: WindowTrace, window: int) -> Size:
    """How many records of this run a window holds."""
    return Size(int(trace.sizes[window]), window < trace.window_columns.loaded_count)


def depth(starts_ms: npt.ArrayLike, ends_ms: Ends) -> int:
    """How many of these windows lie over one another at most; 1 if there are none."""
    starts = np.sort(np.asarray(starts_ms, np.int64))
    over = np.searchsorted(starts, ends_ms(starts)) - np.arange(len(starts))
    return int(over.max(initial=1))


def places(starts_ms: Sequence[int], windows: WindowKind) -> list[int]:
    """A place for each window, so that no two in one place overlap: hopping windows go by their start offset, sliding
    ones, in order of start, take the first that is free."""
    if windows.advance_ms is not None:
        reach_ms, advance_ms = windows.reach_ms, windows.advance_ms
        every = -(-reach_ms // advance_ms)
        return [(windows.ends_ms(start) - reach_ms) // advance_ms % every for start in starts_ms]
    free_from: list[int] = []
    found = []
    for start in starts_ms:
        place = next((number for number, free in enumerate(free_from) if free <= start), len(free_from))
        free_from[place : place + 1] = [windows.ends_ms(start)]
        found.append(place)
    return found


def every_nth(starts_ms: Longs, every: int, windows: WindowKind) -> Longs:
    """Positions of every n-th window: by start offset, or (sliding) counted in order of start."""
    order = np.argsort(starts_ms, kind="stable")
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    if windows.advance_ms is not None:
        number = starts_ms // windows.advance_ms
    return np.flatnonzero(number % every == 0)
