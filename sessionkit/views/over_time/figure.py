"""Pictures of a run over time: how many windows are open, and how long final results take."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from sessionkit.base.durations import about
from sessionkit.base.text import percent, plural
from sessionkit.views.drawing.grammar import axis_title, counts_axis
from sessionkit.views.drawing.measured_text import text_width
from sessionkit.views.drawing.palettes import Palette, Theme, palette
from sessionkit.views.drawing.simple_frame import add_note, curve, dress_plain, event_time_axis, plot_width
from sessionkit.views.drawing.time_axis import lengths_axis, takes_logarithm
from sessionkit.views.loops import decades

if TYPE_CHECKING:
    from sessionkit.views.over_time.over_time import Course, LatencyInWords, OpenInWords

PLOT_HEIGHT, BARS = 320, 80
SHARES = (0.5, 0.9, 0.99, 1.0)  # of the results, each with a mark at the wait that so many do not exceed
HEADROOM = 1.45  # of the plot over the highest bar, where the marks are named
NAME_ROOM = 1.34  # and beside the last one


def latency_figure(latency: LatencyInWords, *, theme: Theme | None) -> go.Figure:
    """How many results waited how long, with the least that gap and grace allow and the waits of most results."""
    colours, least, found = palette(theme), latency.least_ms, latency._waits
    # where most wait hardly longer than they must, what is beyond that is told apart on an axis of its own
    is_log = takes_logarithm(*found) or takes_logarithm(found.ms - least, found.counts)
    base = least if is_log else 0
    waits = np.maximum(found.ms - base, 1 if is_log else least)
    low, high = (int(waits.min()), int(waits.max())) if len(waits) else (least - base + 1, least - base + 2)
    high = max(high, low + 1)
    edges = np.round((np.geomspace if is_log else np.linspace)(low, high, BARS + 1), 6)  # processors differ beyond
    edges[0], edges[-1] = low, high
    counts, _ = np.histogram(waits, bins=edges, weights=found.counts)
    more = " more" if is_log else ""
    said = [
        f"{about(round(a))} to {about(round(b))}{more}: {plural(int(n), 'result')}"
        for (a, b), n in zip(pairwise(edges), counts, strict=True)
    ]
    stairs = {"width": 1.2, "color": colours.edge, "shape": "hv"}
    heights, said = [*counts, counts[-1]], [*said, said[-1]]
    figure = go.Figure(curve(edges, heights, "results", stairs, said, fillcolor=colours.solid))
    top = HEADROOM * max(int(counts.max(initial=0)), 1)
    shares = [] if is_log else [(least, "the least", f": {about(least)}", colours.line, colours.line_words)]
    if len(waits):
        for share in SHARES:
            ms = max(found.at(int(np.ceil(share * found.total)) - 1) - base, 1 if is_log else least)
            shares.append((ms, percent(share), f": {about(ms)}{more}", colours.ink, colours.ink))
    marks = _joined(shares)
    for place, (ms, text, line, colour) in enumerate(marks):
        end = top * (1 - place * 0.065)  # each next one is shorter, so that it crosses no name
        figure.add_shape(type="line", x0=ms, x1=ms, y0=0, y1=end, line={"color": line, "width": 2})
        add_note(figure, float(decades(ms)) if is_log else ms, end, text, colour, "left", yanchor="middle")
    dress_plain(figure, colours, "How long final results take", latency.words(), PLOT_HEIGHT)
    title = f"longer than the least, which is {about(least)}" if is_log else "stream time from its end to its result"
    named = max((text_width(text) for _, text, *_ in marks), default=0)
    axis = _with_room(low, high, is_log, named, plot_width(figure))
    figure.update_xaxes(title=axis_title(title, colours), **axis)
    figure.update_yaxes(title=axis_title("results", colours), **counts_axis(top))
    return figure


def _joined(marks: list[tuple[int, str, str, str, str]]) -> list[tuple[int, str, str, str]]:
    """Where marks stand, with names and colours; those that say the same length are one."""
    found: dict[str, list[tuple[int, str, str, str, str]]] = {}
    for mark in marks:
        found.setdefault(mark[2], []).append(mark)
    return [
        (same[0][0], " and ".join(dict.fromkeys([same[0][1], same[-1][1]])) + said, *same[0][3:])
        for said, same in found.items()
    ]


def _with_room(low: int, high: int, is_log: bool, named: float, room: int) -> dict[str, Any]:
    """An axis of these lengths in so many pixels, with those of the name of the last one."""
    name_room = max(NAME_ROOM, 1 / (1 - (named + 12) / room))
    if is_log:
        return lengths_axis(low / (high / low) ** 0.03, low * (high / low) ** name_room, logarithmic=True, room=room)
    return lengths_axis(low - (high - low) * 0.03, low + (high - low) * name_room, room=room)


def open_figure(open_windows: OpenInWords, *, theme: Theme | None) -> go.Figure:
    """How many windows are open after each record: what a store has to hold."""
    colours, course, said = palette(theme), open_windows._course(), open_windows.words()
    if course.offset is None:
        lines = _bands(course, colours)
    else:
        stairs = {"width": 1.8, "color": colours.edge, "shape": "hv"}
        hover, look = "after record %{customdata}: %{y:,} open<extra></extra>", {"fillcolor": colours.body}
        lines = [curve(course.time_ms, course.most, "open", stairs, course.offset, hover, showlegend=False, **look)]
    figure = go.Figure(lines)
    if open_windows._partition_count > 1:
        said.append(open_windows._note)
    dress_plain(figure, colours, f"Open {open_windows.windows.noun}s", said, PLOT_HEIGHT)
    top = int(course.most.max(initial=1))
    figure.update_yaxes(title=axis_title("open after the record", colours), **counts_axis(top))
    newest = int(course.time_ms.max(initial=0))
    event_time_axis(figure, "stream time", newest, open_windows._said.timezone, colours)
    return figure


def _bands(course: Course, colours: Palette) -> list[go.Scatter]:
    """Of each stretch of stream time the fewest, the most and the usual number, so that no peak is lost."""
    x, fewest, most, usual, _ = course
    said = [f"{low:,} to {high:,} open, mostly {mid:,.0f}" for low, high, mid in zip(fewest, most, usual, strict=True)]
    thin, thick = ({"width": 1.2, "color": colours.solid}, {"width": 2, "color": colours.edge})
    lines = [
        curve(x, fewest, "fewest", {"width": 0}, showlegend=False),
        curve(x, most, "from the fewest to the most", thin, fill="tonexty", fillcolor=colours.body),
        curve(x, usual.tolist(), "mostly", thick, said),
    ]
    return [line.update(line_shape="hv") for line in lines]
