"""Session windows: their parameters, the record-at-a-time processor, and the way to the compiled kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from sessionkit.base.arrays import Longs, Rows, distinct
from sessionkit.base.calls import AnswersNames, answers_names, called_as
from sessionkit.base.decisions import ADDED, LATE, MERGED, OPENED
from sessionkit.base.durations import (
    INT64_MAX,
    MAX_DURATION_MS,
    Duration,
    duration_code,
    length_ms,
    of_two_names,
    retention_ms,
    show_duration,
)
from sessionkit.errors import InvalidArgument, NotBuilt, problem
from sessionkit.records.keys import key_bytes
from sessionkit.stores.contract import SessionStore, Store, StoredSession
from sessionkit.stores.segments import SEGMENT_COUNT, Segments
from sessionkit.trace.window_trace import Touches
from sessionkit.windows.contract import Bounds, Times, window_kind
from sessionkit.windows.feed import DecidedSessions, Feed
from sessionkit.windows.missing_grace import missing_grace_of_key
from sessionkit.windows.processor import Aggregates, Processor
from sessionkit.windows.session_drive import drive_sessions
from sessionkit.windows.session_kernel import SessionKernel, session_is_late


@window_kind
@answers_names("sk.SessionWindows")
@dataclass(frozen=True, init=False)
class SessionWindows(metaclass=AnswersNames):
    """Sessions of a key: records no further apart than `inactivity_gap`, both ends included.

    A session closes once stream time has passed its end by more than `inactivity_gap + grace`.

    Args:
        inactivity_gap: two records this far apart are in one session, 1 ms further they are not; `gap` is the same.
        grace: how long after that a late record still counts; 0 is allowed, leaving it out is not (KIP-633).
        inactivity_gap_ms, grace_ms: the same as numbers, in whole milliseconds.
    Raises:
        InvalidArgument: a duration is negative, no duration, or both together pass 2**62 ms; or a length is missing or
            given twice.
    Source:
        KIP-94, KIP-633; SessionWindows.ofInactivityGapAndGrace.
    Example:
        >>> SessionWindows(inactivity_gap="30s", grace="10s")
        SessionWindows(inactivity_gap="30s", grace="10s")
    """

    inactivity_gap_ms: int
    grace_ms: int
    until_ms: int | None = None

    noun = "session"
    holds = "sessions"
    advance_ms = None
    reach_name = "inactivity_gap"
    takes_null_values = True
    inclusive_end = True
    trailing_only = False
    caches_on_close = False

    @called_as('sk.SessionWindows(inactivity_gap="30m", grace="5m")')
    def __init__(
        self,
        *,
        inactivity_gap: Duration | None = None,
        grace: Duration | None = None,
        gap: Duration | None = None,
        inactivity_gap_ms: int | None = None,
        grace_ms: int | None = None,
    ) -> None:
        gap_ms = length_ms(of_two_names(inactivity_gap, gap), inactivity_gap_ms, "inactivity_gap")
        object.__setattr__(self, "inactivity_gap_ms", gap_ms)
        object.__setattr__(self, "grace_ms", length_ms(grace, grace_ms, "grace"))
        if self.close_lag_ms > MAX_DURATION_MS:
            what = "inactivity_gap and grace together must be at most 2**62 ms"
            raise InvalidArgument(problem(what, f"{self.close_lag_ms} ms", "shorten one"))

    @classmethod
    @called_as('sk.SessionWindows.until(inactivity_gap="30m", retention="1d")')
    def until(
        cls,
        *,
        inactivity_gap: Duration | None = None,
        retention: Duration | None = None,
        gap: Duration | None = None,
        inactivity_gap_ms: int | None = None,
        retention_ms: int | None = None,
    ) -> SessionWindows:
        """Sessions as KIP-94 first had them: a record of any age counts, and no session is ever final.

        There is no grace. A session can be found while its end lies in one of the last three segments, each half of
        `retention` long and at least a minute; a record that finds none, however late, opens one. (Kafka forwarded
        that update, too, and then could not store it.)

        Args:
            inactivity_gap: two records this far apart are in one session, 1 ms further they are not; or `gap`.
            retention: how long a session can be found, in stream time; at least `inactivity_gap`.
            inactivity_gap_ms, retention_ms: the same as numbers, in whole milliseconds.
        Raises:
            InvalidArgument: as for the class, or `retention` is shorter than the gap.
        Source:
            KIP-94; SessionWindows.with(gap).until(retention), Kafka 0.10.2 to 2.0.
        Example:
            >>> SessionWindows.until(inactivity_gap="30s", retention="1d")
            SessionWindows.until(inactivity_gap="30s", retention="1d")
        """
        gap_ms = length_ms(of_two_names(inactivity_gap, gap), inactivity_gap_ms, "inactivity_gap")
        until_ms = length_ms(retention, retention_ms, "retention")
        reach_ms = (SEGMENT_COUNT - 1) * Segments.of_ms(until_ms).interval_ms  # half an odd one is rounded down
        if min(until_ms, reach_ms) < gap_ms:
            want = f"at least inactivity_gap = {show_duration(gap_ms + gap_ms % 2)}"
            raise InvalidArgument(problem("retention must cover a gap", show_duration(until_ms), want))
        windows = cls(inactivity_gap_ms=gap_ms, grace_ms=MAX_DURATION_MS - gap_ms)
        object.__setattr__(windows, "until_ms", until_ms)
        object.__setattr__(windows, "grace_ms", INT64_MAX - gap_ms)  # no time is so far ahead of another
        return windows

    @property
    def not_in_kafka(self) -> tuple[str, str] | None:
        """Why Kafka has no such windows if they have an `until`, as it had before; else None."""
        if self.until_ms is None:
            return None
        return "Kafka 4.4.0 has no until", "no deployment; it has had a grace since 2.1"

    @property
    def is_ever_closed(self) -> bool:
        """False without a grace: see `until`."""
        return self.until_ms is None

    @property
    def close_lag_ms(self) -> int:
        """Time that is subtracted from stream time to get the close time."""
        return self.inactivity_gap_ms + self.grace_ms

    @property
    def close_lag_parts(self) -> Mapping[str, int]:
        """The gap and the grace, of which the close lag is the sum."""
        return {"gap": self.inactivity_gap_ms, "grace": self.grace_ms}

    def reach_of_ms(self, start_ms: Times, end_ms: Times) -> tuple[Times, Times]:
        """(first, last) time at which a record joins a session: up to a gap away from it."""
        return start_ms - self.inactivity_gap_ms, end_ms + self.inactivity_gap_ms

    def near_in_words(self) -> str:
        """How near to a session a record has to be."""
        return f"within the gap of {show_duration(self.inactivity_gap_ms)}"

    def missing_grace_ms(
        self, times_ms: Longs, stream_times_ms: Longs, late: Rows, retention_ms: int, loaded: Bounds
    ) -> Longs:
        """How much more grace would have kept late records of one key in one partition."""
        gap_ms, grace_ms = self.inactivity_gap_ms, self.grace_ms
        return missing_grace_of_key(times_ms, stream_times_ms, late, gap_ms, grace_ms, retention_ms, loaded)

    @staticmethod
    def is_late(end_ms: int, close_time_ms: int) -> bool:
        """THE late rule, as the kernel asks it."""
        return bool(session_is_late(end_ms, close_time_ms))

    def retention_ms(self, retention: Duration | None) -> int:
        """How long a session can be found again: `retention`, or the smallest allowed, gap + grace.

        Raises:
            InvalidArgument: shorter than gap + grace, which Kafka refuses too.
        """
        if self.until_ms is not None:
            if retention is not None:
                got = f"retention={retention!r}"
                raise InvalidArgument(problem("these windows bring their own retention", got, "leave it out"))
            return self.until_ms
        return retention_ms(retention, self.close_lag_ms, "inactivity_gap + grace")

    def oldest_kept_end_ms(self, stream_time_ms: Times, retention_ms: int) -> Times:
        """The end that a session needs at least to be found at this stream time."""
        segment_ms = self._segment_ms
        if segment_ms == 1:
            return stream_time_ms - retention_ms
        return (stream_time_ms // segment_ms - (SEGMENT_COUNT - 1)) * segment_ms

    def forgets_in_words(self) -> str:
        """When a session can no longer be found, where none is ever closed."""
        kept = (show_duration(count * self._segment_ms) for count in (SEGMENT_COUNT - 1, SEGMENT_COUNT))
        return f"a session can be found until stream time is {' to '.join(kept)} past its end"

    @property
    def _segment_ms(self) -> int:
        """The length of time that expires together: 1 ms, unless segments decide."""
        return 1 if self.until_ms is None else Segments.of_ms(self.until_ms).interval_ms

    def windows_for(self, timestamp_ms: int) -> list[tuple[int, int]]:
        """(start, end) of the session that a record of this time opens; it joins or bridges those it meets instead."""
        return [(timestamp_ms, timestamp_ms)]

    @property
    def reach_ms(self) -> int:
        """How far after its time a record can find a session."""
        return self.inactivity_gap_ms

    @staticmethod
    def last_instants_ms(timestamps_ms: Longs) -> Longs:
        """The last instants of all sessions that records of these times can be in, each once, rising."""
        return distinct(timestamps_ms)

    @staticmethod
    def last_instant_ms(stored: StoredSession, /) -> int:
        """The last time that lies in a stored session."""
        return stored.window_end_ms

    def processor(self, aggregates: Aggregates, store: Store, partition: int, **options: Any) -> SessionProcessor:
        """The record-at-a-time processor of one partition."""
        return SessionProcessor(self, aggregates, cast(SessionStore, store), partition, **options)

    def run(self, feed: Feed, folds: Mapping[str, Any], retention_ms: int) -> DecidedSessions:
        """The compiled pass over columns."""
        segment_ms = self._segment_ms
        kept_ms = retention_ms if segment_ms == 1 else (SEGMENT_COUNT - 1) * segment_ms
        kernel = None if feed.expiry is None else feed.expiry.cached
        if kernel is None:
            kernel = SessionKernel(self.inactivity_gap_ms, self.grace_ms, kept_ms, segment_ms, feed.expiry)
        return drive_sessions(kernel, feed, folds)

    def arguments(self) -> tuple[Callable[..., Any], dict[str, Any]]:
        """(callable, keyword arguments) that make these windows again."""
        if self.until_ms is not None:
            return SessionWindows.until, {"inactivity_gap_ms": self.inactivity_gap_ms, "retention_ms": self.until_ms}
        return SessionWindows, {"inactivity_gap_ms": self.inactivity_gap_ms, "grace_ms": self.grace_ms}

    def ends_ms(self, starts_ms: Times) -> Times:
        """A session has its own end."""
        raise NotImplementedError  # only asked of kinds that hold windows

    def touches(self, feed: Feed) -> Touches:
        """Nothing: a record is in one session, which the trace holds."""
        raise NotImplementedError  # only asked of kinds that hold windows

    def missed(self, feed: Feed) -> None:
        """Nothing: a late record is in no session, and the trace holds it."""

    def in_words(self) -> str:
        """The parameters as a person says them."""
        gap = f"gap {show_duration(self.inactivity_gap_ms)}"
        if self.until_ms is not None:
            return f"{gap}, retention {show_duration(self.until_ms)} and no grace"
        return f"{gap}, grace {show_duration(self.grace_ms)}"

    def code(self) -> str:
        """The Python expression that makes them."""
        return f"sk.{self!r}"

    def __repr__(self) -> str:
        if self.until_ms is not None:
            gap, retention = duration_code(self.inactivity_gap_ms), duration_code(self.until_ms)
            return f'SessionWindows.until(inactivity_gap="{gap}", retention="{retention}")'
        gap, grace = duration_code(self.inactivity_gap_ms), duration_code(self.grace_ms)
        return f'SessionWindows(inactivity_gap="{gap}", grace="{grace}")'


class Touch(NamedTuple):
    """The effect of one record, as the processor reports it."""

    decision: int
    found: list[StoredSession]
    start_ms: int
    end_ms: int
    aggregate: Any
    stored: bool


class SessionProcessor(Processor[SessionStore]):
    """Kafka's session processor for one partition, line by line, over a store.

    In a deployment the store expires sessions and a null aggregate deletes one. Else a session is found while
    `end >= stream time - retention`, whatever the store, and null is a value.

    Source:
        KStreamSessionWindowAggregate.
    """

    def __init__(
        self, windows: SessionWindows, aggregates: Aggregates, store: SessionStore, partition: int, **options: Any
    ) -> None:
        super().__init__(aggregates, store, partition, **options)
        self._windows = windows

    def process(self, key: Any, value: Any, timestamp_ms: int, offset: int) -> Touch:
        """Takes one record in."""
        gap, store, aggregates = self._windows.inactivity_gap_ms, self._store, self._aggregates
        self.stream_time_ms = max(self.stream_time_ms, timestamp_ms)
        close_time_ms = self.stream_time_ms - self._windows.close_lag_ms
        earliest_end_ms = timestamp_ms - gap
        if not self._kafka:
            oldest_ms = self._windows.oldest_kept_end_ms(self.stream_time_ms, self._retention_ms)
            earliest_end_ms = max(earliest_end_ms, oldest_ms)
        found = list(store.find_sessions(key, earliest_end_ms, timestamp_ms + gap, partition=self._partition))

        start_ms = end_ms = timestamp_ms
        aggregate = aggregates.initializer()
        for session in found:
            aggregate = aggregates.merger(key, aggregate, session.aggregate)
            start_ms = min(start_ms, session.window_start_ms)
            end_ms = max(end_ms, session.window_end_ms)
        if self._windows.is_late(end_ms, close_time_ms):
            return Touch(LATE, found, start_ms, end_ms, None, stored=False)
        if (start_ms, end_ms) != (timestamp_ms, timestamp_ms):
            for session in found:
                store.remove(key, session.window_start_ms, session.window_end_ms, partition=self._partition)
        aggregate = aggregates.aggregator(key, value, aggregate)
        null = aggregates.is_null(aggregate)
        kept = None if null and self._kafka else aggregate
        rows = 1 + sum(s.rows for s in found) if all(s.rows >= 0 for s in found) else -1
        session = StoredSession(start_ms, end_ms, kept, key, found[0].opened_by if found else offset, rows=rows)
        stored = store.write(session, partition=self._partition, keep_null=not self._kafka)
        decision = OPENED if not found else ADDED if len(found) == 1 else MERGED
        return Touch(decision, found, start_ms, end_ms, None if null else aggregate, stored)

    def closed(self) -> list[StoredSession]:
        close_time_ms = self.stream_time_ms - self._windows.close_lag_ms
        if not self._schedule.is_due(close_time_ms):
            return []
        lowest, highest = max(0, self._schedule.last_close_time_ms), close_time_ms - 1
        if highest < lowest:
            return []
        self._schedule.last_close_time_ms = close_time_ms
        try:
            return list(self._store.find_sessions_by_end(lowest, highest, partition=self._partition))
        except NotBuilt:  # a store that is not in order of time: all of it, which is slower, with the same results
            found = (s for s in self._store.all(partition=self._partition) if lowest <= s.window_end_ms <= highest)
            return sorted(found, key=lambda s: (s.window_end_ms, s.window_start_ms, key_bytes(s.key)))
