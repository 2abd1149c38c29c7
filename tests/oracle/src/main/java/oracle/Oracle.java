package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Properties;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;

/**
 * java -jar oracle.jar [CASES [RESULTS]]: JSON lines in, JSON lines out; "-" or nothing is stdin/stdout; .gz is seen by name.
 * Every result is flushed at once, so that one process can be asked case after case. --partitions: see
 * {@link Partitions}; --exported: the lines are classes to compile and run, see {@link Exported}.
 */
public final class Oracle {
    public static void main(final String[] args) throws IOException {
        if (args.length > 0 && args[0].equals("--partitions")) {
            Partitions.run(new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)),
                    new PrintStream(System.out, true, StandardCharsets.UTF_8));
            return;
        }
        final boolean exported = args.length > 0 && args[0].equals("--exported");
        final String[] names = exported ? Arrays.copyOfRange(args, 1, args.length) : args;
        final Exported classes = exported ? new Exported() : null;
        final ObjectMapper json = new ObjectMapper();
        final String version = kafkaVersion();
        try (BufferedReader in = new BufferedReader(new InputStreamReader(input(names), StandardCharsets.UTF_8));
             OutputStream out = output(names)) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                if (!line.isBlank()) {
                    final JsonNode asked = json.readTree(line);
                    final ObjectNode result = exported ? classes.run(asked) : new CaseRunner().run(asked);
                    result.put("kafka_version", version);
                    out.write((json.writeValueAsString(result) + "\n").getBytes(StandardCharsets.UTF_8));
                    out.flush();
                }
            }
        }
    }

    /** What Kafka's client says of itself in its jar, which every version has; the class that reads it has moved with 4.4. */
    private static String kafkaVersion() throws IOException {
        try (InputStream file = Oracle.class.getResourceAsStream("/kafka/kafka-version.properties")) {
            final Properties written = new Properties();
            written.load(file);
            return written.getProperty("version");
        }
    }

    private static InputStream input(final String[] args) throws IOException {
        if (args.length < 1 || args[0].equals("-")) {
            return System.in;
        }
        final InputStream file = Files.newInputStream(Path.of(args[0]));
        return args[0].endsWith(".gz") ? new GZIPInputStream(file) : file;
    }

    private static OutputStream output(final String[] args) throws IOException {
        if (args.length < 2 || args[1].equals("-")) {
            return System.out;
        }
        final OutputStream file = Files.newOutputStream(Path.of(args[1]));
        return args[1].endsWith(".gz") ? new GZIPOutputStream(file) : file;
    }
}
