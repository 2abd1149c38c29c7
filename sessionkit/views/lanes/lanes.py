"""The lanes: one for each key, a bar for each window; what is closed, what is open, what was merged or dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

import numpy as np

from sessionkit.base.arrays import Longs
from sessionkit.base.decisions import LATE, MERGED
from sessionkit.base.durations import lacked
from sessionkit.base.text import escape_label
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.trace.trace import Trace
from sessionkit.trace.window_trace import WindowTrace
from sessionkit.views.drawing.grammar import (
    MOST_REASONS,
    Drawn,
    Frame,
    Legend,
    Outline,
    checked_width,
    cure,
    empty_figure,
    lines,
    place_words,
    reasons,
    shown_names,
    timed_figure,
)
from sessionkit.views.drawing.measured_text import text_width
from sessionkit.views.drawing.palettes import Figure, Theme, palette
from sessionkit.views.drawing.time_axis import time_axis
from sessionkit.views.lanes.density import Density, SessionDensity, WindowDensity, density, has_too_many
from sessionkit.views.lanes.marks import (
    SMALL,
    Kind,
    LaneText,
    clocks,
    graces,
    ground,
    lane_text,
    lanes_heading,
    middles,
    points,
    sizes,
)
from sessionkit.views.scenes.board import Board, choose, everything
from sessionkit.views.scenes.scene import Lanes
from sessionkit.views.scenes.session_scene import SessionLanes, reach_name
from sessionkit.views.scenes.window_history import size_of
from sessionkit.views.scenes.window_scene import WindowLanes
from sessionkit.windows.contract import WindowKind

_LEAST_BAR = 12  # pixels of a bar with words in it


def window_bars(scene: WindowLanes, frame: Frame) -> list[Drawn]:
    """All that is drawn, from the back to the front."""
    rows = np.array(sorted(scene.sublane), np.int64)
    lanes = scene.board.heights(rows)
    spans = [scene.bar(row, y) for row, y in zip(rows.tolist(), lanes, strict=True)]
    heights = [(low + high) / 2 for low, high in spans]
    return [
        *ground(scene, frame),
        *_bars(scene, rows, spans),
        middles(scene, rows, heights),
        *points(scene, window_kinds(scene), lambda _, rows: [_hover(scene, row) for row in rows.tolist()], 0.8),
        *clocks(scene),
        _sizes(scene, frame, rows, heights),
    ]


def _bars(scene: WindowLanes, rows: Longs, spans: list[tuple[float, float]]) -> list[Drawn]:
    closed, opened, colours = Outline(), Outline(), scene.colours
    columns, is_closed = scene.trace.window_columns, scene.trace.closed_by[rows] >= 0
    starts, ends = columns.start_ms[rows].tolist(), columns.end_ms[rows].tolist()
    for start_ms, end_ms, span, done in zip(starts, ends, spans, is_closed.tolist(), strict=True):
        (closed if done else opened).box(start_ms, end_ms, *span)
    rim = {"width": 1, "color": colours.background}  # keeps a window apart from the next one
    edge = {"width": 1.4, "color": colours.edge}
    return [
        lines(scene.axis, closed, "closed window: final", rim, fillcolor=colours.solid, legendrank=20),
        lines(scene.axis, opened, "open window: can still change", edge, fillcolor=colours.body, legendrank=21),
    ]


def window_kinds(scene: WindowLanes) -> tuple[Kind, ...]:
    """Records by what they did; the plain ones first. Those that count are below the bars, dropped ones above."""
    trace, colours, low = scene.trace, scene.colours, -scene.above
    late, some = trace.late_but_kept & ~trace.late_for_some, trace.late_for_some & trace.accepted
    saved = {"symbol": "triangle-up", "color": colours.saved, "size": 8}
    partly = {"symbol": "diamond", "color": colours.bridge, "size": 8}
    drop = {"symbol": "x", "color": colours.drop, "size": 8}
    return (
        Kind(trace.accepted & ~late & ~some, "record", 1, low, {"color": colours.record, "size": 6}),
        Kind(late, "late, but its window is still open", 2, low, saved),
        Kind(some, "too late for some of its windows", 3, low, partly),
        Kind(trace.decision == LATE, f"dropped (+ {scene.lacked})", 4, scene.above, drop),
    )


def _hover(scene: WindowLanes, row: int) -> str:
    """Where a record stands, and for a drop what would have kept it."""
    batch = scene.trace.batch
    name = escape_label(scene.trace.keys[int(batch.key[row])].as_py())
    said = [f"{name} · {place_words(batch, row, scene.axis.show)}"]
    if row in scene.missing_ms:
        missing_ms = scene.missing_ms[row]
        said.append(f"{lacked(missing_ms)} short: {cure(scene.window.grace_ms, missing_ms)}")
    return "<br>".join(said)


def _sizes(scene: WindowLanes, frame: Frame, rows: Longs, heights: list[float]) -> Drawn:
    """In each bar how many records it holds, where there is room."""
    columns = scene.trace.window_columns
    found = []
    starts, ends = frame.x(columns.start_ms[rows]).tolist(), frame.x(columns.end_ms[rows]).tolist()
    for row, left, right, y in zip(rows.tolist(), starts, ends, heights, strict=True):
        is_high = scene.bar_pixels(round(y)) >= _LEAST_BAR
        size, left, right = size_of(scene.trace, row), max(left, 0.0), min(right, float(frame.plot_width))
        for text in filter(None, (scene.steps.get(row), size.words, f"{size.record_count:,}")):
            half, middle = text_width(text, SMALL) / 2 + 3, (left + right) / 2
            crossed = any(middle - half < x < middle + half for x in scene.clocks_x(frame))
            if is_high and 2 * half <= right - left and not crossed:
                found.append(LaneText(text, middle, y, "center"))
                break
    return lane_text(scene, frame, "sizes", found, scene.colours.ink)


_LONE_HALF_PIXELS = 2  # half the width of the bar of a session of a single moment


def session_bars(scene: SessionLanes, frame: Frame) -> list[Drawn]:
    """All that is drawn, from the back to the front."""
    return [*_areas(scene, frame), *_points(scene), *clocks(scene), sizes(scene, frame)]


def _bar(start_ms: int, end_ms: int, least: int) -> tuple[int, int]:
    middle, half = (start_ms + end_ms) / 2, (end_ms - start_ms) / 2
    if half >= least:
        return start_ms, end_ms
    return round(middle - least), round(middle + least)


def _areas(scene: SessionLanes, frame: Frame) -> list[Drawn]:
    colours, axis, columns = scene.colours, scene.axis, scene.trace.window_columns
    reach, closed, opened, former = (Outline() for _ in range(4))
    final = np.setdiff1d(scene.board.windows, scene.open_windows)
    least = round(_LONE_HALF_PIXELS * frame.usual.ms_per_pixel)
    for outline, windows in (reach, scene.open_windows), (closed, final), (opened, scene.open_windows):
        windows = windows[np.argsort(columns.start_ms[windows] - columns.end_ms[windows], kind="stable")]
        starts, ends = columns.start_ms[windows].tolist(), columns.end_ms[windows].tolist()
        for start_ms, end_ms, y in zip(starts, ends, scene.board.heights(windows), strict=True):
            edges = scene.window.reach_of_ms(start_ms, end_ms) if outline is reach else _bar(start_ms, end_ms, least)
            outline.box(*edges, y - scene.half, y + scene.half)
    parts, before_ms, after_ms = scene.former
    down, tick = scene.half + 0.075, 0.055
    for y, start_ms, end_ms in zip(scene.board.heights(parts), before_ms.tolist(), after_ms.tolist(), strict=True):
        left, right = _bar(start_ms, end_ms, least)
        former.add((left, left, right, right), (y - down + tick, y - down, y - down, y - down + tick))
    rim = {"width": 1, "color": colours.background}  # keeps a session apart from one that was closed below it
    dotted = {"width": 1, "dash": "dot", "color": colours.reach_edge}
    edge, plum = {"width": 1.8, "color": colours.edge}, {"width": 2.5, "color": colours.bridge}
    named = {"fillcolor": colours.reach, "legendrank": 30}
    return [
        *ground(scene, frame),
        lines(axis, reach, reach_name(scene.window), dotted, **named),
        lines(axis, closed, "closed session: final", rim, fillcolor=colours.solid, legendrank=20),
        lines(axis, opened, "open session: can still grow", edge, fillcolor=colours.body, legendrank=21),
        lines(axis, former, "sessions before their merge", plum, legendrank=22),
    ]


def session_kinds(scene: SessionLanes) -> tuple[Kind, ...]:
    """Records by what they did; the plain ones first."""
    trace, colours, size = scene.trace, scene.colours, 12 if scene.is_roomy else 8
    late, merged, dropped = trace.late_but_kept, trace.decision == MERGED, trace.decision == LATE
    plain = {"color": colours.record, "size": size - 3}
    saved = {"symbol": "triangle-up", "color": colours.saved, "size": size}
    bridge = {"symbol": "diamond", "color": colours.bridge, "size": size}
    drop = {"symbol": "x", "color": colours.drop, "size": size}
    return (
        Kind(trace.accepted & ~late & ~merged, "record", 1, 0.0, plain),
        Kind(late & ~merged, "late, saved by an open session", 3, 0.0, saved),
        Kind(merged, "bridge: joins two sessions", 2, 0.0, bridge),
        Kind(dropped, "dropped (+ missing grace)", 4, scene.above, drop),
    )


def _points(scene: SessionLanes) -> list[Drawn]:
    """The middles of bars (for hover only), then records by what they did."""

    def words(name: str, rows: Longs) -> list[str]:
        most = MOST_REASONS // 3 if name == "record" else MOST_REASONS
        return reasons(scene.trace, scene.window, scene.axis.show, rows.tolist(), scene.missing_ms, most)

    windows = scene.board.windows
    own = points(scene, session_kinds(scene), words, 1.3 if scene.is_roomy else 0.8)
    return [middles(scene, windows, scene.board.heights(windows)), *own]


Sort = Literal["drops", "merges", "activity", "key"]


class Form(NamedTuple):
    """How the lanes of one kind of window are drawn: what they show, and (too many of them) as density."""

    scene: type[Lanes]
    dense: type[Density]
    bars: Callable[[Any, Frame], list[Drawn]]
    kinds: Callable[[Any], tuple[Kind, ...]]  # of records
    window_records: int  # so many records take as much of a figure as one window


FORMS: dict[type[Trace], Form] = {
    SessionTrace: Form(SessionLanes, SessionDensity, session_bars, session_kinds, 5),
    WindowTrace: Form(WindowLanes, WindowDensity, window_bars, window_kinds, 3),
}


def lane_scene(
    trace: Trace,
    window: WindowKind,
    *,
    keys: Iterable[object] | None = None,
    most: int = 40,
    sort: Sort | None = None,
    start: int | None = None,
    end: int | None = None,
    theme: Theme | None = None,
    clock: str | None = None,
    width: int | None = None,
    height: int | None = None,
    whole: Board[Trace] | None = None,
    most_drawn: int | None = None,
) -> Lanes:
    """What the lanes show, before they are drawn, as `Run.lanes` describes it.

    Args:
        height: of a picture whose title and legend stand beside it, in pixels; more if the lanes need more.
        whole: all lanes of the trace, if they were looked up before.
        most_drawn: more records than this are shown as density.
    """
    whole = everything(trace, window.trailing_only) if whole is None else whole
    board, form = choose(whole, keys, most, sort, start, end), FORMS[type(trace)]
    drawn_as = form.dense if has_too_many(board, form.window_records, most_drawn) else form.scene
    axis = time_axis(trace, window, clock)
    return drawn_as(board, window, palette(theme), axis, checked_width(width), height)


def draw_lanes(scene: Lanes) -> Figure:
    """The figure of the lanes."""
    colours = scene.colours
    heading = lanes_heading(scene)
    if not scene.board.lanes:
        return empty_figure(colours, heading, scene.width)
    form, plot = FORMS[type(scene.trace)], scene.frame(Legend(), heading)
    if isinstance(scene, Density):
        drawn = density(scene, plot, form.kinds(scene))
    else:
        drawn = [*form.bars(scene, plot), graces(scene, plot)]
    frame = scene.frame(shown_names(drawn), heading)
    low, high = frame.y_range
    names = [f"<b>{name}</b>" for name in scene.names]
    ticks = {"tickmode": "array", "tickvals": list(range(len(names)))[::-1], "ticktext": names}
    yaxis = {"range": [low, high], "minallowed": low, "maxallowed": high, "showgrid": True, **ticks}
    is_bare = scene.height is not None
    figure = timed_figure(scene.axis, colours, drawn, frame, heading, is_bare=is_bare, yaxis=yaxis)
    if scene.is_long:
        figure.update_layout(xaxis_side="top", legend_y=1 - (heading.height - 8) / frame.height)
        figure.for_each_trace(_named_below, {"name": "change of clocks"})
    return figure


def _named_below(line: Any) -> None:
    """Has the lines of a picture with ticks on top their names at their feet."""
    line.text = [name for top, foot, rest in zip(*[iter(line.text)] * 3, strict=True) for name in (foot, top, rest)]
    line.textposition = [place.replace("top", "bottom") for place in line.textposition]
