"""Runs of an audit that notice what they depend on: under Kafka's rules, and under our own, and how full a cache is."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping

import numpy as np

from sessionkit.audits.settings import Settings
from sessionkit.audits.verdicts import WindowId, Windows, windows_of
from sessionkit.deployed.deployment import Life
from sessionkit.deployed.forgetting import FOREVER_MS, Noticed
from sessionkit.deployed.independent_parts import Parts
from sessionkit.deployed.lives import FORGETTING, forgetting_store
from sessionkit.deployed.processor_run import Deployed
from sessionkit.plan import Plan
from sessionkit.records.batch import RecordBatch
from sessionkit.run import Run
from sessionkit.stores.cache.named_cache import ENTRY_BYTES
from sessionkit.stores.cache.sessions import CachingStore
from sessionkit.stores.contract import Store
from sessionkit.stores.sizes import byte_count

# how the processors look for final results, and by which of a window's bounds
READ_FINALS: Mapping[str, tuple[str, str]] = {
    "sessions": ("find_sessions_by_end", "end_ms"),
    "windows": ("fetch_all", "start_ms"),
}
PLACE_BYTES = 8 + 8 + 8  # of an entry's key: its segment and two times, or a time and a number
VALUE_BYTES = 8 + 48  # a timestamp and a number; a decimal as text is longest
NUMBERS = ("count", "sum")
ENTRIES = {"sessions": 2}  # a record: the new session, and the one that it replaces; of sliding windows any number


def depends_on_retention(plan: Plan, settings: Settings) -> bool:
    """Whether a retention that Kafka allows can change results.

    It cannot change updates of tumbling and hopping windows before a restart: a window that still takes records is no
    further behind than the smallest. Where suppress counts bytes, the old values that a store shows count, too.
    """
    suppression = plan._suppression
    counts_bytes = suppression is not None and suppression.most_bytes is not None
    is_of_time = plan._complete_windows.advance_ms is not None
    is_on_update = plan._strategy == "on_window_update"
    return counts_bytes or len(settings.starts) > 1 or not (is_of_time and is_on_update)


def is_shadowed(plan: Plan, caching: bool | str) -> bool:
    """Whether a cache like this one, which is never emptied by a restart, answers every read of a processor.

    One without a limit holds all that was ever written. There is one read that sees the store behind it: Kafka goes
    through sliding windows backward, and overlooks there that one was deleted. Only a user's function can delete one.
    """
    deletes = any(not aggregation.parts for aggregation in dict(plan._aggregations).values())
    windows = plan._complete_windows
    is_sliding = windows.advance_ms is None and not FORGETTING[windows.holds].finds_closed
    return caching is True and not (is_sliding and deletes)


def waiting_at_end(expected: Run, done: Deployed, store: Store) -> Windows:
    """Final results that are still in Kafka's store as no look for them came before the records ended.

    Whether it has them depends on the retention, which it notices as of any other look.
    """
    windows, trace = expected.plan._complete_windows, expected.trace
    last = np.full(len(trace.batch.partitions), -1, np.int64)  # the last look of each partition
    for look in done.looks:
        last[look.partition] = look.at
    closes = trace.closes
    rows = np.flatnonzero(closes.at > last[trace.batch.partition[closes.at]])
    there = windows_of(expected, closes.window[rows], closes.start_ms[rows], closes.end_ms[rows])
    ids = there.ids()
    read, bound = READ_FINALS[windows.holds]
    found = set()
    for partition in sorted({id.partition for id in ids}):
        times = [getattr(id, bound) for id in ids if id.partition == partition]
        for each in getattr(store, read)(min(times), max(times), partition=partition):
            end_ms = windows.last_instant_ms(each) + (0 if windows.inclusive_end else 1)
            found.add(WindowId(partition, each.key, each.window_start_ms, end_ms))
    return there.take(np.flatnonzero([id in found for id in ids]))


def notice_ours(
    plan: Plan, batch: RecordBatch, retention_ms: int, part_of: Parts, noticed: dict[Hashable, Noticed]
) -> None:
    """Notes which closed sessions our own rules find, and would find with another retention.

    They find what Kafka's store in memory shows; so that store plays them, null as a value like any other.
    """
    if not len(plan._run_batch(batch, retention_ms=FOREVER_MS)._outcome.kept_trace.reopenings.at):
        return  # no record meets a closed session, however long they are kept
    windows, options = plan._complete_windows, {"lowest_ms": plan._complete_windows.retention_ms(None) + 1}
    store = forgetting_store(windows, plan._strategy, retention_ms, on_disk=False, part_of=part_of, **options)
    plan._run_life(batch, store, Life(retention_ms=FOREVER_MS, emit="on_window_update", kafka=False))
    for part, each in store.noticed.items():
        noticed[part].more_than_ms = max(noticed[part].more_than_ms, each.more_than_ms)
        noticed[part].at_most_ms = min(noticed[part].at_most_ms, each.at_most_ms)


# ---- whether a record cache that is limited in bytes ever is full: where it is not, it is one without a limit


def cache_in_effect(plan: Plan, batch: RecordBatch, settings: Settings) -> bool | str:
    """The cache as it works on these records: True where a limit in bytes is never reached.

    A cache without a limit answers every read, so that what it holds does not hang on the store behind it.
    """
    caching = settings.deployment.caching
    if not isinstance(caching, str) or len(settings.starts) > 1 or not is_shadowed(plan, True):
        return caching
    limit = byte_count(caching, "caching")
    bound = _most_bytes(plan, batch)
    if bound is None or bound > limit:
        bound = _measured(plan, batch)
    return True if bound <= limit else caching


def _most_bytes(plan: Plan, batch: RecordBatch) -> int | None:
    """An upper bound for the bytes that the entries of all results weigh; None where that is not plain to see."""
    windows, named = plan._complete_windows, [aggregation for _, aggregation in plan._aggregations]
    entries = ENTRIES.get(windows.holds) if windows.advance_ms is None else -(-windows.ends_ms(0) // windows.advance_ms)
    if entries is None or len(named) > 1 or named[0].built_in not in NUMBERS:
        return None
    longest_key = max((len(str(key).encode()) for key in batch.keys.to_pylist()), default=0) + 8
    return len(batch) * int(entries) * (ENTRY_BYTES + PLACE_BYTES + VALUE_BYTES + longest_key)


def _measured(plan: Plan, batch: RecordBatch) -> int:
    how = Life(retention_ms=FOREVER_MS, emit=plan._strategy, caching=math.inf)
    store = plan._run_life(batch, None, how)._store
    assert isinstance(store, CachingStore)
    return store.most_held
