"""The picture of what a store holds: a lane for each key, a bar for each session, a mark for each window's start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sessionkit.text import escape_label, plural
from sessionkit.views.charts.grammar import LAST_DATE_MS, axis_title
from sessionkit.views.charts.palettes import Theme, palette
from sessionkit.views.charts.plain import axis_type, dress_plain

if TYPE_CHECKING:
    import plotly.graph_objects as go

LANE = 26
LEAST_BAR = 200  # a bar is at least such a part of the picture, to be seen


def held_figure(rows: Sequence[dict[str, Any]], noun: str, *, theme: Theme) -> go.Figure:
    """Windows of a store as `rows()` gives them, by key and partition."""
    import plotly.graph_objects as go

    colours = palette(theme)
    lanes = list(dict.fromkeys((row["key"], row["partition"]) for row in rows))[::-1]
    starts = [row["window_start_ms"] for row in rows]
    ends = [row.get("window_end_ms", row["window_start_ms"]) for row in rows]
    newest = max(ends, default=0)
    least = max((newest - min(starts, default=0)) // LEAST_BAR, 1)
    bars = go.Bar(
        orientation="h",
        base=starts,
        x=[max(end - start, least) for start, end in zip(starts, ends, strict=True)],
        y=[lanes.index((row["key"], row["partition"])) for row in rows],
        width=0.5,
        marker={"color": colours.body, "line": {"width": 1.4, "color": colours.edge}},
        customdata=[escape_label(row["aggregate"], 120) for row in rows],
        hovertemplate="%{customdata}<extra></extra>",
        showlegend=False,
    )
    figure = go.Figure(bars)
    several = len({partition for _, partition in lanes}) > 1
    names = [escape_label(f"{key} · {partition}" if several else key, 26) for key, partition in lanes]
    said = [f"{plural(len(rows), noun)}; a bar goes from start to end" if noun == "session" else "a mark is a start"]
    dress_plain(figure, colours, "What the store holds", said, max(LANE * len(lanes), 60), bottom=60, left=190)
    kind = axis_type(newest) if newest <= LAST_DATE_MS else "linear"
    figure.update_xaxes(type=kind, title=axis_title("event time" if kind == "date" else "event time, ms", colours))
    figure.update_yaxes(
        tickmode="array", tickvals=list(range(len(lanes))), ticktext=names, range=[-0.6, len(lanes) - 0.4]
    )
    return figure
