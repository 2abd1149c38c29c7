"""Aggregates as folds over a trace: compiled accumulators for the built-ins, plain calls for Python functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.accumulators import ACCUMULATORS, Rows
from sessionkit.aggregations import Aggregation
from sessionkit.decisions import COPIED, OPENED
from sessionkit.errors import AggregationFailed, NumberOverflow, UnsupportedData, problem
from sessionkit.records import PythonObjects
from sessionkit.text import shorten
from sessionkit.trace import Merges
from sessionkit.window_trace import Touches
from sessionkit.windows.sliding_kernel import SlidingStructure

ValueColumn: TypeAlias = pa.Array | PythonObjects


class CompiledFold:
    """A built-in aggregation over a run: its accumulators, fed chunk by chunk."""

    def __init__(
        self,
        aggregation: Aggregation,
        columns: list[pa.Array],
        loaded: npt.NDArray[np.object_] | pa.Array,
        describe: Callable[[int], tuple[Any, str]],
    ) -> None:
        self._aggregation = aggregation
        column = columns[0] if columns else None
        self._type = aggregation.result_type([c.type for c in columns])
        self._loaded = _split(loaded, aggregation, self._type)
        pairs = zip(aggregation.accumulators, self._loaded, strict=True)
        self._parts = [ACCUMULATORS[name](column, part) for name, part in pairs]
        # Every prefix of every list has no compact form: a changelog of lists is left to the Python functions.
        lists = aggregation.accumulators == ("collect",)
        self._by_calls = PythonFold(aggregation, columns, loaded, describe) if lists else None
        self._made_by_calls = False  # sliding windows copy lists from each other

    def grow(self, windows: int) -> None:
        """Makes room for as many windows."""
        for part in self._parts:
            part.grow(windows)

    def feed(self, window: Rows, decision: npt.NDArray[np.uint8], merges: Merges, lo: int) -> None:
        """Adds the records from `lo` on, whose windows are `window`; the places in `merges` count from `lo`."""
        for part in self._parts:
            part.feed(window, merges, lo)

    def feed_touches(self, record: Rows, window: Rows, lo: int) -> None:
        """Adds record `lo + record[j]` to window `window[j]`, for every j in this order."""
        for part in self._parts:
            part.feed_touches(record, window, lo)

    def feed_sliding(self, structure: SlidingStructure, touches: Callable[[], Touches]) -> None:
        """Adds every record to its sliding windows; the touches are only worked out for lists."""
        if self._by_calls is not None:
            self._by_calls.feed_sliding(structure, touches)
            self._made_by_calls = True
            return
        for part in self._parts:
            part.feed_sliding(structure)

    def aggregates(self, rows: Rows) -> pa.Array:
        """What a store keeps for the windows at `rows`."""
        if self._by_calls is not None and self._made_by_calls:
            return typed_column(self._by_calls.aggregates(rows).tolist(), self._type)
        parts = [part.at(rows) for part in self._parts]
        return parts[0] if len(parts) == 1 else pa.StructArray.from_arrays(parts, ["sum", "count"])

    def results(self, rows: Rows) -> pa.Array:
        """What a user sees for the windows at `rows`."""
        if self._by_calls is not None and self._made_by_calls:
            return self.aggregates(rows)
        return self._aggregation.result_columns([part.at(rows) for part in self._parts])

    def loaded_results(self) -> pa.Array:
        """The results of the windows that came from a store, as they came."""
        return self._aggregation.result_columns(self._loaded)

    def running(self, window: Rows, decision: npt.NDArray[np.uint8], merges: Merges) -> pa.Array:
        """The result of its window after each record."""
        if self._by_calls is not None:
            return typed_column(self._by_calls.running(window, decision, merges).tolist(), self._type)
        return self._aggregation.result_columns([part.running(window, merges) for part in self._parts])

    def running_touches(self, touches: Touches) -> pa.Array:
        """The result of its window after each touch."""
        if self._by_calls is not None:
            return typed_column(self._by_calls.running_touches(touches).tolist(), self._type)
        return self._aggregation.result_columns([part.running_touches(touches) for part in self._parts])


def _split(
    loaded: npt.NDArray[np.object_] | pa.Array, aggregation: Aggregation, kind: pa.DataType | None
) -> list[pa.Array]:
    if aggregation.accumulators == ("float_sum", "count_values"):
        if isinstance(loaded, pa.Array):
            return list(loaded.flatten())
        sums, counts = [pair["sum"] for pair in loaded], [pair["count"] for pair in loaded]
        return [pa.array(sums, pa.float64()), pa.array(counts, pa.int64())]
    if not isinstance(loaded, pa.Array):
        return [typed_column(list(loaded), kind)]
    return [loaded if kind is None or loaded.type == kind else loaded.cast(kind)]  # a store on disk knows 64 bits only


class PythonFold:
    """Any aggregation by its three functions, called as Kafka does: merger for every session met, aggregator last."""

    def __init__(
        self,
        aggregation: Aggregation,
        columns: list[pa.Array],
        loaded: npt.NDArray[np.object_] | pa.Array,
        describe: Callable[[int], tuple[Any, str]],
    ) -> None:
        self._aggregation, self._columns, self._describe = aggregation, columns, describe
        self._loaded = loaded.to_pylist() if isinstance(loaded, pa.Array) else list(loaded)
        self._state: dict[int, Any] = dict(enumerate(self._loaded))

    def grow(self, windows: int) -> None:
        """Nothing to do: a dict grows by itself."""

    def feed(self, window: Rows, decision: npt.NDArray[np.uint8], merges: Merges, lo: int) -> None:
        """Adds the records from `lo` on."""
        for _ in self._steps(self._state, window, merges, lo):
            pass

    def _steps(self, state: dict[int, Any], window: Rows, merges: Merges, lo: int) -> Any:
        a, absorbed = self._aggregation, dict(zip(merges.at.tolist(), merges.absorbed.tolist(), strict=True))
        values = record_values(self._columns, lo, len(window))
        for i in np.flatnonzero(window >= 0).tolist():
            w = int(window[i])
            key, where = self._describe(lo + i)
            try:
                aggregate = a.initializer()
                if w in state:
                    aggregate = a.merger(key, aggregate, state[w])
                if i in absorbed:
                    aggregate = a.merger(key, aggregate, state[absorbed[i]])
                state[w] = a.aggregator(key, values[i], aggregate)
            except NumberOverflow:
                raise
            except Exception as error:
                raise self._failed(where, error) from error
            yield i, state[w]

    def feed_touches(self, record: Rows, window: Rows, lo: int) -> None:
        """Adds record `lo + record[j]` to window `window[j]`, for every j in this order."""
        no_source = np.full(len(record), -1, np.int32)
        place = (np.asarray(record + lo, np.int64), np.asarray(window, np.int32))
        touches = Touches(*place, np.zeros(len(record), np.uint8), np.empty(0, np.int64), no_source)
        for _ in self._touch_steps(self._state, touches):
            pass

    def feed_sliding(self, structure: SlidingStructure, touches: Callable[[], Touches]) -> None:
        """Adds every record to its sliding windows: a call for each touch."""
        for _ in self._touch_steps(self._state, touches()):
            pass

    def _touch_steps(self, state: dict[int, Any], touches: Touches) -> Any:
        a, values = self._aggregation, record_values(self._columns, 0, int(touches.record.max(initial=-1)) + 1)
        columns = (touches.record, touches.window, touches.effect, touches.source)
        record = -1
        before: dict[int, Any] = {}  # what the windows that the record has met so far held before it
        for j, (i, w, effect, source) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
            if i != record:
                record, before = i, {}
            if w < 0:
                continue
            key, where = self._describe(i)
            try:
                if source >= 0:
                    base = before.get(source, state[source])
                elif effect == OPENED or w not in state:
                    base = a.initializer()
                else:
                    base = state[w]
                if w in state:
                    before.setdefault(w, state[w])
                state[w] = base if effect == COPIED else a.aggregator(key, values[i], base)
            except NumberOverflow:
                raise
            except Exception as error:
                raise self._failed(where, error) from error
            yield j, state[w]

    def running_touches(self, touches: Touches) -> npt.NDArray[np.object_]:
        """The result of its window after each touch."""
        out = np.empty(len(touches.record), object)
        for j, aggregate in self._touch_steps(dict(enumerate(self._loaded)), touches):
            out[j] = self._aggregation.result(aggregate)
        return out

    def _failed(self, where: str, error: Exception) -> AggregationFailed:
        got = f"{type(error).__name__}: {shorten(error, 200)}"
        want = "nothing of this run was committed"
        return AggregationFailed(problem(f"{self._aggregation.code} failed at {where}", got, want))

    def aggregates(self, rows: Rows) -> npt.NDArray[np.object_]:
        """What a store keeps for the windows at `rows`."""
        return _objects([self._state.get(int(row)) for row in rows])

    def results(self, rows: Rows) -> npt.NDArray[np.object_]:
        """What a user sees for the windows at `rows`."""
        return _objects([self._aggregation.result(self._state.get(int(row))) for row in rows])

    def loaded_results(self) -> npt.NDArray[np.object_]:
        """The results of the windows that came from a store, as they came."""
        return _objects([self._aggregation.result(aggregate) for aggregate in self._loaded])

    def running(self, window: Rows, decision: npt.NDArray[np.uint8], merges: Merges) -> npt.NDArray[np.object_]:
        """The result of its window after each record."""
        out = np.empty(len(window), object)
        for i, aggregate in self._steps(dict(enumerate(self._loaded)), window, merges, 0):
            out[i] = self._aggregation.result(aggregate)
        return out


def record_values(columns: list[ValueColumn], lo: int, count: int) -> list[Any]:
    """What a Python function gets as the value of each record: nothing, the column's value, or a dict of several."""
    if not columns:
        return [None] * count
    if len(columns) == 1:
        return python_values(columns[0].slice(lo, count))
    raise AssertionError("several columns come as one struct")


def python_values(column: ValueColumn) -> list[Any]:
    """The values as Python's own.

    Raises:
        UnsupportedData: Python has none for them, such as times after the year 9999.
    """
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError, pa.ArrowException) as error:
        got = f"{column.type}: {shorten(error, 120)}"
        want = "values that Python has, too; or count, sum, min, max, first and last, which compute without it"
        raise UnsupportedData(problem("a value cannot be handed to a Python function", got, want)) from error


def typed_column(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Results of a built-in as the column that its compiled form makes.

    Raises:
        UnsupportedData: a value does not come back from Python as it was.
    """
    try:
        return pa.array(values, kind)
    except (ValueError, TypeError, OverflowError, pa.ArrowException) as error:
        want = 'values that come back from Python, or rules="sessionkit", which leaves them in Arrow'
        raise UnsupportedData(problem(f"a result is no {kind} any more", shorten(error, 120), want)) from error


def _objects(values: list[Any]) -> npt.NDArray[np.object_]:
    out = np.empty(len(values), object)
    out[:] = values
    return out


Fold = CompiledFold | PythonFold


def value_columns(aggregation: Aggregation, values: Mapping[str, ValueColumn]) -> list[ValueColumn]:
    """The columns that an aggregation reads; several become one, so that a value is a dict of them.

    Raises:
        UnsupportedData: a built-in cannot work on its column.
    """
    names, columns = list(aggregation.columns), [values[name] for name in aggregation.columns]
    aggregation.check_types([column.type for column in columns])
    if len(columns) < 2:
        return columns
    if any(isinstance(column, PythonObjects) for column in columns):
        rows = zip(*map(python_values, columns), strict=True)
        return [PythonObjects([dict(zip(names, row, strict=True)) for row in rows])]
    return [pa.StructArray.from_arrays(columns, names)]


def make_fold(
    aggregation: Aggregation,
    values: Mapping[str, ValueColumn],
    loaded: npt.NDArray[np.object_] | pa.Array,
    describe: Callable[[int], tuple[Any, str]],
) -> Fold:
    """The fold of an aggregation over a run: compiled where it is a built-in."""
    columns = value_columns(aggregation, values)
    if aggregation.accumulators:
        try:
            return CompiledFold(aggregation, columns, loaded, describe)
        except pa.ArrowInvalid as error:  # an unsigned number from 2**63 on
            what = f"{aggregation.code} meets a number that does not fit into 64 bits"
            raise NumberOverflow(problem(what, shorten(error, 120), "cast the column to float")) from error
    return PythonFold(aggregation, columns, loaded, describe)
