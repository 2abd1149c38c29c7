"""Two runs beside each other, in a task that holds the records of some keys of a partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from sessionkit.spark.worker.by_key import records_of
from sessionkit.spark.worker.shuffle import pieces_in
from sessionkit.steps.job import Job, fit
from sessionkit.steps.partition_run import BATCH_RECORDS
from sessionkit.steps.views import columns_of

if TYPE_CHECKING:
    from sessionkit.plan import Plan
    from sessionkit.views.comparison.comparison import Comparison


class Sides(NamedTuple):
    """Two plans over the same records, with how long each retains its windows."""

    before: Plan
    after: Plan
    retention_ms: tuple[int, int]

    def compared(self, job: Job, batches: Iterable[pa.RecordBatch]) -> Iterator[Comparison]:
        """What differs in each share of a partition, whose records this task holds."""
        for number, pieces in groupby(pieces_in(batches), key=lambda piece: piece.partition):
            batch = records_of(job, number, [piece.table() for piece in pieces])
            plans = zip((self.before, self.after), self.retention_ms, strict=True)
            before, after = (plan._run_batch(batch, retention_ms=ms) for plan, ms in plans)
            yield before.compare(after)


def compare(job: Job, sides: Sides, what: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of the comparison: its "table", "records" or "counts"."""
    for found in sides.compared(job, batches):
        if what == "counts":
            counts = found.counts()
            yield from pa.table({"name": list(counts), "count": np.array([*counts.values()])}).to_batches()
        else:
            rows: pa.Table = getattr(found, what)()
            yield from fit(columns_of(rows), job.schema).to_batches(max_chunksize=BATCH_RECORDS)
