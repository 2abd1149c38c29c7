package oracle;

import java.lang.reflect.Field;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.LongSerializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.processor.FailOnInvalidTimestamp;
import org.apache.kafka.streams.processor.LogAndSkipOnInvalidTimestamp;
import org.apache.kafka.streams.processor.internals.StreamTask;

/**
 * A TopologyTestDriver whose commits are under the caller's hand. The driver's own pipeInput commits (and so
 * flushes the record cache) after every record; here processing and committing are two calls.
 */
final class StepDriver implements AutoCloseable {
    private static final TopicPartition PARTITION = new TopicPartition(CaseTopology.INPUT, 0);

    final TopologyTestDriver driver;
    private final StreamTask task;
    private final List<? extends Metric> dropped;
    private final StringSerializer keys = new StringSerializer();
    private final LongSerializer values = new LongSerializer();
    private long wallMs = 0;
    private long offset = 0;

    StepDriver(final Topology topology, final Path stateDir, final long emitIntervalMs, final boolean failOnNegative) {
        final Properties p = new Properties();
        p.put(StreamsConfig.APPLICATION_ID_CONFIG, "oracle");
        p.put(StreamsConfig.STATE_DIR_CONFIG, stateDir.toString());
        p.put(StreamsConfig.METRICS_RECORDING_LEVEL_CONFIG, "DEBUG");
        p.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_WINDOWED_AGGREGATION, emitIntervalMs);
        p.put(StreamsConfig.ROCKSDB_CONFIG_SETTER_CLASS_CONFIG, LightRocksDb.class);
        p.put(StreamsConfig.DEFAULT_TIMESTAMP_EXTRACTOR_CLASS_CONFIG,
                failOnNegative ? FailOnInvalidTimestamp.class : LogAndSkipOnInvalidTimestamp.class);
        driver = new TopologyTestDriver(topology, p, Instant.ofEpochMilli(0));
        try {
            final Field field = TopologyTestDriver.class.getDeclaredField("task");
            field.setAccessible(true);
            task = (StreamTask) field.get(driver);
        } catch (final ReflectiveOperationException e) {
            driver.close();
            throw new IllegalStateException("this Kafka version's test driver has no field 'task'", e);
        }
        dropped = driver.metrics().values().stream()
                .filter(m -> m.metricName().name().equals("dropped-records-total")).toList();
    }

    /** Runs one record through the topology without committing. */
    void process(final String key, final Long value, final long timestamp) {
        final byte[] k = key == null ? null : keys.serialize(CaseTopology.INPUT, key);
        final byte[] v = value == null ? null : values.serialize(CaseTopology.INPUT, value);
        task.addRecords(PARTITION, List.of(new ConsumerRecord<>(CaseTopology.INPUT, 0, offset++, timestamp,
                TimestampType.CREATE_TIME, k == null ? -1 : k.length, v == null ? -1 : v.length, k, v,
                new RecordHeaders(), Optional.empty())));
        while (task.hasRecordsQueued() && task.process(wallMs)) {
            // a skipped (negative) timestamp is polled as a corrupted record, the rest is one turn
        }
    }

    /** Commits the task, which flushes the record caches. RocksDB writes no file for it, as in production. */
    void commit() {
        task.prepareCommit(true);
        task.postCommit(false);
    }

    long droppedTotal() {
        return (long) dropped.stream().mapToDouble(m -> ((Number) m.metricValue()).doubleValue()).sum();
    }

    void advanceWallClock(final long ms) {
        wallMs += ms;
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
