"""Runs a plan over one partition after another, a step at a time: what a task does with a stream of Arrow batches.

State goes from step to step as a store carries it from run to run, so where the steps are cut does not matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.aggregations import Aggregation, value_columns
from sessionkit.commit import alive, commit, commit_windows, findable, findable_windows
from sessionkit.decisions import TICK
from sessionkit.engine import Outcome, run_kernel
from sessionkit.errors import BrokenTrace, InvalidData, problem
from sessionkit.processing import without_null_values
from sessionkit.records import RecordBatch, read_records
from sessionkit.source import Source
from sessionkit.stores.columns import ColumnState
from sessionkit.typed import fit
from sessionkit.views import tables
from sessionkit.window_engine import run_window_kernel
from sessionkit.window_trace import WindowTrace
from sessionkit.windows.session import SessionWindows

STEP_RECORDS = 500_000  # fewer, and the fixed cost of a step shows; more, and it leaves the processor's cache
STEP_BYTES = 256 * 2**20  # wide values make a step smaller, not the task's memory larger
BATCH_RECORDS = 100_000  # rows in one Arrow batch of results
WHOLE = ("windows", "windows-open", "windows-closed")  # counters that only the end of a partition knows
Rows = npt.NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class Job:
    """What to do with the records, as a value that can travel to another process."""

    columns: tuple[str, ...]  # names of the columns, in the order in which they come
    source: Source
    windows: Any  # SessionWindows, TimeWindows or SlidingWindows
    aggregations: tuple[tuple[str, Aggregation], ...]
    strategy: str
    retention_ms: int
    view: str
    schema: pa.Schema
    step_records: int = STEP_RECORDS

    @property
    def holds(self) -> str:
        """What the state is of: "sessions", or "windows" of one length."""
        return "sessions" if isinstance(self.windows, SessionWindows) else "windows"

    @property
    def value_columns(self) -> tuple[str, ...]:
        """The columns that the aggregations read."""
        return value_columns(self.aggregations)

    def read(self, table: pa.Table) -> RecordBatch:
        """Some records, checked, with the reasons for which some count nowhere."""
        batch = read_records(table, self.source, self.value_columns)
        return batch if self.windows.takes_null_values else without_null_values(batch)

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The view's rows; `batches` hold whole partitions one after another, each in offset order."""
        done: set[int] = set()
        partition: PartitionRun | None = None
        named = (batch.rename_columns(list(self.columns)) for batch in batches)
        for number, table in cut(named, str(self.source.partition), self.step_records):
            if partition is None or number != partition.number:
                if partition is not None:
                    yield from partition.finish()
                    done.add(partition.number)
                if number in done:
                    raise BrokenTrace(
                        problem("the records of a partition are not together", number, "this is a bug in sessionkit")
                    )
                partition = PartitionRun(self, number)
            yield from partition.step(table)
        if partition is not None:
            yield from partition.finish()


def cut(batches: Iterator[pa.RecordBatch], name: str, step_records: int) -> Iterator[tuple[int, pa.Table]]:
    """(partition, its next records): small batches joined, and cut where the partition changes."""
    held: list[pa.RecordBatch] = []
    number, count, size = -1, 0, 0
    for batch in batches:
        if not batch.num_rows:
            continue
        numbers = batch.column(name).to_numpy(zero_copy_only=False)
        cuts = [0, *(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist(), len(numbers)]
        for begin, end in pairwise(cuts):
            if held and (numbers[begin] != number or count >= step_records or size >= STEP_BYTES):
                yield number, pa.Table.from_batches(held)
                held, count, size = [], 0, 0
            piece = batch.slice(begin, end - begin)
            number = numbers[begin]
            held.append(piece)
            count += piece.num_rows
            size += piece.nbytes
    if held:
        yield number, pa.Table.from_batches(held)


class PartitionRun:
    """One partition of the task: its state, and the view that is made of it.

    Args:
        state: what earlier records of the partition left behind; none if it is not given.
    """

    def __init__(self, job: Job, number: int, state: ColumnState | None = None) -> None:
        self.number = number
        self._of_sessions = job.holds == "sessions"
        self._state = ColumnState(job.holds) if state is None else state
        self._job, self.view = job, VIEWS[job.view](job)
        self._last: RecordBatch | None = None

    def step(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """Takes the next records in."""
        yield from self.take(self._job.read(table))

    def take(self, batch: RecordBatch) -> Iterator[pa.RecordBatch]:
        """The same with records that were read already."""
        job = self._job
        self._check_follows(batch)
        outcome = self._run(batch, self._state)
        if self._of_sessions:
            commit(outcome, self._state, job.windows, job.retention_ms)
            left = np.flatnonzero(alive(outcome) & ~findable(outcome, job.windows, job.retention_ms))
        else:
            commit_windows(outcome, self._state, job.windows)
            left = np.flatnonzero(~findable_windows(outcome, job.windows))
        self._last = batch
        yield from self._out(self.view.step(outcome, left))

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The end of the partition: what is still in the state goes out as it stands."""
        assert self._last is not None
        outcome = self._run(_none_of(self._last), _Everything(self._state))
        yield from self._out(self.view.finish(outcome, np.flatnonzero(alive(outcome))))

    def _run(self, batch: RecordBatch, state: ColumnState | _Everything) -> Outcome:
        job, keep = self._job, self.view.needs_trace
        named = dict(job.aggregations) if self.view.needs_values else {}
        if not self._of_sessions:
            return run_window_kernel(job.windows, named, batch, store=state, keep_trace=keep)
        return run_kernel(job.windows, named, batch, retention_ms=job.retention_ms, store=state, keep_trace=keep)

    def _check_follows(self, batch: RecordBatch) -> None:
        before, first = self._state.snapshot(self.number).position, int(batch.offset[0])
        if first <= before:
            where = f"partition {self.number}: offset {first} after {before}"
            raise InvalidData(problem("an offset is there twice", where, "remove the duplicate"))

    def _out(self, columns: Mapping[str, Any] | None) -> Iterator[pa.RecordBatch]:
        if columns is not None:
            yield from fit(columns, self._job.schema).to_batches(max_chunksize=BATCH_RECORDS)


class _Everything:
    """A state of which every session is wanted, whatever the records."""

    def __init__(self, state: ColumnState) -> None:
        self.snapshot, self.commit = state.snapshot, state.commit
        self._state = state

    def load(self, keys: pa.Array, before_ms: Mapping[int, int], names: tuple[str, ...]) -> Any:
        return self._state.load_all(keys, before_ms, names)


def _none_of(batch: RecordBatch) -> RecordBatch:
    """No records, but the partition and the columns of `batch`."""
    return RecordBatch(
        keys=batch.keys[:0],
        key=batch.key[:0],
        timestamp_ms=batch.timestamp_ms[:0],
        partition=batch.partition[:0],
        partitions=batch.partitions,
        given_offset=batch.offset[:0],
        values={name: column[:0] for name, column in batch.values.items()},
    )


# ---- views: what each step gives, and what the end of the partition adds


class View(Protocol):
    """Rows made of each step. `left` are the windows that no later record can find; at the end, all that remain."""

    needs_trace: bool
    needs_values: bool

    def step(self, outcome: Outcome, left: Rows) -> Mapping[str, Any] | None:
        """The rows of one step, None for none."""

    def finish(self, outcome: Outcome, left: Rows) -> Mapping[str, Any] | None:
        """The rows that follow when the partition has no more records."""


class TableView:
    """Each window once, when it leaves the state."""

    needs_trace, needs_values = False, True

    def __init__(self, job: Job) -> None:
        """Nothing is carried."""

    def step(self, outcome: Outcome, left: Rows) -> Mapping[str, Any] | None:
        return tables.window_table(outcome, left[tables.is_result(outcome)[left]])

    finish = step


class ChangelogView:
    """What goes downstream, in order."""

    needs_trace, needs_values = True, True

    def __init__(self, job: Job) -> None:
        self._strategy = job.strategy

    def step(self, outcome: Outcome, left: Rows) -> Mapping[str, Any] | None:
        return tables.changelog(outcome, self._strategy)

    def finish(self, outcome: Outcome, left: Rows) -> Mapping[str, Any] | None:
        return None


class RecordsView:
    """The trace's records."""

    needs_trace, needs_values = True, False

    def __init__(self, job: Job) -> None:
        """Nothing is carried."""

    def step(self, outcome: Outcome, left: Rows) -> Mapping[str, Any] | None:
        trace = trace_of(outcome)
        records = trace.records()
        ticks = trace.decision == TICK
        return columns_of(records.filter(pa.array(~ticks)) if ticks.any() else records)

    def finish(self, outcome: Outcome, left: Rows) -> Mapping[str, Any] | None:
        return None


class DroppedView(RecordsView):
    """The records that count in no window."""

    def step(self, outcome: Outcome, left: Rows) -> Mapping[str, Any] | None:
        return columns_of(dropped_of(outcome))


class TouchedView(RecordsView):
    """Each window of one length that a record met."""

    def step(self, outcome: Outcome, left: Rows) -> Mapping[str, Any] | None:
        return columns_of(trace_of(outcome).touched())


class WindowsView:
    """The trace's windows: each once, when it is absorbed or leaves the state. Its parents are carried."""

    needs_trace, needs_values = True, False

    def __init__(self, job: Job) -> None:
        self._into, self._absorbed = np.empty(0, np.int64), np.empty(0, np.int64)

    def step(self, outcome: Outcome, left: Rows) -> Mapping[str, Any] | None:
        trace = trace_of(outcome)
        if isinstance(trace, WindowTrace):
            return columns_of(trace.windows(left))
        opened_by, merges = trace.window_columns.opened_by, trace.merges
        self._into = np.concatenate([self._into, opened_by[merges.into]])
        self._absorbed = np.concatenate([self._absorbed, opened_by[merges.absorbed]])
        rows = np.union1d(left, np.flatnonzero(~alive(outcome)))
        return {**columns_of(trace.windows(rows)), "parents": self._take_parents(opened_by[rows])}

    finish = step

    def _take_parents(self, ids: npt.NDArray[np.int64]) -> pa.Array:
        order = np.argsort(self._into, kind="stable")
        into, absorbed = self._into[order], self._absorbed[order]
        first, behind = np.searchsorted(into, ids, "left"), np.searchsorted(into, ids, "right")
        ends = np.cumsum(behind - first)
        places = np.arange(ends[-1] if len(ends) else 0) + np.repeat(behind - ends, behind - first)
        waiting = np.isin(self._into, ids, invert=True)
        self._into, self._absorbed = self._into[waiting], self._absorbed[waiting]
        return pa.ListArray.from_arrays(pa.array(np.append(0, ends), pa.int32()), pa.array(absorbed[places]))


class EventsView:
    """What goes downstream and what was dropped, together, in order of the records."""

    needs_trace, needs_values = True, True

    def __init__(self, job: Job) -> None:
        self._job, self._strategy, self._schema = job, job.strategy, job.schema
        self.counts: Counter[str] = Counter()

    def step(self, outcome: Outcome, left: Rows) -> Mapping[str, Any] | None:
        self.counts.update(counts_of(outcome, self._job))
        sent, dropped = self._fitted(tables.changelog(outcome, self._strategy)), dropped_of(outcome)
        if not dropped.num_rows:
            return columns_of(sent)
        what = pa.array(["dropped"] * len(dropped), pa.string())
        events = pa.concat_tables([sent, self._fitted({**columns_of(dropped), "what": what})])
        order = np.argsort(events["offset"].to_numpy(), kind="stable")
        return columns_of(events.take(pa.array(order)))

    def finish(self, outcome: Outcome, left: Rows) -> Mapping[str, Any] | None:
        return None

    def _fitted(self, columns: Mapping[str, Any]) -> pa.Table:
        size = len(columns["offset"])
        missing = {field.name: pa.nulls(size, field.type) for field in self._schema if field.name not in columns}
        return fit({**columns, **missing}, self._schema)


class MetricsView:
    """The counters of `Run.metrics()`, as name and number; the partitions' numbers are to be added up."""

    needs_values = False

    def __init__(self, job: Job) -> None:
        self.needs_trace = job.strategy == "on_window_close"
        self._job = job
        self._counts: Counter[str] = Counter()

    def step(self, outcome: Outcome, left: Rows) -> Mapping[str, Any] | None:
        self._counts.update(counts_of(outcome, self._job))
        self._count_windows(outcome, left)
        return None

    def finish(self, outcome: Outcome, left: Rows) -> Mapping[str, Any] | None:
        self._count_windows(outcome, left)
        return {"name": list(self._counts), "count": list(self._counts.values())}

    def _count_windows(self, outcome: Outcome, left: Rows) -> None:
        left = left[tables.is_result(outcome)[left]]
        closed = int(outcome.closed[left].sum())
        self._counts.update({"windows": len(left), "windows-closed": closed, "windows-open": len(left) - closed})


VIEWS: dict[str, type[Any]] = {
    "table": TableView,
    "changelog": ChangelogView,
    "records": RecordsView,
    "windows": WindowsView,
    "dropped": DroppedView,
    "touched": TouchedView,
    "events": EventsView,
    "metrics": MetricsView,
}


def counts_of(outcome: Outcome, job: Job) -> dict[str, int]:
    """What a step adds to the counters of `Run.metrics()`; without its windows, as later steps go on with them."""
    finals = tables.final_count(outcome) if job.strategy == "on_window_close" else 0
    seen = tables.metrics(outcome, finals, 0, null_values=not job.windows.takes_null_values)
    return {name: count for name, count in seen.items() if name not in WHOLE}


def trace_of(outcome: Outcome) -> Any:
    """The trace, which this run was told to keep."""
    assert outcome.kept_trace is not None
    return outcome.kept_trace


def dropped_of(outcome: Outcome) -> pa.Table:
    """What counts in no window: records of sessions, or single windows that a record came too late for."""
    trace = trace_of(outcome)
    dropped = tables.dropped_touches(trace) if isinstance(trace, WindowTrace) else tables.dropped_records(trace)
    return dropped.filter(pc.is_valid(dropped["reason"]))  # a tick has none


def columns_of(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    """The table's columns by name."""
    return {name: table[name] for name in table.column_names}
