"""The record cache before a store of tumbling or hopping windows, over columns: what goes through it, and when.

A window that a record still counts in is always found, in the cache or behind it: it is no further behind than Kafka's
smallest retention. So the cache only decides when a value is written and sent, and how the store then stands to it.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from sessionkit.base.arrays import Flags, Longs, Rows
from sessionkit.base.compiled import compiled_loop
from sessionkit.base.decisions import LATE
from sessionkit.base.durations import INT64_MAX
from sessionkit.deployed.compiled.life import WindowLife
from sessionkit.deployed.compiled.sent import aggregates_at
from sessionkit.deployed.deployment import Life, commit_rows
from sessionkit.engine.commit import columns_at
from sessionkit.engine.outcome import Outcome
from sessionkit.records.keys import key_bytes
from sessionkit.stores.cache.named_cache import ENTRY_BYTES
from sessionkit.stores.cache.windows import CachingWindowStore
from sessionkit.stores.rows import as_stored
from sessionkit.stores.sizes import value_bytes
from sessionkit.trace.loops import grouped
from sessionkit.trace.sent import NO_VALUE, UPDATE, Sent
from sessionkit.windows.contract import WindowKind
from sessionkit.windows.hopping import TimeWindows

_PLACE_BYTES = 8 + 8 + 4  # of an entry's key: its segment, the start of the window, and a number
_TIMESTAMP_BYTES = 8  # before the value
_LONGS = ("count", "sum", "min", "max")  # of numbers: their aggregate is one, of eight bytes
NO_ROW = -1


class _Chain(NamedTuple):
    """Windows of each partition, one behind the other."""

    first: Longs
    last: Longs
    before: Longs
    behind: Longs

    @classmethod
    def none(cls, partitions: int, windows: int) -> _Chain:
        return cls(*(np.full(size, NO_ROW) for size in (partitions, partitions, windows, windows)))


class _Cache(NamedTuple):
    """Its entries by last use, the dirty ones by last write, and of each window its bytes there and its last touch."""

    used: _Chain
    dirty: _Chain
    held: Longs  # bytes; -1: not in the cache
    touch: Longs  # by which it is dirty; -1: it is not
    most: Longs  # one number: the most bytes at once


@compiled_loop
def _append(chain, own, row):  # type: ignore[no-untyped-def]
    chain.before[row], chain.behind[row] = chain.last[own], NO_ROW
    if chain.last[own] == NO_ROW:
        chain.first[own] = row
    else:
        chain.behind[chain.last[own]] = row
    chain.last[own] = row


@compiled_loop
def _take_out(chain, own, row):  # type: ignore[no-untyped-def]
    before, behind = chain.before[row], chain.behind[row]
    if before == NO_ROW:
        chain.first[own] = behind
    else:
        chain.behind[before] = behind
    if behind == NO_ROW:
        chain.last[own] = before
    else:
        chain.before[behind] = before


@compiled_loop
def _flush(cache, own, at, written, written_at, count):  # type: ignore[no-untyped-def]
    """Writes the dirty entries of a partition in order of their last writes."""
    row = cache.dirty.first[own]
    while row != NO_ROW:
        written[count], written_at[count] = cache.touch[row], at
        count += 1
        cache.touch[row] = NO_ROW
        row = cache.dirty.behind[row]
    cache.dirty.first[own] = cache.dirty.last[own] = NO_ROW
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
            _take_out(cache.used, own, row)
            total -= cache.held[row]
        if cache.touch[row] >= 0:
            _take_out(cache.dirty, own, row)
        _append(cache.used, own, row)
        _append(cache.dirty, own, row)
        cache.held[row], cache.touch[row] = size[t], t
        total += size[t]
        cache.most[0] = max(cache.most[0], total)
        while total > most and cache.used.first[own] != NO_ROW:
            oldest = cache.used.first[own]
            _take_out(cache.used, own, oldest)
            total -= cache.held[oldest]
            cache.held[oldest] = -1
            if cache.touch[oldest] >= 0:
                written[count], written_at[count] = cache.touch[oldest], record[t]
                _take_out(cache.dirty, own, oldest)
                cache.touch[oldest] = NO_ROW
                count = _flush(cache, own, record[t], written, written_at, count + 1)
    return count


def knows_cache(windows: WindowKind, how: Life) -> bool:
    """Whether the cache of this life can be played here: of updates of windows that no restart takes over."""
    return type(windows) is TimeWindows and how.emit == "on_window_update" and how.restart is None


class CachedLife(WindowLife):
    """Of tumbling and hopping windows behind a cache: a value is sent when it is written to the store."""

    def __init__(self, *life: Any) -> None:
        super().__init__(*life)
        touches, columns, count = self._trace.touches, self._outcome.window_columns, len(self._trace)
        self._live = live = np.flatnonzero(touches.effect != LATE)
        commits = np.append(commit_rows(self._how, count), np.arange(count)[-1:])  # and one at the end
        partitions, size = len(self._before), len(columns.key)
        used, dirty = _Chain.none(partitions, size), _Chain.none(partitions, size)
        self._cache = _Cache(used, dirty, np.full(size, -1), np.full(size, NO_ROW), np.zeros(1, np.int64))
        written, written_at = np.empty((2, len(live)), np.int64)
        record, window = touches.record[live], touches.window[live]
        most = INT64_MAX if self._most is None else int(min(self._most, INT64_MAX))
        writes = cache_touches(
            record, window, columns.partition, self._sizes(), commits, most, self._cache, written, written_at
        )
        self._step, self._at = live[written[:writes]], written_at[:writes].copy()
        self._window = touches.window[self._step]

    @property
    def _most(self) -> float | None:
        """The bytes that fit into the cache; None: any number, and they are not counted."""
        return None if self._how.caching is True else self._how.caching

    def _sizes(self) -> Longs:
        """The bytes of the entry of each touch, where they are counted."""
        if self._most is None:
            return np.zeros(len(self._live), np.int64)
        outcome, window = self._outcome, self._trace.touches.window[self._live]
        keys = np.array([len(key_bytes(key)) for key in outcome.keys.to_pylist()], np.int64)
        only = next(iter(self._aggregations.values()))
        if len(self._aggregations) == 1 and only.built_in in _LONGS and _is_number(outcome):
            values: Any = 8
        else:
            values = [value_bytes(each) for each in aggregates_at(outcome, (self._live, window))[0]]
        bare = ENTRY_BYTES + _PLACE_BYTES + _TIMESTAMP_BYTES
        return bare + keys[outcome.window_columns.key[window]] + np.asarray(values, np.int64)

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
        trace, columns = self._trace, self._outcome.window_columns
        at, own = np.empty(len(self._at), np.int64), columns.partition[self._window]
        first, rows = grouped(trace.batch.partition, len(self._before))
        for code in range(len(self._before)):
            mine = np.flatnonzero(own == code)
            of_partition = rows[first[code] : first[code + 1]]
            at[mine] = of_partition[np.searchsorted(of_partition, self._at[mine], "right") - 1]
        what, bounds = np.full(len(at), UPDATE, np.uint8), (columns.start_ms, columns.end_ms)
        start_ms, end_ms = (each[self._window] for each in bounds)
        return Sent(what, at, self._window, start_ms, end_ms, trace.newest_ms[self._step], self._step, self._old)

    def _old(self) -> Longs:
        return self._stands[1]

    @property
    def _seen_rows(self) -> Rows:
        return np.union1d(super()._seen_rows, np.flatnonzero(self._cache.held >= 0))

    def in_front_of(self, store: Any) -> CachingWindowStore:
        """The cache as it is at the end; its entries are made when somebody asks for them."""
        front = CachingWindowStore(store, None, self._most)
        front.take_over(int(self._cache.most[0]), partial(self._fill, front))
        return front

    def _fill(self, front: CachingWindowStore) -> None:
        columns, used = self._outcome.window_columns, self._cache.used
        behind = used.behind.tolist()
        for code, number in enumerate(self._before):
            rows, row = [], int(used.first[code])
            while row != NO_ROW:
                rows.append(row)
                row = behind[row]
            held = np.array(rows, np.int64)
            windows: Any = as_stored(columns_at(self._outcome, held, "windows", self._closed_before[held]))
            for _, window in windows:
                front.write(window, partition=number)
            mine = columns.start_ms[columns.partition == code]
            if len(mine):
                front.are_written(number, int(mine.max()))


def _is_number(outcome: Outcome) -> bool:
    kind = next(iter(outcome.folds.values())).results(np.empty(0, np.int64))
    if isinstance(kind, np.ndarray):
        return kind.dtype != object
    return pa.types.is_integer(kind.type) or pa.types.is_floating(kind.type)
