"""The picture of a stream as it runs: the windows of chosen keys, filled once closed, and how far each partition is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sessionkit.text import escape_label, plural
from sessionkit.views.charts.grammar import LAST_DATE_MS, axis_title
from sessionkit.views.charts.palettes import Palette, Theme, palette
from sessionkit.views.charts.plain import axis_type, dress_plain

if TYPE_CHECKING:
    import plotly.graph_objects as go

LANE = 28
LEAST_LANES = 3
LEAST_BAR = 200  # a bar is at least such a part of the picture, to be seen
Lane = tuple[Any, int]


def watched_figure(
    rows: Sequence[dict[str, Any]], clocks: Mapping[int, tuple[int, int]], noun: str, said: str, *, theme: Theme
) -> go.Figure:
    """Lanes of keys with their windows so far.

    Args:
        rows: partition, key, window_start_ms, window_end_ms, closed, label.
        clocks: stream time and close time of each partition, in ms.
        said: a sentence below the title.
    """
    import plotly.graph_objects as go

    colours = palette(theme)
    lanes = list(dict.fromkeys((row["key"], row["partition"]) for row in rows))[::-1]
    clocks = {partition: clocks[partition] for _, partition in lanes if partition in clocks}
    times = [*(row["window_end_ms"] for row in rows), *(stream for stream, _ in clocks.values())]
    newest, oldest = max(times, default=0), min((row["window_start_ms"] for row in rows), default=0)
    least = max((newest - oldest) // LEAST_BAR, 1)
    figure = go.Figure()
    for closed, name in ((True, "closed"), (False, "open")):
        mine = [row for row in rows if row["closed"] is closed]
        figure.add_trace(_bars(mine, lanes, least, f"{plural(len(mine), noun)} {name}", closed, colours))
    for place, (name, dash, colour) in enumerate(
        (("stream time", "solid", colours.stream), ("closed up to here", "dash", colours.line))
    ):
        figure.add_trace(_marks(lanes, {p: times[place] for p, times in clocks.items()}, name, dash, colour))
    several = len({partition for _, partition in lanes}) > 1
    names = [escape_label(f"{key} · {partition}" if several else key, 22) for key, partition in lanes]
    height = LANE * max(len(lanes), LEAST_LANES)
    dress_plain(figure, colours, "The stream as it runs", [said], height, bottom=110, left=190)
    kind = axis_type(newest) if newest <= LAST_DATE_MS else "linear"
    figure.update_xaxes(type=kind, title=axis_title("event time" if kind == "date" else "event time, ms", colours))
    figure.update_yaxes(
        tickmode="array", tickvals=list(range(len(lanes))), ticktext=names, range=[-0.6, max(len(lanes), 1) - 0.4]
    )
    figure.update_layout(
        barmode="overlay", legend={"orientation": "h", "yanchor": "top", "y": -56 / height, "x": 0, "xanchor": "left"}
    )
    return figure


def _bars(rows: list[dict[str, Any]], lanes: list[Lane], least: int, name: str, closed: bool, colours: Palette) -> Any:
    import plotly.graph_objects as go

    return go.Bar(
        orientation="h",
        base=[row["window_start_ms"] for row in rows],
        x=[max(row["window_end_ms"] - row["window_start_ms"], least) for row in rows],
        y=[lanes.index((row["key"], row["partition"])) for row in rows],
        width=0.5,
        marker={"color": colours.solid if closed else colours.body, "line": {"width": 1.4, "color": colours.edge}},
        customdata=[escape_label(row["label"], 120) for row in rows],
        hovertemplate="%{customdata}<extra></extra>",
        name=name,
    )


def _marks(lanes: list[Lane], times_ms: Mapping[int, int], name: str, dash: str, colour: str) -> Any:
    """A stroke across each lane at its partition's time."""
    import plotly.graph_objects as go

    x: list[int | None] = []
    y: list[float | None] = []
    for lane, (_, partition) in enumerate(lanes):
        if times_ms.get(partition, -1) >= 0:
            x += [times_ms[partition], times_ms[partition], None]
            y += [lane - 0.5, lane + 0.5, None]
    return go.Scatter(
        x=x, y=y, mode="lines", line={"width": 2, "dash": dash, "color": colour}, hoverinfo="skip", name=name
    )
