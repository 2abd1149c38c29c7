"""HTML that shows a run in a notebook: static, without a script, in Jupyter's own colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from sessionkit.base.durations import show_time
from sessionkit.base.text import escape_html, html_block, plural
from sessionkit.errors import shorten

SHOWN_ROWS = 10
_TIMES = ("window_start_ms", "window_end_ms")  # other names are the user's
_CELL = "text-align:left;padding:2px 10px 2px 0"


def run_html(summary: str, columns: Mapping[str, Any], remarks: Sequence[str] = ()) -> str:
    """The summary, remarks and the first windows; times as people read them."""
    total = len(columns["window_start_ms"])
    shown = {name: _head(column) for name, column in columns.items()}
    said = "".join(f"<p>{escape_html(remark)}</p>" for remark in remarks)
    return html_block(f"<p><b>{escape_html(summary)}</b></p>{said}{table_html(shown)}{_more(total)}")


def _more(total: int) -> str:
    if total <= SHOWN_ROWS:
        return ""
    return f"<p>{SHOWN_ROWS} of {escape_html(plural(total, 'window'))}; <code>.table()</code> has all.</p>"


def table_html(columns: Mapping[str, list[Any]]) -> str:
    """A plain HTML table; every name and value escaped, the times of windows said in words."""
    head = "".join(f'<th style="{_CELL}">{escape_html(_title(name))}</th>' for name in columns)
    rows = zip(*columns.values(), strict=True)
    body = "".join(
        "<tr>"
        + "".join(f'<td style="{_CELL}">{_cell(name, value)}</td>' for name, value in zip(columns, row, strict=True))
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _title(name: str) -> str:
    return name.removesuffix("_ms").replace("_", " ") if name in _TIMES else shorten(name)


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "–"
    if name in _TIMES:
        return escape_html(show_time(value))
    if isinstance(value, float):
        return escape_html(f"{value:,.2f}")
    return escape_html(shorten(value))


def _head(column: Any) -> list[Any]:
    top = column[:SHOWN_ROWS]
    return [_shown(each) for each in top] if isinstance(top, pa.Array | pa.ChunkedArray) else list(top.tolist())


def _shown(value: pa.Scalar) -> Any:
    try:
        return value.as_py()
    except (ValueError, OverflowError):  # Python has no such value, as for times after the year 9999
        return f"{getattr(value, 'value', '…')} ({value.type})"
