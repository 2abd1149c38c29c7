"""A plan as statements of ksqlDB, which runs on Kafka Streams."""

from __future__ import annotations

from sessionkit.durations import Duration, show_duration
from sessionkit.errors import InvalidArgument, problem
from sessionkit.exports.export import Export
from sessionkit.exports.request import Request, Result, check_sql_names, no_sliding
from sessionkit.text import shorten, sql_literal, sql_name

_TYPES = {"bigint": "BIGINT", "double": "DOUBLE", "string": "VARCHAR", "boolean": "BOOLEAN", "bytes": "BYTES"}
_RESERVED = ("ROWTIME", "ROWPARTITION", "ROWOFFSET", "WINDOWSTART", "WINDOWEND")
_ISO = "yyyy-MM-dd''T''HH:mm:ss[.SSS]X"
_TO_MS = {"s": "* 1000", "us": "/ 1000", "ns": "/ 1000000"}


def to_ksql(request: Request, *, retention: Duration | None) -> Export:
    """The plan as a stream over the topic and a table of its windows.

    Raises:
        NotBuilt: sliding windows.
        InvalidArgument: a name that cannot be quoted, or a retention that Kafka would refuse.
    """
    no_sliding(request, "ksqlDB", "TimeWindows with an advance, or plan.to_java()")
    check_sql_names(request, "ksqlDB", _RESERVED)
    for name in (*request.value_types(), *(result.name for result in request.results)):
        if "${" in name:
            raise InvalidArgument(problem("ksqlDB puts variables into names", shorten(repr(name)), "rename it"))
    retention_ms = request.retention_ms(retention)
    key = sql_name(request.free_name("key"))
    code = "\n\n".join([_settings(), *_streams(request, key), _table(request, key, retention_ms)]) + "\n"
    differences = [*request.layout(), request.ordering(), *_differences(request, retention_ms)]
    return Export(target="ksql", code=code, differences=differences, plan=tuple(request.plan.code()))


def _settings() -> str:
    return "SET 'auto.offset.reset' = 'earliest';\nSET 'cache.max.bytes.buffering' = '0'; -- each update is sent"


def _streams(request: Request, key: str) -> list[str]:
    """The stream over the topic; where times are not milliseconds, a second one in which they are."""
    source, unit = request.source, request.source.unit
    columns = [f"  {key} {_TYPES[request.key_type]} KEY"]
    columns += [f"  {sql_name(name)} {_TYPES[kind]}" for name, kind in request.value_types().items()]
    options = [f"KAFKA_TOPIC = {sql_literal(request.input_topic)}", "KEY_FORMAT = 'KAFKA'", "VALUE_FORMAT = 'JSON'"]
    time = f"TIMESTAMP = {sql_literal(sql_name(source.timestamp))}"
    if unit in (None, "ms"):
        options.append(time)
    if unit is None:
        options.append(f"TIMESTAMP_FORMAT = '{_ISO}'")
    first = f"CREATE STREAM `records` (\n{_listed(columns)}\n) WITH ({', '.join(options)});"
    if unit in (None, "ms"):
        return [first]
    ms = sql_name(request.free_name("event_time_ms"))
    second = "\n".join(
        (
            f"CREATE STREAM `records_in_ms` WITH (VALUE_FORMAT = 'JSON', TIMESTAMP = {sql_literal(ms)}) AS",
            f"  SELECT *, {sql_name(source.timestamp)} {_TO_MS[str(unit)]} AS {ms} FROM `records` EMIT CHANGES;",
        )
    )
    return [first, second]


def _listed(lines: list[str]) -> str:
    return ",\n".join(lines)


def _table(request: Request, key: str, retention_ms: int) -> str:
    stream = "`records`" if request.source.unit in (None, "ms") else "`records_in_ms`"
    start, end = (sql_name(request.free_name(name)) for name in ("window_start_ms", "window_end_ms"))
    results = [f"    {_aggregate(result)} AS {sql_name(result.name)}" for result in request.results]
    columns = [f"    {key}", f"    WINDOWSTART AS {start}", f"    WINDOWEND AS {end}", *results]
    return (
        f"CREATE TABLE `results` WITH (KAFKA_TOPIC = {sql_literal(request.output_topic)}, VALUE_FORMAT = 'JSON') AS\n"
        f"  SELECT\n{_listed(columns)}\n"
        f"  FROM {stream}\n"
        f"  WINDOW {_window(request, retention_ms)}\n"
        f"  GROUP BY {key}\n"
        f"  EMIT {'FINAL' if request.is_final else 'CHANGES'};"
    )


def _window(request: Request, retention_ms: int) -> str:
    windows = request.windows
    kept = f"RETENTION {_ms(retention_ms)}, GRACE PERIOD {_ms(windows.grace_ms)}"
    if request.kind == "session":
        return f"SESSION ({_ms(windows.inactivity_gap_ms)}, {kept})"
    if request.kind == "tumbling":
        return f"TUMBLING (SIZE {_ms(windows.size_ms)}, {kept})"
    return f"HOPPING (SIZE {_ms(windows.size_ms)}, ADVANCE BY {_ms(windows.advance_ms)}, {kept})"


def _ms(ms: int) -> str:
    return f"{ms} MILLISECONDS"


def _aggregate(result: Result) -> str:
    if result.column is None:
        return "COUNT(*)"
    name = sql_name(result.column)
    number = f"CASE WHEN {name} THEN 1 WHEN NOT {name} THEN 0 END" if result.type == "boolean" else name
    if result.built_in == "mean":  # AVG gives 0 where every value is null
        return f"CASE WHEN COUNT({name}) > 0 THEN AVG(CAST({number} AS DOUBLE)) END"
    function = {
        "sum": "SUM",
        "min": "MIN",
        "max": "MAX",
        "first": "EARLIEST_BY_OFFSET",
        "last": "LATEST_BY_OFFSET",
        "collect": "COLLECT_LIST",
    }[result.built_in]
    return f"{function}({number if result.built_in == 'sum' else name})"


def _differences(request: Request, retention_ms: int) -> list[str]:
    used = {result.built_in for result in request.results}
    words = [
        "ksqlDB runs on the Kafka Streams that it was built with, older than the 4.3 whose rules the plan follows.",
        f"The store keeps a window for {show_duration(retention_ms)} of stream time (RETENTION).",
        "A record without a time, or with one before 1970, is logged and left out; the plan refuses it or counts it.",
        "A record whose whole value is null is skipped, and does not move stream time.",
    ]
    if request.source.unit not in (None, "ms"):
        words.append("Times become milliseconds in a second stream, which writes every record to a topic of its own.")
    if request.is_final:
        words.append(
            "EMIT FINAL sends a result when a later record closes its window; where the store forgets it first, it is "
            "lost. The last windows of a topic stay silent, as in the plan."
        )
    if request.kind == "session" and not request.is_final:
        words.append("A session that grew is withdrawn by a null value for its old bounds, as in the plan.")
    if used & {"first", "last"}:
        words.append(
            "EARLIEST_BY_OFFSET and LATEST_BY_OFFSET go by arrival also where two sessions merge; "
            "the plan takes the older session first."
        )
    if "collect" in used:
        words.append("COLLECT_LIST stops without a word at ksql.functions.collect_list.limit, where that is set.")
    if "sum" in used:
        words.append("A sum of integers wraps where it passes 64 bits; the plan refuses it.")
    return words
