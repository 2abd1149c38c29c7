"""A hash of cells as wide as the gap: finds the sessions near a time in a few look-ups, however many are open.

Two records of a key in one cell belong to one session, and every cell inside a session holds one of its records. So
(key, cell) → session is a function, and a record need only look at its own cell and the two beside it.
"""

from __future__ import annotations

import numpy as np

from sessionkit.base.compiled import compiled_loop

# `session` is the row + 1, so that memory fresh from the system, all zeros, is an empty table at no cost
CELL = np.dtype([("index", "i8"), ("slot", "i4"), ("session", "i4")], align=True)
EMPTY = 0
SMALLEST = 1 << 10


def empty_cells(used: int = 0) -> np.ndarray:
    """A table of empty cells, of which `used` ones are at most a quarter; their number is a power of two."""
    return np.zeros(max(SMALLEST, 1 << (4 * used - 1).bit_length()), CELL)


@compiled_loop
def first_place(slot, index, mask):  # type: ignore[no-untyped-def]
    """Where the search starts. Eight neighbouring cells lie side by side, so that one fetch brings all three."""
    h = (np.uint64(slot) * np.uint64(0x9E3779B97F4A7C15)) ^ (np.uint64(index >> 3) * np.uint64(0xC2B2AE3D27D4EB4F))
    h ^= h >> np.uint64(29)
    h *= np.uint64(0xBF58476D1CE4E5B9)
    h ^= h >> np.uint64(32)
    return (np.int64(h & np.uint64(0x0FFFFFFFFFFFFFFF)) * 8 + (index & 7)) & mask


@compiled_loop
def find_cell(cells, slot, index):  # type: ignore[no-untyped-def]
    """Position of the cell, or of the empty one where it would go."""
    mask = cells.shape[0] - 1
    at = first_place(slot, index, mask)
    while cells[at].session != EMPTY and (cells[at].index != index or cells[at].slot != slot):
        at = (at + 1) & mask
    return at


@compiled_loop
def set_cell(cells, slot, index, session):  # type: ignore[no-untyped-def]
    """Points the cell at `session`; returns 1 if it was empty before."""
    at = find_cell(cells, slot, index)
    added = 1 if cells[at].session == EMPTY else 0
    cells[at].index = index
    cells[at].slot = slot
    cells[at].session = session + 1
    return added


@compiled_loop
def survivor(sessions, row):  # type: ignore[no-untyped-def]
    """The session that now holds what session `row` held; shortens the path on its way."""
    while sessions[row].merged_into >= 0:
        into = sessions[row].merged_into
        if sessions[into].merged_into >= 0:
            sessions[row].merged_into = sessions[into].merged_into
        row = into
    return row


@compiled_loop
def copy_live_cells(cells, into, sessions, horizon_ms):  # type: ignore[no-untyped-def]
    """Moves the cells whose session ends at or after the horizon of its slot; returns how many."""
    count = 0
    for at in range(cells.shape[0]):
        if cells[at].session == EMPTY:
            continue
        row = survivor(sessions, cells[at].session - 1)
        slot = cells[at].slot
        if sessions[row].end >= horizon_ms[slot]:
            count += set_cell(into, slot, cells[at].index, row)
    return count
