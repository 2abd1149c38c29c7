"""Why records come too late, in words, and the stream of one partition in which a reason is looked for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sessionkit.base.arrays import Codes, Flags, Longs, Rows
from sessionkit.base.durations import about
from sessionkit.base.text import literal, plural
from sessionkit.records.batch import RecordBatch
from sessionkit.records.loops import stream_times
from sessionkit.records.source import Source

SORT = 'sort="timestamp" in group_by_key{} sorts the rows by time.'
TIES = " Rows of one time stay newest first, unless all rows are turned round before, as by df[::-1] in pandas."
WITHOUT_OFFSET = ", without offset=,"


class Cause(NamedTuple):
    """Why many records are behind stream time, and what can be done."""

    why: str  # the end of a sentence
    way: str  # a sentence
    is_order: bool = False  # the rows sorted by time are the way
    to_leave_out: Rows | None = None  # of the batch: records that are ahead
    late: int = 0  # records that are behind stream time by more than was asked for
    records: int = 0
    is_behind: bool = False  # it is about records far before all others alone, late or not
    left: int = 0  # of the late ones, without the records to leave out
    is_ahead: bool = False  # clocks in the future are to blame

    @property
    def because(self) -> str:
        """How many of the late records it explains, where not all, and why they are late."""
        share = "" if not self.left else "nearly all " if 10 * self.left <= self.late else "many "
        return f"{share}because {self.why}"

    def with_guard(self, arrival: str | None) -> Cause:
        """The cause with the guard against clocks in the future as a way, if this column says when records arrived."""
        if not self.is_ahead or arrival is None:
            return self
        guard = f'arrival={literal(arrival)}, max_ahead="5m", ahead="drop" in group_by_key'
        return self._replace(way=f"{self.way} What is further ahead of its arrival can also be dropped: {guard}.")

    def words(self, dropped: int | None, lag_ms: int) -> str:
        """How many records were late, why, and what can be done; `dropped` is None before there is a grace."""
        if not self.late:
            return f"{self.why[:1].upper()}{self.why[1:]}. {self.way}"
        count, what = self.late, f"are {f'more than {about(lag_ms)} ' if lag_ms else ''}behind stream time"
        if dropped is not None:
            count, what = dropped, f"came too late and {'was' if dropped == 1 else 'were'} dropped"
        return f"{count:,} of {plural(self.records, 'record')} {what}, {self.because}. {self.way}".rstrip()


class LateStream(NamedTuple):
    """The usable records of one partition, in order of arrival."""

    batch: RecordBatch
    source: Source
    rows: Rows  # of the batch
    times: Longs
    keys: Codes
    late: Flags
    lag_ms: int
    has_one_key: bool  # and all other partitions have no other

    @property
    def sort(self) -> str:
        """The advice to sort the rows."""
        return SORT.format("" if self.source.offset is None else WITHOUT_OFFSET)

    @property
    def late_count(self) -> int:
        return int(np.count_nonzero(self.late))

    def late_within(self, group: npt.NDArray[np.integer], groups: int) -> int:
        """How many records would be late if each group had a stream time of its own."""
        return int(np.count_nonzero(are_late(self.times, self.lag_ms, group, groups)))

    def late_without(self, left_out: npt.NDArray[np.integer | np.bool_]) -> int:
        """How many of the other records would be late without these."""
        return int(np.count_nonzero(are_late(np.delete(self.times, left_out), self.lag_ms)))


def are_late(times: Longs, lag_ms: int, group: npt.NDArray[np.integer] | None = None, groups: int = 1) -> Flags:
    """True for each record that is behind the stream time of its group by more than `lag_ms`."""
    newest = np.empty(len(times), np.int64)
    of = np.zeros(len(times), np.int32) if group is None else group.astype(np.int32)
    stream_times(of, times, np.empty(0, np.uint8), np.full(groups, -1), newest)
    return times < newest - lag_ms
