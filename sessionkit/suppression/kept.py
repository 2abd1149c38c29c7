"""The buffer of suppress of one partition as a state: what waits in it, between the micro-batches of a stream."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sessionkit.stores.contract import SessionColumns, Snapshot
from sessionkit.stores.state.chunked_state import ChunkedState
from sessionkit.suppression.stage import OLD_SIZE, SIZE, Suppressor, Waiting

HOLDS = "sessions"  # a result has a start and an end, whatever its windows are
_NUMBERS = ("timestamp_ms", SIZE, OLD_SIZE)  # columns of NumPy beside the results


def read_buffer(stage: Suppressor, state: ChunkedState) -> None:
    """Has the stage go on with what waits in a state: a result lies in it with its record and its place."""
    held, waiting = state.everything, None
    if held is not None:
        columns = {
            "partition": held.partition,
            "offset": held.opened_by,
            "key": held.key,
            "window_start_ms": held.start_ms,
            "window_end_ms": held.timestamp_ms,
            **held.aggregates,
            **{name: held.aggregates[name].to_numpy() for name in _NUMBERS if name in held.aggregates},
        }
        waiting = Waiting(columns, held.closed_by, np.arange(len(state)))
    stage.go_on(state.partition, state.snapshot(state.partition).stream_time_ms, waiting)


def keep_buffer(stage: Suppressor, state: ChunkedState, position: int) -> None:
    """Takes over what waits after a step; only results that came with it are to be written."""
    assert stage.waiting is not None
    columns, place_ms, before = stage.waiting
    numbers = {name: pa.array(columns[name]) for name in _NUMBERS if name in columns}
    own = ("partition", "offset", "key", "window_start_ms", "window_end_ms", *_NUMBERS)
    results = {name: column for name, column in columns.items() if name not in own}
    rows = SessionColumns(
        columns["key"],
        columns["partition"],
        columns["window_start_ms"],
        columns["window_end_ms"],
        columns["offset"],
        place_ms,
        {**results, **numbers},
    )
    state.replace(before, rows, Snapshot(position, stage.clock_ms(state.partition)))
