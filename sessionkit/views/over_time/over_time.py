"""A run over time: how many windows are open, and how long final results take."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, NamedTuple

import numpy as np
import pyarrow as pa

from sessionkit.base.arrays import Floats, Longs
from sessionkit.base.calls import answers_calls
from sessionkit.base.durations import INT64_MAX, about
from sessionkit.base.text import plural
from sessionkit.records.frames import Frame
from sessionkit.trace.trace import Trace
from sessionkit.views.drawing.palettes import Figure, Theme
from sessionkit.views.html import Pictured
from sessionkit.views.tables import frame_of
from sessionkit.views.words import Said
from sessionkit.windows.contract import WindowKind

MOST_POINTS = 4_000  # of a line: more than the picture has pixels
STRETCHES = 150  # of a picture of more records: each a band from the fewest to the most


class Waits(NamedTuple):
    """How long results took to become final: each length that there is, rising, and how many results took it."""

    ms: Longs
    counts: Longs

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    def at(self, place: int) -> int:
        """The wait at this place among all of them, from the shortest."""
        return int(self.ms[np.searchsorted(np.cumsum(self.counts), place, side="right")])

    @property
    def half_ms(self) -> int:
        """The one in the middle, or what is between the two."""
        return (self.at((self.total - 1) // 2) + self.at(self.total // 2)) // 2


class LatencyInWords(Pictured):
    """What is said and drawn of how long after its end each window became final."""

    windows: WindowKind

    @property
    @abstractmethod
    def _waits(self) -> Waits:
        """The delays of all results."""

    @property
    @abstractmethod
    def _open_count(self) -> int:
        """How many windows nothing has closed."""

    @property
    def least_ms(self) -> int:
        """The smallest delay that these windows allow."""
        return least_delay_ms(self.windows)

    def figure(self, *, theme: Theme | None = None) -> Figure:
        """The delays as a histogram, beside the smallest that is possible."""
        from sessionkit.views.over_time.figure import latency_figure

        return latency_figure(self, theme=theme)

    def words(self) -> list[str]:
        """The delays in a sentence, and what has no result yet."""
        open_count, waits = self._open_count, self._waits
        noun = self.windows.noun
        verb, them = ("is", "it") if open_count == 1 else ("are", "them")
        left = f"{plural(open_count, noun)} {verb} still open: nothing has closed {them}."
        if not waits.total:
            return [f"No {noun} became final.", *([left] if open_count else [])]
        found = (
            f"{plural(waits.total, 'result')} became final: half within {about(waits.half_ms)} of the {noun}'s "
            f"end, the last after {about(int(waits.ms[-1]))}; {about(self.least_ms)} is the least."
        )
        return [found, *([left] if open_count else [])]


@answers_calls("latency")
@dataclass(frozen=True, repr=False)
class Latency(LatencyInWords, Generic[Frame]):
    """How long after its end, in stream time, each window became final.

    Example:
        >>> latency = waves.run(flights).latency()
        >>> int(latency.delay_ms.min()) >= waves.windows.close_lag_ms
        True
        >>> print(latency.words()[0])
        4,375 results became final: half within 1 h 35 min of the session's end, the last after ...
        >>> latency.least_ms, len(latency.table())
        (5400001, 4375)
        >>> figure = latency.figure()
    """

    trace: Trace
    windows: WindowKind

    @cached_property
    def delay_ms(self) -> Longs:
        """Of each final result, from the window's end to the stream time of the record that closed it."""
        return _delays_ms(self.trace)

    @cached_property
    def _waits(self) -> Waits:
        return Waits(*np.unique(self.delay_ms, return_counts=True))

    @property
    def _open_count(self) -> int:
        return OpenWindows(self.trace, self.windows).at_end

    def table(self) -> Frame:
        """One row per final result: key, partition, bounds, closed_by (offset), stream_time, delay_ms, waited_ms.

        `waited_ms` is how much `delay_ms` exceeds the smallest possible delay: nothing moved stream time on sooner.
        """
        return frame_of(final_rows(self.trace, self.windows), self.trace.batch)


def least_delay_ms(windows: WindowKind) -> int:
    """The smallest delay that these windows allow."""
    lag_ms = int(windows.close_lag_ms)
    return lag_ms + 1 if windows.inclusive_end and lag_ms < INT64_MAX else lag_ms


def _delays_ms(trace: Trace) -> Longs:
    """Of each final result, from the window's end to the stream time of the record that closed it."""
    return trace.stream_time_ms[trace.closes.at] - trace.closes.end_ms


def final_rows(trace: Trace, windows: WindowKind) -> pa.Table:
    """One row per final result: which it is, what closed it, and how long that took."""
    closes, batch, columns = trace.closes, trace.batch, trace.window_columns
    delay_ms = _delays_ms(trace)
    return pa.table(
        {
            "key": trace.keys.take(pa.array(columns.key[closes.window])),
            "partition": batch.partitions[columns.partition[closes.window]],
            "window_start_ms": closes.start_ms,
            "window_end_ms": closes.end_ms,
            "closed_by": batch.offset[closes.at],
            "stream_time_ms": trace.stream_time_ms[closes.at],
            "delay_ms": delay_ms,
            "waited_ms": delay_ms - least_delay_ms(windows),
        }
    )


class Course(NamedTuple):
    """The number of open windows over stream time, in order of arrival: of each record, or of stretches of time."""

    time_ms: Longs
    fewest: Longs
    most: Longs
    usual: Floats
    offset: Longs | None  # of each record; None for stretches


class OpenInWords(Pictured):
    """What is said and drawn of how many windows are open."""

    windows: WindowKind

    @property
    @abstractmethod
    def most(self) -> int:
        """The largest number at once."""

    @property
    @abstractmethod
    def at_end(self) -> int:
        """The number after the last record: windows that nothing has closed."""

    @property
    @abstractmethod
    def _first_ms(self) -> int:
        """The stream time at which the largest number was first reached."""

    @property
    @abstractmethod
    def _said(self) -> Said:
        """How times are said."""

    @property
    @abstractmethod
    def _partition_count(self) -> int:
        """How many partitions there are."""

    @abstractmethod
    def _course(self) -> Course:
        """What the picture shows."""

    _where, _where_all = "", ""  # the largest number was reached, and which windows the last one counts
    _note = "several partitions: each has a stream time of its own, so the line goes back and forth"

    def figure(self, *, theme: Theme | None = None) -> Figure:
        """The number after each record, over stream time."""
        from sessionkit.views.over_time.figure import open_figure

        return open_figure(self, theme=theme)

    def words(self) -> list[str]:
        """The largest number and when it was reached, and the last, in a sentence."""
        noun = self.windows.noun
        if not self.most:
            return [f"No {noun} was ever open."]
        verb = "was" if self.most == 1 else "were"
        return [
            f"At most {plural(self.most, noun)} {verb} open at once{self._where}, first at stream time "
            f"{self._said.at(self._first_ms)}; {self.at_end:,}{self._where_all} at the end."
        ]

    def __repr__(self) -> str:
        return " ".join([*self.words(), *(self._said.in_zone if self.most else [])])


@answers_calls("open_windows")
@dataclass(frozen=True, repr=False)
class OpenWindows(OpenInWords, Generic[Frame]):
    """How many windows are open after each record: what a store has to hold.

    In a notebook it shows its picture; `figure()` gives it.

    Example:
        >>> held = waves.run(flights).open_windows()
        >>> held.most, held.at_end
        (31, 7)
        >>> print(held.words()[0])
        At most 31 sessions were open at once, first at stream time 2013-07-02 10:30:00; 7 at the end.
        >>> int(held.counts.max()) == held.most, len(held.table())
        (True, 28491)
        >>> figure = held.figure()
    """

    trace: Trace
    windows: WindowKind

    @cached_property
    def counts(self) -> Longs:
        """The number after each record."""
        columns = self.trace.window_columns
        carried = columns.closed_before[: columns.loaded_count] < 0
        return int(np.sum(carried)) + opened_so_far(self.trace)

    @property
    def most(self) -> int:
        """The largest number at once."""
        return int(self.counts.max(initial=0))

    @property
    def at_end(self) -> int:
        """The number after the last record: windows that nothing has closed."""
        return int(self.counts[-1]) if len(self.counts) else 0

    @property
    def _first_ms(self) -> int:
        return int(self.trace.stream_time_ms[int(np.argmax(self.counts))])

    @property
    def _said(self) -> Said:
        return Said.of(self.trace)

    @property
    def _partition_count(self) -> int:
        return len(self.trace.batch.partitions)

    def table(self) -> Frame:
        """One row per record: partition, offset, stream_time, open_count (in all partitions)."""
        return frame_of(open_rows(self.trace, self.counts), self.trace.batch)

    def _course(self) -> Course:
        times, counts = self.trace.stream_time_ms, self.counts
        if len(counts) <= MOST_POINTS:
            return Course(times, counts, counts, counts.astype(np.float64), self.trace.batch.offset)
        first, newest = int(times.min()), int(times.max())
        stretch = np.minimum((times - first) * STRETCHES // max(newest - first, 1), STRETCHES - 1)
        order = np.argsort(stretch, kind="stable")
        starts = np.flatnonzero(np.diff(stretch[order], prepend=-1))
        held = counts[order]
        usual = np.array([np.median(part) for part in np.split(held, starts[1:])])
        low, high = np.minimum.reduceat(held, starts), np.maximum.reduceat(held, starts)
        return Course(times[order][starts], low, high, usual, None)


def opened_so_far(trace: Trace) -> Longs:
    """After each record how many windows more are open than before the first one."""
    change = trace.opened_count
    np.subtract.at(change, trace.closes.at, 1)
    return np.cumsum(change)


def open_rows(trace: Trace, counts: Longs) -> pa.Table:
    """One row per record: where it is, stream time, and how many windows are open."""
    batch, rows = trace.batch, np.flatnonzero(trace.is_record)
    return pa.table(
        {
            "partition": batch.partitions[batch.partition[rows]],
            "offset": batch.offset[rows],
            "stream_time_ms": trace.stream_time_ms[rows],
            "open_count": counts[rows],
        }
    )
