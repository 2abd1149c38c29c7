"""Where labels go: near what they speak of, inside the plot, over no mark and over no other label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sessionkit.base.arrays import Flags, Floats, Rows
from sessionkit.views.drawing.grammar import Frame, Outline
from sessionkit.views.drawing.measured_text import PAD, SIZE, text_size
from sessionkit.views.drawing.palettes import Palette
from sessionkit.views.drawing.time_axis import TimeAxis

Boxes = Floats  # rows of (left, top, right, bottom) in pixels of the plot

NO_BOXES: Boxes = np.empty((0, 4))
MOST_OF_A_KIND = 3
_MARK_RADIUS = 9.0
_LEADER_LENGTHS = (46, 64, 84, 108, 136, 168, 204)
_LEADER_ANGLES = 20
_CROSSED_LINE_COST = 45.0
_CROSSED_MARK_COST = 60.0
_COVERED_DOT_COST = 12.0
_STROKE = 4.0  # half the width of a thick line, with some air
_LEADER_SAMPLES = np.linspace(0.1, 0.9, 9)[:, None]  # shares of its length
_MOST_CROSSED = 400  # marks nearby: in a denser crowd it makes no difference which of them a leader crosses
_MOST_TRIED = 24  # records of a kind


@dataclass(frozen=True)
class Label:
    """A text (escaped) and the point that it speaks of."""

    kind: str
    x_ms: int
    y: float
    text: str
    colour: str
    places: Floats  # offsets (across, down) of its middle in pixels, best first
    size: int = SIZE


def around(prefer: float, width: float, height: float) -> Floats:
    """Places for a label on a leader line, nearest first; `prefer` is the angle (0 right, 90 up) that looks best."""
    lengths = np.array(_LEADER_LENGTHS)[:, None]
    angles = np.arange(_LEADER_ANGLES) * (360 / _LEADER_ANGLES)
    off = np.abs((angles - prefer + 180) % 360 - 180)
    cost = np.arange(len(lengths))[:, None] * 45 + off * 0.45
    x = np.cos(np.radians(angles)) * (lengths * 0.6 + width / 2)
    y = -np.sin(np.radians(angles)) * (lengths * 0.6 + height / 2)
    return np.stack([x, y], axis=-1).reshape(-1, 2)[np.argsort(cost, axis=None, kind="stable")]


class Placement:
    """Places labels one after the other; what does not fit is left out (it is still there on hover)."""

    def __init__(self, frame: Frame, axis: TimeAxis, colours: Palette) -> None:
        self._axis, self._colours = axis, colours
        self._rooms = [_Room(each) for each in frame.widths]
        self._texts: set[tuple[str, str]] = set()
        self._count: Counter[str] = Counter()
        self.annotations: list[dict[str, Any]] = []
        self.rows: list[float] = []

    def avoid_points(self, x_ms: npt.ArrayLike, y: npt.ArrayLike, never: bool = False) -> None:
        """Labels had better not (or must `never`) cover these points."""
        for room in self._rooms:
            if never:
                marks = room.around(x_ms, y, _MARK_RADIUS)
                room.marks, room.never = np.concatenate([room.marks, marks]), np.concatenate([room.never, marks])
            else:
                room.dots = np.concatenate([room.dots, room.around(x_ms, y, 4)])

    def avoid_lines(self, outline: Outline, never: bool = False) -> None:
        """Labels had better not (or must `never`) cover these lines, which run along the axes."""
        x_ms = np.array([np.nan if ms is None else ms for ms in outline.x_ms], np.float64)
        up = np.array([np.nan if y is None else y for y in outline.y], np.float64)
        for room in self._rooms:
            boxes = room.boxes_of(x_ms, up)
            if never:
                air = np.array([-_STROKE, -_STROKE, _STROKE, _STROKE])
                room.never = np.concatenate([room.never, boxes + air])
            else:
                room.lines = np.concatenate([room.lines, boxes])

    def fitting(self, label: Label, leader: bool = True) -> Rows:
        """Which of its places there is room for."""
        left = np.arange(len(label.places))
        for room in self._rooms:
            left = left[room.allows(label, label.places[left], leader)]
        return left

    def place(self, label: Label, leader: bool = True) -> bool:
        """Puts the label at the best of its places; False if there is none, or its kind or text had its share."""
        if self.is_full(label.kind) or (label.kind, label.text) in self._texts:
            return False
        left, offsets = self.fitting(label, leader), label.places
        if not len(left):
            return False
        costs = [room.cost(label, offsets[left], leader) for room in self._rooms]
        best = offsets[left[np.argmin(left * 1.5 + np.mean(costs, axis=0))]]
        for room in self._rooms:
            room.take(label, best, leader)
        self._count[label.kind] += 1
        self._texts.add((label.kind, label.text))
        self.rows.append(label.y)
        self.annotations.append(self._annotation(label, best, leader))
        return True

    def is_full(self, kind: str) -> bool:
        """True once a kind had its share."""
        return self._count[kind] >= MOST_OF_A_KIND

    def _annotation(self, label: Label, offset: Boxes, leader: bool) -> dict[str, Any]:
        dx, dy = round(float(offset[0]), 1), round(float(offset[1]), 1)
        moved = {"ax": dx, "ay": dy} if leader else {"xshift": dx, "yshift": -dy}
        place = {"x": self._axis.at([label.x_ms])[0], "y": label.y, "xanchor": "center", "yanchor": "middle", **moved}
        arrow = {"showarrow": leader, "arrowhead": 0, "arrowwidth": 1, "arrowcolor": label.colour}
        box = {"bgcolor": self._colours.background, "borderpad": PAD - 1, "opacity": 0.95, "align": "left"}
        font = {"color": label.colour, "size": label.size}
        return {"text": label.text, "name": label.kind, "font": font, **place, **arrow, **box}


class _Room:
    """One width of a picture, and what is in the way of labels at that width."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self.marks, self.dots, self.lines = NO_BOXES, NO_BOXES, NO_BOXES
        self.never = NO_BOXES  # marks, thick lines, and the labels that were placed
        self._taken = NO_BOXES
        self._leaders: list[Floats] = []

    def around(self, x_ms: npt.ArrayLike, y: npt.ArrayLike, radius: float) -> Boxes:
        across, up = self._frame.x(x_ms), self._frame.y(y)
        return np.column_stack([across - radius, up - radius, across + radius, up + radius])

    def boxes_of(self, x_ms: Floats, up: Floats) -> Boxes:
        """A box for each stretch of lines whose corners these are; NaN parts one line from the next."""
        x, y = self._frame.x(x_ms), self._frame.y(up)
        sides = [side(ends[1:], ends[:-1]) for side in (np.minimum, np.maximum) for ends in (x, y)]
        boxes = np.column_stack(sides) if len(x) else NO_BOXES
        return boxes[~np.isnan(boxes).any(axis=1)]

    def allows(self, label: Label, offsets: Boxes, leader: bool) -> Rows:
        """At which of these offsets the label may stand: their places."""
        boxes, frame = self._boxes(label, offsets), self._frame
        start, top, end, bottom = boxes.T
        inside = (start >= 2) & (top >= 0) & (end <= frame.plot_width - 2) & (bottom <= frame.plot_height - 2)
        left = np.flatnonzero(inside)
        if len(left):
            left = left[~_overlap(boxes[left], _near(self.never, boxes[left])).any(axis=1)]
        if len(left) and self._leaders:
            left = left[~_hits(np.array(self._leaders), boxes[left]).any(axis=0)]
        if len(left) and leader:
            left = left[~_hits(self._paths(label, offsets[left]), self._taken).any(axis=1)]
        return left

    def cost(self, label: Label, offsets: Boxes, leader: bool) -> Floats:
        """What the label would cover or cross at these offsets."""
        boxes, point = self._boxes(label, offsets), self._point(label)
        lines = _overlap(boxes, _near(self.lines, boxes)).sum(axis=1)
        dots = _overlap(boxes, _near(self.dots, boxes)).sum(axis=1)
        cost: Floats = _CROSSED_LINE_COST * lines + _COVERED_DOT_COST * dots
        if leader:
            marks = _near(self.marks, np.vstack([boxes, [*point, *point]]))
            others = marks[(np.abs((marks[:, :2] + marks[:, 2:]) / 2 - point) >= 1).any(axis=1)]
            if len(others) <= _MOST_CROSSED:
                cost += _CROSSED_MARK_COST * _hits(self._paths(label, offsets), others).sum(axis=1)
        return cost

    def take(self, label: Label, offset: Boxes, leader: bool) -> None:
        box = self._boxes(label, offset[None])
        self._taken, self.never = np.concatenate([self._taken, box]), np.concatenate([self.never, box])
        if leader:
            self._leaders.append(self._paths(label, offset[None])[0])

    def _point(self, label: Label) -> Boxes:
        return np.array([float(self._frame.x(label.x_ms)), float(self._frame.y(label.y))])

    def _boxes(self, label: Label, offsets: Boxes) -> Boxes:
        half = np.array(text_size(label.text, label.size)) / 2
        middle = self._point(label) + offsets
        return np.column_stack([middle - half, middle + half])

    def _paths(self, label: Label, offsets: Boxes) -> Floats:
        return self._point(label) + offsets[:, None, :] * _LEADER_SAMPLES


def spread(rows: Sequence[int]) -> list[int]:
    """Some of `rows`, evenly spread: as many as it pays to try to label."""
    places = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _MOST_TRIED)).round().astype(int))
    return [rows[place] for place in places.tolist()]


def _hits(paths: Floats, boxes: Boxes) -> Flags:
    """For each path and each box: does the path enter the box?"""
    x, y = paths[:, :, None, 0], paths[:, :, None, 1]
    inside = (x > boxes[:, 0]) & (x < boxes[:, 2]) & (y > boxes[:, 1]) & (y < boxes[:, 3])
    return np.any(inside, axis=1)


def _near(others: Boxes, boxes: Boxes) -> Boxes:
    """Those of `others` that reach into the box around all `boxes`."""
    if not len(boxes) or not len(others):
        return NO_BOXES
    around = np.concatenate([boxes.min(axis=0)[:2], boxes.max(axis=0)[2:]])
    return others[_overlap(around[None], others)[0]]


def _overlap(boxes: Boxes, others: Boxes) -> Flags:
    """For each of `boxes` and each of `others`: do they overlap?"""
    a, b = boxes[:, None, :], others[None, :, :]
    return (a[..., 0] < b[..., 2]) & (b[..., 0] < a[..., 2]) & (a[..., 1] < b[..., 3]) & (b[..., 1] < a[..., 3])
