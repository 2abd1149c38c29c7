    /** Runs until it is stopped; the first argument names the brokers. */
    public static void main(final String[] args) {
        final Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, OUTPUT + "-by-sessionkit");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args.length > 0 ? args[0] : "localhost:9092");
        final KafkaStreams streams = new KafkaStreams(topology(), settings);
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
    }

    private static byte[] written(final JsonNode row) {
        try {
            return row == null ? null : JSON.writeValueAsBytes(row);
        } catch (final IOException e) {
            throw new SerializationException(e);
        }
    }

    private static JsonNode parsed(final byte[] bytes) {
        try {
            return bytes == null ? null : JSON.readTree(bytes);
        } catch (final IOException e) {
            throw new SerializationException(e);
        }
    }

    private static JsonNode checked(final boolean fits, final JsonNode value, final String name, final String type) {
        if (!fits && !value.isNull()) {
            throw new SerializationException("column " + name + " must be " + type + "; got " + value);
        }
        return value;
    }

    private static long milliseconds(final JsonNode time) {
        try {
            return time.isTextual() ? OffsetDateTime.parse(time.textValue()).toInstant().toEpochMilli() : -1;
        } catch (final DateTimeException e) {
            return -1; // no time of ISO 8601 with an offset
        }
    }

    private static long refused(final JsonNode time) {
        throw new SerializationException("no event time from 1970 on: " + time);
    }

    private static JsonNode column(final JsonNode row, final String name) {
        final JsonNode value = row == null ? null : row.get(name);
        return value == null ? NullNode.getInstance() : value;
    }
