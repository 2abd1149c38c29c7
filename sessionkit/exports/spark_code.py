"""A plan as PySpark code with Spark's own windows, which follow other rules than Kafka's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sessionkit.base.assets import read_asset
from sessionkit.base.durations import show_duration
from sessionkit.base.text import literal
from sessionkit.errors import NotBuilt, problem
from sessionkit.exports.export import Export, Target
from sessionkit.exports.lengths import spark_interval
from sessionkit.exports.request import Request, Result, lateness, nested, path_of
from sessionkit.windows.hopping import TimeWindows
from sessionkit.windows.session import SessionWindows
from sessionkit.windows.sliding.windows import SlidingWindows

_TYPES = {"bigint": "LongType", "double": "DoubleType", "string": "StringType", "boolean": "BooleanType"}
_KEYS = {"string": 'raw["key"].cast("string")', "bytes": 'raw["key"]'}
_KEYS["bigint"] = 'F.conv(F.hex(raw["key"]), 16, -10).cast("bigint")'  # 8 bytes, big-endian, signed
_TIMES = {"s": "F.timestamp_millis({0} * 1000)", "ms": "F.timestamp_millis({0})"}
_TIMES |= {"us": 'F.timestamp_millis(F.call_function("div", {0}, F.lit(1000)))'}
_TIMES |= {"ns": 'F.timestamp_millis(F.call_function("div", {0}, F.lit(1000000)))'}

# ---- windows


class _Windows(NamedTuple):
    """The PySpark code for a kind of window.

    The watermark stays so far behind that a window closes where Kafka closes it: Spark closes one whose end is not
    after the watermark; there a session ends a gap after its last record.
    """

    code: str
    end: str
    watermark_delay_ms: int
    update_mode: str
    differences: tuple[str, ...]
    update_difference: str
    before_1970: tuple[str, ...] = ()


_END = 'F.unix_millis("window.end")'


def _sessions(windows: SessionWindows) -> _Windows:
    if windows.inactivity_gap_ms == 0:
        raise NotBuilt(problem("Spark has no sessions without a gap", repr(windows), "a gap of 1 ms or more"))
    return _Windows(
        code=f'F.session_window("event_time", "{spark_interval(windows.inactivity_gap_ms)}")',
        end=f"({_END} - {windows.inactivity_gap_ms})",
        watermark_delay_ms=windows.grace_ms + 1,
        update_mode="append",  # Spark refuses session windows in update mode
        differences=(
            "A late record is dropped even if it touches an open session; the plan judges the merged session.",
            "Sessions that merge leave no trace; the plan withdraws each of them.",
        ),
        update_difference="Spark has no updates of session windows: each comes out once, when it is final.",
    )


def _time_windows(windows: TimeWindows) -> _Windows:
    is_tumbling = windows.advance_ms == windows.size_ms
    advance = "" if is_tumbling else f', "{spark_interval(windows.advance_ms)}"'
    offset = f', startTime="{spark_interval(windows.offset_ms)}"' if windows.offset_ms else ""
    first = "Spark also has the windows that start before 1970; the plan's start at 0."
    return _Windows(
        code=f'F.window("event_time", "{spark_interval(windows.size_ms)}"{advance}{offset})',
        end=_END,
        watermark_delay_ms=windows.grace_ms,
        update_mode="update",
        differences=(),
        update_difference="Updates come once a micro-batch for each window that changed in it, not once a record.",
        before_1970=() if is_tumbling and not offset else (first,),
    )


# ---- aggregations


class _Aggregate(NamedTuple):
    """The PySpark code for an aggregation over a column, given as a literal, and what differs."""

    write: Callable[[str, Result], str]
    difference: Callable[[Request], str] = lambda request: ""


def _number(column: str, result: Result) -> str:
    return f'F.col({column}).cast("bigint")' if result.type == "boolean" else column


def _mean(column: str, result: Result) -> str:
    return f'F.avg(F.col({column}).cast("double"))' if result.type == "bigint" else f"F.avg({_number(column, result)})"


def _collect(column: str, result: Result) -> str:
    """The values as a list, collected in structs, as collect_list leaves out nulls."""
    return f'F.transform(F.collect_list(F.struct(F.col({column}).alias("v"))), lambda one: one["v"])'


def _distinct(column: str, result: Result) -> str:
    """The values in a set, as streams of Spark take no distinct counts; floats as text, without -0.0."""
    values = f'(F.col({column}) + F.lit(0.0)).cast("string")' if result.type == "double" else column
    return f'F.size(F.collect_set({values})).cast("bigint")'


def _quantile(column: str, result: Result) -> str:
    return f"F.percentile({_number(column, result)}, {(result.settings or (0.5,))[0]})"


def _digits(request: Request) -> str:
    return "Quantiles and deviations may differ in the last digits, and a quantile beside NaN is a number."


def _order(request: Request) -> str:
    return "Values have no order after Spark's shuffle: first, last and lists may differ from run to run."


def _nan(request: Request) -> str:
    has_floats = any(result.type == "double" for result in request.results)
    return "Spark treats NaN as the largest number." if has_floats else ""


_NEAREST = "TimeWindows with an advance; or plan.run(spark_dataframe), which has them exactly"
SPARK: Target[_Windows, _Aggregate] = Target(
    system="Spark",
    takes_offset=True,
    kinds={SessionWindows: _sessions, TimeWindows: _time_windows},
    missing={SlidingWindows: ("sliding windows", _NEAREST)},
    aggregations={  # in the order in which their differences are listed
        "count": _Aggregate(lambda column, result: "F.count(F.lit(1))"),
        "sum": _Aggregate(lambda column, result: f"F.coalesce(F.sum({_number(column, result)}), F.lit(0))"),
        "mean": _Aggregate(_mean),
        "first": _Aggregate(lambda column, result: f"F.first({column}, ignorenulls=True)", _order),
        "last": _Aggregate(lambda column, result: f"F.last({column}, ignorenulls=True)", _order),
        "collect": _Aggregate(_collect, _order),
        "count_distinct": _Aggregate(_distinct),
        "median": _Aggregate(_quantile, _digits),
        "quantile": _Aggregate(_quantile, _digits),
        "std": _Aggregate(lambda column, result: f"F.stddev_samp({_number(column, result)})", _digits),
        "min": _Aggregate(lambda column, result: f"F.min({column})", _nan),
        "max": _Aggregate(lambda column, result: f"F.max({column})", _nan),
    },
)


# ---- the module


def to_spark(request: Request) -> Export:
    """The plan as a Python module: `records`, `windowed` and `main`.

    Raises:
        NotBuilt: a gap of 0.
    """
    windows = SPARK.windows(request.plan._complete_windows)
    types, names = request.value_types(), [f"value_{place}" for place in range(len(request.types))]
    column_of = dict(zip(request.types, names, strict=True))
    called = {result.name: literal(f"result_{place}") for place, result in enumerate(request.results)}
    code = read_asset("exports/spark.py.txt").format(
        input_topic=literal(request.input_topic),
        output_topic=literal(request.output_topic),
        fields=_lines(4, _fields(nested(types) | types)),
        key=_KEYS[request.key_type],
        time=_time(request),
        columns=_lines(8, [f"{_read(name)}.alias({literal(column)})" for name, column in column_of.items()]),
        delay=literal(spark_interval(windows.watermark_delay_ms)),
        window=windows.code,
        results=_lines(8, [f"{_written(each, column_of)}.alias({called[each.name]})" for each in request.results]),
        end=windows.end,
        names=_lines(8, [f"F.col({inner}).alias({literal(name)})" for name, inner in called.items()]),
        mode=literal("append" if request.is_final else windows.update_mode),
    )
    return request.export("spark", code, _differences(request, windows))


def _lines(indent: int, codes: list[str]) -> str:
    return "\n".join(f"{' ' * indent}{code}," for code in codes)


def _fields(types: Mapping[str, Any]) -> list[str]:
    """Fields of a struct; one whose type is a dict is a struct of these fields."""
    codes = {
        name: f"T.{_TYPES[kind]}()" if isinstance(kind, str) else f"T.StructType([{', '.join(_fields(kind))}])"
        for name, kind in types.items()
    }
    return [f"T.StructField({literal(name)}, {code})" for name, code in codes.items()]


def _read(name: str) -> str:
    """The column of this name in the value, else the field that its dots lead to."""
    column, path = f"value.getField({literal(name)})", path_of(name)
    field = "value" + "".join(f".getField({literal(part)})" for part in path)
    return f"F.coalesce({column}, {field})" if len(path) > 1 else column


def _time(request: Request) -> str:
    if not request.reads_time:
        return 'raw["timestamp"]'
    column = _read(request.plan.source.timestamp)
    if request.plan.source.unit is None:
        return f'F.date_trunc("millisecond", F.to_timestamp({column}))'
    before, after = _TIMES[request.plan.source.unit].split("{0}")
    return before + column + after


def _written(result: Result, column_of: dict[str, str]) -> str:
    column = "" if result.column is None else literal(column_of[result.column])
    return SPARK.aggregations[result.built_in].write(column, result)


def _differences(request: Request, windows: _Windows) -> list[str]:
    behind = show_duration(windows.watermark_delay_ms)
    words = [
        "plan.run(spark_dataframe) computes exactly this plan on Spark; the code here uses Spark's own windows "
        "instead.",
        f"{lateness(request)}. Spark has one watermark for the whole query, {behind} behind the "
        "largest event time of all partitions, and moves it only between micro-batches: which late records count "
        "depends on how records fall into batches. A batch query drops none.",
        "Dropped records are only counted (numRowsDroppedByWatermark), once for each window.",
        "A record without a time, or with one before 1970, is left out silently; the plan refuses or counts it.",
        "It needs Spark 3.5 or newer and its Kafka connector (spark-sql-kafka-0-10).",
    ]
    words += windows.differences
    if request.is_final:
        words.append(
            "Final results come out at the end of a micro-batch, in no fixed order; the plan orders them by their "
            "bounds."
        )
    else:
        words.append(windows.update_difference)
    words += windows.before_1970
    notes = [each.difference(request) for each in SPARK.used(request.built_ins)]
    words += dict.fromkeys(filter(None, notes))
    return words
