package oracle;

import static java.time.Duration.ofMillis;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.SessionWindowedKStream;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.kstream.Suppressed.EagerBufferConfig;
import org.apache.kafka.streams.kstream.TimeWindowedKStream;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.WindowStore;

/** Builds "in" -> groupByKey -> windowedBy -> count, reduce or aggregate -> capture for one case. */
final class CaseTopology {
    static final String INPUT = "input";
    static final String STORE = "agg";

    private final JsonNode spec;
    private final JsonNode window;
    private final EmitStrategy emit;

    CaseTopology(final JsonNode spec) {
        this.spec = spec;
        this.window = spec.get("window");
        this.emit = switch (spec.get("emit").asText()) {
            case "on_update" -> EmitStrategy.onWindowUpdate();
            case "on_close" -> EmitStrategy.onWindowClose();
            default -> throw new IllegalArgumentException("unknown emit: " + spec.get("emit"));
        };
    }

    static Serde<String> keys(final JsonNode spec) {
        return Keys.of(spec.path("keys").asText("text"));
    }

    boolean isSession() {
        return window.get("kind").asText().equals("session");
    }

    /** Every record that the aggregation forwards goes to {@code capture}, windows as the processor named them. */
    Topology build(final Consumer<Record<Windowed<String>, Object>> capture) {
        return build(INPUT, records -> records, results -> results.process(() -> new ContextualProcessor<Windowed<String>, Object, Void, Void>() {
            @Override
            public void process(final Record<Windowed<String>, Object> record) {
                capture.accept(record);
            }
        }));
    }

    /** From this topic, through {@code before}, to the aggregation, whose results {@code after} is given. */
    Topology build(final String input, final UnaryOperator<KStream<String, Long>> before,
                   final Consumer<KStream<Windowed<String>, Object>> after) {
        final StreamsBuilder builder = new StreamsBuilder();
        final KStream<String, Long> records = builder.stream(input, Consumed.with(keys(spec), Serdes.Long()));
        final KGroupedStream<String, Long> grouped = before.apply(records).groupByKey(Grouped.with(keys(spec), Serdes.Long()));
        final String name = spec.get("aggregation").asText();
        final KTable<Windowed<String>, ?> table = isSession()
                ? session(grouped.windowedBy(sessionWindows()).emitStrategy(emit), name)
                : time(timeWindowed(grouped).emitStrategy(emit), name);
        after.accept(stream(table));
        return builder.build();
    }

    @SuppressWarnings("unchecked")
    private <A> KStream<Windowed<String>, Object> stream(final KTable<Windowed<String>, A> table) {
        return (KStream<Windowed<String>, Object>) suppressed(table).toStream();
    }

    private <A> KTable<Windowed<String>, A> suppressed(final KTable<Windowed<String>, A> table) {
        final JsonNode told = spec.path("suppress");
        if (told.isMissingNode()) {
            return table;
        }
        final EagerBufferConfig wide = BufferConfig.maxRecords(told.path("max_records").asLong(Long.MAX_VALUE))
                .withMaxBytes(told.path("max_bytes").asLong(Long.MAX_VALUE));
        final EagerBufferConfig room = Restarts.needChangelog(spec) ? wide : wide.withLoggingDisabled();
        if (!told.has("wait_ms")) {
            return table.suppress(Suppressed.untilWindowCloses(room.shutDownWhenFull()));
        }
        final boolean stops = told.path("when_full").asText().equals("shut_down");
        return table.suppress(Suppressed.untilTimeLimit(ofMillis(told.get("wait_ms").asLong()), stops ? room.shutDownWhenFull() : room));
    }

    private KTable<Windowed<String>, ?> session(final SessionWindowedKStream<String, Long> stream, final String name) {
        return switch (name) {
            case "count" -> stream.count(this.<Long, SessionStore<Bytes, byte[]>>materialized(Serdes.Long()));
            case "reduce" -> stream.reduce(Aggregations::reduce,
                    this.<Long, SessionStore<Bytes, byte[]>>materialized(Serdes.Long()));
            default -> session(stream, Aggregations.named(name));
        };
    }

    private <A> KTable<Windowed<String>, A> session(final SessionWindowedKStream<String, Long> s, final Aggregations<A> a) {
        return s.aggregate(a.init(), a.add(), a.merge(), this.<A, SessionStore<Bytes, byte[]>>materialized(a.serde()));
    }

    private KTable<Windowed<String>, ?> time(final TimeWindowedKStream<String, Long> stream, final String name) {
        return switch (name) {
            case "count" -> stream.count(this.<Long, WindowStore<Bytes, byte[]>>materialized(Serdes.Long()));
            case "reduce" -> stream.reduce(Aggregations::reduce,
                    this.<Long, WindowStore<Bytes, byte[]>>materialized(Serdes.Long()));
            default -> time(stream, Aggregations.named(name));
        };
    }

    private <A> KTable<Windowed<String>, A> time(final TimeWindowedKStream<String, Long> s, final Aggregations<A> a) {
        return s.aggregate(a.init(), a.add(), this.<A, WindowStore<Bytes, byte[]>>materialized(a.serde()));
    }

    private TimeWindowedKStream<String, Long> timeWindowed(final KGroupedStream<String, Long> grouped) {
        final long grace = ms("grace_ms", 0);
        return switch (window.get("kind").asText()) {
            case "sliding" -> grouped.windowedBy(
                    SlidingWindows.ofTimeDifferenceAndGrace(ofMillis(ms("difference_ms", -1)), ofMillis(grace)));
            case "tumbling" -> grouped.windowedBy(
                    TimeWindows.ofSizeAndGrace(ofMillis(ms("size_ms", -1)), ofMillis(grace)));
            case "hopping" -> grouped.windowedBy(
                    TimeWindows.ofSizeAndGrace(ofMillis(ms("size_ms", -1)), ofMillis(grace))
                            .advanceBy(ofMillis(ms("advance_ms", -1))));
            default -> throw new IllegalArgumentException("unknown window kind: " + window.get("kind"));
        };
    }

    private SessionWindows sessionWindows() {
        return SessionWindows.ofInactivityGapAndGrace(ofMillis(ms("gap_ms", -1)), ofMillis(ms("grace_ms", 0)));
    }

    private <A, S extends StateStore> Materialized<String, A, S> materialized(final Serde<A> serde) {
        final Materialized<String, A, S> m = Materialized.<String, A, S>as(STORE)
                .withKeySerde(keys(spec)).withValueSerde(serde)
                .withStoreType(spec.get("store").asText().equals("rocksdb")
                        ? BuiltInDslStoreSuppliers.ROCKS_DB : BuiltInDslStoreSuppliers.IN_MEMORY);
        if (!Restarts.needChangelog(spec)) {
            m.withLoggingDisabled();
        }
        if (window.hasNonNull("retention_ms")) {
            m.withRetention(ofMillis(ms("retention_ms", -1)));
        }
        final JsonNode caching = spec.path("caching");
        return caching.isInt() || caching.isObject() || caching.asBoolean() ? m.withCachingEnabled() : m.withCachingDisabled();
    }

    private long ms(final String field, final long absent) {
        return window.hasNonNull(field) ? window.get(field).asLong() : absent;
    }
}
