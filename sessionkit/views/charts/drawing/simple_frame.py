"""What the pictures that are no plane and no lanes have in common: title, notes and size, and the kind of time axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sessionkit.base.moments import wall_clock
from sessionkit.base.text import escape_label
from sessionkit.views.charts.drawing.grammar import LEAST_WIDTH, Frame, Legend, axis_title, dress, legend_of
from sessionkit.views.charts.drawing.measured_text import Heading
from sessionkit.views.charts.drawing.palettes import Palette
from sessionkit.views.words import SHORT_HISTORY_MS

if TYPE_CHECKING:
    import plotly.graph_objects as go


def dress_plain(
    figure: go.Figure,
    colours: Palette,
    title: str,
    said: Sequence[str],
    plot_height: int,
    *,
    below: int = 0,
    left: int = 84,
) -> None:
    """Title (escaped already), sentences below it (not yet), a plot of this height, a legend, and room `below` it."""
    legend = legend_of(figure) if len(figure.data) > 1 else Legend()
    bottom = (legend.height(LEAST_WIDTH - left - 26) if legend.names else 64) + below
    heading = plain_heading(title, said)
    frame = Frame(LEAST_WIDTH, plot_height + heading.height + bottom, left, 26, heading.height, bottom, (0, 1), (0, 1))
    dress(figure, colours, frame, heading, legend)
    figure.update_layout(showlegend=bool(legend.names))


def plain_heading(title: str, said: Sequence[str]) -> Heading:
    """What `dress_plain` writes above the plot."""
    return Heading.of(title, [], [escape_label(line, 400) for line in said], LEAST_WIDTH)


def event_time_axis(figure: go.Figure, title: str, newest_ms: int, timezone: str, colours: Palette) -> None:
    """Makes the x axis one of event time, whose places are given in ms: dates in this zone, or numbers for toy data.

    Comes last: it moves what the figure holds to where the zone's clock has it.
    """
    kind = axis_type(newest_ms)
    zone = f", {escape_label(timezone)}" if kind == "date" else ""
    figure.update_xaxes(title=axis_title(f"{title}{zone}", colours), type=kind)
    wall = wall_clock(timezone, newest_ms) if kind == "date" else None
    if wall is None:
        return
    for trace in figure.data:
        if trace.type == "bar" and trace.orientation == "h":
            starts, lengths = np.asarray(trace.base, np.int64), np.asarray(trace.x, np.int64)
            trace.base = wall.places(starts)
            trace.x = wall.places(starts + lengths) - trace.base
        else:
            trace.x = wall.along(trace.x)
    for note in figure.layout.annotations:
        if note.xref in (None, "x"):
            note.x = float(wall.places(note.x))
    if figure.layout.xaxis.range is not None:
        figure.layout.xaxis.range = wall.along(figure.layout.xaxis.range)


def axis_type(newest_ms: int) -> str:
    """The type of an axis of event time: dates, but numbers for toy data, which counts from the epoch."""
    return "date" if newest_ms > SHORT_HISTORY_MS else "linear"
