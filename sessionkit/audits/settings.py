"""The deployment that an audit supposes, with what follows from it for a plan and its records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sessionkit.deployed.deployment import Deployment, checked_restarts
from sessionkit.errors import InvalidArgument, NotBuilt, problem
from sessionkit.plan import Plan
from sessionkit.windows.contract import has_cache


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The deployment that is audited.

    Args:
        retention_ms, default_retention_ms: how long windows are kept; how long Kafka keeps them by default.
        is_cached: whether there is a cache at all: emit-on-close turns it off for sessions and sliding windows.
        starts: the first row of each life of the task.
    """

    deployment: Deployment
    retention_ms: int
    default_retention_ms: int
    is_cached: bool
    starts: Sequence[int]

    @property
    def clock(self) -> str:
        """The clock of both intervals, in words."""
        return "stream time" if self.deployment.clock is None else "wall clock"

    @property
    def is_by_interval(self) -> bool:
        """Whether the time since the last one makes it commit."""
        how = self.deployment
        return how.commit_every is None and how.commit_interval is not None

    @property
    def defaults(self) -> frozenset[str]:
        """Names of the settings that are Kafka's defaults."""
        how, kafka = self.deployment, Deployment()
        default = {
            **{name: getattr(how, name) == getattr(kafka, name) for name in ("store", "caching", "emit_interval")},
            "retention": self.retention_ms == self.default_retention_ms,
            "commit_interval": self.is_by_interval and how.commit_interval == kafka.commit_interval,
        }
        return frozenset(name for name, is_default in default.items() if is_default)


def settings_of(plan: Plan, how: Deployment, count: int | None) -> Settings:
    """The settings for `count` records, or for any number."""
    windows = plan._complete_windows
    found = checked_restarts(how.restarts, count)
    for each in found:
        if each.kind != "disk":
            want = 'the row alone, or with "disk"; plan.run(data, deployment=…) replays every kind'
            raise NotBuilt(problem("an audit starts an application again on the same disk", tuple(each), want))
    return Settings(
        deployment=how,
        retention_ms=windows.retention_ms(how.retention),
        default_retention_ms=windows.retention_ms(None),
        is_cached=has_cache(windows, plan._strategy, how.caching),
        starts=[0, *(each.row + 1 for each in found)],
    )


def check_audited(plan: Plan, how: Deployment) -> None:
    """Refuses a plan or a deployment that has no audit."""
    plan._check()
    plan._check_deployed(how)
    if how.store not in ("memory", "rocksdb"):
        raise InvalidArgument(problem("audit knows two kinds of store", repr(how.store), '"memory" or "rocksdb"'))
