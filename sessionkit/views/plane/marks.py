"""What planes of every kind of window draw and say: territory, clocks, caps, other keys; the title, labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from sessionkit.base.arrays import Floats, Longs
from sessionkit.base.decisions import IDLE, LATE, TICK
from sessionkit.base.durations import about
from sessionkit.base.text import ALL, OF_ALL, escape_label, plural
from sessionkit.views.drawing.grammar import Drawn, Frame, Outline, lines, marks, rim_width, unseen
from sessionkit.views.drawing.labels import Label, Placement, around, spread
from sessionkit.views.drawing.measured_text import Heading, text_size
from sessionkit.views.scenes.key_rows import Cap, partition_counts
from sessionkit.views.scenes.scene import MOST_NAMED, Plane
from sessionkit.views.words import closer_words, without_place

THIN = {"width": 1}
_RIM_ROWS = 70  # of a plane, each as high as a mark
NAME_SIZE = 11  # of labels of records
MOST_TICKS, LEAST_TICKS, TICK_ROOM = 11, 3, 16  # of the axis of offsets; pixels between two


class Kind(NamedTuple):
    """Records of the key that did the same: how they are named, and how they look."""

    records: Longs
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
    ticks = {"tickmode": "array", "tickvals": places, "ticktext": [f"{word:,}" for word in words]}
    return {"range": [low, high], "minallowed": low, "maxallowed": high, **ticks}


def _ticks(offset: Longs, frame: Frame) -> tuple[list[float], list[int]]:
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
        behind.add([beyond, *kept, beyond, beyond], [heights[0], *heights, heights[-1], heights[0]])
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
    """From each drop to the end of what it came too late for, and from there (dotted) to the close line; of many that
    follow closely, one area."""
    drop = {"width": 1.2, "color": scene.colours.drop}
    area = {"fillcolor": scene.colours.crowd, "legendrank": 5}
    away, missing = tethers
    return [
        lines(scene.axis, scene.bands, "many dropped: up to the close line", {"width": 0}, **area),
        lines(scene.axis, away, f"to the end of the {scene.window.noun} it touches", drop, showlegend=False),
        lines(scene.axis, missing, "missing grace", {**drop, "width": 2.6, "dash": "dot"}, showlegend=False),
    ]


def mark_size(scene: Plane) -> int:
    """Pixels of a record's mark: fewer where there are many rows."""
    return 11 if len(scene.rows) <= 40 else 9 if len(scene.rows) <= 80 else 8


def points(scene: Plane, records: Longs, name: str, rank: int, words: list[str], **marker: Any) -> Drawn:
    """A mark for each of these records, with a rim, if it can be told apart, unless it has its own."""
    at_ms, y = scene.at_ms(records), scene.y(records)
    rows = np.array(y) * _RIM_ROWS // len(scene.rows)
    width = rim_width(1.6 if mark_size(scene) > 9 else 1.1, at_ms, scene.x_range_ms, rows)
    marker["line"] = {"width": width, "color": scene.colours.background, **marker.get("line", {})}
    return marks(scene.axis, at_ms, y, words, name, len(scene.rows), marker=marker, legendrank=rank)


def own_points(scene: Plane, kinds: Sequence[Kind], words: Callable[[Longs], list[str]]) -> list[Drawn]:
    """Other keys, then the key's own records by what they did, then the middles of caps (for hover only)."""
    found, size = [other_keys(scene)], mark_size(scene)
    for records, name, rank, symbol, larger, colour, line in kinds:
        here = scene.shown(records)
        marker = {"size": size + larger, "symbol": symbol, "color": getattr(scene.colours, colour), "line": line or {}}
        found.append(points(scene, here, name, rank, words(here), **marker))
    return [*found, cap_middles(scene)]


def far_drops(scene: Plane) -> Kind:
    """Drops whose time is far left of the picture, as arrows at its edge."""
    return Kind(scene.far, "◂ dropped, from long before the picture", 4, "triangle-left", 4, "drop")


def drop_words(scene: Plane, row: int, words: str) -> str:
    """The label of a drop; at the edge with its event time."""
    if row not in scene.far:
        return f"<b>dropped</b>{words}"
    return f"<b>◂ dropped</b><br>{scene.axis.show(int(scene.trace.batch.timestamp_ms[row]))}<br>{words.strip(' ·:')}"


def other_keys(scene: Plane) -> Drawn:
    """Small dots for the records of other keys."""
    batch, trace = scene.trace.batch, scene.trace
    decision, timed = trace.decision[scene.rows], batch.timestamp_ms[scene.rows] >= 0
    is_seen = (decision <= LATE) | ((decision == TICK) & timed)
    other = scene.rows[(batch.key[scene.rows] != scene.history.key) & is_seen]
    dots = {"size": 6 if mark_size(scene) > 9 else 4, "color": scene.colours.other, "line": {"width": 0}}
    keys = [batch.key_at(row) for row in other.tolist()]
    names = ["none" if key is None else escape_label(key) for key in keys]
    told = zip(names, batch.offset[other].tolist(), batch.timestamp_ms[other].tolist(), strict=True)
    words = [f"offset {at:,}: key {name}<br>{scene.axis.show(ms)}" for name, at, ms in told]
    return points(scene, other, "other keys move stream time, too", 70, words, **dots)


def cap_middles(scene: Plane) -> Drawn:
    """Points in the caps that say on hover what was closed."""
    middles = np.array([(cap.start_ms + cap.end_ms) // 2 for cap in scene.caps], np.int64)
    words = [
        f"<b>closed</b> {closer_words(scene.trace, cap.at)}<br>"
        f"{scene.axis.show(cap.start_ms)} to {scene.axis.show(cap.end_ms)}<br>{scene.cap_words(cap)}"
        for cap in scene.caps
    ]
    height = scene.y(np.array([cap.at for cap in scene.caps], np.int64))
    return unseen(scene.axis, middles, height, words, "closure", len(scene.rows))


# ---- words


def plane_title(scene: Plane, key: object) -> str:
    """The key, and how many of its records were kept."""
    trace, own = scene.trace, scene.history.own
    kept = int(trace.accepted[own].sum())
    name = "Key (empty)" if key == "" else f"Key “{escape_label(key)}”" if key != OF_ALL else ALL.capitalize()
    return f"{name}: {plural(kept, 'record')} kept, {len(own) - kept:,} dropped"


def plane_heading(scene: Plane, key: object) -> Heading:
    """The title; the choices, how to read the chart, and what it leaves out."""
    windows = scene.window.in_words().replace(", ", " · ")
    said = [f"{windows} · read upwards: each row is one arriving record; sideways is when it happened"]
    return Heading.of(plane_title(scene, key), said, [*remarks(scene), *_left_out(scene)], scene.width)


def remarks(scene: Plane) -> list[str]:
    """That nothing was dropped, or nothing here, and what there is to see instead; that there are fewer records than
    were asked for."""
    history, noun, asked, have = scene.history, scene.window.noun, scene.last or 0, len(scene.history.own)
    if not len(scene.rows):
        return []
    fewer = f"the key has {plural(have, 'record')} here, and all are shown"
    said = [f"{fewer} (up to an offset: until_offset={asked})"] if asked > have else []
    if len(scene.late):
        return said
    events = {kind: len(scene.shown(records)) for kind, records in history.events.items()}
    seen = [plural(len({life.window for life in scene.lives}), noun)]
    seen += [plural(count, "merge") for count in [events.get("merges", 0)] if count]
    seen += [f"{plural(count, 'record')} late but kept" for count in [events["late_but_kept"]] if count]
    if len(history.drops):
        some, one = f"none of its {len(history.drops):,} dropped records is", "its dropped record is not"
        where = f"{some if len(history.drops) > 1 else one} in this part"
    else:
        where = "none of its records was dropped"
    return [*said, f"{where}: the picture shows {', '.join(seen)}"]


def _left_out(scene: Plane) -> list[str]:
    """What is to be said of what is shown, and of what is not."""
    trace, rows, history = scene.trace, scene.rows, scene.history
    notes = scene.remarks
    everything = history.of_partition
    if not len(rows):
        return ["no record arrived in this partition during the run"]
    if len(rows) < len(everything):
        offset = trace.batch.offset
        shown, whole = (f"{offset[each[0]]:,} to {offset[each[-1]]:,}" for each in (rows, everything))
        notes.append(f"shown: offsets {shown} of {whole} (last=, from_offset= show others)")
    idle = trace.decision[rows] == IDLE
    left_out = trace.batch.count_after(int(rows[0]), int(rows[-1])) + int(not idle[0]) - int((~idle).sum())
    if left_out:
        notes.append(f"without {plural(left_out, 'record')} of other keys that moved little or nothing")
    if idle.any():
        told = plural(int(idle.sum()), "row is no record", "rows are no records")
        notes.append(f"{told}: the partition was idle and followed the others, a rule that Kafka does not have")
    if any(life.steps[0][0] < 0 for life in scene.lives):
        notes.append("what starts at the lower edge began earlier")
    counts = partition_counts(trace, history.key)
    others = np.flatnonzero(counts)
    others = others[others != history.partition]
    if len(trace.batch.partitions) > 1:
        here = f"partition {trace.batch.partitions[history.partition]}"
        if len(others):
            where = ", ".join(str(trace.batch.partitions[p]) for p in others[:5]) + (", …" if len(others) > 5 else "")
            here += f" only: the key is also in {where} (partition= shows it)"
        notes.append(here)
    return notes + without_place(trace.decision[history.own])


class Spoken(NamedTuple):
    """Records that get labels: of which kind, in which direction (an angle) those look best, and their colour."""

    kind: str
    records: Longs
    prefer: float
    colour: str


def labels(
    scene: Plane,
    frame: Frame,
    spoken: Iterable[Spoken],
    words: Callable[[str, int], str],
    *,
    fixed: Iterable[Outline],
    crossed: Iterable[Outline],
) -> Placement:
    """Labels beside the marks: records in this order, what was closed or is open, what was kept though late.

    They keep away from records, from the lines of every plane and `fixed` ones always, from `crossed` ones if they can.
    """
    placement = Placement(frame, scene.axis, scene.colours)
    batch = scene.trace.batch
    own, other = scene.shown(scene.history.timed), scene.rows[batch.key[scene.rows] != scene.history.key]
    placement.avoid_points(scene.at_ms(own), scene.y(own), never=True)
    placement.avoid_points(batch.timestamp_ms[other], scene.y(other))
    for outline in (*fixed, scene.cap_lines, scene.close_line, scene.stream_line):
        placement.avoid_lines(outline, never=True)
    for outline in crossed:
        placement.avoid_lines(outline)
    for crowd in sorted(scene.crowds, key=len, reverse=True):
        _label_crowd(scene, placement, crowd)
    for each in spoken:
        _label_records(scene, placement, each, words)
    _label_caps(scene, frame, placement)
    saved = Spoken("late but kept", scene.shown(scene.history.late_but_kept), 130, scene.colours.saved_words)
    _label_records(scene, placement, saved, lambda _, row: kept_though_late(scene, row))
    for row in own[scene.trace.accepted[own]].tolist() if len(own) <= MOST_NAMED else []:
        if label := escape_label(batch.labels.words(row)):
            away, at = text_size(label, NAME_SIZE)[0] / 2 + 9, int(batch.timestamp_ms[row])
            places = np.array([(side * (away + more), 0) for more in (0, 15) for side in (1, -1)])
            named = Label(f"label of {row}", at, scene.y_of(row), label, scene.colours.mute, places, NAME_SIZE)
            placement.place(named, leader=False)
    return placement


def kept_though_late(scene: Plane, row: int) -> str:
    """A late record that counts."""
    behind = int(scene.trace.close_time_ms[row] - scene.trace.batch.timestamp_ms[row])
    return f"<b>late but kept</b>: {about(behind)} behind<br>the close line; its {scene.window.noun} is open"


def _label_records(scene: Plane, placement: Placement, spoken: Spoken, words: Callable[[str, int], str]) -> None:
    kind, records, prefer, colour = spoken
    for row in spread(records.tolist()):
        if placement.is_full(kind):
            return
        said, when = words(kind, row), int(scene.at_ms(np.array([row]))[0])
        few = said.split("<br>")[: 2 if row in scene.far else 1]  # where all of it has no room
        for text in (said, "<br>".join(few)):
            wide, high = text_size(text)
            places = around(prefer, wide, high)
            if row in scene.far:  # above or below it: to its left there is nothing
                places = np.array([(wide / 2 - 4, sign * down) for down in range(30, 300, 15) for sign in (-1, 1)])
            if placement.place(Label(kind, when, scene.y_of(row), text, colour, places)):
                break


def _label_crowd(scene: Plane, placement: Placement, crowd: Longs) -> None:
    """How many a crowd's area stands for, in its middle or near it."""
    behind = scene.trace.close_time_ms[crowd] - scene.trace.batch.timestamp_ms[crowd]
    dropped = int(np.isin(crowd, scene.drops).sum())
    partly = "" if dropped == len(crowd) else f" and {len(crowd) - dropped:,} too late for some windows"
    span = " to ".join(dict.fromkeys(about(int(each)) for each in (behind.min(), behind.max())))
    text = f"<b>{plural(dropped, 'record')} dropped{partly}</b><br>{span} behind the line"
    middle = crowd[len(crowd) // 2]
    x_ms = int(scene.at_ms(crowd)[len(crowd) // 2] + scene.trace.close_time_ms[middle]) // 2
    y, in_it = scene.y_of(int(middle)), np.zeros((1, 2))
    for said in (text, text.partition("<br>")[0]):
        wide, high = text_size(said)
        above = [(across, -up) for up in range(150, 420, 15) for across in (0, wide / 2 - 30)]
        places = np.vstack([around(270, wide, high), above])
        label = Label("crowd", x_ms, y, said, scene.colours.drop, places)
        if placement.place(replace(label, places=in_it), leader=False) or placement.place(label):
            return


def _label_caps(scene: Plane, frame: Frame, placement: Placement) -> None:
    """The size above (or below) each cap, fullest first, and "still open" above what nothing has closed."""
    for life in scene.lives:
        if life.how in ("open", "cut"):
            _, start_ms, end_ms = life.steps[-1]
            text = "still open" if life.how == "open" else "goes on ↑"
            places = _along(frame, start_ms, end_ms, text)
            label = Label("open", (start_ms + end_ms) // 2, life.end, text, scene.colours.edge, places)
            placement.place(label, leader=False)
    for cap in sorted(scene.caps, key=lambda cap: (-cap.size.record_count, cap.at)):
        if placement.is_full("closed"):
            break
        said = scene.cap_words(cap)
        tried = (_cap_label(scene, frame, cap, text) for text in (f"<b>closed</b> · {said}", said, cap.size.words))
        if len(placement.fitting(_cap_label(scene, frame, cap, cap.size.words), leader=False)):  # or no longer one fits
            any(placement.place(each, leader=False) for each in tried)


def _cap_label(scene: Plane, frame: Frame, cap: Cap, text: str) -> Label:
    places = _along(frame, cap.start_ms, cap.end_ms, text)
    return Label("closed", (cap.start_ms + cap.end_ms) // 2, scene.y_of(cap.at), text, scene.colours.ink, places)


def _along(frame: Frame, start_ms: int, end_ms: int, text: str) -> Floats:
    """Places above, then below, a horizontal line: its middle first, then to both sides."""
    room = max((end_ms - start_ms) / frame.ms_per_pixel - text_size(text)[0], 60) / 2
    sideways = [0.0, *(sign * step for step in np.arange(15, room + 1, 15).tolist() for sign in (1, -1))]
    return np.array([(across, down) for down in (-17.0, 18.0) for across in sideways])
