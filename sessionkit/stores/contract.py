"""What the engine asks of a store, what goes in and out of one, and the registry in which the kinds of stores are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.base.arrays import Longs, Rows, taken

EmitStrategy = Literal["on_window_update", "on_window_close"]
EMIT_STRATEGIES = get_args(EmitStrategy)
# How Kafka Streams finds its store again: as it was on the disk, from its changelog alone, or after a crash.
RestartKind = Literal["disk", "changelog", "killed"]
RESTARTS = get_args(RestartKind)


class StoredSession(NamedTuple):
    """One session as a store holds it; unpacks as (window_start_ms, window_end_ms, aggregate, …)."""

    window_start_ms: int
    window_end_ms: int
    aggregate: Any
    key: Any
    opened_by: int = -1  # offset of the record that opened it; -1: it was put by hand
    closed_by: int = -1  # offset of the record that closed it; -1: open
    rows: int = -1  # how many records count in it; -1: that is not known


class StoredWindow(NamedTuple):
    """One tumbling, hopping or sliding window as a store holds it; unpacks as (window_start_ms, aggregate, …)."""

    window_start_ms: int
    aggregate: Any
    timestamp_ms: int  # the largest record timestamp in it
    key: Any
    opened_by: int = -1  # offset of the record that opened it; -1: it was put by hand
    closed_by: int = -1  # offset of the record that closed it; -1: open
    rows: int = -1  # how many records count in it; -1: that is not known


Stored: TypeAlias = StoredSession | StoredWindow


class Snapshot(NamedTuple):
    """How far a partition has been read, and its clock; committed together with the sessions."""

    position: int = -1  # offset of the last record
    stream_time_ms: int = -1
    last_close_time_ms: int = -1
    last_arrival_ms: int = -1  # of its records, by the clock that a plan with `idle_after=` names; -1: it names none

    def noted(self) -> tuple[int, ...]:
        """The snapshot as stores write it: without an arrival if it has none, as older versions wrote it."""
        return self[:3] if self.last_arrival_ms < 0 else self


class SessionColumns(NamedTuple):
    """Sessions as columns. `aggregates` holds one column for each named aggregation: Arrow, or Python objects."""

    key: pa.Array
    partition: Longs
    start_ms: Longs
    end_ms: Longs
    opened_by: Longs
    closed_by: Longs
    aggregates: Mapping[str, pa.Array | npt.NDArray[np.object_]]
    rows: Longs | None = None  # how many records count in each, -1 or None: that is not known

    @property
    def time_ms(self) -> Longs:
        """The times that a store keeps them by: their ends."""
        return self.end_ms

    @property
    def timestamp_ms(self) -> Longs:
        """The times that results of them carry: their ends, too."""
        return self.end_ms

    def take(self, rows: Rows) -> SessionColumns:
        """The sessions at `rows`, in that order."""
        return SessionColumns(*_taken(self, rows))


class FixedColumns(NamedTuple):
    """Time and sliding windows as columns; otherwise as `SessionColumns`."""

    key: pa.Array
    partition: Longs
    start_ms: Longs
    timestamp_ms: Longs  # the largest record timestamp in it
    opened_by: Longs
    closed_by: Longs
    aggregates: Mapping[str, pa.Array | npt.NDArray[np.object_]]
    rows: Longs | None = None  # how many records count in each, -1 or None: that is not known

    @property
    def time_ms(self) -> Longs:
        """The times that a store keeps them by: their starts."""
        return self.start_ms

    def take(self, rows: Rows) -> FixedColumns:
        """The windows at `rows`, in that order."""
        return FixedColumns(*_taken(self, rows))


StoredColumns: TypeAlias = SessionColumns | FixedColumns


def _taken(columns: StoredColumns, rows: Rows) -> Iterator[Any]:
    yield columns.key.take(pa.array(rows))
    yield from (column[rows] for column in columns[1:6])
    yield taken(columns.aggregates, rows)
    yield None if columns.rows is None else columns.rows[rows]


def rows_of(columns: StoredColumns) -> Longs:
    """How many records count in each window; -1 where that is not known."""
    return np.full(len(columns.start_ms), -1) if columns.rows is None else columns.rows


# The contents of a store, "sessions" or "windows" (time and sliding ones), and their class as columns.
COLUMNS: Mapping[str, Callable[..., StoredColumns]] = {"sessions": SessionColumns, "windows": FixedColumns}
HOLDS = tuple(COLUMNS)


def no_columns(of: str, key_type: pa.DataType, names: Iterable[str]) -> Any:
    """No sessions, or no windows, as columns."""
    none = np.empty(0, np.int64)
    aggregates = {name: np.empty(0, object) for name in names}
    return COLUMNS[of](pa.nulls(0, key_type), none, none, none, none, none, aggregates)


class BulkStore(Protocol):
    """The part of a store that a kernel needs: windows in and out as columns, and how far each partition was read.

    A store of sessions gives and takes `SessionColumns`, one of time and sliding windows `FixedColumns`.
    """

    def snapshot(self, partition: int) -> Snapshot:
        """How far the partition has been read, and its clock."""

    def load(self, keys: pa.Array, before_ms: Mapping[int, int], names: tuple[str, ...]) -> Any:
        """Windows of these keys, and of any key those whose end (sessions) or start lies before the time given.

        Only of the partitions in `before_ms`; `names` are those of the aggregations.
        """

    def commit(self, removes: Any, puts: Any, snapshots: Mapping[int, Snapshot]) -> None:
        """Takes a run over, all or nothing: what it removed, what it wrote, and how far it came."""


class Store(Protocol):
    """The calls that every store offers, and the record cache in front of one as well."""

    holds: ClassVar[str]  # what is in it: "sessions" or "windows"

    @property
    def partitions(self) -> list[int]:
        """The numbers of the partitions of which it holds windows, rising."""

    def all(self, *, partition: int = 0) -> Iterator[Any]:
        """Every window of a partition, in the store's own order."""

    def __len__(self) -> int: ...


class SessionStore(Store, Protocol):
    """Kafka's session store as a processor has it, one partition at a time."""

    def write(self, session: StoredSession, /, *, partition: int = 0, keep_null: bool = False) -> bool:
        """Writes a session; False if it is expired and was refused. A null aggregate deletes, unless `keep_null`."""

    def remove(self, key: Any, window_start_ms: int, window_end_ms: int, *, partition: int = 0) -> None:
        """Removes exactly this session, if it is there."""

    def find_sessions(
        self, key: Any, earliest_session_end_ms: int, latest_session_start_ms: int, *, partition: int = 0
    ) -> Iterator[StoredSession]:
        """Sessions of `key` that end at or after the one time and start at or before the other, by rising end."""

    def find_sessions_by_end(
        self, earliest_session_end_ms: int, latest_session_end_ms: int, *, partition: int = 0
    ) -> Iterator[StoredSession]:
        """Sessions of all keys that end between the two times, both included, by rising end.

        Raises:
            NotBuilt: it is not in order of time; the processor then goes through `all`.
        """


class WindowStore(Store, Protocol):
    """Kafka's window store as a processor has it: a window is known by its key and its start."""

    def write(self, window: StoredWindow, /, *, partition: int = 0, keep_null: bool = False) -> bool:
        """Writes a window; False if it is expired and was refused. A null aggregate deletes, unless `keep_null`."""

    def fetch_window(self, key: Any, window_start_ms: int, *, partition: int = 0) -> StoredWindow | None:
        """The window of `key` that starts then; None if there is none."""

    def fetch_to_update(
        self, key: Any, time_from_ms: int, time_to_ms: int, *, partition: int = 0, backward: bool = False
    ) -> Iterator[StoredWindow]:
        """Windows of `key` that start between the two times, both included, by rising or falling start.

        The processor writes windows between the steps of this read.
        """

    def fetch_all(self, time_from_ms: int, time_to_ms: int, *, partition: int = 0) -> Iterator[StoredWindow]:
        """Windows of all keys that start between the two times, both included, in the store's own order."""


class TaskStore(Store, Protocol):
    """A store as the task that fills it record by record has it; it also takes the calls of what it holds."""

    lock: AbstractContextManager[Any]  # keeps other threads out for a whole run
    retention_ms: Any  # int or None: how long a window is kept, in stream time; None: nothing expires by itself

    def snapshot(self, partition: int) -> Snapshot:
        """How far the partition has been read, and its clock."""

    def commit_snapshots(self, snapshots: Mapping[int, Snapshot], names: Collection[str] = ()) -> None:
        """Takes over how far a run came, whose windows were written already; `names` are those of its results."""

    def all_or_nothing(self) -> AbstractContextManager[None]:
        """Keeps what is done inside the block only if nothing raises; one block may lie in another."""

    def bind(self, windows: Mapping[str, Any]) -> None:
        """Notes what the windows in it are, and refuses others from then on."""

    def restart_task(self, kind: str = "disk") -> None:
        """Forgets what Kafka Streams forgets when its task is started again; `kind` is one of `RESTARTS`."""


class PlanStore(BulkStore, TaskStore, Protocol):
    """A store that a plan keeps its windows in: what `plan.run(…, store=…)` takes, and every kind offers."""

    name: str  # in errors

    @property
    def read_partitions(self) -> list[int]:
        """The numbers of the partitions of which it knows how far they were read, rising."""

    def check_names(self, names: Iterable[str]) -> None:
        """Refuses a plan whose results have other names than those in the store."""

    def check_windows(self, windows: Mapping[str, Any]) -> None:
        """Refuses a plan whose windows, keys or results are not those that the store is bound to."""


# ---- the kinds that there are

STORE_KINDS: dict[tuple[str, str], Callable[..., PlanStore]] = {}  # (kind, one of HOLDS)
READ_ONLY_KINDS: dict[str, Callable[..., Any]] = {}  # their contents follow from what they read
C = TypeVar("C", bound=Callable[..., PlanStore])
F = TypeVar("F", bound=Callable[..., Any])


def store_kind(kind: str, of: str = "sessions") -> Callable[[C], C]:
    """Registers a class of stores under the kind that `open_store` takes, and what it holds.

    The parameters of its constructor are the options that `open_store` takes; all of them are keywords.
    """

    def register(store: C) -> C:
        STORE_KINDS[kind, of] = store
        return store

    return register


def read_only_kind(kind: str) -> Callable[[F], F]:
    """Registers a function that opens what no plan writes to: `open_store` gives what it gives."""

    def register(read: F) -> F:
        READ_ONLY_KINDS[kind] = read
        return read

    return register
