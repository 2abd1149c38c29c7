"""The record cache before a store of tumbling or hopping windows, over columns: what goes through it, and when.

A window that a record still counts in is always found, in the cache or behind it: it is no further behind than Kafka's
smallest retention. So the cache only decides when a value is written and sent, and how the store then stands to it.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from sessionkit.base.arrays import Flags, Longs, Rows
from sessionkit.base.compiled import compiled_loop
from sessionkit.base.decisions import LATE
from sessionkit.base.durations import INT64_MAX
from sessionkit.deployed.compiled.cache import CachedLife, all_commits, has_fixed_size, key_lengths
from sessionkit.deployed.compiled.chains import NOWHERE, Chain, append, take_out
from sessionkit.deployed.compiled.life import WindowLife
from sessionkit.deployed.compiled.sent import aggregates_at
from sessionkit.stores.cache.named_cache import ENTRY_BYTES
from sessionkit.stores.sizes import value_bytes
from sessionkit.trace.sent import NO_VALUE, UPDATE, Sent

_PLACE_BYTES = 8 + 8 + 4  # of an entry's key: its segment, the start of the window, and a number
_TIMESTAMP_BYTES = 8  # before the value


class _Cache(NamedTuple):
    """Its entries by last use, the dirty ones by last write, and of each window its bytes there and its last touch."""

    used: Chain
    dirty: Chain
    held: Longs  # bytes; -1: not in the cache
    touch: Longs  # by which it is dirty; -1: it is not
    most: Longs  # one number: the most bytes at once


@compiled_loop
def _flush(cache, own, at, written, written_at, count):  # type: ignore[no-untyped-def]
    """Writes the dirty entries of a partition in order of their last writes."""
    row = cache.dirty.first[own]
    while row != NOWHERE:
        written[count], written_at[count] = cache.touch[row], at
        count += 1
        cache.touch[row] = NOWHERE
        row = cache.dirty.behind[row]
    cache.dirty.first[own] = cache.dirty.last[own] = NOWHERE
    return count


@compiled_loop
def cache_touches(  # type: ignore[no-untyped-def]
    record, window, partition, size, commits, most, cache, written, written_at
):
    """Puts touches into the cache, one after the other; how many writes to the store follow from that.

    `record`, `window` and `size` (bytes of the entry) integers (n,) of each touch, `partition` of each window;
    `commits` int64 are the records after which all is written, and `most` is how many bytes fit. `written` and
    `written_at` int64 (n,) receive the touch whose value each write has, and the record at which it happens.

    Source: NamedCache, ThreadCache; see also `stores.cache.named_cache`.
    """
    count, total, following = 0, 0, 0
    for t in range(record.shape[0] + 1):
        is_last = t == record.shape[0]
        while following < commits.shape[0] and (is_last or commits[following] < record[t]):
            for own in range(cache.dirty.first.shape[0]):
                count = _flush(cache, own, commits[following], written, written_at, count)
            following += 1
        if is_last:
            break
        row = window[t]
        own = partition[row]
        if cache.held[row] >= 0:
            take_out(cache.used, own, row)
            total -= cache.held[row]
        if cache.touch[row] >= 0:
            take_out(cache.dirty, own, row)
        append(cache.used, own, row)
        append(cache.dirty, own, row)
        cache.held[row], cache.touch[row] = size[t], t
        total += size[t]
        cache.most[0] = max(cache.most[0], total)
        while total > most and cache.used.first[own] != NOWHERE:
            oldest = cache.used.first[own]
            take_out(cache.used, own, oldest)
            total -= cache.held[oldest]
            cache.held[oldest] = -1
            if cache.touch[oldest] >= 0:
                written[count], written_at[count] = cache.touch[oldest], record[t]
                take_out(cache.dirty, own, oldest)
                cache.touch[oldest] = NOWHERE
                count = _flush(cache, own, record[t], written, written_at, count + 1)
    return count


class CachedWindowLife(CachedLife, WindowLife):
    """Of tumbling and hopping windows behind a cache."""

    def __init__(self, *life: Any) -> None:
        super().__init__(*life)
        touches, columns, count = self._trace.touches, self._outcome.window_columns, len(self._trace)
        self._live = live = np.flatnonzero(touches.effect != LATE)
        partitions, size = len(self._before), len(columns.key)
        used, dirty = Chain.none(partitions, size), Chain.none(partitions, size)
        self._cache = _Cache(used, dirty, np.full(size, -1), np.full(size, NOWHERE), np.zeros(1, np.int64))
        written, written_at = np.empty((2, len(live)), np.int64)
        record, window = touches.record[live], touches.window[live]
        most = INT64_MAX if self.most is None else int(min(self.most, INT64_MAX))
        commits = all_commits(self._how, count)
        writes = cache_touches(
            record, window, columns.partition, self._sizes(), commits, most, self._cache, written, written_at
        )
        self._step, self._at = live[written[:writes]], written_at[:writes].copy()
        self._window = touches.window[self._step]

    def _sizes(self) -> Longs:
        """The bytes of the entry of each touch, where they are counted."""
        if self.most is None:
            return np.zeros(len(self._live), np.int64)
        outcome, window = self._outcome, self._trace.touches.window[self._live]
        if has_fixed_size(self._aggregations, outcome.batch):
            values: Any = 8
        else:
            values = [value_bytes(each) for each in aggregates_at(outcome, (self._live, window))[0]]
        bare = ENTRY_BYTES + _PLACE_BYTES + _TIMESTAMP_BYTES
        return bare + key_lengths(outcome.keys)[outcome.window_columns.key[window]] + np.asarray(values, np.int64)

    @cached_property
    def _stands(self) -> tuple[Flags, Longs]:
        """(whether the store takes each write, the step of the value that it shows in that place before)."""
        columns, steps = self._outcome.window_columns, self._step
        start_ms, own = columns.start_ms[self._window], columns.partition[self._window]
        before_ms, after_ms = np.empty((2, len(steps)), np.int64)
        for code, first_ms in enumerate(self._observed_before_ms.tolist()):
            mine = np.flatnonzero(own == code)
            observed_ms = np.maximum.accumulate(np.append(first_ms, start_ms[mine]))
            before_ms[mine], after_ms[mine] = observed_ms[:-1], observed_ms[1:]
        order = np.argsort(self._window, kind="stable")
        again = np.flatnonzero(np.diff(self._window[order]) == 0)
        old = np.full(len(steps), NO_VALUE)
        old[order[again + 1]] = steps[order[again]]
        old[start_ms <= before_ms - self._how.retention_ms] = NO_VALUE
        return start_ms >= self._held_from_ms(after_ms), old

    @property
    def refused(self) -> tuple[int, ...]:
        """The record of each write that the store refused."""
        taken, _ = self._stands
        return tuple(self._at[~taken].tolist())

    def sent(self) -> Sent:
        """Each value that was written, told by the last record of its partition until then."""
        columns, at = self._outcome.window_columns, self._last_records(self._at, self._window)
        what, bounds = np.full(len(at), UPDATE, np.uint8), (columns.start_ms, columns.end_ms)
        start_ms, end_ms = (each[self._window] for each in bounds)
        return Sent(what, at, self._window, start_ms, end_ms, self._trace.newest_ms[self._step], self._step, self._old)

    def _old(self) -> Longs:
        return self._stands[1]

    @cached_property
    def cached_rows(self) -> Rows:
        used, rows = self._cache.used, []
        behind = used.behind.tolist()
        for row in used.first.tolist():
            while row != NOWHERE:
                rows.append(row)
                row = behind[row]
        return np.array(rows, np.intp)

    @property
    def _most_held(self) -> int:
        return int(self._cache.most[0])
