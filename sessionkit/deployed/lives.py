"""The stores of a task, and its lives if it is started again: the clock of them all, and all that they did."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sessionkit.base.arrays import Longs, as_arrow, joined
from sessionkit.base.durations import as_duration
from sessionkit.deployed.changelog import Changelog
from sessionkit.deployed.compiled.sent import LazyRows
from sessionkit.deployed.deployment import Restart
from sessionkit.deployed.forgetting import ForgettingSessions, ForgettingStore, ForgettingWindows
from sessionkit.deployed.independent_parts import Whole
from sessionkit.deployed.processor_run import Deployed
from sessionkit.errors import InvalidArgument, problem
from sessionkit.records.batch import RecordBatch
from sessionkit.records.source import Source
from sessionkit.records.times import to_arrivals
from sessionkit.stores.contract import PlanStore
from sessionkit.stores.registry import DEFAULT_KIND, store_class
from sessionkit.windows.contract import WindowKind

if TYPE_CHECKING:
    from sessionkit.run import Run

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


def changelog_of(store: Any, restarts: Sequence[Restart], retention_ms: int) -> Changelog | None:
    """The changelog of a store that these restarts restore; None if its files have all that it needs."""
    is_on_disk = getattr(store, "is_persistent", False)
    if all(each.kind == "disk" and is_on_disk for each in restarts):
        return None
    held = {} if not is_on_disk or isinstance(store, ForgettingStore) else store._states
    held_ms = {partition: state.observed_time_ms for partition, state in held.items() if state.observed_time_ms >= 0}
    return Changelog(retention_ms, is_on_disk=is_on_disk, held_ms=held_ms)


LIFE = "life"


def clock_of(batch: RecordBatch, column: str | None, source: Source, first_ms: Longs) -> Longs:
    """The clock at each record: a column of times that was read with it, or else the stream time of its partition."""
    if column is not None:
        times = pa.chunked_array([as_arrow(batch.values[column])])
        return to_arrivals(times, column, source)
    return batch.own_stream_times_ms if (first_ms < 0).all() else batch.stream_times_ms(first_ms)


def one_after_another(parts: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> dict[str, Any]:
    """The columns of what each life sent as those of one table, with the number of the life in `LIFE`."""
    if LIFE in (*parts[0], *keys):
        raise InvalidArgument(problem("a column would appear twice beside the lives", f"{LIFE!r}", "another name"))
    lengths = [len(part["offset"]) for part in parts]
    return {**joined(*parts), LIFE: np.repeat(np.arange(len(parts)), lengths)}


def together(lives: Sequence[Run], restarts: Sequence[Restart]) -> Deployed:
    """All lives as one, by the rows of all records; the buffers are those of the last life."""
    did = [life.deployed for life in lives if life.deployed is not None]
    if not restarts:
        return dataclasses.replace(did[0], lives=tuple(lives))
    starts = np.cumsum([0, *(each.committed_count for each in did)]).tolist()
    pairs = [*zip(starts, did, strict=False)]
    return Deployed(
        forwarded=LazyRows(
            lambda: sum(len(one.forwarded) for one in did),
            lambda: [each._replace(at=start + each.at) for start, one in pairs for each in one.forwarded],
        ),
        refused=tuple(start + row for start, one in pairs for row in one.refused),
        looks=LazyRows(
            lambda: sum(len(one.looks) for one in did),
            lambda: [each._replace(at=start + each.at) for start, one in pairs for each in one.looks],
        ),
        clock_ms=None,
        buffers=did[-1].buffers,
        waiting=did[-1].waiting,
        seen_ms=did[-1].seen_ms,
        committed_count=starts[-1],
        lives=tuple(lives),
        restarts=restarts,
    )
