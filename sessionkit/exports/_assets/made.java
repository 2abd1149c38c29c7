    /** From INPUT to OUTPUT: the key of a result is the windowed key, its value a JSON object; null withdraws it. */
    public static Topology topology() {
        final StreamsBuilder builder = new StreamsBuilder();
        builder.stream(INPUT, Consumed.with(KEYS, ROWS)$extractor)$empty
                .groupByKey()
                .windowedBy($windows)
                .emitStrategy(EmitStrategy.$emit())
                .aggregate($name::start, $name::add$merger,
                        Materialized.<$key, JsonNode, $store<Bytes, byte[]>>as("windows")
                                .withKeySerde(KEYS)
                                .withValueSerde(ROWS)
                                .withStoreType(BuiltInDslStoreSuppliers.$kind)
                                .withRetention($retention)
                                .withCachingDisabled())$suppress
                .toStream()$made
                .to(OUTPUT, Produced.with(new WindowedSerdes.$serde, ROWS));
        return builder.build();
    }

    /** The event time in a record's value, in milliseconds. */
    static long eventTime(final ConsumerRecord<Object, Object> record, final long partitionTime) {
        final JsonNode time = column((JsonNode) record.value(), $column);
        final long ms = milliseconds(time);
        return ms >= 0 ? ms : $without
    }

    private static long milliseconds(final JsonNode time) {
        return time.isIntegralNumber() && time.canConvertToLong() ? $scaled : -1;
    }

    /** The aggregate of an empty window. */
    static JsonNode start() {
        final ObjectNode aggregate = JSON.createObjectNode();
$lines
        return aggregate;
    }

    /** The aggregate with one more record. */
    static JsonNode add(final $key key, final JsonNode row, final JsonNode before) {
        final ObjectNode after = JSON.createObjectNode();
$lines
        return $after;
    }

    /** The aggregates of two sessions as one. */
    static JsonNode merge(final $key key, final JsonNode older, final JsonNode newer) {
        final ObjectNode after = JSON.createObjectNode();
$lines
        return after;
    }

    /** What is sent for an aggregate. */
    static JsonNode result(final JsonNode aggregate) {
        if (aggregate == null) {
            return null;
        }
        final ObjectNode row = JSON.createObjectNode();
$lines
        return row;
    }
