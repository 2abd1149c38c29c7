"""The picture of one decision: the record, the close line, stream time, and the record that moved it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import plotly.graph_objects as go

from sessionkit.base.arrays import Longs
from sessionkit.base.decisions import IDLE, LATE
from sessionkit.base.durations import lacked, show_duration
from sessionkit.base.text import escape_label, plural
from sessionkit.errors import shorten
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.trace.trace import Trace
from sessionkit.trace.window_trace import WindowTrace
from sessionkit.views.drawing.grammar import Outline
from sessionkit.views.drawing.palettes import Palette, Theme, palette
from sessionkit.views.drawing.simple_frame import add_row_text, curve, dots, dress_plain, event_time_axis
from sessionkit.views.words import clock, lag_words, lower_first, record_name
from sessionkit.windows.contract import WindowKind
from sessionkit.windows.missing_grace import missing_grace_ms

ROW, LETTERS = 58, 88
MARK, HALF = -0.2, 0.24  # of a row: where its marks are, and how far lines reach from there; words are above
MOVER, STREAM, CLOSE, RECORD = 3, 2, 1, 0  # rows, from the top


def chain_figure(trace: Trace, windows: WindowKind, index: int, *, theme: Theme | None) -> go.Figure:
    """Four rows, from the record that moved stream time down to the one that met it; a sentence in each."""
    colours, batch, stream_ms = palette(theme), trace.batch, int(trace.stream_time_ms[index])
    mover = int(trace.moved_by(np.array([index]))[0])
    is_whole = mover >= 0 and batch.chosen_from is None  # else records of other keys may have moved it before
    before_ms = int(trace.stream_time_before_ms[mover]) if is_whole else -1
    missed_ms, lost, fate = LOST[type(trace)](trace, windows, index)
    bars = _bars(trace, windows, index, before_ms, missed_ms, colours, is_lost=bool(lost))
    guides = _guides(trace, windows, index, colours)
    records = [(RECORD, index, "x" if lost else "circle", colours.drop if lost else colours.record)]
    records += [(MOVER, mover, "diamond", colours.record)] if mover >= 0 and mover != index else []
    marks = []
    for row, each, symbol, colour in records:
        at_ms, marker = int(batch.timestamp_ms[each]), {"symbol": symbol, "size": 12, "color": colour}
        said = [escape_label(f"{record_name(trace, each)}, {clock(trace)(at_ms)}")]
        marks.append(dots([at_ms], [row + MARK], "", marker, said))
    figure = go.Figure([*bars, *guides, *marks]).update_traces(showlegend=False)
    for row, words in enumerate([fate, *_clock_words(trace, windows, index, mover, before_ms)]):
        add_row_text(figure, row + 0.25, words, colours, LETTERS)
    title, notes = f"Why {escape_label(lower_first(record_name(trace, index)), 60)} was {lost or 'kept'}", []
    if lost and batch.chosen_from is None:
        met = (batch.partition == batch.partition[index]) & (trace.stream_time_ms == stream_ms)
        many = plural(int((trace.late_for_some & met).sum()), "record")
        notes = [f"{many} came too late for this stream time; run.clock() ranks what moved it."]
    dress_plain(figure, colours, title, notes, 4 * ROW, left=26)
    figure.update_yaxes(visible=False, range=[-0.55, 3.55])
    shown = [ms for each in figure.data for ms in each.x if ms is not None]
    pad = max((max(shown) - min(shown)) // 25, 1)
    figure.update_xaxes(range=[min(shown) - pad, max(shown) + pad], tickangle=0, nticks=6)
    event_time_axis(figure, "event time", int(trace.last_stream_time_ms.max()), batch.timezone, colours)
    return figure


def _bars(
    trace: Trace, windows: WindowKind, index: int, before_ms: int, missed_ms: Longs, colours: Palette, *, is_lost: bool
) -> list[go.Scatter]:
    """How far stream time was moved, how far the close line is behind it, and by how much the record came too late."""
    stream_ms, close_ms = int(trace.stream_time_ms[index]), int(trace.close_time_ms[index])
    found = []
    if is_lost:
        lacking = int(missed_ms[1].min()) if missed_ms.size else int(trace.batch.timestamp_ms[index])
        found.append((RECORD, lacking, close_ms, {"width": 2, "color": colours.drop, "dash": "dot"}))
    if missed_ms.size:
        found.append((RECORD, int(missed_ms.min()), int(missed_ms.max()), {"width": 7, "color": colours.other}))
    if windows.is_ever_closed:
        found.append((CLOSE, close_ms, stream_ms, {"width": 7, "color": colours.line}))
    if before_ms >= 0:
        found.append((STREAM, before_ms, stream_ms, {"width": 7, "color": colours.stream}))
    return [curve([low_ms, high_ms], [row + MARK] * 2, "", line) for row, low_ms, high_ms, line in found]


def _guides(trace: Trace, windows: WindowKind, index: int, colours: Palette) -> list[go.Scatter]:
    """Stream time and the close line, upright; they leave room for the sentences."""
    every_row: tuple[int, ...] = (RECORD, CLOSE, STREAM, MOVER)
    guides = [(trace.stream_time_ms, colours.stream, every_row)]
    guides += [(trace.close_time_ms, colours.line, (RECORD, CLOSE))] if windows.is_ever_closed else []
    found = []
    for times_ms, colour, rows in guides:
        line = Outline()
        for row in rows:
            line.add([int(times_ms[index])] * 2, (row + MARK - HALF, row + MARK + HALF))
        found.append(curve(line.x_ms, line.y, "", {"width": 2, "color": colour}))
    return found


def _clock_words(trace: Trace, windows: WindowKind, index: int, mover: int, before_ms: int) -> list[str]:
    """Sentences on the close line, stream time, and what moved it."""
    at, stream_ms = clock(trace), int(trace.stream_time_ms[index])
    close = f"Close line: {at(int(trace.close_time_ms[index]))}, which is stream time{lag_words(windows, '−')}"
    if not windows.is_ever_closed:
        close = f"There is no close line: {windows.forgets_in_words()}"
    moved = f", moved on by {show_duration(stream_ms - before_ms)}" if before_ms >= 0 else ""
    if mover < 0:
        name = "An earlier run moved stream time; the store does not say by which record"
    elif trace.decision[mover] == IDLE:
        name = "The rule for idle partitions, which is sessionkit's own, moved stream time"
    else:
        name = f"{_short_name(trace, mover)} moved stream time{' itself' if mover == index else ''}"
    return [close, f"Stream time: {at(stream_ms)}{moved}", name]


Lost = tuple[Longs, str, str]  # starts and ends of missed windows; what the record was, "" if kept; a sentence


def _of_sessions(trace: SessionTrace, windows: Any, index: int) -> Lost:
    nothing, name = np.empty((2, 0), np.int64), _short_name(trace, index)
    if trace.decision[index] == LATE:
        missing_ms = int(missing_grace_ms(trace, windows, np.array([index]))[0])
        return nothing, "dropped", f"{name} came {lacked(missing_ms)} too late: it was dropped"
    return nothing, "", _kept(trace, index, name)


def _of_windows(trace: WindowTrace, windows: Any, index: int) -> Lost:
    mine, name = trace.missed.record == index, _short_name(trace, index)
    if not mine.any():
        return np.empty((2, 0), np.int64), "", _kept(trace, index, name)
    start_ms, missing_ms = trace.missed.start_ms[mine], int(trace.missing_ms[mine].max())
    many, is_kept = plural(int(mine.sum()), "window"), bool(trace.accepted[index])
    rest = "it counts in others" if is_kept else "it was dropped"
    said = f"{name} missed {many}, by {'up to ' if mine.sum() > 1 else ''}{lacked(missing_ms)}: {rest}"
    bounds = np.stack([start_ms, trace.ends_ms(start_ms)])
    return bounds, f"too late for {many}" if is_kept else "dropped", said


def _short_name(trace: Trace, index: int) -> str:
    return shorten(record_name(trace, index), 40)


def _kept(trace: Trace, index: int, name: str) -> str:
    is_behind = trace.late_but_kept[index]
    return f"{name} was kept" + (": it is behind the close line, but its window was still open" if is_behind else "")


LOST: dict[type[Trace], Callable[..., Lost]] = {SessionTrace: _of_sessions, WindowTrace: _of_windows}
