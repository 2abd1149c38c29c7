"""What the record cache asks of the store that it stands before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from sessionkit.base.moments import Moment
from sessionkit.stores.contract import SessionStore, Store, StoredSession, StoredWindow, WindowStore


class CachedStore(Store, Protocol):
    """A store behind a cache, whatever it holds."""

    @property
    def is_persistent(self) -> bool:
        """Kafka's word for one on disk: its ranges come by segment, key and time; others by time and key."""

    @property
    def segment_interval_ms(self) -> int:
        """How long its segments are, of which the cache goes through one after the other; 1 in memory, as in Kafka."""

    def _check_open(self) -> None:
        """Raises StoreClosed once the store is closed, as each of its own calls does."""


class CachedSessions(SessionStore, CachedStore, Protocol):
    """A session store behind a cache."""

    def fetch_session(
        self, key: Any, earliest_session_end_ms: Moment, latest_session_start_ms: Moment, *, partition: int = 0
    ) -> Any:
        """The aggregate of the session that starts at the first time and ends at the second; None if there is none."""

    def backward_find_sessions(
        self, key: Any, earliest_session_end_ms: Moment, latest_session_start_ms: Moment, *, partition: int = 0
    ) -> Iterator[StoredSession]:
        """`find_sessions` from the end."""

    def find_sessions_in_keys(
        self,
        key_from: Any,
        key_to: Any,
        earliest_session_end_ms: Moment,
        latest_session_start_ms: Moment,
        *,
        partition: int = 0,
    ) -> Iterator[StoredSession]:
        """Sessions of all keys of a range (bounds included, None: open) that could merge, in the store's own order."""

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


class CachedWindows(WindowStore, CachedStore, Protocol):
    """A window store behind a cache."""

    @property
    def time_ordered(self) -> bool:
        """KIP-825's form on disk: ranges come by start and key."""

    @property
    def has_index(self) -> bool:
        """Whether a time-ordered store has an index: then its ranges of keys come by segment, key and start again."""

    def fetch(
        self, key: Any, time_from_ms: Moment, time_to_ms: Moment, *, partition: int = 0
    ) -> Iterator[StoredWindow]:
        """Windows of `key` that start between the two times, both included, in order of start."""

    def backward_fetch(
        self, key: Any, time_from_ms: Moment, time_to_ms: Moment, *, partition: int = 0
    ) -> Iterator[StoredWindow]:
        """`fetch` from the end."""

    def fetch_in_keys(
        self, key_from: Any, key_to: Any, time_from_ms: Moment, time_to_ms: Moment, *, partition: int = 0
    ) -> Iterator[StoredWindow]:
        """Windows of all keys of a range (bounds included, None: open), in the store's own order."""

    def backward_fetch_in_keys(
        self, key_from: Any, key_to: Any, time_from_ms: Moment, time_to_ms: Moment, *, partition: int = 0
    ) -> Iterator[StoredWindow]:
        """`fetch_in_keys` from the end."""

    def backward_fetch_all(
        self, time_from_ms: Moment, time_to_ms: Moment, *, partition: int = 0
    ) -> Iterator[StoredWindow]:
        """`fetch_all` from the end."""

    def fetch_step_by_step(
        self, key_from: Any, key_to: Any, time_from_ms: int, time_to_ms: int, *, partition: int = 0, backward: bool
    ) -> Iterator[StoredWindow]:
        """`fetch_in_keys` or its backward form: it sees what a limited cache evicts where it has not come to yet."""
