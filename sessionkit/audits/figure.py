"""The picture of an audit: results over time, those that came as they should below, what went wrong on top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sessionkit.base.arrays import Longs
from sessionkit.base.durations import HOUR, MINUTE, show_duration
from sessionkit.base.text import escape_label
from sessionkit.views.drawing.grammar import axis_title, counts_axis
from sessionkit.views.drawing.palettes import Figure, Palette, Theme, palette
from sessionkit.views.drawing.simple_frame import dress_plain, event_time_axis

BARS = 96  # about 10 pixels each
PLOT_HEIGHT = 300
STEPS_MS = (
    *(1, 10, 100, 1_000, 10_000, MINUTE, 300_000, 900_000),
    *(hours * HOUR for hours in (1, 3, 6, 12, 24)),
)


def audit_figure(
    title: str,
    subtitle: Sequence[str],
    ends_ms: Longs,
    verdicts: Sequence[str],
    known: Sequence[str],
    *,
    timezone: str,
    theme: Theme | None,
) -> Figure:
    """Bars of results by window end; a colour and a pattern for each verdict, so that they are told apart in grey too.

    `known` has the verdicts in the order in which they are stacked.
    """
    import plotly.graph_objects as go

    colours = palette(theme)
    shown = [verdict for verdict in known if verdict in set(verdicts)]
    step_ms = _step_ms(ends_ms)
    bins = ends_ms // step_ms
    names = np.array(verdicts, object)
    figure = go.Figure()
    heights = []
    for verdict in shown:
        bin_number, count = np.unique(bins[names == verdict], return_counts=True)
        heights.append(np.stack([bin_number, count]))
        figure.add_trace(_bars(verdict, bin_number, count, step_ms, colours, int((names == verdict).sum())))
    dress_plain(figure, colours, escape_label(title, 200), subtitle, PLOT_HEIGHT)
    figure.update_layout(barmode="stack", bargap=0.08, legend_traceorder="normal")
    _, per_bar = np.unique(bins, return_counts=True)
    per_step = axis_title(f"results per {show_duration(step_ms)}", colours)
    figure.update_yaxes(title=per_step, **counts_axis(int(per_bar.max(initial=1))))
    event_time_axis(figure, "end of the window", int(ends_ms.max(initial=0)), timezone, colours)
    return figure


def _bars(verdict: str, bins: Longs, count: Longs, step_ms: int, colours: Palette, total: int) -> Any:
    import plotly.graph_objects as go

    colour, shape = {
        "as it should be": (colours.solid, ""),
        "lost": (colours.drop, "/"),
        "sent twice": (colours.bridge, "x"),
        "other value": (colours.line, "-"),
        "only in Kafka": (colours.mute, "."),
        "late": (colours.saved, "\\"),
    }[verdict]
    pattern = {"shape": shape, "fillmode": "overlay", "fgcolor": colours.background, "size": 6, "solidity": 0.25}
    edge = {"width": 0.6, "color": colours.edge if not shape else colour}
    return go.Bar(
        x=bins * step_ms + step_ms // 2,
        y=count,
        width=step_ms * 0.92,
        name=f"{verdict} ({total:,})",
        marker={"color": colour, "line": edge, "pattern": pattern},
        hovertemplate=f"{verdict}: %{{y:,}}<extra></extra>",
    )


def _step_ms(ends_ms: Longs) -> int:
    span = int(np.ptp(ends_ms)) if len(ends_ms) else 0
    return next((step for step in STEPS_MS if span <= BARS * step), STEPS_MS[-1] * -(-span // (BARS * STEPS_MS[-1])))
