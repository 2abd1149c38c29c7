"""The sections of the page that show the sessions, or other windows, themselves."""

from __future__ import annotations

from collections.abc import Mapping

from sessionkit.base.text import percent, plural
from sessionkit.errors import shorten
from sessionkit.report.parts import Bar, Cell, Number, link, numbers, section, show_length, table, tiles
from sessionkit.report.sessions import LENGTHS_MS, SIZES, Bin, Group, Numbers, Sessions, at_most, bins
from sessionkit.views.words import clock, zone_named

SHOWN_SESSIONS = 10
SHOWN_KEYS = 20


def session_sections(sessions: Sessions, files: Mapping[str, str]) -> str:
    """How long and how large the sessions are, the longest and largest, per key and per day."""
    if not len(sessions):
        return ""
    return "".join(
        [
            _distributions(sessions),
            _first_ones(sessions, files),
            _per_key(sessions, files),
            _per_period(sessions, files),
        ]
    )


def _distributions(sessions: Sessions) -> str:
    lengths, records, noun = sessions.length_ms, sessions.records, sessions.noun
    longest, largest = int(lengths.max()), int(records.max())
    one = int((records == 1).sum())
    shown = [
        (f"{at_most(records, 0.5):,}", "median size", f"{plural(one, noun)} of one record"),
        (f"{largest:,}", f"largest {noun}", "records in it"),
    ]
    by_size = _histogram("records", noun, [(_size_words(each), each.sessions) for each in bins(records, SIZES)])
    how_large = f"<h3>How large they are</h3>{by_size}"
    if not sessions.have_lengths:
        return section(f"The {noun}s", tiles(shown, "sizes"), how_large)
    shown = [
        (show_length(at_most(lengths, 0.5)), "median length", "half of the sessions are no longer"),
        (show_length(at_most(lengths, 0.9)), "nine of ten", "90% of the sessions are no longer"),
        (show_length(longest), "longest session", "from its first record to its last"),
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
    rows = [[words, Bar(count / most), *numbers(count), Number(percent(count / total))] for words, count in counted]
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


def _first_ones(sessions: Sessions, files: Mapping[str, str]) -> str:
    at, zone = clock(sessions.trace), zone_named(sessions.trace)
    keys, nouns, has_length = sessions.trace.keys, f"{sessions.noun}s", sessions.have_lengths
    names = ["key", "start", "end", *(["length"] if has_length else []), "records"]

    def listed(by: Numbers) -> str:
        rows: list[list[Cell]] = [
            [
                shorten(keys[int(sessions.key[place])].as_py()),
                at(int(sessions.start_ms[place])),
                at(int(sessions.end_ms[place])),
                *([Number(show_length(int(sessions.length_ms[place])))] if has_length else []),
                *numbers(int(sessions.records[place])),
            ]
            for place in sessions.largest(by, SHOWN_SESSIONS)
        ]
        return table(names, rows)

    return section(
        f"The {'longest and the ' if has_length else ''}largest {nouns}",
        f"<p>Times are in {zone}.</p>" if zone else "",
        f"<h3>The longest</h3>{listed(sessions.length_ms)}<h3>The largest</h3>" if has_length else "",
        listed(sessions.records),
        link(files.get(nouns), f"All {plural(len(sessions), sessions.noun)} as a file"),
    )


def _per_key(sessions: Sessions, files: Mapping[str, str]) -> str:
    group, keys = sessions.by_key, sessions.trace.keys
    shown = min(SHOWN_KEYS, len(group.code))
    most = f"The {shown} keys with the most {sessions.noun}s, of {len(group.code):,}."
    return section(
        "Per key",
        f"<p>{most}</p>" if shown < len(group.code) else "",
        _grouped("key", sessions, group, [shorten(keys[int(code)].as_py()) for code in group.code[:shown]]),
        link(files.get("keys"), f"{plural(len(group.code), 'key')} as a file"),
    )


def _grouped(word: str, sessions: Sessions, group: Group, names: list[str], *, scrolls: bool = False) -> str:
    """A table with a row for each name: the sessions that belong to it, their records, and what was dropped."""
    most = int(group.sessions.max())
    has_length = sessions.have_lengths
    rows: list[list[Cell]] = [
        [
            name,
            Bar(int(group.sessions[row]) / most),
            *numbers(*(int(column[row]) for column in (group.sessions, group.records, group.dropped))),
            *(_lengths(group, row) if has_length else []),
        ]
        for row, name in enumerate(names)
    ]
    lengths = ["median length", "longest"] if has_length else []
    return table([word, "", f"{sessions.noun}s", "records", "dropped", *lengths], rows, scrolls=scrolls)


def _lengths(group: Group, row: int) -> list[Cell]:
    lengths = (int(group.median_ms[row]), int(group.longest_ms[row]))
    return [Number(show_length(length) if group.sessions[row] else "") for length in lengths]


def _per_period(sessions: Sessions, files: Mapping[str, str]) -> str:
    word, names, group = sessions.by_period
    days, _ = sessions.by_day
    timezone, noun = sessions.trace.batch.timezone, sessions.noun
    record = "a dropped record" if sessions.have_lengths else "a record"
    said = f"A {noun} counts on the {word} on which it begins, {record} on the {word} of its own time"
    if word != "day":
        said = said.replace(f"on the {word}", f"in the {word}").replace("on which", "in which")
    return section(
        f"Per {word}",
        f"<p>{said}, in {timezone}. A {word} without either is left out.</p>",
        _grouped(word, sessions, group, names, scrolls=len(names) > 15),
        link(files.get("days"), f"{plural(len(days), 'day')} as a file"),
    )
