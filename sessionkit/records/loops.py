"""Compiled loops over the columns of records as they come in."""

from __future__ import annotations

import numpy as np

from sessionkit.base.compiled import compiled


@compiled
def implicit_offsets(partition, following):  # type: ignore[no-untyped-def]
    """Running number of each record within its partition, from `following[partition]` on, which is moved along."""
    offset = np.empty(partition.shape[0], np.int64)
    for i in range(partition.shape[0]):
        offset[i] = following[partition[i]]
        following[partition[i]] += 1
    return offset


@compiled
def steps_back(partition, timestamp_ms, partition_count):  # type: ignore[no-untyped-def]
    """How many times are earlier than the one before them in their partition; those below 0 are none."""
    last = np.full(partition_count, -1, np.int64)
    found = 0
    for i in range(timestamp_ms.shape[0]):
        if timestamp_ms[i] >= 0:
            if timestamp_ms[i] < last[partition[i]]:
                found += 1
            last[partition[i]] = timestamp_ms[i]
    return found


@compiled
def offsets_rise(partition, offset, partition_count):  # type: ignore[no-untyped-def]
    """(row, offset before it) of the first offset that does not rise within its partition; (-1, -1) if all do."""
    last = np.full(partition_count, -1, np.int64)
    for i in range(offset.shape[0]):
        if offset[i] <= last[partition[i]]:
            return i, last[partition[i]]
        last[partition[i]] = offset[i]
    return -1, np.int64(-1)


@compiled
def partition_codes(numbers, most):  # type: ignore[no-untyped-def]
    """(codes, distinct numbers, rising) of small partition numbers; nothing where one is negative or too large."""
    code_of = np.full(most, -1, np.int32)
    for i in range(numbers.shape[0]):
        if numbers[i] < 0 or numbers[i] >= most:
            return np.empty(0, np.int32), np.empty(0, np.int64)
        code_of[numbers[i]] = 0
    seen, known = np.empty(most, np.int64), 0
    for number in range(most):
        if code_of[number] == 0:
            seen[known] = number
            code_of[number] = known
            known += 1
    codes = np.empty(numbers.shape[0], np.int32)
    for i in range(numbers.shape[0]):
        codes[i] = code_of[numbers[i]]
    return codes, seen[:known].copy()


@compiled
def codes_by_span(values, lowest, span):  # type: ignore[no-untyped-def]
    """(codes, distinct values) of integers from `lowest` on that lie within a span; in the order in which they come."""
    code_of = np.full(span, -1, np.int32)
    codes = np.empty(values.shape[0], np.int32)
    known = 0
    for i in range(values.shape[0]):
        place = values[i] - lowest
        if code_of[place] < 0:
            code_of[place] = known
            known += 1
        codes[i] = code_of[place]
    distinct = np.empty(known, np.int64)
    for place in range(span):
        if code_of[place] >= 0:
            distinct[code_of[place]] = lowest + place
    return codes, distinct
