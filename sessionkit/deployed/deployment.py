"""How a Kafka Streams application runs a plan, as far as results depend on it."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, SupportsIndex, TypeAlias

import numpy as np
import pyarrow as pa

from sessionkit.base.durations import Duration, duration_ms
from sessionkit.errors import InvalidArgument, problem, shorten
from sessionkit.stores.cache.named_cache import Room
from sessionkit.stores.sizes import byte_count

Clock: TypeAlias = Sequence[int] | Callable[[], int]
Caching: TypeAlias = bool | int | str


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """One life of the application's task, from its start until it is stopped.

    Args:
        retention_ms: how long the store keeps a window.
        emit: the plan's emit strategy.
        caching: True for a record cache without limit, or what fits into it; False for none.
        commits: rows of the records after which the task commits; None: once, at the end.
        emit_interval_ms: final results are looked for at most this often, by `wall_clock`.
        wall_clock: the wall clock in ms, at each record or as a function that tells it; None: it stands still.
        restart: one of `RESTARTS`, by which the task is started again afterwards. One that is "killed" ends without a
            last commit, and loses what its cache holds.
        buffers: what suppress holds back from the life before, a buffer a partition; none at the first start.
    """

    retention_ms: int
    emit: str
    kafka: bool = True
    caching: bool | Room = False
    commits: frozenset[int] | None = None
    emit_interval_ms: int = 0
    wall_clock: Clock | None = None
    restart: str | None = None
    buffers: Sequence[Any] = ()

    def part(self, start: int, stop: int) -> Deployment:
        """This deployment for a part of its records: those from row `start` up to row `stop`."""
        commits, clock = self.commits, self.wall_clock
        if commits is not None:
            commits = frozenset(row - start for row in commits if start <= row < stop)
        if clock is not None and not callable(clock):
            clock = clock[start:stop]
        return dataclasses.replace(self, commits=commits, wall_clock=clock)


def deployment(
    emit: str,
    retention_ms: int,
    caching: Caching,
    commit_every: int | Sequence[int] | None,
    emit_interval: Duration | None,
    wall_clock: Clock | None,
    count: int,
) -> Deployment:
    """What `Plan.run` was told of it, checked, for `count` records.

    Raises:
        InvalidArgument: a clock that does not fit the records, commits after less than one of them, a cache of fewer
            entries than none.
    """
    return Deployment(
        retention_ms=retention_ms,
        emit=emit,
        caching=_room(caching),
        commits=_commit_rows(commit_every, count),
        emit_interval_ms=0 if emit_interval is None else duration_ms(emit_interval, "emit_interval"),
        wall_clock=_checked_clock(wall_clock, count),
    )


def _room(caching: Any) -> bool | Room:
    if isinstance(caching, bool):
        return caching
    if isinstance(caching, str):
        return Room(byte_count(caching, "caching"), in_bytes=True)
    if not isinstance(caching, int) or caching < 0:
        want = 'True, False, or what fits into the record cache: a number of entries, or bytes such as "10MB"'
        raise InvalidArgument(problem("caching must be True, False or a size", shorten(repr(caching)), want))
    return Room(caching)


def _commit_rows(commit_every: int | Sequence[int] | None, count: int) -> frozenset[int] | None:
    if commit_every is None:
        return None
    if isinstance(commit_every, int) and commit_every >= 1:
        return frozenset(range(commit_every - 1, count, commit_every))
    rows: list[Any] = [*commit_every] if isinstance(commit_every, Iterable) else [None]
    if all(isinstance(row, SupportsIndex) and not isinstance(row, bool) for row in rows):
        return frozenset(map(operator.index, rows))
    want = "a number of records, 1 or more, or the rows after which to commit"
    raise InvalidArgument(problem("commit_every must be positive", shorten(repr(commit_every)), want))


def times_of_clock(clock: Clock | None, count: int) -> list[int] | None:
    """The wall clock in whole milliseconds at each of `count` records; None if there is none.

    Raises:
        InvalidArgument: it does not fit the records, or tells something else.
    """
    if callable(clock):
        return [_as_clock_time(clock()) for _ in range(count)]
    return None if clock is None else _times(clock, count)


def _checked_clock(clock: Clock | None, count: int) -> Clock | None:
    if clock is None:
        return None
    if callable(clock):
        return lambda: _as_clock_time(clock())
    return _times(clock, count)


def _times(clock: Sequence[int], count: int) -> list[int]:
    want = "a list of ms, one for each record, or a function that returns the time"
    try:
        times: list[Any] = (
            clock.to_pylist() if isinstance(clock, pa.Array | pa.ChunkedArray) else np.asarray(clock).tolist()
        )
        given = len(times)
    except TypeError as error:
        raise InvalidArgument(problem("wall_clock cannot be used", shorten(repr(clock)), want)) from error
    if given != count:
        raise InvalidArgument(problem("wall_clock must have one time for each record", f"{given} for {count}", want))
    return [_as_clock_time(time_ms) for time_ms in times]


def _as_clock_time(time_ms: Any) -> int:
    if not isinstance(time_ms, int) or isinstance(time_ms, bool):
        raise InvalidArgument(problem("wall_clock must give whole milliseconds", shorten(repr(time_ms)), "an int"))
    return time_ms


def commits_by(clock_ms: Sequence[int], interval_ms: int, starts: Sequence[int]) -> list[int]:
    """The rows after which a task commits, by its clock: each that finds the last commit more than the interval ago.

    One clock serves all partitions, as one thread of Kafka Streams does with its tasks; it starts with the first record
    of each life. Only a record makes it look: Kafka's thread also looks while none comes.

    Source:
        StreamThread.maybeCommit.
    """
    rows = []
    for start, stop in pairwise([*starts, len(clock_ms)]):
        last_ms = clock_ms[start] if start < stop else 0
        for row in range(start, stop):
            if clock_ms[row] - last_ms > interval_ms:
                rows.append(row)
                last_ms = clock_ms[row]
    return rows
