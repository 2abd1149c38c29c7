"""A plan as a class for Kafka Streams, in Java: the same windows, the same order of calls, the same results."""

from __future__ import annotations

import re
from typing import NamedTuple

from sessionkit.contracts import one_of
from sessionkit.durations import Duration, show_duration
from sessionkit.errors import InvalidArgument, problem
from sessionkit.exports.export import Export
from sessionkit.exports.java_parts import COMBINERS, IMPORTS, JSON, MAIN, READERS, SERDE
from sessionkit.exports.request import Request, Result
from sessionkit.text import java_literal, shorten

STORES = {"rocksdb": "ROCKS_DB", "memory": "IN_MEMORY"}
_KEYS = {"string": ("String", "String"), "bigint": ("Long", "Long"), "bytes": ("byte[]", "ByteArray")}
_CLASS_NAME = re.compile(r"[A-Z][A-Za-z0-9_]{0,99}")
# `Record` and the like would hide what the class itself uses
_USED = {name.rpartition(".")[2] for name in IMPORTS} | {"String", "Long", "Math", "Runtime", "Thread", "Object"}
_NEVER_NULL = ("count", "sum", "mean", "collect")
_NEEDS = {  # helpers that other helpers call
    "zeroOrOne": ("bool",),
    "least": ("isLess",),
    "greatest": ("isLess",),
}


class _Part(NamedTuple):
    """One field of the aggregate: where it starts, what a record adds, and how two are combined."""

    start: str
    value: str
    combiner: str


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
    retention_ms = request.retention_ms(retention)
    body = _body(request, class_name, store, retention_ms)
    imports = [f"import {name};" for name in sorted(IMPORTS) if re.search(rf"\b{name.rpartition('.')[2]}\b", body)]
    code = "\n".join(imports) + "\n\n" + body
    differences = [*request.layout(), request.ordering(), *_differences(request, store, retention_ms)]
    return Export(target="java", code=code, differences=differences, plan=tuple(request.plan.code()))


def _body(request: Request, class_name: str, store: str, retention_ms: int) -> str:
    key_class, key_serde = _KEYS[request.key_type]
    parts = {
        f"{place}{suffix}": part for place, result in enumerate(request.results) for suffix, part in _parts(result)
    }
    pieces = [
        f"/** {request.kind.capitalize()} windows over a topic, as planned in sessionkit. */\n",
        f"public final class {class_name} {{\n",
        f"    public static final String INPUT = {java_literal(request.input_topic)};\n",
        f"    public static final String OUTPUT = {java_literal(request.output_topic)};\n",
        f"    private static final Serde<{key_class}> KEYS = Serdes.{key_serde}();",
        JSON,
        f"\n    private {class_name}() {{ }}\n",
        MAIN,
        _topology(request, class_name, store, retention_ms),
        _event_time(request),
        _start(parts),
        _add(request, parts, key_class),
        _merge(request, parts, key_class) if request.kind == "session" else "",
        _result(request),
    ]
    code = "".join(pieces) + SERDE
    return code + _helpers(code) + "}\n"


def _helpers(code: str) -> str:
    """The helpers that are called, and those that they call."""
    wanted = {name for name in (*READERS, *COMBINERS) if re.search(rf"(?<![\w.]){name}\(", code)}
    for name in tuple(wanted):
        wanted.update(_NEEDS.get(name, ()))
    return "".join(text for name, text in (READERS | COMBINERS).items() if name in wanted)


# ---- the topology


def _topology(request: Request, class_name: str, store: str, retention_ms: int) -> str:
    kind = "SessionStore" if request.kind == "session" else "WindowStore"
    key_class = _KEYS[request.key_type][0]
    merger = f", {class_name}::merge" if request.kind == "session" else ""
    empty = ""
    if request.kind == "sliding" and request.types:  # Kafka drops null values here, and only here
        nulls = " && ".join(f"column(row, {java_literal(name)}).isNull()" for name in request.types)
        empty = f"\n                .mapValues(row -> {nulls} ? null : row)"
    serde = "SessionWindowedSerde<>(KEYS)"
    if request.kind != "session":
        serde = f"TimeWindowedSerde<>(KEYS, {request.windows.length_ms}L)"
    emit = "onWindowClose" if request.is_final else "onWindowUpdate"
    return f"""
    /** From INPUT to OUTPUT: the key of a result is the windowed key, its value a JSON object; null withdraws it. */
    public static Topology topology() {{
        final StreamsBuilder builder = new StreamsBuilder();
        builder.stream(INPUT, Consumed.with(KEYS, ROWS).withTimestampExtractor({class_name}::eventTime)){empty}
                .groupByKey()
                .windowedBy({_windows(request)})
                .emitStrategy(EmitStrategy.{emit}())
                .aggregate({class_name}::start, {class_name}::add{merger},
                        Materialized.<{key_class}, JsonNode, {kind}<Bytes, byte[]>>as("windows")
                                .withKeySerde(KEYS)
                                .withValueSerde(ROWS)
                                .withStoreType(BuiltInDslStoreSuppliers.{STORES[store]})
                                .withRetention({_duration(retention_ms)})
                                .withCachingDisabled())
                .toStream()
                .mapValues({class_name}::result)
                .to(OUTPUT, Produced.with(new WindowedSerdes.{serde}, ROWS));
        return builder.build();
    }}
"""


def _windows(request: Request) -> str:
    windows, grace = request.windows, _duration(request.windows.grace_ms)
    if request.kind == "session":
        return f"SessionWindows.ofInactivityGapAndGrace({_duration(windows.inactivity_gap_ms)}, {grace})"
    if request.kind == "sliding":
        return f"SlidingWindows.ofTimeDifferenceAndGrace({_duration(windows.time_difference_ms)}, {grace})"
    code = f"TimeWindows.ofSizeAndGrace({_duration(windows.size_ms)}, {grace})"
    return code if request.kind == "tumbling" else f"{code}.advanceBy({_duration(windows.advance_ms)})"


def _duration(ms: int) -> str:
    return f"Duration.ofMillis({ms}L)"


# ---- event time


def _event_time(request: Request) -> str:
    source = request.source
    without = "-1; // Kafka drops the record and counts it" if source.on_bad_time == "drop" else "refused(time);"
    code = f"""
    /** The event time in a record's value, in milliseconds. */
    static long eventTime(final ConsumerRecord<Object, Object> record, final long partitionTime) {{
        final JsonNode time = column((JsonNode) record.value(), {java_literal(source.timestamp)});
        final long ms = milliseconds(time);
        return ms >= 0 ? ms : {without}
    }}
"""
    code += _milliseconds(source.unit)
    if source.on_bad_time == "refuse":
        code += """
    private static long refused(final JsonNode time) {
        throw new SerializationException("no event time from 1970 on: " + time);
    }
"""
    return code


def _milliseconds(unit: str | None) -> str:
    if unit is None:
        return """
    private static long milliseconds(final JsonNode time) {
        try {
            return time.isTextual() ? OffsetDateTime.parse(time.textValue()).toInstant().toEpochMilli() : -1;
        } catch (final DateTimeException e) {
            throw new SerializationException("not a time of ISO 8601 with an offset: " + time, e);
        }
    }
"""
    scaled = {
        "s": "Math.multiplyExact(time.longValue(), 1000L)",
        "ms": "time.longValue()",
        "us": "Math.floorDiv(time.longValue(), 1_000L)",
        "ns": "Math.floorDiv(time.longValue(), 1_000_000L)",
    }[unit]
    return f"""
    private static long milliseconds(final JsonNode time) {{
        return time.isIntegralNumber() && time.canConvertToLong() ? {scaled} : -1;
    }}
"""


# ---- the aggregation


def _parts(result: Result) -> list[tuple[str, _Part]]:
    """The fields of one result in the aggregate, by what follows its number in their names."""
    null = "NullNode.getInstance()"
    if result.column is None:
        return [("", _Part("LongNode.valueOf(0)", "LongNode.valueOf(1)", "total"))]
    name = java_literal(result.column)
    value = {"bigint": "bigint", "double": "number", "string": "string", "boolean": "bool"}[result.type]
    value = f"{value}(row, {name})"
    counted = f"zeroOrOne(row, {name})" if result.type == "boolean" else value
    if result.built_in == "sum":
        start = "DoubleNode.valueOf(0.0)" if result.type == "double" else "LongNode.valueOf(0)"
        return [("", _Part(start, counted, "total"))]
    if result.built_in == "mean":
        sums = _Part("DoubleNode.valueOf(0.0)", f"asDouble({counted})", "total")
        return [("", sums), (" count", _Part("LongNode.valueOf(0)", f"one({value})", "total"))]
    if result.built_in == "collect":
        return [("", _Part("JSON.createArrayNode()", f"listed({value})", "joined"))]
    combiner = {"min": "least", "max": "greatest", "first": "earliest", "last": "latest"}[result.built_in]
    return [("", _Part(null, value, combiner))]


def _start(parts: dict[str, _Part]) -> str:
    fields = "\n".join(f'        aggregate.set("{name}", {part.start});' for name, part in parts.items())
    return f"""
    /** The aggregate of an empty window: a field for each result, by its number. */
    static JsonNode start() {{
        final ObjectNode aggregate = JSON.createObjectNode();
{fields}
        return aggregate;
    }}
"""


def _returned(request: Request) -> str:
    can_be_null = all(result.built_in not in _NEVER_NULL for result in request.results)
    return "orNull(after)" if can_be_null else "after"


def _add(request: Request, parts: dict[str, _Part], key_class: str) -> str:
    fields = "\n".join(
        f'        after.set("{name}", {part.combiner}(before.get("{name}"), {part.value}));'
        for name, part in parts.items()
    )
    return f"""
    /** The aggregate with one more record. */
    static JsonNode add(final {key_class} key, final JsonNode row, final JsonNode before) {{
        final ObjectNode after = JSON.createObjectNode();
{fields}
        return {_returned(request)};
    }}
"""


def _merge(request: Request, parts: dict[str, _Part], key_class: str) -> str:
    fields = "\n".join(
        f'        after.set("{name}", {part.combiner}(older.get("{name}"), newer.get("{name}")));'
        for name, part in parts.items()
    )
    return f"""
    /** The aggregates of two sessions as one. */
    static JsonNode merge(final {key_class} key, final JsonNode older, final JsonNode newer) {{
        final ObjectNode after = JSON.createObjectNode();
{fields}
        return after;
    }}
"""


def _result(request: Request) -> str:
    fields = "\n".join(
        f"        row.set({java_literal(result.name)}, {_shown(place, result)});"
        for place, result in enumerate(request.results)
    )
    return f"""
    /** What is sent for an aggregate, under the names of the results. */
    static JsonNode result(final JsonNode aggregate) {{
        if (aggregate == null) {{
            return null;
        }}
        final ObjectNode row = JSON.createObjectNode();
{fields}
        return row;
    }}
"""


def _shown(place: int, result: Result) -> str:
    if result.built_in == "mean":
        return f'mean(aggregate.get("{place}"), aggregate.get("{place} count"))'
    return f'aggregate.get("{place}")'


# ---- what differs


def _differences(request: Request, store: str, retention_ms: int) -> list[str]:
    kept = show_duration(retention_ms)
    words = [
        "It needs kafka-streams 4.3 and jackson-databind (which kafka-streams brings) on the class path.",
        "Kafka delivers at least once by default: after a crash a record may count twice; "
        "processing.guarantee=exactly_once_v2 prevents that.",
        f"The store keeps a window for {kept} of stream time (`Materialized.withRetention`).",
    ]
    if not request.is_final:
        return words
    room_ms = retention_ms - request.windows.retention_ms(None)
    jumps = f"Where stream time jumps by {show_duration(room_ms)} or more at once, the" if room_ms else "The"
    words += [
        "Final results are looked for when a record arrives, at most once a second of wall clock; the plan knows none.",
        f"{jumps} store may have forgotten a final result before it is sent; "
        f'sk.audit(plan, data, store="{store}") finds the retention that loses none.',
    ]
    if request.kind == "session":
        words.append(
            "A closed session stays in the store until then: a record that is not late itself and touches it opens it "
            f"again, and the larger session is sent as well, as in plan.run(data, retention={retention_ms})."
        )
    return words
