"""The session store on disk: KIP-94's segments, and KIP-825's form in order of time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from sessionkit.base.durations import Duration
from sessionkit.base.moments import Moment
from sessionkit.errors import InvalidArgument, NotBuilt, problem
from sessionkit.stores.base.calls import Keys, SessionCalls
from sessionkit.stores.contract import StoredSession, store_kind
from sessionkit.stores.rocksdb.base import PersistentStore
from sessionkit.stores.rocksdb.row_space import Question
from sessionkit.stores.rows import check_times
from sessionkit.stores.typed_bytes import SESSIONS, Place


@store_kind("rocksdb")
class RocksDBSessionStore(SessionCalls, PersistentStore):
    """Sessions in a folder on disk, with the calls of Kafka's SessionStore and the behaviour of its RocksDB store.

    With `retention` sessions expire by segments of half of it (at least a minute): a put is refused once its whole
    segment has expired, reads hide what ends `retention` or more behind the latest end put, and `find_sessions_by_end`
    still shows it until the segment is gone. Without it nothing expires by itself. The latest end put is forgotten
    when the store is closed, as by Kafka, except in partitions that a plan has committed.

    A single change survives the end of the process at once, and a loss of power once it was committed or closed.
    Aggregates are None, bool, int of 64 bits, float, Decimal, str, bytes, or lists, tuples and str-keyed dicts of them.
    A damaged store either answers correctly or raises StoreCorrupted; nothing in its files is ever run.

    Args:
        name: of the folder; Kafka's rule: 1 to 249 of A-Z, a-z, 0-9, ".", "_", "-", and not "." or "..".
        directory: where the folder is, or will be made.
        retention: how long a session is kept, in stream time.
        time_ordered: Kafka's form for emit-on-close: only it answers `find_sessions_by_end`.
        segment_interval: the length of a segment.
    Raises:
        StoreMismatch: it was made with other settings. StoreLocked: it is open already. StoreCorrupted.
        StoreUnavailable: rocksdict is not installed.
    Source:
        KIP-94, KIP-825; RocksDBSessionStore, RocksDBTimeOrderedSessionStore.
    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> with RocksDBSessionStore(name="clicks", directory=folder.name) as store:
        ...     store.put("ada", 5, 9, 2)
        True
        >>> with RocksDBSessionStore(name="clicks", directory=folder.name) as store:
        ...     [session[:3] for session in store.find_sessions("ada", 0, 10)]
        [(5, 9, 2)]
        >>> folder.cleanup()
    """

    layout = SESSIONS

    def __init__(
        self,
        *,
        name: str,
        directory: str | os.PathLike[str],
        retention: Duration | None = None,
        time_ordered: bool = False,
        segment_interval: Duration | None = None,
    ) -> None:
        super().__init__(
            name=name,
            directory=directory,
            retention=retention,
            time_ordered=time_ordered,
            index=time_ordered,  # Kafka's time-ordered session store always has one
            segment_interval=segment_interval,
        )

    def remove(self, key: Any, window_start_ms: int, window_end_ms: int, *, partition: int = 0) -> None:
        start_ms, end_ms = check_times(window_start_ms, window_end_ms, of=self.noun)
        raw = self._raw(key)
        if 0 <= start_ms <= end_ms:
            self._remove(Place(raw, start_ms, end_ms), partition)

    def find_sessions_by_end(
        self, earliest_session_end_ms: Moment, latest_session_end_ms: Moment, *, partition: int = 0
    ) -> Iterator[StoredSession]:
        """Sessions of all keys that end between the two times, both included, by end, start and key.

        It sees all that is on disk: retention hides nothing here before the whole segment is gone.

        Raises:
            NotBuilt: the store is not time-ordered.
            InvalidArgument: the times go backwards over segments.
        Source:
            KIP-825; SessionStore.findSessions(earliestSessionEndTime, latestSessionEndTime).
        """
        first_ms, last_ms = check_times(earliest_session_end_ms, latest_session_end_ms, of=self.noun)
        self._state(partition)
        if not self.time_ordered:
            want = "open it with time_ordered=True for emit-on-close; Kafka's ordinary store has no such call either"
            raise NotBuilt(problem(f"store {self.name!r} is not in order of time", "find_sessions_by_end", want))
        if self.segments.id_of(first_ms) > self.segments.id_of(last_ms):
            got = f"{first_ms} to {last_ms}"
            raise InvalidArgument(problem("a range of times must not go backwards", got, "swap them"))
        return self._listed(Question(int(partition), max(first_ms, 0), last_ms, by_time=True))

    def fetch_session(
        self, key: Any, earliest_session_end_ms: Moment, latest_session_start_ms: Moment, *, partition: int = 0
    ) -> Any:
        start_ms, end_ms = check_times(earliest_session_end_ms, latest_session_start_ms, of=self.noun)
        fields = self._get(Place(self._raw(key), start_ms, end_ms), partition)
        return None if fields is None else fields[-1]

    def _find(
        self, keys: Keys, earliest_end_ms: Moment, latest_start_ms: Moment, partition: int, *, backward: bool = False
    ) -> Iterator[StoredSession]:
        """Sessions by segment, then key, end and start."""
        low, high = self._key_range(*keys)
        earliest_end_ms, latest_start_ms = check_times(earliest_end_ms, latest_start_ms, of=self.noun)
        question = self._question(partition, earliest_end_ms, backward=backward)
        return self._listed(question._replace(low=low, high=high, latest_start_ms=latest_start_ms))
