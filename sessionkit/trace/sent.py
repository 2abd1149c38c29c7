"""The results that a run sends downstream, as columns: of which window, by which record, and where their value is."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from sessionkit.base.arrays import Bytes, Codes, Flags, Longs, order_by
from sessionkit.base.decisions import ADDED, COPIED_ADDED, LATE, OPENED
from sessionkit.trace.loops import last_touches, mark_overlapping, update_rows
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.trace.trace import Merges
from sessionkit.trace.window_trace import WindowTrace

WHATS = ("update", "tombstone", "final")
UPDATE, TOMBSTONE, FINAL = range(len(WHATS))  # the first two are the answer to "is it a tombstone?"
# in place of a step: as the window came from a store; null; as it begins; as it is at the end, which all then are
LOADED, NO_VALUE, BEGINS, AT_END = -1, -2, -3, -4


class Sent(NamedTuple):
    """One row a result, in the order in which they go out.

    A value is told by the step after which its window held it: a record of a session, a touch of another window.
    """

    what: Bytes  # a place in `WHATS`
    at: Longs  # the record that sent it
    window: Codes  # its row
    start_ms: Longs
    end_ms: Longs
    timestamp_ms: Longs
    step: Longs  # of its value
    old: Callable[[], Longs]  # the step of the value that it replaces
    replaced: Callable[[], tuple[Longs, Codes]] | None = None  # that by Kafka's rules, and its window, if not the same

    @property
    def stays(self) -> bool:
        """Whether windows are sent as they are at the end."""
        return bool((self.step == AT_END).all())

    def take(self, rows: Longs) -> Sent:
        """The results at these rows."""
        columns: Any = {name: getattr(self, name)[rows] for name in Sent._fields[:-2]}
        replaced = self.replaced
        if replaced is None:
            return Sent(**columns, old=lambda: self.old()[rows])
        taken = lambda: (replaced()[0][rows], replaced()[1][rows])  # noqa: E731
        return Sent(**columns, old=lambda: self.old()[rows], replaced=taken)


def last_updates(trace: SessionTrace | WindowTrace) -> Sent:
    """Of the results on update those by which it is decided what each window comes to: the last one of it.

    Of sessions of one key that overlap, as a store had forgotten one of them, it is all: they can have the same bounds.
    What a session replaces is not told.
    """
    if isinstance(trace, WindowTrace):
        return last_of_places(sent_by_windows(trace), trace)
    windows, last, at = trace.window_columns, np.full(len(trace.window_columns.key), -1), trace.updated_at
    last[trace.window[at]] = at
    rows = np.flatnonzero((windows.merged_into < 0) & (last >= 0))
    overlaps = np.zeros(len(last) + 1, np.bool_)  # the last is of a session that was withdrawn
    by_place = rows[order_by(trace.window_slot[rows], windows.start_ms[rows])]
    mark_overlapping(by_place, trace.window_slot, windows.start_ms, windows.end_ms, overlaps)
    rows = rows[~overlaps[rows]]
    rows = rows[np.argsort(last[rows])]
    at, end_ms, what = last[rows], windows.end_ms[rows], np.full(len(rows), UPDATE, np.uint8)
    columns: Any = (what, at, rows.astype(np.int32), windows.start_ms[rows], end_ms, end_ms, at)
    if overlaps.any():
        others: Any = sent_by_sessions(_records_of(trace, overlaps))[: len(columns)]
        columns = [np.concatenate(pair) for pair in zip(columns, others, strict=True)]
    return Sent._make((*columns, lambda: np.full(len(columns[0]), NO_VALUE), None))


def _records_of(trace: SessionTrace, chosen: Flags) -> SessionTrace:
    """The trace with the records of these sessions alone; none is chosen of those that are in no session."""
    window = np.where(chosen[trace.survivor], trace.window, -1)
    merges = trace.merges
    own = window[merges.at] >= 0
    merges = Merges(merges.at[own], merges.into[own], merges.absorbed[own])
    return dataclasses.replace(trace, window=window, merges=merges)


def last_of_places(sent: Sent, trace: SessionTrace | WindowTrace) -> Sent:
    """The last result of each key and bounds: behind a cache not all that is replaced was ever withdrawn."""
    if isinstance(trace, WindowTrace):
        last = np.full(len(trace.window_columns.key), -1)
        last[sent.window] = np.arange(len(sent.at))
        return sent.take(np.sort(last[last >= 0]))
    slot = trace.window_slot[sent.window]
    order = order_by(slot, sent.start_ms, sent.end_ms)
    is_last = np.any([np.diff(place[order]) != 0 for place in (slot, sent.start_ms, sent.end_ms)], axis=0)
    return sent.take(np.sort(order[np.append(is_last, True)[: len(order)]]))


def with_last_touches(sent: Sent, trace: SessionTrace | WindowTrace) -> Sent:
    """The same results with the last touch of each window that is sent as it is at the end."""
    if isinstance(trace, SessionTrace) or not (sent.step == AT_END).any():
        return sent
    touches, last = trace.touches, np.full(len(trace.window_columns.key), LOADED)
    live = np.flatnonzero(touches.effect != LATE)
    last[touches.window[live]] = live
    return sent._replace(step=last[sent.window])


def running_of(trace: SessionTrace | WindowTrace, fold: Any) -> Any:
    """The results of a fold at each step: after each record of sessions, after each touch of other windows."""
    if isinstance(trace, WindowTrace):
        return fold.running_touches(trace.touches)
    return fold.running(trace.window, trace.merges)


def sent_by_sessions(trace: SessionTrace) -> Sent:
    """Sessions that go downstream on update: tombstones for those that a record withdrew, then the new one.

    Only a tombstone replaces a value: the new session takes no other's place.
    """
    (start_after, end_after), times = trace.bounds_after, trace.batch.timestamp_ms
    size = len(trace.window_columns.key)
    start, end = np.zeros(size, np.int64), np.zeros(size, np.int64)
    start[: len(trace.loaded_start_ms)], end[: len(trace.loaded_end_ms)] = trace.loaded_start_ms, trace.loaded_end_ms
    at, row, start_ms, end_ms, tombstone = update_rows(
        trace.window, trace.decision, times, trace.merges, start_after, end_after, start, end, trace.sent_on_update
    )

    def old() -> Longs:
        touch = np.full(len(at), NO_VALUE)
        touch[tombstone] = last_touches(trace.window, at[tombstone], row[tombstone])
        return touch

    step = np.where(tombstone, NO_VALUE, at)
    return Sent(tombstone.view(np.uint8), at, row, start_ms, end_ms, end_ms, step, old)


def sent_by_windows(trace: WindowTrace) -> Sent:
    """Time and sliding windows that go downstream on update: every one that a record changed or made."""
    touches = trace.touches
    live = np.flatnonzero(touches.effect != LATE)
    start_ms = touches.start_ms[live]

    def old() -> Longs:
        return np.where(touches.effect == ADDED, _touch_before(touches.window), NO_VALUE)[live]

    def replaced() -> tuple[Longs, Codes]:
        """Of a copy the last value of its source by an earlier record, of a window that is new what it begins with."""
        step, effect, source = old(), touches.effect[live], touches.source[live]
        is_copy, count = effect == COPIED_ADDED, len(trace)
        place = touches.window * np.int64(count) + touches.record
        order = np.argsort(place)
        sought = source[is_copy] * np.int64(count) + touches.record[live[is_copy]]
        before = order[np.searchsorted(place[order], sought) - 1]
        step[is_copy] = np.where(touches.window[before] == source[is_copy], before, LOADED)
        step[effect == OPENED] = BEGINS
        return step, np.where(is_copy, source, touches.window[live])

    what, row = np.full(len(live), UPDATE, np.uint8), touches.window[live]
    ends_ms, newest_ms = trace.ends_ms(start_ms), trace.newest_ms[live]
    return Sent(what, touches.record[live], row, start_ms, ends_ms, newest_ms, live, old, replaced)


SENT_BY: Mapping[Any, Callable[[Any], Sent]] = {SessionTrace: sent_by_sessions, WindowTrace: sent_by_windows}


def _touch_before(window: Codes) -> Longs:
    """For each touch the one before it of the same window, -1 for none."""
    order = np.argsort(window, kind="stable")
    before = np.full(len(window), -1)
    is_same = window[order[1:]] == window[order[:-1]]
    before[order[1:][is_same]] = order[:-1][is_same]
    return before
