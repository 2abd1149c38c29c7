"""Runs a batch of records again under other windows, decisions only; and finds a grace that drops no record."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from sessionkit.base.decisions import LATE
from sessionkit.base.durations import enough_ms, show_duration, smallest_round_ms
from sessionkit.engine.apart import Apart, latest_by_ms, sessions_apart
from sessionkit.engine.idle_partitions import with_idle_ticks
from sessionkit.engine.kernel_run import run_kernel
from sessionkit.engine.outcome import Outcome
from sessionkit.plan import Plan
from sessionkit.records.batch import RecordBatch, read_records, without_null_values
from sessionkit.records.lateness.order import late_causes
from sessionkit.windows.contract import WindowKind


class Counts(NamedTuple):
    """What a replay came to; `late` records count in no window; `apart`: see `engine/apart.py`, None if not known."""

    records: int
    late: int
    windows: int
    merges: int
    apart: int | None = None


class Replay:
    """Records that were read once, to be run under any number of windows.

    Example:
        >>> Replay.of(plan, monday).counts(plan.windows).records
        3
    """

    def __init__(self, batch: RecordBatch) -> None:
        self.batch = batch
        # with null values, and without
        with_ticks = cache(lambda with_null: with_idle_ticks(batch if with_null else without_null_values(batch)))
        self._with_ticks, self._latest_by_ms = with_ticks, cache(lambda with_null: latest_by_ms(with_ticks(with_null)))

    @classmethod
    def of(cls, plan: Plan, data: Any) -> Replay:
        """Reads the records of a frame or a file.

        Raises:
            InvalidArgument: a Spark DataFrame, whose records are not here.
        """
        return cls(read_records(data, plan.source, plan._value_columns()))

    @cached_property
    def usable(self) -> int:
        """How many records have a key and a time: the others are dropped under any windows."""
        return len(self.batch) if self.batch.rejected is None else int((self.batch.rejected == 0).sum())

    def run(self, windows: WindowKind, *, keep_trace: bool = False) -> Outcome:
        """What these windows make of the records, without aggregations."""
        limits: Any = {"retention_ms": windows.retention_ms(None), "keep_trace": keep_trace}
        return run_kernel(windows, {}, self._with_ticks(windows.takes_null_values), **limits)

    def late(self, windows: WindowKind) -> int:
        """How many records count in no window."""
        return self.run(windows).dropped.get(LATE, 0)

    def counts(self, windows: WindowKind) -> Counts:
        outcome = self.run(windows)
        late, apart = outcome.dropped.get(LATE, 0), self._apart(outcome, windows)
        return Counts(self.usable, late, outcome.result_count, outcome.merge_count, apart.sessions)

    def joined(self, plan: Plan) -> Apart:
        """The sessions that stay apart under this plan's grace, with a grace under which none does."""

        def under(grace_ms: int) -> Apart:
            windows = plan.with_windows(grace_ms=grace_ms)._complete_windows
            return self._apart(self.run(windows, keep_trace=True), windows)

        found = tried = under(plan._complete_windows.grace_ms)
        grace_ms = 0
        while tried.grace_ms is not None:  # more grace keeps more records, and these may stay apart in their turn
            grace_ms = enough_ms(max(tried.grace_ms, 5 * grace_ms // 4))
            tried = under(grace_ms)
        return found._replace(grace_ms=grace_ms if found.sessions else None)

    def _apart(self, outcome: Outcome, windows: WindowKind) -> Apart:
        return sessions_apart(outcome, windows, partial(self._latest_by_ms, windows.takes_null_values))


def smallest_round_grace_ms(plan: Plan, data: Any) -> int:
    """The smallest of the round graces under which no record is late, found by replaying the records.

    Args:
        plan: a plan with windows; its grace does not matter.
        data: what `plan.run` takes, except Spark DataFrames, or a `Replay` of it.
    Example:
        >>> smallest_round_grace_ms(plan, monday)
        0
    """
    replay = data if isinstance(data, Replay) else Replay.of(plan, data)
    return smallest_round_ms(lambda ms: not replay.late(plan.with_windows(grace_ms=ms)._complete_windows))


def order_advice(plan: Plan, replay: Replay, grace_ms_of: Callable[[Replay], int] | None = None) -> list[str]:
    """Why so many records are behind stream time by more than these windows wait, and the grace without that.

    Args:
        plan: its grace does not matter; without windows, all records behind stream time count.
        grace_ms_of: the grace for other records, if it is to be said.
    Example:
        >>> order_advice(plan, Replay.of(plan, monday))
        []
    """
    has_grace = plan.windows is not None and plan.windows.is_ever_closed
    lag_ms = plan.with_windows(grace_ms=0)._complete_windows.close_lag_ms if has_grace else 0
    batch = replay.batch
    causes = late_causes(batch, plan.source, lag_ms)
    said = [cause.words(None, lag_ms) for cause in causes]
    left_out = [cause.to_leave_out for cause in causes if cause.late and cause.to_leave_out is not None]
    if grace_ms_of is None:
        return said
    if any(cause.is_order for cause in causes):
        said.append("Sorted by time, no record is late, and a grace of 0 s is enough.")
    elif left_out:
        rows = np.concatenate(left_out)
        rest = Replay(batch.take(np.delete(np.arange(len(batch)), rows)))
        those = "that record" if len(rows) == 1 else "those records"
        said.append(f"Without {those}, a grace of {show_duration(enough_ms(grace_ms_of(rest)))} is enough.")
    return said
