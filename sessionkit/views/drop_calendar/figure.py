"""The picture of a calendar of drops."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from sessionkit.base.arrays import Longs
from sessionkit.base.text import escape_label, percent, plural
from sessionkit.views.drawing.grammar import LEAST_WIDTH, axis_title, checked_width, empty_figure
from sessionkit.views.drawing.palettes import PALETTES, Palette, Theme, palette
from sessionkit.views.drawing.simple_frame import (
    SAID,
    coloured,
    dots,
    dress_plain,
    plain_heading,
    plot_width,
    row_of_buttons,
)
from sessionkit.views.drawing.time_axis import takes_logarithm
from sessionkit.views.drop_calendar.cells import Calendar
from sessionkit.views.loops import decades

TITLES = {"dropped": "When records were dropped", "missed a window": "When records missed a window"}
MOST_HEIGHT, ROW_HEIGHT, LEAST_HEIGHT = 384, 30, 150
CELL_WIDTH, TICK_WIDTH = 46, 40  # pixels: of a cell at most, as few are not drawn as wide bars; and of a tick
BELOW, SCALE_AT, BUTTON_HEIGHT = 68, -66, 36  # pixels below the plot
LIGHT_SCALE = [[0.0, "#DE7B6F"], [0.5, "#B3261E"], [1.0, "#4F0905"]]
DARK_SCALE = [[0.0, "#A8452E"], [0.5, "#F2542D"], [1.0, "#FFE1D6"]]
_STEPS = (1, 2, 5)


def drop_calendar_figure(
    cells: Calendar | None, counts: tuple[Longs, Longs], words: list[str], verb: str, *, theme: Theme | None
) -> go.Figure:
    """A cell for each hour or day, coloured by the records of it that were dropped, or did what `verb` says."""
    colours = palette(theme)
    if cells is None:
        return empty_figure(colours, plain_heading(TITLES[verb], words))
    records, dropped = counts
    count, said = cells.column_count, [*words, *_legend(cells, records, dropped, verb)]
    hover = _grid(cells, np.array(_hovers(cells, records, dropped, verb), object), None)
    place = {"x": np.arange(count), "y": np.arange(cells.row_count), "xgap": 1 if count < 250 else 0, "ygap": 1}
    look: dict[str, Any] = {**place, "customdata": hover, "hovertemplate": SAID}
    grey, kept = [[0, colours.grid], [1, colours.grid]], np.where((records > 0) & (dropped == 0), 0.0, np.nan)
    none = go.Heatmap(z=_grid(cells, kept, np.nan), colorscale=grey, showscale=False, name=f"none {verb}", **look)
    views = [_by_count(cells, dropped, verb), _by_share(cells, records, dropped, verb)]
    scale = LIGHT_SCALE if colours is PALETTES["light"] else DARK_SCALE
    height = min(max(ROW_HEIGHT * cells.row_count, LEAST_HEIGHT), MOST_HEIGHT)
    below = 0 if checked_width() >= LEAST_WIDTH else BUTTON_HEIGHT  # where the scale has no room beside the buttons
    heat = go.Heatmap(**coloured(views[0], (SCALE_AT - below) / height, colours), colorscale=scale, name=verb, **look)
    figure = go.Figure([none, heat, *_skipped(cells, colours)]).update_traces(showlegend=False)
    dress_plain(figure, colours, TITLES[verb], said, height, below=BELOW + below, left=110)
    _axes(figure, cells, count, colours)
    buttons: dict[str, Any] = {
        name: ({each: [value] for each, value in view.items()}, {}, [1])
        for name, view in zip(("records", "share"), views, strict=True)
    }
    figure.update_layout(updatemenus=[row_of_buttons(buttons, "records", colours, SCALE_AT / height, "right")])
    return figure


def _grid(cells: Calendar, values: npt.NDArray[Any], nothing: Any) -> npt.NDArray[Any]:
    """Values of the cells at their places."""
    grid = np.full((cells.row_count, cells.column_count), nothing, dtype=values.dtype)
    grid[cells.row, cells.column] = values
    return grid


def _hovers(cells: Calendar, records: Longs, dropped: Longs, verb: str) -> list[str]:
    counts = zip(records.tolist(), dropped.tolist(), strict=True)
    shares = [
        f"{lost:,} of {plural(n, 'record')} {verb} ({percent(lost / n)})" if n else "no records" for n, lost in counts
    ]
    return [escape_label(f"{name}: {share}", 200) for name, share in zip(cells.names, shares, strict=True)]


def _by_count(cells: Calendar, dropped: Longs, verb: str) -> dict[str, Any]:
    most = int(dropped.max())
    is_log = takes_logarithm(dropped)
    shown = np.where(dropped > 0, decades(np.maximum(dropped, 1)) if is_log else dropped, np.nan)
    rounds = [step * 10**power for power in range(len(str(most))) for step in _STEPS if step * 10**power <= most]
    if is_log:
        ticks = rounds if len(rounds) <= 6 else [each for each in rounds if str(each)[0] == "1"]
    else:
        step = next(each for each in [*rounds, most] if most / each <= 5)
        ticks = [*([1] if step > 1 else []), *range(step, most + 1, step)]
    low, high = (0.0, float(decades(most))) if is_log else (1.0, float(most))
    return {
        "z": _grid(cells, shown.astype(float), np.nan),
        "zmin": low,
        "zmax": high if high > low else low + 1,
        "colorbar.title.text": "dropped records" if verb == "dropped" else f"records that {verb}",
        "colorbar.tickvals": decades(ticks).tolist() if is_log else ticks,
        "colorbar.ticktext": [f"{each:,}" for each in ticks],
    }


def _by_share(cells: Calendar, records: Longs, dropped: Longs, verb: str) -> dict[str, Any]:
    share = np.where(dropped > 0, dropped / np.maximum(records, 1), np.nan)
    most = float(np.nanmax(share))
    step = next(each for each in (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25)
                if most / each <= 5 or each == 0.25)  # fmt: skip
    ticks = [round(number * step, 6) for number in range(int(most / step + 1e-9) + 1)]
    return {
        "z": _grid(cells, share, np.nan),
        "zmin": 0.0,
        "zmax": most,
        "colorbar.title.text": f"{verb}, of the records of each {cells.unit}",
        "colorbar.tickvals": ticks,
        "colorbar.ticktext": [percent(each) for each in ticks],
    }


def _legend(cells: Calendar, records: Longs, dropped: Longs, verb: str) -> list[str]:
    """What the cells without a colour are."""
    said = []
    if ((records > 0) & (dropped == 0)).any():
        said.append(f"grey: records, none of them {verb}")
    if (records == 0).any():
        said.append("blank: no records")
    if cells.skipped:
        said.append("dash: an hour that clocks skip")
    return said


def _skipped(cells: Calendar, colours: Palette) -> list[go.Scatter]:
    """A dash for each hour that no clock showed."""
    if not cells.skipped:
        return []
    rows, columns, names = zip(*cells.skipped, strict=True)
    marker = {"symbol": "line-ew", "size": 8, "line": {"width": 1.5, "color": colours.mute}}
    return [dots(columns, rows, "skipped", marker, [f"{name}: clocks skip this hour" for name in names])]


def _axes(figure: go.Figure, cells: Calendar, count: int, colours: Palette) -> None:
    title = ", ".join(filter(None, (cells.column_title, escape_label(cells.timezone))))
    shown, ticks = [-0.5, max(count, plot_width(figure) // CELL_WIDTH) - 0.5], cells.column_ticks
    apart = TICK_WIDTH * (shown[1] - shown[0]) / plot_width(figure)
    while len(ticks) > 2 and min(b[0] - a[0] for a, b in pairwise(ticks[1:])) < apart:
        ticks = ticks[::2]
    across, down = zip(*ticks, strict=True), zip(*cells.row_ticks, strict=True)
    for update, ticks_of, named, span in (
        (figure.update_xaxes, across, title, shown),
        (figure.update_yaxes, down, cells.row_title, [cells.row_count - 0.5, -0.5]),
    ):
        places, names = ticks_of
        update(
            title=axis_title(named, colours), range=span, tickmode="array", tickvals=places, ticktext=names,
            showgrid=False, tickangle=0, minallowed=min(span), maxallowed=max(span),
        )  # fmt: skip
