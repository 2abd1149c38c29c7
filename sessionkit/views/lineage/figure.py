"""The picture of a lineage: the sessions that became one as bars over event time, a level for each merge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from sessionkit.base.durations import MINUTE, show_duration
from sessionkit.base.text import escape_label, plural
from sessionkit.views.drawing.grammar import axis_title
from sessionkit.views.drawing.palettes import Theme, palette
from sessionkit.views.drawing.simple_frame import curve, dots, dress_plain, event_time_axis, span_bars

if TYPE_CHECKING:
    from sessionkit.views.lineage.lineage import Lineage

LEVEL = 62
HALF = 0.16  # of a bar's height, in levels
MOST_LEVELS = 14
LEAST_BAR = 160  # a bar is at least such a part of the picture, to be seen
ROOM_FOR_WORDS = 9  # bars of one level beside which their records are written


def lineage_figure(lineage: Lineage, *, theme: Theme | None) -> go.Figure:
    """Bars at the height of their merges; a line from each to the session that it became a part of."""
    colours, nodes = palette(theme), lineage.nodes
    root = nodes[-1]
    span_ms = root.end_ms - root.start_ms or MINUTE  # a single moment has room around it
    least = max(span_ms // LEAST_BAR, 1)
    joins_x: list[int | None] = []
    joins_y: list[float | None] = []
    for node in nodes:
        for child in (nodes[place] for place in node.children):
            middle = (child.start_ms + child.end_ms) // 2
            joins_x += [middle, middle, None]
            joins_y += [child.depth + HALF, node.depth - HALF, None]
    thin = {"width": 1.4, "color": colours.bridge}
    figure = go.Figure(curve(joins_x, joins_y, "became a part of", thin, showlegend=bool(joins_x)))
    for name, colour, chosen in (
        ("opened by a record", colours.body, [node for node in nodes if node.bridge < 0]),
        ("made by a bridge", colours.reach_edge, [node for node in nodes if node.bridge >= 0]),
    ):
        bars = [
            (node.depth, node.start_ms - max(least - (node.end_ms - node.start_ms), 0) // 2, node.end_ms, _said(node))
            for node in chosen
        ]
        marker = {"color": colour, "line": {"width": 1.6, "color": colours.edge}}
        figure.add_trace(span_bars(bars, least, width=2 * HALF, name=name, showlegend=bool(chosen), marker=marker))
    bridged = [node for node in nodes if node.bridge >= 0]
    times, depths = [node.bridge_ms for node in bridged], [node.depth for node in bridged]
    said = [f"the bridge, record {node.bridge}" for node in bridged]
    diamond, name = {"symbol": "diamond", "size": 11, "color": colours.bridge}, "the bridge, a record of its own"
    figure.add_trace(dots(times, depths, name, diamond, said, showlegend=bool(bridged)))
    _name_sizes(figure, nodes, colours)
    height = LEVEL * max(min(root.depth + 1, MOST_LEVELS), 2)
    dress_plain(figure, colours, escape_label(lineage.title, 160), _notes(lineage), height)
    figure.update_layout(barmode="overlay")
    pad = max(span_ms // 30, 1) if root.end_ms > root.start_ms else span_ms // 2
    figure.update_xaxes(range=[root.start_ms - pad, root.end_ms + pad])
    levels = {"range": [-0.6, root.depth + 0.7], "dtick": max(1, root.depth // 8)}
    figure.update_yaxes(title=axis_title("merges below it", colours), visible=root.depth > 0, **levels)
    event_time_axis(figure, "event time", root.end_ms, lineage.trace.batch.timezone, colours)
    return figure


def _notes(lineage: Lineage) -> list[str]:
    root, leaves = lineage.nodes[-1], sum(not node.children for node in lineage.nodes)
    if leaves == 1:
        return [f"{plural(root.total, 'record')}; it was never joined with another session"]
    merges = len(lineage.nodes) - leaves
    return [
        f"{plural(root.total, 'record')}, in {plural(leaves, 'session')} that became one by {plural(merges, 'merge')}",
        "read upwards: the bars below are what a bridge joined; a bar of one moment is drawn wider, to be seen",
    ]


def _sum(node: Any, nodes: Any) -> str:
    """The records of a session; of one that a bridge made, where they came from."""
    if not node.children:
        return plural(node.total, "record")
    before = " + ".join(f"{nodes[child].total:,}" for child in node.children)
    since = "the bridge" if node.own == 1 else f"{node.own:,} from the bridge on"
    return f"{plural(node.total, 'record')}: {before} + {since}"


def _said(node: Any) -> str:
    how = f"made by the bridge, record {node.bridge}" if node.bridge >= 0 else "opened by its first record"
    came = f", {node.own:,} of them since then" if node.children else ""
    length = f" · {show_duration(node.end_ms - node.start_ms)}" if node.end_ms > node.start_ms else ""
    return f"{plural(node.total, 'record')}{came}{length}<br>{how}"


def _name_sizes(figure: go.Figure, nodes: Any, colours: Any) -> None:
    """The number of records over a bar, where there are few bars at its height."""
    for depth in range(nodes[-1].depth + 1):
        mine = [node for node in nodes if node.depth == depth]
        if len(mine) > ROOM_FOR_WORDS:
            continue
        above = depth == nodes[-1].depth  # below the others: their lines go up
        place = {"y": depth + (HALF if above else -HALF), "yshift": 9 if above else -9}
        look = {"showarrow": False, "bgcolor": colours.background, "font": {"size": 11, "color": colours.mute}}
        for node in mine:
            middle = (node.start_ms + node.end_ms) // 2
            figure.add_annotation(x=middle, text=_sum(node, nodes), **place, **look)
