"""Neighbouring rows of a key, in order of time: each pair is in one session or is cut, by us and by them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from sessionkit.base.arrays import Codes, Flags, Longs, order_by
from sessionkit.errors import UnsupportedData, attempted
from sessionkit.records.batch import RecordBatch
from sessionkit.records.inputs.opened import Opened
from sessionkit.records.inputs.plain_columns import plain_table
from sessionkit.session_rules.cut import coded

Coded = tuple[Codes, pa.Array]  # number of each row's value, -1 for a missing one; and the values


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Rows that both have in sessions, by key and time, and among equal times as they stand.

    All but the first five have an element for each pair, a row and the next one of its key.
    """

    rows: Longs  # in that order
    key: Longs  # whose row each of them is, of them all: a key in a partition
    time_ms: Longs
    our_id: Longs
    their_id: Longs
    before: Longs  # a place among `rows`; the later row of a pair stands behind it
    pause_ms: Longs
    ours: Flags  # whether it is cut
    theirs: Flags

    @property
    def differ(self) -> Flags:
        """The pairs that one of the two cuts and the other one does not."""
        return self.ours != self.theirs

    @property
    def after(self) -> Longs:
        """The place of the later row of each pair."""
        return self.before + 1

    @cached_property
    def begins(self) -> Flags:
        """Whether a session of theirs begins, or goes on after another one, at each place among the rows."""
        begins = np.ones(len(self.rows), np.bool_)
        begins[self.after[~self.theirs]] = False
        return begins

    @cached_property
    def begin(self) -> Longs:
        """The place at which the session of theirs has begun that the earlier row of each pair is in."""
        return np.maximum.accumulate(np.where(self.begins, np.arange(len(self.rows)), 0))[self.before]

    @cached_property
    def sizes(self) -> tuple[Longs, Longs]:
        """(time, rows) from the begin of their session to the later row of each pair, which may be in another one."""
        return self.time_ms[self.after] - self.time_ms[self.begin], self.after - self.begin + 1

    @cached_property
    def orders(self) -> tuple[Longs, Longs, Longs]:
        """The pairs by their pause, and by each of `sizes`."""
        pause, time, rows = (np.argsort(each, kind="stable") for each in (self.pause_ms, *self.sizes))
        return pause, time, rows

    @cached_property
    def return_later(self) -> int:
        """How many of their sessions are interrupted by another one of the same key."""
        begins = self.begins
        parts = self.key[begins] * (int(self.their_id.max(initial=0)) + 1) + self.their_id[begins]
        return int((np.unique(parts, return_counts=True)[1] > 1).sum())


def pairs_of(batch: RecordBatch, our_id: Longs, their_id: Longs) -> Pairs:
    """The pairs of these rows; -1 is the session of a row that is in none."""
    key = batch.key.astype(np.int64) + max(1, len(batch.keys)) * batch.partition.astype(np.int64)
    rows = np.flatnonzero((our_id >= 0) & (their_id >= 0))
    rows = rows[order_by(key[rows], batch.timestamp_ms[rows])]
    key, time_ms, our_id, their_id = key[rows], batch.timestamp_ms[rows], our_id[rows], their_id[rows]
    before = np.flatnonzero(key[1:] == key[:-1])
    after = before + 1
    return Pairs(
        rows=rows,
        key=key,
        time_ms=time_ms,
        our_id=our_id,
        their_id=their_id,
        before=before,
        pause_ms=time_ms[after] - time_ms[before],
        ours=our_id[after] != our_id[before],
        theirs=their_id[after] != their_id[before],
    )


def columns_of(opened: Opened, names: Iterable[str]) -> dict[str, Coded]:
    """The columns of these names whose values can be compared."""
    table = plain_table(opened.table.select([name for name in names if name not in opened.objects]))
    found = {name: attempted(coded, table[name], name, but=UnsupportedData) for name in table.column_names}
    return {name: codes for name, codes in found.items() if codes is not None}
