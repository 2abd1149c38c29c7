"""The widget behind `sk.browse(run)`: a table of a run, whose rows are explained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import anywidget
import numpy as np
import traitlets

from sessionkit.base.arrays import Flags, Longs
from sessionkit.base.assets import read_asset
from sessionkit.base.text import escape_html, html_block, one_of, plural
from sessionkit.errors import InvalidArgument, SessionkitError, problem, shorten
from sessionkit.run import Run
from sessionkit.views.dropped import dropped_table
from sessionkit.views.html import plain_table_html
from sessionkit.widgets.tables.columns import TableColumn, table_columns

PAGE_ROWS = 50
_KEPT_ORDERS = 4  # of ten million rows each takes 80 MB


@dataclass(frozen=True)
class Question:
    """Which rows to show, and in what order: by a column, else as the run has them."""

    letters: str = ""  # in the key or in any text
    spans: Mapping[int, tuple[str, str]] = field(default_factory=dict)  # of columns: from and to, as typed; "" for none
    column: int | None = None
    descending: bool = False


class TableView:
    """The rows of a table that answer a question, a page at a time.

    Each column is sorted once for each direction; letters are looked for once in each different text.
    """

    def __init__(self, columns: Sequence[TableColumn]) -> None:
        self.columns = columns = list(columns)
        self.row_count = len(columns[0].values) if columns else 0
        self._sorted = lru_cache(_KEPT_ORDERS)(lambda number, down: columns[number].order(descending=down))
        self._asked: tuple[Question, Longs] | None = None

    def rows(self, question: Question) -> Longs:
        """The rows that answer it, by their numbers in the run's order.

        Raises:
            InvalidArgument: no such column, one without an order, or a bound that cannot be read.
        """
        if self._asked is not None and self._asked[0] == question:
            return self._asked[1]
        order = self._order(question.column, question.descending)
        mask = self._mask(question)
        found = order if mask is None else order[mask[order]]
        self._asked = question, found
        return found

    def span_of(self, column: int, low: str, high: str) -> tuple[Any, Any]:
        """The bounds of a span as values of the column; None where there is none."""
        chosen = self._column(column)
        if chosen.read is None:
            raise InvalidArgument(problem("this column has no spans", chosen.title, "a column of numbers or times"))
        least = chosen.read(low, False) if low.strip() else None
        most = chosen.read(high, True) if high.strip() else None
        if least is not None and most is not None and most < least:
            raise InvalidArgument(problem("the span ends before it starts", f"{low} to {high}", "swap them"))
        return least, most

    def page(self, question: Question, first: int) -> tuple[int, Longs]:
        """Where the page that has place `first` begins, and its rows."""
        found = self.rows(question)
        last_page = max(len(found) - 1, 0) // PAGE_ROWS * PAGE_ROWS
        start = min(max(first, 0) // PAGE_ROWS * PAGE_ROWS, last_page)
        return start, found[start : start + PAGE_ROWS]

    def shown(self, rows: Longs) -> list[list[str]]:
        columns = [column.shown(rows) for column in self.columns]
        return [list(row) for row in zip(*columns, strict=True)]

    def _column(self, number: int) -> TableColumn:
        if not 0 <= number < len(self.columns):
            raise InvalidArgument(problem("the table has no such column", number, f"0 to {len(self.columns) - 1}"))
        return self.columns[number]

    def _order(self, column: int | None, descending: bool) -> Longs:
        if column is None:
            return np.arange(self.row_count)
        chosen = self._column(column)
        if not chosen.can_sort:
            raise InvalidArgument(problem("this column cannot be sorted", chosen.title, "numbers, times or text"))
        return self._sorted(column, descending)

    def _mask(self, question: Question) -> Flags | None:
        masks = []
        if letters := question.letters.strip():
            searched = [each for each in self.columns if each.kind == "text" or (each.is_key and each.can_sort)]
            found = [each.holding(letters) for each in searched]
            masks.append(np.logical_or.reduce([np.zeros(self.row_count, np.bool_), *found]))
        for number, (low, high) in question.spans.items():
            masks.append(self._column(number).between(*self.span_of(number, low, high)))
        return np.logical_and.reduce(masks) if masks else None


View = Literal["table", "changelog", "dropped"]
VIEWS = {"table": ("Windows", ""), "changelog": ("What went downstream", "result"), "dropped": ("Drops", "drop")}
MOST_WITH_GRACE = 100_000  # drops: the grace that a late record lacked costs a replay of its key
STATIC_ROWS = 10  # where no script runs
_SHOWN_TITLE = 60  # letters


class _View(NamedTuple):
    """One view of a run: its columns, what a row is called, and how one is explained."""

    columns: Mapping[str, Any]
    noun: str
    explain: Callable[[int], str]


class TableBrowser(anywidget.AnyWidget):
    """A view of a run to look into: found, sorted and paged in the kernel; a row is explained below the table."""

    _esm = "".join(map(read_asset, ("views/page/make.js", "widgets/keys.js", "widgets/table.js")))
    _css = read_asset("widgets/table.css")
    state = traitlets.Dict().tag(sync=True)  # set by the browser: what is asked for
    shown = traitlets.Dict().tag(sync=True)  # the page that answers it
    words = traitlets.List(traitlets.Unicode()).tag(sync=True)  # what was said of a row
    label = traitlets.Unicode().tag(sync=True)  # for a screen reader

    def __init__(self, run: Run, what: str) -> None:
        one_of("what", what, tuple(VIEWS))
        self._run, self._view = run, _view(run, what)
        form = run._outcome.batch.form
        self.table = TableView(table_columns(self._view.columns, form, run.timezone))
        super().__init__(label=f"{VIEWS[what][0]}: {run.summary()}")
        self.observe(lambda _: self._answer(), "state")
        self.on_msg(self._heard)
        self._answer()

    def __repr__(self) -> str:
        return f"TableBrowser: {plural(self.table.row_count, self._view.noun)} of {self._run.summary()}"

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """The widget, and the first rows for where no script runs."""
        rows = self.table.rows(Question())[:STATIC_ROWS]
        table = plain_table_html([column.title for column in self.table.columns], self.table.shown(rows))
        more = f"The first {len(rows)} of " if self.table.row_count > len(rows) else ""
        said = escape_html(f"{more}{plural(self.table.row_count, self._view.noun)}. {self._zone}")
        bundle: Any = super()._repr_mimebundle_(**options)
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        data["text/html"] = html_block(f"<p><b>{escape_html(self.label)}</b></p>{table}<p>{said}</p>")
        return bundle

    def _answer(self) -> None:
        """Shows the page that is asked for; a question that cannot be answered is refused, and the page stays."""
        asked = self.state
        try:
            question = _question(asked)
            start, rows = self.table.page(question, _number(asked.get("first"), 0))
        except SessionkitError as error:
            self.shown = self.shown | {"asked": asked.get("asked", 0), "refused": str(error)}
            return
        found, total = len(self.table.rows(question)), self.table.row_count
        self.shown = {
            "asked": asked.get("asked", 0),
            "refused": "",
            "columns": [
                {"title": shorten(column.title, _SHOWN_TITLE), "kind": column.kind, "sort": column.can_sort,
                 "span": column.read is not None}
                for column in self.table.columns
            ],
            "sorted": [-1 if question.column is None else question.column, question.descending],
            "cells": self.table.shown(rows),
            "rows": rows.tolist(),
            "first": start,
            "found": found,
            "zone": self._zone,
            "said": self._said(start, len(rows), found, total),
            "spans": [
                {"column": number, "words": self._span(number, low, high)}
                for number, (low, high) in question.spans.items()
            ],
        }  # fmt: skip

    def _said(self, start: int, count: int, found: int, total: int) -> str:
        noun = self._view.noun
        if not total:
            return f"This run has no {noun}s here."
        of = plural(total, noun)
        if not found:
            return f"None of {of} fits." if total > 1 else f"The only {noun} does not fit."
        place = f"row {start + 1:,}" if count == 1 else f"rows {start + 1:,}–{start + count:,}"
        return f"{place} of {found:,}" if found == total else f"{place} of {found:,} that fit, of {of}"

    @property
    def _zone(self) -> str:
        """The zone of the times; nothing where they count from zero."""
        has_dates = any(column.kind == "time" for column in self.table.columns)
        return f"Times are in {self._run.timezone}." if has_dates else ""

    def _span(self, number: int, low: str, high: str) -> str:
        title = shorten(self.table.columns[number].title, _SHOWN_TITLE)
        parts = [f"from {low.strip()}"] * bool(low.strip()) + [f"to {high.strip()}"] * bool(high.strip())
        return f"{title} {' '.join(parts)}"

    def _heard(self, _: Any, message: Any, buffers: Any) -> None:
        row = message.get("row") if isinstance(message, dict) and message.get("kind") == "explain" else None
        if isinstance(row, int) and 0 <= row < self.table.row_count:
            self.explain(row)

    def explain(self, row: int) -> None:
        """Explains a row, by its number in the run's order, below the table."""
        try:
            self.words = self._view.explain(row).splitlines()
        except SessionkitError as error:
            self.words = [str(error)]


def _question(asked: Mapping[str, Any]) -> Question:
    """What the browser asks for: of what it sends, all that has the right form."""
    column = _number(asked.get("column"), -1)
    spans = asked.get("spans")
    return Question(
        letters=str(asked.get("letters") or ""),
        spans={
            int(number): (str(span[0]), str(span[1]))
            for number, span in (spans if isinstance(spans, dict) else {}).items()
            if str(number).isdecimal() and isinstance(span, list) and len(span) == 2
        },
        column=column if column >= 0 else None,
        descending=bool(asked.get("descending")),
    )


def _number(value: Any, otherwise: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else otherwise


def _view(run: Run, what: str) -> _View:
    """A view by its name: its columns, and a row explained as the window or the record that it is of."""
    columns: Mapping[str, Any] = run._table if what == "table" else {}
    if what == "changelog":
        columns = run._changelog
    elif what == "dropped":
        with_grace = len(run.trace.dropped_at) <= MOST_WITH_GRACE
        table = dropped_table(run.trace, run.plan._complete_windows, missing_grace=with_grace)
        columns = dict(zip(table.column_names, table.columns, strict=True))

    def cell(name: str, row: int) -> Any:
        value = columns[name][row]
        return value.as_py() if hasattr(value, "as_py") else value.item()

    def explain(row: int) -> str:
        partition = cell("partition", row)
        if what == "table":
            start_ms = cell("window_start_ms", row)
            return str(run.explain(key=cell("key", row), window_start=start_ms, partition=partition))
        return str(run.explain(offset=cell("offset", row), partition=partition))

    return _View(columns, VIEWS[what][1] or run.plan._complete_windows.noun, explain)
