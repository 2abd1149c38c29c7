"""Where labels go: near what they speak of, inside the plot, over no mark and over no other label."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, pi, sin
from typing import Any

import numpy as np
import numpy.typing as npt

from sessionkit.base.text import escape_label
from sessionkit.views.charts.drawing.grammar import Frame, Outline, TimeAxis
from sessionkit.views.charts.drawing.palettes import Palette

Boxes = npt.NDArray[np.float64]  # rows of (left, top, right, bottom) in pixels of the plot

NO_BOXES: Boxes = np.empty((0, 4))
MOST_OF_A_KIND = 3
SIZE = 12
_PAD = 3
_LINE_HEIGHT = 1.35
_MARK_RADIUS = 9.0
_LEADER_LENGTHS = (46, 64, 84, 108, 136, 168, 204)
_LEADER_ANGLES = 20
_CROSSED_LINE_COST = 45.0
_CROSSED_MARK_COST = 60.0
_COVERED_DOT_COST = 12.0
_STROKE = 4.0  # half the width of a thick line, with some air
_LEADER_SAMPLES = 9
_MOST_CROSSED = 400  # marks nearby: in a denser crowd it makes no difference which of them a leader crosses
_MOST_TRIED = 24  # records of a kind
_TAG = re.compile(r"<[^>]*>")
# widths in ems of DejaVu Sans, the widest font of the stack; what is not listed is 0.62 wide
_EMS = {0.32: "ijl.,:;|'!() ", 0.42: 'tfr-/"', 0.68: "ABCDEFGHKNOPQRSTUVXYZ&→+\N{MINUS SIGN}", 0.95: "mwMW@%…"}
_EM = {character: width for width, characters in _EMS.items() for character in characters}


def key_label(key: object, length: int) -> str:
    """A key beside its lane; an empty text is one, too."""
    return escape_label(key, length) if key != "" else "(empty)"


def text_width(text: str, size: float = SIZE) -> float:
    """Pixels that a line takes at most; markup does not count, bold is taken as a tenth wider."""
    bold = 1.1 if "<b>" in text else 1.0
    plain = html.unescape(_TAG.sub("", text))
    wide = sum(_EM.get(character, 0.62 if ord(character) < 0x2E80 else 1.05) for character in plain)
    return bold * size * wide


def text_size(text: str, size: float = SIZE) -> tuple[float, float]:
    """(width, height) in pixels of a label's box."""
    rows = text.split("<br>")
    return max(text_width(row, size) for row in rows) + 2 * _PAD, len(rows) * size * _LINE_HEIGHT + 2 * _PAD


def flow(notes: Sequence[str], width: float, size: float = 13) -> list[str]:
    """Notes one after the other, parted by dots, in as many lines of this width as it takes."""
    rows: list[str] = []
    for note in notes:
        joined = f"{rows[-1]} · {note}" if rows else note
        if rows and text_width(joined, size) <= width:
            rows[-1] = joined
            continue
        rows.append("")
        for word in note.split(" "):
            longer = f"{rows[-1]} {word}".strip()
            if text_width(longer, size) > width and rows[-1]:
                rows.append(word)
            else:
                rows[-1] = longer
    return rows


@dataclass(frozen=True)
class Label:
    """A text (escaped) and the point that it speaks of; `places` are offsets of its middle in pixels, best first."""

    kind: str
    x_ms: int
    y: float
    text: str
    colour: str
    places: tuple[tuple[float, float], ...] = ()
    size: int = SIZE


def around(prefer: float, width: float, height: float) -> tuple[tuple[float, float], ...]:
    """Places for a label on a leader line, nearest first; `prefer` is the angle (0 right, 90 up) that looks best."""
    found = []
    for number, length in enumerate(_LEADER_LENGTHS):
        for step in range(_LEADER_ANGLES):
            angle = 2 * pi * step / _LEADER_ANGLES
            x, y = cos(angle), -sin(angle)
            off = abs((angle * 180 / pi - prefer + 180) % 360 - 180)
            place = (x * (length * 0.6 + width / 2), y * (length * 0.6 + height / 2))
            found.append((number * 45 + off * 0.45, place))
    return tuple(place for _, place in sorted(found))


class Placement:
    """Places labels one after the other; what does not fit is left out (it is still there on hover)."""

    def __init__(self, frame: Frame, axis: TimeAxis, colours: Palette) -> None:
        self._frame, self._axis, self._colours = frame, axis, colours
        self._marks, self._dots, self._lines, self._strokes = NO_BOXES, NO_BOXES, NO_BOXES, NO_BOXES
        self._texts: set[str] = set()
        self._taken = NO_BOXES
        self._leaders: list[npt.NDArray[np.float64]] = []
        self._count: Counter[str] = Counter()
        self.annotations: list[dict[str, Any]] = []
        self.rows: list[float] = []

    def avoid_marks(self, x_ms: npt.ArrayLike, y: npt.ArrayLike, radius: float = _MARK_RADIUS) -> None:
        """No label may cover these points."""
        self._marks = np.concatenate([self._marks, self._around(x_ms, y, radius)])

    def avoid_dots(self, x_ms: npt.ArrayLike, y: npt.ArrayLike) -> None:
        """Labels had better not cover these points."""
        self._dots = np.concatenate([self._dots, self._around(x_ms, y, 4)])

    def avoid_lines(self, outline: Outline, never: bool = False) -> None:
        """Labels had better not (or must `never`) cover these lines, which run along the axes."""
        x_ms = np.array([np.nan if ms is None else ms for ms in outline.x_ms], np.float64)
        up = np.array([np.nan if y is None else y for y in outline.y], np.float64)
        x, y = self._frame.x(x_ms), self._frame.y(up)
        sides = [
            np.minimum(x[1:], x[:-1]),
            np.minimum(y[1:], y[:-1]),
            np.maximum(x[1:], x[:-1]),
            np.maximum(y[1:], y[:-1]),
        ]
        boxes = np.column_stack(sides) if len(x) else NO_BOXES
        boxes = boxes[~np.isnan(boxes).any(axis=1)]
        if never:
            air = np.array([-_STROKE, -_STROKE, _STROKE, _STROKE])
            self._strokes = np.concatenate([self._strokes, boxes + air])
        else:
            self._lines = np.concatenate([self._lines, boxes])

    def _around(self, x_ms: npt.ArrayLike, y: npt.ArrayLike, radius: float) -> Boxes:
        across, up = self._frame.x(x_ms), self._frame.y(y)
        return np.column_stack([across - radius, up - radius, across + radius, up + radius])

    def place(self, label: Label, leader: bool = True) -> bool:
        """Puts the label at the best of its places; False if there is none, or its kind or text had its share."""
        if self.is_full(label.kind) or label.text in self._texts:
            return False
        width, height = text_size(label.text, label.size)
        offsets = np.array(label.places, np.float64)
        point = np.array([float(self._frame.x(label.x_ms)), float(self._frame.y(label.y))])
        middle, half = offsets + point, np.array([width, height]) / 2
        boxes = np.column_stack([middle - half, middle + half])
        around = np.concatenate([boxes.min(axis=0)[:2], boxes.max(axis=0)[2:]])
        marks = _near(self._marks, around)
        allowed = self._inside(boxes) & ~_overlap(boxes, self._taken).any(axis=1)
        allowed &= ~_overlap(boxes, marks).any(axis=1) & ~_overlap(boxes, _near(self._strokes, around)).any(axis=1)
        if self._leaders:
            allowed &= ~_hits(np.array(self._leaders), boxes).any(axis=0)
        cost = np.arange(len(boxes)) * 1.5
        cost += _CROSSED_LINE_COST * _overlap(boxes, _near(self._lines, around)).sum(axis=1)
        cost += _COVERED_DOT_COST * _overlap(boxes, _near(self._dots, around)).sum(axis=1)
        if leader:
            paths = _leaders(point, middle)
            allowed &= ~_hits(paths, self._taken).any(axis=1)
            others = marks[(np.abs((marks[:, :2] + marks[:, 2:]) / 2 - point) >= 1).any(axis=1)]
            if len(others) <= _MOST_CROSSED:
                cost += _CROSSED_MARK_COST * _hits(paths, others).sum(axis=1)
        if not allowed.any():
            return False
        best = int(np.argmin(np.where(allowed, cost, np.inf)))
        self._take(label, boxes[best], offsets[best], point, leader)
        return True

    def is_full(self, kind: str) -> bool:
        """True once a kind had its share."""
        return self._count[kind] >= MOST_OF_A_KIND

    def _inside(self, boxes: Boxes) -> npt.NDArray[np.bool_]:
        fits: npt.NDArray[np.bool_] = (
            (boxes[:, 0] >= 2)
            & (boxes[:, 1] >= 0)
            & (boxes[:, 2] <= self._frame.plot_width - 2)
            & (boxes[:, 3] <= self._frame.plot_height - 2)
        )
        return fits

    def _take(self, label: Label, box: Boxes, offset: Boxes, point: Boxes, leader: bool) -> None:
        self._count[label.kind] += 1
        self._texts.add(label.text)
        self._taken = np.concatenate([self._taken, box[None]])
        if leader:
            self._leaders.append(_leaders(point, (point + offset)[None])[0])
        dx, dy = round(float(offset[0]), 1), round(float(offset[1]), 1)
        moved = {"ax": dx, "ay": dy} if leader else {"xshift": dx, "yshift": -dy}
        self.rows.append(label.y)
        self.annotations.append(
            {
                "x": self._axis.at([label.x_ms])[0],
                "y": label.y,
                "text": label.text,
                "name": label.kind,
                "showarrow": leader,
                "arrowhead": 0,
                "arrowwidth": 1,
                "arrowcolor": label.colour,
                "font": {"color": label.colour, "size": label.size},
                "bgcolor": self._colours.background,
                "borderpad": _PAD - 1,
                "opacity": 0.95,
                "align": "left",
                "xanchor": "center",
                "yanchor": "middle",
                **moved,
            }
        )


def spread(rows: Sequence[int]) -> list[int]:
    """Some of `rows`, evenly spread: as many as it pays to try to label."""
    places = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _MOST_TRIED)).round().astype(int))
    return [rows[place] for place in places.tolist()]


def _leaders(point: Boxes, ends: Boxes) -> npt.NDArray[np.float64]:
    """Points along the line from `point` to each of `ends`."""
    share = np.linspace(0.1, 0.9, _LEADER_SAMPLES)[None, :, None]
    paths: npt.NDArray[np.float64] = point * (1 - share) + ends[:, None, :] * share
    return paths


def _hits(paths: npt.NDArray[np.float64], boxes: Boxes) -> npt.NDArray[np.bool_]:
    """For each path and each box: does the path enter the box?"""
    x, y = paths[:, :, None, 0], paths[:, :, None, 1]
    inside = (x > boxes[:, 0]) & (x < boxes[:, 2]) & (y > boxes[:, 1]) & (y < boxes[:, 3])
    hit: npt.NDArray[np.bool_] = np.any(inside, axis=1)
    return hit


def _near(boxes: Boxes, around: Boxes) -> Boxes:
    """The `boxes` that reach into the box `around`."""
    return boxes[_overlap(around[None], boxes)[0]]


def _overlap(boxes: Boxes, others: Boxes) -> npt.NDArray[np.bool_]:
    """For each of `boxes` and each of `others`: do they overlap?"""
    a, b = boxes[:, None, :], others[None, :, :]
    hit: npt.NDArray[np.bool_] = (
        (a[..., 0] < b[..., 2]) & (b[..., 0] < a[..., 2]) & (a[..., 1] < b[..., 3]) & (b[..., 1] < a[..., 3])
    )
    return hit
