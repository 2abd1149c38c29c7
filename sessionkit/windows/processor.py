"""What the processors of all kinds of windows have in common: their functions, their clock, what they tell."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Generic, NamedTuple, TypeVar

from sessionkit.records.keys import key_bytes
from sessionkit.stores.contract import StoredWindow

S = TypeVar("S")  # the kind of store


class EmitSchedule:
    """Kafka's emit throttle and the close time up to which final results have gone out.

    Source:
        AbstractKStreamTimeWindowAggregateProcessor.maybeForwardFinalResult; TimeTracker.
    """

    def __init__(self, last_close_time_ms: int, interval_ms: int = 0, clock_ms: Callable[[], int] = int) -> None:
        """Without a throttle the clock never moves: int() is 0."""
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


class Aggregates(NamedTuple):
    """The three functions over all named aggregations at once; an aggregate is a value, or a dict by name."""

    initializer: Callable[[], Any]
    aggregator: Callable[[Any, Any, Any], Any]
    merger: Callable[[Any, Any, Any], Any]
    is_null: Callable[[Any], bool]


class WindowTouch(NamedTuple):
    """One window that a record met: what became of it (`Effect` of the trace), its bounds and its new contents."""

    effect: int
    start_ms: int
    end_ms: int
    aggregate: Any = None
    timestamp_ms: int = -1  # the largest record timestamp in the window
    source_start_ms: int = -1  # start of the window that it is a copy of
    old: Any = None  # its contents before the record
    replaced: Any = None  # what Kafka says that it held: of a new one what it began with
    stored: bool = True  # False: the store refused it as expired


class Processor(Generic[S]):
    """The processor of one partition, line by line as Kafka has it, over a store.

    In a deployment the store expires windows and a null aggregate deletes one; else null is a value, and what can be
    found does not depend on the store.
    """

    def __init__(
        self,
        aggregates: Aggregates,
        store: S,
        partition: int,
        *,
        kafka: bool,
        retention_ms: int,
        stream_time_ms: int,
        schedule: EmitSchedule,
    ) -> None:
        self._aggregates, self._store, self._partition = aggregates, store, partition
        self._kafka, self._retention_ms, self._schedule = kafka, retention_ms, schedule
        self.stream_time_ms = stream_time_ms

    @abstractmethod
    def process(self, key: Any, value: Any, timestamp_ms: int, offset: int) -> Any:
        """Takes one record in, and gives what it did in the form that the recorder takes."""

    def tick(self, timestamp_ms: int) -> None:
        """Moves stream time without a record, which sessionkit's rule for idle partitions alone does."""
        self.stream_time_ms = max(self.stream_time_ms, timestamp_ms)

    @abstractmethod
    def closed(self) -> list[Any]:
        """Windows that became final with the last record or tick, as stored, in the order in which they go out."""
