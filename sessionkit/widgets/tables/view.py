"""`TableView`: a table that is sorted, filtered and paged, without a widget."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from sessionkit.errors import InvalidArgument, problem
from sessionkit.widgets.tables.columns import TableColumn
from sessionkit.widgets.tables.ordering import Rows

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
        self.columns = list(columns)
        self.row_count = len(columns[0].values) if columns else 0
        self._orders: OrderedDict[tuple[int, bool], Rows] = OrderedDict()
        self._asked: tuple[Question, Rows] | None = None

    def rows(self, question: Question) -> Rows:
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

    def page(self, question: Question, first: int) -> tuple[int, Rows]:
        """Where the page that has place `first` begins, and its rows."""
        found = self.rows(question)
        last_page = max(len(found) - 1, 0) // PAGE_ROWS * PAGE_ROWS
        start = min(max(first, 0) // PAGE_ROWS * PAGE_ROWS, last_page)
        return start, found[start : start + PAGE_ROWS]

    def shown(self, rows: Rows) -> list[list[str]]:
        """The cells of these rows, as they are said."""
        columns = [column.shown(rows) for column in self.columns]
        return [list(row) for row in zip(*columns, strict=True)]

    def _column(self, number: int) -> TableColumn:
        if not 0 <= number < len(self.columns):
            raise InvalidArgument(problem("the table has no such column", number, f"0 to {len(self.columns) - 1}"))
        return self.columns[number]

    def _order(self, column: int | None, descending: bool) -> Rows:
        if column is None:
            return np.arange(self.row_count)
        chosen, name = self._column(column), (column, descending)
        if not chosen.can_sort:
            raise InvalidArgument(problem("this column cannot be sorted", chosen.title, "numbers, times or text"))
        if name not in self._orders:
            self._orders[name] = chosen.order(descending=descending)
            while len(self._orders) > _KEPT_ORDERS:
                self._orders.popitem(last=False)
        self._orders.move_to_end(name)
        return self._orders[name]

    def _mask(self, question: Question) -> npt.NDArray[np.bool_] | None:
        masks = []
        if letters := question.letters.strip():
            searched = [
                column for column in self.columns if column.kind == "text" or (column.is_key and column.can_sort)
            ]
            found = np.zeros(self.row_count, np.bool_)
            for column in searched:
                found |= column.holding(letters)
            masks.append(found)
        for number, (low, high) in question.spans.items():
            masks.append(self._column(number).between(*self.span_of(number, low, high)))
        return np.logical_and.reduce(masks) if masks else None
