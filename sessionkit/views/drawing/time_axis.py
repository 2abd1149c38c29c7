"""Axes: of lengths of time, in round units; of event time, even in elapsed time, told in local times."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sessionkit.base.arrays import Longs
from sessionkit.base.durations import DAY, HOUR, MINUTE, SECOND, show_duration
from sessionkit.base.moments import SHORT_HISTORY_MS, ClockChanges, clock_changes, show_time
from sessionkit.base.text import escape_label
from sessionkit.trace.trace import Trace
from sessionkit.views.drawing.measured_text import text_width
from sessionkit.views.drawing.palettes import Palette
from sessionkit.views.words import clock as spoken_clock
from sessionkit.views.words import zone_named

ROUND_MS = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(count * SECOND for count in (1, 2, 5, 10, 15, 30)),
    *(count * MINUTE for count in (1, 2, 5, 10, 15, 30)),
    *(count * HOUR for count in (1, 2, 3, 6, 12)),
    *(count * DAY for count in (1, 2, 3, 5, 7, 14, 30, 60, 90, 180, 365, 730, 1_825, 3_650)),
)
MOST_TICKS = 9
SHORT_PART = 10  # a linear axis would show most lengths in less than this part of it


def takes_logarithm(lengths_ms: Longs, counts: Longs | None = None) -> bool:
    """Whether nine of ten lengths lie in the first tenth of what is between the smallest and the largest.

    `counts` says how many times each is there; once, without it.
    """
    order = np.argsort(lengths_ms, kind="stable")
    order = order[lengths_ms[order] > 0]
    if not len(order):
        return False
    low, high = int(lengths_ms[order[0]]), int(lengths_ms[order[-1]])
    upto = np.cumsum(np.ones(len(order), np.int64) if counts is None else counts[order])
    most = int(lengths_ms[order[np.searchsorted(upto, int(0.9 * (upto[-1] - 1)), side="right")]])
    return high >= 2 * low and (most - low) * SHORT_PART < high - low


def lengths_axis(low_ms: float, high_ms: float, *, logarithmic: bool = False, room: int = 0) -> dict[str, Any]:
    """Settings of an axis from one length (above 0 where it is logarithmic) to another, with places in milliseconds.

    Its ticks fit into the pixels of `room`, if these are known.
    """
    place = _far_apart if logarithmic else _evenly
    ticks = place(low_ms, high_ms, MOST_TICKS)
    for most in range(MOST_TICKS, 1, -1):
        if room and max((text_width(show_duration(ms), 13) for ms in ticks), default=0) > room / (len(ticks) + 0.5) - 6:
            ticks = place(low_ms, high_ms, most) or ticks
    ends = [math.log10(low_ms), math.log10(high_ms)] if logarithmic else [low_ms, high_ms]
    named = {"tickmode": "array", "tickvals": ticks, "ticktext": [show_duration(ms) for ms in ticks]}
    return {"type": "log" if logarithmic else "linear", "range": ends, **named}


def _evenly(low_ms: float, high_ms: float, most: int) -> list[int]:
    span = max(high_ms - low_ms, 1)
    step = next((step for step in ROUND_MS if span / step <= most), 0)
    step = step or math.ceil(span / most / (10 * 365 * DAY)) * 10 * 365 * DAY
    return list(range(math.ceil(max(low_ms, 0) / step) * step, math.floor(high_ms) + 1, step))


def _far_apart(low_ms: float, high_ms: float, most: int) -> list[int]:
    least = (math.log10(high_ms) - math.log10(low_ms)) / most
    found: list[int] = []
    for ms in (*ROUND_MS, *(10**power * ROUND_MS[-1] for power in range(1, 8))):
        if low_ms <= ms <= high_ms and (not found or math.log10(ms / found[-1]) >= least):
            found.append(ms)
    return found


Coordinates = list[float | int | None]

_WHOLE_MINUTE = re.compile(r"(\d\d:\d\d):00(?=$|[+-])")
_MOST_AHEAD_MS = 366 * DAY  # of what a picture shows behind the newest record
LAST_DATE_MS = 253_402_300_799_999  # the end of the year 9999, where plotly's dates end
# elapsed times up to this many ms are counted in this unit: two or more ticks, few digits
_ELAPSED = (
    (5_000, 1, "ms"),
    (300_000, 1_000, "seconds"),
    (6 * HOUR, MINUTE, "minutes"),
    (4 * DAY, HOUR, "hours"),
    (SHORT_HISTORY_MS, DAY, "days"),
)
_STEPS = (*(each for each in ROUND_MS if each < DAY), *(days * DAY for days in (1, 2, 7, 14)))
_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120)
_MOST_TICKS = 6  # with their offsets, in a picture of any width
_TICK_ROOM, _DATE_ROOM, _OFFSET_ROOM = 80, 96, 88  # pixels of one
_NARROW = 400  # pixels: a plot in which ticks take more room than is usual
_CLOSEST = 0.7  # of a step between two ticks, for both to be named
_ZOOMED = ((DAY, "%Y-%m-%d<br>%H:%M"), (MINUTE, "%H:%M"), (SECOND, "%H:%M:%S"), (None, "%H:%M:%S.%L"))
# times of day, with the date below the first and where it changes; plotly's own form is wider than a tick
_CLOCKS = ((None, 999, "%H:%M:%S.%L"), (1_000, MINUTE - 1, "%H:%M:%S"), (MINUTE, DAY - 1, "%H:%M"))
_STOPS = [
    *({"dtickrange": [low, high], "value": f"{form}\n%Y-%m-%d"} for low, high, form in _CLOCKS),
    {"dtickrange": ["M1", "M11"], "value": "%b\n%Y"},
]
DATES = {"type": "date", "tickangle": 0, "tickformatstops": _STOPS}
_MOST_NAMES, _NAME_PIXELS = 4, 116  # of lines
_TIME = re.compile(r"(\d\d:\d\d)(:\d\d)(\.\d+)?([+-].+)?")


@lru_cache(maxsize=20_000)  # at each step of a slider the same times are shown again
def to_the_minute(shown: str) -> str:
    """The text of a time without its seconds, where they are 0."""
    return _WHOLE_MINUTE.sub(r"\1", shown)


@dataclass(frozen=True)
class TimeAxis:
    """How event times (ms) become positions and words: dates, or time elapsed for data near 0."""

    unit_ms: int
    is_date: bool
    title: str
    show: Callable[[int], str]
    clock: ClockChanges | None = None  # of the zone that dates are told in
    timezone: str = "UTC"
    shift_ms: int = 0  # from UTC to what is drawn: the zone's offset where the picture begins

    def at(self, times_ms: Iterable[int | None]) -> Coordinates:
        """Positions on the axis; None parts one line or polygon from the next."""
        if self.unit_ms > 1:
            return [None if ms is None else ms / self.unit_ms for ms in times_ms]
        return [None if ms is None else ms + self.shift_ms for ms in times_ms] if self.shift_ms else list(times_ms)

    def over(self, low_ms: int) -> TimeAxis:
        """The axis of a picture that begins here: even in elapsed time, in the offset of its beginning."""
        if self.clock is None:
            return self
        return replace(self, shift_ms=int(self.clock.local(low_ms)) - low_ms)

    def ms_at(self, place: float | str) -> int:
        """The time at a position, as plotly names it: a number, or a date as text."""
        if isinstance(place, str):
            place = (dt.datetime.fromisoformat(place) - dt.datetime(1970, 1, 1)) / dt.timedelta(milliseconds=1)
        return round(place * self.unit_ms) - self.shift_ms

    def options(self, low_ms: int, high_ms: int, room: int | None) -> dict[str, Any]:
        """Settings of the x axis that shows this span and nothing beyond it, in so many pixels, if they are known."""
        low, high = self.at([low_ms, high_ms])
        kind = DATES if self.is_date else {"type": "linear"}
        is_short = self.is_date and high_ms - low_ms < MOST_TICKS * SECOND
        most = most_dates(room) if is_short or room is None else max(room // _DATE_ROOM, 2)
        few = {"nticks": most} if is_short or (self.is_date and room) else {}
        return {**kind, **few, "range": [low, high], "minallowed": low, "maxallowed": high, "separatethousands": True}


def most_dates(room: int | None) -> int:
    """How many ticks with dates fit into so many pixels, or into any room."""
    return _MOST_TICKS if room is None else min(max(room // _TICK_ROOM, 2), _MOST_TICKS)


def time_axis(trace: Trace, window: Any, clock: str | None) -> TimeAxis:
    """The axis for the event times of a run, in its zone; `clock` is another name for that."""
    named = clock or zone_named(trace)
    name = f"event time, {escape_label(named)}" if named else "event time"
    latest_ms, show = int(trace.last_stream_time_ms.max(initial=0)), spoken_clock(trace)
    if latest_ms > LAST_DATE_MS:
        return TimeAxis(1, False, f"{name}, ms since 1970", show)
    if latest_ms >= SHORT_HISTORY_MS:
        zone = trace.batch.timezone
        changes = clock_changes(zone, latest_ms + _MOST_AHEAD_MS)
        return TimeAxis(1, True, name, lambda ms: to_the_minute(show(ms)), changes, zone)
    longest_ms = min(max(latest_ms, window.reach_ms), SHORT_HISTORY_MS)
    unit_ms, unit = next((unit_ms, unit) for most_ms, unit_ms, unit in _ELAPSED if longest_ms <= most_ms)
    return TimeAxis(unit_ms, False, f"event time, {unit}", show)


def clock_ticks(clock: ClockChanges, timezone: str, low_ms: int, high_ms: int, most: int) -> list[tuple[int, str]]:
    """Round local times in a span, as the page's `ticks` has them: what clocks show twice comes twice, with offsets."""
    step = next((each for each in _STEPS if high_ms - low_ms <= most * each), None)
    if step is not None and step < DAY:
        return [
            (local - ahead, _tick_text(local - ahead, step, timezone))
            for start, end, ahead in clock.pieces(low_ms, high_ms)
            for local in range(-(-(start + ahead) // step) * step, end + ahead + 1, step)
        ]
    days, letters = _days(int(clock.local(low_ms)), int(clock.local(high_ms)), most, step)
    named = zip(clock.first_at(days.astype(np.int64)).tolist(), days.tolist(), strict=True)
    return [(ms, str(day)[:letters]) for ms, day in named if low_ms <= ms <= high_ms]


def _days(low: int, high: int, most: int, step: int | None) -> tuple[npt.NDArray[np.datetime64], int]:
    """Midnights in local time, and how many letters of their date are written."""
    if step is not None:
        return np.arange(low // step * step, high + 1, step).astype("datetime64[ms]"), len("2024-10-27")
    least = math.ceil((high - low) / (30.5 * DAY) / most)
    every = next((count for count in _MONTHS if count >= least), 120 * math.ceil(least / 120))
    months = np.array([low, high]).astype("datetime64[ms]").astype("datetime64[M]").astype(np.int64)
    starts = np.arange(months[0] // every * every, months[1] + 1, every).astype("datetime64[M]")
    return starts.astype("datetime64[ms]"), len("2024" if every >= 12 else "2024-10")


def _tick_text(ms: int, step: int, timezone: str) -> str:
    date, _, time = show_time(ms, timezone).partition(" ")
    if time == "00:00:00":
        return date
    found = _TIME.fullmatch(time)
    assert found is not None  # what show_time gives
    minutes, seconds, parts, offset = found.groups(default="")
    finer = "" if step % MINUTE == 0 else seconds if step % SECOND == 0 else seconds + (parts or ".000")
    return f"{minutes}{finer}{offset}"


class Changes(NamedTuple):
    """What a picture has where clocks are changed in it: lines, as plotly.js takes them, and a part of its layout."""

    lines: list[dict[str, Any]]
    layout: dict[str, dict[str, Any]]

    def added_to(self, layout: dict[str, Any]) -> dict[str, Any]:
        return {**layout, **{name: {**layout.get(name, {}), **part} for name, part in self.layout.items()}}


def change_of_clocks(
    axis: TimeAxis, low_ms: int, high_ms: int, room: int, colours: Palette, *, is_fluid: bool
) -> Changes:
    """Lines and ticks of a picture of a span in which clocks are changed; nothing where they are not.

    The picture has so many pixels, or as many at least if it is fluid.

    plotly knows no zones. So ticks are ours; zoomed in, its own show above them, which name the offset they are in.
    """
    pieces = [] if axis.clock is None else axis.clock.pieces(low_ms, high_ms)
    is_narrow = room < _NARROW and not is_fluid
    if axis.clock is None or (len(pieces) < 2 and not is_narrow):
        return Changes([], {})
    shift, most = axis.shift_ms, most_dates(None if is_fluid else room)
    least = (high_ms - low_ms) / most
    closest = max((high_ms - low_ms) * _OFFSET_ROOM / room, _CLOSEST * least)
    for many in (1, 2, 4):
        found = clock_ticks(axis.clock, axis.timezone, low_ms, high_ms, many * most)
        ticks = _named(found, closest, axis.timezone)
        if len(ticks) > 1:
            break
    own = {"tickmode": "array", "tickvals": [ms + shift for ms, _ in ticks], "ticktext": [text for _, text in ticks]}
    if len(pieces) < 2:
        return Changes([], {"xaxis": own})  # plotly's own are too many, or none
    x, y, names, sides = [], [], [], []
    for (_, _, before), (at, _, after) in pairwise(pieces):
        x += [at + shift, at + shift, None]
        y += [1, 0, None]
        how = f"clocks {'back' if after < before else 'forward'} {show_duration(abs(after - before))}"
        names += [f" {how} " if len(pieces) <= _MOST_NAMES else "", "", ""]
        sides += [f"top {'left' if at - low_ms > (1 - _NAME_PIXELS / room) * (high_ms - low_ms) else 'right'}"] * 3
    place = {"type": "scatter", "x": x, "y": y, "xaxis": "x2", "yaxis": "y2", "mode": "lines+text", "text": names}
    words = {"textposition": sides, "textfont": {"size": 11, "color": colours.mute}, "hoverinfo": "skip"}
    look = {"line": {"width": 1, "color": colours.mute}, "showlegend": False, "cliponaxis": False}
    line = {"name": "change of clocks", **place, **words, **look}
    ahead = f"UTC{'-' if shift < 0 else '+'}{abs(shift) // HOUR:02}:{abs(shift) % HOUR // MINUTE:02}"
    stops = [{"dtickrange": [least / (8 if is_narrow else 2), None], "value": " "}]
    stops += [{"dtickrange": [step, None], "value": f"{form} {ahead}"} for step, form in _ZOOMED]
    zoomed = {"overlaying": "x", "matches": "x", "type": "date", "showgrid": False, "zeroline": False, "ticks": ""}
    zoomed |= {"tickformatstops": stops, "tickmode": "auto", "nticks": _MOST_TICKS, "ticklabelposition": "inside"}
    zoomed["tickfont"] = {"size": 11, "color": colours.mute}
    hidden = {"overlaying": "y", "range": [0, 1], "fixedrange": True, "visible": False}
    return Changes([line], {"xaxis": own, "xaxis2": zoomed, "yaxis2": hidden})


def _named(ticks: list[tuple[int, str]], closest: float, timezone: str) -> list[tuple[int, str]]:
    """Ticks of which none covers another, with the date below the first and where it changes."""
    found: list[tuple[int, str]] = []
    last = ""
    for ms, text in ticks:
        if found and ms - found[-1][0] < closest:
            continue
        date = show_time(ms, timezone)[:10]
        found.append((ms, f"{text}<br>{date}" if ":" in text and date != last else text))
        last = date
    return found
