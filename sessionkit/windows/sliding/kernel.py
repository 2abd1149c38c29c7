"""Sliding windows over the records of a run: the compiled passes, put together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessionkit.base.compiled import announce_compiling
from sessionkit.trace.window_trace import Touches
from sessionkit.windows.feed import Decided, Feed
from sessionkit.windows.sliding.steps import run_slots
from sessionkit.windows.sliding.structure import SlidingStructure, sliding_structure
from sessionkit.windows.sliding.touches import sliding_touches


class SlidingKernel:
    """Kafka's sliding windows, slot by slot: about O(log n) a record, whatever the overlap."""

    def __init__(self, time_difference_ms: int, grace_ms: int) -> None:
        self._time_difference_ms, self._grace_ms = time_difference_ms, grace_ms

    def run(self, feed: Feed, folds: Mapping[str, Any]) -> Decided:
        """Decides every record and folds it into its windows."""
        announce_compiling(run_slots, "sliding windows")
        structure = self._structure(feed)
        for fold in folds.values():
            fold.feed_sliding(structure, lambda: sliding_touches(structure))
        columns = (structure.slot, structure.start_ms, structure.timestamp_ms, structure.opened_at)
        return Decided(*columns, int(structure.dropped.sum()))

    def touches(self, feed: Feed) -> Touches:
        """Every window that a record met, in Kafka's order; the windows are numbered as in `run`."""
        return sliding_touches(self._structure(feed))

    def _structure(self, feed: Feed) -> SlidingStructure:
        columns, loaded = feed.whole(), feed.loaded
        place = (loaded.slot, loaded.start_ms, loaded.timestamp_ms)
        arrays = (columns.slot, columns.timestamp_ms, columns.stream_time_ms)
        structure = sliding_structure(
            *arrays, feed.slots.count, *place, time_difference_ms=self._time_difference_ms, grace_ms=self._grace_ms
        )
        feed.decide(columns, structure.decision)
        return structure
