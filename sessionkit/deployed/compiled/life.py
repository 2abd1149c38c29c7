"""What follows from the decisions of a life of the task: what it sent, what it committed, what its store holds."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from sessionkit.aggregations.contract import Aggregation
from sessionkit.base.arrays import Codes, Flags, Longs, Rows, last_of_same, order_by
from sessionkit.base.decisions import LATE, OPENED
from sessionkit.deployed.compiled.sent import LazyRows
from sessionkit.deployed.compiled.stores import boundary_of
from sessionkit.deployed.deployment import Life
from sessionkit.deployed.forgetting import ForgettingStore
from sessionkit.deployed.processor_run import Look
from sessionkit.engine.commit import columns_at
from sessionkit.engine.outcome import Outcome, position_after, snapshots_after
from sessionkit.stores.contract import Snapshot, StoredColumns
from sessionkit.trace.loops import grouped
from sessionkit.trace.sent import FINAL, NO_VALUE, SENT_BY, Sent
from sessionkit.windows.contract import WindowKind
from sessionkit.windows.feed import Expiry
from sessionkit.windows.finals import Finals, Looks, find_final_sessions, find_looks


class CompiledLife:
    """What both kinds of stores have in common: looks for final results, commits, and the times that they observe."""

    def __init__(
        self,
        windows: WindowKind,
        aggregations: Mapping[str, Aggregation],
        outcome: Outcome,
        store: Any,
        how: Life,
        before: Mapping[int, Snapshot],
        observed_before_ms: Longs,
        expiry: Expiry | None,
    ) -> None:
        self._windows, self._aggregations, self._outcome = windows, aggregations, outcome
        self._how, self._before = how, before
        self._observed_before_ms, self._expiry = observed_before_ms, expiry
        self._segments = store.segments if isinstance(store, ForgettingStore) else None
        self._boundary_ms = boundary_of(store)
        self._trace: Any = outcome.kept_trace

    @property
    def is_played(self) -> bool:
        """Whether the kernel knew all that a record found."""
        return True

    @property
    @abstractmethod
    def observed_ms(self) -> Longs:
        """The largest time that was put into the store of each partition."""

    @property
    @abstractmethod
    def refused(self) -> tuple[int, ...]:
        """The record of each window that the store refused."""

    @property
    @abstractmethod
    def _finals(self) -> Finals:
        """Each final result, in the order in which they go out."""

    @abstractmethod
    def _final_times_ms(self, found: Finals) -> Longs:
        """The timestamps of final results."""

    @property
    @abstractmethod
    def held_rows(self) -> Rows:
        """The windows that the store holds at the end."""

    def _held_from_ms(self, observed_ms: Longs) -> Longs:
        """The first end that the store has when it has observed these times; on disk all in live segments."""
        if self._segments is None:
            return observed_ms - self._how.retention_ms + 1
        interval_ms = self._segments.interval_ms
        return np.maximum(observed_ms - self._how.retention_ms, 0) // interval_ms * interval_ms

    # ---- final results

    @cached_property
    def _looks(self) -> tuple[Looks, Longs]:
        """(each look for final results, the close time of each partition after all of them)."""
        trace, how = self._trace, self._how
        first, rows = grouped(trace.batch.partition, len(self._before))
        clock_ms = np.empty(0, np.int64) if how.clock is None else np.asarray(how.clock, np.int64)
        (length_ms, advance_ms), interval_ms = self._lengths_ms, how.emit_interval_ms
        at, lowest, highest = (np.empty(len(trace), np.int64) for _ in range(3))
        looks = Looks(at, lowest, highest, np.zeros(len(first), np.int64))
        closed_ms, may_look = self._closed_before_ms.copy(), self._may_look
        for p, last in enumerate(closed_ms.tolist()):
            own = rows[first[p] : first[p + 1]]
            looks.first[p + 1], closed_ms[p] = find_looks(
                own, looks.first[p], may_look, trace.stream_time_ms, clock_ms, self._windows.close_lag_ms,
                length_ms, advance_ms, interval_ms, last, at, lowest, highest,
            )  # fmt: skip
        count = looks.first[-1]
        return Looks(at[:count], lowest[:count], highest[:count], looks.first), closed_ms

    @property
    def _lengths_ms(self) -> tuple[int, int]:
        """How long a window is behind the time by which it is kept, and between two of them; 0 of those without."""
        return 0, 0

    @property
    def _may_look(self) -> Flags:
        """The records with which a look can come."""
        is_taken: Flags = self._trace.decision <= LATE
        return is_taken

    @property
    def _closed_before_ms(self) -> Longs:
        return np.array([each.last_close_time_ms for each in self._before.values()], np.int64)

    def snapshots(self, committed_count: int) -> dict[int, Snapshot]:
        """How far each partition came, as the last commit has it."""
        outcome, now = self._outcome, self._outcome.snapshots.values()
        closed_ms = np.array([each.last_close_time_ms for each in now], np.int64)
        if self._how.emit == "on_window_close":
            looks, closed_ms = self._looks
            if committed_count < len(self._trace):
                closed_ms = self._closed_before_ms
                at = looks.at[looks.at < committed_count]  # within a partition they rise: of several the last stays
                closed_ms[self._trace.batch.partition[at]] = self._close_ms(at)
        position = position_after(outcome.batch, self._before, committed_count)
        stream_ms = np.array([each.stream_time_ms for each in now], np.int64)
        return snapshots_after(list(self._before), position, stream_ms, closed_ms, self._before)

    def _close_ms(self, records: Longs) -> Longs:
        return self._trace.stream_time_ms[records] - self._windows.close_lag_ms

    def _in_turn(self, found: Finals) -> list[Longs]:
        """The record of each final result where that decides; in one partition a later end is found by a later look."""
        looks, _ = self._looks
        return [looks.at[found.look]] if len(self._before) > 1 else []

    @property
    def answers(self) -> Any:
        """What the store was asked behind a cache and another retention could change; None: it is told elsewhere."""
        return None

    @property
    def spans(self) -> Looks | None:
        """The times that each look for final results reads; None: there is none."""
        return None if self._how.emit == "on_window_update" else self._looks[0]

    @property
    def looks(self) -> Sequence[Look]:
        """Each look for final results, in the order of the records."""
        if self._how.emit == "on_window_update":
            return ()
        looks, _ = self._looks

        def rows() -> list[Look]:
            sent = np.bincount(self._finals.look, minlength=len(looks.at))
            order = np.argsort(looks.at)
            at = looks.at[order]
            columns = (at, self._trace.batch.partition[at], sent[order], np.zeros_like(at))
            return [Look(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]

        return LazyRows(lambda: len(looks.at), rows)

    def in_front_of(self, store: Any) -> Any:
        """The store as queries see it."""
        return store

    @property
    def finals(self) -> Callable[[], tuple[Codes, Longs]] | None:
        """Gives (the window, the record) of each result, in any order; None: some may change once they were sent."""
        return None

    def sent(self) -> Sent:
        """All results that went downstream."""
        if self._how.emit == "on_window_update":
            return SENT_BY[type(self._trace)](self._trace)
        found, (looks, _) = self._finals, self._looks
        what, nothing = np.full(len(found.look), FINAL, np.uint8), np.full(len(found.look), NO_VALUE)
        at, times_ms = looks.at[found.look], self._final_times_ms(found)
        return Sent(what, at, found.window, found.start_ms, found.end_ms, times_ms, found.step, lambda: nothing)

    # ---- the store

    @property
    def _closed_before(self) -> Longs:
        """Offset of the record that closed each window in an earlier life; -1: it is open, or was met since."""
        return self._outcome.window_columns.closed_before

    def seen_ms(self, rest: Mapping[int, StoredColumns]) -> dict[int, Longs]:
        """The last instants of the windows of each partition that reads see; `rest` are those that it did not meet."""
        rows, found = self._seen_rows, {}
        for code, (number, others) in enumerate(rest.items()):
            others_ms = others.time_ms[others.time_ms >= self._seen_from_ms[code]]
            mine = rows[self._outcome.window_columns.partition[rows] == code]
            found[number] = self._last_instants_ms(np.append(others_ms, self._times_ms[mine]))
        return found

    @property
    @abstractmethod
    def _times_ms(self) -> Longs:
        """The time by which the store keeps each window."""

    @abstractmethod
    def _last_instants_ms(self, times_ms: Longs) -> Longs:
        """The last instants of windows that are kept by these times."""

    @property
    def _seen_from_ms(self) -> Longs:
        return self.observed_ms - self._how.retention_ms + 1 - self._boundary_ms

    @property
    def _seen_rows(self) -> Rows:
        rows = self.held_rows
        return rows[self._times_ms[rows] >= self._seen_from_ms[self._outcome.window_columns.partition[rows]]]

    def held(self) -> Iterator[StoredColumns]:
        """What the store holds of each partition at the end."""
        rows = self.held_rows
        first, order = grouped(self._outcome.window_columns.partition[rows], len(self._before))
        return (self._columns(rows[order[begin:end]]) for begin, end in pairwise(first.tolist()))

    def _columns(self, rows: Rows) -> StoredColumns:
        return columns_at(self._outcome, rows, self._windows.holds, self._closed_before[rows])


class SessionLife(CompiledLife):
    """Of sessions, which a store keeps by their ends."""

    def __init__(self, *life: Any) -> None:
        super().__init__(*life)
        assert self._expiry is not None
        self._opened_at = opened = np.flatnonzero(self._trace.decision == OPENED)
        null = self._expiry.null_values
        self._deleting = self._trace.window[opened[null[opened]] if len(null) else opened[:0]]

    @property
    def observed_ms(self) -> Longs:
        assert self._expiry is not None
        return self._expiry.observed_ms

    @property
    def _times_ms(self) -> Longs:
        return self._outcome.window_columns.end_ms

    def _last_instants_ms(self, times_ms: Longs) -> Longs:
        return times_ms

    def _observed_with_ms(self, records: Longs) -> Longs:
        """The largest time that was put into the store of their partition, with each of these records."""
        trace = self._trace
        return np.maximum(self._observed_before_ms[trace.batch.partition[records]], trace.stream_time_ms[records])

    @property
    def refused(self) -> tuple[int, ...]:
        """The record of each session that the store refused; one on disk that was new refuses none."""
        if self._segments is not None:
            return ()
        at = self._opened_at
        is_refused = self._trace.batch.timestamp_ms[at] < self._held_from_ms(self._observed_with_ms(at))
        return tuple(at[is_refused].tolist())

    @cached_property
    def _finals(self) -> Finals:
        trace, (looks, _), outcome = self._trace, self._looks, self._outcome
        columns = outcome.window_columns
        held_from_ms = self._held_from_ms(self._observed_with_ms(looks.at))
        until = np.full(len(columns.key), len(trace), np.int64)
        room = Finals.room(len(trace) + columns.loaded_count)
        count = find_final_sessions(
            trace.window, trace.merges, *trace.bounds_after, trace.loaded_start_ms, trace.loaded_end_ms,
            self._close_ms(np.arange(len(trace))), columns.partition, looks, held_from_ms, until, room,
        )  # fmt: skip
        found = room.take(slice(count)).take(slice(None, None, -1))  # in the order of the records
        rank = outcome.key_ranks[columns.key[found.window]]
        lengths_ms = found.end_ms - found.start_ms
        places = (rank, lengths_ms) if self._segments is None else (-lengths_ms, rank)
        order = order_by(*self._in_turn(found), found.end_ms, *places)
        found, rank = found.take(order), rank[order]
        # on disk a session that no read finds any more is there until one is put, or deleted, with its key and bounds
        same = (found.look[1:] == found.look[:-1]) & (rank[1:] == rank[:-1])
        same &= (found.start_ms[1:] == found.start_ms[:-1]) & (found.end_ms[1:] == found.end_ms[:-1])
        is_last = np.append(~same, True)[: len(found.look)]
        return found.take(np.flatnonzero(is_last & ~np.isin(found.window, self._deleting)))

    def _final_times_ms(self, found: Finals) -> Longs:
        return found.end_ms

    @cached_property
    def held_rows(self) -> Rows:
        columns = self._outcome.window_columns
        held_from_ms = self._held_from_ms(self.observed_ms)[columns.partition]
        rows = np.flatnonzero((columns.merged_into < 0) & (columns.end_ms >= held_from_ms))
        if self._segments is not None:  # what is put at the place of a session that no read finds overwrites it
            place_of = (columns.end_ms, columns.start_ms, columns.key, columns.partition)
            rows = rows[last_of_same(*(column[rows] for column in place_of))]
        return rows[~np.isin(rows, self._deleting)]

    @property
    def _closed_before(self) -> Longs:
        closed_before = super()._closed_before.copy()
        closed_before[self._trace.window[self._trace.window >= 0]] = -1
        return closed_before
