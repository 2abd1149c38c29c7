"""Sections of the page: their tables, bars and links, which escape every word of a user, and those about sessions."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from sessionkit.base.durations import DAY, MINUTE, SECOND, show_duration
from sessionkit.base.text import escape_html, key_name, percent, plural
from sessionkit.errors import shorten
from sessionkit.report.sessions import LENGTHS_MS, SIZES, Bin, Group, Sessions, at_most, bins
from sessionkit.report.standing_out import standing_out
from sessionkit.views.words import clock, zone_named


class Bar(NamedTuple):
    """A cell that shows a share of the longest bar of its table, from 0 to 1."""

    share: float


class Number(NamedTuple):
    """A cell that is written to the right, as whole numbers are."""

    text: str


Cell = str | int | Number | Bar
MOST_ATTACHED = 3_000_000  # bytes of all files that the page holds


def section(title: str, *inner: str) -> str:
    """A part of the page under its title, which is escaped already."""
    return f"<section><h2>{title}</h2>{''.join(inner)}</section>"


def table(names: Sequence[str], rows: Sequence[Sequence[Cell]], *, scrolls: bool = False) -> str:
    """A table of one row or more; a narrow page scrolls it sideways, and `scrolls` keeps a long one in a frame."""
    named = zip(names, rows[0], strict=True)
    head = "".join(f"<th scope='col'{_kind(cell)}>{escape_html(name)}</th>" for name, cell in named)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    frame = "scroll" if scrolls else "wide"
    return f"<div class='{frame}' tabindex='0'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def show_length(ms: int) -> str:
    """A length as a person says it: from a minute on to the second, from a day on to the minute."""
    step = MINUTE if ms >= DAY else SECOND if ms >= MINUTE else 1
    return show_duration((ms + step // 2) // step * step)


def tiles(cells: Iterable[tuple[str, str, str]], label: str, *, bad: Sequence[str] = ()) -> str:
    """Longs in large letters, each with its name and a remark; those named in `bad` stand out."""
    inner = "".join(
        f"<div class='tile{' bad' if name in bad else ''}'><b>{escape_html(number)}</b><span>{name}</span>"
        f"<small>{escape_html(words)}</small></div>"
        for number, name, words in cells
    )
    return f"<section class='tiles' aria-label='{label}'>{inner}</section>"


class Attached(NamedTuple):
    """A file of the report, by its name and size in bytes; with its content if the page holds it."""

    name: str
    size: int
    content: bytes | None


Files = dict[str, Attached]


def link(file: Attached | None, words: str) -> str:
    """A sentence with the file as a download, or with its name if it is too large for the page; nothing without one."""
    if file is None:
        return ""
    size = f"{file.size / 1e6:,.1f} MB" if file.size >= 1e6 else f"{max(file.size / 1e3, 0.1):,.1f} kB"
    name = escape_html(file.name)
    if file.content is None:
        most = f"which holds files of {MOST_ATTACHED / 1e6:.0f} MB at most in all"
        said = f"{name} ({size}) is not in this page, {most}: it is in the folder of the report."
        return f"<p class='file'>{words}. {said}</p>"
    kind = "text/csv" if file.name.endswith(".csv") else "application/vnd.apache.parquet"
    data = f"data:{kind};base64,{base64.b64encode(file.content).decode()}"
    return f"<p class='file'><a download='{name}' href='{data}'>{words}</a> ({name}, {size})</p>"


def _kind(cell: Cell) -> str:
    return " class='n'" if isinstance(cell, int | Number) else ""


def _cell(cell: Cell) -> str:
    if isinstance(cell, Bar):
        bar = f"<rect width='{100 * cell.share:.1f}%' height='10' rx='3'></rect>" if cell.share else ""
        return f"<td class='bar'><svg aria-hidden='true'>{bar}</svg></td>"
    text = cell.text if isinstance(cell, Number) else f"{cell:,}" if isinstance(cell, int) else cell
    return f"<td{_kind(cell)}>{escape_html(text)}</td>"


# ---- the sections that show the sessions, or other windows, themselves


SHOWN_KEYS = 20


def session_sections(sessions: Sessions, files: Files) -> str:
    """How long and how large the sessions are, those that stand out, per key and per day."""
    if not len(sessions):
        return ""
    return _distributions(sessions) + "".join(part(sessions, files) for part in (_first_ones, _per_key, _per_period))


def _distributions(sessions: Sessions) -> str:
    lengths, records, noun = sessions.length_ms, sessions.records, sessions.noun
    shown = [
        (f"{at_most(records, 0.5):,}", "median size", f"{plural(int((records == 1).sum()), noun)} of one record"),
        (f"{records.max():,}", f"largest {noun}", "records in it"),
    ]
    by_size = _histogram("records", noun, [(_size_words(each), each.sessions) for each in bins(records, SIZES)])
    how_large = f"<h3>How large they are</h3>{by_size}"
    if not sessions.have_lengths:
        return section(f"The {noun}s", tiles(shown, "sizes"), how_large)
    shown = [
        (show_length(at_most(lengths, 0.5)), "median length", "half of the sessions last so long or less"),
        (show_length(at_most(lengths, 0.9)), "nine of ten", "90% of the sessions last so long or less"),
        (show_length(int(lengths.max())), "longest session", "from its first record to its last"),
        *shown,
    ]
    return section(
        "The sessions",
        "<p>A session lasts from its first record to its last; one of a single record has no length.</p>",
        tiles(shown, "lengths and sizes"),
        "<div class='pair'><div><h3>How long they are</h3>",
        _histogram("length", noun, [(_length_words(each), each.sessions) for each in bins(lengths, LENGTHS_MS)]),
        f"</div><div>{how_large}</div></div>",
    )


def _histogram(name: str, noun: str, counted: list[tuple[str, int]]) -> str:
    most, total = max(count for _, count in counted), sum(count for _, count in counted)
    rows: list[list[Cell]] = [
        [words, Bar(count / most), count, Number(percent(count / total))] for words, count in counted
    ]
    return table([name, "", f"{noun}s", "share"], rows)


def _length_words(each: Bin) -> str:
    if each.up_to == 0:
        return "a single moment"
    if each.up_to is None:
        return f"more than {show_length(each.above)}"
    return f"up to {show_length(each.up_to)}"


def _size_words(each: Bin) -> str:
    if each.up_to is None or each.up_to - each.above == 1:
        return f"{each.up_to or each.above + 1:,}"
    return f"{each.above + 1:,} to {each.up_to:,}"


def _first_ones(sessions: Sessions, files: Files) -> str:
    """The sessions that stand out, each once with all that it stands out by, and every result that was asked for."""
    at, zone = clock(sessions.trace), zone_named(sessions.trace)
    keys, noun, has_length, results = sessions.trace.keys, sessions.noun, sessions.have_lengths, sessions.results
    merges = bool(sessions.merged.any())
    rows: list[list[Cell]] = [
        [
            ", ".join(reasons),
            key_name(keys[int(sessions.key[place])].as_py()),
            int(sessions.records[place]),
            *([Number(show_length(int(sessions.length_ms[place])))] if has_length else []),
            *([int(sessions.merged[place])] if merges else []),
            *(_value(column[place]) for column in results.values()),
            at(int(sessions.start_ms[place])),
        ]
        for place, reasons in standing_out(sessions).items()
    ]
    numbered = ["records", *(["length"] if has_length else []), *(["merges"] if merges else []), *map(shorten, results)]
    return section(
        f"{noun.capitalize()}s that stand out",
        f"<p>Times are in {zone}.</p>" if zone else "",
        f"<div class='reasons'>{table(['why', 'key', *numbered, 'start'], rows)}</div>",
        link(files.get(f"{noun}s"), f"All {plural(len(sessions), noun)} as a file"),
    )


def _value(value: Any) -> Cell:
    value = value.as_py() if isinstance(value, pa.Scalar) else value
    if value is None:
        return "–"
    if isinstance(value, float | Decimal):
        return Number(f"{value:.3g}" if 0 < abs(float(value)) < 0.1 else f"{value:,.2f}")
    return value if isinstance(value, int) and not isinstance(value, bool) else shorten(value)


def _per_key(sessions: Sessions, files: Files) -> str:
    group, keys = sessions.by_key, sessions.trace.keys
    shown = min(SHOWN_KEYS, len(group.code))
    most = f"The {shown} keys with the most {sessions.noun}s, of {len(group.code):,}."
    return section(
        "Per key",
        f"<p>{most}</p>" if shown < len(group.code) else "",
        _grouped("key", sessions, group, [key_name(keys[int(code)].as_py()) for code in group.code[:shown]]),
        link(files.get("keys"), f"{plural(len(group.code), 'key')} as a file"),
    )


def _grouped(word: str, sessions: Sessions, group: Group, names: list[str], *, scrolls: bool = False) -> str:
    """A table with a row for each name: the sessions that belong to it, their records, and what was dropped."""
    has_drops, total = bool(group.dropped.any()), np.maximum(group.records + group.dropped, 1)
    most, lengths = int(group.sessions.max()), (group.median_ms, group.longest_ms) if sessions.have_lengths else ()
    rows: list[list[Cell]] = [
        [
            name,
            Bar(int(group.sessions[row]) / most),
            *(int(column[row]) for column in (group.sessions, group.records, group.dropped)),
            *([Number(percent(group.dropped[row] / total[row]))] if has_drops else []),
            *(Number(show_length(int(column[row])) if group.sessions[row] else "") for column in lengths),
        ]
        for row, name in enumerate(names)
    ]
    numbered = [f"{sessions.noun}s", "records", "dropped", *(["share"] if has_drops else [])]
    numbered += ["median length", "longest"] if lengths else []
    return table([word, "", *numbered], rows, scrolls=scrolls)


def _per_period(sessions: Sessions, files: Files) -> str:
    word, names, group = sessions.by_period
    days, _ = sessions.by_day
    timezone, noun = sessions.trace.batch.timezone, sessions.noun
    record, on = "a dropped record" if sessions.have_lengths else "a record", "on" if word == "day" else "in"
    said = f"A {noun} counts {on} the {word} {on} which it begins, {record} {on} the {word} of its own time"
    return section(
        f"Per {word}",
        f"<p>{said}, in {timezone}. A {word} without either is left out.</p>",
        _grouped(word, sessions, group, names, scrolls=len(names) > 15),
        link(files.get("days"), f"{plural(len(days), 'day')} as a file"),
    )
