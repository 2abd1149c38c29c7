"""What a chart of sessions shows, worked out once for its traces and its words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sessionkit.base.arrays import Longs, distinct
from sessionkit.base.decisions import ADDED, LATE, MERGED, OPENED
from sessionkit.base.durations import INT64_MAX, about
from sessionkit.base.text import plural
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.views.drawing.grammar import MOST_REASONS, Outline, growing
from sessionkit.views.scenes.board import Board
from sessionkit.views.scenes.key_rows import Cap, KeyRows, Size, Spans
from sessionkit.views.scenes.scene import Lanes, Plane
from sessionkit.windows.contract import SessionKind
from sessionkit.windows.missing_grace import missing_grace_ms


class SessionHistory(KeyRows[SessionTrace]):
    """The records and sessions of one key in one partition of a trace."""

    @property
    def wait_ms(self) -> int:
        """How long a session can still be met: until it is closed, or forgotten where none is ever closed."""
        return min(self.trace.close_lag_ms, self.trace.retention_ms)

    @property
    def events(self) -> dict[str, Longs]:
        return {"merges": self.merges, "reopened": self.reopened, "late_but_kept": self.late_but_kept}

    @cached_property
    def merges(self) -> Longs:
        """Records that joined two sessions."""
        return self.own[self.trace.decision[self.own] == MERGED]

    @cached_property
    def plain(self) -> Longs:
        """Records that opened or joined a session in time."""
        decision = self.trace.decision[self.own]
        kept = (decision == OPENED) | (decision == ADDED)
        return self.own[kept & ~self.trace.late_but_kept[self.own]]

    @cached_property
    def reopened(self) -> Longs:
        """Records that touched a closed session which was still retained."""
        reopenings = self.trace.reopenings
        return distinct(reopenings.at[np.isin(reopenings.window, self.windows)])

    def caps(self, first: int, last: int) -> list[Cap]:
        trace, rows, found = self.trace, self.closes_between(first, last), []
        root = trace.ended_in
        sizes = sizes_of(trace, self.windows[np.isin(root[self.windows], root[trace.closes.window[rows]])])
        for row in rows.tolist():
            at, window = int(trace.closes.at[row]), int(trace.closes.window[row])
            is_last = trace.closes.until[row] == INT64_MAX
            size = sizes[window] if is_last else _size_before(trace, sizes, window, at)
            found.append(Cap(window, at, int(trace.closes.start_ms[row]), int(trace.closes.end_ms[row]), size))
        return found

    @cached_property
    def spans(self) -> Spans:
        trace, mine, closes = self.trace, self.windows, self.trace.closes
        born, merged_at = np.full(len(mine), -1), np.full(len(mine), INT64_MAX)
        openers = self.own[trace.decision[self.own] == OPENED]
        born[np.searchsorted(mine, trace.window[openers])] = openers
        absorbed = np.isin(trace.merges.absorbed, mine)
        merged_at[np.searchsorted(mine, trace.merges.absorbed[absorbed])] = trace.merges.at[absorbed]
        rows = self.closes[np.argsort(closes.window[self.closes], kind="stable")]
        place = np.searchsorted(mine, closes.window[rows])
        since = born.copy()
        since[place] = closes.until[rows]  # of several closures the last
        # what was closed before has lived on from the record that re-opened it
        begin = np.where(np.diff(place, prepend=-1) == 0, np.roll(closes.until[rows], 1), born[place])
        is_merged = trace.window_columns.merged_into[mine] >= 0
        goes_on = np.flatnonzero(since < np.where(is_merged, merged_at, INT64_MAX))
        ended_by = np.where(is_merged, merged_at, len(trace))[goes_on]
        parts = (
            (mine[place], mine[goes_on]),
            (begin, since[goes_on]),
            (closes.at[rows], ended_by),
            (np.full(len(rows), "closed"), np.where(is_merged[goes_on], "merged", "open")),
        )
        order = np.argsort(np.concatenate(parts[0]), kind="stable")
        return Spans(*(np.concatenate(part)[order] for part in parts))

    def steps(self, windows: list[int], first: int, last: int) -> dict[int, list[tuple[int, int, int]]]:
        """(record, start, end) each time that a window took a record, after its bounds when it was loaded."""
        trace = self.trace
        found: dict[int, list[tuple[int, int, int]]] = {window: [] for window in windows}
        for window, its in found.items():
            if window < trace.window_columns.loaded_count:
                its.append((-1, int(trace.loaded_start_ms[window]), int(trace.loaded_end_ms[window])))
        parts = [np.empty(0, np.int64)]
        for window in windows:
            mine = trace.records_of(window)
            low, high = np.searchsorted(mine, [first, last + 1])
            parts.append(mine[max(low - 1, 0) : high])
        rows = np.concatenate(parts)
        starts, ends = (bound[rows].tolist() for bound in trace.bounds_after)
        for row, window, start_ms, end_ms in zip(rows.tolist(), trace.window[rows].tolist(), starts, ends, strict=True):
            found[window].append((row, start_ms, end_ms))
        return found


def sizes_of(trace: SessionTrace, windows: Longs) -> dict[int, Size]:
    """What each of `windows` holds in the end, with the sessions that it absorbed."""
    total = np.bincount(trace.window[trace.accepted], minlength=len(trace.window_columns.key))
    had_more = np.arange(len(total)) < trace.window_columns.loaded_count
    root, merges = trace.ended_in, trace.merges
    for row in np.flatnonzero(np.isin(root[merges.into], root[windows])).tolist():
        total[merges.into[row]] += total[merges.absorbed[row]]
        had_more[merges.into[row]] |= had_more[merges.absorbed[row]]
    return {window: Size(int(total[window]), bool(had_more[window])) for window in windows.tolist()}


def session_size(size: Size, length_ms: int) -> str:
    """A session's size in words; one of a single moment has no length."""
    return f"{size.words} · {about(length_ms)}" if length_ms else size.words


def _size_before(trace: SessionTrace, sizes: dict[int, Size], window: int, at: int) -> Size:
    """What a window held when record `at` arrived."""
    absorbed = trace.merges.absorbed[(trace.merges.into == window) & (trace.merges.at < at)]
    parts = [sizes[each] for each in absorbed.tolist()]
    own = int((trace.window[:at] == window).sum())
    had_more = window < trace.window_columns.loaded_count or any(part.had_more for part in parts)
    return Size(own + sum(part.record_count for part in parts), had_more)


def _missing_ms(scene: SessionPlane | SessionLanes) -> dict[int, int]:
    """How much more grace would have kept each drop that is shown (as many as can be worked out at once)."""
    rows = scene.drops[:MOST_REASONS]
    return dict(zip(rows.tolist(), missing_grace_ms(scene.trace, scene.window, rows).tolist(), strict=True))


@dataclass(frozen=True)
class SessionPlane(Plane[SessionTrace]):
    """What a plane of sessions shows."""

    history: SessionHistory
    window: SessionKind

    def cap_words(self, cap: Cap) -> str:
        """What a session held when it was closed, and how long it was."""
        return session_size(cap.size, cap.end_ms - cap.start_ms)

    @property
    def remarks(self) -> list[str]:
        notes = [] if self.window.is_ever_closed else [f"none is ever closed; {self.window.forgets_in_words()}"]
        if len(self.drops) > MOST_REASONS:
            notes.append(f"missing grace is worked out for the first {MOST_REASONS} drops")
        return notes

    missing_ms = cached_property(_missing_ms)

    def reached_ms(self) -> tuple[list[int], int]:
        return [ms for life in self.lives for _, *bounds in life.steps for ms in self.window.reach_of_ms(*bounds)], 1

    @cached_property
    def bodies(self) -> Outline:
        found = Outline()
        for life in self.lives:
            found.add(*growing(life.steps, life.end))
        return found

    @cached_property
    def tethers(self) -> tuple[Outline, Outline]:
        """For each drop alone: from its mark to the end of what it touches, and from there to the close line."""
        alone, line_ms = set(self.alone.tolist()), self.trace.close_time_ms
        return self.tied((row, int(line_ms[row]) - ms) for row, ms in self.missing_ms.items() if row in alone)

    @cached_property
    def bars(self) -> Outline:
        """For each bridge the bounds of the session that it made, as they were at that moment."""
        found = Outline()
        for row in self.shown(self.history.merges).tolist():
            start_ms, end_ms = (int(bound[row]) for bound in self.trace.bounds_after)
            found.add((start_ms, end_ms), (self.y_of(row),) * 2)
        return found


@dataclass(frozen=True)
class SessionLanes(Lanes[SessionTrace]):
    """What the lanes of sessions show."""

    window: SessionKind

    @property
    def half(self) -> float:
        """Half the height of a bar, in lanes."""
        return 0.26 if self.is_roomy else 0.2

    @property
    def above(self) -> float:
        """Where drops are: above the bar, as they are in no session."""
        return 0.38

    missing_ms = cached_property(_missing_ms)

    @property
    def open_reach_ms(self) -> tuple[Longs, Longs]:
        columns, mine = self.trace.window_columns, self.open_windows
        return self.window.reach_of_ms(columns.start_ms[mine], columns.end_ms[mine])

    def counted(self, board: Board) -> list[str]:
        merges, drops = len(board.of(self.trace.decision == MERGED)), len(board.of(self.trace.decision == LATE))
        return [plural(len(board.windows), "session"), plural(merges, "merge"), f"{drops:,} dropped"]

    @property
    def remarks(self) -> list[str]:
        return (
            []
            if self.is_roomy or not len(self.board.windows)
            else ["beside a bar, where there is room: how many records it holds"]
        )

    def size_words(self, row: int) -> str:
        columns = self.trace.window_columns
        return session_size(self.sizes[row], int(columns.end_ms[row] - columns.start_ms[row]))

    @cached_property
    def sizes(self) -> dict[int, Size]:
        """How many records each session in view holds."""
        return sizes_of(self.trace, self.board.windows)

    @cached_property
    def former(self) -> tuple[Longs, Longs, Longs]:
        """(window, start, end) of the sessions that those in view were merged from, before their first merge."""
        trace, columns = self.trace, self.trace.window_columns
        root = trace.ended_in
        taking, first = np.unique(trace.merges.into, return_index=True)
        parts = distinct(np.append(trace.merges.absorbed, taking))
        parts = parts[np.isin(root[parts], self.board.windows)]
        start, end = columns.start_ms[parts].copy(), columns.end_ms[parts].copy()
        at = dict(zip(taking.tolist(), trace.merges.at[first].tolist(), strict=True))
        for number, window in enumerate(parts.tolist()):
            if window in at:
                start[number], end[number] = trace.bounds_before(window, at[window])
        return parts.astype(np.int64), start, end


def reach_name(window: SessionKind) -> str:
    """What the legend calls the reach of sessions."""
    return f"reach (± {next(iter(window.close_lag_parts))}): what is in it joins"
