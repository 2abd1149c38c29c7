"""The player behind `sk.play`: the arrivals of one key's plane, one after the other, with the reason for each."""

from __future__ import annotations

from typing import Any

import numpy as np

from sessionkit.base.calls import called_as
from sessionkit.base.decisions import LATE, MERGED
from sessionkit.base.durations import show_duration
from sessionkit.base.text import key_name, of_key, plural
from sessionkit.run import Run
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.views.drawing.palettes import Figure, Theme
from sessionkit.views.drawing.playback import curtain
from sessionkit.views.plane.plane import Composed, compose, plane_scene
from sessionkit.views.scenes.scene import Plane
from sessionkit.widgets.board import Board, Picture, Place
from sessionkit.widgets.controls import Control, Play, Steps
from sessionkit.widgets.run_views import Chosen, explained, plain_title, plane_notes
from sessionkit.widgets.tuner import Count

STEP_MS = 700  # of the play button: time to read what happened


class Player(Board):
    """A plane that is revealed arrival by arrival; beside it is what the newest record did, and why."""

    _scene: Plane
    _composed: Composed

    def __init__(self, run: Run, key: Any, **stretch: Any) -> None:
        self.run = run
        self.key = run.most_eventful_key() if key is None else key
        self._options = stretch
        scene = plane_scene(run.trace, run.plan._complete_windows, self.key, **self._options)
        steps = _steps(scene)
        self.arrivals = Steps("arrivals", "arrived", steps, len(steps) - 1)
        controls = [Play("play", "play the arrivals", "arrivals", STEP_MS), self.arrivals]
        super().__init__(f"The arrivals of {of_key(self.key)}", controls)
        self.draw()
        self.show_controls()

    def __repr__(self) -> str:
        return f"Player: {of_key(self.key)}, {plural(len(self.arrivals.words), 'arrival')}"

    @called_as("player.figure()")
    def figure(self, *, theme: Theme | None = None) -> Figure:
        """The plane with a slider over the arrivals, for a page or a file."""
        return self.run.plane(self.key, theme=theme, playback=True, **self._options)

    def _still(self, theme: Theme | None = None) -> Figure:
        return self.run.plane(self.key, theme=theme, **self._options)

    def draw(self) -> None:
        """Draws all of the plane: the curtain is laid over it."""
        trace, windows = self.run.trace, self.run.plan._complete_windows
        self._scene = scene = plane_scene(trace, windows, self.key, **self._look._asdict(), **self._options)
        self._composed = compose(scene)
        label = f"The plane of {of_key(self.key)}, arrival by arrival"
        picture = Picture(self._composed.figure, label, plain_title(scene, self.key), plane_notes(scene), legend=True)
        self.show_pictures({"plane": picture})
        self._lift()

    def follow(self, control: Control) -> None:
        """Lifts the curtain up to the arrival that is chosen."""
        self._lift()

    def pressed(self, picture: str, key: str) -> None:
        """Goes to the next arrival, or to the one before."""
        self.arrivals.place += {"up": 1, "down": -1}.get(key, 0)

    def clicked(self, picture: str, x: Place, y: Place, name: str) -> None:
        """Goes to the arrival that was clicked."""
        if not isinstance(y, str) and len(self._scene.rows):
            self.arrivals.place = round(min(max(y, 0), len(self._scene.rows) - 1))

    def _lift(self) -> None:
        scene, place = self._scene, self.arrivals.place
        if place >= len(scene.rows):
            return
        _, frame, placement = self._composed
        self.lay_over("plane", curtain(place, place == len(scene.rows) - 1, scene.colours, frame, placement))
        row = int(scene.rows[place])
        self.say(explained(self.run, Chosen(record=row)))
        self.show_counts(self._so_far(row))

    def _so_far(self, row: int) -> list[Count]:
        trace, axis, mine = self.run.trace, self._scene.axis, self._scene.history.own
        decision = trace.decision[mine[mine <= row]]
        stream_ms = int(trace.stream_time_ms[row])
        counts = [Count("records", len(decision), "of this key so far")]
        if isinstance(trace, SessionTrace):  # nothing else merges
            counts.append(Count("merges", int((decision == MERGED).sum()), "times one joined two"))
        counts.append(Count("dropped", int((decision == LATE).sum()), "came too late"))
        closed = int((trace.closes.at[self._scene.history.closes] <= row).sum())
        counts.append(Count("final", closed, f"{self.run.plan._complete_windows.noun}s closed so far"))
        if stream_ms >= 0:
            behind = int(np.max(trace.stream_time_ms[: row + 1]) - trace.batch.timestamp_ms[row])
            where = "behind" if behind > 0 else "ahead of"
            late = f"this record is {show_duration(abs(behind))} {where} it" if behind else "this record is the newest"
            counts.append(Count("stream time", stream_ms, late, shown=axis.show(stream_ms)))
        return counts


def _steps(scene: Plane) -> list[str]:
    """The name of each arrival: its offset, its key, its time."""
    batch, axis = scene.trace.batch, scene.axis
    names = []
    for row in scene.rows.tolist():
        key = batch.key_at(row)
        name = "no key" if key is None else key_name(key, 24)
        names.append(f"{int(batch.offset[row]):,} · {name} · {axis.show(int(batch.timestamp_ms[row]))}")
    return names or ["nothing"]
