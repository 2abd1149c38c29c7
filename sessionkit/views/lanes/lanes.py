"""The lanes: one for each key, a bar for each window; what is closed, what is open, what was merged or dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from sessionkit.trace.session_trace import SessionTrace
from sessionkit.trace.trace import Trace
from sessionkit.trace.window_trace import WindowTrace
from sessionkit.views.drawing.grammar import (
    Drawn,
    Frame,
    Legend,
    axis_title,
    checked_width,
    dressed,
    empty_figure,
    figure_of,
    leave_bare,
    shown_names,
)
from sessionkit.views.drawing.palettes import Theme, palette
from sessionkit.views.drawing.time_axis import change_of_clocks, time_axis
from sessionkit.views.lanes.density import Density, SessionDensity, WindowDensity, density, has_too_many
from sessionkit.views.lanes.marks import Kind
from sessionkit.views.lanes.sessions import session_bars, session_kinds
from sessionkit.views.lanes.windows import window_bars, window_kinds
from sessionkit.views.lanes.words import graces, lanes_heading
from sessionkit.views.scenes.board import Board, choose, everything
from sessionkit.views.scenes.scene import Lanes
from sessionkit.views.scenes.session_scene import SessionLanes
from sessionkit.views.scenes.window_scene import WindowLanes
from sessionkit.windows.contract import WindowKind

if TYPE_CHECKING:
    import plotly.graph_objects as go

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
    """What the lanes show, before they are drawn: windows, filled once closed, outlined while open.

    Args:
        window: the windows that the trace is of.
        keys: which; all of them (at most `most`, those with most to see) if it is not given.
        sort: order of the lanes, top first: by "drops", "merges", "activity" (records) or "key". Keys that were asked
            for stay in the order given unless this is too; otherwise "drops".
        start, end: the span of event time, in ms; without them all, or the part with the most to see. What lies beyond
            the data is cut off, so that `start=0` shows all of it. A span of more records than can be drawn one by
            one is shown as density; drops, merges and rescues keep their marks.
        clock: name of the clock that the times were read from, for the axis.
        width: of the picture, in pixels, 600 or more; without it the picture is as wide as the room that it is given.
        height: of a picture whose title and legend stand beside it, in pixels; more if the lanes need more.
        whole: all lanes of the trace, if they were looked up before.
        most_drawn: more records than this are shown as density.
    Raises:
        InvalidArgument: an unknown theme or order, or a span that ends before it starts.
        UnknownRecord: the run holds no such key.
    """
    whole = everything(trace, window.trailing_only) if whole is None else whole
    board, form = choose(whole, keys, most, sort, start, end), FORMS[type(trace)]
    drawn_as = form.dense if has_too_many(board, form.window_records, most_drawn) else form.scene
    axis = time_axis(trace, window, clock)
    scene = drawn_as(board, window, palette(theme), axis, checked_width(width), height)
    return replace(scene, axis=axis.over(scene.x_range_ms[0]))


def draw_lanes(scene: Lanes) -> go.Figure:
    """The figure of the lanes."""
    colours = scene.colours
    heading = lanes_heading(scene)
    if not scene.board.lanes:
        return empty_figure(colours, heading, scene.width)
    drawn = _drawn(scene, scene.frame(Legend(), heading))
    legend = shown_names(drawn)
    frame = scene.frame(legend, heading)
    layout = dressed(colours, frame, heading, legend)
    if scene.height is not None:
        leave_bare(layout)
    layout["xaxis"] |= {"title": axis_title(scene.axis.title, colours), **scene.axis.options(*scene.x_range_ms)}
    low, high = frame.y_range
    layout["yaxis"] |= {"range": [low, high], "minallowed": low, "maxallowed": high, "showgrid": True}
    names = [f"<b>{scene.name(lane)}</b>" for lane in scene.board.lanes]
    layout["yaxis"] |= {"tickmode": "array", "tickvals": list(range(len(names)))[::-1], "ticktext": names}
    changes = change_of_clocks(scene.axis, *scene.x_range_ms, colours)
    return figure_of([*drawn, *changes.lines], changes.added_to(layout))


def _drawn(scene: Lanes, frame: Frame) -> list[Drawn]:
    form = FORMS[type(scene.trace)]
    if isinstance(scene, Density):
        return density(scene, frame, form.kinds(scene))
    return [*form.bars(scene, frame), graces(scene, frame)]
