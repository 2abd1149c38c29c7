"""What one key did in one partition, read off the trace: which records to show, and the life of each session."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.decisions import ADDED, LATE, MERGED, OPENED
from sessionkit.durations import INT64_MAX, show_duration
from sessionkit.errors import InvalidArgument, UnknownRecord, problem
from sessionkit.session_trace import SessionTrace
from sessionkit.text import plural, shorten

Rows = npt.NDArray[np.int64]

MOST_ROWS = 120  # rows of a plane that was not told what to show: some 4 pixels each
_FEWEST_ROWS = 40  # of a stretch that we choose: a lone drop is not understood without what came before it
_STEPS_OF_THE_LINE = 30  # on its way over gap + grace
_MARGIN_ROWS = 3
_BOTTOM, _TOP = -2.0, 0.9  # bodies that go on are drawn to here, in rows beyond the first and the last
# what makes a stretch worth showing, for the first of its kind and for each of the next few
_WORTH = {"drops": 8.0, "merges": 8.0, "reopened": 8.0, "late_but_kept": 4.0, "closes": 3.0}
_ENOUGH = 4
_CUT_SESSION_COST = 5.0
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
    """One life of a session, from its birth or re-opening to its closure, its merge, or the last row."""

    window: int
    steps: tuple[tuple[float, int, int], ...]  # (row, start_ms, end_ms): the bounds from this row on
    end: float
    how: Literal["closed", "merged", "open", "cut"]


@dataclass(frozen=True)
class Cap:
    """A closure: where, over which bounds, and what the session held."""

    window: int
    at: int
    start_ms: int
    end_ms: int
    size: Size


@dataclass(frozen=True)
class KeyHistory:
    """The records and windows of one key in one partition of a trace; `key` and `partition` are codes."""

    trace: SessionTrace
    key: int
    partition: int

    @cached_property
    def of_partition(self) -> Rows:
        """All records of the partition, as rows of the trace."""
        return np.flatnonzero(self.trace.batch.partition == self.partition)

    @cached_property
    def own(self) -> Rows:
        """The key's records in the partition."""
        return self._where(self.of_partition, self.trace.batch.key[self.of_partition] == self.key)

    @cached_property
    def timed(self) -> Rows:
        """The key's records that have a place on the plane: those that the windows were asked about."""
        return self._where(self.own, self.trace.decision[self.own] <= LATE)

    def _where(self, rows: Rows, mask: npt.NDArray[np.bool_]) -> Rows:
        found: Rows = rows[mask]
        return found

    @cached_property
    def windows(self) -> Rows:
        """The key's windows in the partition, without those that were closed before the run and stayed so."""
        columns = self.trace.window_columns
        mine = (columns.key == self.key) & (columns.partition == self.partition)
        return np.flatnonzero(mine & (columns.closed_before < 0))

    @cached_property
    def drops(self) -> Rows:
        """Records dropped as late."""
        return self._where(self.own, self.trace.decision[self.own] == LATE)

    @cached_property
    def merges(self) -> Rows:
        """Records that joined two sessions."""
        return self._where(self.own, self.trace.decision[self.own] == MERGED)

    @cached_property
    def late_but_kept(self) -> Rows:
        """Records left of the close line that were kept, without those that joined sessions."""
        return self._where(self.own, self.trace.late_but_kept[self.own] & (self.trace.decision[self.own] != MERGED))

    @cached_property
    def plain(self) -> Rows:
        """Records that opened or joined a session in time."""
        decision = self.trace.decision[self.own]
        kept = (decision == OPENED) | (decision == ADDED)
        return self._where(self.own, kept & ~self.trace.late_but_kept[self.own])

    @cached_property
    def reopened(self) -> Rows:
        """Records that touched a closed session which was still retained."""
        reopenings = self.trace.reopenings
        return np.unique(reopenings.at[np.isin(reopenings.window, self.windows)])

    @cached_property
    def closes(self) -> Rows:
        """Rows of `trace.closes` that are closures of the key's sessions."""
        return np.flatnonzero(np.isin(self.trace.closes.window, self.windows))

    @cached_property
    def caps(self) -> list[Cap]:
        """Each closure, oldest first."""
        trace, sizes = self.trace, sizes_of(self.trace, self.windows)
        found = []
        for row in self.closes.tolist():
            at, window = int(trace.closes.at[row]), int(trace.closes.window[row])
            is_last = trace.closes.until[row] == INT64_MAX
            size = sizes[window] if is_last else _size_before(trace, sizes, window, at)
            found.append(Cap(window, at, int(trace.closes.start_ms[row]), int(trace.closes.end_ms[row]), size))
        return found

    @cached_property
    def _movers(self) -> Rows:
        """The records of the partition that moved stream time."""
        times = self.trace.stream_time_ms[self.of_partition]
        return self._where(
            self.of_partition, np.diff(times, prepend=self.trace.first_stream_time_ms[self.partition]) > 0
        )

    @property
    def _wait_ms(self) -> int:
        """How long a session can still be met: until it is closed, or forgotten where none is ever closed."""
        return min(self.trace.close_lag_ms, self.trace.retention_ms)

    @cached_property
    def _telling(self) -> Rows:
        """The key's records and the closures of its sessions, with as many movers of stream time as it takes to see it
        move: the first of each small step, and the one that had moved it for each record of the key."""
        must = np.union1d(self.own, self.trace.closes.at[self.closes])
        movers, step_ms = self._movers, max(self._wait_ms // _STEPS_OF_THE_LINE, 1)
        _, first = np.unique(self.trace.stream_time_ms[movers] // step_ms, return_index=True)
        before = np.searchsorted(movers, must, side="right") - 1
        return np.unique(np.concatenate([must, movers[first], movers[before[before >= 0]]]))

    def telling(self, rows: Rows) -> Rows:
        """`rows` without the records of other keys that moved little or nothing."""
        return self._where(rows, np.isin(rows, self._telling, assume_unique=True))

    def choose(self, first: int | None, last: int | None) -> Rows:
        """The records to show: those between two offsets, or all that fit, or the stretch with most to see."""
        rows = self.of_partition
        if first is not None or last is not None:
            return self._between(rows, first, last)
        if len(rows) <= MOST_ROWS:
            return rows
        rows = self.telling(rows)
        return rows if len(rows) <= MOST_ROWS else self._most_to_see(rows)

    def _between(self, rows: Rows, first: int | None, last: int | None) -> Rows:
        offset = self.trace.batch.offset[rows]
        low = int(offset[0]) if first is None and len(offset) else first or 0
        high = int(offset[-1]) if last is None and len(offset) else last or 0
        asked = rows[(offset >= low) & (offset <= high)]
        if not len(asked):
            have = f"offsets {offset[0]} to {offset[-1]}" if len(offset) else "no records"
            raise UnknownRecord(problem("no record lies between these offsets", f"first={first}, last={last}", have))
        shown = asked if len(asked) <= MOST_ROWS else self.telling(asked)
        if last is None:
            return shown[:MOST_ROWS]
        return shown[-MOST_ROWS:] if first is None else shown

    def _most_to_see(self, rows: Rows) -> Rows:
        kinds = {
            "drops": self.drops,
            "merges": self.merges,
            "reopened": self.reopened,
            "late_but_kept": self.late_but_kept,
            "closes": self.trace.closes.at[self.closes],
        }
        score = np.zeros(len(rows) - MOST_ROWS + 1)
        for kind, at in kinds.items():
            count = _in_each_stretch(np.searchsorted(rows, at), len(rows))
            score += _WORTH[kind] * (np.minimum(count, 1) + np.minimum(count, _ENOUGH) / _ENOUGH)
        score += np.minimum(_in_each_stretch(np.searchsorted(rows, self.own), len(rows)), MOST_ROWS // 2) / MOST_ROWS
        alive = self._alive_at(rows)
        score -= _CUT_SESSION_COST * (alive[: len(score)] + 0.5 * alive[MOST_ROWS - 1 :])
        jump = np.diff(self.trace.stream_time_ms[rows], prepend=self.trace.stream_time_ms[rows[:1]])
        silences = np.flatnonzero(jump > _LONG_SILENCE * self._wait_ms)
        score -= _SILENCE_COST * _in_each_stretch(silences, len(rows))
        start = int(np.argmax(score))
        return self._trimmed(rows[start : start + MOST_ROWS])

    def _alive_at(self, rows: Rows) -> npt.NDArray[np.float64]:
        """How many sessions of the key live on from before each of `rows`."""
        change = np.zeros(len(rows) + 1)
        for begin, end, _ in (span for window in self.windows.tolist() for span in self._spans[window]):
            change[min(int(np.searchsorted(rows, begin)) + 1, len(rows))] += 1
            change[max(int(np.searchsorted(rows, end)), 0)] -= 1
        return np.maximum(np.cumsum(change)[:-1], 0)

    def _trimmed(self, rows: Rows) -> Rows:
        """`rows` without a long stretch at either end in which nothing of the key happens."""
        own = np.flatnonzero(np.isin(rows, self.own))
        ends = np.flatnonzero(np.isin(rows, self.trace.closes.at[self.closes]))
        if not len(own):
            return rows
        before = ends[ends < own[0]]  # a cap on the first row would have no body below it
        start = max(own[0] - _MARGIN_ROWS, before[-1] + 1 if len(before) else 0)
        stop = max(own[-1], ends.max(initial=0)) + _MARGIN_ROWS + 1
        return rows[max(min(start, stop - _FEWEST_ROWS), 0) : stop]

    @cached_property
    def _spans(self) -> dict[int, list[tuple[int, int, Literal["closed", "merged", "open"]]]]:
        """(first record, record that ended it, how) of each life of each window; -1: before the run."""
        trace, mine = self.trace, self.windows
        columns, never = trace.window_columns, len(trace)
        born = dict.fromkeys(mine.tolist(), -1)
        openers = self.own[trace.decision[self.own] == OPENED]
        born.update(zip(trace.window[openers].tolist(), openers.tolist(), strict=True))
        absorbed = np.isin(trace.merges.absorbed, mine)
        merged_at = dict(zip(trace.merges.absorbed[absorbed].tolist(), trace.merges.at[absorbed].tolist(), strict=True))
        spans: dict[int, list[tuple[int, int, Literal["closed", "merged", "open"]]]] = {w: [] for w in born}
        begin = dict(born)
        for row in self.closes.tolist():
            window = int(trace.closes.window[row])
            spans[window].append((begin[window], int(trace.closes.at[row]), "closed"))
            begin[window] = int(trace.closes.until[row])
        for window, since in begin.items():
            if columns.merged_into[window] >= 0:
                if since < merged_at[window]:
                    spans[window].append((since, merged_at[window], "merged"))
            elif since != INT64_MAX:
                spans[window].append((since, never, "open"))
        return spans

    def lives(self, rows: Rows) -> list[Life]:
        """The lives of the key's sessions, as far as they lie within these rows."""
        if not len(rows):
            return []
        first, last = int(rows[0]), int(rows[-1])
        alive = [
            (window, *span)
            for window in self.windows.tolist()
            for span in self._spans[window]
            if span[0] <= last and span[1] >= first
        ]
        steps = self._steps([window for window, *_ in alive])
        found = (self._life(span, steps, rows) for span in alive)
        return [life for life in found if life is not None]

    def _steps(self, windows: list[int]) -> dict[int, list[tuple[int, int, int]]]:
        """(record, start, end) each time that a window took a record, after its bounds when it was loaded."""
        trace = self.trace
        found: dict[int, list[tuple[int, int, int]]] = {window: [] for window in windows}
        for window, its in found.items():
            if window < trace.window_columns.loaded_count:
                its.append((-1, int(trace.loaded_start_ms[window]), int(trace.loaded_end_ms[window])))
        rows = self.own[np.isin(trace.window[self.own], windows)]
        starts, ends = (bound[rows].tolist() for bound in trace.bounds_after)
        for row, window, start_ms, end_ms in zip(rows.tolist(), trace.window[rows].tolist(), starts, ends, strict=True):
            found[window].append((row, start_ms, end_ms))
        return found

    def _life(
        self,
        span: tuple[int, int, int, Literal["closed", "merged", "open"]],
        steps: dict[int, list[tuple[int, int, int]]],
        rows: Rows,
    ) -> Life | None:
        window, begin, end, how = span
        mine = [step for step in steps[window] if begin <= step[0] < end]
        before = [step for step in mine if step[0] < rows[0]][-1:]
        within = [step for step in mine if rows[0] <= step[0] <= rows[-1]]
        shown = [(_BOTTOM, *step[1:]) for step in before]
        shown += [(float(np.searchsorted(rows, step[0])), *step[1:]) for step in within]
        goes_on = end > rows[-1]
        top = len(rows) - 1 + _TOP if goes_on else float(np.searchsorted(rows, end))
        if not shown or top <= shown[0][0]:
            return None
        return Life(window, tuple(shown), top, "cut" if goes_on and how != "open" else how)


def sizes_of(trace: SessionTrace, windows: Rows) -> dict[int, Size]:
    """What each of `windows` holds in the end, with the sessions that it absorbed."""
    total = np.bincount(trace.window[trace.accepted], minlength=len(trace.window_columns.key))
    had_more = np.arange(len(total)) < trace.window_columns.loaded_count
    root, merges = trace.ended_in, trace.merges
    for row in np.flatnonzero(np.isin(root[merges.into], root[windows])).tolist():
        total[merges.into[row]] += total[merges.absorbed[row]]
        had_more[merges.into[row]] |= had_more[merges.absorbed[row]]
    return {window: Size(int(total[window]), bool(had_more[window])) for window in windows.tolist()}


def session_size(size: Size, length_ms: int) -> str:
    """A session's size in words; one of a single moment has no length."""
    return f"{size.words} · {show_duration(length_ms)}" if length_ms else size.words


def _size_before(trace: SessionTrace, sizes: dict[int, Size], window: int, at: int) -> Size:
    """What a window held when record `at` arrived."""
    absorbed = trace.merges.absorbed[(trace.merges.into == window) & (trace.merges.at < at)]
    parts = [sizes[each] for each in absorbed.tolist()]
    own = int((trace.window[:at] == window).sum())
    had_more = window < trace.window_columns.loaded_count or any(part.had_more for part in parts)
    return Size(own + sum(part.record_count for part in parts), had_more)


def _in_each_stretch(places: npt.NDArray[np.intp], length: int) -> npt.NDArray[np.int64]:
    """How many of `places` lie in each stretch of `MOST_ROWS` rows."""
    seen = np.append(0, np.cumsum(np.bincount(places, minlength=length)))
    count: npt.NDArray[np.int64] = seen[MOST_ROWS : length + 1] - seen[: length - MOST_ROWS + 1]
    return count


def key_code(trace: SessionTrace, key: object) -> int:
    """The key's code.

    Raises:
        UnknownRecord: the run holds no such key.
    """
    try:
        code = trace.keys.index(pa.scalar(key, trace.keys.type)).as_py()
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        code = -1
    if code < 0:
        some = ", ".join(repr(shorten(each, 30)) for each in trace.keys[:3].to_pylist())
        want = f"one of its {len(trace.keys):,} keys, such as {some}" if len(trace.keys) else "the run holds no records"
        raise UnknownRecord(problem("this key is not in the run", repr(shorten(key)), want))
    return int(code)


def partition_code(trace: SessionTrace, key: int, partition: int | None) -> int:
    """The code of `partition`, or of the one in which the key has most records.

    Raises:
        InvalidArgument: there is no such partition.
    """
    numbers = trace.batch.partitions
    if partition is not None:
        found = np.flatnonzero(numbers == partition)
        if not len(found):
            want = f"one of {shorten(numbers.tolist())}"
            raise InvalidArgument(problem("there is no such partition in the run", partition, want))
        return int(found[0])
    return int(np.argmax(partition_counts(trace, key)))


def partition_counts(trace: SessionTrace, key: int) -> Rows:
    """How many records the key has in each partition, and a little more where it has windows only."""
    size = len(trace.batch.partitions)
    records = np.bincount(trace.batch.partition[trace.batch.key == key], minlength=size)
    columns = trace.window_columns
    windows = np.bincount(columns.partition[columns.key == key], minlength=size)
    return np.where(records > 0, records, np.minimum(windows, 1)).astype(np.int64)
