"""Final values of sliding windows, without expanding the overlap: a record costs the same in 4 windows and in 4,000.

A slot's windows are a line of places (`blocks.py`). A record is laid over the range of windows that it was added to; a
window that is made is given what another one holds at that moment, or nothing. Nothing is ever subtracted. A place that
holds just that already is left alone, and so it is nearly always: what was laid over it before it was made are the
records that its neighbour holds too. Only records that were dropped from some of their windows make a difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sessionkit.base.arrays import Flags, Longs
from sessionkit.base.compiled import NOTHING, compiled_loop, inlined
from sessionkit.base.durations import INT64_MAX
from sessionkit.windows.sliding.blocks import (
    MOST_LEVELS,
    best_at,
    lay_best,
    lay_sum,
    set_best,
    set_sum,
    sum_at,
    tree_length,
)

if TYPE_CHECKING:
    from sessionkit.windows.sliding.structure import SlidingStructure

EVERY = np.empty(0, np.bool_)  # no mask: all values count
SAFE = 2.0**62  # a sum of absolute values below this leaves no partial sum outside 64 bits
Values = npt.NDArray[Any] | None  # whole numbers or floats; None where records are counted, or their places compared


@inlined
def _gather(operations, begin, end, base_position, column, mine):  # type: ignore[no-untyped-def]
    """Brings the values of a slot's records together. In a loop of its own, so that fetching them overlaps."""
    for j in range(begin, end):
        mine[j - begin] = column[base_position + operations.record[j]]


@compiled_loop
def fold_sums(operations, values, valid, one, loaded, tree, mine, nodes, total):  # type: ignore[no-untyped-def]
    """Sums of the values (of `one` a record where there are no values) into `total`, one a window.

    `one` also says what is added: a whole number, which may wrap, or a float.
    """
    nothing = one - one
    every = valid.shape[0] == 0
    at = 0
    for s in range(operations.record_ends.shape[0] - 1):
        base = operations.window_ends[s]
        size = operations.window_ends[s + 1] - base
        if size == 0:
            continue
        tree[: tree_length(size)] = nothing
        if loaded.shape[0] > 0:
            for place in range(size):
                window = operations.window[base + place]
                if window < loaded.shape[0]:
                    tree[place] = loaded[window]
        begin, end = operations.record_ends[s], operations.record_ends[s + 1]
        if values is not None:
            _gather(operations, begin, end, 0, values, mine)
        for j in range(begin, end):
            for _ in range(operations.made_count[j]):
                source = operations.made_source[at]
                number = sum_at(tree, size, source) if source >= 0 else nothing
                set_sum(tree, size, operations.made_place[at], number, nothing, nodes)
                at += 1
            if every or valid[operations.record[j]]:
                number = one if values is None else mine[j - begin]
                lay_sum(tree, size, operations.first[j], operations.end[j], number, nodes)
        for place in range(size):
            total[operations.window[base + place]] = sum_at(tree, size, place)


@compiled_loop
def fold_best(  # type: ignore[no-untyped-def]
    operations, base_position, keys, valid, loaded, tree_keys, tree, mine, nodes, best
):
    """Position of the smallest key of each window into `best`, of equal ones the lowest; INT64_MAX where there is none.

    The record i has position `base_position + i`; the loaded windows' values come before, at the positions in `loaded`.
    """
    nothing = np.int64(2**63 - 1)
    every = valid.shape[0] == 0
    at = 0
    for s in range(operations.record_ends.shape[0] - 1):
        base = operations.window_ends[s]
        size = operations.window_ends[s + 1] - base
        if size == 0:
            continue
        tree_keys[: tree_length(size)] = nothing
        tree[: tree_length(size)] = nothing
        if loaded.shape[0] > 0:
            for place in range(size):
                window = operations.window[base + place]
                if window < loaded.shape[0] and loaded[window] >= 0:
                    tree_keys[place] = keys[loaded[window]]
                    tree[place] = loaded[window]
        begin, end = operations.record_ends[s], operations.record_ends[s + 1]
        _gather(operations, begin, end, base_position, keys, mine)
        for j in range(begin, end):
            for _ in range(operations.made_count[j]):
                source = operations.made_source[at]
                key, position = nothing, nothing
                if source >= 0:
                    key, position = best_at(tree_keys, tree, size, source)
                set_best(tree_keys, tree, size, operations.made_place[at], key, position, nothing, nodes)
                at += 1
            position = base_position + operations.record[j]
            if every or valid[position]:
                first, last = operations.first[j], operations.end[j]
                lay_best(tree_keys, tree, size, first, last, mine[j - begin], position, nodes)
        for place in range(size):
            best[operations.window[base + place]] = best_at(tree_keys, tree, size, place)[1]


@compiled_loop
def first_overflow(operations, s, values, valid, loaded, total, there):  # type: ignore[no-untyped-def]
    """The first record of slot s at which the sum of a window leaves 64 bits, -1 if none does: window by window."""
    every = valid.shape[0] == 0
    base = operations.window_ends[s]
    for place in range(operations.window_ends[s + 1] - base):
        window = operations.window[base + place]
        there[place] = window < loaded.shape[0]
        total[place] = loaded[window] if there[place] else 0
    at = operations.made_ends[s]
    for j in range(operations.record_ends[s], operations.record_ends[s + 1]):
        for _ in range(operations.made_count[j]):
            place, source = operations.made_place[at], operations.made_source[at]
            there[place] = True
            total[place] = total[source] if source >= 0 else 0
            at += 1
        i = operations.record[j]
        if every or valid[i]:
            for place in range(operations.first[j], operations.end[j]):
                if there[place]:
                    old, new = total[place], total[place] + values[i]
                    if ((old ^ new) & (values[i] ^ new)) < 0:
                        return i
                    total[place] = new
    return -1


def _most(ends: Longs) -> int:
    """The size of the largest slot."""
    return int(np.diff(ends).max(initial=0))


def checks_of(values: Values) -> bool | None:
    """Whether sums of these values can be too large: of integers, for which a loop is compiled with the check."""
    return True if values is not None and values.dtype.kind == "i" else None


def _sums(structure: SlidingStructure, values: Values, valid: Flags, loaded: npt.NDArray[Any]) -> npt.NDArray[Any]:
    operations, kind = structure.operations, loaded.dtype
    tree = np.empty(tree_length(_most(operations.window_ends)), kind)
    room = np.empty(0 if values is None else _most(operations.record_ends), kind)
    nodes = np.empty(4 * MOST_LEVELS, np.int64)
    total = np.empty(len(structure.slot), kind)
    fold_sums(operations, values, valid, kind.type(1), loaded, tree, room, nodes, total)
    return total


def sliding_total(
    structure: SlidingStructure, values: Values, valid: Flags, loaded: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any], int]:
    """The sum of each window, and the first record at which 64 bits were not enough for one, -1 if they always were.

    Without values how many records it holds, with `valid` how many whose value is not null. `loaded` are the numbers
    of the loaded windows. Floats are rounded in another order than when added one by one: as sums of sums.
    """
    total = _sums(structure, values, valid, loaded)
    if values is None or not checks_of(values) or len(values) * _size(values) + _size(loaded) < SAFE:
        return total, -1
    sizes, loaded_sizes = (np.abs(column.astype(np.float64)) for column in (values, loaded))
    most = _sums(structure, sizes, valid, loaded_sizes)
    operations, failed = structure.operations, []
    windows = _most(operations.window_ends)
    scratch, sums = np.empty(windows, np.bool_), np.empty(windows, np.int64)
    for s in np.unique(structure.slot[most >= SAFE]).tolist():
        failed.append(first_overflow(operations, s, values, valid, loaded, sums, scratch))
    return total, min((i for i in failed if i >= 0), default=-1)


def _size(values: Longs) -> int:
    """The largest absolute value."""
    return max(-int(values.min(initial=0)), int(values.max(initial=0)))


def _best(structure: SlidingStructure, base: int, keys: Longs, valid: Flags, loaded: Longs) -> Longs:
    operations = structure.operations
    nodes = tree_length(_most(operations.window_ends))
    room = [np.empty(size, np.int64) for size in (nodes, nodes, _most(operations.record_ends), 4 * MOST_LEVELS)]
    best = np.empty(len(structure.slot), np.int64)
    fold_best(operations, base, keys, valid, loaded, *room, best)
    best[best == INT64_MAX] = NOTHING
    return best


def sliding_best(
    structure: SlidingStructure, base: int, values: Values, valid: Flags, largest: bool, loaded: Longs
) -> Longs:
    """Position (in `values`) of the smallest or largest value of each window, of equal ones the first; NOTHING: none.

    The loaded windows' values are the first ones, `loaded` are their positions, and the records' come from `base` on.
    A number that is no number stays where it is the first of its window and is passed over elsewhere. Without values it
    is the position of the first or last value that is not null.
    """
    keys = np.arange(base + len(structure.decision)) if values is None else ordered(values)
    strange = np.isnan(values) if values is not None and values.dtype.kind == "f" else EVERY
    if largest:
        keys = ~keys
    if not strange.any():
        return _best(structure, base, keys, valid, loaded)
    numbers = ~strange & valid if len(valid) else ~strange
    best = _best(structure, base, keys, numbers, np.where((loaded < 0) | strange[loaded], NOTHING, loaded))
    first = sliding_best(structure, base, None, valid, False, loaded)
    return np.where((first >= 0) & strange[first], first, best)


def ordered(values: npt.NDArray[Any]) -> Longs:
    """Whole numbers in the order of `values`: themselves, or the bits of floats (both zeros are one)."""
    if values.dtype.kind != "f":
        return values
    bits = (values + 0.0).view(np.int64)
    return bits ^ ((bits >> 63) & INT64_MAX)
