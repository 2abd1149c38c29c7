"""The plane: event time across, arrival upward; the history of one key and the line that closes its sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sessionkit.base.durations import INT64_MAX, grace_with, lacked
from sessionkit.base.text import plural
from sessionkit.records.keys import code_of_key
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.trace.trace import Trace
from sessionkit.trace.window_trace import WindowTrace
from sessionkit.views.drawing.grammar import (
    Drawn,
    Frame,
    Outline,
    axis_title,
    checked_width,
    cure,
    empty_figure,
    growing,
    lines,
    marks,
    place_words,
    reasons,
    shown_names,
    timed_figure,
)
from sessionkit.views.drawing.labels import Placement
from sessionkit.views.drawing.palettes import Figure, Theme, fainter, palette
from sessionkit.views.drawing.playback import add_playback
from sessionkit.views.drawing.time_axis import time_axis
from sessionkit.views.plane.marks import (
    THIN,
    Kind,
    Spoken,
    caps,
    clocks,
    drop_words,
    far_drops,
    kept_though_late,
    labels,
    offsets,
    own_points,
    plane_heading,
    territory,
    tether_lines,
)
from sessionkit.views.scenes.key_rows import KeyRows, partition_code
from sessionkit.views.scenes.scene import Plane
from sessionkit.views.scenes.session_scene import SessionHistory, SessionPlane, reach_name
from sessionkit.views.scenes.window_history import WindowHistory
from sessionkit.views.scenes.window_scene import MOST_LAYERS, Met, WindowPlane
from sessionkit.windows.contract import WindowKind

_BODY = "window, from its first record on"


def window_marks(scene: WindowPlane) -> list[Drawn]:
    """All that is drawn, from the back to the front."""
    return [
        territory(scene),
        *_bodies(scene),
        *clocks(scene, "close line: stream \N{MINUS SIGN} grace"),
        caps(scene, 5 if scene.deep == 1 else 3.5 if scene.deep <= MOST_LAYERS else 2.5),
        *tether_lines(scene, scene.tethers),
        _missed_ends(scene),
        *_window_points(scene),
    ]


def _bodies(scene: WindowPlane) -> list[Drawn]:
    """The windows: as columns, lighter where they lie over one another, or (many) as their feet and ends."""
    colours, axis = scene.colours, scene.axis
    if scene.deep > MOST_LAYERS:
        fill = Outline()
        for layer in scene.layers:
            fill.x_ms += layer.x_ms
            fill.y += layer.y
        area = lines(axis, fill, "windows", {"width": 0}, fillcolor=fainter(colours.body, 0.4), showlegend=False)
        name = "window: made, then open up to its end"
        return [area, lines(axis, scene.feet, name, {"width": 1.1, "color": colours.edge}, legendrank=20)]
    look: dict[str, Any] = {
        "line": {"width": 1.6 if scene.deep == 1 else 1, "color": colours.edge},
        "fillcolor": fainter(colours.body, 1 if scene.deep == 1 else 1.6 / scene.deep),
    }
    filled = [layer for layer in scene.layers if layer.y] or [Outline()]
    return [lines(axis, layer, _BODY, legendrank=20, showlegend=not n, **look) for n, layer in enumerate(filled)]


def _missed_ends(scene: WindowPlane) -> Drawn:
    """A tick at the end of each window that a record came too late for, where there is room for one."""
    mine = scene.ticked
    records, ends = scene.trace.missed.record[mine], scene.ends_ms(mine)
    starts, short = scene.trace.missed.start_ms[mine], scene.trace.missing_ms[mine]
    words = []
    for row, start_ms, short_ms in zip(records.tolist(), starts.tolist(), short.tolist(), strict=True):
        span = f"{scene.axis.show(start_ms)} to {scene.axis.show(int(scene.trace.ends_ms(start_ms)))}"
        said = f"{lacked(short_ms)} short: {cure(scene.window.grace_ms, short_ms)}"
        words.append(f"<b>closed before</b> offset {scene.trace.batch.offset[row]:,} came<br>{span}<br>{said}")
    line = {"width": 2, "color": scene.colours.drop}
    marker = {"symbol": "line-ns", "size": 9, "color": scene.colours.drop, "line": line}
    name, rows = "end of a window that it missed", len(scene.rows)
    return marks(scene.axis, ends, scene.y(records), words, name, rows, marker=marker, legendrank=6)


def _window_points(scene: WindowPlane) -> list[Drawn]:
    history = scene.history
    kinds = (
        Kind(history.plain, "record", 1, "circle", 0, "record"),
        Kind(history.late_but_kept, "late, but its window is still open", 2, "triangle-up", 2, "saved"),
        Kind(history.partly_late, "too late for some of its windows", 3, "diamond", 3, "bridge"),
        Kind(np.setdiff1d(history.drops, scene.far), "dropped (dotted: the missing grace)", 4, "x", 2, "drop", THIN),
        far_drops(scene),
    )
    return own_points(scene, kinds, lambda rows: [_hover(scene, row) for row in rows.tolist()])


def _hover(scene: WindowPlane, row: int) -> str:
    met, said = scene.met[row], [place_words(scene.trace.batch, row, scene.axis.show)]
    if met.counted:
        said.append(f"counts in {plural(met.counted, 'window')}")
    if met.missing_ms:
        name = "<b>dropped</b>: too late" if not met.counted else "too late"
        said.append(f"{name} for {plural(len(met.missing_ms), 'window')}")
        said.append(_cure(scene, met))
    return "<br>".join(said)


def _cure(scene: WindowPlane, met: Met) -> str:
    """The grace under which a record would count in all its windows; for a dropped one also in one of them, where that
    can be told: which sliding windows there are depends on what else is kept."""
    grace_ms, least, most = scene.window.grace_ms, min(met.missing_ms), max(met.missing_ms)
    if scene.trace.inclusive_end:
        return f"{cure(grace_ms, most)} in all"
    if met.counted or least == most:
        there = (" in all" if len(met.missing_ms) > 1 else " there too") if met.counted else ""
        return cure(grace_ms, most) + there
    return f"{cure(grace_ms, least)} in one,<br>{grace_with(grace_ms, most)} in all"


def window_labels(scene: WindowPlane, frame: Frame) -> Placement:
    """Labels beside the marks: what was dropped, missed some windows, closed, or was kept though late."""
    history, colours = scene.history, scene.colours
    bodies = [scene.feet] if scene.deep > MOST_LAYERS else scene.layers
    spoken = (
        Spoken("dropped", np.intersect1d(history.drops, scene.alone), 125, colours.drop),
        Spoken("partly late", np.intersect1d(history.partly_late, scene.alone), 125, colours.bridge),
    )

    def words(kind: str, row: int) -> str:
        met = scene.met[row]
        if not met.missing_ms:  # of trailing windows it missed only such as are no results
            return drop_words(scene, row, ": too late") if kind == "dropped" else kept_though_late(scene, row)
        missed = plural(len(met.missing_ms), "window")
        if met.counted:
            return f"<b>too late for {missed}</b>, counts in {met.counted:,}<br>{_cure(scene, met)}"
        if len(met.missing_ms) == 1:
            return drop_words(scene, row, f" · {lacked(met.missing_ms[0])} short<br>{_cure(scene, met)}")
        return drop_words(scene, row, f": too late for {missed}<br>{_cure(scene, met)}")

    return labels(scene, frame, spoken, words, fixed=scene.tethers, crossed=bodies)


def session_marks(scene: SessionPlane) -> list[Drawn]:
    """All that is drawn, from the back to the front."""
    colours, axis, reach = scene.colours, scene.axis, Outline()
    for life in scene.lives:
        steps = [(row, *scene.window.reach_of_ms(*bounds)) for row, *bounds in life.steps]
        reach.add(*growing(steps, life.end))
    none, edge = {"width": 0}, {"width": 1.6, "color": colours.edge}
    dotted, plum = {"width": 1.4, "dash": "dot", "color": colours.stream}, {"width": 3, "color": colours.bridge}
    return [
        territory(scene),
        lines(axis, reach, reach_name(scene.window), none, fillcolor=colours.reach, legendrank=30),
        lines(axis, scene.bodies, "session, as it grows", edge, fillcolor=colours.body, legendrank=20),
        lines(axis, _retained(scene), "closed but still retained", dotted, legendrank=26),
        *clocks(scene, " \N{MINUS SIGN} ".join(["close line: stream", *scene.window.close_lag_parts])),
        caps(scene),
        lines(axis, scene.bars, "merge", plum, showlegend=False),
        *tether_lines(scene, scene.tethers),
        *_session_points(scene),
    ]


def _retained(scene: SessionPlane) -> Outline:
    """Dotted edges from each cap of a session that was re-opened to the record that did so."""
    closes, mine, (first, last) = scene.trace.closes, scene.history.closes, scene.rows[[0, -1]].tolist()
    until, found = closes.until[mine], Outline()
    for row in mine[(until != INT64_MAX) & (until >= first) & (closes.at[mine] <= last)].tolist():
        low, high = scene.y(np.array([max(closes.at[row], first), closes.until[row]]))
        for edge in (int(closes.start_ms[row]), int(closes.end_ms[row])):
            found.add((edge, edge), (low, min(high, scene.top)))
    return found


def _session_points(scene: SessionPlane) -> list[Drawn]:
    history, ring = scene.history, {"width": 2, "color": scene.colours.ink}
    kinds = (
        Kind(history.reopened, "re-opened a closed session", 5, "circle-open", 8, "ink", ring),
        Kind(history.plain, "record", 1, "circle", 0, "record"),
        Kind(history.late_but_kept, "late, saved by an open session", 3, "triangle-up", 2, "saved"),
        Kind(history.merges, "bridge: joins two sessions", 2, "diamond", 4, "bridge"),
        Kind(np.setdiff1d(history.drops, scene.far), "dropped (dotted: missing grace)", 4, "x", 2, "drop", THIN),
        far_drops(scene),
    )
    trace, show = scene.trace, scene.axis.show
    return own_points(scene, kinds, lambda rows: reasons(trace, scene.window, show, rows.tolist(), scene.missing_ms))


def session_labels(scene: SessionPlane, frame: Frame) -> Placement:
    """Labels beside the marks: what was dropped, bridged, re-opened, closed, or kept though late."""
    history, colours = scene.history, scene.colours
    spoken = (
        Spoken("dropped", np.intersect1d(scene.alone, list(scene.missing_ms)), 125, colours.drop),
        Spoken("bridge", scene.shown(history.merges), -25, colours.bridge),
        Spoken("reopened", scene.shown(history.reopened), 60, colours.ink),
    )

    def words(kind: str, row: int) -> str:
        if kind == "dropped":
            missing = scene.missing_ms[row]
            said = f" · {lacked(missing)} short<br>{cure(scene.window.grace_ms, missing)}"
            return drop_words(scene, row, said)
        if kind == "bridge":
            return "<b>bridge</b>: two sessions become one"
        return "<b>re-opened</b>: it was closed<br>but still retained"

    return labels(scene, frame, spoken, words, fixed=(*scene.tethers, scene.bars), crossed=(scene.bodies,))


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
    from_offset: int | None = None,
    until_offset: int | None = None,
    last: int | None = None,
    theme: Theme | None = None,
    clock: str | None = None,
    width: int | None = None,
    height: int | None = None,
) -> Plane:
    """What a plane shows, before it is drawn, as `Run.plane` describes it; with a height, in pixels, its title and
    legend stand beside it."""
    colours, code = palette(theme), code_of_key(trace.keys, key)
    axis, form = time_axis(trace, window, clock), FORMS[type(trace)]
    history = form.history(trace, code, partition_code(trace, code, partition), window.trailing_only)
    rows = history.choose(from_offset, until_offset, last)
    return form.scene(history, window, rows, colours, axis, checked_width(width), height, last)


class Composed(NamedTuple):
    """A plane's figure, and what it was laid out by."""

    figure: Figure
    frame: Frame
    placement: Placement


def draw_plane(scene: Plane, *, playback: bool = False) -> Figure:
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
    frame = scene.frame(shown_names(drawn), heading)
    placement, is_bare = form.labels(scene, frame), scene.height is not None
    yaxis = {"title": axis_title("arrival order, by offset →", colours), **offsets(scene, frame)}
    look = {"yaxis": yaxis, "annotations": placement.annotations}
    figure = timed_figure(scene.axis, colours, drawn, frame, heading, is_bare=is_bare, **look)
    return Composed(figure, frame, placement)
