"""What a window kind and a store must offer to the engine, and the registries in which they are found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.errors import InvalidArgument, problem

EMIT_STRATEGIES = ("on_window_update", "on_window_close")
RULES = ("sessionkit", "kafka")
STORE_KINDS: dict[tuple[str, str], type] = {}  # (kind, "sessions" or "windows")
WINDOW_KINDS: dict[str, type] = {}
C = TypeVar("C", bound=type)


def one_of(name: str, value: str, choices: tuple[str, ...]) -> str:
    """`value`, if it is one of `choices`.

    Raises:
        InvalidArgument: it is not.
    """
    if value not in choices:
        want = "one of " + ", ".join(repr(choice) for choice in choices)
        raise InvalidArgument(problem(f"{name} must be a known choice", repr(value), want))
    return value


def store_kind(name: str, of: str = "sessions") -> Callable[[C], C]:
    """Registers a store class under the name that `open_store` takes, and what it holds."""

    def register(store: C) -> C:
        STORE_KINDS[name, of] = store
        return store

    return register


def window_kind(kind: C) -> C:
    """Registers a window class under its name."""
    WINDOW_KINDS[kind.__name__] = kind
    return kind


class StoredSession(NamedTuple):
    """One session as a store holds it; unpacks as (window_start_ms, window_end_ms, aggregate, …)."""

    window_start_ms: int
    window_end_ms: int
    aggregate: Any
    key: Any
    opened_by: int = -1  # offset of the record that opened it; -1: it was put by hand
    closed_by: int = -1  # offset of the record that closed it; -1: open


class StoredWindow(NamedTuple):
    """One tumbling, hopping or sliding window as a store holds it; unpacks as (window_start_ms, aggregate, …)."""

    window_start_ms: int
    aggregate: Any
    timestamp_ms: int  # the largest record timestamp in it
    key: Any
    opened_by: int = -1  # offset of the record that opened it; -1: it was put by hand
    closed_by: int = -1  # offset of the record that closed it; -1: open


class Snapshot(NamedTuple):
    """How far a partition has been read, and its clock; committed together with the sessions."""

    position: int = -1  # offset of the last record
    stream_time_ms: int = -1
    last_close_time_ms: int = -1


class SessionColumns(NamedTuple):
    """Sessions as columns. `aggregates` holds one column for each named aggregation: Arrow, or Python objects."""

    key: pa.Array
    partition: npt.NDArray[np.int64]
    start_ms: npt.NDArray[np.int64]
    end_ms: npt.NDArray[np.int64]
    opened_by: npt.NDArray[np.int64]
    closed_by: npt.NDArray[np.int64]
    aggregates: Mapping[str, pa.Array | npt.NDArray[np.object_]]

    def take(self, rows: npt.NDArray[np.intp]) -> SessionColumns:
        """The sessions at `rows`, in that order."""
        return SessionColumns(*_taken(self, rows))


class FixedColumns(NamedTuple):
    """Windows of one length as columns; otherwise as `SessionColumns`."""

    key: pa.Array
    partition: npt.NDArray[np.int64]
    start_ms: npt.NDArray[np.int64]
    timestamp_ms: npt.NDArray[np.int64]  # the largest record timestamp in it
    opened_by: npt.NDArray[np.int64]
    closed_by: npt.NDArray[np.int64]
    aggregates: Mapping[str, pa.Array | npt.NDArray[np.object_]]

    def take(self, rows: npt.NDArray[np.intp]) -> FixedColumns:
        """The windows at `rows`, in that order."""
        return FixedColumns(*_taken(self, rows))


def _taken(columns: SessionColumns | FixedColumns, rows: npt.NDArray[np.intp]) -> Iterator[Any]:
    yield columns.key.take(pa.array(rows))
    yield from (column[rows] for column in columns[1:6])
    yield {
        name: column.take(pa.array(rows)) if isinstance(column, pa.Array) else column[rows]
        for name, column in columns.aggregates.items()
    }


class BulkStore(Protocol):
    """What a kernel needs of a store: windows in and out as columns, and how far each partition was read.

    A store of sessions gives and takes `SessionColumns`, one of windows of one length `FixedColumns`.
    """

    def snapshot(self, partition: int) -> Snapshot:
        """How far the partition has been read, and its clock."""

    def load(self, keys: pa.Array, before_ms: Mapping[int, int], names: tuple[str, ...]) -> Any:
        """Windows of these keys, and of any key those that end (windows of one length: start) before the time given.

        Only of the partitions in `before_ms`; `names` are those of the aggregations.
        """

    def commit(self, removes: Any, puts: Any, snapshots: Mapping[int, Snapshot]) -> None:
        """Takes a run over, all or nothing: what it removed, what it wrote, and how far it came."""


class SessionStore(BulkStore, Protocol):
    """Kafka's session store, one partition at a time, and the bulk calls for the kernel."""

    def restart_task(self) -> None:
        """Forgets what Kafka Streams forgets when its task is stopped and started again."""

    def check_names(self, names: Iterable[str]) -> None:
        """Refuses a plan whose results are called otherwise than those in the store."""

    def check_windows(self, windows: Mapping[str, Any]) -> None:
        """Refuses a plan whose windows, keys or results are not those that the store is bound to."""

    def bind(self, windows: Mapping[str, Any]) -> None:
        """Notes what the windows in it are, and refuses others from then on."""

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

    def remove(self, key: Any, window_start_ms: int, window_end_ms: int, *, partition: int = 0) -> None:
        """Removes exactly this session, if it is there."""

    def find_sessions(
        self, key: Any, earliest_session_end_ms: int, latest_session_start_ms: int, *, partition: int = 0
    ) -> Iterator[StoredSession]:
        """Sessions of `key` that end at or after the one time and start at or before the other, by rising end."""

    def all(self, *, partition: int = 0) -> Iterator[StoredSession]:
        """Every session, in the store's own order."""

    def find_sessions_by_end(
        self, earliest_session_end_ms: int, latest_session_end_ms: int, *, partition: int = 0
    ) -> Iterator[StoredSession]:
        """Sessions of all keys that end between the two times, both included, by rising end."""


class WindowStore(BulkStore, Protocol):
    """Kafka's window store, one partition at a time: a window is known by its key and its start."""

    def restart_task(self) -> None:
        """Forgets what Kafka Streams forgets when its task is stopped and started again."""

    def check_names(self, names: Iterable[str]) -> None:
        """Refuses a plan whose results are called otherwise than those in the store."""

    def check_windows(self, windows: Mapping[str, Any]) -> None:
        """Refuses a plan whose windows, keys or results are not those that the store is bound to."""

    def bind(self, windows: Mapping[str, Any]) -> None:
        """Notes what the windows in it are, and refuses others from then on."""

    def put(
        self,
        key: Any,
        window_start_ms: int,
        aggregate: Any,
        timestamp_ms: int,
        *,
        partition: int = 0,
        opened_by: int = -1,
        closed_by: int = -1,
        keep_null: bool = False,
    ) -> bool:
        """Writes a window; False if it is expired and was refused. A null aggregate deletes, unless `keep_null`."""

    def fetch_window(self, key: Any, window_start_ms: int, *, partition: int = 0) -> StoredWindow | None:
        """The window of `key` that starts then; None if there is none."""

    def fetch(self, key: Any, time_from_ms: int, time_to_ms: int, *, partition: int = 0) -> Iterator[StoredWindow]:
        """Windows of `key` that start between the two times, both included, by rising start."""

    def fetch_to_update(
        self, key: Any, time_from_ms: int, time_to_ms: int, *, partition: int = 0, backward: bool = False
    ) -> Iterator[StoredWindow]:
        """`fetch`, or the same from the end, for the processor, which puts windows between the steps of its read."""

    def fetch_all(self, time_from_ms: int, time_to_ms: int, *, partition: int = 0) -> Iterator[StoredWindow]:
        """Windows of all keys that start between the two times, both included, in the store's own order."""
