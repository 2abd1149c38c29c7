    private static final ObjectMapper JSON = JsonMapper.builder()
            .enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS) // a sum can be NaN or infinite
            .disable(JsonWriteFeature.WRITE_NAN_AS_STRINGS)
            .build();
    private static final Serde<JsonNode> ROWS =
            Serdes.serdeFrom((topic, row) -> written(row), (topic, bytes) -> parsed(bytes));
