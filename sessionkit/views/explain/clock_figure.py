"""The picture of a clock: the records that moved stream time, by how many others were lost to them."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

import plotly.graph_objects as go

from sessionkit.base.text import escape_label, percent, plural
from sessionkit.errors import shorten
from sessionkit.views.drawing.grammar import LEAST_WIDTH, axis_title, counts_axis, empty_figure
from sessionkit.views.drawing.palettes import Theme, palette
from sessionkit.views.drawing.simple_frame import SAID, add_row_text, dress_plain, plain_heading
from sessionkit.views.words import lower_first, record_name

if TYPE_CHECKING:
    from sessionkit.views.explain.clock import Clock

TITLE = "Who moved the clock"
MOST, ROW, LETTERS = 8, 54, 84
HOW = "A record is lost to the one that had set the stream time of its partition when it came."


def clock_figure(clock: Clock, *, theme: Theme | None) -> go.Figure:
    """A bar for each of those to which most records were lost, below a sentence on it."""
    colours, movers, late = palette(theme), clock._movers, clock.late_count
    if not late:
        return empty_figure(colours, plain_heading(TITLE, clock.words()), LEAST_WIDTH)
    count = min(len(movers.at), MOST)
    lost, rows = movers.late[:count].tolist(), movers.at[:count].tolist()
    look, places = {"color": colours.drop, "line": {"width": 0}}, [-rank - 0.18 for rank in range(count)]
    hover = [
        "<br>".join(
            escape_label(line, 120) for line in wrap(f"{plural(n, 'record')} lost to {clock._mover_words(rank)}")
        )
        for rank, n in enumerate(lost)
    ]
    bars = {"x": lost, "y": places, "customdata": hover, "hovertemplate": SAID}
    figure = go.Figure(go.Bar(orientation="h", width=0.34, marker=look, **bars))
    for rank, (n, row) in enumerate(zip(lost, rows, strict=True)):
        name = shorten(record_name(clock.trace, row), 40) if row >= 0 else "An earlier run"
        how = clock._how_words(row)[-1] if row >= 0 else "moved stream time"
        add_row_text(figure, 0.22 - rank, f"{n:,} ({percent(n / late)}): {lower_first(name)} {how}", colours, LETTERS)
    notes = [*clock.words(), HOW]
    if len(movers.at) > count:
        notes.append(f"Shown are {count} of {len(movers.at):,}; table() has all.")
    dress_plain(figure, colours, TITLE, notes, count * ROW, left=26)
    figure.update_yaxes(visible=False, range=[0.5 - count, 0.5])
    figure.update_xaxes(title=axis_title("records lost", colours), **counts_axis(max(lost)))
    return figure
