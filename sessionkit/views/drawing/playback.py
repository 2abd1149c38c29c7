"""Playback: a slider over arrivals that works in a saved page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sessionkit.base.arrays import Longs
from sessionkit.views.drawing.grammar import LEAST_WIDTH, Frame, legend_top
from sessionkit.views.drawing.labels import Placement
from sessionkit.views.drawing.palettes import Figure, Palette

_VEIL_FROM = 0.6  # rows between the newest one and the curtain: its own mark shows, the next one does not
_MOST_FRAMES = 240
_STEP_MS = 450
_ROOM, _BUTTON_ROOM = 74, 40  # pixels that the slider takes, and the buttons below it where a title has the whole width


def add_playback(figure: Figure, colours: Palette, frame: Frame, placement: Placement, offsets: Longs) -> None:
    """Adds a curtain in the background's colour whose lower edge moves up, row by row, with a slider and buttons.

    Rows only ever add above, so the past is the picture below the curtain: one shape moves, and labels whose row has
    not come yet are hidden. (Frames that swap filled traces lose their fills in plotly.js.)
    """
    import plotly.graph_objects as go

    count = len(offsets)
    stops = [*range(0, count - 1, -(-count // _MOST_FRAMES)), count - 1]
    states = [curtain(row, row == count - 1, colours, frame, placement) for row in stops]
    figure.frames = [go.Frame(name=str(row), layout=state) for row, state in zip(stops, states, strict=True)]
    room = _ROOM if frame.width >= LEAST_WIDTH else _ROOM + _BUTTON_ROOM
    roomy = replace(frame, height=frame.height + room, bottom=frame.bottom + room)
    size = {"height": roomy.height, "margin": {"b": roomy.bottom}, "legend": {"y": legend_top(roomy)}}
    sliders = [_slider(colours, frame, stops, offsets)]
    figure.update_layout(**states[-1], **size, updatemenus=[_buttons(colours, frame)], sliders=sliders)


def curtain(row: int, is_last: bool, colours: Palette, frame: Frame, placement: Placement) -> dict[str, Any]:
    """The curtain and the labels once the record of this row has arrived."""
    top = frame.y_range[1]
    place = {"type": "rect", "xref": "paper", "x0": 0, "x1": 1, "y0": top if is_last else row + _VEIL_FROM, "y1": top}
    curtain = {**place, "fillcolor": colours.background, "line": {"width": 0}, "layer": "above"}
    seen = [is_last or row + _VEIL_FROM >= y for y in placement.rows]
    notes = [{**note, "visible": now} for note, now in zip(placement.annotations, seen, strict=True)]
    return {"shapes": [curtain], "annotations": notes}


def _buttons(colours: Palette, frame: Frame) -> dict[str, Any]:
    steady = {"transition": {"duration": 0}, "mode": "immediate"}
    play = {**steady, "frame": {"duration": _STEP_MS, "redraw": True}, "fromcurrent": True}
    stop = {**steady, "frame": {"duration": 0, "redraw": True}}
    buttons = [
        {"label": "▶ play", "method": "animate", "args": [None, play]},
        {"label": "❚❚ pause", "method": "animate", "args": [[None], stop]},
    ]
    place = {"x": 1, "xanchor": "right", "y": 1 + 26 / frame.plot_height, "yanchor": "middle", "direction": "left"}
    if frame.width < LEAST_WIDTH:
        place |= {"y": -(frame.bottom + _ROOM) / frame.plot_height, "yanchor": "top"}
    look = {"bgcolor": colours.background, "bordercolor": colours.mute, "font": {"color": colours.ink, "size": 12}}
    return {"type": "buttons", "showactive": False, "buttons": buttons, **place, **look}


def _slider(colours: Palette, frame: Frame, stops: list[int], offsets: Longs) -> dict[str, Any]:
    at_once = {"mode": "immediate", "frame": {"duration": 0, "redraw": True}, "transition": {"duration": 0}}
    steps = [{"label": f"{offsets[row]:,}", "method": "animate", "args": [[str(row)], at_once]} for row in stops]
    place = {"x": 0, "len": 1, "y": -(frame.bottom - 6) / frame.plot_height, "yanchor": "top", "pad": {"t": 0, "b": 0}}
    lines = {"bgcolor": colours.grid, "activebgcolor": colours.line, "bordercolor": colours.mute}
    words = {"tickcolor": colours.mute, "font": {"color": colours.mute, "size": 10}}
    now = {"prefix": "arrived up to offset ", "font": {"size": 12, "color": colours.ink}}
    return {"active": len(stops) - 1, "currentvalue": now, "steps": steps, **place, **lines, **words}
