"""Sliding windows: their parameters and the record-at-a-time processor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from sessionkit.base.arrays import Longs, distinct
from sessionkit.base.calls import AnswersNames, answers_names, called_as
from sessionkit.base.compiled import announce_compiling
from sessionkit.base.decisions import ADDED, COPIED, COPIED_ADDED, LATE, OPENED
from sessionkit.base.durations import MAX_DURATION_MS, Duration, duration_code, length_ms, retention_ms, show_duration
from sessionkit.errors import InvalidArgument, problem
from sessionkit.stores.contract import Store, StoredWindow, WindowStore
from sessionkit.trace.window_trace import Touches
from sessionkit.windows.contract import OfOneLength, Times, window_kind
from sessionkit.windows.feed import NOTHING_HIDDEN, Decided, Feed
from sessionkit.windows.processor import Aggregates, Processor, WindowTouch, by_start
from sessionkit.windows.sliding.shown import as_shown, put_by_records_ms
from sessionkit.windows.sliding.steps import run_slots, sliding_is_late
from sessionkit.windows.sliding.structure import SlidingStructure, sliding_structure
from sessionkit.windows.sliding.touches import sliding_touches


@window_kind
@answers_names("sk.SlidingWindows")
@dataclass(frozen=True, init=False)
class SlidingWindows(OfOneLength, metaclass=AnswersNames):
    """Windows of one length, cut where the records are: two for each distinct time, both ends included.

    A record at time t makes the window that ends with it, `[t - time_difference, t]`, and the one that starts just
    after it, as soon as a record falls there. A window closes once stream time has passed its end by more than `grace`.
    A record is in no window if no column that the aggregations read has a value in it, as Kafka drops null values.

    Args:
        time_difference: two records this far apart are together in some window; more than 0.
        grace: how long after its end a window still takes late records; 0 is allowed, leaving it out is not (KIP-633).
        trailing_only: KIP-450's first form: only the windows that end with a record, and only final results.
        time_difference_ms, grace_ms: the lengths as numbers, in whole milliseconds.
    Raises:
        InvalidArgument: a duration is out of its bounds, or the largest of them exceeds 2**62 ms; or a length is
            missing or given twice.
    Source:
        KIP-450; SlidingWindows.ofTimeDifferenceAndGrace.
    Example:
        >>> SlidingWindows(time_difference="10s", grace="1s").windows_for(25_000)
        [(15000, 25000), (25001, 35001)]
    """

    time_difference_ms: int
    grace_ms: int
    trailing_only: bool

    advance_ms = None
    reach_name = "time_difference"
    takes_null_values = False
    inclusive_end = True
    caches_on_close = False

    @called_as('sk.SlidingWindows(time_difference="10m", grace="5m")')
    def __init__(
        self,
        *,
        time_difference: Duration | None = None,
        grace: Duration | None = None,
        trailing_only: bool = False,
        time_difference_ms: int | None = None,
        grace_ms: int | None = None,
    ) -> None:
        difference_ms = length_ms(time_difference, time_difference_ms, "time_difference")
        object.__setattr__(self, "time_difference_ms", difference_ms)
        object.__setattr__(self, "grace_ms", length_ms(grace, grace_ms, "grace"))
        object.__setattr__(self, "trailing_only", bool(trailing_only))
        if self.time_difference_ms == 0:
            want = 'time_difference="10s"; Kafka takes 0 and then fails at the first record'
            raise InvalidArgument(problem("time_difference must be more than 0 ms", "0 ms", want))
        if 2 * self.time_difference_ms + self.grace_ms > MAX_DURATION_MS:
            got = f"{2 * self.time_difference_ms + self.grace_ms} ms"
            want = "shorten one"
            raise InvalidArgument(problem("twice time_difference and grace must be at most 2**62 ms", got, want))

    @property
    def not_in_kafka(self) -> tuple[str, str] | None:
        """Why Kafka has no such windows if they are trailing only, as KIP-450 first had them; else None."""
        if not self.trailing_only:
            return None
        return "Kafka has no trailing-only windows", "no deployment; Kafka released the other form of KIP-450"

    @property
    def reach_ms(self) -> int:
        return self.time_difference_ms + 1

    @staticmethod
    def is_late(end_ms: int, close_time_ms: int) -> bool:
        """THE late rule, as the kernel asks it."""
        return bool(sliding_is_late(end_ms, close_time_ms))

    def retention_ms(self, retention: Duration | None) -> int:
        """How long a window can be found, from its start: `retention`, or the smallest allowed, twice d plus grace.

        Raises:
            InvalidArgument: shorter than 2 * time_difference + grace, which Kafka refuses too.
        """
        smallest_ms = 2 * self.time_difference_ms + self.grace_ms
        return retention_ms(retention, smallest_ms, "2 * time_difference + grace")

    def windows_for(self, timestamp_ms: int) -> list[tuple[int, int]]:
        """(start, end) of the two windows that a record of this time makes: the one it ends, the one after it.

        Before `time_difference` the first is `[0, time_difference]`, as no window starts before 0.
        """
        d = self.time_difference_ms
        left, right = max(0, timestamp_ms - d), timestamp_ms + 1
        return [(left, left + d), (right, right + d)]

    def last_instants_ms(self, timestamps_ms: Longs) -> Longs:
        """The last instants of all windows that records of these times can make, each once, rising."""
        d = self.time_difference_ms
        return distinct(np.concatenate([np.maximum(timestamps_ms, d), timestamps_ms + 1 + d]))

    def oldest_kept_end_ms(self, stream_time_ms: Times, retention_ms: int) -> Times:
        """Windows that end before this are met by no later record, and none is copied from them."""
        return stream_time_ms - self.grace_ms - 2 * self.time_difference_ms

    def processor(self, aggregates: Aggregates, store: Store, partition: int, **options: Any) -> SlidingProcessor:
        """The record-at-a-time processor of one partition."""
        return SlidingProcessor(self, aggregates, cast(WindowStore, store), partition, **options)

    def run(self, feed: Feed, folds: Mapping[str, Any], retention_ms: int) -> Decided:
        """The compiled passes over columns."""
        announce_compiling(run_slots, "sliding windows")
        structure = self._structure(feed, retention_ms)
        for fold in folds.values():
            fold.feed_sliding(structure, lambda: sliding_touches(structure))
        return Decided(
            slot=structure.slot,
            start_ms=structure.start_ms,
            timestamp_ms=structure.timestamp_ms,
            opened_at=structure.opened_at,
            missed_count=int(structure.dropped.sum()),
        )

    def touches(self, feed: Feed) -> Touches:
        """Every window that a record met, in Kafka's order."""
        return sliding_touches(self._structure(feed))

    def _put_ms(self, feed: Feed) -> Longs:
        """The latest start that each record put, of those that can be later than all before; -1 for none."""
        return put_by_records_ms(self._structure(feed))

    def _structure(self, feed: Feed, retention_ms: int | None = None) -> SlidingStructure:
        """With the retention of a store by which it shows windows; without one as it was found before."""
        columns, loaded, expiry = feed.whole(), feed.loaded, feed.expiry

        def structure(found_from_ms: Longs) -> SlidingStructure:
            return sliding_structure(
                columns.slot, columns.timestamp_ms, columns.stream_time_ms, feed.slots.count, loaded.slot,
                loaded.start_ms, loaded.timestamp_ms, time_difference_ms=self.time_difference_ms,
                grace_ms=self.grace_ms, found_from_ms=found_from_ms,
            )  # fmt: skip

        if expiry is None or retention_ms is None:
            found = structure(NOTHING_HIDDEN if expiry is None else expiry.found_from_ms)
        else:
            found = as_shown(
                structure, columns, expiry, feed.batch.partition, retention_ms, self.time_difference_ms, self.grace_ms
            )
        feed.decide(columns, found.decision)
        return found

    def missed(self, feed: Feed) -> None:
        """None: the touches of closed windows are not known without all the others."""

    def arguments(self) -> tuple[Callable[..., Any], dict[str, Any]]:
        """(callable, keyword arguments) that make these windows again."""
        return SlidingWindows, {
            "time_difference_ms": self.time_difference_ms,
            "grace_ms": self.grace_ms,
            "trailing_only": self.trailing_only,
        }

    def in_words(self) -> str:
        """The parameters as a person says them."""
        only = ", trailing only" if self.trailing_only else ""
        difference = show_duration(self.time_difference_ms)
        return f"time difference {difference}, grace {show_duration(self.grace_ms)}{only}"

    def __repr__(self) -> str:
        d, grace = duration_code(self.time_difference_ms), duration_code(self.grace_ms)
        trailing = ", trailing_only=True" if self.trailing_only else ""
        return f'SlidingWindows(time_difference="{d}", grace="{grace}"{trailing})'


class _Record(NamedTuple):
    """The record that the processor is taking in."""

    key: Any
    value: Any
    timestamp_ms: int
    offset: int


class SlidingProcessor(Processor[WindowStore]):
    """Kafka's processor of sliding windows for one partition, line by line, over a store.

    Source:
        KStreamSlidingWindowAggregate (its reverse form).
    """

    def __init__(
        self, windows: SlidingWindows, aggregates: Aggregates, store: WindowStore, partition: int, **options: Any
    ) -> None:
        super().__init__(aggregates, store, partition, **options)
        self._windows = windows
        self._close_time_ms = self.stream_time_ms - windows.grace_ms
        self._touches: list[WindowTouch] = []
        self._may_emit = False

    def process(self, key: Any, value: Any, timestamp_ms: int, offset: int) -> list[WindowTouch]:
        """Takes one record in; one touch for each window that it changes, makes or misses, in Kafka's order."""
        d, record = self._windows.time_difference_ms, _Record(key, value, timestamp_ms, offset)
        self.stream_time_ms = max(self.stream_time_ms, timestamp_ms)
        self._close_time_ms = self.stream_time_ms - self._windows.grace_ms
        self._touches, self._may_emit = [], False
        if self._windows.is_late(timestamp_ms + d, self._close_time_ms):
            start_ms = max(0, timestamp_ms - d)
            self._touches.append(WindowTouch(LATE, start_ms, start_ms + d))
        elif timestamp_ms < d:
            self._process_early(record)
        else:
            self._process_in_order_or_not(record)
            self._may_emit = True
        return self._touches

    def _process_in_order_or_not(self, record: _Record) -> None:
        d, t = self._windows.time_difference_ms, record.timestamp_ms
        previous_ms: int | None = None
        left: StoredWindow | None = None
        right: StoredWindow | None = None
        left_exists = right_exists = False
        starts = set()
        place = {"partition": self._partition}
        for window in self._store.fetch_to_update(record.key, max(0, t - 2 * d), t + 1, **place, backward=True):
            starts.add(window.window_start_ms)
            end_ms = window.window_start_ms + d
            if window.window_start_ms == t + 1:
                right_exists = True
            elif end_ms > t:
                right = right or window
                self._update(record, window)
            elif end_ms == t:
                left_exists = True
                self._update(record, window)
                if window.timestamp_ms >= t:
                    return  # a record of this time was here before: its windows are all there
                previous_ms = window.timestamp_ms
            else:
                left, previous_ms = window, window.timestamp_ms
                break
        self._make_right_window_of(previous_ms, record, starts)
        if not left_exists:
            reached = left is not None and previous_ms is not None and previous_ms >= t - d
            self._create(record, t - d, left if reached else None)
        if not right_exists and right is not None and right.timestamp_ms > t:
            self._copy(record, right)

    def _process_early(self, record: _Record) -> None:
        """A record before `time_difference`, whose left window would start below 0: all share the window from 0."""
        t = record.timestamp_ms
        previous_ms: int | None = None
        combined: StoredWindow | None = None
        right: StoredWindow | None = None
        right_exists = False
        starts = set()
        for window in self._store.fetch_to_update(record.key, 0, t + 1, partition=self._partition):
            starts.add(window.window_start_ms)
            if window.window_start_ms == 0:
                combined = window
                if window.timestamp_ms < t:
                    previous_ms = window.timestamp_ms
            elif window.window_start_ms <= t:
                right = window
                self._update(record, window)
            else:
                right_exists = True
        if right is None and combined is not None and combined.timestamp_ms > t:
            right = combined
        if not right_exists and right is not None and right.timestamp_ms > t:
            self._copy(record, right)
        self._make_right_window_of(previous_ms, record, starts)
        if combined is None:
            self._create(record, 0, None)
        else:
            self._update(record, combined)

    def _make_right_window_of(self, previous_ms: int | None, record: _Record, starts: set[int]) -> None:
        """The window that starts just after the record before this one, if it is not there and reaches this one."""
        if previous_ms is None or previous_ms + 1 in starts:
            return
        if previous_ms + 1 + self._windows.time_difference_ms >= record.timestamp_ms:
            self._create(record, previous_ms + 1, None)

    def _update(self, record: _Record, window: StoredWindow) -> None:
        newest_ms = max(record.timestamp_ms, window.timestamp_ms)
        self._add(ADDED, record, window.window_start_ms, lambda: window.aggregate, newest_ms, window.opened_by)

    def _create(self, record: _Record, start_ms: int, source: StoredWindow | None) -> None:
        """A new window with the record in it, on top of what `source` holds."""
        base = self._aggregates.initializer if source is None else lambda: source.aggregate
        effect, source_ms = (OPENED, -1) if source is None else (COPIED_ADDED, source.window_start_ms)
        self._add(effect, record, start_ms, base, record.timestamp_ms, record.offset, source_ms)

    def _add(
        self,
        effect: int,
        record: _Record,
        start_ms: int,
        base: Callable[[], Any],
        newest_ms: int,
        opened_by: int,
        source_start_ms: int = -1,
    ) -> None:
        end_ms = start_ms + self._windows.time_difference_ms
        if self._windows.is_late(end_ms, self._close_time_ms):
            self._touches.append(WindowTouch(LATE, start_ms, end_ms))
            return
        before = base()
        aggregate = self._aggregates.aggregator(record.key, record.value, before)
        old = before if effect == ADDED else None
        touch = WindowTouch(effect, start_ms, end_ms, aggregate, newest_ms, source_start_ms, old, before)
        self._put(touch, record, opened_by)

    def _copy(self, record: _Record, right: StoredWindow) -> None:
        """The window just after the record: what was in the later one before it, without the record itself."""
        start_ms = record.timestamp_ms + 1
        end_ms = start_ms + self._windows.time_difference_ms
        touch = WindowTouch(COPIED, start_ms, end_ms, right.aggregate, right.timestamp_ms, right.window_start_ms)
        self._put(touch, record, record.offset)

    def _put(self, touch: WindowTouch, record: _Record, opened_by: int) -> None:
        null = self._aggregates.is_null(touch.aggregate)
        kept = None if null and self._kafka else touch.aggregate
        newest_ms = record.timestamp_ms if null and self._kafka else touch.timestamp_ms
        window = StoredWindow(touch.start_ms, kept, newest_ms, record.key, opened_by)
        stored = self._store.write(window, partition=self._partition, keep_null=not self._kafka)
        self._touches.append(touch._replace(aggregate=None if null else touch.aggregate, stored=stored))

    def tick(self, timestamp_ms: int) -> None:
        super().tick(timestamp_ms)
        self._close_time_ms = self.stream_time_ms - self._windows.grace_ms
        self._may_emit = True

    def closed(self) -> list[StoredWindow]:
        if not self._may_emit:
            return []
        if not self._schedule.is_due(self._close_time_ms):
            return []
        d, last = self._windows.time_difference_ms, self._schedule.last_close_time_ms
        lowest, highest = (0 if last == -1 else max(0, last - d)), self._close_time_ms - d - 1
        if highest < 0:
            return []
        self._schedule.last_close_time_ms = self._close_time_ms
        found = self._store.fetch_all(lowest, highest, partition=self._partition)
        closed = list(found) if self._kafka else by_start(found)
        if self._windows.trailing_only:
            return [window for window in closed if window.timestamp_ms == window.window_start_ms + d]
        return closed
