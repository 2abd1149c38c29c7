"""A life of sessions behind a record cache: when kernels know it, what it sent, and what cache and store hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from sessionkit.aggregations.contract import Aggregation
from sessionkit.base.arrays import Rows
from sessionkit.base.durations import INT64_MAX
from sessionkit.deployed.compiled.cache import (
    CachedLife,
    all_commits,
    has_fixed_size,
    has_zeros,
    key_lengths,
    most_bytes,
)
from sessionkit.deployed.compiled.cached_session_kernel import CachedSessionKernel
from sessionkit.deployed.compiled.life import SessionLife
from sessionkit.deployed.compiled.session_cache import Rules, StructArray
from sessionkit.deployed.compiled.stores import observed_ms
from sessionkit.deployed.deployment import Life
from sessionkit.records.batch import RecordBatch
from sessionkit.stores.cache.named_cache import ENTRY_BYTES
from sessionkit.stores.contract import Snapshot
from sessionkit.stores.segments import Segments
from sessionkit.trace.sent import NO_VALUE, TOMBSTONE, UPDATE, Sent
from sessionkit.windows.feed import Expiry

_TIMES_BYTES = 8 + 8 + 8  # of an entry's key: its segment, the end and the start


def knows_session_cache(aggregations: Mapping[str, Aggregation], batch: RecordBatch, store: Any, how: Life) -> bool:
    """Whether the cache of sessions can be played here: what is evicted must not depend on values, nor on other keys.

    A read of a limited cache uses what lies between its bounds: in memory entries of all keys, on disk those of keys
    that go on with a zero byte where another ends.
    """
    most = most_bytes(how)
    if not all(store.snapshot(p) == Snapshot() and observed_ms(store, p) == -1 for p in batch.partitions.tolist()):
        return False
    if most is None or not has_fixed_size(aggregations, batch):
        return most is None
    if most == math.inf:
        return True
    return bool(store.is_persistent) and not has_zeros(batch.keys)


def cached_kernel(windows: Any, batch: RecordBatch, how: Life, expiry: Expiry, store: Any) -> CachedSessionKernel:
    """The kernel of sessions of a life behind a cache."""
    most = most_bytes(how)
    lengths = np.zeros(len(batch.keys), np.int64) if most is None else key_lengths(batch.keys)
    rules = Rules(
        most=INT64_MAX if most is None else int(min(most, INT64_MAX)),
        retention_ms=how.retention_ms,
        lowest_ms=windows.retention_ms(None),
        interval_ms=Segments.of_ms(how.retention_ms).interval_ms if store.is_persistent else 0,
        entry_bytes=0 if most is None else ENTRY_BYTES + _TIMES_BYTES,
        value_bytes=0 if most is None else 8,
        in_cells=not (store.is_persistent and store.is_asked),
    )
    gap_ms, grace_ms = windows.inactivity_gap_ms, windows.grace_ms
    return CachedSessionKernel(gap_ms, grace_ms, rules, batch.key, lengths, all_commits(how, len(batch)), expiry)


class CachedSessionLife(CachedLife, SessionLife):
    """Of sessions behind a cache."""

    def __init__(self, *life: Any) -> None:
        super().__init__(*life)
        assert self._expiry is not None
        self._kernel: CachedSessionKernel = self._expiry.cached
        self._writes = self._kernel.writes(len(self._trace))

    @property
    def answers(self) -> StructArray:
        return self._kernel.answers

    @property
    def refused(self) -> tuple[int, ...]:
        return tuple(self._writes["at"][self._writes["taken"] == 0].tolist())

    def sent(self) -> Sent:
        writes = self._writes
        row, start_ms, end_ms = writes["row"].copy(), writes["start"].copy(), writes["end"].copy()
        step, old = writes["step"].copy(), writes["old"].copy()
        what = np.where(step == NO_VALUE, TOMBSTONE, UPDATE).astype(np.uint8)
        return Sent(what, self._last_records(writes["at"], row), row, start_ms, end_ms, end_ms, step, lambda: old)

    @cached_property
    def held_rows(self) -> Rows:
        columns = self._outcome.window_columns
        from_ms = self.observed_ms - self._how.retention_ms + 1
        return np.flatnonzero(self._kernel.stored & (columns.end_ms >= from_ms[columns.partition]))

    @property
    def cached_rows(self) -> Rows:
        return self._kernel.cached

    @property
    def _most_held(self) -> int:
        return self._kernel.most_held
