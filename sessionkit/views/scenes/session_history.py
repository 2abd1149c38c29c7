"""What one key did in one partition, read off the trace: which records to show, and the life of each session."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sessionkit.base.decisions import ADDED, MERGED, OPENED
from sessionkit.base.durations import INT64_MAX, about
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.views.scenes.key_rows import Cap, KeyRows, Rows, Size, Span


@dataclass(frozen=True)
class SessionHistory(KeyRows):
    """The records and sessions of one key in one partition of a trace."""

    trace: SessionTrace

    @property
    def wait_ms(self) -> int:
        """How long a session can still be met: until it is closed, or forgotten where none is ever closed."""
        return min(self.trace.close_lag_ms, self.trace.retention_ms)

    @property
    def overlap(self) -> int:
        """Sessions of a key lie apart."""
        return 1

    @property
    def events(self) -> dict[str, Rows]:
        """The records that make a stretch worth showing, by what they did."""
        late_but_kept = self.late_but_kept
        return {"drops": self.drops, "merges": self.merges, "reopened": self.reopened, "late_but_kept": late_but_kept}

    @cached_property
    def merges(self) -> Rows:
        """Records that joined two sessions."""
        return self._where(self.own, self.trace.decision[self.own] == MERGED)

    @cached_property
    def plain(self) -> Rows:
        """Records that opened or joined a session in time."""
        decision = self.trace.decision[self.own]
        kept = (decision == OPENED) | (decision == ADDED)
        return self._where(self.own, kept & ~self.trace.late_but_kept[self.own])

    @cached_property
    def reopened(self) -> Rows:
        """Records that touched a closed session which was still retained."""
        reopenings = self.trace.reopenings
        return np.unique(reopenings.at[np.isin(reopenings.window, self.windows)])

    @cached_property
    def caps(self) -> list[Cap]:
        """Each closure, oldest first."""
        trace, sizes = self.trace, sizes_of(self.trace, self.windows)
        found = []
        for row in self.closes.tolist():
            at, window = int(trace.closes.at[row]), int(trace.closes.window[row])
            is_last = trace.closes.until[row] == INT64_MAX
            size = sizes[window] if is_last else _size_before(trace, sizes, window, at)
            found.append(Cap(window, at, int(trace.closes.start_ms[row]), int(trace.closes.end_ms[row]), size))
        return found

    @cached_property
    def spans(self) -> dict[int, list[Span]]:
        """The lives of each session."""
        trace, mine = self.trace, self.windows
        columns, never = trace.window_columns, len(trace)
        born = dict.fromkeys(mine.tolist(), -1)
        openers = self.own[trace.decision[self.own] == OPENED]
        born.update(zip(trace.window[openers].tolist(), openers.tolist(), strict=True))
        absorbed = np.isin(trace.merges.absorbed, mine)
        merged_at = dict(zip(trace.merges.absorbed[absorbed].tolist(), trace.merges.at[absorbed].tolist(), strict=True))
        spans: dict[int, list[Span]] = {w: [] for w in born}
        begin = dict(born)
        for row in self.closes.tolist():
            window = int(trace.closes.window[row])
            spans[window].append((begin[window], int(trace.closes.at[row]), "closed"))
            begin[window] = int(trace.closes.until[row])
        for window, since in begin.items():
            if columns.merged_into[window] >= 0:
                if since < merged_at[window]:
                    spans[window].append((since, merged_at[window], "merged"))
            elif since != INT64_MAX:
                spans[window].append((since, never, "open"))
        return spans

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


def sizes_of(trace: SessionTrace, windows: Rows) -> dict[int, Size]:
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
