"""The rows of some keys, picked where they lie: with the ticks that they need, and each with its place."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from sessionkit.engine.chosen_keys import PartitionSoFar
from sessionkit.records.keys import codes_among
from sessionkit.steps.job import Job
from sessionkit.steps.partition_run import cut

PLACE = "place"  # how many records of its partition came before a row


def choose(
    job: Job, keys: list[Any], partition: int | None, schema: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The rows of these keys and their ticks, as they came, of one partition after another.

    Args:
        partition: the only one that is looked at; all if it is None.
        schema: of the rows, with their place as its last column.
    """
    named = (batch.rename_columns(list(job.columns)) for batch in batches)
    steps = cut(named, str(job.source.partition), job.step_records)
    for number, tables in groupby(steps, key=lambda step: step[0]):
        if partition is None or number == partition:
            chooser = _Chooser(job, keys)
            for _, table in tables:
                yield from _rows(chooser.choose(table), schema)
            yield from _rows(chooser.newest(), schema)


def _rows(table: pa.Table, schema: pa.Schema) -> list[pa.RecordBatch]:
    batches: list[pa.RecordBatch] = table.rename_columns(schema.names).cast(schema).to_batches()
    return batches


class _Chooser:
    """One partition: how far it has been read."""

    def __init__(self, job: Job, keys: list[Any]) -> None:
        self._job, self._keys = job, keys
        self._so_far = PartitionSoFar(job.windows)
        self._count = 0
        self._newest: pa.Table | None = None  # the last row, unless it was chosen

    def choose(self, table: pa.Table) -> pa.Table:
        """What is needed of the next rows."""
        batch = self._job.read(table)
        mine = np.isin(batch.key, codes_among(batch.keys, self._keys))
        (rows,) = self._so_far.needed_rows(batch.timestamp_ms, batch.rejected, [mine])
        placed = table.append_column(PLACE, pa.array(np.arange(self._count, self._count + len(batch))))
        self._count += len(batch)
        is_chosen = bool(len(rows)) and rows[-1] == len(batch) - 1
        self._newest = placed.slice(len(batch) - 1, 0 if is_chosen else 1)
        return placed.take(pa.array(rows))

    def newest(self) -> pa.Table:
        """The last row of all, if it has not been chosen: up to it the partition was read."""
        assert self._newest is not None
        return self._newest
