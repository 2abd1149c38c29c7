"""The pieces of a generated Java class that no plan changes; `java.py` puts those that are needed together."""

from __future__ import annotations

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

MAIN = """
    /** Runs until it is stopped; the first argument names the brokers. */
    public static void main(final String[] args) {
        final Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, OUTPUT + "-by-sessionkit");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args.length > 0 ? args[0] : "localhost:9092");
        final KafkaStreams streams = new KafkaStreams(topology(), settings);
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
    }
"""

JSON = """
    private static final ObjectMapper JSON = JsonMapper.builder()
            .enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS) // a sum can be NaN or infinite
            .disable(JsonWriteFeature.WRITE_NAN_AS_STRINGS)
            .build();
    private static final Serde<JsonNode> ROWS =
            Serdes.serdeFrom((topic, row) -> written(row), (topic, bytes) -> parsed(bytes));
"""

SERDE = """
    private static byte[] written(final JsonNode row) {
        try {
            return row == null ? null : JSON.writeValueAsBytes(row);
        } catch (final IOException e) {
            throw new SerializationException(e);
        }
    }

    private static JsonNode parsed(final byte[] bytes) {
        try {
            return bytes == null ? null : JSON.readTree(bytes);
        } catch (final IOException e) {
            throw new SerializationException(e);
        }
    }

    private static JsonNode checked(final boolean fits, final JsonNode value, final String name, final String type) {
        if (!fits && !value.isNull()) {
            throw new SerializationException("column " + name + " must be " + type + "; got " + value);
        }
        return value;
    }
"""

# How a column is read, by whether a name has dots.
COLUMN = {
    False: """
    private static JsonNode column(final JsonNode row, final String name) {
        final JsonNode value = row == null ? null : row.get(name);
        return value == null ? NullNode.getInstance() : value;
    }
""",
    True: """
    /** The field of this name, else the one that its dots lead to, through objects and JSON in texts. */
    private static JsonNode column(final JsonNode row, final String name) {
        final JsonNode fields = row == null || !row.isTextual()
                ? row : parsed(row.textValue().getBytes(StandardCharsets.UTF_8));
        for (int end = name.length(); fields != null && end >= 0; end = name.lastIndexOf('.', end - 1)) {
            final JsonNode value = fields.get(name.substring(0, end));
            if (value != null) {
                return end == name.length() ? value : column(value, name.substring(end + 1));
            }
        }
        return NullNode.getInstance();
    }
""",
}

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
} | {
    None: """
    private static long milliseconds(final JsonNode time) {
        try {
            return time.isTextual() ? OffsetDateTime.parse(time.textValue()).toInstant().toEpochMilli() : -1;
        } catch (final DateTimeException e) {
            throw new SerializationException("not a time of ISO 8601 with an offset: " + time, e);
        }
    }
"""
}

# How a column of a type is read, by the type and whether it is counted as a number.
READERS = {
    "bigint": """
    private static JsonNode bigint(final JsonNode row, final String name) {
        final JsonNode value = column(row, name);
        return checked(value.isIntegralNumber() && value.canConvertToLong(), value, name, "an integer of 64 bits");
    }
""",
    "number": """
    private static JsonNode number(final JsonNode row, final String name) {
        final JsonNode value = checked(column(row, name).isNumber(), column(row, name), name, "a number");
        return value.isNull() ? value : DoubleNode.valueOf(value.doubleValue());
    }
""",
    "string": """
    private static JsonNode string(final JsonNode row, final String name) {
        return checked(column(row, name).isTextual(), column(row, name), name, "text");
    }
""",
    "bool": """
    private static JsonNode bool(final JsonNode row, final String name) {
        return checked(column(row, name).isBoolean(), column(row, name), name, "true or false");
    }
""",
    "zeroOrOne": """
    private static JsonNode zeroOrOne(final JsonNode row, final String name) {
        final JsonNode value = bool(row, name);
        return value.isNull() ? value : LongNode.valueOf(value.booleanValue() ? 1 : 0);
    }
""",
    "asDouble": """
    private static JsonNode asDouble(final JsonNode value) {
        return value.isNull() ? value : DoubleNode.valueOf(value.doubleValue());
    }
""",
    "one": """
    private static JsonNode one(final JsonNode value) {
        return LongNode.valueOf(value.isNull() ? 0 : 1);
    }
""",
}

# What combines an aggregate with a value, and the aggregates of two sessions, the older first.
COMBINERS = {
    "total": """
    private static JsonNode total(final JsonNode older, final JsonNode newer) {
        if (newer.isNull()) {
            return older;
        }
        return older.isIntegralNumber() && newer.isIntegralNumber()
                ? LongNode.valueOf(Math.addExact(older.longValue(), newer.longValue()))
                : DoubleNode.valueOf(older.doubleValue() + newer.doubleValue());
    }
""",
    "least": """
    private static JsonNode least(final JsonNode older, final JsonNode newer) {
        return older.isNull() || (!newer.isNull() && isLess(newer, older)) ? newer : older;
    }
""",
    "greatest": """
    private static JsonNode greatest(final JsonNode older, final JsonNode newer) {
        return older.isNull() || (!newer.isNull() && isLess(older, newer)) ? newer : older;
    }
""",
    "isLess": """
    private static boolean isLess(final JsonNode one, final JsonNode other) {
        return one.isIntegralNumber() && other.isIntegralNumber()
                ? one.longValue() < other.longValue() : one.doubleValue() < other.doubleValue();
    }
""",
    "earliest": """
    private static JsonNode earliest(final JsonNode older, final JsonNode newer) {
        return older.isNull() ? newer : older;
    }
""",
    "latest": """
    private static JsonNode latest(final JsonNode older, final JsonNode newer) {
        return newer.isNull() ? older : newer;
    }
""",
    "listed": """
    private static JsonNode listed(final JsonNode value) {
        return JSON.createArrayNode().add(value);
    }
""",
    "joined": """
    private static JsonNode joined(final JsonNode older, final JsonNode newer) {
        final ArrayNode all = JSON.createArrayNode();
        older.forEach(all::add);
        newer.forEach(all::add);
        return all;
    }
""",
    "mean": """
    private static JsonNode mean(final JsonNode sum, final JsonNode count) {
        return count.longValue() == 0
                ? NullNode.getInstance() : DoubleNode.valueOf(sum.doubleValue() / count.longValue());
    }
""",
    "orNull": """
    /** A window in which every result is null is taken out of the store, as by every aggregator that returns null. */
    private static JsonNode orNull(final JsonNode aggregate) {
        for (final JsonNode value : aggregate) {
            if (!value.isNull()) {
                return aggregate;
            }
        }
        return null;
    }
""",
}


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
