"""In which order rows are read, so that those of each slot come by time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.arrays import Longs, is_null, numpy_array
from sessionkit.base.process import shares, thread_count
from sessionkit.errors import InvalidData, problem
from sessionkit.records.row_names import row_name
from sessionkit.session_rules.loops import are_in_order, find_late, merge_late
from sessionkit.trace.loops import MANY_ROWS, order_by_place

Span = tuple[int, int]  # of rows in an order, or of sessions: from, up to
_FEW_LATE = 8  # one row of so many


def order_of_rows(
    table: pa.Table, slot: Longs, slots: int, time: Longs, offset: str | None
) -> tuple[Longs, list[Span]]:
    """The rows of each slot by time, then by offset, else as they stand, and spans of them that share no slot.

    No rows stand for all, which are so in each slot. Where few rows are late, they stay nearly as they are, which are
    read faster than rows by slot.
    """
    count = len(slot)
    threads = thread_count() if count >= MANY_ROWS else 1
    if offset is not None:
        if table[offset].null_count:
            got = f"a missing one in {row_name(int(np.flatnonzero(is_null(table[offset]))[0]))}"
            raise InvalidData(problem(f"column {offset!r} lacks offsets", got, "a number in each row"))
        by_offset = numpy_array(pc.sort_indices(table, sort_keys=[(offset, "ascending")])).astype(np.int64)
        rows = by_offset[slot[by_offset] >= 0]
    else:
        late, counts = np.empty(count // _FEW_LATE, np.int64), np.zeros(threads, np.int64)
        size = find_late(slot, time, late, counts)
        if size <= len(late) and (size or threads > 1):
            order, ends = np.empty(counts.sum(), np.int64), np.append(0, np.cumsum(counts))
            merge_late(slot, time, late[:size][np.argsort(time[late[:size]], kind="stable")], ends[:-1].copy(), order)
            return order, _spans(ends)
        if are_in_order(slot, time, np.full(slots, np.iinfo(np.int64).min)):
            return np.empty(0, np.int64), _spans([0])
        rows = np.flatnonzero(slot >= 0)
    order = rows[order_by_place(slot[rows], slots, time[rows])]
    edges = {0, len(order)}
    if threads > 1 and len(order):
        starts = order[[share.start for share in shares(len(order))]]
        edges |= {bisect_left(order, place, key=slot.__getitem__) for place in slot[starts]}
    return order, _spans(sorted(edges))


def _spans(edges: Iterable[int]) -> list[Span]:
    """What lies between the edges. One without rows of an order stands for all as they stand, so it is alone."""
    return [(int(start), int(end)) for start, end in pairwise(edges) if start < end] or [(0, 0)]
