"""What each touch of a sliding window left in it: the values of a changelog, one row a touch.

A copy is made of what its source held before the record, which has been added to the source by then.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sessionkit.base.arrays import Flags, Longs
from sessionkit.base.compiled import NOTHING, compiled_loop, inlined
from sessionkit.base.decisions import COPIED, OPENED
from sessionkit.trace.window_trace import Touches
from sessionkit.windows.feed import is_better
from sessionkit.windows.sliding.finals import checks_of


@inlined
def _copied(touches, j, held, before, nothing):  # type: ignore[no-untyped-def]
    """The value that a record's COPIED row will copy, looked up at its first row and kept for the others."""
    record = touches.record[j]
    if j > 0 and touches.record[j - 1] == record:
        return before
    at = j
    while at < touches.record.shape[0] and touches.record[at] == record:
        if touches.effect[at] == COPIED:
            return held[touches.source[at]]
        at += 1
    return nothing


@inlined
def _base(touches, j, held, before, nothing):  # type: ignore[no-untyped-def]
    """The value in the window of a row before the record is added."""
    if touches.effect[j] == OPENED:
        return nothing
    if touches.effect[j] == COPIED:
        return before
    source = touches.source[j]
    return held[source] if source >= 0 else held[touches.window[j]]


@compiled_loop
def run_totals(touches, values, valid, nothing, checks, total, out):  # type: ignore[no-untyped-def]
    """Sums after each touch, or counts where there are no values (None); `total` are those of the windows.

    Returns the record at which 64 bits were not enough, -1 if they were; `checks` is True for integers, else None.
    """
    before = nothing
    for j in range(touches.record.shape[0]):
        before = _copied(touches, j, total, before, nothing)
        w, i = touches.window[j], touches.record[j]
        if w >= 0:
            number = _base(touches, j, total, before, nothing)
            if touches.effect[j] != COPIED and (valid.shape[0] == 0 or valid[i]):
                value = 1 if values is None else values[i]
                new = number + value
                if checks is not None and ((number ^ new) & (value ^ new)) < 0:
                    return i
                number = new
            total[w] = number
            out[j] = number
    return -1


@compiled_loop
def run_best(touches, base_position, values, valid, largest, best, out):  # type: ignore[no-untyped-def]
    """Position of the smallest or largest value after each touch, of equal ones the first; or of the first or last."""
    nothing = np.int64(NOTHING)
    before = nothing
    for j in range(touches.record.shape[0]):
        before = _copied(touches, j, best, before, nothing)
        w, at = touches.window[j], base_position + touches.record[j]
        if w >= 0:
            position = _base(touches, j, best, before, nothing)
            counts = touches.effect[j] != COPIED and (valid.shape[0] == 0 or valid[at])
            if counts and is_better(values, largest, position, at):
                position = at
            best[w] = position
            out[j] = position


def _state(touches: Touches, loaded: npt.NDArray[Any], nothing: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """(what each window holds at first, room for a value a touch)."""
    values = np.full(max(len(loaded), int(touches.window.max(initial=-1)) + 1), nothing, loaded.dtype)
    values[: len(loaded)] = loaded
    return values, np.full(len(touches.record), nothing, loaded.dtype)


def running_total(
    touches: Touches, values: npt.NDArray[Any] | None, valid: Flags, loaded: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any], int]:
    """Totals as of `sliding_total` after each touch, added one by one."""
    total, out = _state(touches, loaded, 0)
    return out, run_totals(touches, values, valid, loaded.dtype.type(0), checks_of(values), total, out)


def running_best(
    touches: Touches, base: int, values: npt.NDArray[Any] | None, valid: Flags, largest: bool, loaded: Longs
) -> Longs:
    """Positions as of `sliding_best` after each touch."""
    best, out = _state(touches, loaded, NOTHING)
    run_best(touches, base, values, valid, largest, best, out)
    return out
