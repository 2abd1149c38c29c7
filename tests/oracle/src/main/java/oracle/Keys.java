package oracle;

import java.nio.ByteBuffer;
import java.util.Base64;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.Serializer;

/** What a case's keys, which are text in JSON, are in Kafka: text, 64-bit integers, or bytes that JSON has in base64. */
final class Keys {
    static Serde<String> of(final String kind) {
        return switch (kind) {
            case "text" -> Serdes.String();
            case "int" -> serde(
                    (topic, key) -> key == null ? null : ByteBuffer.allocate(8).putLong(Long.parseLong(key)).array(),
                    (topic, raw) -> raw == null ? null : String.valueOf(ByteBuffer.wrap(raw).getLong()));
            case "bytes" -> serde(
                    (topic, key) -> key == null ? null : Base64.getDecoder().decode(key),
                    (topic, raw) -> raw == null ? null : Base64.getEncoder().encodeToString(raw));
            default -> throw new IllegalArgumentException("unknown kind of keys: " + kind);
        };
    }

    private static Serde<String> serde(final Serializer<String> serializer, final Deserializer<String> deserializer) {
        return Serdes.serdeFrom(serializer, deserializer);
    }
}
