"""Kafka's stores as an audit needs them: sorted maps that forget as its stores do, and notice what that depended on.

Nothing that was put is deleted when it expires. So each answer can note what would have been another one with another
retention: with which retentions the whole run would be the same follows from that.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from threading import RLock
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sortedcontainers import SortedDict

from sessionkit.deployed.independent_parts import WHOLE, Whole
from sessionkit.deployed.noticed import Noticed
from sessionkit.records.keys import key_bytes
from sessionkit.stores.base.calls import Keys, SessionCalls, WindowCalls
from sessionkit.stores.contract import Snapshot, StoredColumns, StoredSession, StoredWindow
from sessionkit.stores.rows import as_stored, time_of
from sessionkit.stores.segments import Segments

LAST_MS = 2**63 - 1


class Row(NamedTuple):
    """A window that was put, and the part of the records that it belongs to."""

    part: Hashable
    stored: Any


class _Partition:
    def __init__(self) -> None:
        self.observed_ms = self.dropped_at_ms = self.newest_ms = -1
        self.snapshot = Snapshot()
        self._of_key: defaultdict[bytes, SortedDict] = defaultdict(SortedDict)
        self._by_time: SortedDict = SortedDict()
        self.waiting: StoredColumns | None = None  # what a compiled run left, until somebody asks for it

    @property
    def of_key(self) -> defaultdict[bytes, SortedDict]:
        """Key → (time, start) → Row."""
        self._take_in()
        return self._of_key

    @property
    def by_time(self) -> SortedDict:
        """(time, start, key) → Row."""
        self._take_in()
        return self._by_time

    def _take_in(self) -> None:
        if self.waiting is None:
            return
        waiting, self.waiting = self.waiting, None
        self._of_key.clear()
        self._by_time.clear()
        for _, each in as_stored(waiting):
            raw, place, row = key_bytes(each.key), (time_of(each), each.window_start_ms), Row(WHOLE, each)
            self._of_key[raw][place] = self._by_time[(*place, raw)] = row


class ForgettingStore:
    """Base of the two stores of an audit: partitions, clocks, and the rules of Kafka's stores in memory and on disk.

    Args:
        retention_ms: how long a window is kept.
        lowest_ms: the smallest retention that is asked about.
        on_disk: the rules of RocksDB's segments.
        time_ordered: the form for emit-on-close; its windows are read though they are just `retention` behind.
        part_of: (partition, key bytes, time) → the part of the records that this belongs to.
        reach_ms: of sessions, how far from a record one is found.
        is_shadowed: whether a cache in front has all that was ever written: then what a processor reads here changes
            nothing, and it is shown nothing. A flush still asks for the one window that it writes.
    """

    holds: ClassVar[str]
    shows_boundary = False
    finds_closed = False  # a record can find what is closed: sessions alone
    is_asked = False  # on which retentions the answers depend that kernels get

    def __init__(
        self,
        *,
        retention_ms: int,
        lowest_ms: int,
        on_disk: bool,
        time_ordered: bool,
        part_of: Whole,
        reach_ms: int,
        is_shadowed: bool = False,
    ) -> None:
        self.retention_ms, self.segments = retention_ms, Segments.of_ms(retention_ms)
        self.lock: AbstractContextManager[Any] = RLock()
        self.noticed: defaultdict[Hashable, Noticed] = defaultdict(Noticed)
        self._lowest_ms, self._on_disk, self._part_of = lowest_ms, on_disk, part_of
        self.is_persistent, self.time_ordered, self.notices = on_disk, time_ordered, True
        self.segment_interval_ms = self.segments.interval_ms if on_disk else 1
        self._boundary_ms = int(on_disk and time_ordered and self.shows_boundary)
        self._gap_ms, self._is_relevant, self._is_shadowed = reach_ms, True, is_shadowed
        self._partitions: defaultdict[int, _Partition] = defaultdict(_Partition)

    # ---- calls that a run needs of a store

    def _check_open(self) -> None:
        """Does nothing: the store of an audit is never closed."""

    def snapshot(self, partition: int) -> Snapshot:
        return self._partitions[partition].snapshot

    def commit_snapshots(self, snapshots: Mapping[int, Snapshot], names: Collection[str] = ()) -> None:
        for number, snapshot in snapshots.items():
            self._partitions[number].snapshot = snapshot

    def restart_task(self, kind: str = "disk") -> None:
        """Forgets stream time, as Kafka Streams does when it restarts a task; on disk also what the store observed.

        Restored from its "changelog" it has observed the largest time that was ever put; "killed", what it had before.
        """
        for state in self._partitions.values():
            state.snapshot = state.snapshot._replace(stream_time_ms=-1)
            if self._on_disk:
                state.newest_ms = max(state.newest_ms, state.observed_ms)
                after_ms = {"disk": -1, "changelog": state.newest_ms, "killed": state.observed_ms}[kind]
                if state.waiting is not None:
                    oldest = self.segments.oldest_live(max(state.dropped_at_ms, after_ms))
                    segments = state.waiting.time_ms // self.segment_interval_ms
                    state.waiting = state.waiting.take(np.flatnonzero(segments >= oldest))
                    state.observed_ms = state.dropped_at_ms = after_ms
                    continue
                for (time_ms, start_ms, raw), row in list(state.by_time.items()):
                    if not self._is_kept(row.part, time_ms, max(state.dropped_at_ms, after_ms)):
                        self._delete(state, raw, time_ms, start_ms)
                state.observed_ms = state.dropped_at_ms = after_ms

    def restore_from(
        self, partition: int, raw: bytes, start_ms: int, time_ms: int, behind_ms: int, since_ms: tuple[int, int] | None
    ) -> None:
        """Deletes a window that is so far behind the newest entry of the changelog, if a restore leaves it out.

        It leaves nothing out while the segment of the first time of `since_ms` is live at the second one.
        """
        row = self._partitions[partition].by_time.get((time_ms, start_ms, raw))
        if row is None or (since_ms is not None and self._is_kept(row.part, *since_ms)):
            return
        if self._is_within(row.part, 0) and not self._is_within(row.part, behind_ms - 1):  # of 0 Kafka restores all
            self._delete(self._partitions[partition], raw, time_ms, start_ms)

    def bind(self, windows: Mapping[str, Any]) -> None:
        """Does nothing: an audit has one plan."""

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Undoes nothing: an audit that fails is thrown away with its store."""
        yield

    @property
    def partitions(self) -> list[int]:
        return [number for number in sorted(self._partitions) if any(True for _ in self.all(partition=number))]

    def all(self, *, partition: int = 0) -> Iterator[Any]:
        """Every window that reads see; a look from outside, on which nothing depends."""
        state = self._partitions[partition]
        first_ms = state.observed_ms - self.retention_ms + 1 - self._boundary_ms
        shown = [(place, row.stored) for place, row in state.by_time.items() if place[0] >= first_ms]
        return iter([stored for place, stored in sorted(shown, key=lambda each: self._order(*each[0]))])

    def __len__(self) -> int:
        return sum(1 for number in self.partitions for _ in self.all(partition=number))

    @abstractmethod
    def _order(self, time_ms: int, start_ms: int, raw: bytes) -> Any:
        """Where a window stands among those of a partition, as Kafka's store goes through them."""

    def notice_segments(self, time_ms: int, other_ms: int) -> None:
        """Takes note of two times of which it counts whether they lie in one segment."""
        if self.notices:
            noticed = self.noticed[self._part_of(0, b"", time_ms)]
            noticed.in_segments(time_ms, other_ms, self.retention_ms, self._part_of.span_ms)

    # ---- rules

    def _is_within(self, part: Hashable, behind_ms: int) -> bool:
        """Whether a window is kept that lies `behind_ms` behind the observed time."""
        is_true = self.retention_ms > behind_ms
        if behind_ms >= self._lowest_ms and self._is_relevant and self.notices:
            self.noticed[part].within(behind_ms, is_true=is_true)
        return is_true

    def _is_kept(self, part: Hashable, time_ms: int, observed_ms: int) -> bool:
        """Whether the segment of this time is live, when a put has observed that time."""
        if observed_ms - time_ms <= self._lowest_ms:
            return True  # with any retention: two segments span it
        is_true = self.segments.is_live(time_ms, observed_ms)
        if self.notices:
            self.noticed[part].kept(time_ms, observed_ms, is_true=is_true)
        return is_true

    def _is_read(self, state: _Partition, row: Row, time_ms: int) -> bool:
        return self._is_within(row.part, state.observed_ms - time_ms - self._boundary_ms)

    def _write(self, key: Any, time_ms: int, start_ms: int, stored: Any, partition: int) -> bool:
        state, raw = self._partitions[partition], key_bytes(key)
        part = self._part_of(partition, raw, time_ms)
        state.observed_ms = max(state.observed_ms, time_ms)
        if self._on_disk:
            state.dropped_at_ms = state.observed_ms
            is_taken = self._is_kept(part, time_ms, state.observed_ms)
        else:
            is_taken = self._is_within(part, state.observed_ms - time_ms)
        if is_taken and stored is None:
            self._delete(state, raw, time_ms, start_ms)
        elif is_taken:
            row = Row(part, stored)
            state.of_key[raw][(time_ms, start_ms)] = state.by_time[(time_ms, start_ms, raw)] = row
        return is_taken

    def _delete(self, state: _Partition, raw: bytes, time_ms: int, start_ms: int) -> None:
        if state.by_time.pop((time_ms, start_ms, raw), None) is not None:
            del state.of_key[raw][(time_ms, start_ms)]

    def _of_key(self, key: Any, first_ms: int, last_ms: int, partition: int) -> Iterator[Any]:
        """The key's windows by rising time."""
        if self._is_shadowed:
            return
        state = self._partitions[partition]
        rows = state.of_key.get(key_bytes(key), SortedDict())
        for place in rows.irange((first_ms, -1), (last_ms, LAST_MS)):
            if self._is_read(state, rows[place], place[0]):
                yield rows[place].stored

    def _one(self, key: Any, time_ms: int, start_ms: int, partition: int) -> Any:
        state = self._partitions[partition]
        row = state.of_key.get(key_bytes(key), {}).get((time_ms, start_ms))
        return row.stored if row is not None and self._is_read(state, row, time_ms) else None


class ForgettingSessions(ForgettingStore, SessionCalls):
    """Sessions, kept by their ends."""

    finds_closed = True

    def write(self, session: StoredSession, /, *, partition: int = 0, keep_null: bool = False) -> bool:
        stored = None if session.aggregate is None and not keep_null else session
        return self._write(session.key, session.window_end_ms, session.window_start_ms, stored, partition)

    def remove(self, key: Any, window_start_ms: int, window_end_ms: int, *, partition: int = 0) -> None:
        """Removes a session; on disk its time is observed, too, but nothing is dropped."""
        state = self._partitions[partition]
        if self._on_disk:
            state.observed_ms = max(state.observed_ms, window_end_ms)
        self._delete(state, key_bytes(key), window_end_ms, window_start_ms)

    def _find(
        self, keys: Keys, earliest_end_ms: Any, latest_start_ms: Any, partition: int, *, backward: bool = False
    ) -> Iterator[StoredSession]:
        """Sessions of a key, or of all keys, which a cache lists for a look from outside."""
        assert not backward, "no run goes backward through sessions"
        if len(keys) > 1:
            sessions = self.all(partition=partition)
            return (s for s in sessions if s.window_end_ms >= earliest_end_ms and s.window_start_ms <= latest_start_ms)
        if self._is_shadowed:
            return iter(())
        state, raw = self._partitions[partition], key_bytes(keys[0])
        rows = state.of_key.get(raw, SortedDict())
        self._is_relevant = self._part_of.matters(partition, raw, latest_start_ms - self._gap_ms)
        found = [
            rows[place].stored
            for place in rows.irange((earliest_end_ms, -1))
            if place[1] <= latest_start_ms and self._is_read(state, rows[place], place[0])
        ]
        self._is_relevant = True
        if not self._on_disk:
            found.sort(key=lambda session: (session.window_end_ms, -session.window_start_ms))
        return iter(found)

    def left_to_looks(self, earliest_end_ms: int, *, partition: int) -> Iterator[StoredSession]:
        """Sessions from this end on that reads do not see any more, but looks for final results do."""
        state = self._partitions[partition]
        hidden_ms = state.observed_ms - self.retention_ms if self._on_disk else -1
        places = state.by_time.irange((earliest_end_ms, -1), (hidden_ms, LAST_MS))
        return (state.by_time[place].stored for place in places if self.segments.is_live(place[0], state.dropped_at_ms))

    def find_sessions_by_end(
        self, earliest_session_end_ms: Any, latest_session_end_ms: Any, *, partition: int = 0
    ) -> Iterator[StoredSession]:
        """Sessions of all keys that end between the two times; on disk all that live segments hold."""
        state = self._partitions[partition]
        places = state.by_time.irange((earliest_session_end_ms, -1), (latest_session_end_ms, LAST_MS))
        rows = [(place, state.by_time[place]) for place in places]
        if self._on_disk:
            return iter([row.stored for place, row in rows if self._is_kept(row.part, place[0], state.dropped_at_ms)])
        found = [(place, row.stored) for place, row in rows if self._is_read(state, row, place[0])]
        found.sort(key=lambda each: self._order(*each[0]))
        return iter([stored for _, stored in found])

    def fetch_session(
        self, key: Any, earliest_session_end_ms: Any, latest_session_start_ms: Any, *, partition: int = 0
    ) -> Any:
        found = self._one(key, latest_session_start_ms, earliest_session_end_ms, partition)
        return None if found is None else found.aggregate

    def _order(self, time_ms: int, start_ms: int, raw: bytes) -> Any:
        return (self.segments.id_of(time_ms), raw, time_ms, start_ms) if self._on_disk else (time_ms, raw, -start_ms)


class ForgettingWindows(ForgettingStore, WindowCalls):
    """Time and sliding windows, kept by their starts."""

    shows_boundary = True

    def write(self, window: StoredWindow, /, *, partition: int = 0, keep_null: bool = False) -> bool:
        stored = None if window.aggregate is None and not keep_null else window
        return self._write(window.key, window.window_start_ms, window.window_start_ms, stored, partition)

    def fetch_window(self, key: Any, window_start_ms: Any, *, partition: int = 0) -> StoredWindow | None:
        return self._one(key, window_start_ms, window_start_ms, partition)

    def _find(
        self, keys: Keys, time_from_ms: Any, time_to_ms: Any, partition: int, *, backward: bool = False
    ) -> Iterator[StoredWindow]:
        found = list(self._of_key(keys[0], time_from_ms, time_to_ms, partition))
        return reversed(found) if backward else iter(found)

    def _find_all(
        self, time_from_ms: Any, time_to_ms: Any, partition: int, *, backward: bool = False
    ) -> Iterator[StoredWindow]:
        """Windows of all keys that start between the two times, both included, in the order of Kafka's store."""
        assert not backward, "no run goes backward through all windows"
        if self._is_shadowed:
            return iter(())
        state = self._partitions[partition]
        first, last = (time_from_ms, -1), (time_to_ms, LAST_MS)
        rows = ((place, state.by_time[place]) for place in state.by_time.irange(first, last))
        found = [(place, row.stored) for place, row in rows if self._is_read(state, row, place[0])]
        return iter([stored for _, stored in sorted(found, key=lambda each: self._order(*each[0]))])

    def fetch_step_by_step(
        self, key: Any, _key: Any, time_from_ms: int, time_to_ms: int, *, partition: int = 0, backward: bool
    ) -> Iterator[StoredWindow]:
        """Windows of `key` for a limited cache, which evicts into the store between the steps.

        In memory nothing expires from the time on at which the read stands, one step ahead; on disk it sees each
        segment as it is when it comes to it.
        """
        state, step = self._partitions[partition], -1 if backward else 1
        rows, begun_ms = state.of_key[key_bytes(key)], state.observed_ms - self._boundary_ms

        def visible(first_ms: int, last_ms: int) -> Iterator[Any]:
            for place in list(rows.irange((first_ms, -1), (last_ms, LAST_MS)))[::step]:
                if place in rows and self._is_within(rows[place].part, begun_ms - place[0]):
                    yield rows[place]

        if self._on_disk:
            places = rows.irange((time_from_ms, -1), (time_to_ms, LAST_MS))
            for segment in sorted({self.segments.id_of(place[0]) for place in places})[::step]:
                first_ms, last_ms = self.segments.span_ms(segment)
                for row in list(visible(max(first_ms, time_from_ms), min(last_ms, time_to_ms))):
                    if not self._is_kept(row.part, row.stored.window_start_ms, state.dropped_at_ms):
                        break
                    yield row.stored
            return
        ahead = next(visible(time_from_ms, time_to_ms), None)
        while ahead is not None:
            row, at_ms = ahead, ahead.stored.window_start_ms
            bounds = (time_from_ms, at_ms - 1) if backward else (at_ms + 1, time_to_ms)
            behind_ms, found = state.observed_ms, visible(*bounds)
            if backward:
                found = (r for r in found if self._is_within(r.part, behind_ms - r.stored.window_start_ms))
            ahead = next(found, None)
            yield row.stored

    def _order(self, time_ms: int, start_ms: int, raw: bytes) -> Any:
        if self._on_disk and not self.time_ordered:
            return self.segments.id_of(time_ms), raw, time_ms
        return time_ms, raw
