"""The lives of a task that is started again: the clock of them all, and all that they did."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.deployed.deployment import Restart
from sessionkit.deployed.processor_run import Deployed
from sessionkit.errors import InvalidArgument, problem
from sessionkit.records.batch import RecordBatch
from sessionkit.records.loops import stream_times
from sessionkit.records.source import Source
from sessionkit.records.times import to_arrivals

if TYPE_CHECKING:
    from sessionkit.run import Run

LIFE = "life"


def clock_of(batch: RecordBatch, column: str | None, source: Source, first_ms: npt.NDArray[np.int64]) -> list[int]:
    """The clock at each record: a column of times that was read with it, or else the stream time of its partition."""
    if column is not None:
        times = batch.values[column]
        chunks = [times] if isinstance(times, pa.Array) else [pa.array(times)]
        return to_arrivals(pa.chunked_array(chunks), column, source).tolist()
    out = np.empty(len(batch), np.int64)
    rejected = np.empty(0, np.uint8) if batch.rejected is None else batch.rejected
    stream_times(batch.partition, batch.timestamp_ms, rejected, first_ms, out)
    return out.tolist()


def one_after_another(parts: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> dict[str, Any]:
    """The columns of what each life sent as those of one table, with the number of the life in `LIFE`."""
    if LIFE in (*parts[0], *keys):
        raise InvalidArgument(problem("a column would appear twice beside the lives", f"{LIFE!r}", "another name"))
    lengths = [len(part["offset"]) for part in parts]
    columns = {name: _joined([part[name] for part in parts]) for name in parts[0]}
    return {**columns, LIFE: np.repeat(np.arange(len(parts)), lengths)}


def _joined(columns: list[Any]) -> Any:
    """The columns joined into one; columns of Python objects stay such."""
    if isinstance(columns[0], np.ndarray):
        return np.concatenate(columns)
    arrays = [column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column for column in columns]
    return pa.concat_arrays(arrays)


def together(lives: Sequence[Run], restarts: Sequence[Restart]) -> Deployed:
    """All lives as one, by the rows of all records; the buffers are those of the last life."""
    did = [life.deployed for life in lives if life.deployed is not None]
    if not restarts:
        return dataclasses.replace(did[0], lives=tuple(lives))
    starts = np.cumsum([0, *(each.committed_count for each in did)]).tolist()
    pairs = [*zip(starts, did, strict=False)]
    return Deployed(
        forwarded=[each._replace(at=start + each.at) for start, one in pairs for each in one.forwarded],
        refused=tuple(start + row for start, one in pairs for row in one.refused),
        looks=[each._replace(at=start + each.at) for start, one in pairs for each in one.looks],
        clock_ms=None,
        buffers=did[-1].buffers,
        committed_count=starts[-1],
        lives=tuple(lives),
        restarts=restarts,
    )
