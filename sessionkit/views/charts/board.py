"""What the lanes show: which keys, in which order, and over which span of event time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sessionkit.decisions import LATE, MERGED
from sessionkit.errors import InvalidArgument, problem
from sessionkit.session_trace import SessionTrace
from sessionkit.views.charts.history import Rows, key_code

Mask = npt.NDArray[np.bool_]

SORTS = ("drops", "merges", "activity", "key")
SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
_ROOMY = 8  # sessions a lane that can be told apart, with their numbers
# spans that a part is chosen from: a day is a better part than 25 hours
_SPANS = tuple(
    count * unit
    for unit, counts in (
        (1, (1, 10, 100)),
        (SECOND, (1, 5, 15)),
        (MINUTE, (1, 5, 15)),
        (HOUR, (1, 3, 6, 12)),
        (DAY, (1, 2, 7, 14, 28, 91, 364)),
    )
    for count in counts
)


class Lane(NamedTuple):
    """One key in one partition, as codes."""

    key: int
    partition: int


@dataclass(frozen=True)
class Board:
    """The lanes, top first, and the span of event time that is shown."""

    trace: SessionTrace
    lanes: tuple[Lane, ...]
    first_ms: int
    last_ms: int
    more_before: bool = False  # there is more before the span
    more_after: bool = False
    was_chosen: bool = False  # by us, as the most eventful

    @property
    def is_part(self) -> bool:
        """True if there is more to see than this span."""
        return self.more_before or self.more_after

    @cached_property
    def _lane_of(self) -> Rows:
        place = np.full(len(self.trace.keys) * len(self.trace.batch.partitions) + 1, -1, np.int64)
        for number, lane in enumerate(self.lanes):
            place[lane.key * len(self.trace.batch.partitions) + lane.partition] = number
        return place

    def heights(self, key: npt.NDArray[np.int32], partition: npt.NDArray[np.int32]) -> Rows:
        """The lane's height on the chart for each pair of codes: the first lane is on top; -1 where there is none."""
        pair = key.astype(np.int64) * len(self.trace.batch.partitions) + partition
        number = self._lane_of[np.where(key < 0, -1, pair)]
        return np.where(number < 0, -1, len(self.lanes) - 1 - number)

    @cached_property
    def records(self) -> Rows:
        """The records of the lanes that fall into the span and that the windows were asked about."""
        batch, trace = self.trace.batch, self.trace
        times = batch.timestamp_ms
        in_span = (times >= self.first_ms) & (times <= self.last_ms) & (trace.decision <= LATE)
        rows = np.flatnonzero(in_span)
        found: Rows = rows[self.heights(batch.key[rows], batch.partition[rows]) >= 0]
        return found

    @cached_property
    def all_windows(self) -> Rows:
        """The sessions of the lanes, without those that were absorbed and those that were closed before the run."""
        columns = self.trace.window_columns
        rows = np.flatnonzero((columns.merged_into < 0) & (columns.closed_before < 0))
        found: Rows = rows[self.heights(columns.key[rows], columns.partition[rows]) >= 0]
        return found

    @cached_property
    def windows(self) -> Rows:
        """The sessions of the lanes that reach into the span."""
        columns, rows = self.trace.window_columns, self.all_windows
        found: Rows = rows[(columns.end_ms[rows] >= self.first_ms) & (columns.start_ms[rows] <= self.last_ms)]
        return found

    def of(self, mask: Mask) -> Rows:
        """Those of the records for which `mask` (over all records) holds."""
        found: Rows = self.records[mask[self.records]]
        return found

    @cached_property
    def former(self) -> tuple[Rows, Rows, Rows]:
        """(window, start, end) of the sessions that those in view were merged from, before their first merge."""
        trace, columns = self.trace, self.trace.window_columns
        root = trace.ended_in
        taking, first = np.unique(trace.merges.into, return_index=True)
        parts = np.union1d(trace.merges.absorbed, taking)
        parts = parts[np.isin(root[parts], self.windows)]
        start, end = columns.start_ms[parts].copy(), columns.end_ms[parts].copy()
        at = dict(zip(taking.tolist(), trace.merges.at[first].tolist(), strict=True))
        for number, window in enumerate(parts.tolist()):
            if window in at:
                start[number], end[number] = self._bounds_before(window, at[window])
        return parts.astype(np.int64), start, end

    def _bounds_before(self, window: int, at: int) -> tuple[int, int]:
        order, sorted_windows = self._by_window
        low, high = np.searchsorted(sorted_windows, [window, window + 1])
        before = order[low:high][order[low:high] < at]
        if not len(before):
            return int(self.trace.loaded_start_ms[window]), int(self.trace.loaded_end_ms[window])
        return int(self.trace.bounds_after[0][before[-1]]), int(self.trace.bounds_after[1][before[-1]])

    @cached_property
    def _by_window(self) -> tuple[Rows, npt.NDArray[np.int32]]:
        rows = np.flatnonzero(np.isin(self.trace.window, self.trace.merges.into))
        order = rows[np.argsort(self.trace.window[rows], kind="stable")]
        return order, self.trace.window[order]


def choose(
    trace: SessionTrace,
    keys: Iterable[object] | None,
    most: int,
    sort: str | None,
    first_ms: int | None,
    last_ms: int | None,
) -> Board:
    """The lanes to show and the span: what was asked for, or the part with most to see.

    Raises:
        InvalidArgument: an unknown sort, less than one lane, a span that ends before it starts.
        UnknownRecord: the run holds no such key.
    """
    order = "drops" if sort is None else sort
    if order not in SORTS:
        raise InvalidArgument(problem("sort must be a known order", repr(sort), f"one of {list(SORTS)}"))
    if most < 1:
        raise InvalidArgument(problem("most is a number of lanes", most, "1 or more"))
    if first_ms is not None and last_ms is not None and last_ms < first_ms:
        raise InvalidArgument(problem("the span ends before it starts", f"{first_ms} to {last_ms}", "swap them"))
    asked = None if keys is None else list(dict.fromkeys(key_code(trace, key) for key in keys))
    lanes = _all_lanes(trace, asked)
    everything = Board(trace, lanes, *_extent(trace, lanes))
    given = first_ms is not None or last_ms is not None
    low = everything.first_ms if first_ms is None else max(first_ms, min(everything.first_ms, everything.last_ms))
    high = everything.last_ms if last_ms is None else min(last_ms, max(everything.last_ms, low))
    high = max(low, high)
    if not given:
        low, high = _most_eventful(everything)
    board = Board(trace, lanes, low, high, low > everything.first_ms, high < everything.last_ms)
    if keys is None or sort is not None:
        lanes = tuple(lanes[number] for number in _ranked(board, order))
    return replace(board, lanes=lanes[:most], was_chosen=board.is_part and not given)


def _all_lanes(trace: SessionTrace, asked: list[int] | None) -> tuple[Lane, ...]:
    """A lane for each key in each partition where it has records or windows, in the order asked for."""
    columns, batch, size = trace.window_columns, trace.batch, max(len(trace.batch.partitions), 1)
    used = batch.key >= 0
    records = batch.key[used].astype(np.int64) * size + batch.partition[used]
    windows = columns.key.astype(np.int64) * size + columns.partition
    pairs = np.union1d(records, windows[columns.closed_before < 0])
    if asked is None:
        return tuple(Lane(*divmod(pair, size)) for pair in pairs.tolist())
    by_key: dict[int, list[Lane]] = {key: [] for key in asked}
    for pair in pairs[np.isin(pairs // size, asked)].tolist():
        by_key[pair // size].append(Lane(*divmod(pair, size)))
    return tuple(lane for mine in by_key.values() for lane in mine)


def _extent(trace: SessionTrace, lanes: tuple[Lane, ...]) -> tuple[int, int]:
    """From the first to the last event time of the lanes' sessions and records."""
    board = Board(trace, lanes, 0, int(np.iinfo(np.int64).max))
    columns, times = trace.window_columns, trace.batch.timestamp_ms[board.records]
    lows = np.concatenate([times, columns.start_ms[board.all_windows]])
    highs = np.concatenate([times, columns.end_ms[board.all_windows]])
    return (int(lows.min()), int(highs.max())) if len(lows) else (0, 0)


def _most_eventful(board: Board) -> tuple[int, int]:
    """The whole extent where it can be read, else the day (or hour, …) with most drops, merges and rescues."""
    first, last = board.first_ms, board.last_ms
    readable, session_count = _ROOMY * len(board.lanes), len(board.all_windows)
    if session_count <= readable:
        return first, last
    wanted = (last - first) * readable // session_count
    span = max((each for each in _SPANS if each <= wanted), default=max(wanted, 1))
    trace, times = board.trace, board.trace.batch.timestamp_ms
    base = first // span
    score = np.zeros(last // span - base + 1)
    for mask, worth in ((trace.decision == LATE, 2.0), (trace.decision == MERGED, 6.0), (trace.late_but_kept, 1.0)):
        place, count = np.unique(times[board.of(mask)] // span - base, return_counts=True)
        score[place] += worth * np.sqrt(count)  # some of each is better than many of one
    if not score.any():
        np.add.at(score, times[board.records] // span - base, 1.0)
    low = (base + int(np.argmax(score))) * span
    return _trimmed(board, low, low + span - 1)


def _trimmed(board: Board, low: int, high: int) -> tuple[int, int]:
    """The span without the empty time at its ends."""
    part = Board(board.trace, board.lanes, low, high)
    columns, times = board.trace.window_columns, board.trace.batch.timestamp_ms[part.records]
    starts = np.concatenate([times, columns.start_ms[part.windows]])
    ends = np.concatenate([times, columns.end_ms[part.windows]])
    return (max(low, int(starts.min())), min(high, int(ends.max()))) if len(starts) else (low, high)


def _ranked(board: Board, sort: str) -> list[int]:
    """Numbers of the lanes in the order asked for; what they have equally often is ordered by records, then by key."""
    trace, batch = board.trace, board.trace.batch
    names = trace.keys.to_pylist()

    def count(mask: Mask) -> list[int]:
        rows = board.of(mask)
        height = board.heights(batch.key[rows], batch.partition[rows])
        per_lane: list[int] = np.bincount(len(board.lanes) - 1 - height, minlength=len(board.lanes)).tolist()
        return per_lane

    decision = trace.decision
    drops, merges, records = (count(mask) for mask in (decision == LATE, decision == MERGED, decision <= LATE))
    columns = {"drops": (drops, merges, records), "merges": (merges, drops, records), "activity": (records,), "key": ()}

    def rank(number: int) -> tuple[object, ...]:
        lane = board.lanes[number]
        return (*(-counts[number] for counts in columns[sort]), names[lane.key], lane.partition)

    return sorted(range(len(board.lanes)), key=rank)
