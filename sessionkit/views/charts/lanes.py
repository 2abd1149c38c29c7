"""The lanes: one for each key, a bar for each window; what is closed, what is open, what was merged or dropped."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from sessionkit.session_trace import SessionTrace
from sessionkit.views.charts.board import choose
from sessionkit.views.charts.grammar import WIDTH, Frame, Theme, axis_title, dress, palette, time_axis
from sessionkit.views.charts.lane_words import graces, lanes_subtitle, lanes_title
from sessionkit.views.charts.scene import LaneScene
from sessionkit.views.charts.session_lanes import session_bars
from sessionkit.views.charts.window_lanes import window_bars
from sessionkit.views.charts.window_scene import WindowLanes
from sessionkit.window_trace import WindowTrace

if TYPE_CHECKING:
    import plotly.graph_objects as go

Sort = Literal["drops", "merges", "activity", "key"]


def lanes(
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
) -> go.Figure:
    """The windows of many keys, a lane each: filled once closed, outlined while open.

    Args:
        window: the windows that the trace is of.
        keys: which; all of them (at most `most`, those with most to see) if it is not given.
        sort: order of the lanes, top first: by "drops", "merges", "activity" (records) or "key". Keys that were asked
            for stay in the order given unless this is too; otherwise "drops".
        first_ms, last_ms: the span of event time; without them all, or the part with most to see.
        clock: name of the clock that the times were read from, for the axis.
    Raises:
        InvalidArgument: an unknown theme or order, or a span that ends before it starts.
        UnknownRecord: the run holds no such key.
    """
    scene = lane_scene(
        trace,
        window,
        keys=keys,
        most=most,
        sort=sort,
        first_ms=first_ms,
        last_ms=last_ms,
        theme=theme,
        clock=clock,
    )
    return draw_lanes(scene)


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
) -> LaneScene | WindowLanes:
    """What the lanes show, before they are drawn; for the arguments see `lanes`."""
    trailing_only = getattr(window, "trailing_only", False)
    board = choose(trace, keys, most, sort, first_ms, last_ms, trailing_only)
    kind = WindowLanes if isinstance(trace, WindowTrace) else LaneScene
    return kind(board, window, palette(theme), time_axis(trace, window, clock))


def draw_lanes(scene: LaneScene | WindowLanes) -> go.Figure:
    """The figure of the lanes."""
    import plotly.graph_objects as go

    colours = scene.colours
    title, subtitle = lanes_title(scene), lanes_subtitle(scene)
    if not scene.board.lanes:
        figure = go.Figure()
        dress(figure, colours, Frame(WIDTH, 150, 78, 24, 110, 20, (0, 1), (0, 1)), title, subtitle)
        return figure.update_layout(xaxis_visible=False, yaxis_visible=False)
    draft = scene.frame(10, subtitle)
    bars = window_bars(scene, draft) if isinstance(scene, WindowLanes) else session_bars(scene, draft)
    figure = go.Figure([*bars, graces(scene, draft)])
    frame = scene.frame(sum(bool(each.showlegend) for each in figure.data), subtitle)
    dress(figure, colours, frame, title, subtitle)
    figure.update_xaxes(title=axis_title(scene.axis.title, colours), **scene.axis.options(*scene.x_range_ms))
    heights = list(range(len(scene.board.lanes)))[::-1]
    low, high = frame.y_range
    figure.update_yaxes(range=[low, high], minallowed=low, maxallowed=high, tickmode="array", tickvals=heights)
    figure.update_yaxes(ticktext=[f"<b>{scene.name(lane)}</b>" for lane in scene.board.lanes], showgrid=True)
    return figure
