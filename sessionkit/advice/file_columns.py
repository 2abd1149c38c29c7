"""What a table holds: its columns, what could be the key and the event time, and the order of its rows."""

from __future__ import annotations

import dataclasses
import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.arrays import Flags, Longs, arrow_array, numpy_array
from sessionkit.base.durations import DAY
from sessionkit.base.text import percent, plural, way_to_number
from sessionkit.errors import SessionkitError, attempted
from sessionkit.records.inputs.nested import way_of_a_list
from sessionkit.records.inputs.pandas_columns import NUMBER, is_a_value
from sessionkit.records.inputs.plain_columns import decoded
from sessionkit.records.source import Source
from sessionkit.records.time_statistics import trend
from sessionkit.records.time_text import (
    OF_A_CLOCK,
    format_for,
    formats_for,
    is_text_type,
    some_of,
    way_of_mixed,
    way_of_texts,
    without_word,
)
from sessionkit.records.times import (
    are_clocks,
    are_short_days,
    to_milliseconds,
    typical_time,
    way_from_excel,
    without_fraction,
    years_of_two_digits,
)

_BEGINS = r"(^|[_. -]|(?-i:[a-z](?=[A-Z])))"  # a word of a name, such as "user_id", "user.id" or "userId"
_OF_A_KEY = re.compile(
    r"^(?!is_|has_|(type|class|kind)[_. ]of|"
    r"(.*[_. -])?(trans(action)?|txn?|request|req|query|event)[_. ]?id$|"
    r".*[a-z_. ](type|class|category|segment|status|kind|gender|sex|age|country|city|state|region|language|level)$)"
    r".*(user|customer|client|visitor|account|member|"
    r"device|session|author|person|host|email|mbox|actor|addr|key|patient|student|subj(ect)?[_. ]?id|mmsi|"
    rf"(^|(first|last|full|nick|screen|display|player|driver|employee|vessel|ship|dept|agency|shop|team)[_. ]?)name$|"
    rf"{_BEGINS}(individual|animal|agent|case)([_.: -]|$)|"
    rf"{_BEGINS}(p?id|ip|orig_h|station|site|location|symbol|ticker)$|"
    rf"{_BEGINS}(sensor|vehicle|machine|driver|meter|room|bike|car|truck|turbine)$)",
    re.I,
)
_OF_SOMEONE = re.compile(
    r"(user|customer|client|visitor|account|member|person|author|patient|student|subj(ect)?(?=[_. ]?id))"
    r"([_. ]*(id|no|nr|num|number|key|name|code))?$",
    re.I,
)
_MEASURES = "rate|bpm|steps|counts?|amount|price|value|score|age|weight|power|speed|distance|duration|seconds|bytes"
_MEASURES += (
    "|tokens|length|latency|total|requests|responses|reuses|hits|received|sent|replies|likes|views|clicks|cost|quantity"
)
_OF_NO_KEY = re.compile(rf"time.?zone|utc.?offset|(^|_)tz$|({_BEGINS}| )({_MEASURES}|pace|errors?)$", re.I)
_OF_A_TIME = re.compile(rf"time|date|stamp|start|end(ed)?($|_)|seen|{_BEGINS}(at|ts|on)$", re.I)  # "session_start"
_OF_ARRIVAL = re.compile(
    r"receiv|ingest|process(ed|ing)|arriv|inserted|stored|upload|synced|(^|_)(loaded|kafka|broker|writ|(log)?append)",
    re.I,
)
_OF_AN_ID = re.compile(rf"{_OF_SOMEONE.pattern}|{_BEGINS}id$", re.I)
_OF_HALF_A_DAY = re.compile(r"\s*\d\d?:\d\d(:\d\d)?\s?[ap]\.?m\.?\s*", re.I)
_OF_LETTERS = re.compile(r"[A-Z]+\d{4,}|\d{4,}[A-Z]+", re.I)  # an id: "C536391", "85123A"
_MOSTLY = 0.75  # of the texts
_ONE, _ALL_ONE = "no key: it has one value", "all rows are of one key"
_FEWEST_ROWS_A_KEY = 2  # on average: what differs from row to row groups nothing
_FEWEST_ROWS_OF_SOMEONE = 1.2  # many come once
_ENOUGH_ROWS = 100  # to tell by them that many values come again, whatever the column is called
_FEWEST_READINGS = 50
_GOES_ON = 0.95  # from -1 to 1: how nearly numbers rise from row to row


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column, and what it could be: "key" or "event time", or "" for neither; with the reason."""

    name: str
    type: str
    missing: int
    distinct: int | None  # None where values of this type cannot be counted
    could_be: str = ""
    why: str = ""
    unit: str | None = None  # of times that are numbers
    format: str | None = None  # of times that are text
    times_ms: Longs | None = None  # of times: those that are usable, in order of the rows
    no_time: Flags | None = None  # the rows that have none of them; None if all have one
    early: Flags | None = None  # those of them whose time is before 1970
    century: str = ""  # the remark on years of two digits that lie in the future
    moved: str = ""  # the line of pandas that moves all times behind 1970
    is_clock: bool = False  # it holds times of day
    is_rare: bool = False  # most of its values come once
    is_measure: bool = False  # numbers as text, beside others such as "-", or texts of several words
    has_only_days: bool = False  # all times are midnights
    steps_back: int = 0  # rows whose time lies before that of the row above


@dataclass(frozen=True, kw_only=True)
class FileColumns:
    """The columns of a table, and those that look most like a key and an event time."""

    rows: int
    columns: list[Column]
    key: Column | None
    time: Column | None
    timezone: str | None = None  # of times without one, if it was given
    places: dict[str, Any] = dataclasses.field(default_factory=dict)  # options that say where records stand

    @property
    def key_is_a_guess(self) -> bool:
        """True if the key's values repeat, and its name says nothing of a user, a device or the like."""
        return self.key is not None and self.key.why != _ALL_ONE and not _OF_A_KEY.search(self.key.name)

    @property
    def arrivals(self) -> list[str]:
        """The columns of times that seem to be those of an arrival, where another is the event time."""
        times = [each.name for each in self.columns if each.could_be == "event time" and _OF_ARRIVAL.search(each.name)]
        return times if self.time is not None and self.time.name not in times else []

    @property
    def step_back_share(self) -> float:
        """The share of rows that lie before the row above them in time."""
        return self.time.steps_back / max(1, self.rows) if self.time is not None else 0.0


def file_columns(table: pa.Table, timezone: str | None = None, format: str | None = None) -> FileColumns:
    """Looks at every column of a table, with times in this zone and format; nothing is taken for sure."""
    how = Source(keys=("key",), timestamp="time", timezone=timezone or "UTC", on_bad_time="drop", ambiguous="earliest",
                 nonexistent="earliest", format=format)  # fmt: skip
    columns = [_described(decoded(table[name]), name, how) for name in table.column_names]
    for at, rest in enumerate(columns[1:]):
        are_days = columns[at].has_only_days and not rest.is_clock and not _OF_NO_KEY.search(rest.name)
        texts = texts_of(decoded(table[rest.name])) if are_days else []
        if texts and all(map(OF_A_CLOCK.match, texts)):
            why = f"days; the texts in {rest.name} begin with the time of day"
            if columns[at].type.startswith("date") and all(map(_OF_HALF_A_DAY.fullmatch, texts)):
                both = f"df[{columns[at].name!r}].astype(str) + ' ' + df[{rest.name!r}].str.replace('.', '')"
                why += f": df[{columns[at].name!r}] = pandas.to_datetime({both}, format='mixed')"
            elif not any(map(OF_A_CLOCK.fullmatch, texts)):  # such as 6:00-6:59
                both = f"df[{columns[at].name!r}].astype(str) + ' ' + df[{rest.name!r}].str.extract(r'(\\d+:\\d+)')[0]"
                why += f": df[{columns[at].name!r}] = pandas.to_datetime({both})"
                columns[at + 1] = dataclasses.replace(rest, could_be="", why="times of day")
            columns[at] = dataclasses.replace(columns[at], could_be="", why=why)
    numbers = {name.lower(): at for at, name in enumerate(table.column_names) if pa.types.is_integer(table[name].type)}
    starts = [name.removesuffix("partition") for name in numbers if re.fullmatch("(.*[_.])?partition", name)]
    start = next((each for each in starts if f"{each}offset" in numbers), None)
    places = {} if start is None else {place: numbers[start + place] for place in ("partition", "offset")}
    for place, at in places.items():
        columns[at] = dataclasses.replace(columns[at], could_be=place, why="where each record stands")
    times = [column for column in columns if column.could_be == "event time"]
    keys = [column for column in columns if column.could_be == "key"]
    if not keys and times and (alone := min((c for c in columns if c.why == _ONE), key=_rank_of_key, default=None)):
        keys = [dataclasses.replace(alone, could_be="key", why=_ALL_ONE)]
        columns[columns.index(alone)] = keys[0]
    key = min(keys, key=lambda each: (2 * each.missing > len(table), *_rank_of_key(each)), default=None)
    if key is not None and not _OF_SOMEONE.search(key.name):  # a device may be used by several people
        people = [each for each in keys if _OF_SOMEONE.search(each.name) and not each.is_rare]
        people = [each for each in people if 2 * each.missing <= len(table) and _are_as_many(each, key)]
        key = min(people, key=_rank_of_key, default=key)
    shared = dict[str, str]()
    if key is not None and len(times) > 1:  # one alone is the time in any case
        of_what = [key, *(each for each in keys if each is not key and (each.distinct or 0) > 1)]
        shared = {each.name: one.name for one in of_what[::-1] for each in times if _is_of_the_key(table, one, each)}
    time = min(times, key=lambda each: (each.name in shared, *_rank_of_time(each)), default=None)
    for at, each in enumerate(columns):  # such as the day on which a case began
        if each.name in shared and time is not None and time.name not in shared:
            of_what_key = "a key" if key is not None and shared[each.name] == key.name else shared[each.name]
            columns[at] = dataclasses.replace(each, why=f"{each.why}; the same for all rows of {of_what_key}")
    named = {place: columns[at].name for place, at in places.items()}
    return FileColumns(rows=len(table), columns=columns, key=key, time=time, timezone=timezone, places=named)


def begins_with_a_record(table: pa.Table, found: FileColumns) -> bool:
    """True if the names of columns look like values: of times, of numbers, or written as the texts of their column."""
    is_one, numbers = False, []
    for column in (each for each in found.columns if each.name.strip()):
        name, kind = column.name, table[column.name].type
        if "times" in column.why or column.times_ms is not None:
            if not is_a_value(name, column.format):
                return False
            is_one = True
        elif (pa.types.is_integer(kind) or pa.types.is_floating(kind)) and not name.startswith('{"'):
            if not re.fullmatch(NUMBER, name.strip()):
                return False
            numbers.append(name)
        elif is_text_type(kind):
            shapes = {re.sub(r"(?<==).+|\d+", "0", text) for text in [name, *texts_of(table[name])]}
            is_one |= name.startswith('{"') or (len(shapes) == 1 and re.search(r"[\d=]", name) is not None)
    steps = {*np.diff([float(name.replace(",", ".")) for name in numbers])}
    is_pivoted = len(numbers) > 2 and len(steps) == 1  # as hours from 0 to 23
    return is_one or (not is_pivoted and any(map(is_a_value, numbers)))


def _rank_of_key(column: Column) -> tuple[bool, bool, bool, bool, bool, int]:
    is_number = "string" not in column.type and not _OF_SOMEONE.search(column.name)
    is_session = re.search("session", column.name, re.I) is not None  # sessions are what is looked for
    is_rare, is_other = column.is_rare and not is_session, not _OF_A_KEY.search(column.name)
    return (is_rare, is_other, is_session, column.is_measure, is_number, -(column.distinct or 0))


def _rank_of_time(column: Column) -> tuple[bool, bool, int, int, int]:
    is_arrival, is_named = (each.search(column.name) is not None for each in (_OF_ARRIVAL, _OF_A_TIME))
    is_local = column.type.startswith("timestamp") and "tz=" not in column.type  # an hour may be shown twice
    doubt = 2 * is_local if column.unit is None else 1 if is_named else 3
    steps = np.diff([] if column.times_ms is None else column.times_ms)
    forward, most = int(np.count_nonzero(steps > 0)), len(steps) // 3  # the newest first; the rest is chance
    return (is_arrival, column.has_only_days, doubt, column.missing, min(column.steps_back, forward, most))


def _are_as_many(people: Column, things: Column) -> bool:
    return 3 * (people.distinct or 0) >= (things.distinct or 0)


def _is_of_the_key(table: pa.Table, key: Column, time: Column) -> bool:
    """True if a column has one value for all rows of each key, of which several rows there are."""
    if (time.distinct or 0) > (key.distinct or 0):
        return False
    rows = pa.table({"key": decoded(table[key.name]), "time": decoded(table[time.name])}).group_by("key")
    return bool(pc.max(rows.aggregate([("time", "count_distinct")])["time_count_distinct"]).as_py() == 1)


def _described(column: pa.ChunkedArray, name: str, how: Source) -> Column:
    kind = column.type
    distinct = _distinct(column)
    texts = [text for text in texts_of(column) if text.strip()]
    plain = Column(name=name, type=str(kind), missing=column.null_count, distinct=distinct)
    is_text, is_integer = is_text_type(kind), pa.types.is_integer(kind)
    first = next((str(each) for each in column if each.is_valid), "") if is_text or is_integer else ""
    of_texts = way_of_texts(texts, name) if is_text else ""
    if of_texts.startswith("number"):
        return dataclasses.replace(plain, why=f"times in two forms, once pandas has read both: {of_texts}")
    if is_integer and re.search("date|day", name, re.I) and are_short_days(column):
        read = f"df[{name!r}] = pandas.to_datetime(df[{name!r}].astype(str).str.zfill(6), format='%y%m%d')"
        why = f"days, once pandas has read them: {read}"
        return dataclasses.replace(plain, why=why, has_only_days=True, format="%y%m%d")
    are_of_day = is_integer and _OF_A_TIME.search(name) is not None and are_clocks(column)
    are_of_day |= pa.types.is_time(kind) or (is_text and bool(texts) and all(map(OF_A_CLOCK.fullmatch, texts)))
    if are_of_day and not _OF_NO_KEY.search(name):
        return dataclasses.replace(plain, is_clock=True, why="times of day, without a day")
    is_number = is_integer or pa.types.is_floating(kind)
    units = typical_time(column)[1] if is_number else []
    if of_texts.startswith("unit="):
        units = [of_texts[6:-1]] if _OF_A_TIME.search(name) or 2 * (distinct or 0) > len(column) else []
    unit = units[0] if units else None
    formats = [how.format if is_text or is_integer else None, *(formats_for(first) if is_integer else [])]
    may_be_ids = pa.types.is_floating(kind) and _OF_AN_ID.search(name)  # beside missing ones
    is_whole = may_be_ids and pc.all(pc.equal(pc.floor(column), column)).as_py()
    is_named = _OF_A_KEY.search(name) and not _OF_A_TIME.search(name)
    is_id = (is_integer and (unit is None or is_named)) or (is_whole and is_named)
    for form in [each for each in formats if each is not None] + [None] * (not is_id):
        source = dataclasses.replace(how, timestamp=name, unit=unit if form is None else None, format=form)
        time = _as_time(column, plain, source)
        if time is not None and (time.could_be or form is None):
            return time
    way = way_of_a_list(name, kind) or without_word(name, texts)
    if is_number and _OF_A_TIME.search(name):
        way = way_from_excel(column, name) or way
        if not way and not is_integer and trend(numpy_array(pc.drop_null(column))) > _GOES_ON:
            way = f"times, if these are seconds since a start: {without_fraction(column, name, None)}"
    if is_text and (number := way_to_number(texts, name)):
        way = f"numbers as people write them: {number}"
    elif of_texts.startswith("df"):
        way = f"times, once pandas has read them: {of_texts}"
    if not way and is_integer and not _OF_A_KEY.search(name) and _is_reading(column):
        way = "no key: a measure that goes up and down by little"
    kind = pa.int64() if is_whole else kind
    return dataclasses.replace(plain, why=way) if way else _as_key(plain, kind, len(column), texts)


def texts_of(column: pa.ChunkedArray) -> list[str]:
    """Some texts of a column of text; of another one the empty text."""
    return some_of(pc.unique(pc.drop_null(column))) if is_text_type(column.type) else [""]


def _is_reading(column: pa.ChunkedArray) -> bool:
    """True if whole numbers go up and down by little, as what one device measures does, and not round after round."""
    found = numpy_array(pc.drop_null(column).cast(pa.int64(), safe=False))
    steps = np.diff(found.astype(np.float64))
    moved = steps[steps != 0]
    if len(moved) < max(_FEWEST_READINGS, len(steps) / 4):
        return False
    low, high = np.percentile(found, (5, 95))
    is_near = np.median(np.abs(moved)) < 0.15 * (high - low)
    return bool(is_near and 0.3 < np.mean(moved > 0) < 0.7 and abs(trend(found)) < 0.8)


def _distinct(column: pa.ChunkedArray) -> int | None:
    found = attempted(pc.count_distinct, column, but=(pa.ArrowNotImplementedError, pa.ArrowInvalid))
    return None if found is None else int(found.as_py())


def _as_time(column: pa.ChunkedArray, plain: Column, source: Source) -> Column | None:
    is_float, unit = pa.types.is_floating(column.type), source.unit
    if plain.missing == len(column) or (is_float and unit is None) or pa.types.is_boolean(column.type):
        return None
    try:
        ms, bad = to_milliseconds(column, source)
    except SessionkitError:
        if not is_float:
            return None
        way = f"{unit} since 1970 with a fraction, which is not read: {without_fraction(column, plain.name, unit)}"
        return dataclasses.replace(plain, why=way)
    texts = texts_of(column) if bad is not None and np.count_nonzero(bad) > plain.missing else []
    if mixed := way_of_mixed(texts, plain.name):
        return dataclasses.replace(plain, why=f"times, written in several ways, which this line reads: {mixed}")
    is_time = ms >= 0 if bad is None else (ms >= 0) & ~bad
    usable = ms[is_time]
    early = np.zeros(len(ms), np.bool_) if bad is None else (ms < 0) & ~bad
    others = ", errors='coerce'" if bad is not None and int(bad.sum()) > plain.missing else ""
    years, line = _moved(plain.name, source.format, int(ms[early].min(initial=0)), others)
    if 2 * np.count_nonzero(early) > len(column) - plain.missing:
        why = f"times, most before 1970, which Kafka refuses; this line moves all by {years} years: {line}"
        return dataclasses.replace(plain, why=why)
    if 2 * len(usable) < len(column) - plain.missing or not len(usable):
        formats = formats_for(*texts) if texts and source.format is None else []
        found = _as_time(column, plain, dataclasses.replace(source, format=formats[0])) if formats else None
        if len(formats) == 1 or source.format is not None or not texts or not (way := format_for(*texts)):
            return found
        why = f"times, if you name how they are written: {way}"
        return dataclasses.replace(found or plain, could_be="", why=why, format=None, no_time=None)
    shown_ms = pc.local_timestamp(arrow_array(usable).cast(pa.timestamp("ms", source.timezone))).cast(pa.int64())
    are_days = any(not (numpy_array(each) % DAY).any() for each in (arrow_array(usable), shown_ms))
    plain = dataclasses.replace(plain, times_ms=usable, has_only_days=are_days)
    if len(column) > 1 and usable.min() == usable.max():
        if unit is not None and (plain.distinct or 0) > 1:
            return None  # ids of many digits
        return dataclasses.replace(plain, why="no event time: it is the same in all rows")
    back = int((np.diff(usable) < 0).sum())
    why = f"times; {percent(back / len(column))} of the rows step back" if back else "times in order"
    if unit is not None:
        why = f"could be {unit} since 1970: {why}"
    times: dict[str, Any] = {"unit": unit, "format": source.format, "steps_back": back}
    times |= {"no_time": None if is_time.all() else ~is_time, "early": early}
    times["century"] = "".join(years_of_two_digits(usable, plain.name, source.format))
    is_moved = unit is None and not times["century"]
    times["moved"] = f"this line of pandas moves all by {years} years: {line}" if is_moved else ""
    return dataclasses.replace(plain, could_be="event time", why=why, **times)


def _moved(name: str, form: str | None, first_ms: int, others: str) -> tuple[int, str]:
    """(years, the line of pandas) by which times before 1970 are moved by whole centuries, so that Kafka takes them."""
    years, read = 100 * math.ceil(-first_ms / (36_525 * DAY)), f"df[{name!r}]{f', format={form!r}' if form else ''}"
    return years, f"df[{name!r}] = pandas.to_datetime({read}{others}) + pandas.DateOffset(years={years})"


def _as_key(plain: Column, kind: pa.DataType, rows: int, texts: list[str]) -> Column:
    if pa.types.is_boolean(kind):
        return dataclasses.replace(plain, why="true or false, which groups hardly anything")
    takes = pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if not takes or not plain.distinct or rows < _FEWEST_ROWS_A_KEY or _OF_NO_KEY.search(plain.name):
        return plain
    if plain.distinct == 1:
        return dataclasses.replace(plain, why=_ONE)
    per_value = (rows - plain.missing) / plain.distinct
    comes_again = _OF_AN_ID.search(plain.name) or rows >= _ENOUGH_ROWS
    if per_value < (_FEWEST_ROWS_OF_SOMEONE if comes_again else _FEWEST_ROWS_A_KEY):
        return plain
    why = f"{plural(plain.distinct, 'value')}, {per_value:,.1f} rows each"
    numbers = [text for text in texts if re.fullmatch(NUMBER, text.strip())]
    if 2 * sum("." in text for text in numbers) > len(texts):
        return plain  # fractions
    is_measure = 0 < _MOSTLY * len(texts) <= len(numbers) and not "".join(texts).isdecimal()
    is_measure &= not any(map(_OF_LETTERS.fullmatch, texts))
    words = [] if _OF_A_KEY.search(plain.name) else [text for text in texts if text.strip().count(" ") > 1]
    is_measure |= len(words) > _MOSTLY * len(texts)
    is_rare = per_value < _FEWEST_ROWS_A_KEY and not _OF_SOMEONE.search(plain.name)
    return dataclasses.replace(plain, could_be="key", why=why, is_measure=is_measure, is_rare=is_rare)
