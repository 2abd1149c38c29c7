"""What the pictures that are no plane and no lanes have in common: title, notes and size, and the kind of time axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sessionkit.base.text import escape_label
from sessionkit.views.charts.drawing.grammar import Frame, dress, top_margin
from sessionkit.views.charts.drawing.labels import flow
from sessionkit.views.charts.drawing.palettes import Palette
from sessionkit.views.words import SHORT_HISTORY_MS

if TYPE_CHECKING:
    import plotly.graph_objects as go

PLAIN_WIDTH = 1120


def dress_plain(
    figure: go.Figure,
    colours: Palette,
    title: str,
    said: Sequence[str],
    plot_height: int,
    *,
    bottom: int,
    left: int = 84,
) -> None:
    """Title (escaped already), sentences below it (not yet), and room for a plot of this height."""
    notes = flow([escape_label(line, 400) for line in said], PLAIN_WIDTH - 40)
    top = top_margin(notes)
    frame = Frame(PLAIN_WIDTH, plot_height + top + bottom, left, 26, top, bottom, (0, 1), (0.0, 1.0))
    dress(figure, colours, frame, title, notes)


def axis_type(newest_ms: int) -> str:
    """The type of an axis of event time: dates, but numbers for toy data, which counts from the epoch."""
    return "date" if newest_ms > SHORT_HISTORY_MS else "linear"
