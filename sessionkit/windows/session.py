"""Session windows: their parameters, the record-at-a-time processor, and the way to the compiled kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from sessionkit.contracts import SessionStore, StoredSession, window_kind
from sessionkit.decisions import ADDED, LATE, MERGED, OPENED
from sessionkit.durations import MAX_DURATION_MS, Duration, duration_code, duration_ms, show_duration
from sessionkit.errors import InvalidArgument, NotBuilt, problem
from sessionkit.keys import key_bytes
from sessionkit.windows.emission import EmitSchedule
from sessionkit.windows.session_kernel import SessionKernel, session_is_late
from sessionkit.windows.touches import Aggregates


@window_kind
@dataclass(frozen=True, init=False)
class SessionWindows:
    """Sessions of a key: records no further apart than `inactivity_gap`, both ends included.

    A session closes once stream time has passed its end by more than `inactivity_gap + grace`.

    Args:
        inactivity_gap: two records this far apart are in one session, 1 ms further they are not.
        grace: how long after that a late record still counts; 0 is allowed, leaving it out is not (KIP-633).
    Raises:
        InvalidArgument: a duration is negative, no duration, or both together pass 2**62 ms.
    Source:
        KIP-94, KIP-633; SessionWindows.ofInactivityGapAndGrace.
    Example:
        >>> SessionWindows(inactivity_gap="30s", grace="10s")
        SessionWindows(inactivity_gap="30s", grace="10s")
    """

    inactivity_gap_ms: int
    grace_ms: int

    noun = "session"
    reach_name = "inactivity_gap"
    takes_null_values = True
    inclusive_end = True
    trailing_only = False
    caches_on_close = False

    def __init__(self, *, inactivity_gap: Duration, grace: Duration) -> None:
        object.__setattr__(self, "inactivity_gap_ms", duration_ms(inactivity_gap, "inactivity_gap"))
        object.__setattr__(self, "grace_ms", duration_ms(grace, "grace"))
        if self.close_lag_ms > MAX_DURATION_MS:
            got = f"{self.close_lag_ms} ms"
            raise InvalidArgument(
                problem("inactivity_gap and grace together must be at most 2**62 ms", got, "shorten one")
            )

    @property
    def close_lag_ms(self) -> int:
        """What is subtracted from stream time to get the close time."""
        return self.inactivity_gap_ms + self.grace_ms

    def retention_ms(self, retention: Duration | None) -> int:
        """How long a session can be found again: `retention`, or the smallest allowed, gap + grace.

        Raises:
            InvalidArgument: shorter than gap + grace, which Kafka refuses too.
        """
        ms = self.close_lag_ms if retention is None else duration_ms(retention, "retention")
        if ms < self.close_lag_ms:
            want = f"at least inactivity_gap + grace = {show_duration(self.close_lag_ms)}"
            raise InvalidArgument(problem("retention must cover the sessions", show_duration(ms), want))
        return ms

    @property
    def reach_ms(self) -> int:
        """How far after its time a record can find a session."""
        return self.inactivity_gap_ms

    @staticmethod
    def last_instant_ms(session: StoredSession) -> int:
        """The last time that lies in a stored session."""
        return session.window_end_ms

    def processor(
        self, aggregates: Aggregates, store: SessionStore, partition: int, **options: Any
    ) -> SessionProcessor:
        """The record-at-a-time processor of one partition."""
        return SessionProcessor(self, aggregates, store, partition, **options)

    def kernel(self, retention_ms: int) -> SessionKernel:
        """The compiled pass over columns."""
        return SessionKernel(self.inactivity_gap_ms, self.grace_ms, retention_ms)

    def arguments(self) -> dict[str, Any]:
        """What to call the class with to make it again."""
        return {"inactivity_gap": self.inactivity_gap_ms, "grace": self.grace_ms}

    def in_words(self) -> str:
        """The parameters as a person says them."""
        return f"gap {show_duration(self.inactivity_gap_ms)}, grace {show_duration(self.grace_ms)}"

    def __repr__(self) -> str:
        gap, grace = duration_code(self.inactivity_gap_ms), duration_code(self.grace_ms)
        return f'SessionWindows(inactivity_gap="{gap}", grace="{grace}")'


class Touch(NamedTuple):
    """What one record did, as the processor tells it to whoever listens."""

    decision: int
    found: list[StoredSession]
    start_ms: int
    end_ms: int
    aggregate: Any
    stored: bool


class SessionProcessor:
    """Kafka's session processor for one partition, line by line, over a store.

    Under `rules="kafka"` the store expires sessions and a null aggregate deletes one. Under `rules="sessionkit"` a
    session is found while `end >= stream time - retention`, whatever the store, and null is a value.

    Source:
        KStreamSessionWindowAggregate.
    """

    def __init__(
        self,
        windows: SessionWindows,
        aggregates: Aggregates,
        store: SessionStore,
        partition: int,
        *,
        kafka: bool,
        retention_ms: int,
        stream_time_ms: int,
        schedule: EmitSchedule,
    ) -> None:
        self._windows, self._aggregates, self._store, self._partition = windows, aggregates, store, partition
        self._kafka, self._retention_ms, self._schedule = kafka, retention_ms, schedule
        self.stream_time_ms = stream_time_ms

    def process(self, key: Any, value: Any, timestamp_ms: int, offset: int) -> Touch:
        """Takes one record in."""
        gap, store, aggregates = self._windows.inactivity_gap_ms, self._store, self._aggregates
        self.stream_time_ms = max(self.stream_time_ms, timestamp_ms)
        close_time_ms = self.stream_time_ms - self._windows.close_lag_ms
        earliest_end_ms = timestamp_ms - gap
        if not self._kafka:
            earliest_end_ms = max(earliest_end_ms, self.stream_time_ms - self._retention_ms)
        found = list(store.find_sessions(key, earliest_end_ms, timestamp_ms + gap, partition=self._partition))

        start_ms = end_ms = timestamp_ms
        aggregate = aggregates.initializer()
        for session in found:
            aggregate = aggregates.merger(key, aggregate, session.aggregate)
            start_ms = min(start_ms, session.window_start_ms)
            end_ms = max(end_ms, session.window_end_ms)
        if session_is_late(end_ms, close_time_ms):
            return Touch(LATE, found, start_ms, end_ms, None, stored=False)
        if (start_ms, end_ms) != (timestamp_ms, timestamp_ms):
            for session in found:
                store.remove(key, session.window_start_ms, session.window_end_ms, partition=self._partition)
        aggregate = aggregates.aggregator(key, value, aggregate)
        null = aggregates.is_null(aggregate)
        stored = store.put(
            key,
            start_ms,
            end_ms,
            None if null and self._kafka else aggregate,
            partition=self._partition,
            opened_by=found[0].opened_by if found else offset,
            keep_null=not self._kafka,
        )
        decision = OPENED if not found else ADDED if len(found) == 1 else MERGED
        return Touch(decision, found, start_ms, end_ms, None if null else aggregate, stored)

    def closed(self) -> list[StoredSession]:
        """The sessions that became final with the last record, in the order in which they go out."""
        close_time_ms = self.stream_time_ms - self._windows.close_lag_ms
        if not self._schedule.is_due(close_time_ms):
            return []
        lowest, highest = max(0, self._schedule.last_close_time_ms), close_time_ms - 1
        if highest < lowest:
            return []
        self._schedule.last_close_time_ms = close_time_ms
        try:
            return list(self._store.find_sessions_by_end(lowest, highest, partition=self._partition))
        except NotBuilt:  # a store that is not in order of time: slower, with the same results
            return self._scanned(lowest, highest)

    def _scanned(self, lowest_end_ms: int, highest_end_ms: int) -> list[StoredSession]:
        """The sessions of all keys that end between the two times, found by going through the whole store."""
        found = (s for s in self._store.all(partition=self._partition))
        closed = (s for s in found if lowest_end_ms <= s.window_end_ms <= highest_end_ms)
        return sorted(closed, key=lambda s: (s.window_end_ms, s.window_start_ms, key_bytes(s.key)))
