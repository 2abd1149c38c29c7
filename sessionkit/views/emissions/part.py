"""The part of a key's emissions that a picture shows, where its marks stand, and the life of each answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sessionkit.base.durations import about
from sessionkit.base.moments import cut_time
from sessionkit.base.text import plural
from sessionkit.errors import InvalidArgument, UnknownRecord, problem
from sessionkit.views.drawing.time_axis import TimeAxis, time_axis

if TYPE_CHECKING:
    from sessionkit.views.emissions.emissions import Emissions

Rows = npt.NDArray[np.int64]
MOST_LANES = 12
MOST_COLUMNS = 32  # some 25 pixels each: an answer and the one that it takes back stand side by side
MOST_MARKS = 120  # over stream time, of a picture that was not told how many windows to show
# from a span in ms on, so many letters of a time are told
_PRECISE_TO = ((2 * 3_600_000, len("2025-01-13 05:14")), (2 * 60_000, len("2025-01-13 05:14:31")))
FAR = 3  # what closes later than so many times the shown span after now is drawn at the edge


class Answer(NamedTuple):
    """A value that went downstream, from the record that sent it to the one that took it back or replaced it."""

    row: int  # of the table; -1: it was sent before the part that is shown
    lane: int
    begin: int  # row of the trace
    end: int  # row of the trace; -1: it stands at the end of what is shown
    is_retracted: bool


@dataclass(frozen=True)
class Part:
    """Some rows of the table: those of the windows that end last, of many records the last."""

    emissions: Emissions
    over: str
    rows: Rows
    lanes: tuple[int, ...]  # by start; the first is on top
    records: Rows  # the column of each, where columns are by arrival
    first_at: int  # what was sent before this record is not shown
    last_at: int
    is_cut: bool  # there were more records than columns
    axis: TimeAxis

    @property
    def is_by_arrival(self) -> bool:
        return self.over == "arrival"

    def y(self, lane: int) -> int:
        """The height of a lane."""
        return len(self.lanes) - 1 - self.lanes.index(lane)

    def marked(self, what: str) -> Rows:
        """The rows of one kind."""
        mine: Rows = self.rows[[self.emissions.what[row] == what for row in self.rows.tolist()]]
        return mine

    def x(self, at: Any) -> Any:
        """Where records stand: columns, or stream times."""
        if self.is_by_arrival:
            return np.searchsorted(self.records, at).astype(np.float64)
        return self.emissions.trace.stream_time_ms[at].astype(np.float64)

    @property
    def now_x(self) -> float:
        """Where the end of the run stands: a column of its own, or stream time at the end."""
        return float(len(self.records)) if self.is_by_arrival else float(self.emissions.now_ms)

    def pending_x(self, lane: int) -> float:
        """Where the mark of a pending window stands: at the stream time that closes it, if that is not too far."""
        if self.is_by_arrival:
            return self.now_x
        return float(min(self.emissions.closes_at_ms(self.emissions.lanes[lane]), self._furthest))

    def closes_beyond(self, lane: int) -> bool:
        """True if a pending window closes farther to the right than the picture goes."""
        return not self.is_by_arrival and self.emissions.closes_at_ms(self.emissions.lanes[lane]) > self._furthest + 1

    @cached_property
    def _low(self) -> float:
        starts = [self.emissions.lanes[lane].start_ms for lane in self.lanes]
        return float(min([*starts, *self.x(self.records).tolist()]))

    @cached_property
    def _furthest(self) -> float:
        return self.now_x + FAR * max(self.now_x - self._low, self.emissions.windows.reach_ms, 1)

    @cached_property
    def is_pending(self) -> bool:
        """True if a pending window is shown."""
        return bool(len(self.marked("pending")))

    @cached_property
    def span(self) -> tuple[float, float]:
        """From where to where the picture goes."""
        if self.is_by_arrival:
            return -0.7, len(self.records) - 0.3 + self.is_pending
        ends = self.x(self.records).tolist()
        ends += [self.pending_x(int(self.emissions.lane[row])) for row in self.marked("pending")]
        low, high = self._low, max([*ends, *([self.now_x] if self.is_pending else [])])
        pad = max(0.03 * (high - low), 1.0, float(np.spacing(high)))  # far from 1970 a float has no single ms
        return low - pad, high + pad

    @cached_property
    def answers(self) -> list[Answer]:
        """The life of each answer that was sent or ended within the part."""
        found: list[Answer] = []
        shown, table = set(self.rows.tolist()), self.emissions
        bounds = [np.asarray(table.columns[name]).tolist() for name in ("window_start_ms", "window_end_ms")]
        standing: dict[tuple[int, int, int], tuple[int, int]] = {}  # a cache may send the new bounds before the old go
        for row, what in enumerate(table.what):
            at, lane = int(table.at[row]), int(table.lane[row])
            if what not in ("update", "tombstone") or lane not in self.lanes or at > self.last_at:
                continue
            name = lane, bounds[0][row], bounds[1][row]
            if name in standing:
                sent, begin = standing.pop(name)
                if row in shown:
                    found.append(Answer(sent if sent in shown else -1, lane, begin, at, what == "tombstone"))
            if what == "update":
                standing[name] = (row, at)
        found += [Answer(row if row in shown else -1, name[0], at, -1, False) for name, (row, at) in standing.items()]
        return found

    @cached_property
    def answered(self) -> set[tuple[int, int]]:
        """(lane, record) of each update shown."""
        rows = self.marked("update").tolist()
        return {(int(self.emissions.lane[row]), int(self.emissions.at[row])) for row in rows}

    def closed_at(self, lane: int) -> list[int]:
        """The records shown at which the window became final."""
        return [at for at in self.emissions.lanes[lane].closed_at if self.first_at <= at <= self.last_at]


def choose(emissions: Emissions, over: str | None, first: int | None, last: int | None, most: int | None) -> Part:
    """The rows between two offsets; of these the windows that end last, and by arrival the last records.

    Raises:
        UnknownRecord: nothing went out between these offsets.
        InvalidArgument: no such axis, or not one window is to be shown.
    """
    over = over or ("stream_time" if emissions.strategy == "on_window_close" else "arrival")
    if over not in ("arrival", "stream_time"):
        raise InvalidArgument(problem("over must be a known axis", repr(over), '"arrival" or "stream_time"'))
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
        want = "leave out first= and last= to see the last of all"
        raise UnknownRecord(problem("nothing went downstream between these offsets", f"{first} to {last}", want))
    kept = sorted(lanes, key=lambda each: (emissions.lanes[each].end_ms, each))[-(most or MOST_LANES) :]
    if over == "stream_time" and most is None:
        sizes = np.bincount(emissions.lane[rows], minlength=len(emissions.lanes))[kept]
        kept = kept[min(int((np.cumsum(sizes[::-1])[::-1] > MOST_MARKS).sum()), len(kept) - 1) if kept else 0 :]
    rows = rows[np.isin(emissions.lane[rows], kept)]
    is_sent = np.array([emissions.what[row] != "pending" for row in rows.tolist()], np.bool_)
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
    axis = dataclasses.replace(axis, title=axis.title.replace("event time", "stream time"))
    part = Part(emissions, over, rows, tuple(sorted(seen)), records, first_at, last_at, is_cut, axis)
    return dataclasses.replace(part, axis=axis.over(round(part.span[0]))) if seen else part


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


def short_clock(emissions: Emissions, part: Part) -> tuple[Callable[[int], str], str]:
    """(how the times of the picture are said, the date that they have in common and leave out)."""
    lanes = [emissions.lanes[lane] for lane in part.lanes]
    times = {ms for lane in lanes for ms in (lane.start_ms, lane.end_ms)}
    if len(part.records):
        times.update(emissions.trace.stream_time_ms[part.records].tolist())
    if part.is_pending:
        times.add(emissions.now_ms)
    if not part.axis.is_date or not times:
        return part.axis.show, ""
    span = max(times) - min(times)
    letters = next((letters for least_ms, letters in _PRECISE_TO if span >= least_ms), None)
    said = {ms: cut_time(part.axis.show(ms), letters) for ms in times}
    if letters and len({(said[lane.start_ms], said[lane.end_ms]) for lane in lanes}) < len(lanes):
        letters = None  # what is told apart by its seconds only is told with them
    common = next(
        (each[:end] for end in (10, 4) for each in said.values() if _all_begin(said.values(), each[:end])), ""
    )
    return (lambda ms: cut_time(part.axis.show(ms), letters).removeprefix(common).lstrip(" -")), common


def _all_begin(said: Iterable[str], beginning: str) -> bool:
    return all(each.startswith(beginning) for each in said)


def left_out(part: Part) -> list[str]:
    """What of the table the picture does not show."""
    emissions, noun = part.emissions, part.emissions.windows.noun
    if len(part.rows) == len(emissions.at):
        return []
    windows = f"{len(part.lanes):,} of {plural(len(emissions.lanes), noun)}, those that end last"
    cut = ", of many updates the last" if part.is_cut else ""
    rows = f"{len(part.rows):,} of {plural(len(emissions.at), 'row')} of .table()"
    return [f"shown: {windows} ({rows}{cut}); most=, first=, last= show others"]


def wait_in_words(part: Part, lane: int, say: Callable[[int], str]) -> str:
    """What a pending window waits for, in two lines; escaped, as there is nothing in it but times."""
    emissions = part.emissions
    if not emissions.windows.is_ever_closed:
        return "never closes"
    closes_at = emissions.closes_at_ms(emissions.lanes[lane])
    word, moment_ms, wait_ms = emissions.closing(closes_at)
    arrow = "→ " if part.closes_beyond(lane) else ""
    more = f"{about(wait_ms)} to go" if wait_ms else "any later time closes it"
    return f"{arrow}closes {word} {say(moment_ms)}<br>{more}"
