"""The pieces of a generated Java class that no plan changes; `java.py` puts those that are needed together."""

from __future__ import annotations

import re

from sessionkit.base.assets import read_asset
from sessionkit.exports.lengths import java_duration
from sessionkit.suppression.settings import Suppression

_CLASSES = {
    "com.fasterxml.jackson.databind": "JsonNode ObjectMapper",
    "com.fasterxml.jackson.databind.json": "JsonMapper",
    "com.fasterxml.jackson.core.json": "JsonReadFeature JsonWriteFeature",
    "com.fasterxml.jackson.databind.node": "ArrayNode DoubleNode LongNode NullNode ObjectNode",
    "java.io": "IOException",
    "java.nio.charset": "StandardCharsets",
    "java.time": "DateTimeException Duration OffsetDateTime",
    "java.util": "Properties",
    "org.apache.kafka.clients.consumer": "ConsumerRecord",
    "org.apache.kafka.common.errors": "SerializationException",
    "org.apache.kafka.common.serialization": "Serde Serdes",
    "org.apache.kafka.common.utils": "Bytes",
    "org.apache.kafka.streams": "KafkaStreams StreamsBuilder StreamsConfig Topology",
    "org.apache.kafka.streams.kstream": "Consumed EmitStrategy Materialized Produced SessionWindows SlidingWindows "
    "Suppressed TimeWindows WindowedSerdes",
    "org.apache.kafka.streams.kstream.Suppressed": "BufferConfig",
    "org.apache.kafka.streams.processor": "LogAndSkipOnInvalidTimestamp UsePartitionTimeOnInvalidTimestamp",
    "org.apache.kafka.streams.state": "BuiltInDslStoreSuppliers SessionStore WindowStore",
}
IMPORTS = [f"{package}.{name}" for package, names in _CLASSES.items() for name in names.split()]

JSON = """
    private static final ObjectMapper JSON = JsonMapper.builder()
            .enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS) // a sum can be NaN or infinite
            .disable(JsonWriteFeature.WRITE_NAN_AS_STRINGS)
            .build();
    private static final Serde<JsonNode> ROWS =
            Serdes.serdeFrom((topic, row) -> written(row), (topic, bytes) -> parsed(bytes));
"""


def _methods(file: str) -> dict[str, str]:
    """The methods that a file of Java holds, by their names; empty lines part them."""
    methods = read_asset(f"exports/{file}.java").strip("\n").split("\n\n")
    return {re.findall(r"(\w+)\(final", method)[0]: f"\n{method}\n" for method in methods}


FRAME = _methods("frame")  # of every class, or of one that reads event times from values
HELPERS = _methods("helpers")  # what reads a column, and what combines values or the aggregates of two sessions
# How a column is read, by whether a name has dots.
COLUMN = {False: FRAME["column"], True: _methods("nested")["column"]}

# How an event time in a record's value is read, by its unit; without one it is text.
_SCALED = {
    "s": "Math.multiplyExact(time.longValue(), 1000L)",
    "ms": "time.longValue()",
    "us": "Math.floorDiv(time.longValue(), 1_000L)",
    "ns": "Math.floorDiv(time.longValue(), 1_000_000L)",
}
MILLISECONDS = {
    unit: f"""
    private static long milliseconds(final JsonNode time) {{
        return time.isIntegralNumber() && time.canConvertToLong() ? {scaled} : -1;
    }}
"""
    for unit, scaled in _SCALED.items()
} | {None: FRAME["milliseconds"]}


def suppress_call(suppression: Suppression | None) -> str:
    """The call of suppress behind the aggregation."""
    if suppression is None:
        return ""
    sizes = {"maxRecords": suppression.most_records, "maxBytes": suppression.most_bytes}
    limits = [f"{name}({size}L)" for name, size in sizes.items() if size is not None] or ["unbounded()"]
    config = f"BufferConfig.{limits[0]}"
    if len(limits) > 1:
        config += f".with{limits[1][0].upper()}{limits[1][1:]}"
    if suppression.is_limited and suppression.shuts_down:
        config += ".shutDownWhenFull()"
    if suppression.wait_ms is None:
        return f"\n                .suppress(Suppressed.untilWindowCloses({config}))"
    return f"\n                .suppress(Suppressed.untilTimeLimit({java_duration(suppression.wait_ms)}, {config}))"
