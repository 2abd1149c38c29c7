"""What is to be exported, checked: the plan, the types of its columns, and what has no counterpart elsewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import pyarrow as pa

from sessionkit.aggregations.contract import Aggregation
from sessionkit.base.durations import DAY, Duration, show_duration
from sessionkit.base.text import is_visible, one_of, plural, sql_name
from sessionkit.errors import InvalidArgument, NotBuilt, problem, shorten
from sessionkit.exports.export import Export, Target
from sessionkit.records.source import Source, check_as_kafka

if TYPE_CHECKING:
    from sessionkit.plan import Plan

TYPES = {"bigint": pa.int64(), "double": pa.float64(), "string": pa.string(), "boolean": pa.bool_()}
KeyType = Literal["string", "bigint", "bytes"]
TimestampIn = Literal["column", "record"]
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_READ_AS = {"bigint": "integers of 64 bits", "double": "numbers of 64-bit floating point"}
_READ_AS |= {"string": "texts", "boolean": "true or false"}
# Room for stream time to jump where only finals are sent; Kafka's own changelogs keep a day more, too.
JUMP_MS = DAY


@dataclass(frozen=True)
class Result:
    """One named result: which aggregation, over which column (none: `count`) of which type."""

    name: str
    built_in: str
    column: str | None
    type: str
    settings: tuple[Any, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Request:
    """A plan that can be exported, with names and types that are safe to write down."""

    system: str
    plan: Plan
    results: tuple[Result, ...]
    types: Mapping[str, str]  # of the columns that the aggregations read
    assumed: tuple[str, ...]  # of these, the ones whose type was not given
    key_type: str
    timestamp: str
    input_topic: str
    output_topic: str

    @property
    def built_ins(self) -> set[str]:
        return {result.built_in for result in self.results}

    @property
    def is_final(self) -> bool:
        """True if the operator sends final results only."""
        return self.plan._strategy == "on_window_close"

    @property
    def reads_time(self) -> bool:
        """True if a record's value holds the event time, False if it is the record's own timestamp."""
        return self.timestamp == "column"

    def value_types(self) -> dict[str, str]:
        """The contents of a record's value: its event time, unless it is its own, and the columns that are read."""
        return ({self.plan.source.timestamp: _time_type(self.plan.source)} if self.reads_time else {}) | {**self.types}

    def free_name(self, name: str) -> str:
        """`name`, or something like it that no column and no result is called, in any case of letters."""
        names = (*(path_of(name)[0] for name in self.value_types()), *(result.name for result in self.results))
        taken = {name.casefold() for name in names}
        while name.casefold() in taken:
            name += "_"
        return name

    def retention_ms(self, retention: Duration | None, smallest_ms: int) -> int:
        """How long the store of an exported plan keeps a window: `retention`, or as long as it takes.

        Updates are those of the plan from `smallest_ms` on. Finals need as much more as stream time can jump: a day.
        """
        if retention is not None:
            return self.plan._complete_windows.retention_ms(retention)
        return smallest_ms + (JUMP_MS if self.is_final else 0)

    def export(self, target: str, code: str, differences: list[str]) -> Export:
        """The plan as this code for a target, with the sentences that hold for every target before its own."""
        plan = tuple(self.plan.code())
        return Export(target=target, code=code, differences=[*self.layout(), *differences], plan=plan)

    # ---- sentences that hold for every target

    def layout(self) -> list[str]:
        keys = [quoted(key) for key in self.plan.source.keys]
        what = f"the {_KEY_WORDS[self.key_type]} in column {keys[0]}"
        if len(keys) > 1:
            what = f"the text of columns {', '.join(keys)}, joined by {quoted(str(self.plan.source.sep))}"
        words = [f"The key of each record of topic {quoted(self.input_topic)} is {what}."]
        words += [*self._value_and_time(), *self._dots()]
        if self.plan.source.sort == "timestamp":
            how = f"topic {quoted(self.input_topic)} is read in its own order, in which records may be late"
            words.append(f"The plan sorts its rows by time first; {how}.")
        is_clock = self.reads_time and self.plan.source.unit is None
        if is_clock and self.plan.source.timezone not in (None, "UTC"):
            zone = quoted(str(self.plan.source.timezone))
            words.append(f"The plan reads clock times of {zone}; the topic must hold them with their offset.")
        if self.assumed:
            names = ", ".join(quoted(name) for name in self.assumed)
            words.append(f"The plan holds no data: the types of {names} are guesses; types= sets them.")
        return words

    def _value_and_time(self) -> list[str]:
        time = quoted(self.plan.source.timestamp)
        columns = ", ".join(f"{quoted(name)} ({_READ_AS[kind]})" for name, kind in self.types.items())
        missing = "; one that is left out counts as null" if columns else ""
        if not self.reads_time:
            return [
                f"Its value is a JSON object with the columns {columns}{missing}." if columns else "Its value is JSON.",
                f"The event time is the record's own timestamp; the plan reads it from column {time}.",
            ]
        clock = "ISO 8601 text with its offset from UTC, such as 2024-01-01T09:00:00.000Z"
        if self.plan.source.unit is not None:
            clock = f"an integer in {self.plan.source.unit} since 1970"
        others = f", and the columns {columns}{missing}" if columns else ""
        return [
            f"Its value is a JSON object with the event time {time} ({clock}){others}.",
            "With timestamp=\"record\" the event time is the record's own timestamp, Kafka's default, instead.",
        ]

    def _dots(self) -> list[str]:
        *outer, last = next((path for path in map(path_of, self.value_types()) if len(path) > 1), [""])
        if not outer:
            return []
        holder = ".".join(outer)
        words = f"A name with dots is a field of an object: {quoted(f'{holder}.{last}')} is {quoted(last)} of "
        words += quoted(holder)
        if self.system in ("ksqlDB", "Flink SQL"):
            words += "; the plan looks for a column with the whole name first"
        else:
            words += ", unless the value has a field with the whole name, as in the plan"
        also = "" if self.system == "Kafka Streams" else " The plan also reads fields of JSON that is text."
        return [f"{words}.{also}"]

    def ordering(self) -> str:
        """Where the topic's order may not be the plan's."""
        if self.plan.source.partitions is not None:
            count, topic = self.plan.source.partitions, quoted(self.input_topic)
            return f"Topic {topic} has {plural(count, 'partition')}, and Kafka's own partitioner places the keys."
        if self.plan.source.partition is None:
            return "The plan has one partition and one stream time; a topic with several partitions has one for each."
        return "Partition and offset are those of the topic, whatever the plan's columns for them say."


_KEY_WORDS = {"string": "text", "bigint": "integer (8 bytes, big-endian)", "bytes": "bytes"}


def request_of(
    target: Target[Any, Any],
    plan: Plan,
    types: Mapping[str, str] | None,
    key_type: str,
    timestamp: str,
    input_topic: str,
    output_topic: str,
) -> Request:
    """The plan, checked for what no other system has, and for what the export does not know (`NotBuilt`)."""
    plan._check()
    _refuse_own_forms(plan)
    target.check(plan._complete_windows, plan._aggregations, plan._suppression)
    if plan.source.on_bad_time == "partition_time" and target.system != "Kafka Streams":
        what = f"{target.system} does not give the time of a partition to records that have none"
        want = 'on_bad_time="drop" or "refuse", or plan.to_java()'
        raise NotBuilt(problem(what, 'on_bad_time="partition_time"', want))
    one_of("key_type", key_type, get_args(KeyType))
    one_of("timestamp", timestamp, get_args(TimestampIn))
    if len(plan.source.keys) > 1 and key_type != "string":
        raise InvalidArgument(problem("several key columns are joined as text", f"key_type={key_type!r}", '"string"'))
    topics: dict[str, object] = {"input_topic": input_topic, "output_topic": output_topic}
    for name, topic in topics.items():
        if not isinstance(topic, str) or not _TOPIC.fullmatch(topic) or topic in (".", ".."):
            want = "1 to 249 letters, digits, dots, dashes and underscores"
            raise InvalidArgument(problem(f"{name} must be a name that Kafka accepts", shorten(repr(topic)), want))
    known, assumed = _column_types(plan, types)
    return Request(
        system=target.system,
        plan=plan,
        results=tuple(_result(name, aggregation, known) for name, aggregation in plan._aggregations),
        types=known,
        assumed=assumed,
        key_type=key_type,
        timestamp=timestamp,
        input_topic=input_topic,
        output_topic=output_topic,
    )


def _refuse_own_forms(plan: Plan) -> None:
    windows = plan._complete_windows
    check_as_kafka(plan.source, "no other system moves the stream time of an idle partition like this")
    if not windows.is_ever_closed:
        want = "SessionWindows with a grace, as Kafka has had it since 2.1"
        raise NotBuilt(problem("no other system has these windows", repr(windows), want))
    if windows.trailing_only:
        want = "leave out trailing_only; Kafka released the other form of KIP-450"
        raise NotBuilt(problem("no other system has these windows", repr(windows), want))
    for name, aggregation in plan._aggregations:
        if not aggregation.parts:
            want = "sk.count, sum, min, max, mean, first, last or collect"
            what = f"a Python function cannot be written in another language: result {shorten(repr(name))}"
            raise NotBuilt(problem(what, shorten(aggregation.code), want))


def _column_types(plan: Plan, types: Mapping[str, str] | None) -> tuple[dict[str, str], tuple[str, ...]]:
    named = dict(types or {})
    columns = plan._value_columns()
    for name, kind in named.items():
        if name not in columns:
            what = "types may only name columns that are aggregated"
            raise InvalidArgument(problem(what, shorten(repr(name)), f"of {columns}"))
        one_of(f"the type of {shorten(repr(name))}", kind, tuple(TYPES))
    if plan.source.timestamp in columns:
        named.setdefault(plan.source.timestamp, _time_type(plan.source))
    takes_text = [(each.columns, "string" in _takes(each)) for _, each in plan._aggregations]
    numbers = {column for columns, is_text in takes_text for column in columns if not is_text}
    guessed = {name: "double" if name in numbers else "string" for name in columns if name not in named}
    return {name: {**guessed, **named}[name] for name in columns}, tuple(guessed)


def _time_type(source: Source) -> str:
    return "string" if source.unit is None else "bigint"


def _takes(aggregation: Aggregation) -> list[str]:
    return [name for name, kind in TYPES.items() if aggregation.takes(kind)]


def _result(name: str, aggregation: Aggregation, types: Mapping[str, str]) -> Result:
    if not aggregation.columns:
        return Result(name, aggregation.built_in, None, "bigint")
    (column,) = aggregation.columns
    kind, takes = types[column], _takes(aggregation)
    if kind not in takes:
        what = f"{aggregation.built_in} cannot be exported over column {shorten(repr(column))}"
        want = f"one of {', '.join(takes)}; times as integers with unit="
        raise InvalidArgument(problem(what, f"type {kind}", want))
    return Result(name, aggregation.built_in, column, kind, aggregation.settings)


def path_of(name: str) -> list[str]:
    """The objects that a name with dots leads through, and the field: "payload.amount"; any other name alone."""
    parts = name.split(".")
    return parts if all(parts) else [name]


def nested(types: Mapping[str, str]) -> dict[str, Any]:
    """Types by the names of columns; that of an object is such a dict again: {"payload": {"amount": "DOUBLE"}}."""
    paths = {name: path_of(name) for name in types}
    columns: dict[str, Any] = {}
    for name, path in paths.items():
        for other, longer in paths.items():
            if longer[: len(path)] == path and len(longer) > len(path):
                what = f"{shorten(repr(name))} is a column and an object that holds {shorten(repr(other))}"
                raise NotBuilt(problem("one type cannot be both", what, "one of the two, or plan.to_java()"))
        fields = columns
        for part in path[:-1]:
            fields = fields.setdefault(part, {})
        fields[path[-1]] = types[name]
    return columns


def sql_columns(types: Mapping[str, str], struct: str) -> list[str]:
    """The columns of a table in SQL, where `struct` is the word for an object."""
    return [f"  {_sql_column(name, kind, struct)}" for name, kind in nested(types).items()]


def _sql_column(name: str, kind: Any, struct: str) -> str:
    if not isinstance(kind, str):
        kind = f"{struct}<{', '.join(_sql_column(inner, each, struct) for inner, each in kind.items())}>"
    return f"{sql_name(name)} {kind}"


def sql_path(column: str | None, dot: str = ".") -> str:
    """A column in SQL, or the field of one, where `dot` stands between an object and its field."""
    return dot.join(map(sql_name, path_of(str(column))))


def call(function: str, dot: str = ".") -> Callable[[Result], str]:
    """A call of a function of SQL over the column of a result."""
    return lambda result: f"{function}({sql_path(result.column, dot)})"


def quoted(text: str) -> str:
    """`text` in double quotes, on one line."""
    return json.dumps(shorten(text), ensure_ascii=False)


def listed(lines: list[str]) -> str:
    """Lines of a list in SQL."""
    return ",\n".join(lines)


def check_sql_names(request: Request, system: str, reserved: tuple[str, ...] = ()) -> None:
    """Refuses names that cannot be quoted: empty ones, those with invisible characters, and those that are reserved."""
    for name in (*request.value_types(), *(result.name for result in request.results)):
        if not name or not is_visible(name):
            want = "rename it: at least one character, and no invisible ones"
            raise InvalidArgument(problem(f"{system} cannot use this name", shorten(repr(name)), want))
        if path_of(name)[0].upper() in reserved:
            raise InvalidArgument(problem(f"{system} reserves this name", repr(name), "rename it"))


def lateness(request: Request) -> str:
    """When a window closes under Kafka's rule, in words for comparison."""
    windows = request.plan._complete_windows
    lag = show_duration(windows.close_lag_ms)
    when = f"more than {lag}" if windows.inclusive_end else f"{lag} or more"
    return (
        f"The plan closes a {windows.noun} at the first record {when} past its end, by the stream time of its partition"
    )
