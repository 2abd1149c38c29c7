"""What lanes of every kind of window draw and say: bands, territory, clocks, hovers; the title, sizes, graces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from sessionkit.base.arrays import Flags, Longs
from sessionkit.base.decisions import MERGED
from sessionkit.base.durations import MINUTE, lacked
from sessionkit.base.text import ALL, OF_ALL, escape_label, plural
from sessionkit.views.drawing.grammar import Drawn, Frame, Outline, lines, marks, rim_width, unseen
from sessionkit.views.drawing.measured_text import Heading, text_width
from sessionkit.views.scenes.board import Board
from sessionkit.views.scenes.scene import Lanes
from sessionkit.views.scenes.session_scene import SessionLanes
from sessionkit.views.words import closers_in_words, without_place


class Kind(NamedTuple):
    """Records that did the same: which, how they are named, and how they look."""

    mask: Flags
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


def middles(scene: Lanes, windows: Longs, heights: Sequence[float]) -> Drawn:
    """Points in the bars that say what they are on hover."""
    trace, columns = scene.trace, scene.trace.window_columns
    words = []
    for row, closer in zip(windows.tolist(), closers_in_words(trace, windows), strict=True):
        start_ms, end_ms = int(columns.start_ms[row]), int(columns.end_ms[row])
        state = f"<b>closed</b> {closer}" if closer else "<b>still open</b>"
        span = f"{scene.axis.show(start_ms)} to {scene.axis.show(end_ms)}"
        name = escape_label(trace.keys[int(columns.key[row])].as_py())
        steps = f"<br>{scene.steps[row]}" if row in scene.steps else ""
        words.append(f"{name}: {state}<br>{span}<br>{scene.size_words(row)}{steps}")
    at_ms, records = (columns.start_ms[windows] + columns.end_ms[windows]) // 2, len(scene.board.records)
    return unseen(scene.axis, at_ms, heights, words, scene.window.noun, records)


def points(scene: Lanes, kinds: Sequence[Kind], words: Callable[[str, Longs], list[str]], rim: float) -> list[Drawn]:
    """A mark for each record, with a rim if it can be told apart; `words` are those of a kind by its name."""
    found, records = [], len(scene.board.records)
    for mask, name, rank, lift, marker in kinds:
        rows = scene.board.of(mask)
        at_ms, lanes = scene.trace.batch.timestamp_ms[rows], scene.height_of(rows)
        line = {"width": rim_width(rim, at_ms, scene.x_range_ms, lanes), "color": scene.colours.background}
        look, said, heights = {**marker, "line": line}, words(name, rows), (lanes + lift).tolist()
        found.append(marks(scene.axis, at_ms, heights, said, name, records, marker=look, legendrank=rank))
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


# ---- words


SMALL = 11  # the size of words in the lanes
# Before a text that stands beside something: pixels are only known in the browser, letters grow with nothing.
AIR, BESIDE_BAR, BESIDE_MARK = "\N{THIN SPACE}", "\N{EN SPACE}", "\N{EN SPACE}\N{THIN SPACE}"


_ORDERS = {
    "drops": "at the top what has the most drops",
    "merges": "at the top what has the most merges",
    "activity": "at the top what has the most records",
    "key": "in the order of the keys",
}


class LaneText(NamedTuple):
    """Words in a lane, on one `side` of a place that is given in pixels across, or in its middle ("center")."""

    text: str
    x: float
    y: float
    side: str

    @property
    def extent(self) -> tuple[float, float]:
        """From where to where they reach, in pixels."""
        wide = text_width(self.text, SMALL) + 6
        left = {"left": wide, "center": wide / 2, "right": 0.0}[self.side]
        return self.x - left, self.x - left + wide


def lanes_title(scene: Lanes) -> str:
    """How many keys, windows, merges and drops the lanes stand for."""
    board = scene.board
    return " · ".join([keys_in_words(scene), *scene.counted(board.whole)])


def keys_in_words(scene: Lanes) -> str:
    """How many keys have lanes; a plan without a key column has none to count."""
    keys = {scene.trace.keys[lane.key].as_py() for lane in scene.board.lanes}
    return ALL if keys == {OF_ALL} else plural(len(keys), "key")


def lanes_heading(scene: Lanes) -> Heading:
    """The title; how to read the lanes, and what is left out."""
    windows = scene.window.in_words().replace(", ", " · ")
    said = [f"{windows} · a lane for each key, {scene.bars}"]
    return Heading.of(lanes_title(scene), said, _left_out(scene), scene.width)


def nothing_dropped(board: Board, noun: str) -> list[str]:
    """That nothing was dropped, and what there is to see instead."""
    whole = board.whole
    if not board.lanes or len(whole.of(board.trace.late_for_some)):
        return []
    merges = len(whole.of(board.trace.decision == MERGED))
    seen = [plural(len(whole.windows), noun), *([plural(merges, "merge")] if merges else [])]
    said = "none of their records was dropped" if without_place(board.trace.decision) else "nothing was dropped"
    return [said if board.is_part else f"{said}: the lanes show {' and '.join(seen)}"]


def _left_out(scene: Lanes) -> list[str]:
    """What is to be said of what is shown, and of what is not."""
    board, trace = scene.board, scene.trace
    if not board.lanes:
        return ["the run holds no records"]
    notes = []
    if board.is_part:
        why = ", the part with the most to see" if board.was_chosen else ""
        end_ms = board.last_ms + ((board.last_ms + 1) % MINUTE == 0)  # a whole minute is said as such
        span = f"{scene.axis.show(board.first_ms)} to {scene.axis.show(end_ms)}"
        notes += [f"shown: {span}{why} ({', '.join(scene.counted(board))})", "start=, end= show others"]
    if board.far_off:
        notes.append(board.far_off)
    notes += nothing_dropped(board, scene.window.noun)
    if board.sort is not None and len(board.lanes) > 1:
        are_merges = len(board.of(trace.decision == MERGED))
        no_drops = "merges" if are_merges else "activity"  # what the lanes are sorted by then
        by = board.sort if board.sort != "drops" or len(board.of(trace.late_for_some)) else no_drops
        notes.append(_ORDERS[by] + (" in what is shown" if board.is_part and board.sort != "key" else ""))
    left_out = len(trace.keys) - len({lane.key for lane in board.lanes})
    if left_out:
        notes.append(f"{plural(left_out, 'more key')} not shown (keys=, most=)")
    several = len({lane.partition for lane in board.lanes})
    if several > 1:
        notes.append(f"{several} partitions, each with a stream time of its own: no close line is drawn")
    elif not scene.window.is_ever_closed:
        notes.append(f"none is ever closed; {scene.window.forgets_in_words()}")
    elif scene.stream_time_ms is not None and scene.stream_time_ms - trace.close_lag_ms > scene.x_range_ms[1]:
        notes.append("the close line has passed all of it")
    return [*notes, *without_place(trace.decision), *scene.remarks]


def sizes(scene: SessionLanes, frame: Frame) -> Drawn:
    """Below each bar its size, or (in low lanes) beside it the number of its records: where there is room."""
    columns, windows = scene.trace.window_columns, scene.board.windows
    drop = scene.half + (0.2 if len(scene.former[0]) else 0.15) if scene.is_roomy else 0.0
    heights = np.array(scene.board.heights(windows), np.int64)
    found = []
    for y in range(len(scene.board.lanes)):
        mine = windows[heights == y]
        mine = mine[np.lexsort((mine, columns.start_ms[mine]))]
        bars = np.column_stack([frame.x(columns.start_ms[mine]), frame.x(columns.end_ms[mine])])
        in_the_way = [] if scene.is_roomy else [(left - 4, right) for left, right in bars.tolist()]
        if not scene.is_roomy:
            still_open = mine[np.isin(mine, scene.open_windows)]
            edges = scene.window.reach_of_ms(columns.start_ms[still_open], columns.end_ms[still_open])
            in_the_way += [(edge - 2, edge + 2) for edge in frame.x(np.concatenate(edges)).tolist()]
        in_the_way += [(x - 3, x + 3) for x in scene.clocks_x(frame)]
        for row, (left, right) in zip(mine.tolist(), bars.tolist(), strict=True):
            for place in _places(scene, row, left, right, in_the_way):
                low, high = place.extent
                clear = all(high <= begin or low >= end for begin, end in in_the_way)
                if clear and low >= 0 and high <= frame.plot_width:
                    in_the_way.append((low, high))
                    found.append(place._replace(y=y - drop))
                    break
    return lane_text(scene, frame, "sizes", found, scene.colours.mute)


def _places(
    scene: SessionLanes, row: int, left: float, right: float, in_the_way: list[tuple[float, float]]
) -> Iterator[LaneText]:
    """Words for a session's bar at each place where they may stand, best first."""
    size = scene.sizes[row]
    if not scene.is_roomy:
        yield LaneText(f"{BESIDE_BAR}{size.record_count:,}", right, 0, "right")
        return
    middle, steps = (left + right) / 2, filter(None, [scene.steps.get(row)])
    for text in dict.fromkeys([*steps, scene.size_words(row), size.words, f"{size.record_count:,}"]):
        centred = LaneText(text, middle, 0, "center")
        yield centred
        for low, high in in_the_way:
            if low < centred.extent[1] and high > centred.extent[0] and high - low < 7:  # a clock's line: beside it
                sides = LaneText(f"{text}{AIR}", low, 0, "left"), LaneText(f"{AIR}{text}", high, 0, "right")
                yield from sides if middle < (low + high) / 2 else sides[::-1]


def graces(scene: Lanes, frame: Frame) -> Drawn:
    """Beside each drop the grace that it lacked, where no other drop is in the way."""
    times = scene.trace.batch.timestamp_ms
    marked_heights, marked_x = scene.height_of(scene.drops), frame.x(times[scene.drops])
    marked = [np.sort(marked_x[marked_heights == y]) for y in range(len(scene.board.lanes))]
    found = []
    rows = np.array(list(scene.missing_ms), np.int64)
    places = zip(scene.height_of(rows).tolist(), frame.x(times[rows]).tolist(), strict=True)
    for (y, x), missing_ms in zip(places, scene.missing_ms.values(), strict=True):
        place = LaneText(f"{BESIDE_MARK}<b>+{lacked(missing_ms)}</b>", x, y + scene.above, "right")
        end = place.extent[1]
        low, high = np.searchsorted(marked[y], [x, end + 8])
        if high - low == 1 and end <= frame.plot_width:
            found.append(place)
    return lane_text(scene, frame, "missing grace", found, scene.colours.drop)


def lane_text(scene: Lanes, frame: Frame, name: str, found: Sequence[LaneText], colour: str) -> Drawn:
    """A trace of words at these places."""
    places = [round(frame.x_range_ms[0] + each.x * frame.ms_per_pixel) for each in found]
    place = {"x": scene.axis.at(places), "y": [each.y for each in found]}
    place["textposition"] = [f"middle {each.side}" for each in found]
    look = {"mode": "text", "textfont": {"size": SMALL if scene.is_roomy else SMALL - 1, "color": colour}}
    text = [each.text for each in found]
    return {"type": "scatter", "name": name, "text": text, "hoverinfo": "skip", "showlegend": False, **place, **look}
