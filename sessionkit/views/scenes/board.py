"""What the lanes show: which keys, in which order, and over which span of event time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, NamedTuple

import numpy as np

from sessionkit.base.arrays import Flags, Longs
from sessionkit.base.decisions import LATE, MERGED
from sessionkit.base.durations import DAY, HOUR, INT64_MAX, MINUTE, SECOND
from sessionkit.base.moments import clock_changes
from sessionkit.base.text import one_of, plural
from sessionkit.errors import InvalidArgument, problem
from sessionkit.records.keys import code_of_key
from sessionkit.trace.trace import Trace
from sessionkit.views.loops import rows_in_view
from sessionkit.views.scenes.key_rows import ENOUGH_KEPT, T_co

SORTS = ("drops", "merges", "activity", "key")
_SOME_DROP_WORTH = 6.0  # of a span that shows a drop at all
_ROOMY = 8  # windows a lane that can be told apart, with their numbers
_LENGTHS = 24  # windows that cannot grow, side by side: hours of a day
# spans that a part is chosen from: a day is a better part than 25 hours
_SPANS = (
    *(1, 10, 100),
    *(count * unit for unit in (SECOND, MINUTE) for count in (1, 5, 15)),
    *(count * HOUR for count in (1, 3, 6, 12)),
    *(count * DAY for count in (1, 2, 7, 14, 28, 91, 364)),
)


class Lane(NamedTuple):
    """One key in one partition, as codes."""

    key: int
    partition: int


@dataclass(frozen=True)
class Board(Generic[T_co]):
    """The lanes, top first, and the span of event time that is shown."""

    trace: T_co
    lanes: tuple[Lane, ...]
    first_ms: int
    last_ms: int
    more_before: bool = False  # there is more before the span
    more_after: bool = False
    was_chosen: bool = False  # by us, as the most eventful
    trailing_only: bool = False  # only windows that end with a record are results
    sort: str | None = None  # the order of the lanes; None: as they were asked for

    @property
    def is_part(self) -> bool:
        """True if there is more to see than this span."""
        return self.more_before or self.more_after

    @cached_property
    def _lane_of(self) -> Longs:
        """The lane of each slot, and of -1; -1 where it has none."""
        slots, size = self.trace.slots, len(self.trace.batch.partitions)
        lane = np.array([each.key * size + each.partition for each in self.lanes], np.int64)
        order = np.argsort(lane)
        pair = slots.key.astype(np.int64) * size + slots.partition
        at = np.searchsorted(lane[order], pair)
        number = np.append(order, -1)[at]
        return np.append(np.where(np.append(lane, -1)[number] == pair, number, -1), -1)

    def heights(self, windows: Longs) -> list[int]:
        """The height of each window's lane on the chart: the first lane is on top; -1 where there is none."""
        number = self._lane_of[self.trace.window_slot[windows]]
        return np.where(number < 0, -1, len(self.lanes) - 1 - number).tolist()

    def numbers(self, records: Longs) -> Longs:
        """The place of each record's lane among the lanes; -1 where it has none."""
        return self._lane_of[self.trace.slot[records]]

    @cached_property
    def records(self) -> Longs:
        """The records of the lanes that fall into the span and that the windows were asked about."""
        return self.of(self.trace.decision <= LATE)

    @cached_property
    def all_windows(self) -> Longs:
        """The windows of the lanes, without those that were absorbed, or closed before the run, or are no results."""
        return self._windows_within(0, INT64_MAX)

    @cached_property
    def windows(self) -> Longs:
        """The windows of the lanes that reach into the span."""
        return self._windows_within(self.first_ms, self.last_ms)

    def _windows_within(self, first_ms: int, last_ms: int) -> Longs:
        trace, columns = self.trace, self.trace.window_columns
        mask = trace.is_standing
        if self.trailing_only:
            mask = mask & columns.are_results(self.trailing_only)
        return rows_in_view(mask, columns.start_ms, columns.end_ms, trace.window_slot, self._lane_of, first_ms, last_ms)

    @cached_property
    def most_eventful(self) -> tuple[int, int]:
        """The usual extent where it can be read, else the day (or hour, …) with most drops, merges and rescues."""
        (first, last), (low, high) = self.extent, self.trace.usual_ms
        first, last = max(first, min(low, last)), min(last, max(high, first))
        board, trace = replace(self, first_ms=first, last_ms=last), self.trace
        readable, window_count = _ROOMY * len(self.lanes), len(self.all_windows)
        if window_count <= readable:
            return first, last
        # those that lie over one another need no time of their own
        wanted = max((last - first) * readable // window_count, _LENGTHS * trace.longest_made_ms)
        if wanted >= last - first:
            return first, last
        span = max((each for each in _SPANS if each <= wanted), default=max(wanted, 1))
        clock = clock_changes(trace.batch.timezone, last)
        cells = clock.local(trace.batch.timestamp_ms) // span  # a day is one of the zone
        seen = np.append(cells[board.records], clock.local(first) // span)
        base = int(seen.min())
        score = np.zeros(int(seen.max()) - base + 1)
        kinds = ((trace.late_for_some, 2.0), (trace.decision == MERGED, 6.0), (trace.late_but_kept, 1.0))
        for mask, worth in (*kinds, (trace.accepted, 0.1)):
            place, count = np.unique(cells[board.of(mask)] - base, return_counts=True)
            score[place] += worth * np.sqrt(count)  # some of each is better than many of one
        score[np.unique(cells[board.of(trace.late_for_some)] - base)] += _SOME_DROP_WORTH
        kept = np.bincount(cells[board.of(trace.accepted)] - base, minlength=len(score))
        score[kept < min(ENOUGH_KEPT, kept.max() / 2)] = -np.inf  # drops beside no session tell little
        low = (base + int(np.argmax(score))) * span
        return _trimmed(board, int(clock.first_at(low)), int(clock.last_at(low + span - 1)))

    @cached_property
    def whole(self) -> Board[T_co]:
        """The board of these lanes over all times."""
        return replace(self, first_ms=0, last_ms=INT64_MAX)

    @property
    def far_off(self) -> str:
        """How many records lie outside the usual span, if no more than that is shown; else no words."""
        (first, last), times = self.trace.usual_ms, self.trace.batch.timestamp_ms
        count = int(np.count_nonzero((self.trace.decision <= LATE) & ((times < first) | (times > last))))
        if not count or self.first_ms < first or self.last_ms > last:
            return ""
        return f"{plural(count, 'record lies', 'records lie')} outside this span, far off the others"

    @cached_property
    def extent(self) -> tuple[int, int]:
        """From the first to the last event time of the lanes' windows and records; (0, 0) if there are none."""
        columns, whole = self.trace.window_columns, self.whole
        times = self.trace.batch.timestamp_ms[whole.records]
        lows = np.concatenate([times, columns.start_ms[whole.all_windows]])
        highs = np.concatenate([times, columns.end_ms[whole.all_windows]])
        return (int(lows.min()), int(highs.max())) if len(lows) else (0, 0)

    def of(self, mask: Flags) -> Longs:
        """The records on the board for which `mask`, which has a place for each record of the run, holds."""
        times = self.trace.batch.timestamp_ms
        return rows_in_view(mask, times, times, self.trace.slot, self._lane_of, self.first_ms, self.last_ms)


def everything(trace: Trace, trailing_only: bool = False) -> Board:
    """All lanes over all times: what a run keeps for all its pictures."""
    return Board(trace, _all_lanes(trace, None), 0, INT64_MAX, trailing_only=trailing_only)


def choose(
    whole: Board, keys: Iterable[object] | None, most: int, sort: str | None, first_ms: int | None, last_ms: int | None
) -> Board:
    """The lanes to show and the span: what was asked for, or the part with the most to see."""
    order = one_of("sort", "drops" if sort is None else sort, tuple(SORTS))
    if most < 1:
        raise InvalidArgument(problem("most is a number of lanes", most, "1 or more"))
    if first_ms is not None and last_ms is not None and last_ms < first_ms:
        raise InvalidArgument(problem("the span ends before it starts", f"{first_ms} to {last_ms}", "swap them"))
    board = whole
    if keys is not None:
        asked = list(dict.fromkeys(code_of_key(whole.trace.keys, key) for key in keys))
        board = replace(whole, lanes=_all_lanes(whole.trace, asked))
    lanes, (first, last) = board.lanes, board.extent
    given = first_ms is not None or last_ms is not None
    low = first if first_ms is None else max(first_ms, first)
    high = max(low, last if last_ms is None else min(last_ms, max(last, low)))
    if not given:
        low, high = board.most_eventful
    before, after = low > first, high < last
    board = replace(board, first_ms=low, last_ms=high, more_before=before, more_after=after)
    is_sorted = keys is None or sort is not None
    if is_sorted:
        lanes = tuple(lanes[number] for number in _ranked(board, order))
    chosen = board.is_part and not given
    return replace(board, lanes=lanes[:most], was_chosen=chosen, sort=order if is_sorted else None)


def _all_lanes(trace: Trace, asked: list[int] | None) -> tuple[Lane, ...]:
    """A lane for each key in each partition where it has records or windows, in the order asked for."""
    slots = trace.slots
    seen = np.zeros(slots.count + 1, np.bool_)
    seen[trace.slot] = seen[trace.window_slot[trace.window_columns.closed_before < 0]] = True
    order = np.lexsort((slots.partition, slots.key))
    pairs = order[seen[order]]  # the last one in `seen` is of records without a key
    if asked is not None:
        place = np.full(len(trace.keys), -1)
        place[asked] = np.arange(len(asked))
        rank = place[slots.key[pairs]]
        pairs = pairs[np.argsort(rank, kind="stable")][(rank < 0).sum() :]
    return tuple(Lane(*pair) for pair in zip(slots.key[pairs].tolist(), slots.partition[pairs].tolist(), strict=True))


def _trimmed(board: Board, low: int, high: int) -> tuple[int, int]:
    """The span without the empty time at its ends."""
    part = replace(board, first_ms=low, last_ms=high)
    columns, times = board.trace.window_columns, board.trace.batch.timestamp_ms[part.records]
    starts = np.concatenate([times, columns.start_ms[part.windows]])
    ends = np.concatenate([times, columns.end_ms[part.windows]])
    return (max(low, int(starts.min())), min(high, int(ends.max()))) if len(starts) else (low, high)


def _ranked(board: Board, sort: str) -> list[int]:
    """Numbers of the lanes in the order asked for; what they have equally often is ordered by records, then by key."""
    trace = board.trace
    names = trace.keys.to_pylist()

    def count(mask: Flags) -> list[int]:
        return np.bincount(board.numbers(board.of(mask)), minlength=len(board.lanes)).tolist()

    decision = trace.decision
    drops, merges, records = (count(mask) for mask in (trace.late_for_some, decision == MERGED, decision <= LATE))
    columns = {"drops": (drops, merges, records), "merges": (merges, drops, records), "activity": (records,), "key": ()}

    def rank(number: int) -> tuple[object, ...]:
        lane = board.lanes[number]
        return (*(-counts[number] for counts in columns[sort]), names[lane.key], lane.partition)

    return sorted(range(len(board.lanes)), key=rank)
