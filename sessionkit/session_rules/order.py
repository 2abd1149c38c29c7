"""In which order rows are read, so that those of each slot come by time."""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.arrays import Longs, is_null, numpy_array
from sessionkit.base.process import in_threads, shares, thread_count
from sessionkit.errors import InvalidData, problem
from sessionkit.records.row_names import row_name
from sessionkit.session_rules.loops import are_in_order, merge_late, rows_of_share
from sessionkit.trace.loops import MANY_ROWS, order_by_place

_FEW_LATE = 8  # one row of so many


def order_of_rows(table: pa.Table, slot: Longs, slots: int, time: Longs, offset: str | None) -> list[Longs]:
    """The rows of each slot by time, then by offset, else as they stand; in parts that share no slot.

    An only part without rows stands for all as they stand. Where few rows are late, they stay nearly so, and are read
    faster than by slot.
    """
    threads = thread_count() if len(slot) >= MANY_ROWS else 1
    if offset is not None:
        if table[offset].null_count:
            got = f"a missing one in {row_name(int(np.flatnonzero(is_null(table[offset]))[0]))}"
            raise InvalidData(problem(f"column {offset!r} lacks offsets", got, "a number in each row"))
        by_offset = numpy_array(pc.sort_indices(table, sort_keys=[(offset, "ascending")])).astype(np.int64)
        rows = by_offset[slot[by_offset] >= 0]
    else:
        parts = in_threads(lambda share: _nearly_as_they_stand(slot, time, share, threads), range(threads))
        known = [part for part in parts if part is not None]
        if len(known) == threads:
            return _filled(known)
        if are_in_order(slot, time, np.full(slots, np.iinfo(np.int64).min)):
            return _filled([])
        rows = np.flatnonzero(slot >= 0)
    order = rows[order_by_place(slot[rows], slots, time[rows])]
    edges = {0, len(order)}
    if threads > 1 and len(order):
        starts = order[[share.start for share in shares(len(order))]]
        edges |= {bisect_left(order, place, key=slot.__getitem__) for place in slot[starts]}
    return _filled([order[start:end] for start, end in pairwise(sorted(edges))])


def _nearly_as_they_stand(slot: Longs, time: Longs, share: int, shares: int) -> Longs | None:
    """The rows of these slots by time, then as they stand; None where many are late."""
    order, late = np.empty(len(slot), np.int64), np.empty(len(slot) // _FEW_LATE, np.int64)
    count, size = rows_of_share(slot, time, share, shares, order, late)
    if size < 0:
        return None
    late = late[:size]
    merge_late(time, order, count, late[np.argsort(time[late], kind="stable")])
    return order[: count + size]


def _filled(parts: list[Longs]) -> list[Longs]:
    return [part for part in parts if len(part)] or [np.empty(0, np.int64)]
