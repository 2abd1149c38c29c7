"""A whole store out of rows of bytes: whoever can keep those in order has a store of sessions and one of windows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from typing import Any, ClassVar, TypeAlias

from sessionkit.base.durations import INT64_MAX, Duration, duration_ms
from sessionkit.base.moments import Moment
from sessionkit.base.text import one_of
from sessionkit.errors import InvalidArgument, problem
from sessionkit.stores.base.calls import Keys, SessionCalls, WindowCalls
from sessionkit.stores.base.store import State, WrittenStore
from sessionkit.stores.contract import RESTARTS, Snapshot, Stored, StoredSession, StoredWindow
from sessionkit.stores.rows import check_times, place_of, time_of
from sessionkit.stores.typed_bytes import SESSIONS, WINDOWS, Layout, Place, pack_value, unpack_key, unpack_value

Times: TypeAlias = tuple[int, int]  # the first and the last, both included
RawKeys: TypeAlias = tuple[bytes | None, bytes | None]  # the first and the last, both included; None: open
ALWAYS: Times = (0, INT64_MAX)
ANY_KEY: RawKeys = (None, None)


class RowStore(WrittenStore):
    """A store that keeps its windows as rows of bytes, and forgets as Kafka's stores in memory do.

    A store of your own is a class with the calls that are abstract here and a constructor, whose parameters are the
    options of its kind. The constructor opens what holds the rows, and then calls this one. From it come two classes,
    of which each is registered: one is a `SessionRowStore`, too, and one a `WindowRowStore`. No call comes from two
    threads at once. What goes wrong is raised as an error of sessionkit's, such as `StoreFailed`.
    """

    layout: ClassVar[Layout]

    def __init__(self, *, name: str, retention: Duration | None = None) -> None:
        super().__init__(name, None if retention is None else duration_ms(retention, "retention"))
        notes = dict(self.read_notes())
        if "header" in notes:
            self._read_header(unpack_value(notes.pop("header"), b"header"))
        else:
            self._note()
        for number, note in notes.items():
            observed_ms, *snapshot = unpack_value(note, number.encode())
            self._states[int(number)] = State(observed_ms, snapshot=Snapshot(*snapshot))

    # ---- calls that a store of your own answers

    @abstractmethod
    def find_rows(self, partition: int, times_ms: Times, keys: RawKeys) -> Iterable[tuple[Place, bytes]]:
        """The rows of a partition whose time and key lie between these bounds, in any order."""

    @abstractmethod
    def write_row(self, partition: int, place: Place, value: bytes) -> None:
        """Writes a row, instead of the one that may be there."""

    @abstractmethod
    def delete_row(self, partition: int, place: Place) -> None:
        """Deletes a row, if it is there."""

    @abstractmethod
    def read_notes(self) -> Mapping[str, bytes]:
        """All notes, by name."""

    @abstractmethod
    def write_note(self, name: str, value: bytes) -> None:
        """Writes a note, instead of the one of this name that may be there."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Any]:
        """Keeps what is written inside the block only if nothing raises; one transaction may lie in another.

        At the end of the outermost one it is where it outlives the process, if the store does.
        """

    @abstractmethod
    def close_rows(self) -> None:
        """Lets go of what holds the rows."""

    # ---- runs

    def restart_task(self, kind: str = "disk") -> None:
        """Forgets the stream time of each partition, as Kafka Streams does when its task is started again.

        The rows and the time that was observed stay, whatever `kind` of restart it is, as in a store that is rebuilt.
        """
        one_of("kind", kind, RESTARTS)
        self.commit_snapshots({p: state.snapshot._replace(stream_time_ms=-1) for p, state in self._states.items()})

    def close(self) -> None:
        if self._open:
            self._open = False
            self.close_rows()

    def _transaction(self) -> AbstractContextManager[Any]:
        return self.transaction()

    def _written(self) -> AbstractContextManager[None]:
        """Makes the changes inside part of the transaction in progress, or else a transaction of their own."""
        return nullcontext() if self._depth else self.all_or_nothing()

    def _note(self, **changes: Any) -> None:
        with self._written():
            super()._note(**changes)
            self.write_note("header", self._packed_header(b"header"))

    def _keep(self, partition: int, state: State) -> None:
        self._states[partition] = state
        note = (state.observed_time_ms, *state.snapshot.noted())
        self.write_note(str(partition), pack_value(note, str(partition).encode()))

    # ---- windows

    def write(self, stored: Stored, /, *, partition: int = 0, keep_null: bool = False) -> bool:
        place = place_of(self._raw(stored.key), stored)
        partition = self._number(partition)
        with self._written():
            if place.time_ms <= self._observed(partition, place.time_ms):
                return False
            if stored.aggregate is None and not keep_null:
                self.delete_row(partition, place)
                return True
            self._note_kind(stored.key)
            value = pack_value(self.layout.fields_of(stored), self._context(partition, place))
            self.write_row(partition, place, value)
            return True

    def _observed(self, partition: int, time_ms: int) -> int:
        """Notes a time that the partition has seen, and deletes what it lets expire; gives the last expired time."""
        state = self._states.get(partition)
        if state is None:
            self._keep(partition, state := State())  # a note says which partitions there are
        if time_ms > state.observed_time_ms:
            self._states[partition] = state._replace(observed_time_ms=time_ms)
            if self.retention_ms is not None:
                for place, _ in list(self.find_rows(partition, (0, time_ms - self.retention_ms), ANY_KEY)):
                    self.delete_row(partition, place)
        return self._expired_ms(partition)

    def _expired_ms(self, partition: int) -> int:
        state = self._states.get(partition)
        return -1 if state is None or self.retention_ms is None else state.observed_time_ms - self.retention_ms

    def _found(self, partition: int, times_ms: Times, keys: RawKeys) -> Iterable[tuple[Place, bytes]]:
        """Rows of these times and keys that have not expired."""
        number = self._number(partition)
        first_ms = max(times_ms[0], self._expired_ms(number) + 1)
        return self.find_rows(number, (first_ms, times_ms[1]), keys) if first_ms <= times_ms[1] else ()

    def _listed(
        self,
        partition: int,
        times_ms: Times,
        keys: RawKeys,
        latest_start_ms: int = INT64_MAX,
        *,
        backward: bool = False,
    ) -> Iterator[Any]:
        """Windows of these times and keys, by time, key and falling start; which ones is fixed by the call."""
        rows = [row for row in self._found(partition, times_ms, keys) if row[0].start_ms <= latest_start_ms]
        rows.sort(key=lambda row: (row[0].time_ms, row[0].key, -row[0].start_ms), reverse=backward)
        return self._while_open([self._stored(int(partition), place, value) for place, value in rows])

    def _stored(self, partition: int, place: Place, value: bytes) -> Stored:
        fields = unpack_value(value, self._context(partition, place))
        return self.layout.stored(place, unpack_key(place.key, self._noted.key_kind or "unknown"), fields)

    def _context(self, partition: int, place: Place) -> bytes:
        """Bytes of the row that a value belongs to: a value that is read for another row counts as damaged."""
        return partition.to_bytes(8) + self.layout.by_key(place)

    # ---- to look at

    @property
    def partitions(self) -> list[int]:
        self._check_open()
        return [number for number in sorted(self._states) if any(True for _ in self._found(number, ALWAYS, ANY_KEY))]

    def _count(self, limit: int | None) -> int:
        return sum(1 for _ in islice(self._table(), limit))

    def _facts(self) -> Iterator[str]:
        times = [([time_of(each) for each in self.all(partition=p)], p) for p in self.partitions]
        yield from self._facts_of_times([(min(own), p) for own, p in times], [max(own) for own, _ in times])


class SessionRowStore(SessionCalls, RowStore):
    """A store of sessions out of rows."""

    layout = SESSIONS

    def remove(self, key: Any, window_start_ms: int, window_end_ms: int, *, partition: int = 0) -> None:
        start_ms, end_ms = check_times(window_start_ms, window_end_ms, of=self.noun)
        place = Place(self._raw(key), start_ms, end_ms)
        if 0 <= start_ms <= end_ms:
            with self._written():
                self.delete_row(self._number(partition), place)

    def fetch_session(
        self, key: Any, earliest_session_end_ms: Moment, latest_session_start_ms: Moment, *, partition: int = 0
    ) -> Any:
        start_ms, end_ms = check_times(earliest_session_end_ms, latest_session_start_ms, of=self.noun)
        raw = self._raw(key)
        found = self._listed(partition, (end_ms, end_ms), (raw, raw))
        return next((each.aggregate for each in found if each.window_start_ms == start_ms), None)

    def find_sessions_by_end(
        self, earliest_session_end_ms: Moment, latest_session_end_ms: Moment, *, partition: int = 0
    ) -> Iterator[StoredSession]:
        """Sessions of all keys that end between the two times, both included, by rising end.

        Raises:
            InvalidArgument: the times go backwards.
        """
        first_ms, last_ms = check_times(earliest_session_end_ms, latest_session_end_ms, of=self.noun)
        if first_ms > last_ms:
            got = f"{first_ms} to {last_ms}"
            raise InvalidArgument(problem("a range of times must not go backwards", got, "swap them"))
        return self._listed(partition, (first_ms, last_ms), ANY_KEY)

    def _find(
        self, keys: Keys, earliest_end_ms: Moment, latest_start_ms: Moment, partition: int, *, backward: bool = False
    ) -> Iterator[StoredSession]:
        earliest_ms, latest_ms = check_times(earliest_end_ms, latest_start_ms, of=self.noun)
        times_ms, raw_keys = (earliest_ms, INT64_MAX), self._key_range(*keys)
        return self._listed(partition, times_ms, raw_keys, latest_ms, backward=backward)


class WindowRowStore(WindowCalls, RowStore):
    """A store of time and sliding windows out of rows."""

    layout = WINDOWS

    def fetch_window(self, key: Any, window_start_ms: Moment, *, partition: int = 0) -> StoredWindow | None:
        return next(self._find((key,), window_start_ms, window_start_ms, partition), None)

    def fetch_step_by_step(
        self, key_from: Any, key_to: Any, time_from_ms: int, time_to_ms: int, *, partition: int = 0, backward: bool
    ) -> Iterator[StoredWindow]:
        """`fetch_in_keys` or its backward form, which sees what is written where it has not come to yet."""
        first_ms, last_ms = time_from_ms, time_to_ms
        while found := list(self._find((key_from, key_to), first_ms, last_ms, partition, backward=backward)):
            at_ms = found[0].window_start_ms
            yield from (window for window in found if window.window_start_ms == at_ms)
            first_ms, last_ms = (first_ms, at_ms - 1) if backward else (at_ms + 1, last_ms)

    def _find(
        self, keys: Keys, time_from_ms: Moment, time_to_ms: Moment, partition: int, *, backward: bool = False
    ) -> Iterator[StoredWindow]:
        first_ms, last_ms = check_times(time_from_ms, time_to_ms, of=self.noun)
        return self._listed(partition, (first_ms, last_ms), self._key_range(*keys), backward=backward)
