"""Accumulators as typed bytes with a checksum, and rows under keys that sort as Kafka's do."""

from __future__ import annotations

import datetime as dt
import struct
import zlib
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

import numpy as np

from sessionkit.base.arrays import Bytes, Longs
from sessionkit.base.text import plural
from sessionkit.errors import StoreCorrupted, UnsupportedData, attempted, problem, shorten
from sessionkit.stores.contract import Stored, StoredSession, StoredWindow

# Of lists in lists: a value nested deeper (or in itself) is refused before Python's stack is full.
OWN_DEPTH = 32
MAX_BYTES = 2**30  # what one window keeps; RocksDB holds a value in memory several times
MAX_DEPTH = OWN_DEPTH + 1  # a row is one tuple around the aggregate
BY_TIME, BY_KEY = b"\x00", b"\x01"  # PrefixedWindowKeySchemas: the first byte of base rows and of index rows

_INT, _FLOAT, _SIZE = struct.Struct(">cq"), struct.Struct(">cd"), struct.Struct(">cI")
_SEQUENCE = bytes(4)  # Kafka numbers duplicates here; an aggregation has none
_LAST = b"\xff" * 9  # behind any start, and behind any sequence number


# ---- values


def pack_value(value: Any, context: bytes = b"") -> bytes:
    """`value` as bytes: a CRC32 over `context` and the rest, then a type byte before each part.

    Numbers of numpy become those of Python.

    Args:
        context: what the value belongs to, its row's key say: read under another, it counts as damaged.
    Raises:
        UnsupportedData: a type that has no bytes, an integer beyond 64 bits, or more than 32 lists in each other.
    Example:
        >>> unpack_value(pack_value({"n": 1, "seen": ["home", None]}))
        {'n': 1, 'seen': ['home', None]}
    """
    out = bytearray()
    _write(out, value, 0)
    return zlib.crc32(out, zlib.crc32(context)).to_bytes(4) + bytes(out)


def unpack_value(raw: bytes, context: bytes = b"") -> Any:
    """The value that `pack_value` made into these bytes; nothing in them is ever run.

    Raises:
        StoreCorrupted: the bytes are not what was written, or were written in another context.
    """
    if len(raw) < 5 or int.from_bytes(raw[:4]) != zlib.crc32(memoryview(raw)[4:], zlib.crc32(context)):
        want = "the bytes as they were written"
        raise StoreCorrupted(problem("a stored value fails its checksum", plural(len(raw), "byte"), want))
    try:
        value, end = _read(raw, 4, 0)
    except (IndexError, ValueError, InvalidOperation, struct.error) as error:  # UnicodeDecodeError is a ValueError
        want = "a value as it was written"
        raise StoreCorrupted(problem("a stored value cannot be read", shorten(error), want)) from error
    if end != len(raw):
        got = f"{len(raw) - end:,}"
        raise StoreCorrupted(problem("a stored value is followed by extra bytes", got, "there must be none"))
    return value


def _write(out: bytearray, value: Any, depth: int) -> None:
    if isinstance(value, np.bool_ | np.integer | np.floating):
        value = value.item()
    kind = type(value)
    if value is None:
        out += b"N"
    elif kind is bool:
        out += b"T" if value else b"F"
    elif kind is int and -(2**63) <= value < 2**63:
        out += _INT.pack(b"i", value)
    elif kind is float:
        out += _FLOAT.pack(b"d", value)
    elif kind is str:
        _write_bytes(out, b"s", _utf8(value))
    elif kind is bytes:
        _write_bytes(out, b"b", value)
    elif kind is Decimal:
        _write_bytes(out, b"n", str(value).encode())
    elif kind in (list, tuple, dict) and depth < MAX_DEPTH:
        _write_parts(out, value, depth)
    else:
        raise _unsupported(value)


def _write_parts(out: bytearray, value: Any, depth: int) -> None:
    kind = b"l" if type(value) is list else b"t" if type(value) is tuple else b"m"
    out += _SIZE.pack(kind, len(value))
    if kind != b"m":
        for part in value:
            _write(out, part, depth + 1)
        return
    for name, part in value.items():
        if type(name) is not str:
            raise _unsupported(value)
        _write(out, name, depth + 1)
        _write(out, part, depth + 1)


def pieces_around_numbers(value: Any) -> list[bytes] | None:
    """Pieces that `pack_value` writes around the numbers of a value; None if it holds anything but numbers.

    Numbers are int, float or None, alone or in tuples and dicts.
    """
    kind = type(value)
    if value is None or kind in (int, float):
        return [b"", b""]
    if kind not in (tuple, dict):
        return None
    pieces = [_SIZE.pack(b"t" if kind is tuple else b"m", len(value))]
    for name, part in value.items() if kind is dict else ((None, part) for part in value):
        inside = pieces_around_numbers(part)
        if inside is None:
            return None
        if name is not None:
            written = bytearray()
            _write(written, name, 0)
            pieces[-1] += written
        pieces[-1] += inside[0]
        pieces += inside[1:]
    return pieces


def _write_bytes(out: bytearray, kind: bytes, raw: bytes) -> None:
    if len(out) + len(raw) > MAX_BYTES:
        raise _unsupported(raw[:100])
    out += _SIZE.pack(kind, len(raw))
    out += raw


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise _unsupported(text) from error


def _unsupported(value: Any) -> UnsupportedData:
    want = (
        "None, bool, int of 64 bits, float, Decimal, str, bytes, or a list, tuple or dict with str keys of these, at "
        f"most {OWN_DEPTH} in each other and 1 GiB; this aggregation has no encode= and decode= for other types"
    )
    if isinstance(value, dt.date | dt.timedelta):
        want = (
            'times as integers: a column made by df["at"].astype("int64"), or an aggregation with encode= and decode='
        )
    shown = attempted(repr, value, but=Exception) or "…"  # of a class of its own, or nested deep
    got = "an integer beyond 64 bits" if type(value) is int else shorten(f"{type(value).__name__}: {shown}")
    return UnsupportedData(problem("an aggregate cannot be written to a store on disk", got, want))


def _read(raw: bytes, at: int, depth: int) -> tuple[Any, int]:
    """(the value that starts at `at`, where it ends). Raises IndexError, ValueError or struct.error."""
    kind = raw[at : at + 1]
    if kind == b"i":
        return _INT.unpack_from(raw, at)[1], at + 9
    if kind == b"d":
        return _FLOAT.unpack_from(raw, at)[1], at + 9
    if kind in (b"N", b"T", b"F"):
        return {b"N": None, b"T": True, b"F": False}[kind], at + 1
    if kind not in (b"s", b"b", b"n", b"l", b"t", b"m"):
        raise ValueError(f"type byte {kind!r}")
    size, at = _SIZE.unpack_from(raw, at)[1], at + 5
    if size > len(raw) - at:  # each part takes a byte at least: nothing is allocated for a size that was made up
        raise ValueError(f"{plural(size, 'part')} in {plural(len(raw) - at, 'byte')}")
    if kind == b"s":
        return raw[at : at + size].decode(), at + size
    if kind == b"b":
        return raw[at : at + size], at + size
    if kind == b"n":
        return Decimal(raw[at : at + size].decode()), at + size
    if depth >= MAX_DEPTH:
        raise ValueError("too many lists in each other")
    parts = []
    for _ in range(2 * size if kind == b"m" else size):
        part, at = _read(raw, at, depth + 1)
        parts.append(part)
    if kind == b"m":
        if not all(isinstance(name, str) for name in parts[::2]):
            raise ValueError("a name that is not text")
        return dict(zip(parts[::2], parts[1::2], strict=True)), at
    return (parts if kind == b"l" else tuple(parts)), at


# ---- keys


def kind_of_key(key: Any) -> str:
    """The name of the key's type: "str", "bytes" or "int"."""
    return "str" if isinstance(key, str) else "bytes" if isinstance(key, bytes) else "int"


def unpack_key(raw: bytes, kind: str) -> Any:
    """The key that `key_bytes` made into these bytes; StoreCorrupted if they are no key of this kind."""
    if kind == "bytes":
        return raw
    try:
        if kind == "str":
            return raw.decode()
        if kind == "int" and len(raw) == 8:
            return int.from_bytes(raw, signed=True)
    except UnicodeDecodeError:
        pass
    raise StoreCorrupted(problem("a stored key cannot be read", shorten(raw), f"a key of type {kind}"))


class Place(NamedTuple):
    """Where a row belongs. `time_ms` chooses its segment: a session's end; a window's start, which is both then."""

    key: bytes
    start_ms: int
    time_ms: int


class PlaceColumns(NamedTuple):
    """The times of many places."""

    start_ms: Longs
    time_ms: Longs


NO_PLACES = PlaceColumns(np.empty(0, np.int64), np.empty(0, np.int64))


@dataclass(frozen=True)
class Layout:
    """How a place becomes bytes whose order is the store's: key first, or time first.

    Sessions: key | end | start, and end | start | key. Windows: key | start | sequence, and start | key | sequence.

    Source:
        SessionKeySchema, WindowKeySchema, PrefixedSessionKeySchemas, PrefixedWindowKeySchemas.
    Example:
        >>> SESSIONS.by_key(Place(b"ada", 5, 9)).hex(" ", 8)
        '616461 0000000000000009 0000000000000005'
    """

    has_end: bool

    def by_key(self, place: Place) -> bytes:
        """Key first: the ordinary form, and the index of the time-ordered one."""
        return place.key + _time(place.time_ms) + (_time(place.start_ms) if self.has_end else _SEQUENCE)

    def by_time(self, place: Place) -> bytes:
        """Time first."""
        if self.has_end:
            return _time(place.time_ms) + _time(place.start_ms) + place.key
        return _time(place.time_ms) + place.key + _SEQUENCE

    def from_by_key(self, raw: bytes) -> Place:
        """The place behind `by_key`."""
        tail = 16 if self.has_end else 12
        time_ms = int.from_bytes(raw[-tail : 8 - tail])
        return Place(raw[:-tail], int.from_bytes(raw[-8:]) if self.has_end else time_ms, time_ms)

    def from_by_time(self, raw: bytes) -> Place:
        """The place behind `by_time`."""
        time_ms = int.from_bytes(raw[:8])
        return (
            Place(raw[16:], int.from_bytes(raw[8:16]), time_ms) if self.has_end else Place(raw[8:-4], time_ms, time_ms)
        )

    def around_key(self, places: PlaceColumns, by_time: bool) -> tuple[Bytes, Bytes]:
        """The bytes before and behind the key in each place's bytes, as matrices with a row for each place."""
        times, none = _times(places.time_ms), np.empty((len(places.time_ms), 0), np.uint8)
        if not self.has_end:
            sequence = np.zeros((len(times), len(_SEQUENCE)), np.uint8)
            return (times, sequence) if by_time else (none, np.hstack([times, sequence]))
        both = np.hstack([times, _times(places.start_ms)])
        return (both, none) if by_time else (none, both)

    def widths(self, by_time: bool) -> tuple[int, int]:
        """How many bytes stand before and behind the key."""
        before, behind = self.around_key(NO_PLACES, by_time)
        return before.shape[1], behind.shape[1]

    def from_around_key(self, before: Bytes, behind: Bytes, by_time: bool) -> tuple[Longs, Longs]:
        """(start, time) of each place, from what `around_key` gave."""
        times = before if by_time else behind
        time_ms = _from_times(times[:, :8])
        return (_from_times(times[:, 8:]) if self.has_end else time_ms), time_ms

    def fields_of(self, stored: Any) -> tuple[Any, ...]:
        """The fields of a stored window that are written beside its place."""
        times = () if self.has_end else (int(stored.timestamp_ms),)
        return (*times, int(stored.opened_by), int(stored.closed_by), int(stored.rows), stored.aggregate)

    def stored(self, place: Place, key: Any, fields: tuple[Any, ...]) -> Stored:
        """The session or window with this place and these fields; an older one lacks the number of its rows."""
        *numbers, aggregate = fields
        if self.has_end:
            return StoredSession(place.start_ms, place.time_ms, aggregate, key, *numbers)
        return StoredWindow(place.start_ms, aggregate, numbers[0], key, *numbers[1:])

    def is_long_enough(self, raw: bytes) -> bool:
        """False for bytes that are no row of this kind."""
        return len(raw) >= (16 if self.has_end else 12)


SESSIONS, WINDOWS = Layout(has_end=True), Layout(has_end=False)


def key_bounds(low: bytes | None, high: bytes | None, from_ms: int, to_ms: int) -> tuple[bytes, bytes | None]:
    """(first, behind the last) of the `by_key` bytes of these keys and times; None: no bound.

    Times lie between keys in the bytes, so that a range of keys may hold rows that do not belong to it.
    """
    if low is not None and low == high:
        return low + _time(from_ms), low + _time(to_ms) + _LAST
    return low or b"", None if high is None else _behind(high, _time(to_ms) + _LAST)


def time_bounds(from_ms: int, to_ms: int) -> tuple[bytes, bytes]:
    """(first, behind the last) of the `by_time` bytes of these times."""
    return _time(from_ms), (to_ms + 1).to_bytes(8)


def _behind(high: bytes, tail: bytes) -> bytes:
    """A bound behind every key up to `high` with a tail up to `tail`.

    A key that `high` starts with sorts before it, but its tail may be larger than what follows in `high`.
    Source:
        OrderedBytes.upperRange.
    """
    best, length = len(high), len(tail)
    for at in range(len(high) - 1, -1, -1):
        if tail > (high[at : min(best, at + length)] + tail)[:length]:
            best = at
    return high[:best] + tail


def _time(time_ms: int) -> bytes:
    return time_ms.to_bytes(8)


def _times(times_ms: Longs) -> Bytes:
    return times_ms.astype(">i8").view(np.uint8).reshape(-1, 8)


def _from_times(raw: Bytes) -> Longs:
    return np.ascontiguousarray(raw).view(">i8").reshape(-1).astype(np.int64)
