"""What all charts share: the two palettes, the time axis, the frame around the plot, stairs and polygons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from sessionkit.durations import show_duration, show_time
from sessionkit.errors import InvalidArgument, problem
from sessionkit.text import escape_label

if TYPE_CHECKING:
    import plotly.graph_objects as go

Theme = Literal["light", "dark"]
Numbers = Sequence[int] | npt.NDArray[np.int64]
Coordinates = list[float | int | None]
Notes = list[dict[str, Any]]

WIDTH = 1120
FONT = "Inter, 'Segoe UI', 'DejaVu Sans', sans-serif"
MOST_SVG_POINTS = 5_000  # above, points are drawn by WebGL: SVG takes 0.5 s a redraw at 10,000
MOST_REASONS = 300  # records whose reason and missing grace are worked out: each costs a replay
DAY_MS = 86_400_000
LAST_DATE_MS = 253_402_300_799_999  # the end of the year 9999, where plotly's dates end
# up to this many ms, elapsed times are counted in (unit, its name); above, in hours and minutes
_ELAPSED = ((5_000, 1, "ms"), (300_000, 1_000, "seconds"), (6 * 3_600_000, 60_000, "minutes"))
_LEGEND_ROW = 24
_LEGEND_ENTRY = 332
_LINE = 20  # of the subtitle


@dataclass(frozen=True)
class Palette:
    """Colours of one theme; any two status colours are apart for every kind of sight."""

    background: str
    ink: str
    mute: str
    grid: str
    record: str
    bridge: str
    saved: str
    drop: str
    line: str
    body: str
    edge: str
    solid: str
    reach: str
    reach_edge: str
    territory: str
    other: str


PALETTES: dict[str, Palette] = {
    "light": Palette(
        background="#ffffff",
        ink="#1f2933",
        mute="#5f6b78",
        grid="#e9edf1",
        record="#005A9C",
        bridge="#882255",
        saved="#2E9E5B",
        drop="#B3261E",
        line="#C27A00",
        body="rgba(0,90,156,0.19)",
        edge="#005A9C",
        solid="#6699C4",
        reach="rgba(86,180,233,0.15)",
        reach_edge="rgba(0,114,178,0.45)",
        territory="rgba(90,100,112,0.075)",
        other="#9aa5b1",
    ),
    "dark": Palette(
        background="#12161c",
        ink="#e6ebf0",
        mute="#9aa7b5",
        grid="#222a34",
        record="#A9D8FF",
        bridge="#B48CFF",
        saved="#2FC48D",
        drop="#F2542D",
        line="#FFD54A",
        body="rgba(86,180,233,0.24)",
        edge="#56B4E9",
        solid="#3C77A1",
        reach="rgba(86,180,233,0.09)",
        reach_edge="rgba(86,180,233,0.45)",
        territory="rgba(150,160,175,0.10)",
        other="#647180",
    ),
}


def palette(theme: str) -> Palette:
    """The colours of `theme`.

    Raises:
        InvalidArgument: there is no such theme.
    """
    if theme not in PALETTES:
        raise InvalidArgument(problem("theme must be a known one", repr(theme), f"one of {list(PALETTES)}"))
    return PALETTES[theme]


@dataclass(frozen=True)
class TimeAxis:
    """How event times (ms) become positions and words: dates, or time elapsed for data near 0."""

    unit_ms: int
    is_date: bool
    is_elapsed: bool
    title: str

    def at(self, times_ms: Iterable[int | None]) -> Coordinates:
        """Positions on the axis; None parts one line or polygon from the next."""
        if self.unit_ms == 1:
            return list(times_ms)
        return [None if ms is None else ms / self.unit_ms for ms in times_ms]

    def show(self, ms: int) -> str:
        """A time in words."""
        return show_duration(ms) if self.is_elapsed else show_time(ms).removesuffix(":00")

    def options(self, low_ms: int, high_ms: int) -> dict[str, Any]:
        """Settings of the x axis that shows this span and nothing beyond it."""
        low, high = self.at([low_ms, high_ms])
        options: dict[str, Any] = {"range": [low, high], "minallowed": low, "maxallowed": high}
        if self.is_date:
            options["type"] = "date"
            if self.is_elapsed:
                options["tickformat"] = "%-H:%M"
        else:
            options["type"] = "linear"
            options["separatethousands"] = True
        return options


def time_axis(latest_ms: int, clock: str | None) -> TimeAxis:
    """The axis for event times up to `latest_ms`; `clock` is the name of the clock that they were read from."""
    name = "event time" if clock is None else f"event time, {escape_label(clock)}"
    if latest_ms > LAST_DATE_MS:
        return TimeAxis(1, False, False, f"{name}, ms since 1970")
    if latest_ms > DAY_MS:
        return TimeAxis(1, True, False, name)
    for longest_ms, unit_ms, unit in _ELAPSED:
        if latest_ms <= longest_ms:
            return TimeAxis(unit_ms, False, True, f"event time, {unit}")
    return TimeAxis(1, True, True, "event time, hours and minutes")


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
    def plot_width(self) -> int:
        return self.width - self.left - self.right

    @property
    def plot_height(self) -> int:
        return self.height - self.top - self.bottom

    @property
    def ms_per_pixel(self) -> float:
        return (self.x_range_ms[1] - self.x_range_ms[0]) / self.plot_width

    def x(self, ms: float) -> float:
        """Pixels from the left edge of the plot."""
        return (ms - self.x_range_ms[0]) / self.ms_per_pixel

    def y(self, value: float) -> float:
        """Pixels from the top edge of the plot."""
        low, high = self.y_range
        return (high - value) / (high - low) * self.plot_height


def legend_height(entry_count: int) -> int:
    """Pixels that a legend of so many entries takes below the plot, axis title included."""
    columns = (WIDTH - 88) // _LEGEND_ENTRY
    return 66 + _LEGEND_ROW * -(-entry_count // columns)


def top_margin(subtitle: Sequence[str]) -> int:
    """Pixels that the title and the lines below it take."""
    return 66 + _LINE * len(subtitle)


def dress(figure: go.Figure, colours: Palette, frame: Frame, title: str, subtitle: Sequence[str]) -> None:
    """Sets size, fonts, title, legend and grid."""
    words = "<br>".join(f"<span style='font-size:13px;color:{colours.mute}'>{line}</span>" for line in subtitle)
    figure.update_layout(
        template="none",
        width=frame.width,
        height=frame.height,
        autosize=False,
        paper_bgcolor=colours.background,
        plot_bgcolor=colours.background,
        font={"family": FONT, "size": 13, "color": colours.ink},
        title={
            "text": f"<b>{title}</b><br>{words}",
            "x": 0,
            "xref": "container",
            "y": 1,
            "yref": "container",
            "xanchor": "left",
            "yanchor": "top",
            "pad": {"l": 16, "t": 18},
            "font": {"size": 19, "color": colours.ink},
        },
        margin={"l": frame.left, "r": frame.right, "t": frame.top, "b": frame.bottom, "autoexpand": False},
        hovermode="closest",
        hoverlabel={
            "bgcolor": colours.background,
            "font": {"color": colours.ink, "family": FONT, "size": 13},
            "bordercolor": colours.mute,
            "align": "left",
        },
        legend={
            "orientation": "h",
            "x": 0,
            "y": -58 / frame.plot_height,
            "xanchor": "left",
            "yanchor": "top",
            "font": {"size": 12, "color": colours.ink},
            "bgcolor": "rgba(0,0,0,0)",
            "entrywidth": _LEGEND_ENTRY - 42,
            "entrywidthmode": "pixels",
            "itemsizing": "trace",
        },
    )
    quiet = {
        "gridcolor": colours.grid,
        "zeroline": False,
        "linecolor": colours.grid,
        "tickcolor": colours.grid,
        "ticks": "",
        "automargin": False,
    }
    figure.update_xaxes(**quiet)
    figure.update_yaxes(**quiet)


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


def growing(steps: Sequence[tuple[float, int, int]], end: float, pad_ms: int = 0) -> tuple[list[int], list[float]]:
    """Outline of something that has the bounds (start, end) from each step's row on, up to the row `end`."""
    left_x: list[int] = []
    right_x: list[int] = []
    y: list[float] = []
    for number, (row, start_ms, end_ms) in enumerate(steps):
        until = steps[number + 1][0] if number + 1 < len(steps) else end
        left_x += [start_ms - pad_ms] * 2
        right_x += [end_ms + pad_ms] * 2
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


def lines(axis: TimeAxis, outline: Outline, name: str, line: dict[str, Any], **options: Any) -> go.Scatter:
    """A trace of lines (or, with `fillcolor`, of filled polygons) that takes no hover."""
    import plotly.graph_objects as go

    if "fillcolor" in options:
        options["fill"] = "toself"
    shown = options.pop("showlegend", True) and bool(outline.y)
    x = axis.at(outline.x_ms)
    return go.Scatter(
        x=x, y=outline.y, mode="lines", line=line, name=name, hoverinfo="skip", showlegend=shown, **options
    )


def marks(
    axis: TimeAxis, x_ms: Numbers, y: Sequence[float], words: Sequence[str], name: str, gl: bool, **options: Any
) -> go.Scatter | go.Scattergl:
    """A trace of points; `words` are shown on hover and must be escaped already."""
    import plotly.graph_objects as go

    kind = go.Scattergl if gl else go.Scatter
    shown = options.pop("showlegend", True) and len(x_ms) > 0
    return kind(
        x=axis.at(np.asarray(x_ms, np.int64).tolist()),
        y=list(y),
        mode="markers",
        name=name,
        hovertext=list(words),
        hovertemplate="%{hovertext}<extra></extra>",
        showlegend=shown,
        **options,
    )
