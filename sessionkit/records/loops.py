"""Compiled loops over the columns of records as they come in."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sessionkit.base.arrays import Bytes, Codes, Longs, read_only
from sessionkit.base.compiled import compiled_loop
from sessionkit.base.decisions import TICK


def implicit_offsets(partition: Codes, following: Longs) -> Longs:
    """Running number of each record within its partition, from `following[partition]` on, which is moved along."""
    offset = np.empty(len(partition), np.int64)
    _count_on(partition, following, offset)
    return offset


@compiled_loop
def _count_on(partition, following, offset):  # type: ignore[no-untyped-def]
    for i in range(partition.shape[0]):
        offset[i] = following[partition[i]]
        following[partition[i]] += 1


def stream_times(partition: Codes, timestamp_ms: Longs, rejected: Bytes, stream_time_ms: Longs, out: Longs) -> None:
    """Fills `out` with the running maximum of timestamps per partition; `stream_time_ms` holds it before and after.

    A rejected record (null key, bad time, one ahead of its arrival) does not move it (Kafka's
    KStreamSessionWindowAggregate returns before); a tick does.
    """
    _stream_times(read_only(partition), read_only(timestamp_ms), read_only(rejected), stream_time_ms, out)


@compiled_loop
def _stream_times(partition, timestamp_ms, rejected, stream_time_ms, out):  # type: ignore[no-untyped-def]
    any_rejected = rejected.shape[0] > 0
    for i in range(timestamp_ms.shape[0]):
        p = partition[i]
        if timestamp_ms[i] > stream_time_ms[p] and not (any_rejected and 0 < rejected[i] < TICK):
            stream_time_ms[p] = timestamp_ms[i]
        out[i] = stream_time_ms[p]


@compiled_loop
def first_not_rising(partition, offset, last):  # type: ignore[no-untyped-def]
    """(row, offset before it) of the first offset that is not above the last of its partition; (-1, -1) if all are."""
    for i in range(offset.shape[0]):
        if offset[i] <= last[partition[i]]:
            return i, last[partition[i]]
        last[partition[i]] = offset[i]
    return -1, np.int64(-1)


def partition_codes(numbers: npt.NDArray[Any], most: int) -> tuple[Codes, Longs]:
    """(codes, distinct numbers, rising) of partition numbers from 0 to `most` - 1."""
    code_of = np.full(most, -1, np.int32)
    _mark(numbers, code_of)
    seen = np.flatnonzero(code_of == 0)
    if len(seen) == most and numbers.dtype == np.int32:  # each number is its own code, as nearly always
        return numbers, seen
    code_of[seen] = np.arange(len(seen))
    return code_of[numbers], seen


@compiled_loop
def _mark(numbers, code_of):  # type: ignore[no-untyped-def]
    missing = code_of.shape[0]
    for i in range(numbers.shape[0]):
        if code_of[numbers[i]] < 0:
            code_of[numbers[i]] = 0
            missing -= 1
            if missing == 0:  # soon, as nearly always each number up to the largest is there
                break


@compiled_loop
def mark_seen(values, lowest, seen):  # type: ignore[no-untyped-def]
    """Marks in `seen` which integers from `lowest` on are there."""
    for i in range(values.shape[0]):
        place = values[i] - lowest
        if not seen[place]:  # a processor that only reads disturbs no other one
            seen[place] = True


@compiled_loop
def take_codes(values, lowest, code_of, codes):  # type: ignore[no-untyped-def]
    """Fills `codes` with those of integers, which `code_of` has from `lowest` on."""
    for i in range(values.shape[0]):
        codes[i] = code_of[values[i] - lowest]
