"""The board behind `sk.watch`: a streaming query as it runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any

import ipywidgets

from sessionkit.base.moments import show_time
from sessionkit.errors import SessionkitError, shorten
from sessionkit.plan import Plan
from sessionkit.spark.checkpoint import newest_windows
from sessionkit.spark.query.progress import QueryProgress
from sessionkit.views.charts.stream import watched_figure
from sessionkit.widgets import watched_query as watching
from sessionkit.widgets.parts import ROW, Picture, Words

SHOWN_KEYS = 12  # lanes, of those that were asked for or else of the newest windows
_PLACED = ("partition", "key", "window_start_ms", "window_end_ms", "last_ms", "closed", "label")
_DRAWN_S = 1.0  # numbers are shown at most once in this time, however fast micro-batches are
_READ_S = 3.0  # and the state is read at most so often
_READ_SHARE = 5  # and takes at most this part of the time


class WatchBoard(ipywidgets.VBox):
    """The progress of a query: numbers, its partitions, and the windows of chosen keys.

    Args:
        plans: the plans of this process's runs, by the names that queries give them.
        keys: the keys to begin with; others can be typed.
    """

    def __init__(self, progress: QueryProgress, plans: Mapping[str, Plan], keys: Iterable[object]) -> None:
        self._progress, self._plans, self._kept = progress, plans, watching.KeptWindows()
        self._news, self._closing = threading.Event(), threading.Event()
        self._line, self._counts, self._partitions, self._said = Words(), Words(), Words(), Words()
        self._picture = Picture()
        text = ", ".join(map(str, keys))
        self._keys = ipywidgets.Text(
            text, description="keys", placeholder="a, b, c; else the newest", continuous_update=False
        )
        self._pause = ipywidgets.ToggleButton(
            False, description="pause", tooltip="the query goes on; the board does not update"
        )
        row = ipywidgets.HBox([self._keys, self._pause], layout=ROW)
        parts = [self._line, self._counts, row, self._partitions, self._said]
        super().__init__([*parts, self._picture] if progress.checkpoint else parts)
        if progress.checkpoint is None:
            self._said.say("sk.watch(query, checkpoint=…) would draw the windows of its keys.")
        self._keys.observe(lambda _: self._look_again(), "value")
        self._pause.observe(lambda _: self._news.set(), "value")
        self._picture.observe(lambda _: self._look_again(), "theme")
        self._read_at, self._read_took = 0.0, 0.0
        self._show()
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

    # ---- inside

    def _look_again(self) -> None:
        self._kept.clear()
        self._read_at = 0.0
        self._news.set()

    def _follow(self) -> None:
        while not self._closing.is_set():
            self._news.wait()
            self._news.clear()
            if self._closing.is_set():
                return
            if not self._pause.value:
                self._show()
                self._draw()
            self._closing.wait(_DRAWN_S)

    def _show(self) -> None:
        progress = self._progress
        self._line.say(progress.line(), *([shorten(progress.error, 400)] if progress.error else []))
        self._counts.show_counts(watching.counts(progress))
        self._partitions.show_table(watching.TITLES, watching.partition_rows(progress))

    def _draw(self) -> None:
        """Reads the state, if it is time to, and draws it."""
        progress = self._progress
        if progress.checkpoint is None or progress.run is None or not progress.batches:
            return
        pause = max(_READ_S, _READ_SHARE * self._read_took)
        if not progress.ended and time.monotonic() - self._read_at < pause:
            self._news.set()  # it is looked at again when it is time
            return
        windows = self._plans[progress.run].complete_windows
        keys = [key.strip() for key in self._keys.value.split(",") if key.strip()]
        batch, begun = progress.batches[-1].number, time.monotonic()
        clocks = {p: (each.stream_time_ms, each.last_close_time_ms) for p, each in progress.partitions.items()}
        try:
            held = newest_windows(progress.checkpoint, windows, keys, SHOWN_KEYS)
        except SessionkitError as error:
            self._said.say(str(error), refused=True)
            return
        self._read_at = time.monotonic()
        self._read_took = self._read_at - begun
        self._kept.take(held, {partition: close for partition, (_, close) in clocks.items()})
        rows = self._kept.rows()
        for row in rows:
            row["label"] = _label(row, progress.timezone)
        of = f"the {len(keys)} keys asked for" if keys else f"the {SHOWN_KEYS} keys with the newest windows"
        said = (
            f"as of micro-batch {batch}: {of}; read from the checkpoint in {self._read_took:.1f} s, now and then: what "
            "opened and closed in between is not seen"
        )
        figure = watched_figure(rows, clocks, windows.noun, said, timezone=progress.timezone, theme=self._picture.theme)
        self._picture.show(figure, f"{len(rows)} {windows.noun}s of the stream by key and time")
        self._said.say(*([] if rows else [f"No {windows.noun} of these keys is in the state."]))


def _label(row: dict[str, Any], timezone: str) -> str:
    values = ", ".join(f"{name} {shorten(value, 40)}" for name, value in row.items() if name not in _PLACED)
    start, end = (show_time(row[name], timezone) for name in ("window_start_ms", "window_end_ms"))
    return f"{row['key']}: {start} to {end}, {values}"
