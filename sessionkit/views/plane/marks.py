"""What planes of every kind of window draw: the territory behind the close line, the clocks, caps, other keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sessionkit.base.decisions import LATE, TICK
from sessionkit.base.text import escape_label
from sessionkit.views.drawing.grammar import MOST_SVG_POINTS, Drawn, Frame, Outline, lines, marks
from sessionkit.views.scenes.key_rows import Rows
from sessionkit.views.scenes.scene import Plane
from sessionkit.views.words import closer_words

THIN = {"width": 1}
MOST_TICKS, LEAST_TICKS, TICK_ROOM = 11, 3, 16  # of the axis of offsets; pixels between two


class Kind(NamedTuple):
    """Records of the key that did the same: how they are named, and how they look."""

    records: Rows
    name: str
    rank: int  # in the legend
    symbol: str
    larger: int  # pixels, than a record
    colour: str  # its name
    line: dict[str, Any] | None = None  # in place of the rim


def offsets(scene: Plane, frame: Frame) -> dict[str, Any]:
    """Settings of the y axis: places are rows, words are offsets."""
    offset = scene.trace.batch.offset[scene.rows]
    places, words = _ticks(offset, frame)
    low, high = frame.y_range
    return {
        "range": [low, high],
        "minallowed": low,
        "maxallowed": high,
        "tickmode": "array",
        "tickvals": places,
        "ticktext": [f"{word:,}" for word in words],
    }


def _ticks(offset: npt.NDArray[np.int64], frame: Frame) -> tuple[list[float], list[int]]:
    """Round offsets, and where they lie between the rows; those of rows where nothing round has room."""
    rows, span = np.arange(len(offset)), int(offset[-1] - offset[0])
    step = next(step for step in _tick_steps() if span / step <= MOST_TICKS)
    round_ones = np.arange(-(-int(offset[0]) // step) * step, int(offset[-1]) + 1, step)
    places = np.interp(round_ones, offset, rows)
    kept: list[int] = []
    for at, pixel in enumerate(frame.y(places).tolist()):
        if not kept or abs(pixel - frame.y(places[kept[-1]])) >= TICK_ROOM:
            kept.append(at)
    if len(kept) >= min(LEAST_TICKS, len(offset)):
        return places[kept].tolist(), round_ones[kept].tolist()
    step = next(step for step in _tick_steps() if len(offset) / step <= MOST_TICKS)
    return rows[::step].astype(float).tolist(), offset[::step].tolist()


def _tick_steps() -> Iterator[int]:
    """1, 2, 5, 10, 20, 50, … rows."""
    return (digit * 10**zeros for zeros in count() for digit in (1, 2, 5))


def territory(scene: Plane) -> Drawn:
    """The area that the close line has passed."""
    behind, line = Outline(), scene.close_line
    if line.y:
        low, high = scene.x_range_ms
        beyond = low - (high - low)
        kept = [max(ms, beyond) for ms in line.x_ms if ms is not None]
        heights = [y for y in line.y if y is not None]
        around = [heights[-1], heights[0]]
        behind.add([beyond, *kept, beyond, beyond], [heights[0], *heights, *around])
    fill = scene.colours.territory
    return lines(scene.axis, behind, "closed territory", {"width": 0}, fillcolor=fill, legendrank=60)


def clocks(scene: Plane, close_line: str) -> list[Drawn]:
    """Stream time, and the close line under its name."""
    mute = {"width": 1.4, "dash": "dash", "color": scene.colours.stream}
    thick = {"width": 3, "color": scene.colours.line}
    return [
        lines(scene.axis, scene.stream_line, "stream time: newest event seen", mute, legendrank=50),
        lines(scene.axis, scene.close_line, close_line, thick, legendrank=40),
    ]


def caps(scene: Plane, width: float = 5) -> Drawn:
    """A line over each window where it was closed."""
    line = {"width": width, "color": scene.colours.ink}
    return lines(scene.axis, scene.cap_lines, "closed: the result is final", line, legendrank=25)


def tether_lines(scene: Plane, tethers: tuple[Outline, Outline]) -> list[Drawn]:
    """From each drop to the end of what it came too late for, and from there (dotted) to the close line."""
    drop = {"width": 1.2, "color": scene.colours.drop}
    away, missing = tethers
    return [
        lines(scene.axis, away, f"to the end of the {scene.window.noun} it touches", drop, showlegend=False),
        lines(scene.axis, missing, "missing grace", {**drop, "width": 2.6, "dash": "dot"}, showlegend=False),
    ]


def mark_size(scene: Plane) -> int:
    """Pixels of a record's mark: fewer where there are many rows."""
    return 11 if len(scene.rows) <= 40 else 9 if len(scene.rows) <= 80 else 8


def points(scene: Plane, records: Rows, name: str, rank: int, words: list[str], **marker: Any) -> Drawn:
    """A mark for each of these records, with a rim that keeps it apart from lines unless it has its own."""
    rim = {"width": 1.6 if mark_size(scene) > 9 else 1.1, "color": scene.colours.background}
    marker["line"] = {**rim, **marker.get("line", {})}
    at_ms, y = scene.trace.batch.timestamp_ms[records], scene.y(records)
    return marks(scene.axis, at_ms, y, words, name, has_many(scene), marker=marker, legendrank=rank)


def own_points(scene: Plane, kinds: Sequence[Kind], words: Callable[[Rows], list[str]]) -> list[Drawn]:
    """Other keys, then the key's own records by what they did, then the middles of caps (for hover only)."""
    found, size = [other_keys(scene)], mark_size(scene)
    for records, name, rank, symbol, larger, colour, line in kinds:
        here = scene.shown(records)
        marker = {"size": size + larger, "symbol": symbol, "color": getattr(scene.colours, colour), "line": line or {}}
        found.append(points(scene, here, name, rank, words(here), **marker))
    return [*found, cap_middles(scene)]


def has_many(scene: Plane) -> bool:
    """True if the records are too many for SVG."""
    return len(scene.rows) > MOST_SVG_POINTS


def other_keys(scene: Plane) -> Drawn:
    """Small dots for the records of other keys."""
    batch, trace = scene.trace.batch, scene.trace
    decision, timed = trace.decision[scene.rows], batch.timestamp_ms[scene.rows] >= 0
    is_seen = (decision <= LATE) | ((decision == TICK) & timed)
    other = scene.rows[(batch.key[scene.rows] != scene.history.key) & is_seen]
    dots = {"size": 6 if mark_size(scene) > 9 else 4, "color": scene.colours.other, "line": {"width": 0}}
    return points(scene, other, "other keys move stream time, too", 70, _other_words(scene, other), **dots)


def cap_middles(scene: Plane) -> Drawn:
    """Invisible points in the caps that say on hover what was closed."""
    middles = np.array([(cap.start_ms + cap.end_ms) // 2 for cap in scene.caps], np.int64)
    words = [
        f"<b>closed</b> {closer_words(scene.trace, cap.at)}<br>"
        f"{scene.axis.show(cap.start_ms)} to {scene.axis.show(cap.end_ms)}<br>{scene.cap_words(cap)}"
        for cap in scene.caps
    ]
    height = scene.y(np.array([cap.at for cap in scene.caps], np.int64))
    marker = {"size": 12, "color": "rgba(0,0,0,0)"}
    return marks(scene.axis, middles, height, words, "closure", has_many(scene), marker=marker, showlegend=False)


def _other_words(scene: Plane, records: Rows) -> list[str]:
    batch = scene.trace.batch
    keys = [batch.key_at(row) for row in records.tolist()]
    names = ["none" if key is None else escape_label(key) for key in keys]
    told = zip(names, batch.offset[records].tolist(), batch.timestamp_ms[records].tolist(), strict=True)
    return [f"offset {at:,}: key {name}<br>{scene.axis.show(ms)}" for name, at, ms in told]
