"""Aggregations by event time: the first and the last value of a window as things happened, not as they arrived."""

from __future__ import annotations

from typing import Any, Literal

import pyarrow as pa

from sessionkit.aggregations.contract import Aggregation, Part, built_in
from sessionkit.base.calls import called_as
from sessionkit.records.inputs.plain_columns import can_be_taken


@built_in
@called_as('sk.earliest("page")')
def earliest(column: str) -> Aggregation:
    """The value with the smallest event time that is not null, of equal times the one that arrived first.

    `first` is the one that arrived first, as Kafka folds records in the order of arrival. The store holds the value
    and its time. Kafka has no such aggregation, and exports refuse it.

    Example:
        >>> plan.aggregate(page=sk.earliest("page")).run(monday).table()["page"].tolist()
        ['home', 'cart']
    """
    return _by_time("earliest", column)


@built_in
@called_as('sk.latest("page")')
def latest(column: str) -> Aggregation:
    """The value with the largest event time that is not null, of equal times the one that arrived last.

    `last` is the one that arrived last, as Kafka folds records in the order of arrival. The store holds the value and
    its time. Kafka has no such aggregation, and exports refuse it.

    Example:
        >>> plan.aggregate(page=sk.latest("page")).run(monday).table()["page"].tolist()
        ['shop', 'cart']
    """
    return _by_time("latest", column)


def _by_time(name: Literal["earliest", "latest"], column: str) -> Aggregation:
    def better(held: dict[str, Any] | None, new: dict[str, Any] | None) -> dict[str, Any] | None:
        if held is None or new is None:
            return new if held is None else held
        is_new = new["at_ms"] >= held["at_ms"] if name == "latest" else new["at_ms"] < held["at_ms"]
        return new if is_new else held

    return Aggregation(
        code=f"{name}({column!r})",
        columns=(column,),
        initializer=lambda: None,
        aggregator=lambda key, value, aggregate: better(aggregate, value),
        merger=lambda key, older, newer: better(older, newer),
        result=lambda aggregate: None if aggregate is None else aggregate["value"],
        built_in=name,
        parts=(Part(name, name),),
        result_column=lambda parts: _values(parts[0]),
        takes=can_be_taken,
        wants="a column without unions",
        reads_time=True,
    )


def _values(timed: pa.StructArray) -> pa.Array:
    return timed.flatten()[0]
