package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.file.Path;
import java.time.Instant;
import java.util.AbstractMap;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.LongSerializer;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.processor.FailOnInvalidTimestamp;
import org.apache.kafka.streams.processor.LogAndSkipOnInvalidTimestamp;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.internals.InternalProcessorContext;
import org.apache.kafka.streams.processor.internals.ProcessorNode;
import org.apache.kafka.streams.processor.internals.ProcessorTopology;
import org.apache.kafka.streams.processor.internals.StreamTask;
import org.apache.kafka.streams.state.internals.CountedCache;
import org.apache.kafka.streams.state.internals.ThreadCache;

/**
 * A TopologyTestDriver whose commits are under the caller's hand. The driver's own pipeInput commits (and so
 * flushes the record cache) after every record; here processing and committing are two calls.
 */
final class StepDriver implements AutoCloseable {
    private static final TopicPartition PARTITION = new TopicPartition(CaseTopology.INPUT, 0);
    private static final String EMITTED = "lastEmitWindowCloseTime";
    private static final long WALL_CLOCK_START_MS = 1_700_000_000_000L;

    final TopologyTestDriver driver;
    private final StreamTask task;
    private final List<? extends Metric> dropped;
    private final Serializer<String> keys;
    private final LongSerializer values = new LongSerializer();
    private long offset = 0;
    private Map<Class<?>, Object> committed = Map.of(); // the close time up to which results were sent, at the last commit

    /** {@code held} counts the entries, or bytes, in the record caches of all drivers that share it; {@code end} is how it ends. */
    StepDriver(final JsonNode spec, final Topology topology, final Path stateDir, final AtomicLong held, final String end) {
        final Properties p = new Properties();
        p.put(StreamsConfig.APPLICATION_ID_CONFIG, "oracle");
        p.put(StreamsConfig.STATE_DIR_CONFIG, stateDir.toString());
        p.put(StreamsConfig.METRICS_RECORDING_LEVEL_CONFIG, "DEBUG");
        p.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_WINDOWED_AGGREGATION,
                spec.path("emit_interval_ms").asLong(0));
        p.put(StreamsConfig.ROCKSDB_CONFIG_SETTER_CLASS_CONFIG,
                end == null || end.equals(Restarts.KILLED) ? LightRocksDb.class : KeptRocksDb.class);
        p.put(StreamsConfig.DEFAULT_TIMESTAMP_EXTRACTOR_CLASS_CONFIG,
                spec.path("negative_timestamps").asText("skip").equals("fail")
                        ? FailOnInvalidTimestamp.class : LogAndSkipOnInvalidTimestamp.class);
        keys = CaseTopology.keys(spec).serializer();
        driver = new TopologyTestDriver(topology, p, Instant.ofEpochMilli(0));
        try {
            task = (StreamTask) hidden(driver, "task");
            final ThreadCache cache = context().cache();
            final JsonNode bytes = spec.path("caching").path("bytes");
            if (bytes.isMissingNode()) {
                CountedCache.limit(cache, spec.path("caching").isInt() ? spec.get("caching").asLong() : Long.MAX_VALUE, held);
            } else {
                CountedCache.share(cache, bytes.asLong(), held);
            }
        } catch (final ReflectiveOperationException e) {
            driver.close();
            throw new IllegalStateException("this Kafka version is another inside", e);
        }
        dropped = driver.metrics().values().stream()
                .filter(m -> m.metricName().name().equals("dropped-records-total")).toList();
    }

    /** Runs one record through the topology without committing. */
    void process(final String key, final Long value, final long timestamp, final long wallMs) {
        final byte[] k = key == null ? null : keys.serialize(CaseTopology.INPUT, key);
        final byte[] v = value == null ? null : values.serialize(CaseTopology.INPUT, value);
        task.addRecords(PARTITION, List.of(new ConsumerRecord<>(CaseTopology.INPUT, 0, offset++, timestamp,
                TimestampType.CREATE_TIME, k == null ? -1 : k.length, v == null ? -1 : v.length, k, v,
                new RecordHeaders(), Optional.empty())));
        while (task.hasRecordsQueued() && task.process(WALL_CLOCK_START_MS + wallMs)) {
            // a skipped (negative) timestamp is polled as a corrupted record, the rest is one turn
        }
    }

    /** Commits the task, which flushes the record caches. RocksDB writes no file for it, as in production. */
    void commit() {
        prepareCommit();
        task.postCommit(false);
        committed = metadata();
    }

    /** Kafka 3.9 takes no argument, 4 takes whether the task is clean. */
    private void prepareCommit() {
        try {
            for (final Method method : StreamTask.class.getMethods()) {
                if (method.getName().equals("prepareCommit")) {
                    method.invoke(task, method.getParameterCount() == 0 ? new Object[0] : new Object[] {true});
                    return;
                }
            }
        } catch (final InvocationTargetException e) {
            throw e.getCause() instanceof RuntimeException cause ? cause : new IllegalStateException(e.getCause());
        } catch (final ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
        throw new IllegalStateException("this Kafka version is another inside");
    }

    long droppedTotal() {
        return (long) dropped.stream().mapToDouble(m -> ((Number) m.metricValue()).doubleValue()).sum();
    }

    /** Stops the task and leaves its folder as it is. */
    void stop() {
        task.suspend();
        prepareCommit();
        task.postCommit(true);
        task.closeClean();
    }

    /**
     * Ends as a process that is killed: what the caches hold is lost, and what RocksDB has not written. Its folder is given
     * up as {@link LightRocksDb} leaves it.
     */
    void kill() {
        try {
            CountedCache.forget(context().cache());
        } catch (final ReflectiveOperationException e) {
            throw new IllegalStateException("this Kafka version is another inside", e);
        }
        task.suspend();
        task.closeDirty();
    }

    /** The names of the task's stores. */
    Set<String> storeNames() {
        try {
            return stores().keySet();
        } catch (final ReflectiveOperationException e) {
            throw new IllegalStateException("this Kafka version is another inside", e);
        }
    }

    /** Adds what the stores have written to their changelogs in this life, which ends so. */
    void addTo(final Map<String, Restarts.Changelog> changelogs, final String end) {
        try {
            final List<ProducerRecord<byte[], byte[]>> written = history();
            for (final Map.Entry<String, Restarts.Changelog> each : changelogs.entrySet()) {
                final String topic = "oracle-" + each.getKey() + "-changelog";
                each.getValue().add(written.stream().filter(record -> record.topic().equals(topic)).toList(), end);
            }
        } catch (final ReflectiveOperationException e) {
            throw new IllegalStateException("this Kafka version is another inside", e);
        }
    }

    @SuppressWarnings("unchecked")
    private List<ProducerRecord<byte[], byte[]>> history() throws ReflectiveOperationException {
        return ((MockProducer<byte[], byte[]>) hidden(driver, "producer")).history();
    }

    @SuppressWarnings("unchecked")
    private Map<String, Object> stores() throws ReflectiveOperationException {
        return (Map<String, Object>) hidden(hidden(task, "stateMgr"), "stores");
    }

    /** Gives the stores what they lack of their changelogs, as Kafka does while it restores a task. */
    void restore(final Map<String, Restarts.Changelog> changelogs) {
        try {
            for (final Map.Entry<String, Object> each : stores().entrySet()) {
                restore(each.getValue(), changelogs.get(each.getKey()));
            }
        } catch (final ReflectiveOperationException e) {
            throw new IllegalStateException("this Kafka version is another inside", e);
        }
    }

    private void restore(final Object store, final Restarts.Changelog changelog) throws ReflectiveOperationException {
        final boolean persistent = ((StateStore) hidden(store, "stateStore")).persistent();
        final List<ProducerRecord<byte[], byte[]>> lacking =
                changelog.after(new AbstractMap.SimpleEntry<>(persistent, (Long) hidden(store, "offset")), retentionMs(store));
        final List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (final ProducerRecord<byte[], byte[]> each : lacking) {
            final long timestamp = each.timestamp() == null ? 0 : each.timestamp(); // the buffer of suppress gives none
            records.add(new ConsumerRecord<>(each.topic(), 0, records.size(), timestamp, TimestampType.CREATE_TIME,
                    each.key().length, each.value() == null ? -1 : each.value().length, each.key(), each.value(),
                    each.headers(), Optional.empty()));
        }
        final Object manager = hidden(task, "stateMgr");
        for (final Method method : manager.getClass().getDeclaredMethods()) {
            if (method.getName().equals("restore")) {
                method.setAccessible(true);
                method.invoke(manager, store, records, OptionalLong.empty());
            }
        }
    }

    /** By how much a restore goes back from the last record; 0 where it reads all, as it does before Kafka 4.4. */
    private long retentionMs(final Object store) throws ReflectiveOperationException {
        return find(store.getClass(), "retentionPeriod") == null ? 0 : (Long) hidden(store, "retentionPeriod");
    }

    /** What a task reads back from the metadata of its committed offsets, which the test driver keeps nowhere. */
    void takeOver(final StepDriver before) {
        try {
            for (final Processor<?, ?, ?, ?> each : processors()) {
                if (before.committed.containsKey(each.getClass())) {
                    find(each.getClass(), EMITTED).set(each, before.committed.get(each.getClass()));
                }
            }
            committed = before.committed;
        } catch (final ReflectiveOperationException e) {
            throw new IllegalStateException("this Kafka version is another inside", e);
        }
    }

    private Map<Class<?>, Object> metadata() {
        final Map<Class<?>, Object> found = new HashMap<>();
        try {
            for (final Processor<?, ?, ?, ?> each : processors()) {
                final Field field = find(each.getClass(), EMITTED);
                if (field != null) {
                    found.put(each.getClass(), field.get(each));
                }
            }
        } catch (final ReflectiveOperationException e) {
            throw new IllegalStateException("this Kafka version is another inside", e);
        }
        return found;
    }

    private List<Processor<?, ?, ?, ?>> processors() throws ReflectiveOperationException {
        final List<ProcessorNode<?, ?, ?, ?>> nodes = ((ProcessorTopology) hidden(task, "topology")).processors();
        final List<Processor<?, ?, ?, ?>> found = new ArrayList<>();
        for (final ProcessorNode<?, ?, ?, ?> node : nodes) {
            if (hidden(node, "processor") instanceof Processor<?, ?, ?, ?> processor) {
                found.add(processor);
            }
        }
        return found;
    }

    private InternalProcessorContext<?, ?> context() throws ReflectiveOperationException {
        return (InternalProcessorContext<?, ?>) hidden(task, "processorContext");
    }

    private static Object hidden(final Object owner, final String name) throws ReflectiveOperationException {
        final Field field = find(owner.getClass(), name);
        if (field == null) {
            throw new NoSuchFieldException(owner.getClass() + "." + name);
        }
        return field.get(owner);
    }

    private static Field find(final Class<?> owner, final String name) {
        for (Class<?> each = owner; each != null; each = each.getSuperclass()) {
            for (final Field field : each.getDeclaredFields()) {
                if (field.getName().equals(name)) {
                    field.setAccessible(true);
                    return field;
                }
            }
        }
        return null;
    }

    /** What the caches still hold has to be flushed before: closing would forward it to closed processors, and fail. */
    @Override
    public void close() {
        try {
            commit();
        } finally {
            driver.close();
        }
    }
}
