"""What the pictures that are no plane and no lanes have in common: title, notes and size, and the kind of time axis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

from sessionkit.base.moments import SHORT_HISTORY_MS, clock_changes
from sessionkit.base.text import escape_label
from sessionkit.views.drawing.grammar import LEAST_WIDTH, Frame, Legend, axis_title, checked_width, dressed
from sessionkit.views.drawing.measured_text import Heading, flow, text_width
from sessionkit.views.drawing.palettes import Palette
from sessionkit.views.drawing.time_axis import DATES, LAST_DATE_MS, TimeAxis, change_of_clocks, most_dates


def dress_plain(
    figure: go.Figure,
    colours: Palette,
    title: str,
    said: Sequence[str],
    plot_height: int,
    *,
    below: int = 0,
    left: int = 84,
) -> None:
    """Title (escaped already), sentences below it (not yet), a plot of this height, a legend, and room `below` it."""
    names = [trace.name for trace in figure.data if trace.showlegend is not False]
    legend = Legend(names if len(figure.data) > 1 else ())
    width = checked_width()
    bottom = (legend.height(width - left - 26) if legend.names else 64) + below
    heading = plain_heading(title, said)
    frame = Frame(width, plot_height + heading.height + bottom, left, 26, heading.height, bottom, (0, 1), (0, 1))
    look = dressed(colours, frame, heading, legend)
    figure.layout.template = look.pop("template")  # an update would leave plotly's own in it, 7 kB a picture
    figure.update_layout(look, showlegend=bool(legend.names))


def plot_width(figure: go.Figure) -> int:
    """Pixels of the plot of a figure that is dressed, at least."""
    layout = figure.layout
    return int((layout.width or checked_width()) - layout.margin.l - layout.margin.r)


def plain_heading(title: str, said: Sequence[str]) -> Heading:
    """What `dress_plain` writes above the plot."""
    return Heading.of(title, [], [escape_label(line, 400) for line in said], checked_width())


def event_time_axis(figure: go.Figure, title: str, newest_ms: int, timezone: str, colours: Palette) -> None:
    """Makes the x axis one of event time, whose places are given in ms: dates in this zone, or ms for toy data, which
    counts from the epoch, and for what is beyond all dates.

    Comes last: it moves what the figure holds to where the zone's clock has it.
    """
    is_date = SHORT_HISTORY_MS < newest_ms <= LAST_DATE_MS
    unit = escape_label(timezone) if is_date else "ms"
    room, is_fluid = plot_width(figure), not figure.layout.width
    kind = {**DATES, **({} if is_fluid else {"nticks": most_dates(room)})} if is_date else {"type": "linear"}
    figure.update_xaxes(title=axis_title(f"{title}, {unit}", colours), **kind)
    names = ["base" if trace.orientation == "h" else "x" for trace in figure.data]  # bars have lengths as x
    places = [np.asarray(trace[name], np.float64) for trace, name in zip(figure.data, names, strict=True)]
    lengths = [place + trace.x for trace, place in zip(figure.data, places, strict=True) if trace.orientation == "h"]
    found = np.concatenate([*places, *lengths, []]) if figure.layout.xaxis.range is None else figure.layout.xaxis.range
    if not is_date or not len(found):
        return
    low, high = int(np.nanmin(found)), int(np.nanmax(found))
    axis = TimeAxis(1, True, title, str, clock_changes(timezone, high), timezone).over(low)
    for trace, name in zip(figure.data, names, strict=True):
        trace[name] = axis.at(trace[name])
    for note in figure.layout.annotations:
        if note.xref in (None, "x"):
            note.x += axis.shift_ms
    if figure.layout.xaxis.range is not None:
        figure.layout.xaxis.range = axis.at(figure.layout.xaxis.range)
    changes = change_of_clocks(axis, low, high, room, colours, is_fluid=is_fluid)
    figure.add_traces(changes.lines)
    figure.update_layout(changes.layout)


ROW_LEFT, ROW_LETTERS = 26, 100  # beside the plot and in it, where sentences stand over what is drawn
SAID = "%{customdata}<extra></extra>"  # what a mark says on hover


def curve(
    x: Any, y: Any, name: str, line: dict[str, Any], said: Any = None, hover: str = SAID, **look: Any
) -> go.Scatter:
    """A line, silent without words for its points; with `fillcolor` the area below it is filled."""
    words = {"hoverinfo": "skip"} if said is None else {"customdata": said, "hovertemplate": hover}
    area = {"fill": "tozeroy"} if "fillcolor" in look else {}
    return go.Scatter(x=x, y=y, mode="lines", name=name, line=line, **words, **area | look)


def dots(x: Any, y: Any, name: str, marker: dict[str, Any], said: Any, **look: Any) -> go.Scatter:
    """Marks, each with its words (escaped already)."""
    words = {"customdata": said, "hovertemplate": SAID}
    return go.Scatter(x=x, y=y, mode="markers", name=name, marker=marker, **words, **look)


Bar = tuple[Any, int, int, str]  # its lane, start, end, and what it says on hover, escaped


def span_bars(bars: Sequence[Bar], least_ms: int, **options: Any) -> go.Bar:
    """Bars from start to end, a least length long to be seen."""
    return go.Bar(
        orientation="h",
        y=[lane for lane, *_ in bars],
        base=[start_ms for _, start_ms, *_ in bars],
        x=[max(end_ms - start_ms, least_ms) for _, start_ms, end_ms, _ in bars],
        customdata=[said for *_, said in bars],
        hovertemplate=SAID,
        **options,
    )


def add_note(figure: go.Figure, x: Any, y: float, text: str, colour: str, side: str, **place: Any) -> None:
    """A name (escaped already) beside a place; `side` is that of the text which lies there."""
    shift, font = (6 if side == "left" else -6), {"size": 12, "color": colour}
    figure.add_annotation(x=x, y=y, text=text, showarrow=False, xanchor=side, xshift=shift, font=font, **place)


def row_lines(words: str) -> list[str]:
    """A sentence (not escaped yet) as the lines of `add_row_text`."""
    return flow([escape_label(words, ROW_LETTERS)], checked_width() - 2 * ROW_LEFT, 12)


def add_row_text(
    figure: go.Figure, y: float, words: str | list[str], colours: Palette, side: Literal["middle", "bottom"] = "middle"
) -> None:
    """A sentence (not escaped yet), or lines, at the left edge of the plot; `side` is what of it lies at `y`."""
    place = {"x": 0, "xref": "paper", "xanchor": "left", "yanchor": side, "align": "left", "showarrow": False}
    look = {"font": {"size": 12, "color": colours.ink}, "bgcolor": colours.background, "borderpad": 1}
    text = "<br>".join(row_lines(words) if isinstance(words, str) else words)
    figure.add_annotation(y=y, text=text, **place, **look)


def row_of_buttons(
    views: Mapping[str, tuple[dict[str, Any], dict[str, Any], list[int]]],
    shown: str,
    colours: Palette,
    y: float,
    side: Literal["left", "right"],
) -> dict[str, Any]:
    """A button for each view: what it changes in the data, in the layout, and in which traces; `shown` is pressed.

    At this height, in parts of the plot. The one under the pointer is pale in either theme: the text suits both.
    """
    pressed = {name: [f"{'●' if each == name else '○'} {each}" for each in views] for name in views}
    buttons = [
        {"label": pressed[shown][place], "method": "update", "args": [data, layout | _labels(pressed[name]), traces]}
        for place, (name, (data, layout, traces)) in enumerate(views.items())
    ]
    direction = "right" if is_one_row(views) else "down"
    place = {"x": 0 if side == "left" else 1, "xanchor": side, "y": y, "yanchor": "top", "direction": direction}
    look = {"font": {"size": 12, "color": colours.mute}, "bgcolor": colours.background, "bordercolor": colours.grid}
    return {"type": "buttons", "showactive": False, "buttons": buttons, "pad": {"r": 0, "t": 0}, **place, **look}


def coloured(view: dict[str, Any], y: float, colours: Palette) -> dict[str, Any]:
    """What a button changes in a heat map, for its first picture: with what each colour means, at this height."""
    words = {"size": 12, "color": colours.mute}
    place = {"x": 0, "xanchor": "left", "xpad": 0, "y": y, "yanchor": "top", "ypad": 0}
    ticks = {"tickmode": "array", "tickvals": view["colorbar.tickvals"], "ticktext": view["colorbar.ticktext"]}
    title = {"text": view["colorbar.title.text"], "side": "top", "font": words}
    length = 0.42 if checked_width() >= LEAST_WIDTH else 1
    look = {"orientation": "h", "len": length, "thickness": 10, "outlinewidth": 0, "tickfont": words}
    values = {name: value for name, value in view.items() if not name.startswith("colorbar")}
    return {**values, "colorbar": {**place, **look, "title": title, **ticks}}


def is_one_row(names: Iterable[str]) -> bool:
    """Whether buttons of these names stand beside each other."""
    return sum(text_width(f"○ {name}", 12) + 28 for name in names) < checked_width() - 110


def _labels(labels: list[str]) -> dict[str, str]:
    return {f"updatemenus[0].buttons[{place}].label": label for place, label in enumerate(labels)}
