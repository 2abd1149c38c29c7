"""A plan as statements of ksqlDB, which runs on Kafka Streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sessionkit.base.durations import Duration, show_duration
from sessionkit.base.text import sql_literal, sql_name
from sessionkit.errors import InvalidArgument, problem, shorten
from sessionkit.exports.export import Export, Target
from sessionkit.exports.lengths import ksql_length
from sessionkit.exports.request import Request, Result, call, check_sql_names, listed, path_of, sql_columns, sql_path
from sessionkit.windows.hopping import TimeWindows
from sessionkit.windows.session import SessionWindows
from sessionkit.windows.sliding.windows import SlidingWindows

_SETTINGS = "SET 'auto.offset.reset' = 'earliest';\nSET 'cache.max.bytes.buffering' = '0'; -- each update is sent"
_TYPES = {"bigint": "BIGINT", "double": "DOUBLE", "string": "VARCHAR", "boolean": "BOOLEAN", "bytes": "BYTES"}
_RESERVED = ("ROWTIME", "ROWPARTITION", "ROWOFFSET", "WINDOWSTART", "WINDOWEND")
_ISO = "yyyy-MM-dd''T''HH:mm:ss[.SSS]X"
_TO_MS = {"s": " * 1000", "us": " / 1000", "ns": " / 1000000"}
_FIELD = "->"  # between an object and its field


def to_ksql(request: Request, *, retention: Duration | None) -> Export:
    """The plan as a stream over the topic and a table of its windows.

    Raises:
        InvalidArgument: a name that cannot be quoted, or a retention that Kafka would refuse.
    """
    check_sql_names(request, "ksqlDB", _RESERVED)
    for name in (*request.value_types(), *(result.name for result in request.results)):
        if "${" in name:
            raise InvalidArgument(problem("ksqlDB puts variables into names", shorten(repr(name)), "rename it"))
    windows = KSQL.windows(request.plan._complete_windows)
    retention_ms = request.retention_ms(retention, windows.smallest_retention_ms)
    key = sql_name(request.free_name("key"))
    code = "\n\n".join([_SETTINGS, *_streams(request, key), _table(request, windows, key, retention_ms)]) + "\n"
    return request.export("ksql", code, [request.ordering(), *_differences(request, windows, retention_ms)])


# ---- windows


class _Windows(NamedTuple):
    """The SQL for a kind of window."""

    name: str
    lengths: str
    smallest_retention_ms: int  # from which on updates are those of the plan
    update_differences: tuple[str, ...] = ()


def _sessions(windows: SessionWindows) -> _Windows:
    withdrawn = "A session that grew is withdrawn by a null value for its old bounds, as in the plan."
    return _Windows("SESSION", ksql_length(windows.inactivity_gap_ms), windows.retention_ms(None) + 1, (withdrawn,))


def _time_windows(windows: TimeWindows) -> _Windows:
    size, retention_ms = f"SIZE {ksql_length(windows.size_ms)}", windows.retention_ms(None)
    if windows.advance_ms == windows.size_ms:
        return _Windows("TUMBLING", size, retention_ms)
    return _Windows("HOPPING", f"{size}, ADVANCE BY {ksql_length(windows.advance_ms)}", retention_ms)


# ---- aggregations


class _Aggregate(NamedTuple):
    """The SQL for an aggregation, and what differs."""

    write: Callable[[Result], str]
    difference: str = ""


def _number(result: Result) -> str:
    name = sql_path(result.column, _FIELD)
    return f"CASE WHEN {name} THEN 1 WHEN NOT {name} THEN 0 END" if result.type == "boolean" else name


def _mean(result: Result) -> str:
    """The mean, null where every value is null: there AVG alone would give 0."""
    return f"CASE WHEN COUNT({sql_path(result.column, _FIELD)}) > 0 THEN AVG(CAST({_number(result)} AS DOUBLE)) END"


_ARRIVAL = (
    "EARLIEST_BY_OFFSET and LATEST_BY_OFFSET go by arrival even where two sessions merge; the plan takes the older "
    "session first."
)
KSQL: Target[_Windows, _Aggregate] = Target(
    system="ksqlDB",
    kinds={SessionWindows: _sessions, TimeWindows: _time_windows},
    suppresses=lambda suppression: suppression.is_final and not suppression.is_limited,
    missing={SlidingWindows: ("sliding windows", "TimeWindows with an advance, or plan.to_java()")},
    aggregations={  # in the order in which their differences are listed
        "count": _Aggregate(lambda result: "COUNT(*)"),
        "first": _Aggregate(call("EARLIEST_BY_OFFSET", _FIELD), _ARRIVAL),
        "last": _Aggregate(call("LATEST_BY_OFFSET", _FIELD), _ARRIVAL),
        "collect": _Aggregate(
            call("COLLECT_LIST", _FIELD),
            "COLLECT_LIST stops silently at ksql.functions.collect_list.limit, where that is set.",
        ),
        "sum": _Aggregate(
            lambda result: f"SUM({_number(result)})",
            "A sum of integers wraps where it passes 64 bits; the plan refuses it.",
        ),
        "mean": _Aggregate(_mean),
        "min": _Aggregate(call("MIN", _FIELD)),
        "max": _Aggregate(call("MAX", _FIELD)),
    },
)


# ---- the statements


def _streams(request: Request, key: str) -> list[str]:
    """The stream over the topic; a second one where its times are not milliseconds or inside an object.

    Without a TIMESTAMP ksqlDB takes the record's own.
    """
    source, unit = request.plan.source, request.plan.source.unit
    values = request.value_types() or {request.free_name("value"): "string"}  # it takes no source without any
    columns = [f"  {key} {_TYPES[request.key_type]} KEY"]
    columns += sql_columns({name: _TYPES[kind] for name, kind in values.items()}, "STRUCT")
    options = [f"KAFKA_TOPIC = {sql_literal(request.input_topic)}", "KEY_FORMAT = 'KAFKA'", "VALUE_FORMAT = 'JSON'"]
    time = sql_name(source.timestamp)
    if _has_second(request):
        time = sql_name(request.free_name("event_time" if unit is None else "event_time_ms"))
    clock = [f"TIMESTAMP = {sql_literal(time)}", *([f"TIMESTAMP_FORMAT = '{_ISO}'"] if unit is None else [])]
    if request.reads_time and not _has_second(request):
        options += clock
    first = f"CREATE STREAM `records` (\n{listed(columns)}\n) WITH ({', '.join(options)});"
    if not _has_second(request):
        return [first]
    read = sql_path(source.timestamp, _FIELD) + _TO_MS.get(str(unit), "")
    second = f"CREATE STREAM `records_with_time` WITH (VALUE_FORMAT = 'JSON', {', '.join(clock)}) AS\n"
    return [first, f"{second}  SELECT *, {read} AS {time} FROM `records` EMIT CHANGES;"]


def _has_second(request: Request) -> bool:
    source = request.plan.source
    return request.reads_time and (source.unit not in (None, "ms") or len(path_of(source.timestamp)) > 1)


def _table(request: Request, windows: _Windows, key: str, retention_ms: int) -> str:
    kept = f"RETENTION {ksql_length(retention_ms)}, GRACE PERIOD {ksql_length(request.plan._complete_windows.grace_ms)}"
    stream = "`records_with_time`" if _has_second(request) else "`records`"
    start, end = (sql_name(request.free_name(name)) for name in ("window_start_ms", "window_end_ms"))
    written = [(KSQL.aggregations[each.built_in].write(each), sql_name(each.name)) for each in request.results]
    results = [f"    {code} AS {name}" for code, name in written]
    columns = [f"    {key}", f"    WINDOWSTART AS {start}", f"    WINDOWEND AS {end}", *results]
    return (
        f"CREATE TABLE `results` WITH (KAFKA_TOPIC = {sql_literal(request.output_topic)}, VALUE_FORMAT = 'JSON') AS\n"
        f"  SELECT\n{listed(columns)}\n"
        f"  FROM {stream}\n"
        f"  WINDOW {windows.name} ({windows.lengths}, {kept})\n"
        f"  GROUP BY {key}\n"
        f"  EMIT {'FINAL' if request.is_final or request.plan._suppression is not None else 'CHANGES'};"
    )


def _differences(request: Request, windows: _Windows, retention_ms: int) -> list[str]:
    words = [
        "ksqlDB runs on the Kafka Streams that it was built with, older than the 4.3 whose rules the plan follows.",
        f"The store keeps a window for {show_duration(retention_ms)} of stream time (RETENTION).",
        "A record without a time, or with one before 1970, is logged and left out; the plan refuses it or counts it.",
        "A record whose whole value is null is skipped, and does not move stream time.",
    ]
    if _has_second(request):
        words.append("Times become a column in a second stream, which writes every record to a topic of its own.")
    if request.plan._suppression is not None:
        words.append(
            "EMIT FINAL is Kafka's suppress, whose clock only results move; its buffer holds up to "
            "ksql.suppress.buffer.size.bytes, where that is set."
        )
    elif request.is_final:
        words.append(
            "EMIT FINAL sends a result when a later record closes its window; where the store forgets it first, it is "
            "lost. The last windows of a topic send nothing, as in the plan."
        )
    else:
        words += windows.update_differences
    words += dict.fromkeys(each.difference for each in KSQL.used(request.built_ins) if each.difference)
    return words
