"""Aggregates as folds over a trace: by compiled loops where an aggregation names them, by plain calls elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.aggregations.accumulators import LOOPS, MOST_DIGITS, TOO_LONG, Rows, Spans
from sessionkit.aggregations.contract import Aggregation
from sessionkit.base.arrays import Longs, arrow_array, is_null, of_type
from sessionkit.base.decisions import COPIED, OPENED
from sessionkit.errors import (
    AggregationFailed,
    NumberOverflow,
    StoreCorrupted,
    UnsupportedData,
    errors_as,
    problem,
    shorten,
)
from sessionkit.records.batch import PythonObjects
from sessionkit.records.frames import python_objects
from sessionkit.trace.trace import Merges
from sessionkit.trace.window_trace import Touches
from sessionkit.windows.sliding.structure import SlidingStructure

ValueColumn: TypeAlias = pa.Array | PythonObjects
Stored: TypeAlias = npt.NDArray[np.object_] | pa.Array  # aggregates of the windows that were loaded from a store


class Described(Protocol):
    """The keys and names of records, which Python functions and the errors in them need."""

    def keys(self, lo: int, count: int) -> list[Any]:
        """The keys of `count` records from `lo` on."""

    def words(self, record: int) -> str:
        """Where a record came from."""


class CompiledFold:
    """An aggregation that compiles over a run: the accumulators of its parts, fed chunk by chunk."""

    def __init__(self, aggregation: Aggregation, column: pa.Array | None, loaded: Stored, described: Described) -> None:
        self._aggregation = aggregation
        kind = None if column is None else column.type
        self._part_types, self._result_type = aggregation.part_types(kind), aggregation.result_type(kind)
        self._loaded = _split(loaded, aggregation, self._part_types)
        self._accumulators = [
            LOOPS[part.loop].accumulator(None if column is None else part.column(column), held)
            for part, held in zip(aggregation.parts, self._loaded, strict=True)
        ]
        # Every prefix of every list has no compact form: a changelog of lists is left to the Python functions.
        every_step = all(LOOPS[part.loop].knows_every_step for part in aggregation.parts)
        self._calls = None if every_step else PythonFold(aggregation, column, loaded, described)
        self._made_by_calls = False  # sliding windows copy lists from each other

    def grow(self, windows: int) -> None:
        for accumulator in self._accumulators:
            accumulator.grow(windows)

    def feed(self, window: Rows, merges: Merges, lo: int) -> None:
        """Adds the records from `lo` on, whose windows are `window`; the places in `merges` count from `lo`."""
        for accumulator in self._accumulators:
            accumulator.feed(window, merges, lo)

    def feed_touches(self, record: Rows, window: Rows, lo: int) -> None:
        """Adds record `lo + record[j]` to window `window[j]`, for every j in this order."""
        for accumulator in self._accumulators:
            accumulator.feed_touches(record, window, lo)

    @property
    def takes_spans(self) -> bool:
        """Whether records can be added slot by slot, each to a span of windows: not to lists."""
        return self._calls is None

    def feed_spans(self, spans: Spans) -> None:
        for accumulator in self._accumulators:
            accumulator.feed_spans(spans)

    def feed_sliding(self, structure: SlidingStructure, touches: Callable[[], Touches]) -> None:
        """Adds every record to its sliding windows; the touches are only worked out for lists."""
        if self._calls is not None:
            self._calls.feed_sliding(structure, touches)
            self._made_by_calls = True
            return
        for accumulator in self._accumulators:
            accumulator.feed_sliding(structure)

    def aggregates(self, rows: Rows) -> pa.Array:
        """Aggregates that a store keeps for the windows at `rows`: a single part's value, else a struct by name."""
        names = [part.name for part in self._aggregation.parts]
        if self._calls is not None and self._made_by_calls:
            kinds = self._part_types
            kind = kinds[0] if len(kinds) == 1 else pa.struct(list(zip(names, kinds, strict=True)))
            return typed_column(self._calls.aggregates(rows).tolist(), kind)
        parts = self._held(rows)
        return parts[0] if len(parts) == 1 else pa.StructArray.from_arrays(parts, names)

    def _held(self, rows: Rows) -> list[pa.Array]:
        return [accumulator.at(rows) for accumulator in self._accumulators]

    def results(self, rows: Rows) -> pa.Array:
        """Results that a user sees for the windows at `rows`."""
        if self._calls is not None and self._made_by_calls:
            return typed_column(self._calls.results(rows).tolist(), self._result_type)
        return self._aggregation.result_column(self._held(rows))

    def column(self, aggregates: list[Any]) -> pa.Array:
        """The results of aggregates as Python has them."""
        result = self._aggregation.result
        return typed_column([None if each is None else result(each) for each in aggregates], self._result_type)

    def loaded_results(self) -> pa.Array:
        """The results of the windows that came from a store, as they came."""
        return self._aggregation.result_column(self._loaded)

    def running(self, window: Rows, merges: Merges) -> pa.Array:
        return self._at_each_step("running", window, merges)

    def running_touches(self, touches: Touches) -> pa.Array:
        return self._at_each_step("running_touches", touches)

    def _at_each_step(self, call: str, *steps: Any) -> pa.Array:
        if self._calls is not None:
            return typed_column(getattr(self._calls, call)(*steps).tolist(), self._result_type)
        return self._aggregation.result_column([getattr(each, call)(*steps) for each in self._accumulators])

    @property
    def begun(self) -> Any:
        """The aggregate that a window begins with."""
        return self._aggregation.initializer()

    def running_aggregates(self, call: str, *steps: Any) -> tuple[list[Any], list[Any]]:
        """(aggregates after each step, those that were loaded) as Python has them; `call` is one of the two above."""
        accumulators = zip(self._accumulators, self._loaded, strict=True)
        parts = [(getattr(each, call)(*steps), held) for each, held in accumulators]
        names = [part.name for part in self._aggregation.parts]
        after, before = (
            python_values(columns[0] if len(names) == 1 else pa.StructArray.from_arrays(columns, names))
            for columns in map(list, zip(*parts, strict=True))
        )
        return after, before


def _split(loaded: Stored, aggregation: Aggregation, kinds: list[pa.DataType]) -> list[pa.Array]:
    if len(aggregation.parts) == 1:
        return [_as_kept(loaded, kinds[0])]
    names = [part.name for part in aggregation.parts]
    if isinstance(loaded, pa.Array):
        by_name = dict(zip([each.name for each in loaded.type], loaded.flatten(), strict=True))
        columns = [by_name[name] for name in names]
    else:
        columns = [[each[name] for each in loaded] for name in names]
    return [_as_kept(column, kind) for column, kind in zip(columns, kinds, strict=True)]


def _as_kept(loaded: pa.Array | Iterable[Any], kind: pa.DataType) -> pa.Array:
    if not isinstance(loaded, pa.Array):
        return typed_column(list(loaded), kind)
    return of_type(loaded, kind)  # a store on disk knows 64 bits only


class PythonFold:
    """Any aggregation by its three functions, called as Kafka does: merger for every session met, aggregator last."""

    takes_spans = False  # the calls are made in the order of arrival

    def __init__(
        self, aggregation: Aggregation, column: ValueColumn | None, loaded: Stored, described: Described
    ) -> None:
        self._aggregation, self._column, self._described = aggregation, column, described
        self._loaded = loaded.to_pylist() if isinstance(loaded, pa.Array) else list(loaded)
        self._state: dict[int, Any] = dict(enumerate(self._loaded))

    def grow(self, windows: int) -> None:
        """Nothing to do: a dict grows by itself."""

    def feed(self, window: Rows, merges: Merges, lo: int) -> None:
        for _ in self._steps(self._state, window, merges, lo):
            pass

    def _steps(self, state: dict[int, Any], window: Rows, merges: Merges, lo: int) -> Iterator[tuple[int, Any]]:
        a, absorbed = self._aggregation, dict(zip(merges.at.tolist(), merges.absorbed.tolist(), strict=True))
        initializer, aggregator, merger = a.initializer, a.aggregator, a.merger
        keys, values = self._described.keys(lo, len(window)), record_values(self._column, lo, len(window))
        for i, (w, key, value) in enumerate(zip(window.tolist(), keys, values, strict=True)):
            if w < 0:
                continue
            try:
                aggregate = initializer()
                if w in state:
                    aggregate = merger(key, aggregate, state[w])
                if i in absorbed:
                    aggregate = merger(key, aggregate, state[absorbed[i]])
                state[w] = aggregate = aggregator(key, value, aggregate)
            except (NumberOverflow, StoreCorrupted):
                raise
            except Exception as error:
                raise function_failed(a.code, self._described.words(lo + i), error) from error
            yield i, aggregate

    def feed_touches(self, record: Rows, window: Rows, lo: int) -> None:
        touches = Touches(
            record=np.asarray(record + lo, np.int64),
            window=np.asarray(window, np.int32),
            effect=np.zeros(len(record), np.uint8),
            start_ms=np.empty(0, np.int64),
            source=np.full(len(record), -1, np.int32),
        )
        for _ in self._touch_steps(self._state, touches):
            pass

    def feed_sliding(self, structure: SlidingStructure, touches: Callable[[], Touches]) -> None:
        """Adds every record to its sliding windows: a call for each touch."""
        for _ in self._touch_steps(self._state, touches()):
            pass

    def _touch_steps(self, state: dict[int, Any], touches: Touches) -> Any:
        count = int(touches.record.max(initial=-1)) + 1
        a, keys, values = self._aggregation, self._described.keys(0, count), record_values(self._column, 0, count)
        columns = (touches.record, touches.window, touches.effect, touches.source)
        record = -1
        before: dict[int, Any] = {}  # values before the record of the windows that it has met so far
        for j, (i, w, effect, source) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
            if i != record:
                record, before = i, {}
            if w < 0:
                continue
            try:
                if source >= 0:
                    base = before.get(source, state[source])
                elif effect == OPENED or w not in state:
                    base = a.initializer()
                else:
                    base = state[w]
                if w in state:
                    before.setdefault(w, state[w])
                state[w] = base if effect == COPIED else a.aggregator(keys[i], values[i], base)
            except (NumberOverflow, StoreCorrupted):
                raise
            except Exception as error:
                raise function_failed(a.code, self._described.words(i), error) from error
            yield j, state[w]

    def running_touches(self, touches: Touches) -> npt.NDArray[np.object_]:
        out = np.empty(len(touches.record), object)
        for j, aggregate in self._touch_steps(dict(enumerate(self._loaded)), touches):
            out[j] = self._aggregation.result(aggregate)
        return out

    def aggregates(self, rows: Rows) -> npt.NDArray[np.object_]:
        return python_objects([self._state.get(row) for row in rows.tolist()])

    def results(self, rows: Rows) -> npt.NDArray[np.object_]:
        return python_objects([self._aggregation.result(self._state.get(row)) for row in rows.tolist()])

    def loaded_results(self) -> npt.NDArray[np.object_]:
        return python_objects([self._aggregation.result(aggregate) for aggregate in self._loaded])

    def running(self, window: Rows, merges: Merges) -> npt.NDArray[np.object_]:
        out = np.empty(len(window), object)
        for i, aggregate in self._steps(dict(enumerate(self._loaded)), window, merges, 0):
            out[i] = self._aggregation.result(aggregate)
        return out


def function_failed(code: str, where: str, error: Exception) -> AggregationFailed:
    """The error for a Python function that raised: of which aggregation, at which record, and what."""
    got = f"{type(error).__name__}: {shorten(error, 200)}"
    return AggregationFailed(problem(f"{code} failed at {where}", got, "nothing of this run was committed"))


def record_values(column: ValueColumn | None, lo: int, count: int) -> list[Any]:
    """The value of each record for a Python function: None, the column's value, or a dict of several."""
    return [None] * count if column is None else python_values(column.slice(lo, count))


def python_values(column: ValueColumn) -> list[Any]:
    """The values as Python's own; UnsupportedData where it has none, such as times after the year 9999."""
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError, pa.ArrowException) as error:
        got = f"{column.type}: {shorten(error, 120)}"
        want = "values that Python has as well; or count, sum, min, max, first and last, which do not need Python"
        raise UnsupportedData(problem("a value cannot be passed to a Python function", got, want)) from error


def typed_column(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Results of a built-in as its compiled form makes them; UnsupportedData if one does not survive Python."""
    what = f"a result is no longer a value of type {kind}"
    want = "values that survive the way through Python, or a run without a deployment, which keeps them in Arrow"
    with errors_as(UnsupportedData, what, want, (ValueError, TypeError, OverflowError, pa.ArrowException)):
        return pa.array(values, kind) if values else pa.nulls(0, kind)


Fold = CompiledFold | PythonFold


def value_column(
    aggregation: Aggregation, values: Mapping[str, ValueColumn], at_ms: Longs | None = None
) -> ValueColumn | None:
    """The column that an aggregation reads, checked; of several, one of dicts by their names; None if it reads none.

    One that reads the event times `at_ms`, too, gets both in one column, null where the value is.
    """
    names, columns = list(aggregation.columns), [values[name] for name in aggregation.columns]
    aggregation.check_types(columns)
    if aggregation.reads_time:
        assert at_ms is not None
        return timed(columns[0], at_ms)
    if len(columns) < 2:
        return columns[0] if columns else None
    if any(isinstance(column, PythonObjects) for column in columns):
        rows = zip(*map(python_values, columns), strict=True)
        return PythonObjects([dict(zip(names, row, strict=True)) for row in rows])
    return pa.StructArray.from_arrays(columns, names)


def timed(values: pa.Array, at_ms: Longs) -> pa.Array:
    """The values with their event times, in one column; null where the value is."""
    columns = [values, arrow_array(at_ms)]
    return pa.StructArray.from_arrays(columns, ["value", "at_ms"], mask=arrow_array(is_null(values)))


def _typed_by_store(aggregation: Aggregation, column: ValueColumn, loaded: Stored) -> ValueColumn:
    """The column with room for what a store holds: nulls, whose type no value tells, and decimals with more digits."""
    given = column.type
    if not (isinstance(column, pa.Array) and (pa.types.is_null(given) or pa.types.is_decimal(given))):
        return column
    kept = (loaded if isinstance(loaded, pa.Array) else pa.array(loaded.tolist())).type
    if pa.types.is_struct(kept) and aggregation.reads_time:
        kept = kept.field("value").type
    kept = kept.value_type if pa.types.is_list(kept) else kept
    if pa.types.is_null(given):
        return column if pa.types.is_struct(kept) else pa.nulls(len(column), kept)
    if not pa.types.is_decimal(kept):
        return column
    scale, whole = max(kept.scale, given.scale), max(kept.precision - kept.scale, given.precision - given.scale)
    if scale + whole <= given.precision:
        return column
    return column.cast(pa.decimal128(MOST_DIGITS, scale) if given.bit_width == 128 else pa.decimal256(76, scale))


def make_fold(
    aggregation: Aggregation,
    values: Mapping[str, ValueColumn],
    loaded: Stored,
    described: Described,
    at_ms: Longs | None = None,
) -> Fold:
    """The fold of an aggregation over a run: compiled where it says how."""
    if not aggregation.parts:
        return PythonFold(aggregation, value_column(aggregation, values, at_ms), loaded, described)
    are_decimals = any(pa.types.is_decimal(values[name].type) for name in aggregation.columns)
    what = f"{aggregation.code} found a number that {TOO_LONG if are_decimals else 'does not fit into 64 bits'}"
    with errors_as(NumberOverflow, what, "cast the column to float", pa.ArrowInvalid):  # unsigned, from 2**63 on
        if len(loaded):
            values = {name: _typed_by_store(aggregation, values[name], loaded) for name in aggregation.columns}
        return CompiledFold(aggregation, value_column(aggregation, values, at_ms), loaded, described)
