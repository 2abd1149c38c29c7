"""The aggregations that there are: for each its three functions, as in Kafka, and the compiled loops behind it."""

from __future__ import annotations

import builtins
import functools
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Context, Decimal, Inexact
from typing import Any

import numpy as np
import pyarrow as pa

from sessionkit.aggregations.accumulators import MOST_DIGITS, TOO_LONG, LoopName
from sessionkit.aggregations.contract import Aggregation, Aggregator, Initializer, Merger, Part, built_in
from sessionkit.base.arrays import Floats, Longs, arrow_array, numpy_array
from sessionkit.base.calls import called_as
from sessionkit.base.durations import INT64_MAX
from sessionkit.base.text import is_text
from sessionkit.errors import InvalidArgument, NumberOverflow, errors_as, problem, shorten
from sessionkit.records.inputs.plain_columns import can_be_taken


def _either(older: Any, newer: Any, function: Callable[[Any, Any], Any]) -> Any:
    """`function` of both values, or the one that is not null."""
    if older is None or newer is None:
        return newer if older is None else older
    return function(older, newer)


_EXACT = Context(prec=MOST_DIGITS, traps=[Inexact])


def _checked_sum(older: Any, newer: Any) -> Any:
    if isinstance(older, Decimal) or isinstance(newer, Decimal):
        with errors_as(NumberOverflow, f"a sum of decimals {TOO_LONG}", "cast the column to float", Inexact):
            return _EXACT.add(older, newer)
    total = older + newer
    if isinstance(total, int) and not -INT64_MAX - 1 <= total <= INT64_MAX:
        raise NumberOverflow(problem("an integer sum does not fit into 64 bits", total, "cast the column to float"))
    return total


def is_number(kind: pa.DataType) -> bool:
    """Whether sums and means can be made of values of this type."""
    is_plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    return is_plain or pa.types.is_decimal(kind)


def _is_ordered(kind: pa.DataType) -> bool:
    is_time = pa.types.is_temporal(kind) and not pa.types.is_interval(kind)
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) or is_time


@built_in
@called_as("sk.count(), which counts all records of a window, as sk.sum counts the true ones of a column of truths")
def count() -> Aggregation:
    """How many records the window holds, null values included (as Kafka's `count()`).

    Example:
        >>> sk.count()
        count()
    """
    return Aggregation(
        code="count()",
        columns=(),
        initializer=lambda: 0,
        aggregator=lambda key, value, aggregate: aggregate + 1,
        merger=lambda key, older, newer: older + newer,
        built_in="count",
        parts=(Part("count", "count"),),
    )


@built_in
@called_as('sk.sum("amount")')
def sum(column: str) -> Aggregation:
    """Sum of a column of numbers; null values are ignored, and a window with only nulls sums to 0.

    Integers are summed as int64 and decimals exactly, with up to 38 digits; more raise `NumberOverflow`. Floats are
    added in the order of arrival.

    Example:
        >>> plan.aggregate(spent=sk.sum("amount")).run(monday).table()["spent"].tolist()
        [5.5, 4.0]
    """
    return Aggregation(
        code=f"sum({column!r})",
        columns=(column,),
        initializer=lambda: 0,
        aggregator=lambda key, value, aggregate: aggregate if value is None else _checked_sum(aggregate, value),
        merger=lambda key, older, newer: _checked_sum(older, newer),
        built_in="sum",
        parts=(Part("sum", "sum"),),
        takes=is_number,
        wants="a column of numbers",
    )


@built_in
@called_as('sk.min("amount")')
def min(column: str) -> Aggregation:
    """Smallest value of a column of numbers or times; null where all values are null.

    Example:
        >>> plan.aggregate(cheapest=sk.min("amount")).run(monday).table()["cheapest"].tolist()
        [2.5, 4.0]
    """
    return one_of_the_values("min", column, builtins.min, _is_ordered, "a column of numbers or times")


@built_in
@called_as('sk.max("amount")')
def max(column: str) -> Aggregation:
    """Largest value of a column of numbers or times; null where all values are null.

    Example:
        >>> plan.aggregate(dearest=sk.max("amount")).run(monday).table()["dearest"].tolist()
        [3.0, 4.0]
    """
    return one_of_the_values("max", column, builtins.max, _is_ordered, "a column of numbers or times")


def one_of_the_values(
    name: LoopName, column: str, function: Callable[[Any, Any], Any], takes: Callable[[pa.DataType], bool], wants: str
) -> Aggregation:
    """An aggregation that keeps, of two values that are not null, the one that `function` returns."""
    return Aggregation(
        code=f"{name}({column!r})",
        columns=(column,),
        initializer=lambda: None,
        aggregator=lambda key, value, aggregate: _either(aggregate, value, function),
        merger=lambda key, older, newer: _either(older, newer, function),
        built_in=name,
        parts=(Part(name, name),),
        takes=takes,
        wants=wants,
    )


@built_in
@called_as('sk.mean("amount")')
def mean(column: str) -> Aggregation:
    """Mean of the values that are not null; null where all are. The store holds the sum and the count.

    Example:
        >>> plan.aggregate(typical=sk.mean("amount")).run(monday).table()["typical"].tolist()
        [2.75, 4.0]
    """
    return Aggregation(
        code=f"mean({column!r})",
        columns=(column,),
        initializer=lambda: {"sum": 0.0, "count": 0},
        aggregator=lambda key, value, aggregate: _add_means(aggregate, _mean_of(value)),
        merger=lambda key, older, newer: _add_means(older, newer),
        result=lambda aggregate: aggregate["sum"] / aggregate["count"] if aggregate["count"] else None,
        built_in="mean",
        parts=(Part("sum", "sum", as_floats), Part("count", "count_values")),
        result_column=lambda parts: _means(*map(numpy_array, parts)),
        takes=is_number,
        wants="a column of numbers",
    )


def _means(total: Floats, count: Longs) -> pa.Array:
    return arrow_array(np.divide(total, count, out=np.zeros(len(total)), where=count > 0), count == 0)


def as_floats(column: pa.Array) -> pa.Array:
    """The numbers as 64-bit floats, each the nearest of a large integer, as Python's addition has it."""
    return column.cast(pa.float64(), safe=False)


def _mean_of(value: Any) -> dict[str, Any]:
    return {"sum": 0.0, "count": 0} if value is None else {"sum": float(value), "count": 1}


def _add_means(older: dict[str, Any], newer: dict[str, Any]) -> dict[str, Any]:
    return {"sum": older["sum"] + newer["sum"], "count": older["count"] + newer["count"]}


@built_in
@called_as('sk.first("page")')
def first(column: str) -> Aggregation:
    """First value that is not null, in the order in which the window received its records (older session first).

    Example:
        >>> plan.aggregate(page=sk.first("page")).run(monday).table()["page"].tolist()
        ['home', 'cart']
    """
    return one_of_the_values("first", column, lambda older, newer: older, can_be_taken, "a column without unions")


@built_in
@called_as('sk.last("page")')
def last(column: str) -> Aggregation:
    """Last value that is not null, in the order in which the window received its records (older session first).

    Example:
        >>> plan.aggregate(page=sk.last("page")).run(monday).table()["page"].tolist()
        ['shop', 'cart']
    """
    return one_of_the_values("last", column, lambda older, newer: newer, can_be_taken, "a column without unions")


@built_in
@called_as('sk.collect("page")')
def collect(column: str) -> Aggregation:
    """All values as a list, nulls included, in the order in which the window received its records.

    Example:
        >>> [list(pages) for pages in plan.aggregate(pages=sk.collect("page")).run(monday).table()["pages"]]
        [['home', 'shop'], ['cart']]
    """
    return Aggregation(
        code=f"collect({column!r})",
        columns=(column,),
        initializer=lambda: [],
        aggregator=lambda key, value, aggregate: [*aggregate, value],
        merger=lambda key, older, newer: [*older, *newer],
        built_in="collect",
        parts=(Part("collect", "collect"),),
        takes=can_be_taken,
        wants="a column without unions",
    )


@called_as('sk.reduce(function, "page")')
def reduce(function: Callable[[Any, Any], Any], value: str | Sequence[str]) -> Aggregation:
    """The values combined one after another: the first as it is, then `function(aggregate, value)`.

    Two sessions merge as `function(older, newer)`. With several columns the value is a dict.

    Source:
        KStreamReduce, KIP-63.
    Example:
        >>> def join(older, newer):
        ...     return f"{older} > {newer}"
        >>> plan.reduce(join, "page").run(monday).table()["reduce"].tolist()
        ['home > shop', 'cart']
    """
    _check_functions({"function": function})
    if not value:
        want = 'the column whose values are combined, such as "word"'
        raise InvalidArgument(problem("reduce needs a value", repr(value), want))
    return Aggregation(
        code=f"reduce({_name(function)}, {value!r})",
        columns=_columns(value),
        initializer=type(None),
        aggregator=functools.partial(_reduced, function),
        merger=functools.partial(_merged, function),
    )


def _reduced(function: Callable[[Any, Any], Any], key: Any, new: Any, aggregate: Any) -> Any:
    return new if aggregate is None else function(aggregate, new)


def _merged(function: Callable[[Any, Any], Any], key: Any, older: Any, newer: Any) -> Any:
    return _either(older, newer, function)


@called_as("sk.aggregation(initializer=…, aggregator=…, merger=…)")
def aggregation(
    *, initializer: Initializer, aggregator: Aggregator, merger: Merger, value: str | Sequence[str] = ()
) -> Aggregation:
    """An aggregation of your own, from plain Python functions that return a new aggregate each time.

    Args:
        initializer: `initializer()` gives the aggregate of an empty window.
        aggregator: `aggregator(key, value, aggregate)` adds one record.
        merger: `merger(key, older, newer)` joins the aggregates of two sessions. As in Kafka it is called for every
            session that a record meets, starting from `initializer()`.
        value: the column that is passed as `value`; several names pass a dict; without a name None is passed.
    Example:
        >>> longest = sk.aggregation(
        ...     initializer=str,
        ...     aggregator=lambda key, value, aggregate: max(aggregate, value, key=len),
        ...     merger=lambda key, older, newer: max(older, newer, key=len),
        ...     value="word",
        ... )
    """
    functions = {"initializer": initializer, "aggregator": aggregator, "merger": merger}
    _check_functions(functions)
    names = ", ".join(f"{name}={_name(function)}" for name, function in functions.items())
    return Aggregation(
        code=f"aggregation({names}, value={value!r})",
        columns=_columns(value),
        initializer=initializer,
        aggregator=aggregator,
        merger=merger,
    )


def named_aggregations(given: Mapping[str, Any], taken_names: Collection[str]) -> dict[str, Aggregation]:
    """Aggregations that `Plan.aggregate` was given, checked, by name; one given by its parts is called "aggregate"."""
    if callable(given.get("initializer")):
        parts = list(inspect.signature(aggregation).parameters)
        for name in given:
            if name not in parts:
                want = f"{', '.join(parts)} alone; named ones beside it: name=sk.aggregation(…)"
                raise InvalidArgument(problem("one aggregation of your own has no such part", repr(name), want))
        if missing := [name for name in parts[:3] if name not in given]:
            raise InvalidArgument(problem("an aggregation of your own is incomplete", list(given), f"also {missing}"))
        given = {"aggregate": aggregation(**given)}
    for name, each in given.items():
        if not isinstance(each, Aggregation):
            want = f"{name}=sk.count(), sk.sum(column), sk.count_distinct(column), sk.reduce(function, column), …"
            raise InvalidArgument(problem(f"{name} must be an aggregation", repr(each), want))
        if not is_text(name):
            want = "valid Unicode, without lone surrogates"
            raise InvalidArgument(problem("this cannot be the name of a result", shorten(repr(name)), want))
        if name in taken_names:
            raise InvalidArgument(problem("this name is taken by a column of the results", repr(name), "another name"))
    return dict(given)


def _check_functions(functions: Mapping[str, object]) -> None:
    for name, function in functions.items():
        if not callable(function):
            got = shorten(repr(function))
            raise InvalidArgument(problem(f"{name} must be a function", got, "define it with def, or pass a lambda"))


def _columns(value: Any) -> tuple[str, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _name(function: object) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
