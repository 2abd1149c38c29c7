"""`dropped()`: the records that sessions dropped, or the windows that records missed, why, and the grace that lacked.

Its columns are made here alone: `OF_A_RECORD` of the trace's records, and what is added to them below (in
`dropped_rows` for sessions, in `_of_windows` for windows known by their start). On Spark sessions with their missing
grace come through `spark/worker/by_key.py`, from the columns of the trace that `SparkRun.dropped` in
`spark/batch_run.py` lets through to it; all the rest calls `dropped_table`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.arrays import Flags, Longs, arrow_array, arrow_table, distinct, texts
from sessionkit.base.decisions import LATE, REASONS
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.trace.trace import Trace
from sessionkit.trace.window_trace import WindowTrace
from sessionkit.windows.contract import SessionKind, WindowKind
from sessionkit.windows.missing_grace import missing_grace_ms

OF_A_RECORD = ("partition", "offset", "key", "timestamp_ms", "stream_time_ms", "reason")


def dropped_table(trace: Trace, windows: WindowKind, *, missing_grace: bool = True) -> pa.Table:
    """The drops of a run, by record: of sessions a row a record, else a row a window that its record came too late for.

    Windows that are known by their start tell the missing grace as they drop a record; of sessions it takes a replay,
    which `missing_grace=False` leaves out.
    """
    return DROPPED[type(trace)](trace, windows, missing_grace=missing_grace)


def _of_sessions(trace: SessionTrace, windows: SessionKind, *, missing_grace: bool) -> pa.Table:
    at = trace.dropped_at
    records = arrow_table(trace.as_they_came(at))
    if not missing_grace:
        return dropped_rows(records)
    late = trace.decision[at] == LATE
    missing_ms = np.zeros(len(at), np.int64)
    missing_ms[late] = missing_grace_ms(trace, windows, at[late])
    return dropped_rows(records, late, missing_ms, windows.grace_ms)


def missed_by(trace: Trace, windows: WindowKind, index: int) -> tuple[Longs, int]:
    """(starts, below them ends, of the windows that a late record missed, of sessions none; the grace it lacked)."""
    return MISSED[type(trace)](trace, windows, index)


def _missed_sessions(trace: SessionTrace, windows: SessionKind, index: int) -> tuple[Longs, int]:
    return np.empty((2, 0), np.int64), int(missing_grace_ms(trace, windows, np.array([index]))[0])


def _missed_windows(trace: WindowTrace, windows: WindowKind, index: int) -> tuple[Longs, int]:
    mine = trace.missed.record == index
    start_ms = distinct(trace.missed.start_ms[mine])
    return np.stack([start_ms, trace.ends_ms(start_ms)]), int(trace.missing_ms[mine].max())


def dropped_rows(
    records: pa.Table, late: Flags | None = None, missing_ms: Longs | None = None, grace_ms: int = 0
) -> pa.Table:
    """The dropped ones of the trace's records, those of a task's clock left out, as they have no reason.

    `late` and `missing_ms` say of each record whether it was late and which grace it lacked; None leaves that out.
    """
    rows = records.select(OF_A_RECORD)
    if late is not None and missing_ms is not None:
        rows = _with_grace(rows, late, missing_ms, grace_ms)
    return rows.filter(pc.is_valid(rows["reason"]))


def _of_windows(trace: WindowTrace, windows: WindowKind, *, missing_grace: bool) -> pa.Table:
    """First the records that missed a window, once for each, then all that were dropped else: as in `dropped_at`."""
    at, missed = trace.dropped_at, trace.missed
    records = arrow_table(trace.as_they_came(at))
    late, nothing = np.arange(len(at)) < len(missed.record), np.zeros(len(at) - len(missed.record), np.int64)
    start_ms = np.concatenate([missed.start_ms, nothing])
    # it may count in other windows
    reason = pc.if_else(arrow_array(late), texts([REASONS[LATE]])[0], records["reason"])
    rows = records.set_column(records.column_names.index("reason"), "reason", reason).select(OF_A_RECORD)
    rows = rows.append_column("window_start_ms", arrow_array(start_ms, ~late))
    rows = rows.append_column("window_end_ms", arrow_array(trace.ends_ms(start_ms), ~late))
    rows = _with_grace(rows, late, np.concatenate([trace.missing_ms, nothing]), trace.close_lag_ms)
    rows = rows.take(arrow_array(np.argsort(at, kind="stable")))
    return rows.filter(pc.is_valid(rows["reason"]))


def _with_grace(rows: pa.Table, late: Flags, missing_ms: Longs, grace_ms: int) -> pa.Table:
    """Two columns more: the grace that the late ones lacked, and one that is enough for them."""
    for name, column in (("missing_grace_ms", missing_ms), ("enough_grace_ms", missing_ms + grace_ms)):
        rows = rows.append_column(name, arrow_array(column, ~late))
    return rows


DROPPED: dict[type[Trace], Callable[..., pa.Table]] = {SessionTrace: _of_sessions, WindowTrace: _of_windows}
MISSED: dict[type[Trace], Callable[..., tuple[Longs, int]]] = {
    SessionTrace: _missed_sessions,
    WindowTrace: _missed_windows,
}
