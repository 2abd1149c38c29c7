package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.ReadOnlySessionStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.WindowStoreIterator;

/** Runs one case and turns what happened into JSON. */
final class CaseRunner {
    private final ObjectMapper json = new ObjectMapper();
    private final List<Record<Windowed<String>, Object>> captured = new ArrayList<>();

    private final List<StepDriver> drivers = new ArrayList<>(); // of the partitions
    private final AtomicLong cached = new AtomicLong();
    private long droppedBefore = 0; // by tasks that were stopped
    private final List<Map<String, Restarts.Changelog>> changelogs = new ArrayList<>(); // of each partition's stores
    private Restarts restarts;
    private int folders = 0;

    ObjectNode run(final JsonNode spec) throws IOException {
        final ObjectNode result = json.createObjectNode();
        result.set("id", spec.get("id"));
        final ArrayNode steps = result.putArray("per_record");
        final Path stateDir = Files.createTempDirectory("oracle-state");
        try {
            restarts = new Restarts(spec);
            for (int p = 0; p < spec.path("partitions").asInt(1); p++) {
                drivers.add(started(spec, stateDir, p));
                changelogs.add(new HashMap<>());
                for (final String store : drivers.get(p).storeNames()) {
                    changelogs.get(p).put(store, new Restarts.Changelog());
                }
            }
            drive(spec, stateDir, steps);
            result.set("final_store", contents(spec));
            if (spec.has("queries")) {
                result.set("query_results", queries(spec));
            }
            result.set("metrics", metrics());
        } catch (final RuntimeException e) {
            result.set("error", error(e).put("after_record", steps.size()));
        } finally {
            drivers.forEach(CaseRunner::closeQuietly);
            delete(stateDir);
        }
        return result;
    }

    private StepDriver started(final JsonNode spec, final Path stateDir, final int partition) {
        return new StepDriver(spec, new CaseTopology(spec).build(captured::add),
                stateDir.resolve(partition + "-" + folders), cached, restarts.next());
    }

    /** The answer is complete, or the task has failed already: closing cannot change it. */
    private static void closeQuietly(final StepDriver driver) {
        try {
            driver.close();
        } catch (final RuntimeException e) {
            // see above
        }
    }

    private ObjectNode error(final Throwable e) {
        Throwable root = e;
        while (root.getCause() != null) {
            root = root.getCause();
        }
        return json.createObjectNode().put("class", root.getClass().getSimpleName())
                .put("message", String.valueOf(root.getMessage()).replaceAll("\\s+", " "));
    }

    private void drive(final JsonNode spec, final Path stateDir, final ArrayNode steps) {
        final Set<Integer> commits = numbers(spec, "commit_after");
        final boolean always = !spec.hasNonNull("commit_after");
        final ObjectNode[] last = new ObjectNode[drivers.size()]; // what the last record of each partition came to
        final JsonNode records = spec.get("records");
        final long[] wallMs = wallMs(records);
        int committed = -1; // the record after which the last commit was
        for (int i = 0; i < records.size(); i++) {
            captured.clear();
            final JsonNode r = records.get(i);
            final int partition = r.path("partition").asInt(0);
            drivers.get(partition).process(r.get("key").isNull() ? null : r.get("key").asText(),
                    r.get("value").isNull() ? null : Long.valueOf(r.get("value").asLong()), r.get("timestamp").asLong(), wallMs[i]);
            last[partition] = json.createObjectNode();
            last[partition].set("outputs", forwarded());
            final ObjectNode out = last[partition];
            final String end = restarts.after(i);
            final boolean commit = always || commits.contains(i) || (end != null && !end.equals(Restarts.KILLED));
            committed = commit ? i : committed;
            folders += Restarts.CHANGELOG.equals(end) ? 1 : 0;
            for (int p = 0; p < drivers.size(); p++) {
                captured.clear();
                if (commit) {
                    drivers.get(p).commit();
                }
                if (!captured.isEmpty()) {
                    last[p].withArray("flushed").addAll(forwarded());
                }
                if (end != null) {
                    restart(spec, stateDir, p, end);
                }
            }
            steps.add(out.put("dropped_total", droppedTotal()));
            i = Restarts.KILLED.equals(end) ? committed : i; // the others are read again
        }
    }

    /** The wall clock at each record. */
    private static long[] wallMs(final JsonNode records) {
        final long[] wallMs = new long[records.size()];
        for (int i = 0; i < wallMs.length; i++) {
            wallMs[i] = (i == 0 ? 0 : wallMs[i - 1]) + records.get(i).path("wall_advance_ms").asLong(0);
        }
        return wallMs;
    }

    private static Set<Integer> numbers(final JsonNode spec, final String field) {
        final Set<Integer> found = new HashSet<>();
        spec.path(field).forEach(i -> found.add(i.asInt()));
        return found;
    }

    /** The task is stopped, or killed, and started again: on its folder, or on an empty one. */
    private void restart(final JsonNode spec, final Path stateDir, final int partition, final String end) {
        final StepDriver before = drivers.get(partition);
        droppedBefore += before.droppedTotal();
        if (end.equals(Restarts.KILLED)) {
            before.kill();
        } else {
            before.stop();
        }
        final StepDriver now = started(spec, stateDir, partition);
        drivers.set(partition, now);
        if (Restarts.needChangelog(spec)) {
            before.addTo(changelogs.get(partition), end);
            now.restore(changelogs.get(partition));
            droppedBefore -= now.droppedTotal(); // what a store in memory refuses again
        }
        now.takeOver(before);
    }

    private long droppedTotal() {
        return droppedBefore + drivers.stream().mapToLong(StepDriver::droppedTotal).sum();
    }

    private ArrayNode forwarded() {
        final ArrayNode list = json.createArrayNode();
        for (final Record<Windowed<String>, Object> r : captured) {
            windowed(list.addObject(), r.key(), r.value()).put("timestamp", r.timestamp());
        }
        return list;
    }

    private ObjectNode windowed(final ObjectNode node, final Windowed<String> key, final Object value) {
        node.put("key", key.key()).put("window_start", key.window().start()).put("window_end", key.window().end());
        return put(node, "value", value);
    }

    private ObjectNode put(final ObjectNode node, final String name, final Object value) {
        if (value instanceof ValueAndTimestamp<?> vt) {
            put(node, name, vt.value());
            return node.put("timestamp", vt.timestamp());
        }
        return value == null ? node.putNull(name)
                : value instanceof Long n ? node.put(name, n) : node.put(name, value.toString());
    }

    private ArrayNode contents(final JsonNode spec) {
        final ArrayNode all = json.createArrayNode();
        for (int p = 0; p < drivers.size(); p++) {
            final StepDriver step = drivers.get(p);
            final ArrayNode held = new CaseTopology(spec).isSession()
                    ? drain(step.driver.<String, Object>getSessionStore(CaseTopology.STORE).fetch(null, null))
                    : drain(timed(step).all());
            for (final JsonNode each : held) {
                all.add(drivers.size() == 1 ? each : ((ObjectNode) each).put("partition", p));
            }
        }
        return all;
    }

    private static WindowStore<String, ValueAndTimestamp<Object>> timed(final StepDriver step) {
        return step.driver.getTimestampedWindowStore(CaseTopology.STORE);
    }

    private ArrayNode drain(final KeyValueIterator<Windowed<String>, ?> it) {
        final ArrayNode list = json.createArrayNode();
        try (it) {
            while (it.hasNext()) {
                final KeyValue<Windowed<String>, ?> kv = it.next();
                windowed(list.addObject(), kv.key, kv.value);
            }
        }
        return list;
    }

    /** Store reads asked for by the case: [{op, key|key_from,key_to, from, to}]; from/to mean what the op's API says. */
    private ArrayNode queries(final JsonNode spec) {
        final ArrayNode all = json.createArrayNode();
        for (final JsonNode q : spec.get("queries")) {
            final String op = q.get("op").asText();
            final StepDriver step = drivers.get(q.path("partition").asInt(0));
            try {
                all.add(new CaseTopology(spec).isSession()
                        ? sessionQuery(op, q, step.driver.getSessionStore(CaseTopology.STORE)) : windowQuery(op, q, timed(step)));
            } catch (final RuntimeException e) {
                all.addObject().put("error", e.getClass().getSimpleName());
            }
        }
        return all;
    }

    private JsonNode sessionQuery(final String op, final JsonNode q, final SessionStore<String, Object> s) {
        final String key = text(q, "key");
        final String kf = text(q, "key_from");
        final String kt = text(q, "key_to");
        final long from = q.path("from").asLong();
        final long to = q.path("to").asLong();
        return switch (op) {
            case "fetch" -> drain(s.fetch(key));
            case "backward_fetch" -> drain(s.backwardFetch(key));
            case "fetch_keys" -> drain(s.fetch(kf, kt));
            case "backward_fetch_keys" -> drain(s.backwardFetch(kf, kt));
            case "find_sessions" -> drain(s.findSessions(key, from, to));
            case "backward_find_sessions" -> drain(s.backwardFindSessions(key, from, to));
            case "find_sessions_keys" -> drain(s.findSessions(kf, kt, from, to));
            case "backward_find_sessions_keys" -> drain(s.backwardFindSessions(kf, kt, from, to));
            case "find_sessions_by_end" -> drain(s.findSessions(from, to));
            case "fetch_session" -> put(json.createObjectNode(), "value",
                    ((ReadOnlySessionStore<String, Object>) s).fetchSession(key, from, to));
            default -> throw new IllegalArgumentException("unknown query: " + op);
        };
    }

    private JsonNode windowQuery(final String op, final JsonNode q, final WindowStore<String, ValueAndTimestamp<Object>> s) {
        final String key = text(q, "key");
        final String kf = text(q, "key_from");
        final String kt = text(q, "key_to");
        final long from = q.path("from").asLong();
        final long to = q.path("to").asLong();
        return switch (op) {
            case "fetch" -> points(s.fetch(key, from, to));
            case "backward_fetch" -> points(s.backwardFetch(key, from, to));
            case "fetch_keys" -> drain(s.fetch(kf, kt, from, to));
            case "backward_fetch_keys" -> drain(s.backwardFetch(kf, kt, from, to));
            case "fetch_all" -> drain(s.fetchAll(from, to));
            case "backward_fetch_all" -> drain(s.backwardFetchAll(from, to));
            case "all" -> drain(s.all());
            case "backward_all" -> drain(s.backwardAll());
            case "fetch_one" -> put(json.createObjectNode(), "value", s.fetch(key, from));
            default -> throw new IllegalArgumentException("unknown query: " + op);
        };
    }

    private ArrayNode points(final WindowStoreIterator<ValueAndTimestamp<Object>> it) {
        final ArrayNode list = json.createArrayNode();
        try (it) {
            while (it.hasNext()) {
                final KeyValue<Long, ValueAndTimestamp<Object>> kv = it.next();
                put(list.addObject().put("window_start", kv.key), "value", kv.value);
            }
        }
        return list;
    }

    private static String text(final JsonNode q, final String field) {
        return q.hasNonNull(field) ? q.get(field).asText() : null;
    }

    /** Counters by "group/name"; of the latency and rate metrics, which move with the wall clock, the name only. */
    private ObjectNode metrics() {
        final Map<String, Double> totals = new TreeMap<>();
        for (final StepDriver step : drivers) {
            for (final Map.Entry<MetricName, ? extends Metric> e : step.driver.metrics().entrySet()) {
                final String name = e.getKey().name();
                if (name.startsWith("window-aggregate-final-emit") || name.contains("dropped") || name.contains("expired")) {
                    totals.merge(e.getKey().group() + "/" + name,
                            name.endsWith("-total") ? ((Number) e.getValue().metricValue()).doubleValue() : Double.NaN, Double::sum);
                }
            }
        }
        final ObjectNode node = json.createObjectNode();
        totals.forEach((name, value) -> {
            if (value.isNaN()) {
                node.putNull(name);
            } else {
                node.put(name, value.longValue());
            }
        });
        return node;
    }

    static void delete(final Path dir) throws IOException {
        if (Files.exists(dir)) {
            try (Stream<Path> paths = Files.walk(dir)) {
                for (final Path p : paths.sorted(Comparator.reverseOrder()).toList()) {
                    Files.deleteIfExists(p);
                }
            }
        }
    }
}
