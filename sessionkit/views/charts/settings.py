"""Pictures to choose a gap and a grace by: pauses, what a grace keeps, a sweep as a grid, and what waiting buys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sessionkit.base.durations import show_duration
from sessionkit.base.text import escape_label, percent, plural
from sessionkit.errors import InvalidArgument, problem
from sessionkit.views.charts.drawing.grammar import axis_title, legend_height
from sessionkit.views.charts.drawing.palettes import Theme, palette
from sessionkit.views.charts.drawing.simple_frame import PLAIN_WIDTH, dress_plain
from sessionkit.views.loops import decades

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from sessionkit.advice.suggest import GapSuggestion, GraceSuggestion
    from sessionkit.advice.sweep import Cell, Sweep


PLOT_HEIGHT, CELL_HEIGHT = 340, 26
TICKS_MS = (1, 10, 100, 1_000, 10_000, 60_000, 600_000, 3_600_000, 21_600_000, 86_400_000, 604_800_000, 2_592_000_000)
LEAST_SHARE = 3e-5  # where nothing is dropped, on a logarithmic axis
SHAPES = ("circle", "square", "diamond", "triangle-up", "cross", "star", "hexagon", "pentagon")
SHARES = {
    **{1e-6: "0.0001 %", 1e-5: "0.001 %", 1e-4: "0.01 %", 1e-3: "0.1 %"},
    **{1e-2: "1 %", 1e-1: "10 %", 1: "all"},
}
MEASURES = {
    "dropped_share": "dropped",
    "windows": "windows",
    "merges": "merges",
    "delay_ms": "delay of a final result",
}
LIGHT_SCALE = [[0.0, "#ffffff"], [0.3, "#fbeee0"], [0.65, "#f0b27a"], [1.0, "#B3261E"]]
DARK_SCALE = [[0.0, "#12161c"], [0.3, "#3a2a1e"], [0.65, "#9c5a20"], [1.0, "#F2542D"]]


def gap_figure(suggestion: GapSuggestion, *, theme: Theme) -> go.Figure:
    """How usual pauses of each length are, with the valleys between their heaps."""
    import plotly.graph_objects as go

    colours = palette(theme)
    logs, height = suggestion.curve
    pauses_ms = np.round(10**logs, 6)
    edge = {"width": 2.5, "color": colours.edge}
    figure = go.Figure(
        go.Scatter(
            x=pauses_ms,
            y=height,
            mode="lines",
            line=edge,
            fill="tozeroy",
            fillcolor=colours.body,
            name="pauses",
            hoverinfo="skip",
            showlegend=False,
        )
    )
    title = "No clear gap" if suggestion.gap_ms is None else f"A gap of {show_duration(suggestion.gap_ms)}"
    dress_plain(figure, colours, title, suggestion.words(), PLOT_HEIGHT, bottom=64)
    if len(logs):
        _log_durations(figure, logs[0], logs[-1])
    top = float(height.max(initial=1))
    for valley in suggestion.valleys:
        is_chosen = valley.gap_ms == suggestion.gap_ms
        figure.add_shape(
            type="line",
            x0=valley.gap_ms,
            x1=valley.gap_ms,
            y0=0,
            y1=top * (1.0 if is_chosen else 0.5),
            line={
                "color": colours.line if is_chosen else colours.mute,
                "width": 3 if is_chosen else 1.4,
                "dash": "solid" if is_chosen else "dot",
            },
        )
        said = f"<b>gap {show_duration(valley.gap_ms)}</b>" if is_chosen else show_duration(valley.gap_ms)
        figure.add_annotation(
            x=decades(valley.gap_ms),
            y=top * (1.0 if is_chosen else 0.5),
            text=f"{said} · depth {valley.depth:.2f}" if valley.empty_ms is None else f"{said} · empty",
            showarrow=False,
            xanchor="left",
            yanchor="top",
            xshift=6,
            bgcolor=colours.background,
            font={"size": 12, "color": colours.line if is_chosen else colours.mute},
        )
    figure.update_xaxes(title=axis_title("pause between two records of one key", colours))
    figure.update_yaxes(
        title=axis_title("how many pauses are about this long", colours), rangemode="tozero", tickformat=",d"
    )
    return figure


def grace_figure(suggestion: GraceSuggestion, *, theme: Theme) -> go.Figure:
    """The share that each grace keeps, as it was replayed."""
    import plotly.graph_objects as go

    colours = palette(theme)
    graces, shares = suggestion.curve
    figure = go.Figure(
        go.Scatter(
            x=graces / 60_000,
            y=shares,
            mode="lines",
            line={"width": 2.5, "color": colours.edge},
            customdata=[show_duration(ms) for ms in graces],
            hovertemplate="grace %{customdata} keeps %{y:.4%}<extra></extra>",
            showlegend=False,
            name="kept",
        )
    )
    title = f"A grace of {show_duration(suggestion.grace_ms)} keeps {percent(suggestion.kept_share)}"
    dress_plain(figure, colours, title, suggestion.words(), PLOT_HEIGHT, bottom=64, left=100)
    at = suggestion.grace_ms / 60_000
    figure.add_shape(
        type="line", x0=at, x1=at, y0=float(shares.min(initial=1)), y1=1, line={"color": colours.line, "width": 3}
    )
    limit = max(2 * at, 1.0)
    figure.update_xaxes(title=axis_title("grace, minutes", colours), range=[-0.02 * limit, limit])
    figure.update_yaxes(title=axis_title("records kept", colours), tickformat=".2%")
    return figure


def heat_map(sweep: Sweep, measure: str, *, theme: Theme) -> go.Figure:
    """A grid of the first two settings, a cell for each combination."""
    import plotly.graph_objects as go

    if measure not in MEASURES:
        raise InvalidArgument(problem("measure must be a known one", repr(measure), f"one of {list(MEASURES)}"))
    names = list(sweep.values)
    if len(names) != 2:
        want = "a sweep over two parameters; pareto() and table() show any"
        raise InvalidArgument(problem("a heat map has two sides", plural(len(names), "parameter"), want))
    colours, across, up = palette(theme), sweep.values[names[0]], sweep.values[names[1]]
    cells = {tuple(cell.settings.values()): cell for cell in sweep.cells}
    grid = [[getattr(cells[x, y], measure) for x in across] for y in up]
    z = decades(np.maximum(np.array(grid, np.float64), LEAST_SHARE if measure == "dropped_share" else 1))
    figure = go.Figure(
        go.Heatmap(
            z=z,
            x=[show_duration(ms) for ms in across],
            y=[show_duration(ms) for ms in up],
            text=[[_shown(measure, value) for value in row] for row in grid],
            texttemplate="%{text}",
            colorscale=LIGHT_SCALE if theme == "light" else DARK_SCALE,
            showscale=False,
            xgap=2,
            ygap=2,
            textfont={"size": 11 if len(across) <= 14 else 9},
            customdata=[[_hover(cells[x, y]) for x in across] for y in up],
            hovertemplate="%{customdata}<extra></extra>",
        )
    )
    unit = "% of the records " if measure == "dropped_share" else ""
    said = [
        f"{unit}{MEASURES[measure]} for each {names[0]} and {names[1]}, every cell an exact run of the same records"
    ]
    height = max(CELL_HEIGHT * len(up), 120)
    dress_plain(figure, colours, f"{MEASURES[measure].capitalize()}, by settings", said, height, bottom=70, left=110)
    figure.update_xaxes(title=axis_title(names[0], colours), type="category", showgrid=False)
    figure.update_yaxes(title=axis_title(names[1], colours), type="category", showgrid=False)
    return figure


def pareto(sweep: Sweep, *, theme: Theme) -> go.Figure:
    """Dropped share against delay: settings that another one beats are grey, the best are joined by a stair."""
    import plotly.graph_objects as go

    colours = palette(theme)
    first, beaten = next(iter(sweep.values)), sweep.is_dominated
    nothing = _below_all(sweep)
    statuses = [colours.record, colours.bridge, colours.saved, colours.drop, colours.line]
    figure = go.Figure()
    best = [cell for cell, is_beaten in zip(sweep.cells, beaten.tolist(), strict=True) if not is_beaten]
    best.sort(key=lambda cell: cell.delay_ms)
    figure.add_trace(
        go.Scatter(
            x=[_hours(cell.delay_ms) for cell in best],
            y=[cell.dropped_share or nothing for cell in best],
            mode="lines",
            line={"color": colours.mute, "width": 1.4, "shape": "hv", "dash": "dot"},
            name="the best for each delay",
            hoverinfo="skip",
        )
    )
    for number, value in enumerate(sweep.values[first]):
        mine = [i for i, cell in enumerate(sweep.cells) if next(iter(cell.settings.values())) == value]
        colour = statuses[number % len(statuses)]
        figure.add_trace(
            go.Scatter(
                x=[_hours(sweep.cells[i].delay_ms) for i in mine],
                y=[sweep.cells[i].dropped_share or nothing for i in mine],
                mode="markers",
                name=f"{first} {show_duration(value)}",
                marker={
                    "size": 9,
                    "symbol": SHAPES[number % len(SHAPES)],
                    "line": {"width": 1, "color": colours.background},
                    "color": [colours.other if beaten[i] else colour for i in mine],
                    "opacity": [0.45 if beaten[i] else 1 for i in mine],
                },
                customdata=[_hover(sweep.cells[i]) for i in mine],
                hovertemplate="%{customdata}<extra></extra>",
            )
        )
    said = ["each mark is one setting, an exact run; grey: another setting drops no more records and waits no longer"]
    bottom = legend_height(len(figure.data), PLAIN_WIDTH - 110)
    shares = {share: said for share, said in SHARES.items() if share > nothing}
    dress_plain(figure, colours, "Fewer drops or shorter waits", said, PLOT_HEIGHT, bottom=bottom)
    figure.update_xaxes(title=axis_title("hours until a result is final, after a window's last moment", colours))
    figure.update_yaxes(
        title=axis_title("records dropped", colours),
        type="log",
        tickvals=[nothing, *shares],
        ticktext=["none", *shares.values()],
    )
    return figure


def _below_all(sweep: Sweep) -> float:
    """Where "none" stands on a logarithmic axis: well below the smallest share that is dropped."""
    return min((cell.dropped_share for cell in sweep.cells if cell.dropped), default=LEAST_SHARE) / 3


def _hover(cell: Cell) -> str:
    settings = ", ".join(f"{name.removesuffix('_ms')} {show_duration(ms)}" for name, ms in cell.settings.items())
    return escape_label(
        f"{settings}: {cell.dropped:,} dropped ({percent(cell.dropped_share)}), {plural(cell.windows, 'window')}, "
        f"{plural(cell.merges, 'merge')}, final after {show_duration(cell.delay_ms)}",
        300,
    )


def _shown(measure: str, value: float) -> str:
    if measure == "dropped_share":
        if value == 0:
            return "0"
        return "<.01" if value < 5e-5 else f"{100 * value:.2f}" if value < 0.1 else f"{100 * value:.1f}"
    return show_duration(int(value)) if measure == "delay_ms" else f"{int(value):,}"


def _hours(ms: int) -> float:
    return ms / 3_600_000


def _log_durations(figure: go.Figure, low: float, high: float) -> None:
    """A logarithmic axis of durations, from 10**low to 10**high ms."""
    ticks = [ms for ms in TICKS_MS if low <= decades(ms) <= high]
    figure.update_xaxes(type="log", tickvals=ticks, ticktext=[show_duration(ms) for ms in ticks], range=[low, high])
