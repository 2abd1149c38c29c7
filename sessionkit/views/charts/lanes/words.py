"""The words of the lanes: title, what is left out, sizes beside bars, missing grace beside drops."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sessionkit.base.durations import show_duration
from sessionkit.base.text import plural
from sessionkit.views.charts.drawing.grammar import Drawn, Frame
from sessionkit.views.charts.drawing.labels import flow, text_width
from sessionkit.views.charts.scenes.key_rows import Size
from sessionkit.views.charts.scenes.scene import Lanes
from sessionkit.views.charts.scenes.session_history import session_size
from sessionkit.views.charts.scenes.session_scene import SessionLanes

SMALL = 11  # the size of words in the lanes


def lanes_title(scene: Lanes) -> str:
    """How many keys, windows, merges and drops the lanes stand for."""
    board = scene.board
    return " · ".join([plural(len({lane.key for lane in board.lanes}), "key"), *scene.counted(board.whole)])


def lanes_subtitle(scene: Lanes) -> list[str]:
    """How to read it, and what is left out."""
    board, trace = scene.board, scene.trace
    windows = scene.window.in_words().replace(", ", " · ")
    said = [f"{windows} · a lane for each key, {scene.bars}"]
    if not board.lanes:
        return [*said, "the run holds no records"]
    notes = []
    if board.is_part:
        why = ", the part with the most to see" if board.was_chosen else ""
        notes.append(
            f"shown: {scene.axis.show(board.first_ms)} to {scene.axis.show(board.last_ms)}{why}"
            f" ({', '.join(scene.counted(board))})"
        )
        notes.append("start=, end= show others")
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
    return [*said, *flow([*notes, *scene.remarks], scene.width - 40)]


def sizes(scene: SessionLanes, frame: Frame) -> Drawn:
    """Below each bar its size, or (in low lanes) beside it the number of its records: where there is room."""
    columns, windows = scene.trace.window_columns, scene.board.windows
    drop = scene.half + (0.2 if len(scene.former[0]) else 0.15) if scene.is_roomy else 0.0
    heights = np.array(scene.height_of_windows(windows), np.int64)
    found = []
    for y in range(len(scene.board.lanes)):
        mine = windows[heights == y]
        mine = mine[np.lexsort((mine, columns.start_ms[mine]))]
        bars = np.column_stack([frame.x(columns.start_ms[mine]), frame.x(columns.end_ms[mine])])
        in_the_way = [] if scene.is_roomy else [(left - 4, right + 4) for left, right in bars.tolist()]
        if not scene.is_roomy:
            reach = np.isin(mine, scene.open_windows)
            gap = scene.window.inactivity_gap_ms / frame.ms_per_pixel
            edges = [*(bars[reach, 0] - gap), *(bars[reach, 1] + gap)]
            in_the_way += [(edge - 2, edge + 2) for edge in edges]
        in_the_way += [(x - 3, x + 3) for x in scene.clocks_x(frame)]
        for row, (left, right) in zip(mine.tolist(), bars.tolist(), strict=True):
            length_ms = int(columns.end_ms[row] - columns.start_ms[row])
            for text, x in _places(scene, scene.sizes[row], length_ms, left, right, in_the_way):
                half = text_width(text, SMALL) / 2 + 3
                clear = all(x + half <= low or x - half >= high for low, high in in_the_way)
                if clear and x - half >= 0 and x + half <= frame.plot_width:
                    in_the_way.append((x - half, x + half))
                    found.append((text, x, y - drop))
                    break
    return lane_text(scene, frame, "sizes", found, scene.colours.mute, "middle center")


def _places(
    scene: SessionLanes, size: Size, length_ms: int, left: float, right: float, in_the_way: list[tuple[float, float]]
) -> Iterator[tuple[str, float]]:
    """Words for a bar with the middle of each place where they may stand, best first."""
    if not scene.is_roomy:
        yield f"{size.record_count:,}", right + 8 + text_width(f"{size.record_count:,}", SMALL) / 2
        return
    middle = (left + right) / 2
    for text in dict.fromkeys([session_size(size, length_ms), size.words, f"{size.record_count:,}"]):
        yield text, middle
        half = text_width(text, SMALL) / 2 + 3
        for low, high in in_the_way:
            if low < middle + half and high > middle - half and high - low < 7:  # a clock's line: beside it
                sides = (text, low - half), (text, high + half)
                yield from sides if middle < (low + high) / 2 else sides[::-1]


def _enough(missing_ms: int) -> int:
    """A grace that is as good as this one and takes few words: whole seconds from a minute on, minutes from an hour."""
    unit_ms = next((unit for least, unit in ((3_600_000, 60_000), (60_000, 1_000)) if missing_ms >= least), 1)
    return -(-missing_ms // unit_ms) * unit_ms


def graces(scene: Lanes, frame: Frame) -> Drawn:
    """Beside each drop the grace that it lacked, where no other drop is in the way."""
    times = scene.trace.batch.timestamp_ms
    marked_heights, marked_x = scene.height_of(scene.drops), frame.x(times[scene.drops])
    marked = [np.sort(marked_x[marked_heights == y]) for y in range(len(scene.board.lanes))]
    found = []
    rows = np.array(list(scene.missing_ms), np.int64)
    places = zip(scene.height_of(rows).tolist(), frame.x(times[rows]).tolist(), strict=True)
    for (y, x), missing_ms in zip(places, scene.missing_ms.values(), strict=True):
        text = f"<b>+{show_duration(_enough(missing_ms))}</b>"
        end = x + 10 + text_width(text, SMALL)
        low, high = np.searchsorted(marked[y], [x, end + 8])
        if high - low == 1 and end <= frame.plot_width:
            found.append((text, x + 8, y + scene.above))
    return lane_text(scene, frame, "missing grace", found, scene.colours.drop, "middle right")


def lane_text(
    scene: Lanes, frame: Frame, name: str, found: list[tuple[str, float, float]], colour: str, position: str
) -> Drawn:
    """A trace of words at these places, given in pixels across."""
    places = [round(frame.x_range_ms[0] + x * frame.ms_per_pixel) for _, x, _ in found]
    return {
        "type": "scatter",
        "x": scene.axis.at(places),
        "y": [y for *_, y in found],
        "text": [text for text, *_ in found],
        "mode": "text",
        "name": name,
        "textposition": position,
        "textfont": {"size": SMALL if scene.is_roomy else SMALL - 1, "color": colour},
        "hoverinfo": "skip",
        "showlegend": False,
    }
