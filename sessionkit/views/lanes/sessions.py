"""The lanes of sessions: closed and open bars, reach, brackets of what was merged, and the records in them."""

from __future__ import annotations

import numpy as np

from sessionkit.base.decisions import LATE, MERGED
from sessionkit.views.drawing.grammar import MOST_REASONS, Drawn, Frame, Outline, lines, marks
from sessionkit.views.lanes.marks import Kind, clocks, ground, has_many, middles
from sessionkit.views.lanes.words import sizes
from sessionkit.views.scenes.session_scene import SessionLanes, reach_name, reasons

_LONE_HALF_PIXELS = 2  # half the width of the bar of a session of a single moment


def session_bars(scene: SessionLanes, frame: Frame) -> list[Drawn]:
    """All that is drawn, from the back to the front."""
    return [*_areas(scene, frame), *_points(scene), *clocks(scene), sizes(scene, frame)]


def _bar(start_ms: int, end_ms: int, frame: Frame) -> tuple[int, int]:
    least = round(_LONE_HALF_PIXELS * frame.usual.ms_per_pixel)
    middle, half = (start_ms + end_ms) / 2, (end_ms - start_ms) / 2
    if half >= least:
        return start_ms, end_ms
    return round(middle - least), round(middle + least)


def _areas(scene: SessionLanes, frame: Frame) -> list[Drawn]:
    """Closed territory, reach, closed and open bars, brackets of former sessions."""
    colours, axis, columns = scene.colours, scene.axis, scene.trace.window_columns
    reach, closed, opened, former = (Outline() for _ in range(4))
    for outline, windows in (reach, scene.open_windows), (closed, scene.closed_windows), (opened, scene.open_windows):
        windows = windows[np.argsort(columns.start_ms[windows] - columns.end_ms[windows], kind="stable")]
        bounds = (columns.start_ms[windows].tolist(), columns.end_ms[windows].tolist())
        for start_ms, end_ms, y in zip(*bounds, scene.height_of_windows(windows), strict=True):
            edges = scene.window.reach_of_ms(start_ms, end_ms) if outline is reach else _bar(start_ms, end_ms, frame)
            outline.box(*edges, y - scene.half, y + scene.half)
    parts, starts, ends = scene.former
    down, tick = scene.half + 0.075, 0.055
    for y, start_ms, end_ms in zip(scene.height_of_windows(parts), starts.tolist(), ends.tolist(), strict=True):
        left, right = _bar(start_ms, end_ms, frame)
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
    trace, colours = scene.trace, scene.colours
    late, merged, dropped = trace.late_but_kept, trace.decision == MERGED, trace.decision == LATE
    saved = {"symbol": "triangle-up", "color": colours.saved}
    return (
        Kind(trace.accepted & ~late & ~merged, "record", 1, 0.0, {"color": colours.record}),
        Kind(late & ~merged, "late, saved by an open session", 3, 0.0, saved),
        Kind(merged, "bridge: joins two sessions", 2, 0.0, {"symbol": "diamond", "color": colours.bridge}),
        Kind(dropped, "dropped (+ missing grace)", 4, scene.above, {"symbol": "x", "color": colours.drop}),
    )


def _points(scene: SessionLanes) -> list[Drawn]:
    """Records by what they did, then the middles of bars (for hover only)."""
    trace, board = scene.trace, scene.board
    gl = has_many(scene)
    rim = {"width": 1.3 if scene.is_roomy else 0.8, "color": scene.colours.background}
    found = []
    for mask, name, rank, lift, marker in session_kinds(scene):
        size = (5 if name == "record" else 8) + (4 if scene.is_roomy else 0)
        rows = board.of(mask)
        heights = (scene.height_of(rows) + lift).tolist()
        words = reasons(scene, rows, MOST_REASONS // 3 if name == "record" else MOST_REASONS)
        place = (scene.axis, trace.batch.timestamp_ms[rows], heights, words, name, gl)
        found.append(marks(*place, marker={**marker, "size": size, "line": rim}, legendrank=rank))
    windows = board.windows
    return [middles(scene, windows, scene.height_of_windows(windows)), *found]
