"""Pictures of stream times: how far each partition is behind, or from when to when each one goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sessionkit.base.durations import show_duration
from sessionkit.base.moments import cut_time
from sessionkit.base.text import escape_label, plural
from sessionkit.trace.trace import Trace
from sessionkit.views.charts.drawing.grammar import LEAST_WIDTH, axis_title, empty_figure
from sessionkit.views.charts.drawing.lengths_axis import lengths_axis, takes_logarithm
from sessionkit.views.charts.drawing.palettes import Palette, Theme, palette
from sessionkit.views.charts.drawing.simple_frame import dress_plain, event_time_axis, plain_heading
from sessionkit.views.clocks.course import Course
from sessionkit.views.loops import decades
from sessionkit.views.words import clock

if TYPE_CHECKING:
    import plotly.graph_objects as go

TITLE = "Stream times of the partitions"
STRETCHES = 280  # of arrivals: of more records, each has the most that a partition was behind in it, and the average
MOST_ROWS, WORST = 8, 6  # of so many partitions each has a row; of more, the last ones, and all of them together
ROW_HEIGHT, ROW_GAP, LEFT = 58, 14, 214  # pixels
LEAST_PART = 60  # a standstill is marked if it is no shorter than this part of the picture
MOST_TICKS = 3  # two lines each, in the narrowest picture
TWO_LINES = 14  # pixels that the second line of the ticks takes
MOST_SPANS, SPAN_HEIGHT = 40, 18

Lags = npt.NDArray[np.float64]


def nothing_figure(words: list[str], *, theme: Theme | None) -> go.Figure:
    """The sentences alone, where nothing can be compared."""
    return empty_figure(palette(theme), plain_heading(TITLE, words), LEAST_WIDTH)


def lags_figure(
    course: Course, trace: Trace, words: list[str], standstill_ms: int, *, theme: Theme | None
) -> go.Figure:
    """How far each partition is behind the leader, over the arrivals, a row for each; of many the worst, and all."""
    import plotly.graph_objects as go

    colours, count = palette(theme), len(trace)
    places = np.unique(np.ceil(np.linspace(0, count, min(count, STRETCHES) + 1)[1:]).astype(np.int64))
    seen = np.flatnonzero(course.last_stand >= 0)
    most = {code: course.behind_over(code, places) for code in seen.tolist()}
    all_of = np.array([*most.values()])
    is_log = takes_logarithm(all_of[all_of > 0].astype(np.int64))
    low = max(float(np.quantile(all_of[all_of > 0], 0.02)), 1.0) if is_log else 0.0
    chosen = seen if len(seen) <= MOST_ROWS else seen[_worst(course, seen, standstill_ms)]
    names = [f"partition {number}" for number in trace.batch.partitions[chosen].tolist()]
    rows = [_row(go, course, trace, places, code, most[code], low, colours) for code in chosen.tolist()]
    if len(chosen) < len(seen):
        names.insert(0, f"all {len(seen):,}")
        rows.insert(0, _all_of_them(go, places, np.maximum(all_of, low), colours))
    for number, row in enumerate(rows, 1):
        for each in row:
            each.yaxis = f"y{number}"
    figure = go.Figure([each for row in rows for each in row])
    still = _standstills(course, chosen, standstill_ms)
    named = {each.name: each for each in figure.data if each.name}
    for each in figure.data:
        each.showlegend = named.get(each.name) is each
    if still:
        _mark(go, figure, still, len(rows) - len(chosen), colours)
    height = len(rows) * ROW_HEIGHT + (len(rows) - 1) * ROW_GAP
    dress_plain(figure, colours, TITLE, words, height, below=TWO_LINES, left=LEFT)
    figure.layout.legend.y -= TWO_LINES / figure.layout.height
    _rows_of_axes(figure, names, height, _lags_axis(low, float(np.nanmax(all_of)), logarithmic=is_log), colours)
    figure.update_xaxes(title=axis_title("records that have arrived, and the leader's stream time", colours))
    figure.update_xaxes(range=[0, count], anchor=f"y{len(rows)}", **_arrivals(course, trace))
    return figure


def _worst(course: Course, seen: npt.NDArray[np.intp], standstill_ms: int) -> npt.NDArray[np.intp]:
    """Those that stand still at the end while the leader moved on most, then those furthest behind on average."""
    moved_on = course.moved_on_ms[course.last_stand[seen]]
    still = np.where(moved_on > standstill_ms, moved_on, 0)
    return np.lexsort((-course.mean_behind_ms[seen], -still))[:WORST]


def _row(
    go: Any,
    course: Course,
    trace: Trace,
    places: npt.NDArray[np.int64],
    code: int,
    most: Lags,
    low: float,
    colours: Palette,
) -> list[Any]:
    """One partition: how far it is behind at most, as an area, and on average, as a line."""
    mean, at = course.mean_behind_over(code, places), clock(trace)
    known = np.isfinite(most)
    name = f"partition {trace.batch.partitions[code]}"
    hover = [
        f"{name}, after {plural(int(place), 'arrival')}: {show_duration(round(usual))} behind {at(int(leader))}"
        + (f", {show_duration(int(worst))} at most" if int(worst) > round(usual) else "")
        for place, leader, usual, worst in zip(
            places[known].tolist(), course.leader_ms[places][known], mean[known], most[known], strict=True
        )
    ]
    top = go.Scatter(
        x=places[known], y=np.full(known.sum(), low), mode="lines", line={"width": 0}, hoverinfo="skip", name=""
    )
    area = go.Scatter(
        x=places[known],
        y=np.maximum(most[known], low),
        mode="lines",
        line={"width": 1, "color": colours.solid},
        fill="tonexty",
        fillcolor=colours.body,
        hoverinfo="skip",
        name="at most",
    )
    line = go.Scatter(
        x=places[known],
        y=np.maximum(mean[known], low),
        mode="lines",
        line={"width": 2, "color": colours.edge},
        name="on average",
        customdata=hover,
        hovertemplate="%{customdata}<extra></extra>",
    )
    return [top, area, line]


def _all_of_them(go: Any, places: npt.NDArray[np.int64], shown: Lags, colours: Palette) -> list[Any]:
    """Between which lags eight of ten partitions are, and the one in the middle."""
    known = np.isfinite(shown).any(axis=0)
    low, middle, high = np.nanquantile(shown[:, known], (0.1, 0.5, 0.9), axis=0)
    quiet = {"x": places[known], "mode": "lines", "hoverinfo": "skip"}
    band = {"line": {"width": 0}, "fill": "tonexty", "fillcolor": colours.reach_edge}
    middle_line = {"width": 2, "color": colours.bridge}
    return [
        go.Scatter(y=low, line={"width": 0}, name="", **quiet),
        go.Scatter(y=high, name="eight of ten partitions", **band, **quiet),
        go.Scatter(y=middle, line=middle_line, name="the one in the middle", **quiet),
    ]


def _standstills(course: Course, chosen: npt.NDArray[np.intp], standstill_ms: int) -> list[tuple[int, int, int]]:
    """Row, first and last place of each long time in which a partition stood still while the leader moved on."""
    stands, leader = course.stands, course.leader_ms
    least = max(standstill_ms, int(leader[-1] - leader[leader >= 0][0]) // LEAST_PART)
    found = []
    for row, code in enumerate(chosen.tolist()):
        mine = np.flatnonzero((stands.partition == code) & (course.moved_on_ms > least))
        found += [(row, first, last) for first, last in zip(stands.first[mine], stands.last[mine], strict=True)]
    return found


def _mark(go: Any, figure: go.Figure, still: list[tuple[int, int, int]], first_row: int, colours: Palette) -> None:
    """A bar along the top of the row, for as long as its partition stands still."""
    for row, first, last in still:
        number = first_row + row + 1
        figure.add_shape(
            type="rect",
            x0=int(first),
            x1=int(last),
            y0=0.9,
            y1=1,
            xref="x",
            yref=f"y{number if number > 1 else ''} domain",
            fillcolor=colours.line,
            line={"width": 2, "color": colours.line},  # seen, however short
        )
    square = {"symbol": "square", "size": 9, "color": colours.line}
    name = "stands still while others move on"
    figure.add_scatter(x=[None], y=[None], mode="markers", marker=square, name=name, showlegend=True)


def _rows_of_axes(figure: go.Figure, names: list[str], height: int, axis: dict[str, Any], colours: Palette) -> None:
    """An axis of lags for each row, with the name of the row on its left."""
    look = figure.layout.yaxis.to_plotly_json()
    for number, name in enumerate(names):
        top = 1 - number * (ROW_HEIGHT + ROW_GAP) / height
        options = look | axis | {"domain": [max(top - ROW_HEIGHT / height, 0), min(top, 1)], "anchor": "x"}
        figure.layout[f"yaxis{number + 1 if number else ''}"] = options
        figure.add_annotation(
            text=escape_label(name),
            x=0,
            xref="paper",
            xshift=16 - LEFT,
            xanchor="left",
            y=top,
            yref="paper",
            yanchor="top",
            showarrow=False,
            font={"size": 13, "color": colours.ink},
        )


def _arrivals(course: Course, trace: Trace) -> dict[str, Any]:
    """Round numbers of arrivals, with the leader's stream time below each."""
    count = len(trace)
    steps = (step * 10**power for power in range(len(str(count)) + 1) for step in (1, 2, 5))
    step = next(step for step in steps if count / step <= MOST_TICKS)
    ticks = list(range(step, count + 1, step))
    said = clock(trace)
    return {
        "tickmode": "array",
        "tickvals": ticks,
        "ticktext": [f"{tick:,}<br>{_short(said(int(course.leader_ms[tick])))}" for tick in ticks],
    }


def _short(when: str) -> str:
    """A time without its seconds."""
    return cut_time(when, 16) if len(when) >= 19 and when[4] == when[7] == "-" else when


def _lags_axis(low: float, most: float, *, logarithmic: bool) -> dict[str, Any]:
    """Few lengths, downward: the leader is at the top."""
    high = max(most, 1.0)
    if logarithmic:
        axis = lengths_axis(low, high, logarithmic=True)
        step, room = len(axis["tickvals"]) // 3 + 1, (high / low) ** 0.05
        ticks = [ms for ms in axis["tickvals"][::-step] if ms > low * (high / low) ** 0.2]
        ends = [float(decades(high * room)), float(decades(low / room))]
    else:
        ticks = [ms for ms in lengths_axis(0, high)["tickvals"] if ms]
        ticks = ticks[-1:] if len(ticks) < 4 else [ticks[len(ticks) // 2 - 1], ticks[-1]]
        axis, ends = {"type": "linear", "tickmode": "array"}, [high * 1.06, -0.06 * high]
    texts = ["newest", *(f"{show_duration(ms)} behind" for ms in ticks)]
    return axis | {"tickvals": [low, *ticks], "ticktext": texts, "range": ends}


def spans_figure(course: Course, trace: Trace, words: list[str], *, theme: Theme | None) -> go.Figure:
    """From which stream time to which each partition goes; of many those that end first."""
    import plotly.graph_objects as go

    colours, stands = palette(theme), course.stands
    seen = np.flatnonzero(course.last_stand >= 0)
    ends = stands.time_ms[course.last_stand[seen]]
    chosen = seen[np.sort(np.argsort(ends, kind="stable")[:MOST_SPANS])]
    begins = np.full(course.count, np.iinfo(np.int64).max)
    np.minimum.at(begins, stands.partition, stands.time_ms)
    start, end = begins[chosen], stands.time_ms[course.last_stand[chosen]]
    said = clock(trace)
    names = [f"partition {number}" for number in trace.batch.partitions[chosen].tolist()]
    figure = go.Figure(
        go.Bar(
            base=start,
            x=end - start,
            y=np.arange(len(chosen)),
            orientation="h",
            width=0.6,
            marker={"color": colours.solid, "line": {"width": 0}},
            customdata=[
                f"{name}: {said(int(low))} to {said(int(high))}"
                for name, low, high in zip(names, start, end, strict=True)
            ],
            hovertemplate="%{customdata}<extra></extra>",
            showlegend=False,
            name="from the first stream time to the last",
        )
    )
    if len(seen) > len(chosen):
        words = [*words, f"shown are the {len(chosen)} partitions, of {len(seen):,}, that end first"]
    height = max(SPAN_HEIGHT * len(chosen), 80)
    dress_plain(figure, colours, TITLE, words, height, left=120)
    rows = [len(chosen) - 0.5, -0.5]
    figure.update_yaxes(range=rows, tickmode="array", tickvals=np.arange(len(chosen)), ticktext=names, showgrid=False)
    event_time_axis(figure, "stream time", int(stands.time_ms.max()), trace.batch.timezone, colours)
    return figure
