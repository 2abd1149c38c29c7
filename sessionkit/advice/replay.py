"""Runs a batch of records again under other windows, decisions only; and finds a grace that drops no record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from sessionkit.advice.pauses import Pauses, pauses_of
from sessionkit.base.decisions import LATE
from sessionkit.base.durations import enough_ms, show_duration, smallest_round_ms
from sessionkit.base.progress import progress
from sessionkit.base.text import plural
from sessionkit.engine.apart import Apart, latest_by_ms, sessions_apart
from sessionkit.engine.idle_partitions import with_idle_ticks
from sessionkit.engine.kernel_run import run_kernel
from sessionkit.engine.outcome import Outcome
from sessionkit.errors import InvalidArgument, problem
from sessionkit.plan import Plan
from sessionkit.records.batch import RecordBatch, is_spark_frame, read_records, without_null_values
from sessionkit.records.lateness.causes import Cause
from sessionkit.records.lateness.order import late_causes
from sessionkit.records.source import Source
from sessionkit.windows.contract import WindowKind


class Counts(NamedTuple):
    """What a replay came to; `late` records count in no window; `apart`: see `engine/apart.py`."""

    records: int
    late: int
    windows: int
    merges: int
    apart: int


class Replay:
    """Records that were read once, to be run under any number of windows; `spark/replay.py` has those of Spark.

    Example:
        >>> Replay.of(plan, monday).counts(plan.windows).records
        3
    """

    def __init__(self, batch: RecordBatch) -> None:
        self.batch, self.frame = batch, batch.frame
        # with null values, and without
        with_ticks = cache(lambda with_null: with_idle_ticks(batch if with_null else without_null_values(batch)))
        self._with_ticks, self._latest_by_ms = with_ticks, cache(lambda with_null: latest_by_ms(with_ticks(with_null)))

    @classmethod
    def of(cls, plan: Plan, data: Any) -> Replay:
        """Reads the records of a frame or a file.

        Raises:
            InvalidArgument: a Spark DataFrame, whose records are not here.
        """
        return Replay(read_records(data, plan.source, plan._value_columns()))

    @cached_property
    def usable(self) -> int:
        """How many records have a key and a time: the others are dropped under any windows."""
        return len(self.batch) if self.batch.rejected is None else int((self.batch.rejected == 0).sum())

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is to be said of how the records were read."""
        return self.batch.remarks

    def run(self, windows: WindowKind, *, keep_trace: bool = False) -> Outcome:
        """What these windows make of the records, without aggregations."""
        limits: Any = {"retention_ms": windows.retention_ms(None), "keep_trace": keep_trace}
        return run_kernel(windows, {}, self._with_ticks(windows.takes_null_values), **limits)

    @property
    def behind_ms(self) -> int:
        """No record is behind stream time by more, where `expect` is to be told; else 0."""
        return 0

    def expect(self, several: Iterable[WindowKind]) -> None:
        """Is told what `late` may be asked next, which Spark finds out in one job."""

    def late(self, windows: WindowKind) -> int:
        """How many records count in no window."""
        return self.run(windows).dropped.get(LATE, 0)

    def counts(self, windows: WindowKind) -> Counts:
        outcome = self.run(windows)
        late, apart = outcome.dropped.get(LATE, 0), self._apart(outcome, windows)
        return Counts(self.usable, late, outcome.result_count, outcome.merge_count, apart.sessions)

    def counts_of(self, several: Sequence[WindowKind]) -> list[Counts]:
        """The counts under each of these windows, which are of one kind."""
        counted = list[Counts]()
        with progress(f"sweeping {plural(len(several), 'cell')}", len(several)) as reached:
            for windows in several:
                reached(len(counted))
                counted.append(self.counts(windows))
        return counted

    def joined(self, plan: Plan) -> Apart:
        """The sessions that stay apart under this plan's grace, with a grace under which none does."""

        def under(grace_ms: int) -> Apart:
            return self.apart(plan.with_windows(grace_ms=grace_ms)._complete_windows)

        found = tried = under(plan._complete_windows.grace_ms)
        grace_ms = 0
        while tried.grace_ms is not None:  # more grace keeps more records, and these may stay apart in their turn
            grace_ms = enough_ms(max(tried.grace_ms, 5 * grace_ms // 4))
            tried = under(grace_ms)
        return found._replace(grace_ms=grace_ms if found.sessions else None)

    def apart(self, windows: WindowKind) -> Apart:
        """The sessions that stay apart, with a grace that joins them."""
        return self._apart(self.run(windows, keep_trace=True), windows)

    def _apart(self, outcome: Outcome, windows: WindowKind) -> Apart:
        return sessions_apart(outcome, windows, partial(self._latest_by_ms, windows.takes_null_values))

    def pauses(self) -> Pauses:
        """The pauses between records of one key."""
        return pauses_of(self.batch)

    def causes(self, source: Source, lag_ms: int) -> list[Cause]:
        """Why so many records are behind stream time by more than this."""
        return late_causes(self.batch, source, lag_ms)

    def without(self, causes: list[Cause]) -> tuple[Replay, int]:
        """The records without those that the causes leave out, and how many these are."""
        rows = np.concatenate([cause.to_leave_out for cause in causes if cause.to_leave_out is not None])
        return Replay(self.batch.take(np.delete(np.arange(len(self.batch)), rows))), len(rows)


@contextmanager
def replay_of(plan: Plan, data: Any, what: str, *, many: bool = False) -> Iterator[Replay]:
    """The records of a frame or a file, here, or of a Spark DataFrame, where they are; `what` is to be done with them.

    `many`: there will be several jobs, for which Spark keeps the records meanwhile.
    """
    if not is_spark_frame(data):
        yield Replay.of(plan, data)
        return
    if getattr(data, "isStreaming", False):
        want = "read what the stream holds so far, with spark.read instead of spark.readStream"
        raise InvalidArgument(problem(f"{what} cannot run on a stream", "a streaming DataFrame", want))
    windows = plan._complete_windows
    plan = (plan if plan._aggregations else plan.count()).suppress(None)
    run = plan.emit("on_window_close" if windows.trailing_only else "on_window_update").run(data)
    with run._replay(many=many) as replay:
        yield replay


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


def order_lag_ms(plan: Plan) -> int:
    """How far behind stream time a record counts in `order_advice`: what these windows wait without a grace."""
    has_grace = plan.windows is not None and plan.windows.is_ever_closed
    return plan.with_windows(grace_ms=0)._complete_windows.close_lag_ms if has_grace else 0


def order_advice(plan: Plan, replay: Replay, grace_ms_of: Callable[[Replay], int] | None = None) -> list[str]:
    """Why so many records are behind stream time by more than these windows wait, and the grace without that.

    Args:
        plan: its grace does not matter; without windows, all records behind stream time count.
        grace_ms_of: the grace for other records, if it is to be said.
    Example:
        >>> order_advice(plan, Replay.of(plan, monday))
        []
    """
    lag_ms = order_lag_ms(plan)
    causes = replay.causes(plan.source, lag_ms)
    said = [cause.words(None, lag_ms) for cause in causes]
    left_out = [cause for cause in causes if cause.late and cause.to_leave_out is not None]
    if grace_ms_of is None:
        return said
    if any(cause.is_order for cause in causes):
        said.append("Sorted by time, no record is late, and a grace of 0 s is enough.")
    elif left_out:
        rest, count = replay.without(left_out)
        those = "that record" if count == 1 else "those records"
        said.append(f"Without {those}, a grace of {show_duration(enough_ms(grace_ms_of(rest)))} is enough.")
    return said
