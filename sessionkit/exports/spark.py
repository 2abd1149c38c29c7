"""A plan as PySpark code with Spark's own windows, which follow other rules than Kafka's."""

from __future__ import annotations

from sessionkit.durations import show_duration
from sessionkit.errors import NotBuilt, problem
from sessionkit.exports.export import Export
from sessionkit.exports.request import Request, Result, lateness, no_sliding
from sessionkit.text import literal

_TYPES = {"bigint": "LongType", "double": "DoubleType", "string": "StringType", "boolean": "BooleanType"}
_KEYS = {"string": 'raw["key"].cast("string")', "bytes": 'raw["key"]'}
_KEYS["bigint"] = 'F.conv(F.hex(raw["key"]), 16, -10).cast("bigint")'  # 8 bytes, big-endian, signed
_TIMES = {"s": "F.timestamp_millis({0} * 1000)", "ms": "F.timestamp_millis({0})"}
_TIMES |= {"us": 'F.timestamp_millis(F.call_function("div", {0}, F.lit(1000)))'}
_TIMES |= {"ns": 'F.timestamp_millis(F.call_function("div", {0}, F.lit(1000000)))'}

_CODE = '''\
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

INPUT = {input_topic}
OUTPUT = {output_topic}
VALUE = T.StructType([
{fields}
])


def records(raw: DataFrame) -> DataFrame:
    """The records of a topic, as Spark's Kafka source gives them, as columns."""
    value = F.from_json(raw["value"].cast("string"), VALUE)
    columns = raw.select(
        {key}.alias("key"),
        {time}.alias("event_time"),
{columns}
    )
    return columns.where((F.col("event_time") >= F.timestamp_millis(F.lit(0))) & F.col("key").isNotNull())


def windowed(frame: DataFrame) -> DataFrame:
    """One row a window: key, bounds in milliseconds, results."""
    on_time = frame.withWatermark("event_time", {delay})
    grouped = on_time.groupBy("key", {window}.alias("window"))
    results = grouped.agg(
{results}
    )
    return results.select(
        "key",
        F.unix_millis("window.start").alias("window_start_ms"),
        {end}.alias("window_end_ms"),
{names}
    )


def main() -> None:
    """Runs until it is stopped."""
    spark = SparkSession.builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    spark.conf.set("spark.sql.caseSensitive", "true")
    kafka = {{"kafka.bootstrap.servers": "localhost:9092"}}
    raw = spark.readStream.format("kafka").options(**kafka, subscribe=INPUT, startingOffsets="earliest").load()
    rows = windowed(records(raw))
    sent = rows.select(rows["key"].cast("string").alias("key"), F.to_json(F.struct("*")).alias("value"))
    sink = sent.writeStream.format("kafka").options(**kafka, topic=OUTPUT, checkpointLocation="checkpoint")
    sink.outputMode({mode}).start().awaitTermination()


if __name__ == "__main__":
    main()
'''


def to_spark(request: Request) -> Export:
    """The plan as a Python module: `records`, `windowed` and `main`.

    Raises:
        NotBuilt: sliding windows, or a gap of 0.
    """
    no_sliding(request, "Spark", "TimeWindows with an advance; or plan.run(spark_dataframe), which has them exactly")
    windows = request.windows
    if request.kind == "session" and windows.inactivity_gap_ms == 0:
        raise NotBuilt(problem("Spark has no sessions without a gap", repr(windows), "a gap of 1 ms or more"))
    names = [f"value_{place}" for place in range(len(request.types))]
    column_of = dict(zip(request.types, names, strict=True))
    code = _CODE.format(
        input_topic=literal(request.input_topic),
        output_topic=literal(request.output_topic),
        fields=_lines(4, [_field(name, kind) for name, kind in request.value_types().items()]),
        key=_KEYS[request.key_type],
        time=_time(request),
        columns=_lines(8, [f"value.getField({literal(n)}).alias({literal(c)})" for n, c in column_of.items()]),
        delay=literal(f"{_delay_ms(request)} milliseconds"),
        window=_window(request),
        results=_lines(
            8, [f"{_aggregate(r, column_of)}.alias({literal(_place(p))})" for p, r in enumerate(request.results)]
        ),
        end=_end(request),
        names=_lines(
            8, [f"F.col({literal(_place(p))}).alias({literal(r.name)})" for p, r in enumerate(request.results)]
        ),
        mode=literal(_mode(request)),
    )
    differences = [*request.layout(), *_differences(request)]
    return Export(target="spark", code=code, differences=differences, plan=tuple(request.plan.code()))


def _lines(indent: int, codes: list[str]) -> str:
    return "\n".join(f"{' ' * indent}{code}," for code in codes)


def _place(place: int) -> str:
    return f"result_{place}"


def _field(name: str, kind: str) -> str:
    return f"T.StructField({literal(name)}, T.{_TYPES[kind]}())"


def _time(request: Request) -> str:
    column = f"value.getField({literal(request.source.timestamp)})"
    if request.source.unit is None:
        return f'F.date_trunc("millisecond", F.to_timestamp({column}))'
    before, after = _TIMES[request.source.unit].split("{0}")
    return before + column + after


def _delay_ms(request: Request) -> int:
    """How far the watermark stays behind: Spark closes a window whose end is not after it.

    A session ends there a gap after its last record, and Kafka closes it only once stream time is past that.
    """
    return int(request.windows.grace_ms) + (1 if request.kind == "session" else 0)


def _window(request: Request) -> str:
    windows = request.windows
    if request.kind == "session":
        return f'F.session_window("event_time", "{windows.inactivity_gap_ms} milliseconds")'
    advance = "" if request.kind == "tumbling" else f', "{windows.advance_ms} milliseconds"'
    return f'F.window("event_time", "{windows.size_ms} milliseconds"{advance})'


def _end(request: Request) -> str:
    end = 'F.unix_millis("window.end")'
    return f"({end} - {request.windows.inactivity_gap_ms})" if request.kind == "session" else end


def _mode(request: Request) -> str:
    """Spark refuses session windows in update mode."""
    return "append" if request.is_final or request.kind == "session" else "update"


def _aggregate(result: Result, column_of: dict[str, str]) -> str:
    if result.column is None:
        return "F.count(F.lit(1))"
    column = literal(column_of[result.column])
    number = f'F.col({column}).cast("bigint")' if result.type == "boolean" else column
    if result.built_in == "sum":
        return f"F.coalesce(F.sum({number}), F.lit(0))"
    if result.built_in == "mean":
        return f'F.avg(F.col({column}).cast("double"))' if result.type == "bigint" else f"F.avg({number})"
    if result.built_in == "collect":  # in a struct, as collect_list leaves out nulls
        return f'F.transform(F.collect_list(F.struct(F.col({column}).alias("v"))), lambda one: one["v"])'
    if result.built_in in ("first", "last"):
        return f"F.{result.built_in}({column}, ignorenulls=True)"
    return f"F.{result.built_in}({column})"


def _differences(request: Request) -> list[str]:
    used = {result.built_in for result in request.results}
    words = [
        "plan.run(spark_dataframe) computes this very plan on Spark; the code here uses Spark's own windows instead.",
        f"{lateness(request)}. Spark has one watermark for the whole query, {show_duration(_delay_ms(request))} behind "
        "the largest event time of all partitions, and moves it only between micro-batches: which late records count "
        "depends on how records fall into batches. A batch query drops none.",
        "Dropped records are only counted (numRowsDroppedByWatermark), once for each window.",
        "A record without a time, or with one before 1970, is left out without a word; the plan refuses or counts it.",
        "It needs Spark 3.5 or newer and its Kafka connector (spark-sql-kafka-0-10).",
    ]
    if request.kind == "session":
        words.append("A late record is dropped even if it touches an open session; the plan judges the merged session.")
        words.append("Sessions that merge leave no trace; the plan withdraws each of them.")
        if not request.is_final:
            words.append("Spark has no updates of session windows: each comes out once, when it is final.")
    elif not request.is_final:
        words.append("Updates come once a micro-batch for each window that changed in it, not once a record.")
    if request.is_final:
        words.append(
            "Final results come out at the end of a micro-batch, in no order; the plan's in order of their bounds."
        )
    if request.kind == "hopping":
        words.append("Spark also has the windows that start before 1970; the plan's start at 0.")
    if used & {"first", "last", "collect"}:
        words.append("Values have no order behind Spark's shuffle: first, last and lists may differ from run to run.")
    if used & {"min", "max"} and "double" in {result.type for result in request.results}:
        words.append("Spark takes NaN for the largest number.")
    return words
