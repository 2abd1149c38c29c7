"""Sessions on disk in a life that is not the first one of its task: the store holds more than it shows.

When a task is started again, its store forgets what it has observed, and shows sessions that it had not shown any more;
or it still does not show some that it holds. A kernel knows neither sessions of one key that overlap nor those at the
place of another. Both need a record that is late by the retention of the store; then the processor plays the life.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from sessionkit.base.arrays import Codes, Longs
from sessionkit.deployed.compiled.life import SessionLife
from sessionkit.engine.kernel_run import Start
from sessionkit.records.batch import RecordBatch
from sessionkit.trace.loops import grouped, largest_so_far


def lie_apart(start: Start, batch: RecordBatch, gap_ms: int, hidden_ms: Longs) -> bool:
    """Whether no record is within the gap of two sessions that it can find; those until `hidden_ms` none finds."""
    state, code = start.state, start.code
    numbers = np.array(list(start.before))
    shown = np.flatnonzero(state.end_ms > hidden_ms[np.searchsorted(numbers, state.partition)])
    columns = (code, state.partition, state.start_ms, state.end_ms)
    code, partition, start_ms, end_ms = (column[shown] for column in columns)
    is_next = (code[1:] == code[:-1]) & (partition[1:] == partition[:-1])
    near = np.flatnonzero(is_next & (start_ms[1:] <= end_ms[:-1] + gap_ms))
    if not len(near):
        return True
    slots, place = np.unique(code[near] * len(numbers) + np.searchsorted(numbers, partition[near]), return_inverse=True)
    until_ms = np.full(len(slots), -1)
    np.maximum.at(until_ms, place, end_ms[near] + gap_ms)
    slot = batch.key.astype(np.int64) * len(numbers) + batch.partition
    place = np.minimum(np.searchsorted(slots, slot), len(slots) - 1)
    return not ((slots[place] == slot) & (batch.timestamp_ms <= until_ms[place])).any()


class RestartedSessionLife(SessionLife):
    """What the store observes are the ends of sessions, which can be later than all records of this life."""

    @property
    def is_played(self) -> bool:
        """No session is put that the store did not show at first, and none would be hidden that a record can meet."""
        trace, retention_ms = self._trace, self._how.retention_ms
        own, put = trace.batch.partition, np.flatnonzero(trace.accepted)
        if (trace.bounds_after[1][put] <= self._observed_before_ms[own[put]] - retention_ms).any():
            return False
        observed_ms, supposed_ms = (_before(ms, own, self._observed_before_ms) for ms in self._both_ms)
        near_ms = trace.batch.timestamp_ms - self._windows.reach_ms
        return not ((observed_ms > supposed_ms) & (near_ms <= observed_ms - retention_ms)).any()

    @property
    def _both_ms(self) -> tuple[Longs, Longs]:
        """What the store has observed with each record, and what the kernel supposed: the times of records."""
        before_ms = self._observed_before_ms[self._trace.batch.partition]
        return self._put_ms, np.maximum(before_ms, self._trace.stream_time_ms)

    @cached_property
    def _put_ms(self) -> Longs:
        """The largest time that was put into the store of its partition by each record."""
        trace = self._trace
        put_ms = np.where(trace.accepted, trace.bounds_after[1], -1)
        return largest_so_far(put_ms, trace.batch.partition, self._observed_before_ms)

    @property
    def observed_ms(self) -> Longs:
        observed_ms = self._observed_before_ms.copy()
        np.maximum.at(observed_ms, self._trace.batch.partition, self._put_ms)
        return observed_ms

    def _observed_with_ms(self, records: Longs) -> Longs:
        return self._put_ms[records]


def _before(with_each_ms: Longs, partition: Codes, first_ms: Longs) -> Longs:
    """What was observed before each record, of what was with each; `first_ms` of each partition before all."""
    before_ms, (first, rows) = np.empty_like(with_each_ms), grouped(partition, len(first_ms))
    before_ms[rows[1:]] = with_each_ms[rows[:-1]]
    begun = np.flatnonzero(first[:-1] < first[1:])
    before_ms[rows[first[begun]]] = first_ms[begun]
    return before_ms
