"""Aggregations by event time: the first and the last value of a window as things happened, not as they arrived."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from sessionkit.aggregations.built_ins import one_of_the_values
from sessionkit.aggregations.contract import Aggregation, built_in
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
    def chosen(held: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
        is_new = new["at_ms"] >= held["at_ms"] if name == "latest" else new["at_ms"] < held["at_ms"]
        return new if is_new else held

    return replace(
        one_of_the_values(name, column, chosen, can_be_taken, "a column without unions"),
        result=lambda aggregate: None if aggregate is None else aggregate["value"],
        result_column=lambda parts: parts[0].flatten()[0],
        reads_time=True,
    )
