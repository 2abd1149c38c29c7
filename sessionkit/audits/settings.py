"""The deployment that an audit supposes: Kafka's own defaults, and what it was told instead of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sessionkit.deployed.deployment import Caching, commits_by
from sessionkit.deployed.restarts import checked_restarts
from sessionkit.errors import InvalidArgument, NotBuilt, problem
from sessionkit.plan import Plan
from sessionkit.records.batch import RecordBatch

StoreKind = Literal["memory", "rocksdb"]

# by default; StreamsConfig: DSL_STORE_SUPPLIERS_CLASS_CONFIG, COMMIT_INTERVAL_MS_CONFIG (at least once),
# InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_WINDOWED_AGGREGATION
KAFKA_STORE: StoreKind = "rocksdb"
KAFKA_COMMIT_INTERVAL_MS = 30_000
KAFKA_EMIT_INTERVAL_MS = 1_000
KAFKA_CACHE = "10MB"  # statestore.cache.max.bytes


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The deployment that is audited.

    Args:
        store, caching, emit_interval_ms: as `audit` was told, or as Kafka has them by default.
        retention_ms, default_retention_ms: how long windows are kept; how long Kafka keeps them by default.
        is_cached: whether there is a cache at all: emit-on-close turns it off for sessions and sliding windows.
        commit_every: the records between two commits, or the rows that end with one; None: the interval counts.
        commit_interval_ms: the time between two commits; None: one commit, at the end.
        wall_clock: what both intervals go by; None: stream time.
        starts: the first row of each life of the task.
    """

    store: StoreKind
    retention_ms: int
    default_retention_ms: int
    caching: Caching
    is_cached: bool
    commit_every: int | Sequence[int] | None
    commit_interval_ms: int | None
    emit_interval_ms: int
    wall_clock: Sequence[int] | None
    starts: Sequence[int]

    @property
    def clock(self) -> str:
        """What both intervals go by, in words."""
        return "stream time" if self.wall_clock is None else "wall clock"

    @property
    def defaults(self) -> frozenset[str]:
        """Which of its settings are as Kafka has them by default."""
        default = {
            "store": self.store == KAFKA_STORE,
            "caching": self.caching == KAFKA_CACHE,
            "retention": self.retention_ms == self.default_retention_ms,
            "commit_interval": self.commit_every is None and self.commit_interval_ms == KAFKA_COMMIT_INTERVAL_MS,
            "emit_interval": self.emit_interval_ms == KAFKA_EMIT_INTERVAL_MS,
        }
        return frozenset(name for name, is_default in default.items() if is_default)

    def commits_and_clock(
        self, plan: Plan, batch: RecordBatch
    ) -> tuple[int | Sequence[int] | None, Sequence[int] | None]:
        """(`commit_every` as a deployment takes it, the clock at each record; None where nothing goes by one)."""
        is_by_clock = self.is_cached and self.commit_every is None and self.commit_interval_ms is not None
        waits = self.emit_interval_ms > 0 and plan.strategy == "on_window_close"
        clock_ms = self.wall_clock
        if clock_ms is None and (is_by_clock or waits):
            clock_ms = plan.run_batch(batch).trace.stream_time_ms.tolist()
        if not is_by_clock or not clock_ms or self.commit_interval_ms is None:
            return self.commit_every, clock_ms
        ticks = _known(clock_ms) if self.wall_clock is None else clock_ms
        return commits_by(ticks, self.commit_interval_ms, self.starts), clock_ms


def _known(stream_time_ms: Sequence[int]) -> Sequence[int]:
    """Stream time of all partitions as one clock, which starts with the first record that has a time."""
    clock = np.maximum.accumulate(np.array(stream_time_ms, np.int64))
    known = clock[clock >= 0]
    ticks: list[int] = np.maximum(clock, known[0] if len(known) else 0).tolist()
    return ticks


def check_audited(plan: Plan, store: str, caching: object) -> None:
    """Refuses what has no audit, or one of its own.

    Raises:
        InvalidArgument: an unknown store, a cache without a unit, or a plan that is not complete, has suppress, or no
            counterpart in Kafka.
    """
    if store not in ("memory", "rocksdb"):
        raise InvalidArgument(problem("audit knows two kinds of store", repr(store), '"memory" or "rocksdb"'))
    if isinstance(caching, int) and not isinstance(caching, bool):
        want = f'bytes with their unit, such as "{caching} B" or "10MB"; True or False'
        raise InvalidArgument(problem("a cache needs a unit", f"caching={caching}", want))
    plan.check()
    if plan.suppression is not None:
        raise InvalidArgument(problem("suppress has an audit of its own", plan.suppression.code(), "sk.audit_suppress"))
    plan.check_rules("kafka")


def starts_of(restarts: object, count: int) -> list[int]:
    """The first row of each life of a task that is restarted after these of `count` rows.

    Raises:
        InvalidArgument: they are not rows of the records, rising.
        NotBuilt: one of another kind than "disk".
    """
    found = checked_restarts(restarts, count)
    for each in found:
        if each.kind != "disk":
            want = 'the row alone, or with "disk"; plan.run(data, rules="kafka", restarts=[…]) replays every kind'
            raise NotBuilt(problem("an audit starts an application again on the same disk", tuple(each), want))
    return [0, *(each.row + 1 for each in found)]
