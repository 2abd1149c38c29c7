"""The records that moved stream time, ranked by how many others came too late because of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Generic, NamedTuple

import numpy as np
import pyarrow as pa

from sessionkit.base.arrays import Codes, Longs, arrow_array, texts
from sessionkit.base.calls import answers_calls
from sessionkit.base.decisions import IDLE, LATE
from sessionkit.base.durations import about
from sessionkit.base.text import percent, plural
from sessionkit.records.frames import Frame
from sessionkit.trace.trace import Trace
from sessionkit.views.drawing.palettes import Figure, Theme
from sessionkit.views.html import Pictured
from sessionkit.views.tables import frame_of
from sessionkit.views.words import clock, in_zone, lower_first, record_name
from sessionkit.windows.contract import WindowKind

FOLLOWING = 25  # records after one in its partition, with whose times its own is compared
BY_RECORD, BY_EARLIER_RUN, BY_IDLE_RULE = "record", "earlier run", "idle rule"


class Movers(NamedTuple):
    """What moved stream time to where late records met it, those to which most are lost first."""

    at: Longs  # the row of a record; -1: an earlier run, whose records a store does not keep
    partition: Codes
    time_ms: Longs  # the stream time that late records met
    late: Longs  # how many


@answers_calls("clock")
@dataclass(frozen=True, repr=False)
class Clock(Pictured, Generic[Frame]):
    """The records that moved stream time, ranked by how many others were lost to each of them.

    A late record is lost to the one that had set the stream time of its partition when it came. With time and sliding
    windows a record is late if it missed one, even if it counts in others.

    Example:
        >>> moved = waves.run(flights).clock()
        >>> moved.late_count, len(moved.table())
        (955, 490)
        >>> print(moved.words()[0])
        955 of 28,491 records (3.35%) were dropped as late.
        >>> moved.table()["late"].tolist()[:3]
        [24, 23, 16]
        >>> figure = moved.figure()
    """

    trace: Trace
    windows: WindowKind

    @property
    def late_count(self) -> int:
        """How many records came too late."""
        return int(self._movers.late.sum())

    @cached_property
    def _movers(self) -> Movers:
        """What moved stream time, by rank."""
        trace, partitions = self.trace, len(self.trace.batch.partitions)
        late = np.flatnonzero(trace.late_for_some)
        mover, partition, size = trace.moved_by(late), trace.batch.partition[late], len(trace)
        counts = np.bincount(np.where(mover < 0, size + partition, mover), minlength=size + partitions)
        found = np.flatnonzero(counts)
        found = found[np.argsort(-counts[found], kind="stable")]
        is_row, rows = found < size, np.minimum(found, size - 1)
        partition = np.where(is_row, trace.batch.partition[rows], found - size)
        time_ms = np.where(is_row, trace.stream_time_ms[rows], trace.first_stream_time_ms[partition])
        return Movers(np.where(is_row, found, -1), partition, time_ms, counts[found])

    def _moved_ms(self, at: Longs) -> Longs:
        """By how much these records moved stream time; -1 where there was none before, or where no record is known."""
        before_ms = self.trace.stream_time_before_ms[at]
        return np.where((at < 0) | (before_ms < 0), -1, self.trace.stream_time_ms[at] - before_ms)

    def table(self) -> Frame:
        """One row for each record to which others were lost, those with most first.

        Columns: partition, offset, the key columns, timestamp, `what` moved stream time ("record", "earlier run" or
        "idle rule"), moved_ms (by how much), late (how many records were lost to it) and share (of all late records).
        Offset and key are null where it was no record of this run, moved_ms where the partition had no stream time.
        """
        trace, movers = self.trace, self._movers
        is_idle = (movers.at >= 0) & (trace.decision[movers.at] == IDLE)
        is_unknown, moved_ms = (movers.at < 0) | is_idle, self._moved_ms(movers.at)
        key = trace.batch.key[movers.at]
        words = texts([BY_RECORD, BY_EARLIER_RUN, BY_IDLE_RULE])
        what = pa.DictionaryArray.from_arrays(arrow_array(np.where(is_idle, 2, movers.at < 0).astype(np.int8)), words)
        columns = {
            "partition": trace.batch.partitions[movers.partition],
            "offset": arrow_array(trace.batch.offset[movers.at], is_unknown),
            "key": trace.keys.take(arrow_array(key, is_unknown | (key < 0))),
            "timestamp_ms": movers.time_ms,
            "what": what.cast(pa.string()),
            "moved_ms": arrow_array(moved_ms, moved_ms < 0),
            "late": movers.late,
            "share": movers.late / max(self.late_count, 1),
        }
        return frame_of(columns, trace.batch)

    def figure(self, *, theme: Theme | None = None) -> Figure:
        """The records to which most others were lost, a bar each."""
        from sessionkit.views.explain.clock_figure import clock_figure

        return clock_figure(self, theme=theme)

    def words(self) -> list[str]:
        """How many records came too late, to which record most of them are lost, and to how many half of them are."""
        late, count, movers = self.late_count, self.trace.record_count, self._movers
        if not late:
            few = "The record did not come too late." if count else "There are no records."
            return [few if count < 2 else f"None of the {plural(count, 'record')} came too late."]
        was = "was" if late == 1 else "were"
        did = f"{was} dropped as late" if (self.trace.decision == LATE).sum() == late else "missed a window"
        said = [f"{late:,} of {plural(count, 'record')} ({percent(late / count)}) {did}."]
        share = movers.late[0] / late
        lost = "It is" if late == 1 else "All of them are" if share == 1 else f"{percent(share)} of them are"
        if movers.late[0] == 1 < late:
            return [*said, "No two of them are lost to the same record.", *in_zone(self.trace)]
        said.append(f"{lost} lost to {self._mover_words(0)}.")
        half = int(np.searchsorted(np.cumsum(movers.late), late / 2)) + 1
        if half > 1:
            said.append(f"Half of them are lost to {half:,} of the {len(movers.at):,} that any were lost to.")
        earlier = int(movers.late[movers.at < 0].sum())
        if earlier and movers.at[0] >= 0:
            said.append(f"{earlier:,} of them came behind the stream time of an earlier run, loaded from the store.")
        return [*said, *in_zone(self.trace)]

    def _mover_words(self, rank: int) -> str:
        """What moved stream time, by its rank: which record, by how much, and how far it was ahead of the next ones."""
        trace, at = self.trace, clock(self.trace)
        row, partition, time_ms = (int(column[rank]) for column in self._movers[:3])
        if row < 0:
            where = f" of partition {trace.batch.partitions[partition]}" if len(trace.batch.partitions) > 1 else ""
            which = "the store does not say by which record"
            return f"an earlier run, which had moved stream time{where} to {at(time_ms)} ({which})"
        name = lower_first(record_name(trace, row))
        when = "" if trace.decision[row] == IDLE else f", event time {at(time_ms)}"
        return f"{name}{when}, which {' and '.join(self._how_words(row))}"

    def _how_words(self, row: int) -> list[str]:
        """By how much a record moved stream time, and how far it was ahead of the next ones."""
        moved_ms, is_idle = int(self._moved_ms(np.array([row]))[0]), self.trace.decision[row] == IDLE
        ahead_ms = 0 if is_idle else self._ahead_ms(row)
        moved = f"moved stream time by {about(moved_ms)}" if moved_ms >= 0 else "was the first of its partition"
        return [moved, *([f"was {about(ahead_ms)} ahead of those that came next"] if ahead_ms > 0 else [])]

    def _ahead_ms(self, row: int) -> int:
        """How far the time of a record is ahead of the middle one of those that came next in its partition."""
        trace, batch = self.trace, self.trace.batch
        is_next = (batch.partition[row + 1 :] == batch.partition[row]) & (trace.decision[row + 1 :] <= LATE)
        next_ms = batch.timestamp_ms[row + 1 :][is_next][:FOLLOWING]
        return int(batch.timestamp_ms[row] - np.median(next_ms)) if len(next_ms) else 0
