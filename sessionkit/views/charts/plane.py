"""The plane: event time across, arrival upward; the history of one key and the line that closes its sessions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from sessionkit.decisions import LATE
from sessionkit.session_trace import SessionTrace
from sessionkit.text import escape_label
from sessionkit.views.charts.grammar import (
    MOST_REASONS,
    MOST_SVG_POINTS,
    WIDTH,
    Frame,
    Outline,
    Theme,
    axis_title,
    dress,
    growing,
    lines,
    marks,
    palette,
    reason,
    time_axis,
)
from sessionkit.views.charts.history import Cap, KeyHistory, Rows, key_code, partition_code
from sessionkit.views.charts.plane_words import cap_size, place_labels, plane_subtitle, plane_title
from sessionkit.views.charts.playback import add_playback
from sessionkit.views.charts.scene import PlaneScene

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from sessionkit.windows.session import SessionWindows

_HEAD_PIXELS = 34  # above the newest row's end, for the labels of what is still open
CLOSE_LINE = "close line = stream time \N{MINUS SIGN} gap \N{MINUS SIGN} grace"
_SMALLEST_PLOT, _LARGEST_PLOT, _ROW_PIXELS = 420, 620, 18


def plane(
    trace: SessionTrace,
    window: SessionWindows,
    key: object,
    *,
    theme: Theme = "light",
    partition: int | None = None,
    first: int | None = None,
    last: int | None = None,
    playback: bool = False,
    clock: str | None = None,
) -> go.Figure:
    """The history of one key: its sessions as growing bodies, the close line, merges, drops and rescues.

    Args:
        partition: where to look; the partition with most of the key's records if it is not given.
        first, last: offsets to show only a part; without them all, or the stretch with most to see.
        playback: adds a slider that replays the arrivals.
        clock: name of the clock that the times were read from, for the axis.
    Raises:
        UnknownRecord: the run holds no such key, or no record between these offsets.
        InvalidArgument: no such partition or theme.
    """
    import plotly.graph_objects as go

    colours, code = palette(theme), key_code(trace, key)
    history = KeyHistory(trace, code, partition_code(trace, code, partition))
    rows = history.choose(first, last)
    scene = PlaneScene(history, window, rows, colours, time_axis(trace, window, clock))
    title, subtitle = plane_title(scene, key), plane_subtitle(scene)
    if not len(rows):
        figure = go.Figure()
        dress(figure, colours, Frame(WIDTH, 150, 78, 24, 110, 20, (0, 1), (0, 1)), title, subtitle)
        return figure.update_layout(xaxis_visible=False, yaxis_visible=False)
    figure = go.Figure([*_areas(scene), *_lines(scene), *_points(scene)])
    frame = scene.frame(sum(bool(each.showlegend) for each in figure.data), subtitle)
    dress(figure, colours, frame, title, subtitle)
    figure.update_xaxes(title=axis_title(scene.axis.title, colours), **scene.axis.options(*scene.x_range_ms))
    figure.update_yaxes(title=axis_title("arrival order, by offset →", colours), **_offsets(scene, frame))
    placement = place_labels(scene, frame)
    figure.update_layout(annotations=placement.annotations)
    if playback:
        add_playback(figure, colours, frame, placement, trace.batch.offset[rows])
    return figure


def _offsets(scene: PlaneScene, frame: Frame) -> dict[str, Any]:
    """Settings of the y axis: places are rows, words are offsets."""
    offset = scene.trace.batch.offset[scene.rows]
    step = next(s for s in _tick_steps() if len(offset) / s <= 11)
    lead = int(-offset[0] % step) if offset[-1] - offset[0] == len(offset) - 1 else 0
    places = list(range(lead, len(offset), step))
    low, high = frame.y_range
    return {
        "range": [low, high],
        "minallowed": low,
        "maxallowed": high,
        "tickmode": "array",
        "tickvals": places,
        "ticktext": [f"{offset[place]:,}" for place in places],
    }


def _tick_steps() -> Iterator[int]:
    """1, 2, 5, 10, 20, 50, … rows."""
    return (digit * 10**zeros for zeros in count() for digit in (1, 2, 5))


def _areas(scene: PlaneScene) -> list[go.Scatter]:
    """Closed territory, reach and bodies: one trace of polygons each."""
    colours, axis, none = scene.colours, scene.axis, {"width": 0}
    territory, reach = Outline(), Outline()
    line = scene.close_line
    if line.y:
        low, high = scene.x_range_ms
        beyond = low - (high - low)
        kept = [max(ms, beyond) for ms in line.x_ms if ms is not None]
        heights = [y for y in line.y if y is not None]
        around = [heights[-1], heights[0]]
        territory.add([beyond, *kept, beyond, beyond], [heights[0], *heights, *around])
    for life in scene.lives:
        reach.add(*growing(life.steps, life.end, scene.window.inactivity_gap_ms))
    edge = {"width": 1.6, "color": colours.edge}
    return [
        lines(axis, territory, "closed territory", none, fillcolor=colours.territory, legendrank=60),
        lines(axis, reach, "reach: a record in here joins (± gap)", none, fillcolor=colours.reach, legendrank=30),
        lines(axis, scene.bodies, "session, as it grows", edge, fillcolor=colours.body, legendrank=20),
    ]


def _lines(scene: PlaneScene) -> list[go.Scatter]:
    """Stream time, close line, caps, merge bars, tethers."""
    colours, axis = scene.colours, scene.axis
    retained = Outline()
    for cap in scene.history.caps:
        _add_retained(scene, cap, retained)
    away, missing = scene.tethers
    mute = {"width": 1.4, "dash": "dash", "color": colours.stream}
    thick = {"width": 3, "color": colours.line}
    drop = {"width": 1.2, "color": colours.drop}
    return [
        lines(axis, retained, "closed but still retained", {**mute, "dash": "dot"}, legendrank=26),
        lines(axis, scene.stream_line, "stream time (newest event seen)", mute, legendrank=50),
        lines(axis, scene.close_line, CLOSE_LINE, thick, legendrank=40),
        lines(axis, scene.cap_lines, "closed: the result is final", {"width": 5, "color": colours.ink}, legendrank=25),
        lines(axis, scene.bars, "merge", {"width": 3, "color": colours.bridge}, showlegend=False),
        lines(axis, away, "to the end of the session it touches", drop, showlegend=False),
        lines(axis, missing, "missing grace", {**drop, "width": 2.6, "dash": "dot"}, showlegend=False),
    ]


def _add_retained(scene: PlaneScene, cap: Cap, retained: Outline) -> None:
    """Dotted edges from a cap to the record that re-opened its session, if one did."""
    reopenings, rows = scene.trace.reopenings, scene.rows
    later = reopenings.at[(reopenings.window == cap.window) & (reopenings.at >= cap.at)]
    if not len(later) or cap.at > rows[-1] or later[0] < rows[0]:
        return
    low, high = scene.y(np.array([max(cap.at, rows[0]), later[0]]))
    for edge in (cap.start_ms, cap.end_ms):
        retained.add((edge, edge), (low, min(high, scene.top)))


def _points(scene: PlaneScene) -> list[go.Scatter | go.Scattergl]:
    """Other keys, then the key's own records by what they did, then the middles of caps (for hover only)."""
    history, colours, trace = scene.history, scene.colours, scene.trace
    batch = trace.batch
    size = 11 if len(scene.rows) <= 40 else 9 if len(scene.rows) <= 80 else 8
    gl = len(scene.rows) > MOST_SVG_POINTS
    rim = {"width": 1.6 if size > 9 else 1.1, "color": colours.background}

    def points(records: Rows, name: str, rank: int, words: list[str], **marker: Any) -> go.Scatter | go.Scattergl:
        place = (batch.timestamp_ms[records], scene.y(records), words, name, gl)
        return marks(scene.axis, *place, marker=marker, legendrank=rank)

    other = scene.rows[(batch.key[scene.rows] != history.key) & (trace.decision[scene.rows] <= LATE)]
    kinds = (
        (history.plain, "record", 1, {"size": size, "color": colours.record, "line": rim}),
        (
            history.late_but_kept,
            "late, saved by an open session",
            3,
            {"size": size + 2, "symbol": "triangle-up", "color": colours.saved, "line": rim},
        ),
        (
            history.merges,
            "bridge: joins two sessions into one",
            2,
            {"size": size + 4, "symbol": "diamond", "color": colours.bridge, "line": rim},
        ),
        (
            history.drops,
            "dropped (dotted: the missing grace)",
            4,
            {"size": size + 2, "symbol": "x", "color": colours.drop, "line": {**rim, "width": 1}},
        ),
    )
    ring = {"size": size + 8, "symbol": "circle-open", "color": colours.ink, "line": {"width": 2}}
    reopened, dots = scene.shown(history.reopened), {"size": 6 if size > 9 else 4, "color": colours.other}
    found = [points(other, "other keys (they move stream time too)", 70, _other_words(scene, other), **dots)]
    found.append(points(reopened, "re-opened a closed session", 5, _reasons(scene, reopened), **ring))
    for records, name, rank, marker in kinds:
        here = scene.shown(records)
        found.append(points(here, name, rank, _reasons(scene, here), **marker))
    return [*found, _cap_middles(scene, gl)]


def _cap_middles(scene: PlaneScene, gl: bool) -> go.Scatter | go.Scattergl:
    middles = np.array([(cap.start_ms + cap.end_ms) // 2 for cap in scene.caps], np.int64)
    words = [
        f"<b>closed</b> by the record at offset {scene.trace.batch.offset[cap.at]:,}<br>"
        f"{scene.axis.show(cap.start_ms)} to {scene.axis.show(cap.end_ms)}<br>{cap_size(cap)}"
        for cap in scene.caps
    ]
    height = scene.y(np.array([cap.at for cap in scene.caps], np.int64))
    marker = {"size": 12, "color": "rgba(0,0,0,0)"}
    return marks(scene.axis, middles, height, words, "closure", gl, marker=marker, showlegend=False)


def _other_words(scene: PlaneScene, records: Rows) -> list[str]:
    batch, keys = scene.trace.batch, scene.trace.keys
    names: dict[int, str] = {}
    for code in np.unique(batch.key[records]).tolist():
        names[code] = escape_label(keys[code].as_py()) if code >= 0 else "none"
    columns = (batch.key[records].tolist(), batch.offset[records].tolist(), batch.timestamp_ms[records].tolist())
    return [f"offset {at:,}: key {names[code]}<br>{scene.axis.show(ms)}" for code, at, ms in zip(*columns, strict=True)]


def _reasons(scene: PlaneScene, records: Rows) -> list[str]:
    """What each of the key's records did, in the words of `explain`, for as many as can be worked out at once."""
    offset, times = scene.trace.batch.offset, scene.trace.batch.timestamp_ms
    words = [f"offset {offset[row]:,} · {scene.axis.show(int(times[row]))}" for row in records.tolist()]
    for number, row in enumerate(records[:MOST_REASONS].tolist()):
        missing_ms = scene.missing_ms.get(row)
        words[number] = reason(scene.trace, scene.window, row, missing_ms)
    return words
