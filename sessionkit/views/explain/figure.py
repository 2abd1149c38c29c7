"""The picture of one decision, from the record to what moved stream time; and that of all that moved it, ranked."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from sessionkit.base.durations import about, lacked
from sessionkit.base.text import escape_label, percent, plural
from sessionkit.errors import shorten
from sessionkit.trace.trace import Trace
from sessionkit.views.drawing.grammar import axis_title, counts_axis, empty_figure
from sessionkit.views.drawing.palettes import Theme, palette
from sessionkit.views.drawing.simple_frame import (
    ROW_LEFT,
    add_row_text,
    curve,
    dots,
    dress_plain,
    event_time_axis,
    plain_heading,
    span_bars,
)
from sessionkit.views.dropped import missed_by
from sessionkit.views.words import clock, lag_words, lower_first, record_name
from sessionkit.windows.contract import WindowKind

if TYPE_CHECKING:
    from sessionkit.views.explain.clock import MoversInWords

ROW = 58
MARK, HALF = -0.2, 0.24  # of a row: where its marks are, and how far upright lines reach from there; words are above
RECORD, CLOSE, STREAM, MOVER = range(4)  # rows, from below
MOST = 8  # bars of a clock


def chain_figure(trace: Trace, windows: WindowKind, index: int, *, theme: Theme | None) -> go.Figure:
    """Four rows, from the record that moved stream time down to the one that met it; a sentence in each."""
    colours, batch, at, is_late = palette(theme), trace.batch, clock(trace), bool(trace.late_for_some[index])
    stream_ms, close_ms = int(trace.stream_time_ms[index]), int(trace.close_time_ms[index])
    mover, name, drawn = int(trace.moved_by(np.array([index]))[0]), shorten(record_name(trace, index), 40), []
    said = [f"{name} was kept", f"There is no close line: {windows.forgets_in_words()}"]
    if is_late:
        bounds_ms, missing_ms = missed_by(trace, windows, index)
        many = f" for {plural(bounds_ms.shape[1], 'window')}" if bounds_ms.size else ""
        said[RECORD] = f"{name} came {'up to ' if bounds_ms.size > 2 else ''}{lacked(missing_ms)} too late{many}"
        reached_ms = close_ms - missing_ms  # the end of what it would have joined, or of a window
        drawn.append(_line(RECORD, reached_ms, close_ms, 2, colours.drop, dash="dot"))
        meets_ms = bounds_ms if many else np.array([batch.timestamp_ms[index], reached_ms])
        drawn.append(_line(RECORD, meets_ms.min(), meets_ms.max(), 7 if many else 2, colours.other))
    elif trace.late_but_kept[index]:
        said[RECORD] += ": it is behind the close line, but its window was still open"
    if windows.is_ever_closed:
        said[CLOSE] = f"Close line: {at(close_ms)}, which is stream time{lag_words(windows, '−')}"
        drawn.append(_line(CLOSE, close_ms, stream_ms, 7, colours.line))
        drawn += [_line(row, close_ms, close_ms, 2, colours.line, HALF) for row in (RECORD, CLOSE)]
    said.append(f"Stream time: {at(stream_ms)}")
    before_ms = int(trace.stream_time_before_ms[mover]) if mover >= 0 and batch.chosen_from is None else -1
    if before_ms >= 0:  # of some keys it is not known: records of others may have moved it before
        said[STREAM] += f", moved on by {about(stream_ms - before_ms)}"
        drawn.append(_line(STREAM, before_ms, stream_ms, 7, colours.stream))
    drawn += [_line(row, stream_ms, stream_ms, 2, colours.stream, HALF) for row in (RECORD, CLOSE, STREAM, MOVER)]
    by = shorten(record_name(trace, mover), 40) if mover >= 0 else "An earlier run"
    said.append(f"{by} moved stream time{' itself' if mover == index else ''}")
    marks = [(RECORD, index, "x" if is_late else "circle", colours.drop if is_late else colours.record)]
    marks += [(MOVER, mover, "diamond", colours.record)] if mover not in (-1, index) else []
    for row, record, symbol, colour in marks:
        at_ms = int(batch.timestamp_ms[record])
        hover = escape_label(f"{record_name(trace, record)}, {at(at_ms)}")
        drawn.append(dots([at_ms], [row + MARK], "", {"symbol": symbol, "size": 12, "color": colour}, [hover]))
    figure = go.Figure(drawn).update_traces(showlegend=False)
    for row, words in enumerate(said):
        add_row_text(figure, row + 0.25, words, colours)
    became, notes = "missed a window" if trace.accepted[index] else "was dropped", []
    if is_late and batch.chosen_from is None:
        met = (batch.partition == batch.partition[index]) & (trace.stream_time_ms == stream_ms)
        many = plural(int((trace.late_for_some & met).sum()), "record")
        notes = [f"{many} came too late for this stream time; run.clock() ranks what moved it."]
    title = f"Why {escape_label(lower_first(record_name(trace, index)), 60)} {became if is_late else 'was kept'}"
    dress_plain(figure, colours, title, notes, 4 * ROW, left=ROW_LEFT)
    figure.update_yaxes(visible=False, range=[-0.55, 3.55])
    shown = [ms for each in figure.data for ms in each.x]
    pad = max((max(shown) - min(shown)) // 25, 1)
    figure.update_xaxes(range=[min(shown) - pad, max(shown) + pad])
    event_time_axis(figure, "event time", int(trace.last_stream_time_ms.max()), batch.timezone, colours)
    return figure


def _line(row: int, from_ms: int, to_ms: int, width: int, colour: str, half: float = 0, **look: Any) -> go.Scatter:
    """A line in a row: level, or upright, so far up and down from where marks are."""
    y = [row + MARK - half, row + MARK + half]
    return curve([int(from_ms), int(to_ms)], y, "", {"width": width, "color": colour, **look})


def clock_figure(moved: MoversInWords, *, theme: Theme | None) -> go.Figure:
    """A bar for each of those to which most records were lost, below a sentence on it."""
    colours, late, title = palette(theme), moved.late_count, "Who moved the clock"
    if not late:
        return empty_figure(colours, plain_heading(title, moved.words()))
    lost = moved._lost.tolist()
    ranks, notes = range(min(len(lost), MOST)), moved.words()
    said = ["<br>".join(escape_label(line, 120) for line in wrap(moved._mover_words(rank))) for rank in ranks]
    bars = [(-rank - 0.18, 0, lost[rank], said[rank]) for rank in ranks]
    figure = go.Figure(span_bars(bars, 0, width=0.34, marker={"color": colours.drop, "line": {"width": 0}}))
    for rank, many in zip(ranks, lost, strict=False):
        mover = moved._mover(rank)
        words = f"{many:,} ({percent(many / late)}): {lower_first(shorten(mover.name, 40))} {mover.how[-1]}"
        add_row_text(figure, 0.22 - rank, words, colours)
    notes.append("A record is lost to the one that had set the stream time of its partition when it came.")
    if len(lost) > MOST:
        notes.append(f"Shown are {MOST} of {len(lost):,}; table() has all.")
    dress_plain(figure, colours, title, notes, len(ranks) * ROW, left=ROW_LEFT)
    figure.update_yaxes(visible=False, range=[0.5 - len(ranks), 0.5])
    figure.update_xaxes(title=axis_title("records lost", colours), **counts_axis(lost[0]))
    return figure
