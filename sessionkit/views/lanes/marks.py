"""What lanes of every kind of window draw: the bands, the closed territory, the clocks, what a bar says on hover."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sessionkit.base.text import escape_label
from sessionkit.views.drawing.grammar import MOST_SVG_POINTS, Drawn, Frame, Outline, lines, marks
from sessionkit.views.scenes.key_rows import Rows
from sessionkit.views.scenes.scene import Lanes
from sessionkit.views.words import closed_words


class Kind(NamedTuple):
    """Records that did the same: which, how they are named, and how they look."""

    mask: npt.NDArray[np.bool_]
    name: str
    rank: int  # in the legend
    lift: float  # in lanes, from the middle of one
    marker: dict[str, Any]


def ground(scene: Lanes, frame: Frame) -> list[Drawn]:
    """Bands that tell the lanes apart, and the area that the close line has passed."""
    colours, axis, low_ms = scene.colours, scene.axis, scene.x_range_ms[0]
    territory, bands, line_ms = Outline(), Outline(), scene.clocks_ms[0]
    if line_ms is not None:
        territory.box(low_ms, line_ms, frame.y_range[0], frame.y_range[1])
    for y in range(len(scene.board.lanes) % 2, len(scene.board.lanes), 2):
        bands.box(low_ms, scene.x_range_ms[1], y - 0.5, y + 0.5)
    none = {"width": 0}
    return [
        lines(axis, bands, "lane", none, fillcolor=colours.band, showlegend=False),
        lines(axis, territory, "closed territory", none, fillcolor=colours.territory, legendrank=60),
    ]


def has_many(scene: Lanes) -> bool:
    """True if the records are too many for SVG."""
    return len(scene.board.records) > MOST_SVG_POINTS


def middles(scene: Lanes, windows: Rows, heights: Sequence[float]) -> Drawn:
    """Invisible points in the bars that say what they are on hover."""
    trace, columns = scene.trace, scene.trace.window_columns
    words = []
    for row in windows.tolist():
        start_ms, end_ms = int(columns.start_ms[row]), int(columns.end_ms[row])
        state = f"<b>closed</b> {closed_words(trace, row)}" if trace.closed_by[row] >= 0 else "<b>still open</b>"
        span = f"{scene.axis.show(start_ms)} to {scene.axis.show(end_ms)}"
        name = escape_label(trace.keys[int(columns.key[row])].as_py())
        words.append(f"{name}: {state}<br>{span}<br>{scene.size_words(row)}")
    at_ms = (columns.start_ms[windows] + columns.end_ms[windows]) // 2
    marker = {"size": 12, "color": "rgba(0,0,0,0)"}
    return marks(scene.axis, at_ms, heights, words, scene.window.noun, has_many(scene), marker=marker, showlegend=False)


def points(scene: Lanes, kinds: Sequence[Kind], words: Callable[[str, Rows], list[str]], rim: float) -> list[Drawn]:
    """A mark for each record, with a rim that keeps it apart from others; `words` are those of a kind by its name."""
    found, line = [], {"width": rim, "color": scene.colours.background}
    for mask, name, rank, lift, marker in kinds:
        rows = scene.board.of(mask)
        at_ms, heights = scene.trace.batch.timestamp_ms[rows], (scene.height_of(rows) + lift).tolist()
        look, said = {**marker, "line": line}, words(name, rows)
        found.append(marks(scene.axis, at_ms, heights, said, name, has_many(scene), marker=look, legendrank=rank))
    return found


def clocks(scene: Lanes) -> list[Drawn]:
    """The close line and stream time, as they stand at the end of the run."""
    close, stream = Outline(), Outline()
    low, high = -0.55, len(scene.board.lanes) - 0.45
    for outline, ms in zip((close, stream), scene.clocks_ms, strict=True):
        if ms is not None:
            outline.add((ms, ms), (low, high))
    thick = {"width": 3, "color": scene.colours.line}
    thin = {"width": 1.4, "dash": "dash", "color": scene.colours.stream}
    return [
        lines(scene.axis, close, "close line now", thick, legendrank=40),
        lines(scene.axis, stream, "stream time now", thin, legendrank=50),
    ]
