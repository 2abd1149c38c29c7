"""How a plan reads its records: which column is what."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import pyarrow as pa

from sessionkit.base.decisions import AHEAD, BAD_TIME, NULL_KEY
from sessionkit.base.durations import Duration, duration_code, duration_ms, show_duration
from sessionkit.base.moments import known_zone
from sessionkit.base.result_columns import TAKEN, TAKEN_BY_TIMES, ResultForm, shown_key
from sessionkit.base.text import ALL, OF_ALL, is_text, literal, one_of
from sessionkit.errors import InvalidArgument, NotBuilt, attempted, problem, shorten

TimeUnit = Literal["s", "ms", "us", "ns"]
OnBadTime = Literal["refuse", "drop", "partition_time"]
Nonexistent = Literal["raise", "earliest", "latest"]
Ambiguous = Literal[Nonexistent, "infer"]
Ahead = Literal["keep", "drop"]
TIME_UNITS = get_args(TimeUnit)
FORMAT_WITHOUT_YEAR = '"2024 %b %d %H:%M:%S", with the year of the texts in front of what they say'
_A_FORMAT = '"%d/%m/%Y %H:%M:%S"'
SOME_TIME = dt.datetime(2001, 2, 3, 16, 5, 6, 789_000, dt.UTC)  # shows which parts of a time a format has
_WAYS_AHEAD = 'ahead="drop" leaves it out; ahead="keep" counts it; both leave stream time where it is'
_AS_ARRIVED = "rows stand in the order in which they arrived, as df.sort_values({!r}) puts them"
_TEXTS = ("partition", "offset", "sep", "timezone", "arrival", "format", "separator", "label")
MAX_PARTITIONS = 1_000_000  # five times what a whole Kafka cluster is made for


@dataclass(frozen=True, kw_only=True)
class Source:
    """How a plan reads its records: which column is what, and what to do with times that are none."""

    keys: tuple[str, ...]  # none: all records are of one key, `OF_ALL`
    timestamp: str
    sep: str | None = None  # joins several keys; without it they stay apart, and results show none of them
    unit: str | None = None
    timezone: str | None = None
    ambiguous: str = "raise"
    nonexistent: str = "raise"
    partition: str | None = None
    offset: str | None = None
    partitions: int | None = None
    on_bad_time: str = "refuse"
    sort: bool | str = False
    types: tuple[tuple[str, str], ...] = ()  # of columns of text files
    arrival: str | None = None
    idle_after: str | None = None  # a length of time as code
    max_ahead: str | None = None  # another
    ahead: str | None = None  # what becomes of records that are further ahead of their arrival
    format: str | None = None  # of times that are text, as strftime has it
    separator: str | None = None  # of the fields of text files; None: what their first lines show
    header: bool = True  # False: text files have no line of names
    label: str | None = None  # the column that says what a record is to a reader; decides nothing
    shown_in: str | None = None  # the zone of calendar windows, in which results are shown if `timezone` names none
    before_1970: bool = False  # whether times before it are times; Kafka refuses them

    def __post_init__(self) -> None:
        zone: object = self.timezone
        if isinstance(zone, dt.tzinfo):  # a ZoneInfo is taken as its name
            object.__setattr__(self, "timezone", known_zone(str(zone)))
        self._check_types()
        shown = [shown_key(name) for name in self.keys]
        if len(set(shown)) < len(shown):
            want = "columns of different names, as results show them; rename one of them before"
            raise InvalidArgument(problem("two key columns would have one name in the results", list(self.keys), want))
        choices = {"unit": (None, *TIME_UNITS), "on_bad_time": get_args(OnBadTime), "ahead": (None, *get_args(Ahead))}
        clocks = {"ambiguous": get_args(Ambiguous), "nonexistent": get_args(Nonexistent), "header": (True, False)}
        for name, allowed in (choices | clocks).items():
            one_of(name, getattr(self, name), allowed)
        if self.partitions is not None and (self.partition is not None or not 1 <= self.partitions <= MAX_PARTITIONS):
            want = f"1 to {MAX_PARTITIONS:,}, and without partition=: Kafka's partitioner then places each key"
            raise InvalidArgument(problem("partitions must be a number of partitions", self.partitions, want))
        if self.partitions is not None and not self.keys:
            want = "partition=, the column that says where each record is, or a key column"
            raise InvalidArgument(problem("partitions= places records by their key", "no key column", want))
        if self.sort == "timestamp" and self.offset is not None:
            want = 'sort=True for the order of offsets, or sort="timestamp" without offset='
            got = f"offset={self.offset!r}"
            raise InvalidArgument(problem('sort="timestamp" makes an order of its own', got, want))
        if self.sort is True and self.offset is None:
            want = 'sort="timestamp" for the order of times, or the name of the column in offset='
            raise InvalidArgument(problem("sort=True sorts by the offset column", "no offset=", want))
        if self.ambiguous == "infer" and self.sort is True:
            want = 'ambiguous="earliest" or "latest", or rows in order of their offsets without sort=True'
            raise InvalidArgument(problem('ambiguous="infer" goes by the order of the rows', "sort=True", want))
        if self.on_bad_time == "partition_time" and self.sort == "timestamp":
            what, want = 'on_bad_time="partition_time" goes by the order of arrival', 'on_bad_time="drop"'
            raise InvalidArgument(problem(what, 'sort="timestamp"', want))
        self._check_format()
        self._check_arrival()
        self._check_idle()

    def _check_format(self) -> None:
        if self.format is None:
            return
        form, got = self.format_with_year[0], f"format={shorten(repr(self.format))}"
        if self.unit is not None:
            raise InvalidArgument(problem("unit= is of numbers and format= of texts", got, "one of them"))
        has_year = re.search("%[YyGcx]", form) or "%" not in form
        if has_year:  # from Python 3.13 on strptime warns where there is none
            read = attempted(dt.datetime.strptime, SOME_TIME.strftime(form), form, but=(ValueError, re.error))
            if read is not None and read.date() == SOME_TIME.date():
                return
        want = f"as strftime has it, such as format={_A_FORMAT if has_year else FORMAT_WITHOUT_YEAR}"
        raise InvalidArgument(problem("format must name a whole day", got, want))

    @property
    def renamed(self) -> list[str]:
        """A sentence on each key column whose name is that of something else in results."""
        shown = self.keys if self.sep is None or len(self.keys) == 1 else ()
        said = "Column {0!r} of the data is {1!r} in results, which have another column {0!r}."
        return [said.format(name, shown_key(name)) for name in shown if name != shown_key(name)]

    @property
    def text_types(self) -> dict[str, str]:
        """The types of columns of text files."""
        return text_types(self.timestamp, self.format, dict(self.types))

    @property
    def text_form(self) -> dict[str, Any]:
        """Arguments for reading the lines of text files."""
        return {"separator": self.separator, "header": self.header}

    @property
    def format_with_year(self) -> tuple[str, str]:
        """The format for texts with this year put in front, and the year; (the format, "") if they have a year."""
        form = (self.format or "").strip("[] ")
        year = re.match(r"(\d{4}) (?!.*%[YyGcx])", form)
        return (form, "") if year is None else ("%Y" + form[4:], form[:4])

    def _check_arrival(self) -> None:
        """Refuses `arrival=` without a use, its uses without it, and one of `max_ahead=` and `ahead=` alone."""
        if self.max_ahead is not None and self.ahead is None:
            what = "max_ahead= does not say what becomes of a record that is further ahead"
            raise InvalidArgument(problem(what, "no ahead=", _WAYS_AHEAD))
        if self.ahead is not None and self.max_ahead is None:
            want = 'max_ahead="5m" as well: how far after its arrival the time of a record may lie'
            raise InvalidArgument(problem("ahead= needs a limit", f"ahead={self.ahead!r}", want))
        uses = {"idle_after": self.idle_after, "max_ahead": self.max_ahead}
        asked = [f"{name}={value!r}" for name, value in uses.items() if value is not None]
        if self.arrival is not None and not asked:
            want = f'idle_after="10m" or max_ahead="5m" as well; {_AS_ARRIVED.format(self.arrival)}'
            what = "arrival= is read for idle_after= and max_ahead= alone"
            raise InvalidArgument(problem(what, repr(self.arrival), want))
        if self.arrival is None and asked:
            want = 'arrival="arrived", the column that says when each record arrived by the wall clock'
            what = f"{asked[0].partition('=')[0]}= needs a clock that a replay reads again"
            raise InvalidArgument(problem(what, asked[0], want))

    def _check_idle(self) -> None:
        """Refuses `idle_after=` without partitions, or with an order that is made up afterwards."""
        if self.idle_after is None:
            return
        got = f"idle_after={self.idle_after!r}"
        if self.partition is None and self.partitions is None:
            want = "partition=, the column that says in which partition a record is, or partitions="
            raise InvalidArgument(problem("idle_after= needs partitions: one follows the others", got, want))
        if self.sort == "timestamp":
            want = "sort=True, or rows in the order in which they arrived"
            raise InvalidArgument(problem('sort="timestamp" makes an order that no clock has seen', got, want))

    @property
    def idle_after_ms(self) -> int | None:
        """How long a partition gets no record until it is idle; None: no partition ever is."""
        return None if self.idle_after is None else duration_ms(self.idle_after, "idle_after")

    @property
    def max_ahead_ms(self) -> int | None:
        """How far after its arrival the time of a record may lie; None: it may be any."""
        return None if self.max_ahead is None else duration_ms(self.max_ahead, "max_ahead")

    @property
    def kept_ahead(self) -> str:
        """The remark that there are records which count, though they are too far ahead to move stream time."""
        said = f"Some times are more than {self._most_ahead} ahead of their arrival"
        return f'{said} ({self.timestamp!r}, {self.arrival!r}): they count and move no stream time, by ahead="keep".'

    @property
    def _most_ahead(self) -> str:
        return show_duration(self.max_ahead_ms or 0)

    @property
    def lacks(self) -> dict[int, tuple[str, Iterable[str | None]]]:
        """What a record that is rejected for each of these reasons lacks, in which columns."""
        of_time = f"time that is at most {self._most_ahead} ahead of its arrival"
        return {
            NULL_KEY: ("key", self.keys),
            BAD_TIME: ("usable time", (self.timestamp,)),
            AHEAD: (of_time, (self.timestamp, self.arrival)),
        }

    def _check_types(self) -> None:
        names = {f"key {i}": key for i, key in enumerate(self.keys)} | {"timestamp": self.timestamp}
        texts = {name: getattr(self, name) for name in _TEXTS}
        for name, value in (names | {name: value for name, value in texts.items() if value is not None}).items():
            if not isinstance(value, str):
                want = 'such as group_by_key("user", timestamp="at")'
                if value is None and name.startswith("key"):
                    want += '; group_by_key(timestamp="at"), without a column, takes all records as one key'
                if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
                    want = (
                        f'group_by_key({", ".join(map(literal, value))}, sep="@", timestamp={literal(self.timestamp)})'
                    )
                raise InvalidArgument(problem(f"{name} must be text", shorten(repr(value)), want))
            if not is_text(value):
                want = "valid Unicode, without lone surrogates"
                raise InvalidArgument(problem(f"{name} is not valid text", shorten(repr(value)), want))
        if self.separator is not None and not re.fullmatch(r"[ !#-~\t]", self.separator):
            want = 'one character, such as separator=";"'
            raise InvalidArgument(problem("separator must be a character of ASCII", repr(self.separator), want))
        if self.partitions is not None and type(self.partitions) is not int:  # True is an int, too
            want = "such as partitions=4"
            raise InvalidArgument(problem("partitions must be an integer", repr(self.partitions), want))
        if not isinstance(self.sort, bool) and self.sort != "timestamp":
            want = f'True, which sorts by offset=, or "timestamp"; {_AS_ARRIVED.format(self.sort)}'
            raise InvalidArgument(problem("sort must be a known choice", shorten(repr(self.sort)), want))
        for name, kind in self.types:
            if not is_type(kind):
                want = 'such as types={"user": "int64", "amount": "float64"}, by the names of Arrow'
                got = shorten(f"{name}: {kind!r}")
                raise InvalidArgument(problem("types names an unknown type", got, want))

    def key_of(self, given: Any) -> Any:
        """A key as it is inside: a tuple with a value for each of several key columns is joined."""
        if not self.keys:
            if given not in (None, (), OF_ALL):
                want = "None: the plan names no key column, so that all records are of one key"
                raise InvalidArgument(problem("this plan has no keys", shorten(repr(given)), want))
            return OF_ALL
        if not isinstance(given, tuple):
            return given
        if len(given) != len(self.keys):
            want = f"a value for each of {', '.join(self.keys)}"
            raise InvalidArgument(problem("key= must have one value for each key column", repr(given), want))
        return given[0] if self.sep is None or len(given) == 1 else self.sep.join(map(str, given))

    @property
    def by(self) -> str:
        """What records have in common that are looked at together, as titles say it."""
        return ", ".join(self.keys) or ALL

    @property
    def taken_names(self) -> frozenset[str]:
        """Names that no aggregation can have, as columns of the results have them."""
        return TAKEN | TAKEN_BY_TIMES | {shown_key(name) for name in self.keys}

    def result_form(self, types: Sequence[pa.DataType], timezone: str) -> ResultForm:
        """How results show the key, whose columns are of these types, and times, by clocks in this zone."""
        return ResultForm(tuple(zip(self.keys, types, strict=True)), self.sep, timezone)

    def own_columns(self) -> list[str]:
        """The columns whose values have windows of their own: those of the key, and the partition."""
        return [*self.keys, *([self.partition] if self.partition else [])]

    def columns(self) -> list[str]:
        """The columns that are read besides the values, each once."""
        named = [*self.keys, self.timestamp, self.partition, self.offset, self.arrival, self.label]
        return list(dict.fromkeys(name for name in named if name is not None))


def pairs(types: object) -> tuple[tuple[str, str], ...]:
    """Mapping given as `types=`, in a form that can be hashed."""
    if not isinstance(types, Mapping | None):
        want = 'such as types={"user": "int64"}'
        raise InvalidArgument(problem("types must map columns to types", shorten(repr(types)), want))
    return tuple((types or {}).items())


def written_down(idle_after: Duration | None, max_ahead: Duration | None, types: object) -> dict[str, Any]:
    """These arguments of `group_by_key` in a form that can be hashed and written down; no partition is idle at once."""
    lengths = {"idle_after": idle_after, "max_ahead": max_ahead}
    each = {name: None if length is None else duration_ms(length, name) for name, length in lengths.items()}
    if each["idle_after"] == 0:
        want = 'a length of time such as "10m", or leave it out: then no partition is idle'
        raise InvalidArgument(problem("idle_after must be longer than nothing", repr(idle_after), want))
    codes = {name: None if ms is None else duration_code(ms) for name, ms in each.items()}
    return {**codes, "types": pairs(types)}


def check_not_idle(source: Source, what: str) -> None:
    """Refuses a plan with the rule for idle partitions where there is none (`NotBuilt`), for the reason `what`."""
    if source.idle_after is not None:
        want = "a plan without idle_after=, which is a rule of sessionkit's own"
        raise NotBuilt(problem(what, f"idle_after={source.idle_after!r}", want))


def check_as_kafka(source: Source, why_not_idle: str) -> None:
    """Refuses what Kafka and systems like it do not have: a plan without a key, rules on arrivals (`NotBuilt`)."""
    if not source.keys:
        want = 'a column that is the same in all rows as the key, such as df["all"] = "all"'
        raise NotBuilt(problem("Kafka Streams and systems like it group records by a key", "no key column", want))
    check_not_idle(source, why_not_idle)
    if source.max_ahead is not None:
        what = "neither Kafka Streams nor what is like it compares a record's time with its arrival"
        want = (
            "a plan without max_ahead=, which is a rule of sessionkit's own; the nearest, in Kafka, is a "
            "TimestampExtractor that gives -1 for such a record, which is then skipped"
        )
        raise NotBuilt(problem(what, f"max_ahead={source.max_ahead!r}", want))


def text_types(timestamp: str, format: str | None, types: dict[str, str]) -> dict[str, str]:
    """The types of columns of text files: what a format is for is text, also where it is all digits."""
    return ({} if format is None else {timestamp: "string"}) | types


def is_type(name: object) -> bool:
    """True for the name of a type of Arrow."""
    return isinstance(name, str) and attempted(pa.type_for_alias, name, but=ValueError) is not None
