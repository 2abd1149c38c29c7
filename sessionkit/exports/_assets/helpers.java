    private static JsonNode bigint(final JsonNode row, final String name) {
        final JsonNode value = column(row, name);
        return checked(value.isIntegralNumber() && value.canConvertToLong(), value, name, "an integer of 64 bits");
    }

    private static JsonNode number(final JsonNode row, final String name) {
        final JsonNode value = checked(column(row, name).isNumber(), column(row, name), name, "a number");
        return value.isNull() ? value : DoubleNode.valueOf(value.doubleValue());
    }

    private static JsonNode string(final JsonNode row, final String name) {
        return checked(column(row, name).isTextual(), column(row, name), name, "text");
    }

    private static JsonNode bool(final JsonNode row, final String name) {
        return checked(column(row, name).isBoolean(), column(row, name), name, "true or false");
    }

    private static JsonNode zeroOrOne(final JsonNode row, final String name) {
        final JsonNode value = bool(row, name);
        return value.isNull() ? value : LongNode.valueOf(value.booleanValue() ? 1 : 0);
    }

    private static JsonNode asDouble(final JsonNode value) {
        return value.isNull() ? value : DoubleNode.valueOf(value.doubleValue());
    }

    private static JsonNode one(final JsonNode value) {
        return LongNode.valueOf(value.isNull() ? 0 : 1);
    }

    private static JsonNode total(final JsonNode older, final JsonNode newer) {
        if (newer.isNull()) {
            return older;
        }
        return older.isIntegralNumber() && newer.isIntegralNumber()
                ? LongNode.valueOf(Math.addExact(older.longValue(), newer.longValue()))
                : DoubleNode.valueOf(older.doubleValue() + newer.doubleValue());
    }

    private static JsonNode least(final JsonNode older, final JsonNode newer) {
        return older.isNull() || (!newer.isNull() && isLess(newer, older)) ? newer : older;
    }

    private static JsonNode greatest(final JsonNode older, final JsonNode newer) {
        return older.isNull() || (!newer.isNull() && isLess(older, newer)) ? newer : older;
    }

    private static boolean isLess(final JsonNode one, final JsonNode other) {
        return one.isIntegralNumber() && other.isIntegralNumber()
                ? one.longValue() < other.longValue() : one.doubleValue() < other.doubleValue();
    }

    private static JsonNode earliest(final JsonNode older, final JsonNode newer) {
        return older.isNull() ? newer : older;
    }

    private static JsonNode latest(final JsonNode older, final JsonNode newer) {
        return newer.isNull() ? older : newer;
    }

    private static JsonNode listed(final JsonNode value) {
        return JSON.createArrayNode().add(value);
    }

    private static JsonNode joined(final JsonNode older, final JsonNode newer) {
        final ArrayNode all = JSON.createArrayNode();
        older.forEach(all::add);
        newer.forEach(all::add);
        return all;
    }

    private static JsonNode mean(final JsonNode sum, final JsonNode count) {
        return count.longValue() == 0
                ? NullNode.getInstance() : DoubleNode.valueOf(sum.doubleValue() / count.longValue());
    }

    /** A window in which every result is null is taken out of the store, as by every aggregator that returns null. */
    private static JsonNode orNull(final JsonNode aggregate) {
        for (final JsonNode value : aggregate) {
            if (!value.isNull()) {
                return aggregate;
            }
        }
        return null;
    }
