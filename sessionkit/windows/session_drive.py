"""Feeds the records of a run to the session kernel and to the folds, a chunk at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from sessionkit.base.compiled import announce_compiling
from sessionkit.base.decisions import OPENED
from sessionkit.trace.session_trace import Reopenings
from sessionkit.trace.trace import Merges
from sessionkit.windows.feed import CHUNK, DecidedSessions, Feed
from sessionkit.windows.loops import note_decisions
from sessionkit.windows.session_kernel import NO_SESSION, Events, SessionKernel, run_sessions

NO_OFFSETS = np.empty(0, np.int64)
_KINDS = (np.int64, np.int32, np.int32, np.int64, np.int32, np.int64, np.int64)  # of the columns of `Events`


def drive_sessions(kernel: SessionKernel, feed: Feed, folds: Mapping[str, Any]) -> DecidedSessions:
    """Decides every record, folds it into its session, and notes what happened."""
    loaded = feed.loaded
    kernel.load(
        loaded.slot, loaded.start_ms, loaded.timestamp_ms, loaded.is_closed, feed.slots.count, expected=len(feed)
    )
    drive = _Drive(kernel, feed, folds)
    announce_compiling(run_sessions, "session windows")
    for lo in range(0, len(feed), CHUNK):
        drive.take(lo, min(lo + CHUNK, len(feed)))
    return drive.decided()


class _Drive:
    def __init__(self, kernel: SessionKernel, feed: Feed, folds: Mapping[str, Any]) -> None:
        self._kernel, self._feed, self._folds = kernel, feed, folds
        batch, room = feed.batch, min(CHUNK, len(feed))
        self._decision = feed.decision if feed.keep else np.empty(room, np.uint8)
        self._window = np.empty(len(feed) if feed.keep else room, np.int32)
        self._stair, self._opened_by = np.empty(room, np.int64), np.empty(room, np.int64)
        self._slot = np.empty(room, np.int32)
        first = np.zeros(len(batch.partitions), np.int64) if batch.first_offset is None else batch.first_offset
        self._next_offset = first.copy()
        self._all_opened_by: list[npt.NDArray[np.int64]] = []
        self._events: list[Events] = []
        self._merge_count = 0

    def take(self, lo: int, hi: int) -> None:
        """The records from `lo` to `hi`."""
        feed, batch, count = self._feed, self._feed.batch, hi - lo
        place = slice(lo, hi) if feed.keep else slice(0, count)
        decision, window = self._decision[place], self._window[place]
        before = feed.stream_time_ms.copy()
        stair, slot = self._stair[:count], self._slot[:count]
        feed.place(lo, hi, slot, stair, decision)
        if batch.rejected is not None:
            window[slot < 0] = NO_SESSION
        events = self._kernel.feed(
            slot, feed.slots.partition, batch.timestamp_ms[lo:hi], stair, before, decision, window
        )
        merges = Merges(events.merge_at, events.merge_into, events.merge_absorbed)
        for fold in self._folds.values():
            fold.grow(self._kernel.count)
            fold.feed(window, merges, lo)
        self._note(events, decision, lo)

    def _note(self, events: Events, decision: npt.NDArray[np.uint8], lo: int) -> None:
        feed, batch, hi = self._feed, self._feed.batch, lo + len(decision)
        given = NO_OFFSETS if batch.given_offset is None else batch.given_offset[lo:hi]
        before = self._next_offset.copy()
        columns = (batch.partition[lo:hi], given, self._next_offset, feed.counts, self._opened_by)
        self._all_opened_by.append(self._opened_by[: note_decisions(decision, OPENED, *columns)].copy())
        feed.record_counts += self._next_offset - before
        self._merge_count += len(events.merge_at)
        if feed.keep:
            copies: Any = (column.copy() for column in events)
            kept = Events(*copies)
            kept.merge_at[:] += lo
            kept.reopen_at[:] += lo
            self._events.append(kept)

    def decided(self) -> DecidedSessions:
        sessions, loaded = self._kernel.sessions, self._feed.loaded
        joined = [
            np.concatenate([np.empty(0, kind), *(events[i] for events in self._events)]).astype(kind, copy=False)
            for i, kind in enumerate(_KINDS)
        ]
        return DecidedSessions(
            slot=sessions["slot"],
            start_ms=sessions["start"].copy(),
            end_ms=sessions["end"].copy(),
            merged_into=sessions["merged_into"].copy(),
            is_closed=sessions["closed"][: len(loaded.slot)] != 0,
            opened_by=self._all_opened_by,
            window=self._window,
            merges=Merges(*joined[:3]),
            reopenings=Reopenings(*joined[3:]),
            merge_count=self._merge_count,
        )
