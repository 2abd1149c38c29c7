package oracle;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.function.LongBinaryOperator;

/** count, sum, min, max, first, last and collect of a window, written as a JSON array in this order. */
final class BuiltIns {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** A null value counts and is collected, and leaves the others as they are. */
    static String add(final String before, final Long value) {
        final ArrayNode one = JSON.createArrayNode().add(1).add(value == null ? 0L : value);
        for (int i = 0; i < 4; i++) {
            one.add(value);
        }
        one.addArray().add(value);
        return merged(read(before), one);
    }

    static String merge(final String older, final String newer) {
        return merged(read(older), read(newer));
    }

    private static String merged(final JsonNode a, final JsonNode b) {
        final ArrayNode both = JSON.createArrayNode();
        both.add(a.get(0).asLong() + b.get(0).asLong()).add(a.get(1).asLong() + b.get(1).asLong());
        both.add(either(a.get(2), b.get(2), Math::min)).add(either(a.get(3), b.get(3), Math::max));
        both.add(either(a.get(4), b.get(4), (older, newer) -> older)).add(either(a.get(5), b.get(5), (older, newer) -> newer));
        both.addArray().addAll((ArrayNode) a.get(6)).addAll((ArrayNode) b.get(6));
        return both.toString();
    }

    private static Long either(final JsonNode a, final JsonNode b, final LongBinaryOperator both) {
        return a.isNull() ? b.isNull() ? null : Long.valueOf(b.asLong())
                : b.isNull() ? Long.valueOf(a.asLong()) : Long.valueOf(both.applyAsLong(a.asLong(), b.asLong()));
    }

    private static JsonNode read(final String written) {
        try {
            return JSON.readTree(written);
        } catch (final JsonProcessingException e) {
            throw new IllegalStateException(e);
        }
    }
}
