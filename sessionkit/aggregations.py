"""What a window computes: the three functions of Kafka, and for every built-in the compiled accumulators behind it."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.durations import INT64_MAX
from sessionkit.errors import InvalidArgument, NumberOverflow, UnsupportedData, problem
from sessionkit.plain_columns import can_be_taken
from sessionkit.text import is_text, shorten

Initializer = Callable[[], Any]
Aggregator = Callable[[Any, Any, Any], Any]
Merger = Callable[[Any, Any, Any], Any]
BUILT_INS: dict[str, Callable[..., Aggregation]] = {}


@dataclass(frozen=True, eq=False)
class Aggregation:
    """One named result of a window; two are equal when their code and their functions are.

    `initializer()`, `aggregator(key, value, aggregate)` and `merger(key, older, newer)` are its meaning, and what the
    processor calls. `accumulators` names the compiled loops that compute the same (none: Python functions only).
    """

    code: str
    columns: tuple[str, ...]
    initializer: Initializer
    aggregator: Aggregator
    merger: Merger
    accumulators: tuple[str, ...] = ()
    result: Callable[[Any], Any] = field(default=lambda aggregate: aggregate)
    result_columns: Callable[[Sequence[pa.Array]], pa.Array] = field(default=lambda parts: parts[0])
    result_type: Callable[[Sequence[pa.DataType]], pa.DataType | None] = field(default=lambda types: None)
    takes: Callable[[pa.DataType], bool] = field(default=lambda kind: True)
    wants: str = ""

    def __post_init__(self) -> None:
        columns: tuple[object, ...] = self.columns
        for column in columns:
            if not isinstance(column, str):
                want = 'a text, such as sk.sum("amount")'
                raise InvalidArgument(problem("an aggregation names its columns", shorten(repr(column)), want))
            if not is_text(column):
                want = "valid Unicode, without lone surrogates"
                raise InvalidArgument(problem("this cannot name a column", shorten(repr(column)), want))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Aggregation) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[Any, ...]:
        """The code says all of a built-in, whose functions are made anew with every call."""
        functions = () if self.accumulators else (self.initializer, self.aggregator, self.merger)
        return (self.code, self.columns, self.accumulators, *functions)

    def __repr__(self) -> str:
        return self.code

    def check_types(self, types: Sequence[pa.DataType]) -> None:
        """Refuses a column that the built-in cannot work on.

        Raises:
            UnsupportedData: with the type that it has and those that would do.
        """
        for column, kind in zip(self.columns, types, strict=True):
            if self.accumulators and isinstance(kind, pa.BaseExtensionType):  # Python objects, above all
                want = "a column of plain values; sk.reduce and sk.aggregation take any"
                got = getattr(kind, "type_name", kind)
                raise UnsupportedData(problem(f"{self.code} cannot use column {column!r}", got, want))
            if not (self.takes(kind) or pa.types.is_null(kind)):
                raise UnsupportedData(problem(f"{self.code} cannot use column {column!r}", kind, self.wants))


def value_columns(named: Sequence[tuple[str, Aggregation]]) -> tuple[str, ...]:
    """The columns that these aggregations read, each once."""
    return tuple(dict.fromkeys(column for _, each in named for column in each.columns))


def built_in(function: Callable[..., Aggregation]) -> Callable[..., Aggregation]:
    """Registers a built-in aggregation under its name."""
    BUILT_INS[function.__name__] = function
    return function


def _skip_null(function: Callable[[Any, Any], Any]) -> Aggregator:
    """An aggregator that leaves the aggregate as it is where the value is null, and starts from the first value."""
    return lambda key, value, aggregate: _either(aggregate, value, function)


def _either(older: Any, newer: Any, function: Callable[[Any, Any], Any]) -> Any:
    if older is None or newer is None:
        return newer if older is None else older
    return function(older, newer)


def _checked_sum(older: Any, newer: Any) -> Any:
    total = older + newer
    if isinstance(total, int) and not -INT64_MAX - 1 <= total <= INT64_MAX:
        raise NumberOverflow(problem("an integer sum does not fit into 64 bits", total, "cast the column to float"))
    return total


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)


def _is_ordered(kind: pa.DataType) -> bool:
    is_time = pa.types.is_temporal(kind) and not pa.types.is_interval(kind)
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or is_time


def _sum_type(types: Sequence[pa.DataType]) -> pa.DataType:
    return pa.float64() if pa.types.is_floating(types[0]) else pa.int64()


@built_in
def count() -> Aggregation:
    """How many records the window holds, null values included (as Kafka's `count()`).

    Example:
        >>> sk.count()
        count()
    """
    return Aggregation(
        "count()",
        (),
        lambda: 0,
        lambda key, value, aggregate: aggregate + 1,
        lambda key, older, newer: older + newer,
        ("count",),
        result_type=lambda types: pa.int64(),
    )


@built_in
def sum(column: str) -> Aggregation:
    """Sum of a column of numbers; null values leave it as it is, a window of nulls sums to 0.

    Integers are summed as int64 and an overflow raises `NumberOverflow`; floats are added in the order of arrival.

    Example:
        >>> plan.aggregate(spent=sk.sum("amount")).run(monday).table()["spent"].tolist()
        [5.5, 4.0]
    """
    return Aggregation(
        f"sum({column!r})",
        (column,),
        lambda: 0,
        lambda key, value, aggregate: aggregate if value is None else _checked_sum(aggregate, value),
        lambda key, older, newer: _checked_sum(older, newer),
        ("sum",),
        result_type=_sum_type,
        takes=_is_number,
        wants="a column of numbers",
    )


@built_in
def min(column: str) -> Aggregation:
    """Smallest value of a column of numbers or times; null where all values are null.

    Example:
        >>> plan.aggregate(cheapest=sk.min("amount")).run(monday).table()["cheapest"].tolist()
        [2.5, 4.0]
    """
    return _extreme("min", builtins.min, column)


@built_in
def max(column: str) -> Aggregation:
    """Largest value of a column of numbers or times; null where all values are null.

    Example:
        >>> plan.aggregate(dearest=sk.max("amount")).run(monday).table()["dearest"].tolist()
        [3.0, 4.0]
    """
    return _extreme("max", builtins.max, column)


def _extreme(name: str, function: Callable[[Any, Any], Any], column: str) -> Aggregation:
    return Aggregation(
        f"{name}({column!r})",
        (column,),
        lambda: None,
        _skip_null(function),
        lambda key, older, newer: _either(older, newer, function),
        (name,),
        result_type=lambda types: types[0],
        takes=_is_ordered,
        wants="a column of numbers or times",
    )


@built_in
def mean(column: str) -> Aggregation:
    """Mean of the values that are not null; null where all are. The store holds the sum and the count.

    Example:
        >>> plan.aggregate(typical=sk.mean("amount")).run(monday).table()["typical"].tolist()
        [2.75, 4.0]
    """
    return Aggregation(
        f"mean({column!r})",
        (column,),
        lambda: {"sum": 0.0, "count": 0},
        lambda key, value, aggregate: _add_means(aggregate, _mean_of(value)),
        lambda key, older, newer: _add_means(older, newer),
        ("float_sum", "count_values"),
        result=lambda aggregate: aggregate["sum"] / aggregate["count"] if aggregate["count"] else None,
        result_columns=lambda parts: pc.if_else(
            pc.equal(parts[1], 0), pa.scalar(None, pa.float64()), pc.divide(parts[0], parts[1].cast(pa.float64()))
        ),
        result_type=lambda types: pa.float64(),
        takes=_is_number,
        wants="a column of numbers",
    )


def _mean_of(value: Any) -> dict[str, Any]:
    return {"sum": 0.0, "count": 0} if value is None else {"sum": float(value), "count": 1}


def _add_means(older: dict[str, Any], newer: dict[str, Any]) -> dict[str, Any]:
    return {"sum": older["sum"] + newer["sum"], "count": older["count"] + newer["count"]}


@built_in
def first(column: str) -> Aggregation:
    """First value that is not null, in the order in which the window took its records (older session first).

    Example:
        >>> plan.aggregate(page=sk.first("page")).run(monday).table()["page"].tolist()
        ['home', 'cart']
    """
    return _positional("first", column, lambda older, newer: older)


@built_in
def last(column: str) -> Aggregation:
    """Last value that is not null, in the order in which the window took its records (older session first).

    Example:
        >>> plan.aggregate(page=sk.last("page")).run(monday).table()["page"].tolist()
        ['shop', 'cart']
    """
    return _positional("last", column, lambda older, newer: newer)


def _positional(name: str, column: str, function: Callable[[Any, Any], Any]) -> Aggregation:
    return Aggregation(
        f"{name}({column!r})",
        (column,),
        lambda: None,
        _skip_null(function),
        lambda key, older, newer: _either(older, newer, function),
        (name,),
        result_type=lambda types: types[0],
        takes=can_be_taken,
        wants="a column without unions",
    )


@built_in
def collect(column: str) -> Aggregation:
    """All values as a list, nulls included, in the order in which the window took its records.

    Example:
        >>> [list(pages) for pages in plan.aggregate(pages=sk.collect("page")).run(monday).table()["pages"]]
        [['home', 'shop'], ['cart']]
    """
    return Aggregation(
        f"collect({column!r})",
        (column,),
        lambda: [],
        lambda key, value, aggregate: [*aggregate, value],
        lambda key, older, newer: [*older, *newer],
        ("collect",),
        result_type=lambda types: pa.list_(types[0]),
        takes=can_be_taken,
        wants="a column without unions",
    )


def reduce(function: Callable[[Any, Any], Any], value: str | Sequence[str]) -> Aggregation:
    """The values combined pairwise: the first as it is, then `function(aggregate, value)`.

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
        f"reduce({_name(function)}, {value!r})",
        _columns(value),
        lambda: None,
        lambda key, new, aggregate: new if aggregate is None else function(aggregate, new),
        lambda key, older, newer: _either(older, newer, function),
    )


def aggregation(
    *, initializer: Initializer, aggregator: Aggregator, merger: Merger, value: str | Sequence[str] = ()
) -> Aggregation:
    """An aggregation of your own, from plain Python functions that return a new aggregate each time.

    Args:
        initializer: `initializer()` gives the aggregate of an empty window.
        aggregator: `aggregator(key, value, aggregate)` takes one record in.
        merger: `merger(key, older, newer)` joins the aggregates of two sessions. As in Kafka it is called for every
            session that a record meets, starting from `initializer()`.
        value: the column handed over as `value`; several names hand over a dict; none hands over None.
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
    return Aggregation(f"aggregation({names}, value={value!r})", _columns(value), initializer, aggregator, merger)


def _check_functions(functions: Mapping[str, object]) -> None:
    for name, function in functions.items():
        if not callable(function):
            got = shorten(repr(function))
            raise InvalidArgument(problem(f"{name} must be a function", got, "def it, or pass a lambda"))


def _columns(value: Any) -> tuple[str, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _name(function: object) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
