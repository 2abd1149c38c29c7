"""Which sliding windows Kafka's store shows to a record: those that start late enough behind the latest one put.

That decides little: what it does not show is closed, and only tells which record came before. But a window put by one
key moves the store of all keys on, and keys are decided one after the other. So a run supposes what is shown, looks
what the store would have shown, and runs again until both are the same; the first wrong one comes later each time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sessionkit.base.arrays import Codes, Flags, Longs
from sessionkit.base.compiled import compiled_loop
from sessionkit.base.decisions import LATE
from sessionkit.trace.loops import largest_so_far
from sessionkit.trace.window_trace import WindowTrace
from sessionkit.windows.feed import Expiry
from sessionkit.windows.sliding.structure import SlidingStructure
from sessionkit.windows.sliding.touches import sliding_touches

ALL = np.iinfo(np.int64).min


@compiled_loop
def run_shown(put_ms, partition, observed_ms, behind, found_from_ms):  # type: ignore[no-untyped-def]
    """Fills in the first start that is shown to each record: `behind` the latest one put before it."""
    for i in range(partition.shape[0]):
        p = partition[i]
        found_from_ms[i] = observed_ms[p] - behind
        observed_ms[p] = max(observed_ms[p], put_ms[i])


def as_shown(
    structure: Callable[[Longs], SlidingStructure], expiry: Expiry, partition: Codes, retention_ms: int
) -> SlidingStructure:
    """The structure on a store of Kafka, and into `expiry` what that showed."""
    found_from_ms, behind_ms = expiry.found_from_ms, retention_ms - 1 + expiry.boundary_ms
    found_from_ms[:] = ALL
    while True:
        found, shown_ms = structure(found_from_ms), np.empty_like(found_from_ms)
        run_shown(_put_ms(found), partition, expiry.observed_ms.copy(), behind_ms, shown_ms)
        is_same = np.array_equal(_hidden(found, found_from_ms), _hidden(found, shown_ms))
        found_from_ms[:] = shown_ms
        if is_same:
            return found


def _put_ms(found: SlidingStructure) -> Longs:
    """The latest start that each record puts, of those that can be later than all before; -1 for none."""
    put_ms, made = np.full(len(found.decision), -1), slice(found.loaded_count, None)
    np.maximum.at(put_ms, found.opened_at[made], found.start_ms[made])
    if found.loaded_count:  # the store has forgotten that these were put, where a task is started again
        run_put(sliding_touches(found), LATE, put_ms)
    return put_ms


@compiled_loop
def run_put(touches, late, put_ms):  # type: ignore[no-untyped-def]
    """The latest start that each record puts, into `put_ms` where that is less."""
    for j in range(touches.record.shape[0]):
        if touches.effect[j] != late:
            i = touches.record[j]
            put_ms[i] = max(put_ms[i], touches.start_ms[j])


def latest_put_ms(trace: WindowTrace, before_ms: Longs) -> Longs:
    """The latest start that was put into the store of its partition by each record; `before_ms` of each before all."""
    put_ms = np.full(len(trace), -1)
    run_put(trace.touches, LATE, put_ms)
    return largest_so_far(put_ms, trace.batch.partition, before_ms)


def _hidden(found: SlidingStructure, found_from_ms: Longs) -> Flags:
    """Of each record whether its own window is not shown, and whether that before it is not."""
    records = found.records
    hidden: Flags = np.array([records.timestamp_ms - records.time_difference_ms, found.asked_ms]) < found_from_ms
    hidden[0] &= records.timestamp_ms >= records.time_difference_ms
    return hidden
