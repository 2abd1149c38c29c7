"""What one chart shows, worked out once for its traces and its words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sessionkit.decisions import LATE
from sessionkit.grace import missing_grace_ms
from sessionkit.session_trace import SessionTrace
from sessionkit.text import escape_label
from sessionkit.views.charts.board import Board, Lane
from sessionkit.views.charts.grammar import (
    MOST_REASONS,
    WIDTH,
    Frame,
    Outline,
    Palette,
    TimeAxis,
    growing,
    legend_height,
    stair,
    top_margin,
)
from sessionkit.views.charts.history import Cap, KeyHistory, Life, Rows, Size, sizes_of
from sessionkit.views.charts.labels import text_size

if TYPE_CHECKING:
    from sessionkit.windows.session import SessionWindows

_CAP_HALF_PIXELS = 5  # half the least width of a cap: a session may be a single moment
_HEAD_PIXELS = 34  # above the newest row's end, for the labels of what is still open
_SMALLEST_PLANE, _LARGEST_PLANE, _ROW_PIXELS = 420, 620, 18
_LARGEST_PITCH, _SMALLEST_PITCH, _ALL_LANES = 118, 34, 640  # pixels of a lane, and what all lanes should share
_ROOMY_PITCH = 60  # from here on there is room for words below the bars
_NAME_LENGTH = 26


@dataclass(frozen=True)
class PlaneScene:
    """What a plane shows: the rows, and what its traces and labels are made of."""

    history: KeyHistory
    window: SessionWindows
    rows: Rows
    colours: Palette
    axis: TimeAxis

    @property
    def trace(self) -> SessionTrace:
        return self.history.trace

    @property
    def top(self) -> float:
        return len(self.rows) - 1 + 0.9

    @cached_property
    def lives(self) -> list[Life]:
        return self.history.lives(self.rows)

    @cached_property
    def caps(self) -> list[Cap]:
        return [cap for cap in self.history.caps if self.rows[0] <= cap.at <= self.rows[-1]]

    def shown(self, records: Rows) -> Rows:
        """Those of `records` that are among the rows."""
        return records[np.isin(records, self.rows)]

    def y(self, records: Rows) -> list[float]:
        """Heights of records that are among the rows."""
        return [float(place) for place in np.searchsorted(self.rows, records)]

    def y_of(self, record: int) -> float:
        """Height of one record that is among the rows."""
        return float(np.searchsorted(self.rows, record))

    @cached_property
    def drops(self) -> Rows:
        return self.shown(self.history.drops)

    @cached_property
    def missing_ms(self) -> dict[int, int]:
        """How much more grace would have kept each drop that is shown (as many as can be worked out at once)."""
        rows = self.drops[:MOST_REASONS]
        missing = missing_grace_ms(self.trace, self.window, rows)
        return dict(zip(rows.tolist(), missing.tolist(), strict=True))

    @cached_property
    def x_range_ms(self) -> tuple[int, int]:
        """From the first to the last event time of the key, with the reach of its sessions and the stream time."""
        gap_ms, trace = self.window.inactivity_gap_ms, self.trace
        seen = np.maximum(trace.stream_time_ms[self.rows], 0)
        times = [int(seen[0]), int(seen[-1]), *trace.batch.timestamp_ms[self.shown(self.history.timed)].tolist()]
        times += [step[1] - gap_ms for life in self.lives for step in life.steps]
        times += [step[2] + gap_ms for life in self.lives for step in life.steps]
        low, high = min(times), max(times)
        room = max((high - low) // 30, 1)
        return low - room, high + room

    def frame(self, legend_entries: int, subtitle: list[str]) -> Frame:
        few = min(_SMALLEST_PLANE, 150 + 45 * len(self.rows))
        plot = min(max(few, len(self.rows) * _ROW_PIXELS), _LARGEST_PLANE)
        y_range = (-0.8, self.top + _HEAD_PIXELS * (self.top + 0.8) / (plot - _HEAD_PIXELS))
        widest = max(text_size(f"{self.trace.batch.offset[row]:,}", 13)[0] for row in self.rows[[0, -1]])
        left = round(46 + widest)
        top, bottom = top_margin(subtitle), legend_height(legend_entries, WIDTH - left - 24)
        return Frame(WIDTH, plot + top + bottom, left, 24, top, bottom, self.x_range_ms, y_range)

    def _stair(self, lag_ms: int) -> Outline:
        times, found = self.trace.stream_time_ms[self.rows], Outline()
        begun = int((times < 0).sum())  # rows before the first usable time: there is no stream time yet
        x_ms, y = stair(times[begun:] - lag_ms, self.top - begun)
        found.x_ms, found.y = x_ms, [each + begun for each in y]
        return found

    @cached_property
    def stream_line(self) -> Outline:
        """Stream time at each row."""
        return self._stair(0)

    @cached_property
    def close_line(self) -> Outline:
        """The close time at each row; nothing where no window is ever closed."""
        if not self.window.is_ever_closed:
            return Outline()
        return self._stair(self.trace.close_lag_ms)

    @cached_property
    def bodies(self) -> Outline:
        """The sessions as they grow."""
        found = Outline()
        for life in self.lives:
            found.add(*growing(life.steps, life.end))
        return found

    @cached_property
    def cap_lines(self) -> Outline:
        """A line over each session where it was closed, with a least width to be seen."""
        found = Outline()
        least = round(_CAP_HALF_PIXELS * (self.x_range_ms[1] - self.x_range_ms[0]) / (WIDTH - 100))
        for cap in self.caps:
            wider = max(least - (cap.end_ms - cap.start_ms) // 2, 0)
            found.add((cap.start_ms - wider, cap.end_ms + wider), (self.y_of(cap.at),) * 2)
        return found

    @cached_property
    def tethers(self) -> tuple[Outline, Outline]:
        """For each drop: from its mark to the end of what it touches, and from there to the close line."""
        away, missing = Outline(), Outline()
        for row, missing_ms in self.missing_ms.items():
            line_ms, y = int(self.trace.close_time_ms[row]), self.y_of(row)
            away.add((int(self.trace.batch.timestamp_ms[row]), line_ms - missing_ms), (y, y))
            missing.add((line_ms - missing_ms, line_ms), (y, y))
        return away, missing

    @cached_property
    def bars(self) -> Outline:
        """For each bridge the bounds of the session that it made, as they were at that moment."""
        found = Outline()
        for row in self.shown(self.history.merges).tolist():
            start_ms, end_ms = (int(bound[row]) for bound in self.trace.bounds_after)
            found.add((start_ms, end_ms), (self.y_of(row),) * 2)
        return found


@dataclass(frozen=True)
class LaneScene:
    """What the lanes show, and what their traces and words are made of."""

    board: Board
    window: SessionWindows
    colours: Palette
    axis: TimeAxis

    @property
    def trace(self) -> SessionTrace:
        return self.board.trace

    @property
    def pitch(self) -> int:
        return int(min(max(_ALL_LANES // max(len(self.board.lanes), 1), _SMALLEST_PITCH), _LARGEST_PITCH))

    @property
    def is_roomy(self) -> bool:
        return self.pitch >= _ROOMY_PITCH

    @property
    def half(self) -> float:
        """Half the height of a bar, in lanes."""
        return 0.26 if self.is_roomy else 0.2

    @property
    def above(self) -> float:
        """Where drops are: above the bar, as they are in no session."""
        return 0.38

    @cached_property
    def clock(self) -> int | None:
        """The partition whose stream time is shown: the only one of these lanes, if it is one."""
        partitions = {lane.partition for lane in self.board.lanes}
        return partitions.pop() if len(partitions) == 1 else None

    @cached_property
    def stream_time_ms(self) -> int | None:
        if self.clock is None or self.trace.last_stream_time_ms[self.clock] < 0:
            return None
        return int(self.trace.last_stream_time_ms[self.clock])

    @cached_property
    def open_windows(self) -> Rows:
        found: Rows = self.board.windows[self.trace.closed_by[self.board.windows] < 0]
        return found

    @cached_property
    def closed_windows(self) -> Rows:
        found: Rows = self.board.windows[self.trace.closed_by[self.board.windows] >= 0]
        return found

    def height_of_windows(self, windows: Rows) -> list[int]:
        columns = self.trace.window_columns
        heights: list[int] = self.board.heights(columns.key[windows], columns.partition[windows]).tolist()
        return heights

    def height_of(self, records: Rows) -> Rows:
        batch = self.trace.batch
        return self.board.heights(batch.key[records], batch.partition[records])

    @cached_property
    def drops(self) -> Rows:
        return self.board.of(self.trace.decision == LATE)

    @cached_property
    def missing_ms(self) -> dict[int, int]:
        """How much more grace would have kept each drop that is shown (as many as can be worked out at once)."""
        rows = self.drops[:MOST_REASONS]
        missing = missing_grace_ms(self.trace, self.window, rows)
        return dict(zip(rows.tolist(), missing.tolist(), strict=True))

    @cached_property
    def x_range_ms(self) -> tuple[int, int]:
        """The span; a little more, and the reach of open sessions and stream time, where it ends at the data's ends."""
        board, columns = self.board, self.trace.window_columns
        low, high = board.first_ms, board.last_ms
        gap_ms, mine = self.window.inactivity_gap_ms, self.open_windows
        if not board.more_before:
            low = min([low, *(columns.start_ms[mine] - gap_ms).tolist()])
        if not board.more_after:
            high = max([high, *(columns.end_ms[mine] + gap_ms).tolist(), self.stream_time_ms or high])
        room = max((high - low) // 28, 1)
        return low - room, high + room

    def frame(self, legend_entries: int, subtitle: list[str]) -> Frame:
        count = max(len(self.board.lanes), 1)
        names = max((text_size(f"<b>{self.name(lane)}</b>", 13)[0] for lane in self.board.lanes), default=40)
        left = round(22 + names)
        top, bottom = top_margin(subtitle), legend_height(legend_entries, WIDTH - left - 24)
        height = count * self.pitch + top + bottom
        return Frame(WIDTH, height, left, 24, top, bottom, self.x_range_ms, (-0.55, count - 0.45))

    def name(self, lane: Lane) -> str:
        """What a lane is called: its key, and its partition where the key is in several."""
        name = escape_label(self.trace.keys[lane.key].as_py(), _NAME_LENGTH)
        in_several = sum(other.key == lane.key for other in self.board.lanes) > 1
        return f"{name} · {self.trace.batch.partitions[lane.partition]}" if in_several else name

    @cached_property
    def sizes(self) -> dict[int, Size]:
        """How many records each session in view holds."""
        return sizes_of(self.trace, self.board.windows)

    @property
    def clocks_ms(self) -> list[int | None]:
        """The close line and stream time at the end of the run; None for one that is not in view, or not known."""
        now, (low, high) = self.stream_time_ms, self.x_range_ms
        both = [None, None] if now is None else [now - self.trace.close_lag_ms, now]
        return [ms if ms is not None and low <= ms <= high else None for ms in both]

    def clocks_x(self, frame: Frame) -> list[float]:
        """Where the two lines stand, in pixels."""
        return [float(frame.x(ms)) for ms in self.clocks_ms if ms is not None]
