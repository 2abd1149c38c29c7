"""The browser behind `sk.browse`: what a store holds, asked by its own calls."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from sessionkit.base.calls import called_as
from sessionkit.base.durations import INT64_MAX, show_duration
from sessionkit.base.moments import SHORT_HISTORY_MS, moment_ms, show_time
from sessionkit.base.text import plural
from sessionkit.errors import InvalidArgument, SessionkitError, problem, shorten
from sessionkit.stores.base.store import BaseStore
from sessionkit.stores.read_only import ReadOnlyStore, result_names
from sessionkit.views.drawing.palettes import Figure, Theme
from sessionkit.widgets.board import Board, Picture, Place
from sessionkit.widgets.controls import Button, Control, Field
from sessionkit.widgets.store_figure import held_figure

SHOWN = 50  # windows that are listed and drawn
LOOKED_AT = 100_000  # windows that are read to find those of some letters or times
_TIMES = ("window_start_ms", "window_end_ms", "timestamp_ms")  # other names are the user's


class StoreBrowser(Board):
    """What a store holds, by key and time; read again for each question."""

    def __init__(self, store: BaseStore | ReadOnlyStore) -> None:
        self._store = store
        self._key = Field("key", "key holds")
        self._from = Field("from", "from", hint="a date, or ms")
        self._to = Field("to", "to", hint="a date, or ms")
        again = Button("again", "read again", hint="a store that is written to changes")
        self._rows: list[dict[str, Any]] = []
        super().__init__("What a store holds", [self._key, self._from, self._to, again])
        self._look_again()
        self.show_controls()

    def __repr__(self) -> str:
        return f"StoreBrowser: {self._store!r}"

    @called_as("browser.figure()")
    def figure(self, *, theme: Theme | None = None) -> Figure:
        """The windows that are shown, by key and time."""
        return held_figure(self._rows, self._store.noun, theme=theme)

    def follow(self, control: Control) -> None:
        """Reads the store again."""
        self._look_again()

    def draw(self) -> None:
        """Draws the windows that were read."""
        count = plural(len(self._rows), self._store.noun)
        self.show_pictures({"held": Picture(self.figure(theme=self._look.theme), f"{count} by key and time", zoom="")})

    def picked(self, row: int) -> None:
        """Shows the windows of one key."""
        if 0 <= row < len(self._rows):
            self._key.value = str(self._rows[row]["key"])

    def clicked(self, picture: str, x: Place, y: Place, name: str) -> None:
        """Shows the windows of the key of a lane."""
        lanes = list(dict.fromkeys((row["key"], row["partition"]) for row in self._rows))[::-1]
        if not isinstance(y, str) and lanes and -0.5 <= y < len(lanes) - 0.5:
            self._key.value = str(lanes[round(y)][0])

    def _look_again(self) -> None:
        try:
            rows = list(islice(self._found(), SHOWN + 1))
            told = [*self._told(), *self._store.facts()]
        except SessionkitError as error:
            self.say(str(error), of="refused")
            return
        self.say(of="refused")
        self._show(rows[:SHOWN], len(rows) > SHOWN, told)

    def _told(self) -> list[str]:
        store, noun = self._store, self._store.noun
        read = {partition: store.snapshot(partition).position for partition in store.partitions}
        seen = [f"{position:,} of partition {p}" for p, position in read.items() if position >= 0]
        held = f"{store.name}: what the store holds now."
        if not seen:
            return [held]
        through = f"Records up to offset {', '.join(seen[:3])}{', …' if len(seen) > 3 else ''} went through it."
        if store.retention_ms is None:
            return [held, f"{through} A {noun} that is closed is gone from it at once: its result went downstream."]
        kept = show_duration(store.retention_ms)
        return [held, f"{through} A {noun} is kept for {kept} of stream time, closed or not, and is then gone."]

    def _found(self) -> Iterator[dict[str, Any]]:
        letters = self._key.value.casefold()
        first_ms, last_ms = _time(self._from.value, "from", 0), _time(self._to.value, "to", INT64_MAX)
        if last_ms < first_ms:
            got = f"{self._from.value} to {self._to.value}"
            raise InvalidArgument(problem("the span ends before it starts", shorten(got), "swap them"))
        for row in islice(self._store.rows(), LOOKED_AT):
            start_ms, end_ms = row["window_start_ms"], row.get("window_end_ms", row["window_start_ms"])
            if letters in str(row["key"]).casefold() and start_ms <= last_ms and end_ms >= first_ms:
                yield row

    def _show(self, rows: list[dict[str, Any]], there_are_more: bool, told: list[str]) -> None:
        noun = self._store.noun
        if not rows:
            found = f"No {noun} is in the store that holds these letters and meets this time."
        elif there_are_more:
            found = f"The first {len(rows)} {noun}s; letters or times show others. Times are in UTC."
        else:
            found = f"{plural(len(rows), noun)}. Times are in UTC."
        self._rows = rows
        self.say(found, *told)
        self.draw()
        named = [self._named(row) for row in rows]
        cells = [[_cell(name, value) for name, value in row.items()] for row in named]
        titles = [name.removesuffix("_ms").replace("_", " ") if name in _TIMES else name for name in (named or [{}])[0]]
        # the key comes first: it is what is picked
        self.show_table(titles, cells, label=f"the {noun}s of the store", pick="shows the windows of this key")

    def _named(self, row: dict[str, Any]) -> dict[str, Any]:
        """A row with the key first, and its results under the names that the plan gave them."""
        row = {"key": row["key"], **row}
        names, value = result_names(self._store), row.pop("aggregate")
        if len(names) > 1 and isinstance(value, dict):
            return {**row, **value}
        return {**row, (names[0] if len(names) == 1 else "value"): value}


def _cell(name: str, value: Any) -> str:
    if name in _TIMES and isinstance(value, int):
        return show_time(value) if value > SHORT_HISTORY_MS else show_duration(value)
    return shorten(value)


def _time(text: str, name: str, otherwise_ms: int) -> int:
    """A time as it is typed: ms, or a date with or without a time, in UTC."""
    if not text.strip():
        return otherwise_ms
    try:
        return int(text) if text.strip().isdecimal() else moment_ms(text.strip(), name)
    except ValueError as error:
        want = 'a date such as "2013-07-01 05:15", or ms since 1970'
        raise InvalidArgument(problem(f"{name} must be a time", shorten(repr(text)), want)) from error
