"""Runs a batch of records again under other windows: decisions only, as fast as they come."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

from sessionkit.base.decisions import LATE
from sessionkit.engine.idle_partitions import with_idle_ticks
from sessionkit.engine.kernel_run import run_kernel
from sessionkit.engine.outcome import Outcome
from sessionkit.plan import Plan
from sessionkit.records.batch import RecordBatch, read_records, without_null_values
from sessionkit.windows.contract import WindowKind


class Counts(NamedTuple):
    """What a replay came to; `late` records count in no window."""

    records: int
    late: int
    windows: int
    merges: int


class Replay:
    """Records that were read once, to be run under any number of windows.

    Example:
        >>> Replay.of(plan, monday).counts(plan.windows).records
        3
    """

    def __init__(self, batch: RecordBatch) -> None:
        self.batch = batch
        self._batches: dict[bool, RecordBatch] = {}  # with null values, and without

    @classmethod
    def of(cls, plan: Plan, data: Any) -> Replay:
        """Reads the records of a frame or a file.

        Raises:
            InvalidArgument: a Spark DataFrame, whose records are not here.
        """
        return cls(read_records(data, plan.source, plan.value_columns()))

    @cached_property
    def usable(self) -> int:
        """How many records have a key and a time: the others are dropped under any windows."""
        return len(self.batch) if self.batch.rejected is None else int((self.batch.rejected == 0).sum())

    def run(self, windows: WindowKind) -> Outcome:
        """What these windows make of the records, without a trace and without aggregations."""
        limits: Any = {"retention_ms": windows.retention_ms(None), "keep_trace": False}
        return run_kernel(windows, {}, self._batch_for(windows), **limits)

    def counts(self, windows: WindowKind) -> Counts:
        """What these windows come to."""
        outcome = self.run(windows)
        return Counts(self.usable, outcome.dropped.get(LATE, 0), outcome.result_count, outcome.merge_count)

    def _batch_for(self, windows: WindowKind) -> RecordBatch:
        with_null = windows.takes_null_values
        if with_null not in self._batches:
            self._batches[with_null] = with_idle_ticks(self.batch if with_null else without_null_values(self.batch))
        return self._batches[with_null]
