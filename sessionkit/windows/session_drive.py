"""Feeds the records of a run to the session kernel and to the folds, a chunk at a time."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from sessionkit.base.arrays import Codes, Longs
from sessionkit.base.compiled import announce_compiling, compiled_loop
from sessionkit.base.decisions import OPENED
from sessionkit.base.process import hand_each
from sessionkit.trace.session_trace import Reopenings
from sessionkit.trace.trace import Merges
from sessionkit.windows.feed import Columns, DecidedSessions, Feed
from sessionkit.windows.session_kernel import NO_SESSION, Events, SessionKernel, run_sessions

NO_OFFSETS = np.empty(0, np.int64)
_KINDS = (np.int64, np.int32, np.int32, np.int64, np.int32, np.int64, np.int64)  # of the columns of `Events`


@compiled_loop
def note_opened(decision, opened_code, partition, given_offset, following, opened_by):  # type: ignore[no-untyped-def]
    """Fills `opened_by` with the offsets of the records that opened a window; returns how many there are.

    Without given offsets they are counted on in `following`, one number a partition.
    """
    opened = 0
    counted = given_offset.shape[0] == 0
    for i in range(decision.shape[0]):
        p = partition[i]
        opened_by[opened] = following[p] if counted else given_offset[i]
        following[p] += 1
        opened += decision[i] == opened_code
    return opened


class Step(NamedTuple):
    """A piece of the records that is decided: the session of each, what else happened, how many sessions there are."""

    columns: Columns
    window: Codes
    events: Events
    sessions: int


def drive_sessions(kernel: SessionKernel, feed: Feed, folds: Mapping[str, Any]) -> DecidedSessions:
    """Decides every record, folds it into its session, and notes what happened."""
    kernel.load(feed.loaded, feed.slots.count, expected=len(feed))
    drive = _Drive(kernel, feed, folds)
    announce_compiling(run_sessions, "session windows")
    hand_each(feed.hand, (partial(drive.note, drive.decide(columns)) for columns in feed.chunks()))
    return drive.decided()


class _Drive:
    def __init__(self, kernel: SessionKernel, feed: Feed, folds: Mapping[str, Any]) -> None:
        self._kernel, self._feed, self._folds = kernel, feed, folds
        batch, room = feed.batch, feed.piece
        self._window = np.empty(len(feed) if feed.keep else 2 * room, np.int32)
        self._opened_by = np.empty(room if feed.keeps_offsets else 0, np.int64)
        first = np.zeros(len(batch.partitions), np.int64) if batch.first_offset is None else batch.first_offset
        self._next_offset = first.copy()
        self._all_opened_by: list[Longs] = []
        self._events: list[Events] = []
        self._merge_count = 0

    def decide(self, columns: Columns) -> Step:
        lo, count = columns.lo, len(columns.slot)
        at = lo if self._feed.keep else lo % len(self._window)  # those of the piece before are still to be folded
        window = self._window[at : at + count]
        if self._feed.batch.rejected is not None:
            window[columns.slot < 0] = NO_SESSION
        return Step(columns, window, self._kernel.feed(columns, window), self._kernel.count)

    def note(self, step: Step) -> None:
        """Folds a piece that was decided, which goes on beside the next one, and notes what happened in it."""
        lo, events = step.columns.lo, step.events
        merges = Merges(events.merge_at, events.merge_into, events.merge_absorbed)
        for fold in self._folds.values():
            fold.grow(step.sessions)
            fold.feed(step.window, merges, lo)
        self._merge_count += len(events.merge_at)
        if self._feed.keeps_offsets:
            self._note_opened(step.columns)
        if self._feed.keep:
            copies: Any = (column.copy() for column in events)
            kept = Events(*copies)
            kept.merge_at[:] += lo
            kept.reopen_at[:] += lo
            self._events.append(kept)

    def _note_opened(self, columns: Columns) -> None:
        batch, decision = self._feed.batch, columns.decision
        rows = slice(columns.lo, columns.lo + len(decision))
        offsets = NO_OFFSETS if batch.given_offset is None else batch.given_offset[rows]
        opened = note_opened(decision, OPENED, batch.partition[rows], offsets, self._next_offset, self._opened_by)
        self._all_opened_by.append(self._opened_by[:opened].copy())

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
