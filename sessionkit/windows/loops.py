"""Compiled loops that the kernels of several kinds of windows share."""

from sessionkit.base.compiled import NOTHING, compiled_loop, inlined

AHEAD = 128  # records whose windows are read before they are needed
MANY_ROWS = 2**25  # fewer windows have room at once: memory that is not used costs nothing


@compiled_loop
def count_decisions(decision, partition, counts, record_counts):  # type: ignore[no-untyped-def]
    """Adds to `counts` how often each decision was made, and to `record_counts` how many records each partition has."""
    for i in range(decision.shape[0]):
        counts[decision[i]] += 1
        record_counts[partition[i]] += 1


@compiled_loop
def note_opened(decision, opened_code, partition, given_offset, following, opened_by):  # type: ignore[no-untyped-def]
    """Fills `opened_by` with the offsets of the records that opened a window; returns how many there are.

    Without given offsets they are counted on in `following`, one number a partition.
    """
    opened = 0
    counted = given_offset.shape[0] == 0
    for i in range(decision.shape[0]):
        p = partition[i]
        opened_by[opened] = following[p] if counted else given_offset[i]
        following[p] += 1
        opened += decision[i] == opened_code
    return opened


@compiled_loop
def count_each(codes, counts):  # type: ignore[no-untyped-def]
    """Adds to `counts` how often each code is there."""
    for i in range(codes.shape[0]):
        counts[codes[i]] += 1


@inlined
def is_better(values, largest, held, at):  # type: ignore[no-untyped-def]
    """Whether the value at `at` takes the place of the one at `held`: it is smaller, or larger; of equal ones no.

    Without values (None) positions alone count: the first one stays, or the last one is taken.
    """
    if held == NOTHING:
        return True
    if values is None:
        return largest
    return values[at] > values[held] if largest else values[at] < values[held]
