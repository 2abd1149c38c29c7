    /** The field of this name, else the one that its dots lead to, through objects and JSON in texts. */
    private static JsonNode column(final JsonNode row, final String name) {
        final JsonNode fields = row == null || !row.isTextual()
                ? row : parsed(row.textValue().getBytes(StandardCharsets.UTF_8));
        for (int end = name.length(); fields != null && end >= 0; end = name.lastIndexOf('.', end - 1)) {
            final JsonNode value = fields.get(name.substring(0, end));
            if (value != null) {
                return end == name.length() ? value : column(value, name.substring(end + 1));
            }
        }
        return NullNode.getInstance();
    }
