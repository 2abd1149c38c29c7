package oracle;

import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.kstream.Aggregator;
import org.apache.kafka.streams.kstream.Initializer;
import org.apache.kafka.streams.kstream.Merger;

/**
 * The aggregations that a case can name. "count" and "reduce" are not here: they use the DSL's own count() and reduce().
 * A null input value leaves sum, min, max, seeded and fading as they are; "collect" writes it as the word null.
 */
record Aggregations<A>(Initializer<A> init, Aggregator<String, Long, A> add, Merger<String, A> merge, Serde<A> serde) {

    static Aggregations<?> named(final String name) {
        return switch (name) {
            case "sum" -> new Aggregations<Long>(() -> 0L, (k, v, a) -> v == null ? a : a + v,
                    (k, a, b) -> a + b, Serdes.Long());
            // min and max start from null: the aggregate of a window that holds only null values is null
            case "min" -> new Aggregations<Long>(() -> null, (k, v, a) -> least(a, v),
                    (k, a, b) -> least(a, b), Serdes.Long());
            case "max" -> new Aggregations<Long>(() -> null, (k, v, a) -> greatest(a, v),
                    (k, a, b) -> greatest(a, b), Serdes.Long());
            case "collect" -> new Aggregations<String>(() -> "", (k, v, a) -> join(a, String.valueOf(v)),
                    (k, a, b) -> join(a, b), Serdes.String());
            // count, sum, min, max, first, last and collect in one, as a JSON array; sessionkit has them built in
            case "all_built_ins" -> new Aggregations<String>(() -> "[0,0,null,null,null,null,[]]", (k, v, a) -> BuiltIns.add(a, v),
                    (k, a, b) -> BuiltIns.merge(a, b), Serdes.String());
            // not neutral: the hundreds count the calls of the initializer, the thousands those of the merger
            case "seeded" -> new Aggregations<Long>(() -> 100L, (k, v, a) -> v == null ? a : a + v,
                    (k, a, b) -> a + b + 1000, Serdes.Long());
            // both functions can give null: the aggregator deletes the window, the merger hands null to what is called next
            case "fading" -> new Aggregations<Long>(() -> 0L,
                    (k, v, a) -> v == null ? a : v % 5 == 0 ? null : Long.valueOf(orZero(a) + v),
                    (k, a, b) -> (orZero(a) + orZero(b)) % 7 == 0 ? null : Long.valueOf(orZero(a) + orZero(b)), Serdes.Long());
            default -> throw new IllegalArgumentException("unknown aggregation: " + name);
        };
    }

    /** The reducer of "reduce": order and grouping show, and so does a null value, which Kafka hands over like any other. */
    static Long reduce(final Long older, final Long newer) {
        return Math.floorMod(31 * older + (newer == null ? 7 : newer), 1_000_003L);
    }

    private static long orZero(final Long a) {
        return a == null ? 0 : a;
    }

    private static Long least(final Long a, final Long b) {
        return a == null ? b : b == null ? a : Long.valueOf(Math.min(a, b));
    }

    private static Long greatest(final Long a, final Long b) {
        return a == null ? b : b == null ? a : Long.valueOf(Math.max(a, b));
    }

    private static String join(final String a, final String b) {
        return a.isEmpty() ? b : b.isEmpty() ? a : a + "," + b;
    }
}
