"""The in-memory session store of KIP-445: a nested map from end time to key to start time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from sortedcontainers import SortedDict

from sessionkit.contracts import SessionColumns, StoredSession, store_kind
from sessionkit.durations import INT64_MAX, Duration
from sessionkit.errors import InvalidArgument, problem
from sessionkit.stores.in_memory import InMemoryStore, kind_of
from sessionkit.stores.rows import as_columns, as_sessions, check_times
from sessionkit.text import shorten

SHOWN_SESSIONS = 20


@store_kind("memory")
class MemorySessionStore(InMemoryStore):
    """Sessions in memory, with the calls of Kafka's SessionStore.

    Without `retention` nothing expires by itself (a plan under `rules="sessionkit"` removes what it no longer needs).
    With it the store behaves as Kafka's InMemorySessionStore: a session whose end lies `retention` or more behind the
    latest end put is refused, or gone.

    Args:
        retention: how long a session is kept, in stream time.
        name: shown in errors and in the notebook.
    Source:
        KIP-445; InMemorySessionStore.
    Example:
        >>> store = MemorySessionStore()
        >>> store.put("ada", 5, 9, 2)
        True
        >>> [session[:3] for session in store.find_sessions("ada", 0, 10)]
        [(5, 9, 2)]
    """

    noun, columns = "session", ("key", "window_start_ms", "window_end_ms", "aggregate")

    def __init__(self, *, retention: Duration | None = None, name: str = "sessions") -> None:
        super().__init__(retention=retention, name=name)

    # ---- Kafka's calls

    def put(
        self,
        key: Any,
        window_start_ms: int,
        window_end_ms: int,
        aggregate: Any,
        *,
        partition: int = 0,
        opened_by: int = -1,
        closed_by: int = -1,
        keep_null: bool = False,
    ) -> bool:
        """Writes a session; False if it is expired and was refused. A null aggregate deletes, unless `keep_null`."""
        check_times(window_start_ms, window_end_ms, of="session")
        raw = self._raw(key)
        if window_start_ms > window_end_ms or window_start_ms < 0:
            got = f"[{window_start_ms}, {window_end_ms}]"
            raise InvalidArgument(problem("a session starts at 0 or later and does not end before", got, "swap them"))
        mine = self._live(partition)
        mine.observed_time_ms = max(mine.observed_time_ms, window_end_ms)
        if window_end_ms <= self._expiry_ms(mine):
            return False
        if aggregate is None and not keep_null:
            self.remove(key, window_start_ms, window_end_ms, partition=partition)
            return True
        session = StoredSession(window_start_ms, window_end_ms, aggregate, key, opened_by, closed_by)
        by_key = mine.by_time.setdefault(window_end_ms, SortedDict())
        by_key.setdefault(raw, SortedDict())[window_start_ms] = session
        self._key_kind = kind_of(key)
        return True

    def remove(self, key: Any, window_start_ms: int, window_end_ms: int, *, partition: int = 0) -> None:
        """Removes exactly this session, if it is there."""
        mine, raw = self._of(partition), self._raw(key)
        by_key = mine.by_time.get(window_end_ms, {})
        by_start = by_key.get(raw, {})
        if by_start.pop(window_start_ms, None) is None:
            return
        if not by_start:
            del by_key[raw]
        if not by_key:
            del mine.by_time[window_end_ms]

    def find_sessions(
        self, key: Any, earliest_session_end_ms: int, latest_session_start_ms: int, *, partition: int = 0
    ) -> Iterator[StoredSession]:
        """Sessions of `key` that end at or after the one time and start at or before the other, by rising end.

        Source:
            KIP-94; SessionStore.findSessions(key, earliestSessionEndTime, latestSessionStartTime).
        """
        raw = self._raw(key)
        return self._scan(partition, (earliest_session_end_ms, INT64_MAX), (raw, raw), latest_session_start_ms)

    def find_sessions_in_keys(
        self,
        key_from: Any,
        key_to: Any,
        earliest_session_end_ms: int,
        latest_session_start_ms: int,
        *,
        partition: int = 0,
    ) -> Iterator[StoredSession]:
        """The same for all keys of a range (bounds included, None: open), by end, key bytes and falling start."""
        ends = (earliest_session_end_ms, INT64_MAX)
        return self._scan(partition, ends, self._key_range(key_from, key_to), latest_session_start_ms)

    def find_sessions_by_end(
        self, earliest_session_end_ms: int, latest_session_end_ms: int, *, partition: int = 0
    ) -> Iterator[StoredSession]:
        """Sessions of all keys that end between the two times, both included.

        Raises:
            InvalidArgument: the times go backwards.
        Source:
            KIP-825; SessionStore.findSessions(earliestSessionEndTime, latestSessionEndTime).
        """
        check_times(earliest_session_end_ms, latest_session_end_ms, of="session")
        if earliest_session_end_ms > latest_session_end_ms:
            got = f"{earliest_session_end_ms} to {latest_session_end_ms}"
            raise InvalidArgument(problem("a range of times must not go backwards", got, "swap them"))
        return self._scan(partition, (earliest_session_end_ms, latest_session_end_ms), (None, None), INT64_MAX)

    def fetch_session(
        self, key: Any, earliest_session_end_ms: int, latest_session_start_ms: int, *, partition: int = 0
    ) -> Any:
        """The aggregate of the session that starts at the first time and ends at the second; None if there is none.

        Source:
            KIP-445; SessionStore.fetchSession (its parameters are called so there, though they are start and end).
        """
        start_ms, end_ms = earliest_session_end_ms, latest_session_start_ms
        check_times(start_ms, end_ms, of="session")
        session = self._live(partition).by_time.get(end_ms, {}).get(self._raw(key), {}).get(start_ms)
        return None if session is None else session.aggregate

    def fetch(self, key: Any, key_to: Any = ..., *, partition: int = 0) -> Iterator[StoredSession]:
        """All sessions of `key`; with `key_to` those of all keys from `key` to `key_to`, both included."""
        if key_to is ...:
            return self.find_sessions(key, 0, INT64_MAX, partition=partition)
        low, high = self._key_range(key, key_to)
        if low is not None and high is not None and low > high and self._live(partition).by_time:  # Kafka: only then
            got = f"{shorten(key)!r} to {shorten(key_to)!r}"
            raise InvalidArgument(problem("a range of keys must not go backwards", got, "swap them"))
        return self._scan(partition, (0, INT64_MAX), (low, high), INT64_MAX)

    def backward_fetch(self, key: Any, key_to: Any = ..., *, partition: int = 0) -> Iterator[StoredSession]:
        """`fetch` from the end."""
        return _reversed(self.fetch(key, key_to, partition=partition))

    def backward_find_sessions(
        self, key: Any, earliest_session_end_ms: int, latest_session_start_ms: int, *, partition: int = 0
    ) -> Iterator[StoredSession]:
        """`find_sessions` from the end."""
        found = self.find_sessions(key, earliest_session_end_ms, latest_session_start_ms, partition=partition)
        return _reversed(found)

    def backward_find_sessions_in_keys(
        self,
        key_from: Any,
        key_to: Any,
        earliest_session_end_ms: int,
        latest_session_start_ms: int,
        *,
        partition: int = 0,
    ) -> Iterator[StoredSession]:
        """`find_sessions_in_keys` from the end."""
        times = (earliest_session_end_ms, latest_session_start_ms)
        return _reversed(self.find_sessions_in_keys(key_from, key_to, *times, partition=partition))

    def all(self, *, partition: int = 0) -> Iterator[StoredSession]:
        """Every session, by end, key bytes and falling start."""
        return self.fetch(None, None, partition=partition)

    # ---- inside

    def _all(self, partition: int) -> Iterator[StoredSession]:
        return self.all(partition=partition)

    def _time_of(self, each: StoredSession) -> int:
        return each.window_end_ms

    def _as_columns(self, found: list[Any], key_type: pa.DataType, names: tuple[str, ...]) -> SessionColumns:
        return as_columns(found, key_type, names)

    def _replace(self, removes: SessionColumns | None, puts: SessionColumns) -> None:
        if removes is not None:
            keys, rows = removes.key.to_pylist(), zip(*(column.tolist() for column in removes[1:4]), strict=True)
            for key, (partition, start, end) in zip(keys, rows, strict=True):
                self.remove(key, start, end, partition=partition)
        for partition, session in as_sessions(puts):
            start, end, aggregate, key, opened_by, closed_by = session
            ids = {"opened_by": opened_by, "closed_by": closed_by}
            self.put(key, start, end, aggregate, partition=partition, keep_null=True, **ids)

    def _each(self, held: Any) -> Iterator[tuple[int, Any]]:
        return as_sessions(held)

    @staticmethod
    def sort_key(raw: bytes, start_ms: int, end_ms: int) -> tuple[int, bytes, int]:
        """The order in which ranges over keys come."""
        return end_ms, raw, -start_ms

    def _scan(
        self, partition: int, ends: tuple[int, int], keys: tuple[bytes | None, bytes | None], latest_start_ms: int
    ) -> Iterator[StoredSession]:
        """By end, key bytes, falling start. The answer is fixed when the call is made."""
        check_times(*ends, latest_start_ms, of="session")
        by_time = self._live(partition).by_time
        found = [
            session
            for end in by_time.irange(*ends)
            for raw in by_time[end].irange(*keys)
            for session in reversed(by_time[end][raw].values())
            if session.window_start_ms <= latest_start_ms
        ]
        return iter(found)


def _reversed(found: Iterator[StoredSession]) -> Iterator[StoredSession]:
    return iter(list(found)[::-1])
