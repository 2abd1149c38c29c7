"""Where the rows of a store on disk lie: by partition, then segment, then key or time; and how they are walked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sessionkit.base.arrays import Bytes, Longs
from sessionkit.base.durations import INT64_MAX
from sessionkit.stores.rocksdb.disk.database import Cursor, Database
from sessionkit.stores.segments import Segments
from sessionkit.stores.typed_bytes import BY_KEY, BY_TIME, Layout, Place, PlaceColumns, key_bounds, time_bounds

# The first byte of every row in the database; those behind are `database`'s own.
HEADER, STATE, ROWS = b"\x00", b"\x01", b"\x02"
_PREFIX = 1 + 4 + 8  # kind, partition, segment


class Question(NamedTuple):
    """Rows of one partition whose time and key lie between bounds (both included; a key of None is open)."""

    partition: int
    from_ms: int
    to_ms: int
    low: bytes | None = None
    high: bytes | None = None
    latest_start_ms: int = INT64_MAX
    backward: bool = False
    by_time: bool = False  # in order of time, where the store can

    def holds(self, place: Place) -> bool:
        """True if the question asks for the row at this place."""
        return (
            self.from_ms <= place.time_ms <= self.to_ms
            and place.start_ms <= self.latest_start_ms
            and (self.low is None or self.low <= place.key)
            and (self.high is None or place.key <= self.high)
        )


class Row(NamedTuple):
    """A row as it was found; `raw` is its value, which was written for the database key `at`."""

    place: Place
    at: bytes
    raw: bytes


@dataclass(frozen=True)
class RowSpace:
    """The rows of one store.

    The ordinary form has one row a window, key first. The time-ordered form has one with the time first and, if it
    keeps an index, an empty one with the key first beside it.
    """

    layout: Layout
    segments: Segments
    time_ordered: bool
    index: bool

    def partition(self, partition: int) -> bytes:
        """The beginning of every row of a partition."""
        return ROWS + partition.to_bytes(4)

    def behind(self, partition: int) -> bytes:
        """A bound behind every row of a partition."""
        return ROWS + (partition + 1).to_bytes(4) if partition + 1 < 2**32 else b"\x03"

    def segment(self, partition: int, segment: int) -> bytes:
        """The beginning of every row of a segment."""
        return self.partition(partition) + segment.to_bytes(8)

    def row(self, partition: int, place: Place) -> bytes:
        """The database key of the row that holds the value."""
        start = self.segment(partition, self.segments.id_of(place.time_ms))
        return start + (BY_TIME + self.layout.by_time(place) if self.time_ordered else self.layout.by_key(place))

    def index_row(self, partition: int, place: Place) -> bytes | None:
        """The database key of its row in the index, if there is one."""
        if not self.index:
            return None
        return self.segment(partition, self.segments.id_of(place.time_ms)) + BY_KEY + self.layout.by_key(place)

    def around_key(self, partition: Longs, places: PlaceColumns, *, index: bool = False) -> tuple[Bytes, Bytes]:
        """The bytes before and behind the key in `row`, or in `index_row`, for many places: a line for each."""
        by_time = self.time_ordered and not index
        before, behind = self.layout.around_key(places, by_time)
        start = np.empty((len(partition), _PREFIX + self.time_ordered), np.uint8)
        start[:, 0] = ROWS[0]
        start[:, 1:5] = partition.astype(">u4").view(np.uint8).reshape(-1, 4)
        start[:, 5:_PREFIX] = (places.time_ms // self.segments.interval_ms).astype(">i8").view(np.uint8).reshape(-1, 8)
        start[:, _PREFIX:] = (BY_TIME if by_time else BY_KEY)[0]
        return np.hstack([start, before]), behind

    def widths(self) -> tuple[int, int]:
        """How many bytes stand before and behind the key in a row that holds a value."""
        before, behind = self.layout.widths(self.time_ordered)
        return _PREFIX + self.time_ordered + before, behind

    def from_around_key(self, before: Bytes, behind: Bytes) -> tuple[Longs, PlaceColumns]:
        """(partitions, places) of rows that hold values."""
        partition = np.ascontiguousarray(before[:, 1:5]).view(">u4").reshape(-1).astype(np.int64)
        times = self.layout.from_around_key(before[:, _PREFIX + self.time_ordered :], behind, self.time_ordered)
        return partition, PlaceColumns(*times)

    def value_rows(self, database: Database, partition: int, from_ms: int) -> tuple[list[bytes], list[bytes]]:
        """(keys, values) of the rows that hold values, in segments from that of `from_ms` on."""
        low = self.segment(partition, self.segments.id_of(from_ms))
        keys, values = database.rows(low, self.behind(partition))
        if self.index:
            chosen = [i for i, key in enumerate(keys) if key[_PREFIX : _PREFIX + 1] == BY_TIME]
            if 2 * len(chosen) != len(keys):
                raise database.folder.corrupted("index and rows differ")
            keys, values = [keys[i] for i in chosen], [values[i] for i in chosen]
        return keys, values

    def partitions(self, database: Database) -> list[int]:
        found: list[int] = []
        cursor, bound = database.cursor(), ROWS
        while True:
            cursor.seek(bound)
            if cursor.key is None or not cursor.key.startswith(ROWS):
                return found
            found.append(int.from_bytes(cursor.key[1:5]))
            bound = self.behind(found[-1])

    def segments_with_rows(self, database: Database, question: Question) -> list[int]:
        """The segments between the question's times that have rows, in its direction."""
        found, last, cursor = [], self.segments.id_of(question.to_ms), database.cursor()
        segment = self.segments.id_of(question.from_ms)
        while segment <= last:
            cursor.seek(self.segment(question.partition, segment))
            if cursor.key is None or not cursor.key.startswith(self.partition(question.partition)):
                break
            segment = int.from_bytes(cursor.key[5:_PREFIX])
            if segment <= last:
                found.append(segment)
            segment += 1
        return found[::-1] if question.backward else found

    def walk(self, database: Database, question: Question, *, values: bool = True) -> Iterator[Row]:
        """The rows asked for: segment by segment, and in order of key or time in each.

        What is there is decided when the call is made. Without `values` the rows come with empty ones.
        """
        if question.from_ms > question.to_ms:
            return iter(())
        by_key = not self.time_ordered or (self.index and not question.by_time)
        cursor = database.cursor(backward=question.backward)
        places = self._walk(cursor, question, by_key)
        found: Iterator[Row]
        if not values:
            found = (Row(place, at, b"") for place, at in places)
        elif self.time_ordered and by_key:
            found = self._looked_up(database.cursor(), question.partition, places)
        else:
            found = (Row(place, at, cursor.value()) for place, at in places)
        return iter(list(found)) if database.pending else found

    def _looked_up(self, rows: Cursor, partition: int, places: Iterator[tuple[Place, bytes]]) -> Iterator[Row]:
        """The rows that the index names."""
        for place, _ in places:
            at = self.row(partition, place)
            rows.seek(at)
            if rows.key != at:
                raise rows.corrupted("a row is in the index only")
            yield Row(place, at, rows.value())

    def _walk(self, cursor: Cursor, question: Question, by_key: bool) -> Iterator[tuple[Place, bytes]]:
        first, last = self.segments.id_of(question.from_ms), self.segments.id_of(question.to_ms)
        segment = last if question.backward else first
        while first <= segment <= last:
            low, high = self._bounds(question, segment, by_key)
            cursor.seek(high if question.backward else low)
            while cursor.key is not None and low <= cursor.key < high:
                place = self._place(cursor, by_key)
                if question.holds(place):
                    yield place, cursor.key
                cursor.step()
            # The cursor stands where the next segment with rows begins: empty ones cost nothing.
            if cursor.key is None or not cursor.key.startswith(self.partition(question.partition)):
                return
            there = int.from_bytes(cursor.key[5:_PREFIX])
            segment = min(segment - 1, there) if question.backward else max(segment + 1, there)

    def _bounds(self, question: Question, segment: int, by_key: bool) -> tuple[bytes, bytes]:
        """The database keys of a segment between which the rows asked for lie."""
        first_ms, last_ms = self.segments.span_ms(segment)
        from_ms, to_ms = max(question.from_ms, first_ms), min(question.to_ms, last_ms)
        start = self.segment(question.partition, segment)
        if not by_key:
            low, high = time_bounds(from_ms, to_ms)
            return start + BY_TIME + low, start + BY_TIME + high
        behind = self.segment(question.partition, segment + 1)
        if self.time_ordered:
            start += BY_KEY  # the last of the two kinds, so the next segment is behind it
        first, last = key_bounds(question.low, question.high, from_ms, to_ms)
        return start + first, behind if last is None else start + last

    def _place(self, cursor: Cursor, by_key: bool) -> Place:
        assert cursor.key is not None
        raw = cursor.key[_PREFIX + self.time_ordered :]
        if not self.layout.is_long_enough(raw):
            raise cursor.corrupted("a row's key is too short")
        return self.layout.from_by_key(raw) if by_key else self.layout.from_by_time(raw)
