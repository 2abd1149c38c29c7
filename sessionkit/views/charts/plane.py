"""The plane: event time across, arrival upward. The whole history of one key, with the line that closes its sessions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sessionkit.durations import show_duration
from sessionkit.text import escape_label, plural
from sessionkit.trace import LATE, Trace
from sessionkit.views.charts.grammar import (
    MOST_REASONS,
    MOST_SVG_POINTS,
    WIDTH,
    Frame,
    Outline,
    Palette,
    Theme,
    TimeAxis,
    axis_title,
    cure,
    dress,
    growing,
    legend_height,
    lines,
    marks,
    palette,
    reason,
    stair,
    time_axis,
    top_margin,
)
from sessionkit.views.charts.history import Cap, KeyHistory, Life, Rows, key_code, partition_code, partition_counts
from sessionkit.views.charts.labels import Label, Placement, around, text_size
from sessionkit.views.charts.playback import add_playback
from sessionkit.views.explain import missing_grace_ms

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from sessionkit.windows.session import SessionWindows

_HEAD_PIXELS = 28  # above the newest row's end, for the labels of what is still open
_SMALLEST_PLOT, _LARGEST_PLOT, _ROW_PIXELS = 420, 620, 18
_CAP_HALF_PIXELS = 5  # half the width of a cap over a session of a single moment


@dataclass(frozen=True)
class _Scene:
    """What is shown: the rows, and everything that the traces and labels are made of."""

    history: KeyHistory
    window: SessionWindows
    rows: Rows
    colours: Palette
    axis: TimeAxis

    @property
    def trace(self) -> Trace:
        return self.history.trace

    @property
    def top(self) -> float:
        return len(self.rows) - 1 + 0.9

    @cached_property
    def lives(self) -> list[Life]:
        return self.history.lives(self.rows)

    @cached_property
    def caps(self) -> list[Cap]:
        return [cap for cap in self.history.caps if self.rows[0] <= cap.at <= self.rows[-1]]

    def shown(self, records: Rows) -> Rows:
        """Those of `records` that are among the rows."""
        return records[np.isin(records, self.rows)]

    def y(self, records: Rows) -> list[float]:
        """Heights of records that are among the rows."""
        return np.searchsorted(self.rows, records).astype(np.float64).tolist()

    @cached_property
    def drops(self) -> Rows:
        return self.shown(self.history.drops)

    @cached_property
    def missing_ms(self) -> dict[int, int]:
        """How much more grace would have kept each drop that is shown (as many as can be worked out at once)."""
        rows = self.drops[:MOST_REASONS]
        missing = missing_grace_ms(self.trace, self.window, rows) if len(rows) else []
        return {int(row): int(ms) for row, ms in zip(rows, missing, strict=True)}

    @cached_property
    def x_range_ms(self) -> tuple[int, int]:
        """From the first to the last event time of the key, with the reach of its sessions and the stream time."""
        gap_ms, trace = self.window.inactivity_gap_ms, self.trace
        own = self.shown(self.history.own[trace.decision[self.history.own] <= LATE])
        seen = np.maximum(trace.stream_time_ms[self.rows], 0)
        times = [int(seen[0]), int(seen[-1]), *trace.batch.timestamp_ms[own].tolist()]
        times += [step[1] for life in self.lives for step in life.steps]
        times += [step[2] for life in self.lives for step in life.steps]
        low, high = min(times), max(times)
        room = max(gap_ms * 115 // 100, (high - low) // 40, 1)
        return low - room, high + room

    def frame(self, legend_entries: int, subtitle: list[str]) -> Frame:
        plot = min(max(_SMALLEST_PLOT, len(self.rows) * _ROW_PIXELS), _LARGEST_PLOT)
        top, bottom = top_margin(subtitle), legend_height(legend_entries)
        y_range = (-0.8, self.top + _HEAD_PIXELS * (self.top + 0.8) / (plot - _HEAD_PIXELS))
        widest = max(text_size(f"{self.trace.batch.offset[row]:,}", 13)[0] for row in self.rows[[0, -1]])
        return Frame(WIDTH, plot + top + bottom, round(46 + widest), 24, top, bottom, self.x_range_ms, y_range)


def plane(
    trace: Trace,
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
    scene = _Scene(history, window, rows, colours, time_axis(trace, clock))
    title, subtitle = _title(scene, key), _subtitle(scene)
    if not len(rows):
        figure = go.Figure()
        dress(figure, colours, Frame(WIDTH, 300, 78, 24, 110, 60, (0, 1), (0, 1)), title, subtitle)
        return figure.update_layout(xaxis_visible=False, yaxis_visible=False)
    figure = go.Figure([*_areas(scene), *_lines(scene), *_points(scene)])
    frame = scene.frame(sum(bool(each.showlegend) for each in figure.data), subtitle)
    dress(figure, colours, frame, title, subtitle)
    figure.update_xaxes(title=axis_title(scene.axis.title, colours), **scene.axis.options(*scene.x_range_ms))
    figure.update_yaxes(title=axis_title("arrival order, by offset →", colours), **_offsets(scene, frame))
    placement = _labels(scene, frame)
    figure.update_layout(annotations=placement.annotations)
    if playback:
        add_playback(figure, colours, frame, placement, trace.batch.offset[rows])
    return figure


def _title(scene: _Scene, key: object) -> str:
    trace, own = scene.trace, scene.history.own
    kept = int(trace.accepted[own].sum())
    return f"Key “{escape_label(key)}”: {plural(kept, 'record')} kept, {len(own) - kept:,} dropped"


def _subtitle(scene: _Scene) -> list[str]:
    trace, rows, history = scene.trace, scene.rows, scene.history
    gap, grace = show_duration(scene.window.inactivity_gap_ms), show_duration(scene.window.grace_ms)
    said = [
        f"gap {gap} · grace {grace} · read upwards: each row is one arriving record; sideways is when it happened"
    ]
    notes = []
    everything = history.of_partition
    if not len(rows):
        return [*said, "no record arrived in this partition during the run"]
    if len(rows) < len(everything):
        offset = trace.batch.offset
        notes.append(
            f"shown: offsets {offset[rows[0]]:,} to {offset[rows[-1]]:,} of {offset[everything[0]]:,} to"
            f" {offset[everything[-1]]:,} (first=, last= show others)"
        )
        span = everything[(everything >= rows[0]) & (everything <= rows[-1])]
        if len(rows) < len(span):
            notes.append(f"without {plural(len(span) - len(rows), 'record')} of other keys that moved nothing")
        if any(life.steps[0][0] < 0 for life in scene.lives):
            notes.append("what starts at the lower edge began earlier")
    counts = partition_counts(trace, history.key)
    others = np.flatnonzero(counts)
    others = others[others != history.partition]
    if len(trace.batch.partitions) > 1:
        here = f"partition {trace.batch.partitions[history.partition]}"
        if len(others):
            where = ", ".join(str(trace.batch.partitions[p]) for p in others[:5]) + (", …" if len(others) > 5 else "")
            here += f" only: the key is in {where} too (partition= shows it)"
        notes.append(here)
    without_place = int((trace.decision[history.own] > LATE).sum())
    if without_place:
        notes.append(f"{without_place:,} of the dropped have no usable time, or came a second time: not drawn")
    if len(scene.drops) > MOST_REASONS:
        notes.append(f"missing grace is worked out for the first {MOST_REASONS} drops")
    return [*said, *(" · ".join(notes[i : i + 2]) for i in range(0, len(notes), 2))]


def _offsets(scene: _Scene, frame: Frame) -> dict[str, Any]:
    """Settings of the y axis: places are rows, words are offsets."""
    offset = scene.trace.batch.offset[scene.rows]
    step = next(s for s in (1, 2, 5, 10, 20, 50, 100, 10 ** len(str(len(offset)))) if len(offset) / s <= 11)
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


def _areas(scene: _Scene) -> list[go.Scatter]:
    """Closed territory, reach and bodies: one trace of polygons each."""
    colours, axis, none = scene.colours, scene.axis, {"width": 0}
    territory, reach, bodies = Outline(), Outline(), Outline()
    line_x, line_y = _stair_of(scene, lag_ms=scene.trace.close_lag_ms)
    if line_x:
        low, high = scene.x_range_ms
        beyond = low - (high - low)
        kept = [max(ms, beyond) for ms in line_x if ms is not None]
        territory.add([beyond, *kept, beyond, beyond], [line_y[0], *line_y, line_y[-1], line_y[0]])
    for life in scene.lives:
        reach.add(*growing(life.steps, life.end, scene.window.inactivity_gap_ms))
        bodies.add(*growing(life.steps, life.end))
    edge = {"width": 1.6, "color": colours.edge}
    return [
        lines(axis, territory, "closed territory", none, fillcolor=colours.territory, legendrank=60),
        lines(axis, reach, "reach: a record in here joins (± gap)", none, fillcolor=colours.reach, legendrank=30),
        lines(axis, bodies, "session, as it grows", edge, fillcolor=colours.body, legendrank=20),
    ]


def _stair_of(scene: _Scene, lag_ms: int) -> tuple[list[int | None], list[float]]:
    times = scene.trace.stream_time_ms[scene.rows]
    begun = int((times < 0).sum())  # rows before the first usable time: there is no stream time yet
    x, y = stair(times[begun:] - lag_ms, len(times) - begun - 1 + 0.9)
    return x, [each + begun for each in y]


def _lines(scene: _Scene) -> list[go.Scatter]:
    """Stream time, close line, caps, merge bars, tethers."""
    colours, axis, trace = scene.colours, scene.axis, scene.trace
    stream, close, retained, caps, bars = Outline(), Outline(), Outline(), Outline(), Outline()
    stream.x_ms, stream.y = _stair_of(scene, 0)[0], list(_stair_of(scene, 0)[1])
    close.x_ms, close.y = _stair_of(scene, trace.close_lag_ms)[0], list(_stair_of(scene, trace.close_lag_ms)[1])
    least = round(_CAP_HALF_PIXELS * (scene.x_range_ms[1] - scene.x_range_ms[0]) / (WIDTH - 102))
    for cap in scene.caps:
        wide = least if cap.start_ms == cap.end_ms else 0
        caps.add((cap.start_ms - wide, cap.end_ms + wide), scene.y(np.array([cap.at] * 2)))
    for row in scene.shown(scene.history.merges).tolist():
        bounds = (int(trace.bounds_after[0][row]), int(trace.bounds_after[1][row]))
        bars.add(bounds, scene.y(np.array([row] * 2)))
    for cap in scene.history.caps:
        _add_retained(scene, cap, retained)
    away, missing = _tethers(scene)
    mute = {"width": 1.4, "dash": "dash", "color": colours.stream}
    thick = {"width": 3, "color": colours.line}
    drop = {"width": 1.2, "color": colours.drop}
    return [
        lines(axis, retained, "closed but still retained", {**mute, "dash": "dot"}, legendrank=26),
        lines(axis, stream, "stream time (newest event seen)", mute, legendrank=50),
        lines(axis, close, "close line = stream time − gap − grace", thick, legendrank=40),
        lines(axis, caps, "closed: the result is final", {"width": 5, "color": colours.ink}, legendrank=25),
        lines(axis, bars, "merge", {"width": 3, "color": colours.bridge}, showlegend=False),
        lines(axis, away, "to the end of the session it touches", drop, showlegend=False),
        lines(axis, missing, "missing grace", {**drop, "width": 2.6, "dash": "dot"}, showlegend=False),
    ]


def _add_retained(scene: _Scene, cap: Cap, retained: Outline) -> None:
    """Dotted edges from a cap to the record that re-opened its session, if one did."""
    reopenings, rows = scene.trace.reopenings, scene.rows
    later = reopenings.at[(reopenings.window == cap.window) & (reopenings.at >= cap.at)]
    if not len(later) or cap.at > rows[-1] or later[0] < rows[0]:
        return
    low, high = scene.y(np.array([max(cap.at, rows[0]), later[0]]))
    for edge in (cap.start_ms, cap.end_ms):
        retained.add((edge, edge), (low, min(high, scene.top)))


def _tethers(scene: _Scene) -> tuple[Outline, Outline]:
    """For each drop: from its mark to the end of what it touches, and from there to the close line."""
    away, missing = Outline(), Outline()
    for row, missing_ms in scene.missing_ms.items():
        line_ms, y = int(scene.trace.close_time_ms[row]), scene.y(np.array([row]))[0]
        away.add((int(scene.trace.batch.timestamp_ms[row]), line_ms - missing_ms), (y, y))
        missing.add((line_ms - missing_ms, line_ms), (y, y))
    return away, missing


def _points(scene: _Scene) -> list[go.Scatter | go.Scattergl]:
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


def _cap_middles(scene: _Scene, gl: bool) -> go.Scatter | go.Scattergl:
    middles = np.array([(cap.start_ms + cap.end_ms) // 2 for cap in scene.caps], np.int64)
    words = [
        f"<b>closed</b> by the record at offset {scene.trace.batch.offset[cap.at]:,}<br>"
        f"{scene.axis.show(cap.start_ms)} to {scene.axis.show(cap.end_ms)}<br>{_size(cap)}"
        for cap in scene.caps
    ]
    height = scene.y(np.array([cap.at for cap in scene.caps], np.int64))
    marker = {"size": 12, "color": "rgba(0,0,0,0)"}
    return marks(scene.axis, middles, height, words, "closure", gl, marker=marker, showlegend=False)


def _other_words(scene: _Scene, records: Rows) -> list[str]:
    batch, keys = scene.trace.batch, scene.trace.keys
    names: dict[int, str] = {}
    for code in np.unique(batch.key[records]).tolist():
        names[code] = escape_label(keys[code].as_py()) if code >= 0 else "none"
    columns = (batch.key[records].tolist(), batch.offset[records].tolist(), batch.timestamp_ms[records].tolist())
    return [f"offset {at:,}: key {names[code]}<br>{scene.axis.show(ms)}" for code, at, ms in zip(*columns, strict=True)]


def _reasons(scene: _Scene, records: Rows) -> list[str]:
    """What each of the key's records did, in the words of `explain`, for as many as can be worked out at once."""
    offset, times = scene.trace.batch.offset, scene.trace.batch.timestamp_ms
    words = [f"offset {offset[row]:,} · {scene.axis.show(int(times[row]))}" for row in records.tolist()]
    for number, row in enumerate(records[:MOST_REASONS].tolist()):
        missing_ms = scene.missing_ms.get(row)
        words[number] = reason(scene.trace, scene.window, row, missing_ms)
    return words


def _size(cap: Cap) -> str:
    records = plural(cap.record_count, "record")
    return f"{records} · {show_duration(cap.end_ms - cap.start_ms)}" if cap.end_ms > cap.start_ms else records


def _labels(scene: _Scene, frame: Frame) -> Placement:
    placement = Placement(frame, scene.axis, scene.colours)
    trace, times = scene.trace, scene.trace.batch.timestamp_ms
    own = scene.shown(scene.history.own[trace.decision[scene.history.own] <= LATE])
    other = scene.rows[trace.batch.key[scene.rows] != scene.history.key]
    placement.avoid_marks(times[own], scene.y(own))
    placement.avoid_dots(times[other], scene.y(other))
    for lag_ms in (trace.close_lag_ms, 0):
        x, y = _stair_of(scene, lag_ms)
        placement.avoid_lines(x, y)
    for outline in _tethers(scene):
        placement.avoid_lines(outline.x_ms, outline.y, never=True)
    for life in scene.lives:
        placement.avoid_lines(*growing(life.steps, life.end))
    for cap in scene.caps:
        placement.avoid_lines([cap.start_ms, cap.end_ms], scene.y(np.array([cap.at] * 2)), never=True)
    for row in scene.shown(scene.history.merges).tolist():
        bounds = [int(trace.bounds_after[0][row]), int(trace.bounds_after[1][row])]
        placement.avoid_lines(bounds, scene.y(np.array([row] * 2)), never=True)
    for kind, records, prefer, colour in (
        ("dropped", scene.drops[:MOST_REASONS], 125, scene.colours.drop),
        ("bridge", scene.shown(scene.history.merges), -25, scene.colours.bridge),
        ("reopened", scene.shown(scene.history.reopened), 60, scene.colours.ink),
        ("caps", scene.rows[:0], 0, ""),
        ("late but kept", scene.shown(scene.history.late_but_kept), 130, scene.colours.saved),
    ):
        if kind == "caps":
            _label_caps(scene, frame, placement)
        for row in records.tolist():
            text = _words_for(scene, kind, row)
            places = around(prefer, *text_size(text))
            placement.place(Label(kind, int(times[row]), scene.y(np.array([row]))[0], text, colour, places))
    return placement


def _words_for(scene: _Scene, kind: str, row: int) -> str:
    if kind == "dropped":
        missing, grace = scene.missing_ms[row], scene.window.grace_ms
        return f"<b>dropped</b> · {show_duration(missing)} short<br>{cure(grace, missing)}"
    if kind == "bridge":
        return "<b>bridge</b>: two sessions become one"
    if kind == "reopened":
        return "<b>re-opened</b>: it was closed<br>but still retained"
    behind = int(scene.trace.close_time_ms[row] - scene.trace.batch.timestamp_ms[row])
    return f"<b>late but kept</b>: {show_duration(behind)} behind,<br>but it touches an open session"


def _label_caps(scene: _Scene, frame: Frame, placement: Placement) -> None:
    """The size above (or below) each cap, fullest first, and "still open" above what nothing has closed."""
    for life in scene.lives:
        if life.how in ("open", "cut"):
            _, start_ms, end_ms = life.steps[-1]
            text = "still open" if life.how == "open" else "goes on ↑"
            places = _along(frame, start_ms, end_ms, text)
            label = Label("open", (start_ms + end_ms) // 2, life.end, text, scene.colours.edge, places)
            placement.place(label, leader=False)
    for cap in sorted(scene.caps, key=lambda cap: (-cap.record_count, cap.at)):
        text, y = f"<b>closed</b> · {_size(cap)}", scene.y(np.array([cap.at]))[0]
        places = _along(frame, cap.start_ms, cap.end_ms, text)
        label = Label("closed", (cap.start_ms + cap.end_ms) // 2, y, text, scene.colours.ink, places)
        placement.place(label, leader=False)


def _along(frame: Frame, start_ms: int, end_ms: int, text: str) -> tuple[tuple[float, float], ...]:
    """Places above, then below, a horizontal line: its middle first, then to both sides."""
    room = max((end_ms - start_ms) / frame.ms_per_pixel - text_size(text)[0], 60) / 2
    sideways = [0.0, *(sign * step for step in np.arange(15, room + 1, 15).tolist() for sign in (1, -1))]
    return tuple((across, up) for up in (-15.0, 17.0) for across in sideways)
