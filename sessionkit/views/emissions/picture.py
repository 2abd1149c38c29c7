"""The picture of what went downstream for one key: a lane a window, a mark a result, and what is pending."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sessionkit.base.text import escape_label
from sessionkit.views.drawing.grammar import Drawn, Outline, empty_figure, lines, marks, shown_names, timed_figure
from sessionkit.views.drawing.measured_text import text_width
from sessionkit.views.drawing.palettes import Figure
from sessionkit.views.emissions.scene import BODY, COLUMN, NAMED, SMALL, EmissionScene
from sessionkit.views.words import closer_words

MOST_LETTERS = 14  # of a value beside its mark


class Kind(NamedTuple):
    """A kind of mark: what it is called, its symbol and size, and the name of its colour."""

    name: str
    symbol: str
    size: int
    colour: str


KINDS = {
    "update": Kind("update", "circle", 10, "record"),
    "tombstone": Kind("retraction: taken back (tombstone)", "x-thin", 9, "bridge"),
    "final": Kind("final result", "square", 11, "ink"),
    "pending": Kind("pending: nothing has closed it", "hourglass", 12, "line"),
}


def draw_emissions(scene: EmissionScene) -> Figure:
    """Marks for what was sent and what is pending; lines for how long an answer stood, or is awaited."""
    colours = scene.colours
    if not scene.lanes:
        return empty_figure(colours, scene.heading, scene.frame.width)
    drawn = [*_lines(scene), _caps(scene), *(_marks(scene, what) for what in KINDS)]
    frame = scene.frame_with(scene.heading, shown_names(drawn))
    inks = [colours.mute if scene.emissions.lanes[lane].absorbed_by >= 0 else colours.ink for lane in scene.lanes]
    named = zip(inks, scene.lanes, strict=True)
    labels = [f"<span style='color:{ink}'>{scene.labels[lane]}</span>" for ink, lane in named]
    ticks = {"tickvals": [scene.y(lane) for lane in scene.lanes], "ticktext": labels, "tickfont": {"size": 12}}
    yaxis = {"range": list(frame.y_range), "fixedrange": True, **ticks}
    notes, shapes = [*_value_notes(scene), *_wait_notes(scene)], [_now(scene)] if scene.is_pending else []
    beside = {"yaxis": yaxis, "annotations": notes, "shapes": shapes}
    figure = timed_figure(scene.axis, colours, drawn, frame, scene.heading, is_bare=False, **beside)
    return figure.update_xaxes(_columns(scene)) if scene.is_by_arrival else figure


def _lines(scene: EmissionScene) -> list[Drawn]:
    """Spans of windows, merges, how long answers stood, and what is waited for."""
    found, colours, axis, (low, high) = scene.emissions, scene.colours, scene.axis, scene.x_range_ms
    spans, gone, standing, waits, merged = (Outline() for _ in range(5))

    def stretch(outline: Outline, lane: int, begin: int, end: int) -> None:
        if begin < end:
            outline.add((begin, end), (scene.y(lane),) * 2)

    answered = set()
    for lane, begin, end, is_retracted in scene.answers:
        begin_x = low if begin < scene.first_at else int(scene.x(begin))
        if end < 0:
            answered.add(lane)
            closed = [int(scene.x(at)) for at in scene.closed_at(lane) if at >= begin]
            stretch(standing, lane, begin_x, closed[0] if closed else scene.now_x if lane in scene.waits else high)
            continue
        stretch(gone, lane, begin_x, int(scene.x(end)))
        into = found.lanes[lane].absorbed_by
        if is_retracted and into in scene.lanes and (into, end) in scene.answered:
            merged.add((int(scene.x(end)),) * 2, (scene.y(lane), scene.y(into)))
    for lane in scene.waits:
        since = scene.now_x if lane in answered else low if scene.is_by_arrival else found.lanes[lane].end_ms
        stretch(waits, lane, since, high if scene.is_by_arrival else scene.pending_x(lane))
    for lane in () if scene.is_by_arrival else scene.lanes:
        start_ms, end_ms = found.lanes[lane][:2]  # one that is a moment is a line
        least = round(scene.frame.usual.ms_per_pixel)
        spans.box(start_ms, max(end_ms, start_ms + least), scene.y(lane) - BODY, scene.y(lane) + BODY)
        for at in scene.closed_at(lane) if found.strategy == "on_window_close" else []:
            stretch(waits, lane, end_ms, int(scene.x(at)))
    noun, edge = found.windows.noun, {"width": 1.2, "color": colours.edge}
    replaced, stands = {"width": 1.6, "color": colours.stream}, {"width": 4, "color": colours.solid}
    awaited, bridge = {"width": 2, "color": colours.line, "dash": "dot"}, {"width": 1.4, "color": colours.bridge}
    return [
        lines(axis, spans, f"the {noun}, from start to end", edge, fillcolor=colours.body),
        lines(axis, gone, "answer that was taken back or replaced", replaced),
        lines(axis, standing, "answer that stands", stands),
        lines(axis, waits, "waits for stream time", awaited),
        lines(axis, merged, f"became one {noun}", bridge),
    ]


def _caps(scene: EmissionScene) -> Drawn:
    """A bar where a window closed and nothing said so."""
    found = scene.emissions
    is_update = found.strategy == "on_window_update"
    lanes = [lane for lane in scene.lanes if is_update or found.lanes[lane].is_silent]
    shown = [(lane, at) for lane in lanes for at in scene.closed_at(lane)]
    said = [f"closed {closer_words(found.trace, at)}; nothing was sent" for _, at in shown]
    name = "closed: no message says so" if is_update else "closed, but nothing went out"
    look = {"symbol": "line-ns", "size": 14, "line": {"width": 4, "color": scene.colours.ink}}
    x_ms = [int(scene.x(at)) for _, at in shown]
    return marks(scene.axis, x_ms, [scene.y(lane) for lane, _ in shown], said, name, marker=look)


def _marks(scene: EmissionScene, what: str) -> Drawn:
    kind, shown, is_low = KINDS[what], scene.marked(what), what == "tombstone"
    colour = getattr(scene.colours, kind.colour)
    edge = {"width": 2.4, "color": colour} if is_low else {"width": 1, "color": scene.colours.background}
    # over stream time a retraction stands below its lane's answers: it is of the same moment as one
    down = BODY if is_low and not scene.is_by_arrival else 0
    x_ms, y = [scene.mark_x(row) for row, _ in shown], [scene.y(lane) - down for _, lane in shown]
    said = [_hover(scene, row, lane) for row, lane in shown]
    marker = {"symbol": kind.symbol, "size": kind.size, "color": colour, "line": edge}
    return marks(scene.axis, x_ms, y, said, kind.name, marker=marker)


def _hover(scene: EmissionScene, row: int, lane: int) -> str:
    """What a mark says of its row, escaped."""
    found, columns = scene.emissions, scene.emissions.columns
    what = found._what[row]
    start, end = (scene.say(int(columns[name][row])) for name in ("window_start_ms", "window_end_ms"))
    said = [f"<b>{KINDS[what].name}</b>", f"{found.windows.noun} {start} to {end}"]
    if what != "tombstone":
        values = zip(found.names, scene.values(row, found.names, 60), strict=True)
        said += [f"{escape_label(name, 30)}: {value}" for name, value in values]
    now = scene.say(int(columns["stream_time_ms"][row]))
    if what != "pending":
        said.append(f"after record {columns['offset'][row]}, stream time {now}")
    elif not found.windows.is_ever_closed:
        said.append("it never closes")
    else:
        said += [f"waits for stream time: it is {now},", f"this closes {found._closes(lane, scene.say)}"]
    return "<br>".join(said)


def _value_notes(scene: EmissionScene) -> list[dict[str, Any]]:
    """Values over marks where there is room; the last of a lane first."""
    found, colours, frame, notes = scene.emissions, scene.colours, scene.frame, []
    for lane in scene.lanes:
        left = np.inf
        for row in reversed(scene.rows[found.lane[scene.rows] == lane].tolist()):
            what = found._what[row]
            if what == "tombstone" or (what == "pending" and found.strategy == "on_window_update"):
                continue
            so_far = "so far " if what == "pending" else ""
            text = so_far + " · ".join(scene.values(row, found.names[:NAMED], MOST_LETTERS))
            x_ms, half = scene.mark_x(row), text_width(text, SMALL) / 2 + 3
            pixel = float(frame.x(x_ms))
            moved = max(pixel + half + 4 - frame.plot_width, 0.0)  # what waits is told to the right of the plot
            pixel -= moved
            if pixel + half > left or pixel - half < 0:
                continue
            left = pixel - half
            over_span = what == "update" and not scene.is_by_arrival  # which is around the mark
            up = round(float(frame.y(0) - frame.y(BODY)) + 9) if over_span else 15
            colour = colours.mute if so_far else colours.ink
            notes.append(_note(scene, x_ms, scene.y(lane), text, colour, yshift=up, xshift=-round(moved)))
    return notes


def _wait_notes(scene: EmissionScene) -> list[dict[str, Any]]:
    """To the right of each pending window: what it waits for; and where stream time stands now."""
    side: dict[str, Any] = {"x": 1, "xref": "paper", "xanchor": "left", "xshift": 8, "align": "left"}
    ink = scene.colours.ink
    notes = [_note(scene, scene.now_x, scene.y(lane), text, ink, **side) for lane, text in scene.waits.items()]
    if scene.is_pending and not scene.is_by_arrival:
        text = f"now: stream time is {scene.say(scene.emissions._now_ms)}"
        top = {"yref": "paper", "yanchor": "bottom", "yshift": 2}
        notes.append(_note(scene, scene.now_x, 1, text, scene.colours.mute, **top))
    return notes


def _note(scene: EmissionScene, x_ms: int, y: float, text: str, colour: str, **place: Any) -> dict[str, Any]:
    font = {"size": SMALL, "color": colour}
    return {"x": scene.axis.at([x_ms])[0], "y": y, "text": text, "showarrow": False, "font": font, **place}


def _now(scene: EmissionScene) -> dict[str, Any]:
    """Where the end of the run is: a line at stream time, or a column of its own."""
    x, half, high = scene.axis.at([scene.now_x, scene.now_x - COLUMN // 2, scene.x_range_ms[1]])
    tall = {"y0": 0, "y1": 1, "yref": "paper", "layer": "below"}
    if scene.is_by_arrival:
        area = {"fillcolor": scene.colours.territory, "line": {"width": 0}}
        return {"type": "rect", "x0": half, "x1": high, **area, **tall}
    line = {"width": 1.6, "color": scene.colours.stream, "dash": "dash"}
    return {"type": "line", "x0": x, "x1": x, "line": line, **tall}


def _columns(scene: EmissionScene) -> dict[str, Any]:
    """Ticks that say offset and stream time, as many as there is room for."""
    trace = scene.emissions.trace
    said = [f"{trace.batch.offset[at]}<br>{scene.say(int(trace.stream_time_ms[at]))}" for at in scene.records.tolist()]
    widest = max((text_width(line, SMALL) for text in said for line in text.split("<br>")), default=1.0) + 8
    every = max(1, int(np.ceil(widest * scene.frame.ms_per_pixel / COLUMN)))
    newest = len(said) - (every if scene.is_pending else 1)  # beside "now" there must be room
    keep = list(range(newest, -1, -every))[::-1]
    if scene.is_pending:
        keep, said = [*keep, len(said)], [*said, f"now<br>{scene.say(scene.emissions._now_ms)}"]
    return {"tickvals": keep, "ticktext": [said[k] for k in keep], "tickfont": {"size": SMALL}, "tickangle": 0}
