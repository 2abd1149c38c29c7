"""What each step of a run gives, by view: rows, or counters; and what the end of a partition adds."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from sessionkit.base.arrays import Longs, Rows, distinct
from sessionkit.base.decisions import AHEAD, BAD_TIME, LATE, NEGATIVE_TIME, NULL_KEY
from sessionkit.engine.commit import alive
from sessionkit.engine.outcome import Outcome
from sessionkit.steps.job import RECORD, Job, fit
from sessionkit.stores.contract import SessionColumns
from sessionkit.suppression.stage import Suppressor
from sessionkit.trace.trace import Trace
from sessionkit.views import tables
from sessionkit.views.dropped import dropped_table
from sessionkit.windows.contract import WindowKind

WHOLE = ("windows", "windows-open", "windows-closed")  # counters of what later steps go on with
ADDED_LATER = (*WHOLE, "records-dropped")  # counters that a state of an older version may lack


class View:
    """Rows made of each step. `left` are the windows that no later record can find; at the end, all that remain."""

    needs_trace, needs_values = True, False

    def __init__(self, job: Job) -> None:
        self._job = job

    @abstractmethod
    def step(self, outcome: Outcome, left: Rows) -> Mapping[str, Any] | None:
        """The rows of one step, None for none."""

    def finish(self, outcome: Outcome, left: Rows) -> Mapping[str, Any] | None:
        """The rows that follow when the partition has no more records; usually none."""
        return None


class TableView(View):
    """Each window once, when it leaves the state."""

    needs_trace, needs_values = False, True

    def step(self, outcome: Outcome, left: Rows) -> Mapping[str, Any] | None:
        return tables.window_table(outcome, left[outcome.is_result[left]])

    finish = step


class ChangelogView(View):
    """Results that go downstream, in order."""

    needs_values = True

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        waits = job.suppression
        self.stage = None if waits is None else Suppressor(waits, job.windows, dict(job.aggregations))

    def step(self, outcome: Outcome, left: Rows) -> Mapping[str, Any] | None:
        return self.sent(outcome)

    def sent(self, outcome: Outcome) -> Mapping[str, Any]:
        """The results of a step that go downstream: with suppress those that its buffer lets go."""
        job = self._job
        if job.suppression is not None and job.suppression.counts_bytes:
            sent = tables.weighed_updates(outcome, dict(job.aggregations))
        else:
            sent = tables.changelog(outcome, job.strategy)
        return sent if self.stage is None else self.stage.step(sent)


class TraceView(View):
    """What `rows` makes of each step's trace and of the windows of the plan."""

    def __init__(self, job: Job, *, rows: Callable[[Any, WindowKind], pa.Table]) -> None:
        super().__init__(job)
        self._rows = rows

    def step(self, outcome: Outcome, left: Rows) -> Mapping[str, Any] | None:
        return columns_of(self._rows(trace_of(outcome), self._job.windows))


class WindowsView(View):
    """The trace's windows: each once, when it is absorbed or leaves the state. Its parents are carried."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._into, self._absorbed = np.empty(0, np.int64), np.empty(0, np.int64)

    def step(self, outcome: Outcome, left: Rows) -> Mapping[str, Any] | None:
        trace = trace_of(outcome)
        opened_by, merges = trace.window_columns.opened_by, trace.merges
        self._into = np.concatenate([self._into, opened_by[merges.into]])
        self._absorbed = np.concatenate([self._absorbed, opened_by[merges.absorbed]])
        rows = distinct(np.append(left, np.flatnonzero(~alive(outcome))))
        columns = columns_of(trace.windows(rows))
        return columns if "parents" not in columns else {**columns, "parents": self._take_parents(opened_by[rows])}

    finish = step

    def _take_parents(self, ids: Longs) -> pa.Array:
        order = np.argsort(self._into, kind="stable")
        into, absorbed = self._into[order], self._absorbed[order]
        first, behind = np.searchsorted(into, ids, "left"), np.searchsorted(into, ids, "right")
        ends = np.cumsum(behind - first)
        places = np.arange(ends[-1] if len(ends) else 0) + np.repeat(behind - ends, behind - first)
        waiting = np.isin(self._into, ids, invert=True)
        self._into, self._absorbed = self._into[waiting], self._absorbed[waiting]
        return pa.ListArray.from_arrays(pa.array(np.append(0, ends), pa.int32()), pa.array(absorbed[places]))


class EventsView(ChangelogView):
    """Results that go downstream and dropped records, together, in order of the records."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.counts: Counter[str] = Counter()

    def step(self, outcome: Outcome, left: Rows) -> Mapping[str, Any] | None:
        self.counts.update({**counts_of(outcome, self._job), **windows_change(outcome, self._job.windows)})
        sent = self._fitted(self.sent(outcome))
        dropped = dropped_table(trace_of(outcome), self._job.windows, missing_grace=False)
        if not dropped.num_rows:
            return columns_of(sent)
        what = pa.array(["dropped"] * len(dropped), pa.string())
        carried = _records_of(outcome, dropped)
        events = pa.concat_tables([sent, self._fitted({**columns_of(dropped), **carried, "what": what})])
        order = np.argsort(events["offset"].to_numpy(), kind="stable")
        return columns_of(events.take(pa.array(order)))

    def _fitted(self, columns: Mapping[str, Any]) -> pa.Table:
        size = len(columns["offset"])
        missing = {field.name: pa.nulls(size, field.type) for field in self._job.schema if field.name not in columns}
        return fit({**columns, **missing}, self._job.schema)


class MetricsView(View):
    """The counters of `Run.metrics()` of each partition, as name and number, to be added up."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.needs_trace = job.strategy == "on_window_close"
        self._counts: Counter[str] = Counter()

    def step(self, outcome: Outcome, left: Rows) -> Mapping[str, Any] | None:
        self._counts.update(counts_of(outcome, self._job))
        self._count_windows(outcome, left)
        return None

    def finish(self, outcome: Outcome, left: Rows) -> Mapping[str, Any] | None:
        self._count_windows(outcome, left)
        partition = np.full(len(self._counts), outcome.batch.partitions[0])
        return {"partition": partition, "name": list(self._counts), "count": list(self._counts.values())}

    def _count_windows(self, outcome: Outcome, left: Rows) -> None:
        left = left[outcome.is_result[left]]
        closed = int(outcome.closed[left].sum())
        self._counts.update({"windows": len(left), "windows-closed": closed, "windows-open": len(left) - closed})


class CountsView(MetricsView):
    """What a replay of the records comes to (`advice.replay.Counts`), as name and number, to be added up."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.needs_trace = False

    def step(self, outcome: Outcome, left: Rows) -> Mapping[str, Any] | None:
        unusable = sum(outcome.dropped.get(code, 0) for code in (NULL_KEY, BAD_TIME, NEGATIVE_TIME, AHEAD))
        records = sum(outcome.dropped.values()) - unusable
        late, merges = outcome.dropped.get(LATE, 0), outcome.merge_count
        self._counts.update({"records": records, "late": late, "merges": merges})
        self._count_windows(outcome, left)
        return None


VIEWS: dict[str, Callable[[Job], View]] = {
    "table": TableView,
    "changelog": ChangelogView,
    "records": partial(TraceView, rows=lambda trace, _: trace.records()),
    "windows": WindowsView,
    "dropped": partial(TraceView, rows=partial(dropped_table, missing_grace=False)),
    "touched": partial(TraceView, rows=lambda trace, _: trace.touched()),
    "events": EventsView,
    "metrics": MetricsView,
    "counts": CountsView,
}


def counts_of(outcome: Outcome, job: Job) -> dict[str, int]:
    """Counts that a step adds to `Run.metrics()`, but for those of windows: later steps go on with them."""
    finals = tables.final_count(outcome) if job.strategy == "on_window_close" else 0
    seen = tables.metrics(outcome, finals, 0, job.windows, job.source)
    return {name: count for name, count in seen.items() if name not in WHOLE}


def windows_change(outcome: Outcome, windows: WindowKind) -> dict[str, int]:
    """Counts that a step adds for windows: those that it left behind, less those that it found in its state.

    Windows that it did not load are as they were: whatever its clock closes it has loaded.
    """
    loaded, clock_ms = outcome.loaded, int(trace_of(outcome).first_stream_time_ms[0])
    if isinstance(loaded, SessionColumns):
        found, last_ms = np.ones(len(loaded.end_ms), np.bool_), loaded.end_ms
    else:
        end_ms = windows.ends_ms(loaded.start_ms)
        found = (loaded.timestamp_ms == end_ms) | (not outcome.trailing_only)
        last_ms = end_ms if windows.inclusive_end else end_ms - 1
    was_closed = found & (last_ms < clock_ms - windows.close_lag_ms)
    left = alive(outcome) & outcome.is_result
    count = int(left.sum()) - int(found.sum())
    closed = int((left & outcome.closed).sum()) - int(was_closed.sum())
    return {"windows": count, "windows-open": count - closed, "windows-closed": closed}


def trace_of(outcome: Outcome) -> Trace:
    """The trace of a run that was told to keep it."""
    assert outcome.kept_trace is not None
    return outcome.kept_trace


def _records_of(outcome: Outcome, dropped: pa.Table) -> dict[str, pa.Array]:
    """The column of the dropped records as they came, if the job carries it; offsets rise within a partition."""
    batch = outcome.batch
    if RECORD not in batch.values:
        return {}
    rows = np.searchsorted(batch.offset, dropped["offset"].to_numpy())
    return {RECORD: batch.values[RECORD].take(pa.array(rows))}  # type: ignore[union-attr]


def columns_of(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    """The table's columns by name."""
    return {name: table[name] for name in table.column_names}
