"""What all charts share: the two palettes, the time axis, the frame around the plot, stairs and polygons."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

from sessionkit.base.arrays import Floats, Longs
from sessionkit.base.durations import grace_with, lacked, show_duration
from sessionkit.base.text import escape_label
from sessionkit.records.batch import RecordBatch
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.views.drawing.measured_text import HEADING_SIZE, Heading, text_width
from sessionkit.views.drawing.palettes import Figure, Palette, enough_width, options
from sessionkit.views.drawing.time_axis import TimeAxis, change_of_clocks
from sessionkit.views.words import short_reason
from sessionkit.windows.contract import SessionKind

Numbers = Sequence[int] | Longs
Drawn = dict[str, Any]  # a trace, as plotly.js takes it

# A picture that is laid out for this width is drawn as wide as the room that it is given.
LEAST_WIDTH, USUAL_WIDTH, MOST_WIDTH = 600, 1120, 2400
FLUID_WIDTHS = (LEAST_WIDTH, 740, 900, USUAL_WIDTH, 1400, 1800, MOST_WIDTH)
FONT = "Inter, 'Segoe UI', 'DejaVu Sans', sans-serif"
MOST_SVG_POINTS = 5_000  # above, points are drawn by WebGL: SVG takes 0.5 s a redraw at 10,000
MOST_REASONS = 300  # records whose reason and missing grace are worked out: each costs a replay
_COLUMNS, _MOST_APART, _CROWDED = 120, 3, 6  # places in a row; marks in one that are still told apart; too many of such
_LEGEND_ROW, _LEGEND_SYMBOL, _LEGEND_SIZE = 20, 46, 11
_HOVER_LETTERS = 76
_WRAPPER = textwrap.TextWrapper(_HOVER_LETTERS)


def checked_width(width: int | None = None) -> int:
    """The width of a picture, in pixels; without one that of `sk.options.width`, or one that fits any room from 600."""
    return enough_width(width) if width is not None else options.width or LEAST_WIDTH


def usual_width(width: int) -> int:
    """Pixels that a picture laid out for this width mostly has."""
    return USUAL_WIDTH if width == LEAST_WIDTH else width


@dataclass(frozen=True)
class Frame:
    """The figure's size in pixels and the span that its plot shows: from data to pixels and back."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int
    x_range_ms: tuple[int, int]
    y_range: tuple[float, float]

    @property
    def is_fluid(self) -> bool:
        """Whether it is drawn as wide as the room that it is given."""
        return self.width == LEAST_WIDTH

    @property
    def widths(self) -> list[Frame]:
        """The frame at each of the widths that it may be drawn with."""
        return [replace(self, width=width) for width in FLUID_WIDTHS] if self.is_fluid else [self]

    @property
    def usual(self) -> Frame:
        """The frame as wide as it mostly is, for what is to have a size in pixels but is drawn in units of time."""
        return replace(self, width=usual_width(self.width))

    @property
    def plot_width(self) -> int:
        return self.width - self.left - self.right

    @property
    def plot_height(self) -> int:
        return self.height - self.top - self.bottom

    @property
    def ms_per_pixel(self) -> float:
        return (self.x_range_ms[1] - self.x_range_ms[0]) / self.plot_width

    def x(self, ms: npt.ArrayLike) -> Floats:
        """Pixels from the left edge of the plot."""
        return (np.asarray(ms, np.float64) - self.x_range_ms[0]) / self.ms_per_pixel

    def y(self, value: npt.ArrayLike) -> Floats:
        """Pixels from the top edge of the plot."""
        low, high = self.y_range
        return (high - np.asarray(value, np.float64)) / (high - low) * self.plot_height


@dataclass(frozen=True)
class Legend:
    """The names below a plot, in columns that are as wide as the longest of them."""

    names: Sequence[str] = ()

    @property
    def entry_width(self) -> int:
        """Pixels of a name."""
        return ceil(max((text_width(name, _LEGEND_SIZE) for name in self.names), default=0))

    def height(self, plot_width: int) -> int:
        """Pixels that it takes below the plot, axis title included."""
        columns = max(plot_width // (self.entry_width + _LEGEND_SYMBOL), 1)
        return 66 + _LEGEND_ROW * -(-len(self.names) // columns)


def shown_names(drawn: Iterable[Drawn]) -> Legend:
    """The legend of these traces."""
    return Legend([each["name"] for each in drawn if each["showlegend"]])


def figure_of(drawn: list[Drawn], layout: dict[str, Any]) -> Figure:
    """The figure of traces and a layout that are known to be right: plotly's checks cost more than all else here."""
    import plotly.graph_objects as go

    bare: Drawn = {name: {} for name in layout if name[-1].isdigit()}  # of further axes plotly has to know
    figure = go.Figure([{"type": each["type"]} for each in drawn], {"template": {}, **bare}, _validate=False)
    for kept, each in zip([figure._layout, *figure._data], [layout, *drawn], strict=True):
        # plotly would copy every point; what it may change in place is what has to be a copy
        kept.update({name: its if isinstance(its, list | np.ndarray) else deepcopy(its) for name, its in each.items()})
    for part in (figure, figure.layout, *figure.data):
        part._validate = True  # what its owner changes is checked as in any figure
    return figure


def figure_json(figure: Figure, *, with_empty: bool = True) -> str:
    """The figure as plotly.js takes it, without a copy of all of its points first; an empty trace takes time, too."""
    from plotly.io.json import to_json_plotly

    data = [each for each in figure._data if with_empty or len(each.get("x", "x"))]
    return str(to_json_plotly({"data": data, "layout": figure._layout, "frames": []}))


def empty_figure(colours: Palette, heading: Heading, width: int | None = None) -> Figure:
    """A heading, with nothing below it."""
    frame = Frame(checked_width(width), heading.height + 40, 78, 24, heading.height, 20, (0, 1), (0, 1))
    layout = dressed(colours, frame, heading, Legend())
    for axis in ("xaxis", "yaxis"):
        layout[axis]["visible"] = False
    return figure_of([], layout)


def dressed(colours: Palette, frame: Frame, heading: Heading, legend: Legend) -> dict[str, Any]:
    """A layout with size, fonts, title, legend and grid."""
    grid = {"gridcolor": colours.grid, "linecolor": colours.grid, "tickcolor": colours.grid}
    quiet = {**grid, "ticks": "", "zeroline": False, "automargin": False}
    at_top = {"x": 0, "xref": "container", "xanchor": "left", "yref": "container", "yanchor": "top", "pad": {"l": 16}}
    title = {"text": heading.text(colours), "font": {"size": HEADING_SIZE, "color": colours.ink}}
    hover = {"font": {"color": colours.ink, "family": FONT, "size": 13}, "align": "left"}
    below = {"xref": "container", "x": 0.01, "xanchor": "left", "y": legend_top(frame), "yanchor": "top"}
    names = {"entrywidth": legend.entry_width, "entrywidthmode": "pixels", "itemsizing": "trace", "orientation": "h"}
    return {
        "template": {"data": {"scatter": [{"type": "scatter"}]}},  # plotly's "none"
        **({"autosize": True} if frame.is_fluid else {"autosize": False, "width": frame.width}),
        "height": frame.height,
        "paper_bgcolor": colours.background,
        "plot_bgcolor": colours.background,
        "font": {"family": FONT, "size": 13, "color": colours.ink},
        "title": {**title, **at_top, "y": 1 - 22 / frame.height},
        "margin": {"l": frame.left, "r": frame.right, "t": frame.top, "b": frame.bottom, "autoexpand": False},
        "modebar": {"orientation": "v", "remove": ["sendChartToCloud"]},  # which uploads keys and times
        "hovermode": "closest",
        "hoverlabel": {"bgcolor": colours.background, "bordercolor": colours.mute, **hover},
        "legend": {
            **{**below, "yref": "container"},  # of the plot, its titles would keep away from it
            **{**names, "font": {"size": _LEGEND_SIZE, "color": colours.ink}, "bgcolor": "rgba(0,0,0,0)"},
        },
        "xaxis": dict(quiet),
        "yaxis": {**quiet, "ticklabeloverflow": "allow"},  # its margin is made for them: measuring them takes long
    }


def legend_top(frame: Frame) -> float:
    """Where the legend begins, below the title of the axis: the share of the figure's height that is under it."""
    return (frame.bottom - 58) / frame.height


def timed_figure(
    axis: TimeAxis,
    colours: Palette,
    drawn: list[Drawn],
    frame: Frame,
    heading: Heading,
    *,
    is_bare: bool,
    **layout: Any,
) -> Figure:
    """The figure of traces over event time, with a line where clocks are changed; title and legend of a bare one stand
    beside it."""
    span, look = frame.x_range_ms, dressed(colours, frame, heading, shown_names(drawn))
    room = None if frame.is_fluid else frame.plot_width
    look["xaxis"] |= {"title": axis_title(axis.title, colours), **axis.options(*span, room)}
    look["yaxis"] |= layout.pop("yaxis")
    if is_bare:
        del look["title"]
        look["showlegend"] = False
    changes = change_of_clocks(axis, *span, frame.plot_width, colours, is_fluid=frame.is_fluid)
    return figure_of([*drawn, *changes.lines], changes.added_to(look | layout))


def counts_axis(top: float) -> dict[str, Any]:
    """Settings of an axis of counts from 0, which stands a little above the corner, to a little above `top`."""
    whole = {"dtick": 1} if top <= 8 else {}
    return {"range": [-0.035 * top, 1.06 * top], "tickformat": ",d", "tick0": 0, **whole}


def axis_title(text: str, colours: Palette) -> dict[str, Any]:
    """A quiet axis title."""
    return {"text": text, "font": {"size": 12, "color": colours.mute}, "standoff": 12}


def stair(values_ms: Numbers, end: float) -> tuple[list[int | None], list[float]]:
    """Corners of a stair that has `values_ms[i]` from row i on, and the last value up to `end`."""
    values = np.asarray(values_ms)
    if not len(values):
        return [], []
    turns = np.flatnonzero(np.diff(values)) + 1
    x = [int(values[0])]
    y: list[float] = [0]
    for turn in turns.tolist():
        x += [int(values[turn - 1]), int(values[turn])]
        y += [turn, turn]
    return [*x, x[-1]], [*y, end]


def growing(steps: Sequence[tuple[float, int, int]], end: float) -> tuple[list[int], list[float]]:
    """Outline of something that has the bounds (start, end) from each step's row on, up to the row `end`."""
    left_x: list[int] = []
    right_x: list[int] = []
    y: list[float] = []
    for number, (row, start_ms, end_ms) in enumerate(steps):
        until = steps[number + 1][0] if number + 1 < len(steps) else end
        left_x += [start_ms] * 2
        right_x += [end_ms] * 2
        y += [row, until]
    return [*left_x, *right_x[::-1], left_x[0]], [*y, *y[::-1], y[0]]


class Outline:
    """Many lines or polygons as the points of one trace, parted by None."""

    def __init__(self) -> None:
        self.x_ms: list[int | None] = []
        self.y: list[float | None] = []

    def add(self, x_ms: Iterable[int], y: Iterable[float]) -> None:
        """Appends one line or polygon."""
        self.x_ms += [*x_ms, None]
        self.y += [*y, None]

    def box(self, start_ms: int, end_ms: int, low: float, high: float) -> None:
        """Appends one rectangle."""
        self.add((start_ms, end_ms, end_ms, start_ms, start_ms), (low, low, high, high, low))


def lines(axis: TimeAxis, outline: Outline, name: str, line: dict[str, Any], **options: Any) -> Drawn:
    """A trace of lines (or, with `fillcolor`, of filled polygons) that takes no hover."""
    if "fillcolor" in options:
        options["fill"] = "toself"
    shown = options.pop("showlegend", True) and bool(outline.y)
    look = {"mode": "lines", "line": line, "name": name, "hoverinfo": "skip", "showlegend": shown, **options}
    return {"type": "scatter", "x": axis.at(outline.x_ms), "y": outline.y, **look}


def marks(
    axis: TimeAxis, x_ms: Numbers, y: Sequence[float], words: Sequence[str], name: str, records: int = 0, **options: Any
) -> Drawn:
    """A trace of points, by WebGL in a picture of too many `records` for SVG; `words` are those of hovers, escaped."""
    shown = options.pop("showlegend", True) and len(x_ms) > 0
    place = {"x": axis.at(np.asarray(x_ms, np.int64).tolist()), "y": list(y), "mode": "markers"}
    said = {"hovertext": list(words), "hovertemplate": "%{hovertext}<extra></extra>"}
    kind = "scattergl" if records > MOST_SVG_POINTS else "scatter"
    return {"type": kind, "name": name, "showlegend": shown, **place, **said, **options}


def unseen(axis: TimeAxis, x_ms: Numbers, y: Sequence[float], words: Sequence[str], name: str, records: int) -> Drawn:
    """A trace of points that only say something on hover."""
    clear = {"size": 12, "color": "rgba(0,0,0,0)"}
    drawn = marks(axis, x_ms, y, words, name, records, marker=clear, showlegend=False)
    return drawn | {"mode": "none"} if drawn["type"] == "scatter" else drawn  # a clear mark takes time, too


def rim_width(width: float, x_ms: npt.ArrayLike, x_range_ms: tuple[int, int], row: npt.ArrayLike) -> float:
    """The width of the rims of marks in these rows, some pixels high: 0 where they would cover the marks below them."""
    low, high = x_range_ms
    column = (np.asarray(x_ms, np.int64) - low) * _COLUMNS // max(high - low, 1)
    _, counts = np.unique(np.asarray(row, np.int64) * _COLUMNS + column, return_counts=True)
    return 0.0 if np.count_nonzero(counts > _MOST_APART) >= _CROWDED else width


def reasons(
    trace: SessionTrace,
    window: SessionKind,
    show: Callable[[int], str],
    rows: Numbers,
    missing_ms: Mapping[int, int],
    most: int = MOST_REASONS,
) -> list[str]:
    """What each record did, for a hover: `most` in the words of `explain`, the others by offset and time.

    Of a drop it also says what would have kept it.
    """
    words = []
    for row in rows[:most]:
        told = _in_lines(short_reason(trace, window, row))
        if row in missing_ms:
            told += f"<br>{lacked(missing_ms[row])} short: {cure(window.grace_ms, missing_ms[row])}"
        words.append(told)
    return [*words, *(place_words(trace.batch, row, show) for row in rows[most:])]


def place_words(batch: RecordBatch, row: int, show: Callable[[int], str]) -> str:
    """A record by its offset, its label and its time, for a hover."""
    label = [escape_label(said)] if (said := batch.labels.quoted(row)) else []
    return " · ".join([f"offset {batch.offset[row]:,}", *label, show(int(batch.timestamp_ms[row]))])


@lru_cache(8_192)  # most records do under one setting what they did under the one before it
def _in_lines(told: str) -> str:
    return "<br>".join(escape_label(line, _HOVER_LETTERS) for line in _WRAPPER.wrap(told))


def cure(grace_ms: int, missing_ms: int) -> str:
    """A grace that would have kept a dropped record, in few words."""
    return f"grace {show_duration(grace_ms)} → {grace_with(grace_ms, missing_ms)} would keep it"


def still_pictures(figure: Callable[[], Figure]) -> dict[str, Any]:
    """The figure as pictures by their kind, if plotly's renderer makes some ("png", "svg")."""
    from plotly.io import renderers
    from plotly.io.base_renderers import ImageRenderer

    chosen = [renderers[name] for name in (renderers.default or "").split("+") if name]
    makers = [each for each in chosen if isinstance(each, ImageRenderer)]
    drawn = figure().to_dict() if makers else {}
    return {kind: picture for maker in makers for kind, picture in maker.to_mimebundle(drawn).items()}


def plotly_script() -> str:
    """Plotly as JavaScript: nearly five megabytes."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())
