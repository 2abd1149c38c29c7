"""With which retentions a deployment loses nothing: found by replaying, and exact for all that was not replayed.

A run depends on the retention through comparisons only. Whatever retention answers each of them as a run did takes the
same way through the records, to the same results; so one replay decides for all of these retentions at once. Parts of
the records that have no effect on each other have ways of their own: nothing is lost where no part loses anything.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sessionkit.base.arrays import Flags, Longs
from sessionkit.base.progress import progress
from sessionkit.deployed.noticed import FOREVER_MS, Noticed
from sessionkit.stores import segments

FEWEST_REPLAYS, MOST_REPLAYS = 6, 48
REPLAYED_RECORDS = 24_000_000  # a search replays no more, but for its fewest replays
MOST_INTERVALS = 1_000
MOST_WORK = 10_000_000  # comparisons, some tenths of a second
CHUNK_WORK = 2_000_000
STRETCH = 65_536  # retentions that are looked at together
KEPT_PATHS = 24  # of one replay that loses: those that decide most

Interval = tuple[int, int | None]


class Safe(NamedTuple):
    """The retentions that lose nothing, and those of which that is not known: (first, last), None: and all above."""

    intervals: tuple[Interval, ...]
    unknown: tuple[Interval, ...]

    @property
    def recommended_ms(self) -> int | None:
        """The smallest of which it is known that it and all above lose nothing; None if there is none."""
        return self.intervals[-1][0] if self.intervals and self.intervals[-1][1] is None else None


Losing = tuple[tuple[Hashable, Noticed], ...]


class Replayed(NamedTuple):
    """The observations that each part's results depended on in a replay, and the parts that lost or changed some.

    With the observations on which that depended. The order decides which of many paths are kept: that of a set would
    be another in each process.
    """

    noticed: Mapping[Hashable, Noticed]
    losing: Losing


class Path:
    """The retentions with which a part of the records goes the same way.

    From `sure_from_ms` on all up to `at_most_ms` do, if it met no segment that had expired.
    """

    def __init__(self, noticed: Noticed) -> None:
        self.more_than_ms, self.at_most_ms = noticed.more_than_ms, noticed.at_most_ms
        self._gone = sorted(noticed.gone.items())
        live = np.array([*noticed.live.items()], np.int64).reshape(-1, 2)
        order = np.lexsort((live[:, 0], live[:, 0] - live[:, 1]))
        self._live_ms, self._observed_ms = live[order].T  # those that lie the most behind come first
        self._behind_ms = self._observed_ms - self._live_ms
        self._pairs = [(*pair, True) for pair in sorted(noticed.together)]
        self._pairs += [(*pair, False) for pair in sorted(noticed.apart)]
        behind = int(self._behind_ms[0]) if len(order) else 0
        is_sure = not self._gone and not self._pairs
        self.sure_from_ms = max(self.more_than_ms + 1, behind) if is_sure else FOREVER_MS + 1

    def sure_until(self, retention_ms: int) -> int:
        """A retention up to which every one from this one on, which is on it, is on it, too."""
        fixed = 2 * segments.MIN_INTERVAL_MS + 1  # so far segments are as long as they are at least
        until = self.at_most_ms
        if self._pairs or self._live_count(retention_ms):
            until = min(until, max(fixed, retention_ms))
        for time_ms, observed_ms in self._gone:
            sure = 2 * ((observed_ms - time_ms - 1) // 3) + 1  # three whole segments fit in between
            if sure < fixed:
                sure = min(fixed, observed_ms - (time_ms // segments.MIN_INTERVAL_MS + 1) * segments.MIN_INTERVAL_MS)
            until = min(until, max(sure, retention_ms))
        return until

    def work(self, first_ms: int) -> int:
        """How many comparisons one retention from here on takes."""
        return 1 + len(self._gone) + len(self._pairs) + self._live_count(first_ms)

    def _live_count(self, retention_ms: int) -> int:
        """How many segments are not live for sure with this retention."""
        return int(np.searchsorted(-self._behind_ms, -retention_ms))

    def holds(self, retentions: Longs) -> Flags:
        """True for each of these rising retentions that is on the path."""
        out = (retentions > self.more_than_ms) & (retentions <= self.at_most_ms)
        if count := self._live_count(int(retentions[0])):
            time_ms, observed_ms = self._live_ms[:count, np.newaxis], self._observed_ms[:count, np.newaxis]
            out &= is_live(time_ms, observed_ms, retentions).all(axis=0)
        for time_ms, observed_ms in self._gone:
            out &= ~is_live(time_ms, observed_ms, retentions)
        interval = _interval(retentions)
        for time_ms, other_ms, is_one in self._pairs:
            out &= (time_ms // interval == other_ms // interval) == is_one
        return out


def _interval(retentions: Longs) -> Longs:
    """The length of segments for each of these retentions, by `Segments`."""
    return np.maximum(retentions // (segments.SEGMENT_COUNT - 1), segments.MIN_INTERVAL_MS)


def is_live(time_ms: int | Longs, observed_ms: int | Longs, retentions: Longs) -> Flags:
    """Whether the segment of this time has not expired once that time was observed, by `Segments`."""
    interval = _interval(retentions)
    oldest = np.maximum(observed_ms - retentions, 0) // interval
    return time_ms // interval >= oldest


class _Part:
    """The paths on which a part loses nothing."""

    def __init__(self) -> None:
        self._paths: dict[tuple[int, int], Path] = {}
        self._sure: list[tuple[int, int]] = []  # stretches in which it is on one of them for sure

    def add(self, path: Path, retention_ms: int) -> None:
        if self.covers(retention_ms, retention_ms):
            return
        if path.sure_from_ms > path.at_most_ms:
            self._paths[retention_ms, 0] = path
            return
        self._paths[path.sure_from_ms, path.at_most_ms] = path
        merged: list[tuple[int, int]] = []
        for first, last in sorted({*self._sure, (path.sure_from_ms, path.at_most_ms)}):
            _add(merged, first, last)
        self._sure = merged

    def covers(self, first_ms: int, last_ms: int) -> bool:
        return any(first <= first_ms and last_ms <= last for first, last in self._sure)

    def covered_until(self, at_ms: int) -> int:
        return max((last for first, last in self._sure if first <= at_ms <= last), default=at_ms - 1)

    def covered_from(self, at_ms: int) -> int:
        return min((first for first, last in self._sure if first <= at_ms <= last), default=at_ms + 1)

    def work(self, first_ms: int) -> int:
        return sum(path.work(first_ms) for path in self._paths.values())

    def holds(self, retentions: Longs) -> Flags:
        out = np.zeros(len(retentions), np.bool_)
        for path in self._paths.values():
            out |= path.holds(retentions)
        return out


class _Known:
    """Retentions known to lose nothing, or something, from the replays so far."""

    def __init__(self, replay: Callable[[int], Replayed], most_replays: int) -> None:
        self._replay, self._most_replays, self.replays, self.work = replay, most_replays, 0, 0
        self._safe: dict[Hashable, _Part] = {}
        self._losing: list[Path] = []

    def ask(self, retention_ms: int) -> bool | None:
        """Whether this retention loses nothing, by a replay; None if there were enough replays."""
        if self.replays >= self._most_replays:
            return None
        self.replays += 1
        with progress(f"{self.replays} of at most {self._most_replays} tried"):
            noticed, losing = self._replay(retention_ms)
        lost = dict(losing)
        for part in dict.fromkeys((*noticed, *lost)):
            known = self._safe.setdefault(part, _Part())
            if part not in lost:
                known.add(Path(noticed[part]), retention_ms)
        paths = [Path(each) for _, each in losing]
        self._losing += sorted(paths, key=lambda path: path.sure_until(retention_ms))[-KEPT_PATHS:]
        return not losing

    def decided(self, first_ms: int, last_ms: int, *, from_above: bool = False) -> npt.NDArray[np.int8]:
        """1 for each retention that is safe, -1 for one that loses, 0 if not known; of a long stretch only one end."""
        count = min(STRETCH, last_ms - first_ms + 1)
        while count > 1 and count * self._work_of(last_ms - count + 1 if from_above else first_ms, count) > CHUNK_WORK:
            count //= 2
        first_ms = last_ms - count + 1 if from_above else first_ms
        retentions = np.arange(first_ms, first_ms + count, dtype=np.int64)
        safe = np.ones(count, np.bool_)
        for part in self._open_parts(first_ms, count):
            safe &= part.holds(retentions)
        out = safe.astype(np.int8)
        for path in self._losing:
            out[path.holds(retentions)] = -1
        self.work += count * self._work_of(first_ms, count)
        return out

    def jump(self, at_ms: int) -> tuple[int, bool]:
        """(up to where all is decided for sure without looking, whether it is safe); not above `at_ms`: nothing is."""
        here = np.array([at_ms], np.int64)
        until = max((path.sure_until(at_ms) for path in self._losing if path.holds(here)[0]), default=at_ms)
        if until > at_ms:
            return until, False
        return min((part.covered_until(at_ms) for part in self._safe.values()), default=FOREVER_MS), True

    def safe_from(self, at_ms: int) -> int:
        """From where on all is safe for sure up to `at_ms`."""
        return max((part.covered_from(at_ms) for part in self._safe.values()), default=0)

    def losing_from(self) -> int:
        """From where on every retention is known to lose."""
        return min((path.sure_from_ms for path in self._losing if path.at_most_ms == FOREVER_MS), default=FOREVER_MS)

    def _open_parts(self, first_ms: int, count: int) -> Iterable[_Part]:
        return (part for part in self._safe.values() if not part.covers(first_ms, first_ms + count - 1))

    def _work_of(self, first_ms: int, count: int) -> int:
        safe = sum(part.work(first_ms) for part in self._open_parts(first_ms, count))
        return 1 + safe + sum(path.work(first_ms) for path in self._losing)


def most_replays(records: int, fewest: int = FEWEST_REPLAYS) -> int:
    """How often a search may replay so many records."""
    return max(fewest, min(MOST_REPLAYS, REPLAYED_RECORDS // max(records, 1)))


def safe_retentions(lowest_ms: int, replay: Callable[[int], Replayed], most_replays: int = MOST_REPLAYS) -> Safe:
    """All retentions from `lowest_ms` on that lose nothing, as far as a bounded search can tell."""
    known = _Known(replay, most_replays)
    ends_safe = known.ask(FOREVER_MS)
    top = max(lowest_ms, known.safe_from(FOREVER_MS) if ends_safe else known.losing_from())
    if top > lowest_ms:
        known.ask(lowest_ms)
        until, is_safe = known.jump(lowest_ms)
        if not is_safe and until < top:
            known.ask(until + 1)  # what is decided from below as well as from above is decided
    if ends_safe:
        top = _down(known, lowest_ms, top)
    found, unknown_from = _up(known, lowest_ms, top)
    if ends_safe:
        if found and found[-1][1] == top - 1:
            top = found.pop()[0]
        found.append((top, FOREVER_MS))
    unknown = () if unknown_from is None else ((unknown_from, top - 1),)
    return Safe(tuple((first, None if last == FOREVER_MS else last) for first, last in found), unknown)


def safe_in_all(several: Sequence[Safe], lowest_ms: int) -> Safe:
    """What loses nothing in any of several applications; what one of them loses with is not unknown."""
    found: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    edges = [(lowest_ms, 0, 0), (FOREVER_MS + 1, 0, 0)]  # where safe ones (0) and unknown ones (1) begin and end
    for place, first, last in ((i, *span) for each in several for i, spans in enumerate(each) for span in spans):
        edges += [(first, place, 1), (FOREVER_MS + 1 if last is None else last + 1, place, -1)]
    here = [0, 0]
    for (first, place, change), (behind, *_) in pairwise(sorted(edges)):
        here[place] += change
        if behind > first and sum(here) == len(several):
            _add(found[here[1] > 0], first, behind - 1)
    return Safe(*(tuple((first, None if last == FOREVER_MS else last) for first, last in each) for each in found))


def _down(known: _Known, lowest_ms: int, top_ms: int) -> int:
    """How far down everything from `top_ms` on stays safe."""
    while top_ms > lowest_ms and known.work < MOST_WORK:
        sure = max(lowest_ms, known.safe_from(top_ms - 1))
        if sure < top_ms:
            top_ms = sure
            continue
        is_safe = known.decided(top_ms - 1, top_ms - 1)[0]
        if is_safe == 0 and known.ask(top_ms - 1):
            continue
        if is_safe != 1:
            break
        decided = known.decided(lowest_ms, top_ms - 1, from_above=True)
        other = np.flatnonzero(decided != 1)
        top_ms -= len(decided) - 1 - int(other[-1]) if len(other) else len(decided)
    known.work = 0
    return top_ms


def _up(known: _Known, lowest_ms: int, top_ms: int) -> tuple[list[tuple[int, int]], int | None]:
    """The safe intervals from the lowest on below `top_ms`, and where the search stopped before it."""
    found: list[tuple[int, int]] = []
    at = lowest_ms
    while at < top_ms:
        if known.work > MOST_WORK or len(found) > MOST_INTERVALS:
            return found, at
        until, is_safe = known.jump(at)
        if until > at:
            until = min(until, top_ms - 1)
            if is_safe:
                _add(found, at, until)
            at = until + 1
            continue
        if known.decided(at, at)[0] == 0:
            if known.ask(at) is None:
                return found, at
            continue
        decided = known.decided(at, top_ms - 1)
        unknown = np.flatnonzero(decided == 0)
        count = int(unknown[0]) if len(unknown) else len(decided)
        edges = np.flatnonzero(np.diff((decided[:count] == 1).astype(np.int8), prepend=0, append=0)).tolist()
        for first, behind in zip(edges[::2], edges[1::2], strict=True):
            _add(found, at + first, at + behind - 1)
        at += count
    return found, None


def _add(found: list[tuple[int, int]], first_ms: int, last_ms: int) -> None:
    """Appends an interval, which begins no earlier than the last one, or joins it to that one if they touch."""
    if found and first_ms <= found[-1][1] + 1:
        found[-1] = (found[-1][0], max(last_ms, found[-1][1]))
    else:
        found.append((first_ms, last_ms))
