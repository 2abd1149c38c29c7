"""Windows of two runs that belong together, as columns: a group of them a row, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.arrays import Flags, Longs
from sessionkit.trace.loops import grouped
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.trace.trace import Trace, WindowColumns
from sessionkit.views.loops import group_tied, rows_of_places

CHANGES = ("same", "changed", "split", "joined", "regrouped", "lost", "gained")
SAME, CHANGED, SPLIT, JOINED, REGROUPED, LOST, GAINED = range(len(CHANGES))
AreSame = Callable[[Longs, Longs], Flags]


class Side(NamedTuple):
    """The windows of one run: those of group g are `rows[first[g]:first[g + 1]]`, by start and end."""

    first: Longs
    rows: Longs
    columns: WindowColumns
    partitions: Longs  # the number of each partition code

    @property
    def counts(self) -> Longs:
        """How many windows each group has."""
        return np.diff(self.first)

    @property
    def group(self) -> Longs:
        """The group of each of the `rows`."""
        return np.repeat(np.arange(len(self.first) - 1), self.counts)

    def one_of_each(self, groups: Longs) -> Longs:
        """The first window of each of these groups, none of which is empty."""
        return self.rows[self.first[groups]]

    @property
    def start_ms(self) -> Longs:
        """Of each of the `rows`."""
        return self.columns.start_ms[self.rows]

    @property
    def end_ms(self) -> Longs:
        """Of each of the `rows`."""
        return self.columns.end_ms[self.rows]


@dataclass(frozen=True, eq=False)
class Groups:
    """Every window of both runs is in one group. `what` holds numbers of CHANGES."""

    before: Side
    after: Side
    what: npt.NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.what)

    @cached_property
    def key(self) -> Longs:
        return self._of_one(lambda side, rows: side.columns.key[rows])

    @cached_property
    def partition(self) -> Longs:
        return self._of_one(lambda side, rows: side.partitions[side.columns.partition[rows]])

    @cached_property
    def start_ms(self) -> Longs:
        found = np.full(len(self), np.iinfo(np.int64).max)
        for side in (self.before, self.after):
            groups = np.flatnonzero(side.counts)
            found[groups] = np.minimum(found[groups], side.columns.start_ms[side.one_of_each(groups)])
        return found

    @cached_property
    def end_ms(self) -> Longs:
        found = np.full(len(self), np.iinfo(np.int64).min)
        for side in (self.before, self.after):
            if len(groups := np.flatnonzero(side.counts)):
                found[groups] = np.maximum(found[groups], np.maximum.reduceat(side.end_ms, side.first[groups]))
        return found

    def _of_one(self, take: Callable[[Side, Longs], npt.NDArray[Any]]) -> Longs:
        found = np.empty(len(self), np.int64)
        for side in (self.after, self.before):
            groups = np.flatnonzero(side.counts)
            found[groups] = take(side, side.one_of_each(groups))
        return found


def groups_by_records(before: SessionTrace, after: SessionTrace, are_same: AreSame) -> Groups:
    """Sessions hang together where they share a record; a record that only one run keeps changes its session."""
    traces = (before, after)
    window = [trace.survivor[trace.is_record] for trace in traces]  # what only moves stream time differs between them
    kept = [rows >= 0 for rows in window]
    shared = kept[0] & kept[1]
    tied = [rows[shared] for rows in window]
    count = [len(trace.window_columns.key) for trace in traces]
    alive = [_marked(*each) for each in zip(count, window, kept, strict=True)]
    differs = [_marked(each, rows, mine & ~shared) for each, rows, mine in zip(count, window, kept, strict=True)]
    group, size = group_tied(*tied, *alive)
    labels = np.split(group, [len(alive[0])])
    return _told(traces, labels, size, lambda one, other: are_same(one, other) & ~(differs[0][one] | differs[1][other]))


def groups_by_place(before: Trace, after: Trace, are_same: AreSame) -> Groups:
    """Time and sliding windows are known by partition, key and bounds."""
    traces = (before, after)
    mate = rows_of_places(*_places(before), *_places(after))
    lone = mate < 0
    count = len(before.window_columns.key)
    found = np.where(lone, count + np.cumsum(lone) - 1, mate)
    return _told(traces, [np.arange(count), found], count + int(lone.sum()), are_same)


def _marked(count: int, window: Longs, records: Flags) -> Flags:
    """True for each of so many windows that one of these records ended up in."""
    marked = np.zeros(count, np.bool_)
    marked[window[records]] = True
    return marked


def _places(trace: Trace) -> tuple[npt.NDArray[Any], ...]:
    columns = trace.window_columns
    partition = trace.batch.partitions[columns.partition].astype(np.int64)
    return partition, columns.key, columns.start_ms, columns.end_ms


def _told(traces: tuple[Trace, Trace], labels: Sequence[Longs], size: int, are_same: AreSame) -> Groups:
    before, after = (_side(trace, label, size) for trace, label in zip(traces, labels, strict=True))
    many, many_after = before.counts, after.counts
    several = np.where(many == 1, SPLIT, np.where(many_after == 1, JOINED, REGROUPED))
    what = np.where(many_after == 0, LOST, np.where(many == 0, GAINED, several))
    pairs = np.flatnonzero((many == 1) & (many_after == 1))
    same = are_same(before.one_of_each(pairs), after.one_of_each(pairs))
    what[pairs] = np.where(same, SAME, CHANGED)
    return Groups(before, after, what.astype(np.int8))


def _side(trace: Trace, label: Longs, size: int) -> Side:
    columns = trace.window_columns
    first, rows = grouped(label, size)
    count = np.diff(first)
    several = np.repeat(count > 1, count)
    chosen = rows[several]
    place = (columns.end_ms[chosen], columns.start_ms[chosen], np.repeat(np.arange(size), count)[several])
    rows[several] = chosen[np.lexsort(place)]
    return Side(first, rows, columns, trace.batch.partitions)


def ranks_as_text(keys: pa.Array) -> Longs:
    """The place of each distinct key among all of them, in the order of their texts."""
    texts = keys if pa.types.is_string(keys.type) else pa.array([str(key) for key in keys.to_pylist()], pa.string())
    ranks = np.empty(len(keys), np.int64)
    ranks[pc.sort_indices(texts).to_numpy()] = np.arange(len(keys))
    return ranks
