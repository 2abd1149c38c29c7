"""The engine inside Spark's state: one group a source partition, its windows as chunks in Spark's state store."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import starmap
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sessionkit.base.arrays import taken
from sessionkit.spark.worker.shared_files import SharedFiles
from sessionkit.spark.worker.shuffle import Packed, to_stream, unpacked
from sessionkit.spark.worker.spent import Spent
from sessionkit.steps.job import Job, fit
from sessionkit.steps.partition_run import BATCH_RECORDS, PartitionRun
from sessionkit.steps.views import ADDED_LATER, EventsView
from sessionkit.stores.binding import check_bound
from sessionkit.stores.contract import Snapshot
from sessionkit.stores.state.chunked_state import Chunk, ChunkedState
from sessionkit.suppression.kept import HOLDS, keep_buffer, read_buffer
from sessionkit.suppression.stage import Suppressor

if TYPE_CHECKING:
    import pandas as pd


def micro_batch(
    job: Job, frames: Iterable[pd.DataFrame], spent: Spent, kept: KeptState, kept_buffer: KeptState | None = None
) -> Iterator[tuple[Any, ...]]:
    """The records of one partition through the engine, over what was kept of it: (events, how far it came) a step."""
    assert job.source.offset is not None
    place = job.columns.index(job.source.offset)
    runs: list[Packed] = []
    for frame in frames:
        runs += [Packed(*row) for row in zip(*(frame[name] for name in Packed._fields), strict=True)]
    with spent.on("unpack_us"):
        records = unpacked(runs, place)
    partition = int(runs[0].partition)
    with spent.on("state_us"):
        state, before = kept.read(job.holds, partition)
    run = PartitionRun(job, partition, state)
    assert isinstance(run.view, EventsView)
    stage: Any = run.view.stage
    if kept_buffer is not None:
        buffer, most = kept_buffer.read(HOLDS, partition)
        read_buffer(stage, buffer, state.snapshot(partition).position)
    for first in range(0, records.num_rows, job.step_records):
        step = records.slice(first, job.step_records).rename_columns(list(job.columns))
        with spent.on("engine_us"):
            events = list(run.step(step))
        if kept_buffer is not None:
            keep_buffer(stage, buffer, state.snapshot(partition).position)
        counts = json.dumps(counted(before, run.view.counts))
        progress = (partition, *state.snapshot(partition).noted(), len(state), counts)
        yield to_stream(events) if events else b"", *progress
    kept.write(job.holds, state, progress)
    if kept_buffer is not None:
        most |= Counter({"most": stage.most_records, "bytes": stage.most_bytes})  # the larger one of each
        came = buffer.snapshot(partition).noted()
        kept_buffer.write(HOLDS, buffer, (partition, *came, len(buffer), json.dumps(most)))


def waiting(job: Job, heads: Mapping[int, Any], logs: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What waits in the buffers with these heads and chunks, numbered in the order in which it would go out."""
    for slot, log in (row for batch in logs for row in zip(*(column.to_pylist() for column in batch), strict=True)):
        partition, *came, count = heads[slot]
        chunks = starmap(Chunk, sorted((each["number"], each["rows"], each["gone"]) for each in log))
        state = ChunkedState.read(HOLDS, partition, chunks, Snapshot(*came), windows=count)
        assert job.suppression is not None
        stage = Suppressor(job.suppression, job.windows, dict(job.aggregations))
        read_buffer(stage, state, came[0])
        if stage.waiting is not None:
            stage.step(taken(stage.waiting.columns, np.empty(0, np.int64)))  # which puts them in order
            columns = {**stage.waiting.columns, job.schema.names[-1]: np.arange(count)}
            yield from fit(columns, job.schema).to_batches(max_chunksize=BATCH_RECORDS)


class KeptState:
    """A state of a partition between micro-batches.

    Decoded, its rows stand in a file in shared memory, named by a token that is part of the head: so any worker of
    the machine goes on from it, and a task that is tried again, or runs elsewhere, reads the chunks.
    """

    def __init__(self, head: Any, chunks: Any, bound: Mapping[str, str], files: SharedFiles) -> None:
        self._head, self._chunks, self._bound, self._files = head, chunks, bound, files

    def read(self, of: str, partition: int) -> tuple[ChunkedState, Counter[str]]:
        """The partition as the last committed micro-batch left it, and its counters."""
        head = self._head.get() if self._head.exists() else None
        if head is None:
            return ChunkedState(of, partition), Counter()
        _, position, stream_time_ms, close_time_ms, windows, counts, token, _, bound = head
        check_plan(json.loads(bound), self._bound)
        before = Counter(json.loads(counts))
        if (kept := self._files.open(of, partition, token)) is not None:
            return kept, before
        chunks = (Chunk(number, bytes(rows), bytes(gone)) for (number,), (rows, gone) in self._chunks.iterator())
        snapshot = Snapshot(position, stream_time_ms, close_time_ms)
        return ChunkedState.read(of, partition, chunks, snapshot, windows=windows, token=token), before

    def write(self, of: str, state: ChunkedState, progress: tuple[Any, ...]) -> None:
        """Writes down what has changed since it was read."""
        change, token = state.seal(), state.token()
        for number in change.forgotten:
            self._chunks.removeKey((number,))
        for chunk in change.written:
            self._chunks.updateValue((chunk.number,), (chunk.rows, chunk.gone))
        self._head.update((*progress, token, of, json.dumps(self._bound)))
        self._files.save(state, token)


def counted(before: Mapping[str, int], added: Mapping[str, int]) -> Counter[str]:
    """The counters of a partition, gone on, without those that were not kept from its first record on."""
    total = Counter(before)
    total.update(added)
    for name in ADDED_LATER:
        if before and name not in before:
            del total[name]
    return total


def check_plan(bound: Mapping[str, str], asked: Mapping[str, str]) -> None:
    """Refuses a plan that is not the one that a checkpoint's state was made with (`StoreMismatch`)."""
    want = "take the plan that it was made with, or another checkpointLocation"
    check_bound("the checkpoint's state", bound, asked, want)
