package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.StringWriter;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.List;
import java.util.Properties;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TestOutputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.test.TestRecord;

/** Compiles a class that sessionkit wrote and runs its topology: bytes in, bytes out. */
final class Exported {
    private final ObjectMapper json = new ObjectMapper();
    private final JavaCompiler compiler = compiler();
    // kept for all classes: it has read the list of what is in each jar
    private final StandardJavaFileManager files = compiler.getStandardFileManager(null, null, null);

    private static JavaCompiler compiler() {
        final JavaCompiler found = ToolProvider.getSystemJavaCompiler();
        if (found == null) {
            throw new IllegalStateException("a Java without a compiler; a JDK is needed");
        }
        return found;
    }

    /** One class and its records; what it sent after each record, or what the compiler or a record brought up. */
    ObjectNode run(final JsonNode job) throws IOException {
        final ObjectNode result = json.createObjectNode();
        result.set("id", job.get("id"));
        final Path folder = Files.createTempDirectory("exported");
        try {
            final String name = job.get("class_name").asText();
            final String complaints = compile(folder, name, job.get("source").asText());
            result.put("compiler", complaints);
            if (Files.exists(folder.resolve(name + ".class"))) {
                try (URLClassLoader loader = new URLClassLoader(new URL[] {folder.toUri().toURL()})) {
                    drive(Class.forName(name, true, loader), folder, job.get("records"), result);
                }
            }
        } catch (final ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        } finally {
            CaseRunner.delete(folder);
        }
        return result;
    }

    private String compile(final Path folder, final String name, final String source) throws IOException {
        final Path file = Files.writeString(folder.resolve(name + ".java"), source);
        final StringWriter said = new StringWriter();
        final List<String> options = List.of("-proc:none", "-Xlint:all,-classfile", "-encoding", "US-ASCII",
                "-d", folder.toString(), "-cp", System.getProperty("java.class.path"));
        compiler.getTask(said, files, null, options, null, files.getJavaFileObjects(file)).call();
        return said.toString();
    }

    private void drive(final Class<?> written, final Path folder, final JsonNode records, final ObjectNode result)
            throws ReflectiveOperationException {
        final Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "exported");
        settings.put(StreamsConfig.STATE_DIR_CONFIG, folder.toString());
        settings.put(StreamsConfig.ROCKSDB_CONFIG_SETTER_CLASS_CONFIG, LightRocksDb.class);
        final ArrayNode sent = result.putArray("sent");
        final Topology topology = (Topology) written.getMethod("topology").invoke(null);
        try (TopologyTestDriver driver = new TopologyTestDriver(topology, settings)) {
            final TestInputTopic<byte[], byte[]> input = driver.createInputTopic(
                    (String) written.getField("INPUT").get(null), new ByteArraySerializer(), new ByteArraySerializer());
            final TestOutputTopic<byte[], byte[]> output = driver.createOutputTopic(
                    (String) written.getField("OUTPUT").get(null), new ByteArrayDeserializer(), new ByteArrayDeserializer());
            for (final JsonNode r : records) {
                final long timestamp = r.path("timestamp").asLong(0);
                input.pipeInput(new TestRecord<>(bytes(r.get("key")), bytes(r.get("value")), new RecordHeaders(), timestamp));
                final ArrayNode now = sent.addArray();
                for (final TestRecord<byte[], byte[]> out : output.readRecordsToList()) {
                    now.addObject().put("key", out.key()).put("value", out.value()).put("timestamp", out.timestamp());
                }
            }
        } catch (final RuntimeException e) {
            Throwable root = e;
            while (root.getCause() != null) {
                root = root.getCause();
            }
            result.put("error", root.getClass().getSimpleName() + ": " + root.getMessage());
        }
    }

    private static byte[] bytes(final JsonNode base64) {
        return base64.isNull() ? null : Base64.getDecoder().decode(base64.asText());
    }
}
