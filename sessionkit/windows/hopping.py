"""Tumbling and hopping windows: their parameters and the record-at-a-time processor."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from sessionkit.base.arrays import Longs, distinct
from sessionkit.base.calls import AnswersNames, answers_names, called_as
from sessionkit.base.decisions import ADDED, LATE, OPENED
from sessionkit.base.durations import (
    MAX_DURATION_MS,
    Duration,
    duration_code,
    duration_ms,
    length_ms,
    retention_ms,
    show_duration,
)
from sessionkit.base.process import check_room
from sessionkit.errors import InvalidArgument, problem
from sessionkit.stores.contract import Store, StoredWindow, WindowStore
from sessionkit.trace.window_trace import Touches
from sessionkit.windows.contract import OfOneLength, Times, window_kind
from sessionkit.windows.feed import Decided, Feed
from sessionkit.windows.hopping_by_slot import goes_by_slot, run_by_slot
from sessionkit.windows.hopping_kernel import Lengths, missed_touches, run_by_record, time_touches, window_is_late
from sessionkit.windows.processor import Aggregates, Processor, WindowTouch, by_start


class OfATime(OfOneLength):
    """What windows that only time places have in common: their start is in them and their end is not."""

    takes_null_values = True
    inclusive_end = False
    trailing_only = False

    @property
    @abstractmethod
    def _lengths(self) -> Lengths:
        """What the kernel asks of them."""

    @staticmethod
    def is_late(end_ms: int, close_time_ms: int) -> bool:
        """THE late rule, as the kernel asks it."""
        return bool(window_is_late(end_ms, close_time_ms))

    def oldest_kept_end_ms(self, stream_time_ms: Times, retention_ms: int) -> Times:
        """Windows that end before this are met by no later record, whatever the retention."""
        return stream_time_ms - self.grace_ms + 1

    def touches(self, feed: Feed) -> Touches:
        """Every window that a record met, oldest first."""
        return time_touches(self._lengths, feed)

    def missed(self, feed: Feed) -> Touches:
        """Every window that was closed when its record came."""
        return missed_touches(self._lengths, feed)


@window_kind
@answers_names("sk.TimeWindows")
@dataclass(frozen=True, init=False)
class TimeWindows(OfATime, metaclass=AnswersNames):
    """Windows of one length that start at the multiples of `advance`; the start is in the window, the end is not.

    Without `advance` they are tumbling: each record is in exactly one. With a smaller one they are hopping and overlap.
    A window closes once stream time reaches its end plus `grace`. The multiples are counted from 1970-01-01 in UTC;
    `offset` moves all windows, which Kafka cannot: it is the word of Flink, Beam and pandas.

    Args:
        size: length of a window, more than 0.
        advance: from one start to the next, more than 0 and at most `size`; `size` if it is left out.
        grace: how long after its end a window still takes late records; 0 is allowed, leaving it out is not (KIP-633).
        offset: how long after the multiples of the advance windows start, less than the advance. With
            `size="1d", offset="6h"` days begin at 6:00 UTC. A window that would begin before 0 begins at 0.
        size_ms, advance_ms, grace_ms, offset_ms: the same as numbers, in whole milliseconds.
    Raises:
        InvalidArgument: a duration is out of its bounds, or both together pass 2**62 ms; or a length is missing or
            given twice.
        NotBuilt: by what is Kafka's, such as a deployment, an audit or `plan.to_java()`: windows with an offset.
    Source:
        KIP-633; TimeWindows.ofSizeAndGrace, advanceBy.
    Example:
        >>> TimeWindows(size="5m", advance="1m", grace="30s").windows_for(120_000)
        [(0, 300000), (60000, 360000), (120000, 420000)]
        >>> TimeWindows(size="1h", offset="15m", grace="0s").windows_for(3_600_000)
        [(900000, 4500000)]
    """

    size_ms: int
    advance_ms: int
    grace_ms: int
    offset_ms: int = 0

    reach_name = "size"
    caches_on_close = True  # Kafka leaves the record cache on here, and turns it off for the other kinds

    @called_as('sk.TimeWindows(size="1h", grace="5m")')
    def __init__(
        self,
        *,
        size: Duration | None = None,
        grace: Duration | None = None,
        advance: Duration | None = None,
        offset: Duration | None = None,
        size_ms: int | None = None,
        grace_ms: int | None = None,
        advance_ms: int | None = None,
        offset_ms: int | None = None,
    ) -> None:
        object.__setattr__(self, "size_ms", length_ms(size, size_ms, "size"))
        tumbles = advance is None and advance_ms is None
        object.__setattr__(self, "advance_ms", self.size_ms if tumbles else length_ms(advance, advance_ms, "advance"))
        object.__setattr__(self, "grace_ms", length_ms(grace, grace_ms, "grace"))
        if isinstance(offset, str) and offset.strip().startswith("-"):  # as Flink writes a day of China
            before_ms = duration_ms(offset.strip()[1:], "offset")
            want = f'offset="{duration_code(-before_ms % self.advance_ms)}", which are the same windows'
            raise InvalidArgument(problem("offset must not be negative", repr(offset), want))
        stays = offset is None and offset_ms is None
        object.__setattr__(self, "offset_ms", 0 if stays else length_ms(offset, offset_ms, "offset"))
        if self.size_ms == 0:
            raise InvalidArgument(problem("size must be more than 0 ms", "0 ms", 'size="5m"'))
        if not 0 < self.advance_ms <= self.size_ms:
            want = f"more than 0 and at most the size, {show_duration(self.size_ms)}"
            raise InvalidArgument(problem("advance must fit into size", show_duration(self.advance_ms), want))
        if self.offset_ms >= self.advance_ms:
            want = f"less than the advance, {show_duration(self.advance_ms)}"
            raise InvalidArgument(problem("offset must fit into advance", show_duration(self.offset_ms), want))
        if self.size_ms + self.grace_ms > MAX_DURATION_MS:
            got = f"{self.size_ms + self.grace_ms} ms"
            raise InvalidArgument(problem("size and grace together must be at most 2**62 ms", got, "shorten one"))

    @property
    def reach_ms(self) -> int:
        return self.size_ms

    @property
    def not_in_kafka(self) -> tuple[str, str] | None:
        """Why Kafka has no such windows if they have an offset; else None."""
        want = "windows without one, which begin at the multiples of the advance"
        return ("Kafka has no windows with an offset", want) if self.offset_ms else None

    def retention_ms(self, retention: Duration | None) -> int:
        """How long a window can be found, from its start: `retention`, or the smallest allowed, size + grace.

        Raises:
            InvalidArgument: shorter than size + grace, which Kafka refuses too.
        """
        return retention_ms(retention, self.size_ms + self.grace_ms, "size + grace")

    def windows_for(self, timestamp_ms: int) -> list[tuple[int, int]]:
        """(start, end) of each window that a record of this time is in, oldest first; none starts before 0.

        Source:
            TimeWindows.windowsFor.
        """
        by, moved_ms = self._moved_by_ms, timestamp_ms + self._moved_by_ms
        first = max(0, moved_ms - self.size_ms + self.advance_ms) // self.advance_ms * self.advance_ms
        starts = range(first, moved_ms + 1, self.advance_ms)
        return [(max(0, start - by), start - by + self.size_ms) for start in starts]

    def ends_ms(self, starts_ms: Times) -> Times:
        """The ends of windows that start at these times; one that begins at 0 may be cut."""
        by = self._moved_by_ms
        return super().ends_ms((starts_ms + by) // self.advance_ms * self.advance_ms - by if by else starts_ms)

    def last_instants_ms(self, timestamps_ms: Longs) -> Longs:
        """The last instants of all windows that records of these times can be in, each once, rising; perhaps more."""
        by, most = self._moved_by_ms, -(-self.size_ms // self.advance_ms)
        newest = distinct((timestamps_ms + by) // self.advance_ms)
        fresh = np.minimum(np.diff(newest, prepend=newest[:1] - most), most)  # windows that the time before is not in
        check_room(fresh.sum(dtype=np.float64), 24, "windows")
        number = np.arange(fresh.sum()) + np.repeat(newest + 1 - np.cumsum(fresh), fresh)
        return number[number >= 0] * self.advance_ms + self.size_ms - 1 - by

    def processor(self, aggregates: Aggregates, store: Store, partition: int, **options: Any) -> TimeProcessor:
        """The record-at-a-time processor of one partition."""
        make = EndsProcessor if self.offset_ms else TimeProcessor
        return make(self, aggregates, cast(WindowStore, store), partition, **options)

    def run(self, feed: Feed, folds: Mapping[str, Any], retention_ms: int) -> Decided:
        """The compiled pass over columns."""
        if not goes_by_slot(feed, folds, self._lengths):
            return run_by_record(self._lengths, feed, folds)
        decided, spans = run_by_slot(feed, self._lengths)
        for fold in folds.values():
            fold.grow(len(decided.slot))
            fold.feed_spans(spans)
        return decided

    @property
    def _moved_by_ms(self) -> int:
        """How far times are moved so that the first window begins at 0 and the others at multiples of the advance."""
        return -self.offset_ms % self.advance_ms

    @property
    def _lengths(self) -> Lengths:
        grid = _Moved(self._moved_by_ms) if self.offset_ms else None
        return Lengths(self.size_ms, self.advance_ms, self.grace_ms, grid)

    def arguments(self) -> tuple[Callable[..., Any], dict[str, Any]]:
        """(callable, keyword arguments) that make these windows again; tumbling ones stay so with another size."""
        advance = {} if self.advance_ms == self.size_ms else {"advance_ms": self.advance_ms}
        offset = {"offset_ms": self.offset_ms} if self.offset_ms else {}
        return TimeWindows, {"size_ms": self.size_ms, **advance, **offset, "grace_ms": self.grace_ms}

    def in_words(self) -> str:
        """The parameters as a person says them."""
        advance = "" if self.advance_ms == self.size_ms else f"advance {show_duration(self.advance_ms)}, "
        offset = f"offset {show_duration(self.offset_ms)}, " if self.offset_ms else ""
        return f"size {show_duration(self.size_ms)}, {advance}{offset}grace {show_duration(self.grace_ms)}"

    def __repr__(self) -> str:
        advance = "" if self.advance_ms == self.size_ms else f'advance="{duration_code(self.advance_ms)}", '
        offset = f'offset="{duration_code(self.offset_ms)}", ' if self.offset_ms else ""
        grace = f'grace="{duration_code(self.grace_ms)}"'
        return f'TimeWindows(size="{duration_code(self.size_ms)}", {advance}{offset}{grace})'


class _Moved(NamedTuple):
    """The grid of windows with an offset: all times are moved by as much."""

    by_ms: int

    def moved(self, times_ms: Longs, /) -> Longs:
        """These times on the even grid."""
        return times_ms + self.by_ms

    def back(self, moved_ms: Longs, /) -> Longs:
        """Times on the even grid as they were; the first window is cut at 0."""
        return np.maximum(moved_ms - self.by_ms, 0)


class TimeProcessor(Processor[WindowStore]):
    """Kafka's processor of tumbling and hopping windows for one partition, line by line, over a store.

    Source:
        KStreamWindowAggregate.
    """

    def __init__(
        self, windows: Any, aggregates: Aggregates, store: WindowStore, partition: int, **options: Any
    ) -> None:
        super().__init__(aggregates, store, partition, **options)
        self._windows = windows

    def process(self, key: Any, value: Any, timestamp_ms: int, offset: int) -> list[WindowTouch]:
        """Takes one record in; one touch for each of its windows, oldest first. All of them late: it is dropped."""
        self.stream_time_ms = max(self.stream_time_ms, timestamp_ms)
        close_time_ms = self.stream_time_ms - self._windows.grace_ms
        touches = []
        for start_ms, end_ms in self._windows.windows_for(timestamp_ms):
            if self._windows.is_late(end_ms, close_time_ms):
                touches.append(WindowTouch(LATE, start_ms, end_ms))
                continue
            old = self._store.fetch_window(key, start_ms, partition=self._partition)
            base = self._aggregates.initializer() if old is None else old.aggregate
            aggregate = self._aggregates.aggregator(key, value, base)
            newest_ms = timestamp_ms if old is None else max(timestamp_ms, old.timestamp_ms)
            null = self._aggregates.is_null(aggregate)
            kept, opened_by = None if null and self._kafka else aggregate, offset if old is None else old.opened_by
            kept_ms = timestamp_ms if null and self._kafka else newest_ms
            rows = 1 if old is None else old.rows + (old.rows >= 0)
            window = StoredWindow(start_ms, kept, kept_ms, key, opened_by, rows=rows)
            stored = self._store.write(window, partition=self._partition, keep_null=not self._kafka)
            effect, shown = OPENED if old is None else ADDED, None if null else aggregate
            before = None if old is None else old.aggregate
            touches.append(WindowTouch(effect, start_ms, end_ms, shown, newest_ms, -1, before, base, stored))
        return touches

    def closed(self) -> list[StoredWindow]:
        size, close_time_ms = self._windows.size_ms, self.stream_time_ms - self._windows.grace_ms
        if not self._schedule.is_due(close_time_ms):
            return []
        last, highest = self._schedule.last_close_time_ms, close_time_ms - size
        lowest = 0 if last == -1 else max(0, last - size) + 1
        if highest < 0:
            return []
        if last != -1 and self._windows.windows_for(highest) == self._windows.windows_for(lowest - 1):
            return []
        self._schedule.last_close_time_ms = close_time_ms
        found = self._store.fetch_all(lowest, highest, partition=self._partition)
        return list(found) if self._kafka else by_start(found)


class EndsProcessor(TimeProcessor):
    """The processor of windows that Kafka has not: which ones are final is told by their ends."""

    def closed(self) -> list[StoredWindow]:
        """The windows that became final with the last record, by start."""
        close_ms, before_ms = self.stream_time_ms - self._windows.grace_ms, self._schedule.last_close_time_ms
        if not self._schedule.is_due(close_ms) or close_ms < 0:
            return []
        self._schedule.last_close_time_ms = close_ms
        lowest_ms = max(0, before_ms - self._windows.reach_ms)
        found = self._store.fetch_all(lowest_ms, close_ms, partition=self._partition)
        return by_start(each for each in found if before_ms <= self._windows.last_instant_ms(each) < close_ms)
