"""`dropped()` of sessions with the grace that was missing: a replay of each key, after a shuffle by key."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.steps.declared_types import fit
from sessionkit.steps.job import STEP_RECORDS
from sessionkit.steps.partition_run import BATCH_RECORDS, cut
from sessionkit.steps.views import columns_of
from sessionkit.views.dropped import dropped_rows
from sessionkit.windows.contract import SessionKind


def add_missing_grace(
    batches: Iterator[pa.RecordBatch], windows: SessionKind, retention_ms: int, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The dropped ones of these records, with the grace that they lacked; `batches` go by partition, key and offset."""
    rest: pa.Table | None = None
    for _, table in cut(batches, "partition", STEP_RECORDS):
        table = table if rest is None else pa.concat_tables([rest, table])
        last = _key_starts(table)[-1]
        rest = table.slice(last)
        yield from _dropped_with_grace(table.slice(0, last), windows, retention_ms, schema)
    if rest is not None:
        yield from _dropped_with_grace(rest, windows, retention_ms, schema)


def _key_starts(table: pa.Table) -> npt.NDArray[np.intp]:
    """First row of each (partition, key)."""
    code = table["key"].combine_chunks().dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False)
    partition = table["partition"].to_numpy()
    starts = (code[1:] != code[:-1]) | (partition[1:] != partition[:-1])
    return np.append(0, np.flatnonzero(starts) + 1)


def _dropped_with_grace(
    table: pa.Table, windows: SessionKind, retention_ms: int, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    if not table.num_rows:
        return
    starts = _key_starts(table)
    ends = np.append(starts[1:], table.num_rows)
    late = np.asarray(pc.equal(table["reason"], "late").fill_null(False))
    counted = np.asarray(pc.or_(pc.is_null(table["reason"]), pc.equal(table["reason"], "late").fill_null(False)))
    times = table["timestamp_ms"].fill_null(-1).to_numpy()
    stair = table["stream_time_ms"].to_numpy()
    missing, none = np.zeros(table.num_rows, np.int64), np.empty(0, np.int64)
    for key in np.unique(np.searchsorted(starts, np.flatnonzero(late), "right") - 1).tolist():
        here = starts[key] + np.flatnonzero(counted[starts[key] : ends[key]])
        asked = np.flatnonzero(late[here])
        missing[here[asked]] = windows.missing_grace_ms(times[here], stair[here], asked, retention_ms, (none, none))
    dropped = dropped_rows(table, late, missing, windows.grace_ms)
    yield from fit(columns_of(dropped), schema).to_batches(max_chunksize=BATCH_RECORDS)
