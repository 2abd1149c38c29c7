package oracle;

import static java.time.Duration.ofMillis;
import static org.apache.kafka.streams.CloseOptions.GroupMembershipOperation.LEAVE_GROUP;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.StreamsConfig.InternalConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.WindowedSerdes.SessionWindowedSerde;
import org.apache.kafka.streams.state.SessionStore;

/**
 * A Kafka Streams application beside a broker, until its stdin ends. Its argument is JSON: bootstrap, application, state_dir,
 * input, field, gap_ms, grace_ms, and results, each with output, emit (on_update, on_close) and retention_ms (absent: Kafka's
 * own). Values are JSON objects; of their number "field" it writes how many there were, the sum and the greatest. Event time
 * is the record's timestamp.
 */
public final class LiveApp {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Serde<String> KEYS = Serdes.String();
    private static final Serde<JsonNode> ROWS = Serdes.serdeFrom((topic, row) -> written(row), (topic, bytes) -> read(bytes));

    private final JsonNode spec;

    private LiveApp(final JsonNode spec) {
        this.spec = spec;
    }

    public static void main(final String[] args) throws IOException {
        final LiveApp app = new LiveApp(JSON.readTree(args[0]));
        try (KafkaStreams streams = new KafkaStreams(app.topology(), app.settings())) {
            streams.setUncaughtExceptionHandler(error -> {
                error.printStackTrace();
                Runtime.getRuntime().halt(1);
                return null;
            });
            streams.start();
            System.in.readAllBytes();
            // else its next life waits until the broker has given the old member up
            streams.close(CloseOptions.timeout(Duration.ofSeconds(20)).withGroupMembershipOperation(LEAVE_GROUP));
        }
    }

    private Properties settings() {
        final Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, spec.get("application").asText());
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, spec.get("bootstrap").asText());
        settings.put(StreamsConfig.STATE_DIR_CONFIG, spec.get("state_dir").asText());
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        settings.put(StreamsConfig.ROCKSDB_CONFIG_SETTER_CLASS_CONFIG, KeptRocksDb.class);
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        // final results are looked for with every record, not once a second of wall clock
        settings.put(InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_WINDOWED_AGGREGATION, 0L);
        return settings;
    }

    private Topology topology() {
        final StreamsBuilder builder = new StreamsBuilder();
        final KGroupedStream<String, JsonNode> grouped =
                builder.stream(spec.get("input").asText(), Consumed.with(KEYS, ROWS)).groupByKey();
        final SessionWindows windows = SessionWindows.ofInactivityGapAndGrace(
                ofMillis(spec.get("gap_ms").asLong()), ofMillis(spec.get("grace_ms").asLong()));
        for (final JsonNode result : spec.get("results")) {
            final boolean onClose = result.get("emit").asText().equals("on_close");
            final Materialized<String, JsonNode, SessionStore<Bytes, byte[]>> store =
                    Materialized.<String, JsonNode, SessionStore<Bytes, byte[]>>as(result.get("output").asText())
                            .withKeySerde(KEYS).withValueSerde(ROWS).withLoggingDisabled().withCachingDisabled();
            if (result.hasNonNull("retention_ms")) {
                store.withRetention(ofMillis(result.get("retention_ms").asLong()));
            }
            grouped.windowedBy(windows)
                    .emitStrategy(onClose ? EmitStrategy.onWindowClose() : EmitStrategy.onWindowUpdate())
                    .aggregate(() -> total(0, 0, null), this::add, (key, older, newer) -> merge(older, newer), store)
                    .toStream().to(result.get("output").asText(), Produced.with(new SessionWindowedSerde<>(KEYS), ROWS));
        }
        return builder.build();
    }

    private JsonNode add(final String key, final JsonNode row, final JsonNode before) {
        final long number = row.get(spec.get("field").asText()).asLong();
        return merge(before, total(1, number, number));
    }

    private static JsonNode merge(final JsonNode older, final JsonNode newer) {
        final JsonNode one = older.get("most");
        final JsonNode other = newer.get("most");
        final Long most = one.isNull() ? Long.valueOf(other.asLong())
                : other.isNull() ? Long.valueOf(one.asLong()) : Long.valueOf(Math.max(one.asLong(), other.asLong()));
        return total(older.get("count").asLong() + newer.get("count").asLong(),
                older.get("total").asLong() + newer.get("total").asLong(), most);
    }

    private static ObjectNode total(final long count, final long total, final Long most) {
        return JSON.createObjectNode().put("count", count).put("total", total).put("most", most);
    }

    private static byte[] written(final JsonNode row) {
        try {
            return row == null ? null : JSON.writeValueAsBytes(row);
        } catch (final IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static JsonNode read(final byte[] bytes) {
        try {
            return bytes == null ? null : JSON.readTree(bytes);
        } catch (final IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
