"""Tumbling and hopping windows over columns: one compiled pass in arrival order, a list or a hash of windows a slot.

A slot (a key in a partition) has at most `(size + grace) / advance` open windows. While that is few they are a list,
newest first, and nearly every record meets its head; where it is many they are found by a hash.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from sessionkit.base.arrays import Codes, Flags, Longs
from sessionkit.base.compiled import announce_compiling, compiled_loop, inlined
from sessionkit.base.decisions import ADDED, LATE, OPENED
from sessionkit.base.process import check_room, hand_each
from sessionkit.trace.window_trace import TOUCH, Touches
from sessionkit.windows.cells import EMPTY, empty_cells, find_cell, set_cell
from sessionkit.windows.feed import AHEAD, MANY_ROWS, Columns, Decided, Feed, Loaded

# `index` is the start as a multiple of the advance
WINDOW = np.dtype(
    [("index", "i8"), ("timestamp", "i8"), ("opened_at", "i8"), ("older", "i4"), ("slot", "i4")], align=True
)
NO_WINDOW = -1
MANY_WINDOWS = 32  # open ones a slot from which a hash is quicker than a walk
TOUCHES_AT_ONCE = 1 << 19  # the rows that a step hands on stay in the processor's cache
WINDOWS, CELLS, TOUCHES, MISSED, SEEN = range(5)  # places in `counters`


class Room(NamedTuple):
    """Room for what a step hands on: a row for each window that a record counts in."""

    record: Longs
    window: Codes
    opened: Flags


class Step(NamedTuple):
    """What was decided of the records before `end`: which record counts in which window."""

    end: int
    record: Longs
    window: Codes
    opened: Flags


@compiled_loop
def window_is_late(end_ms, close_time_ms):  # type: ignore[no-untyped-def]
    """THE late rule of tumbling and hopping windows: the end is not in the window, so it closes with it.

    Source: KStreamWindowAggregate. Processor and kernel ask here; the oldest open window that the kernel works out from
    it, and the touches of `missed`, are held against it by tests/unit/windows/test_late_rules.py.
    """
    return end_ms <= close_time_ms


@compiled_loop
def _collect(windows, row, lowest, highest, touch, touch_window):  # type: ignore[no-untyped-def]
    """Notes the windows from `lowest` to `highest` that are in the list; (the one before them, the one behind them)."""
    before = NO_WINDOW
    while row >= 0 and windows[row].index > highest:
        before = row
        row = windows[row].older
    for index in range(highest, lowest - 1, -1):
        is_open = row >= 0 and windows[row].index == index
        touch_window[touch + index - lowest] = row if is_open else NO_WINDOW
        if is_open:
            row = windows[row].older
    return before, row


@compiled_loop
def _new_window(windows, counters, slot, index, t, opened_at):  # type: ignore[no-untyped-def]
    row = counters[WINDOWS]
    counters[WINDOWS] = row + 1
    windows[row].index = index
    windows[row].timestamp = t
    windows[row].opened_at = opened_at
    windows[row].slot = slot
    return row


@inlined
def _touch_newest(windows, row, lowest, highest, i, t, at, touches):  # type: ignore[no-untyped-def]
    """Touches the windows from `lowest` to `highest` if they begin the list, as they usually do; else says False."""
    index = highest
    while index >= lowest and row >= 0 and windows[row].index == index:
        place = at + index - lowest
        touches.record[place], touches.window[place], touches.opened[place] = i, row, False
        windows[row].timestamp = max(windows[row].timestamp, t)
        row = windows[row].older
        index -= 1
    return index < lowest


@inlined
def _touch_or_open(windows, cells, hashed, head, k, lowest, highest, i, t, base, at, touches, counters):  # type: ignore[no-untyped-def]
    """Touches the windows from `lowest` to `highest`, wherever they are, and opens those that are not there."""
    before = NO_WINDOW
    rest = NO_WINDOW
    if hashed:
        for index in range(lowest, highest + 1):
            cell = find_cell(cells, k, index)
            touches.window[at + index - lowest] = cells[cell].session - 1  # an empty cell gives NO_WINDOW
    else:
        before, rest = _collect(windows, head[k], lowest, highest, at, touches.window)
    decided = ADDED
    for index in range(lowest, highest + 1):
        place = at + index - lowest
        row = touches.window[place]
        touches.record[place] = i
        touches.opened[place] = row < 0
        if row < 0:
            decided = OPENED
            row = touches.window[place] = _new_window(windows, counters, k, index, t, base + i)
            if hashed:
                counters[CELLS] += set_cell(cells, k, index, row)
        elif windows[row].timestamp < t:
            windows[row].timestamp = t
        if not hashed:  # from here on the record's windows stand in the list one behind the other
            windows[row].older = touches.window[place - 1] if index > lowest else rest
    if not hashed:
        newest = touches.window[at + highest - lowest]
        if before >= 0:
            windows[before].older = newest
        else:
            head[k] = newest
    return decided


@compiled_loop
def run_time_windows(  # type: ignore[no-untyped-def]
    begin, slot, timestamp_ms, stream_time_ms, size, advance, grace, base,
    head, windows, cells, hashed, decision, touches, counters,
):  # fmt: skip
    """Decides records from `begin` on; returns where it stopped: the end, or a record for which room is needed first.

    `opened_at` counts records from `base`.
    """
    at = 0
    # A division costs as much as the rest of a usual record: so `highest` stays while times lie in one advance.
    overlap, short = (size - advance) // advance, (size - advance) % advance
    highest = since = 0
    ready = seen = begin
    for i in range(begin, slot.shape[0]):
        if i >= ready:  # read the windows that come next: the processor waits for all of them at once
            ready = min(i + AHEAD, slot.shape[0])
            for j in range(i, ready):
                if slot[j] >= 0 and head[slot[j]] >= 0:
                    seen += windows[head[slot[j]]].index & 1
        k = slot[i]
        if k < 0:
            continue
        t = timestamp_ms[i]
        if not 0 <= t - since < advance:
            highest = t // advance
            since = highest * advance
        first = max(0, highest - overlap - (t - since < short))
        lowest, close = first, stream_time_ms[i] - grace
        if window_is_late(first * advance + size, close):
            lowest = (close - size) // advance + 1
        count = highest - lowest + 1
        if count <= 0:
            counters[MISSED] += highest - first + 1
            decision[i] = LATE
            continue
        full = counters[WINDOWS] + count > windows.shape[0] or at + count > touches.record.shape[0]
        if full or (hashed and (counters[CELLS] + count) * 2 > cells.shape[0]):
            counters[TOUCHES] = at
            return i
        counters[MISSED] += lowest - first
        if not hashed and _touch_newest(windows, head[k], lowest, highest, i, t, at, touches):
            decision[i] = ADDED
        else:
            decision[i] = _touch_or_open(
                windows, cells, hashed, head, k, lowest, highest, i, t, base, at, touches, counters
            )
        at += count
    counters[TOUCHES] = at
    counters[SEEN] = seen  # else the compiler would leave the reading out
    return slot.shape[0]


@compiled_loop
def _copy_open_cells(cells, into, windows, size, advance, close_time_ms):  # type: ignore[no-untyped-def]
    """Moves the cells of windows that are still open; returns how many."""
    count = 0
    for at in range(cells.shape[0]):
        if cells[at].session != EMPTY:
            row = cells[at].session - 1
            slot = cells[at].slot
            if not window_is_late(windows[row].index * advance + size, close_time_ms[slot]):
                count += set_cell(into, slot, cells[at].index, row)
    return count


class Grid(Protocol):
    """Moves times so that windows begin at the multiples of their advance; the order of times stays."""

    def moved(self, times_ms: Longs, /) -> Longs:
        """These times on the even grid."""

    def back(self, moved_ms: Longs, /) -> Longs:
        """Times, or starts of windows, that are on the even grid, as they were."""


class Lengths(NamedTuple):
    """The lengths of tumbling and hopping windows; those of another grid are found on an even one."""

    size_ms: int
    advance_ms: int
    grace_ms: int
    grid: Grid | None = None

    def moved(self, columns: Columns) -> Columns:
        """Records with their times on the even grid."""
        if self.grid is None:
            return columns
        close = [self.grid.moved(ms - self.grace_ms) for ms in (columns.stream_time_ms, columns.first_stream_time_ms)]
        stair, first = (ms + self.grace_ms for ms in close)
        times = self.grid.moved(columns.timestamp_ms)
        return columns._replace(timestamp_ms=times, stream_time_ms=stair, first_stream_time_ms=first)

    def loaded(self, loaded: Loaded) -> Loaded:
        """Windows of a store with their times on the even grid."""
        if self.grid is None:
            return loaded
        start, newest = self.grid.moved(loaded.start_ms), self.grid.moved(loaded.timestamp_ms)
        return loaded._replace(start_ms=start, timestamp_ms=newest)

    def back(self, moved_ms: Longs) -> Longs:
        """Times on the even grid as they were."""
        return moved_ms if self.grid is None else self.grid.back(moved_ms)

    @property
    def a_record(self) -> int:
        """How many windows a record is in, at most."""
        return -(-self.size_ms // self.advance_ms)

    @property
    def open_at_once(self) -> int:
        """How many windows a slot has open at once, about."""
        return (self.size_ms + self.grace_ms) // self.advance_ms


class TimeState:
    """The windows of one run, fed chunk by chunk."""

    def __init__(self, lengths: Lengths) -> None:
        self._lengths = lengths
        self._hashed = lengths.open_at_once > MANY_WINDOWS
        self._head = np.empty(0, np.int32)
        self._windows = np.empty(0, WINDOW)
        self._cells = empty_cells()
        self._counters = np.zeros(5, np.int64)
        self._rooms: list[Room] = []
        self.most = lengths.a_record

    @property
    def windows(self) -> npt.NDArray[np.void]:
        """The windows so far, as rows of `WINDOW`."""
        return self._windows[: int(self._counters[WINDOWS])]

    @property
    def missed_count(self) -> int:
        return int(self._counters[MISSED])

    def load(self, loaded: Loaded, slots: int, expected: int = 0) -> None:
        """Takes over the windows of a store, sorted by slot and start; about `expected` records follow."""
        loaded = self._lengths.loaded(loaded)
        slot = loaded.slot
        self.most = self.most if expected else 1
        room = max(TOUCHES_AT_ONCE, self.most)
        self._rooms = [Room(np.empty(room, np.int64), np.empty(room, np.int32), np.empty(room, np.bool_)) for _ in "ab"]
        self._head = np.full(slots, NO_WINDOW, np.int32)
        count = len(slot)
        most = expected * min(self.most, 8)
        self._grow(count + (most if most <= MANY_ROWS else most // 4))
        rows = self._windows[:count]
        rows["slot"], rows["timestamp"] = slot, loaded.timestamp_ms
        rows["index"] = loaded.start_ms // self._lengths.advance_ms
        rows["opened_at"] = -1
        first = np.append(True, slot[1:] != slot[:-1])[:count]
        rows["older"] = np.where(first, NO_WINDOW, np.arange(-1, count - 1))
        self._head[slot] = np.arange(count, dtype=np.int32)
        self._counters[WINDOWS] = count
        if self._hashed and count:
            self._grow_cells(np.full(slots, -1), count)
            for row in range(count):
                self._counters[CELLS] += set_cell(self._cells, slot[row], rows["index"][row], row)

    def feed(self, begin: int, columns: Columns) -> Step:
        """Decides records of a chunk from `begin` on, as many as there is room for, into their `decision`.

        What a step holds is overwritten by the next but one.
        """
        counters = self._counters
        if int(counters[WINDOWS]) + self.most > len(self._windows):
            self._grow(max(self.most, len(self._windows) // 2))
        if self._hashed and (int(counters[CELLS]) + self.most) * 2 > len(self._cells):
            close_time_ms = columns.first_stream_time_ms - self._lengths.grace_ms
            self._grow_cells(close_time_ms[columns.slot_partition], self.most)
        self._rooms.reverse()
        room = self._rooms[0]
        size_ms, advance_ms, grace_ms, _ = self._lengths
        end = run_time_windows(
            begin, columns.slot, columns.timestamp_ms, columns.stream_time_ms, size_ms, advance_ms, grace_ms,
            columns.lo, self._head, self._windows, self._cells, self._hashed, columns.decision, room, counters,
        )  # fmt: skip
        count = int(counters[TOUCHES])
        return Step(end, room.record[:count], room.window[:count], room.opened[:count])

    def _grow(self, more: int) -> None:
        windows = np.empty(int(self._counters[WINDOWS]) + more + self.most, WINDOW)
        windows[: len(self.windows)] = self.windows
        self._windows = windows

    def _grow_cells(self, close_time_ms: Longs, wanted: int) -> None:
        """Makes room for the cells wanted: what is closed goes, and what stays fills at most a quarter."""
        cells = empty_cells(int(self._counters[CELLS]) + wanted)
        size_ms, advance_ms, *_ = self._lengths
        self._counters[CELLS] = _copy_open_cells(self._cells, cells, self._windows, size_ms, advance_ms, close_time_ms)
        self._cells = cells


def run_by_record(lengths: Lengths, feed: Feed, folds: Mapping[str, Any]) -> Decided:
    """Decides every record and folds it into its windows."""
    state = TimeState(lengths)
    announce_compiling(run_time_windows, "tumbling and hopping windows")
    steps = _steps(lengths, state, feed)
    hand_each(feed.hand, (partial(_fold, folds, len(state.windows), step, lo) for lo, step in steps))
    windows = state.windows
    return Decided(
        slot=windows["slot"].copy(),
        start_ms=lengths.back(windows["index"] * lengths.advance_ms),
        timestamp_ms=lengths.back(windows["timestamp"].copy()),
        opened_at=windows["opened_at"].copy(),
        missed_count=state.missed_count,
    )


def _fold(folds: Mapping[str, Any], windows: int, step: Step, lo: int) -> None:
    for fold in folds.values():
        fold.grow(windows)
        fold.feed_touches(step.record, step.window, lo)


def _steps(lengths: Lengths, state: TimeState, feed: Feed) -> Iterator[tuple[int, Step]]:
    state.load(feed.loaded, feed.slots.most, expected=len(feed))
    for columns in map(lengths.moved, feed.chunks()):
        begin = 0
        while begin < len(columns.slot):
            step = state.feed(begin, columns)
            yield columns.lo, step
            begin = step.end


def time_touches(lengths: Lengths, feed: Feed) -> Touches:
    """Every window that a record met, oldest first; the windows are numbered as in `run_by_record`."""
    state, kept = TimeState(lengths), []
    check_room(float(len(feed)) * state.most, *TOUCH)
    for lo, step in _steps(lengths, state, feed):
        effect = np.where(step.opened, OPENED, ADDED).astype(np.uint8)
        kept.append((step.record + lo, step.window.copy(), effect))
    record, window, effect = (
        np.concatenate([np.empty(0, kind), *(part[i] for part in kept)]).astype(kind, copy=False)
        for i, kind in enumerate((np.int64, np.int32, np.uint8))
    )
    start_ms = lengths.back(state.windows["index"][window] * lengths.advance_ms)
    missed, none, late, missed_start_ms, _ = missed_touches(lengths, feed)
    # what a record missed is older than what it met, and goes before it
    order = np.argsort(np.concatenate([missed, record]), kind="stable")
    return Touches(
        np.concatenate([missed, record])[order],
        np.concatenate([none, window])[order],
        np.concatenate([late, effect])[order],
        np.concatenate([missed_start_ms, start_ms])[order],
        np.full(len(order), -1, np.int32),
    )


def missed_touches(lengths: Lengths, feed: Feed) -> Touches:
    """Every window that was closed when its record came: far fewer than what the records met."""
    size, advance, grace, _ = lengths
    columns = lengths.moved(feed.whole())
    t, close = columns.timestamp_ms, columns.stream_time_ms - grace
    first, highest = np.maximum(0, t - size + advance) // advance, t // advance
    oldest_open = np.where(close < size, first, np.maximum(first, (close - size) // advance + 1))
    count = np.where(columns.slot >= 0, np.minimum(oldest_open, highest + 1) - first, 0)
    check_room(count.sum(dtype=np.float64), *TOUCH)
    record = np.repeat(np.arange(len(t)), count)
    place = np.arange(len(record)) - np.repeat(np.cumsum(count) - count, count)
    none = np.full(len(record), -1, np.int32)
    start_ms = lengths.back((first[record] + place) * advance)
    return Touches(record, none, np.full(len(record), LATE, np.uint8), start_ms, none)
