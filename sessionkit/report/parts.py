"""What the sections of the page are made of: tables, bars, links. Every word of a user is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sessionkit.base.durations import show_duration
from sessionkit.base.text import escape_html

_MINUTE_MS, _DAY_MS = 60_000, 86_400_000


class Bar(NamedTuple):
    """A cell that shows a share of the longest bar of its table, from 0 to 1."""

    share: float


class Number(NamedTuple):
    """A cell that is written to the right."""

    text: str


Cell = str | Number | Bar


def section(title: str, *inner: str) -> str:
    """A part of the page under its title, which is escaped already."""
    return f"<section><h2>{title}</h2>{''.join(inner)}</section>"


def table(names: Sequence[str], rows: Iterable[Sequence[Cell]], *, scrolls: bool = False) -> str:
    """A table of cells; a narrow page scrolls it sideways, and `scrolls` keeps a long one in a frame."""
    lines = [list(row) for row in rows]
    first = lines[0] if lines else []
    head = "".join(
        f"<th scope='col'{_kind(first[at]) if at < len(first) else ''}>{escape_html(name)}</th>"
        for at, name in enumerate(names)
    )
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in lines)
    frame = "scroll" if scrolls else "wide"
    return f"<div class='{frame}' tabindex='0'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def numbers(*values: int) -> list[Cell]:
    """A cell for each number."""
    return [Number(f"{value:,}") for value in values]


def show_length(ms: int) -> str:
    """A length as a person says it: from a minute on to the second, from a day on to the minute.

    Example:
        >>> show_length(1_234), show_length(3_723_456), show_length(90_061_000)
        ('1 s 234 ms', '1 h 2 min 3 s', '1 d 1 h 1 min')
    """
    step = _MINUTE_MS if ms >= _DAY_MS else 1_000 if ms >= _MINUTE_MS else 1
    return show_duration((ms + step // 2) // step * step)


def tiles(cells: Iterable[tuple[str, str, str]], label: str, *, bad: Sequence[str] = ()) -> str:
    """Numbers in large letters, each with its name and a remark; those named in `bad` stand out."""
    inner = "".join(
        f"<div class='tile{' bad' if name in bad else ''}'><b>{escape_html(number)}</b><span>{name}</span>"
        f"<small>{escape_html(words)}</small></div>"
        for number, name, words in cells
    )
    return f"<section class='tiles' aria-label='{label}'>{inner}</section>"


def link(file: str | None, words: str) -> str:
    """A sentence with a link to a file beside the page; nothing where there is none."""
    return f"<p class='file'><a href='{escape_html(file)}'>{words}</a></p>" if file else ""


def _kind(cell: Cell) -> str:
    return " class='n'" if isinstance(cell, Number) else ""


def _cell(cell: Cell) -> str:
    if isinstance(cell, Bar):
        bar = f"<rect width='{100 * cell.share:.1f}%' height='10' rx='3'></rect>" if cell.share else ""
        return f"<td class='bar'><svg aria-hidden='true'>{bar}</svg></td>"
    text = cell.text if isinstance(cell, Number) else cell
    return f"<td{_kind(cell)}>{escape_html(text)}</td>"
