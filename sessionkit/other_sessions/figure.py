"""The picture of sessions of another tool above ours: a band for each reason, with its smallest example."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from sessionkit.base.arrays import Longs
from sessionkit.base.text import escape_label, plural
from sessionkit.views.drawing.palettes import Theme, palette
from sessionkit.views.drawing.simple_frame import ROW_LEFT, Bar, add_row_text, dots, dress_plain, row_lines, span_bars

if TYPE_CHECKING:
    from sessionkit.other_sessions.compare import SessionComparison

LENGTH = 1_000  # of an example, whatever time it takes
# In pixels: where things lie in a band, how high a session and a line of words are, and the room below a band.
WORDS, THEIRS, ROWS, OURS, HEIGHT, LINE, BELOW = 16, 3, -20, -42, 19, 16, 86
LEAST = 8


def lanes_of_both(compared: SessionComparison[Any], *, theme: Theme | None) -> go.Figure:
    """Each example on a scale of its own, from its first row to its last one."""
    colours, pairs, figure = palette(theme), compared._pairs, go.Figure()
    bands = len(compared.reasons)
    told = [[line for words in compared._told(number) for line in row_lines(words)] for number in range(bands)]
    top = WORDS + LINE * max(map(len, told), default=0)
    tall = top + BELOW
    drawn: dict[str, list[Bar]] = {"session of theirs": [], "session of ours": []}
    x: list[float] = []
    y: list[float] = []
    said: list[str] = []
    for number in range(bands):
        places = compared._example_places(number)
        times_ms = pairs.time_ms[places]
        at = ((times_ms - times_ms[0]) * (LENGTH / max(int(times_ms[-1] - times_ms[0]), 1))).astype(np.int64)
        drawn["session of theirs"] += _bars(compared, pairs.their_id[places], times_ms, at, THEIRS - tall * number)
        drawn["session of ours"] += _bars(compared, pairs.our_id[places], times_ms, at, OURS - tall * number)
        x += at.tolist()
        y += [ROWS - tall * number] * len(at)
        said += [escape_label(f"row {row}, {compared._clock(ms)}") for row, ms in
                 zip(pairs.rows[places].tolist(), times_ms.tolist(), strict=True)]  # fmt: skip
        add_row_text(figure, WORDS - tall * number, told[number], colours, side="bottom")
    looks = {"session of theirs": (colours.mute, colours.edge), "session of ours": (colours.body, colours.edge)}
    for name, bars in drawn.items():
        fill, edge = looks[name]
        marker = {"color": fill, "line": {"width": 1.2, "color": edge}}
        figure.add_trace(span_bars(bars, LEAST, width=HEIGHT, name=name, marker=marker))
    figure.add_trace(dots(x, y, "row", {"size": 7, "color": colours.record}, said))
    words = compared.words()[:1]
    dress_plain(figure, colours, "Sessions of theirs, above ours", words, max(bands, 1) * tall, left=ROW_LEFT)
    figure.update_yaxes(visible=False, range=[top - max(bands, 1) * tall, top])
    figure.update_xaxes(visible=False, range=[-LEAST, LENGTH + 2 * LEAST]).update_layout(barmode="overlay")
    return figure


def _bars(compared: SessionComparison[Any], session: Longs, times_ms: Longs, at: Longs, y: float) -> list[Bar]:
    """A bar for each session of an example, from its first row there to the last one."""
    bars = []
    for each in np.unique(session):
        rows = np.flatnonzero(session == each)
        start, end = compared._clock(int(times_ms[rows[0]])), compared._clock(int(times_ms[rows[-1]]))
        words = escape_label(f"{start} to {end}, {plural(len(rows), 'row')} of this example", 120)
        bars.append((y, int(at[rows[0]]) - LEAST // 2, int(at[rows[-1]]) + LEAST // 2, words))
    return bars
