"""A run over time: how many windows are open, and how long final results kept one waiting."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.decisions import OPENED
from sessionkit.durations import show_duration
from sessionkit.session_trace import SessionTrace
from sessionkit.text import escape_html, html_block, plural
from sessionkit.views.tables import frame_of

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from sessionkit.views.charts.palettes import Theme


@dataclass(frozen=True, repr=False)
class Latency:
    """How long after its end, in stream time, each window became final.

    Example:
        >>> latency = waves.run(flights).latency()
        >>> int(latency.delay_ms.min()) >= waves.windows.close_lag_ms
        True
    """

    trace: Any
    windows: Any

    @cached_property
    def delay_ms(self) -> npt.NDArray[np.int64]:
        """Of each final result, from the window's end to the stream time of the record that closed it."""
        closes = self.trace.closes
        delay: npt.NDArray[np.int64] = self.trace.stream_time_ms[closes.at] - closes.end_ms
        return delay

    @property
    def least_ms(self) -> int:
        """The smallest delay that these windows allow."""
        return int(self.windows.close_lag_ms) + (1 if self.windows.inclusive_end else 0)

    def table(self) -> Any:
        """One row a final result: key, partition, bounds, closed_by (offset), stream_time_ms, delay_ms, waited_ms.

        `waited_ms` is what `delay_ms` has beyond the smallest that is possible: nothing moved stream time on sooner.
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
        return frame_of(found, batch.frame)

    def figure(self, *, theme: Theme = "light") -> go.Figure:
        """The delays as a histogram, beside the smallest that is possible."""
        from sessionkit.views.charts.over_time import latency_figure

        return latency_figure(self, theme=theme)

    def words(self) -> list[str]:
        """The delays in a sentence, and what has no result yet."""
        open_count = int(open_windows(self.trace)[-1]) if len(self.trace) else 0
        noun = self.windows.noun
        verb, them = ("is", "it") if open_count == 1 else ("are", "them")
        left = f"{plural(open_count, noun)} {verb} still open: nothing has closed {them}."
        if not len(self.delay_ms):
            return [f"No {noun} became final.", *([left] if open_count else [])]
        half, most = int(np.median(self.delay_ms)), int(self.delay_ms.max())
        found = (
            f"{plural(len(self.delay_ms), 'result')} became final: half within {show_duration(half)} of the {noun}'s "
            f"end, the last after {show_duration(most)}; {show_duration(self.least_ms)} is the least."
        )
        return [found, *([left] if open_count else [])]

    def __repr__(self) -> str:
        return " ".join(self.words())

    def _repr_html_(self) -> str:
        return html_block(f"<p>{escape_html(repr(self))}</p>")


def open_windows(trace: Any) -> npt.NDArray[np.int64]:
    """How many windows are open after each record."""
    change, loaded = np.zeros(len(trace), np.int64), trace.window_columns.loaded_count
    if isinstance(trace, SessionTrace):
        change += trace.decision == OPENED
        np.subtract.at(change, trace.merges.at, 1)
        np.add.at(change, trace.reopenings.at, 1)
    else:
        live = np.flatnonzero(trace.touches.window >= 0)
        row, first = np.unique(trace.touches.window[live], return_index=True)
        np.add.at(change, trace.touches.record[live[first[row >= loaded]]], 1)
    carried = trace.window_columns.closed_before[:loaded] < 0
    np.subtract.at(change, trace.closes.at, 1)
    counts: npt.NDArray[np.int64] = int(np.sum(carried)) + np.cumsum(change)
    return counts
