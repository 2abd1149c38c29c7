"""Whether a record cache that is limited in bytes ever is full: where it is not, it is one without a limit."""

from __future__ import annotations

from sessionkit.audits.noticing import is_shadowed
from sessionkit.audits.settings import Settings
from sessionkit.deployed.deployment import Life
from sessionkit.deployed.forgetting import FOREVER_MS
from sessionkit.plan import Plan
from sessionkit.records.batch import RecordBatch
from sessionkit.stores.cache.named_cache import ENTRY_BYTES, Room
from sessionkit.stores.cache.sessions import CachingStore
from sessionkit.stores.sizes import byte_count

PLACE_BYTES = 8 + 8 + 8  # of an entry's key: its segment and two times, or a time and a number
VALUE_BYTES = 8 + 8  # a timestamp and a number
NUMBERS = ("count", "sum")
ENTRIES = {"sessions": 2}  # a record: the new session, and the one that it replaces; of sliding windows any number


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
    """More than the entries of all results can weigh; None where that is not plain to see."""
    windows, named = plan.complete_windows, [aggregation for _, aggregation in plan.aggregations]
    entries = ENTRIES.get(windows.holds) if windows.advance_ms is None else -(-windows.ends_ms(0) // windows.advance_ms)
    if entries is None or len(named) > 1 or named[0].built_in not in NUMBERS:
        return None
    longest_key = max((len(str(key).encode()) for key in batch.keys.to_pylist()), default=0) + 8
    return len(batch) * int(entries) * (ENTRY_BYTES + PLACE_BYTES + VALUE_BYTES + longest_key)


def _measured(plan: Plan, batch: RecordBatch) -> int:
    how = Life(retention_ms=FOREVER_MS, emit=plan.strategy, caching=Room(in_bytes=True))
    store = plan.run_life(batch, None, how).store
    assert isinstance(store, CachingStore)
    return store.most_held
