"""The board behind `sk.watch`: a streaming query as it runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sessionkit.base.calls import called_as
from sessionkit.base.moments import show_time
from sessionkit.base.text import plural
from sessionkit.errors import SessionkitError, shorten
from sessionkit.plan import Plan
from sessionkit.records.keys import list_of_keys
from sessionkit.spark.checkpoint import newest_windows
from sessionkit.spark.query.progress import QueryProgress
from sessionkit.spark.query.running import running_now
from sessionkit.views.drawing.palettes import Figure, Theme
from sessionkit.widgets import watched_query as watching
from sessionkit.widgets.board import Board, Picture
from sessionkit.widgets.controls import Control, Field, Switch
from sessionkit.widgets.store_figure import watched_figure

SHOWN_KEYS = 12  # lanes, of those that were asked for or else of the newest windows
_PLACED = ("partition", "key", "window_start_ms", "window_end_ms", "last_ms", "closed", "label")
_ASKED_S = 1.0  # so often Spark is asked what it does now
_DRAWN_S = 1.0  # numbers are shown at most once in this time, however fast micro-batches are
_READ_S = 3.0  # and the state is read at most so often
_READ_SHARE = 5  # and takes at most this part of the time


class Drawn(NamedTuple):
    """What the picture is made of; without a noun nothing was read yet."""

    rows: Sequence[dict[str, Any]]
    clocks: Mapping[int, tuple[int, int]]
    noun: str
    said: str


class WatchBoard(Board):
    """The progress of a query: what it does now, numbers, its partitions, and the windows of chosen keys.

    `plans` are those of this process's runs, by the names that queries give them; other keys can be typed.
    """

    def __init__(self, progress: QueryProgress, plans: Mapping[str, Plan], keys: Iterable[object], query: Any) -> None:
        self._progress, self._plans, self._kept, self._query = progress, plans, watching.KeptWindows(), query
        self._news, self._closing = threading.Event(), threading.Event()
        self._pulse, self._drawn = watching.Pulse(time.monotonic()), Drawn((), {}, "", "")
        self._keys = Field("keys", "keys", ", ".join(map(str, list_of_keys(keys))), hint="a, b, c; else the newest")
        self._pause = Switch("pause", "pause", hint="the query goes on; the board does not update")
        super().__init__(f"The query {progress.name} as it runs", [self._keys, self._pause])
        self._told: list[str] = []
        if progress.checkpoint is None:
            self._told = ["sk.watch(query, checkpoint=…) would draw the windows of its keys."]
        self._read_at, self._read_took, self._read_batch = 0.0, 0.0, -1
        self._show()
        self.show_controls()
        self._follower = threading.Thread(target=self._follow, name="sessionkit-watch", daemon=True)
        self._follower.start()

    def __repr__(self) -> str:
        return f"WatchBoard: {self._progress.line()}"

    def hear(self, _: QueryProgress) -> None:
        """Takes note of news, which is shown when there is time."""
        self._news.set()

    def stop(self) -> None:
        """Stops following the query; what is shown stays."""
        self._closing.set()
        self._news.set()
        self._follower.join()

    @called_as("board.figure()")
    def figure(self, *, theme: Theme | None = None) -> Figure:
        """The windows of the chosen keys, as the state had them when it was last read."""
        rows, clocks, noun, said = self._drawn
        return watched_figure(rows, clocks, noun, said, timezone=self._progress.timezone, theme=theme)

    def follow(self, control: Control) -> None:
        """Reads the state for other keys, or goes on after a pause."""
        if control is self._keys:
            self._kept.clear()
            self._read_at = 0.0
        self._news.set()

    def draw(self) -> None:
        """Draws what was read, for the page as it is now."""
        if self._drawn.noun:
            label = f"{plural(len(self._drawn.rows), self._drawn.noun)} of the stream by key and time"
            self.show_pictures({"stream": Picture(self.figure(theme=self._look.theme), label, zoom="")})

    def _follow(self) -> None:
        while not self._closing.is_set():
            self._news.wait(_ASKED_S)
            self._news.clear()
            if self._closing.is_set():
                return
            if not self._pause.shown:
                self._show()
                self._read()
            if self._progress.ended and not self._news.is_set():
                self._news.wait()
                self._news.set()
            self._closing.wait(_DRAWN_S)

    def _show(self) -> None:
        progress, now = self._progress, None if self._progress.ended else running_now(self._query)
        doing = self._pulse.words(progress, now, time.monotonic())
        spent = watching.time_spent(progress)
        failed = [shorten(progress.error, 400)] if progress.error else []
        with self.hold_sync():
            self.say(*([doing] if doing else []), of="doing")
            self.say(progress.line(), *([spent] if spent else []), *failed, *self._told)
            self.show_counts(watching.counts(progress))
            self.show_table(watching.TITLES, watching.partition_rows(progress), label="the partitions")

    def _read(self) -> None:
        """Reads the state, if it is time to, and draws it."""
        progress = self._progress
        if progress.checkpoint is None or progress.run is None or not progress.batches:
            return
        pause = max(_READ_S, _READ_SHARE * self._read_took)
        if not progress.ended and time.monotonic() - self._read_at < pause:
            return  # it is looked at again when it is time
        windows = self._plans[progress.run]._complete_windows
        batch = progress.batches[-1].number
        if self._read_batch == batch and self._read_at:
            return  # nothing has changed
        keys = [key.strip() for key in self._keys.value.split(",") if key.strip()]
        begun = time.monotonic()
        clocks = {p: (each.stream_time_ms, each.last_close_time_ms) for p, each in progress.partitions.items()}
        try:
            held = newest_windows(progress.checkpoint, windows, keys, SHOWN_KEYS)
        except SessionkitError as error:
            self.say(str(error), of="refused")
            return
        self.say(of="refused")
        self._read_at, self._read_batch = time.monotonic(), batch
        self._read_took = self._read_at - begun
        self._kept.take(held, {partition: close for partition, (_, close) in clocks.items()})
        rows = self._kept.rows()
        for row in rows:
            row["label"] = _label(row, progress.timezone)
        of = f"the {plural(len(keys), 'key')} asked for" if keys else f"the {SHOWN_KEYS} keys with the newest windows"
        said = (
            f"as of micro-batch {batch}: {of}; read from the checkpoint in {self._read_took:.1f} s, now and then: what "
            "opened and closed in between is not seen"
        )
        self._drawn = Drawn(rows, clocks, windows.noun, said)
        self._told = [] if rows else [f"No {windows.noun} of these keys is in the state."]
        with self.hold_sync():
            self.draw()
            self.show_controls()


def _label(row: dict[str, Any], timezone: str) -> str:
    values = ", ".join(f"{name} {shorten(value, 40)}" for name, value in row.items() if name not in _PLACED)
    start, end = (show_time(row[name], timezone) for name in ("window_start_ms", "window_end_ms"))
    return f"{row['key']}: {start} to {end}, {values}"
