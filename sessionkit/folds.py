"""Aggregates as folds over a trace: compiled accumulators for the built-ins, plain calls for Python functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit import fold_loops as loops
from sessionkit.aggregations import Aggregation
from sessionkit.errors import AggregationFailed, NumberOverflow, problem
from sessionkit.records import PythonObjects
from sessionkit.text import shorten
from sessionkit.trace import Merges

NO_RUNNING = np.empty(0, np.int64)
EVERY = np.empty(0, np.bool_)  # no mask: all values count
Rows = npt.NDArray[np.integer[Any]]
ValueColumn: TypeAlias = pa.Array | PythonObjects


class Accumulator(Protocol):
    """One compiled accumulator: a number (or a position among the values) for each window."""

    def grow(self, windows: int) -> None:
        """Makes room for as many windows."""

    def feed(self, window: Rows, merges: Merges, lo: int) -> None:
        """Adds the records from `lo` on, whose windows are `window`; the places in `merges` count from `lo`."""

    def at(self, rows: Rows) -> pa.Array:
        """What it holds for the windows at `rows`."""

    def running(self, window: Rows, merges: Merges) -> pa.Array:
        """What it held for its window after each record."""


def _valid(column: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(column.is_valid()) if column.null_count else EVERY


def _numbers(column: pa.Array, kind: pa.DataType) -> npt.NDArray[Any]:
    column = column if column.type == kind else column.cast(kind)
    return column.fill_null(0).to_numpy(zero_copy_only=False) if column.null_count else column.to_numpy()


def _enlarged(old: npt.NDArray[Any], size: int, fill: int) -> npt.NDArray[Any]:
    if size <= len(old):
        return old
    new = np.full(max(size, 2 * len(old)), fill, old.dtype)
    new[: len(old)] = old
    return new


class Total:
    """Counts and sums: one number a window."""

    def __init__(
        self, column: pa.Array | None, loaded: pa.Array, loop: Callable[..., int | None], kind: pa.DataType
    ) -> None:
        self._loop, self._kind = loop, kind
        self._valid = EVERY if column is None else _valid(column)
        self._values = None if column is None or loop is loops.fold_count else _numbers(column, kind)
        self._loaded = _numbers(loaded, kind)
        self._total = self._loaded.copy()

    def grow(self, windows: int) -> None:
        self._total = _enlarged(self._total, windows, 0)

    def feed(self, window: Rows, merges: Merges, lo: int) -> None:
        self._fold(window, merges, lo, self._total, self._total[:0])

    def _fold(self, window: Rows, merges: Merges, lo: int, total: npt.NDArray[Any], running: npt.NDArray[Any]) -> None:
        here = slice(lo, lo + len(window))
        columns = () if self._values is None else (self._values[here],)
        stopped = self._loop(window, merges, *columns, self._valid[here], total, running)
        if stopped is not None and stopped >= 0:
            want = "cast the column to float"
            raise NumberOverflow(problem("an integer sum does not fit into 64 bits", f"record {lo + stopped}", want))

    def at(self, rows: Rows) -> pa.Array:
        return pa.array(self._total[rows])

    def running(self, window: Rows, merges: Merges) -> pa.Array:
        total = _enlarged(self._loaded.copy(), len(self._total), 0)
        out = np.zeros(len(window), total.dtype)
        self._fold(window, merges, 0, total, out)
        return pa.array(out)


class Position:
    """Smallest, largest, first, last: the place of one value for each window, among loaded and new ones."""

    def __init__(self, column: pa.Array, loaded: pa.Array, loop: str) -> None:
        self._pool = pa.concat_arrays([loaded, column])
        self._base = len(loaded)
        self._word = loop
        self._values = _comparable(self._pool) if loop in ("min", "max") else None
        self._valid = _valid(self._pool)
        self._loaded = np.where(np.asarray(loaded.is_valid()), np.arange(len(loaded)), loops.NOTHING)
        self._best = self._loaded.copy()

    def grow(self, windows: int) -> None:
        self._best = _enlarged(self._best, windows, loops.NOTHING)

    def feed(self, window: Rows, merges: Merges, lo: int) -> None:
        self._fold(window, merges, self._base + lo, self._best, NO_RUNNING)

    def _fold(self, window: Rows, merges: Merges, base: int, best: npt.NDArray[Any], running: npt.NDArray[Any]) -> None:
        if self._values is not None:
            loops.fold_extreme(window, merges, base, self._values, self._valid, self._word == "max", best, running)
        else:
            loops.fold_position(window, merges, base, self._valid, self._word == "last", best, running)

    def _take(self, positions: npt.NDArray[np.int64]) -> pa.Array:
        return self._pool.take(pa.array(positions, mask=positions == loops.NOTHING))

    def at(self, rows: Rows) -> pa.Array:
        return self._take(self._best[rows])

    def running(self, window: Rows, merges: Merges) -> pa.Array:
        best = _enlarged(self._loaded.copy(), len(self._best), loops.NOTHING)
        out = np.full(len(window), loops.NOTHING, np.int64)
        self._fold(window, merges, self._base, best, out)
        return self._take(out)


def _comparable(pool: pa.Array) -> npt.NDArray[Any]:
    if pa.types.is_floating(pool.type):
        return _numbers(pool, pa.float64())
    if pa.types.is_temporal(pool.type):
        pool = pool.view(pa.int32() if pool.type.bit_width == 32 else pa.int64())
    return _numbers(pool, pa.int64())


class Chain:
    """Collect: the values of each window as a chain, so that a merge costs one link."""

    def __init__(self, column: pa.Array, loaded: pa.Array) -> None:
        flat = loaded.flatten() if len(loaded) else column.slice(0, 0)
        self._pool = pa.concat_arrays([flat.cast(column.type), column])
        self._base = len(flat)
        lengths = np.asarray(pc.list_value_length(loaded), np.int64)
        ends = np.cumsum(lengths)
        self._first = np.where(lengths > 0, ends - lengths, loops.NOTHING)
        self._last = ends - 1
        self._following = np.arange(1, len(self._pool) + 1)

    def grow(self, windows: int) -> None:
        self._first = _enlarged(self._first, windows, loops.NOTHING)
        self._last = _enlarged(self._last, windows, loops.NOTHING)

    def feed(self, window: Rows, merges: Merges, lo: int) -> None:
        loops.fold_chains(window, merges, self._base + lo, self._first, self._last, self._following)

    def at(self, rows: Rows) -> pa.Array:
        ends, positions = loops.unchain(np.asarray(rows), self._first, self._last, self._following)
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), self._pool.take(pa.array(positions)))

    def running(self, window: Rows, merges: Merges) -> pa.Array:
        raise AssertionError("the lists of a changelog are made by calls, see CompiledFold")


def _count(column: pa.Array | None, loaded: pa.Array) -> Total:
    return Total(column, loaded, loops.fold_count, pa.int64())


def _sum(column: pa.Array, loaded: pa.Array) -> Total:
    floats = pa.types.is_floating(column.type)
    loop = loops.fold_float_sum if floats else loops.fold_int_sum
    return Total(column, loaded, loop, pa.float64() if floats else pa.int64())


ACCUMULATORS: dict[str, Callable[[Any, pa.Array], Accumulator]] = {
    "count": lambda column, loaded: _count(None, loaded),
    "count_values": _count,
    "sum": _sum,
    "float_sum": lambda column, loaded: Total(column, loaded, loops.fold_float_sum, pa.float64()),
    "min": lambda column, loaded: Position(column, loaded, "min"),
    "max": lambda column, loaded: Position(column, loaded, "max"),
    "first": lambda column, loaded: Position(column, loaded, "first"),
    "last": lambda column, loaded: Position(column, loaded, "last"),
    "collect": Chain,
}


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

    def grow(self, windows: int) -> None:
        """Makes room for as many windows."""
        for part in self._parts:
            part.grow(windows)

    def feed(self, window: Rows, decision: npt.NDArray[np.uint8], merges: Merges, lo: int) -> None:
        """Adds the records from `lo` on, whose windows are `window`; the places in `merges` count from `lo`."""
        for part in self._parts:
            part.feed(window, merges, lo)

    def aggregates(self, rows: Rows) -> pa.Array:
        """What a store keeps for the windows at `rows`."""
        parts = [part.at(rows) for part in self._parts]
        return parts[0] if len(parts) == 1 else pa.StructArray.from_arrays(parts, ["sum", "count"])

    def results(self, rows: Rows) -> pa.Array:
        """What a user sees for the windows at `rows`."""
        return self._aggregation.result_columns([part.at(rows) for part in self._parts])

    def loaded_results(self) -> pa.Array:
        """The results of the windows that came from a store, as they came."""
        return self._aggregation.result_columns(self._loaded)

    def running(self, window: Rows, decision: npt.NDArray[np.uint8], merges: Merges) -> pa.Array:
        """The result of its window after each record."""
        if self._by_calls is not None:
            return pa.array(self._by_calls.running(window, decision, merges).tolist(), self._type)
        return self._aggregation.result_columns([part.running(window, merges) for part in self._parts])


def _split(
    loaded: npt.NDArray[np.object_] | pa.Array, aggregation: Aggregation, kind: pa.DataType | None
) -> list[pa.Array]:
    if aggregation.accumulators == ("float_sum", "count_values"):
        if isinstance(loaded, pa.Array):
            return list(loaded.flatten())
        sums, counts = [pair["sum"] for pair in loaded], [pair["count"] for pair in loaded]
        return [pa.array(sums, pa.float64()), pa.array(counts, pa.int64())]
    return [loaded if isinstance(loaded, pa.Array) else pa.array(list(loaded), kind)]


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
                got = f"{type(error).__name__}: {shorten(error, 200)}"
                want = "nothing of this run was committed"
                raise AggregationFailed(problem(f"{a.code} failed at {where}", got, want)) from error
            yield i, state[w]

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
        return list(columns[0].slice(lo, count).to_pylist())
    raise AssertionError("several columns come as one struct")


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
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
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
