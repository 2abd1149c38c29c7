"""A plan as Flink SQL: a table over the topic with a watermark, and a window table-valued function."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sessionkit.base.durations import show_duration
from sessionkit.base.text import sql_literal, sql_name
from sessionkit.errors import NotBuilt, problem
from sessionkit.exports.export import Export, Target
from sessionkit.exports.lengths import flink_interval
from sessionkit.exports.request import Request, Result, call, check_sql_names, lateness, listed, sql_columns, sql_path
from sessionkit.windows.hopping import TimeWindows
from sessionkit.windows.session import SessionWindows
from sessionkit.windows.sliding.windows import SlidingWindows

_TYPES = {"bigint": "BIGINT", "double": "DOUBLE", "string": "STRING", "boolean": "BOOLEAN", "bytes": "BYTES"}
_RESERVED = ("WINDOW_START", "WINDOW_END", "WINDOW_TIME")
_EVENT_TIMES = {None: "{}", "s": "TO_TIMESTAMP_LTZ({}, 0)", "ms": "TO_TIMESTAMP_LTZ({}, 3)"}
_EVENT_TIMES |= {"us": "TO_TIMESTAMP_LTZ({} / 1000, 3)", "ns": "TO_TIMESTAMP_LTZ({} / 1000000, 3)"}


def to_flink_sql(request: Request) -> Export:
    """The plan as two tables and one INSERT.

    Raises:
        NotBuilt: a gap of 0, or a size that is no multiple of the advance.
        InvalidArgument: a name that cannot be quoted, or a duration beyond Flink's intervals.
    """
    check_sql_names(request, "Flink SQL", _RESERVED)
    key, time = (sql_name(request.free_name(name)) for name in ("key", "event_time"))
    windows = FLINK.windows(request.plan._complete_windows, key, time)
    settings = "SET 'execution.runtime-mode' = 'streaming';\nSET 'table.local-time-zone' = 'UTC';"
    statements = [_records(request, windows, key, time), _results(request), _insert(request, windows, key)]
    return request.export("flink_sql", "\n\n".join([settings, *statements]) + "\n", _differences(request, windows))


# ---- windows


class _Windows(NamedTuple):
    """The SQL for a kind of window.

    The watermark stays so far behind that a window closes where Kafka closes it: Flink fires once the watermark is at
    the window's end - 1 ms; there a session ends a gap after its last record.
    """

    function: str
    end: str
    watermark_delay_ms: int
    differences: tuple[str, ...] = ()


def _sessions(windows: SessionWindows, key: str, time: str) -> _Windows:
    if windows.inactivity_gap_ms == 0:
        raise NotBuilt(problem("Flink has no sessions without a gap", repr(windows), "a gap of 1 ms or more"))
    gap = flink_interval(windows.inactivity_gap_ms)
    return _Windows(
        function=f"SESSION(TABLE `records` PARTITION BY {key}, DESCRIPTOR({time}), {gap})",
        end=f"window_end - {gap}",
        watermark_delay_ms=windows.grace_ms + 2,
    )


def _time_windows(windows: TimeWindows, key: str, time: str) -> _Windows:
    over, delay_ms = f"TABLE `records`, DESCRIPTOR({time})", windows.grace_ms + 1
    size, is_moved = flink_interval(windows.size_ms), windows.offset_ms > 0
    lengths = f"{size}, {flink_interval(windows.offset_ms)}" if is_moved else size
    first = ("Flink also has the windows that start before 1970; the plan's start at 0.",)
    if windows.advance_ms == windows.size_ms:
        return _Windows(f"TUMBLE({over}, {lengths})", "window_end", delay_ms, first if is_moved else ())
    if windows.size_ms % windows.advance_ms:
        want = "a size that is a multiple of the advance"
        raise NotBuilt(problem("Flink's HOP takes whole numbers of advances", repr(windows), want))
    return _Windows(f"HOP({over}, {flink_interval(windows.advance_ms)}, {lengths})", "window_end", delay_ms, first)


# ---- aggregations


class _Aggregate(NamedTuple):
    """The SQL for an aggregation: in the inner SELECT, in the outer one, its type, and what differs."""

    inner: Callable[[Result], str]
    type: Callable[[Result], str] = lambda result: _TYPES[result.type]
    outer: Callable[[str], str] = lambda name: name
    difference: str = ""


def _number(result: Result) -> str:
    name = sql_path(result.column)
    if result.type == "boolean":
        return f"CASE WHEN {name} THEN CAST(1 AS BIGINT) WHEN NOT {name} THEN CAST(0 AS BIGINT) END"
    return name


def _values(result: Result) -> str:
    """All values in an array, as FIRST_VALUE and LAST_VALUE cannot be merged, which sessions and HOP need."""
    name = sql_path(result.column)
    return f"ARRAY_AGG({name}) FILTER (WHERE {name} IS NOT NULL)"


_ORDER = (
    "first, last and collect: HOP takes their values in no fixed order, as it adds up slices of one advance; other "
    "windows take them in the order of processing, which is the topic's order only within a partition."
)
_NEAREST = "TimeWindows with an advance, or plan.to_java(); OVER windows end at each row"
FLINK: Target[_Windows, _Aggregate] = Target(
    system="Flink SQL",
    takes_offset=True,
    kinds={SessionWindows: _sessions, TimeWindows: _time_windows},
    missing={SlidingWindows: ("sliding windows", _NEAREST)},
    aggregations={  # in the order in which their differences are listed
        "count": _Aggregate(lambda result: "COUNT(*)", lambda result: "BIGINT"),
        "first": _Aggregate(_values, outer=lambda name: f"{name}[1]", difference=_ORDER),
        "last": _Aggregate(_values, outer=lambda name: f"{name}[CARDINALITY({name})]", difference=_ORDER),
        "collect": _Aggregate(call("ARRAY_AGG"), lambda result: f"ARRAY<{_TYPES[result.type]}>", difference=_ORDER),
        "sum": _Aggregate(
            lambda result: f"COALESCE(SUM({_number(result)}), 0)",
            lambda result: "BIGINT" if result.type == "boolean" else _TYPES[result.type],
            difference="A sum of integers wraps where it passes 64 bits; the plan refuses it.",
        ),
        "mean": _Aggregate(lambda result: f"AVG(CAST({_number(result)} AS DOUBLE))", lambda result: "DOUBLE"),
        "count_distinct": _Aggregate(
            lambda result: f"COUNT(DISTINCT {sql_path(result.column)})",
            lambda result: "BIGINT",
            difference="COUNT(DISTINCT) tells -0.0 from 0.0; the plan does not.",
        ),
        "std": _Aggregate(
            lambda result: f"STDDEV_SAMP(CAST({_number(result)} AS DOUBLE))",
            lambda result: "DOUBLE",
            difference="STDDEV_SAMP is made of sums of squares, which loses digits of large values; the plan does not.",
        ),
        "min": _Aggregate(call("MIN")),
        "max": _Aggregate(call("MAX")),
    },
)


# ---- the statements


def _records(request: Request, windows: _Windows, key: str, time: str) -> str:
    source = request.plan.source
    types = {name: _TYPES[kind] for name, kind in request.value_types().items()}
    if request.reads_time and source.unit is None:
        types[source.timestamp] = "TIMESTAMP_LTZ(3)"
    lines = [f"  {key} {_TYPES[request.key_type]}", *sql_columns(types, "ROW")]
    if request.reads_time:
        before, after = _EVENT_TIMES[source.unit].split("{}")  # as a name may hold braces
        lines.append(f"  {time} AS {before}{sql_path(source.timestamp)}{after}")
    else:
        lines.append(f"  {time} TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL")
    lines.append(f"  WATERMARK FOR {time} AS {time} - {flink_interval(windows.watermark_delay_ms)}")
    options = {
        "scan.startup.mode": "earliest-offset",
        "key.format": "raw",
        "key.fields": key[1:-1],
        "value.format": "json",
        "value.json.timestamp-format.standard": "ISO-8601",
        "value.fields-include": "EXCEPT_KEY",
    }
    return f"CREATE TABLE `records` (\n{listed(lines)}\n) WITH (\n{_options(request.input_topic, options)}\n);"


def _results(request: Request) -> str:
    lines = [f"  `key` {_TYPES[request.key_type]}", "  `window_start` TIMESTAMP(3)", "  `window_end` TIMESTAMP(3)"]
    lines += [f"  {sql_name(each.name)} {FLINK.aggregations[each.built_in].type(each)}" for each in request.results]
    options = _options(request.output_topic, {"format": "json"})
    return f"CREATE TABLE `results` (\n{listed(lines)}\n) WITH (\n{options}\n);"


def _options(topic: str, more: dict[str, str]) -> str:
    options = {"connector": "kafka", "topic": topic, "properties.bootstrap.servers": "localhost:9092"} | more
    return listed([f"  {sql_literal(name)} = {sql_literal(value)}" for name, value in options.items()])


def _insert(request: Request, windows: _Windows, key: str) -> str:
    """The aggregates in an inner SELECT, what is made of them in the outer one."""
    results = [(at, FLINK.aggregations[each.built_in], each) for at, each in enumerate(request.results)]
    inner = [f"    {aggregate.inner(each)} AS `a{at}`" for at, aggregate, each in results]
    outer = [aggregate.outer(f"`a{at}`") for at, aggregate, _ in results]
    return (
        f"INSERT INTO `results`\nSELECT {key}, window_start, {windows.end}, {', '.join(outer)}\n"
        f"FROM (\n  SELECT {key}, window_start, window_end,\n{listed(inner)}\n  FROM TABLE({windows.function})\n"
        f"  WHERE {key} IS NOT NULL\n  GROUP BY {key}, window_start, window_end\n);"
    )


def _differences(request: Request, windows: _Windows) -> list[str]:
    behind = show_duration(windows.watermark_delay_ms)
    words = [
        f"{lateness(request)}. Flink goes by the watermark: {behind} behind the largest event time, the "
        "smallest of all partitions that are read, updated every 200 ms of wall clock: a late record that Kafka drops "
        "may still count, and a partition without records holds back all windows "
        "(table.exec.source.idle-timeout).",
        "SQL has no allowed lateness: the grace is in the watermark, and later records are dropped silently.",
        "It needs Flink 2.0 or newer (SESSION and ARRAY_AGG) and its Kafka connector.",
    ]
    if request.reads_time:
        words.append("A record without a time stops the job; one before 1970 counts, which the plan refuses or drops.")
    if not request.is_final:
        words.append(
            "Flink's windows send one final result each; the plan's updates on every record do not exist there."
        )
    else:
        words.append(
            "Results come out when the watermark passes, in no fixed order of keys; the plan orders them by end, "
            "then key."
        )
    words += windows.differences
    words += dict.fromkeys(each.difference for each in FLINK.used(request.built_ins) if each.difference)
    return words
