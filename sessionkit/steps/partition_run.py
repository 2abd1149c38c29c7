"""Runs a plan a step at a time: over records of all partitions, or in a task over one partition after another.

State goes from step to step as a store carries it from run to run, so where the steps are cut does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby, pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from sessionkit.aggregations.contract import Aggregation
from sessionkit.base.arrays import Rows
from sessionkit.engine.commit import alive, commit, findable
from sessionkit.engine.kernel_run import run_kernel
from sessionkit.engine.outcome import Outcome
from sessionkit.errors import BrokenTrace, problem
from sessionkit.records.batch import RecordBatch
from sessionkit.steps.job import Job, fit
from sessionkit.steps.reading import STEP_BYTES, check_rising
from sessionkit.steps.summaries import SUMMARIES
from sessionkit.steps.views import VIEWS, View
from sessionkit.stores.contract import no_columns
from sessionkit.stores.state.column_state import ColumnState
from sessionkit.windows.contract import WindowKind

BATCH_RECORDS = 100_000  # rows in one Arrow batch of results


def run_job(job: Job, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The view's rows; `batches` hold whole partitions one after another, each in offset order."""
    done: set[int] = set()
    for number, tables in partitions(job, batches):
        if number in done:
            want = "this is a bug in sessionkit"
            raise BrokenTrace(problem("the records of a partition are not together", number, want))
        done.add(number)
        partition = PartitionRun(job, number)
        for table in tables:
            yield from partition.step(table)
        yield from partition.finish()


def partitions(job: Job, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, Iterator[pa.Table]]]:
    """(partition, tables of its records) of each partition, in offset order, with some records a table."""
    named = (batch.rename_columns(list(job.columns)) for batch in batches)
    steps = cut(named, str(job.source.partition), job.step_records)
    for number, tables in groupby(steps, key=lambda step: step[0]):
        yield int(number), (table for _, table in tables)


def cut(batches: Iterator[pa.RecordBatch], name: str, step_records: int) -> Iterator[tuple[int, pa.Table]]:
    """(partition, its next records): small batches joined, and cut where the partition changes."""
    pieces: list[pa.RecordBatch] = []
    number, count, size = -1, 0, 0
    for batch in batches:
        if not batch.num_rows:
            continue
        numbers = batch.column(name).to_numpy(zero_copy_only=False)
        cuts = [0, *(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist(), len(numbers)]
        for begin, end in pairwise(cuts):
            if pieces and (numbers[begin] != number or count >= step_records or size >= STEP_BYTES):
                yield number, pa.Table.from_batches(pieces)
                pieces, count, size = [], 0, 0
            piece = batch.slice(begin, end - begin)
            number = numbers[begin]
            pieces.append(piece)
            count += piece.num_rows
            size += piece.nbytes
    if pieces:
        yield number, pa.Table.from_batches(pieces)


class Steps:
    """Runs a plan over records, step after step; a step has records of any partitions, as they come.

    Args:
        state: what earlier records left behind; none if it is not given.
        read: the last offset of each partition, behind which all others are; those of the state if it is not given.
    """

    def __init__(
        self,
        windows: WindowKind,
        aggregations: Mapping[str, Aggregation],
        retention_ms: int,
        state: ColumnState | None = None,
        *,
        keep_trace: bool,
        read: Mapping[int, int] | None = None,
    ) -> None:
        self.state = ColumnState(windows.holds) if state is None else state
        done = {number: each.position for number, each in self.state.snapshots.items()}
        self._read = done if read is None else dict(read)
        self._windows, self._retention_ms = windows, retention_ms
        self._how: Any = {"retention_ms": retention_ms, "keep_trace": keep_trace}
        self._aggregations = aggregations

    def take(self, batch: RecordBatch) -> tuple[Outcome, Rows]:
        """The outcome of the next records, and the windows that no later one can find."""
        check_rising(batch, self._read)
        outcome = run_kernel(self._windows, self._aggregations, batch, store=self.state, **self._how)
        commit(outcome, self.state, self._windows, self._retention_ms)
        return outcome, np.flatnonzero(alive(outcome) & ~findable(outcome, self._windows, self._retention_ms))

    def finish(self, batch: RecordBatch) -> tuple[Outcome, Rows]:
        """The end of all partitions: the outcome of no more records, and the windows that are left.

        Those that were in the state before, and that no step looked at, are left out. `batch` has such records.
        """
        state, numbers = self.state, np.array(self.state.read_partitions, np.int64)
        held = state.touched()
        none = no_columns(self._windows.holds, batch.keys.type, self._aggregations)
        everything: Any = SimpleNamespace(snapshot=state.snapshot, load=lambda *_: none if held is None else held)
        nothing = batch.slice(0, 0).replace(keys=batch.keys[:0], partitions=numbers)
        outcome = run_kernel(self._windows, self._aggregations, nothing, store=everything, **self._how)
        return outcome, np.flatnonzero(alive(outcome))


def view_of(job: Job) -> View:
    """What the job makes of each step."""
    return {**VIEWS, **SUMMARIES}[job.view](job)


class PartitionRun:
    """One partition of the task: its state, and the view that is made of it.

    Args:
        state: what earlier records of the partition left behind; none if it is not given.
    """

    def __init__(self, job: Job, number: int, state: ColumnState | None = None) -> None:
        self.number = number
        self._job, self.view = job, view_of(job)
        named = dict(job.aggregations) if self.view.needs_values else {}
        self._steps = Steps(job.windows, named, job.retention_ms, state, keep_trace=self.view.needs_trace)
        self._last: RecordBatch | None = None

    def step(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        yield from self.take(self._job.read(table))

    def take(self, batch: RecordBatch) -> Iterator[pa.RecordBatch]:
        """Takes the next records in, which were read already."""
        self._last = batch
        yield from self._out(self.view.step(*self._steps.take(batch)))

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The end of the partition: what is still in the state goes out as it stands."""
        assert self._last is not None
        yield from self._out(self.view.finish(*self._steps.finish(self._last)))

    def _out(self, columns: Mapping[str, Any] | None) -> Iterator[pa.RecordBatch]:
        if columns is not None:
            yield from fit(columns, self._job.schema).to_batches(max_chunksize=BATCH_RECORDS)
