"""The part of a key's emissions that a picture shows: where its marks stand, the life of each answer, and the words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sessionkit.base.arrays import Longs
from sessionkit.base.durations import HOUR, MINUTE, about
from sessionkit.base.moments import cut_time
from sessionkit.base.text import escape_label, one_of, plural
from sessionkit.errors import InvalidArgument, UnknownRecord, problem, shorten
from sessionkit.views.drawing.grammar import Frame, Legend, checked_width
from sessionkit.views.drawing.measured_text import Heading, text_width
from sessionkit.views.drawing.palettes import Palette
from sessionkit.views.drawing.time_axis import TimeAxis, time_axis
from sessionkit.views.explain.life import closing_time_ms
from sessionkit.views.words import lower_first

if TYPE_CHECKING:
    from sessionkit.views.emissions.emissions import Emissions

MOST_LANES = 12
MOST_COLUMNS = 32  # some 25 pixels each: an answer and the one that it takes back stand side by side
MOST_MARKS = 120  # over stream time, of a picture that was not told how many windows to show
# from a span in ms on, so many letters of a time are told
_PRECISE_TO = ((2 * HOUR, len("2025-01-13 05:14")), (2 * MINUTE, len("2025-01-13 05:14:31")))
FAR = 3  # what closes later than so many times the shown span after now is drawn at the edge
COLUMN = 1_000  # a column of arrivals, in the units of its axis
_AFTER = "after this record (its offset; below it stream time)"
COLUMNS = TimeAxis(COLUMN, False, _AFTER, str)
LANE, LANE_WITH_SPANS, LEAST_HEIGHT = 44, 56, 132
BODY = 0.3  # half the height of a window's span
BESIDE = 10  # pixels
SMALL = 11
RIGHT = 26
NAMED = 2  # aggregations whose values stand beside a mark; the others are shown on hover


# A value that went downstream: its lane, the record that sent it, the one that took it back or replaced it (-1 if it
# stands at the end of what is shown), and whether it was taken back. Records are rows of the trace.
Answer = tuple[int, int, int, bool]


@dataclass(frozen=True)
class EmissionScene:
    """Some rows of the table: those of the windows that end last, of many records the last."""

    emissions: Emissions
    colours: Palette
    is_by_arrival: bool
    rows: Longs
    lanes: tuple[int, ...]  # by start; the first is on top
    records: Longs  # the column of each, where columns are by arrival
    first_at: int  # what was sent before this record is not shown
    last_at: int
    is_cut: bool  # there were more records than columns
    times: TimeAxis  # of stream time

    @cached_property
    def axis(self) -> TimeAxis:
        return COLUMNS if self.is_by_arrival else self.times.over(self.x_range_ms[0])

    def y(self, lane: int) -> int:
        return len(self.lanes) - 1 - self.lanes.index(lane)

    def marked(self, what: str) -> list[tuple[int, int]]:
        """(row, lane) of those of one kind."""
        found = self.emissions
        return [(row, int(found.lane[row])) for row in self.rows.tolist() if found._what[row] == what]

    def x(self, at: Any) -> Any:
        """Where records stand: columns, or stream times."""
        if self.is_by_arrival:
            return np.searchsorted(self.records, at) * COLUMN
        return self.emissions.trace.stream_time_ms[at]

    @property
    def now_x(self) -> int:
        """Where the end of the run stands: a column of its own, or stream time at the end."""
        return len(self.records) * COLUMN if self.is_by_arrival else self.emissions._now_ms

    def pending_x(self, lane: int) -> int:
        """Where the mark of a pending window stands: at the stream time that closes it, if that is not too far."""
        return self.now_x if self.is_by_arrival else min(self._closes_at_ms(lane), self._furthest)

    def _closes_beyond(self, lane: int) -> bool:
        """True if a pending window closes farther to the right than the picture goes."""
        return not self.is_by_arrival and self._closes_at_ms(lane) > self._furthest + 1

    def _closes_at_ms(self, lane: int) -> int:
        return closing_time_ms(self.emissions.windows, self.emissions.lanes[lane].end_ms)

    @cached_property
    def _low(self) -> int:
        return min(*(self.emissions.lanes[lane].start_ms for lane in self.lanes), *self.x(self.records).tolist(), 2**63)

    @cached_property
    def _furthest(self) -> int:
        return self.now_x + FAR * max(self.now_x - self._low, self.emissions.windows.reach_ms, 1)

    @cached_property
    def is_pending(self) -> bool:
        """True if a pending window is shown."""
        return bool(self.marked("pending"))

    @cached_property
    def x_range_ms(self) -> tuple[int, int]:
        """From where to where the picture goes."""
        if not self.lanes:
            return 0, 1
        if self.is_by_arrival:
            return round(-0.7 * COLUMN), round((len(self.records) - 0.3 + self.is_pending) * COLUMN)
        ends = [self.pending_x(lane) for _, lane in self.marked("pending")]
        high = max([*self.x(self.records).tolist(), *ends, *([self.now_x] if ends else [])])
        pad = round(max(0.03 * (high - self._low), 1, np.spacing(float(high))))  # far from 1970 there is no single ms
        return self._low - pad, high + pad

    @cached_property
    def answers(self) -> list[Answer]:
        """The life of each answer that was sent or ended within the part."""
        found, table = [], self.emissions
        bounds = [np.asarray(table.columns[name]).tolist() for name in ("window_start_ms", "window_end_ms")]
        standing: dict[tuple[int, int, int], int] = {}  # a cache may send the new bounds before the old go
        for row, what in enumerate(table._what):
            at, lane = int(table.at[row]), int(table.lane[row])
            if what not in ("update", "tombstone") or lane not in self.lanes or at > self.last_at:
                continue
            name = lane, bounds[0][row], bounds[1][row]
            begin = standing.pop(name, None)
            if begin is not None and at >= self.first_at:
                found.append((lane, begin, at, what == "tombstone"))
            if what == "update":
                standing[name] = at
        return [*found, *((lane, at, -1, False) for (lane, _, _), at in standing.items())]

    @cached_property
    def answered(self) -> set[tuple[int, int]]:
        """(lane, record) of each update shown."""
        return {(lane, int(self.emissions.at[row])) for row, lane in self.marked("update")}

    def closed_at(self, lane: int) -> list[int]:
        """The records shown at which the window became final."""
        return [at for at in self.emissions.lanes[lane].closed_at if self.first_at <= at <= self.last_at]

    def mark_x(self, row: int) -> int:
        """Where the mark of a row stands: by arrival a retraction a little before the answer that took its place."""
        lane, at, what = int(self.emissions.lane[row]), int(self.emissions.at[row]), self.emissions._what[row]
        if what == "pending":
            return self.pending_x(lane)
        is_beside = what == "tombstone" and self.is_by_arrival and (lane, at) in self.answered
        return int(self.x(at)) - (round(BESIDE * self.frame.usual.ms_per_pixel) if is_beside else 0)

    @cached_property
    def _clock(self) -> tuple[Callable[[int], str], str]:
        lanes = [self.emissions.lanes[lane] for lane in self.lanes]
        times = {ms for lane in lanes for ms in (lane.start_ms, lane.end_ms)}
        times.update(self.emissions.trace.stream_time_ms[self.records].tolist())
        if self.is_pending:
            times.add(self.emissions._now_ms)
        show = self.times.show
        if not self.times.is_date or not times:
            return show, ""
        span = max(times) - min(times)
        letters = next((letters for least_ms, letters in _PRECISE_TO if span >= least_ms), None)
        said = {ms: cut_time(show(ms), letters) for ms in times}
        if letters and len({(said[lane.start_ms], said[lane.end_ms]) for lane in lanes}) < len(lanes):
            letters = None  # what is told apart by its seconds only is told with them
        some = next(iter(said.values()))
        common = next((some[:end] for end in (10, 4) if all(each.startswith(some[:end]) for each in said.values())), "")
        return (lambda ms: cut_time(show(ms), letters).removeprefix(common).lstrip(" -")), common

    @property
    def say(self) -> Callable[[int], str]:
        """How the times of the picture are said: without the date that they have in common."""
        return self._clock[0]

    @cached_property
    def labels(self) -> dict[int, str]:
        return {lane: self._bounds(*self.emissions.lanes[lane][:2]) for lane in self.lanes}

    def _bounds(self, start_ms: int, end_ms: int) -> str:
        start, end = self.say(start_ms), self.say(end_ms)
        if self.times.is_date and " " in start and start.split(" ")[0] == end.split(" ")[0]:
            end = end.split(" ")[1]
        return start if start_ms == end_ms else f"{start} – {end}"

    @cached_property
    def waits(self) -> dict[int, str]:
        """What each pending window waits for, in two lines; escaped, as there is nothing in it but times."""
        return {lane: self._wait(lane) for _, lane in self.marked("pending")}

    def _wait(self, lane: int) -> str:
        if not self.emissions.windows.is_ever_closed:
            return "never closes"
        word, moment_ms, wait_ms = self.emissions._closing(lane)
        arrow = "→ " if self._closes_beyond(lane) else ""
        more = f"{about(wait_ms)} to go" if wait_ms else "any later time closes it"
        return f"{arrow}closes {word} {self.say(moment_ms)}<br>{more}"

    @cached_property
    def frame(self) -> Frame:
        """The frame, without room for heading and legend."""
        left = 40 + max([text_width(label, 12) for label in self.labels.values()], default=40)
        height = max((LANE if self.is_by_arrival else LANE_WITH_SPANS) * len(self.lanes), LEAST_HEIGHT)
        lines = [line for text in self.waits.values() for line in text.split("<br>")]
        right = RIGHT + int(max((text_width(line, SMALL) for line in lines), default=0))
        return Frame(checked_width(), height, int(left), right, 0, 0, self.x_range_ms, (-0.7, len(self.lanes) - 0.3))

    def frame_with(self, heading: Heading, legend: Legend) -> Frame:
        top, bottom = heading.height + 14, legend.height(self.frame.plot_width) + 14
        return replace(self.frame, height=self.frame.height + top + bottom, top=top, bottom=bottom)

    @cached_property
    def heading(self) -> Heading:
        notes = [escape_label(line, 400) for line in self._said()]
        return Heading.of(escape_label(self.emissions._title, 160), [], notes, checked_width())

    def _said(self) -> list[str]:
        found = self.emissions
        said = [self._clock[1]] if self._clock[1] else []
        said += [lower_first(line.removesuffix(".")) for line in found.words(self.say)]
        if len(self.rows):
            named = " · ".join(shorten(name, 30) for name in found.names[:NAMED])
            said.append(f"above a mark: {named}{', the others on hover' if len(found.names) > NAMED else ''}")
        hidden = len(self.rows) - len({(found.lane[r], found._what[r], self.mark_x(r)) for r in self.rows.tolist()})
        if hidden:
            are = plural(hidden, "mark is", "marks are")
            said.append(f"{are} hidden by others of the same moment: over='arrival' separates them")
        if any(self._closes_beyond(lane) for lane in self.waits):
            said.append("→ closes after the end of the chart")
        if len(self.rows) < len(found.at):
            windows = f"{len(self.lanes):,} of {plural(len(found.lanes), found.windows.noun)}, those that end last"
            cut = ", of many updates the last" if self.is_cut else ""
            rows = f"{len(self.rows):,} of {plural(len(found.at), 'row')} of .table()"
            said.append(f"shown: {windows} ({rows}{cut}); most=, from_offset=, until_offset= show others")
        return said

    def values(self, row: int, names: Sequence[str], length: int) -> list[str]:
        """The values of a row, as short text, escaped."""
        return [escape_label(_short(self.emissions.columns[name][row], length)) for name in names]


def _short(value: Any, length: int) -> str:
    value = value.as_py() if hasattr(value, "as_py") else value
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.2f}"
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return shorten(f"{value:,}" if is_number else value, length)


def choose(
    emissions: Emissions, colours: Palette, over: str | None, first: int | None, last: int | None, most: int | None
) -> EmissionScene:
    """The rows between two offsets; of these the windows that end last, and by arrival the last records."""
    over = over or ("stream_time" if emissions.strategy == "on_window_close" else "arrival")
    one_of("over", over, ("arrival", "stream_time"))
    if most is not None and most < 1:
        raise InvalidArgument(problem("most must be 1 or more windows", most, "leave it out for the default"))
    first_at, last_at = _between(emissions, first, last)
    rows = np.flatnonzero((emissions.at >= first_at) & (emissions.at <= last_at))
    closed = [
        (number, at)
        for number, lane in enumerate(emissions.lanes)
        for at in lane.closed_at
        if first_at <= at <= last_at and (lane.is_silent or number in emissions.lane[rows])
    ]
    lanes = {*emissions.lane[rows].tolist(), *(number for number, _ in closed)}
    if not lanes and (first is not None or last is not None):
        want = "leave out from_offset= and until_offset= to see the newest of all"
        raise UnknownRecord(problem("nothing went downstream between these offsets", f"{first} to {last}", want))
    kept = sorted(lanes, key=lambda each: (emissions.lanes[each].end_ms, each))[-(most or MOST_LANES) :]
    if over == "stream_time" and most is None:
        sizes = np.bincount(emissions.lane[rows], minlength=len(emissions.lanes))[kept]
        kept = kept[min(int((np.cumsum(sizes[::-1])[::-1] > MOST_MARKS).sum()), len(kept) - 1) if kept else 0 :]
    rows = rows[np.isin(emissions.lane[rows], kept)]
    is_sent = np.array([emissions._what[row] != "pending" for row in rows.tolist()], np.bool_)
    records = np.unique([*emissions.at[rows[is_sent]].tolist(), *(at for number, at in closed if number in kept)])
    records = records.astype(np.int64)
    is_cut = over == "arrival" and len(records) > MOST_COLUMNS
    if is_cut:
        records = records[-MOST_COLUMNS:]
        first_at = int(records[0])
        rows = rows[(emissions.at[rows] >= first_at) | ~is_sent]
        closed = [each for each in closed if each[1] >= first_at]
    seen = {*emissions.lane[rows].tolist(), *(number for number, _ in closed)} & set(kept)
    axis = time_axis(emissions.trace, emissions.windows, None)
    axis = replace(axis, title=axis.title.replace("event time", "stream time"))
    lanes_shown, by_arrival = tuple(sorted(seen)), over == "arrival"
    return EmissionScene(emissions, colours, by_arrival, rows, lanes_shown, records, first_at, last_at, is_cut, axis)


def _between(emissions: Emissions, first: int | None, last: int | None) -> tuple[int, int]:
    """The rows of the trace between two offsets of the partition; all if none is given."""
    batch = emissions.trace.batch
    mine = np.flatnonzero(batch.partition == emissions.code[1])
    offsets = batch.offset[mine]
    low = 0 if first is None else int(np.searchsorted(offsets, first))
    high = len(mine) if last is None else int(np.searchsorted(offsets, last, side="right"))
    if low >= high:
        return (-1, -1) if not len(mine) else (0, -2)
    return int(mine[low]), int(mine[high - 1])
