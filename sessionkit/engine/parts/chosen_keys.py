"""Some keys of a partition: their records, and the ticks that they need.

Keys meet in stream time alone. So the records of some keys decide what they do among all others if ticks are among
them: rows that only move stream time, where a record of another key moved it. They need those that they can tell
apart: the last one before each of them, and the first one that closes a window in which one of them can be.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.base.decisions import TICK
from sessionkit.base.durations import INT64_MAX
from sessionkit.records.batch import RecordBatch, taken
from sessionkit.windows.contract import WindowKind

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
NONE_WAITING: Numbers = np.empty(0, np.int64)


class Needed(NamedTuple):
    """The rows that some keys need of a partition, and the instants that no record has passed yet."""

    rows: npt.NDArray[np.intp]
    waiting_ms: Numbers  # their windows close when stream time is larger


def last_rises(stream_time_ms: Numbers, before_ms: int) -> npt.NDArray[np.intp]:
    """For each record of a partition the last one up to it that moved stream time, which was `before_ms`; -1: none."""
    rises = np.diff(stream_time_ms, prepend=before_ms) > 0
    found: npt.NDArray[np.intp] = np.maximum.accumulate(np.where(rises, np.arange(len(rises)), -1))
    return found


def needed_rows(
    windows: WindowKind,
    mine: Mask,
    times_ms: Numbers,
    rises: npt.NDArray[np.intp],
    stream_time_ms: Numbers,
    before_ms: int,
    waiting_ms: Numbers = NONE_WAITING,
) -> Needed:
    """The rows of a partition that some keys need.

    Args:
        mine: their own records.
        times_ms: of those of them that windows look at.
        rises, stream_time_ms: of all records; `before_ms` before them.
        waiting_ms: what no earlier record has passed.
    """
    ticks = np.append(rises[mine], rises[-1])
    closing = np.empty(0, np.intp)
    if windows.is_ever_closed:
        last = windows.last_instants_ms(times_ms)
        limit = last + np.minimum(windows.close_lag_ms, INT64_MAX - last)  # must not wrap
        waiting_ms = np.union1d(waiting_ms, limit[limit >= before_ms])
        at = np.searchsorted(stream_time_ms, waiting_ms, side="right")
        is_passed = at < len(stream_time_ms)
        closing, waiting_ms = at[is_passed], waiting_ms[~is_passed]
    wanted = mine.copy()
    wanted[ticks[ticks >= 0]] = True
    wanted[closing] = True
    return Needed(np.flatnonzero(wanted), waiting_ms)


def rows_of_keys(
    batch: RecordBatch, keys: npt.NDArray[np.intp], stream_time_ms: Numbers, windows: WindowKind
) -> npt.NDArray[np.intp]:
    """The records of these keys, by their codes, and the ticks that they need; nothing came before the batch.

    The newest record of each of their partitions is among them. `stream_time_ms` is that after each record.
    """
    mine = np.isin(batch.key, keys)
    found = [np.empty(0, np.intp)]
    for code in np.unique(batch.partition[mine]).tolist():
        rows = np.flatnonzero(batch.partition == code)
        own, stair = mine[rows], stream_time_ms[rows]
        times_ms = batch.timestamp_ms[rows[own & batch.usable[rows]]]
        needed = needed_rows(windows, own, times_ms, last_rises(stair, -1), stair, -1).rows
        found.append(rows[np.union1d(needed, [len(rows) - 1])])
    return np.sort(np.concatenate(found))


def records_of_keys(
    batch: RecordBatch, keys: npt.NDArray[np.intp], rows: npt.NDArray[np.intp], stream_time_ms: Numbers
) -> RecordBatch:
    """A batch of these rows alone, in which those of other keys are ticks."""
    number = np.full(len(batch.keys) + 1, -1, np.int32)
    number[keys] = np.arange(len(keys))
    key = number[batch.key[rows]]
    rejected = np.zeros(len(rows), np.uint8) if batch.rejected is None else batch.rejected[rows]
    return batch.replace(
        keys=batch.keys.take(pa.array(keys)),
        key=key,
        timestamp_ms=np.where(key < 0, stream_time_ms[rows], batch.timestamp_ms[rows]),
        partition=batch.partition[rows],
        rejected=np.where(key < 0, np.uint8(TICK), rejected),
        given_offset=batch.offset[rows],
        values={name: taken(column, rows) for name, column in batch.values.items()},
    )
