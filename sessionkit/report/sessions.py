"""The sessions or other windows of a run in numbers: how long and how large they are, per key and per day."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.arrays import Longs
from sessionkit.base.durations import DAY, HOUR, MINUTE, SECOND
from sessionkit.base.result_columns import shown_key
from sessionkit.plan import Plan
from sessionkit.report.written import as_arrow
from sessionkit.run import Run
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.trace.window_trace import WindowTrace
from sessionkit.views import tables

MOST_DAYS = 366  # rows of one table; of a longer time the months are shown, then the years
LENGTHS_MS = (
    *(0, 10, 100, SECOND, 10 * SECOND, MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE),
    *(hours * HOUR for hours in (1, 2, 4, 8)),
    *(days * DAY for days in (1, 2, 7, 30, 90, 365, 3_650)),
)
SIZES = (1, 2, *(step * 10**power for power in range(18) for step in (5, 10, 20)))


class Bin(NamedTuple):
    """How many sessions are above `above` and at most `up_to`; None: no limit."""

    above: int
    up_to: int | None
    sessions: int


class Group(NamedTuple):
    """Sessions that belong together, as columns: a row for each group that has a session or a dropped record."""

    code: Longs
    sessions: Longs
    records: Longs
    dropped: Longs
    median_ms: Longs
    longest_ms: Longs


class Sessions:
    """The sessions, or other windows, of a run as columns, by partition, key and start, as `run.table()` has them."""

    def __init__(self, run: Run) -> None:
        outcome, self.run = run._outcome, run
        self.trace: SessionTrace | WindowTrace = outcome.kept_trace
        self.noun = run._windows.noun  # "session" or "window"
        self.have_lengths = are_sessions(run.plan)  # all other windows of a run are equally long
        columns, rows = outcome.window_columns, tables.table_rows(outcome)
        self.key: Longs = columns.key[rows].astype(np.int64)  # its place among the keys of the run
        self.start_ms: Longs = columns.start_ms[rows]  # the time of the first record of a session
        self.end_ms: Longs = columns.end_ms[rows]  # and of its last
        self.length_ms: Longs = self.end_ms - self.start_ms
        self.records: Longs = self.trace.sizes[rows]
        # how many other sessions each of them took in; none of other windows
        self.merged = np.bincount(self.trace.ended_in, minlength=len(columns.key))[rows] - 1
        asked = [name for name, each in run.plan._aggregations if each.built_in != "count"]  # that is the records
        self.results: dict[str, tables.Column] = {name: run._table[name] for name in asked}

    def __len__(self) -> int:
        return len(self.start_ms)

    @cached_property
    def by_key(self) -> Group:
        """The keys, those with most sessions first; of equal ones those with most records."""
        trace = self.trace
        lost = trace.batch.key[(trace.batch.key >= 0) & ~trace.accepted]
        kept = np.bincount(trace.batch.key[trace.accepted], minlength=len(trace.keys))  # once, in however many windows
        group = self._grouped(self.key, np.bincount(lost, minlength=len(trace.keys)), kept)
        order = np.lexsort((group.code, -group.records, -group.sessions))
        return Group(*(column[order] for column in group))

    @cached_property
    def by_day(self) -> tuple[list[str], Group]:
        """The days of the run's zone on which sessions begin, by date, and what is on each."""
        return self._by_time("D")

    @cached_property
    def by_period(self) -> tuple[str, list[str], Group]:
        """("day", "month" or "year"; their names; what is in each): the finest that makes a table to be read."""
        word, (names, group) = "day", self.by_day
        for longer, unit in (("month", "M"), ("year", "Y")):
            if len(names) > MOST_DAYS:
                word, (names, group) = longer, self._by_time(unit)
        return word, names, group

    def _by_time(self, unit: str) -> tuple[list[str], Group]:
        batch, lost = self.trace.batch, ~self.trace.accepted
        lost &= batch.usable  # what has no usable time lies on no day
        own = self.trace.accepted & (not self.have_lengths)  # a record of several windows counts on a day of its own
        times = np.concatenate([self.start_ms, batch.timestamp_ms[lost], batch.timestamp_ms[own]])
        local = pc.local_timestamp(pa.array(times, pa.timestamp("ms", batch.timezone)))
        days = (np.asarray(local.cast(pa.int64())) // DAY).astype("datetime64[D]").astype(f"datetime64[{unit}]")
        named, code = np.unique(days, return_inverse=True)
        code, of_lost, of_own = np.split(code, [len(self), len(self) + int(lost.sum())])
        dropped, records = (np.bincount(each, minlength=len(named)) for each in (of_lost, of_own))
        if self.have_lengths:
            records = np.bincount(code, weights=self.records, minlength=len(named))
        return np.datetime_as_string(named).tolist(), self._grouped(code, dropped, records)

    def _grouped(self, code: Longs, dropped: Longs, records: Longs) -> Group:
        size = len(dropped)
        sessions = np.bincount(code, minlength=size)
        in_order = self.length_ms[np.lexsort((self.length_ms, code))]
        first = np.cumsum(sessions) - sessions
        there = sessions > 0
        median, longest = np.zeros(size, np.int64), np.zeros(size, np.int64)
        median[there] = in_order[(first + (sessions - 1) // 2)[there]]
        longest[there] = in_order[(first + sessions - 1)[there]]
        kept = np.flatnonzero(there | (dropped > 0) | (records > 0))
        columns = (np.arange(size), sessions, records, dropped, median, longest)
        return Group(*(column[kept].astype(np.int64) for column in columns))

    # ---- as files

    def table(self) -> pa.Table:
        """`run.table()`; with the length of each session in milliseconds."""
        table = as_arrow(self.run.table())
        if not self.have_lengths:
            return table
        return table.append_column(free_name("length_ms", table.column_names), pa.array(self.length_ms))

    def key_table(self) -> pa.Table:
        """A row a key: its sessions, records, dropped records, and the median and longest length in milliseconds."""
        group, batch = self.by_key, self.run._outcome.batch
        taken = [shown_key(name) for name in self.run.plan.source.keys]
        numbers = {free_name(name, taken): column for name, column in self._numbers(group).items()}
        return as_arrow(tables.frame_of({"key": self.trace.keys.take(pa.array(group.code)), **numbers}, batch))

    def day_table(self) -> pa.Table:
        """A row a day of the run's zone: the sessions that begin on it, and what `key_table` has."""
        days, group = self.by_day
        return pa.table({"day": pa.array(days, pa.string()), **self._numbers(group)})

    def _numbers(self, group: Group) -> dict[str, Longs]:
        columns = {f"{self.noun}s": group.sessions, "records": group.records, "dropped": group.dropped}
        return columns | ({"median_ms": group.median_ms, "longest_ms": group.longest_ms} if self.have_lengths else {})


def are_sessions(plan: Plan) -> bool:
    """True if its windows grow and merge, and a dropped record is in none."""
    return plan._complete_windows.holds == "sessions"


def at_most(values: Longs, share: float) -> int:
    """The smallest of the values that this share of them does not exceed."""
    return int(np.sort(values)[max(0, int(np.ceil(share * len(values))) - 1)])


def bins(values: Longs, edges: Sequence[int]) -> list[Bin]:
    """How many of the values, none of which is below the first edge, lie between neighbouring edges.

    From the first that has some to the last; what is empty right behind the first edge itself is left out.
    """
    place = np.searchsorted(np.array(edges, np.int64), values)
    counts = np.bincount(place, minlength=len(edges) + 1)
    first, last = int(place.min()), int(place.max())
    rest = int(place[place > 0].min()) if last else 1
    return [
        Bin(edges[at - 1] if at else edges[0] - 1, edges[at] if at < len(edges) else None, int(counts[at]))
        for at in range(first, last + 1)
        if at == 0 or at >= rest
    ]


def free_name(name: str, taken: Sequence[str]) -> str:
    """`name`, or one like it that no column has: a file may have an "offset" of its own that is none in a stream."""
    while name in taken:
        name += "_"
    return name
