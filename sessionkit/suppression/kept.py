"""The buffer of suppress of one partition as a state: what waits in it, between the micro-batches of a stream."""

from __future__ import annotations

import numpy as np

from sessionkit.base.arrays import arrow_array
from sessionkit.errors import StoreCorrupted, problem
from sessionkit.stores.contract import SessionColumns, Snapshot
from sessionkit.stores.state.chunked_state import ChunkedState
from sessionkit.suppression.stage import OLD_SIZE, SIZE, Suppressor, Waiting

HOLDS = "sessions"  # a result has a start and an end, whatever its windows are
_FIELDS = ("key", "partition", "window_start_ms", "window_end_ms", "offset")  # the first of `SessionColumns`
_NUMBERS = ("timestamp_ms", SIZE, OLD_SIZE)


def read_buffer(stage: Suppressor, state: ChunkedState, position: int) -> None:
    """Has the stage go on with what waits in a state; StoreCorrupted if it is not of the last record's micro-batch."""
    at, clock_ms, *_ = state.snapshot(state.partition)
    if at != position:
        want = "the buffer that was written with the windows"
        raise StoreCorrupted(problem("a buffer of suppress is of another micro-batch", f"{at}, not {position}", want))
    held, waiting = state.everything, None
    if isinstance(held, SessionColumns):
        columns = dict(zip(_FIELDS, held, strict=False))
        numbers = {name: np.asarray(held.aggregates[name]) for name in _NUMBERS if name in held.aggregates}
        waiting = Waiting({**columns, **held.aggregates, **numbers}, held.closed_by, np.arange(len(state)))
    stage.go_on(state.partition, clock_ms, waiting)


def keep_buffer(stage: Suppressor, state: ChunkedState, position: int) -> None:
    """Takes over what waits after a step; only results that came with it are to be written."""
    assert stage.waiting is not None
    columns, place_ms, before = stage.waiting
    results = {name: column for name, column in columns.items() if name not in _FIELDS}
    results |= {name: arrow_array(results[name]) for name in _NUMBERS if name in results}
    rows = SessionColumns._make([*(columns[name] for name in _FIELDS), place_ms, results, None])
    state.replace(before, rows, Snapshot(position, stage.clock_ms(state.partition)))
