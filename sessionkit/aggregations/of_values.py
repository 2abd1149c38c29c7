"""Aggregations for which a window keeps its values: how many there are and which most often, where their middle is.

Kafka has none of these. The values are kept as a list, in a store too, so a window takes as much room as it has values;
an approximate one keeps a sketch instead, whose size is bounded.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.aggregations.built_ins import as_floats, is_number
from sessionkit.aggregations.contract import Aggregation, Part, built_in
from sessionkit.aggregations.list_columns import deviations, most_frequent, quantiles
from sessionkit.aggregations.rounded import joined, quantile_of, rounded_column, seen
from sessionkit.aggregations.sketches import check_library, hashable, how_many, united, without_units
from sessionkit.base.calls import called_as
from sessionkit.errors import InvalidArgument, problem, shorten

_PLAIN = "a column of texts, numbers, times or bytes"


@built_in
@called_as('sk.count_distinct("page")')
def count_distinct(column: str, *, approx: bool = False) -> Aggregation:
    """How many different values that are not null the window holds, exactly or nearly.

    The store holds each of them once. With `approx=True` it holds a sketch of at most 32 KiB a window (the extra
    `sketches`): the count is exact up to 4,096 different values, and beyond within 3.1 % in 95 of 100 windows (the
    standard error is 1.6 %). It is the same number in whatever order records arrive and sessions merge.

    Args:
        column: texts, numbers, times or bytes.
        approx: whether a nearly right count in a bounded size will do.
    Raises:
        InvalidArgument: `approx` is neither True nor False.
        SketchesUnavailable: `approx=True`, and the package `datasketches` is not installed.
    Example:
        >>> plan.aggregate(pages=sk.count_distinct("page")).run(monday).table()["pages"].tolist()
        [2, 1]
    """
    if _checked(approx, 'sk.count_distinct("page", approx=True)'):
        return approx_count_distinct(column)
    return Aggregation(
        code=f"count_distinct({column!r})",
        columns=(column,),
        initializer=list,
        aggregator=lambda key, value, aggregate: _with(aggregate, [value]),
        merger=lambda key, older, newer: _with(older, newer),
        result=len,
        built_in="count_distinct",
        parts=(Part("values", "distinct", _plain),),
        result_column=lambda parts: pc.list_value_length(parts[0]).cast(pa.int64()),
        takes=_is_plain,
        wants=_PLAIN,
    )


def _checked(approx: Any, example: str) -> bool:
    if not isinstance(approx, bool | np.bool_):
        what = "approx tells whether a result may be approximate"
        raise InvalidArgument(problem(what, shorten(repr(approx)), f"True or False, such as {example}"))
    return bool(approx)


def approx_count_distinct(column: str) -> Aggregation:
    """`count_distinct(column, approx=True)`, of a name of its own for exports, and of functions that can be pickled."""
    check_library()
    return Aggregation(
        code=f"count_distinct({column!r}, approx=True)",
        columns=(column,),
        initializer=partial(united, ()),
        aggregator=_seen,
        merger=_joined,
        result=how_many,
        built_in="approx_count_distinct",
        parts=(Part("sketch", "sketch", _without_units),),
        result_column=_how_many,
        takes=_is_plain,
        wants=_PLAIN,
    )


def _seen(key: Any, value: Any, sketch: bytes) -> bytes:
    return sketch if value is None else united([sketch], [hashable(value)])


def _joined(key: Any, older: bytes, newer: bytes) -> bytes:
    return united([older, newer])


def _how_many(parts: Sequence[pa.Array]) -> pa.Array:
    return pa.array(map(how_many, parts[0].to_pylist()), pa.int64())


def _without_units(column: pa.Array) -> pa.Array:
    return without_units(_plain(column))


def _with(held: list[Any], others: list[Any]) -> list[Any]:
    """The values and those of the others that are not among them, without nulls; NaN is one value, and so is 0.0."""
    values = list(held)
    for each in others:
        value = _without_sign(each)
        is_there = value in values or (value != value and any(other != other for other in values))
        if value is not None and not is_there:
            values.append(value)
    return values


def _without_sign(value: Any) -> Any:
    return value + 0.0 if isinstance(value, float) else value


def _is_plain(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_plain(kind.value_type)
    is_other = pa.types.is_nested(kind) or pa.types.is_union(kind) or pa.types.is_interval(kind)
    return not (is_other or pa.types.is_null(kind))


def _plain(column: pa.Array) -> pa.Array:
    """The values as Arrow finds equal ones: texts of their own, floats without -0.0."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _plain(column.cast(kind.value_type))
    if pa.types.is_floating(kind):
        return pc.add(column.cast(pa.float64()), 0.0)
    views = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    return column.cast(views[kind]) if kind in views else column


@built_in
@called_as('sk.top("page", 3)')
def top(column: str, n: int) -> Aggregation:
    """The `n` most frequent values that are not null as a list, the most frequent first, of equally frequent the least.

    In whatever order records arrive and sessions merge, the list is the same: texts go by the alphabet of Unicode, NaN
    comes last. It is shorter where there are fewer different values. Exact: the store holds all values.

    Args:
        column: texts, numbers, times or bytes.
        n: how many values, 1 or more.
    Raises:
        InvalidArgument: `n` is no such number.
    Example:
        >>> [list(pages) for pages in plan.aggregate(pages=sk.top("page", 1)).run(monday).table()["pages"]]
        [['home'], ['cart']]
    """
    given: Any = n
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < 1:
        want = 'a whole number from 1, such as sk.top("page", 3)'
        raise InvalidArgument(problem("top takes how many values to show", shorten(repr(given)), want))
    most = int(given)
    result, result_column = partial(_most_frequent, most=most), partial(most_frequent, most=most)
    return replace(
        _of_values("top", column, (most,), result, result_column),
        aggregator=lambda key, value, aggregate: aggregate if value is None else [*aggregate, _without_sign(value)],
        parts=(Part("values", "values", _plain),),
        takes=_is_plain,
        wants=_PLAIN,
    )


def _most_frequent(values: list[Any], most: int) -> list[Any]:
    known = Counter(value for value in values if value == value)
    ranked = [(-count, False, value) for value, count in known.items()]
    if unknown := len(values) - known.total():
        ranked.append((-unknown, True, math.nan))
    return [value for _, _, value in sorted(ranked)[:most]]


@built_in
@called_as('sk.median("amount")')
def median(column: str, *, approx: bool = False) -> Aggregation:
    """Middle of the values that are not null, of an even number the mean of the middle two; null where all are null.

    Exact: the store holds all values, as floats. With `approx=True` it holds them as `quantile` does then.

    Raises:
        InvalidArgument: `approx` is neither True nor False.
    Example:
        >>> plan.aggregate(typical=sk.median("amount")).run(monday).table()["typical"].tolist()
        [2.75, 4.0]
    """
    if _checked(approx, 'sk.median("amount", approx=True)'):
        return _of_counted("median", column, 0.5)
    return _of_values("median", column, (), partial(_quantile, q=0.5), partial(quantiles, q=0.5))


@built_in
@called_as('sk.quantile("amount", 0.95)')
def quantile(column: str, q: float, *, approx: bool = False) -> Aggregation:
    """The value below which this part of the values lies, between two values in proportion, as pandas has it.

    Nulls are ignored, and it is null where all are null. Exact: the store holds all values, as floats. With
    `approx=True` each value is rounded to seven binary digits, which changes it by 0.8 % at most (whole numbers up to
    128 not at all), and the store holds how often each of these is there: at most 64 between a number and its double,
    some 20 KiB a window for values from 1 to a million. It is the same number in whatever order records arrive and
    sessions merge.

    Args:
        column: numbers.
        q: the part, from 0 (the smallest value) to 1 (the largest).
        approx: whether values within 0.8 % in a bounded size will do.
    Raises:
        InvalidArgument: `q` is no such number, or `approx` is neither True nor False.
    Example:
        >>> plan.aggregate(most=sk.quantile("amount", 0.9)).run(monday).table()["most"].tolist()
        [2.95, 4.0]
    """
    given: Any = q
    if isinstance(given, bool) or not isinstance(given, int | float | np.number) or not 0 <= given <= 1:
        want = 'a number from 0 to 1, such as sk.quantile("amount", 0.95)'
        raise InvalidArgument(problem("a quantile is a part of all values", shorten(repr(given)), want))
    part = float(given)
    if _checked(approx, 'sk.quantile("amount", 0.95, approx=True)'):
        return _of_counted("quantile", column, part, part)
    return _of_values("quantile", column, (part,), partial(_quantile, q=part), partial(quantiles, q=part))


@built_in
@called_as('sk.std("amount")')
def std(column: str) -> Aggregation:
    """Standard deviation of the values that are not null, of a sample (divided by n - 1), as pandas has it.

    Null where there are fewer than two. No digit of large values is lost, as the store holds all values, as floats.

    Example:
        >>> plan.aggregate(spread=sk.std("amount")).run(monday).table()["spread"].tolist()
        [0.3535533905932738, nan]
    """
    return _of_values("std", column, (), _deviation, deviations)


def _of_values(
    name: str,
    column: str,
    settings: tuple[Any, ...],
    result: Callable[[list[Any]], Any],
    result_column: Callable[[pa.ListArray], pa.Array],
) -> Aggregation:
    """An aggregation that keeps all numbers that are not null, as floats."""
    return Aggregation(
        code=f"{name}({', '.join(map(repr, (column, *settings)))})",
        columns=(column,),
        settings=settings,
        initializer=list,
        aggregator=lambda key, value, aggregate: aggregate if value is None else [*aggregate, float(value)],
        merger=lambda key, older, newer: [*older, *newer],
        result=result,
        built_in=name,
        parts=(Part("values", "values", as_floats),),
        result_column=partial(_of_part, result_column=result_column),
        takes=is_number,
        wants="a column of numbers",
    )


def _of_part(parts: Sequence[pa.Array], result_column: Callable[[pa.ListArray], pa.Array]) -> pa.Array:
    return result_column(parts[0])


def _of_counted(name: str, column: str, q: float, *settings: float) -> Aggregation:
    """An aggregation that keeps all numbers that are not null rounded, each with how often it is there."""
    exact = _of_values(name, column, settings, partial(quantile_of, q=q), partial(quantiles, q=q))
    return replace(
        exact,
        code=f"{exact.code.removesuffix(')')}, approx=True)",
        aggregator=seen,
        merger=joined,
        built_in=f"approx_{name}",
        parts=(Part("values", "counted", rounded_column),),
    )


def _quantile(values: list[float], q: float) -> float | None:
    if not values or any(value != value for value in values):
        return math.nan if values else None
    ordered, place = sorted(values), q * (len(values) - 1)
    low = int(place)
    share = place - low
    return ordered[low] + (ordered[low + 1] - ordered[low]) * share if share else ordered[low]


def _deviation(values: list[float]) -> float | None:
    if len(values) < 2:
        return None
    mean = _total(values) / len(values)
    return math.sqrt(_total([(value - mean) * (value - mean) for value in values]) / (len(values) - 1))


def _total(values: list[float]) -> float:
    total = 0.0
    for value in values:  # sum() adds in another way
        total += value
    return total
