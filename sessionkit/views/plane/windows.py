"""The plane of tumbling, hopping and sliding windows: columns of one width, the close line, and what came too late."""

from __future__ import annotations

from typing import Any

from sessionkit.base.durations import about, grace_with, lacked
from sessionkit.base.text import plural
from sessionkit.views.drawing.grammar import Drawn, Frame, Outline, cure, lines, marks
from sessionkit.views.drawing.labels import Placement
from sessionkit.views.drawing.palettes import fainter
from sessionkit.views.plane.marks import (
    cap_middles,
    caps,
    clocks,
    has_many,
    mark_size,
    other_keys,
    points,
    territory,
    tether_lines,
)
from sessionkit.views.plane.words import label_caps, label_records, start_labels
from sessionkit.views.scenes.key_rows import Rows
from sessionkit.views.scenes.window_scene import MOST_LAYERS, Met, WindowPlane

CLOSE_LINE = "close line: stream \N{MINUS SIGN} grace"
_BODY = "window, from its first record on"


def window_marks(scene: WindowPlane) -> list[Drawn]:
    """All that is drawn, from the back to the front."""
    return [
        territory(scene),
        *_bodies(scene),
        *clocks(scene, CLOSE_LINE),
        caps(scene, 5 if scene.deep == 1 else 3.5 if scene.deep <= MOST_LAYERS else 2.5),
        *tether_lines(scene, scene.tethers),
        _missed_ends(scene),
        *_points(scene),
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
    place = (ends, scene.y(records), words, "end of a window that it missed", has_many(scene))
    return marks(scene.axis, *place, marker=marker, legendrank=6)


def _points(scene: WindowPlane) -> list[Drawn]:
    """Other keys, then the key's own records by what they did, then the middles of caps (for hover only)."""
    history, colours, size = scene.history, scene.colours, mark_size(scene)
    kinds: tuple[tuple[Rows, str, int, dict[str, Any]], ...] = (
        (history.plain, "record", 1, {"size": size, "color": colours.record}),
        (
            history.late_but_kept,
            "late, but its window is still open",
            2,
            {"size": size + 2, "symbol": "triangle-up", "color": colours.saved},
        ),
        (
            history.partly_late,
            "too late for some of its windows",
            3,
            {"size": size + 3, "symbol": "diamond", "color": colours.bridge},
        ),
        (
            history.drops,
            "dropped (dotted: the missing grace)",
            4,
            {"size": size + 2, "symbol": "x", "color": colours.drop, "line": {"width": 1}},
        ),
    )
    found = [other_keys(scene)]
    for records, name, rank, marker in kinds:
        here = scene.shown(records)
        words = [_hover(scene, row) for row in here.tolist()]
        found.append(points(scene, here, name, rank, words, **marker))
    return [*found, cap_middles(scene)]


def _hover(scene: WindowPlane, row: int) -> str:
    """What one record did."""
    batch, met = scene.trace.batch, scene.met[row]
    said = [f"offset {batch.offset[row]:,} · {scene.axis.show(int(batch.timestamp_ms[row]))}"]
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
        return (
            f"{cure(grace_ms, most)}{(' in all' if len(met.missing_ms) > 1 else ' there too') if met.counted else ''}"
        )
    return f"{cure(grace_ms, least)} in one,<br>{grace_with(grace_ms, most)} in all"


def window_labels(scene: WindowPlane, frame: Frame) -> Placement:
    """Labels beside the marks: what was dropped, missed some windows, closed, or was kept though late."""
    history, colours = scene.history, scene.colours
    bodies = [scene.feet] if scene.deep > MOST_LAYERS else scene.layers
    lines_to_spare = (*scene.tethers, scene.cap_lines, scene.close_line, scene.stream_line)
    placement = start_labels(scene, frame, lines_to_spare, bodies)

    def label(kind: str, records: Rows, prefer: float, colour: str) -> None:
        label_records(scene, placement, kind, scene.shown(records), prefer, colour, lambda row: _label(scene, row))

    label("dropped", history.drops, 125, colours.drop)
    label("partly late", history.partly_late, 125, colours.bridge)
    label_caps(scene, frame, placement)
    label("late but kept", history.late_but_kept, 130, colours.saved_words)
    return placement


def _label(scene: WindowPlane, row: int) -> str:
    met = scene.met[row]
    if not met.missing_ms:
        behind = int(scene.trace.close_time_ms[row] - scene.trace.batch.timestamp_ms[row])
        return f"<b>late but kept</b>: {about(behind)} behind<br>the close line; its window is open"
    missed = plural(len(met.missing_ms), "window")
    if met.counted:
        return f"<b>too late for {missed}</b>, counts in {met.counted:,}<br>{_cure(scene, met)}"
    if len(met.missing_ms) == 1:
        return f"<b>dropped</b> · {lacked(met.missing_ms[0])} short<br>{_cure(scene, met)}"
    return f"<b>dropped</b>: too late for {missed}<br>{_cure(scene, met)}"
