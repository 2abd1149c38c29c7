"""How many windows a run would make at most, known before it starts: hopping windows can be any number a record."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sessionkit.base.process import check_room
from sessionkit.records.batch import RecordBatch
from sessionkit.windows.contract import WindowKind

_WINDOW, _STEP = 150, 700  # bytes in a kernel's run, with a result or two; of what a processor notes
_WANT = "a longer advance, or a shorter size"


def check_windows(windows: WindowKind, batch: RecordBatch) -> None:
    """Refuses a kernel's run whose windows would not fit; of other kinds each record makes one or two.

    Raises:
        TooLarge: they would not.
    """
    if windows.advance_ms is not None and len(batch):
        most = max(_a_record(windows), most_windows(windows, batch))
        check_room(most, _WINDOW, "windows", _WANT)


def check_steps(windows: WindowKind, batch: RecordBatch) -> None:
    """Refuses a processor's run if what it notes, a step for each window of each record, would not fit.

    Raises:
        TooLarge: it would not.
    """
    if windows.advance_ms is not None:
        check_room(len(batch) * float(_a_record(windows)), _STEP, "steps", _WANT)
    elif windows.reach_name == "time_difference":  # a record is in a window of each other one that is not further away
        times = _apart(batch, batch.timestamp_ms, windows.reach_ms)
        first = np.searchsorted(np.unique(times), times - windows.reach_ms)
        steps = np.searchsorted(np.unique(times), times, side="right") - first
        check_room(float(steps.sum()), _STEP, "steps", "a shorter time_difference")


def most_windows(windows: WindowKind, batch: RecordBatch) -> float:
    """How many windows the records are in; so many are made if none of them is late."""
    most, advance = _a_record(windows), windows.advance_ms or 1
    starts = np.unique(_apart(batch, batch.timestamp_ms // advance, most))
    return most * min(1.0, len(starts)) + float(np.minimum(np.diff(starts), most).sum(dtype=np.float64))


def _a_record(windows: WindowKind) -> int:
    return -(-windows.reach_ms // (windows.advance_ms or 1))


def _apart(batch: RecordBatch, number: npt.NDArray[np.int64], reach: int) -> npt.NDArray[np.int64]:
    """The numbers of records that are not rejected, where those of two keys or partitions lie further apart."""
    counted = batch.key >= 0 if batch.rejected is None else (batch.rejected == 0) & (batch.key >= 0)
    number, place = number[counted], batch.key[counted] * np.int64(len(batch.partitions)) + batch.partition[counted]
    lowest = number.min(initial=2**62)
    span = int(number.max(initial=lowest) - lowest) + reach + 1
    return place * min(span, 2**62 // max(1, int(place.max(initial=0)) + 1)) + (number - lowest)
