"""Pictures of a run over time: how many windows are open, and how long final results take."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from sessionkit.base.durations import show_duration
from sessionkit.views.charts.drawing.grammar import axis_title
from sessionkit.views.charts.drawing.palettes import Theme, palette
from sessionkit.views.charts.drawing.simple_frame import dress_plain, event_time_axis

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from sessionkit.views.over_time import Latency, OpenWindows

PLOT_HEIGHT, BARS = 320, 80
MOST_POINTS = 4_000  # of a line: more than the picture has pixels
UNITS = ((86_400_000, "days"), (3_600_000, "hours"), (60_000, "minutes"), (1_000, "seconds"), (1, "ms"))


def latency_figure(latency: Latency, *, theme: Theme) -> go.Figure:
    """How many results waited how long; the line is the least that gap and grace allow."""
    import plotly.graph_objects as go

    colours, delay = palette(theme), latency.delay_ms
    most = int(delay.max(initial=latency.least_ms))
    unit, name = next(each for each in UNITS if most >= 3 * each[0] or each[0] == 1)
    counts, edges = np.histogram(delay, bins=BARS, range=(latency.least_ms, max(most, latency.least_ms + 1)))
    figure = go.Figure(
        go.Bar(
            x=(edges[:-1] + edges[1:]) / 2 / unit,
            y=counts,
            width=(edges[1] - edges[0]) / unit * 0.92,
            marker={"color": colours.solid, "line": {"width": 0}},
            customdata=[f"{show_duration(int(a))} to {show_duration(int(b))}" for a, b in pairwise(edges)],
            hovertemplate="%{customdata}: %{y:,}<extra></extra>",
            showlegend=False,
            name="results",
        )
    )
    figure.add_shape(
        type="line",
        x0=latency.least_ms / unit,
        x1=latency.least_ms / unit,
        y0=0,
        y1=1,
        yref="paper",
        line={"color": colours.line, "width": 3},
    )
    figure.add_annotation(
        x=latency.least_ms / unit,
        y=1,
        yref="paper",
        text=f"the least: {show_duration(latency.least_ms)}",
        showarrow=False,
        xanchor="left",
        yanchor="top",
        xshift=6,
        font={"size": 12, "color": colours.line},
        bgcolor=colours.background,
    )
    dress_plain(figure, colours, "How long final results take", latency.words(), PLOT_HEIGHT, bottom=64)
    figure.update_xaxes(title=axis_title(f"{name} of stream time after the end of the {latency.windows.noun}", colours))
    figure.update_yaxes(title=axis_title("results", colours), tickformat=",d", rangemode="tozero")
    return figure


def open_figure(open_windows: OpenWindows, *, theme: Theme) -> go.Figure:
    """How many windows are open after each record: what a store has to hold."""
    import plotly.graph_objects as go

    colours, trace, counts = palette(theme), open_windows.trace, open_windows.counts
    rows = np.arange(len(counts))
    if len(rows) > MOST_POINTS:  # of each stretch its smallest and largest, so that no peak is lost
        pieces = np.array_split(rows, MOST_POINTS // 2)
        rows = np.unique([pick for p in pieces for pick in (p[np.argmin(counts[p])], p[np.argmax(counts[p])])])
    times = trace.stream_time_ms[rows]
    figure = go.Figure(
        go.Scatter(
            x=times,
            y=counts[rows],
            mode="lines",
            line={"width": 1.8, "color": colours.edge, "shape": "hv"},
            fill="tozeroy",
            fillcolor=colours.body,
            customdata=trace.batch.offset[rows],
            hovertemplate="after record %{customdata}: %{y:,} open<extra></extra>",
            showlegend=False,
            name="open",
        )
    )
    said = open_windows.words()
    if len(trace.batch.partitions) > 1:
        said.append("several partitions: each has a stream time of its own, so the line goes back and forth")
    dress_plain(figure, colours, f"Open {open_windows.windows.noun}s", said, PLOT_HEIGHT, bottom=64)
    figure.update_yaxes(title=axis_title("open after the record", colours), tickformat=",d", rangemode="tozero")
    event_time_axis(figure, "stream time", int(times.max(initial=0)), trace.batch.timezone, colours)
    return figure
