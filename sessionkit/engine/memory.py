"""How much a run would make at most, known before it starts: a record can be in any number of windows."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np

from sessionkit.base.arrays import Longs, distinct
from sessionkit.base.process import check_room, has_room, in_threads
from sessionkit.records.batch import RecordBatch
from sessionkit.windows.contract import WindowKind

_WINDOW, _STEP = 150, 700  # bytes in a kernel's run, with a result or two; of what a processor notes
_PIECE = 2**20  # records whose times stay near the processor while they are sorted


def check_windows(windows: WindowKind, batch: RecordBatch) -> None:
    """Raises TooLarge if the windows of a kernel's run would not fit. Of other kinds a record makes one or two."""
    if windows.advance_ms is None or not len(batch):
        return
    span = (int(batch.timestamp_ms.max()) - int(batch.timestamp_ms.min())) // windows.advance_ms
    every_time = float(span + 1 + _a_record(windows)) * len(batch.keys) * len(batch.partitions)  # had each key a record
    if has_room(float(len(batch)) * _a_record(windows), _WINDOW) or has_room(every_time, _WINDOW):
        return
    # a window that several pieces share is counted in each of them; to count it once all times are sorted together
    bare, edges = batch.replace(values={}), [*range(0, len(batch), _PIECE), len(batch)]
    pieces = (bare.slice(*edge) for edge in pairwise(edges))
    if not has_room(max(_a_record(windows), sum(in_threads(partial(most_windows, windows), pieces))), _WINDOW):
        check_room(max(_a_record(windows), most_windows(windows, batch)), _WINDOW, "windows")


def check_steps(windows: WindowKind, batch: RecordBatch) -> None:
    """Raises TooLarge if what a processor notes would not fit: a step for each window of each record."""
    steps = float(len(batch)) * _a_record(windows)
    if windows.reach_name == "time_difference":  # a record is in a window of each other one that is not further away
        times = _apart(batch, batch.timestamp_ms, windows.reach_ms)
        known = distinct(times)
        near = np.searchsorted(known, times, side="right") - np.searchsorted(known, times - windows.reach_ms)
        steps = near.sum(dtype=np.float64)
    check_room(steps, _STEP, "steps, one for each window of each record")


def most_windows(windows: WindowKind, batch: RecordBatch) -> float:
    """How many windows the records are in; so many are made if none of them is late."""
    most = _a_record(windows)
    starts = distinct(_apart(batch, batch.timestamp_ms // (windows.advance_ms or 1), most))
    return most * min(1.0, len(starts)) + float(np.minimum(np.diff(starts), most).sum(dtype=np.float64))


def _a_record(windows: WindowKind) -> int:
    return 1 if windows.advance_ms is None else -(-windows.reach_ms // windows.advance_ms)


def _apart(batch: RecordBatch, number: Longs, reach: int) -> Longs:
    """Numbers of the usable records, moved so that those of two keys or partitions lie further apart than `reach`."""
    counted = batch.key >= 0 if batch.rejected is None else (batch.rejected == 0) & (batch.key >= 0)
    number, place = number[counted], batch.key[counted] * np.int64(len(batch.partitions)) + batch.partition[counted]
    lowest = number.min(initial=2**62)
    span = int(number.max(initial=lowest) - lowest) + reach + 1
    return place * min(span, 2**62 // max(1, int(place.max(initial=0)) + 1)) + (number - lowest)
