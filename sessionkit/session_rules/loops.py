"""The compiled loop that cuts sessions by rules."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sessionkit.base.arrays import Codes, Flags, Longs
from sessionkit.base.compiled import compiled_loop, inlined

GOES_ON, GAP, LENGTH, ROWS, START, END, DAY, VALUE = -1, 0, 1, 2, 3, 4, 5, 6  # VALUE + n is the n-th column of values


class Rows(NamedTuple):
    """What the loop reads of each row. An array of a rule that is not given is empty.

    Times and lengths are of one unit: milliseconds, or a part of them where times are finer.
    """

    order: Longs  # the rows as they are read; empty: as they stand
    slot: Longs  # whose sessions a row is among: of a key in a partition; -1 for none
    time: Longs
    until: Longs
    gap: Longs  # one, or one a row
    values: Codes  # (columns, rows) of new_when, -1 for a missing one
    starts: Flags
    ends: Flags
    day_starts: Longs  # not of each row: when days begin


class Slots(NamedTuple):
    """What is known of each slot so far: its last session, and what that waits for."""

    session: Codes
    opened: Longs  # how many sessions it has
    reach: Longs
    next_day: Longs
    has_ended: Flags
    known: Codes  # (columns, slots): the last known value of each column


class Sessions(NamedTuple):
    """What the loop finds, in the order in which sessions are opened."""

    slot: Longs
    number: Longs
    start: Longs
    end: Longs
    rows: Longs
    ended_by: npt.NDArray[np.int8]


def room_for(slots: int, columns: int, sessions: int) -> tuple[Slots, Sessions, Longs]:
    """What the loop fills, and (number, start, end, rows) of each session as one array.

    What is read and written together lies side by side, so that the processor fetches it at once.
    """
    longs = [(name, np.int64) for name in ("reach", "next_day", "opened")]
    rest = [("session", np.int32), ("has_ended", np.bool_), ("known", np.int32, (columns,))]
    slot, told = np.zeros(slots, np.dtype([*longs, *rest], align=True)), np.empty((sessions, 4), np.int64)
    slot["session"] = -1
    fields = {name: slot[name].T for name in Slots._fields}
    number, start, end, rows = told.T
    found = Sessions(np.empty(sessions, np.int64), number, start, end, rows, np.empty(sessions, np.int8))
    return Slots(**fields), found, told


@compiled_loop
def are_in_order(slot, time, newest):  # type: ignore[no-untyped-def]
    """Whether the times of each slot rise or stay. `newest` is scratch, a small number for each slot."""
    for i in range(slot.shape[0]):
        s = slot[i]
        if s >= 0:
            if time[i] < newest[s]:
                return False
            newest[s] = time[i]
    return True


@compiled_loop
def rows_of_share(slot, time, share, shares, order, late):  # type: ignore[no-untyped-def]
    """Fills `order` with the rows of each slot that is `share` modulo `shares`, but `late` with those of them that are
    older than one before; says how many there are in both, -1 where there is no room for all late ones."""
    n = 0
    k = 0
    newest = np.iinfo(np.int64).min
    for i in range(slot.shape[0]):
        if slot[i] < 0 or slot[i] % shares != share:
            continue
        if time[i] >= newest:
            newest = time[i]
            order[n] = i
            n += 1
        elif k == late.shape[0]:
            return n, -1
        else:
            late[k] = i
            k += 1
    return n, k


@compiled_loop
def merge_late(time, order, count, late):  # type: ignore[no-untyped-def]
    """Puts `late` rows among the first `count` of `order`: both are by time, then as they stand, and so is what comes
    of it."""
    at = count - 1
    for k in range(late.shape[0] - 1, -1, -1):
        row = late[k]
        while at >= 0 and (time[order[at]] > time[row] or (time[order[at]] == time[row] and order[at] > row)):
            order[at + k + 1] = order[at]
            at -= 1
        order[at + k + 1] = row


@inlined
def _cause(rows, slots, sessions, i, s, w, max_length, max_rows):  # type: ignore[no-untyped-def]
    time = rows.time[i]
    if time > slots.reach[s]:
        return GAP
    if time - sessions.start[w] > max_length:
        return LENGTH
    if sessions.rows[w] >= max_rows:
        return ROWS
    for v in range(rows.values.shape[0]):
        if rows.values[v, i] >= 0 and slots.known[v, s] >= 0 and rows.values[v, i] != slots.known[v, s]:
            return VALUE + v
    if rows.starts.shape[0] and rows.starts[i]:
        return START
    if slots.has_ended[s]:
        return END
    if rows.day_starts.shape[0] and time >= slots.next_day[s]:
        return DAY
    return GOES_ON


@compiled_loop
def cut_sessions(rows, slots, sessions, first, max_length, max_rows, found, position):  # type: ignore[no-untyped-def]
    """Fills `sessions` from the `first` on, and for each row its session (-1: none) and its place there; says how many.

    `slots.session` and `found` hold -1, `slots.opened` and `position` 0, `slots.has_ended` False.
    """
    n = first
    is_sorted = rows.order.shape[0] == 0
    for step in range(rows.time.shape[0] if is_sorted else rows.order.shape[0]):
        i = step if is_sorted else rows.order[step]
        s = rows.slot[i]
        if s < 0:
            continue
        time = rows.time[i]
        until = rows.until[i] if rows.until.shape[0] else time
        reach = until + rows.gap[i if rows.gap.shape[0] > 1 else 0]
        w = np.int64(slots.session[s])
        cause = GAP
        if w >= 0:
            cause = _cause(rows, slots, sessions, i, s, w, max_length, max_rows)
        if cause != GOES_ON:
            if w >= 0 and not slots.has_ended[s]:  # an event that ends a session has ended it before a pause does
                sessions.ended_by[w] = cause
            if rows.day_starts.shape[0] and (w < 0 or time >= slots.next_day[s]):
                slots.next_day[s] = rows.day_starts[np.searchsorted(rows.day_starts, time, side="right")]
            w = np.int64(n)
            n += 1
            slots.session[s] = w
            slots.opened[s] += 1
            sessions.slot[w] = s
            sessions.start[w] = time
            sessions.end[w] = until
            sessions.rows[w] = 0
            sessions.ended_by[w] = -1
            for v in range(rows.values.shape[0]):
                slots.known[v, s] = -1
        if cause == GAP or reach > slots.reach[s]:  # a part of a session reaches as far as the session does
            slots.reach[s] = reach
        sessions.end[w] = max(sessions.end[w], until)
        sessions.rows[w] += 1
        for v in range(rows.values.shape[0]):
            if rows.values[v, i] >= 0:
                slots.known[v, s] = rows.values[v, i]
        slots.has_ended[s] = rows.ends.shape[0] > 0 and rows.ends[i]
        if slots.has_ended[s]:
            sessions.ended_by[w] = END
        found[i] = w
        position[i] = sessions.rows[w]
    return n - first


@compiled_loop
def number_sessions(sessions, first, end, following):  # type: ignore[no-untyped-def]
    """Numbers sessions from `first` up to `end` as they come; `following` is the next number of each slot."""
    for w in range(first, end):
        s = sessions.slot[w]
        sessions.number[w] = following[s]
        following[s] += 1
