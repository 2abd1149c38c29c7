"""What a chart of time or sliding windows shows, worked out once for its traces and its words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sessionkit.base.arrays import Longs, distinct
from sessionkit.base.decisions import COPIED
from sessionkit.base.text import plural
from sessionkit.trace.window_trace import WindowTrace
from sessionkit.views.drawing.grammar import Outline, growing, usual_width
from sessionkit.views.scenes.board import Board
from sessionkit.views.scenes.key_rows import Cap, Life
from sessionkit.views.scenes.scene import Lanes, Plane
from sessionkit.views.scenes.window_history import WindowHistory, depth, every_nth, places, size_of
from sessionkit.windows.contract import WindowKind

MOST_LAYERS = 6  # of bodies over one another; of more only the foot and the end are drawn
_MOST_OVER = 40  # windows over one another that a plane draws
_MOST_TICKS = 8  # ends of windows that one record missed
_TICK_ROOM = 8  # pixels from a record's mark
_MOST_SUBLANES = 8
_SUBLANE_PIXELS = 5  # at least, for each window over another
_EDGE_PIXELS = 14  # of a lane, above its bars for drops and below them for records
_BAR_GAP_PIXELS = 1
_HIGHEST_BAR = 32
_BARS_PIXELS = 14  # of a lane, at least: a bar with a number in it


class Met(NamedTuple):
    """In how many windows a record counts, and by how much it came too late for each of the others."""

    counted: int
    missing_ms: tuple[int, ...]


def result_notes(windows: WindowKind) -> list[str]:
    """What is to be said of windows that are no results."""
    return ["only windows that end with a record are results, and drawn"] if windows.trailing_only else []


@dataclass(frozen=True)
class WindowPlane(Plane[WindowTrace]):
    """What a plane of time or sliding windows shows."""

    history: WindowHistory

    @cached_property
    def _all_lives(self) -> list[Life]:
        return self.history.lives(self.rows)

    @cached_property
    def _chosen(self) -> tuple[Longs, int]:
        starts = np.array([life.steps[0][1] for life in self._all_lives], np.int64)
        every = -(-depth(starts, self.trace.ends_ms) // _MOST_OVER)
        return every_nth(starts, every, self.window), every

    @cached_property
    def lives(self) -> list[Life]:
        """The lives of the windows that are drawn, by start."""
        found = [self._all_lives[place] for place in self._chosen[0].tolist()]
        return sorted(found, key=lambda life: life.steps[0][1])

    @cached_property
    def caps(self) -> list[Cap]:
        drawn = {life.window for life in self.lives}
        return [cap for cap in super().caps if cap.window in drawn]

    @cached_property
    def deep(self) -> int:
        """How many of the windows that are drawn lie over one another at most."""
        return depth([life.steps[0][1] for life in self.lives], self.trace.ends_ms)

    @property
    def remarks(self) -> list[str]:
        notes, every = result_notes(self.window), self._chosen[1]
        if every > 1:
            some = f"1 in {every:,} of {len(self._all_lives):,} windows is drawn"
            notes.append(f"so many lie over one another that {some}")
        partly = len(self.history.partly_late)
        if partly:
            notes.append(f"{partly:,} of the kept came too late for some windows")
        return notes

    @cached_property
    def missed(self) -> Longs:
        """Rows of `trace.missed` whose records are shown."""
        mine = self.history.missed
        return mine[np.isin(self.trace.missed.record[mine], self.rows)]

    def ends_ms(self, missed: Longs) -> Longs:
        """The last instant of each of these windows that a record came too late for."""
        return self.trace.last_instant_ms(self.trace.ends_ms(self.trace.missed.start_ms[missed]))

    @cached_property
    def late(self) -> Longs:
        return self.shown(distinct(np.append(self.history.drops, self.history.partly_late)))

    @cached_property
    def _first_missed(self) -> Longs:
        """Of the windows that each shown record missed, the one that had closed first."""
        order = np.lexsort((self.trace.missed.start_ms[self.missed], self.trace.missed.record[self.missed]))
        mine = self.missed[order]
        _, first = np.unique(self.trace.missed.record[mine], return_index=True)
        return mine[first]

    @cached_property
    def ticked(self) -> Longs:
        """The missed windows whose ends are marked: not beside the record itself, nor many of one record or of a
        crowd."""
        mine, records = self.missed, self.trace.missed.record[self.missed]
        room_ms = (self.x_range_ms[1] - self.x_range_ms[0]) * _TICK_ROOM // usual_width(self.width)
        apart = self.ends_ms(mine) - self.trace.batch.timestamp_ms[records] > room_ms
        many = np.bincount(records, minlength=len(self.trace))[records] > _MOST_TICKS
        apart &= np.isin(records, self.alone)
        return mine[apart & (~many | np.isin(mine, self._first_missed))]

    @cached_property
    def met(self) -> dict[int, Met]:
        """What became of each of the key's records that are shown."""
        touches = self.trace.touches
        near = slice(*np.searchsorted(touches.record, [self.rows[0], self.rows[-1] + 1]))  # in order of arrival
        record, window, effect = touches.record[near], touches.window[near], touches.effect[near]
        mine = np.isin(record, self.shown(self.history.timed))
        counts = mine & (effect != COPIED) & np.isin(window, self.history.windows)
        pairs = np.unique(np.column_stack([record[counts], window[counts]]), axis=0)
        record, count = np.unique(pairs[:, 0], return_counts=True)
        counted = dict(zip(record.tolist(), count.tolist(), strict=True))
        missing: dict[int, list[int]] = {}
        records, short = self.trace.missed.record[self.missed], self.trace.missing_ms[self.missed]
        for at, short_ms in zip(records.tolist(), short.tolist(), strict=True):
            missing.setdefault(at, []).append(short_ms)
        rows = self.shown(self.history.timed).tolist()
        return {row: Met(counted.get(row, 0), tuple(missing.get(row, ()))) for row in rows}

    def reached_ms(self) -> tuple[list[int], int]:
        ends = [ms for life in self.lives for ms in life.steps[0][1:]]
        return ends, self.trace.longest_ms // 30

    @cached_property
    def layers(self) -> list[Outline]:
        """The windows as columns, those of one layer apart from each other."""
        starts = [life.steps[0][1] for life in self.lives]
        place = places(starts, self.window)
        found = [Outline() for _ in range(max(place, default=0) + 1)]
        for life, layer in zip(self.lives, place, strict=True):
            found[layer].add(*growing(life.steps, life.end))
        return found

    @cached_property
    def feet(self) -> Outline:
        """For each window a line over its width where it was made, and from its end up to where it closed."""
        found = Outline()
        for life in self.lives:
            row, start_ms, end_ms = life.steps[0]
            found.add((start_ms, end_ms, end_ms), (row, row, life.end))
        return found

    @cached_property
    def tethers(self) -> tuple[Outline, Outline]:
        """For each late record alone: to the end of the window that had closed first, then to the close line."""
        mine = self._first_missed
        mine = mine[np.isin(self.trace.missed.record[mine], self.alone)]
        return self.tied(zip(self.trace.missed.record[mine].tolist(), self.ends_ms(mine).tolist(), strict=True))


class WindowLanes(Lanes[WindowTrace]):
    """What the lanes of time or sliding windows show: drops, below them bars in sub-lanes, below those the records."""

    @cached_property
    def _by_height(self) -> list[Longs]:
        """The windows in view of each lane, from the bottom, by start; of too many over one another every n-th."""
        columns, rows = self.trace.window_columns, self.board.windows
        rows = rows[np.argsort(columns.start_ms[rows], kind="stable")]
        height = np.array(self.board.heights(rows), np.int64)
        lanes = [rows[height == y] for y in range(len(self.board.lanes))]
        every = [-(-depth(columns.start_ms[mine], self.trace.ends_ms) // _MOST_SUBLANES) for mine in lanes]
        return [mine[every_nth(columns.start_ms[mine], n, self.window)] for n, mine in zip(every, lanes, strict=True)]

    @cached_property
    def sublane(self) -> dict[int, int]:
        """The windows that are drawn, each with its sub-lane, from the top."""
        found: dict[int, int] = {}
        for mine in self._by_height:
            starts = self.trace.window_columns.start_ms[mine].tolist()
            place = places(starts, self.window)
            used = {number: order for order, number in enumerate(sorted(set(place)))}
            found.update({row: used[number] for row, number in zip(mine.tolist(), place, strict=True)})
        return found

    @cached_property
    def sublane_counts(self) -> list[int]:
        """How many sub-lanes each lane has, from the bottom."""
        return [1 + max((self.sublane[row] for row in mine.tolist()), default=0) for mine in self._by_height]

    @property
    def pitch(self) -> int:
        most = max(self.sublane_counts, default=1)
        high = 2 * _EDGE_PIXELS + _HIGHEST_BAR * most
        bars = _SUBLANE_PIXELS * most
        if self.height is None:
            bars = max(bars, _BARS_PIXELS)
        return max(min(super().pitch, high), 2 * _EDGE_PIXELS + bars)

    @property
    def above(self) -> float:
        """Where drops are: above the bars, as they are in no window."""
        return 0.5 - _EDGE_PIXELS / 2 / self.pitch

    def bar(self, row: int, y: int) -> tuple[float, float]:
        """(bottom, top) of a window's bar in the lane at height `y`."""
        each = self.bar_pixels(y) / self.pitch
        top = y + each * (self.sublane_counts[y] / 2 - self.sublane[row])
        return top - each + _BAR_GAP_PIXELS / self.pitch, top

    def bar_pixels(self, y: int) -> float:
        """Height of a bar in the lane at height `y`, and of the gap below it."""
        return min((self.pitch - 2 * _EDGE_PIXELS) / self.sublane_counts[y], _HIGHEST_BAR)

    @cached_property
    def missing_ms(self) -> dict[int, int]:
        """How much more grace would have kept each drop that is shown: in one window; of sliding ones, which depend on
        what else was kept, in all of them."""
        best = max if self.trace.inclusive_end else min
        missed = np.flatnonzero(np.isin(self.trace.missed.record, self.drops))
        found: dict[int, int] = {}
        records, short = self.trace.missed.record[missed], self.trace.missing_ms[missed]
        for row, short_ms in zip(records.tolist(), short.tolist(), strict=True):
            found[row] = best(short_ms, found.get(row, short_ms))
        return found

    @property
    def lacked(self) -> str:
        """What `missing_ms` would have done."""
        if self.trace.inclusive_end:
            return "the grace to count in all"
        return "the grace it lacked" if max(self.sublane_counts) == 1 else "the grace for one window"

    def counted(self, board: Board) -> list[str]:
        late, accepted = self.trace.late_for_some, self.trace.accepted
        partly = len(board.of(late & accepted))
        words = [plural(len(board.windows), "window")]
        words.append(f"{len(board.of(late & ~accepted)):,} dropped")
        return [*words, f"{partly:,} too late for some windows"] if partly else words

    @property
    def remarks(self) -> list[str]:
        notes = result_notes(self.window)
        if max(self.sublane_counts, default=1) > 1:
            notes.append("windows that lie over one another are stacked")
        if len(self.sublane) < len(self.board.windows):
            count = f"{len(self.sublane):,} of {len(self.board.windows):,} windows are drawn"
            notes.append(f"{count}, as more than {_MOST_SUBLANES} lie over one another")
        return [*notes, "below the bars: the records"]

    def size_words(self, row: int) -> str:
        return size_of(self.trace, row).words
