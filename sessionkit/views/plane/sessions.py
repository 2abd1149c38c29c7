"""The plane of sessions: growing bodies, the close line, merges, drops and rescues, with the labels beside them."""

from __future__ import annotations

import numpy as np

from sessionkit.base.durations import about, lacked
from sessionkit.views.drawing.grammar import MOST_REASONS, Drawn, Frame, Outline, cure, growing, lines
from sessionkit.views.drawing.labels import Placement
from sessionkit.views.plane.marks import (
    cap_middles,
    caps,
    clocks,
    mark_size,
    other_keys,
    points,
    territory,
    tether_lines,
)
from sessionkit.views.plane.words import label_caps, label_records, start_labels
from sessionkit.views.scenes.key_rows import Cap, Rows
from sessionkit.views.scenes.session_scene import SessionPlane, reach_name, reasons


def session_marks(scene: SessionPlane) -> list[Drawn]:
    """All that is drawn, from the back to the front."""
    return [*_areas(scene), *_lines(scene), *_points(scene)]


def _areas(scene: SessionPlane) -> list[Drawn]:
    """Closed territory, reach and bodies: one trace of polygons each."""
    colours, axis, none = scene.colours, scene.axis, {"width": 0}
    reach = Outline()
    for life in scene.lives:
        steps = [(row, *scene.window.reach_of_ms(*bounds)) for row, *bounds in life.steps]
        reach.add(*growing(steps, life.end))
    edge = {"width": 1.6, "color": colours.edge}
    return [
        territory(scene),
        lines(axis, reach, reach_name(scene.window), none, fillcolor=colours.reach, legendrank=30),
        lines(axis, scene.bodies, "session, as it grows", edge, fillcolor=colours.body, legendrank=20),
    ]


def _lines(scene: SessionPlane) -> list[Drawn]:
    """Stream time, close line, caps, merge bars, tethers."""
    colours, axis = scene.colours, scene.axis
    retained = Outline()
    for cap in scene.history.caps:
        _add_retained(scene, cap, retained)
    mute = {"width": 1.4, "dash": "dash", "color": colours.stream}
    return [
        lines(axis, retained, "closed but still retained", {**mute, "dash": "dot"}, legendrank=26),
        *clocks(scene, " \N{MINUS SIGN} ".join(["close line: stream", *scene.window.close_lag_parts])),
        caps(scene),
        lines(axis, scene.bars, "merge", {"width": 3, "color": colours.bridge}, showlegend=False),
        *tether_lines(scene, scene.tethers),
    ]


def _add_retained(scene: SessionPlane, cap: Cap, retained: Outline) -> None:
    """Dotted edges from a cap to the record that re-opened its session, if one did."""
    reopenings, rows = scene.trace.reopenings, scene.rows
    later = reopenings.at[(reopenings.window == cap.window) & (reopenings.at >= cap.at)]
    if not len(later) or cap.at > rows[-1] or later[0] < rows[0]:
        return
    low, high = scene.y(np.array([max(cap.at, rows[0]), later[0]]))
    for edge in (cap.start_ms, cap.end_ms):
        retained.add((edge, edge), (low, min(high, scene.top)))


def _points(scene: SessionPlane) -> list[Drawn]:
    """Other keys, then the key's own records by what they did, then the middles of caps (for hover only)."""
    history, colours = scene.history, scene.colours
    size = mark_size(scene)
    kinds = (
        (history.plain, "record", 1, {"size": size, "color": colours.record}),
        (
            history.late_but_kept,
            "late, saved by an open session",
            3,
            {"size": size + 2, "symbol": "triangle-up", "color": colours.saved},
        ),
        (
            history.merges,
            "bridge: joins two sessions",
            2,
            {"size": size + 4, "symbol": "diamond", "color": colours.bridge},
        ),
        (
            history.drops,
            "dropped (dotted: missing grace)",
            4,
            {"size": size + 2, "symbol": "x", "color": colours.drop, "line": {"width": 1}},
        ),
    )
    ring = {"size": size + 8, "symbol": "circle-open", "color": colours.ink, "line": {"width": 2, "color": colours.ink}}
    found, reopened = [other_keys(scene)], scene.shown(history.reopened)
    found.append(points(scene, reopened, "re-opened a closed session", 5, reasons(scene, reopened), **ring))
    for records, name, rank, marker in kinds:
        here = scene.shown(records)
        found.append(points(scene, here, name, rank, reasons(scene, here), **marker))
    return [*found, cap_middles(scene)]


def session_labels(scene: SessionPlane, frame: Frame) -> Placement:
    """Labels beside the marks: what was dropped, bridged, re-opened, closed, or kept though late."""
    history, colours = scene.history, scene.colours
    lines_to_spare = (*scene.tethers, scene.bars, scene.cap_lines, scene.close_line, scene.stream_line)
    placement = start_labels(scene, frame, lines_to_spare, (scene.bodies,))

    def label(kind: str, records: Rows, prefer: float, colour: str) -> None:
        label_records(scene, placement, kind, records, prefer, colour, lambda row: _words_for(scene, kind, row))

    label("dropped", scene.drops[:MOST_REASONS], 125, colours.drop)
    label("bridge", scene.shown(history.merges), -25, colours.bridge)
    label("reopened", scene.shown(history.reopened), 60, colours.ink)
    label_caps(scene, frame, placement)
    label("late but kept", scene.shown(history.late_but_kept), 130, colours.saved_words)
    return placement


def _words_for(scene: SessionPlane, kind: str, row: int) -> str:
    if kind == "dropped":
        missing, grace = scene.missing_ms[row], scene.window.grace_ms
        return f"<b>dropped</b> · {lacked(missing)} short<br>{cure(grace, missing)}"
    if kind == "bridge":
        return "<b>bridge</b>: two sessions become one"
    if kind == "reopened":
        return "<b>re-opened</b>: it was closed<br>but still retained"
    behind = int(scene.trace.close_time_ms[row] - scene.trace.batch.timestamp_ms[row])
    return f"<b>late but kept</b>: {about(behind)} behind<br>the close line; its session is open"
