"""What a notebook shows of results: static HTML in Jupyter's own colours, or a picture with its words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from sessionkit.base.moments import show_time
from sessionkit.base.result_columns import AS_STORED, ResultForm
from sessionkit.base.text import escape_html, html_block, plural
from sessionkit.errors import shorten
from sessionkit.views.drawing.palettes import Figure

SHOWN_ROWS = 10
_TIMES = ("window_start_ms", "window_end_ms")  # other names are the user's
_CELL = "text-align:left;padding:2px 10px 2px 0"


def run_html(
    summary: str,
    columns: Mapping[str, Any],
    remarks: Sequence[str] = (),
    form: ResultForm = AS_STORED,
    timezone: str = "UTC",
) -> str:
    """The summary, remarks and the first windows; keys in their own columns, times as people read them."""
    total = len(columns["window_start_ms"])
    top = form.shown({name: column[:SHOWN_ROWS] for name, column in columns.items()}, times={})
    said = "".join(f"<p>{escape_html(remark)}</p>" for remark in remarks)
    table = table_html({name: _values(column) for name, column in top.items()}, timezone)
    many = escape_html(plural(total, "window"))
    more = f"{SHOWN_ROWS} of {many}; <code>.table()</code> has all. " * (total > SHOWN_ROWS)
    below = f"<p>{more}Times are in {escape_html(timezone)}.</p>" if total else ""
    return html_block(f"<p><b>{escape_html(summary)}</b></p>{said}{table}{below}")


def table_html(columns: Mapping[str, list[Any]], timezone: str = "UTC") -> str:
    """A plain HTML table; every name and value escaped, the times of windows as clocks in the zone show them."""
    titles = [n.removesuffix("_ms").replace("_", " ") if n in _TIMES else shorten(n) for n in columns]
    rows = zip(*columns.values(), strict=True)
    cells = [[_cell(name, value, timezone) for name, value in zip(columns, row, strict=True)] for row in rows]
    return plain_table_html(titles, cells)


def plain_table_html(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A plain HTML table of texts; each is escaped."""
    head = "".join(f'<th style="{_CELL}">{escape_html(title)}</th>' for title in titles)
    cells = ("".join(f'<td style="{_CELL}">{escape_html(cell)}</td>' for cell in row) for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(f'<tr>{row}</tr>' for row in cells)}</tbody></table>"


def _cell(name: str, value: Any, timezone: str) -> str:
    if value is None:
        return "–"
    if name in _TIMES:
        return show_time(value, timezone)
    if isinstance(value, float):
        return f"{value:,.2f}"
    return shorten(value)


def _values(column: Any) -> list[Any]:
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return [_shown(each) for each in column]
    return list(column.tolist())


def _shown(value: pa.Scalar) -> Any:
    try:
        return value.as_py()
    except (ValueError, OverflowError):  # Python has no such value, as for times after the year 9999
        return f"{getattr(value, 'value', '…')} ({value.type})"


class Pictured:
    """What a notebook shows as its picture, and as its words where there are no pictures."""

    def __repr__(self: Any) -> str:
        return " ".join(f"{each}." if each[-1:].isalnum() else each for each in self.words())

    def _repr_mimebundle_(self: Any, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return picture_bundle(self.figure(), repr(self))


def picture_bundle(figure: Figure, words: str) -> dict[str, Any]:
    """What a notebook shows: the figure as plotly's renderer has it, and the words where there are no pictures."""
    return {**figure._repr_mimebundle_(), "text/plain": words}
