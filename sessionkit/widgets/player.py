"""The player behind `sk.play`: the arrivals of one key's plane, one after the other, with the reason for each."""

from __future__ import annotations

import json
from typing import Any

import ipywidgets
import numpy as np

from sessionkit.base.decisions import LATE, MERGED
from sessionkit.base.durations import show_duration
from sessionkit.errors import shorten
from sessionkit.run import Run
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.views.charts.drawing.playback import curtain
from sessionkit.views.charts.plane.plane import Composed, compose, plane_scene
from sessionkit.views.charts.scenes.scene import Plane
from sessionkit.widgets.parts import Picture, Steps, Words
from sessionkit.widgets.tuner import Count

STEP_MS = 700  # of the play button: time to read what happened


class Player(ipywidgets.VBox):
    """A plane that is revealed arrival by arrival; below it is what the newest record did, and why."""

    _scene: Plane
    _composed: Composed

    def __init__(self, run: Run, key: Any, partition: int | None, first: int | None, last: int | None) -> None:
        self.run = run
        self.key = run.most_eventful_key() if key is None else key
        self._options: dict[str, Any] = {"partition": partition, "first": first, "last": last}
        self._picture, self._counts, self._words = Picture(), Words(), Words()
        self._compose()
        self.arrivals = Steps(name="arrived", words=self._steps())
        self.arrivals.place = len(self.arrivals.words) - 1
        play = ipywidgets.Play(min=0, max=self.arrivals.place, interval=STEP_MS, show_repeat=False)
        play.description = "play the arrivals"
        ipywidgets.jslink((play, "value"), (self.arrivals, "place"))
        super().__init__([ipywidgets.HBox([play, self.arrivals]), self._counts, self._picture, self._words])
        play.value = self.arrivals.place
        self.arrivals.observe(lambda _: self._lift(), "place")
        self._picture.observe(lambda _: self._draw_anew(), ["theme", "width"])
        self._lift()

    def __repr__(self) -> str:
        return f"Player: key {shorten(self.key)}, {len(self.arrivals.words)} arrivals"

    def _compose(self) -> None:
        """Draws all of the plane: the curtain is laid over it."""
        trace, windows = self.run.trace, self.run.plan.windows
        self._scene = plane_scene(trace, windows, self.key, **self._picture.look, **self._options)
        self._composed = compose(self._scene)
        self._picture.show(self._composed.figure, f"The plane of key {shorten(self.key)}, arrival by arrival")

    def _draw_anew(self) -> None:
        self._compose()
        self._lift()

    def _steps(self) -> list[str]:
        """The name of each arrival: its offset, its key, its time."""
        batch, keys, axis = self._scene.trace.batch, self._scene.trace.keys, self._scene.axis
        names = []
        for row in self._scene.rows.tolist():
            name = shorten(keys[int(batch.key[row])].as_py(), 24) if batch.key[row] >= 0 else "no key"
            names.append(f"{int(batch.offset[row]):,} · {name} · {axis.show(int(batch.timestamp_ms[row]))}")
        return names or ["nothing"]

    def _lift(self) -> None:
        scene, place = self._scene, self.arrivals.place
        if not 0 <= place < len(scene.rows):
            return
        _, frame, placement = self._composed
        state = curtain(place, place == len(scene.rows) - 1, scene.colours, frame, placement)
        self._picture.lay_over(json.dumps(state))
        row = int(scene.rows[place])
        batch = self.run.trace.batch
        at = {"offset": int(batch.offset[row]), "partition": int(batch.partitions[batch.partition[row]])}
        self._words.say(self.run.explain(**at))
        self._counts.show_counts(self._so_far(row))

    def _so_far(self, row: int) -> list[Count]:
        """What the key had come to when this record had arrived."""
        trace, axis, mine = self.run.trace, self._scene.axis, self._scene.history.own
        decision = trace.decision[mine[mine <= row]]
        stream_ms = int(trace.stream_time_ms[row])
        counts = [Count("records", len(decision), "of this key so far")]
        if isinstance(trace, SessionTrace):  # nothing else merges
            counts.append(Count("merges", int((decision == MERGED).sum()), "times one joined two"))
        counts.append(Count("dropped", int((decision == LATE).sum()), "came too late"))
        closed = int((trace.closes.at[self._scene.history.closes] <= row).sum())
        counts.append(Count("final", closed, f"{self.run.plan.windows.noun}s closed so far"))
        if stream_ms >= 0:
            behind = int(np.max(trace.stream_time_ms[: row + 1]) - trace.batch.timestamp_ms[row])
            late = f"this record is {show_duration(behind)} behind it" if behind > 0 else "this record is the newest"
            counts.append(Count("stream time", stream_ms, late, shown=axis.show(stream_ms)))
        return counts
