"""A kind of session of one's own, in one file: visits that end after a pause, and with the shift at the latest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from sessionkit.errors import InvalidArgument, problem
from sessionkit.windows import (
    ADDED,
    LATE,
    MERGED,
    OPENED,
    Aggregates,
    Columns,
    DecidedSessions,
    Duration,
    Feed,
    Merges,
    Processor,
    Reopenings,
    SessionStore,
    Store,
    StoredSession,
    Touch,
    Touches,
    compiled_loop,
    duration_code,
    length_ms,
    retention_ms,
    show_duration,
    smallest_grace,
    window_kind,
)

Times = TypeVar("Times", int, npt.NDArray[np.int64])


@compiled_loop
def shift_session_is_late(end_ms, close_time_ms):  # type: ignore[no-untyped-def]
    """THE late rule: its end is in a session, which closes behind it. Two int64; processor and kernel both ask here."""
    return end_ms < close_time_ms


@window_kind
@dataclass(frozen=True, init=False)
class ShiftSessions:
    """Sessions of a key: records of one shift that are no further apart than `pause`, both ends included.

    A shift begins at each multiple of its length, counted from 1970, and no session goes on into the next one. Whether
    two records belong together does not depend on which came first, so merges and late records need no further rule.

    Args:
        pause: two records of a shift this far apart are in one session, 1 ms further they are not.
        shift: no session is longer; at least 1 ms.
        grace: how long after the pause a late record still counts.
        pause_ms, shift_ms, grace_ms: the same in milliseconds.
    Raises:
        InvalidArgument: one of them is no length, or the shift is 0.
    Example:
        >>> ShiftSessions(pause="30m", shift="8h", grace="1h")
        ShiftSessions(pause="30m", shift="8h", grace="1h")
    """

    pause_ms: int
    shift_ms: int
    grace_ms: int

    noun = "visit"
    holds = "sessions"
    reach_name = "pause"
    advance_ms = None
    inclusive_end = True
    takes_null_values = True
    is_ever_closed = True
    trailing_only = False
    caches_on_close = False
    not_in_kafka = ("Kafka has no sessions that end with a shift", "no deployment")

    def __init__(
        self,
        *,
        pause: Duration | None = None,
        shift: Duration | None = None,
        grace: Duration | None = None,
        pause_ms: int | None = None,
        shift_ms: int | None = None,
        grace_ms: int | None = None,
    ) -> None:
        object.__setattr__(self, "pause_ms", length_ms(pause, pause_ms, "pause"))
        object.__setattr__(self, "shift_ms", length_ms(shift, shift_ms, "shift"))
        object.__setattr__(self, "grace_ms", length_ms(grace, grace_ms, "grace"))
        if not self.shift_ms:
            raise InvalidArgument(problem("a shift must have a length", "0 ms", 'shift="8h"'))

    @property
    def close_lag_ms(self) -> int:
        """Time that is subtracted from stream time to get the close time."""
        return self.pause_ms + self.grace_ms

    @property
    def close_lag_parts(self) -> Mapping[str, int]:
        """What it consists of."""
        return {"pause": self.pause_ms, "grace": self.grace_ms}

    @property
    def reach_ms(self) -> int:
        """How far after its time a record can find a session."""
        return self.pause_ms

    def reach_of_ms(self, start_ms: Times, end_ms: Times) -> tuple[Times, Times]:
        """(first, last) time at which a record joins: up to a pause away, within the shift."""
        begin_ms = start_ms // self.shift_ms * self.shift_ms
        least: Any = np.minimum if isinstance(start_ms, np.ndarray) else min
        before_ms = least(start_ms - begin_ms, self.pause_ms)
        after_ms = least(begin_ms + self.shift_ms - 1 - end_ms, self.pause_ms)
        return start_ms - before_ms, end_ms + after_ms

    def near_in_words(self) -> str:
        """How near a record has to be."""
        return f"in the shift and within the pause of {show_duration(self.pause_ms)}"

    @staticmethod
    def is_late(end_ms: int, close_time_ms: int) -> bool:
        """THE late rule, as the kernel asks it."""
        return bool(shift_session_is_late(end_ms, close_time_ms))

    def retention_ms(self, retention: Duration | None) -> int:
        """`retention`, or the pause and the grace."""
        return retention_ms(retention, self.close_lag_ms, "pause + grace")

    def windows_for(self, timestamp_ms: int) -> list[tuple[int, int]]:
        """(start, end) of the session that a record of this time opens."""
        return [(timestamp_ms, timestamp_ms)]

    def ends_ms(self, starts_ms: Times) -> Times:
        """A session has its own end."""
        raise NotImplementedError  # only asked of kinds that hold windows

    def last_instant_ms(self, stored: StoredSession, /) -> int:
        """The last time that lies in a stored session."""
        return stored.window_end_ms

    def last_instants_ms(self, timestamps_ms: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The last instants of all sessions that records of these times can be in, each once, rising."""
        return np.unique(timestamps_ms)

    def oldest_kept_end_ms(self, stream_time_ms: Times, retention_ms: int) -> Times:
        """The end that a session needs at least to be found at this stream time."""
        return stream_time_ms - retention_ms

    def forgets_in_words(self) -> str:
        """A session is closed before it is forgotten."""
        return "a visit is closed before it is forgotten"

    def missing_grace_ms(
        self, times_ms: Any, stream_times_ms: Any, late: Any, retention_ms: int, loaded: tuple[Any, Any]
    ) -> npt.NDArray[np.int64]:
        """How much more grace would have kept late records of one key, found by replaying what it had seen."""
        before = list(zip(*(bounds.tolist() for bounds in loaded), strict=True))
        records = list(zip(times_ms.tolist(), stream_times_ms.tolist(), strict=True))

        def kept(last: int, grace_ms: int) -> bool:
            longer = ShiftSessions(pause_ms=self.pause_ms, shift_ms=self.shift_ms, grace_ms=grace_ms)
            sessions = _Sessions(longer, max(retention_ms, longer.close_lag_ms))
            for bounds in before:
                sessions.add(0, *bounds)
            return [sessions.take(0, *record)[0] for record in records[: last + 1]][-1] != LATE

        alone = stream_times_ms - times_ms - self.pause_ms  # enough without any other record
        found = [smallest_grace(partial(kept, row), self.grace_ms, int(alone[row])) for row in late.tolist()]
        return np.array(found, np.int64) - self.grace_ms

    def processor(self, aggregates: Aggregates, store: Store, partition: int, **options: Any) -> ShiftProcessor:
        """The record-at-a-time processor of one partition."""
        return ShiftProcessor(self, aggregates, cast(SessionStore, store), partition, **options)

    def run(self, feed: Feed, folds: Mapping[str, Any], retention_ms: int) -> DecidedSessions:
        """The pass over columns: records in order of arrival, values a chunk at a time."""
        visits = _Pass(self, feed, retention_ms)
        for columns in feed.chunks():
            window, merges = visits.decide(columns)
            for fold in folds.values():
                fold.grow(visits.count)
                fold.feed(window, merges, columns.lo)
        return visits.decided()

    def touches(self, feed: Feed) -> Touches:
        """A record is in one session, which the trace holds."""
        raise NotImplementedError  # only asked of kinds that hold windows

    def missed(self, feed: Feed) -> None:
        """A late record is in no session, and the trace holds it."""

    def arguments(self) -> tuple[Callable[..., Any], dict[str, Any]]:
        """(callable, keyword arguments) that make these windows again."""
        return ShiftSessions, {"pause_ms": self.pause_ms, "shift_ms": self.shift_ms, "grace_ms": self.grace_ms}

    def in_words(self) -> str:
        """The parameters as a person says them."""
        pause, shift, grace = map(show_duration, (self.pause_ms, self.shift_ms, self.grace_ms))
        return f"pause {pause}, shift {shift}, grace {grace}"

    def code(self) -> str:
        """The Python expression that makes them, after `from tests.contract.examples.shift_sessions import …`."""
        return repr(self)

    def __repr__(self) -> str:
        pause, shift, grace = map(duration_code, (self.pause_ms, self.shift_ms, self.grace_ms))
        return f'ShiftSessions(pause="{pause}", shift="{shift}", grace="{grace}")'


class ShiftProcessor(Processor[SessionStore]):
    """One record at a time, over a store: the reference that the pass over columns is held against."""

    def __init__(
        self, windows: ShiftSessions, aggregates: Aggregates, store: SessionStore, partition: int, **options: Any
    ) -> None:
        super().__init__(aggregates, store, partition, **options)
        self._windows = windows

    def process(self, key: Any, value: Any, timestamp_ms: int, offset: int) -> Touch:
        """Takes one record in."""
        windows, aggregates, where = self._windows, self._aggregates, {"partition": self._partition}
        self.stream_time_ms = max(self.stream_time_ms, timestamp_ms)
        first_ms, last_ms = windows.reach_of_ms(timestamp_ms, timestamp_ms)
        oldest_ms = windows.oldest_kept_end_ms(self.stream_time_ms, self._retention_ms)
        found = list(self._store.find_sessions(key, max(first_ms, oldest_ms), last_ms, **where))
        start_ms = min([timestamp_ms, *(session.window_start_ms for session in found)])
        end_ms = max([timestamp_ms, *(session.window_end_ms for session in found)])
        if windows.is_late(end_ms, self.stream_time_ms - windows.close_lag_ms):
            return Touch(LATE, found, start_ms, end_ms, None, stored=False)
        aggregate = aggregates.initializer()
        for session in found:
            aggregate = aggregates.merger(key, aggregate, session.aggregate)
            self._store.remove(key, session.window_start_ms, session.window_end_ms, **where)
        aggregate = aggregates.aggregator(key, value, aggregate)
        rows = 1 + sum(session.rows for session in found) if all(session.rows >= 0 for session in found) else -1
        opened_by = found[0].opened_by if found else offset
        session = StoredSession(start_ms, end_ms, aggregate, key, opened_by, rows=rows)
        stored = self._store.write(session, keep_null=True, **where)
        shown = None if aggregates.is_null(aggregate) else aggregate
        return Touch((OPENED, ADDED, MERGED)[len(found)], found, start_ms, end_ms, shown, stored)

    def closed(self) -> list[StoredSession]:
        """The sessions that became final with the last record, by end."""
        close_ms = self.stream_time_ms - self._windows.close_lag_ms
        lowest_ms = max(0, self._schedule.last_close_time_ms)
        if not self._schedule.is_due(close_ms) or close_ms <= lowest_ms:
            return []
        self._schedule.last_close_time_ms = close_ms
        return list(self._store.find_sessions_by_end(lowest_ms, close_ms - 1, partition=self._partition))


class _Sessions:
    """Sessions in rows, as records open, extend and join them; a slot is a key in a partition."""

    def __init__(self, windows: ShiftSessions, retention_ms: int) -> None:
        self._windows, self._retention_ms = windows, retention_ms
        self.slot: list[int] = []
        self.start: list[int] = []
        self.end: list[int] = []
        self._live: dict[int, list[int]] = {}  # rows by slot

    def add(self, slot: int, start_ms: int, end_ms: int) -> int:
        """A new row."""
        for column, value in ((self.slot, slot), (self.start, start_ms), (self.end, end_ms)):
            column.append(value)
        self._live.setdefault(slot, []).append(len(self.slot) - 1)
        return len(self.slot) - 1

    def take(
        self, slot: int, time_ms: int, stream_time_ms: int, before: Callable[[int], None] = lambda row: None
    ) -> tuple[int, list[int]]:
        """Takes a record in: (decision, rows of the sessions that it met, oldest first); each is shown to `before`."""
        oldest_ms = self._windows.oldest_kept_end_ms(stream_time_ms, self._retention_ms)
        live = self._live[slot] = [row for row in self._live.get(slot, []) if self.end[row] >= oldest_ms]
        first_ms, last_ms = self._windows.reach_of_ms(time_ms, time_ms)
        found = [row for row in live if self.start[row] <= last_ms and self.end[row] >= first_ms]
        found.sort(key=self.start.__getitem__)
        end_ms = max([time_ms, *(self.end[row] for row in found)])
        if shift_session_is_late(end_ms, stream_time_ms - self._windows.close_lag_ms):
            return LATE, []
        if not found:
            return OPENED, [self.add(slot, time_ms, time_ms)]
        for row in found:
            before(row)
        self.start[found[0]], self.end[found[0]] = min(time_ms, self.start[found[0]]), end_ms
        for row in found[1:]:
            live.remove(row)
        return (ADDED if len(found) == 1 else MERGED), found


class _Pass:
    """The sessions of one run; first those that were there before. What happened to them is noted for the trace."""

    def __init__(self, windows: ShiftSessions, feed: Feed, retention_ms: int) -> None:
        self._feed, self._windows, loaded = feed, windows, feed.loaded
        self._sessions = _Sessions(windows, retention_ms)
        for row in zip(loaded.slot.tolist(), loaded.start_ms.tolist(), loaded.timestamp_ms.tolist(), strict=True):
            self._sessions.add(*row)
        self._is_closed = loaded.is_closed.tolist()
        self._window = np.full(len(feed), -1, np.int32)
        self._opened_at: list[int] = []
        self._merges: list[tuple[int, int, int]] = []
        self._reopenings: list[tuple[int, int, int, int]] = []

    @property
    def count(self) -> int:
        """How many sessions there are so far, absorbed ones included."""
        return len(self._sessions.slot)

    def decide(self, columns: Columns) -> tuple[npt.NDArray[np.int32], Merges]:
        """Decides a chunk: the row of each record's session, and the merges, with their places in the chunk."""
        sessions, known = self._sessions, len(self._merges)
        window = self._window[columns.lo : columns.lo + len(columns.slot)]
        for at in np.flatnonzero(columns.slot >= 0).tolist():
            time_ms, stream_time_ms = int(columns.timestamp_ms[at]), int(columns.stream_time_ms[at])
            close_ms, record = stream_time_ms - self._windows.close_lag_ms, columns.lo + at

            def note_reopening(row: int, close_ms: int = close_ms, record: int = record) -> None:
                if sessions.end[row] < close_ms:
                    if row >= len(self._is_closed) or not self._is_closed[row]:
                        self._reopenings.append((record, row, sessions.start[row], sessions.end[row]))
                    else:
                        self._is_closed[row] = False

            decision, met = sessions.take(int(columns.slot[at]), time_ms, stream_time_ms, note_reopening)
            columns.decision[at] = decision
            window[at] = met[0] if met else -1
            if decision == OPENED:
                self._opened_at.append(record)
            self._merges += [(record, met[0], absorbed) for absorbed in met[1:]]
        return window, _merges_of(self._merges[known:], columns.lo)

    def decided(self) -> DecidedSessions:
        """What the run left behind."""
        sessions, merges = self._sessions, _merges_of(self._merges)
        at, row, start_ms, end_ms = np.array(self._reopenings, np.int64).reshape(-1, 4).T
        merged_into = np.full(self.count, -1, np.int32)
        merged_into[merges.absorbed] = merges.into
        return DecidedSessions(
            slot=np.array(sessions.slot, np.int32),
            start_ms=np.array(sessions.start, np.int64),
            end_ms=np.array(sessions.end, np.int64),
            merged_into=merged_into,
            is_closed=np.array(self._is_closed, np.bool_),
            opened_by=[self._feed.batch.offset[np.array(self._opened_at, np.int64)]],
            window=self._window,
            merges=merges,
            reopenings=Reopenings(at, row.astype(np.int32), start_ms, end_ms),
            merge_count=len(self._merges),
        )


def _merges_of(rows: list[tuple[int, int, int]], lo: int = 0) -> Merges:
    at, into, absorbed = np.array(rows, np.int64).reshape(-1, 3).T
    return Merges(at - lo, into.astype(np.int32), absorbed.astype(np.int32))
