"""Compiled loops over the columns of records as they come in."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sessionkit.base.compiled import compiled, compiled_loop


def implicit_offsets(partition: npt.NDArray[np.int32], following: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Running number of each record within its partition, from `following[partition]` on, which is moved along."""
    offset = np.empty(len(partition), np.int64)
    _count_on(partition, following, offset)
    return offset


@compiled_loop
def _count_on(partition, following, offset):  # type: ignore[no-untyped-def]
    for i in range(partition.shape[0]):
        offset[i] = following[partition[i]]
        following[partition[i]] += 1


@compiled
def stream_times(group, timestamp_ms, group_count):  # type: ignore[no-untyped-def]
    """The greatest time of each record's group up to it."""
    newest = np.full(group_count, -1, np.int64)
    found = np.empty(timestamp_ms.shape[0], np.int64)
    for i in range(timestamp_ms.shape[0]):
        newest[group[i]] = max(newest[group[i]], timestamp_ms[i])
        found[i] = newest[group[i]]
    return found


def offsets_rise(
    partition: npt.NDArray[np.int32], offset: npt.NDArray[np.int64], partition_count: int
) -> tuple[int, int]:
    """(row, offset before it) of the first offset that does not rise within its partition; (-1, -1) if all do."""
    row, before = _first_not_rising(partition, offset, np.full(partition_count, -1, np.int64))
    return int(row), int(before)


@compiled_loop
def _first_not_rising(partition, offset, last):  # type: ignore[no-untyped-def]
    for i in range(offset.shape[0]):
        if offset[i] <= last[partition[i]]:
            return i, last[partition[i]]
        last[partition[i]] = offset[i]
    return -1, np.int64(-1)


def partition_codes(numbers: npt.NDArray[Any], most: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
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
