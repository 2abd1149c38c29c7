"""Windows in lanes of keys: what a store holds, and a stream as it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from sessionkit.base.text import escape_label, plural
from sessionkit.views.drawing.measured_text import key_labels, text_width
from sessionkit.views.drawing.palettes import Palette, Theme, palette
from sessionkit.views.drawing.simple_frame import curve, dress_plain, event_time_axis, span_bars

HELD_LANE, WATCHED_LANE, NAME_LENGTH = 26, 28, 24
LEAST_BAR = 200  # a bar is at least such a part of the picture, to be seen
Rows = Sequence[dict[str, Any]]
Lane = tuple[Any, int]  # a key and a partition


def held_figure(rows: Rows, noun: str, *, theme: Theme | None) -> go.Figure:
    """Windows of a store as `rows()` gives them, by key and partition."""
    rows = [
        {**row, "window_end_ms": row.get("window_end_ms", row["window_start_ms"]), "label": row["aggregate"]}
        for row in rows
    ]
    colours, lanes, newest = palette(theme), _lanes(rows), max((row["window_end_ms"] for row in rows), default=0)
    figure = go.Figure(_bars(rows, lanes, _least(rows, newest), colours.body, colours, showlegend=False))
    said = {"session": f"{plural(len(rows), noun)}; a bar goes from start to end", "window": "a mark is a start"}
    _dress(figure, "What the store holds", said[noun], lanes, newest, colours, max(HELD_LANE * len(lanes), 60))
    return figure


def watched_figure(
    rows: Rows, clocks: Mapping[int, tuple[int, int]], noun: str, said: str, *, timezone: str, theme: Theme | None
) -> go.Figure:
    """Lanes of keys with their windows so far, and the stream time and close time (`clocks`) of each partition.

    `rows` have partition, key, window_start_ms, window_end_ms, closed and label.
    """
    colours, lanes = palette(theme), _lanes(rows)
    clocks = {partition: clocks[partition] for _, partition in lanes if partition in clocks}
    times = [*(row["window_end_ms"] for row in rows), *(stream for stream, _ in clocks.values())]
    newest, figure = max(times, default=0), go.Figure()
    least = _least(rows, newest)
    for closed, name in ((True, "closed"), (False, "open")):
        mine = [row for row in rows if row["closed"] is closed]
        fill, said_of = colours.solid if closed else colours.body, f"{plural(len(mine), noun)} {name}"
        figure.add_trace(_bars(mine, lanes, least, fill, colours, name=said_of))
    for place, (name, dash, colour) in enumerate(
        (("stream time", "solid", colours.stream), ("closed up to here", "dash", colours.line))
    ):
        figure.add_trace(_marks(lanes, {p: times[place] for p, times in clocks.items()}, name, dash, colour))
    height = WATCHED_LANE * max(len(lanes), 3)
    _dress(figure, "The stream as it runs", said, lanes, newest, colours, height, timezone)
    return figure.update_layout(barmode="overlay")


def _lanes(rows: Rows) -> list[Lane]:
    return list(dict.fromkeys((row["key"], row["partition"]) for row in rows))[::-1]


def _least(rows: Rows, newest_ms: int) -> int:
    return max((newest_ms - min((row["window_start_ms"] for row in rows), default=0)) // LEAST_BAR, 1)


def _bars(rows: Rows, lanes: list[Lane], least: int, fill: str, colours: Palette, **options: Any) -> go.Bar:
    """A bar from start to end for each of the rows, in the lane of its key and partition; `least` ms long or more."""
    places = [lanes.index((row["key"], row["partition"])) for row in rows]
    bars = [
        (place, row["window_start_ms"], row["window_end_ms"], escape_label(row["label"], 120))
        for place, row in zip(places, rows, strict=True)
    ]
    marker = {"color": fill, "line": {"width": 1.4, "color": colours.edge}}
    return span_bars(bars, least, width=0.5, marker=marker, **options)


def _dress(
    figure: go.Figure,
    title: str,
    said: str,
    lanes: list[Lane],
    newest_ms: int,
    colours: Palette,
    height: int,
    timezone: str = "UTC",
) -> None:
    """Title and axes: event time, and each lane's key, with its partition where there are several."""
    several = len({partition for _, partition in lanes}) > 1
    names = key_labels([f"{key} · {partition}" if several else key for key, partition in lanes], NAME_LENGTH)
    left = 24 + round(max((text_width(name, 13) for name in names), default=40))
    dress_plain(figure, colours, title, [said], height, left=left)
    room = [-0.6, max(len(lanes), 1) - 0.4]
    figure.update_yaxes(tickmode="array", tickvals=list(range(len(names))), ticktext=names, range=room)
    event_time_axis(figure, "event time", newest_ms, timezone, colours)


def _marks(lanes: list[Lane], times_ms: Mapping[int, int], name: str, dash: str, colour: str) -> go.Scatter:
    """A stroke across each lane at its partition's time."""
    x: list[int | None] = []
    y: list[float | None] = []
    for lane, (_, partition) in enumerate(lanes):
        if times_ms.get(partition, -1) >= 0:
            x += [times_ms[partition], times_ms[partition], None]
            y += [lane - 0.5, lane + 0.5, None]
    return curve(x, y, name, {"width": 2, "dash": dash, "color": colour})
