"""The lanes: one for each key, a bar for each session; what is closed, what is open, what was merged or dropped."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sessionkit.decisions import LATE, MERGED
from sessionkit.session_trace import SessionTrace
from sessionkit.text import escape_label
from sessionkit.views.charts.board import choose
from sessionkit.views.charts.grammar import (
    MOST_REASONS,
    MOST_SVG_POINTS,
    WIDTH,
    Frame,
    Outline,
    Theme,
    axis_title,
    dress,
    lines,
    marks,
    palette,
    reason,
    time_axis,
)
from sessionkit.views.charts.history import Rows, session_size
from sessionkit.views.charts.lane_words import graces, lanes_subtitle, lanes_title, sizes
from sessionkit.views.charts.scene import LaneScene

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from sessionkit.windows.session import SessionWindows

Sort = Literal["drops", "merges", "activity", "key"]

_LARGEST_PITCH, _SMALLEST_PITCH, _PLOT = 118, 34, 640  # pixels of a lane, and what all lanes should share
_ROOMY_PITCH = 60  # from here on there is room for words below the bars
_LONE_HALF_PIXELS = 2  # half the width of the bar of a session of a single moment
_NAME_LENGTH = 26
_SMALL = 11  # the size of words in the lanes


def lanes(
    trace: SessionTrace,
    window: SessionWindows,
    *,
    keys: Iterable[object] | None = None,
    most: int = 40,
    sort: Sort | None = None,
    first_ms: int | None = None,
    last_ms: int | None = None,
    theme: Theme = "light",
    clock: str | None = None,
) -> go.Figure:
    """The sessions of many keys, a lane each: filled once closed, outlined while open.

    Args:
        keys: which; all of them (at most `most`, those with most to see) if it is not given.
        sort: order of the lanes, top first: by "drops", "merges", "activity" (records) or "key". Keys that were asked
            for stay in the order given unless this is too; otherwise "drops".
        first_ms, last_ms: the span of event time; without them all, or the part with most to see.
        clock: name of the clock that the times were read from, for the axis.
    Raises:
        InvalidArgument: an unknown theme or order, or a span that ends before it starts.
        UnknownRecord: the run holds no such key.
    """
    import plotly.graph_objects as go

    colours = palette(theme)
    scene = LaneScene(
        choose(trace, keys, most, sort, first_ms, last_ms), window, colours, time_axis(trace, window, clock)
    )
    title, subtitle = lanes_title(scene), lanes_subtitle(scene)
    if not scene.board.lanes:
        figure = go.Figure()
        dress(figure, colours, Frame(WIDTH, 150, 78, 24, 110, 20, (0, 1), (0, 1)), title, subtitle)
        return figure.update_layout(xaxis_visible=False, yaxis_visible=False)
    draft = scene.frame(10, subtitle)
    figure = go.Figure([*_areas(scene, draft), *_points(scene), *_clocks(scene)])
    figure.add_traces([sizes(scene, draft), graces(scene, draft)])
    frame = scene.frame(sum(bool(each.showlegend) for each in figure.data), subtitle)
    dress(figure, colours, frame, title, subtitle)
    figure.update_xaxes(title=axis_title(scene.axis.title, colours), **scene.axis.options(*scene.x_range_ms))
    heights = list(range(len(scene.board.lanes)))[::-1]
    low, high = frame.y_range
    figure.update_yaxes(range=[low, high], minallowed=low, maxallowed=high, tickmode="array", tickvals=heights)
    figure.update_yaxes(ticktext=[f"<b>{scene.name(lane)}</b>" for lane in scene.board.lanes], showgrid=True)
    return figure


def _bar(scene: LaneScene, start_ms: int, end_ms: int, frame: Frame, pad_ms: int = 0) -> tuple[int, int]:
    least = round(_LONE_HALF_PIXELS * frame.ms_per_pixel)
    middle, half = (start_ms + end_ms) / 2, (end_ms - start_ms) / 2
    if half >= least or pad_ms:
        return start_ms - pad_ms, end_ms + pad_ms
    return round(middle - least), round(middle + least)


def _areas(scene: LaneScene, frame: Frame) -> list[go.Scatter]:
    """Closed territory, reach, closed and open bars, brackets of former sessions."""
    colours, axis, columns = scene.colours, scene.axis, scene.trace.window_columns
    territory, bands, reach, closed, opened, former = (Outline() for _ in range(6))
    line_ms, low_ms = scene.clocks_ms[0], scene.x_range_ms[0]
    if line_ms is not None:
        territory.box(low_ms, line_ms, frame.y_range[0], frame.y_range[1])
    for y in range(len(scene.board.lanes) % 2, len(scene.board.lanes), 2):
        bands.box(low_ms, scene.x_range_ms[1], y - 0.5, y + 0.5)
    for outline, windows, pad_ms in (
        (reach, scene.open_windows, scene.window.inactivity_gap_ms),
        (closed, scene.closed_windows, 0),
        (opened, scene.open_windows, 0),
    ):
        windows = windows[np.argsort(columns.start_ms[windows] - columns.end_ms[windows], kind="stable")]
        bounds = (columns.start_ms[windows].tolist(), columns.end_ms[windows].tolist())
        for start_ms, end_ms, y in zip(*bounds, scene.height_of_windows(windows), strict=True):
            outline.box(*_bar(scene, start_ms, end_ms, frame, pad_ms), y - scene.half, y + scene.half)
    parts, starts, ends = scene.board.former
    down, tick = scene.half + 0.075, 0.055
    for y, start_ms, end_ms in zip(scene.height_of_windows(parts), starts.tolist(), ends.tolist(), strict=True):
        left, right = _bar(scene, start_ms, end_ms, frame)
        former.add((left, left, right, right), (y - down + tick, y - down, y - down, y - down + tick))
    none: dict[str, Any] = {"width": 0}
    rim = {"width": 1, "color": colours.background}  # keeps a session apart from one that was closed below it
    dotted = {"width": 1, "dash": "dot", "color": colours.reach_edge}
    edge, plum = {"width": 1.8, "color": colours.edge}, {"width": 2.5, "color": colours.bridge}
    named = {"fillcolor": colours.reach, "legendrank": 30}
    return [
        lines(axis, bands, "lane", none, fillcolor=colours.band, showlegend=False),
        lines(axis, territory, "closed territory", none, fillcolor=colours.territory, legendrank=60),
        lines(axis, reach, "reach: a record in here joins (± gap)", dotted, **named),
        lines(axis, closed, "closed session: final", rim, fillcolor=colours.solid, legendrank=20),
        lines(axis, opened, "open session: can still grow", edge, fillcolor=colours.body, legendrank=21),
        lines(axis, former, "sessions before they were merged", plum, legendrank=22),
    ]


def _points(scene: LaneScene) -> list[go.Scatter | go.Scattergl]:
    """Records by what they did, then the middles of bars (for hover only)."""
    trace, board, colours = scene.trace, scene.board, scene.colours
    gl = len(board.records) > MOST_SVG_POINTS
    rim = {"width": 1.3 if scene.is_roomy else 0.8, "color": colours.background}
    late, merged, dropped = trace.late_but_kept, trace.decision == MERGED, trace.decision == LATE
    plain = trace.accepted & ~late & ~merged
    found = []
    kinds: tuple[tuple[Any, str, int, float, dict[str, Any]], ...] = (
        (plain, "record", 1, 0.0, {"color": colours.record}),
        (late & ~merged, "late, saved by an open session", 3, 0.0, {"symbol": "triangle-up", "color": colours.saved}),
        (merged, "bridge: joins two sessions into one", 2, 0.0, {"symbol": "diamond", "color": colours.bridge}),
        (dropped, "dropped (+ the grace it lacked)", 4, scene.above, {"symbol": "x", "color": colours.drop}),
    )
    for mask, name, rank, lift, marker in kinds:
        size = (5 if name == "record" else 8) + (4 if scene.is_roomy else 0)
        rows = board.of(mask)
        heights = (scene.height_of(rows) + lift).tolist()
        words = _reasons(scene, rows, MOST_REASONS // 3 if name == "record" else MOST_REASONS)
        place = (scene.axis, trace.batch.timestamp_ms[rows], heights, words, name, gl)
        found.append(marks(*place, marker={**marker, "size": size, "line": rim}, legendrank=rank))
    return [_middles(scene, gl), *found]


def _reasons(scene: LaneScene, rows: Rows, most: int) -> list[str]:
    offset, times = scene.trace.batch.offset, scene.trace.batch.timestamp_ms
    words = [f"offset {offset[row]:,} · {scene.axis.show(int(times[row]))}" for row in rows.tolist()]
    for number, row in enumerate(rows[:most].tolist()):
        words[number] = reason(scene.trace, scene.window, row, scene.missing_ms.get(row))
    return words


def _middles(scene: LaneScene, gl: bool) -> go.Scatter | go.Scattergl:
    """Invisible points in the bars that say what they are on hover."""
    trace, windows, columns = scene.trace, scene.board.windows, scene.trace.window_columns
    words = []
    for row in windows.tolist():
        start_ms, end_ms, by = int(columns.start_ms[row]), int(columns.end_ms[row]), int(trace.closed_by[row])
        state = f"<b>closed</b> by the record at offset {by:,}" if by >= 0 else "<b>still open</b>"
        span = f"{scene.axis.show(start_ms)} to {scene.axis.show(end_ms)}"
        name = escape_label(trace.keys[int(columns.key[row])].as_py())
        words.append(f"{name}: {state}<br>{span}<br>{session_size(scene.sizes[row], end_ms - start_ms)}")
    middles = (columns.start_ms[windows] + columns.end_ms[windows]) // 2
    marker = {"size": 12, "color": "rgba(0,0,0,0)"}
    place = (scene.axis, middles, scene.height_of_windows(windows), words, "session", gl)
    return marks(*place, marker=marker, showlegend=False)


def _clocks(scene: LaneScene) -> list[go.Scatter]:
    """The close line and stream time, as they stand at the end of the run."""
    close, stream = Outline(), Outline()
    low, high = -0.55, len(scene.board.lanes) - 0.45
    for outline, ms in zip((close, stream), scene.clocks_ms, strict=True):
        if ms is not None:
            outline.add((ms, ms), (low, high))
    thick = {"width": 3, "color": scene.colours.line}
    thin = {"width": 1.4, "dash": "dash", "color": scene.colours.stream}
    return [
        lines(scene.axis, close, "close line now", thick, legendrank=40),
        lines(scene.axis, stream, "stream time now", thin, legendrank=50),
    ]
