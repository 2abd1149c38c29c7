"""Windows in lanes of keys: what a store holds, and a stream as it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from sessionkit.base.text import escape_label, plural
from sessionkit.views.drawing.grammar import axis_title
from sessionkit.views.drawing.measured_text import key_label, text_width
from sessionkit.views.drawing.palettes import Palette, Theme, palette
from sessionkit.views.drawing.simple_frame import axis_type, curve, dress_plain, event_time_axis, span_bars
from sessionkit.views.drawing.time_axis import LAST_DATE_MS

LANE, NAME_LENGTH = 26, 24
LEAST_BAR = 200  # a bar is at least such a part of the picture, to be seen
Lane = tuple[Any, int]  # a key and a partition


def held_figure(rows: Sequence[dict[str, Any]], noun: str, *, theme: Theme | None) -> go.Figure:
    """Windows of a store as `rows()` gives them, by key and partition."""
    colours = palette(theme)
    rows = [
        {**row, "window_end_ms": row.get("window_end_ms", row["window_start_ms"]), "label": row["aggregate"]}
        for row in rows
    ]
    lanes = list(dict.fromkeys((row["key"], row["partition"]) for row in rows))[::-1]
    newest = max((row["window_end_ms"] for row in rows), default=0)
    least = max((newest - min((row["window_start_ms"] for row in rows), default=0)) // LEAST_BAR, 1)
    figure = go.Figure(lane_bars(rows, lanes, least, colours.body, colours, showlegend=False))
    said = {"session": f"{plural(len(rows), noun)}; a bar goes from start to end", "window": "a mark is a start"}
    names = lane_names(lanes)
    height = max(LANE * len(lanes), 60)
    dress_plain(figure, colours, "What the store holds", [said[noun]], height, left=lane_margin(names))
    dress_lanes(figure, names, newest, len(lanes), colours)
    return figure


def lane_bars(
    rows: Sequence[dict[str, Any]], lanes: Sequence[Lane], least: int, fill: str, colours: Palette, **options: Any
) -> go.Bar:
    """A bar from start to end for each of the rows, in the lane of its key and partition; `least` ms long or more."""
    bars = [
        (
            lanes.index((r["key"], r["partition"])),
            r["window_start_ms"],
            r["window_end_ms"],
            escape_label(r["label"], 120),
        )
        for r in rows
    ]
    marker = {"color": fill, "line": {"width": 1.4, "color": colours.edge}}
    return span_bars(bars, least, width=0.5, marker=marker, **options)


def lane_names(lanes: Sequence[Lane]) -> list[str]:
    """Each lane's key, and its partition where there are several."""
    several = len({partition for _, partition in lanes}) > 1
    return [key_label(f"{key} · {partition}" if several else key, NAME_LENGTH) for key, partition in lanes]


def lane_margin(names: Sequence[str]) -> int:
    """Pixels for these names."""
    return 24 + round(max((text_width(name, 13) for name in names), default=40))


def dress_lanes(
    figure: go.Figure, names: Sequence[str], newest_ms: int, room: int, colours: Palette, timezone: str = "UTC"
) -> None:
    """The axes: event time, and the names of the lanes with room for so many."""
    figure.update_yaxes(tickmode="array", tickvals=list(range(len(names))), ticktext=names, range=[-0.6, room - 0.4])
    if newest_ms <= LAST_DATE_MS and axis_type(newest_ms) == "date":
        event_time_axis(figure, "event time", newest_ms, timezone, colours)
    else:
        figure.update_xaxes(type="linear", title=axis_title("event time, ms", colours))


WATCHED_LANE = 28
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
    height = WATCHED_LANE * max(len(lanes), LEAST_LANES)
    names = lane_names(lanes)
    dress_plain(figure, colours, "The stream as it runs", [said], height, left=lane_margin(names))
    dress_lanes(figure, names, newest, max(len(lanes), 1), colours, timezone)
    figure.update_layout(barmode="overlay")
    return figure


def _marks(lanes: list[Lane], times_ms: Mapping[int, int], name: str, dash: str, colour: str) -> Any:
    """A stroke across each lane at its partition's time."""
    x: list[int | None] = []
    y: list[float | None] = []
    for lane, (_, partition) in enumerate(lanes):
        if times_ms.get(partition, -1) >= 0:
            x += [times_ms[partition], times_ms[partition], None]
            y += [lane - 0.5, lane + 0.5, None]
    return curve(x, y, name, {"width": 2, "dash": dash, "color": colour})
