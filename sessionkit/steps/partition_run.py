"""Runs a plan over one partition after another, a step at a time: what a task does with a stream of Arrow batches.

State goes from step to step as a store carries it from run to run, so where the steps are cut does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from sessionkit.engine.commit import alive, commit, findable
from sessionkit.engine.kernel_run import run_kernel
from sessionkit.engine.outcome import Outcome
from sessionkit.errors import BrokenTrace, problem
from sessionkit.records.batch import RecordBatch
from sessionkit.records.places import FROM_A_SOURCE, not_after
from sessionkit.steps.job import Job, fit
from sessionkit.steps.views import VIEWS
from sessionkit.stores.state.column_state import ColumnState

STEP_BYTES = 256 * 2**20  # wide values make a step smaller, not the task's memory larger
BATCH_RECORDS = 100_000  # rows in one Arrow batch of results


def run_job(job: Job, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The view's rows; `batches` hold whole partitions one after another, each in offset order."""
    done: set[int] = set()
    partition: PartitionRun | None = None
    named = (batch.rename_columns(list(job.columns)) for batch in batches)
    for number, table in cut(named, str(job.source.partition), job.step_records):
        if partition is None or number != partition.number:
            if partition is not None:
                yield from partition.finish()
                done.add(partition.number)
            if number in done:
                want = "this is a bug in sessionkit"
                raise BrokenTrace(problem("the records of a partition are not together", number, want))
            partition = PartitionRun(job, number)
        yield from partition.step(table)
    if partition is not None:
        yield from partition.finish()


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


class PartitionRun:
    """One partition of the task: its state, and the view that is made of it.

    Args:
        state: what earlier records of the partition left behind; none if it is not given.
    """

    def __init__(self, job: Job, number: int, state: ColumnState | None = None) -> None:
        self.number = number
        self._state = ColumnState(job.holds) if state is None else state
        self._job, self.view = job, VIEWS[job.view](job)
        self._last: RecordBatch | None = None

    def step(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        yield from self.take(self._job.read(table))

    def take(self, batch: RecordBatch) -> Iterator[pa.RecordBatch]:
        """Takes the next records in, which were read already."""
        job = self._job
        before, first = self._state.snapshot(self.number).position, int(batch.offset[0])
        if first <= before:
            raise not_after(self.number, first, before, want=FROM_A_SOURCE)
        outcome = self._run(batch, self._state)
        commit(outcome, self._state, job.windows, job.retention_ms)
        left = np.flatnonzero(alive(outcome) & ~findable(outcome, job.windows, job.retention_ms))
        self._last = batch
        yield from self._out(self.view.step(outcome, left))

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The end of the partition: what is still in the state goes out as it stands."""
        assert self._last is not None
        state = self._state
        everything = SimpleNamespace(snapshot=state.snapshot, load=state.load_all, commit=state.commit)
        outcome = self._run(self._last.slice(0, 0).replace(keys=self._last.keys[:0]), everything)
        yield from self._out(self.view.finish(outcome, np.flatnonzero(alive(outcome))))

    def _run(self, batch: RecordBatch, state: Any) -> Outcome:
        job, keep = self._job, self.view.needs_trace
        named = dict(job.aggregations) if self.view.needs_values else {}
        return run_kernel(job.windows, named, batch, retention_ms=job.retention_ms, store=state, keep_trace=keep)

    def _out(self, columns: Mapping[str, Any] | None) -> Iterator[pa.RecordBatch]:
        if columns is not None:
            yield from fit(columns, self._job.schema).to_batches(max_chunksize=BATCH_RECORDS)
