"""The record cache before a store of tumbling or hopping windows, over columns: what goes through it, and when.

A window that a record still counts in is always found, in the cache or behind it: it is no further behind than Kafka's
smallest retention. So the cache only decides when a value is written and sent, how the store then stands to it, and
which final results a look finds.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from sessionkit.base.arrays import Codes, Flags, Longs, Rows, order_by
from sessionkit.base.compiled import compiled_loop
from sessionkit.base.decisions import LATE
from sessionkit.base.durations import INT64_MAX
from sessionkit.deployed.compiled.cache import CachedLife, all_commits, has_fixed_size, most_in_loops
from sessionkit.deployed.compiled.chains import NOWHERE, Chain, append, move_behind, take_out
from sessionkit.deployed.compiled.sent import aggregates_at
from sessionkit.deployed.compiled.session_cache import AHEAD, ANSWER, FOUND, IS_KEPT, StructArray, take_note
from sessionkit.deployed.compiled.window_life import SlidingLife, WindowLife
from sessionkit.records.keys import key_lengths
from sessionkit.stores.cache.named_cache import ENTRY_BYTES
from sessionkit.stores.sizes import value_bytes
from sessionkit.stores.typed_bytes import BY_TIME
from sessionkit.trace.sent import LOADED, NO_VALUE, UPDATE, Sent

_PLACE_BYTES = 8 + 8 + 4  # of an entry's key: its segment, the start of the window, and a number
_TIMESTAMP_BYTES = 8  # before the value


class _Cache(NamedTuple):
    """Its entries by last use, the dirty ones by last write, and what cache and store have of each window."""

    used: Chain
    dirty: Chain
    held: Longs  # bytes of each window there; -1: it is not in the cache
    touch: Longs  # the last one of each window, by which it is dirty; -1: it is not
    start_ms: Longs
    stored: Flags  # windows that the store took
    found: Flags  # windows that a look found
    observed_ms: Longs  # by the store of each partition
    newest_ms: Longs  # the newest window that was put of each partition
    most_held: Longs  # one number: the most bytes at once
    answers: StructArray  # rows of `ANSWER`, of final results
    answered: Longs  # one number: how many there are


class _Rules(NamedTuple):
    """What fits into the cache, and how the store behind it forgets."""

    most: int  # bytes; INT64_MAX: all
    retention_ms: int
    lowest_ms: int  # the smallest retention that Kafka allows
    interval_ms: int  # of segments; 0 in memory
    boundary_ms: int  # 1: the store shows a window just `retention` behind


class _Writes(NamedTuple):
    """The writes to the store: the touch whose value each has, and the record at which it happens."""

    touch: Longs
    at: Longs
    number: Longs  # one: how many there are


class _Reads(NamedTuple):
    """The looks for final results, by record: each finds the windows at some places in order of start and key."""

    at: Longs
    partition: Codes
    begin: Longs
    end: Longs
    last: Longs  # the end of the places of its partition
    highest_ms: Longs
    ordered: Rows  # all windows by partition, start and key


@compiled_loop
def _write(cache, rules, writes, own, row, at):  # type: ignore[no-untyped-def]
    """Hands an entry on to the store, which takes what its retention, or on disk a live segment, has."""
    n, start = writes.number[0], cache.start_ms[row]
    writes.touch[n], writes.at[n] = cache.touch[row], at
    writes.number[0] = n + 1
    cache.touch[row] = NOWHERE
    observed = cache.observed_ms[own] = max(cache.observed_ms[own], start)
    first = observed - rules.retention_ms + 1
    if rules.interval_ms > 0:
        first = max(observed - rules.retention_ms, 0) // rules.interval_ms * rules.interval_ms
    cache.stored[row] = start >= first
    if observed - start > rules.lowest_ms and len(cache.answers):
        take_note(_next(cache), row, start, observed, at, IS_KEPT, cache.stored[row])


@compiled_loop
def _next(cache):  # type: ignore[no-untyped-def]
    cache.answered[0] += 1
    return cache.answers[cache.answered[0] - 1]


@compiled_loop
def _flush(cache, rules, writes, own, at):  # type: ignore[no-untyped-def]
    """Writes the dirty entries of a partition in order of their last writes."""
    row = cache.dirty.first[own]
    while row != NOWHERE:
        _write(cache, rules, writes, own, row, at)
        row = cache.dirty.behind[row]
    cache.dirty.first[own] = cache.dirty.last[own] = NOWHERE


@compiled_loop
def _look(cache, rules, reads, k):  # type: ignore[no-untyped-def]
    """Finds final results in the cache and behind it. On disk it goes one entry further, if that is in its segment."""
    own, ordered, is_limited = reads.partition[k], reads.ordered, rules.most < INT64_MAX
    observed = cache.observed_ms[own] - rules.boundary_ms
    for place in range(reads.begin[k], reads.end[k]):
        row = ordered[place]
        behind = observed - cache.start_ms[row]
        if cache.held[row] >= 0:
            cache.found[row] = True
            if is_limited:
                move_behind(cache.used, own, row, row)
        elif cache.stored[row]:
            cache.found[row] = behind < rules.retention_ms
            if behind >= rules.lowest_ms:
                take_note(_next(cache), row, cache.start_ms[row], observed, reads.at[k], FOUND, cache.found[row])
    if is_limited:
        highest = reads.highest_ms[k]
        for place in range(reads.end[k], reads.last[k]):
            row = ordered[place]
            start = cache.start_ms[row]
            if start > cache.newest_ms[own]:
                return
            if cache.held[row] >= 0:
                take_note(_next(cache), row, start, highest, reads.at[k], AHEAD, True)
                if start // rules.interval_ms == highest // rules.interval_ms:
                    move_behind(cache.used, own, row, row)
                return


@compiled_loop
def _until(record, cache, rules, reads, commits, done, writes):  # type: ignore[no-untyped-def]
    """Does the looks and commits that come before a record; `done` says how many of both have come."""
    while True:
        is_look = done[0] < reads.at.shape[0] and reads.at[done[0]] < record
        is_commit = done[1] < commits.shape[0] and commits[done[1]] < record
        if is_look and not (is_commit and commits[done[1]] < reads.at[done[0]]):
            _look(cache, rules, reads, done[0])
            done[0] += 1
        elif is_commit:
            for own in range(cache.observed_ms.shape[0]):
                _flush(cache, rules, writes, own, commits[done[1]])
            done[1] += 1
        else:
            return


@compiled_loop
def cache_touches(  # type: ignore[no-untyped-def]
    record, window, partition, size, reads, commits, done, rules, cache, writes
):
    """Puts touches into the cache, one after the other, with the looks and commits between them.

    `record`, `window` and `size` (bytes of the entry) integers (n,) of each touch, `partition` of each window;
    `commits` int64 are the records after which all is written.

    Source: CachingWindowStore, NamedCache, ThreadCache; see also `stores.cache.named_cache`.
    """
    total = 0
    for t in range(record.shape[0]):
        _until(record[t], cache, rules, reads, commits, done, writes)
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
        cache.newest_ms[own] = max(cache.newest_ms[own], cache.start_ms[row])
        total += size[t]
        cache.most_held[0] = max(cache.most_held[0], total)
        while total > rules.most and cache.used.first[own] != NOWHERE:
            oldest = cache.used.first[own]
            take_out(cache.used, own, oldest)
            total -= cache.held[oldest]
            cache.held[oldest] = -1
            if cache.touch[oldest] >= 0:
                take_out(cache.dirty, own, oldest)
                _write(cache, rules, writes, own, oldest, record[t])
                _flush(cache, rules, writes, own, record[t])
    _until(INT64_MAX, cache, rules, reads, commits, done, writes)


class CachedWindowLife(CachedLife, WindowLife):
    """Of tumbling and hopping windows behind a cache."""

    def __init__(self, *life: Any) -> None:
        super().__init__(*life)
        touches, columns, count = self._trace.touches, self._outcome.window_columns, len(self._trace)
        self._live = live = np.flatnonzero(touches.effect != LATE)
        partitions, size, reads = len(self._before), len(columns.key), self._reads
        room = 0 if self.spans is None else len(live) + size + len(reads.at)
        self._cache = _Cache(
            used=Chain.none(partitions, size),
            dirty=Chain.none(partitions, size),
            held=np.full(size, -1),
            touch=np.full(size, NOWHERE),
            start_ms=columns.start_ms,
            stored=np.arange(size) < columns.loaded_count,
            found=np.zeros(size, np.bool_),
            observed_ms=self._observed_before_ms.copy(),
            newest_ms=np.full(partitions, -1),
            most_held=np.zeros(1, np.int64),
            answers=np.empty(room, ANSWER),
            answered=np.zeros(1, np.int64),
        )
        rules = _Rules(
            most=most_in_loops(self._how),
            retention_ms=self._how.retention_ms,
            lowest_ms=self._windows.retention_ms(None),
            interval_ms=0 if self._segments is None else self._segments.interval_ms,
            boundary_ms=self._boundary_ms,
        )
        written, written_at = np.empty((2, len(live)), np.int64)
        writes = _Writes(written, written_at, np.zeros(1, np.int64))
        cache_touches(
            touches.record[live], touches.window[live], columns.partition, self._sizes(), reads,
            all_commits(self._how, count), np.zeros(2, np.int64), rules, self._cache, writes,
        )  # fmt: skip
        count = int(writes.number[0])
        self._step, self._at = live[written[:count]], written_at[:count].copy()
        self._window = touches.window[self._step]

    @property
    def _reads(self) -> _Reads:
        """The looks for final results, in the order of the records."""
        columns, looks = self._outcome.window_columns, self.spans
        none = np.empty(0, np.int64)
        if looks is None:
            return _Reads(none, none.astype(np.int32), none, none, none, none, none)
        rank = self._outcome.key_ranks[columns.key]
        ordered = order_by(columns.partition, columns.start_ms, rank)
        last = np.searchsorted(columns.partition[ordered], np.arange(len(self._before)), "right")
        own = np.repeat(np.arange(len(self._before), dtype=np.int32), np.diff(looks.first))
        begin, end = np.empty((2, len(own)), np.int64)
        for p, first in enumerate(np.append(0, last)[:-1].tolist()):
            mine, starts_ms = slice(looks.first[p], looks.first[p + 1]), columns.start_ms[ordered[first : last[p]]]
            begin[mine] = first + np.searchsorted(starts_ms, looks.lowest_ms[mine])
            end[mine] = first + np.searchsorted(starts_ms, looks.highest_ms[mine], "right")
        turn = np.argsort(looks.at, kind="stable")
        highest_ms = looks.highest_ms[turn]
        return _Reads(looks.at[turn], own[turn], begin[turn], end[turn], last[own][turn], highest_ms, ordered)

    def _sizes(self) -> Longs:
        """The bytes of the entry of each touch, where they are counted."""
        if self.most is None:
            return np.zeros(len(self._live), np.int64)
        outcome, window = self._outcome, self._trace.touches.window[self._live]
        if has_fixed_size(self._aggregations, outcome.batch):
            values: Any = 8
        else:
            values = [value_bytes(each) for each in aggregates_at(outcome, (self._live, window))[0]]
        is_by_time = self._segments is not None and self.spans is not None
        bare = ENTRY_BYTES + _PLACE_BYTES + len(BY_TIME) * is_by_time + _TIMESTAMP_BYTES
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
        old = np.where(self._window < columns.loaded_count, LOADED, NO_VALUE)
        old[order[again + 1]] = steps[order[again]]
        old[start_ms <= before_ms - self._how.retention_ms] = NO_VALUE
        return start_ms >= self._held_from_ms(after_ms), old

    @property
    def answers(self) -> Any:
        told = self._cache.answers[: self._cache.answered[0]]
        return told if self.spans is None else np.concatenate([told, self._answers_at_end])

    @property
    def _answers_at_end(self) -> StructArray:
        """Of the windows that became final after the last look of their partition."""
        columns, cache, (looks, _) = self._outcome.window_columns, self._cache, self._looks
        stream_ms = np.array([each.stream_time_ms for each in self._outcome.snapshots.values()], np.int64)
        final_ms = stream_ms - self._windows.close_lag_ms - int(self._windows.ends_ms(0))
        looked_ms = np.append(looks.highest_ms, -1)[np.where(np.diff(looks.first) > 0, looks.first[1:] - 1, -1)]
        start_ms, own, observed_ms = columns.start_ms, columns.partition, cache.observed_ms - self._boundary_ms
        is_asked = (start_ms > looked_ms[own]) & (start_ms <= final_ms[own]) & (cache.held < 0) & cache.stored
        rows = np.flatnonzero(is_asked & (observed_ms[own] - start_ms >= self._windows.retention_ms(None)))
        answers = np.zeros(len(rows), ANSWER)
        answers["row"], answers["time"], answers["observed"] = rows, start_ms[rows], observed_ms[own[rows]]
        answers["what"], answers["is_true"] = FOUND, answers["observed"] - answers["time"] < self._how.retention_ms
        return answers

    @property
    def refused(self) -> tuple[int, ...]:
        """The record of each write that the store refused."""
        taken, _ = self._stands
        return tuple(self._at[~taken].tolist())

    def sent(self) -> Sent:
        """Final results that looks found; else each value that was written, told by the last record before it."""
        if self.spans is not None:
            return super().sent()
        columns, at = self._outcome.window_columns, self._last_records(self._at, self._window)
        what, bounds = np.full(len(at), UPDATE, np.uint8), (columns.start_ms, columns.end_ms)
        start_ms, end_ms = (each[self._window] for each in bounds)
        return Sent(what, at, self._window, start_ms, end_ms, self._trace.newest_ms[self._step], self._step, self._old)

    def _old(self) -> Longs:
        return self._stands[1]

    @cached_property
    def cached_rows(self) -> Rows:
        return np.array(self._cache.used.rows(), np.intp)

    @property
    def _newest_put_ms(self) -> Longs:
        return self._cache.newest_ms

    @property
    def _most_held(self) -> int:
        return int(self._cache.most_held[0])

    @property
    def _found(self) -> tuple[Longs, Codes]:
        look, window = super()._found
        is_found = self._cache.found[window]
        return look[is_found], window[is_found]

    def _visible_from_ms(self) -> Longs:
        return np.zeros(len(self._looks[0].at), np.int64)  # the cache knows which are there


class CachedSlidingLife(CachedWindowLife, SlidingLife):
    """Of sliding windows behind a cache that is never full.

    Else a record reads windows while its own updates evict others: Kafka then goes on with what the store had of those.
    """

    @property
    def is_played(self) -> bool:
        return super().is_played and self._most_held <= most_in_loops(self._how)
