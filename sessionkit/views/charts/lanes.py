"""The lanes: one for each key, a bar for each window; what is closed, what is open, what was merged or dropped."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from sessionkit.session_trace import SessionTrace
from sessionkit.views.charts.board import Board, choose, everything
from sessionkit.views.charts.grammar import (
    WIDTH,
    Drawn,
    Frame,
    axis_title,
    checked_width,
    dressed,
    empty_figure,
    figure_of,
    time_axis,
)
from sessionkit.views.charts.lane_density import SessionDensity, WindowDensity, density, has_too_many
from sessionkit.views.charts.lane_words import graces, lanes_subtitle, lanes_title
from sessionkit.views.charts.palettes import Theme, palette
from sessionkit.views.charts.scene import LaneScene
from sessionkit.views.charts.session_lanes import session_bars, session_kinds
from sessionkit.views.charts.window_lanes import window_bars, window_kinds
from sessionkit.views.charts.window_scene import WindowLanes
from sessionkit.window_trace import WindowTrace

if TYPE_CHECKING:
    import plotly.graph_objects as go

Sort = Literal["drops", "merges", "activity", "key"]


def lanes(trace: SessionTrace | WindowTrace, window: Any, **options: Any) -> go.Figure:
    """The windows of many keys, a lane each: filled once closed, outlined while open. Options: see `lane_scene`."""
    return draw_lanes(lane_scene(trace, window, **options))


def lane_scene(
    trace: SessionTrace | WindowTrace,
    window: Any,
    *,
    keys: Iterable[object] | None = None,
    most: int = 40,
    sort: Sort | None = None,
    first_ms: int | None = None,
    last_ms: int | None = None,
    theme: Theme = "light",
    clock: str | None = None,
    width: int = WIDTH,
    whole: Board | None = None,
    most_drawn: int | None = None,
) -> LaneScene | WindowLanes:
    """What the lanes show, before they are drawn.

    Args:
        window: the windows that the trace is of.
        keys: which; all of them (at most `most`, those with most to see) if it is not given.
        sort: order of the lanes, top first: by "drops", "merges", "activity" (records) or "key". Keys that were asked
            for stay in the order given unless this is too; otherwise "drops".
        first_ms, last_ms: the span of event time; without them all, or the part with most to see. What lies beyond the
            data is cut off, so that `first_ms=0` shows all of it. A span of more records than can be drawn one by
            one is shown as density; drops, merges and rescues keep their marks.
        clock: name of the clock that the times were read from, for the axis.
        width: of the picture, in pixels; 700 or more.
        whole: all lanes of the trace, if they were looked up before.
        most_drawn: more records than this are shown as density.
    Raises:
        InvalidArgument: an unknown theme or order, or a span that ends before it starts.
        UnknownRecord: the run holds no such key.
    """
    whole = everything(trace, getattr(window, "trailing_only", False)) if whole is None else whole
    board = choose(whole, keys, most, sort, first_ms, last_ms)
    fixed, dense = isinstance(trace, WindowTrace), has_too_many(board, most_drawn)
    kind = (WindowDensity if dense else WindowLanes) if fixed else (SessionDensity if dense else LaneScene)
    return kind(board, window, palette(theme), time_axis(trace, window, clock), checked_width(width))


def draw_lanes(scene: LaneScene | WindowLanes) -> go.Figure:
    """The figure of the lanes."""
    colours = scene.colours
    title, subtitle = lanes_title(scene), lanes_subtitle(scene)
    if not scene.board.lanes:
        return empty_figure(colours, title, subtitle)
    draft = scene.frame(10, subtitle)
    drawn = _drawn(scene, draft)
    frame = scene.frame(sum(each["showlegend"] for each in drawn), subtitle)
    layout = dressed(colours, frame, title, subtitle)
    layout["xaxis"] |= {"title": axis_title(scene.axis.title, colours), **scene.axis.options(*scene.x_range_ms)}
    low, high = frame.y_range
    layout["yaxis"] |= {"range": [low, high], "minallowed": low, "maxallowed": high, "showgrid": True}
    names = [f"<b>{scene.name(lane)}</b>" for lane in scene.board.lanes]
    layout["yaxis"] |= {"tickmode": "array", "tickvals": list(range(len(names)))[::-1], "ticktext": names}
    return figure_of(drawn, layout)


def _drawn(scene: LaneScene | WindowLanes, frame: Frame) -> list[Drawn]:
    if isinstance(scene, SessionDensity):
        return density(scene, frame, session_kinds(scene))
    if isinstance(scene, WindowDensity):
        return density(scene, frame, window_kinds(scene))
    bars = window_bars(scene, frame) if isinstance(scene, WindowLanes) else session_bars(scene, frame)
    return [*bars, graces(scene, frame)]
