"""An audit over restarts that kernels play: which retentions have the same effect on all records.

What a store shows only grows with its retention, and what it does with a record follows from that. So where two
retentions have the same effect on each record, all between them have it as well, and it is found out by bisection.
Segments that are kept longer than the retention are between a store without them and one that keeps all that long.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from sessionkit.audits.by_kernels import ByKernels
from sessionkit.audits.noticing import are_sliding, last_looks, still_there
from sessionkit.audits.retentions import most_replays
from sessionkit.audits.settings import Settings
from sessionkit.base.process import release_unused
from sessionkit.deployed.compiled.run import runs_compiled
from sessionkit.deployed.deployment import Life
from sessionkit.deployed.independent_parts import WHOLE
from sessionkit.deployed.lives import FORGETTING, task_store
from sessionkit.deployed.noticed import FOREVER_MS, Noticed
from sessionkit.engine.idle_partitions import with_idle_ticks
from sessionkit.plan import Plan
from sessionkit.records.batch import RecordBatch
from sessionkit.run import Run
from sessionkit.stores.segments import Segments

PLAYED_RECORDS = 200_000  # so many the processor replays in some seconds, and tells each retention exactly
PRECISION = 16  # an edge is found up to this part of a retention
RUNS_OF_EACH = 20  # that a retention takes whose neighbours are looked for
FEWEST = 3
SENT = ("offset", "partition", "window_start_ms", "window_end_ms")


def tells_effects(plan: Plan, batch: RecordBatch, settings: Settings, caching: bool | str) -> bool:
    """Whether kernels play this deployment, and what its store shows decides alone what it does with each record."""
    windows, named = plan._complete_windows, dict(plan._aggregations)
    if len(batch) <= PLAYED_RECORDS or are_sliding(windows):
        return False
    is_on_disk = settings.deployment.store == "rocksdb"
    if settings.is_cached and (FORGETTING[windows.holds].finds_closed or not is_on_disk or caching is not True):
        return False
    store = task_store(str(settings.deployment.store), windows, plan._strategy, settings.retention_ms)
    life = Life(retention_ms=settings.retention_ms, emit=plan._strategy, caching=caching is True)
    return runs_compiled(windows, named, with_idle_ticks(batch), store, life)


class ByEffects(ByKernels):
    """What an audit notices of runs of which kernels play each life."""

    def __init__(self, plan: Plan, batch: RecordBatch, settings: Settings, *, caching: bool | str) -> None:
        super().__init__(plan, batch, settings, caching=caching, depends=False)
        self._how = dataclasses.replace(settings.deployment, caching=caching, retention=None)
        self._found: dict[int, bytes] = {}
        self._known: list[Noticed] = []

    def most_replays(self) -> int:
        """How often a search may replay all records, and look for the neighbours of that retention."""
        return most_replays(RUNS_OF_EACH * len(self._batch), FEWEST)

    def noticed(self, retention_ms: int, run: Run) -> Mapping[Hashable, Noticed]:
        """The retentions around this one that have the same effect on each record, looked for when they are asked."""
        return _WhenAsked(lambda: {WHOLE: self._around(retention_ms)})

    def smallest_like(self, retention_ms: int) -> int:
        """The smallest retention that is known to have the same effect, with which the store holds the least."""
        return self._around(retention_ms).more_than_ms + 1

    def _around(self, retention_ms: int) -> Noticed:
        for known in self._known:
            if known.more_than_ms < retention_ms <= known.at_most_ms:
                return known
        found, here = Noticed(), self._effect(retention_ms)
        found.more_than_ms, found.at_most_ms = retention_ms - 1, retention_ms
        if self._effect(self._kept_ms(retention_ms)) == here:
            found.more_than_ms = self._lowest_like(here, retention_ms) - 1
            found.at_most_ms = self._highest_like(here, retention_ms)
        self._known.append(found)
        return found

    def _lowest_like(self, here: bytes, same_ms: int) -> int:
        other_ms = self._settings.default_retention_ms
        if self._effect(other_ms) == here:
            return other_ms
        while _more(other_ms) < same_ms and self._effect(_more(other_ms)) != here:
            other_ms = _more(other_ms)  # from below, where the store holds less
        same_ms = min(same_ms, _more(other_ms))
        return _edge(same_ms, other_ms, lambda ms: self._effect(ms) == here)

    def _highest_like(self, here: bytes, same_ms: int) -> int:
        if self._effect(FOREVER_MS) == here:
            return FOREVER_MS
        while self._effect(self._kept_ms(_more(same_ms))) == here:
            same_ms = _more(same_ms)
        return _edge(same_ms, _more(same_ms), lambda ms: self._effect(self._kept_ms(ms)) == here)

    def _kept_ms(self, retention_ms: int) -> int:
        """A retention that keeps, without segments, all that any up to this one keeps with them."""
        if not self._on_disk:
            return retention_ms
        return min(retention_ms + Segments.of_ms(retention_ms).interval_ms, FOREVER_MS)

    def _effect(self, retention_ms: int) -> bytes:
        """A digest of what is done with each record, by Kafka's rules without segments and by our own."""
        if retention_ms not in self._found:
            release_unused(len(self._batch))
            store = self.store(retention_ms)
            if self._on_disk:
                store.segments, store.segment_interval_ms = Segments(retention_ms, 1), 1
            digest = hashlib.blake2b()
            for so_far in last_looks(self._plan._lives_of(self._batch, self._how, store)):
                life, last = so_far
                _add(digest, life._outcome.kept_trace)
                if self._is_on_close or self._plan._suppression or self._caching:
                    sent = life._changelog_with(old_values=False)
                    _add_columns(digest, [sent[name] for name in SENT])
            expected = self._expected(retention_ms)
            if self._holds_sessions:
                _add(digest, expected._outcome.kept_trace)
            if self._is_on_close:
                there = still_there(expected, last, life._store)
                _add_columns(digest, (there.partition, there.key.indices, there.start_ms, there.end_ms))
            self._found[retention_ms] = digest.digest()
        return self._found[retention_ms]

    def _expected(self, retention_ms: int) -> Run:
        """What our own rules come to; of other windows than sessions that is the same with any retention."""
        if not self._holds_sessions:
            return self._everything
        kept_ms = max(self._settings.default_retention_ms, retention_ms - 1)
        return self._plan.suppress(None)._run_batch(self._batch, retention_ms=kept_ms)


def _more(retention_ms: int) -> int:
    return max(1, 2 * retention_ms)


def _edge(same_ms: int, other_ms: int, is_same: Callable[[int], bool]) -> int:
    """The retention that is farthest from `same_ms`, on the way to another one, and known to be the same."""
    while abs(other_ms - same_ms) > max(1, min(same_ms, other_ms) // PRECISION):
        middle_ms = (same_ms + other_ms) // 2
        if is_same(middle_ms):
            same_ms = middle_ms
        else:
            other_ms = middle_ms
    return same_ms


def _add(digest: Any, trace: Any) -> None:
    """Adds what was done with each record."""
    _add_columns(digest, dataclasses.replace(trace)._effects)  # a copy, which forgets what it works out for this


def _add_columns(digest: Any, columns: Iterable[Any]) -> None:
    for column in columns:
        digest.update(np.ascontiguousarray(column).data)


class _WhenAsked(Mapping[Hashable, Noticed]):
    """A mapping that is made when it is looked at."""

    def __init__(self, make: Callable[[], Mapping[Hashable, Noticed]]) -> None:
        self._make = make

    @cached_property
    def _made(self) -> Mapping[Hashable, Noticed]:
        return self._make()

    def __getitem__(self, part: Hashable) -> Noticed:
        return self._made[part]

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)
