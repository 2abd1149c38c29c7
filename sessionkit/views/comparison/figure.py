"""The picture of a comparison: windows of the keys that change most, those of one run over those of the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa

from sessionkit.base.arrays import Flags, Longs, Rows
from sessionkit.base.durations import show_duration
from sessionkit.base.text import plural
from sessionkit.views.comparison.groups import CHANGES, SAME, Groups, ranks_as_text
from sessionkit.views.drawing.grammar import LEAST_WIDTH, checked_width, empty_figure
from sessionkit.views.drawing.measured_text import key_labels, text_width
from sessionkit.views.drawing.palettes import Palette, Theme, palette
from sessionkit.views.drawing.simple_frame import Bar, dress_plain, event_time_axis, plain_heading, span_bars

if TYPE_CHECKING:
    from sessionkit.views.comparison.comparison import Comparison

LANE = 26
LEAST_BAR = 300  # a bar is at least such a part of the picture, to be seen
MOST_WINDOWS = 20  # of one lane, on average


def comparison_figure(comparison: Comparison, *, theme: Theme | None, most: int) -> go.Figure:
    """Two lanes a key, `before` over `after`; a colour and a pattern for what became of a window."""
    colours = palette(theme)
    windows = _windows(comparison._groups)
    span = _stretch(windows, 2 * most)
    codes, more = _keys(comparison, windows, span, most)
    mine = np.isin(windows.key, codes)
    low_ms, high_ms = _whole_windows(windows, mine, span)
    shown = mine & (windows.start_ms <= high_ms) & (windows.end_ms >= low_ms)
    if not shown.any():
        return empty_figure(colours, plain_heading("Nothing changes", comparison.words()))
    keys = comparison.before._outcome.keys.take(pa.array(codes)).to_pylist()
    names = key_labels(keys, 24 if checked_width() >= LEAST_WIDTH else 12)
    bars = _told(comparison._groups, windows, np.flatnonzero(shown), dict(zip(codes.tolist(), names, strict=True)))
    lanes = [_lane(name, side) for name in reversed(names) for side in ("after", "before")]
    least_ms = (high_ms - low_ms) // LEAST_BAR
    figure = go.Figure([_bars(what, bars[what], least_ms, colours) for what in _STYLES if what in bars])
    notes = comparison.words()
    if more or shown.sum() < mine.sum():
        notes = [*notes, f"shown: of {plural(len(keys), 'key')} the stretch with the most changes; table() has all"]
    left = round(max((text_width(lane, 13) for lane in lanes), default=60)) + 20
    dress_plain(figure, colours, "What changes", notes, max(len(lanes), 2) * LANE, left=left)
    figure.update_layout(barmode="overlay", bargap=0.25)
    figure.update_yaxes(type="category", categoryorder="array", categoryarray=lanes, showgrid=False)
    pad = (high_ms - low_ms) // 50 + 1
    figure.update_xaxes(range=[low_ms - pad, high_ms + pad])
    newest_ms = int(comparison.before._outcome.batch.timestamp_ms.max(initial=0))
    event_time_axis(figure, "event time", newest_ms, comparison.before.timezone, colours)
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
    colour, shape = _STYLES[what]
    pattern = {"shape": shape, "fillmode": "overlay", "fgcolor": colours.background, "size": 6, "solidity": 0.3}
    marker = {"color": getattr(colours, colour), "pattern": pattern, "line": {"width": 1, "color": colours.background}}
    return span_bars(bars, max(least_ms, 1), name=what, marker=marker)


class _Windows(NamedTuple):
    """The windows of both runs, by group, those before ahead of those after."""

    group: Longs
    side: Longs
    key: Longs
    start_ms: Longs
    end_ms: Longs
    changes: Flags


def _windows(groups: Groups) -> _Windows:
    sides = (groups.before, groups.after)
    group = np.concatenate([side.group for side in sides])
    order = np.argsort(group, kind="stable")
    number = np.repeat([0, 1], [len(side.rows) for side in sides])
    start_ms, end_ms = (np.concatenate(each) for each in zip(*((s.start_ms, s.end_ms) for s in sides), strict=True))
    group = group[order]
    return _Windows(group, number[order], groups.key[group], start_ms[order], end_ms[order], groups.what[group] != SAME)


def _told(groups: Groups, windows: _Windows, shown: Rows, names: dict[int, str]) -> dict[str, list[Bar]]:
    bars: dict[str, list[Bar]] = {}
    columns = (windows.group, windows.side, windows.key, windows.start_ms, windows.end_ms)
    for group, side, key, start, end in zip(*(column[shown].tolist() for column in columns), strict=True):
        what, many = CHANGES[groups.what[group]], (groups.before.counts[group], groups.after.counts[group])
        length = f"{show_duration(end - start)}, " if end > start else ""  # a session of one record has none
        said = f"{what}: {length}{many[0]} before, {many[1]} after"
        bars.setdefault(what, []).append((_lane(names[key], ("before", "after")[side]), start, end, said))
    return bars


def _stretch(windows: _Windows, lanes: int) -> tuple[int, int]:
    """(from, to) of the stretch with the most changes in which a lane has no more bars than can be seen."""
    count = len(windows.start_ms)
    if not count:
        return 0, 1
    low, high = int(windows.start_ms.min()), int(windows.end_ms.max())
    length = (high - low) * min(1.0, MOST_WINDOWS * lanes / count)
    starts = np.sort(windows.start_ms[windows.changes])
    if length >= high - low or not len(starts):
        return low, high
    held = np.searchsorted(starts, starts + length) - np.arange(len(starts))
    first = int(starts[np.argmax(held)])
    return first, int(first + length)


def _whole_windows(windows: _Windows, mine: Flags, span: tuple[int, int]) -> tuple[int, int]:
    """The span, made longer so that it cuts no window of these that changes."""
    low, high = span
    cut = mine & windows.changes & (windows.start_ms <= high) & (windows.end_ms >= low)
    first, last = windows.start_ms[cut].min(initial=low), windows.end_ms[cut].max(initial=high)
    return int(first), int(last)


def _keys(comparison: Comparison, windows: _Windows, span: tuple[int, int], most: int) -> tuple[Longs, bool]:
    """Codes of the keys with the most changes in this span, in that order; whether there are others that change."""
    groups = comparison._groups
    within = np.zeros(len(groups), np.bool_)
    within[windows.group[windows.changes & (windows.start_ms <= span[1]) & (windows.end_ms >= span[0])]] = True
    counts = np.bincount(groups.key[within], minlength=len(comparison.before._outcome.keys))
    chosen = np.flatnonzero(counts)
    by_count = chosen[np.lexsort((ranks_as_text(comparison.before._outcome.keys)[chosen], -counts[chosen]))]
    changing = int(np.count_nonzero(groups.what != SAME))
    return by_count[:most], bool(changing > np.count_nonzero(within)) or len(chosen) > most


def _lane(name: str, side: str) -> str:
    return f"{name} · {side}"
