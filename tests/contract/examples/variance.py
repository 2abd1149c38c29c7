"""An aggregation of one's own that compiles, in one file: the population variance, by loops that are there already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.aggregations import Aggregation, Part, built_in


@built_in
def variance(column: str) -> Aggregation:
    """Population variance of the values that are not null; null where all are. The store holds three numbers.

    It is the mean of the squares less the square of the mean, both kept as sums of floats, so that windows merge and
    nothing but sums is needed. That loses digits where the mean is large beside the spread: values around 10**8 keep
    none behind the point, and equal ones may come to a little more or less than 0. Subtract a constant first.

    Example:
        >>> plan.aggregate(spread=variance("amount")).run(monday).table()["spread"].tolist()
        [0.0625, 0.0]
    """
    return Aggregation(
        code=f"variance({column!r})",
        columns=(column,),
        initializer=lambda: _sums(None),
        aggregator=lambda key, value, aggregate: _added(aggregate, _sums(value)),
        merger=lambda key, older, newer: _added(older, newer),
        result=_shown,
        built_in="variance",
        parts=(Part("count", "count_values"), Part("sum", "sum", _floats), Part("squares", "sum", _squares)),
        result_column=_shown_column,
        takes=lambda kind: pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind),
        wants="a column of numbers",
        module="variance",
    )


# ---- its meaning: what Kafka would call, record by record


def _sums(value: Any) -> dict[str, Any]:
    """One value as an aggregate."""
    if value is None:
        return {"count": 0, "sum": 0.0, "squares": 0.0}
    return {"count": 1, "sum": float(value), "squares": float(value) * float(value)}


def _added(older: dict[str, Any], newer: dict[str, Any]) -> dict[str, Any]:
    return {name: older[name] + newer[name] for name in older}


def _shown(aggregate: dict[str, Any]) -> float | None:
    count, total, squares = aggregate["count"], aggregate["sum"], aggregate["squares"]
    return (squares - total * total / count) / count if count else None


# ---- the same over columns: what the loops read, and what is shown of what they hold


def _floats(column: pa.Array) -> pa.Array:
    """The values as 64-bit floats, each the nearest of a large integer, as `float` has it."""
    return column.cast(pa.float64(), safe=False)


def _squares(column: pa.Array) -> pa.Array:
    return pc.multiply(_floats(column), _floats(column))


def _shown_column(parts: Sequence[pa.Array]) -> pa.Array:
    count, total, squares = _floats(parts[0]), parts[1], parts[2]
    spread = pc.divide(pc.subtract(squares, pc.divide(pc.multiply(total, total), count)), count)
    return pc.if_else(pc.equal(count, 0), pa.scalar(None, pa.float64()), spread)
