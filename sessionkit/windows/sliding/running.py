"""What each touch of a sliding window left in it: the values of a changelog, one row a touch.

A copy is made of what its source held before the record, which has been added to the source by then.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sessionkit.base.compiled import NOTHING, compiled_loop, inlined
from sessionkit.base.decisions import COPIED, OPENED
from sessionkit.trace.window_trace import Touches
from sessionkit.windows.sliding.finals import NO_VALUES, Floats, Longs, Mask


@inlined
def _copied(touches, j, held, before, nothing):  # type: ignore[no-untyped-def]
    """What the COPIED row of a record will copy, looked up at the first row of the record, and kept for the others."""
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
    """What the window of a row holds before the record is added."""
    if touches.effect[j] == OPENED:
        return nothing
    if touches.effect[j] == COPIED:
        return before
    source = touches.source[j]
    return held[source] if source >= 0 else held[touches.window[j]]


@compiled_loop
def run_float_sums(touches, values, valid, total, out):  # type: ignore[no-untyped-def]
    """Sums of floats after each touch; `total` are those of the windows, before and after."""
    before = 0.0
    for j in range(touches.record.shape[0]):
        before = _copied(touches, j, total, before, 0.0)
        w, i = touches.window[j], touches.record[j]
        if w >= 0:
            number = _base(touches, j, total, before, 0.0)
            if touches.effect[j] != COPIED and (valid.shape[0] == 0 or valid[i]):
                number += values[i]
            total[w] = number
            out[j] = number


@compiled_loop
def run_int_sums(touches, values, valid, total, out):  # type: ignore[no-untyped-def]
    """Sums of integers (of ones where there are no values); returns the record at which 64 bits were too few, or -1."""
    nothing = np.int64(0)
    before = nothing
    for j in range(touches.record.shape[0]):
        before = _copied(touches, j, total, before, nothing)
        w, i = touches.window[j], touches.record[j]
        if w >= 0:
            number = _base(touches, j, total, before, nothing)
            if touches.effect[j] != COPIED and (valid.shape[0] == 0 or valid[i]):
                value = values[i] if values.shape[0] > 0 else np.int64(1)
                new = number + value
                if ((number ^ new) & (value ^ new)) < 0:
                    return i
                number = new
            total[w] = number
            out[j] = number
    return -1


@compiled_loop
def run_extremes(touches, base_position, values, valid, largest, best, out):  # type: ignore[no-untyped-def]
    """Position of the smallest or largest value after each touch; of equal ones the first."""
    nothing = np.int64(NOTHING)
    before = nothing
    for j in range(touches.record.shape[0]):
        before = _copied(touches, j, best, before, nothing)
        w, at = touches.window[j], base_position + touches.record[j]
        if w >= 0:
            position = _base(touches, j, best, before, nothing)
            if touches.effect[j] != COPIED and (valid.shape[0] == 0 or valid[at]):
                if position == nothing:
                    position = at
                elif largest:
                    position = at if values[at] > values[position] else position
                else:
                    position = at if values[at] < values[position] else position
            best[w] = position
            out[j] = position


@compiled_loop
def run_positions(touches, base_position, valid, last, best, out):  # type: ignore[no-untyped-def]
    """Position of the first or last value that is not null after each touch."""
    nothing = np.int64(NOTHING)
    before = nothing
    for j in range(touches.record.shape[0]):
        before = _copied(touches, j, best, before, nothing)
        w, at = touches.window[j], base_position + touches.record[j]
        if w >= 0:
            position = _base(touches, j, best, before, nothing)
            if touches.effect[j] != COPIED and (valid.shape[0] == 0 or valid[at]) and (last or position == nothing):
                position = at
            best[w] = position
            out[j] = position


def _state(touches: Touches, loaded: npt.NDArray[Any], nothing: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """(what each window holds at first, room for a value a touch)."""
    held = np.full(max(len(loaded), int(touches.window.max(initial=-1)) + 1), nothing, loaded.dtype)
    held[: len(loaded)] = loaded
    return held, np.full(len(touches.record), nothing, loaded.dtype)


def running_count(touches: Touches, valid: Mask, loaded: Longs) -> Longs:
    """How many records the window held after each touch; with `valid`, how many whose value is not null."""
    total, out = _state(touches, loaded, 0)
    run_int_sums(touches, NO_VALUES, valid, total, out)
    return out


def running_int_sum(touches: Touches, values: Longs, valid: Mask, loaded: Longs) -> tuple[Longs, int]:
    """The sum after each touch, and the first record at which 64 bits were not enough, -1 if they always were."""
    total, out = _state(touches, loaded, 0)
    return out, run_int_sums(touches, values, valid, total, out)


def running_float_sum(touches: Touches, values: Floats, valid: Mask, loaded: Floats) -> Floats:
    """The sum after each touch, added one by one."""
    total, out = _state(touches, loaded, 0)
    run_float_sums(touches, values, valid, total, out)
    return out


def running_extreme(
    touches: Touches, base: int, values: npt.NDArray[Any], valid: Mask, largest: bool, loaded: Longs
) -> Longs:
    """Position (in `values`) of the smallest or largest value after each touch; NOTHING where there is none."""
    best, out = _state(touches, loaded, NOTHING)
    run_extremes(touches, base, values, valid, largest, best, out)
    return out


def running_position(touches: Touches, base: int, valid: Mask, last: bool, loaded: Longs) -> Longs:
    """Position of the first or last value that is not null after each touch; NOTHING where there is none."""
    best, out = _state(touches, loaded, NOTHING)
    run_positions(touches, base, valid, last, best, out)
    return out
