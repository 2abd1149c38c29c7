"""The picture of a stream as it runs: the windows of chosen keys, filled once closed, and how far each partition is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sessionkit.base.text import plural
from sessionkit.views.drawing.palettes import Theme, palette
from sessionkit.views.drawing.simple_frame import dress_plain
from sessionkit.widgets.store_figure import LEAST_BAR, Lane, dress_lanes, lane_bars, lane_margin, lane_names

if TYPE_CHECKING:
    import plotly.graph_objects as go

LANE = 28
LEAST_LANES = 3


def watched_figure(
    rows: Sequence[dict[str, Any]],
    clocks: Mapping[int, tuple[int, int]],
    noun: str,
    said: str,
    *,
    timezone: str,
    theme: Theme | None,
) -> go.Figure:
    """Lanes of keys with their windows so far.

    Args:
        rows: partition, key, window_start_ms, window_end_ms, closed, label.
        clocks: stream time and close time of each partition, in ms.
        said: a sentence below the title.
        timezone: of the axis.
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
        fill, said_of = colours.solid if closed else colours.body, f"{plural(len(mine), noun)} {name}"
        figure.add_trace(lane_bars(mine, lanes, least, fill, colours, name=said_of))
    for place, (name, dash, colour) in enumerate(
        (("stream time", "solid", colours.stream), ("closed up to here", "dash", colours.line))
    ):
        figure.add_trace(_marks(lanes, {p: times[place] for p, times in clocks.items()}, name, dash, colour))
    height = LANE * max(len(lanes), LEAST_LANES)
    names = lane_names(lanes)
    dress_plain(figure, colours, "The stream as it runs", [said], height, left=lane_margin(names))
    dress_lanes(figure, names, newest, max(len(lanes), 1), colours, timezone)
    figure.update_layout(barmode="overlay")
    return figure


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
