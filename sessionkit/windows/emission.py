"""When Kafka looks for final results: at most once an interval of wall clock, and only if the close time has moved."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sessionkit.contracts import StoredWindow
from sessionkit.keys import key_bytes


def still_clock() -> int:
    """A clock that never moves, for runs without a throttle."""
    return 0


class EmitSchedule:
    """Kafka's emit throttle and the close time up to which final results have gone out.

    Source:
        AbstractKStreamTimeWindowAggregateProcessor.maybeForwardFinalResult; TimeTracker.
    """

    def __init__(
        self, last_close_time_ms: int, interval_ms: int = 0, clock_ms: Callable[[], int] = still_clock
    ) -> None:
        self.last_close_time_ms = last_close_time_ms
        self._interval_ms, self._clock_ms, self._next_ms = interval_ms, clock_ms, 0

    def is_due(self, close_time_ms: int) -> bool:
        """True if final results are to be looked for; starts the next interval."""
        now = self._clock_ms()
        if now < self._next_ms:
            return False
        self._next_ms = now + self._interval_ms
        return self.last_close_time_ms == -1 or close_time_ms > self.last_close_time_ms


def by_start(windows: Iterable[StoredWindow]) -> list[StoredWindow]:
    """Final results in the order in which they go out: by start and key bytes, whatever the order of the store."""
    return sorted(windows, key=lambda window: (window.window_start_ms, key_bytes(window.key)))
