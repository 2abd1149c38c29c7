"""What one chart shows, of windows of every kind: the places of records, the clocks, the frame."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Generic

import numpy as np

from sessionkit.base.arrays import Longs, distinct
from sessionkit.base.decisions import LATE
from sessionkit.base.text import escape_label
from sessionkit.views.drawing.grammar import LEAST_WIDTH, Frame, Legend, Outline, stair, usual_width
from sessionkit.views.drawing.measured_text import Heading, key_labels, text_size
from sessionkit.views.drawing.palettes import Palette
from sessionkit.views.drawing.time_axis import TimeAxis
from sessionkit.views.scenes.board import Board
from sessionkit.views.scenes.key_rows import Cap, KeyRows, Life, T_co
from sessionkit.windows.contract import WindowKind, do_overlap

_CAP_HALF_PIXELS = 5  # half the least width of a cap: a session may be a single moment
_HEAD_PIXELS = 34  # above the newest row's end, for the labels of what is still open
_SMALLEST_PLANE, _LARGEST_PLANE, _ROW_PIXELS = 420, 620, 18
_FAR = 4  # times as wide as the rest: a drop that would make the picture wider stands at its edge
_MANY_TETHERS, _ROWS_APART = 12, 3  # more tethers of drops that follow so closely are drawn as one area
_LARGEST_PITCH, _SMALLEST_PITCH, _ALL_LANES = 118, 34, 640  # pixels of a lane, and what all lanes should share
MOST_NAMED, STEPS_LETTERS = 24, 90  # records of a lane or plane with labels; letters of those of a window
_ROOMY_PITCH = 60  # from here on there is room for words below the bars
_NAME_LENGTH = 26
_BARE_TOP, _BARE_BOTTOM = 14, 48  # pixels around the plot of a picture whose title and legend stand beside it
_LONG, _LONG_BOTTOM = 800, 24  # pixels of lanes that are long, and below them
_LEAST_PITCH = 18  # of a lane in such a picture: that of its name


@dataclass(frozen=True)
class Plane(Generic[T_co]):
    """What a plane shows: the rows, and what its traces and labels are made of."""

    history: KeyRows[T_co]
    window: WindowKind
    rows: Longs
    colours: Palette
    time_axis: TimeAxis
    width: int = LEAST_WIDTH
    height: int | None = None  # of a picture whose title and legend stand beside it
    last: int | None = None  # how many of the key's newest records were asked for

    @property
    def trace(self) -> T_co:
        return self.history.trace

    @cached_property
    def axis(self) -> TimeAxis:
        return self.time_axis.over(self.x_range_ms[0]) if len(self.rows) else self.time_axis

    @property
    def top(self) -> float:
        return len(self.rows) - 1 + 0.9

    @cached_property
    def lives(self) -> list[Life]:
        return self.history.lives(self.rows)

    @cached_property
    def caps(self) -> list[Cap]:
        return self.history.caps(int(self.rows[0]), int(self.rows[-1]))

    def shown(self, records: Longs) -> Longs:
        """Which of `records`, given in rising order, are among the rows that are drawn."""
        near = records[slice(*np.searchsorted(records, [self.rows[0], self.rows[-1] + 1]))]
        return near[np.isin(near, self.rows)]

    def y(self, records: Longs) -> list[float]:
        return [float(place) for place in np.searchsorted(self.rows, records)]

    def y_of(self, record: int) -> float:
        return float(np.searchsorted(self.rows, record))

    @cached_property
    def drops(self) -> Longs:
        return self.shown(self.history.drops)

    @property
    def remarks(self) -> list[str]:
        """What is to be said of these windows beside the choices."""
        return []

    def cap_words(self, cap: Cap) -> str:
        """What a window held when it was closed."""
        return cap.size.words

    @abstractmethod
    def reached_ms(self) -> tuple[list[int], int]:
        """Event times that its windows reach, and the least room beside them."""

    @cached_property
    def late(self) -> Longs:
        """The records that have a tether."""
        return self.drops

    @cached_property
    def crowds(self) -> list[Longs]:
        """Records whose tethers are so many and so close that they are drawn as one area."""
        late = self.late
        parts = np.split(late, np.flatnonzero(np.diff(np.searchsorted(self.rows, late)) > _ROWS_APART) + 1)
        return [part for part in parts if len(part) > _MANY_TETHERS]

    @cached_property
    def alone(self) -> Longs:
        """The records that have a tether of their own."""
        return np.setdiff1d(self.late, np.concatenate([self.late[:0], *self.crowds]), assume_unique=True)

    @cached_property
    def bands(self) -> Outline:
        """For each crowd the area from its marks to the close line."""
        found = Outline()
        for crowd in self.crowds:
            y, close_ms = self.y(crowd), self.trace.close_time_ms[crowd].tolist()
            found.add([*self.at_ms(crowd).tolist(), *close_ms[::-1]], [*y, *y[::-1]])
        return found

    @cached_property
    def _rest(self) -> tuple[int, int, int]:
        """From where to where the picture reaches without drops, and what is too far back to be drawn to scale."""
        seen = np.maximum(self.trace.stream_time_ms[self.rows], 0)
        kept = np.setdiff1d(self.shown(self.history.timed), self.drops, assume_unique=True)
        times = [int(seen[0]), int(seen[-1]), *self.trace.batch.timestamp_ms[kept].tolist(), *self.reached_ms()[0]]
        low, high = min(times), max(times)
        is_empty = not len(kept) and not self.lives
        return low, high, -1 if is_empty else low - _FAR * (high - low)

    @cached_property
    def far(self) -> Longs:
        """The drops that stand at the edge."""
        return self.drops[self.trace.batch.timestamp_ms[self.drops] < self._rest[2]]

    def at_ms(self, records: Longs) -> Longs:
        """Where records stand: at their event times, or at the edge."""
        (low, _), room = self.x_range_ms, self._room_ms
        times = self.trace.batch.timestamp_ms[records]
        return np.where(np.isin(records, self.far), low + room // 2, times)

    @cached_property
    def _span_ms(self) -> tuple[int, int]:
        low, high, _ = self._rest
        near = self.trace.batch.timestamp_ms[np.setdiff1d(self.drops, self.far, assume_unique=True)]
        return int(near.min(initial=low)), high

    @cached_property
    def _room_ms(self) -> int:
        low, high = self._span_ms
        return max((high - low) // 30, self.reached_ms()[1], 1)

    @cached_property
    def x_range_ms(self) -> tuple[int, int]:
        """From the first to the last event time of the key and of its windows, with the stream time."""
        (low, high), room = self._span_ms, self._room_ms
        return low - room, high + room

    def frame(self, legend: Legend, heading: Heading) -> Frame:
        few = min(_SMALLEST_PLANE, 150 + 45 * len(self.rows))
        plot = min(max(few, len(self.rows) * _ROW_PIXELS), _LARGEST_PLANE)
        if self.height is not None:
            plot = self.height - _BARE_TOP - _BARE_BOTTOM
        y_range = (-0.8, self.top + _HEAD_PIXELS * (self.top + 0.8) / (plot - _HEAD_PIXELS))
        widest = max(text_size(f"{self.trace.batch.offset[row]:,}", 13)[0] for row in self.rows[[0, -1]])
        left = round(46 + widest)
        beside = heading.height, legend.height(self.width - left - 24)
        top, bottom = beside if self.height is None else (_BARE_TOP, _BARE_BOTTOM)
        return Frame(self.width, plot + top + bottom, left, 24, top, bottom, self.x_range_ms, y_range)

    def _stair(self, lag_ms: int) -> Outline:
        times, found = self.trace.stream_time_ms[self.rows], Outline()
        begun = int((times < 0).sum())  # rows before the first usable time: there is no stream time yet
        x_ms, y = stair(times[begun:] - lag_ms, self.top - begun)
        found.x_ms, found.y = x_ms, [each + begun for each in y]
        return found

    @cached_property
    def stream_line(self) -> Outline:
        return self._stair(0)

    @cached_property
    def close_line(self) -> Outline:
        """The close time at each row; nothing where no window is ever closed."""
        if not self.window.is_ever_closed:
            return Outline()
        return self._stair(self.trace.close_lag_ms)

    def tied(self, middles_ms: Iterable[tuple[int, int]]) -> tuple[Outline, Outline]:
        """For each of these records a line from its mark to a time, and one from there to the close line."""
        away, missing = Outline(), Outline()
        for row, middle_ms in middles_ms:
            y = (self.y_of(row),) * 2
            away.add((int(self.trace.batch.timestamp_ms[row]), middle_ms), y)
            missing.add((middle_ms, int(self.trace.close_time_ms[row])), y)
        return away, missing

    @cached_property
    def cap_lines(self) -> Outline:
        """A line over each window where it was closed, with a least width to be seen."""
        found = Outline()
        least = round(_CAP_HALF_PIXELS * (self.x_range_ms[1] - self.x_range_ms[0]) / (usual_width(self.width) - 100))
        for cap in self.caps:
            wider = max(least - (cap.end_ms - cap.start_ms) // 2, 0)
            found.add((cap.start_ms - wider, cap.end_ms + wider), (self.y_of(cap.at),) * 2)
        return found


def usual_pitch(lanes: int) -> int:
    """Pixels of each of so many lanes."""
    return min(max(_ALL_LANES // max(lanes, 1), _SMALLEST_PITCH), _LARGEST_PITCH)


@dataclass(frozen=True)
class Lanes(Generic[T_co]):
    """What the lanes show, and what their traces and words are made of."""

    board: Board[T_co]
    window: WindowKind
    colours: Palette
    time_axis: TimeAxis
    width: int = LEAST_WIDTH
    height: int | None = None  # of a picture whose title and legend stand beside it; more if the lanes need more

    @property
    def trace(self) -> T_co:
        return self.board.trace

    @cached_property
    def axis(self) -> TimeAxis:
        return self.time_axis.over(self.x_range_ms[0])

    @property
    def pitch(self) -> int:
        return usual_pitch(len(self.board.lanes)) if self.height is None else max(self.given_pitch, _LEAST_PITCH)

    @property
    def given_pitch(self) -> int:
        """Pixels of each lane in a picture of the height that is given."""
        assert self.height is not None
        room = (self.height - _BARE_TOP - _BARE_BOTTOM) // max(len(self.board.lanes), 1)
        return min(room, _LARGEST_PITCH)

    @property
    def bars(self) -> str:
        """What a lane is made of."""
        return f"a bar for each {self.window.noun}: filled once closed, outlined while open"

    @property
    def is_roomy(self) -> bool:
        return self.pitch >= _ROOMY_PITCH

    @cached_property
    def drops(self) -> Longs:
        """The records that count in no window, as they came too late."""
        return self.board.of(self.trace.decision == LATE)

    @property
    @abstractmethod
    def missing_ms(self) -> Mapping[int, int]:
        """How much more grace would have kept each drop that is shown."""

    @property
    @abstractmethod
    def above(self) -> float:
        """Where drops are, in lanes from the middle of one."""

    @cached_property
    def x_range_ms(self) -> tuple[int, int]:
        """The span of event time; a little more, and what is open and stream time, where it ends at the data's ends."""
        low, high = self.board.first_ms, self.board.last_ms
        first_ms, last_ms = self.open_reach_ms
        if not self.board.more_before:
            low = min([low, *first_ms.tolist()])
        if not self.board.more_after:
            high = max([high, *last_ms.tolist(), self.shown_clock_ms])
        room = max((high - low) // 28, 1)
        return low - room, high + room

    @property
    def open_reach_ms(self) -> tuple[Longs, Longs]:
        """From where to where records can still change an open window beyond its bounds."""
        return np.empty(0, np.int64), np.empty(0, np.int64)

    @abstractmethod
    def counted(self, board: Board) -> list[str]:
        """What the lanes of `board` hold, in words."""

    @property
    @abstractmethod
    def remarks(self) -> list[str]:
        """What is to be said of these windows beside the choices."""

    @abstractmethod
    def size_words(self, row: int) -> str:
        """What a window holds."""

    @cached_property
    def steps(self) -> dict[int, str]:
        """The labels of the records in each window that is shown whole, where windows lie apart and records are few."""
        trace, labels, rows = self.trace, self.trace.batch.labels, self.board.of(self.trace.accepted)
        if labels.column is None or do_overlap(self.window):
            return {}
        rows = rows[np.bincount(self.height_of(rows))[self.height_of(rows)] <= MOST_NAMED]
        rows = rows[np.argsort(trace.batch.timestamp_ms[rows], kind="stable")]
        window = trace.ended_in[trace.last_window[rows]]
        parts = ((each, rows[window == each].tolist()) for each in distinct(window).tolist())
        whole = (
            (each, labels.steps(part, [""] * len(part))) for each, part in parts if len(part) == trace.size_of(each)
        )
        return {each: escape_label(" · ".join(words for words, _ in steps), STEPS_LETTERS) for each, steps in whole}

    @cached_property
    def stream_time_ms(self) -> int | None:
        """That of the partition of all lanes, if it is one and has any."""
        partitions = {lane.partition for lane in self.board.lanes}
        now = int(self.trace.last_stream_time_ms[partitions.pop()]) if len(partitions) == 1 else -1
        return now if now >= 0 else None

    @property
    def shown_clock_ms(self) -> int:
        """Stream time, which is in the picture; 0 if there is none, or if a record that is far off has moved it."""
        now = self.stream_time_ms or 0
        return now if now <= self.trace.usual_ms[1] else 0

    @cached_property
    def open_windows(self) -> Longs:
        return self.board.windows[self.trace.closed_by[self.board.windows] < 0]

    def height_of(self, records: Longs) -> Longs:
        return len(self.board.lanes) - 1 - self.board.numbers(records)

    def frame(self, legend: Legend, heading: Heading) -> Frame:
        count = max(len(self.board.lanes), 1)
        left = round(22 + max((text_size(f"<b>{name}</b>", 13)[0] for name in self.names), default=40))
        below = legend.height(self.width - left - 24)
        top, bottom = (heading.height, below) if self.height is None else (_BARE_TOP, _BARE_BOTTOM)
        if self.is_long:
            top, bottom = top + below, _LONG_BOTTOM
        height = count * self.pitch + top + bottom
        return Frame(self.width, height, left, 24, top, bottom, self.x_range_ms, (-0.55, count - 0.45))

    @property
    def is_long(self) -> bool:
        """Whether axis and legend stand on top, as what is below is not on the screen with the first lanes."""
        return self.height is None and len(self.board.lanes) * self.pitch > _LONG

    @cached_property
    def names(self) -> list[str]:
        """What the lanes are called: the key of each, and its partition where the key is in several."""
        lanes, length = self.board.lanes, _NAME_LENGTH if self.width >= LEAST_WIDTH else _NAME_LENGTH // 2
        keys = list(dict.fromkeys(lane.key for lane in lanes))
        labels = dict(zip(keys, key_labels([self.trace.keys[key].as_py() for key in keys], length), strict=True))
        several = Counter(lane.key for lane in lanes)
        parts = self.trace.batch.partitions
        return [labels[each.key] + (f" · {parts[each.partition]}" if several[each.key] > 1 else "") for each in lanes]

    @property
    def clocks_ms(self) -> list[int | None]:
        """The close line and stream time at the end of the run; None for one that is not in view, or not known."""
        now, (low, high) = self.stream_time_ms, self.x_range_ms
        both = [None, None] if now is None else [now - self.trace.close_lag_ms, now]
        return [ms if ms is not None and low <= ms <= high else None for ms in both]

    def clocks_x(self, frame: Frame) -> list[float]:
        """Where the two lines stand, in pixels."""
        return [float(frame.x(ms)) for ms in self.clocks_ms if ms is not None]
