"""The in-memory session store of KIP-445: a nested map from end time to key to start time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import pyarrow as pa
from sortedcontainers import SortedDict

from sessionkit.contracts import SessionColumns, Snapshot, StoredSession, store_kind
from sessionkit.durations import INT64_MAX, Duration, duration_ms, show_duration
from sessionkit.errors import InvalidArgument, InvalidData, StoreClosed, problem
from sessionkit.keys import key_bytes
from sessionkit.stores.rows import KEY_TYPES, as_columns, as_sessions, check_times
from sessionkit.text import escape_html, html_block, plural, shorten

SHOWN_SESSIONS = 20


class _Partition:
    """One partition's sessions: end time → key bytes → start time → session, and what the store has observed."""

    def __init__(self) -> None:
        self.by_end: SortedDict = SortedDict()
        self.observed_time_ms = -1
        self.snapshot = Snapshot()

    def copy(self) -> _Partition:
        """The same sessions in maps of its own."""
        twin = _Partition()
        twin.observed_time_ms, twin.snapshot = self.observed_time_ms, self.snapshot
        for end_ms, by_key in self.by_end.items():
            twin.by_end[end_ms] = SortedDict((raw, by_start.copy()) for raw, by_start in by_key.items())
        return twin


@store_kind("memory")
class MemorySessionStore:
    """Sessions in memory, with the calls of Kafka's SessionStore.

    Without `retention` nothing expires by itself (a plan under `rules="sessionkit"` removes what it no longer needs).
    With it the store behaves as Kafka's InMemorySessionStore: a session whose end lies `retention` or more behind the
    latest end put is refused, or gone.

    Args:
        retention: how long a session is kept, in stream time.
        name: shown in errors and in the notebook.
    Source:
        KIP-445; InMemorySessionStore.
    Example:
        >>> store = MemorySessionStore()
        >>> store.put("ada", 5, 9, 2)
        True
        >>> [session[:3] for session in store.find_sessions("ada", 0, 10)]
        [(5, 9, 2)]
    """

    def __init__(self, *, retention: Duration | None = None, name: str = "sessions") -> None:
        self.name = name
        self.retention_ms = None if retention is None else duration_ms(retention, "retention")
        self._partitions: dict[int, _Partition] = {}
        self._key_kind: type | None = None  # of the first key put: as bytes, 1 and "\0\0\0\0\0\0\0\1" are one
        self._names: frozenset[str] | None = None  # of the aggregations that a plan committed
        self._open = True

    # ---- Kafka's calls

    def put(
        self,
        key: Any,
        window_start_ms: int,
        window_end_ms: int,
        aggregate: Any,
        *,
        partition: int = 0,
        opened_by: int = -1,
        closed_by: int = -1,
        keep_null: bool = False,
    ) -> bool:
        """Writes a session; False if it is expired and was refused. A null aggregate deletes, unless `keep_null`."""
        check_times(window_start_ms, window_end_ms, of="session")
        raw = self._raw(key)
        if window_start_ms > window_end_ms or window_start_ms < 0:
            got = f"[{window_start_ms}, {window_end_ms}]"
            raise InvalidArgument(problem("a session starts at 0 or later and does not end before", got, "swap them"))
        mine = self._live(partition)
        mine.observed_time_ms = max(mine.observed_time_ms, window_end_ms)
        if window_end_ms <= self._expiry_ms(mine):
            return False
        if aggregate is None and not keep_null:
            self.remove(key, window_start_ms, window_end_ms, partition=partition)
            return True
        session = StoredSession(window_start_ms, window_end_ms, aggregate, key, opened_by, closed_by)
        by_key = mine.by_end.setdefault(window_end_ms, SortedDict())
        by_key.setdefault(raw, SortedDict())[window_start_ms] = session
        self._key_kind = _kind_of(key)
        return True

    def remove(self, key: Any, window_start_ms: int, window_end_ms: int, *, partition: int = 0) -> None:
        """Removes exactly this session, if it is there."""
        mine, raw = self._of(partition), self._raw(key)
        by_key = mine.by_end.get(window_end_ms, {})
        by_start = by_key.get(raw, {})
        if by_start.pop(window_start_ms, None) is None:
            return
        if not by_start:
            del by_key[raw]
        if not by_key:
            del mine.by_end[window_end_ms]

    def find_sessions(
        self, key: Any, earliest_session_end_ms: int, latest_session_start_ms: int, *, partition: int = 0
    ) -> Iterator[StoredSession]:
        """Sessions of `key` that end at or after the one time and start at or before the other, by rising end.

        Source:
            KIP-94; SessionStore.findSessions(key, earliestSessionEndTime, latestSessionStartTime).
        """
        raw = self._raw(key)
        return self._scan(partition, (earliest_session_end_ms, INT64_MAX), (raw, raw), latest_session_start_ms)

    def find_sessions_in_keys(
        self,
        key_from: Any,
        key_to: Any,
        earliest_session_end_ms: int,
        latest_session_start_ms: int,
        *,
        partition: int = 0,
    ) -> Iterator[StoredSession]:
        """The same for all keys of a range (bounds included, None: open), by end, key bytes and falling start."""
        ends = (earliest_session_end_ms, INT64_MAX)
        return self._scan(partition, ends, self._key_range(key_from, key_to), latest_session_start_ms)

    def find_sessions_by_end(
        self, earliest_session_end_ms: int, latest_session_end_ms: int, *, partition: int = 0
    ) -> Iterator[StoredSession]:
        """Sessions of all keys that end between the two times, both included.

        Raises:
            InvalidArgument: the times go backwards.
        Source:
            KIP-825; SessionStore.findSessions(earliestSessionEndTime, latestSessionEndTime).
        """
        check_times(earliest_session_end_ms, latest_session_end_ms, of="session")
        if earliest_session_end_ms > latest_session_end_ms:
            got = f"{earliest_session_end_ms} to {latest_session_end_ms}"
            raise InvalidArgument(problem("a range of times must not go backwards", got, "swap them"))
        return self._scan(partition, (earliest_session_end_ms, latest_session_end_ms), (None, None), INT64_MAX)

    def fetch_session(
        self, key: Any, earliest_session_end_ms: int, latest_session_start_ms: int, *, partition: int = 0
    ) -> Any:
        """The aggregate of the session that starts at the first time and ends at the second; None if there is none.

        Source:
            KIP-445; SessionStore.fetchSession (its parameters are called so there, though they are start and end).
        """
        start_ms, end_ms = earliest_session_end_ms, latest_session_start_ms
        check_times(start_ms, end_ms, of="session")
        session = self._live(partition).by_end.get(end_ms, {}).get(self._raw(key), {}).get(start_ms)
        return None if session is None else session.aggregate

    def fetch(self, key: Any, key_to: Any = ..., *, partition: int = 0) -> Iterator[StoredSession]:
        """All sessions of `key`; with `key_to` those of all keys from `key` to `key_to`, both included."""
        if key_to is ...:
            return self.find_sessions(key, 0, INT64_MAX, partition=partition)
        low, high = self._key_range(key, key_to)
        if low is not None and high is not None and low > high:
            got = f"{shorten(key)!r} to {shorten(key_to)!r}"
            raise InvalidArgument(problem("a range of keys must not go backwards", got, "swap them"))
        return self._scan(partition, (0, INT64_MAX), (low, high), INT64_MAX)

    def backward_fetch(self, key: Any, key_to: Any = ..., *, partition: int = 0) -> Iterator[StoredSession]:
        """`fetch` from the end."""
        return _reversed(self.fetch(key, key_to, partition=partition))

    def backward_find_sessions(
        self, key: Any, earliest_session_end_ms: int, latest_session_start_ms: int, *, partition: int = 0
    ) -> Iterator[StoredSession]:
        """`find_sessions` from the end."""
        found = self.find_sessions(key, earliest_session_end_ms, latest_session_start_ms, partition=partition)
        return _reversed(found)

    def backward_find_sessions_in_keys(
        self,
        key_from: Any,
        key_to: Any,
        earliest_session_end_ms: int,
        latest_session_start_ms: int,
        *,
        partition: int = 0,
    ) -> Iterator[StoredSession]:
        """`find_sessions_in_keys` from the end."""
        times = (earliest_session_end_ms, latest_session_start_ms)
        return _reversed(self.find_sessions_in_keys(key_from, key_to, *times, partition=partition))

    def all(self, *, partition: int = 0) -> Iterator[StoredSession]:
        """Every session, by end, key bytes and falling start."""
        return self.fetch(None, None, partition=partition)

    # ---- state between runs

    def snapshot(self, partition: int) -> Snapshot:
        """How far the partition has been read."""
        return self._of(partition).snapshot

    def load(self, keys: pa.Array, close_time_ms: Mapping[int, int], names: tuple[str, ...]) -> SessionColumns:
        """Sessions of these keys, and those of any key that will be closed, of the partitions in `close_time_ms`."""
        self.check_names(names)
        wanted = {key_bytes(key) for key in keys.to_pylist()}
        found = [
            (partition, session)
            for partition, close_ms in close_time_ms.items()
            for end_ms, by_key in self._live(partition).by_end.items()
            for raw, by_start in by_key.items()
            if end_ms < close_ms or raw in wanted
            for session in by_start.values()
        ]
        key_type = keys.type if not found or self._key_kind is None else KEY_TYPES[self._key_kind]
        return as_columns(found, key_type, names)

    def check_names(self, names: Iterable[str]) -> None:
        """Refuses a plan whose results are called otherwise than those in the store."""
        if self._names is not None and self._names != set(names):
            got = f"{sorted(self._names)} in it, {sorted(names)} in the plan"
            want = "one plan a store, or the same names"
            raise InvalidData(problem(f"store {self.name!r} holds the results of another plan", got, want))

    def commit(self, removes: SessionColumns, puts: SessionColumns, snapshots: Mapping[int, Snapshot]) -> None:
        """Takes a run over: what it removed, what it wrote, and how far it came."""
        self._check_open()
        keys, rows = removes.key.to_pylist(), zip(*(column.tolist() for column in removes[1:4]), strict=True)
        for key, (partition, start, end) in zip(keys, rows, strict=True):
            self.remove(key, start, end, partition=partition)
        for partition, session in as_sessions(puts):
            start, end, aggregate, key, opened_by, closed_by = session
            ids = {"opened_by": opened_by, "closed_by": closed_by}
            self.put(key, start, end, aggregate, partition=partition, keep_null=True, **ids)
        self.commit_snapshots(snapshots, frozenset(puts.aggregates))

    def commit_snapshots(self, snapshots: Mapping[int, Snapshot], names: frozenset[str]) -> None:
        """Takes over how far a run came, whose sessions the calls above have written already."""
        for partition, snapshot in snapshots.items():
            self._of(partition).snapshot = snapshot
        self._names = names

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """What is done inside stays only if nothing raises."""
        before = {number: mine.copy() for number, mine in self._partitions.items()}
        try:
            yield
        except BaseException:
            self._partitions = before
            raise

    def close(self) -> None:
        """Closes the store; every later call raises."""
        self._open = False
        self._partitions.clear()

    def __enter__(self) -> MemorySessionStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- to look at

    def __len__(self) -> int:
        self._check_open()
        live = (self._live(partition) for partition in list(self._partitions))
        return sum(len(by_start) for mine in live for by_key in mine.by_end.values() for by_start in by_key.values())

    def to_pandas(self) -> Any:
        """Every session as a pandas frame, by partition and then in the store's own order."""
        import pandas as pd

        return pd.DataFrame(self._rows(), columns=["partition", "key", "window_start_ms", "window_end_ms", "aggregate"])

    def _rows(self) -> list[tuple[Any, ...]]:
        self._check_open()
        return [(p, s.key, *s[:3]) for p in sorted(self._partitions) for s in self.all(partition=p)]

    def __repr__(self) -> str:
        if not self._open:
            return f"MemorySessionStore({self.name!r}): closed"
        kept = "for ever" if self.retention_ms is None else f"for {show_duration(self.retention_ms)}"
        return f"MemorySessionStore({self.name!r}): {plural(len(self), 'session')}, kept {kept}"

    def _repr_html_(self) -> str:
        if not self._open:
            return html_block(f"<p>{escape_html(repr(self))}</p>")
        titles = ("partition", "key", "window start ms", "window end ms", "aggregate")
        head = "".join(f"<th>{title}</th>" for title in titles)
        rows = [[escape_html(shorten(value)) for value in row] for row in self._rows()[:SHOWN_SESSIONS]]
        body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return html_block(f"<p>{escape_html(repr(self))}</p>{table}")

    # ---- inside

    @staticmethod
    def sort_key(raw: bytes, start_ms: int, end_ms: int) -> tuple[int, bytes, int]:
        """The order in which ranges over keys come."""
        return end_ms, raw, -start_ms

    def _check_open(self) -> None:
        if not self._open:
            raise StoreClosed(problem(f"store {self.name!r} is closed", "a call", "open it again"))

    def _raw(self, key: Any) -> bytes:
        self._check_open()
        raw = key_bytes(key)
        if self._key_kind is not None and self._key_kind is not _kind_of(key):
            want = f"its keys are {self._key_kind.__name__}: one type of key a store"
            raise InvalidArgument(problem(f"store {self.name!r} holds keys of another type", shorten(repr(key)), want))
        return raw

    def _key_range(self, key_from: Any, key_to: Any) -> tuple[bytes | None, bytes | None]:
        return None if key_from is None else self._raw(key_from), None if key_to is None else self._raw(key_to)

    def _of(self, partition: int) -> _Partition:
        self._check_open()
        return self._partitions.setdefault(partition, _Partition())

    def _expiry_ms(self, mine: _Partition) -> int:
        return -1 if self.retention_ms is None else mine.observed_time_ms - self.retention_ms

    def _live(self, partition: int) -> _Partition:
        """The partition without what has expired: Kafka clears it at each put and each read."""
        mine = self._of(partition)
        while mine.by_end and mine.by_end.peekitem(0)[0] <= self._expiry_ms(mine):
            mine.by_end.popitem(0)
        return mine

    def _scan(
        self, partition: int, ends: tuple[int, int], keys: tuple[bytes | None, bytes | None], latest_start_ms: int
    ) -> Iterator[StoredSession]:
        """By end, key bytes, falling start. The answer is fixed when the call is made."""
        check_times(*ends, latest_start_ms, of="session")
        by_end = self._live(partition).by_end
        found = [
            session
            for end in by_end.irange(*ends)
            for raw in by_end[end].irange(*keys)
            for session in reversed(by_end[end][raw].values())
            if session.window_start_ms <= latest_start_ms
        ]
        return iter(found)


def _kind_of(key: Any) -> type:
    return next((kind for kind in (str, bytes) if isinstance(key, kind)), int)


def _reversed(found: Iterator[StoredSession]) -> Iterator[StoredSession]:
    return iter(list(found)[::-1])
