"""Which records made one session of two."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.base.arrays import arrow_array, arrow_table
from sessionkit.base.result_columns import TIMES
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.trace.trace import Trace
from sessionkit.views.lineage.lineage import as_sessions
from sessionkit.views.loops import last_touches

_BOUNDS = ("earlier_start_ms", "earlier_end_ms", "later_start_ms", "later_end_ms")
TIMES_OF_MERGES = {**TIMES, **{name: name.removesuffix("_ms") for name in _BOUNDS}}


def merges_table(any_trace: Trace) -> pa.Table:
    """One row for each merge, in order: the record, the two sessions that it joined, and the session in the end.

    Columns: partition, offset, key, timestamp_ms, the bounds of the earlier and of the later session before the record,
    and (window_start_ms, window_end_ms) the bounds of the session that they are part of at the end of the run.

    Raises:
        InvalidArgument: windows of this kind do not merge.
    """
    trace = as_sessions(any_trace)
    merges, batch, columns = trace.merges, trace.batch, trace.window_columns
    at, end = merges.at, trace.ended_in[merges.into]
    earlier, later = _before(trace, at, merges.into), _before(trace, at, merges.absorbed)
    return arrow_table(
        {
            "partition": batch.partitions[batch.partition[at]],
            "offset": batch.offset[at],
            "key": trace.keys.take(arrow_array(batch.key[at])),
            "timestamp_ms": batch.timestamp_ms[at],
            **dict(zip(_BOUNDS, (*earlier, *later), strict=True)),
            "window_start_ms": columns.start_ms[end],
            "window_end_ms": columns.end_ms[end],
        }
    )


def _before(
    trace: SessionTrace, at: npt.NDArray[np.int64], window: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(start, end) of these sessions just before these records."""
    last = last_touches(trace.window, at, window)
    loaded = (trace.loaded_start_ms, trace.loaded_end_ms)
    count = trace.window_columns.loaded_count
    came = np.minimum(window, count)  # a session without a record before came from a store
    start, end = (
        np.where(last >= 0, after[last], np.append(first, -1)[came])
        for after, first in zip(trace.bounds_after, loaded, strict=True)
    )
    return start, end
