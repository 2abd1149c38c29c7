"""The plane: event time across, arrival upward; the history of one key and the line that closes its sessions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from sessionkit.trace.session_trace import SessionTrace
from sessionkit.trace.trace import Trace
from sessionkit.trace.window_trace import WindowTrace
from sessionkit.views.drawing.grammar import (
    Drawn,
    Frame,
    axis_title,
    checked_width,
    dressed,
    empty_figure,
    figure_of,
    leave_bare,
    shown_names,
)
from sessionkit.views.drawing.labels import Placement
from sessionkit.views.drawing.palettes import Theme, palette
from sessionkit.views.drawing.playback import add_playback
from sessionkit.views.drawing.time_axis import change_of_clocks, time_axis
from sessionkit.views.plane.marks import offsets
from sessionkit.views.plane.sessions import session_labels, session_marks
from sessionkit.views.plane.windows import window_labels, window_marks
from sessionkit.views.plane.words import plane_heading
from sessionkit.views.scenes.key_rows import KeyRows, key_code, partition_code
from sessionkit.views.scenes.scene import Plane
from sessionkit.views.scenes.session_scene import SessionHistory, SessionPlane
from sessionkit.views.scenes.window_history import WindowHistory
from sessionkit.views.scenes.window_scene import WindowPlane
from sessionkit.windows.contract import WindowKind

if TYPE_CHECKING:
    import plotly.graph_objects as go


class Form(NamedTuple):
    """How a plane of one kind of window is drawn: what it shows of a key, its marks, and their labels."""

    history: type[KeyRows]
    scene: Callable[..., Plane]
    marks: Callable[[Any], list[Drawn]]
    labels: Callable[[Any, Frame], Placement]


FORMS: dict[type[Trace], Form] = {
    SessionTrace: Form(SessionHistory, SessionPlane, session_marks, session_labels),
    WindowTrace: Form(WindowHistory, WindowPlane, window_marks, window_labels),
}


def plane_scene(
    trace: Trace,
    window: WindowKind,
    key: object,
    *,
    partition: int | None = None,
    first: int | None = None,
    last: int | None = None,
    theme: Theme | None = None,
    clock: str | None = None,
    width: int | None = None,
    height: int | None = None,
) -> Plane:
    """What a plane shows, before it is drawn: the windows as bodies, the close line, merges, drops and rescues.

    Args:
        window: the windows that the trace is of.
        partition: where to look; the partition with most of the key's records if it is not given.
        first, last: offsets to show only a part; without them all, or the stretch with most to see.
        clock: name of the clock that the times were read from, for the axis.
        width: of the picture, in pixels, 600 or more; without it the picture is as wide as the room that it is given.
        height: of a picture whose title and legend stand beside it, in pixels.
    Raises:
        UnknownRecord: the run holds no such key, or no record between these offsets.
        InvalidArgument: no such partition or theme.
    """
    colours, code = palette(theme), key_code(trace, key)
    at = (code, partition_code(trace, code, partition))
    axis, form = time_axis(trace, window, clock), FORMS[type(trace)]
    history = form.history(trace, *at, trailing_only=window.trailing_only)
    scene = form.scene(history, window, history.choose(first, last), colours, axis, checked_width(width), height)
    return replace(scene, axis=axis.over(scene.x_range_ms[0])) if len(scene.rows) else scene


class Composed(NamedTuple):
    """A plane's figure, and what it was laid out by."""

    figure: go.Figure
    frame: Frame
    placement: Placement


def draw_plane(scene: Plane, *, playback: bool = False) -> go.Figure:
    """The figure of a plane, with a slider over the arrivals if `playback`."""
    composed = compose(scene)
    if playback and len(scene.rows):
        figure, frame, placement = composed
        add_playback(figure, scene.colours, frame, placement, scene.trace.batch.offset[scene.rows])
    return composed.figure


def compose(scene: Plane) -> Composed:
    """The figure of a plane, with its frame and its labels."""
    colours, rows, form = scene.colours, scene.rows, FORMS[type(scene.trace)]
    heading = plane_heading(scene, scene.trace.keys[scene.history.key].as_py())
    if not len(rows):
        nowhere = Frame(scene.width, 0, 0, 0, 0, 0, (0, 1), (0, 1))
        return Composed(empty_figure(colours, heading, scene.width), nowhere, Placement(nowhere, scene.axis, colours))
    drawn = form.marks(scene)
    legend = shown_names(drawn)
    frame = scene.frame(legend, heading)
    layout = dressed(colours, frame, heading, legend)
    if scene.height is not None:
        leave_bare(layout)
    layout["xaxis"] |= {"title": axis_title(scene.axis.title, colours), **scene.axis.options(*scene.x_range_ms)}
    layout["yaxis"] |= {"title": axis_title("arrival order, by offset →", colours), **offsets(scene, frame)}
    placement = form.labels(scene, frame)
    changes = change_of_clocks(scene.axis, *scene.x_range_ms, colours)
    figure = figure_of([*drawn, *changes.lines], changes.added_to({**layout, "annotations": placement.annotations}))
    return Composed(figure, frame, placement)
