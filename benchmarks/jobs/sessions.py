"""Sessions, from a file or a frame that is in memory to the table of final results."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.settings import GAP, GAP_MS, GRACE, GRACE_MS

Job = Callable[[], Any]


def plan(gap: str = GAP, grace: str = GRACE, value: str = "sum", offset: str | None = None) -> Any:
    import sessionkit as sk

    windows = sk.SessionWindows(inactivity_gap=gap, grace=grace)
    grouped = sk.group_by_key("key", timestamp="ts", partition="partition", offset=offset).windowed_by(windows)
    return grouped.aggregate(count=sk.count(), total=VALUES[value]())


def _collected() -> Any:
    import sessionkit as sk

    return sk.collect("value")


def _in_python() -> Any:
    import sessionkit as sk

    return sk.aggregation(
        initializer=float, aggregator=lambda key, value, total: total + value, merger=_merged, value="value"
    )


def _merged(key: Any, one: float, other: float) -> float:
    return one + other


def _sum() -> Any:
    import sessionkit as sk

    return sk.sum("value")


VALUES = {"sum": _sum, "collect": _collected, "python": _in_python}


def finals(path: str, **options: Any) -> Job:
    """Final sessions alone: no decision is kept."""
    return lambda: plan(**options).run(path, trace=False, frame="arrow").table()


def finals_in_threads(path: str, threads: int) -> Job:
    """Final sessions, in so many threads, whatever the machine has."""
    os.environ["SESSIONKIT_THREADS"] = str(threads)
    return finals(path)


def written(path: str, count: int) -> Job:
    """The first so many files of a folder, in steps, to a folder beside it."""

    def call() -> int:
        import sessionkit as sk

        files = sorted(Path(path).iterdir())[:count]
        windows = sk.SessionWindows(inactivity_gap_ms=GAP_MS, grace_ms=GRACE_MS)
        visits = sk.group_by_key("key", timestamp="ts").windowed_by(windows)
        with tempfile.TemporaryDirectory(dir=Path(path).parent) as folder:
            named = visits.aggregate(count=sk.count(), total=sk.sum("value"))
            return named.write(files, table=Path(folder) / "sessions").rows["table"]

    return call


def with_trace(path: str) -> Job:
    """The decision on each record is kept."""
    return lambda: plan().run(path, frame="arrow").table()


def from_frame(path: str, frame: str, **options: Any) -> Job:
    """From a frame in memory: "pyarrow", "polars", or "pandas" with text objects, which repeat or are each its own."""
    from benchmarks.jobs.frames import FRAMES

    data = FRAMES[frame](path)
    return lambda: plan(**options).run(data, trace=False, frame="arrow").table()


def with_steps(rows: Any) -> Any:
    """The rows with a campaign and an event, drawn from a seed."""
    import numpy as np

    rng = np.random.default_rng(44)
    campaign, event = (rng.integers(0, count, len(rows), np.int8) for count in (3, 5))
    return rows.with_columns(campaign=campaign, event=event)


def sessionized(path: str, **rules: Any) -> Job:
    """Each row of a Polars frame with its session, which rules may cut; the rows stay in their order."""
    import polars as pl

    import sessionkit as sk

    rows = with_steps(pl.read_parquet(path)) if rules else pl.read_parquet(path)
    return lambda: sk.sessionize(rows, by="key", at="ts", gap=GAP, **rules)


def state(path: str, kind: str = "") -> Job:
    """The records in ten parts, one run after another over the state of a store; without one, a single run."""
    import pyarrow.parquet as pq

    import sessionkit as sk

    table = pq.read_table(path)
    size = len(table) // 10
    parts = [table.slice(number * size, size) for number in range(10)] if kind else [table]

    def call() -> int:
        kept = {"store": sk.open_store(kind, "benchmark")} if kind else {}
        return sum(len(plan(grace="12h").run(part, trace=False, frame="arrow", **kept).table()) for part in parts)

    return call
