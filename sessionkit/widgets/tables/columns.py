"""The columns of a run's views, with what each is and how its values are said."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.arrays import Flags, Longs, as_arrow
from sessionkit.base.durations import INT64_MAX, duration_ms, show_duration
from sessionkit.base.moments import SHORT_HISTORY_MS, moment_ms, show_time
from sessionkit.base.result_columns import TIMES, ResultForm
from sessionkit.errors import InvalidArgument, attempted, problem, shorten
from sessionkit.records.times import PER_SECOND


def order_of(values: pa.Array, *, descending: bool) -> Longs:
    """The rows in the order of their values; what is missing, or is no number, comes last."""
    if pa.types.is_float16(values.type):  # which Arrow does not sort
        values = values.cast(pa.float32())
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), None, values)
    way = "descending" if descending else "ascending"
    return np.asarray(pc.array_sort_indices(values, order=way, null_placement="at_end"), np.int64)


Kind = Literal["text", "number", "time", "length", "other"]

LENGTHS = ("missing_grace_ms", "enough_grace_ms")
MOST_LETTERS = 200  # of a value
NOTHING = "–"


@dataclass(frozen=True, eq=False)
class TableColumn:
    """A column of a table: its title, its values, what they are, and how one is said."""

    title: str
    values: Any  # an Arrow array, or NumPy's of Python objects
    kind: Kind
    show: Callable[[Any], str]
    read: Callable[[str, bool], Any] | None = None  # a typed bound as a value; whether it is the upper one
    is_key: bool = False

    @property
    def can_sort(self) -> bool:
        """Whether there is an order of its values."""
        return self.kind != "other"

    @cached_property
    def _coded(self) -> tuple[pa.Array, Longs]:
        """Each text once, and the number of each row's; -1 for none."""
        coded = _whole(self.values).cast(pa.large_string()).dictionary_encode()
        return coded.dictionary, np.asarray(coded.indices.cast(pa.int64()).fill_null(-1))

    def holding(self, letters: str) -> Flags:
        """True for each row whose text holds these letters, large or small."""
        texts, number = self._coded
        found = np.asarray(pc.match_substring(pc.utf8_lower(texts), letters.lower()), np.bool_)
        return np.append(found, False)[number]

    def between(self, low: Any, high: Any) -> Flags:
        """True for each row whose value is not below `low` and not above `high`; None is no bound."""
        if pa.types.is_integer(self.values.type):
            # the same integers lie between whole bounds, which have to fit into 64 bits
            low = None if low is None else min(max(math.ceil(low), -INT64_MAX - 1), INT64_MAX)
            high = None if high is None else min(max(math.floor(high), -INT64_MAX - 1), INT64_MAX)
        found = pc.is_valid(self.values)
        if low is not None:
            found = pc.and_kleene(found, pc.greater_equal(self.values, low))
        if high is not None:
            found = pc.and_kleene(found, pc.less_equal(self.values, high))
        return np.asarray(pc.fill_null(found, False), np.bool_)

    def order(self, *, descending: bool) -> Longs:
        """The rows in the order of their values; equal ones as they stand, what is missing at the end."""
        if self.kind == "text":
            texts, number = self._coded
            rank = np.empty(len(texts), np.int64)
            rank[np.asarray(pc.array_sort_indices(texts))] = np.arange(len(texts))
            return order_of(pa.array(np.append(rank, 0)[number], mask=number < 0), descending=descending)
        return order_of(_whole(self.values), descending=descending)

    def shown(self, rows: Longs) -> list[str]:
        if isinstance(self.values, np.ndarray):
            return [NOTHING if value is None else self.show(value) for value in self.values[rows].tolist()]
        return [NOTHING if not each.is_valid else self.show(each) for each in self.values.take(pa.array(rows))]


def table_columns(columns: Mapping[str, Any], form: ResultForm, timezone: str) -> list[TableColumn]:
    """The columns of a view of a run as a person looks at them: keys apart, times by the clock of the zone."""
    newest = max((pc.max(as_arrow(each)).as_py() or 0 for name, each in columns.items() if name in TIMES), default=0)
    has_dates = newest >= SHORT_HISTORY_MS
    found = []
    for name, values in columns.items():
        if name == "key":
            keys = form.shown({"key": values}).items()
            found += [_column(title, each, has_dates, timezone, is_key=True) for title, each in keys]
        else:
            found.append(_column(name, values, has_dates, timezone))
    return found


def _column(name: str, values: Any, has_dates: bool, timezone: str, *, is_key: bool = False) -> TableColumn:
    values = values if _is_objects(values) else as_arrow(values)
    if name in TIMES and not is_key:
        read = partial(_time_reader, timezone) if has_dates else _length_reader
        show = (lambda each: show_time(each.as_py(), timezone)) if has_dates else _said_length
        return TableColumn(TIMES[name].replace("_", " "), values, "time" if has_dates else "length", show, read)
    if name in LENGTHS and not is_key:
        title = name.removesuffix("_ms").replace("_", " ")
        return TableColumn(title, values, "length", _said_length, _length_reader)
    if _is_objects(values):
        return TableColumn(shorten(name), values, "other", lambda value: shorten(value, MOST_LETTERS))
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    return TableColumn(shorten(name), values, *_of_type(values.type, timezone), is_key=is_key)


def _of_type(kind: pa.DataType, timezone: str) -> tuple[Kind, Callable[[Any], str], Callable[[str, bool], Any] | None]:
    """What values of a type are, how they are said, and how a bound is read."""
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number", lambda each: said_number(each.as_py()), _number_reader
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text", lambda each: shorten(each.as_py(), MOST_LETTERS) or "(empty)", None
    if pa.types.is_timestamp(kind):
        zone, per_second = kind.tz or timezone, PER_SECOND[kind.unit]
        return "time", lambda each: show_time(each.value * 1_000 // per_second, zone), None
    if pa.types.is_duration(kind):
        per_second = PER_SECOND[kind.unit]
        return "length", lambda each: show_duration(each.value * 1_000 // per_second), None
    if pa.types.is_boolean(kind) or pa.types.is_date(kind) or pa.types.is_time(kind):
        return "time", lambda each: str(each.as_py()), None
    return "other", lambda each: shorten(_plain(each), MOST_LETTERS), None


def said_number(value: Any) -> str:
    """A number as a person reads it."""
    if not isinstance(value, float):
        return f"{value:,}"
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else "∞" if value > 0 else "−∞"
    if abs(value) >= 1e15 or 0 < abs(value) < 1e-4:
        return f"{value:.6g}"
    said = f"{value:,.2f}" if abs(value) >= 1_000 else f"{value:,.6f}"
    return said.rstrip("0").rstrip(".")


def _said_length(each: Any) -> str:
    return show_duration(each.as_py())


def _number_reader(text: str, is_upper: bool) -> Any:
    plain = text.replace(",", "").replace("\N{MINUS SIGN}", "-").strip()
    whole, number = (attempted(kind, plain, but=ValueError) for kind in (int, float))
    if whole is not None:
        return whole
    if number is not None and math.isfinite(number):
        return number
    raise InvalidArgument(problem("a bound must be a number", shorten(repr(text)), "such as 1,000"))


def _length_reader(text: str, is_upper: bool) -> int:
    return int(text) if text.strip().isdecimal() else duration_ms(text, "a bound")


def _time_reader(timezone: str, text: str, is_upper: bool) -> int:
    text = text.strip()
    if text.isdecimal() and len(text) > 8:
        return int(text)
    day = attempted(dt.date.fromisoformat, text, but=ValueError)
    if day is None:
        return moment_ms(text, "a bound", timezone)
    # "to 4 July" means with all of that day
    return moment_ms(day + dt.timedelta(is_upper), "a bound", timezone) - is_upper


def _plain(each: pa.Scalar) -> Any:
    try:
        return each.as_py()
    except (ValueError, OverflowError):  # Python has no such value, as for times after the year 9999
        return str(each)


def _is_objects(values: Any) -> bool:
    return isinstance(values, np.ndarray) and values.dtype == object


def _whole(values: Any) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
