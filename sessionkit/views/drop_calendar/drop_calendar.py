"""A calendar of drops: from which hours or days the records are that count in no window."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, NamedTuple

import numpy as np

from sessionkit.base.arrays import Flags, Longs, Rows, arrow_array, numpy_array
from sessionkit.base.calls import answers_calls
from sessionkit.base.decisions import BAD_TIME, REPLAYED
from sessionkit.base.text import escape_html, html_block, percent, plural
from sessionkit.records.frames import Frame
from sessionkit.records.time_statistics import usual_span
from sessionkit.trace.trace import Trace
from sessionkit.views.drawing.palettes import Figure, Theme
from sessionkit.views.drop_calendar.cells import MOST_MS, QUARTER, Calendar, calendar, usual_time, whole_percents
from sessionkit.views.html import picture_bundle
from sessionkit.windows.contract import WindowKind

Counts = tuple[Longs, Longs]

_LAST_DATE_MS = 253_000_000_000_000  # in the year 9987: a calendar goes on a little behind what it shows
_TIMES = {"start_ms": "start", "end_ms": "end"}
_MUCH_MORE = 1.5  # a share of which it is worth to speak beside that of the worst cell


class Quarters(NamedTuple):
    """The quarters of an hour that records are of, rising, with how many are, were dropped, and missed a window.

    Records without a time, or of one before 1970, are those of -1. Who was dropped missed a window, too.
    """

    start_ms: Longs
    records: Longs
    dropped: Longs
    missed: Longs

    def at(self, chosen: Flags | Rows) -> Quarters:
        return Quarters(*(column[chosen] for column in self))


def quarters_of(trace: Trace) -> Quarters:
    """The quarters of a run."""
    is_record = (trace.decision != REPLAYED) & trace.is_record
    decision, times_ms = trace.decision[is_record], trace.batch.timestamp_ms[is_record]
    place = np.where((decision != BAD_TIME) & (times_ms >= 0), times_ms // QUARTER * QUARTER, -1)
    coded = arrow_array(place).dictionary_encode()
    start_ms, number = numpy_array(coded.dictionary), numpy_array(coded.indices)
    dropped = ~trace.accepted[is_record]
    counted = (number, number[dropped], number[dropped | trace.late_for_some[is_record]])
    return Quarters(start_ms, *(np.bincount(each, minlength=len(start_ms)) for each in counted)).at(
        np.argsort(start_ms)
    )


@answers_calls("calendar")
@dataclass(frozen=True, repr=False)
class DropCalendar(Generic[Frame]):
    """From when the dropped records are: by hour and day, or by day and week where the data span two months or more.

    Records stand where their own time lies. With time and sliding windows the picture shows the records that missed a
    window, also those that other windows hold.
    In a notebook it shows its picture; `figure()` gives it.

    Example:
        >>> drops = waves.run(flights).drop_calendar()
        >>> drops.dropped_count, drops.missed_count, drops.record_count, drops.unit
        (955, 955, 28491, 'hour')
        >>> print(*drops.words(), sep="\\n")
        955 of 28,491 records (3.35%) were dropped.
        67% of the drops lie between 16:00 and 21:00, but only 31% of the records do.
        The worst hour is 2013-07-28 19:00 with 22 of 54 records.
        >>> list(drops.table().columns)
        ['start', 'end', 'records', 'dropped', 'share']
        >>> figure = drops.figure()
    """

    _all: Quarters
    timezone: str
    windows: WindowKind
    _frame: Callable[[Mapping[str, Any], Mapping[str, str]], Frame]  # columns, and which are times, as they are shown

    @property
    def record_count(self) -> int:
        """How many records there were."""
        return int(self._all.records.sum())

    @property
    def dropped_count(self) -> int:
        """How many of them were dropped: they count in no window."""
        return int(self._all.dropped.sum())

    @property
    def missed_count(self) -> int:
        """How many of them missed a window, or were dropped."""
        return int(self._all.missed.sum())

    @property
    def unit(self) -> str:
        """What a cell of the calendar is: "hour" or "day"; "" where nothing was dropped."""
        return self._cells.unit if self._cells else ""

    @cached_property
    def _cells(self) -> Calendar | None:
        """The calendar; None where no record with a time was dropped, or where no calendar has room for the times."""
        if self._span_ms is None or self._is_out_of_reach:
            return None
        return calendar(*self._span_ms, self.timezone)

    @cached_property
    def _counts(self) -> Counts:
        """How many records each cell has, and how many of them were dropped or missed a window."""
        return self._in_cells(self._timed.records), self._in_cells(self._timed.missed)

    def _in_cells(self, counts: Longs) -> Longs:
        if self._cells is None:
            return np.zeros(0, np.int64)
        cell, found = self._cells.cell_of(self._timed.start_ms), np.zeros(len(self._cells.names), np.int64)
        np.add.at(found, cell[cell >= 0], counts[cell >= 0])
        return found

    def table(self) -> Frame:
        """One row per cell with records: start, end, records, dropped, share; of time and sliding windows missed."""
        edges, (records, missed) = np.zeros(1, np.int64) if self._cells is None else self._cells.edges_ms, self._counts
        seen, drops = np.flatnonzero(records), self._in_cells(self._timed.dropped)
        found = {
            "start_ms": edges[:-1][seen],
            "end_ms": edges[1:][seen],
            "records": records[seen],
            "dropped": drops[seen],
            "share": drops[seen] / records[seen],
            **({"missed": missed[seen]} if self.windows.holds == "windows" else {}),
        }
        return self._frame(found, _TIMES)

    def figure(self, *, theme: Theme | None = None) -> Figure:
        """The calendar, coloured by the dropped records of each cell; a button colours it by their share."""
        from sessionkit.views.drop_calendar.figure import drop_calendar_figure

        return drop_calendar_figure(self._cells, self._counts, self.words(), self._verb, theme=theme)

    def words(self) -> list[str]:
        """How many records were dropped, when that usually happens, and where it was worst."""
        dropped, count = self.dropped_count, self.record_count
        if not count:
            return ["There are no records."]
        none = f"None of the {plural(count, 'record')} was dropped." if count > 1 else "The record was not dropped."
        verb = "was" if dropped == 1 else "were"
        some = f"{dropped:,} of {plural(count, 'record')} ({percent(dropped / count)}) {verb} dropped."
        said, partly = [some if dropped else none], self.missed_count - dropped
        if partly:
            others = f"{partly:,} {'other' if partly == 1 else 'others'}" if dropped else f"{partly:,} of them"
            said.append(f"{others} missed some windows, and {'counts' if partly == 1 else 'count'} in others.")
        return [*said, *self._usual(), *self._worst(), *self._left_out()]

    @property
    def _verb(self) -> str:
        return "dropped" if self.missed_count == self.dropped_count else "missed a window"

    def _usual(self) -> list[str]:
        """The hours or weekdays that most drops are of."""
        if self._span_ms is None or self._cells is None:
            return []
        low, high = self._span_ms
        shown = self._timed.at((self._timed.start_ms >= low) & (self._timed.start_ms <= high))
        found = usual_time(shown.start_ms, shown.records, shown.missed, self.timezone)
        if found is None:
            return []
        those = "drops" if self._verb == "dropped" else "records that missed a window"
        return [
            f"{whole_percents(found.drop_share)} of the {those} lie {found.words}, "
            f"but only {whole_percents(found.record_share)} of the records do."
        ]

    def _worst(self) -> list[str]:
        """The cell with most drops; and one with fewer, if a much larger share of it was dropped."""
        if self._cells is None:
            return []
        records, drops = self._counts
        share = drops / np.maximum(records, 1)
        most = int(np.lexsort((share, drops))[-1])
        if drops[most] < 2:
            return [f"No {self.unit} has more than one of them."] if self.missed_count > 1 else []
        names, several = self._cells.names, np.where(drops >= max(3, drops[most] // 20), share, 0)
        there = f"{drops[most]:,} of {plural(int(records[most]), 'record')}"
        with_them = f" with {there}" if self._verb == "dropped" else f": {there} missed a window"
        said = [f"The worst {self.unit} is {names[most]}{with_them}."]
        part = int(np.argmax(several))
        if several[part] >= _MUCH_MORE * share[most]:
            what = f"{drops[part]:,} of {plural(int(records[part]), 'record')}"
            said.append(f"The largest share is that of {names[part]}: {what}.")
        return said

    def _left_out(self) -> list[str]:
        without = int(self._all.missed[self._all.start_ms < 0].sum())
        has, is_ = ("has", "is") if without == 1 else ("have", "are")
        said = []
        if without:
            said.append(f"{plural(without, 'dropped record')} {has} no time, or one before 1970, and {is_} not shown.")
        if self._is_out_of_reach:
            said.append("There is no calendar of times that lie more than 50 years apart, or after the year 9987.")
        if self._cells is None:
            return said
        outside = self._timed.at(self._cells.cell_of(self._timed.start_ms) < 0)
        count, lost = int(outside.records.sum()), int(outside.missed.sum())
        if count:
            lies, is_ = ("lies", "is") if count == 1 else ("lie", "are")
            those = "of the dropped ones" if self._verb == "dropped" else "that missed a window"
            among = f", with {lost:,} {those}" if lost else ""
            said.append(f"{plural(count, 'record')} {lies} far from all others and {is_} not shown{among}.")
        return said

    @cached_property
    def _timed(self) -> Quarters:
        return self._all.at(self._all.start_ms >= 0)

    @cached_property
    def _span_ms(self) -> tuple[int, int] | None:
        """From when to when the calendar goes; None where no record with a time was dropped."""
        timed = self._timed
        placed = timed.at(timed.missed > 0)
        if not len(placed.start_ms):
            return None
        spans = [usual_span(timed.start_ms, timed.records), usual_span(placed.start_ms, placed.missed)]
        times = timed.start_ms  # without those far off
        times = times[(times >= min(spans)[0]) & (times <= max(last for _, last in spans))]
        return int(times[0]), int(times[-1])

    @property
    def _is_out_of_reach(self) -> bool:
        low, high = self._span_ms or (0, 0)
        return high > _LAST_DATE_MS or high - low > MOST_MS

    def __repr__(self) -> str:
        zone = [f"Times are in {self.timezone}."] if self._cells else []
        return " ".join([*self.words(), *zone])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        if self._cells is None:
            return {"text/html": html_block(f"<p>{escape_html(repr(self))}</p>"), "text/plain": repr(self)}
        return picture_bundle(self.figure(), repr(self))
