"""Loads what a first job would wait for: the compiled loops, in each Python worker, before there are records."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator

import pyarrow as pa

from sessionkit.aggregations.built_ins import count, max, mean, min, sum
from sessionkit.plan import group_by_key
from sessionkit.windows.contract import WindowKind
from sessionkit.windows.hopping import TimeWindows
from sessionkit.windows.session import SessionWindows
from sessionkit.windows.sliding.windows import SlidingWindows

EACH_KIND = (
    SessionWindows(inactivity_gap_ms=5, grace_ms=9),
    TimeWindows(size_ms=5, grace_ms=9),
    TimeWindows(size_ms=5, advance_ms=2, grace_ms=9),
    SlidingWindows(time_difference_ms=5, grace_ms=9),
)
_AT_MS = [0, 4, 90, 8, 84, 1]  # one that is joined to another, and late ones
_RECORDS = {"partition": [0] * 6, "offset": range(6), "key": list("ababba"), "n": range(6), "x": [0.5] * 6}


def loaded(kinds: tuple[WindowKind, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Which worker this is, once it has the loops."""
    for _ in batches:
        pass
    load(kinds)
    yield pa.RecordBatch.from_pydict({"worker": [f"{platform.node()} {os.getpid()}"]})


def load(kinds: tuple[WindowKind, ...]) -> None:
    """Runs a few records through each kind, with results of either strategy."""
    at = pa.array([1_000 * ms for ms in _AT_MS], pa.timestamp("us", tz="UTC"))
    records = pa.table({**_RECORDS, "at": at})
    grouped = group_by_key("key", timestamp="at", partition="partition", offset="offset")
    named = {"count": count(), "sum": sum("n"), "most": max("n"), "least": min("x"), "mean": mean("x")}
    for windows in kinds:
        plan = grouped.windowed_by(windows).aggregate(**named)
        for run in (plan.run(records), plan.emit("on_window_close").run(records)):
            run.table(), run.changelog(), run.dropped()
