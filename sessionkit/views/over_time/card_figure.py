"""A run as one picture for a chat or a slide: its finding in large letters, a few numbers, and its course."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import plotly.graph_objects as go

from sessionkit.base.result_folders import write_whole
from sessionkit.base.text import counted, escape_label
from sessionkit.errors import PicturesUnavailable, errors_as, problem
from sessionkit.views.drawing.grammar import FONT
from sessionkit.views.drawing.measured_text import BOLD, flow
from sessionkit.views.drawing.palettes import Palette, Theme, palette
from sessionkit.views.over_time.buckets import buckets
from sessionkit.views.over_time.finding import finding
from sessionkit.views.words import records_dropped, zone_named

if TYPE_CHECKING:
    from sessionkit.run import Run

WIDTH, HEIGHT, EDGE = 1_200, 630, 60
HEADLINE = ((38, 3), (32, 4), (26, 5), (21, 6))  # font sizes, each with as many lines as there is room for
TOP_OF_NUMBERS, TOP_OF_PLOT, END_OF_PLOT = 288, 430, 570  # pixels from above
WAY = "pip install kaleido, and Chrome or Chromium (plotly_get_chrome brings one)"


def write_card(run: Run, path: Path, title: str | None, theme: Theme | None) -> Path:
    """Writes the picture as a PNG file."""
    figure = card_figure(run, title, theme)
    if find_spec("kaleido") is None:
        raise PicturesUnavailable(problem("pictures of charts are made by kaleido", "no package kaleido", WAY))
    with errors_as(PicturesUnavailable, "kaleido could not make the picture", WAY, (RuntimeError, ValueError)):
        write_whole(path, lambda aside: figure.write_image(aside, format="png"))
    return path


def card_figure(run: Run, title: str | None, theme: Theme | None) -> go.Figure:
    """The picture as a figure."""
    colours, counts, figure = palette(theme), run.metrics(), go.Figure()
    said = f"{run.plan.source.by}: {run._windows.in_words()}" if title is None else title
    _write(figure, EDGE, 34, escape_label(said, 90), 20, colours.mute)
    sentence, room = escape_label(finding(counts, run)[0], 600), (WIDTH - 2 * EDGE) / BOLD
    flowed = [(size, flow([sentence], room, size), most) for size, most in HEADLINE]
    size, lines, most = next((each for each in flowed if len(each[1]) <= each[2]), flowed[-1])
    lines = lines if len(lines) <= most else [*lines[: most - 1], "…"]
    _write(figure, EDGE, 72, f"<b>{'<br>'.join(lines)}</b>", size, colours.ink)
    dropped = records_dropped(counts)
    numbers = {"records": counts["process-total"], f"{run._windows.noun}s": counts["windows"]}
    numbers |= {"merges": counts["windows-merged"]} if counts.get("windows-merged") else {}
    for place, (name, number) in enumerate([*numbers.items(), ("dropped", dropped)]):
        colour = colours.drop if name == "dropped" and dropped else colours.ink
        _write(figure, EDGE + 270 * place, TOP_OF_NUMBERS, f"<b>{number:,}</b>", 40, colour)
        _write(figure, EDGE + 270 * place, TOP_OF_NUMBERS + 50, counted(name, number), 20, colours.mute)
    _add_bars(figure, run, colours)
    figure.update_layout(
        width=WIDTH, height=HEIGHT, margin={"l": 0, "r": 0, "t": 0, "b": 0}, paper_bgcolor=colours.background,
        plot_bgcolor=colours.background, font={"family": FONT}, barmode="stack", bargap=0.1, showlegend=False,
        xaxis={"domain": [EDGE / WIDTH, 1 - EDGE / WIDTH], "visible": False},
        yaxis={"domain": [1 - END_OF_PLOT / HEIGHT, 1 - TOP_OF_PLOT / HEIGHT], "visible": False},
    )  # fmt: skip
    return figure


def _add_bars(figure: go.Figure, run: Run, colours: Palette) -> None:
    """The records of each stretch of time, those dropped in their own colour; nothing where the trace was not kept."""
    found = None if run._lives or run._outcome.kept_trace is None else buckets(run._outcome)
    if found is None or len(found.names) < 2:
        return
    for counts, colour in ((found.records - found.dropped, colours.edge), (found.dropped, colours.drop)):
        figure.add_bar(y=counts, marker={"color": colour, "line": {"width": 0}})
    legend, zone = f"<span style='color:{colours.edge}'>■ records in {found.length}</span>", zone_named(run.trace)
    if found.dropped.any():
        legend += f" <span style='color:{colours.drop}'>■ {run.drop_calendar()._verb}</span>"
    _write(figure, EDGE, TOP_OF_PLOT - 26, legend + (f", times in {zone}" if zone else ""), 16, colours.mute)
    _write(figure, EDGE, END_OF_PLOT + 6, found.names[0], 16, colours.mute)
    _write(figure, WIDTH - EDGE, END_OF_PLOT + 6, found.names[-1], 16, colours.mute, "right")


def _write(figure: go.Figure, x: int, y: int, text: str, size: int, colour: str, side: str = "left") -> None:
    """Text (escaped already) whose upper corner is at these pixels from the left and from above."""
    place = {"xref": "paper", "yref": "paper", "x": x / WIDTH, "y": 1 - y / HEIGHT, "xanchor": side, "yanchor": "top"}
    figure.add_annotation(text=text, showarrow=False, align=side, font={"size": size, "color": colour}, **place)
