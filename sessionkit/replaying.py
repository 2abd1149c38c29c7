"""The same records under other windows: decisions only, as fast as they come."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

from sessionkit.commit import alive
from sessionkit.decisions import LATE
from sessionkit.engine import Outcome, run_kernel
from sessionkit.plan import Plan
from sessionkit.processing import without_null_values
from sessionkit.records import RecordBatch, read_records
from sessionkit.views.tables import is_result
from sessionkit.window_engine import run_window_kernel
from sessionkit.windows.session import SessionWindows


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
        self._with_values: RecordBatch | None = None

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

    def run(self, windows: Any) -> Outcome:
        """What these windows make of the records, without a trace and without aggregations."""
        if isinstance(windows, SessionWindows):
            return run_kernel(windows, {}, self.batch, retention_ms=windows.retention_ms(None), keep_trace=False)
        return run_window_kernel(windows, {}, self._batch_for(windows), keep_trace=False)

    def counts(self, windows: Any) -> Counts:
        """What these windows come to."""
        outcome = self.run(windows)
        results = int((alive(outcome) & is_result(outcome)).sum())
        return Counts(self.usable, outcome.dropped.get(LATE, 0), results, outcome.merge_count)

    def _batch_for(self, windows: Any) -> RecordBatch:
        if windows.takes_null_values:
            return self.batch
        if self._with_values is None:
            self._with_values = without_null_values(self.batch)
        return self._with_values
