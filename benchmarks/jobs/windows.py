"""Tumbling, hopping and sliding windows, from a file to the table."""

from __future__ import annotations

from typing import Any

from benchmarks.jobs.sessions import Job
from benchmarks.settings import GAP_MS, GRACE, GRACE_MS, SLIDING_GRACE_MS


def _aggregated(windows: Any, emit: str = "on_window_update") -> Any:
    import sessionkit as sk

    grouped = sk.group_by_key("key", timestamp="ts", partition="partition").windowed_by(windows)
    return grouped.emit(emit).aggregate(count=sk.count(), total=sk.sum("value"))


def time(path: str, size: str, advance: str | None = None) -> Job:
    def call() -> Any:
        import sessionkit as sk

        windows = sk.TimeWindows(size=size, advance=advance, grace=GRACE)
        return _aggregated(windows).run(path, trace=False, frame="arrow").table()

    return call


def sliding(path: str, seconds: int) -> Job:
    """Final results."""

    def call() -> Any:
        import sessionkit as sk

        windows = sk.SlidingWindows(time_difference=f"{seconds}s", grace_ms=SLIDING_GRACE_MS)
        return _aggregated(windows, "on_window_close").run(path, trace=False, frame="arrow").table()

    return call


def deployed(path: str, *, is_audit: bool) -> Job:
    """The final results of suppress by Kafka's defaults: RocksDB, a cache of 10 MB, a commit every 30 s."""

    def call() -> Any:
        import sessionkit as sk

        grouped = sk.group_by_key("key", timestamp="ts", partition="partition")
        plan = grouped.windowed_by(sk.TimeWindows(size="10m", grace=GRACE)).count().suppress("until_window_closes")
        return _deployed(plan, path, is_audit=is_audit)

    return call


def deployed_sessions(path: str, *, is_audit: bool, emit: str) -> Job:
    """Sessions by Kafka's defaults: RocksDB; final results without a cache, updates behind one of 10 MB."""

    def call() -> Any:
        import sessionkit as sk

        grouped = sk.group_by_key("key", timestamp="ts", partition="partition")
        windows = sk.SessionWindows(inactivity_gap_ms=GAP_MS, grace_ms=GRACE_MS)
        return _deployed(grouped.windowed_by(windows).emit(emit).count(), path, is_audit=is_audit)

    return call


def restarted_sessions(path: str, *, every: int, store: str, kind: str) -> Job:
    """Final results of sessions, of an application that is started again after so many records each time."""

    def call() -> Any:
        import pyarrow.parquet as pq

        import sessionkit as sk

        grouped = sk.group_by_key("key", timestamp="ts", partition="partition")
        windows = sk.SessionWindows(inactivity_gap_ms=GAP_MS, grace_ms=GRACE_MS)
        count = pq.read_metadata(path).num_rows
        how = sk.Deployment(store=store, retention="1h", restarts=[(row, kind) for row in range(every, count, every)])
        plan = grouped.windowed_by(windows).emit("on_window_close").count()
        return plan.run(path, deployment=how, frame="arrow").changelog()

    return call


def deployed_sliding(path: str, *, seconds: int, is_audit: bool) -> Job:
    """Final results of sliding windows by Kafka's defaults: RocksDB, without a cache."""

    def call() -> Any:
        import sessionkit as sk

        grouped = sk.group_by_key("key", timestamp="ts", partition="partition")
        windows = sk.SlidingWindows(time_difference=f"{seconds}s", grace_ms=SLIDING_GRACE_MS)
        return _deployed(grouped.windowed_by(windows).emit("on_window_close").count(), path, is_audit=is_audit)

    return call


def _deployed(plan: Any, path: str, *, is_audit: bool) -> Any:
    import sessionkit as sk

    if is_audit:
        return len(sk.audit(plan, path).words())
    return plan.run(path, deployment=sk.Deployment(), frame="arrow").changelog()
