"""The browser behind `sk.browse`: what a store holds, asked by its own calls."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from itertools import islice
from typing import Any

import ipywidgets

from sessionkit.base.durations import INT64_MAX, show_duration
from sessionkit.base.moments import show_time
from sessionkit.base.text import plural
from sessionkit.errors import InvalidArgument, SessionkitError, problem, shorten
from sessionkit.stores.base.store import BaseStore
from sessionkit.stores.read_only import ReadOnlyStore
from sessionkit.views.charts.store_content import held_figure
from sessionkit.views.words import SHORT_HISTORY_MS
from sessionkit.widgets.parts import Picture, Words

SHOWN = 50  # windows that are listed and drawn
LOOKED_AT = 100_000  # windows that are read to find those of some letters or times


class StoreBrowser(ipywidgets.VBox):
    """What a store holds, by key and time; read again for each question."""

    def __init__(self, store: BaseStore | ReadOnlyStore) -> None:
        self._store = store
        self._key = ipywidgets.Text(description="key holds", continuous_update=False)
        self._from = ipywidgets.Text(description="from", placeholder="a date, or ms", continuous_update=False)
        self._to = ipywidgets.Text(description="to", placeholder="a date, or ms", continuous_update=False)
        again = ipywidgets.Button(description="read again", tooltip="a store that is written to changes")
        self._facts, self._said, self._table = Words(), Words(), Words()
        self._picture = Picture()
        super().__init__(
            [
                self._facts,
                ipywidgets.HBox([self._key, self._from, self._to, again]),
                self._said,
                self._picture,
                self._table,
            ]
        )
        for field in (self._key, self._from, self._to):
            field.observe(lambda _: self._look(), "value")
        again.on_click(lambda _: self._look())
        self._picture.observe(lambda _: self._look(), "theme")
        self._look()

    def __repr__(self) -> str:
        return f"StoreBrowser: {self._store!r}"

    def _look(self) -> None:
        try:
            self._facts.say(repr(self._store), *self._store.facts())
            rows = list(islice(self._found(), SHOWN + 1))
        except SessionkitError as error:
            self._said.say(str(error), refused=True)
            return
        self._show(rows[:SHOWN], len(rows) > SHOWN)

    def _found(self) -> Iterator[dict[str, Any]]:
        """The windows that hold the letters and meet the span."""
        letters = self._key.value.casefold()
        first_ms, last_ms = _time(self._from.value, "from", 0), _time(self._to.value, "to", INT64_MAX)
        if last_ms < first_ms:
            got = f"{self._from.value} to {self._to.value}"
            raise InvalidArgument(problem("the span ends before it starts", shorten(got), "swap them"))
        for row in islice(self._store.rows(), LOOKED_AT):
            start_ms, end_ms = row["window_start_ms"], row.get("window_end_ms", row["window_start_ms"])
            if letters in str(row["key"]).casefold() and start_ms <= last_ms and end_ms >= first_ms:
                yield row

    def _show(self, rows: list[dict[str, Any]], there_are_more: bool) -> None:
        noun = self._store.noun
        if not rows:
            self._said.say(f"No {noun} is in the store that holds these letters and meets this time.")
        elif there_are_more:
            self._said.say(f"The first {len(rows)} {noun}s; letters or times show others. Times are in UTC.")
        else:
            self._said.say(f"{plural(len(rows), noun)}. Times are in UTC.")
        self._picture.show(held_figure(rows, noun, theme=self._picture.theme), f"{len(rows)} {noun}s by key and time")
        titles = [name.replace("_", " ").removesuffix(" ms") for name in (rows[0] if rows else {})]
        self._table.show_table(titles, [[_cell(name, value) for name, value in row.items()] for row in rows])


def _cell(name: str, value: Any) -> str:
    if name.endswith("_ms") and isinstance(value, int):
        return show_time(value) if value > SHORT_HISTORY_MS else show_duration(value)
    return shorten(value)


def _time(text: str, name: str, otherwise_ms: int) -> int:
    """A time as it is typed: ms, or a date with or without a time, in UTC."""
    if not text.strip():
        return otherwise_ms
    try:
        if text.strip().isdecimal():
            return int(text)
        moment = dt.datetime.fromisoformat(text.strip())
        moment = moment.replace(tzinfo=None) - (moment.utcoffset() or dt.timedelta())
        return (moment - dt.datetime(1970, 1, 1)) // dt.timedelta(milliseconds=1)
    except ValueError as error:
        want = 'a date such as "2013-07-01 05:15", or ms since 1970'
        raise InvalidArgument(problem(f"{name} must be a time", shorten(repr(text)), want)) from error
