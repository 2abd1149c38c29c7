"""The picture of kinds of windows beside each other: a band for each, its windows above its records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from sessionkit.base.arrays import Rows
from sessionkit.base.decisions import DROPPED, KEPT, PARTLY_LATE
from sessionkit.base.text import escape_label, key_name, plural
from sessionkit.run import Run
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.trace.trace import Trace
from sessionkit.trace.window_trace import WindowTrace
from sessionkit.views.drawing.palettes import Theme, palette
from sessionkit.views.drawing.simple_frame import (
    ROW_LEFT,
    Bar,
    add_row_text,
    dots,
    dress_plain,
    event_time_axis,
    span_bars,
)
from sessionkit.views.words import clock, record_name, span_words

if TYPE_CHECKING:
    from sessionkit.advice.kinds import Kinds

BAND = 92  # pixels
LEAST_BAR, MOST_DEEP = 300, 8  # a bar is such a part of the picture at least; so many windows lie over one another
STRETCH, MOST_RECORDS, DROP = 12, 120, 5  # windows that a picture is long; records; a drop is worth so many of them
NAME, TOP, ROOM, FLOOR = 0.36, 0.22, 0.5, -0.42  # of a band: its name, the top of its windows, their room, its records
MARKS = {  # of what became of a record: a name, a symbol, its size and colour
    KEPT: ("record", "circle", 7, "record"),
    PARTLY_LATE: ("record that missed a window", "diamond", 9, "bridge"),
    DROPPED: ("dropped record", "x", 9, "drop"),
}
# The windows that hold a record, which counts, in the end.
HELD: dict[type[Trace], Callable[[Any, int], list[int]]] = {
    SessionTrace: lambda trace, row: [int(trace.survivor[row])],
    WindowTrace: lambda trace, row: trace.windows_of(row),
}


def kinds_figure(kinds: Kinds[Any], *, theme: Theme | None) -> go.Figure:
    """A band for each key and kind; records that missed a window, or all, stand out in each."""
    colours, chosen, first = palette(theme), _stretch(kinds), next(iter(kinds.runs.values()))
    rows, trace, notes, at = kinds._rows[:, chosen], first.trace, kinds.words(), clock(first.trace)
    times_ms, key = trace.batch.timestamp_ms[rows[0]], trace.batch.key[rows[0]]
    pad = max(int(np.ptp(times_ms)) // 12, first._windows.reach_ms)
    span = int(times_ms.min()) - pad, int(times_ms.max()) + pad
    figure, look = go.Figure(), {"color": colours.body, "line": {"width": 1.2, "color": colours.edge}}
    bands = [(name, code) for name in kinds.runs for code in range(len(kinds.keys))]
    for band, (name, code) in enumerate(bands):
        bars, height, every = _bars(kinds.runs[name], code, -band, span)
        options = {"width": height, "name": "window", "marker": look, "showlegend": not band}
        figure.add_trace(span_bars(bars, (span[1] - span[0]) // LEAST_BAR, **options))
        of_key = f"{key_name(kinds.keys[code], 24)} · " if len(kinds.keys) > 1 else ""
        thinned = f"; one window in {every} is drawn" if every > 1 else ""
        words = f"{of_key}{name}: {kinds.runs[name]._windows.in_words()}{thinned}"
        add_row_text(figure, NAME - band, words, colours)
    if len(chosen) < kinds._rows.shape[1]:
        notes.append(f"Shown are {len(chosen):,} of them, in the stretch with the most to see.")
    said = [f"{record_name(trace, row)}, {at(int(trace.batch.timestamp_ms[row]))}" for row in rows[0].tolist()]
    held = [_held(kind, run, each) for (kind, run), each in zip(kinds.runs.items(), rows, strict=True)]
    hovers = np.array(["<br>".join(lines) for lines in zip(map(escape_label, said), *held, strict=True)])
    for fate, (name, symbol, size, colour) in MARKS.items():
        number, place = np.nonzero(kinds._fates[:, chosen] == fate)
        y = FLOOR - (number * len(kinds.keys) + key[place])
        mark = {"symbol": symbol, "size": size, "color": getattr(colours, colour)}
        figure.add_trace(dots(times_ms[place], y, name, mark, hovers[place], showlegend=len(place) > 0))
    dress_plain(figure, colours, "Kinds of windows beside each other", notes, len(bands) * BAND, left=ROW_LEFT)
    figure.update_yaxes(visible=False, range=[0.5 - len(bands), 0.5])
    figure.update_xaxes(range=[*span]).update_layout(barmode="overlay")
    event_time_axis(figure, "event time", int(trace.last_stream_time_ms.max(initial=0)), first.timezone, colours)
    return figure


def _bars(run: Run[Any], code: int, band: int, span: tuple[int, int]) -> tuple[list[Bar], float, int]:
    """(the windows of a key in a band, how high they are, one in how many of them is drawn)."""
    trace, columns, at = run.trace, run.trace.window_columns, clock(run.trace)
    is_seen = (columns.start_ms <= span[1]) & (columns.end_ms >= span[0]) & (columns.key == code)
    rows = np.flatnonzero(is_seen & (columns.merged_into < 0))
    rows = rows[np.argsort(columns.start_ms[rows], kind="stable")]
    over = np.searchsorted(columns.start_ms[rows], columns.end_ms[rows]) - np.arange(len(rows))
    every = -(-int(over.max(initial=1)) // MOST_DEEP)
    lanes, bars = -(-int(over.max(initial=1)) // every), []
    for number, row in enumerate(rows[::every].tolist()):
        start_ms, end_ms = int(columns.start_ms[row]), int(columns.end_ms[row])
        state = "still open" if trace.closed_by[row] < 0 else "closed"
        said = f"{span_words(at, start_ms, end_ms)}, {plural(trace.size_of(row), 'record')}, {state}"
        y = band + TOP - (number % lanes + 0.5) * ROOM / lanes  # the last one in a lane has ended: all are equally long
        bars.append((y, start_ms, end_ms, escape_label(said, 120)))
    return bars, 0.8 * ROOM / lanes, every


def _held(kind: str, run: Run[Any], rows: Rows) -> Iterator[str]:
    """In words the windows of a kind that hold each of these records in the end."""
    trace: Any = run.trace
    columns, at, late = trace.window_columns, clock(trace), trace.late_for_some
    for row in rows.tolist():
        if not trace.accepted[row]:
            yield f"{kind}: dropped, too late"
            continue
        held = HELD[type(trace)](trace, row)
        bounds = span_words(at, int(columns.start_ms[held].min()), int(columns.end_ms[held].max()))
        yield f"{kind}: {plural(len(held), 'window')}, {bounds}{'; missed another' if late[row] else ''}"


def _stretch(kinds: Kinds[Any]) -> Rows:
    """The records, in order of arrival, of the stretch of event time with the most to see.

    That are records which some kinds keep and others do not, and drops beside records that count.
    """
    first, fates = next(iter(kinds.runs.values())), kinds._fates
    times_ms = first.trace.batch.timestamp_ms[kinds._rows[0]]
    order = np.argsort(times_ms, kind="stable")
    in_time, most = times_ms[order], np.arange(len(order)) + MOST_RECORDS
    ends = np.minimum(np.searchsorted(in_time, in_time + STRETCH * first._windows.reach_ms, side="right"), most)
    best, worst = fates.min(axis=0)[order], fates.max(axis=0)[order]
    sums = np.cumsum(np.pad([best < DROPPED, best < worst, best == DROPPED], ((0, 0), (1, 0))), axis=1)
    counted, differing, dropped = sums[:, ends] - sums[:, :-1]
    start = int(np.argmax(counted + DROP * (differing + np.minimum(dropped, counted // 4))))
    return np.sort(order[start : ends[start]])
