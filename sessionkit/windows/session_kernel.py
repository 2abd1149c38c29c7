"""The session algorithm over columns: one compiled pass in arrival order, a slot per (key, partition), no sorting.

A slot's open sessions form a list, newest first. Nearly every record meets the head of its list. A slot whose walk
grows long moves to a hash of gap-wide cells (`cells.py`), so no arrival order makes a record expensive.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sessionkit.base.arrays import Codes, Longs
from sessionkit.base.compiled import compiled_loop
from sessionkit.base.decisions import ADDED, LATE, MERGED, OPENED
from sessionkit.windows.cells import EMPTY, copy_live_cells, empty_cells, find_cell, first_place, set_cell, survivor
from sessionkit.windows.feed import AHEAD, MANY_ROWS, NONE_NULL, Columns, Expiry, Loaded

SESSION = np.dtype(
    [("start", "i8"), ("end", "i8"), ("older", "i4"), ("merged_into", "i4"), ("slot", "i4"), ("closed", "i4")],
    align=True,
)
NO_SESSION, IN_CELLS = -1, -2
LONG_WALK = 32
USUAL_RECORDS = 4  # records a session, or more: room for so many sessions at once saves copying them over and over
# places in `counters`
COUNTERS = 6
SESSIONS, CELLS, MERGES, REOPENINGS, CELLS_WANTED, SEEN = range(COUNTERS)


class Events(NamedTuple):
    """Events of one chunk beside its records: merges, and closed sessions that were touched again."""

    merge_at: Longs
    merge_into: Codes
    merge_absorbed: Codes
    reopen_at: Longs
    reopen_row: Codes
    reopen_start: Longs
    reopen_end: Longs


@compiled_loop
def session_is_late(merged_end_ms, close_time_ms):  # type: ignore[no-untyped-def]
    """THE late rule: a record is dropped when the session that it would end up in is closed already.

    Judged on the merged session, so an old record is kept when it touches one that is still open.
    Source: KStreamSessionWindowAggregate (processor, kernel and audit ask here, and nothing else does).
    """
    return merged_end_ms < close_time_ms


@compiled_loop
def _walk(sessions, head, slot, t, gap, horizon):  # type: ignore[no-untyped-def]
    """(first session from the newest that starts by t + gap or NO_SESSION, the one before it in the list, steps)."""
    before = NO_SESSION
    steps = 0
    row = head[slot]
    while row >= 0:
        if sessions[row].end < horizon:  # expired, and so is all that is older: cut the list here
            if before >= 0:
                sessions[before].older = NO_SESSION
            else:
                head[slot] = NO_SESSION
            row = NO_SESSION
            break
        if sessions[row].start <= t + gap:
            break
        before = row
        row = sessions[row].older
        steps += 1
    return row, before, steps


@compiled_loop
def _near(cells, sessions, slot, t, gap, horizon):  # type: ignore[no-untyped-def]
    """(session that starts by t, session that starts after t): those within the gap of t, NO_SESSION for none."""
    left = NO_SESSION
    right = NO_SESSION
    middle = t // max(gap, 1)
    for step in range(3):
        index = middle - 1 if step == 1 else middle + 1 if step == 2 else middle
        at = find_cell(cells, slot, index)
        if cells[at].session == EMPTY:
            continue
        row = survivor(sessions, cells[at].session - 1)
        start, end = sessions[row].start, sessions[row].end
        if end < horizon or start > t + gap or end < t - gap:
            continue
        if start <= t:
            left = row
            if end >= t:
                break
        else:
            right = row
    return left, right


@compiled_loop
def move_to_cells(cells, sessions, head, slot, gap, horizon, counters):  # type: ignore[no-untyped-def]
    """Moves a slot's list into the cells; False (and how many cells it takes) when there is no room."""
    width = max(gap, 1)
    wanted = 0
    row = head[slot]
    while row >= 0 and sessions[row].end >= horizon:
        wanted += sessions[row].end // width - sessions[row].start // width + 1
        row = sessions[row].older
    if (counters[CELLS] + wanted) * 2 > cells.shape[0]:
        counters[CELLS_WANTED] = wanted
        return False
    row = head[slot]
    while row >= 0 and sessions[row].end >= horizon:
        for index in range(sessions[row].start // width, sessions[row].end // width + 1):
            counters[CELLS] += set_cell(cells, slot, index, row)
        row = sessions[row].older
    head[slot] = IN_CELLS
    return True


@compiled_loop
def note_reopening(sessions, row, i, close, events, counters):  # type: ignore[no-untyped-def]
    """Notes the result of a closed session before a record touches it, unless it came closed from an earlier run."""
    if sessions[row].end < close:
        if sessions[row].closed == 0:
            c = counters[REOPENINGS]
            events.reopen_at[c] = i
            events.reopen_row[c] = row
            events.reopen_start[c] = sessions[row].start
            events.reopen_end[c] = sessions[row].end
            counters[REOPENINGS] = c + 1
        sessions[row].closed = 0


@compiled_loop
def run_sessions(  # type: ignore[no-untyped-def]
    begin, slot, timestamp_ms, stream_time_ms, found_from_ms, is_null, gap, grace,
    head, sessions, cells, decision, window, events, counters,
):  # fmt: skip
    """Decides records from `begin` on; returns where it stopped: the end, or a record that needs more cells first.

    A record finds the sessions that end at `found_from_ms` or later. `is_null` (empty: none) marks those that open a
    session which Kafka's store does not take, as its aggregate is null.
    """
    ready = seen = begin
    for i in range(begin, slot.shape[0]):
        if i >= ready:  # read the sessions that come next: the processor waits for all of them at once
            ready = min(i + AHEAD, slot.shape[0])
            for j in range(i, ready):
                k = slot[j]
                if k >= 0 and head[k] >= 0:
                    seen += sessions[head[k]].start & 1
                elif k >= 0 and head[k] == IN_CELLS:
                    seen += cells[first_place(k, timestamp_ms[j] // max(gap, 1), cells.shape[0] - 1)].session & 1
        k = slot[i]
        if k < 0:
            continue  # rejected before any window is looked at; the reason is in `decision` already
        t = timestamp_ms[i]
        close = stream_time_ms[i] - grace - gap
        horizon = found_from_ms[i]
        older = NO_SESSION
        newer = NO_SESSION
        row = NO_SESSION
        before = NO_SESSION
        if head[k] != IN_CELLS:
            row, before, steps = _walk(sessions, head, k, t, gap, horizon)
            if row >= 0 and sessions[row].end >= t - gap:
                older = row
                if t < sessions[row].start:
                    next_older = sessions[row].older
                    if next_older >= 0 and sessions[next_older].end >= max(t - gap, horizon):
                        older, newer = next_older, row
            if steps > LONG_WALK and not move_to_cells(cells, sessions, head, k, gap, horizon, counters):
                return i
        elif counters[CELLS] * 2 >= cells.shape[0]:
            counters[CELLS_WANTED] = 1
            return i
        else:
            older, newer = _near(cells, sessions, k, t, gap, horizon)
            if older < 0:
                older, newer = newer, NO_SESSION

        start = t
        end = t
        if older >= 0:
            start = min(start, sessions[older].start)
            end = max(end, sessions[older].end)
            if newer >= 0:
                end = max(end, sessions[newer].end)
        if session_is_late(end, close):
            decision[i] = LATE
            window[i] = NO_SESSION
            continue

        if older < 0:
            older = counters[SESSIONS]
            counters[SESSIONS] = older + 1
            sessions[older].merged_into = NO_SESSION
            sessions[older].slot = k
            sessions[older].closed = 0
            sessions[older].older = row
            decision[i] = OPENED
            if is_null.shape[0] and is_null[i]:
                sessions[older].start = sessions[older].end = t
                window[i] = older
                continue
            if head[k] != IN_CELLS:
                if before >= 0:
                    sessions[before].older = older
                else:
                    head[k] = older
        else:
            decision[i] = ADDED
            note_reopening(sessions, older, i, close, events, counters)
            if newer >= 0:
                decision[i] = MERGED
                note_reopening(sessions, newer, i, close, events, counters)
                c = counters[MERGES]
                events.merge_at[c] = i
                events.merge_into[c] = older
                events.merge_absorbed[c] = newer
                counters[MERGES] = c + 1
                sessions[newer].merged_into = older
                if head[k] != IN_CELLS:  # the list goes before → newer → older
                    if before >= 0:
                        sessions[before].older = older
                    else:
                        head[k] = older
        sessions[older].start = start
        sessions[older].end = end
        window[i] = older
        if head[k] == IN_CELLS:
            counters[CELLS] += set_cell(cells, k, t // max(gap, 1), older)
    counters[SEEN] = seen  # else the compiler would leave the reading out
    return slot.shape[0]


@compiled_loop
def observe(slot, slot_partition, timestamp_ms, retention, observed_ms, found_from_ms):  # type: ignore[no-untyped-def]
    """Fills in from which end on Kafka's store shows a session to each record: by the ends put before it.

    `observed_ms`, of each partition, goes on: a record that is not late puts its time at least, and a late one less.
    """
    for i in range(slot.shape[0]):
        if slot[i] >= 0:
            p = slot_partition[slot[i]]
            found_from_ms[i] = observed_ms[p] - retention + 1
            observed_ms[p] = max(observed_ms[p], timestamp_ms[i])


class SessionKernel:
    """The sessions of one run, fed chunk by chunk."""

    def __init__(
        self, gap_ms: int, grace_ms: int, retention_ms: int, segment_ms: int = 1, expiry: Expiry | None = None
    ) -> None:
        """With segments a session is found by how many of them stream time is ahead; none must ever be closed then.

        With an expiry it is found as long as Kafka's store shows it.
        """
        self._limits = (gap_ms, grace_ms)
        self._retention_ms, self._segment_ms, self._expiry = retention_ms, segment_ms, expiry
        self._head = np.empty(0, np.int32)
        self._sessions = np.empty(0, SESSION)
        self._cells = empty_cells()
        self._counters = np.zeros(COUNTERS, np.int64)
        self._events: tuple[Events, Events] | None = None  # a chunk keeps its events until the next but one

    @property
    def count(self) -> int:
        """How many sessions there are so far, absorbed ones included."""
        return int(self._counters[SESSIONS])

    @property
    def sessions(self) -> npt.NDArray[np.void]:
        """The sessions so far, as rows of `SESSION`."""
        return self._sessions[: self.count]

    def load(self, loaded: Loaded, slots: int, expected: int = 0) -> None:
        """Takes over the sessions of a store, which are sorted by slot and then by time; `expected` records follow."""
        slot = loaded.slot
        self._grow(slots, len(slot) + (expected if expected <= MANY_ROWS else expected // USUAL_RECORDS))
        rows = self._sessions[: len(slot)]
        rows["slot"], rows["start"] = slot, loaded.start_ms
        rows["end"], rows["closed"] = loaded.timestamp_ms, loaded.is_closed
        rows["merged_into"] = NO_SESSION
        first = np.append(True, slot[1:] != slot[:-1])[: len(slot)]
        rows["older"] = np.where(first, NO_SESSION, np.arange(-1, len(slot) - 1))
        self._head[slot] = np.arange(len(slot), dtype=np.int32)  # the last of a slot, its newest, stays
        self._counters[SESSIONS] = len(slot)

    def feed(self, columns: Columns, window: Codes) -> Events:
        """Decides one chunk into its decisions and `window`."""
        size, counters = len(columns.slot), self._counters
        self._grow(len(columns.slot_partition), size)
        counters[MERGES] = counters[REOPENINGS] = 0
        if self._events is None or len(self._events[0].merge_at) < size:
            self._events = (room_for(size), room_for(size))
        events, _ = self._events = self._events[::-1]
        self._decide(columns, window, events)
        merges, reopenings = int(counters[MERGES]), int(counters[REOPENINGS])
        counts = (merges, merges, merges, reopenings, reopenings, reopenings, reopenings)
        reported: Any = [column[:count] for column, count in zip(tuple[Any, ...](events), counts, strict=True)]
        return Events(*reported)

    def _decide(self, columns: Columns, window: Codes, events: Events) -> None:
        slot, stair, before_ms = columns.slot, columns.stream_time_ms, columns.first_stream_time_ms
        if self._segment_ms > 1:
            stair = stair // self._segment_ms * self._segment_ms
            before_ms = before_ms // self._segment_ms * self._segment_ms
        found_from_ms, is_null = stair - self._retention_ms, NONE_NULL
        if self._expiry is not None:
            observed_ms, is_null = self._expiry.observed_ms, self._expiry.null_values[columns.lo :][: len(slot)]
            times = columns.timestamp_ms
            observe(slot, columns.slot_partition, times, self._retention_ms, observed_ms, found_from_ms)
        at = 0
        while True:
            at = run_sessions(
                at, slot, columns.timestamp_ms, stair, found_from_ms, is_null, *self._limits,
                self._head, self._sessions, self._cells, columns.decision, window, events, self._counters,
            )  # fmt: skip
            if at == len(slot):
                return
            self._grow_cells(before_ms[columns.slot_partition])

    def _grow(self, slots: int, records: int) -> None:
        if slots > len(self._head):
            head = np.full(max(slots, 2 * len(self._head)), NO_SESSION, np.int32)
            head[: len(self._head)] = self._head
            self._head = head
        if self.count + records > len(self._sessions):
            sessions = np.empty(max(self.count + records, 2 * len(self._sessions)), SESSION)
            sessions[: self.count] = self.sessions
            self._sessions = sessions

    def _grow_cells(self, first_stream_time_ms: Longs) -> None:
        """Makes room for the cells wanted: what is expired by the time of its slot goes; the rest fills a quarter."""
        counters = self._counters
        cells = empty_cells(int(counters[CELLS]) + int(counters[CELLS_WANTED]))
        horizon = first_stream_time_ms - self._retention_ms
        counters[CELLS] = copy_live_cells(self._cells, cells, self._sessions, horizon)
        self._cells = cells


def room_for(records: int) -> Events:
    """Room for events: a record makes one merge and re-opens two sessions at most. Unused pages cost nothing."""
    longs = (np.empty(records, np.int64), *(np.empty(2 * records, np.int64) for _ in range(3)))
    ints = (np.empty(records, np.int32), np.empty(records, np.int32), np.empty(2 * records, np.int32))
    return Events(longs[0], ints[0], ints[1], longs[1], ints[2], longs[2], longs[3])
