"""Lanes of more records than can be drawn one by one: their number as colour, and what must not be missed on top.

A drop, a bridge or a rescue always has a mark: one of each kind for a few pixels of a lane; hover says how many.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sessionkit.base.arrays import Longs
from sessionkit.base.text import plural
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.trace.window_trace import WindowTrace
from sessionkit.views.drawing.grammar import MOST_SVG_POINTS, Drawn, Frame, marks
from sessionkit.views.drawing.palettes import Palette
from sessionkit.views.lanes.marks import Kind, clocks, ground
from sessionkit.views.scenes.board import Board
from sessionkit.views.scenes.key_rows import T_co
from sessionkit.views.scenes.scene import Lanes, usual_pitch
from sessionkit.views.scenes.session_scene import SessionLanes
from sessionkit.views.scenes.window_scene import WindowLanes

MOST_DRAWN = 18_000  # records one by one: about 1 MB of figure
_CHOSEN = 10  # times as many in a part that we chose for what there is to see in it: WebGL can, and nobody waits
_STRIP_PIXELS = 2  # width of a cell of colour
_MOST_CELLS = 30_000  # of them; of more lanes they are wider
_MARK_PIXELS = 8  # width of a cell with a mark: that of the mark
_LEAST_PITCH, _LEAST_BARE_PITCH = 42, 28
_STRIP_MIDDLE, _STRIP_ROWS = 0.1, 4  # from the middle of a lane; a strip is one of so many rows of a lane
_FAINTEST = 0.22  # share of a record's colour where there is one
_SHADES = 9
# marks that may be in one cell lie in rows of their own: drops above the strip, the others below it
_LIFTS = {"x": 0.38, "diamond": -0.14, "triangle-up": -0.36}


def has_too_many(board: Board[Any], window_records: int, most: int | None = None) -> bool:
    """True if records, and windows that take as much of a figure as so many, are more than `most` or can be drawn."""
    if most is None:
        most = MOST_DRAWN * (_CHOSEN if board.was_chosen else 1)
    return len(board.records) + window_records * len(board.windows) > most


class Density(Lanes[T_co]):
    """What all lanes of density have in common: no bars, and so no words for them."""

    @property
    def pitch(self) -> int:
        if self.height is not None:
            return max(self.given_pitch, _LEAST_BARE_PITCH)
        return max(usual_pitch(len(self.board.lanes)), _LEAST_PITCH)

    @property
    def bars(self) -> str:
        """What a lane is made of."""
        return "its records as colour: the stronger, the more of them"

    @property
    def remarks(self) -> list[str]:
        """How to read it."""
        count = plural(len(self.board.records), "record")
        return [
            f"<b>{count}: shown as density; zoom in to see each</b>",
            "a mark stands for all of its kind that fall together: hover says how many",
        ]


class SessionDensity(Density[SessionTrace], SessionLanes):
    """Sessions too many to draw each of them."""


class WindowDensity(Density[WindowTrace], WindowLanes):
    """Time or sliding windows too many to draw each of them."""

    @property
    def lacked(self) -> str:
        """What the marks of drops do not say."""
        return "the grace it lacked"


class Cells(NamedTuple):
    """Lanes in columns of one width: how many records are in each cell, and the first that arrived of them."""

    number: Longs  # a row for each lane, from the bottom
    first: Longs


def density(scene: Density, frame: Frame, kinds: Sequence[Kind]) -> list[Drawn]:
    """All that is drawn, from the back to the front; the first kind is of the plain records."""
    return [*ground(scene, frame), *_strip(scene, frame), *clocks(scene), *_marks(scene, frame, kinds[1:])]


def cells(scene: Lanes, records: Longs, columns: int) -> Cells:
    """How these records spread over the lanes and so many columns."""
    low, high = scene.x_range_ms
    lanes = len(scene.board.lanes)
    column = (scene.trace.batch.timestamp_ms[records] - low) * (columns / (high - low))
    cell = scene.height_of(records) * columns + np.minimum(column.astype(np.int64), columns - 1)
    count = np.bincount(cell, minlength=lanes * columns)
    first = np.full(lanes * columns, -1, np.int64)
    first[cell[::-1]] = records[::-1]  # of several the last one stays
    return Cells(count.reshape(lanes, columns), first.reshape(lanes, columns))


def _strip(scene: Lanes, frame: Frame) -> list[Drawn]:
    """A heat map, of each lane one row and empty ones up to the next, and its entry in the legend.

    All rows are of one height: then plotly paints a pixel a cell, which takes half as long as a box for each.
    """
    lanes, width = len(scene.board.lanes), _STRIP_PIXELS
    while lanes * (frame.usual.plot_width // width) > _MOST_CELLS:
        width *= 2
    columns = max(frame.usual.plot_width // width, 1)
    count = cells(scene, scene.board.records, columns).number
    empty: list[list[int | None]] = [[]] * (_STRIP_ROWS - 1)
    strips = [[number or None for number in row] for row in count.tolist()]
    low, high = scene.x_range_ms
    step_ms = (high - low) / columns
    most = int(count.max())
    shades = _shades(scene.colours)
    unit_ms, rows = scene.axis.unit_ms, [row for strip in strips for row in (strip, *empty)][: 1 - _STRIP_ROWS]
    place = {"x0": (low + step_ms / 2) / unit_ms, "dx": step_ms / unit_ms, "y0": _STRIP_MIDDLE, "dy": 1 / _STRIP_ROWS}
    scale = {"zmin": 1, "zmax": max(most, 2), "colorscale": _by_digits(shades, max(most, 2)), "showscale": False}
    hover = {"hoverongaps": False, "hovertemplate": "records here: %{z:,}<extra></extra>", "showlegend": False}
    name = f"records: 1 to {most:,} in a place" if most > 1 else "record"
    look = {"mode": "markers", "marker": {"symbol": "square", "size": 11, "color": shades[-3]}}
    return [
        {"type": "heatmap", "name": "density", "z": rows, **place, **scale, **hover},
        {"type": "scatter", "name": name, "x": [None], "y": [None], "showlegend": True, "legendrank": 1, **look},
    ]


def _shades(colours: Palette) -> list[str]:
    """From the faintest colour of records to their own."""
    back, front = (
        np.array([int(each[i : i + 2], 16) for i in (1, 3, 5)]) for each in (colours.background, colours.record)
    )
    mixed = [back + (front - back) * share for share in np.linspace(_FAINTEST, 1, _SHADES)]
    return ["#" + "".join(f"{round(part):02x}" for part in colour.tolist()) for colour in mixed]


def _by_digits(shades: list[str], most: int) -> list[tuple[float, str]]:
    """A colour scale from 1 to `most` in equal ratios: 1 and 10 are as far apart as 10 and 100."""
    counts = most ** np.linspace(0, 1, len(shades))
    places = (counts - 1) / (most - 1)
    return [(round(place, 6), shade) for place, shade in zip(places.tolist(), shades, strict=True)]


def _marks(scene: Lanes, frame: Frame, kinds: Sequence[Kind]) -> list[Drawn]:
    """A mark of each kind in each cell that has any, in cells as wide as it takes for SVG to draw them all."""
    rows = [scene.board.of(kind.mask) for kind in kinds]
    width = _MARK_PIXELS
    while True:
        columns = max(frame.usual.plot_width // width, 1)
        found = [cells(scene, its, columns) for its in rows]
        if columns == 1 or sum(np.count_nonzero(each.number) for each in found) <= MOST_SVG_POINTS:
            return [_marks_of(scene, kind, each) for kind, each in zip(kinds, found, strict=True)]
        width *= 2


def _marks_of(scene: Lanes, kind: Kind, found: Cells) -> Drawn:
    """The marks of one kind: a lone record at its time, several in the middle of their cell."""
    trace, show = scene.trace, scene.axis.show
    low, high = scene.x_range_ms
    step = (high - low) / found.number.shape[1]
    height, column = np.nonzero(found.number)
    count, first = found.number[height, column], found.first[height, column]
    starts = low + column * step
    own = trace.batch.timestamp_ms[first]
    at_ms = np.where(count == 1, own, (starts + step / 2).astype(np.int64))
    name = kind.name.partition(" (")[0]  # the grace that each lacked is not said
    short = name.partition(":")[0]
    words = []
    for many, row, start, when in zip(count.tolist(), first.tolist(), starts.tolist(), own.tolist(), strict=True):
        span = show(when) if many == 1 else f"{show(max(int(start), 0))} to {show(int(start + step))}"
        which = "offset" if many == 1 else "first of them: offset"
        words.append(f"<b>{short}: {many:,}</b><br>{span}<br>{which} {trace.batch.offset[row]:,}")
    rim = {"width": 0.8, "color": scene.colours.background}
    marker = {**kind.marker, "size": 8, "line": rim}
    heights = (height + _LIFTS[kind.marker["symbol"]]).tolist()
    drawn = marks(scene.axis, at_ms, heights, words, name, marker=marker, legendrank=kind.rank)
    return {**drawn, "customdata": count.tolist()}
