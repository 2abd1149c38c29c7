"""The picture of a comparison: windows of the keys that change most, those of one run over those of the other."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from sessionkit.base.durations import show_duration
from sessionkit.base.text import plural
from sessionkit.errors import shorten
from sessionkit.views.charts.drawing.measured_text import key_label, text_width
from sessionkit.views.charts.drawing.palettes import Palette, Theme, palette
from sessionkit.views.charts.drawing.simple_frame import dress_plain, event_time_axis

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from sessionkit.views.comparison import Comparison

LANE = 26
LEAST_BAR = 300  # a bar is at least such a part of the picture, to be seen
MOST_WINDOWS = 20  # of one lane, on average
Bar = tuple[str, int, int, str]  # lane, start, end, what the pointer says


def comparison_figure(comparison: Comparison, *, theme: Theme | None, most: int) -> go.Figure:
    """Two lanes a key, `before` over `after`; a colour and a pattern for what became of a window."""
    import plotly.graph_objects as go

    colours = palette(theme)
    span = _stretch(comparison, 2 * most)
    keys, more = _keys(comparison, span, most)
    bars: dict[str, list[Bar]] = {}
    for group in comparison.groups:
        key = comparison.key_of(group)
        if key not in keys:
            continue
        for side, name in ((0, "before"), (1, "after")):
            for start, end in comparison.bounds(side, group):
                said = (
                    f"{group.what}: {show_duration(end - start)}, {len(group.before)} before, {len(group.after)} after"
                )
                bars.setdefault(group.what, []).append((_lane(key, name), start, end, said))
    low_ms, high_ms = _whole_windows(bars, span)
    lanes = [_lane(key, name) for key in reversed(keys) for name in ("after", "before")]
    least_ms = (high_ms - low_ms) // LEAST_BAR
    figure = go.Figure([_bars(what, bars[what], least_ms, colours) for what in _STYLES if what in bars])
    notes = comparison.words()
    if more or any(not low_ms <= start <= high_ms for mine in bars.values() for _, start, _, _ in mine):
        notes = [*notes, f"shown: of {plural(len(keys), 'key')} the stretch with the most changes; table() has all"]
    left = round(max((text_width(lane, 13) for lane in lanes), default=60)) + 20
    dress_plain(figure, colours, "What changes", notes, max(len(lanes), 2) * LANE, left=left)
    figure.update_layout(barmode="overlay", bargap=0.25)
    figure.update_yaxes(type="category", categoryorder="array", categoryarray=lanes, showgrid=False)
    pad = (high_ms - low_ms) // 50 + 1
    figure.update_xaxes(range=[low_ms - pad, high_ms + pad])
    event_time_axis(figure, "event time", comparison.newest_ms, comparison.before.timezone, colours)
    return figure


_STYLES = {
    "same": ("solid", ""),
    "changed": ("line", "-"),
    "split": ("bridge", "/"),
    "joined": ("saved", "\\"),
    "regrouped": ("record", "x"),
    "lost": ("drop", "."),
    "gained": ("mute", "+"),
}


def _bars(what: str, bars: list[Bar], least_ms: int, colours: Palette) -> go.Bar:
    import plotly.graph_objects as go

    colour, shape = _STYLES[what]
    pattern = {"shape": shape, "fillmode": "overlay", "fgcolor": colours.background, "size": 6, "solidity": 0.3}
    return go.Bar(
        orientation="h",
        y=[lane for lane, *_ in bars],
        base=[start for _, start, _, _ in bars],
        x=[max(end - start, least_ms, 1) for _, start, end, _ in bars],
        name=f"{what}",
        marker={
            "color": getattr(colours, colour),
            "pattern": pattern,
            "line": {"width": 1, "color": colours.background},
        },
        customdata=[said for *_, said in bars],
        hovertemplate="%{customdata}<extra></extra>",
    )


def _stretch(comparison: Comparison, lanes: int) -> tuple[int, int]:
    """(from, to) of the stretch with the most changes in which a lane has no more bars than can be seen."""
    every = np.array(
        [
            (*bounds, group.what != "same")
            for group in comparison.groups
            for side in (0, 1)
            for bounds in comparison.bounds(side, group)
        ],
        np.int64,
    ).reshape(-1, 3)
    if not len(every):
        return 0, 1
    low, high = int(every[:, 0].min()), int(every[:, 1].max())
    length = (high - low) * min(1.0, MOST_WINDOWS * lanes / len(every))
    starts = np.sort(every[every[:, 2] > 0, 0])
    if length >= high - low or not len(starts):
        return low, high
    held = np.searchsorted(starts, starts + length) - np.arange(len(starts))
    first = int(starts[np.argmax(held)])
    return first, int(first + length)


def _whole_windows(bars: dict[str, list[Bar]], span: tuple[int, int]) -> tuple[int, int]:
    """The span, made longer so that it cuts no window that changes."""
    low, high = span
    cut = [(s, e) for what, mine in bars.items() if what != "same" for _, s, e, _ in mine if s <= high and e >= low]
    return min([low, *(start for start, _ in cut)]), max([high, *(end for _, end in cut)])


def _keys(comparison: Comparison, span: tuple[int, int], most: int) -> tuple[list[Any], bool]:
    """The keys with the most changes in this span, in the order of these; whether there are others that change."""
    changes: Counter[Any] = Counter()
    others = False
    for group in comparison.groups:
        if group.what != "same":
            bounds = [each for side in (0, 1) for each in comparison.bounds(side, group)]
            within = any(start <= span[1] and end >= span[0] for start, end in bounds)
            changes[comparison.key_of(group)] += within
            others |= not within
    chosen = [key for key, count in changes.items() if count]
    chosen.sort(key=lambda key: (-changes[key], str(key)))
    return chosen[:most], others or len(chosen) > most


def _lane(key: Any, side: str) -> str:
    return f"{key_label(shorten(key, 24), 24)} · {side}"
