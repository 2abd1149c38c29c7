"""Texts as timestamps, each with its own zone: ISO 8601, what means one time only, and what a format says."""

from __future__ import annotations

import datetime as dt
import re
from itertools import takewhile
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.text import literal
from sessionkit.errors import InvalidArgument, InvalidData, attempted, errors_as, problem, shorten
from sessionkit.records.row_names import row_name
from sessionkit.records.source import FORMAT_WITHOUT_YEAR, SOME_TIME, TIME_UNITS, Source

_DAY = r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
_CLOCK = r"(?:[01]\d|2[0-3])(?::[0-5]\d(?::[0-5]\d(?:[.,]\d+)?)?)?"
_OFFSET = r"[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?"
_ZONE = rf"(?:[Zz]|UTC|GMT|{_OFFSET})"
_TIME = rf"^\s*{_DAY}(?:[Tt ]\s*{_CLOCK}\s*{_ZONE}?)?\s*$"
_WITH_ZONE = rf"[Tt ]\s*{_CLOCK}\s*{_ZONE}\s*$"
# Forms that people write and Arrow does not read: (pattern, replacement).
_WRITTEN_OTHERWISE = (
    (r"^\s*(\S{10})[Tt ]\s*(\S.*)$", r"\1T\2"),
    (r"\s*(?:[Zz]|UTC|GMT)\s*$", "Z"),
    (rf"\s+({_OFFSET})\s*$", r"\1"),
    (r"[.,](\d{1,3})\d*", r".\1"),  # a time finer than a millisecond is rounded down
    (r"^\s+|\s+$", ""),
)
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_WEEKDAY = "(?:(?i:mon|tue|wed|thu|fri|sat|sun), *)?"
_REST = r"(?:,?[ T]\s*(?P<time>.*?))?"
# What else means one time only, as strftime names it: its parts. The order of day and month is never guessed.
_RECOGNISED = {
    "%Y-%m-%d": rf"(?P<year>\d{{4}})-(?P<month>\d{{1,2}})-(?P<day>\d{{1,2}}){_REST}",  # ISO 8601 but for digits
    "%d/%b/%Y": rf"(?P<day>\d{{1,2}})/(?i:(?P<month>{_MONTHS}))/(?P<year>\d{{4}}):(?P<time>.*?)",
    "%Y/%m/%d": rf"(?P<year>\d{{4}})/(?P<month>\d{{1,2}})/(?P<day>\d{{1,2}}){_REST}",
    "%d.%m.%Y": rf"(?P<day>\d{{1,2}})\.(?P<month>\d{{1,2}})\.(?P<year>\d{{4}}){_REST}",
    "%a, %d %b %Y %H:%M:%S %z": (  # of mails (RFC 2822) and of HTTP
        rf"{_WEEKDAY}(?P<day>\d{{1,2}}) (?i:(?P<month>{_MONTHS})) (?P<year>\d{{4}}) "
        rf"(?P<time>\d{{1,2}}:\d\d(?::\d\d)? {_ZONE})(?: \([^)]*\))?"
    ),
    "%d %b %Y": rf"(?P<day>\d{{1,2}})[ -](?i:(?P<month>{_MONTHS})[a-z]*)[ -](?P<year>\d{{4}}){_REST}",
    "%Y%m%dT%H%M%S": r"(?P<year>\d{4})(?P<month>\d\d)(?P<day>\d\d)T(?P<time>\d{4}.*?)",
    "%Y%m%d-%H:%M:%S": r"(?P<year>\d{4})(?P<month>\d\d)(?P<day>\d\d)[-T ](?P<time>\d{1,2}:.*?)",
}
_CLOCKS = (
    (r"^(\d\d)(\d\d)", r"\1:\2"), (r"^(\d\d:\d\d)(\d\d)", r"\1:\2"),
    # milliseconds behind a colon, which are a number as hours are: 9:05:7:38 is 38 of them
    (r"^(\d+:\d+:\d+):(\d{3})", r"\1.\2"), (r"^(\d+:\d+:\d+):(\d\d)\b", r"\1.0\2"),
    (r"^(\d+:\d+:\d+):(\d)\b", r"\1.00\2"), (r"^(\d:)", r"0\1"), (r"^(\d\d):(\d)\b", r"\1:0\2"),
    (r"^(\d\d:\d\d):(\d)\b", r"\1:0\2"),
)  # fmt: skip
_ISO = 'ISO 8601 such as "2024-07-01T00:10:00+02:00", format="%d.%m.%Y %H:%M" as strftime has it'
_NUMBERS = re.compile(
    rf"\s*(\d{{1,2}})([/. -])(\d{{1,2}}|(?i:{_MONTHS}))\2(\d{{4}}|\d\d)"
    r"(?:(,? |T)\d{1,2}:\d\d(:\d\d)?(\s?[AaPp][Mm])?)?\s*"
)
_MOST = {"d": 31, "m": 12, "y": 99, "Y": 9999, "b": 12}
_DIGITS = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(([01]\d|2[0-3])[0-5]\d([0-5]\d)?)?")
_LOOKED_AT = 1_000
# Dates of mails, of HTTP, of git and of C, which name the day of the week, and others that name the month.
_WITH_WEEKDAY = {
    "%a, %d %b %Y %H:%M:%S %z": r"\w{3}, \d{1,2} [A-Z]\w\w \d{4} \d\d:\d\d:\d\d [+-]\d{4}",
    "%a, %d %b %Y %H:%M:%S %Z": r"\w{3}, \d{1,2} [A-Z]\w\w \d{4} \d\d:\d\d:\d\d (GMT|UTC)",
    "%a %b %d %H:%M:%S %Y %z": r"\w{3} [A-Z]\w\w +\d{1,2} \d\d:\d\d:\d\d \d{4} [+-]\d{4}",
    "%a %b %d %H:%M:%S %Y": r"\w{3} [A-Z]\w\w +\d{1,2} \d\d:\d\d:\d\d \d{4}",
    "%b %d, %Y, %I:%M:%S %p": r"[A-Z]\w\w \d{1,2}, \d{4}, \d{1,2}:\d\d:\d\d [AP]M",
    "%b %d, %Y": r"[A-Z]\w\w \d{1,2}, \d{4}",
    "%B %d, %Y": r"[A-Z]\w{3,8} \d{1,2}, \d{4}",
}
_MAIL = re.compile(r"\s*(\w{3}, *)?\d{1,2} [A-Z]\w\w \d{4} \d\d:\d\d(:\d\d)? ([+-]\d{4}|[A-Z]{1,4})( \(.*\))?\s*")
_SINCE_1970 = re.compile(r"(?:[6-9]\d{8}|[1-3]\d{9})((?:\d{3}){0,3})(\.\d+)?")  # from 1990 on, in any unit
OF_A_CLOCK = re.compile(r"\s*\d\d?:\d\d(:\d\d([.,]\d+)?)?\s*")
YEAR_TURNS = "the year seems to turn"
_NEARLY_A_YEAR = 360  # days
WITH_AN_OFFSET = "Times with an offset"
_NO_YEAR = re.compile(r"\s*[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d")
_NUMBERS_WITHOUT_YEAR = re.compile(r"\s*\[?(\d\d?)([-./])(\d\d?) +\d\d?:\d\d(:\d\d)?(?:([.,])\d+)?\]?\s*")


def is_text_type(kind: pa.DataType) -> bool:
    """True for a column of text, also one that is coded."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def of_text(
    column: pa.ChunkedArray, source: Source, remarks: list[str] | None = None
) -> tuple[pa.ChunkedArray | None, pa.ChunkedArray | None]:
    """(instants, timestamps without a zone) of texts, each where a text is one; or numbers, where there is a unit.

    An empty text is a missing time, and so is one that is no time unless such times are refused. `remarks` gets a
    sentence on each way of writing besides ISO 8601 that was recognised.
    """
    text = column.cast(pa.large_string())
    nothing = pa.scalar(None, text.type)
    text = pc.if_else(pc.match_substring_regex(text, r"^\s*$"), nothing, text)
    if remarks is not None and source.timezone is None:
        remarks += shown_in_utc("\n".join(some_of(pc.drop_null(text))))
    form = r"^-?\d{1,12}(\.\d*)?$" if source.unit == "s" else r"^-?([1-8]?\d{1,18})$"
    is_number = source.unit and pc.match_substring_regex(text, form)
    if source.unit is not None and (pc.mean(is_number).as_py() or 0) > 0.5:  # the others are marks such as "-"
        _check(text, is_number, source, "numbers as in other rows")
        numbers = pc.if_else(is_number, text, nothing)
        return numbers.cast(pa.float64() if pc.any(pc.match_substring(numbers, ".")).as_py() else pa.int64()), None
    if source.format is not None:
        return _of_format(text, source, [] if remarks is None else remarks)
    if text.null_count < len(text):
        for kind in (pa.timestamp("ns", "UTC"), pa.timestamp("ns")):  # most texts are what Arrow reads by itself
            try:
                times = text.cast(kind)
            except pa.ArrowInvalid:
                continue
            return (times, None) if kind.tz else (None, times)
    written, is_time = text, pc.match_substring_regex(text, _TIME)
    if pc.all(is_time).as_py() is False:
        text = _recognised(text, source, [] if remarks is None else remarks)
        is_time = pc.match_substring_regex(text, _TIME)
    is_time = pc.and_(is_time, pc.invert(_on_no_day(text)))
    _check(written, is_time, source)
    text = pc.if_else(is_time, text, nothing)
    is_zoned = pc.match_substring_regex(text, _WITH_ZONE)
    for written, iso in _WRITTEN_OTHERWISE:
        text = pc.replace_substring_regex(text, written, iso)
    zoned = pc.if_else(is_zoned, text, nothing).cast(pa.timestamp("ms", "UTC"))
    local = pc.if_else(is_zoned, nothing, text).cast(pa.timestamp("ms"))
    has_local = local.null_count < len(local)
    return (None if has_local and zoned.null_count == len(zoned) else zoned), (local if has_local else None)


def _on_no_day(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """True where the day is one that its month has not, such as February 30."""
    days = pc.utf8_slice_codeunits(pc.utf8_ltrim_whitespace(text), 0, 10)
    late = pc.unique(pc.drop_null(pc.if_else(pc.match_substring_regex(days, r"-(?:29|3\d)$"), days, None)))
    wrong = [day for day in late.to_pylist() if attempted(dt.date.fromisoformat, day, but=ValueError) is None]
    return pc.is_in(days, pa.array(wrong, days.type))


def _recognised(text: pa.ChunkedArray, source: Source, remarks: list[str]) -> pa.ChunkedArray:
    """The texts with those in ISO 8601 that are written in another way which means one time only."""
    is_none = pc.invert(pc.match_substring_regex(text, _TIME))
    for name, parts in _RECOGNISED.items():
        pattern = rf"^\s*\[?{parts}\]?\s*$"
        is_one = pc.fill_null(pc.and_(is_none, pc.match_substring_regex(text, pattern)), False)
        if not pc.any(is_one).as_py():
            continue
        year, month, day, time = (
            pc.struct_field(pc.extract_regex(text, pattern), part) for part in ("year", "month", "day", "time")
        )
        if "%b" in name:
            number = pc.index_in(pc.utf8_lower(month), pa.array(_MONTHS.split("|"), text.type))
            month = pc.add(number, 1).cast(text.type)
        for written, as_iso in _CLOCKS:
            time = pc.replace_substring_regex(time, written, as_iso)
        month, day = (pc.utf8_lpad(part, 2, "0") for part in (month, day))
        days = pc.binary_join_element_wise(year, month, day, pa.scalar("-", text.type))
        times = pc.binary_join_element_wise(days, time, pa.scalar("T", text.type))
        iso = pc.if_else(is_one, pc.if_else(pc.equal(time, ""), days, times), text)
        row = pc.index(is_one, True).as_py()
        example = f"{shorten(repr(text[row].as_py()))} is {shorten(iso[row])} in ISO 8601"
        remarks.append(f"column {source.timestamp!r} is read as {name}: {example}; format= names another way")
        text = iso
    return text


def _of_format(
    text: pa.ChunkedArray, source: Source, remarks: list[str]
) -> tuple[pa.ChunkedArray | None, pa.ChunkedArray | None]:
    import pandas as pd

    (form, year), zoned = source.format_with_year, re.search("%[zZ]", str(source.format)) is not None
    written = pc.utf8_trim(text, "[] \t\r\n")
    if year:
        written = pc.binary_join_element_wise(pa.scalar(year, text.type), written, pa.scalar(" ", text.type))
    what, want = f"format={source.format!r} cannot be read", "directives that pandas.to_datetime knows"
    with errors_as(InvalidArgument, what, want, (ValueError, NotImplementedError), 200):
        found = pd.to_datetime(written.to_numpy(), format=form, errors="coerce", utc=zoned)
    times = pa.chunked_array([pa.array(found)])
    if year:
        remarks += _turns_of_year(found, source, form, int(year))
    shown = SOME_TIME.strftime(str(source.format).removeprefix(year).lstrip())
    _check(text, pc.or_(pc.is_null(text), times.is_valid()), source, f'texts such as "{shown}"')
    return (times, None) if zoned else (None, times)


def _turns_of_year(times: Any, source: Source, form: str, year: int) -> list[str]:
    """A remark with the way, if texts that were all given this year seem to go on in the next or the one before."""
    import pandas as pd

    series: Any = pd.Series(times)
    days = series.dropna().diff().dt.days
    turns = days[days.abs() >= _NEARLY_A_YEAR]
    way = -int(np.sign(turns).sum())
    if abs(way) != 1:
        return []
    at, row, other = f"df[{source.timestamp!r}]", int(turns.index[0]), year + way
    if len(turns) == 1:
        line = f'{at} = numpy.where(numpy.arange(len(df)) < {row}, "{year} ", "{other} ") + {at}'
    else:  # records of two years stand among each other
        line = f'days = pandas.to_datetime("{year} " + {at}, format={literal(form)}).diff().dt.days; '
        line += f'{at} = ({year} - (days / 365).round().fillna(0).cumsum()).astype(int).astype(str) + " " + {at}'
    what = f"The texts in column {source.timestamp!r} have no year, and format= gives {year} to all of them, but "
    what += (
        f"{YEAR_TURNS} at {row_name(row)}, {abs(int(turns.iloc[0]))} days {'before' if way > 0 else 'after'} the row"
    )
    return [f"{what} above it. Give the rows from there on {other}: {line}, with format={literal(form)}."]


def _check(text: pa.ChunkedArray, is_time: pa.ChunkedArray, source: Source, right: str = "") -> None:
    """Refuses texts that are no times, where these are refused."""
    if source.on_bad_time == "refuse":
        wrong = np.flatnonzero(~np.asarray(pc.fill_null(is_time, True)))
        if len(wrong):
            row = int(wrong[0])
            got = f"{len(wrong):,}, the first in {row_name(row)}: {shorten(repr(text[row].as_py()))}"
            texts = some_of(pc.unique(pc.drop_null(text)))
            if mixed := way_of_mixed(texts, source.timestamp):
                what = f"column {source.timestamp!r} has times that are written in several ways"
                raise InvalidData(problem(what, got, mixed))
            right = way_of_texts(texts, source.timestamp, source.unit) or right
            some = pc.unique(text.take(wrong[:: max(1, len(wrong) // _LOOKED_AT)])).to_pylist()
            want = right or format_for(*some) or without_word(source.timestamp, some) or _ISO
            if 2 * len(wrong) <= len(text) - text.null_count:  # else hardly any record would be left
                want += ', or on_bad_time="drop", which counts them as dropped'
            raise InvalidData(problem(f"column {source.timestamp!r} has texts that are no times", got, want))


def shown_in_utc(text: str) -> list[str]:
    """The remark that times with an offset are shown in UTC, for text with such a time; else none."""
    found = re.search(rf"\d[Tt: ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)? ?(?![+-][0:]+(?![\d:]))({_OFFSET})(?![\d-])", text)
    zone = "unless timezone= names another zone."
    return [f"{WITH_AN_OFFSET}, such as {found[1]}, are shown in UTC {zone}"] if found else []


def without_word(name: str, texts: list[str]) -> str:
    """The line of pandas that takes away the word before all times, such as "CreateTime:"; "" if there is none."""
    found = re.match(r"\w+[:=](?=\d)", "".join(texts[:1]))
    rest = [text[found.end() :] for text in texts if text.startswith(found[0])] if found else []
    if found is None or len(rest) < len(texts) or not all(re.fullmatch(rf"\d{{10,19}}|{_TIME}", each) for each in rest):
        return ""
    way = f"times without the word before them: df[{name!r}] = df[{name!r}].str.removeprefix({literal(found[0])})"
    return f'{way}.astype("int64")' if all(map(str.isdecimal, rest)) else way


def some_of(texts: pa.Array) -> list[str]:
    """A thousand or two of these texts, evenly from first to last: those of the first days may fit several formats."""
    return texts[:: max(1, len(texts) // _LOOKED_AT)].to_pylist()


def way_to_times(texts: list[str], name: str) -> str:
    """How pandas reads the times written in these texts of the column `name`; "" for what begins with no day."""
    formats = formats_for(*texts) if texts else []
    how = [f"format={literal(each)}" for each in formats]
    if found := re.match(r"\s*(?:\d{4}-\d\d-\d\d|(\d\d?\.\d\d?\.\d{4}))", "".join(texts[:1])):
        how = ["dayfirst=True" if found[1] else 'format="ISO8601"']
    if not how:
        return ""
    others = f" (or with {how[1]})" if len(how) > 1 else ""
    has_zone = re.search("%[zZ]", how[0]) or any(re.search(_WITH_ZONE, text) for text in texts)
    zone = ", utc=True" if has_zone else ""  # which takes a clock without a zone for one in UTC
    return f"df[{name!r}] = pandas.to_datetime(df[{name!r}], {how[0]}{zone}) makes times of it{others}"


def format_for(*texts: str) -> str:
    """The formats that texts may have which are times, but not in one way only; "" if the first looks like none."""
    if formats := formats_for(*texts):
        return "format=" + " or ".join(map(literal, formats))
    if formats := formats_without_year(*texts):
        return f"format={' or '.join(map(literal, formats))}, {FORMAT_WITHOUT_YEAR.partition(', ')[2]}"
    return f"format={FORMAT_WITHOUT_YEAR}" if _NO_YEAR.match(texts[0]) else ""


def way_of_texts(texts: list[str], name: str, unit: str | None = None) -> str:
    """How times since 1970, some as ISO 8601, or dates of mails are read, with "-" and the like; "" for others."""
    if texts and all(map(OF_A_CLOCK.fullmatch, texts)):
        return lacks_day(name)
    if texts and all(map(_MAIL.fullmatch, texts)) and not formats_for(*texts):
        made = f"df[{name!r}].map(email.utils.parsedate_to_datetime, na_action='ignore')"
        return f"df[{name!r}] = pandas.to_datetime({made}, utc=True)"
    iso = [text for text in texts if re.fullmatch(_TIME, text)]
    found = [_SINCE_1970.fullmatch(text) for text in texts if re.search(r"\d", text) and text not in iso]
    units = {None if each is None else TIME_UNITS[len(each[1]) // 3] for each in found}
    if len(units) != 1 or (meant := units.pop()) is None:
        return ""
    if iso:  # of two writers
        if not all(re.search(_WITH_ZONE, text) for text in iso):
            return ""
        since, rest = f"pandas.to_datetime(number, unit='{meant}', utc=True)", f"df[{name!r}].where(number.isna())"
        line = f"number = pandas.to_numeric(df[{name!r}], errors='coerce'); df[{name!r}] = "
        return f"{line}{since}.fillna(pandas.to_datetime({rest}, format='ISO8601', utc=True))"
    if meant == "s" or not any(each and each[2] for each in found):
        return "" if unit == meant else f'unit="{meant}"'
    whole = f"pandas.to_numeric(df[{name!r}], errors='coerce').round().astype('Int64')"
    return f'df[{name!r}] = {whole}, with unit="{meant}"'


def way_of_mixed(texts: list[str], name: str) -> str:
    """The line of pandas that reads texts which all are times, written in two ways or more; "" for all others."""
    ways = list(takewhile(bool, map(formats_for, texts)))  # most columns of text end at once
    if len(texts) < 2 or len(ways) < len(texts) or any("%y" in way[0] or "%b" in way[0] for way in ways):
        return ""
    clocks = {way[0][8:] for way in ways}
    orders = {"d", "m"}.intersection(*({form[1] for form in way} for way in ways))
    if len(clocks) < 2 or not orders:
        return ""
    order = ", dayfirst=True" if orders == {"d"} else ""
    either = " (with dayfirst=True where the day stands first)" if len(orders) > 1 else ""
    return f'df[{name!r}] = pandas.to_datetime(df[{name!r}], format="mixed"{order}){either}'


def lacks_day(name: str) -> str:
    """What a column of times of day lacks, and the line that joins both."""
    return f"the day as well, here of a column 'day': {with_day('at', 'day', name)}"


def with_day(name: str, day: str, clock: str) -> str:
    """The line of pandas that makes one column of a day and a time of day."""
    return f"df[{name!r}] = df[{day!r}].astype(str) + ' ' + df[{clock!r}].astype(str)"


def formats_for(first: str, *others: str) -> list[str]:
    """The formats that the first text may have, its parts in any order in which the other texts are days, too."""
    if _DIGITS.fullmatch(first):
        return ["%Y%m%d%H%M%S"[: len(first) - 2]]
    found = _NUMBERS.fullmatch(first)
    if found is None:
        texts = [first, *(text for text in others if _MAIL.fullmatch(text))]
        forms = _WITH_WEEKDAY.items()
        return [form for form, pattern in forms if all(re.fullmatch(rf"\s*{pattern}\s*", text) for text in texts)]
    between, seconds, half = found.groups()[4:]
    hour, half = ("%H", "") if half is None else ("%I", half[:-2] + "%p")
    clock = f"{between}{hour}:%M{'' if seconds is None else ':%S'}{half}" if between else ""
    orders, rest = _orders(first), [each for text in others if (each := _orders(text))]
    return [order + clock for order in [each for each in orders if all(each in of for of in rest)] or orders]


def formats_without_year(*texts: str) -> list[str]:
    """The formats of times such as "10.30 16:49:06", with a year in front, in any order that the texts allow."""
    found = [each.groups() for text in texts if (each := _NUMBERS_WITHOUT_YEAR.fullmatch(text))]
    if 2 * len(found) <= len(texts):
        return []
    _, mark, _, seconds, point = found[0]
    clock = f"%H:%M{'' if seconds is None else ':%S'}{'' if point is None else f'{point}%f'}"
    orders = {"m d": [(each[0], each[2]) for each in found], "d m": [(each[2], each[0]) for each in found]}
    fits = [order for order, days in orders.items() if all(0 < int(m) < 13 and 0 < int(d) < 32 for m, d in days)]
    return [f"2024 %{order.replace(' ', f'{mark}%')} {clock}" for order in fits]


def _orders(text: str) -> list[str]:
    """Orders of day, month and year that the numbers of a text allow, in directives such as "dmY"."""
    if (found := _NUMBERS.fullmatch(text)) is None:
        return []
    first, mark, *rest = found.groups()[:4]
    year = "Y" if len(rest[1]) == 4 else "y"
    orders = {"Y": ["dmY", "mdY"], "y": ["dmy", "mdy", "ymd"]}[year]
    if rest[0].isalpha():  # with four digits of the year read without a format
        orders, rest[0] = {"Y": [] if mark in " -" else ["dbY"], "y": ["dby", "ybd"]}[year], "0"
    elif mark == " ":
        return []
    elif mark == ".":  # these are days first, which is read without a format where the year has four digits
        orders = {"Y": [], "y": ["dmy", "ymd"]}[year]
    fits = [each for each in orders if all(int(n) <= _MOST[part] for n, part in zip([first, *rest], each, strict=True))]
    return [mark.join(f"%{part}" for part in each) for each in fits]
