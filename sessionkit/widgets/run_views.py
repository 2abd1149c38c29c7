"""Pictures of a run on a board: they stay where they are while the run changes, and know what a click on them means."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sessionkit.base.durations import INT64_MAX, show_duration
from sessionkit.base.text import of_key, plural
from sessionkit.errors import UnknownRecord
from sessionkit.records.keys import code_of_key
from sessionkit.run import Run
from sessionkit.views.drawing.palettes import palette
from sessionkit.views.lanes.lanes import Sort, draw_lanes, lane_scene
from sessionkit.views.lanes.marks import keys_in_words, lanes_title, nothing_dropped
from sessionkit.views.plane.marks import plane_title, remarks
from sessionkit.views.plane.plane import draw_plane, plane_scene
from sessionkit.views.scenes.key_rows import Cap
from sessionkit.views.scenes.scene import Lanes, Plane
from sessionkit.widgets.board import Look, Picture, Place
from sessionkit.widgets.tuner import Tuner

MOST_SHOWN = 400  # records of a plane that is asked for a stretch
MOST_DRAWN = 6_000  # records one by one: a browser redraws them in a third of a second
_LANE_PIXELS, _FEWEST_LANES = 20, 6
_AROUND_LANES = 62  # pixels above and below
PLANE_HINT = (
    "Read upwards: each row is an arriving record, sideways is when it happened. Click a mark to read why it is there; "
    "↑ and ↓ go from record to record, [ and ] from drop to drop, + and − zoom, / finds a key."
)
LANES_HINT = "Click a mark to read why it is there, or a key to see it alone; ↑ and ↓ choose a key, + and − zoom."


class Chosen(NamedTuple):
    """What is selected on a board: a record, or a window by its start, of a key in a partition."""

    key: Any = None
    partition: int | None = None
    record: int | None = None  # as a row of the trace
    window_start_ms: int | None = None


def plain_title(scene: Plane, key: Any) -> str:
    """What stands above a plane, as text."""
    return html.unescape(plane_title(scene, key))


def plane_notes(scene: Plane) -> tuple[str, ...]:
    """Which part of a plane is shown, as text."""
    rows, everything = scene.rows, scene.history.of_partition
    if not len(rows):
        return ("no record arrived in this partition during the run",)
    offset = scene.trace.batch.offset
    part = [] if len(rows) == len(everything) else [f"offsets {offset[rows[0]]:,} to {offset[rows[-1]]:,}"]
    return (*part, *remarks(scene))


class PlaneView:
    """The plane of one key. The stretch that is chosen for a key stays while settings change."""

    def __init__(self) -> None:
        self.scene: Plane | None = None
        self._key: Any = None
        self._stretch: dict[str, Any] = {}

    def draw(self, run: Run, key: Any, look: Look, chosen: Chosen) -> Picture:
        """The plane of `key` as it is in `run`, with a ring around the record that is chosen."""
        if key != self._key:
            self._stretch, self._key = {}, key
        trace = run.trace
        scene = plane_scene(trace, run.plan._complete_windows, key, **look._asdict(), **self._stretch)
        if len(scene.rows):
            offset = trace.batch.offset[scene.rows]
            partition = int(trace.batch.partitions[scene.history.partition])
            self._stretch = {"partition": partition, "from_offset": int(offset[0])}
            self._stretch["until_offset"] = int(offset[-1])
        self.scene = scene
        figure, colour = draw_plane(scene), scene.colours.ink
        if chosen.record is not None and chosen.record in scene.rows:
            x = scene.axis.at(scene.at_ms(np.array([chosen.record])).tolist())
            y = [scene.y_of(chosen.record)]
            ring = {"symbol": "circle-open", "size": 20, "color": colour, "line": {"width": 2.5, "color": colour}}
            options = {"marker": ring, "name": "chosen", "hoverinfo": "skip", "legendrank": 90}
            figure.add_scatter(x=x, y=y, mode="markers", **options)
        label = f"The plane of {of_key(key)}: {run.summary()}"
        return Picture(figure, label, plain_title(scene, key), plane_notes(scene), legend=True, hint=PLANE_HINT)

    def show(self, first: int, last: int) -> bool:
        """Shows the key's records between two offsets, or from the first of them on as many as are told apart."""
        if self.scene is None:
            return False
        offset = self.scene.trace.batch.offset[self.scene.history.of_partition]
        many = int(np.count_nonzero((offset >= first) & (offset <= last)))
        if many:
            until = {"until_offset": last} if many <= MOST_SHOWN else {}
            self._stretch = {"partition": self._stretch["partition"], "from_offset": first, **until}
        return True  # also where the frame goes back to where it was

    def next(self, chosen: Chosen, step: int, *, drops: bool = False) -> Chosen:
        """The key's record after the one that is chosen, or before it; or the next one that was dropped."""
        scene = self.scene
        own = () if scene is None or not len(scene.rows) else scene.drops if drops else scene.shown(scene.history.timed)
        if not len(own):
            return chosen
        behind = chosen.record is not None and step > 0  # the one that is chosen is passed
        at = int(np.searchsorted(own, chosen.record or 0, side="right" if behind else "left"))
        row = int(own[(at + step - (step > 0)) % len(own)])
        return Chosen(self._key, self._stretch["partition"], row)

    def at(self, run: Run, x: Place, y: Place, name: str) -> Chosen | None:
        """What lies at a place: a record, or with the name "closure" a window that was closed there."""
        scene = self.scene
        if scene is None or isinstance(y, str) or not len(scene.rows):
            return None
        at_ms = _time_at(scene, x)
        if at_ms is None:
            return None
        row, partition = int(scene.rows[round(min(max(y, 0), len(scene.rows) - 1))]), self._stretch["partition"]
        caps: list[Cap] = scene.caps if name == "closure" else []
        closed = [cap for cap in caps if cap.at == row and cap.start_ms <= at_ms <= cap.end_ms]
        return Chosen(self._key, partition, row, closed[0].start_ms if closed else None)


class LanesView:
    """The lanes of many keys. Keys and span stay while settings change; zooming shows more of less."""

    def __init__(self) -> None:
        self.scene: Lanes | None = None
        self._kept: dict[str, Any] = {}
        self._kept_for = 0  # the height that the keys were chosen for

    @property
    def options(self) -> dict[str, Any]:
        """What `run.lanes` draws the same keys and span with."""
        return dict(self._kept)

    def forget(self) -> None:
        """Chooses keys and span anew."""
        self._kept = {}

    def draw(self, run: Run, look: Look, chosen: Chosen, sort: Sort, *, whole_span: bool, most: int | None) -> Picture:
        """The lanes of at most so many keys, or of as many as there is room for, with the one that is chosen marked."""
        if look.height != self._kept_for:
            self._kept, self._kept_for = {}, look.height
        scene = self._scene_of(run, look, sort, whole_span, most)
        room = look.height - _AROUND_LANES
        if most is None and not self._kept and scene.pitch * len(scene.board.lanes) > room:
            scene = self._scene_of(run, look, sort, whole_span, max(room // scene.pitch, 1))
        board = scene.board
        keys = self.keys(scene)
        if keys:
            self._kept = {"keys": keys, "start": board.first_ms, "end": board.last_ms}
        figure = draw_lanes(scene)
        if keys:
            low, high = scene.axis.at(board.extent)
            figure._layout["xaxis"] |= {"minallowed": low, "maxallowed": high}
            _mark_lane(figure._layout, scene, chosen)
        self.scene = scene
        label = f"The lanes of {keys_in_words(scene)}: {run.summary()}"
        show, left_out, notes = scene.axis.show, len(run.trace.keys) - len(keys), []
        if board.is_part:
            notes.append(f"shown: {show(board.first_ms)} to {show(board.last_ms)}")
        notes += nothing_dropped(board, run.plan._complete_windows.noun)
        if board.far_off:
            notes.append(board.far_off)
        if left_out:
            notes.append(f"{plural(left_out, 'more key')} not shown")
        title = html.unescape(lanes_title(scene))
        return Picture(figure, label, title, tuple(notes), legend=True, zoom="wheel", hint=LANES_HINT)

    def _scene_of(self, run: Run, look: Look, sort: Sort, whole_span: bool, most: int | None) -> Lanes:
        most = most or max((look.height - _AROUND_LANES) // _LANE_PIXELS, _FEWEST_LANES)
        chosen = self._kept or {"sort": sort, "most": most, **({"start": 0} if whole_span else {})}
        shared = {"whole": run._all_lanes, "most_drawn": MOST_DRAWN, **look._asdict()}
        return lane_scene(run.trace, run.plan._complete_windows, **shared, **chosen)

    def keys(self, scene: Lanes) -> list[Any]:
        return list(dict.fromkeys(scene.trace.keys[lane.key].as_py() for lane in scene.board.lanes))

    def next(self, chosen: Chosen, step: int) -> Chosen:
        """The key of the lane below the one that is chosen, or above it."""
        keys = self.keys(self.scene) if self.scene is not None else []
        if not keys:
            return chosen
        at = keys.index(chosen.key) if chosen.key in keys else -1 if step > 0 else 0
        return Chosen(keys[(at + step) % len(keys)])

    def zoom(self, x: Sequence[Any]) -> bool:
        """Shows another span; False if it is the one that is shown."""
        if self.scene is None or not self._kept or len(x) != 2:
            return False
        first_ms, last_ms = (_time_at(self.scene, each) for each in x)
        return first_ms is not None and last_ms is not None and self.show(first_ms, last_ms)

    def show(self, first_ms: int, last_ms: int) -> bool:
        """Shows this span; False if it is none, or the one that is shown."""
        if not self._kept or first_ms >= last_ms:
            return False
        if (first_ms, last_ms) == (self._kept["start"], self._kept["end"]):
            return False
        self._kept |= {"start": first_ms, "end": last_ms}
        return True

    def at(self, run: Run, x: Place, y: Place, name: str) -> Chosen | None:
        """What lies at a place: a record that was dropped, joined two or was saved, a window, or nothing of a key."""
        scene = self.scene
        if scene is None or isinstance(y, str) or not scene.board.lanes:
            return None
        board, columns, trace = scene.board, run.trace.window_columns, run.trace
        lane = board.lanes[round(min(max(len(board.lanes) - 1 - y, 0), len(board.lanes) - 1))]
        key, partition = trace.keys[lane.key].as_py(), int(trace.batch.partitions[lane.partition])
        at_ms = None if x == "name" else _time_at(scene, x)
        if at_ms is None:
            return Chosen(key, partition)
        records = board.records
        here = records[(trace.batch.key[records] == lane.key) & (trace.batch.partition[records] == lane.partition)]
        if name and len(here):
            near = here[np.argmin(np.abs(trace.batch.timestamp_ms[here] - at_ms))]
            if int(trace.batch.timestamp_ms[near]) == at_ms:
                dropped = here[(trace.batch.timestamp_ms[here] == at_ms) & trace.late_for_some[here]]
                row = int(dropped[0]) if name.startswith("dropped") and len(dropped) else int(near)
                return Chosen(key, partition, row)
        rows = board.windows
        mine = rows[(columns.key[rows] == lane.key) & (columns.partition[rows] == lane.partition)]
        over = mine[(columns.start_ms[mine] <= at_ms) & (columns.end_ms[mine] >= at_ms)]
        return Chosen(key, partition, None, int(columns.start_ms[over[0]]) if len(over) else None)


def explained(run: Run, chosen: Chosen) -> str:
    """What there is to say of what is chosen."""
    batch = run.trace.batch
    if chosen.window_start_ms is not None:
        try:
            return run.explain(key=chosen.key, window_start=chosen.window_start_ms, partition=chosen.partition)
        except UnknownRecord:  # it is part of another one by now
            pass
    if chosen.record is not None:
        partition = int(batch.partitions[batch.partition[chosen.record]])
        return run.explain(offset=int(batch.offset[chosen.record]), partition=partition)
    own = batch.key == code_of_key(run.trace.keys, chosen.key)
    kept = int(run.trace.accepted[own].sum())
    return f"{of_key(chosen.key, first=True)}: {plural(kept, 'record')} kept, {int(own.sum()) - kept:,} dropped."


def _mark_lane(layout: dict[str, Any], scene: Lanes, chosen: Chosen) -> None:
    """A band behind the lanes of the key that is chosen, and an arrow before its name; plotly's own ways take long."""
    names, shapes = layout["yaxis"]["ticktext"], layout.setdefault("shapes", [])
    for number, lane in enumerate(scene.board.lanes):
        if scene.trace.keys[lane.key].as_py() != chosen.key:
            continue
        y = len(names) - 1 - number
        names[number] = f"<b>▸</b>{names[number]}"
        place = {"y0": y - 0.5, "y1": y + 0.5}
        band = {"fillcolor": scene.colours.body, "line": {"width": 0}, "layer": "below"}
        shapes.append({"type": "rect", "xref": "paper", "x0": 0, "x1": 1, **place, **band})
        if chosen.window_start_ms is not None:
            at, line = scene.axis.at([chosen.window_start_ms])[0], {"color": scene.colours.ink, "width": 2}
            shapes.append({"type": "line", "x0": at, "x1": at, **place, "line": line})


def _time_at(scene: Plane | Lanes, place: Place) -> int | None:
    """The time at a place on the picture's axis; None for what a browser should not have sent."""
    try:
        at_ms = scene.axis.ms_at(place)
    except (TypeError, ValueError, OverflowError):
        return None
    return at_ms if abs(at_ms) <= INT64_MAX // 2 else None


class CostsView:
    """What settings cost: a grid around those of now, whose cells can be set."""

    def __init__(self) -> None:
        self._values: Mapping[str, tuple[int, ...]] = {}

    def draw(self, tuner: Tuner, look: Look) -> tuple[dict[str, Picture], str]:
        """The pictures, and what is said of them."""
        sweep, settings, theme = tuner.sweep(), tuner.settings, look.theme
        self._values = sweep.values
        now = ", ".join(f"{name.replace('_', ' ')} {show_duration(ms)}" for name, ms in settings.items())
        grid = sweep.heat_map(theme=theme)
        x, y = (values.index(settings[name]) for name, values in sweep.values.items())
        frame = {"line": {"color": palette(theme).ink, "width": 3}, "layer": "above"}
        grid.add_shape(type="rect", x0=x - 0.5, x1=x + 0.5, y0=y - 0.5, y1=y + 0.5, **frame)
        of_grid = Picture(grid, f"Share of dropped records for settings around {now}", zoom="")
        stair = Picture(sweep.pareto(theme=theme), f"Fewer drops or shorter waits, around {now}", zoom="")
        said = f"The frame is what is set now: {now}. Click a cell, or press an arrow key, to set another."
        return {"grid": of_grid, "pareto": stair}, said

    def at(self, x: Place, y: Place) -> dict[str, str]:
        """The settings of a cell, as they are shown on the axes."""
        shown = [each.replace(",", "") for each in (x, y) if isinstance(each, str)]
        return dict(zip(self._values, shown, strict=True)) if len(shown) == len(self._values) else {}

    def next(self, settings: Mapping[str, int], key: str) -> dict[str, int]:
        """The setting that an arrow key leads to."""
        axis, step = {"left": (0, -1), "right": (0, 1), "up": (1, 1), "down": (1, -1)}.get(key, (0, 0))
        if not step or len(self._values) <= axis:
            return {}
        name, values = [*self._values.items()][axis]
        at = values.index(settings[name]) + step
        return {f"{name}_ms": values[at]} if 0 <= at < len(values) else {}
