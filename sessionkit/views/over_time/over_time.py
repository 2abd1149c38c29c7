"""A run over time: how many windows are open, and how long final results take."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Generic

import numpy as np
import pyarrow as pa

from sessionkit.base.arrays import Longs
from sessionkit.base.calls import answers_calls
from sessionkit.base.durations import INT64_MAX, about
from sessionkit.base.text import plural
from sessionkit.records.frames import Frame
from sessionkit.trace.trace import Trace
from sessionkit.views.drawing.palettes import Figure, Theme
from sessionkit.views.html import Pictured
from sessionkit.views.tables import frame_of
from sessionkit.views.words import clock, in_zone
from sessionkit.windows.contract import WindowKind


@answers_calls("latency")
@dataclass(frozen=True, repr=False)
class Latency(Pictured, Generic[Frame]):
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
        closes = self.trace.closes
        return self.trace.stream_time_ms[closes.at] - closes.end_ms

    @property
    def least_ms(self) -> int:
        """The smallest delay that these windows allow."""
        lag_ms = int(self.windows.close_lag_ms)
        return lag_ms + 1 if self.windows.inclusive_end and lag_ms < INT64_MAX else lag_ms

    def table(self) -> Frame:
        """One row per final result: key, partition, bounds, closed_by (offset), stream_time, delay_ms, waited_ms.

        `waited_ms` is how much `delay_ms` exceeds the smallest possible delay: nothing moved stream time on sooner.
        """
        trace, closes = self.trace, self.trace.closes
        batch, columns = trace.batch, trace.window_columns
        found = {
            "key": trace.keys.take(pa.array(columns.key[closes.window])),
            "partition": batch.partitions[columns.partition[closes.window]],
            "window_start_ms": closes.start_ms,
            "window_end_ms": closes.end_ms,
            "closed_by": batch.offset[closes.at],
            "stream_time_ms": trace.stream_time_ms[closes.at],
            "delay_ms": self.delay_ms,
            "waited_ms": self.delay_ms - self.least_ms,
        }
        return frame_of(found, batch)

    def figure(self, *, theme: Theme | None = None) -> Figure:
        """The delays as a histogram, beside the smallest that is possible."""
        from sessionkit.views.over_time.figure import latency_figure

        return latency_figure(self, theme=theme)

    def words(self) -> list[str]:
        """The delays in a sentence, and what has no result yet."""
        open_count = OpenWindows(self.trace, self.windows).at_end
        noun = self.windows.noun
        verb, them = ("is", "it") if open_count == 1 else ("are", "them")
        left = f"{plural(open_count, noun)} {verb} still open: nothing has closed {them}."
        if not len(self.delay_ms):
            return [f"No {noun} became final.", *([left] if open_count else [])]
        half, most = int(np.median(self.delay_ms)), int(self.delay_ms.max())
        found = (
            f"{plural(len(self.delay_ms), 'result')} became final: half within {about(half)} of the {noun}'s "
            f"end, the last after {about(most)}; {about(self.least_ms)} is the least."
        )
        return [found, *([left] if open_count else [])]


@answers_calls("open_windows")
@dataclass(frozen=True, repr=False)
class OpenWindows(Pictured, Generic[Frame]):
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
        columns, change = self.trace.window_columns, self.trace.opened_count
        np.subtract.at(change, self.trace.closes.at, 1)
        carried = columns.closed_before[: columns.loaded_count] < 0
        return int(np.sum(carried)) + np.cumsum(change)

    @property
    def most(self) -> int:
        """The largest number at once."""
        return int(self.counts.max(initial=0))

    @property
    def at_end(self) -> int:
        """The number after the last record: windows that nothing has closed."""
        return int(self.counts[-1]) if len(self.counts) else 0

    def table(self) -> Frame:
        """One row per record: partition, offset, stream_time, open_count (in all partitions)."""
        batch, rows = self.trace.batch, np.flatnonzero(self.trace.is_record)
        found = {
            "partition": batch.partitions[batch.partition[rows]],
            "offset": batch.offset[rows],
            "stream_time_ms": self.trace.stream_time_ms[rows],
            "open_count": self.counts[rows],
        }
        return frame_of(found, batch)

    def figure(self, *, theme: Theme | None = None) -> Figure:
        """The number after each record, over stream time."""
        from sessionkit.views.over_time.figure import open_figure

        return open_figure(self, theme=theme)

    def words(self) -> list[str]:
        """The largest number and when it was reached, and the last, in a sentence."""
        noun = self.windows.noun
        if not self.most:
            return [f"No {noun} was ever open."]
        first = int(np.argmax(self.counts))
        when = clock(self.trace)(int(self.trace.stream_time_ms[first]))
        verb = "was" if self.most == 1 else "were"
        return [
            f"At most {plural(self.most, noun)} {verb} open at once, first at stream time {when}; "
            f"{self.at_end:,} at the end."
        ]

    def __repr__(self) -> str:
        return " ".join([*self.words(), *(in_zone(self.trace) if self.most else [])])
