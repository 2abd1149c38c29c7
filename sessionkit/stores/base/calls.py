"""Kafka's calls on a store of sessions and on one of windows, out of the few that each store answers itself."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeAlias

from sessionkit.base.calls import called_as
from sessionkit.base.durations import INT64_MAX
from sessionkit.base.moments import Moment
from sessionkit.stores.contract import StoredSession, StoredWindow

Keys: TypeAlias = tuple[Any] | tuple[Any, Any]  # one key; or the first and the last, both included, None: open
FETCH = 'store.fetch("ada"), or store.find_sessions("ada", "2026-03-02", "2026-03-03") for a span of time'


class SessionCalls:
    """The calls of Kafka's SessionStore, out of `write`, `remove`, `fetch_session`, and two ways to find sessions.

    Times are milliseconds since the epoch, or moments as `run.explain` takes them (in UTC where they name no zone).
    """

    holds: ClassVar[str] = "sessions"
    noun: ClassVar[str] = "session"
    kept_by: ClassVar[str] = "ends"
    columns: ClassVar[tuple[str, ...]] = ("key", "window_start_ms", "window_end_ms", "aggregate")
    write: Callable[..., bool]  # that of the store

    @abstractmethod
    def remove(self, key: Any, window_start_ms: int, window_end_ms: int, *, partition: int = 0) -> None:
        """Removes exactly this session, if it is there."""

    @abstractmethod
    def fetch_session(
        self, key: Any, earliest_session_end_ms: Moment, latest_session_start_ms: Moment, *, partition: int = 0
    ) -> Any:
        """The aggregate of the session that starts at the first time and ends at the second; None if there is none.

        Source:
            KIP-445; SessionStore.fetchSession (its parameters are called so there, though they are start and end).
        """

    @abstractmethod
    def find_sessions_by_end(
        self, earliest_session_end_ms: Moment, latest_session_end_ms: Moment, *, partition: int = 0
    ) -> Iterator[StoredSession]:
        """Sessions of all keys that end between the two times, both included, by rising end."""

    @abstractmethod
    def _find(
        self, keys: Keys, earliest_end_ms: Moment, latest_start_ms: Moment, partition: int, *, backward: bool = False
    ) -> Iterator[StoredSession]:
        """Sessions of these keys that end at or after the one time and start at or before the other."""

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
        session = StoredSession(window_start_ms, window_end_ms, aggregate, key, opened_by, closed_by)
        return self.write(session, partition=partition, keep_null=keep_null)

    def find_sessions(
        self, key: Any, earliest_session_end_ms: Moment, latest_session_start_ms: Moment, *, partition: int = 0
    ) -> Iterator[StoredSession]:
        """Sessions of `key` that end at or after the one time and start at or before the other, by rising end.

        Source:
            KIP-94; SessionStore.findSessions(key, earliestSessionEndTime, latestSessionStartTime).
        """
        return self._find((key,), earliest_session_end_ms, latest_session_start_ms, partition)

    def backward_find_sessions(
        self, key: Any, earliest_session_end_ms: Moment, latest_session_start_ms: Moment, *, partition: int = 0
    ) -> Iterator[StoredSession]:
        """`find_sessions` from the end."""
        return self._find((key,), earliest_session_end_ms, latest_session_start_ms, partition, backward=True)

    def find_sessions_in_keys(
        self,
        key_from: Any,
        key_to: Any,
        earliest_session_end_ms: Moment,
        latest_session_start_ms: Moment,
        *,
        partition: int = 0,
    ) -> Iterator[StoredSession]:
        """`find_sessions` for all keys of a range (bounds included, None: open), in the store's own order."""
        return self._find((key_from, key_to), earliest_session_end_ms, latest_session_start_ms, partition)

    def backward_find_sessions_in_keys(
        self,
        key_from: Any,
        key_to: Any,
        earliest_session_end_ms: Moment,
        latest_session_start_ms: Moment,
        *,
        partition: int = 0,
    ) -> Iterator[StoredSession]:
        """`find_sessions_in_keys` from the end."""
        keys = (key_from, key_to)
        return self._find(keys, earliest_session_end_ms, latest_session_start_ms, partition, backward=True)

    @called_as(FETCH)
    def fetch(self, key: Any, key_to: Any = ..., *, partition: int = 0) -> Iterator[StoredSession]:
        """All sessions of `key`; with `key_to` those of all keys from `key` to `key_to`, both included."""
        return self._fetch(key, key_to, partition)

    def backward_fetch(self, key: Any, key_to: Any = ..., *, partition: int = 0) -> Iterator[StoredSession]:
        """`fetch` from the end."""
        return self._fetch(key, key_to, partition, backward=True)

    def _fetch(self, key: Any, key_to: Any, partition: int, *, backward: bool = False) -> Iterator[StoredSession]:
        return self._find((key,) if key_to is ... else (key, key_to), 0, INT64_MAX, partition, backward=backward)

    def all(self, *, partition: int = 0) -> Iterator[StoredSession]:
        """Every session, in the store's own order."""
        return self._find((None, None), 0, INT64_MAX, partition)


class WindowCalls:
    """The calls of Kafka's WindowStore, out of `write`, `fetch_window`, and three ways to find windows.

    Times are milliseconds since the epoch, or moments as `run.explain` takes them (in UTC where they name no zone).
    """

    holds: ClassVar[str] = "windows"
    noun: ClassVar[str] = "window"
    kept_by: ClassVar[str] = "starts"
    columns: ClassVar[tuple[str, ...]] = ("key", "window_start_ms", "aggregate", "timestamp_ms")
    write: Callable[..., bool]  # that of the store

    @abstractmethod
    def fetch_window(self, key: Any, window_start_ms: Moment, *, partition: int = 0) -> StoredWindow | None:
        """The window of `key` that starts then; None if there is none.

        Source:
            WindowStore.fetch(key, time).
        """

    @abstractmethod
    def _find(
        self, keys: Keys, time_from_ms: Moment, time_to_ms: Moment, partition: int, *, backward: bool = False
    ) -> Iterator[StoredWindow]:
        """Windows of these keys that start between the two times, both included."""

    def _find_all(
        self, time_from_ms: Moment, time_to_ms: Moment, partition: int, *, backward: bool = False
    ) -> Iterator[StoredWindow]:
        """Windows of all keys that start between the two times, both included."""
        return self._find((None, None), time_from_ms, time_to_ms, partition, backward=backward)

    def put(
        self,
        key: Any,
        window_start_ms: int,
        aggregate: Any,
        timestamp_ms: int,
        *,
        partition: int = 0,
        opened_by: int = -1,
        closed_by: int = -1,
        keep_null: bool = False,
    ) -> bool:
        """Writes a window; False if it is expired and was refused. A null aggregate deletes, unless `keep_null`."""
        window = StoredWindow(window_start_ms, aggregate, timestamp_ms, key, opened_by, closed_by)
        return self.write(window, partition=partition, keep_null=keep_null)

    def fetch(
        self, key: Any, time_from_ms: Moment, time_to_ms: Moment, *, partition: int = 0
    ) -> Iterator[StoredWindow]:
        """Windows of `key` that start between the two times, both included, in order of start.

        Source:
            WindowStore.fetch(key, timeFrom, timeTo).
        """
        return self._find((key,), time_from_ms, time_to_ms, partition)

    def backward_fetch(
        self, key: Any, time_from_ms: Moment, time_to_ms: Moment, *, partition: int = 0
    ) -> Iterator[StoredWindow]:
        """`fetch` from the end."""
        return self._find((key,), time_from_ms, time_to_ms, partition, backward=True)

    def fetch_to_update(
        self, key: Any, time_from_ms: int, time_to_ms: int, *, partition: int = 0, backward: bool = False
    ) -> Iterator[StoredWindow]:
        """`fetch` or `backward_fetch` for the processor, which writes windows between the steps of its read."""
        return self._find((key,), time_from_ms, time_to_ms, partition, backward=backward)

    def fetch_in_keys(
        self, key_from: Any, key_to: Any, time_from_ms: Moment, time_to_ms: Moment, *, partition: int = 0
    ) -> Iterator[StoredWindow]:
        """`fetch` for all keys of a range (bounds included, None: open), in the store's own order."""
        return self._find((key_from, key_to), time_from_ms, time_to_ms, partition)

    def backward_fetch_in_keys(
        self, key_from: Any, key_to: Any, time_from_ms: Moment, time_to_ms: Moment, *, partition: int = 0
    ) -> Iterator[StoredWindow]:
        """`fetch_in_keys` from the end."""
        return self._find((key_from, key_to), time_from_ms, time_to_ms, partition, backward=True)

    def fetch_all(self, time_from_ms: Moment, time_to_ms: Moment, *, partition: int = 0) -> Iterator[StoredWindow]:
        """Windows of all keys that start between the two times, both included, in the store's own order."""
        return self._find_all(time_from_ms, time_to_ms, partition)

    def backward_fetch_all(
        self, time_from_ms: Moment, time_to_ms: Moment, *, partition: int = 0
    ) -> Iterator[StoredWindow]:
        """`fetch_all` from the end."""
        return self._find_all(time_from_ms, time_to_ms, partition, backward=True)

    def all(self, *, partition: int = 0) -> Iterator[StoredWindow]:
        """Every window, in the order of `fetch_all`."""
        return self._find_all(0, INT64_MAX, partition)

    def backward_all(self, *, partition: int = 0) -> Iterator[StoredWindow]:
        """`all` from the end."""
        return self._find_all(0, INT64_MAX, partition, backward=True)
