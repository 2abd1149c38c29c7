"""The picture of kinds of windows beside each other: a band for each, its windows above its records."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from sessionkit.base.arrays import Longs, Rows
from sessionkit.base.durations import show_duration
from sessionkit.base.text import escape_label, key_name, plural
from sessionkit.run import Run
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.trace.trace import Trace
from sessionkit.trace.window_trace import WindowTrace
from sessionkit.views.drawing.measured_text import key_label, text_width
from sessionkit.views.drawing.palettes import Palette, Theme, palette
from sessionkit.views.drawing.simple_frame import Bar, dots, dress_plain, event_time_axis, span_bars
from sessionkit.views.scenes.window_history import depth, every_nth, places
from sessionkit.views.words import clock, span_words

if TYPE_CHECKING:
    from sessionkit.advice.kinds import Kinds

BAND, LEAST_BAR, MOST_DEEP = 84, 300, 8  # pixels; a bar is such a part of the picture at least; windows over another
STRETCH, MOST_RECORDS, DROP = 12, 120, 5  # windows that a picture is long; records; a drop is worth so many of them
TOP, ROOM, FLOOR = 0.42, 0.6, -0.36  # of a band: the upper edge of its windows, what they take, and its records
# The windows that hold a record in the end.
HELD: dict[type[Trace], Callable[[Any, int], list[int]]] = {
    SessionTrace: lambda trace, row: [int(trace.survivor[row])] if trace.survivor[row] >= 0 else [],
    WindowTrace: lambda trace, row: trace.windows_of(row),
}


def kinds_figure(kinds: Kinds[Any], *, theme: Theme | None) -> go.Figure:
    """A band for each key and kind; records that missed a window, or all, stand out in each."""
    colours, first = palette(theme), next(iter(kinds.runs.values()))
    chosen = _stretch(kinds)
    times_ms = kinds._times_ms[chosen]
    low_ms, high_ms = (int(times_ms.min()), int(times_ms.max())) if len(chosen) else (0, 1)
    pad = max((high_ms - low_ms) // 12, first._windows.reach_ms, 1)
    span = low_ms - pad, high_ms + pad
    bars: list[Bar] = []
    heights: list[float] = []
    marks: dict[str, list[tuple[int, float, str]]] = {name: [] for name in _looks(colours)}
    notes = [*kinds.words(), f"All kinds have a grace of {show_duration(first._windows.grace_ms)}."]
    names: list[str] = []
    hovers = _hovers(kinds, chosen)
    for name, run in kinds.runs.items():
        for code, key in enumerate(kinds.keys):
            band = -len(names)
            names.append(_band_name(name, run, key if len(kinds.keys) > 1 else None))
            drawn, height, every = _bars(run, code, band, span)
            bars, heights = bars + drawn, heights + [height] * len(drawn)
            notes += [f"{name.capitalize()}: one window in {every} is drawn."] if every > 1 else []
            rows, trace = kinds._rows[name][chosen], run.trace
            for place, row in enumerate(rows.tolist()):
                if trace.batch.key[row] == code:
                    fate = _fate(trace, row)
                    marks[fate].append((int(trace.batch.timestamp_ms[row]), band + FLOOR, hovers[place]))
    if len(chosen) < len(kinds._times_ms):
        notes.append(f"Shown are {len(chosen):,} of them, in the stretch with the most to see.")
    marker = {"color": colours.body, "line": {"width": 1.2, "color": colours.edge}}
    least_ms = max((span[1] - span[0]) // LEAST_BAR, 1)
    figure = go.Figure(span_bars(bars, least_ms, width=heights, name="window", marker=marker, showlegend=bool(bars)))
    for fate, look in _looks(colours).items():
        x, y, said = zip(*marks[fate], strict=True) if marks[fate] else ((), (), ())
        figure.add_trace(dots(x, y, fate, look, said, showlegend=bool(x)))
    left = round(max(text_width(line, 12) for name in names for line in name.split("<br>"))) + 18
    dress_plain(figure, colours, "Kinds of windows beside each other", notes, len(names) * BAND, left=left)
    figure.update_layout(barmode="overlay")
    ticks = {"tickmode": "array", "tickvals": [-band for band in range(len(names))], "ticktext": names}
    figure.update_yaxes(range=[0.5 - len(names), 0.5], showgrid=False, tickfont={"size": 12}, **ticks)
    figure.update_xaxes(range=[*span], tickangle=0, nticks=4)
    event_time_axis(figure, "event time", int(first.trace.last_stream_time_ms.max(initial=0)), first.timezone, colours)
    return figure


def _looks(colours: Palette) -> dict[str, dict[str, Any]]:
    """How records are drawn, by what became of them."""
    return {
        "record": {"symbol": "circle", "size": 7, "color": colours.record},
        "record that missed a window": {"symbol": "diamond", "size": 9, "color": colours.bridge},
        "dropped record": {"symbol": "x", "size": 9, "color": colours.drop},
    }


def _fate(trace: Trace, row: int) -> str:
    if not trace.accepted[row]:
        return "dropped record"
    return "record that missed a window" if trace.late_for_some[row] else "record"


def _band_name(name: str, run: Run[Any], key: Any) -> str:
    settings = [part for part in run._windows.in_words().split(", ") if not part.startswith("grace")]
    head = f"{key_label(key_name(key, 16), 16)} · {name}" if key is not None else name
    return "<br>".join([f"<b>{head}</b>", *settings])


def _bars(run: Run[Any], code: int, band: int, span: tuple[int, int]) -> tuple[list[Bar], float, int]:
    """(the windows of a key in a band, how high they are, one in how many of them is drawn)."""
    trace, windows, columns = run.trace, run._windows, run.trace.window_columns
    is_seen = (columns.start_ms <= span[1]) & (columns.end_ms >= span[0]) & (columns.key == code)
    rows = np.flatnonzero(is_seen & (columns.merged_into < 0))
    rows, every, sublane = rows[np.argsort(columns.start_ms[rows], kind="stable")], 1, [0] * len(rows)
    if windows.holds == "windows":
        every = -(-depth(columns.start_ms[rows], windows.ends_ms) // MOST_DEEP)
        rows = rows[every_nth(columns.start_ms[rows], every, windows)]
        found = places(columns.start_ms[rows].tolist(), windows)
        order = {place: number for number, place in enumerate(sorted(set(found)))}
        sublane = [order[place] for place in found]
    step, at, bars = ROOM / (max(sublane, default=0) + 1), clock(trace), []
    for row, lane in zip(rows.tolist(), sublane, strict=True):
        start_ms, end_ms = int(columns.start_ms[row]), int(columns.end_ms[row])
        state = "still open" if trace.closed_by[row] < 0 else "closed"
        said = f"{span_words(at, start_ms, end_ms)}, {plural(trace.size_of(row), 'record')}, {state}"
        bars.append((band + TOP - (lane + 0.5) * step, start_ms, end_ms, escape_label(said, 120)))
    return bars, 0.8 * step, every


def _hovers(kinds: Kinds[Any], chosen: Rows) -> list[str]:
    """For each of these records its windows of every kind."""
    found = []
    for place in chosen.tolist():
        lines: list[str] = []
        for name, run in kinds.runs.items():
            trace, row = run.trace, int(kinds._rows[name][place])
            at, held = clock(trace), HELD[type(trace)](trace, row)
            if not lines:
                key = key_name(trace.keys[int(trace.batch.key[row])].as_py())
                lines.append(f"{key}, {at(int(trace.batch.timestamp_ms[row]))}, offset {trace.batch.offset[row]:,}")
            columns = trace.window_columns
            starts, ends = columns.start_ms[held], columns.end_ms[held]
            many = f"{plural(len(held), 'window')}, " if len(held) > 1 else ""
            late = "; missed another" if held and trace.late_for_some[row] else ""
            bounds = span_words(at, int(starts.min()), int(ends.max())) if held else "dropped, too late"
            lines.append(f"{name}: {many}{bounds}{late}")
        found.append("<br>".join(escape_label(line, 110) for line in lines))
    return found


def _stretch(kinds: Kinds[Any]) -> Rows:
    """The records, in order of arrival, of the stretch of event time with the most to see.

    That are records which some kinds keep and others do not, and drops beside records that count.
    """
    times_ms, windows = kinds._times_ms, next(iter(kinds.runs.values()))._windows
    order = np.argsort(times_ms, kind="stable")
    ordered: Longs = times_ms[order]
    kept, late = (each[order] for each in kinds._kept_and_late)
    length_ms = STRETCH * windows.reach_ms
    ends = np.minimum(np.searchsorted(ordered, ordered + length_ms, side="right"), np.arange(len(order)) + MOST_RECORDS)
    if not len(order):
        return order
    sums = (np.append(0, np.cumsum(each)) for each in (kept, kept & late, ~kept))
    counted, differing, dropped = (each[ends] - each[:-1] for each in sums)
    best = int(np.argmax(counted + DROP * (differing + np.minimum(dropped, counted // 4))))
    return np.sort(order[best : ends[best]])
