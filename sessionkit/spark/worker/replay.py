"""What a task finds out about the records of one partition after another: counts under settings, pauses, causes.

The answers are small, and `spark/replay.py` adds them up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from sessionkit.advice.pauses import keyed_pauses
from sessionkit.advice.replay import Counts, Replay
from sessionkit.base.arrays import Longs
from sessionkit.base.decisions import AHEAD, BAD_TIME, NULL_KEY
from sessionkit.base.durations import INT64_MAX
from sessionkit.records.batch import RecordBatch, read_records
from sessionkit.records.labels import record_name
from sessionkit.records.lateness.causes import Cause, are_late
from sessionkit.records.lateness.order import NOTHING, Elsewhere, late_cause
from sessionkit.records.row_names import rows_by_place
from sessionkit.steps.job import Job, fit
from sessionkit.steps.partition_run import partitions
from sessionkit.windows.contract import WindowKind

Question: TypeAlias = Callable[[Replay, Job], dict[str, object]]


class Looked(NamedTuple):
    """Where is looked for records to leave out: before a time, and in one partition for why records are late."""

    before_ms: int = -INT64_MAX
    partition: int = -1
    lag_ms: int = 0
    elsewhere: Elsewhere = NOTHING

    def cause(self, batch: RecordBatch, number: int, job: Job) -> Cause | None:
        """Why records are late, if this is that partition."""
        if number != self.partition:
            return None
        return late_cause(batch, job.source, self.lag_ms, elsewhere=self.elsewhere)

    def rest(self, batch: RecordBatch, job: Job) -> RecordBatch:
        """The other records."""
        is_out = batch.usable & (batch.timestamp_ms < self.before_ms)
        cause = self.cause(batch, int(batch.partitions[0]), job)
        if cause is not None and cause.to_leave_out is not None:
            is_out[cause.to_leave_out] = True
        return batch.take(np.flatnonzero(~is_out)) if is_out.any() else batch


def answers(
    job: Job, question: Question, left_out: Looked, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The answer to the question, for each partition: rows of the job's schema, whose first column is the partition."""
    for number, tables in partitions(job, batches):
        table = pa.concat_tables(tables)
        with rows_by_place(table, job.source, job.source.offset):
            batch = read_records(table, job.source, job.value_columns)
        columns = question(Replay(left_out.rest(batch, job)), job)
        count = max(len(each) for each in columns.values())  # type: ignore[arg-type]
        yield from fit({"partition": np.full(count, number), **columns}, job.schema).to_batches()


def counts(replay: Replay, job: Job, *, several: Sequence[WindowKind]) -> dict[str, object]:
    """The counts under each of these windows."""
    columns = map(np.array, zip(*replay.counts_of(several), strict=True))
    return {"place": np.arange(len(several)), **dict(zip(Counts._fields, columns, strict=True))}


def apart(replay: Replay, job: Job, *, windows: WindowKind) -> dict[str, object]:
    """The sessions that stay apart, and the grace that joins them."""
    found = replay.apart(windows)
    return {"sessions": [found.sessions], "grace_ms": [found.grace_ms]}


def facts(replay: Replay, job: Job, *, lag_ms: int) -> dict[str, object]:
    """How many records there are, lack something or are late; how their times lie; and remarks on them."""
    batch, times = replay.batch, replay.batch.timestamp_ms[replay.batch.moves]
    lacking = [
        0 if batch.rejected is None else int(np.count_nonzero(batch.rejected == c)) for c in (NULL_KEY, BAD_TIME, AHEAD)
    ]
    return {
        "records": [len(batch)],
        "usable": [int(np.count_nonzero(batch.usable))],
        "null_key": lacking[:1],
        "bad_time": lacking[1:2],
        "ahead": lacking[2:],
        "late": [int(np.count_nonzero(are_late(times, lag_ms)))],
        "behind_ms": [int((np.maximum.accumulate(times) - times).max(initial=0))],
        "keys": [repr(batch.keys[:2].to_pylist()) if len(batch.keys) else None],
        "remarks": [list(batch.remarks[: len(batch.remarks) - np.count_nonzero(lacking)])],
    }


def times(replay: Replay, job: Job) -> dict[str, object]:
    """The times of all records that have a key."""
    return {"time_ms": replay.batch.timestamp_ms[replay.batch.usable]}


def pauses(replay: Replay, job: Job, *, span: tuple[int, int]) -> dict[str, object]:
    """How many pauses have each length."""
    lengths, counts = np.unique(keyed_pauses(replay.batch, span)[0], return_counts=True)
    return {"length_ms": lengths, "count": counts}


def slow_keys(replay: Replay, job: Job, *, span: tuple[int, int], gaps_ms: Sequence[int]) -> dict[str, object]:
    """How many pauses each key has, and how many longer ones than each of the gaps, in columns called by its place."""
    lengths, of = keyed_pauses(replay.batch, span)
    many = np.bincount(of)
    keys = np.flatnonzero(many)
    long = {
        str(place): np.bincount(of, lengths > gap_ms)[keys].astype(np.int64) for place, gap_ms in enumerate(gaps_ms)
    }
    return {"key": replay.batch.keys.take(pa.array(keys)), "many": many[keys], **long}


def why_late(replay: Replay, job: Job, *, looked: Looked, numbers: Longs) -> dict[str, object]:
    """Why records of a partition are late, and what lies before a time; `numbers` are those of all partitions."""
    batch, number = replay.batch, int(replay.batch.partitions[0])
    code = np.full(len(batch), np.searchsorted(numbers, number), np.int32)
    batch = batch.replace(partitions=numbers, partition=code)  # names of records say theirs where there are several
    cause, rows = looked.cause(batch, number, job), np.flatnonzero(batch.moves)
    times = batch.timestamp_ms[rows]
    behind = times < looked.before_ms
    return {
        "why": [cause and cause.why],
        "way": [cause and cause.way],
        "is_order": [cause and cause.is_order],
        "left_out": [None if cause is None or cause.to_leave_out is None else len(cause.to_leave_out)],
        "late": [cause and cause.late],
        "left": [cause and cause.left],
        "behind_ms": [times[behind].tolist()],
        "behind_late": [int(np.count_nonzero(are_late(times, looked.lag_ms) & behind))],
        "behind_name": [record_name(batch, int(rows[behind.argmax()])) if behind.any() else None],
    }
