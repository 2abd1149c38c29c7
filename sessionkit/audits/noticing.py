"""Runs of an audit that notice what they depend on: under Kafka's rules, and under our own."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from sessionkit.audits.forgetting import FOREVER_MS, ForgettingSessions, ForgettingWindows, Noticed
from sessionkit.engine.deployment import Deployment
from sessionkit.engine.independent_parts import Parts
from sessionkit.plan import Plan
from sessionkit.records.batch import RecordBatch

FORGETTING: Mapping[str, type[ForgettingSessions | ForgettingWindows]] = {
    "sessions": ForgettingSessions,
    "windows": ForgettingWindows,
}

# how the processors look for final results
READ_FINALS: Mapping[str, str] = {"sessions": "find_sessions_by_end", "windows": "fetch_all"}


def audit_store(
    plan: Plan, retention_ms: int, lowest_ms: int, kind: str, part_of: Parts
) -> ForgettingSessions | ForgettingWindows:
    """The store that Kafka would give this plan, as an audit needs it."""
    windows = plan.complete_windows
    return FORGETTING[windows.holds](
        retention_ms=retention_ms,
        lowest_ms=lowest_ms,
        on_disk=kind == "rocksdb",
        time_ordered=plan.strategy == "on_window_close",
        part_of=part_of,
        reach_ms=windows.reach_ms,
    )


def notice_ours(
    plan: Plan, batch: RecordBatch, retention_ms: int, part_of: Parts, noticed: dict[Hashable, Noticed]
) -> None:
    """Notes which closed sessions our own rules find, and would find with another retention.

    They find what Kafka's store in memory shows; so that store plays them, null as a value like any other.
    """
    windows = plan.complete_windows
    store = audit_store(plan, retention_ms, windows.retention_ms(None) + 1, "memory", part_of)
    plan.run_deployed(batch, store, Deployment(retention_ms=FOREVER_MS, emit="on_window_update", kafka=False))
    for part, each in store.noticed.items():
        noticed[part].more_than_ms = max(noticed[part].more_than_ms, each.more_than_ms)
        noticed[part].at_most_ms = min(noticed[part].at_most_ms, each.at_most_ms)
