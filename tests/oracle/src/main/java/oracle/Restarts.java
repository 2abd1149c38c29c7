package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.producer.ProducerRecord;

/** When the tasks of a case are stopped and started again, and how; and what has been written to a store's changelog. */
final class Restarts {
    static final String DISK = "disk";
    static final String CHANGELOG = "changelog";
    static final String KILLED = "killed";

    private final TreeMap<Integer, String> kinds = new TreeMap<>(); // by the index of the record after which it happens

    Restarts(final JsonNode spec) {
        for (final JsonNode each : spec.path("restarts")) {
            kinds.put(each.isArray() ? each.get(0).asInt() : each.asInt(), each.isArray() ? each.get(1).asText() : DISK);
        }
    }

    /** Whether what a store has to be given back is in its changelog alone. */
    static boolean needChangelog(final JsonNode spec) {
        final Restarts restarts = new Restarts(spec);
        final boolean inMemory = !spec.get("store").asText().equals("rocksdb");
        return !restarts.kinds.isEmpty() && (inMemory || spec.has("suppress") || restarts.kinds.values().stream().anyMatch(kind -> !kind.equals(DISK)));
    }

    /** How the life ends that lasts now; null if the tasks run to the end of the case. */
    String next() {
        return kinds.isEmpty() ? null : kinds.firstEntry().getValue();
    }

    /** How the tasks are stopped after this record; null if they are not. Each restart happens once. */
    String after(final int record) {
        if (kinds.isEmpty() || kinds.firstKey() != record) {
            return null;
        }
        return kinds.pollFirstEntry().getValue();
    }

    /** The changelog of one partition's store, and how much of it the folder had when it was last closed in peace. */
    static final class Changelog {
        private final List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        private int kept = 0;

        /** Takes over what a life has written, which ends so. */
        void add(final List<ProducerRecord<byte[], byte[]>> written, final String kind) {
            records.addAll(written);
            if (!kind.equals(KILLED)) {
                kept = kind.equals(DISK) ? records.size() : 0;
            }
        }

        /** What the store of the next life, which says up to which offset it has everything, lacks. */
        List<ProducerRecord<byte[], byte[]>> after(final Map.Entry<Boolean, Long> held, final long retentionMs) {
            final boolean isEmpty = !held.getKey() || held.getValue() == null;
            return records.subList(isEmpty ? firstWithin(retentionMs) : kept, records.size());
        }

        /** Where a restore begins that knows no offset: as StoreChangelogReader.seekByRetentionFromPolledRecords. */
        private int firstWithin(final long retentionMs) {
            if (records.isEmpty() || retentionMs <= 0 || retentionMs == Long.MAX_VALUE) {
                return 0;
            }
            final long from = records.get(records.size() - 1).timestamp() - retentionMs;
            int first = 0;
            while (from > 0 && records.get(first).timestamp() < from) {
                first++;
            }
            return first;
        }
    }
}
