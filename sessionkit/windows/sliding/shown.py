"""Which sliding windows Kafka's store shows to a record: those that start late enough behind the latest one put.

That decides little: what it does not show is closed, and only tells which record came before. But a window put by one
key moves the store of all keys on, and keys are decided one after the other. So a run supposes what is shown, as it
would be were each record put beside the newest one of its key, looks what the store would have shown, and runs again
until both are the same; the first wrong one comes later each time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sessionkit.base.arrays import Codes, Longs
from sessionkit.base.compiled import compiled_loop
from sessionkit.base.decisions import LATE
from sessionkit.trace.loops import largest_so_far
from sessionkit.trace.window_trace import WindowTrace
from sessionkit.windows.feed import Columns, Expiry
from sessionkit.windows.sliding.steps import open_from
from sessionkit.windows.sliding.structure import NOT_ASKED, SlidingStructure
from sessionkit.windows.sliding.touches import sliding_touches


@compiled_loop
def run_shown(put_ms, partition, observed_ms, behind, found_from_ms):  # type: ignore[no-untyped-def]
    """Fills in the first start that is shown to each record: `behind` the latest one put before it."""
    for i in range(partition.shape[0]):
        p = partition[i]
        found_from_ms[i] = observed_ms[p] - behind
        observed_ms[p] = max(observed_ms[p], put_ms[i])


@compiled_loop
def run_put_with(found_from_ms, partition, observed_ms, behind, put_ms):  # type: ignore[no-untyped-def]
    """Fills in the latest start put with each record, by what is shown to the next; `observed_ms` is that of the last.

    It is used up.
    """
    for place in range(partition.shape[0]):
        i = partition.shape[0] - 1 - place
        p = partition[i]
        put_ms[i] = observed_ms[p]
        observed_ms[p] = found_from_ms[i] + behind


@compiled_loop
def suppose_put(columns, difference, grace, newest, put_ms):  # type: ignore[no-untyped-def]
    """Fills in the latest start that each record puts, if windows of its slot go on from the newest record alone.

    `newest` has room for the newest time of each slot: at first none is there, -1.
    """
    for i in range(columns.slot.shape[0]):
        s, t = columns.slot[i], columns.timestamp_ms[i]
        if s < 0 or t < open_from(columns.stream_time_ms[i], grace, difference):
            put_ms[i] = -1
            continue
        before = newest[s]
        put_ms[i] = max(0, t - difference)
        if before > t:
            if before - t - 1 <= difference:
                put_ms[i] = t + 1
            continue
        if before >= 0 and before < t and t - before - 1 <= difference:
            put_ms[i] = before + 1
        newest[s] = t


def as_shown(
    structure: Callable[[Longs], SlidingStructure],
    columns: Columns,
    expiry: Expiry,
    partition: Codes,
    retention_ms: int,
    time_difference_ms: int,
    grace_ms: int,
) -> SlidingStructure:
    """The structure on a store of Kafka, and into `expiry` what that showed."""
    found_from_ms, behind_ms = expiry.found_from_ms, retention_ms - 1 + expiry.boundary_ms
    put_ms, newest_ms = np.empty(len(partition), np.int64), np.full(len(columns.slot_partition), -1)
    suppose_put(columns, time_difference_ms, grace_ms, newest_ms, put_ms)
    run_shown(put_ms, partition, expiry.observed_ms.copy(), behind_ms, found_from_ms)
    while True:
        found, shown_ms = structure(found_from_ms), np.empty_like(found_from_ms)
        run_shown(put_by_records_ms(found), partition, expiry.observed_ms.copy(), behind_ms, shown_ms)
        asked_ms = _asked_ms(found)
        is_same = np.array_equal(asked_ms < found_from_ms, asked_ms < shown_ms)
        found_from_ms[:] = shown_ms
        if is_same:
            lie_behind_ms = shown_ms + (retention_ms - 1) - asked_ms
            asked_of = last_behind_ms(time_difference_ms, grace_ms, expiry.boundary_ms)
            expiry.hangs_on_retention[:] = np.isin(lie_behind_ms, asked_of).any()
            return found


def last_behind_ms(time_difference_ms: int, grace_ms: int, boundary_ms: int) -> list[int]:
    """How far behind windows lie that not every store shows, though a record can make something of them.

    No store keeps windows for less than the smallest of these; of what lies behind the largest nothing can be made.
    """
    smallest_ms = 2 * time_difference_ms + grace_ms
    return [smallest_ms, smallest_ms + 1][: 2 - boundary_ms]


def put_by_records_ms(found: SlidingStructure) -> Longs:
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
    return largest_so_far(trace.find_put_ms(), trace.batch.partition, before_ms)


def _asked_ms(found: SlidingStructure) -> Longs:
    """The starts of the windows that each record asks for: its own one, and that before it."""
    times_ms, difference_ms = found.records.timestamp_ms, found.records.time_difference_ms
    return np.array([np.where(times_ms >= difference_ms, times_ms - difference_ms, NOT_ASKED), found.asked_ms])
