"""How a Kafka Streams application runs a plan, as far as results depend on it."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, SupportsIndex, TypeAlias, TypedDict, Unpack

import numpy as np
import pyarrow as pa

from sessionkit.base.arrays import Longs
from sessionkit.base.calls import answers_calls, called_as
from sessionkit.base.durations import Duration, duration_code, duration_ms
from sessionkit.base.text import escape_html, html_block, keyword_arguments, literal, one_of
from sessionkit.deployed.properties import properties_of, settings_in
from sessionkit.deployed.setting_words import in_words
from sessionkit.errors import InvalidArgument, NotBuilt, problem, shorten
from sessionkit.stores.contract import READ_ONLY_KINDS, RESTARTS, STORE_KINDS, RestartKind
from sessionkit.stores.registry import store_kinds
from sessionkit.stores.sizes import byte_count, byte_text

Restarts: TypeAlias = Sequence[int | tuple[int, RestartKind]]
Clock: TypeAlias = Sequence[int] | Longs | Callable[[], int]
_PLAIN: _Settings = {"store": "memory", "caching": False, "commit_interval": None, "emit_interval": None}
_LENGTHS = ("retention", "commit_interval", "emit_interval")


class Restart(NamedTuple):
    """One restart: the row of the records after which it happens, and one of `RESTARTS`."""

    row: int
    kind: RestartKind = "disk"


if TYPE_CHECKING:
    from sessionkit.deployed.changelog import Changelog

    class _Settings(TypedDict, total=False):  # of a deployment
        store: Literal["rocksdb", "memory"] | type
        retention: Duration | None
        caching: bool | str
        commit_interval: Duration | None
        commit_every: int | Sequence[int] | None
        emit_interval: Duration | None
        clock: str | None
        guarantee: Literal["at_least_once"]
        restarts: Restarts


@answers_calls("deployment")
@dataclass(frozen=True, kw_only=True, repr=False)
class Deployment:
    """How a Kafka Streams application is configured, as an immutable value; what is not given has Kafka's default.

    `plan.run(data, deployment=…)` does what Kafka Streams 4.4.0 would, and `sk.audit(plan, data, …)` compares that with
    what should have come out. `repr(deployment)` is the code that makes it.

    Args:
        store: "rocksdb" (on close the time-ordered one, as Kafka chooses), "memory", or a class of your own that
            `sk.stores.store_kind` has registered, or its kind. Without a store object RocksDB's rules are played in
            memory.
        retention: as for `Materialized.withRetention`; by default the smallest allowed.
        caching: the record cache: what fits into it ("10MB", of which a KB has 1,024), True (no limit) or False (none,
            as by `withCachingDisabled`). On close Kafka turns it off for sessions and sliding windows.
        commit_interval: a commit, which flushes the cache, after each record that comes more than this much later than
            the last commit. None: one commit, at the end.
        commit_every: commits after this many records, or after these rows, instead of by the interval.
        emit_interval: final results are looked for at most this often, when a record arrives; "0s" or None: at each
            record. Updates are not throttled.
        clock: the column by which both intervals go, written as `timestamp` is. None: stream time, as if the records
            came as fast as their times say.
        guarantee: "at_least_once"; transactions are not modelled.
        restarts: the rows after which the application is stopped and started again, each alone or with its kind:
            `(17, (40, "changelog"), (90, "killed"))`. No start knows the stream time of the life before, so late
            records count until newer ones have moved it on, and no final result that was sent before the last commit
            is sent again. With "disk", as a row alone has it, the store is found as it was, but on disk it has not
            observed any time yet; one in memory is always restored from its changelog. With "changelog" the disk is
            lost: what has expired by the largest time that was ever put is not there. A restore begins at the time of
            the last entry minus the retention, as in Kafka 4.4. With "killed" the application
            crashes right after the record: its cache is lost, and the records since the last commit are read again and
            count again. What suppress holds back waits in the next life, too, after a kill as it was at the last
            commit. What a broker deletes from a changelog by its wall clock is not modelled.
    Raises:
        InvalidArgument: a setting that cannot be, such as a cache without a unit.
        NotBuilt: another guarantee.
    Source:
        StreamsConfig, InternalConfig; KIP-63, KIP-825, KIP-1035; StreamThread.maybeCommit, StreamTask,
        ProcessorStateManager.
    Example:
        >>> sk.Deployment(store="memory", restarts=[17, (40, "changelog")])
        sk.Deployment(store="memory", restarts=(17, (40, "changelog")))
        >>> plan.run(monday, deployment=sk.Deployment.plain()).changelog()["what"].tolist()
        ['update', 'tombstone', 'update', 'update']
    """

    store: Literal["rocksdb", "memory"] | type = "rocksdb"
    retention: Duration | None = None
    caching: bool | str = "10MB"
    commit_interval: Duration | None = "30s"
    commit_every: int | Sequence[int] | None = None
    emit_interval: Duration | None = "1s"
    clock: str | None = None
    guarantee: Literal["at_least_once"] = "at_least_once"
    restarts: Restarts = ()

    def __post_init__(self) -> None:
        if one_of("guarantee", self.guarantee, ("at_least_once", "exactly_once_v2")) != "at_least_once":
            want = 'guarantee="at_least_once", Kafka\'s default; of properties, leave processing.guarantee out'
            raise NotBuilt(problem("transactions are not modelled", f"guarantee={self.guarantee!r}", want))
        clock: Any = self.clock
        if clock is not None and not isinstance(clock, str):
            want = 'clock="arrived", the column that says when each record came; or None for stream time'
            raise InvalidArgument(problem("clock must be a column", shorten(repr(clock)), want))
        rows = checked_restarts(self.restarts)
        settled: dict[str, Any] = {
            "store": _kind(self.store),
            "caching": _caching(self.caching),
            "commit_every": _commit_every(self.commit_every),
            "restarts": tuple(each.row if each.kind == "disk" else tuple(each) for each in rows),
        }
        for name in _LENGTHS:
            length = getattr(self, name)
            settled[name] = None if length is None else duration_code(duration_ms(length, name))
        for name, value in settled.items():
            object.__setattr__(self, name, value)

    @classmethod
    @called_as('sk.Deployment.plain(retention="1h")')
    def plain(cls, **changed: Unpack[_Settings]) -> Deployment:
        """The simplest deployment: a store in memory, no cache, no interval. Each update goes out, and finals at once.

        Args:
            changed: other settings, by their names.
        Example:
            >>> sk.Deployment.plain() == sk.Deployment(
            ...     store="memory", caching=False, commit_interval=None, emit_interval=None
            ... )
            True
        """
        return cls(**(_PLAIN | changed))

    @classmethod
    @called_as('sk.Deployment.from_properties("streams.properties")')
    def from_properties(cls, given: str | Path | Mapping[str, Any]) -> Deployment:
        """The deployment that Kafka's configuration names: the path of a properties file, or a dict.

        The cache is divided by `num.stream.threads`, as each thread has a part of it. A warning names the properties
        that no result depends on here.

        Raises:
            InvalidArgument: no such file, or a value that cannot be. NotBuilt: transactions.
        Example:
            >>> sk.Deployment.from_properties({"commit.interval.ms": 1_000, "num.stream.threads": 2})
            sk.Deployment(caching="5MB", commit_interval="1s")
        """
        return cls(**settings_in(given))

    def properties(self) -> str:
        """Kafka's configuration for it, as lines of a properties file; what has no property stands there as a comment.

        Example:
            >>> print(sk.Deployment(retention="1h").properties().splitlines()[-1])
            # retention: Materialized.withRetention(Duration.ofMillis(3600000L))
        """
        return properties_of(self)

    def in_words(self) -> str:
        """The settings of the deployment, in one sentence.

        Example:
            >>> sk.Deployment.plain(retention="1h").in_words()
            'A store in memory with a retention of 1 h, no cache, one commit at the end and a check for final ...'
        """
        return in_words(self)

    def __repr__(self) -> str:
        defaults = {each.name: each.default for each in dataclasses.fields(self)}
        changed = {name: literal(value) for name, was in defaults.items() if (value := getattr(self, name)) != was}
        if is_plain := all(getattr(self, name) == value for name, value in _PLAIN.items()):
            changed = {name: text for name, text in changed.items() if name not in _PLAIN}
        return f"sk.Deployment{'.plain' if is_plain else ''}({', '.join(keyword_arguments(changed))})"

    def _repr_html_(self) -> str:
        return html_block(f"<pre>{escape_html(self)}</pre><p>{escape_html(self.in_words())}</p>")

    @property
    def _emit_interval_ms(self) -> int:
        """The time between two checks for final results; 0: at each record."""
        return 0 if self.emit_interval is None else duration_ms(self.emit_interval, "emit_interval")

    def _life(self, emit: str, retention_ms: int, clock: Clock | None, count: int, *, is_stream_time: bool) -> Life:
        """One life over all `count` records and their clock, to be cut into parts at the restarts."""
        interval, every = self.commit_interval, self.commit_every
        if isinstance(every, int):
            every = range(every - 1, count, every)
        cache = self.caching
        return Life(
            retention_ms=retention_ms,
            emit=emit,
            caching=byte_count(cache, "caching") if isinstance(cache, str) else cache,
            commits=None if every is None else frozenset(every),
            commit_interval_ms=None if interval is None else duration_ms(interval, "commit_interval"),
            emit_interval_ms=self._emit_interval_ms,
            clock=clock,
            is_stream_time=is_stream_time,
        )


_answered: Any = Deployment
_answered.__init__ = called_as('sk.Deployment(store="memory", retention="2h")')(_answered.__init__)


@dataclass(frozen=True, kw_only=True)
class Life:
    """One life of the application's task, from its start until it is stopped, as the processor plays it.

    Args:
        retention_ms: how long the store keeps a window.
        emit: the plan's emit strategy.
        caching: True for a record cache without limit, or its bytes (`math.inf` counts them); False for none.
        commits: rows of the records after which the task commits; None: by the interval, or once, at the end.
        commit_interval_ms, emit_interval_ms: as a deployment has them, by `clock`.
        clock: the clock in ms, at each record or as a function that tells it; None: it stands still.
        is_stream_time: the clock is the stream time of each record's partition, and nothing is timed by it.
        newest_ms: the greatest stream time of the lives before.
        restart: one of `RESTARTS`, by which the task is started again afterwards. One that is "killed" ends without a
            last commit, and loses what its cache holds.
        buffers: what suppress holds back from the life before, a buffer a partition; none at the first start.
        changelog: takes note of what is written to the store, if it is restored from there afterwards.
    """

    retention_ms: int
    emit: str
    kafka: bool = True
    caching: bool | float = False
    commits: frozenset[int] | None = None
    commit_interval_ms: int | None = None
    emit_interval_ms: int = 0
    clock: Clock | None = None
    is_stream_time: bool = False
    newest_ms: int = -1
    restart: str | None = None
    buffers: Sequence[Any] = ()
    changelog: Changelog | None = None

    def part(self, start: int, stop: int, restart: str | None = None, **after: Any) -> Life:
        """The life of the records from row `start` up to row `stop`; `after` is what the one before leaves to it."""
        commits, clock, newest_ms = self.commits, self.clock, self.newest_ms
        if commits is not None:
            commits = frozenset(row - start for row in commits if start <= row < stop)
        if clock is not None and not callable(clock):
            newest_ms = int(np.max(clock[:start], initial=-1))
            clock = clock[start:stop]
        changed: dict[str, Any] = {"commits": commits, "clock": clock, "newest_ms": newest_ms}
        return dataclasses.replace(self, restart=restart, **after, **changed)


class Commits:
    """When a task commits: after the rows that are given, or after a record by which the last one is too long ago.

    One clock serves all partitions, as one thread of Kafka Streams does with its tasks; it starts with the first record
    of each life. Only a record makes it look: Kafka's thread also looks while none comes.

    Source:
        StreamThread.maybeCommit.
    """

    def __init__(self, life: Life) -> None:
        self._life, self._newest_ms = life, life.newest_ms
        self._last_ms: int | None = None

    def is_due(self, row: int, now_ms: int) -> bool:
        """Whether it commits after this record; begins the next interval."""
        life = self._life
        if life.commits is not None:
            return row in life.commits
        if life.commit_interval_ms is None or life.clock is None:
            return False
        if life.is_stream_time:
            now_ms = self._newest_ms = max(self._newest_ms, now_ms)
            if now_ms < 0:
                return False  # no record has a time yet
        if self._last_ms is None:
            self._last_ms = now_ms
        if now_ms - self._last_ms <= life.commit_interval_ms:
            return False
        self._last_ms = now_ms
        return True


def commit_rows(life: Life, count: int) -> Longs:
    """The rows of `count` records after which a task commits by itself, as `Commits` finds them one by one."""
    if life.commits is not None:
        return np.array(sorted(row for row in life.commits if row < count), np.int64)
    found: list[int] = []
    if life.commit_interval_ms is None or life.clock is None or callable(life.clock):
        return np.array(found, np.int64)
    clock_ms = np.maximum.accumulate(np.asarray(life.clock, np.int64)[:count])
    at = 0
    if life.is_stream_time:
        clock_ms = np.maximum(clock_ms, life.newest_ms)
        at = int(np.searchsorted(clock_ms, 0))
    while at < count:
        at = int(np.searchsorted(clock_ms, clock_ms[at] + life.commit_interval_ms, "right"))
        found.append(at)
    return np.array(found[:-1], np.int64)


# ---- settings, checked


def checked_restarts(restarts: object, count: int | None = None) -> tuple[Restart, ...]:
    """The restarts of a run over `count` records, or over any number; a row alone means "disk"."""
    found: list[Restart] = []
    for each in restarts if isinstance(restarts, Iterable) else (None,):
        row, *kind = each if isinstance(each, tuple) and each else (each,)
        number, first = _number(row), found[-1].row + 1 if found else 0
        is_row = number is not None and first <= number and (count is None or number < count)
        if number is None or not is_row or len(kind) > 1:
            what = "restarts must list the rows after which the task is started again"
            last = "" if count is None else f" to {count - 1}"
            rows = "none, as there are no records" if count == 0 else f"increasing numbers from 0{last}"
            want = f'{rows}, each alone or with its kind: (40, "changelog")'
            raise InvalidArgument(problem(what, shorten(repr(restarts)), want))
        found.append(Restart(number, *(one_of("the kind of a restart", str(each), RESTARTS) for each in kind)))
    return tuple(found)


def _number(row: object) -> int | None:
    """`row` as a whole number, also one of NumPy; None if it is none."""
    return operator.index(row) if isinstance(row, SupportsIndex) and not isinstance(row, bool) else None


def _kind(store: Any) -> str:
    """The kind of a store that is given by its kind, such as "rocksdb", or by its class."""
    kinds = [kind for kind in store_kinds() if kind not in READ_ONLY_KINDS and kind != "spark"]
    if isinstance(store, str):
        return one_of("store", store, tuple(kinds))
    found = next((kind for (kind, _), made in STORE_KINDS.items() if made is store), None)
    if found is None:
        want = f"one of {', '.join(map(repr, kinds))}, or a class that sk.stores.store_kind has registered"
        raise InvalidArgument(problem("store must be a kind of store", shorten(repr(store)), want))
    return found


def _caching(caching: Any) -> bool | str:
    if isinstance(caching, bool | np.bool_):
        return bool(caching)
    if isinstance(caching, str):
        return byte_text(byte_count(caching, "caching"))
    if isinstance(caching, SupportsIndex):
        want = f'bytes with their unit, such as "{operator.index(caching)} B" or "10MB"; True or False'
        raise InvalidArgument(problem("a cache needs a unit", f"caching={caching!r}", want))
    want = 'True, False, or what fits into the record cache, such as "10MB"'
    raise InvalidArgument(problem("caching must be True, False or a size", shorten(repr(caching)), want))


def _commit_every(every: Any) -> int | tuple[int, ...] | None:
    if every is None:
        return None
    rows: list[Any] = [*every] if isinstance(every, Iterable) and not isinstance(every, str) else [every]
    if all(isinstance(row, SupportsIndex) and not isinstance(row, bool) for row in rows):
        numbers = [operator.index(row) for row in rows]
        if isinstance(every, Iterable):
            return tuple(numbers)
        if numbers[0] >= 1:
            return numbers[0]
    want = "a number of records, 1 or more, or the rows after which to commit"
    raise InvalidArgument(problem("commit_every must be positive", shorten(repr(every)), want))


def checked_clock(clock: Clock | None, count: int) -> Clock | None:
    """A clock of a test beside a deployment, in whole ms: a time for each record, or a function that tells it."""
    if clock is None:
        return None
    if callable(clock):
        return lambda: _as_clock_time(clock())
    want = "a list of ms, one for each record, or a function that returns the time"
    try:
        times: list[Any] = (
            clock.to_pylist() if isinstance(clock, pa.Array | pa.ChunkedArray) else np.asarray(clock).tolist()
        )
        length = len(times)
    except TypeError as error:
        raise InvalidArgument(problem("the clock cannot be used", shorten(repr(clock)), want)) from error
    if length != count:
        raise InvalidArgument(problem("the clock must have one time for each record", f"{length} for {count}", want))
    return [_as_clock_time(time_ms) for time_ms in times]


def _as_clock_time(time_ms: Any) -> int:
    if not isinstance(time_ms, int) or isinstance(time_ms, bool):
        raise InvalidArgument(problem("the clock must give whole milliseconds", shorten(repr(time_ms)), "an int"))
    return time_ms
