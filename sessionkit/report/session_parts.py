"""The sections of the page that show the sessions themselves."""

from __future__ import annotations

from collections.abc import Mapping

from sessionkit.base.text import percent, plural
from sessionkit.errors import shorten
from sessionkit.report.parts import Bar, Cell, Number, link, numbers, section, show_length, table, tiles
from sessionkit.report.sessions import LENGTHS_MS, SIZES, Bin, Sessions, at_most, bins
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
    lengths, records = sessions.length_ms, sessions.records
    longest, largest = int(lengths.max()), int(records.max())
    one = int((records == 1).sum())
    shown = [
        (show_length(at_most(lengths, 0.5)), "median length", "half of the sessions are no longer"),
        (show_length(at_most(lengths, 0.9)), "nine of ten", "90% of the sessions are no longer"),
        (show_length(longest), "longest session", "from its first record to its last"),
        (f"{at_most(records, 0.5):,}", "median size", f"{plural(one, 'session')} of one record"),
        (f"{largest:,}", "largest session", "records in it"),
    ]
    by_length = [(_length_words(each), each.sessions) for each in bins(lengths, LENGTHS_MS)]
    by_size = [(_size_words(each), each.sessions) for each in bins(records, SIZES)]
    return section(
        "The sessions",
        "<p>A session lasts from its first record to its last; one of a single record has no length.</p>",
        tiles(shown, "lengths and sizes"),
        "<div class='pair'><div><h3>How long they are</h3>",
        _histogram("length", by_length),
        "</div><div><h3>How large they are</h3>",
        _histogram("records", by_size),
        "</div></div>",
    )


def _histogram(name: str, counted: list[tuple[str, int]]) -> str:
    most, total = max(count for _, count in counted), sum(count for _, count in counted)
    rows = [[words, Bar(count / most), *numbers(count), Number(percent(count / total))] for words, count in counted]
    return table([name, "", "sessions", "share"], rows)


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
    keys = sessions.trace.keys
    names = ["key", "start", "end", "length", "records"]

    def listed(places: list[int]) -> str:
        rows: list[list[Cell]] = [
            [
                shorten(keys[int(sessions.key[place])].as_py()),
                at(int(sessions.start_ms[place])),
                at(int(sessions.end_ms[place])),
                Number(show_length(int(sessions.length_ms[place]))),
                *numbers(int(sessions.records[place])),
            ]
            for place in places
        ]
        return table(names, rows)

    longest = sessions.largest(sessions.length_ms, SHOWN_SESSIONS)
    largest = sessions.largest(sessions.records, SHOWN_SESSIONS)
    said = f"<p>Times are in {zone}.</p>" if zone else ""
    return section(
        "The longest and the largest sessions",
        said,
        "<h3>The longest</h3>",
        listed(longest),
        "<h3>The largest</h3>",
        listed(largest),
        link(files.get("sessions"), f"All {plural(len(sessions), 'session')} as a file"),
    )


def _per_key(sessions: Sessions, files: Mapping[str, str]) -> str:
    group, keys = sessions.by_key, sessions.trace.keys
    shown = min(SHOWN_KEYS, len(group.code))
    said = f"The {shown} keys with the most sessions, of {len(group.code):,}." if shown < len(group.code) else ""
    most = int(group.sessions.max())
    rows: list[list[Cell]] = [
        [
            shorten(keys[int(group.code[row])].as_py()),
            Bar(int(group.sessions[row]) / most),
            *numbers(*(int(column[row]) for column in (group.sessions, group.records, group.dropped))),
            *_lengths(int(group.sessions[row]), int(group.median_ms[row]), int(group.longest_ms[row])),
        ]
        for row in range(shown)
    ]
    return section(
        "Per key",
        f"<p>{said}</p>" if said else "",
        table(["key", "", "sessions", "records", "dropped", "median length", "longest"], rows),
        link(files.get("keys"), f"{plural(len(group.code), 'key')} as a file"),
    )


def _lengths(count: int, median_ms: int, longest_ms: int) -> list[Cell]:
    return [Number(show_length(median_ms)), Number(show_length(longest_ms))] if count else [Number(""), Number("")]


def _per_period(sessions: Sessions, files: Mapping[str, str]) -> str:
    word, names, group = sessions.by_period
    days, _ = sessions.by_day
    most = int(group.sessions.max())
    rows: list[list[Cell]] = [
        [
            name,
            Bar(int(group.sessions[row]) / most),
            *numbers(*(int(column[row]) for column in (group.sessions, group.records, group.dropped))),
            *_lengths(int(group.sessions[row]), int(group.median_ms[row]), int(group.longest_ms[row])),
        ]
        for row, name in enumerate(names)
    ]
    timezone = sessions.trace.batch.timezone
    said = f"A session counts on the {word} on which it begins, a dropped record on the {word} of its own time"
    if word != "day":
        said = said.replace(f"on the {word}", f"in the {word}").replace("on which", "in which")
    return section(
        f"Per {word}",
        f"<p>{said}, in {timezone}. A {word} without either is left out.</p>",
        table([word, "", "sessions", "records", "dropped", "median length", "longest"], rows, scrolls=len(rows) > 15),
        link(files.get("days"), f"{plural(len(days), 'day')} as a file"),
    )
