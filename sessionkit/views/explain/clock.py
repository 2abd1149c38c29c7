"""The records that moved stream time, ranked by how many others came too late because of them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, NamedTuple

import numpy as np

from sessionkit.base.arrays import Longs, arrow_array, arrow_table, numpy_array, texts
from sessionkit.base.calls import answers_calls
from sessionkit.base.decisions import IDLE, LATE
from sessionkit.base.durations import about
from sessionkit.base.text import percent, plural
from sessionkit.records.frames import Frame
from sessionkit.trace.trace import Trace
from sessionkit.views.drawing.palettes import Figure, Theme
from sessionkit.views.html import Pictured
from sessionkit.views.tables import frame_of
from sessionkit.views.words import Said, record_name
from sessionkit.windows.contract import WindowKind

FOLLOWING = 25  # records after one in its partition, with whose times its own is compared


class Mover(NamedTuple):
    """What moved stream time to where late records met it."""

    name: str
    time_ms: int
    moved_ms: int  # -1 where the stream time before is not known
    ahead_ms: int  # of those that came next, in the middle; 0 or less where it was not
    late: int  # how many records are lost to it

    @property
    def how(self) -> list[str]:
        """By how much it moved stream time; and how far it was ahead of the next ones, if it was."""
        moved = f"moved stream time by {about(self.moved_ms)}" if self.moved_ms >= 0 else "moved stream time"
        ahead = [f"was {about(self.ahead_ms)} ahead of those that came next"] if self.ahead_ms > 0 else []
        return [moved, *ahead]


class MoversInWords(Pictured):
    """What is said and drawn of the records that moved stream time."""

    @property
    @abstractmethod
    def late_count(self) -> int:
        """How many records came too late."""

    @property
    @abstractmethod
    def _record_count(self) -> int:
        """How many records there were."""

    @property
    @abstractmethod
    def _are_dropped(self) -> bool:
        """Whether all late records are in no window."""

    @property
    @abstractmethod
    def _lost(self) -> Longs:
        """How many records are lost to each that moved stream time, those with most first."""

    @abstractmethod
    def _mover(self, rank: int) -> Mover:
        """The one with this place among those to which records are lost."""

    @property
    @abstractmethod
    def _said(self) -> Said:
        """How times are said."""

    def figure(self, *, theme: Theme | None = None) -> Figure:
        """The records to which most others were lost, a bar each."""
        from sessionkit.views.explain.figure import clock_figure

        return clock_figure(self, theme=theme)

    def words(self) -> list[str]:
        """How many records came too late, to which record most of them are lost, and to how many half of them are."""
        late, count = self.late_count, self._record_count
        if not late:
            return ["No record came too late."]
        was = "was" if late == 1 else "were"
        did = f"{was} dropped as late" if self._are_dropped else "missed a window"
        half = int(np.searchsorted(np.cumsum(self._lost), late / 2)) + 1
        more = [f"Half of them are lost to {half:,} of the {len(self._lost):,} that any were lost to."]
        said = f"{late:,} of {plural(count, 'record')} ({percent(late / count)}) {did}."
        return [said, self._mover_words(0), *(more if half > 1 else []), *self._said.in_zone]

    def _mover_words(self, rank: int) -> str:
        """What moved stream time, by its rank, when and how; and how many records were lost to it."""
        found = self._mover(rank)
        lost = f"{plural(found.late, 'record')} ({percent(found.late / self.late_count)}) came too late because of it"
        return f"{found.name}, event time {self._said.at(found.time_ms)}, {' and '.join(found.how)}: {lost}."


@answers_calls("clock")
@dataclass(frozen=True, repr=False)
class Clock(MoversInWords, Generic[Frame]):
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
        return int(self.trace.late_for_some.sum())

    @property
    def _record_count(self) -> int:
        return self.trace.record_count

    @property
    def _are_dropped(self) -> bool:
        return int((self.trace.decision == LATE).sum()) == self.late_count

    @property
    def _lost(self) -> Longs:
        return self._movers["at_count"]

    @property
    def _said(self) -> Said:
        return Said.of(self.trace)

    @cached_property
    def _movers(self) -> dict[str, Longs]:
        """What moved stream time to where late records met it, those to which most are lost first.

        `at` is the row of a record, -1 for an earlier run, whose records a store does not keep; `partition` is a code,
        and `before_ms` the stream time that was moved on, -1 where it is not known.
        """
        trace, late = self.trace, np.flatnonzero(self.trace.late_for_some)
        at = trace.moved_by(late)
        met = {"at": at, "partition": trace.batch.partition[late], "timestamp_ms": trace.stream_time_ms[late]}
        met["before_ms"] = np.where(at < 0, -1, trace.stream_time_before_ms[at])
        lost = arrow_table(met).group_by([*met]).aggregate([("at", "count")])
        ranked = lost.sort_by([("at_count", "descending"), ("at", "ascending"), ("partition", "ascending")])
        return {name: numpy_array(ranked[name]) for name in ranked.column_names}

    def table(self) -> Frame:
        """One row for each record to which others were lost, those with most first.

        Columns: partition, offset, the key columns, timestamp, `what` moved stream time ("record", "earlier run" or
        "idle rule"), moved_ms (by how much), late (how many records were lost to it) and share (of all late records).
        Offset and key are null where it was no record of this run, moved_ms where the partition had no stream time.
        """
        trace, batch, movers = self.trace, self.trace.batch, self._movers
        at, time_ms, before_ms, late = (movers[name] for name in ("at", "timestamp_ms", "before_ms", "at_count"))
        what = np.where(at < 0, "earlier run", np.where(trace.decision[at] == IDLE, "idle rule", "record"))
        columns = {
            "partition": batch.partitions[movers["partition"]],
            "offset": arrow_array(batch.offset[at], what != "record"),
            "key": trace.keys.take(arrow_array(batch.key[at], what != "record")),
            "timestamp_ms": time_ms,
            "what": texts(what.tolist()),
            "moved_ms": arrow_array(time_ms - before_ms, before_ms < 0),
            "late": late,
            "share": late / max(self.late_count, 1),
        }
        return frame_of(columns, batch)

    def _mover(self, rank: int) -> Mover:
        trace, batch = self.trace, self.trace.batch
        names = ("at", "timestamp_ms", "before_ms", "at_count")
        row, time_ms, before_ms, late = (int(self._movers[name][rank]) for name in names)
        moved_ms = time_ms - before_ms if before_ms >= 0 else -1
        if row < 0:
            return Mover("An earlier run", time_ms, moved_ms, 0, late)
        is_next = (batch.partition[row + 1 :] == batch.partition[row]) & (trace.decision[row + 1 :] <= LATE)
        ahead_ms = time_ms - int(np.median(batch.timestamp_ms[row + 1 :][is_next][:FOLLOWING]))
        return Mover(record_name(trace, row), time_ms, moved_ms, ahead_ms, late)
