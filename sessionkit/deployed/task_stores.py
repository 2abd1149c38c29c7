"""The store of a task where a run was given none: it ends with the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessionkit.base.durations import as_duration
from sessionkit.deployed.forgetting import ForgettingSessions, ForgettingWindows
from sessionkit.deployed.independent_parts import Whole
from sessionkit.stores.contract import PlanStore
from sessionkit.stores.registry import DEFAULT_KIND, store_class
from sessionkit.windows.contract import WindowKind

FORGETTING: Mapping[str, type[ForgettingSessions | ForgettingWindows]] = {
    "sessions": ForgettingSessions,
    "windows": ForgettingWindows,
}


def memory_store(windows: WindowKind, retention_ms: int | None, kind: str = DEFAULT_KIND) -> PlanStore:
    """A store in memory, or of another kind that needs no more than the retention."""
    retention = None if retention_ms is None else as_duration(retention_ms)
    return store_class(kind, windows.holds)(retention=retention)


def task_store(kind: str, windows: WindowKind, emit: str, retention_ms: int) -> Any:
    """The store that Kafka would give a plan; RocksDB's rules are played in memory."""
    if kind != "rocksdb":
        return memory_store(windows, retention_ms, kind)
    store = forgetting_store(windows, emit, retention_ms, on_disk=True, lowest_ms=retention_ms)
    store.notices = False
    return store


def forgetting_store(
    windows: WindowKind, emit: str, retention_ms: int, *, part_of: Whole | None = None, **rules: Any
) -> ForgettingSessions | ForgettingWindows:
    """The store that Kafka would give a plan, played in memory; `rules` are those of its class."""
    kept: dict[str, Any] = {"retention_ms": retention_ms, "part_of": part_of or Whole(), "reach_ms": windows.reach_ms}
    return FORGETTING[windows.holds](time_ordered=emit == "on_window_close", **kept, **rules)
