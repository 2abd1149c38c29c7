"""A plan as a class for Kafka Streams, in Java: the same windows, the same order of calls, the same results."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from sessionkit.base.durations import Duration, duration_code, show_duration
from sessionkit.base.text import java_literal, one_of
from sessionkit.errors import InvalidArgument, problem, shorten
from sessionkit.exports.export import Export, Target
from sessionkit.exports.java_parts import COLUMN, FRAME, HELPERS, IMPORTS, JSON, MADE, MILLISECONDS, suppress_call
from sessionkit.exports.lengths import java_duration
from sessionkit.exports.request import Request, Result
from sessionkit.windows.hopping import TimeWindows
from sessionkit.windows.session import SessionWindows
from sessionkit.windows.sliding.windows import SlidingWindows

STORES = {"rocksdb": "ROCKS_DB", "memory": "IN_MEMORY"}
_KEYS = {"string": ("String", "String"), "bigint": ("Long", "Long"), "bytes": ("byte[]", "ByteArray")}
_CLASS_NAME = re.compile(r"[A-Z][A-Za-z0-9_]{0,99}")
# `Record` and the like would hide what the class itself uses
_USED = {name.rpartition(".")[2] for name in IMPORTS} | {"String", "Long", "Math", "Runtime", "Thread", "Object"}
_NEEDS = {"zeroOrOne": ("bool",), "least": ("isLess",), "greatest": ("isLess",)}  # helpers that these helpers call


# ---- windows


class _Windows(NamedTuple):
    """The Java code for a kind of window."""

    name: str
    code: str
    store: str
    serde: str
    smallest_retention_ms: int  # from which on updates are those of the plan
    merges: bool = False


def _sessions(windows: SessionWindows) -> _Windows:
    lengths = f"{java_duration(windows.inactivity_gap_ms)}, {java_duration(windows.grace_ms)}"
    return _Windows(
        name="Session",
        code=f"SessionWindows.ofInactivityGapAndGrace({lengths})",
        store="SessionStore",
        serde="SessionWindowedSerde<>(KEYS)",
        smallest_retention_ms=windows.retention_ms(None) + 1,  # a millisecond more than Kafka's default
        merges=True,
    )


def _time_windows(windows: TimeWindows) -> _Windows:
    is_tumbling = windows.advance_ms == windows.size_ms
    code = f"TimeWindows.ofSizeAndGrace({java_duration(windows.size_ms)}, {java_duration(windows.grace_ms)})"
    return _Windows(
        name="Tumbling" if is_tumbling else "Hopping",
        code=code if is_tumbling else f"{code}.advanceBy({java_duration(windows.advance_ms)})",
        store="WindowStore",
        serde=f"TimeWindowedSerde<>(KEYS, {java_duration(windows.size_ms)}.toMillis())",
        smallest_retention_ms=windows.retention_ms(None),
    )


def _sliding_windows(windows: SlidingWindows) -> _Windows:
    lengths = f"{java_duration(windows.time_difference_ms)}, {java_duration(windows.grace_ms)}"
    return _Windows(
        name="Sliding",
        code=f"SlidingWindows.ofTimeDifferenceAndGrace({lengths})",
        store="WindowStore",
        serde=f"TimeWindowedSerde<>(KEYS, {java_duration(windows.time_difference_ms)}.toMillis())",
        smallest_retention_ms=windows.retention_ms(None) + windows.time_difference_ms + 1,  # three differences
    )


# ---- aggregations

_NULL = "NullNode.getInstance()"
_WHOLE_0, _REAL_0 = "LongNode.valueOf(0)", "DoubleNode.valueOf(0.0)"


class _Field(NamedTuple):
    """One field of the aggregate: where it starts, what a record adds, and how two are combined."""

    start: str
    value: str
    combiner: str


class _Aggregate(NamedTuple):
    """The Java code for an aggregation: its fields, by what follows the result's name in theirs.

    One field alone is what is sent; of several `function` makes it.
    """

    fields: Callable[[Result], dict[str, _Field]]
    function: str = ""


def _value(result: Result) -> str:
    reader = {"bigint": "bigint", "double": "number", "string": "string", "boolean": "bool"}[result.type]
    return f"{reader}(row, {java_literal(str(result.column))})"


def _number(result: Result) -> str:
    is_boolean = result.type == "boolean"
    return f"zeroOrOne(row, {java_literal(str(result.column))})" if is_boolean else _value(result)


def _sum(result: Result) -> dict[str, _Field]:
    return {"": _Field(_REAL_0 if result.type == "double" else _WHOLE_0, _number(result), "total")}


def _mean(result: Result) -> dict[str, _Field]:
    sums = _Field(_REAL_0, f"asDouble({_number(result)})", "total")
    return {" sum": sums, " count": _Field(_WHOLE_0, f"one({_value(result)})", "total")}


def _one_value(combiner: str) -> _Aggregate:
    return _Aggregate(lambda result: {"": _Field(_NULL, _value(result), combiner)})


JAVA: Target[_Windows, _Aggregate] = Target(
    system="Kafka Streams",
    suppresses=lambda suppression: True,
    kinds={SessionWindows: _sessions, TimeWindows: _time_windows, SlidingWindows: _sliding_windows},
    aggregations={
        "count": _Aggregate(lambda result: {"": _Field(_WHOLE_0, "LongNode.valueOf(1)", "total")}),
        "sum": _Aggregate(_sum),
        "mean": _Aggregate(_mean, "mean"),
        "min": _one_value("least"),
        "max": _one_value("greatest"),
        "first": _one_value("earliest"),
        "last": _one_value("latest"),
        "collect": _Aggregate(
            lambda result: {"": _Field("JSON.createArrayNode()", f"listed({_value(result)})", "joined")}
        ),
    },
)


# ---- the class


def to_java(request: Request, *, class_name: str, store: str, retention: Duration | None) -> Export:
    """The plan as a Java class with `main` and `topology`.

    Raises:
        InvalidArgument: a name or a store that cannot be, or a retention that Kafka would refuse.
    """
    one_of("store", store, tuple(STORES))
    name: object = class_name
    if not isinstance(name, str) or not _CLASS_NAME.fullmatch(name) or name in _USED:
        want = 'a capital letter, then letters and digits, and no class of Kafka or Java; such as "ClickSessions"'
        raise InvalidArgument(problem("class_name must be a name of a class", shorten(repr(class_name)), want))
    windows = JAVA.windows(request.plan._complete_windows)
    retention_ms = request.retention_ms(retention, windows.smallest_retention_ms)
    body = _body(request, windows, class_name, store, retention_ms)
    imports = [f"import {name};" for name in IMPORTS if re.search(rf"\b{name.rpartition('.')[2]}\b", body)]
    code = "\n".join(imports) + "\n\n" + body
    differences = [request.ordering(), *_differences(request, windows, store, retention_ms)]
    return request.export("java", code, differences)


def _body(request: Request, windows: _Windows, class_name: str, store: str, retention_ms: int) -> str:
    key_class, key_serde = _KEYS[request.key_type]
    fields = _fields(request)
    is_made = any(function for function, _ in fields.values())  # a result is not simply its field
    blocks = [
        f"/** {windows.name} windows over a topic, as planned in sessionkit. */\n",
        f"public final class {class_name} {{\n",
        f"    public static final String INPUT = {java_literal(request.input_topic)};\n",
        f"    public static final String OUTPUT = {java_literal(request.output_topic)};\n",
        f"    private static final Serde<{key_class}> KEYS = Serdes.{key_serde}();",
        JSON,
        f"\n    private {class_name}() {{ }}\n",
        FRAME["main"],
        _topology(request, windows, class_name, store, retention_ms, is_made=is_made),
        _event_time(request) if request.reads_time else "",
        _start(fields),
        _add(fields, key_class),
        _merge(fields, key_class) if windows.merges else "",
        _result(fields) if is_made else "",
        *(FRAME[name] for name in ("written", "parsed", "checked")),
        COLUMN[any("." in name for name in request.value_types())],
    ]
    code = "".join(blocks)
    called = {name for name in HELPERS if re.search(rf"(?<![\w.]){name}\(", code)}
    called |= {inner for name in called for inner in _NEEDS.get(name, ())}
    return code + "".join(text for name, text in HELPERS.items() if name in called) + "}\n"


# ---- the topology


def _topology(
    request: Request, windows: _Windows, class_name: str, store: str, retention_ms: int, *, is_made: bool
) -> str:
    empty = ""
    if not request.plan._complete_windows.takes_null_values and request.types:
        nulls = " && ".join(f"column(row, {java_literal(name)}).isNull()" for name in request.types)
        empty = f"\n                .mapValues(row -> {nulls} ? null : row)"
    return MADE["topology"].substitute(
        name=class_name,
        key=_KEYS[request.key_type][0],
        windows=windows.code,
        store=windows.store,
        serde=windows.serde,
        kind=STORES[store],
        extractor=_extractor(request, class_name),
        emit="onWindowClose" if request.is_final else "onWindowUpdate",
        retention=java_duration(retention_ms),
        suppress=suppress_call(request.plan._suppression),
        merger=f", {class_name}::merge" if windows.merges else "",
        empty=empty,
        made=f"\n                .mapValues({class_name}::result)" if is_made else "",
    )


# ---- event time


def _extractor(request: Request, class_name: str) -> str:
    """The call that sets a timestamp extractor; "" for Kafka's own, which stops at a record from before 1970."""
    if request.reads_time:
        return f".withTimestampExtractor({class_name}::eventTime)"
    own = {"drop": "LogAndSkipOnInvalidTimestamp", "partition_time": "UsePartitionTimeOnInvalidTimestamp"}
    name = own.get(request.plan.source.on_bad_time)
    return "" if name is None else f".withTimestampExtractor(new {name}())"


def _event_time(request: Request) -> str:
    source = request.plan.source
    without = {
        "drop": "-1; // Kafka drops the record and counts it",
        "partition_time": "partitionTime >= 0 ? partitionTime : refused(time);",
    }.get(source.on_bad_time, "refused(time);")
    code = MADE["eventTime"].substitute(column=java_literal(source.timestamp), without=without)
    code += MILLISECONDS[source.unit]
    if source.on_bad_time != "drop":
        code += FRAME["refused"]
    return code


# ---- the aggregation


_Fields: TypeAlias = "dict[str, tuple[str, dict[str, _Field]]]"  # by result: what makes it of them; by their names


def _fields(request: Request) -> _Fields:
    """The fields of the aggregate: one is named as its result, several of one result as no result is named."""
    taken = {result.name for result in request.results}
    fields: _Fields = {}
    for result in request.results:
        aggregate, named = JAVA.aggregations[result.built_in], {}
        for suffix, field in aggregate.fields(result).items():
            name = result.name + suffix
            while suffix and name in taken:
                name += "_"
            taken.add(name)
            named[name] = field
        fields[result.name] = (aggregate.function, named)
    return fields


def _lines(fields: _Fields, line: str) -> str:
    """The line, which has places for a `name` and its `field`, for each field."""
    pairs = [pair for _, named in fields.values() for pair in named.items()]
    return "\n".join(f"        {line.format(name=java_literal(name), field=field)};" for name, field in pairs)


def _start(fields: _Fields) -> str:
    return MADE["start"].substitute(lines=_lines(fields, "aggregate.set({name}, {field.start})"))


def _add(fields: _Fields, key_class: str) -> str:
    lines = _lines(fields, "after.set({name}, {field.combiner}(before.get({name}), {field.value}))")
    can_be_null = all(field.start == _NULL for _, named in fields.values() for field in named.values())
    return MADE["add"].substitute(key=key_class, lines=lines, after="orNull(after)" if can_be_null else "after")


def _merge(fields: _Fields, key_class: str) -> str:
    lines = _lines(fields, "after.set({name}, {field.combiner}(older.get({name}), newer.get({name})))")
    return MADE["merge"].substitute(key=key_class, lines=lines)


def _result(fields: _Fields) -> str:
    lines = []
    for result, (function, named) in fields.items():
        parts = ", ".join(f"aggregate.get({java_literal(name)})" for name in named)
        made = f"{function}({parts})" if function else parts
        lines.append(f"        row.set({java_literal(result)}, {made});")
    return MADE["result"].substitute(lines="\n".join(lines))


# ---- differences


def _differences(request: Request, windows: _Windows, store: str, retention_ms: int) -> list[str]:
    kept = show_duration(retention_ms)
    words = [
        "It needs kafka-streams 4.3 and jackson-databind (which kafka-streams brings) on the class path.",
        "Kafka delivers at least once by default: after a crash a record may count twice; "
        "processing.guarantee=exactly_once_v2 prevents that.",
        f"The store keeps a window for {kept} of stream time (`Materialized.withRetention`).",
    ]
    if request.plan._suppression is not None and request.plan._suppression.counts_bytes:
        words.append("Results weigh as much as their JSON in this buffer; in the plan a single one weighs less.")
    if request.plan._suppression is not None:
        words.append("After a restart the buffer is as it was, and its clock starts anew with the next result.")
    if not request.is_final:
        return words
    room_ms = retention_ms - request.plan._complete_windows.retention_ms(None)
    jumps = f"Where stream time jumps by {show_duration(room_ms)} or more at once, the" if room_ms else "The"
    words += [
        "Kafka looks for final results when a record arrives, at most once a second of wall clock; the plan has "
        "no such limit.",
        f"{jumps} store may have forgotten a final result before it is sent; "
        f'sk.audit(plan, data, sk.Deployment(store="{store}")) finds the retention that loses none.',
    ]
    if windows.merges:
        rerun = f'plan.run(data, retention="{duration_code(retention_ms)}")'
        words.append(
            "A closed session stays in the store until then: a record that is not late itself and touches it opens it "
            f"again, and the larger session is sent as well, as in {rerun}."
        )
    return words
