"""Pictures of a run in a widget: they stay where they are while the run changes, and answer to zooms and clicks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets

from sessionkit.errors import UnknownRecord, shorten
from sessionkit.run import Run
from sessionkit.views.charts.lanes.lanes import Sort, draw_lanes, lane_scene
from sessionkit.views.charts.plane.plane import draw_plane, plane_scene
from sessionkit.views.charts.scenes.key_rows import Cap
from sessionkit.views.charts.scenes.scene import Lanes, Plane
from sessionkit.widgets.parts import ROW, Picture, Words, buttons

MOST_DRAWN = 6_000  # records one by one: a browser redraws them in a third of a second
_ASK = "Click a mark to read why it is there. Keys in the picture: + and − zoom, ← and → move."


class PlaneView:
    """The plane of one key. The stretch that is chosen for a key stays while settings change."""

    def __init__(self) -> None:
        self.picture = Picture(on_click=self._explain)
        self.words = Words()
        self.box = ipywidgets.VBox([self.picture, self.words])
        self._scene: Plane | None = None
        self._run: Run | None = None
        self._key: Any = None
        self._stretch: dict[str, Any] = {}
        self.picture.observe(lambda _: self._draw(), ["theme", "width"])

    def show(self, run: Run, key: Any) -> None:
        """Draws the plane of `key` as it is in `run`."""
        if self._run is None or key != self._key:
            self._stretch = {}
        self._run, self._key = run, key
        self._draw()

    def _draw(self) -> None:
        if self._run is None:
            return
        trace = self._run.trace
        scene = plane_scene(trace, self._run.plan.windows, self._key, **self.picture.look, **self._stretch)
        if len(scene.rows):
            offset = trace.batch.offset[scene.rows]
            partition = int(trace.batch.partitions[scene.history.partition])
            self._stretch = {"partition": partition, "first": int(offset[0]), "last": int(offset[-1])}
        self._scene = scene
        self.picture.show(draw_plane(scene), f"The plane of key {shorten(self._key)}: {self._run.summary()}")
        self.words.say(_ASK)

    def _explain(self, x: float | str, y: float | str, name: str) -> None:
        run, scene = self._run, self._scene
        if run is None or scene is None or isinstance(y, str) or not len(scene.rows):
            return
        at_ms = _time_at(scene, x)
        if at_ms is not None:
            row = int(scene.rows[round(min(max(y, 0), len(scene.rows) - 1))])
            self.words.say(self._said(run, row, at_ms, scene.caps if name == "closure" else []))

    def _said(self, run: Run, row: int, at_ms: int, caps: list[Cap]) -> str:
        batch, partition = run.trace.batch, self._stretch["partition"]
        closed = [cap for cap in caps if cap.at == row and cap.start_ms <= at_ms <= cap.end_ms]
        if closed:
            try:
                return run.explain(key=self._key, window_start_ms=closed[0].start_ms, partition=partition)
            except UnknownRecord:  # it was re-opened, and is another one by now
                pass
        numbers = {"offset": int(batch.offset[row]), "partition": int(batch.partitions[batch.partition[row]])}
        return run.explain(**numbers)


class SentView:
    """What goes downstream for one key, and what waits."""

    def __init__(self) -> None:
        self.picture = Picture()
        self._shown: tuple[Run, Any] | None = None
        self.picture.observe(lambda _: self._draw(), "theme")

    def show(self, run: Run, key: Any) -> None:
        """Draws what goes downstream for `key` in `run`."""
        self._shown = (run, key)
        self._draw()

    def _draw(self) -> None:
        if self._shown is not None:
            run, key = self._shown
            sent = run.emissions(key)
            self.picture.show(sent.figure(theme=self.picture.theme), " ".join([sent.title, *sent.words()]))


class LanesView:
    """The lanes of many keys. Keys and span stay while settings change; zooming shows more of less."""

    def __init__(self, on_key: Callable[[Any], None] | None = None) -> None:
        self.picture = Picture(on_click=self._explain, on_zoom=self._zoom, can_scroll=True)
        self.words = Words()
        self.sort = ipywidgets.Dropdown(options=["drops", "merges", "activity", "key"], description="most first by")
        self.sort.style.description_width = "initial"
        self.span = buttons("event time", [("part with the most to see", "part"), ("everything", "all")])
        self.box = ipywidgets.VBox([ipywidgets.HBox([self.span, self.sort], layout=ROW), self.picture, self.words])
        self._on_key = on_key
        self._scene: Lanes | None = None
        self._run: Run | None = None
        self._kept: dict[str, Any] = {}
        self.picture.observe(lambda _: self._draw(), ["theme", "width"])
        self.sort.observe(lambda _: self._anew(), "value")
        self.span.observe(lambda _: self._anew(), "value")

    def show(self, run: Run) -> None:
        """Draws the lanes as they are in `run`."""
        self._run = run
        self._draw()

    def _anew(self) -> None:
        self._kept = {}
        self._draw()

    def _draw(self) -> None:
        if self._run is None:
            return
        sort: Sort = self.sort.value
        chosen = self._kept or {"sort": sort, **({"first_ms": 0} if self.span.value == "all" else {})}
        run = self._run
        shared = {"whole": run.all_lanes, "most_drawn": MOST_DRAWN, **self.picture.look}
        scene = lane_scene(run.trace, run.plan.windows, **shared, **chosen)
        board = scene.board
        keys = list(dict.fromkeys(self._run.trace.keys[lane.key].as_py() for lane in board.lanes))
        if keys:
            self._kept = {"keys": keys, "first_ms": board.first_ms, "last_ms": board.last_ms}
        figure = draw_lanes(scene)
        low, high = scene.axis.at(board.extent)
        figure.update_xaxes(minallowed=low, maxallowed=high)
        self._scene = scene
        self.picture.show(figure, f"The lanes of {len(keys)} keys: {self._run.summary()}")
        self.words.say(_ASK)

    def _zoom(self, x: list[Any], y: list[Any]) -> None:
        if self._scene is None or not self._kept or len(x) != 2:
            return
        first_ms, last_ms = (_time_at(self._scene, each) for each in x)
        if first_ms is None or last_ms is None:
            return
        if (first_ms, last_ms) != (self._kept["first_ms"], self._kept["last_ms"]) and first_ms < last_ms:
            self._kept |= {"first_ms": first_ms, "last_ms": last_ms}
            self._draw()

    def _explain(self, x: float | str, y: float | str, name: str) -> None:
        run, scene = self._run, self._scene
        if run is None or scene is None or isinstance(y, str) or not self._kept:
            return
        at_ms = _time_at(scene, x)
        if at_ms is None:
            return
        board, columns = scene.board, run.trace.window_columns
        number = round(min(max(len(board.lanes) - 1 - y, 0), len(board.lanes) - 1))
        lane = board.lanes[number]
        mine = board.windows[
            (columns.key[board.windows] == lane.key) & (columns.partition[board.windows] == lane.partition)
        ]
        over = mine[(columns.start_ms[mine] <= at_ms) & (columns.end_ms[mine] >= at_ms)]
        key, partition = run.trace.keys[lane.key].as_py(), int(run.trace.batch.partitions[lane.partition])
        if self._on_key is not None:
            self._on_key(key)
        if len(over):
            start_ms = int(columns.start_ms[over[0]])
            self.words.say(run.explain(key=key, window_start_ms=start_ms, partition=partition))
        else:
            self.words.say(f"Key {shorten(key)} has no window at {scene.axis.show(at_ms)}.")


def _time_at(scene: Plane | Lanes, place: float | str) -> int | None:
    """The time at a place on the picture's axis; None for what a browser should not have sent."""
    try:
        return scene.axis.ms_at(place)
    except (TypeError, ValueError, OverflowError):
        return None
