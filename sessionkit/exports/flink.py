"""A plan as Flink SQL: a table over the topic with a watermark, and a window table-valued function."""

from __future__ import annotations

from sessionkit.durations import show_duration
from sessionkit.errors import InvalidArgument, NotBuilt, problem
from sessionkit.exports.export import Export
from sessionkit.exports.request import Request, Result, check_sql_names, lateness, no_sliding
from sessionkit.text import sql_literal, sql_name

_TYPES = {"bigint": "BIGINT", "double": "DOUBLE", "string": "STRING", "boolean": "BOOLEAN", "bytes": "BYTES"}
_RESERVED = ("WINDOW_START", "WINDOW_END", "WINDOW_TIME")
_EVENT_TIMES = {None: "{}", "s": "TO_TIMESTAMP_LTZ({}, 0)", "ms": "TO_TIMESTAMP_LTZ({}, 3)"}
_EVENT_TIMES |= {"us": "TO_TIMESTAMP_LTZ({} / 1000, 3)", "ns": "TO_TIMESTAMP_LTZ({} / 1000000, 3)"}
_DAY_MS = 86_400_000
_MOST_DAYS = 999_999


def to_flink_sql(request: Request) -> Export:
    """The plan as two tables and one INSERT.

    Raises:
        NotBuilt: sliding windows, a gap of 0, or a size that is no multiple of the advance.
        InvalidArgument: a name that cannot be quoted, or a duration beyond Flink's intervals.
    """
    no_sliding(request, "Flink SQL", "TimeWindows with an advance, or plan.to_java(); OVER windows end at each row")
    check_sql_names(request, "Flink SQL", _RESERVED)
    windows = request.windows
    if request.kind == "session" and windows.inactivity_gap_ms == 0:
        raise NotBuilt(problem("Flink has no sessions without a gap", repr(windows), "a gap of 1 ms or more"))
    if request.kind == "hopping" and windows.size_ms % windows.advance_ms:
        want = "a size that is a multiple of the advance"
        raise NotBuilt(problem("Flink's HOP takes whole numbers of advances", repr(windows), want))
    key, time = (sql_name(request.free_name(name)) for name in ("key", "event_time"))
    settings = "SET 'execution.runtime-mode' = 'streaming';\nSET 'table.local-time-zone' = 'UTC';"
    code = "\n\n".join([settings, _records(request, key, time), _results(request), _insert(request, key, time)])
    differences = [*request.layout(), *_differences(request)]
    return Export(target="flink_sql", code=code + "\n", differences=differences, plan=tuple(request.plan.code()))


def _delay_ms(request: Request) -> int:
    """How far the watermark stays behind, so that a window closes where Kafka closes it.

    Flink fires once the watermark is at the window's end - 1 ms; there a session ends a gap after its last record.
    """
    return int(request.windows.grace_ms) + (2 if request.kind == "session" else 1)


def _interval(ms: int) -> str:
    days, rest = divmod(ms, _DAY_MS)
    if days > _MOST_DAYS:
        want = f"at most {_MOST_DAYS:,} days"
        raise InvalidArgument(problem("a duration is too long for Flink's intervals", show_duration(ms), want))
    hours, rest = divmod(rest, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    seconds, milliseconds = divmod(rest, 1000)
    text = f"{days} {hours:02}:{minutes:02}:{seconds:02}.{milliseconds:03}"
    return f"INTERVAL '{text}' DAY({len(str(days))}) TO SECOND(3)"


def _records(request: Request, key: str, time: str) -> str:
    source = request.source
    lines = [f"  {key} {_TYPES[request.key_type]}"]
    for name, kind in request.value_types().items():
        is_clock = name == source.timestamp and source.unit is None
        lines.append(f"  {sql_name(name)} {'TIMESTAMP_LTZ(3)' if is_clock else _TYPES[kind]}")
    made = _EVENT_TIMES[source.unit].format("\0").replace("\0", sql_name(source.timestamp))  # a name may hold braces
    lines.append(f"  {time} AS {made}")
    lines.append(f"  WATERMARK FOR {time} AS {time} - {_interval(_delay_ms(request))}")
    options = {
        "connector": "kafka",
        "topic": request.input_topic,
        "properties.bootstrap.servers": "localhost:9092",
        "scan.startup.mode": "earliest-offset",
        "key.format": "raw",
        "key.fields": key[1:-1],
        "value.format": "json",
        "value.json.timestamp-format.standard": "ISO-8601",
        "value.fields-include": "EXCEPT_KEY",
    }
    return f"CREATE TABLE `records` (\n{_listed(lines)}\n) WITH (\n{_options(options)}\n);"


def _results(request: Request) -> str:
    lines = [f"  `key` {_TYPES[request.key_type]}", "  `window_start` TIMESTAMP(3)", "  `window_end` TIMESTAMP(3)"]
    lines += [f"  {sql_name(result.name)} {_result_type(result)}" for result in request.results]
    options = {
        "connector": "kafka",
        "topic": request.output_topic,
        "properties.bootstrap.servers": "localhost:9092",
        "format": "json",
    }
    return f"CREATE TABLE `results` (\n{_listed(lines)}\n) WITH (\n{_options(options)}\n);"


def _options(options: dict[str, str]) -> str:
    return _listed([f"  {sql_literal(name)} = {sql_literal(value)}" for name, value in options.items()])


def _listed(lines: list[str]) -> str:
    return ",\n".join(lines)


def _result_type(result: Result) -> str:
    if result.built_in == "collect":
        return f"ARRAY<{_TYPES[result.type]}>"
    if result.built_in == "mean":
        return "DOUBLE"
    return "BIGINT" if result.built_in == "sum" and result.type == "boolean" else _TYPES[result.type]


def _insert(request: Request, key: str, time: str) -> str:
    """The aggregates in an inner SELECT, what is made of them in the outer one."""
    windows = request.windows
    table, when = "TABLE `records`", f"DESCRIPTOR({time})"
    end = "window_end"
    if request.kind == "session":
        gap = _interval(windows.inactivity_gap_ms)
        function = f"SESSION({table} PARTITION BY {key}, {when}, {gap})"
        end = f"window_end - {gap}"
    elif request.kind == "tumbling":
        function = f"TUMBLE({table}, {when}, {_interval(windows.size_ms)})"
    else:
        function = f"HOP({table}, {when}, {_interval(windows.advance_ms)}, {_interval(windows.size_ms)})"
    inner = [f"{_aggregate(result)} AS `a{place}`" for place, result in enumerate(request.results)]
    outer = [_outer(place, result) for place, result in enumerate(request.results)]
    lines = [
        "INSERT INTO `results`",
        f"SELECT {key}, window_start, {end}, {', '.join(outer)}",
        f"FROM (\n  SELECT {key}, window_start, window_end,",
        ",\n".join(f"    {code}" for code in inner),
        f"  FROM TABLE({function})",
        f"  WHERE {key} IS NOT NULL\n  GROUP BY {key}, window_start, window_end\n);",
    ]
    return "\n".join(lines)


def _outer(place: int, result: Result) -> str:
    if result.built_in == "first":
        return f"`a{place}`[1]"
    return f"`a{place}`[CARDINALITY(`a{place}`)]" if result.built_in == "last" else f"`a{place}`"


def _aggregate(result: Result) -> str:
    if result.column is None:
        return "COUNT(*)"
    name = sql_name(result.column)
    number = name
    if result.type == "boolean":
        number = f"CASE WHEN {name} THEN CAST(1 AS BIGINT) WHEN NOT {name} THEN CAST(0 AS BIGINT) END"
    if result.built_in == "sum":
        return f"COALESCE(SUM({number}), 0)"
    if result.built_in == "mean":
        return f"AVG(CAST({number} AS DOUBLE))"
    if result.built_in in ("first", "last"):  # FIRST_VALUE and LAST_VALUE cannot be merged, as sessions and HOP need it
        return f"ARRAY_AGG({name}) FILTER (WHERE {name} IS NOT NULL)"
    return f"{({'min': 'MIN', 'max': 'MAX', 'collect': 'ARRAY_AGG'})[result.built_in]}({name})"


def _differences(request: Request) -> list[str]:
    used = {result.built_in for result in request.results}
    words = [
        f"{lateness(request)}. Flink goes by the watermark: {show_duration(_delay_ms(request))} behind the largest "
        "event time, the smallest of all partitions that are read, moved on every 200 ms of wall clock: a late record "
        "that Kafka drops may still count, and a partition without records holds back all windows "
        "(table.exec.source.idle-timeout).",
        "SQL has no allowed lateness: the grace is in the watermark, and later records are dropped without a word.",
        "It needs Flink 2.0 or newer (SESSION and ARRAY_AGG) and its Kafka connector.",
        "A record without a time stops the job; one before 1970 counts, which the plan refuses or drops.",
    ]
    if not request.is_final:
        words.append(
            "Flink's windows send one final result each; the plan's updates on every record do not exist there."
        )
    else:
        words.append(
            "Results come out when the watermark passes, in no order across keys; the plan's by end, then key."
        )
    if request.kind == "hopping":
        words.append("Flink also has the windows that start before 1970; the plan's start at 0.")
    if used & {"first", "last", "collect"}:
        order = "those of HOP in no order, as it adds up slices of one advance; others in the order of processing"
        words.append(f"Values in first, last and collect: {order}, which is the topic's only within a partition.")
    if "sum" in used:
        words.append("A sum of integers wraps where it passes 64 bits; the plan refuses it.")
    return words
