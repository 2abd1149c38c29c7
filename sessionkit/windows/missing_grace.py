"""How much more grace would have kept a late record: exact, by replaying what its key had seen."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sessionkit.base.arrays import Longs, Rows
from sessionkit.base.compiled import compiled_loop
from sessionkit.base.decisions import LATE
from sessionkit.trace.loops import grouped
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.windows.cells import empty_cells
from sessionkit.windows.contract import Bounds, SessionKind
from sessionkit.windows.feed import NONE_NULL, Columns, Loaded
from sessionkit.windows.session_kernel import COUNTERS, NO_SESSION, SESSION, SessionKernel, room_for, run_sessions


def missing_grace_ms(trace: SessionTrace, windows: SessionKind, rows: Rows) -> Longs:
    """How much more grace would have kept each late record, exactly: with 1 ms less it is still dropped.

    Found by replaying the record's key, as the trace has it, under other graces: more grace never drops what less kept.
    """
    batch, columns, loaded = trace.batch, trace.window_columns, trace.window_columns.loaded_count
    missing = np.empty(len(rows), np.int64)
    slot = trace.slot if batch.rejected is None else np.where(batch.rejected != 0, -1, trace.slot)
    asked_slots, number = np.unique(slot[rows], return_inverse=True)
    place = np.full(trace.slots.count + 1, -1, np.int32)  # the last is of what was rejected
    place[asked_slots] = np.arange(len(asked_slots))
    first, by_slot = grouped(place[slot], len(asked_slots))
    for one in range(len(asked_slots)):
        records = by_slot[first[one] : first[one + 1]]
        key, partition = batch.key[records[0]], batch.partition[records[0]]
        stored = np.flatnonzero((columns.key[:loaded] == key) & (columns.partition[:loaded] == partition))
        of_group = number == one
        missing[of_group] = windows.missing_grace_ms(
            batch.timestamp_ms[records], trace.stream_time_ms[records], np.searchsorted(records, rows[of_group]),
            trace.retention_ms, (trace.loaded_start_ms[stored], trace.loaded_end_ms[stored]),
        )  # fmt: skip
    return missing


def missing_grace_of_key(
    times: Longs, stair: Longs, late: Rows, gap_ms: int, grace_ms: int, retention_ms: int,
    loaded: Bounds,
) -> Longs:  # fmt: skip
    """`SessionKind.missing_grace_ms` of sessions that have a gap and a grace."""
    chain = _chains(times, gap_ms) if not len(loaded[0]) else np.zeros(len(times), np.int64)
    out = np.empty(len(late), np.int64)
    for place, index in enumerate(late.tolist()):
        near = np.flatnonzero(chain[: index + 1] == chain[index])
        out[place] = _bisect(times[near], stair[near], gap_ms, grace_ms, retention_ms, loaded)
    return out


def smallest_grace(kept: Callable[[int], bool], dropped: int, enough: int) -> int:
    """The smallest grace in milliseconds that keeps a record: `dropped` does not, `enough` does, and so does more."""
    middle = enough - 1  # usually no session would have taken it in, and this drops it
    while enough - dropped > 1:
        dropped, enough = (dropped, middle) if kept(middle) else (middle, enough)
        middle = dropped + (enough - dropped) // 2
    return enough


def _search(times: Longs, stair: Longs, gap_ms: int, retention_ms: int, dropped: int, enough: int) -> int:
    """The smallest grace that keeps the last record, compiled; -1 where a replay needs more than a short list."""
    room = len(times)
    slot, head, sessions = np.zeros(room, np.int32), np.empty(1, np.int32), np.empty(room, SESSION)
    decision, window, counters = np.empty(room, np.uint8), np.empty(room, np.int32), np.zeros(COUNTERS, np.int64)
    found = _smallest_grace(
        slot, times, stair, gap_ms, retention_ms, dropped, enough, head, sessions, empty_cells(), decision, window,
        room_for(room), counters, np.empty(room, np.int64), NONE_NULL,
    )  # fmt: skip
    return int(found)


@compiled_loop
def _smallest_grace(  # type: ignore[no-untyped-def]
    slot, times, stair, gap, retention, dropped, enough, head, sessions, cells, decision, window, events, counters,
    found_from, is_null,
):  # fmt: skip
    """Bisects between a grace that drops the last record and one that keeps it; first just below the upper one."""
    last = slot.shape[0] - 1
    middle = enough - 1  # usually no session would have taken it in, and this drops it
    while enough - dropped > 1:
        head[0] = NO_SESSION
        counters[:] = 0
        reach = max(retention, gap + middle)
        for i in range(last + 1):
            found_from[i] = stair[i] - reach
        stopped = run_sessions(
            0, slot, times, stair, found_from, is_null, gap, middle,
            head, sessions, cells, decision, window, events, counters,
        )  # fmt: skip
        if stopped <= last:
            return -1
        if decision[last] < LATE:
            enough = middle
        else:
            dropped = middle
        middle = dropped + (enough - dropped) // 2
    return enough


def _chains(times: Longs, gap_ms: int) -> Longs:
    """A number for each record; records of different numbers are too far apart to meet, whatever the grace."""
    order = np.argsort(times, kind="stable")
    in_time = times[order]
    number = np.empty(len(times), np.int64)
    number[order] = np.cumsum(np.append(False, in_time[1:] - in_time[:-1] > gap_ms)[: len(times)])
    return number


def _bisect(times: Longs, stair: Longs, gap_ms: int, grace_ms: int, retention_ms: int, loaded: Bounds) -> int:
    """How much more grace would have kept the last of these records."""
    slot = np.zeros(len(times), np.int32)
    decision, window = np.empty(len(times), np.uint8), np.empty(len(times), np.int32)
    columns = Columns(0, slot, times, stair, stair[:1], slot[:1], decision)
    windows = Loaded(np.zeros(len(loaded[0]), np.int32), *loaded, np.zeros(len(loaded[0]), np.bool_))

    def kept(grace_ms: int) -> bool:
        kernel = SessionKernel(gap_ms, grace_ms, max(retention_ms, gap_ms + grace_ms))  # also beyond 2**62 ms
        kernel.load(windows, 1)
        kernel.feed(columns, window)
        return bool(decision[-1] < LATE)

    enough = int(stair[-1]) - gap_ms - int(times[-1])  # with this one it is not late even if it stays alone
    found = -1 if len(loaded[0]) else _search(times, stair, gap_ms, retention_ms, grace_ms, enough)
    return (found if found >= 0 else smallest_grace(kept, grace_ms, enough)) - grace_ms
