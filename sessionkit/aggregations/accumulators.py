"""Accumulators in arrays: for each window one number, or one position among the values. They call the loops."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.aggregations import fold_loops as loops
from sessionkit.aggregations.list_columns import COUNTED, counted, distinct, lengths_of, without_nulls
from sessionkit.aggregations.sketches import SKETCH, sketches_of
from sessionkit.base.arrays import Flags, Longs, arrow_array, is_null, numpy_array, of_type, read_only
from sessionkit.base.compiled import NOTHING
from sessionkit.errors import NumberOverflow, errors_as, problem
from sessionkit.trace.trace import NO_MERGES, Merges
from sessionkit.trace.window_trace import Touches
from sessionkit.windows.sliding.finals import EVERY, checks_of, sliding_best, sliding_total
from sessionkit.windows.sliding.running import running_best, running_total
from sessionkit.windows.sliding.structure import SlidingStructure

MOST_DIGITS = 38  # of Arrow's decimals of 128 bits
TOO_LONG = f"does not fit into {MOST_DIGITS} digits"
NO_RUNNING = np.empty(0, np.int64)
Rows = npt.NDArray[np.integer[Any]]
Spans = npt.NDArray[np.void]  # rows of `SPAN`, see windows/hopping_by_slot.py


def _valid(column: pa.Array) -> Flags:
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
    """Counts and sums: one number a window. Without values it counts records. Other accumulators have these calls."""

    def __init__(self, values: npt.NDArray[Any] | None, valid: Flags, loaded: npt.NDArray[Any]) -> None:
        self._values, self._valid, self._checks = values, valid, checks_of(values)
        self._loaded, self._total = loaded, loaded.copy()

    def grow(self, windows: int) -> None:
        """Makes room for as many windows."""
        self._total = _enlarged(self._total, windows, 0)

    def feed(self, window: Rows, merges: Merges, lo: int) -> None:
        """Adds the records from `lo` on, whose windows are `window`; the places in `merges` count from `lo`."""
        self._fold(window, merges, lo, self._total, self._total[:0])

    def feed_touches(self, record: Rows, window: Rows, lo: int) -> None:
        """Adds record `lo + record[j]` to window `window[j]`, in this order."""
        values = self._values if self._values is None else self._values[lo:]
        failed = loops.total_of_touches(record, window, values, self._valid[lo:], self._checks, self._total)
        self._check(failed, lo)

    def feed_spans(self, spans: Spans) -> None:
        """Adds every record to the windows of its span."""
        self._check(loops.total_of_spans(spans, self._values, self._valid, self._checks, self._total))

    def _fold(self, window: Rows, merges: Merges, lo: int, total: npt.NDArray[Any], running: npt.NDArray[Any]) -> None:
        span = slice(lo, lo + len(window))
        values = self._values if self._values is None else self._values[span]
        self._check(loops.fold_total(window, merges, values, self._valid[span], self._checks, total, running), lo)

    def feed_sliding(self, structure: SlidingStructure) -> None:
        """Adds every record to its sliding windows."""
        self._total, failed = sliding_total(structure, self._values, self._valid, self._loaded)
        self._check(failed)

    def running_touches(self, touches: Touches) -> pa.Array:
        """The value of its window after each touch."""
        out, failed = running_total(touches, self._values, self._valid, self._loaded)
        self._check(failed)
        return arrow_array(out)

    @staticmethod
    def _check(failed: int, lo: int = 0) -> None:
        """Refuses a sum that a record, counted from `lo`, made too large; -1 for none."""
        if failed >= 0:
            want = "cast the column to float"
            raise NumberOverflow(problem("an integer sum does not fit into 64 bits", f"record {lo + failed}", want))

    def at(self, rows: Rows) -> pa.Array:
        """The value of each of the windows at `rows`."""
        return arrow_array(self._total[rows])

    def running(self, window: Rows, merges: Merges) -> pa.Array:
        """The value of its window after each record."""
        total = _enlarged(self._loaded.copy(), len(self._total), 0)
        out = np.zeros(len(window), total.dtype)
        self._fold(window, merges, 0, total, out)
        return arrow_array(out)


class DecimalTotal:
    """Sums of decimals, exactly: a total for each 32 bits of their digits, put together where it is read."""

    def __init__(self, column: pa.Array, loaded: pa.Array) -> None:
        self._type = loaded.type
        parts = zip(_words(of_type(column, self._type)), _words(loaded), strict=True)
        self._totals = [Total(words, _valid(column), held) for words, held in parts]

    def grow(self, windows: int) -> None:
        for each in self._totals:
            each.grow(windows)

    def feed(self, window: Rows, merges: Merges, lo: int) -> None:
        for each in self._totals:
            each.feed(window, merges, lo)

    def feed_touches(self, record: Rows, window: Rows, lo: int) -> None:
        for each in self._totals:
            each.feed_touches(record, window, lo)

    def feed_spans(self, spans: Spans) -> None:
        for each in self._totals:
            each.feed_spans(spans)

    def feed_sliding(self, structure: SlidingStructure) -> None:
        for each in self._totals:
            each.feed_sliding(structure)

    def running_touches(self, touches: Touches) -> pa.Array:
        return self._joined([each.running_touches(touches) for each in self._totals])

    def at(self, rows: Rows) -> pa.Array:
        return self._joined([each.at(rows) for each in self._totals])

    def running(self, window: Rows, merges: Merges) -> pa.Array:
        return self._joined([each.running(window, merges) for each in self._totals])

    def _joined(self, totals: list[pa.Array]) -> pa.Array:
        """The decimals with these sums of their words."""
        words = np.empty((len(totals[0]), len(totals)), np.uint32)
        carry = np.zeros(len(words), np.int64)
        for place, total in enumerate(map(numpy_array, totals)):
            carry = carry + total
            words[:, place] = carry & _WORD
            carry >>= 32
        is_large = carry != words[:, -1].view(np.int32) >> 31
        words[is_large] = _WORD >> 1  # beyond 128 bits: what has too many digits as well
        joined = pa.Array.from_buffers(self._type, len(words), [None, pa.py_buffer(words)])
        with errors_as(NumberOverflow, f"a sum of decimals {TOO_LONG}", "cast the column to float", pa.ArrowInvalid):
            joined.validate(full=True)
        return joined


_WORD = 2**32 - 1


def _words(decimals: pa.Array) -> list[Longs]:
    """The digits of decimals as one whole number, in words of 32 bits: the lowest first, the last one with the sign."""
    words = np.zeros((len(decimals), 4), np.uint32)
    if len(decimals):
        end = decimals.offset + len(decimals)
        words = np.frombuffer(decimals.buffers()[1], np.uint32, 4 * end).reshape(-1, 4)[decimals.offset :]
    return [read_only(each.astype(np.int64)) for each in (*words.T[:3], words.T[3].view(np.int32))]


class Position:
    """Smallest, largest, first, last, earliest, latest: the place of one value a window, among loaded and new ones."""

    def __init__(self, column: pa.Array, loaded: pa.Array, loop: str) -> None:
        self._pool = pa.concat_arrays([loaded, column])
        self._base, self._largest = len(loaded), loop in ("max", "last", "latest")
        order = _ORDERS.get(loop)
        self._values = None if order is None else order(self._pool)
        self._valid = _valid(self._pool)
        self._loaded = np.where(is_null(loaded), NOTHING, np.arange(len(loaded)))
        self._best = self._loaded.copy()

    def grow(self, windows: int) -> None:
        self._best = _enlarged(self._best, windows, NOTHING)

    def feed(self, window: Rows, merges: Merges, lo: int) -> None:
        self._fold(window, merges, self._base + lo, self._best, NO_RUNNING)

    def feed_touches(self, record: Rows, window: Rows, lo: int) -> None:
        base = self._base + lo
        loops.best_of_touches(record, window, base, self._values, self._valid, self._largest, self._best)

    def feed_spans(self, spans: Spans) -> None:
        loops.best_of_spans(spans, self._base, self._values, self._valid, self._largest, self._best)

    def _fold(self, window: Rows, merges: Merges, base: int, best: npt.NDArray[Any], running: npt.NDArray[Any]) -> None:
        loops.fold_best(window, merges, base, self._values, self._valid, self._largest, best, running)

    def feed_sliding(self, structure: SlidingStructure) -> None:
        self._best = sliding_best(structure, self._base, self._values, self._valid, self._largest, self._loaded)

    def running_touches(self, touches: Touches) -> pa.Array:
        return self._take(running_best(touches, self._base, self._values, self._valid, self._largest, self._loaded))

    def _take(self, positions: Longs) -> pa.Array:
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


def _by_time(pool: pa.Array) -> Longs:
    """Places in the order of event time, of equal times of arrival."""
    place = np.empty(len(pool), np.int64)
    place[np.argsort(numpy_array(pool.field("at_ms")), kind="stable")] = np.arange(len(pool))
    return place


_ORDERS = {"min": _comparable, "max": _comparable, "earliest": _by_time, "latest": _by_time}


class Lists:
    """Collect: of each value the window that received it and its place in that window's list.

    What stands there is a link. Where a record is in one window its link has the record's own number; touches make
    links of their own, as a record can be in many windows. `kept` is what is made of the lists, for results and stores.
    """

    def __init__(
        self, column: pa.Array, loaded: pa.Array, kept: Callable[[pa.ListArray], pa.Array] = lambda lists: lists
    ) -> None:
        self._kept = kept
        flat = loaded.flatten() if len(loaded) else column.slice(0, 0)
        self._pool = pa.concat_arrays([of_type(flat, column.type), column])
        self._base = len(flat)
        self._length = lengths_of(loaded)
        self._into, self._behind = np.full(len(loaded), NOTHING, np.int64), np.zeros(len(loaded), np.int64)
        begin = np.cumsum(self._length) - self._length
        self._window = np.full(len(self._pool), NOTHING, np.int32)
        self._window[: self._base] = np.repeat(np.arange(len(loaded)), self._length)
        self._place = np.zeros(len(self._pool), np.int32)
        self._place[: self._base] = np.arange(self._base) - np.repeat(begin, self._length)
        self._values: list[Longs] | None = None  # places of the links' values, once there are touches
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
        self._fold(window, NO_MERGES, self._links)
        self._values.append(np.asarray(self._base + lo + record, np.int64))
        self._links += len(record)

    def _fold(self, window: Rows, merges: Merges, first: int) -> None:
        span = slice(first, first + len(window))
        self._window[span] = window
        self._has_long_ways |= len(merges.at) > 0
        loops.fold_lists(self._window[span], merges, self._length, self._into, self._behind, self._place[span])

    def at(self, rows: Rows) -> pa.Array:
        if self._has_long_ways:
            loops.shorten_ways(self._into, self._behind)
            self._has_long_ways = False
        ends, links = loops.listed(np.asarray(rows), self._length, self._into, self._behind, self._window, self._place)
        values = links if self._values is None else np.concatenate(self._values)[links]
        lists = pa.ListArray.from_arrays(arrow_array(ends).cast(pa.int32()), self._pool.take(arrow_array(values)))
        return self._kept(lists)

    def _by_calls(self, *_: Any) -> Any:
        raise AssertionError("lists of spans, of sliding windows and of a changelog are made by calls: CompiledFold")

    feed_spans = feed_sliding = running = running_touches = _by_calls


def _sketches(column: pa.Array, loaded: pa.Array) -> Lists:
    """Lists of what each window's sketch is to be made of: the one that was loaded, and values."""
    names, ends = ["value", "sketch"], pa.array(np.arange(len(loaded) + 1, dtype=np.int32))
    held = pa.StructArray.from_arrays([pa.nulls(len(loaded), column.type), loaded], names)
    new = pa.StructArray.from_arrays([column, pa.nulls(len(column), SKETCH)], names)
    return Lists(new, pa.ListArray.from_arrays(ends, held), kept=sketches_of)


def _counted(column: pa.Array, loaded: pa.Array) -> Lists:
    ones = arrow_array(np.ones(len(column), np.int64))
    return Lists(pa.StructArray.from_arrays([column, ones], fields=[*COUNTED]), loaded, kept=counted)


def _count(column: pa.Array | None, loaded: pa.Array) -> Total:
    return Total(None, EVERY if column is None else _valid(column), _numbers(loaded, pa.int64()))


def _sum(column: pa.Array, loaded: pa.Array) -> Total | DecimalTotal:
    kind = _sum_type(column.type)
    if pa.types.is_decimal(kind):
        return DecimalTotal(column, loaded)
    return Total(_numbers(column, kind), _valid(column), _numbers(loaded, kind))


def _sum_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal(kind):
        return pa.decimal128(MOST_DIGITS, kind.scale)
    return pa.float64() if pa.types.is_floating(kind) else pa.int64()


class Loop(NamedTuple):
    """A compiled loop, as an aggregation names it.

    `accumulator` is made of the column (None: it reads none) and of what the windows of a store hold; `type_of` tells
    the type of what it holds, over values of a type.
    """

    accumulator: Callable[[Any, pa.Array], Total | DecimalTotal | Position | Lists]
    type_of: Callable[[Any], pa.DataType]
    knows_every_step: bool = True  # what a window held after each record; and windows that are copied from each other


LoopName = Literal[
    "count", "count_values", "sum", "min", "max", "first", "last", "earliest", "latest",
    "collect", "values", "distinct", "counted", "sketch",
]  # fmt: skip
POSITIONS: tuple[LoopName, ...] = ("min", "max", "first", "last", "earliest", "latest")
LOOPS: dict[LoopName, Loop] = {
    "count": Loop(lambda column, loaded: _count(None, loaded), lambda kind: pa.int64()),
    "count_values": Loop(_count, lambda kind: pa.int64()),
    "sum": Loop(_sum, _sum_type),
    **{name: Loop(partial(Position, loop=name), lambda kind: kind) for name in POSITIONS},
    "collect": Loop(Lists, pa.list_, knows_every_step=False),
    "values": Loop(partial(Lists, kept=without_nulls), pa.list_, knows_every_step=False),
    "distinct": Loop(partial(Lists, kept=distinct), pa.list_, knows_every_step=False),
    "counted": Loop(_counted, lambda kind: pa.list_(COUNTED), knows_every_step=False),
    "sketch": Loop(_sketches, lambda kind: SKETCH, knows_every_step=False),
}
