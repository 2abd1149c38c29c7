"""What the marks of an emission view are called, where there is room for words, and what those are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from sessionkit.base.text import escape_label, plural
from sessionkit.errors import shorten
from sessionkit.views.drawing.grammar import LEAST_WIDTH, Frame, Legend
from sessionkit.views.drawing.measured_text import Heading, text_width
from sessionkit.views.drawing.palettes import Palette
from sessionkit.views.emissions.part import Part, left_out, short_clock, wait_in_words
from sessionkit.views.words import lower_first

LANE, LANE_WITH_SPANS, LEAST_HEIGHT = 44, 56, 132
BODY = 0.3  # half the height of a window's span
SMALL = 11
RIGHT = 26
MOST_LETTERS = 14  # of a value beside its mark
NAMED = 2  # aggregations whose values stand beside a mark; the others are shown on hover


class Kind(NamedTuple):
    """A kind of mark: what it is called, its symbol and size, and the name of its colour."""

    name: str
    symbol: str
    size: int
    colour: str


KINDS = {
    "update": Kind("update", "circle", 10, "record"),
    "tombstone": Kind("retraction: taken back (tombstone)", "x-thin", 9, "bridge"),
    "final": Kind("final result", "square", 11, "ink"),
    "pending": Kind("pending: nothing has closed it", "hourglass", 12, "line"),
}


class Scene:
    """A part with what it takes to draw it: colours, the frame, and how times are said."""

    def __init__(self, part: Part, colours: Palette) -> None:
        self.part, self.emissions, self.colours = part, part.emissions, colours
        self.say, self.date = short_clock(part.emissions, part)
        notes = [escape_label(line, 400) for line in self._said()]
        self.heading = Heading.of(escape_label(part.emissions.title, 160), [], notes, LEAST_WIDTH)
        self.labels = {lane: self.bounds(lane) for lane in part.lanes}
        left = 40 + max([text_width(label, 12) for label in self.labels.values()], default=40)
        height = max((LANE if part.is_by_arrival else LANE_WITH_SPANS) * len(part.lanes), LEAST_HEIGHT)
        waiting = {int(self.emissions.lane[row]) for row in part.marked("pending")}
        self.waits = {lane: wait_in_words(part, lane, self.say) for lane in waiting}
        lines = [line for text in self.waits.values() for line in text.split("<br>")]
        right = RIGHT + int(max((text_width(line, SMALL) for line in lines), default=0))
        top, bottom = self.heading.height + 14, 0
        y_range = (-0.7, len(part.lanes) - 0.3)
        self.frame = Frame(LEAST_WIDTH, height + top + bottom, int(left), right, top, bottom, (0, 1), y_range)
        low, high = part.span if part.lanes else (0.0, 1.0)
        self.per_pixel = (high - low) / self.frame.plot_width
        self.usual_per_pixel = (high - low) / self.frame.usual.plot_width

    def frame_with(self, legend: Legend) -> Frame:
        """The frame, with room for a legend."""
        bottom = legend.height(self.frame.plot_width) + 14
        return replace(self.frame, height=self.frame.height + bottom, bottom=bottom)

    def bounds(self, lane: int) -> str:
        """A window by its bounds."""
        start, end = (self.say(ms) for ms in self.emissions.lanes[lane][:2])
        day = end.split(" ")[0]
        if self.part.axis.is_date and " " in start and start.split(" ")[0] == day:
            end = end.split(" ")[1]
        return start if self.emissions.lanes[lane].start_ms == self.emissions.lanes[lane].end_ms else f"{start} – {end}"

    def at(self, positions: Sequence[float | None]) -> list[Any]:
        """Positions as coordinates of the axis."""
        if self.part.is_by_arrival:
            return list(positions)
        return self.part.axis.at([None if x is None else round(x) for x in positions])

    def values(self, row: int, names: Sequence[str], length: int) -> list[str]:
        """The values of a row, as short text; not escaped."""
        return [_short(self.emissions.columns[name][row], length) for name in names]

    def _said(self) -> list[str]:
        found, part = self.emissions, self.part
        said = [
            *([self.date] if self.date else []),
            *(lower_first(line.removesuffix(".")) for line in found.words(self.say)),
        ]
        names = found.names[:NAMED]
        if len(part.rows):
            named = " · ".join(shorten(name, 30) for name in names)
            rest = ", the others on hover" if len(found.names) > NAMED else ""
            said.append(f"above a mark: {named}{rest}")
        hidden = len(part.rows) - len({(found.lane[r], found.what[r], self.mark_x(r)) for r in part.rows.tolist()})
        if hidden:
            are = plural(hidden, "mark is", "marks are")
            said.append(f"{are} hidden by others of the same moment: over='arrival' separates them")
        if any(part.closes_beyond(int(found.lane[row])) for row in part.marked("pending")):
            said.append("→ closes after the end of the chart")
        return [*said, *left_out(part)]

    def value_shift(self, what: str) -> float:
        """How many pixels above its lane a value stands: over a window's span, if there is one around the mark."""
        if self.part.is_by_arrival or what != "update":
            return 15
        low, high = self.frame.y_range
        return round(BODY * self.frame.plot_height / (high - low) + 9)

    def mark_x(self, row: int) -> float:
        """Where the mark of a row stands."""
        if self.emissions.what[row] == "pending":
            return self.part.pending_x(int(self.emissions.lane[row]))
        return float(self.part.x(int(self.emissions.at[row])))


def hover(scene: Scene, row: int) -> str:
    """What a mark says of its row, escaped."""
    found, lane = scene.emissions, int(scene.emissions.lane[row])
    what, columns = found.what[row], found.columns
    start, end = (scene.say(int(columns[name][row])) for name in ("window_start_ms", "window_end_ms"))
    said = [f"<b>{KINDS[what].name}</b>", f"{found.windows.noun} {start} to {end}"]
    if what != "tombstone":
        values = zip(found.names, scene.values(row, found.names, 60), strict=True)
        said += [f"{escape_label(name, 30)}: {escape_label(value)}" for name, value in values]
    now = scene.say(int(columns["stream_time_ms"][row]))
    if what != "pending":
        return "<br>".join([*said, f"after record {columns['offset'][row]}, stream time {now}"])
    if not found.windows.is_ever_closed:
        return "<br>".join([*said, "it never closes"])
    closes = found.closes_in_words(found.closes_at_ms(found.lanes[lane]), scene.say)
    return "<br>".join([*said, f"waits for stream time: it is {now},", f"this closes {closes}"])


def _short(value: Any, length: int) -> str:
    value = value.as_py() if hasattr(value, "as_py") else value
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.2f}"
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return shorten(f"{value:,}" if is_number else value, length)


def value_notes(scene: Scene) -> list[dict[str, Any]]:
    """Values over marks where there is room; the last of a lane first."""
    part, colours, notes = scene.part, scene.colours, []
    for lane in part.lanes:
        left = np.inf
        for row in reversed(part.rows[scene.emissions.lane[part.rows] == lane].tolist()):
            what = scene.emissions.what[row]
            if what == "tombstone" or (what == "pending" and scene.emissions.strategy == "on_window_update"):
                continue
            so_far = "so far " if what == "pending" else ""
            values = scene.values(row, scene.emissions.names[:NAMED], MOST_LETTERS)
            text = so_far + " · ".join(escape_label(value) for value in values)
            x, half = scene.mark_x(row), text_width(text, SMALL) / 2 + 3
            pixel = (x - part.span[0]) / scene.per_pixel
            moved = max(pixel + half + 4 - scene.frame.plot_width, 0.0)  # what waits is told to the right of the plot
            pixel -= moved
            if pixel + half > left or pixel - half < 0:
                continue
            left = pixel - half
            colour = colours.mute if so_far else colours.ink
            notes.append(
                _note(scene.at([x])[0], part.y(lane), text, colour)
                | {"yshift": scene.value_shift(what), "xshift": -round(moved)}
            )
    return notes


def wait_notes(scene: Scene) -> list[dict[str, Any]]:
    """To the right of each pending window: what it waits for; and where stream time stands now."""
    part, colours, notes = scene.part, scene.colours, []
    for row in part.marked("pending").tolist():
        lane = int(scene.emissions.lane[row])
        side = {"xref": "paper", "xanchor": "left", "xshift": 8, "align": "left"}
        notes.append(_note(1, part.y(lane), scene.waits[lane], colours.ink) | side)
    if part.is_pending and not part.is_by_arrival:
        text = f"now: stream time is {scene.say(scene.emissions.now_ms)}"
        top = {"yref": "paper", "yanchor": "bottom", "yshift": 2}
        notes.append(_note(scene.at([part.now_x])[0], 1, text, colours.mute) | top)
    return notes


def _note(x: Any, y: float, text: str, colour: str) -> dict[str, Any]:
    return {"x": x, "y": y, "text": text, "showarrow": False, "font": {"size": SMALL, "color": colour}}
