"""The oracle's aggregations beyond the plain ones, as Python functions equal to those in Aggregations.java."""

from collections.abc import Callable

import sessionkit as sk
from sessionkit.aggregations.contract import Aggregation

PRIME = 1_000_003


def _reduce(older: int, newer: int | None) -> int:
    return (31 * older + (7 if newer is None else newer)) % PRIME


def _fade(value: int | None, aggregate: int | None) -> int | None:
    if value is None:
        return aggregate
    return None if value % 5 == 0 else (aggregate or 0) + value


def _fade_together(older: int | None, newer: int | None) -> int | None:
    total = (older or 0) + (newer or 0)
    return None if total % 7 == 0 else total


def reduce() -> Aggregation:
    """Kafka's own reduce() with a reducer that shows order and grouping, and null values, which Kafka hands over."""
    return sk.reduce(_reduce, "value")


def seeded() -> Aggregation:
    """A sum whose initializer is not neutral: hundreds count initializers, thousands count mergers."""
    return sk.aggregation(
        initializer=lambda: 100,
        aggregator=lambda key, value, aggregate: aggregate if value is None else aggregate + value,
        merger=lambda key, older, newer: older + newer + 1000,
        value="value",
    )


def fading() -> Aggregation:
    """A sum that becomes null: in the aggregator at a value divisible by 5, in the merger at a sum divisible by 7."""
    return sk.aggregation(
        initializer=lambda: 0,
        aggregator=lambda key, value, aggregate: _fade(value, aggregate),
        merger=lambda key, older, newer: _fade_together(older, newer),
        value="value",
    )


AGGREGATIONS: dict[str, Callable[[], Aggregation]] = {"reduce": reduce, "seeded": seeded, "fading": fading}
