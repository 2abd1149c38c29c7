"""The picture of what went downstream for one key: a lane a window, a mark a result, and what is pending."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sessionkit.views.drawing.grammar import axis_title, dress, empty_figure, legend_of
from sessionkit.views.drawing.measured_text import text_width
from sessionkit.views.drawing.palettes import Theme, palette
from sessionkit.views.drawing.time_axis import change_of_clocks
from sessionkit.views.emissions.part import Part, choose
from sessionkit.views.emissions.scene import BODY, KINDS, SMALL, Scene, hover, value_notes, wait_notes
from sessionkit.views.words import closer_words

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from sessionkit.views.emissions.emissions import Emissions

Segment = tuple[int, float, float]  # of a lane, from one place to another
CAP = 0.22
BESIDE = 10  # pixels


def emissions_figure(
    emissions: Emissions,
    *,
    theme: Theme | None,
    over: str | None,
    first: int | None,
    last: int | None,
    most: int | None,
) -> go.Figure:
    """Marks for what was sent and what is pending; lines for how long an answer stood, or is awaited."""
    import plotly.graph_objects as go

    colours = palette(theme)
    scene = Scene(choose(emissions, over, first, last, most), colours)
    if not scene.part.lanes:
        return empty_figure(colours, scene.heading, scene.frame.width)
    figure = go.Figure([*_lines(scene), _caps(scene), *(_marks(scene, what) for what in KINDS)])
    legend = legend_of(figure)
    dress(figure, colours, scene.frame_with(legend), scene.heading, legend)
    _dress_axes(figure, scene)
    figure.update_layout(annotations=[*value_notes(scene), *wait_notes(scene)])
    return figure


def _lines(scene: Scene) -> list[go.Scatter]:
    """Spans of windows, merges, how long answers stood, and what is waited for."""
    part, colours = scene.part, scene.colours
    gone: list[Segment] = []
    standing: list[Segment] = []
    waits: list[Segment] = []
    merged: list[Segment] = []
    for answer in part.answers:
        begin = part.span[0] if answer.row < 0 else float(part.x(answer.begin))
        if answer.end >= 0:
            gone.append((answer.lane, begin, float(part.x(answer.end))))
            continue
        closed = [at for at in part.closed_at(answer.lane) if at >= answer.begin]
        standing.append((answer.lane, begin, float(part.x(closed[0])) if closed else _end(part, answer.lane)))
    for row in part.marked("pending").tolist():
        lane = int(scene.emissions.lane[row])
        until = part.span[1] if part.is_by_arrival else part.pending_x(lane)
        waits.append((lane, _wait_begins(part, lane, [each[0] for each in standing]), until))
    if not part.is_by_arrival:
        for lane in part.lanes:
            silent_or_final = part.closed_at(lane) if scene.emissions.strategy == "on_window_close" else []
            waits += [(lane, scene.emissions.lanes[lane].end_ms, float(part.x(at))) for at in silent_or_final]
    for answer in (each for each in part.answers if each.is_retracted):
        into = scene.emissions.lanes[answer.lane].absorbed_by
        if into in part.lanes and (into, answer.end) in part.answered:
            merged.append((answer.lane, float(into), float(part.x(answer.end))))
    noun = scene.emissions.windows.noun
    return [
        *([] if part.is_by_arrival else [_spans(scene)]),
        _segments(scene, gone, "answer that was taken back or replaced", width=1.6, color=colours.stream),
        _segments(scene, standing, "answer that stands", width=4, color=colours.solid),
        _segments(scene, waits, "waits for stream time", width=2, color=colours.line, dash="dot"),
        _joins(scene, merged, f"became one {noun}"),
    ]


def _end(part: Part, lane: int) -> float:
    """How far an answer goes that nothing took back: to the end of the run if it is pending, else of the picture."""
    is_pending = lane in part.emissions.lane[part.marked("pending")]
    return part.now_x if is_pending else part.span[1]


def _wait_begins(part: Part, lane: int, answered: Sequence[int]) -> float:
    """From where a pending window waits: now, if an answer stands so long; else from its end."""
    if lane in answered:
        return part.now_x
    return part.span[0] if part.is_by_arrival else float(part.emissions.lanes[lane].end_ms)


def _segments(scene: Scene, found: Sequence[Segment], name: str, **line: Any) -> go.Scatter:
    import plotly.graph_objects as go

    x: list[float | None] = []
    y: list[float | None] = []
    found = [each for each in found if each[1] < each[2]]
    for lane, begin, end in found:
        x += [begin, end, None]
        y += [scene.part.y(lane)] * 2 + [None]
    return go.Scatter(x=scene.at(x), y=y, mode="lines", line=line, name=name, hoverinfo="skip", showlegend=bool(found))


def _joins(scene: Scene, found: Sequence[Segment], name: str) -> go.Scatter:
    import plotly.graph_objects as go

    x = [each for _, _, at in found for each in (at, at, None)]
    y = [each for lane, into, _ in found for each in (scene.part.y(lane), scene.part.y(int(into)), None)]
    line = {"width": 1.4, "color": scene.colours.bridge}
    return go.Scatter(x=scene.at(x), y=y, mode="lines", line=line, name=name, hoverinfo="skip", showlegend=bool(found))


def _spans(scene: Scene) -> go.Scatter:
    """The windows themselves, from start to end; one that is a moment is a line."""
    import plotly.graph_objects as go

    x: list[float | None] = []
    y: list[float | None] = []
    for lane in scene.part.lanes:
        start, end = (float(ms) for ms in scene.emissions.lanes[lane][:2])
        wide = max(end - start, scene.usual_per_pixel)
        low, high = scene.part.y(lane) - BODY, scene.part.y(lane) + BODY
        x += [start, start + wide, start + wide, start, start, None]
        y += [low, low, high, high, low, None]
    return go.Scatter(
        x=scene.at(x),
        y=y,
        mode="lines",
        fill="toself",
        fillcolor=scene.colours.body,
        line={"width": 1.2, "color": scene.colours.edge},
        name=f"the {scene.emissions.windows.noun}, from start to end",
        hoverinfo="skip",
    )


def _caps(scene: Scene) -> go.Scatter:
    """A bar where a window closed and nothing said so."""
    import plotly.graph_objects as go

    part = scene.part
    shown = [
        (lane, at)
        for lane in part.lanes
        for at in part.closed_at(lane)
        if scene.emissions.strategy == "on_window_update" or scene.emissions.lanes[lane].is_silent
    ]
    x: list[float | None] = []
    y: list[float | None] = []
    for lane, at in shown:
        x += [float(part.x(at))] * 2 + [None]
        y += [part.y(lane) - CAP, part.y(lane) + CAP, None]
    said = [f"closed {closer_words(scene.emissions.trace, at)}; nothing was sent" for _, at in shown]
    return go.Scatter(
        x=scene.at(x),
        y=y,
        mode="lines",
        line={"width": 4, "color": scene.colours.ink},
        name="closed, but nothing went out"
        if scene.emissions.strategy == "on_window_close"
        else "closed: no message says so",
        hovertext=[each for text in said for each in (text, text, "")],
        hovertemplate="%{hovertext}<extra></extra>",
        showlegend=bool(shown),
    )


def _marks(scene: Scene, what: str) -> go.Scatter:
    import plotly.graph_objects as go

    kind, rows = KINDS[what], scene.part.marked(what).tolist()
    colour = getattr(scene.colours, kind.colour)
    edge = {"width": 2.4, "color": colour} if what == "tombstone" else {"width": 1, "color": scene.colours.background}
    return go.Scatter(
        x=scene.at([_place(scene, row) for row in rows]),
        y=[_height(scene, row) for row in rows],
        mode="markers",
        marker={"symbol": kind.symbol, "size": kind.size, "color": colour, "line": edge},
        name=kind.name,
        hovertext=[hover(scene, row) for row in rows],
        hovertemplate="%{hovertext}<extra></extra>",
        showlegend=bool(rows),
    )


def _height(scene: Scene, row: int) -> float:
    """Over stream time a retraction stands below its lane's answers: it is of the same moment as one."""
    low = scene.emissions.what[row] == "tombstone" and not scene.part.is_by_arrival
    return scene.part.y(int(scene.emissions.lane[row])) - (BODY if low else 0)


def _place(scene: Scene, row: int) -> float:
    """By arrival a retraction stands a little before the answer that the same record sent in its place."""
    x = scene.mark_x(row)
    if scene.emissions.what[row] != "tombstone" or not scene.part.is_by_arrival:
        return x
    beside = (int(scene.emissions.lane[row]), int(scene.emissions.at[row])) in scene.part.answered
    return x - BESIDE * scene.usual_per_pixel if beside else x


def _dress_axes(figure: go.Figure, scene: Scene) -> None:
    part, colours = scene.part, scene.colours
    low, high = scene.at(part.span)
    figure.update_yaxes(
        range=list(scene.frame.y_range),
        tickvals=[part.y(lane) for lane in part.lanes],
        ticktext=[_lane_label(scene, lane) for lane in part.lanes],
        tickfont={"size": 12},
        fixedrange=True,
    )
    if part.is_by_arrival:
        title = "after this record (its offset; below it stream time): a column for each that sent or closed something"
        figure.update_xaxes(range=[low, high], title=axis_title(title, colours), **_columns(scene))
    else:
        kind = "date" if part.axis.is_date else "linear"
        figure.update_xaxes(range=[low, high], type=kind, title=axis_title(part.axis.title, colours))
        changes = change_of_clocks(part.axis, round(part.span[0]), round(part.span[1]), colours)
        figure.add_traces(changes.lines)
        figure.update_layout(changes.layout)
    if part.is_pending:
        line = {"width": 1.6, "color": colours.stream, "dash": "dash"}
        x = scene.at([part.now_x])[0]
        if not part.is_by_arrival:
            figure.add_shape(type="line", x0=x, x1=x, y0=0, y1=1, yref="paper", line=line, layer="below")
        else:
            box = {"fillcolor": colours.territory, "line": {"width": 0}}
            figure.add_shape(type="rect", x0=x - 0.5, x1=high, y0=0, y1=1, yref="paper", layer="below", **box)


def _lane_label(scene: Scene, lane: int) -> str:
    is_gone = scene.emissions.lanes[lane].absorbed_by >= 0
    return f"<span style='color:{scene.colours.mute if is_gone else scene.colours.ink}'>{scene.labels[lane]}</span>"


def _columns(scene: Scene) -> dict[str, Any]:
    """Ticks that say offset and stream time, as many as there is room for."""
    part, trace = scene.part, scene.emissions.trace
    said = [f"{trace.batch.offset[at]}<br>{scene.say(int(trace.stream_time_ms[at]))}" for at in part.records.tolist()]
    places = [float(place) for place in range(len(said))]
    widest = max((text_width(line, SMALL) for text in said for line in text.split("<br>")), default=1.0) + 8
    every = max(1, int(np.ceil(widest * scene.per_pixel)))
    newest = len(said) - (every if part.is_pending else 1)  # beside "now" there must be room
    keep = list(range(newest, -1, -every))[::-1]
    ticks = ([places[k] for k in keep], [said[k] for k in keep])
    if part.is_pending:
        ticks = ([*ticks[0], part.now_x], [*ticks[1], f"now<br>{scene.say(scene.emissions.now_ms)}"])
    return {"tickvals": ticks[0], "ticktext": ticks[1], "tickfont": {"size": SMALL}, "tickangle": 0}
