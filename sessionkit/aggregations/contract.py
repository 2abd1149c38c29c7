"""What an aggregation is: all that the folds, the engine, Spark and the exports need to know of one.

Its meaning are three functions, as in Kafka. One that compiles names its parts as well: existing loops, each over what
is made of the column first, which together compute the same. `@built_in` registers the function that makes it.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from sessionkit.aggregations.accumulators import LOOPS, LoopName
from sessionkit.base.text import is_text, literal, one_of, way_of_marks, way_to_number
from sessionkit.errors import InvalidArgument, UnsupportedData, problem, shorten
from sessionkit.records.time_text import is_text_type, some_of, way_to_times

Initializer = Callable[[], Any]
Aggregator = Callable[[Any, Any, Any], Any]
Merger = Callable[[Any, Any, Any], Any]
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
F = TypeVar("F", bound="Callable[..., Aggregation]")

BUILT_INS: dict[str, Callable[..., Aggregation]] = {}


def _as_it_is(value: Any) -> Any:
    return value


def _any_type(kind: pa.DataType) -> bool:
    return True


@dataclass(frozen=True)
class Part:
    """One number, or one list, that a compiled loop keeps for each window.

    Args:
        name: what a store calls it, where an aggregation has several parts; a single one is stored as it is.
        loop: "count" (records), "count_values", "sum", "min", "max", "first" and "last" (all of values that are not
            null), "earliest" and "latest" (of values with their times), "collect" (all values), "values" (all that are
            not null), "distinct" (each of these once), "counted" (each float with how often it is there) or "sketch"
            (by which different values are counted, see `sketches.py`).
        column: what is made of the column before the loop reads it, such as floats of integers.
    Raises:
        InvalidArgument: there is no such loop.
    Example:
        >>> from sessionkit.aggregations import Part
        >>> Part("how many", "count_values").loop
        'count_values'
    """

    name: str
    loop: LoopName
    column: Callable[[pa.Array], pa.Array] = _as_it_is

    def __post_init__(self) -> None:
        one_of("the loop of a part", self.loop, tuple(LOOPS))


@dataclass(frozen=True, eq=False, kw_only=True)
class Aggregation:
    """One named result of a window; two are equal when their code and their functions are.

    Args:
        code: the Python expression that makes it, without its module.
        columns: those that it reads; its functions get a value, a dict of several, or None where there are none.
        initializer: `initializer()` gives the aggregate of an empty window.
        aggregator: `aggregator(key, value, aggregate)` adds one record.
        merger: `merger(key, older, newer)` joins two sessions.
        result: what is shown of an aggregate, which is what a store keeps.
        built_in: the name by which exports know it; none of Python functions.
        parts: the compiled loops that compute the same (none: Python functions only). With several parts an aggregate
            is a dict of their names.
        result_column: what is shown, made of the columns of the parts; the same as `result`.
        takes: whether it works on a column of this type.
        wants: which columns it takes, in words.
        module: where a plan's code finds the function that makes it.
        settings: what that function is given behind the columns.
        reads_time: its functions get a value that is not null with its event time, as `{"value": …, "at_ms": …}`.
    Raises:
        InvalidArgument: something that cannot be a column.
    Example:
        >>> sk.mean("amount").parts[0].name
        'sum'
    """

    code: str
    columns: tuple[str, ...]
    initializer: Initializer
    aggregator: Aggregator
    merger: Merger
    result: Callable[[Any], Any] = _as_it_is
    built_in: str = ""
    parts: tuple[Part, ...] = ()
    result_column: Callable[[Sequence[pa.Array]], pa.Array] = operator.itemgetter(0)
    takes: Callable[[pa.DataType], bool] = _any_type
    wants: str = ""
    module: str = "sk"
    settings: tuple[Any, ...] = ()
    reads_time: bool = False

    def __post_init__(self) -> None:
        columns: tuple[object, ...] = self.columns
        for column in columns:
            if not isinstance(column, str):
                want = 'text, such as sk.sum("amount")'
                raise InvalidArgument(problem("an aggregation takes names of columns", shorten(repr(column)), want))
            if not is_text(column):
                want = "valid Unicode, without lone surrogates"
                raise InvalidArgument(problem("this cannot be the name of a column", shorten(repr(column)), want))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Aggregation) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[Any, ...]:
        """The parts that equality compares; without functions of one that compiles, as each call makes them anew."""
        functions = () if self.parts else (self.initializer, self.aggregator, self.merger)
        return (self.module, self.code, self.columns, *functions)

    def __reduce__(self) -> tuple[Callable[..., Aggregation], tuple[Any, ...]]:
        """The form for pickling: a built-in aggregation by its name, others by their functions."""
        make = BUILT_INS.get(self.built_in)
        if make is not None and make(*self.columns, *self.settings) == self:
            return make, (*self.columns, *self.settings)
        return functools.partial(Aggregation, **vars(self)), ()

    def __repr__(self) -> str:
        return self.code

    def part_types(self, kind: pa.DataType | None) -> list[pa.DataType]:
        """The types that the parts keep for values of this type (None: no column is read)."""
        made = (None if kind is None else part.column(pa.nulls(0, kind)).type for part in self.parts)
        return [LOOPS[part.loop].type_of(each) for part, each in zip(self.parts, made, strict=True)]

    def result_type(self, kind: pa.DataType | None) -> pa.DataType | None:
        """The type of the result over values of this type; None where only the functions know it."""
        if not self.parts:
            return None
        return self.result_column([pa.nulls(0, part) for part in self.part_types(kind)]).type

    def makes_floats(self, kind: pa.DataType) -> bool:
        """Whether it computes with floats, which are not exact, in place of values of this type."""
        kept = [getattr(part, "value_type", part) for part in self.part_types(kind)]
        numbers = (each.field("value").type if pa.types.is_struct(each) else each for each in kept)
        return not pa.types.is_floating(kind) and any(map(pa.types.is_floating, numbers))

    def check_types(self, columns: Sequence[Any]) -> None:
        """Refuses a column, one of Arrow or of Python objects, that it cannot work on.

        Raises:
            UnsupportedData: with the type that it has and those that would do.
        """
        for column, values in zip(self.columns, columns, strict=True):
            kind = values.type
            if self.parts and isinstance(kind, pa.BaseExtensionType):  # Python objects, above all
                want = "a column of plain values; sk.reduce and sk.aggregation take any"
                got = getattr(kind, "type_name", kind)
                raise UnsupportedData(problem(f"{self.code} cannot use column {column!r}", got, want))
            if not (self.takes(kind) or pa.types.is_null(kind)):
                got, want = _wanted_instead(values, column, self.wants)
                raise UnsupportedData(problem(f"{self.code} cannot use column {column!r}", got, want))


def _wanted_instead(values: Any, name: str, wants: str) -> tuple[str, str]:
    """Words for an error about a column of the wrong type: for text, where numbers are wanted, how to get these."""
    texts = values.drop_null().unique() if is_text_type(values.type) else pa.array([], pa.string())
    words = some_of(texts)
    text, way = words[0] if words else "", way_to_number(words, name)
    if not way and _NUMBER.fullmatch(text):
        way = f'types={{{literal(name)}: "float64"}} in group_by_key, or df[{name!r}].astype(float), if all are numbers'
    others = [word for word in texts.to_pylist() if word and not _NUMBER.fullmatch(word)]
    way = (way_of_marks(others, name) if 2 * len(others) <= len(texts) else "") or way
    way = way or (way_to_times(words, name) if "times" in wants else "")
    if not way and len(others) < len(texts):
        way = f'df[{name!r}] = pandas.to_numeric(df[{name!r}], errors="coerce") makes the others missing'
    if pa.types.is_time(values.type):
        line = f"df[{name!r}] = pandas.to_timedelta(df[{name!r}].astype(str)).dt.total_seconds()"
        way = f"{wants}: {line} makes seconds of it"
    got = f"string, {shorten(repr(text))}" if text else values.type
    return got, way if way and "numbers" in wants else wants


def decimal_remarks(named: Sequence[tuple[str, Aggregation]], types: Mapping[str, pa.DataType]) -> list[str]:
    """A sentence where decimals are computed with as floats."""
    kinds = [(each, types[name]) for _, each in named for name in each.columns if pa.types.is_decimal(types[name])]
    codes = dict.fromkeys(each.code for each, kind in kinds if each.makes_floats(kind))
    return [f"Decimals become 64-bit floats in {shorten(', '.join(codes))}."] if codes else []


def columns_read(named: Sequence[tuple[str, Aggregation]]) -> tuple[str, ...]:
    """The columns that these aggregations read, each once."""
    return tuple(dict.fromkeys(column for _, each in named for column in each.columns))


def built_in(function: F) -> F:
    """Registers a function that makes an aggregation, under its name: what is promised of each is tested of it, too.

    Example:
        >>> from sessionkit.aggregations import BUILT_INS
        >>> BUILT_INS["sum"] is sk.sum
        True
    """
    BUILT_INS[function.__name__] = function
    return function
