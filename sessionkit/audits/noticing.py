"""Runs of an audit that notice what they depend on: under Kafka's rules, and under our own, and how full a cache is."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from sessionkit.audits.retentions import Losing, most_replays
from sessionkit.audits.settings import Settings
from sessionkit.audits.sides import WindowId, Windows, no_windows, windows_of
from sessionkit.base.arrays import Longs
from sessionkit.base.decisions import LATE
from sessionkit.deployed.compiled.stores import found_at_end
from sessionkit.deployed.deployment import Life
from sessionkit.deployed.independent_parts import Parts
from sessionkit.deployed.lives import FORGETTING, forgetting_store
from sessionkit.deployed.noticed import FOREVER_MS, Noticed
from sessionkit.plan import Plan
from sessionkit.records.batch import RecordBatch
from sessionkit.records.keys import key_bytes
from sessionkit.run import Run
from sessionkit.stores.cache.sessions import CachingStore
from sessionkit.stores.sizes import byte_count
from sessionkit.windows.contract import WindowKind

# how the processors look for final results, and by which of a window's bounds
READ_FINALS: Mapping[str, tuple[str, str]] = {
    "sessions": ("find_sessions_by_end", "end_ms"),
    "windows": ("fetch_all", "start_ms"),
}


MEASURED_FIRST = 2**19  # records: a cache that is full once is so early


def depends_on_retention(plan: Plan, settings: Settings) -> bool:
    """Whether a retention that Kafka allows can change results.

    It cannot change updates of tumbling and hopping windows before a restart: a window that still takes records is no
    further behind than the smallest. Where suppress counts bytes, the old values that a store shows count, too.
    """
    suppression = plan._suppression
    counts_bytes = suppression is not None and suppression.counts_bytes
    is_of_time = plan._complete_windows.advance_ms is not None
    is_on_update = plan._strategy == "on_window_update"
    return counts_bytes or len(settings.starts) > 1 or not (is_of_time and is_on_update)


def is_shadowed(plan: Plan, caching: bool | str) -> bool:
    """Whether a cache like this one, which is never emptied by a restart, answers every read of a processor.

    One without a limit holds all that was ever written. There is one read that sees the store behind it: Kafka goes
    through sliding windows backward, and overlooks there that one was deleted. Only a user's function can delete one.
    """
    deletes = any(not aggregation.parts for aggregation in dict(plan._aggregations).values())
    return caching is True and not (are_sliding(plan._complete_windows) and deletes)


def are_sliding(windows: WindowKind) -> bool:
    """Whether windows are cut where the records are, and none is found once it is closed."""
    return windows.advance_ms is None and not FORGETTING[windows.holds].finds_closed


def closed_after(expected: Run, last: Longs) -> Windows:
    """The final results that became so after the last look of their partition, which is at these records."""
    trace: Any = expected.trace
    closes = trace._closes_after(last)
    return windows_of(expected, closes.window, closes.start_ms, closes.end_ms)


def last_looks(lives: Iterable[Run]) -> Iterator[tuple[Run, Longs]]:
    """(life, the record of the last look for final results of each partition up to its end; -1: none came yet)."""
    last, start = np.empty(0, np.int64), 0
    for life in lives:
        done: Any = life.deployed
        last = last if len(last) else np.full(len(life._outcome.batch.partitions), -1)
        for look in done.looks if done.spans is None else ():
            last[look.partition] = start + look.at
        if done.spans is not None:
            first = done.spans.first
            some = np.flatnonzero(first[1:] > first[:-1])
            last[some] = start + done.spans.at[first[1:][some] - 1]
        start += done.committed_count
        yield life, last


def still_there(expected: Run, last: Longs, store: Any) -> Windows:
    """The final results that became so after these last looks, of which Kafka's store has the windows at the end."""
    windows, found = expected.plan._complete_windows, set[WindowId]()
    there = closed_after(expected, last)
    read, bound = READ_FINALS[windows.holds]
    times_ms = getattr(there, bound)
    for partition in np.unique(there.partition).tolist():
        of = times_ms[there.partition == partition]
        low_ms, high_ms = int(of.min()), int(of.max())
        left: Any = found_at_end(store, partition)
        if left is not None:
            left = left.take(np.flatnonzero((left.time_ms >= low_ms) & (left.time_ms <= high_ms)))
            ends_ms = windows.ends_ms(left.start_ms) if bound == "start_ms" else left.end_ms
            found.update(Windows(left.partition, left.key, left.start_ms, ends_ms).ids())
            continue
        for each in getattr(store, read)(low_ms, high_ms, partition=partition):
            end_ms = windows.last_instant_ms(each) + (0 if windows.inclusive_end else 1)
            found.add(WindowId(partition, each.key, each.window_start_ms, end_ms))
    return there.take(np.flatnonzero([id in found for id in there.ids()]))


def waiting_of(expected: Run, run: Run) -> Windows:
    """The same of a whole run."""
    assert run.deployed is not None, "it was deployed"
    *_, (_, last) = last_looks(run.deployed.lives)
    return still_there(expected, last, run._store)


class ByProcessor:
    """What an audit notices of runs that the processor plays, on a store that notes each answer."""

    def __init__(self, plan: Plan, batch: RecordBatch, settings: Settings, caching: bool | str) -> None:
        how, results = settings.deployment, plan.suppress(None)
        self._plan, self._results, self._batch, self._settings = plan, results, batch, settings
        is_restarted = len(settings.starts) > 1
        shadowed = settings.is_cached and not is_restarted and is_shadowed(plan, caching)
        self._waits = how._emit_interval_ms > 0 and plan._strategy == "on_window_close"
        # what lies in the buffer of suppress goes out with the results of other windows
        is_one = (settings.is_cached and not shadowed) or is_restarted or plan._suppression is not None
        self._part_of = Parts(plan._complete_windows, batch, is_one=is_one, waits=self._waits or is_restarted)
        self._part_of.skip_late(
            batch, lambda: results._run_batch(batch, retention_ms=FOREVER_MS - 1).trace.decision == LATE
        )
        lowest_ms = settings.default_retention_ms
        self._rules: Any = {"on_disk": how.store == "rocksdb", "is_shadowed": shadowed, "lowest_ms": lowest_ms}

    def take(self, run: Run) -> None:
        """Takes note of a run, which says nothing of others."""

    def few(self, _: int) -> None:
        """Any of the records can decide whether a retention loses nothing."""

    def most_replays(self) -> int:
        """How often a search may replay all records."""
        return most_replays(len(self._batch))

    def known(self, _: int) -> None:
        """What our own rules come to is not known before."""

    def store(self, retention_ms: int) -> Any:
        """The store of a run."""
        plan = self._plan
        return forgetting_store(
            plan._complete_windows, plan._strategy, retention_ms, part_of=self._part_of, **self._rules
        )

    def waiting(self, expected: Run, run: Run) -> Windows:
        """Final results that are still in Kafka's store as no look for them came before the records ended.

        Whether it has them depends on the retention, which it notices as of any other look.
        """
        return waiting_of(expected, run) if self._waits else no_windows(expected)

    def noticed(self, retention_ms: int, run: Run) -> Mapping[Hashable, Noticed]:
        """What the store of a run noticed, and what our own rules would; from now on reads only look."""
        played: Any = getattr(run._store, "store", run._store)  # behind its cache
        played.notices = False
        if played.finds_closed:
            self._notice_ours(max(retention_ms, self._settings.default_retention_ms + 1), played.noticed)
        found: dict[Hashable, Noticed] = played.noticed
        return found

    def _notice_ours(self, retention_ms: int, noticed: dict[Hashable, Noticed]) -> None:
        """Notes which closed sessions our own rules find, and would find with another retention.

        They find what Kafka's store in memory shows; so that store plays them, null as a value like any other.
        """
        plan, batch = self._results, self._batch
        if not len(plan._run_batch(batch, retention_ms=FOREVER_MS)._outcome.kept_trace.reopenings.at):
            return  # no record meets a closed session, however long they are kept
        windows, part_of = plan._complete_windows, self._part_of
        options: Any = {"lowest_ms": windows.retention_ms(None) + 1, "part_of": part_of}
        store = forgetting_store(windows, plan._strategy, retention_ms, on_disk=False, **options)
        plan._run_life(batch, store, Life(retention_ms=FOREVER_MS, emit="on_window_update", kafka=False))
        for part, each in store.noticed.items():
            noticed[part].add(each)

    def losing(self, wrong: Windows, noticed: Mapping[Hashable, Noticed], _: int) -> Losing:
        """The parts of the records of which these results are wrong, and on what that depended."""
        of = self._part_of.window
        parts = (of(id.partition, key_bytes(id.key), id.start_ms, id.end_ms) for id in wrong.ids())
        return tuple((part, noticed.get(part, Noticed())) for part in dict.fromkeys(parts))


# ---- whether a record cache that is limited in bytes ever is full: where it is not, it is one without a limit


def cache_in_effect(plan: Plan, batch: RecordBatch, settings: Settings) -> bool | str:
    """The cache as it works on these records: True where a limit in bytes is never reached.

    A cache without a limit answers every read, so that what it holds does not hang on the store behind it.
    """
    caching = settings.deployment.caching
    if not isinstance(caching, str) or len(settings.starts) > 1 or not is_shadowed(plan, True):
        return caching
    most = byte_count(caching, "caching")
    begin = [batch.take(np.arange(MEASURED_FIRST))] if len(batch) > MEASURED_FIRST else []
    return caching if any(_measured(plan, each) > most for each in (*begin, batch)) else True


def _measured(plan: Plan, batch: RecordBatch) -> int:
    """The most bytes that all entries weigh at once."""
    how = Life(retention_ms=FOREVER_MS, emit=plan._strategy, caching=math.inf)
    store = plan._run_life(batch, None, how)._store
    assert isinstance(store, CachingStore)
    return store.most_held
