"""The lanes of tumbling, hopping and sliding windows: bars in sub-lanes, records below them, drops above."""

from __future__ import annotations

import numpy as np

from sessionkit.base.decisions import LATE
from sessionkit.base.durations import lacked
from sessionkit.base.text import escape_label
from sessionkit.views.drawing.grammar import Drawn, Frame, Outline, cure, lines, marks
from sessionkit.views.drawing.measured_text import text_width
from sessionkit.views.lanes.marks import Kind, clocks, ground, has_many, middles
from sessionkit.views.lanes.words import SMALL, LaneText, lane_text
from sessionkit.views.scenes.key_rows import Rows
from sessionkit.views.scenes.window_history import size_of
from sessionkit.views.scenes.window_scene import WindowLanes

_LEAST_BAR = 12  # pixels of a bar with words in it


def window_bars(scene: WindowLanes, frame: Frame) -> list[Drawn]:
    """All that is drawn, from the back to the front."""
    rows = np.array(sorted(scene.sublane), np.int64)
    lanes = scene.height_of_windows(rows)
    spans = [scene.bar(row, y) for row, y in zip(rows.tolist(), lanes, strict=True)]
    heights = [(low + high) / 2 for low, high in spans]
    return [
        *ground(scene, frame),
        *_bars(scene, rows, spans),
        middles(scene, rows, heights),
        *_points(scene),
        *clocks(scene),
        _sizes(scene, frame, rows, heights),
    ]


def _bars(scene: WindowLanes, rows: Rows, spans: list[tuple[float, float]]) -> list[Drawn]:
    """Closed and open windows."""
    closed, opened, colours = Outline(), Outline(), scene.colours
    columns, is_closed = scene.trace.window_columns, scene.trace.closed_by[rows] >= 0
    bounds = (columns.start_ms[rows].tolist(), columns.end_ms[rows].tolist())
    for start_ms, end_ms, span, done in zip(*bounds, spans, is_closed.tolist(), strict=True):
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
    late, some = trace.late_but_kept & ~scene.board.late, scene.board.late & trace.accepted
    saved = {"symbol": "triangle-up", "color": colours.saved, "size": 8}
    partly = {"symbol": "diamond", "color": colours.bridge, "size": 8}
    drop = {"symbol": "x", "color": colours.drop, "size": 8}
    return (
        Kind(trace.accepted & ~late & ~some, "record", 1, low, {"color": colours.record, "size": 6}),
        Kind(late, "late, but its window is still open", 2, low, saved),
        Kind(some, "too late for some of its windows", 3, low, partly),
        Kind(trace.decision == LATE, f"dropped (+ {scene.lacked})", 4, scene.above, drop),
    )


def _points(scene: WindowLanes) -> list[Drawn]:
    """Each record."""
    trace, board = scene.trace, scene.board
    rim = {"width": 0.8, "color": scene.colours.background}
    found = []
    for mask, name, rank, lift, marker in window_kinds(scene):
        rows = board.of(mask)
        heights = (scene.height_of(rows) + lift).tolist()
        words = [_hover(scene, row) for row in rows.tolist()]
        place = (scene.axis, trace.batch.timestamp_ms[rows], heights, words, name, has_many(scene))
        found.append(marks(*place, marker={**marker, "line": rim}, legendrank=rank))
    return found


def _hover(scene: WindowLanes, row: int) -> str:
    """Where a record stands, and for a drop what would have kept it."""
    batch = scene.trace.batch
    name = escape_label(scene.trace.keys[int(batch.key[row])].as_py())
    said = [f"{name} · offset {batch.offset[row]:,} · {scene.axis.show(int(batch.timestamp_ms[row]))}"]
    if row in scene.missing_ms:
        missing_ms = scene.missing_ms[row]
        said.append(f"{lacked(missing_ms)} short: {cure(scene.window.grace_ms, missing_ms)}")
    return "<br>".join(said)


def _sizes(scene: WindowLanes, frame: Frame, rows: Rows, heights: list[float]) -> Drawn:
    """In each bar how many records it holds, where there is room."""
    columns = scene.trace.window_columns
    found = []
    bounds = (frame.x(columns.start_ms[rows]).tolist(), frame.x(columns.end_ms[rows]).tolist())
    for row, left, right, y in zip(rows.tolist(), *bounds, heights, strict=True):
        is_high = scene.bar_pixels(round(y)) >= _LEAST_BAR
        size, left, right = size_of(scene.trace, row), max(left, 0.0), min(right, float(frame.plot_width))
        for text in (size.words, f"{size.record_count:,}"):
            half, middle = text_width(text, SMALL) / 2 + 3, (left + right) / 2
            crossed = any(middle - half < x < middle + half for x in scene.clocks_x(frame))
            if is_high and 2 * half <= right - left and not crossed:
                found.append(LaneText(text, middle, y, "center"))
                break
    return lane_text(scene, frame, "sizes", found, scene.colours.ink)
