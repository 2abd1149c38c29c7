"""Sessions behind a record cache, over columns: what a record finds, and what the cache lets go of.

A session that is in the cache is found long after the store has forgotten it, until it is evicted. So what a record
finds depends on what was used since, by reads as well, and one loop plays both; `windows.session` is the readable form.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sessionkit.base.arrays import Codes, Flags, Longs, Rows
from sessionkit.base.compiled import compiled_loop
from sessionkit.base.decisions import ADDED, LATE, MERGED, OPENED
from sessionkit.base.durations import INT64_MAX
from sessionkit.deployed.compiled.chains import NOWHERE, Chain
from sessionkit.deployed.compiled.session_cache import (
    ANSWER,
    ANSWERS,
    FOUND,
    FREE,
    MOST_HELD,
    MOST_OF_A_RECORD,
    NUMBERS,
    PLACE,
    PLACES,
    WRITE,
    WRITES,
    Cache,
    Rules,
    StructArray,
    commit_until,
    is_within,
    place_at,
    put,
    use_places,
)
from sessionkit.trace.sent import NO_VALUE
from sessionkit.windows.cells import EMPTY, find_cell, set_cell, survivor
from sessionkit.windows.feed import Columns, Expiry
from sessionkit.windows.session_kernel import (
    CELLS,
    CELLS_WANTED,
    IN_CELLS,
    LONG_WALK,
    MERGES,
    NO_SESSION,
    SESSIONS,
    Events,
    SessionKernel,
    move_to_cells,
    note_reopening,
    session_is_late,
)


@compiled_loop
def _is_seen(cache, rules, sessions, own, row):  # type: ignore[no-untyped-def]
    """Whether a record finds a session: in the cache, or behind it."""
    if cache.place_of[row] != NOWHERE:
        return True
    return cache.stored[row] != NO_VALUE and sessions[row].end > cache.observed_ms[own] - rules.retention_ms


@compiled_loop
def _find(cache, rules, sessions, head, slot, own, t, gap, at):  # type: ignore[no-untyped-def]
    """(session that starts by t, session that starts after t, or the first alone, steps), within the gap of t.

    Takes note of the ends by which it depends on the retention: the earliest that is found, and the latest that is not.
    """
    left, right, steps, earliest, latest = NO_SESSION, NO_SESSION, 0, INT64_MAX, -1
    row = head[slot]
    while row != NO_SESSION and sessions[row].end >= t - gap:
        if sessions[row].start <= t + gap:
            is_seen = _is_seen(cache, rules, sessions, own, row)
            if is_seen and sessions[row].start <= t:
                left = row
            elif is_seen:
                right = row
            if cache.place_of[row] == NOWHERE and cache.stored[row] != NO_VALUE:
                end = sessions[row].end
                earliest, latest = (min(earliest, end), latest) if is_seen else (earliest, max(latest, end))
        row = sessions[row].older
        steps += 1
    if earliest < INT64_MAX:
        is_within(cache, rules, own, head[slot], earliest, at, FOUND)
    if latest >= 0:
        is_within(cache, rules, own, head[slot], latest, at, FOUND)
    return (right, NO_SESSION, steps) if left == NO_SESSION else (left, right, steps)


@compiled_loop
def _find_in_cells(cache, rules, sessions, cells, slot, own, t, gap):  # type: ignore[no-untyped-def]
    """What `_find` gives, of a slot with many sessions."""
    left, right = NO_SESSION, NO_SESSION
    middle = t // max(gap, 1)
    for step in range(-1, 2):
        cell = find_cell(cells, slot, middle + step)
        if cells[cell].session == EMPTY:
            continue
        row = survivor(sessions, cells[cell].session - 1)
        is_near = sessions[row].start <= t + gap and sessions[row].end >= t - gap
        if is_near and _is_seen(cache, rules, sessions, own, row):
            if sessions[row].start <= t:
                left = row
            else:
                right = row
    return (right, NO_SESSION) if left == NO_SESSION else (left, right)


@compiled_loop
def _move_to_cells(cache, rules, sessions, cells, head, slot, own, gap, counters):  # type: ignore[no-untyped-def]
    """Moves the sessions of a slot that a record can find into the cells; False when there is no room."""
    row, last = head[slot], NO_SESSION
    while row != NO_SESSION:
        if _is_seen(cache, rules, sessions, own, row):
            if last == NO_SESSION:
                head[slot] = row
            else:
                sessions[last].older = row
            last = row
        row = sessions[row].older
    if last == NO_SESSION:
        head[slot] = NO_SESSION
    else:
        sessions[last].older = NO_SESSION
    return move_to_cells(cells, sessions, head, slot, gap, -1, counters)


@compiled_loop
def _link(sessions, head, slot, row):  # type: ignore[no-untyped-def]
    """Puts a session into the list of its slot, by its end: those that end later come before it."""
    before, behind = NO_SESSION, head[slot]
    while behind != NO_SESSION and sessions[behind].end > sessions[row].end:
        before, behind = behind, sessions[behind].older
    sessions[row].older = behind
    if before == NO_SESSION:
        head[slot] = row
    else:
        sessions[before].older = row


@compiled_loop
def _unlink(sessions, head, slot, row):  # type: ignore[no-untyped-def]
    """Takes a session out of the list of its slot."""
    if head[slot] == row:
        head[slot] = sessions[row].older
        return
    before = head[slot]
    while sessions[before].older != row:
        before = sessions[before].older
    sessions[before].older = sessions[row].older


@compiled_loop
def _open(cache, sessions, slot, t, counters):  # type: ignore[no-untyped-def]
    """A new session that nothing holds yet."""
    row = counters[SESSIONS]
    counters[SESSIONS] += 1
    sessions[row].start = sessions[row].end = t
    sessions[row].merged_into, sessions[row].slot, sessions[row].closed = NO_SESSION, slot, 0
    cache.place_of[row], cache.stored[row] = NOWHERE, NO_VALUE
    return row


@compiled_loop
def _join(sessions, older, newer, i, close, events, counters):  # type: ignore[no-untyped-def]
    """The decision on a record that joins a session, or two."""
    note_reopening(sessions, older, i, close, events, counters)
    if newer < 0:
        return ADDED
    note_reopening(sessions, newer, i, close, events, counters)
    c = counters[MERGES]
    events.merge_at[c], events.merge_into[c], events.merge_absorbed[c] = i, older, newer
    counters[MERGES] = c + 1
    sessions[newer].merged_into = older
    return MERGED


@compiled_loop
def _put_session(cache, rules, sessions, own, row, step, size, at):  # type: ignore[no-untyped-def]
    """Puts a session, or its removal, into the place of its bounds."""
    session = sessions[row]
    place = place_at(cache, rules, session.slot, session.start, session.end)
    if cache.place_of[row] == NOWHERE and cache.stored[row] != NO_VALUE:
        cache.places[place].stored = cache.stored[row]
    cache.stored[row] = NO_VALUE
    put(cache, rules, own, place, row, step, size, at)


@compiled_loop
def run_cached_sessions(  # type: ignore[no-untyped-def]
    begin, lo, slot, slot_partition, timestamp_ms, stream_time_ms, sizes, is_null, commits, gap, grace, rules,
    head, sessions, cells, cache, decision, window, events, counters,
):  # fmt: skip
    """Decides the records of a chunk from `begin` on, as `run_sessions` does; `lo` is the row of the first one.

    `commits` are the records after which all is written.
    Source: CachingSessionStore, ThreadCache, NamedCache; see also `stores.cache.sessions`.
    """
    for i in range(begin, slot.shape[0]):
        k, at, t = slot[i], lo + i, timestamp_ms[i]
        if k < 0:
            continue
        own, close = slot_partition[k], stream_time_ms[i] - grace - gap
        commit_until(cache, rules, commits, at)
        if head[k] != IN_CELLS:
            older, newer, steps = _find(cache, rules, sessions, head, k, own, t, gap, at)
            is_many = steps > LONG_WALK and rules.in_cells
            if is_many and not _move_to_cells(cache, rules, sessions, cells, head, k, own, gap, counters):
                return i
        elif counters[CELLS] * 2 >= cells.shape[0]:
            counters[CELLS_WANTED] = 1
            return i
        else:
            older, newer = _find_in_cells(cache, rules, sessions, cells, k, own, t, gap)
        if rules.most < INT64_MAX:
            use_places(cache, rules, k, own, t - gap, t + gap)
        start, end = t, t
        if older >= 0:
            last = newer if newer >= 0 else older
            start, end = min(t, sessions[older].start), max(t, sessions[last].end)
        if session_is_late(end, close):
            decision[i], window[i] = LATE, NO_SESSION
            continue
        size = sizes.of_key[sizes.key[at]]
        is_new = older < 0
        if is_new:
            older = _open(cache, sessions, k, t, counters)
            decision[i], window[i] = OPENED, older
            if is_null.shape[0] and is_null[i]:
                _put_session(cache, rules, sessions, own, older, NO_VALUE, size, at)
                continue
        else:
            decision[i], window[i] = _join(sessions, older, newer, i, close, events, counters), older
            if start != t or end != t:
                _put_session(cache, rules, sessions, own, older, NO_VALUE, size, at)
                if newer >= 0:
                    _put_session(cache, rules, sessions, own, newer, NO_VALUE, size, at)
        is_same = not is_new and newer < 0 and (end == sessions[older].end or head[k] == older)
        sessions[older].start, sessions[older].end = start, end
        _put_session(cache, rules, sessions, own, older, at, size + sizes.of_value[at], at)
        if head[k] == IN_CELLS:
            counters[CELLS] += set_cell(cells, k, t // max(gap, 1), older)
        elif not is_same:
            if newer >= 0:
                _unlink(sessions, head, k, newer)
            if not is_new:
                _unlink(sessions, head, k, older)
            _link(sessions, head, k, older)
    return slot.shape[0]


class Sizes(NamedTuple):
    """The bytes of the entries that records put: of each key without a value, and of the value of each record."""

    key: Codes
    of_key: Longs
    of_value: Longs


class CachedSessionKernel(SessionKernel):
    """The sessions of one run behind a record cache, fed chunk by chunk; nothing was in the store before."""

    def __init__(self, gap_ms: int, grace_ms: int, rules: Rules, sizes: Sizes, commits: Longs, expiry: Expiry) -> None:
        """`commits` are records, rising."""
        super().__init__(gap_ms, grace_ms, rules.retention_ms, expiry=expiry)
        self._rules, self._sizes, self._commits = rules, sizes, commits
        partitions, none = len(expiry.observed_ms), np.empty(0, np.int32)
        numbers = np.zeros(NUMBERS, np.int64)
        numbers[FREE] = NOWHERE
        self._cache = Cache(
            places=np.empty(0, PLACE),
            used=Chain.none(partitions, 0),
            dirty=Chain.none(partitions, 0),
            newest=none,
            together=none,
            at_edge=none,
            place_of=none,
            stored=np.empty(0, np.int64),
            observed_ms=expiry.observed_ms,
            numbers=numbers,
            writes=np.empty(0, WRITE),
            answers=np.empty(0, ANSWER),
        )
        self._writes: StructArray = np.empty(0, WRITE)
        self._answers: list[StructArray] = []

    def _decide(self, columns: Columns, window: Codes, events: Events) -> None:
        assert self._expiry is not None
        lo, count = columns.lo, len(columns.slot)
        self._make_room(count)
        at = 0
        while True:
            at = run_cached_sessions(
                at, lo, columns.slot, columns.slot_partition, columns.timestamp_ms, columns.stream_time_ms,
                self._sizes, self._expiry.null_values[lo : lo + count], self._commits,
                *self._limits, self._rules, self._head, self._sessions, self._cells, self._cache, columns.decision,
                window, events, self._counters,
            )  # fmt: skip
            if at == count:
                break
            self._grow_cells(np.zeros(len(columns.slot_partition), np.int64))
        self._keep_writes()

    def _make_room(self, records: int) -> None:
        cache, slots, rows = self._cache, len(self._head), len(self._sessions)
        more = MOST_OF_A_RECORD * records
        writes = int(cache.numbers[PLACES]) + more
        self._cache = cache._replace(
            newest=_longer(cache.newest, slots, NOWHERE),
            together=_longer(cache.together, slots, NOWHERE),
            at_edge=_longer(cache.at_edge, slots, 0),
            place_of=_longer(cache.place_of, rows, NOWHERE),
            stored=_longer(cache.stored, rows, NO_VALUE),
            writes=np.empty(writes, WRITE),
            answers=np.empty(2 * (writes + records), ANSWER),  # a find and a write ask for two each at most
        )
        if writes > len(cache.places):
            size = max(writes, 2 * len(cache.places))
            places = np.empty(size, PLACE)
            places[: len(cache.places)] = cache.places
            used, dirty = cache.used.with_room(size if self._rules.evicts else 0), cache.dirty.with_room(size)
            self._cache = self._cache._replace(places=places, used=used, dirty=dirty)

    def _keep_writes(self) -> None:
        numbers = self._cache.numbers
        filled = len(self._writes)
        self._writes.resize(filled + numbers[WRITES], refcheck=False)  # in place: it needs no room twice
        self._writes[filled:] = self._cache.writes[: numbers[WRITES]]
        self._answers.append(self._cache.answers[: numbers[ANSWERS]].copy())
        numbers[WRITES] = numbers[ANSWERS] = 0

    def writes(self, records: int) -> StructArray:
        """All that was written to the store, as rows of `WRITE`, after the commits of so many records."""
        self._make_room(0)
        commit_until(self._cache, self._rules, self._commits, records)
        self._keep_writes()
        return self._writes

    @property
    def answers(self) -> StructArray:
        """What the store was asked so far and another retention could change, as rows of `ANSWER`."""
        return np.concatenate([self._cache.answers[:0], *self._answers])

    @property
    def most_held(self) -> int:
        """The most bytes that were in the cache at once."""
        return int(self._cache.numbers[MOST_HELD])

    @property
    def cached(self) -> Rows:
        """Which sessions are in the cache, those that were used last behind the others."""
        if not self._rules.evicts:
            return np.flatnonzero(self._cache.place_of[: self.count] != NOWHERE)
        return self._cache.places["row"][self._cache.used.rows()].astype(np.intp)

    @property
    def stored(self) -> Flags:
        """Whether the store took the last value of each session."""
        place_of, stored = self._cache.place_of[: self.count], self._cache.stored[: self.count].copy()
        rows = np.flatnonzero(place_of != NOWHERE)
        stored[rows] = self._cache.places["stored"][place_of[rows]]
        is_stored: Flags = stored != NO_VALUE
        return is_stored


def _longer(column: Any, size: int, filled: int) -> Any:
    return column if len(column) >= size else np.append(column, np.full(size - len(column), filled, column.dtype))
