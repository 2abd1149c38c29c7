"""Accumulators in arrays: for each window one number, or one position among the values. They call the loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.aggregations import fold_loops as loops
from sessionkit.aggregations import touch_loops
from sessionkit.base.arrays import arrow_array, is_null, numpy_array
from sessionkit.base.compiled import NOTHING
from sessionkit.errors import NumberOverflow, problem
from sessionkit.trace.trace import Merges
from sessionkit.trace.window_trace import Touches
from sessionkit.windows.sliding.finals import (
    sliding_count,
    sliding_extreme,
    sliding_float_sum,
    sliding_int_sum,
    sliding_position,
)
from sessionkit.windows.sliding.running import (
    running_count,
    running_extreme,
    running_float_sum,
    running_int_sum,
    running_position,
)
from sessionkit.windows.sliding.structure import SlidingStructure

NO_RUNNING = np.empty(0, np.int64)
EVERY = np.empty(0, np.bool_)  # no mask: all values count
Rows = npt.NDArray[np.integer[Any]]
Spans = npt.NDArray[np.void]  # see windows/spans


class Accumulator(Protocol):
    """One compiled accumulator: a number (or a position among the values) for each window."""

    def grow(self, windows: int) -> None:
        """Makes room for as many windows."""

    def feed(self, window: Rows, merges: Merges, lo: int) -> None:
        """Adds the records from `lo` on, whose windows are `window`; the places in `merges` count from `lo`."""

    def feed_touches(self, record: Rows, window: Rows, lo: int) -> None:
        """Adds record `lo + record[j]` to window `window[j]`, in this order."""

    def feed_spans(self, spans: Spans) -> None:
        """Adds every record to the windows of its span."""

    def feed_sliding(self, structure: SlidingStructure) -> None:
        """Adds every record to its sliding windows."""

    def running_touches(self, touches: Touches) -> pa.Array:
        """What it held for its window after each touch."""

    def at(self, rows: Rows) -> pa.Array:
        """What it holds for the windows at `rows`."""

    def running(self, window: Rows, merges: Merges) -> pa.Array:
        """What it held for its window after each record."""


def _valid(column: pa.Array) -> npt.NDArray[np.bool_]:
    return ~is_null(column) if column.null_count else EVERY


def _numbers(column: pa.Array, kind: pa.DataType) -> npt.NDArray[Any]:
    # a float takes the nearest of a large integer, as Python's addition does; an integer must fit
    column = column if column.type == kind else column.cast(kind, safe=not pa.types.is_floating(kind))
    return numpy_array(column)


def _enlarged(old: npt.NDArray[Any], size: int, fill: int) -> npt.NDArray[Any]:
    if size <= len(old):
        return old
    room = max(size, (2 if fill else 8) * len(old))  # zeros that nobody reads cost nothing
    new = np.full(room, fill, old.dtype) if fill else np.zeros(room, old.dtype)
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

    def feed_touches(self, record: Rows, window: Rows, lo: int) -> None:
        if self._values is None:
            touch_loops.count_touches(record, window, self._valid[lo:], self._total)
            return
        stopped = touch_loops.SUMS[self._loop](record, window, self._values[lo:], self._valid[lo:], self._total)
        if stopped is not None and stopped >= 0:
            self._refuse(lo + int(record[stopped]))

    def feed_spans(self, spans: Spans) -> None:
        if self._values is None:
            touch_loops.count_spans(spans, self._valid, self._total)
            return
        failed = touch_loops.SPAN_SUMS[self._loop](spans, self._values, self._valid, self._total)
        if failed >= 0:
            self._refuse(failed)

    def _fold(self, window: Rows, merges: Merges, lo: int, total: npt.NDArray[Any], running: npt.NDArray[Any]) -> None:
        here = slice(lo, lo + len(window))
        columns = () if self._values is None else (self._values[here],)
        stopped = self._loop(window, merges, *columns, self._valid[here], total, running)
        if stopped is not None and stopped >= 0:
            self._refuse(lo + stopped)

    def feed_sliding(self, structure: SlidingStructure) -> None:
        if self._values is None:
            self._total = sliding_count(structure, self._valid, self._loaded)
        elif self._loop is loops.fold_float_sum:
            self._total = sliding_float_sum(structure, self._values, self._valid, self._loaded)
        else:
            self._total, failed = sliding_int_sum(structure, self._values, self._valid, self._loaded)
            if failed >= 0:
                self._refuse(failed)

    def running_touches(self, touches: Touches) -> pa.Array:
        if self._values is None:
            return arrow_array(running_count(touches, self._valid, self._loaded))
        if self._loop is loops.fold_float_sum:
            return arrow_array(running_float_sum(touches, self._values, self._valid, self._loaded))
        out, failed = running_int_sum(touches, self._values, self._valid, self._loaded)
        if failed >= 0:
            self._refuse(failed)
        return arrow_array(out)

    @staticmethod
    def _refuse(record: int) -> None:
        want = "cast the column to float"
        raise NumberOverflow(problem("an integer sum does not fit into 64 bits", f"record {record}", want))

    def at(self, rows: Rows) -> pa.Array:
        return arrow_array(self._total[rows])

    def running(self, window: Rows, merges: Merges) -> pa.Array:
        total = _enlarged(self._loaded.copy(), len(self._total), 0)
        out = np.zeros(len(window), total.dtype)
        self._fold(window, merges, 0, total, out)
        return arrow_array(out)


class Position:
    """Smallest, largest, first, last: the place of one value for each window, among loaded and new ones."""

    def __init__(self, column: pa.Array, loaded: pa.Array, loop: str) -> None:
        self._pool = pa.concat_arrays([loaded, column])
        self._base = len(loaded)
        self._word = loop
        self._values = _comparable(self._pool) if loop in ("min", "max") else None
        self._valid = _valid(self._pool)
        self._loaded = np.where(is_null(loaded), NOTHING, np.arange(len(loaded)))
        self._best = self._loaded.copy()

    def grow(self, windows: int) -> None:
        self._best = _enlarged(self._best, windows, NOTHING)

    def feed(self, window: Rows, merges: Merges, lo: int) -> None:
        self._fold(window, merges, self._base + lo, self._best, NO_RUNNING)

    def feed_touches(self, record: Rows, window: Rows, lo: int) -> None:
        place = (record, window, self._base + lo)
        if self._values is not None:
            touch_loops.extreme_of_touches(*place, self._values, self._valid, self._word == "max", self._best)
        else:
            touch_loops.position_of_touches(*place, self._valid, self._word == "last", self._best)

    def feed_spans(self, spans: Spans) -> None:
        if self._values is not None:
            columns = (self._values, self._valid, self._word == "max", self._best)
            touch_loops.extreme_of_spans(spans, self._base, *columns)
        else:
            touch_loops.position_of_spans(spans, self._base, self._valid, self._word == "last", self._best)

    def _fold(self, window: Rows, merges: Merges, base: int, best: npt.NDArray[Any], running: npt.NDArray[Any]) -> None:
        if self._values is not None:
            loops.fold_extreme(window, merges, base, self._values, self._valid, self._word == "max", best, running)
        else:
            loops.fold_position(window, merges, base, self._valid, self._word == "last", best, running)

    def feed_sliding(self, structure: SlidingStructure) -> None:
        if self._values is not None:
            columns = (self._base, self._values, self._valid, self._word == "max", self._loaded)
            self._best = sliding_extreme(structure, *columns)
        else:
            self._best = sliding_position(structure, self._base, self._valid, self._word == "last", self._loaded)

    def running_touches(self, touches: Touches) -> pa.Array:
        if self._values is not None:
            columns = (self._base, self._values, self._valid, self._word == "max", self._loaded)
            return self._take(running_extreme(touches, *columns))
        return self._take(running_position(touches, self._base, self._valid, self._word == "last", self._loaded))

    def _take(self, positions: npt.NDArray[np.int64]) -> pa.Array:
        return self._pool.take(arrow_array(positions, positions == NOTHING))

    def at(self, rows: Rows) -> pa.Array:
        return self._take(self._best[rows])

    def running(self, window: Rows, merges: Merges) -> pa.Array:
        best = _enlarged(self._loaded.copy(), len(self._best), NOTHING)
        out = np.full(len(window), NOTHING, np.int64)
        self._fold(window, merges, self._base, best, out)
        return self._take(out)


def _comparable(pool: pa.Array) -> npt.NDArray[Any]:
    if pa.types.is_floating(pool.type):
        return _numbers(pool, pa.float64())
    if pa.types.is_decimal(pool.type):  # as exact as they are: their places in order
        return numpy_array(pc.rank(pool, tiebreaker="dense")).astype(np.int64)
    if pa.types.is_temporal(pool.type):
        pool = pool.view(pa.int32() if pool.type.bit_width == 32 else pa.int64())
    return _numbers(pool, pa.int64())


class Lists:
    """Collect: of each value the window that received it and its place in that window's list.

    What stands there is a link. Where a record is in one window its link has the record's own number; touches make
    links of their own, as a record can be in many windows.
    """

    def __init__(self, column: pa.Array, loaded: pa.Array) -> None:
        flat = loaded.flatten() if len(loaded) else column.slice(0, 0)
        self._pool = pa.concat_arrays([flat.cast(column.type), column])
        self._base = len(flat)
        self._length = numpy_array(pc.list_value_length(loaded)).astype(np.int64)
        self._into, self._behind = np.full(len(loaded), NOTHING, np.int64), np.zeros(len(loaded), np.int64)
        begin = np.cumsum(self._length) - self._length
        self._window = np.full(len(self._pool), NOTHING, np.int32)
        self._window[: self._base] = np.repeat(np.arange(len(loaded)), self._length)
        self._place = np.zeros(len(self._pool), np.int32)
        self._place[: self._base] = np.arange(self._base) - np.repeat(begin, self._length)
        self._values: list[npt.NDArray[np.int64]] | None = None  # places of the links' values, once there are touches
        self._links = self._base
        self._has_long_ways = False  # some windows were absorbed since the ways were shortened

    def grow(self, windows: int) -> None:
        self._length = _enlarged(self._length, windows, 0)
        self._into, self._behind = _enlarged(self._into, windows, NOTHING), _enlarged(self._behind, windows, 0)

    def feed(self, window: Rows, merges: Merges, lo: int) -> None:
        self._fold(window, merges, self._base + lo)

    def feed_touches(self, record: Rows, window: Rows, lo: int) -> None:
        if self._values is None:
            self._values = [np.arange(self._base)]
        self._window = _enlarged(self._window, self._links + len(record), NOTHING)
        self._place = _enlarged(self._place, self._links + len(record), 0)
        self._fold(window, _no_merges(), self._links)
        self._values.append(np.asarray(self._base + lo + record, np.int64))
        self._links += len(record)

    def _fold(self, window: Rows, merges: Merges, first: int) -> None:
        here = slice(first, first + len(window))
        self._window[here] = window
        self._has_long_ways |= len(merges.at) > 0
        loops.fold_lists(self._window[here], merges, self._length, self._into, self._behind, self._place[here])

    def at(self, rows: Rows) -> pa.Array:
        if self._has_long_ways:
            loops.shorten_ways(self._into, self._behind)
            self._has_long_ways = False
        ends, links = loops.listed(np.asarray(rows), self._length, self._into, self._behind, self._window, self._place)
        values = links if self._values is None else np.concatenate(self._values)[links]
        return pa.ListArray.from_arrays(arrow_array(ends).cast(pa.int32()), self._pool.take(arrow_array(values)))

    def feed_spans(self, spans: Spans) -> None:
        raise AssertionError("a list is made of touches, see CompiledFold.takes_spans")

    def feed_sliding(self, structure: SlidingStructure) -> None:
        raise AssertionError("the lists of sliding windows are made by calls, see CompiledFold")

    def running(self, window: Rows, merges: Merges) -> pa.Array:
        raise AssertionError("the lists of a changelog are made by calls, see CompiledFold")

    def running_touches(self, touches: Touches) -> pa.Array:
        raise AssertionError("the lists of a changelog are made by calls, see CompiledFold")


def _no_merges() -> Merges:
    return Merges(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int32))


def _count(column: pa.Array | None, loaded: pa.Array) -> Total:
    return Total(column, loaded, loops.fold_count, pa.int64())


def _sum(column: pa.Array, loaded: pa.Array) -> Total:
    is_float = pa.types.is_floating(column.type)
    return Total(column, loaded, loops.fold_float_sum if is_float else loops.fold_int_sum, _sum_type(column.type))


def _sum_type(kind: pa.DataType) -> pa.DataType:
    return pa.float64() if pa.types.is_floating(kind) else pa.int64()


def _same_type(kind: pa.DataType) -> pa.DataType:
    return kind


class Loop(NamedTuple):
    """A compiled loop, as an aggregation names it.

    `accumulator` is made of the column (None: it reads none) and of what the windows of a store hold; `type_of` tells
    the type of what it holds, over values of a type.
    """

    accumulator: Callable[[Any, pa.Array], Accumulator]
    type_of: Callable[[Any], pa.DataType]
    knows_every_step: bool = True  # what a window held after each record; and windows that are copied from each other


LoopName = Literal["count", "count_values", "sum", "min", "max", "first", "last", "collect"]
LOOPS: dict[LoopName, Loop] = {
    "count": Loop(lambda column, loaded: _count(None, loaded), lambda kind: pa.int64()),
    "count_values": Loop(_count, lambda kind: pa.int64()),
    "sum": Loop(_sum, _sum_type),
    "min": Loop(lambda column, loaded: Position(column, loaded, "min"), _same_type),
    "max": Loop(lambda column, loaded: Position(column, loaded, "max"), _same_type),
    "first": Loop(lambda column, loaded: Position(column, loaded, "first"), _same_type),
    "last": Loop(lambda column, loaded: Position(column, loaded, "last"), _same_type),
    "collect": Loop(Lists, pa.list_, knows_every_step=False),
}
