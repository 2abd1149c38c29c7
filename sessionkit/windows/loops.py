"""Compiled loops that the kernels of several kinds of windows share."""

from __future__ import annotations

from sessionkit.base.compiled import compiled_loop


@compiled_loop
def slots_of(key, partition, partition_count, rejected, slot, decision, window):  # type: ignore[no-untyped-def]
    """Fills `slot` with one number a (key, partition), -1 for a rejected record, whose reason becomes its decision."""
    any_rejected = rejected.shape[0] > 0
    for i in range(key.shape[0]):
        if any_rejected and rejected[i] != 0:
            slot[i] = -1
            decision[i] = rejected[i]
            window[i] = -1
        else:
            slot[i] = key[i] * partition_count + partition[i]


@compiled_loop
def note_decisions(decision, opened_code, partition, given_offset, following, counts, opened_by):  # type: ignore[no-untyped-def]
    """Adds to `counts` how often each decision was made; fills `opened_by` with the offsets of what opened a window.

    Without given offsets they are counted on in `following`, one number a partition.
    """
    opened = 0
    counted = given_offset.shape[0] == 0
    for i in range(decision.shape[0]):
        p = partition[i]
        counts[decision[i]] += 1
        opened_by[opened] = following[p] if counted else given_offset[i]
        following[p] += 1
        opened += decision[i] == opened_code
    return opened


@compiled_loop
def count_each(codes, counts):  # type: ignore[no-untyped-def]
    """Adds to `counts` how often each code is there."""
    for i in range(codes.shape[0]):
        counts[codes[i]] += 1
