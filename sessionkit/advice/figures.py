"""Pictures to choose a gap and a grace by: pauses, what a grace keeps, a sweep as a grid, and what waiting buys."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from sessionkit.base.durations import MINUTE, ROUND_MS, about, show_duration
from sessionkit.base.text import escape_label, one_of, percent, plural
from sessionkit.errors import InvalidArgument, problem
from sessionkit.views.drawing.grammar import axis_title, counts_axis
from sessionkit.views.drawing.measured_text import text_width
from sessionkit.views.drawing.palettes import PALETTES, Theme, palette
from sessionkit.views.drawing.simple_frame import (
    SAID,
    add_note,
    coloured,
    curve,
    dots,
    dress_plain,
    is_one_row,
    plain_heading,
    plot_width,
    row_of_buttons,
)
from sessionkit.views.drawing.time_axis import lengths_axis
from sessionkit.views.loops import decades

if TYPE_CHECKING:
    from sessionkit.advice.suggest import GapSuggestion, GraceSuggestion
    from sessionkit.advice.sweep import Cell, Sweep


PLOT_HEIGHT, CELL_HEIGHT = 340, 26
BUTTONS_AT, SCALE_HEIGHT = 66, 56  # pixels: below a grid, and of what its colours mean
ABOUT = 9  # steps of the curve of pauses that count as one length: 11% on either side
BELOW = 0.035  # of the height, where the marks of single lengths stand
NEAR = 1.5  # times another one: their names would lie over each other on a scale of a decade
LEAST_SHARE = 3e-5  # where nothing is dropped, on a logarithmic axis
SHAPES = ("circle", "square", "diamond", "triangle-up", "cross", "star", "hexagon", "pentagon")
MEASURES = {
    "dropped_share": "dropped as late",
    "windows": "windows",
    "merges": "merges",
    "delay_ms": "wait for a final result",
}
LIGHT_SCALE = [[0.0, "#ffffff"], [0.3, "#fbeee0"], [0.65, "#f0b27a"], [1.0, "#B3261E"]]
DARK_SCALE = [[0.0, "#12161c"], [0.3, "#3a2a1e"], [0.65, "#9c5a20"], [1.0, "#F2542D"]]


def gap_figure(suggestion: GapSuggestion, *, theme: Theme | None) -> go.Figure:
    """How many pauses are about as long as each length, a mark below for each length that is there, and the valleys."""
    colours = palette(theme)
    logs, found = suggestion.curve
    height = np.convolve(found, np.ones(ABOUT, np.int64), "same") if len(found) else found
    top = int(height.max(initial=1))
    pauses_ms = np.array([float(f"{ms:.12g}") for ms in np.round(10**logs, 6)])  # processors differ beyond
    edge = {"width": 2.5, "color": colours.edge}
    figure = go.Figure(curve(pauses_ms, height, "pauses", edge, fillcolor=colours.body, showlegend=False))
    mark = {"symbol": "line-ns", "size": 9, "line": {"width": 1.4, "color": colours.line_words}}
    there = np.flatnonzero(found)
    hover = [f"{plural(int(found[at]), 'pause')} of about {about(round(pauses_ms[at]))}" for at in there.tolist()]
    below = dots(pauses_ms[there], np.full(len(there), -BELOW * top), "pauses", mark, hover, showlegend=False)
    figure.add_trace(below)
    title = "No clear gap" if suggestion.gap_ms is None else f"A gap of {show_duration(suggestion.gap_ms)}"
    dress_plain(figure, colours, title, suggestion.words(), PLOT_HEIGHT)
    if len(logs):
        figure.update_xaxes(**lengths_axis(10 ** logs[0], 10 ** logs[-1], logarithmic=True, room=plot_width(figure)))
    others = 0
    for valley in suggestion.valleys:
        is_chosen = valley.gap_ms == suggestion.gap_ms
        reach = top * (1.0 if is_chosen else 0.55 - 0.065 * (others % 8))  # the next one is shorter: it crosses no name
        others += not is_chosen
        chosen = {"color": colours.line, "width": 3, "dash": "solid"}
        line = chosen if is_chosen else {"color": colours.mute, "width": 1.4, "dash": "dot"}
        figure.add_shape(type="line", x0=valley.gap_ms, x1=valley.gap_ms, y0=0, y1=reach, line=line)
        said = f"<b>gap {show_duration(valley.gap_ms)}</b>" if is_chosen else show_duration(valley.gap_ms)
        text = f"{said} · depth {valley.depth:.2f}" if valley.empty_ms is None else f"{said} · empty"
        is_far = decades(valley.gap_ms) > logs[0] + 0.65 * (logs[-1] - logs[0])  # its name needs the room before it
        colour = colours.line_words if is_chosen else colours.mute
        ground = {"bgcolor": colours.background, "borderpad": 1}
        side = "right" if is_far else "left"
        add_note(figure, decades(valley.gap_ms), reach, text, colour, side, yanchor="top", **ground)
    figure.update_xaxes(title=axis_title("pause between two records of one key", colours))
    counted = axis_title("pauses within 11% of this length", colours)
    figure.update_yaxes(title=counted, **counts_axis(top) | {"range": [-2 * BELOW * top, 1.05 * top]})
    return figure


def grace_figure(suggestion: GraceSuggestion, *, theme: Theme | None) -> go.Figure:
    """The share that each grace keeps, as it was replayed."""
    colours = palette(theme)
    graces, shares = suggestion.curve
    edge, said = {"width": 2.5, "color": colours.edge}, [show_duration(ms) for ms in graces]
    hover = "grace %{customdata} keeps %{y:.4%}<extra></extra>"
    figure = go.Figure(curve(graces, shares, "kept", edge, said, hover, showlegend=False))
    title = f"A grace of {about(suggestion.grace_ms, at_least=True)} keeps {percent(suggestion.kept_share)}"
    dress_plain(figure, colours, title, suggestion.words(), PLOT_HEIGHT, left=100)
    at, least = suggestion.grace_ms, float(shares.min(initial=1))
    limit = max(2 * at, MINUTE)
    least = min(least, suggestion.keep, 0.999)
    room = 0.08 * (1 - least)
    chosen = {"color": colours.line, "width": 3}
    asked = {"color": colours.mute, "width": 1.4, "dash": "dot"}
    figure.add_shape(type="line", x0=at, x1=at, y0=least - room, y1=suggestion.kept_share, line=chosen)
    figure.add_shape(type="line", x0=0, x1=1, xref="paper", y0=suggestion.keep, y1=suggestion.keep, line=asked)
    for x, y, text, colour, side in (
        (at, least - room, f"<b>grace {about(at, at_least=True)}</b>", colours.line_words, "left"),
        (limit, suggestion.keep, f"asked for: {percent(suggestion.keep)}", colours.mute, "right"),
    ):
        add_note(figure, x, y, text, colour, side, yanchor="bottom" if side == "left" else "top")
    axis = lengths_axis(0, limit, room=plot_width(figure))
    figure.update_xaxes(title=axis_title("grace", colours), **axis | {"range": [-0.04 * limit, limit]})
    figure.update_yaxes(title=axis_title("records kept", colours), tickformat=".4~%", range=[least - room, 1 + room])
    return figure


def heat_map(sweep: Sweep, measure: str, *, theme: Theme | None) -> go.Figure:
    """A grid of the first two settings, a cell for each combination."""
    one_of("measure", measure, tuple(MEASURES))
    names = list(sweep.values)
    if len(names) != 2:
        want = "a sweep over two parameters; pareto() and table() show any"
        raise InvalidArgument(problem("a heat map has two sides", plural(len(names), "parameter"), want))
    colours, across, up = palette(theme), sweep.values[names[0]], sweep.values[names[1]]
    cells = {tuple(cell.settings.values()): cell for cell in sweep.cells}
    told = [_in_words(name) for name in names]
    views = {each: _view([[cells[x, y] for x in across] for y in up], each, told) for each in MEASURES}
    place: dict[str, Any] = {"y": [show_duration(ms) for ms in up], "xgap": 2, "ygap": 2}
    place["x"] = [show_duration(ms) for ms in across]
    hover = {"customdata": [[_hover(cells[x, y]) for x in across] for y in up], "hovertemplate": SAID}
    words = {"texttemplate": "%{text}", "textfont": {"size": 11 if len(across) <= 14 else 9}}
    scale = LIGHT_SCALE if colours is PALETTES["light"] else DARK_SCALE
    height, buttons_height = max(CELL_HEIGHT * len(up), 120), 38 if is_one_row(MEASURES.values()) else 146
    grid = coloured(views[measure]["cells"], -(BUTTONS_AT + buttons_height) / height, colours)
    figure = go.Figure(go.Heatmap(colorscale=scale, **grid, **place, **hover, **words))
    below = buttons_height + SCALE_HEIGHT
    dress_plain(figure, colours, views[measure]["title"], views[measure]["said"], height, below=below, left=110)
    figure.update_xaxes(title=axis_title(told[0], colours), type="category", showgrid=False)
    if max(text_width(text, 13) for text in place["x"]) > plot_width(figure) / len(across) - 4:
        broken = [re.sub("(?<=[a-z]) ", "<br>", text) for text in place["x"]]
        figure.update_xaxes(tickvals=place["x"], ticktext=broken)
    figure.update_yaxes(title=axis_title(told[1], colours), type="category", showgrid=False)
    buttons = {}
    for each, name in MEASURES.items():
        title = plain_heading(views[each]["title"], views[each]["said"]).text(colours)
        changed = {setting: [value] for setting, value in views[each]["cells"].items()}
        buttons[name] = (changed, {"title.text": title}, [0])
    menu = row_of_buttons(buttons, MEASURES[measure], colours, -BUTTONS_AT / height, "left")
    figure.update_layout(updatemenus=[menu])
    return figure


def _view(rows: list[list[Cell]], measure: str, names: list[str]) -> dict[str, Any]:
    """The colours and numbers of a grid for one measure, and what is said above it."""
    grid = [[getattr(cell, measure) for cell in row] for row in rows]
    least = LEAST_SHARE if measure == "dropped_share" else 1
    unit = "% of the records " if measure == "dropped_share" else ""
    what = f"{unit}{MEASURES[measure]} for each {names[0]} and {names[1]}"
    z = decades(np.maximum(np.array(grid, np.float64), least))
    text = [[_shown(measure, value) for value in row] for row in grid]
    low, high = float(np.min(grid)), float(np.max(grid))
    zmin, zmax = float(z.min()), max(float(z.max()), float(z.min()) + 1)  # a decade of colours at least
    if measure == "dropped_share" and zmax > 0:  # more than all records
        zmin, zmax = min(zmin, -1.0), 0.0
    cells: dict[str, Any] = {"z": z, "zmin": zmin, "zmax": zmax, "text": text}
    waits = [ms for ms in ROUND_MS[1:] if low <= ms <= high]
    ticks: list[float] = [*waits] if measure == "delay_ms" else _ticks_of(max(low, least), max(high, least), 1)
    ticks = ticks[:: -(-len(ticks) // 4)] if len(ticks) > 1 else [max(low, least), max(high, least)]
    if ticks[-1] < NEAR * ticks[0]:  # their names would lie over each other
        ticks = ticks[-1:]
    cells |= {"showscale": low < high, "colorbar.title.text": f"{unit}{MEASURES[measure]}"}
    cells |= {"colorbar.tickvals": decades(ticks).tolist()}
    cells |= {"colorbar.ticktext": [_shown(measure, tick) for tick in ticks]}
    said = [f"{what}, every cell an exact run of the same records"]
    if not high and measure == "dropped_share":
        said.append("no setting drops a record")
    return {"cells": cells, "title": f"{MEASURES[measure].capitalize()}, by settings", "said": said}


def pareto(sweep: Sweep, *, theme: Theme | None) -> go.Figure:
    """Dropped share against delay: settings that another one beats are grey, the best are joined by a stair."""
    colours = palette(theme)
    first, beaten = next(iter(sweep.values)), sweep.is_dominated
    # where "none" stands on a logarithmic axis: well below the smallest share that is dropped
    nothing = min((cell.dropped_share for cell in sweep.cells if cell.dropped), default=LEAST_SHARE) / 3
    statuses = [colours.record, colours.bridge, colours.saved, colours.drop, colours.line]
    best = [cell for cell, is_beaten in zip(sweep.cells, beaten.tolist(), strict=True) if not is_beaten]
    best.sort(key=lambda cell: (cell.delay_ms, cell.dropped))
    dotted = {"color": colours.mute, "width": 1.4, "shape": "hv", "dash": "dot"}
    lowest = np.minimum.accumulate([cell.dropped for cell in best])  # a step up leaves fewer sessions apart
    best = [cell for cell, least in zip(best, lowest.tolist(), strict=True) if cell.dropped == least]
    waits, shares = [cell.delay_ms for cell in best], [cell.dropped_share or nothing for cell in best]
    stair = curve(waits, shares, "the best for each delay", dotted)
    below, above = [], []  # the best lie over what they beat
    for number, value in enumerate(sweep.values[first]):
        mine = [i for i, cell in enumerate(sweep.cells) if next(iter(cell.settings.values())) == value]
        shape, name = SHAPES[number % len(SHAPES)], f"{_in_words(first)} {show_duration(value)}"
        won, lost = [i for i in mine if not beaten[i]], [i for i in mine if beaten[i]]
        colour = statuses[number % len(statuses)]
        below.append(_settings(sweep, lost, name, f"{shape}-open", colours.other, nothing, showlegend=not won))
        above.append(_settings(sweep, won, name, shape, colour, nothing, showlegend=bool(won)))
    figure = go.Figure([*below, stair, *above])
    is_cut = any(cell.apart for cell in sweep.cells)
    worse = "drops no more records, leaves no more sessions apart" if is_cut else "drops no more records"
    said = [f"a mark is a setting, an exact run; hollow and grey: another one {worse} and waits no longer"]
    dropped = [cell.dropped_share for cell in sweep.cells if cell.dropped]
    named = _ticks_of(min(dropped), max(dropped)) if dropped else [3 * LEAST_SHARE]
    if not dropped:
        said.append(f"no setting drops a record{'' if is_cut else ', so the shortest wait is the best'}")
    dress_plain(figure, colours, "Fewer drops or shorter waits", said, PLOT_HEIGHT)
    title = "wait for a final result, after a window's last moment"
    all_waits = np.unique([cell.delay_ms for cell in sweep.cells])
    low, high = int(all_waits[0]), int(all_waits[-1])
    is_log, pad = low > 0 and high >= 20 * low, max(high - low, 1_000) * 0.04  # a little more on either side
    begin, end = (low / (high / low) ** 0.04, high * (high / low) ** 0.04) if is_log else (low - pad, high + pad)
    axis = lengths_axis(begin, end, logarithmic=is_log, room=plot_width(figure))
    figure.update_xaxes(title=axis_title(title, colours), **axis)
    none = [nothing] if len(dropped) < len(sweep.cells) else []
    ticks = {"tickvals": [*none, *named], "ticktext": [*("none" for _ in none), *map(percent, named)]}
    figure.update_yaxes(title=axis_title("records dropped", colours), type="log", **ticks)
    return figure


def _ticks_of(low: float, high: float, beyond: float = 1.2) -> list[float]:
    """Round numbers or shares between these, two at least, for a logarithmic axis."""
    for steps in (1,), (1, 3), (1, 2, 3, 5, 7):
        found = [round(step * 10.0**power, 9) for power in range(-7, 12) for step in steps]
        found = [number for number in found if low / beyond <= number <= high * beyond]
        if len(found) > 1:
            return found
    return sorted({low, high})


def _settings(
    sweep: Sweep, cells: list[int], name: str, shape: str, colour: str, nothing: float, **options: bool
) -> go.Scatter:
    marker = {"size": 9, "symbol": shape, "color": colour, "line": {"width": 1.4 if "open" in shape else 0}}
    shown = [sweep.cells[i] for i in cells]
    waits, shares = [cell.delay_ms for cell in shown], [cell.dropped_share or nothing for cell in shown]
    return dots(waits, shares, name, marker, [_hover(cell) for cell in shown], **options)


def _in_words(name: str) -> str:
    return name.removesuffix("_ms").replace("_", " ")


def _hover(cell: Cell) -> str:
    settings = ", ".join(f"{_in_words(name)} {show_duration(ms)}" for name, ms in cell.settings.items())
    return escape_label(
        f"{settings}: {cell.dropped:,} dropped ({percent(cell.dropped_share)}), {plural(cell.windows, 'window')}, "
        f"{plural(cell.merges, 'merge')}, {f'{cell.apart:,} apart, ' if cell.apart else ''}"
        f"final after {show_duration(cell.delay_ms)}",
        300,
    )


def _shown(measure: str, value: float) -> str:
    if measure == "dropped_share":
        if value == 0:
            return "0"
        return "<.01" if value < 5e-5 else f"{100 * value:.2f}" if value < 0.1 else f"{100 * value:.1f}"
    return show_duration(int(value)) if measure == "delay_ms" else f"{int(value):,}"
