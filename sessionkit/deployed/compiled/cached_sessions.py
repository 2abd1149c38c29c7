"""A life of sessions behind a record cache: when kernels know it, what it sent, and what cache and store hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from sessionkit.aggregations.contract import Aggregation
from sessionkit.base.arrays import Codes, Longs, Rows
from sessionkit.deployed.compiled.cache import (
    CachedLife,
    all_commits,
    has_fixed_size,
    has_zeros,
    most_bytes,
    most_in_loops,
)
from sessionkit.deployed.compiled.cached_session_kernel import CachedSessionKernel, Sizes
from sessionkit.deployed.compiled.life import SessionLife
from sessionkit.deployed.compiled.sent import aggregates_at
from sessionkit.deployed.compiled.session_cache import Rules, StructArray
from sessionkit.deployed.compiled.stores import observed_ms
from sessionkit.deployed.deployment import Life
from sessionkit.engine.outcome import Outcome
from sessionkit.records.batch import RecordBatch
from sessionkit.records.keys import key_lengths
from sessionkit.stores.cache.named_cache import ENTRY_BYTES
from sessionkit.stores.contract import Snapshot
from sessionkit.stores.segments import Segments
from sessionkit.stores.sizes import value_bytes
from sessionkit.trace.sent import NO_VALUE, TOMBSTONE, UPDATE, Sent
from sessionkit.windows.feed import Expiry

_TIMES_BYTES = 8 + 8 + 8  # of an entry's key: its segment, the end and the start


def is_new(batch: RecordBatch, store: Any) -> bool:
    """Whether nothing was put into the partitions of these records."""
    return all(store.snapshot(p) == Snapshot() and observed_ms(store, p) == -1 for p in batch.partitions.tolist())


def knows_session_cache(batch: RecordBatch, store: Any, how: Life) -> bool:
    """Whether the cache of sessions can be played here: what is evicted must not depend on other keys.

    A read of a limited cache uses what lies between its bounds: in memory entries of all keys, on disk those of keys
    that go on with a zero byte where another ends.
    """
    if not is_new(batch, store):
        return False
    return most_bytes(how) in (None, math.inf) or (bool(store.is_persistent) and not has_zeros(batch.keys))


def run_behind_cache(
    windows: Any, aggregations: Mapping[str, Aggregation], batch: RecordBatch, store: Any, how: Life,
    expiry: Expiry, run: Callable[[Expiry], Outcome],
) -> tuple[Outcome, Expiry]:  # fmt: skip
    """Runs the kernel behind a cache of sessions; (the outcome, what the store has observed, and the kernel).

    What is evicted depends on the sizes of values, and these on the sessions that are found: so it runs until the sizes
    that it supposed are those that came out. The first wrong one comes later with each run.
    """
    most, sizes = most_bytes(how), np.full(len(batch), 8, np.int64)
    while True:
        told = expiry._replace(observed_ms=expiry.observed_ms.copy())
        told = told._replace(cached=_kernel(windows, batch, how, told, store, sizes))
        outcome = run(told)
        if most is None or has_fixed_size(aggregations, batch):
            return outcome, told
        supposed, sizes = sizes, _value_sizes(outcome)
        if np.array_equal(supposed, sizes):
            return outcome, told


def _value_sizes(outcome: Outcome) -> Longs:
    """The bytes of the value that each record left in its session."""
    window: Codes = outcome.kept_trace.window
    sizes, steps = np.full(len(window), 8, np.int64), np.flatnonzero(window >= 0)
    sizes[steps] = [value_bytes(each) for each in aggregates_at(outcome, (steps, window[steps]))[0]]
    return sizes


def _kernel(
    windows: Any, batch: RecordBatch, how: Life, expiry: Expiry, store: Any, value_sizes: Longs
) -> CachedSessionKernel:
    is_counted = most_bytes(how) is not None
    rules = Rules(
        most=most_in_loops(how),
        retention_ms=how.retention_ms,
        lowest_ms=windows.retention_ms(None),
        interval_ms=Segments.of_ms(how.retention_ms).interval_ms if store.is_persistent else 0,
        in_cells=not (store.is_persistent and store.is_asked),
    )
    none = np.zeros(len(batch.keys), np.int64)
    key_sizes = key_lengths(batch.keys) + ENTRY_BYTES + _TIMES_BYTES if is_counted else none
    sizes = Sizes(batch.key, key_sizes, value_sizes if is_counted else np.zeros(len(batch), np.int64))
    commits = all_commits(how, len(batch))
    return CachedSessionKernel(windows.inactivity_gap_ms, windows.grace_ms, rules, sizes, commits, expiry)


class CachedSessionLife(CachedLife, SessionLife):
    """Of sessions behind a cache."""

    def __init__(self, *life: Any) -> None:
        super().__init__(*life)
        assert self._expiry is not None
        kernel: CachedSessionKernel = self._expiry.cached
        self._writes, self._answers = [kernel.writes(len(self._trace))], kernel.answers
        self._refused = tuple(self._writes[0]["at"][self._writes[0]["taken"] == 0].tolist())
        self._cached, self._stored, self._held_bytes = kernel.cached, kernel.stored, kernel.most_held
        self._expiry = self._expiry._replace(cached=None)  # which has much room

    @property
    def answers(self) -> StructArray:
        return self._answers

    @property
    def refused(self) -> tuple[int, ...]:
        return self._refused

    def sent(self) -> Sent:
        return self._sent

    @cached_property
    def _sent(self) -> Sent:
        writes = self._writes.pop()  # nobody else reads them
        row, start_ms, end_ms = writes["row"].copy(), writes["start"].copy(), writes["end"].copy()
        step, old = writes["step"].copy(), writes["old"].copy()
        what = np.where(step == NO_VALUE, TOMBSTONE, UPDATE).astype(np.uint8)
        return Sent(what, self._last_records(writes["at"], row), row, start_ms, end_ms, end_ms, step, lambda: old)

    @cached_property
    def held_rows(self) -> Rows:
        columns = self._outcome.window_columns
        from_ms = self.observed_ms - self._how.retention_ms + 1
        return np.flatnonzero(self._stored & (columns.end_ms >= from_ms[columns.partition]))

    @property
    def cached_rows(self) -> Rows:
        return self._cached

    @property
    def _newest_put_ms(self) -> Longs:
        newest_ms, columns = np.full(len(self._before), -1), self._outcome.window_columns  # all new: the store was
        np.maximum.at(newest_ms, columns.partition, columns.end_ms)
        return newest_ms

    @property
    def _most_held(self) -> int:
        return self._held_bytes
