"""The records and windows of one key in one partition: what a plane shows of them, of windows of every kind."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from sessionkit.base.arrays import Flags, Floats, Longs, Rows
from sessionkit.base.decisions import LATE, MERGED
from sessionkit.base.text import plural
from sessionkit.errors import InvalidArgument, UnknownRecord, problem, shorten
from sessionkit.trace.trace import Trace

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    T_co = TypeVar("T_co", bound=Trace, covariant=True, default=Trace)
else:
    from typing import TypeVar

    T_co = TypeVar("T_co", covariant=True)

How = Literal["closed", "merged", "open"]
MOST_ROWS = 120  # rows of a plane that was not told what to show: some 4 pixels each
BOTTOM, TOP = -2.0, 0.9  # bodies that go on are drawn to here, in rows beyond the first and the last
_FEWEST_ROWS = 40  # of a stretch that we choose: a lone drop is not understood without what came before it
_STEPS_OF_THE_LINE = 30  # on its way over the wait
_MARGIN_ROWS = 3
# what makes a stretch worth showing: for the first of its kind, and once more shared by so many of them
_WORTH = dict.fromkeys(("merges", "reopened", "partly_late"), (8.0, 4)) | {"drops": (14.0, 4), "far_drops": (12.0, 4)}
_WORTH |= {"late_but_kept": (4.0, 4), "opened": (4.0, 4), "closes": (7.0, 4), "kept": (8.0, 40)}
_NEAR = 8  # waits behind the close line up to which a drop can be drawn beside sessions
ENOUGH_KEPT = 40  # records that a stretch shows, if any has so many
_WALL_COST = 36.0  # of nothing but drops
_CUT_WINDOW_COST = 5.0
_LONG_SILENCE, _SILENCE_COST = 1.5, 6.0  # a night in the middle flattens everything beside it


class Size(NamedTuple):
    """How many records of this run a session holds, and whether it came from a store and so had some before."""

    record_count: int
    had_more: bool

    @property
    def words(self) -> str:
        """The number with its noun."""
        return plural(self.record_count, "record") + (" of this run" if self.had_more else "")


@dataclass(frozen=True)
class Life:
    """One life of a window, from its birth or re-opening to its closure, its merge, or the last row."""

    window: int
    steps: tuple[tuple[float, int, int], ...]  # (row, start_ms, end_ms): the bounds from this row on
    end: float
    how: Literal["closed", "merged", "open", "cut"]


class Spans(NamedTuple):
    """The lives of a key's windows as columns, by window and time: the record that began each (-1: before the run),
    the one that ended it, and how."""

    window: Longs
    begin: Longs
    end: Longs
    how: npt.NDArray[np.str_]


@dataclass(frozen=True)
class Cap:
    """A closure: where, over which bounds, and what the window held."""

    window: int
    at: int
    start_ms: int
    end_ms: int
    size: Size


@dataclass(frozen=True)
class KeyRows(Generic[T_co]):
    """The records and windows of one key in one partition of a trace; `key` and `partition` are codes."""

    trace: T_co
    key: int
    partition: int
    trailing_only: bool = False  # only windows that end with a record are results

    @cached_property
    def of_partition(self) -> Longs:
        """All records of the partition, as rows of the trace."""
        return np.flatnonzero(self.trace.batch.partition == self.partition)

    @cached_property
    def own(self) -> Longs:
        return self.of_partition[self.trace.batch.key[self.of_partition] == self.key]

    @cached_property
    def timed(self) -> Longs:
        """The key's records that have a place on the plane: those that the windows were asked about."""
        return self.own[self.trace.decision[self.own] <= LATE]

    @cached_property
    def windows(self) -> Longs:
        """The key's results in the partition, without windows that were closed before the run and stayed so."""
        columns = self.trace.window_columns
        mine = (columns.key == self.key) & (columns.partition == self.partition)
        return np.flatnonzero(mine & (columns.closed_before < 0) & columns.are_results(self.trailing_only))

    @abstractmethod
    def caps(self, first: int, last: int) -> list[Cap]:
        """Each closure from record `first` to `last`, oldest first."""

    @property
    @abstractmethod
    def spans(self) -> Spans:
        """The lives of each window."""

    @property
    @abstractmethod
    def events(self) -> dict[str, Longs]:
        """Records that were neither simply kept nor dropped, by what they did."""

    @property
    @abstractmethod
    def wait_ms(self) -> int:
        """How long a window can still be met after its end."""

    @property
    def overlap(self) -> int:
        """How many windows of the key lie over one another at most."""
        return 1

    @abstractmethod
    def steps(self, windows: list[int], first: int, last: int) -> dict[int, list[tuple[int, int, int]]]:
        """(record, start, end) each time that the bounds of a window changed from record `first` to `last`, and the
        last time before; -1: before the run."""

    @cached_property
    def drops(self) -> Longs:
        return self.own[self.trace.decision[self.own] == LATE]

    @cached_property
    def late_but_kept(self) -> Longs:
        """Records left of the close line that were kept, without those that joined sessions."""
        return self.own[self.trace.late_but_kept[self.own] & (self.trace.decision[self.own] != MERGED)]

    @cached_property
    def closes(self) -> Longs:
        """Rows of `trace.closes` that are closures of the key's windows."""
        is_mine = np.zeros(len(self.trace.window_columns.key), np.bool_)
        is_mine[self.windows] = True
        return np.flatnonzero(is_mine[self.trace.closes.window])

    def closes_between(self, first: int, last: int) -> Longs:
        """Those of them that record `first` to `last` brought about."""
        at = self.trace.closes.at[self.closes]
        return self.closes[(at >= first) & (at <= last)]

    @cached_property
    def _movers(self) -> Longs:
        """The records of the partition that moved stream time."""
        before = self.trace.first_stream_time_ms[self.partition]
        return self.of_partition[np.diff(self.trace.stream_time_ms[self.of_partition], prepend=before) > 0]

    @cached_property
    def _needed(self) -> Flags:
        """True for the key's records, the closures of its windows, and what had moved stream time for each of them."""
        must, movers = np.concatenate([self.own, self.trace.closes.at[self.closes]]), self._movers
        before = np.searchsorted(movers, must, side="right") - 1
        mask = np.zeros(len(self.trace), np.bool_)
        mask[must] = mask[movers[before[before >= 0]]] = True
        return mask

    @cached_property
    def _telling(self) -> Flags:
        """True for what is needed, with as many movers of stream time as it takes to see it move: the first of each
        small step."""
        movers, mask = self._movers, self._needed.copy()
        step = self.trace.stream_time_ms[movers] // max(self.wait_ms // _STEPS_OF_THE_LINE, 1)
        mask[movers[np.diff(step, prepend=-1) > 0]] = True  # stream time never falls
        return mask

    def telling(self, rows: Longs) -> Longs:
        """`rows` without the records of other keys that moved little or nothing."""
        return rows[self._telling[rows]]

    def choose(self, from_offset: int | None = None, until_offset: int | None = None, last: int | None = None) -> Longs:
        """The records to show: those between two offsets, or from the key's `last` so many on, or all that fit, or the
        stretch with most to see."""
        rows = self.of_partition
        if last is not None:
            return self._newest(last, from_offset, until_offset)
        if from_offset is not None or until_offset is not None:
            return self._between(rows, from_offset, until_offset)
        if len(rows) <= MOST_ROWS:
            return rows
        rows = self.telling(rows)
        return rows if len(rows) <= MOST_ROWS else self._most_to_see(rows)

    def _newest(self, count: int, from_offset: int | None, until_offset: int | None) -> Longs:
        if count < 1 or from_offset is not None or until_offset is not None:
            given = {"last": count, "from_offset": from_offset, "until_offset": until_offset}
            got = ", ".join(f"{name}={value}" for name, value in given.items() if value is not None)
            want = "last=60 alone, or from_offset= and until_offset= without it"
            raise InvalidArgument(problem("last= is a number of records, the newest of the key", got, want))
        rows = self.of_partition
        rows = rows[rows >= self.own[-count:].min(initial=len(self.trace))] if len(self.own) else rows
        if len(rows) > MOST_ROWS:
            few = self.telling(rows)
            rows = few if len(few) <= max(MOST_ROWS, 2 * count) else rows[self._needed[rows]]
        return self._trimmed(rows)

    def _between(self, rows: Longs, first: int | None, until: int | None) -> Longs:
        offset = self.trace.batch.offset[rows]
        low = int(offset[0]) if first is None and len(offset) else first or 0
        high = int(offset[-1]) if until is None and len(offset) else until or 0
        asked = rows[(offset >= low) & (offset <= high)]
        if not len(asked):
            have = f"offsets {offset[0]} to {offset[-1]}" if len(offset) else "no records"
            got = f"from_offset={first}, until_offset={until}"
            raise UnknownRecord(problem("no record lies between these offsets", got, have))
        shown = asked if len(asked) <= MOST_ROWS else self.telling(asked)
        if until is None:
            return shown[:MOST_ROWS]
        return shown[-MOST_ROWS:] if first is None else shown

    @property
    def _worth_seeing(self) -> dict[str, Longs]:
        """The records that make a stretch worth showing, by what they did."""
        behind = (self.trace.close_time_ms - self.trace.batch.timestamp_ms)[self.drops]
        is_near = behind <= _NEAR * self.wait_ms
        opened = self.spans.begin[self.spans.begin >= 0]
        found = {"drops": self.drops[is_near], "far_drops": self.drops[~is_near], "opened": opened}
        kept = self.own[self.trace.accepted[self.own]]
        return {**self.events, **found, "closes": self.trace.closes.at[self.closes], "kept": kept}

    def _most_to_see(self, rows: Longs) -> Longs:
        found = [(*self._best_stretch(rows, length), length) for length in (MOST_ROWS, _FEWEST_ROWS)]
        _, start, length = max(found, key=lambda each: each[0])  # of equal ones the longer
        return self._trimmed(rows[start : start + length])

    def _best_stretch(self, rows: Longs, length: int) -> tuple[float, int]:
        """What the stretch of so many rows with most to see is worth, and where it begins."""

        def counted(at: Longs, since: Longs | None = None) -> Longs:
            first, last = (np.searchsorted(rows, each) for each in (at if since is None else since, at))
            return _in_each_stretch(first, last, len(rows), length)

        score, kinds = np.zeros(len(rows) - length + 1), self._worth_seeing
        for kind, at in kinds.items():
            worth, enough = _WORTH[kind]
            count = counted(at, self._record_before(at) if kind == "closes" else None)
            score += worth * (np.minimum(count, 1) + np.minimum(count, enough) / enough)
        score += (
            np.minimum(counted(self.own), MOST_ROWS // 2) / MOST_ROWS - _WALL_COST * counted(self.drops) / MOST_ROWS
        )
        alive = self._alive_at(rows)
        score -= _CUT_WINDOW_COST / self.overlap * (alive[: len(score)] + 0.5 * alive[length - 1 :])
        jump = np.diff(self.trace.stream_time_ms[rows], prepend=self.trace.stream_time_ms[rows[:1]])
        score -= _SILENCE_COST * counted(rows[jump > _LONG_SILENCE * self.wait_ms])
        kept = counted(kinds["kept"])
        score[kept < min(ENOUGH_KEPT, kept.max() / 2)] = -np.inf  # no wall of drops beside no session
        start = int(np.argmax(score))
        return float(score[start]), start

    def _record_before(self, at: Longs) -> Longs:
        """The key's record before each of `at`, without which a closure tells little; `at` where there is none."""
        place = np.searchsorted(self.own, at) - 1
        return np.where(place < 0, at, self.own[np.maximum(place, 0)]) if len(self.own) else at

    def _alive_at(self, rows: Longs) -> Floats:
        """How many windows of the key live on from before each of `rows`."""
        begin, end = np.searchsorted(rows, np.stack([self.spans.begin, self.spans.end]))
        born = np.bincount(np.minimum(begin + 1, len(rows)), minlength=len(rows) + 1)
        change = born - np.bincount(end, minlength=len(rows) + 1)
        return np.maximum(np.cumsum(change)[:-1], 0).astype(np.float64)

    def _trimmed(self, rows: Longs) -> Longs:
        """`rows` without a long stretch at either end in which nothing of the key happens."""
        batch = self.trace.batch
        own = np.flatnonzero((batch.key[rows] == self.key) & (batch.partition[rows] == self.partition))
        ends = np.flatnonzero(np.isin(rows, self.trace.closes.at[self.closes]))
        if not len(own):
            return rows
        before = ends[ends < own[0]]  # a cap on the first row would have no body below it
        start = max(own[0] - _MARGIN_ROWS, before[-1] + 1 if len(before) else 0)
        stop = max(own[-1], ends.max(initial=0)) + _MARGIN_ROWS + 1
        return rows[max(min(start, stop - _FEWEST_ROWS), 0) : stop]

    def lives(self, rows: Longs) -> list[Life]:
        """The lives of the key's windows, as far as they lie within these rows."""
        if not len(rows):
            return []
        places: list[int] = rows.tolist()
        alive = np.flatnonzero((self.spans.begin <= places[-1]) & (self.spans.end >= places[0]))
        spans = [*zip(*(column[alive].tolist() for column in self.spans), strict=True)]
        windows = list(dict.fromkeys(window for window, *_ in spans))  # one may have several lives
        steps = self.steps(windows, places[0], places[-1])
        found = (self._life(span, steps[span[0]], places) for span in spans)
        return [life for life in found if life is not None]

    def _life(self, span: tuple[int, int, int, How], steps: list[tuple[int, int, int]], rows: list[int]) -> Life | None:
        window, begin, end, how = span
        mine = [step for step in steps if begin <= step[0] < end]
        before = [step for step in mine if step[0] < rows[0]][-1:]
        within = [step for step in mine if rows[0] <= step[0] <= rows[-1]]
        shown = [(BOTTOM, *step[1:]) for step in before]
        shown += [(float(bisect_left(rows, step[0])), *step[1:]) for step in within]
        goes_on = end > rows[-1]
        top = len(rows) - 1 + TOP if goes_on else float(bisect_left(rows, end))
        if not shown or top <= shown[0][0]:
            return None
        return Life(window, tuple(shown), top, "cut" if goes_on and how != "open" else how)


def _in_each_stretch(first: Rows, last: Rows, count: int, length: int) -> Longs:
    """How many of the spans from `first` to `last` (places) lie in each stretch of so many of `count` rows."""
    begun, ended = (np.append(0, np.cumsum(np.bincount(places, minlength=count))) for places in (first, last))
    return np.maximum(ended[length : count + 1] - begun[: count - length + 1], 0)


def partition_code(trace: Trace, key: int, partition: int | None) -> int:
    """The code of `partition`, or of the one in which the key has most records."""
    numbers = trace.batch.partitions
    if partition is not None:
        found = np.flatnonzero(numbers == partition)
        if not len(found):
            want = f"one of {shorten(numbers.tolist())}"
            raise InvalidArgument(problem("there is no such partition in the run", partition, want))
        return int(found[0])
    return int(np.argmax(partition_counts(trace, key)))


def partition_counts(trace: Trace, key: int) -> Longs:
    """How many records the key has in each partition, and a little more where it has windows only."""
    size = len(trace.batch.partitions)
    records = np.bincount(trace.batch.partition[trace.batch.key == key], minlength=size)
    columns = trace.window_columns
    windows = np.bincount(columns.partition[columns.key == key], minlength=size)
    return np.where(records > 0, records, np.minimum(windows, 1)).astype(np.int64)
