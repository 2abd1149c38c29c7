"""The words of a plane: its title, what it leaves out, and the labels beside its marks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sessionkit.base.decisions import IDLE, LATE
from sessionkit.base.durations import about
from sessionkit.base.text import escape_label, plural
from sessionkit.views.drawing.grammar import Frame, Outline
from sessionkit.views.drawing.labels import Label, Placement, around, spread
from sessionkit.views.drawing.measured_text import Heading, text_size
from sessionkit.views.scenes.key_rows import Rows, partition_counts
from sessionkit.views.scenes.scene import Plane


def plane_title(scene: Plane, key: object) -> str:
    """The key, and how many of its records were kept."""
    trace, own = scene.trace, scene.history.own
    kept = int(trace.accepted[own].sum())
    name = "(empty)" if key == "" else f"“{escape_label(key)}”"
    return f"Key {name}: {plural(kept, 'record')} kept, {len(own) - kept:,} dropped"


def plane_heading(scene: Plane, key: object) -> Heading:
    """The title; the choices, how to read the chart, and what it leaves out."""
    windows = scene.window.in_words().replace(", ", " · ")
    said = [f"{windows} · read upwards: each row is one arriving record; sideways is when it happened"]
    return Heading.of(plane_title(scene, key), said, _left_out(scene), scene.width)


def _left_out(scene: Plane) -> list[str]:
    """What is to be said of what is shown, and of what is not."""
    trace, rows, history = scene.trace, scene.rows, scene.history
    notes = scene.remarks
    everything = history.of_partition
    if not len(rows):
        return ["no record arrived in this partition during the run"]
    if len(rows) < len(everything):
        offset = trace.batch.offset
        notes.append(
            f"shown: offsets {offset[rows[0]]:,} to {offset[rows[-1]]:,} of {offset[everything[0]]:,} to"
            f" {offset[everything[-1]]:,} (first=, last= show others)"
        )
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
    without_place = int((trace.decision[history.own] > LATE).sum())
    if without_place:
        notes.append(
            f"{without_place:,} of the dropped records are not drawn: they have no usable time, or came a second time"
        )
    return notes


class Spoken(NamedTuple):
    """Records that get labels: of which kind, in which direction (an angle) those look best, and their colour."""

    kind: str
    records: Rows
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
    placement.avoid_marks(batch.timestamp_ms[own], scene.y(own))
    placement.avoid_dots(batch.timestamp_ms[other], scene.y(other))
    for outline in (*fixed, scene.cap_lines, scene.close_line, scene.stream_line):
        placement.avoid_lines(outline, never=True)
    for outline in crossed:
        placement.avoid_lines(outline)
    for each in spoken:
        _label_records(scene, placement, each, words)
    _label_caps(scene, frame, placement)
    saved = Spoken("late but kept", scene.shown(scene.history.late_but_kept), 130, scene.colours.saved_words)
    _label_records(scene, placement, saved, lambda _, row: _saved(scene, row))
    return placement


def _saved(scene: Plane, row: int) -> str:
    behind = int(scene.trace.close_time_ms[row] - scene.trace.batch.timestamp_ms[row])
    return f"<b>late but kept</b>: {about(behind)} behind<br>the close line; its {scene.window.noun} is open"


def _label_records(scene: Plane, placement: Placement, spoken: Spoken, words: Callable[[str, int], str]) -> None:
    """Labels on leader lines."""
    kind, records, prefer, colour = spoken
    for row in spread(records.tolist()):
        if placement.is_full(kind):
            return
        said, when = words(kind, row), int(scene.trace.batch.timestamp_ms[row])
        for text in (said, said.partition("<br>")[0]):  # its first line, where all of it has no room
            places = around(prefer, *text_size(text))
            if placement.place(Label(kind, when, scene.y_of(row), text, colour, places)):
                break


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
        middle, y = (cap.start_ms + cap.end_ms) // 2, scene.y_of(cap.at)
        for text in (f"<b>closed</b> · {scene.cap_words(cap)}", scene.cap_words(cap), cap.size.words):
            places = _along(frame, cap.start_ms, cap.end_ms, text)
            if placement.place(Label("closed", middle, y, text, scene.colours.ink, places), leader=False):
                break


def _along(frame: Frame, start_ms: int, end_ms: int, text: str) -> npt.NDArray[np.float64]:
    """Places above, then below, a horizontal line: its middle first, then to both sides."""
    room = max((end_ms - start_ms) / frame.ms_per_pixel - text_size(text)[0], 60) / 2
    sideways = [0.0, *(sign * step for step in np.arange(15, room + 1, 15).tolist() for sign in (1, -1))]
    return np.array([(across, down) for down in (-17.0, 18.0) for across in sideways])
