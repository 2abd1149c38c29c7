"""The strip below a picture: where all records and all drops lie, and a frame to choose by what is shown above."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sessionkit.base.arrays import Flags, Longs
from sessionkit.base.durations import INT64_MAX
from sessionkit.records.time_statistics import usual_span
from sessionkit.views.drawing.grammar import Drawn, Frame, Legend, dressed, figure_of
from sessionkit.views.drawing.measured_text import Heading
from sessionkit.views.drawing.palettes import palette
from sessionkit.views.drawing.time_axis import time_axis
from sessionkit.views.scenes.key_rows import MOST_ROWS
from sessionkit.views.scenes.scene import Lanes, Plane
from sessionkit.widgets.board import LOWEST, Look, Picture, Place

BARS, HEIGHT, CAPTION, LEFT, RIGHT, BOTTOM = 160, 56, 28, 78, 24, 22  # bars across; pixels
_TITLE, _NOTES = "All records", ("below the line: dropped", "drag the frame, or its edges, to see another part")
_LABEL = "Where all records lie, and below the line the dropped ones. Drag the frame or its edges, or press ← and →."


def beside_strip(look: Look, records: int) -> Look:
    """The room that is left for a picture of so many records with a strip below it."""
    return look if records <= MOST_ROWS else look._replace(height=max(look.height - HEIGHT - CAPTION, LOWEST))


class Strip:
    """The strip of one picture after the other, and what a place on it stands for."""

    def __init__(self) -> None:
        self._value_at: Callable[[Any], int] = int

    def over_time(self, scene: Lanes, look: Look) -> Picture | None:
        """All records over event time, with a frame around the span of the lanes; None where all are easy to see."""
        trace, times = scene.trace, scene.trace.batch.timestamp_ms
        placed = np.flatnonzero(trace.is_record & trace.batch.usable)
        if len(placed) <= MOST_ROWS:
            return None
        first, last = usual_span(times[placed])
        placed = placed[(times[placed] >= first) & (times[placed] <= last)]
        low, high = int(times[placed].min()), int(times[placed].max())
        axis = time_axis(trace, scene.window, None).over(low)
        self._value_at, shown = axis.ms_at, (scene.board.first_ms, scene.board.last_ms)
        across = axis.options(low, high, look.width - LEFT - RIGHT)
        return _drawn(times[placed], trace.late_for_some[placed], shown, axis.at, across, look)

    def over_arrival(self, scene: Plane, look: Look) -> Picture | None:
        """All records of a key by their offsets, with a frame around those of its plane."""
        own, offset = scene.history.own, scene.trace.batch.offset
        if len(own) <= MOST_ROWS or not len(scene.rows):
            return None
        self._value_at = lambda place: round(float(place))
        shown = int(offset[scene.rows[0]]), int(offset[scene.rows[-1]])
        across = {"type": "linear", "tickformat": ",d", "range": [int(offset[own[0]]), int(offset[own[-1]])]}
        return _drawn(offset[own], np.isin(own, scene.history.drops), shown, list, across, look)

    def span(self, places: Sequence[Place]) -> tuple[int, int] | None:
        """From where to where a frame is, in what its strip counts; None for what a browser should not have sent."""
        try:
            low, high = sorted(self._value_at(place) for place in places)
        except (TypeError, ValueError, OverflowError):
            return None
        return (max(low, 0), high) if high > low and high <= INT64_MAX // 2 else None


def _drawn(
    values: Longs, is_late: Flags, shown: tuple[int, int], at: Callable[[Any], Any], across: dict[str, Any], look: Look
) -> Picture:
    """Bars up for records, and down for those that were dropped; each as high as the root of its share."""
    colours, edges = palette(look.theme), np.linspace(int(values.min()), int(values.max()) + 1, BARS + 1)
    bars: list[Drawn] = []
    kinds = ((values, 1, colours.edge, "records"), (values[is_late], -1, colours.drop, "dropped"))
    for chosen, sign, colour, name in kinds:
        counts, _ = np.histogram(chosen, edges)
        many = sign * np.sqrt(counts / max(int(counts.max()), 1))
        place = {"x": at(((edges[:-1] + edges[1:]) / 2).round().astype(np.int64).tolist()), "y": many.tolist()}
        told = {"customdata": counts.tolist(), "hovertemplate": f"%{{customdata:,}} {name}<extra></extra>"}
        # an area is one element, bars would be one each, and plotly takes its time for each
        area = {"mode": "lines", "line": {"width": 0, "shape": "hvh"}, "fill": "tozeroy", "fillcolor": colour}
        bars.append({"type": "scatter", "name": name, "showlegend": False, **area, **place, **told})
    low, high = at(list(shown))
    frame = {"type": "rect", "editable": True, "fillcolor": colours.body, "line": {"width": 2, "color": colours.ink}}
    frame |= {"x0": low, "x1": high, "y0": -1.05, "y1": 1.05}
    room = Frame(look.width, HEIGHT, LEFT, RIGHT, 2, BOTTOM, (0, 1), (0, 1))
    layout = dressed(colours, room, Heading([], []), Legend())
    del layout["title"]
    layout["xaxis"] |= across
    layout["yaxis"] |= {"visible": False, "fixedrange": True, "range": [-1.1, 1.1]}
    overlay = {"shapes": [frame]}  # alone where nothing else changed
    return Picture(figure_of(bars, layout), _LABEL, _TITLE, _NOTES, zoom="brush", overlay=overlay)
