package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.HashSet;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerInterceptor;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.StreamsConfig.InternalConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.api.ContextualFixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;

/**
 * One life of an application that plays a case beside a broker, until its stdin ends: then it is stopped in peace. Its
 * argument is the case, with bootstrap, application, state_dir, input and output. It commits after the records of
 * commit_after, and when it stops. On stdout it says "idle N" once record N and all before it are done, and all that it
 * has written (results and the store's changelog) is with the broker. A result is a JSON object in the output topic.
 */
public final class RestartedApp {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long NO_LIMIT = 10_000_000_000_000L;
    private static final AtomicLong DONE = new AtomicLong(-1);

    private final JsonNode spec;
    private final Set<Long> commits = new HashSet<>();

    private RestartedApp(final JsonNode spec) {
        this.spec = spec;
        spec.path("commit_after").forEach(each -> commits.add(each.asLong()));
    }

    public static void main(final String[] args) throws IOException {
        final RestartedApp app = new RestartedApp(JSON.readTree(args[0]));
        try (KafkaStreams streams = new KafkaStreams(app.topology(), app.settings())) {
            streams.setUncaughtExceptionHandler(error -> {
                error.printStackTrace();
                Runtime.getRuntime().halt(1);
                return null;
            });
            final Thread teller = new Thread(RestartedApp::tell);
            teller.setDaemon(true);
            teller.start();
            streams.start();
            System.in.readAllBytes();
        }
    }

    private static void tell() {
        long told = -1;
        try {
            while (true) {
                final long done = DONE.get(); // all that this record came to has been sent by now
                if (done != told && Written.acknowledged.get() == Written.sent.get()) {
                    System.out.println("idle " + done);
                    System.out.flush();
                    told = done;
                }
                Thread.sleep(10);
            }
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private Properties settings() {
        final Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, spec.get("application").asText());
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, spec.get("bootstrap").asText());
        settings.put(StreamsConfig.STATE_DIR_CONFIG, spec.get("state_dir").asText());
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, NO_LIMIT);
        settings.put(StreamsConfig.ROCKSDB_CONFIG_SETTER_CLASS_CONFIG, KeptRocksDb.class);
        // a broker deletes from a changelog by its wall clock, and the records of a case are of 1970
        settings.put(StreamsConfig.WINDOW_STORE_CHANGE_LOG_ADDITIONAL_RETENTION_MS_CONFIG, NO_LIMIT);
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        // the next life takes the place of this one, also where this one could not say that it leaves
        settings.put(StreamsConfig.mainConsumerPrefix(ConsumerConfig.GROUP_INSTANCE_ID_CONFIG), spec.get("application").asText());
        settings.put(StreamsConfig.producerPrefix(ProducerConfig.INTERCEPTOR_CLASSES_CONFIG), Written.class.getName());
        settings.put(StreamsConfig.producerPrefix(ProducerConfig.LINGER_MS_CONFIG), 0);
        settings.put(InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_WINDOWED_AGGREGATION, 0L);
        return settings;
    }

    private Topology topology() {
        return new CaseTopology(spec).build(spec.get("input").asText(), records -> records.processValues(Watched::new),
                results -> results.map(RestartedApp::told).to(spec.get("output").asText(), Produced.with(Serdes.String(), Serdes.String())));
    }

    private static KeyValue<String, String> told(final Windowed<String> key, final Object value) {
        final ObjectNode node = JSON.createObjectNode().put("key", key.key())
                .put("window_start", key.window().start()).put("window_end", key.window().end());
        if (value instanceof Long number) {
            node.put("value", number);
        } else {
            node.put("value", value == null ? null : value.toString());
        }
        return KeyValue.pair(key.key(), node.toString());
    }

    /** Lets each record through, and notes that it is done. */
    private final class Watched extends ContextualFixedKeyProcessor<String, Long, Long> {
        @Override
        public void process(final FixedKeyRecord<String, Long> record) {
            final long offset = context().recordMetadata().orElseThrow().offset();
            context().forward(record);
            if (commits.contains(offset)) {
                context().commit();
            }
            DONE.set(offset);
        }
    }

    /** Counts what the producer has sent, and what the broker has acknowledged. */
    public static final class Written implements ProducerInterceptor<byte[], byte[]> {
        private static final AtomicLong sent = new AtomicLong();
        private static final AtomicLong acknowledged = new AtomicLong();

        @Override
        public ProducerRecord<byte[], byte[]> onSend(final ProducerRecord<byte[], byte[]> record) {
            sent.incrementAndGet();
            return record;
        }

        @Override
        public void onAcknowledgement(final RecordMetadata metadata, final Exception exception) {
            if (exception == null) {
                acknowledged.incrementAndGet();
            }
        }

        @Override
        public void close() {
            // it holds nothing
        }

        @Override
        public void configure(final Map<String, ?> configs) {
            // nothing to set
        }
    }
}
