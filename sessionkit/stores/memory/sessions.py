"""The in-memory session store of KIP-445: a nested map from end time to key to start time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sortedcontainers import SortedDict

from sessionkit.base.durations import INT64_MAX
from sessionkit.base.moments import Moment
from sessionkit.errors import InvalidArgument, problem, shorten
from sessionkit.stores.base.calls import Keys, SessionCalls
from sessionkit.stores.contract import StoredSession, store_kind
from sessionkit.stores.memory.base import InMemoryStore
from sessionkit.stores.rows import check_times


@store_kind("memory")
class MemorySessionStore(SessionCalls, InMemoryStore):
    """Sessions in memory, with the calls of Kafka's SessionStore.

    Without `retention` nothing expires by itself (a plan without a deployment removes what it no longer needs).
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
        >>> store.fetch_session("ada", 5, 9), len(list(store.fetch("ada"))), len(list(store.all()))
        (2, 1, 1)
        >>> len(list(store.find_sessions_by_end(0, 9))), len(list(store.find_sessions_in_keys("a", "b", 0, 10)))
        (1, 1)
        >>> len(list(store.backward_find_sessions("ada", 0, 10))), len(list(store.backward_fetch("ada")))
        (1, 1)
        >>> len(list(store.backward_find_sessions_in_keys("a", "b", 0, 10))), len(store.to_pandas())
        (1, 1)
        >>> store.snapshot(0).stream_time_ms, store.read_only(), len(list(store.rows()))
        (-1, read-only MemorySessionStore('sessions'): 1 session, kept as long as a plan says, 1)
        >>> store.read_partitions
        [0]
        >>> store.remove("ada", 5, 9)
        >>> store.restart_task()  # as if the application were started again
        >>> store.close()
    """

    def write(self, session: StoredSession, /, *, partition: int = 0, keep_null: bool = False) -> bool:
        aggregate, key = session[2:4]
        start_ms, end_ms = check_times(*session[:2], of="session")
        raw = self._raw(key)
        if start_ms > end_ms or start_ms < 0:
            got = f"[{start_ms}, {end_ms}]"
            raise InvalidArgument(problem("a session starts at 0 or later and does not end before", got, "swap them"))
        state = self._live(partition)
        state.observed_time_ms = max(state.observed_time_ms, end_ms)
        if end_ms <= self._expiry_ms(state):
            return False
        if aggregate is None and not keep_null:
            self.remove(key, start_ms, end_ms, partition=partition)
            return True
        by_key = state.by_time.setdefault(end_ms, SortedDict())
        is_plain = session.window_start_ms is start_ms and session.window_end_ms is end_ms
        plain = session if is_plain else session._replace(window_start_ms=start_ms, window_end_ms=end_ms)
        by_key.setdefault(raw, SortedDict())[start_ms] = plain
        self._note_kind(key)
        return True

    def remove(self, key: Any, window_start_ms: int, window_end_ms: int, *, partition: int = 0) -> None:
        state, raw = self._of(partition), self._raw(key)
        by_key = state.by_time.get(window_end_ms, {})
        by_start = by_key.get(raw, {})
        if by_start.pop(window_start_ms, None) is None:
            return
        if not by_start:
            del by_key[raw]
        if not by_key:
            del state.by_time[window_end_ms]

    def find_sessions_by_end(
        self, earliest_session_end_ms: Moment, latest_session_end_ms: Moment, *, partition: int = 0
    ) -> Iterator[StoredSession]:
        """Sessions of all keys that end between the two times, both included.

        Raises:
            InvalidArgument: the times go backwards.
        Source:
            KIP-825; SessionStore.findSessions(earliestSessionEndTime, latestSessionEndTime).
        """
        first_ms, last_ms = check_times(earliest_session_end_ms, latest_session_end_ms, of="session")
        if first_ms > last_ms:
            got = f"{first_ms} to {last_ms}"
            raise InvalidArgument(problem("a range of times must not go backwards", got, "swap them"))
        return self._find((None, None), first_ms, INT64_MAX, partition, latest_end_ms=last_ms)

    def fetch_session(
        self, key: Any, earliest_session_end_ms: Moment, latest_session_start_ms: Moment, *, partition: int = 0
    ) -> Any:
        start_ms, end_ms = check_times(earliest_session_end_ms, latest_session_start_ms, of="session")
        session = self._live(partition).by_time.get(end_ms, {}).get(self._raw(key), {}).get(start_ms)
        return None if session is None else session.aggregate

    def _fetch(self, key: Any, key_to: Any, partition: int, *, backward: bool = False) -> Iterator[StoredSession]:
        low, high = (None, None) if key_to is ... else self._key_range(key, key_to)
        if low is not None and high is not None and low > high and self._live(partition).by_time:  # Kafka: only then
            got = f"{shorten(key)!r} to {shorten(key_to)!r}"
            raise InvalidArgument(problem("a range of keys must not go backwards", got, "swap them"))
        return super()._fetch(key, key_to, partition, backward=backward)

    def _find(
        self,
        keys: Keys,
        earliest_end_ms: Moment,
        latest_start_ms: Moment,
        partition: int,
        *,
        backward: bool = False,
        latest_end_ms: int = INT64_MAX,
    ) -> Iterator[StoredSession]:
        """Sessions by end, key bytes and falling start. The answer is fixed when the call is made."""
        low, high = self._key_range(*keys)
        first_ms, last_ms, start_ms = check_times(earliest_end_ms, latest_end_ms, latest_start_ms, of="session")
        by_time = self._live(partition).by_time
        found = [
            session
            for end in by_time.irange(first_ms, last_ms)
            for raw in by_time[end].irange(low, high)
            for session in reversed(by_time[end][raw].values())
            if session.window_start_ms <= start_ms
        ]
        return self._while_open(found[::-1] if backward else found)
