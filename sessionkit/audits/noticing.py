"""Runs of an audit that notice what they depend on: under Kafka's rules, and under our own."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import cast

import numpy as np
import numpy.typing as npt

from sessionkit.audits.forgetting import FOREVER_MS, ForgettingSessions, ForgettingWindows, Noticed
from sessionkit.audits.verdicts import WindowId, ids_of
from sessionkit.engine.deployment import Deployment, looks
from sessionkit.engine.independent_parts import Parts
from sessionkit.plan import Plan
from sessionkit.records.batch import RecordBatch
from sessionkit.run import Run
from sessionkit.stores.contract import Store

FORGETTING: Mapping[str, type[ForgettingSessions | ForgettingWindows]] = {
    "sessions": ForgettingSessions,
    "windows": ForgettingWindows,
}

# how the processors look for final results
READ_FINALS: Mapping[str, str] = {"sessions": "find_sessions_by_end", "windows": "fetch_all"}


def is_shadowed(plan: Plan, caching: bool | int) -> bool:
    """Whether a cache like this one, which is never emptied by a restart, answers every read of a processor.

    One without a limit holds all that was ever written. There is one read that sees the store behind it: Kafka goes
    through sliding windows backward, and overlooks there that one was deleted. Only a user's function can delete one.
    """
    deletes = any(not aggregation.parts for aggregation in dict(plan.aggregations).values())
    windows = plan.complete_windows
    return caching is True and (windows.holds == "sessions" or windows.advance_ms is not None or not deletes)


def audit_store(
    plan: Plan, retention_ms: int, lowest_ms: int, kind: str, part_of: Parts, *, is_shadowed: bool = False
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
        is_shadowed=is_shadowed,
    )


def waiting_at_end(expected: Run, how: Deployment, starts: Sequence[int], store: Store) -> frozenset[WindowId]:
    """The final results for which no look came any more before the records ended, though the store still has them.

    Whether it has them depends on the retention, which it notices as of any other look.
    """
    windows, trace = expected.plan.windows, expected.trace
    if not how.emit_interval_ms or how.emit != "on_window_close":
        return frozenset()
    closes, missed = trace.closes, _looks_missed(trace.batch, cast("Sequence[int]", how.wall_clock), how, starts)
    rows = missed[closes.at]
    ids = ids_of(expected, closes.window[rows], closes.start_ms[rows], closes.end_ms[rows])
    read, found = getattr(store, READ_FINALS[windows.holds]), set()
    for partition in sorted({id.partition for id in ids}):
        times = [id.end_ms if windows.holds == "sessions" else id.start_ms for id in ids if id.partition == partition]
        for each in read(min(times), max(times), partition=partition):
            end_ms = windows.last_instant_ms(each) + (0 if windows.inclusive_end else 1)
            found.add(WindowId(partition, each.key, each.window_start_ms, end_ms))
    return frozenset(ids & found)


def _looks_missed(
    batch: RecordBatch, clock_ms: Sequence[int], how: Deployment, starts: Sequence[int]
) -> npt.NDArray[np.bool_]:
    """For each record whether Kafka looks for final results neither at it nor at a later one of its partition."""
    missed = np.zeros(len(batch), np.bool_)
    for partition in range(len(batch.partitions)):
        mine = np.flatnonzero(batch.partition == partition)
        missed[mine] = mine > looks(mine, clock_ms, how.emit_interval_ms, starts).max(initial=-1)
    return missed


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
