"""A deployment in words."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from sessionkit.base.durations import duration_ms, show_duration
from sessionkit.base.text import plural

if TYPE_CHECKING:
    from sessionkit.deployed.deployment import Deployment

DEFAULT = " (Kafka's default)"
_STORES = {"rocksdb": "RocksDB store", "memory": "store in memory"}


def in_words(how: Deployment) -> str:
    """The settings of a deployment, in a sentence."""
    kept = "the smallest retention allowed" if how.retention is None else f"a retention of {_shown(how.retention)}"
    store = _STORES.get(str(how.store), f"store of kind {how.store!r}")
    is_timed = how._emit_interval_ms or (how.commit_every is None and how.commit_interval is not None)
    clock = "stream time" if how.clock is None else f"the column {how.clock!r}"
    by = f", by {clock}" if is_timed else ""
    count = len(how.restarts)
    stops = f"; it is started again {'once' if count == 1 else plural(count, 'time')}" if count else ""
    return f"A {store} with {kept}, {cache_words(how)}, {commit_words(how)} and {finals_words(how)}{by}{stops}."


def _shown(length: Any) -> str:
    return show_duration(duration_ms(length, "a length"))


def cache_words(how: Deployment, defaults: Collection[str] = (), *, is_cached: bool = True) -> str:
    """The record cache of a deployment, in words; `defaults` are the settings that are said to be Kafka's own."""
    if how.caching is False:
        return "no cache"
    if not is_cached:
        return "no cache (Kafka turns it off for these windows on close)"
    if how.caching is True:
        return "a cache without a limit (Kafka's default is 10 MB)"
    return f"a cache of {how.caching}{DEFAULT if 'caching' in defaults else ''}"


def commit_words(how: Deployment, defaults: Collection[str] = ()) -> str:
    """When a deployment commits, in words."""
    every, interval = how.commit_every, how.commit_interval
    if every is None:
        if interval is None:
            return "one commit at the end"
        return f"a commit every {_shown(interval)}{DEFAULT if 'commit_interval' in defaults else ''}"
    if isinstance(every, int):
        return "a commit after each record" if every == 1 else f"a commit after every {every:,} records"
    return f"a commit after {plural(len(every), 'record')} that {'is' if len(every) == 1 else 'are'} given"


def finals_words(how: Deployment, defaults: Collection[str] = ()) -> str:
    """How often a deployment looks for final results, in words."""
    often = f"at most every {show_duration(how._emit_interval_ms)}" if how._emit_interval_ms else "at each record"
    return f"a check for final results {often}{DEFAULT if 'emit_interval' in defaults else ''}"
