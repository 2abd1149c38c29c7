"""What the record cache asks of the store that it stands before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from sessionkit.base.moments import Moment
from sessionkit.stores.base.calls import Keys
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
    """A session store behind a cache; the finds are those of `SessionCalls`."""

    def fetch_session(
        self, key: Any, earliest_session_end_ms: Moment, latest_session_start_ms: Moment, *, partition: int = 0
    ) -> Any:
        """The aggregate of the session that starts at the first time and ends at the second; None if there is none."""

    def _find(
        self, keys: Keys, earliest_end_ms: Moment, latest_start_ms: Moment, partition: int, *, backward: bool = False
    ) -> Iterator[StoredSession]:
        """Sessions of these keys that end at or after the one time and start at or before the other."""


class CachedWindows(WindowStore, CachedStore, Protocol):
    """A window store behind a cache; the finds are those of `WindowCalls`."""

    @property
    def time_ordered(self) -> bool:
        """KIP-825's form on disk: ranges come by start and key."""

    @property
    def has_index(self) -> bool:
        """Whether a time-ordered store has an index: then its ranges of keys come by segment, key and start again."""

    def _find(
        self, keys: Keys, time_from_ms: Moment, time_to_ms: Moment, partition: int, *, backward: bool = False
    ) -> Iterator[StoredWindow]:
        """Windows of these keys that start between the two times, both included."""

    def _find_all(
        self, time_from_ms: Moment, time_to_ms: Moment, partition: int, *, backward: bool = False
    ) -> Iterator[StoredWindow]:
        """Windows of all keys that start between the two times, both included."""

    def fetch_step_by_step(
        self, key_from: Any, key_to: Any, time_from_ms: int, time_to_ms: int, *, partition: int = 0, backward: bool
    ) -> Iterator[StoredWindow]:
        """Windows of a range of keys: it sees what a limited cache evicts where it has not come to yet."""
