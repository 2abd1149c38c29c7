"""Looks through RocksDB's logs for the damage at which it stops reading without a word."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

BLOCK_BYTES = 32 * 1024  # log_format.h: no record crosses the end of a block
HEADER_BYTES = 7  # checksum 4, length 2, type 1
_FULL, _FIRST, _MIDDLE, _LAST = range(1, 5)
_OF_RECYCLED_LOGS = range(5, 9)  # the store never asks for them; a number that does not fit ends the log
_HEAD_BYTES = 128  # of each record: what is looked at stands in front

# version_edit.h: the numbers of an edit stand before the files that it adds and deletes
_LOG_NUMBER, _NEXT_FILE, _LAST_SEQUENCE = 2, 3, 4
_OTHER_NUMBERS = (9, 10, 203)  # of the log before, of the first log to keep, of the last column family
_COMPARATOR, _MAY_BE_SKIPPED = 1, 1 << 13  # text with its length before it
_NEW_FILE = 103


class _Log(NamedTuple):
    """A log or manifest, as far as it can be read."""

    heads: list[tuple[int, bytes]]  # of each whole record: where it begins, and its first bytes
    is_whole: bool  # False: behind the last record is something else
    damaged_at: int | None  # where RocksDB would stop without a word


class _Manifest(NamedTuple):
    """The positions that the manifest names."""

    number: int
    log_number: int  # of the first log whose changes are in no table yet
    last_sequence: int  # of the changes that had been written when it was
    in_tables: int  # the last change that is in a table, as far as the manifest tells


def damage_in_logs(rows: Path, first_row: bytes = b"") -> str:
    """What is wrong with the write-ahead logs and the manifest in this folder; "" if nothing that can be told here.

    RocksDB checks each record that it reads. But a record that says it is longer than its file counts as cut off by a
    crash, and one of a recycled log as the end of this one: one flipped bit, and what was committed later is missing,
    in the middle of a store if there is a newer log. A record that was cut off by a crash has no right checksum at any
    length; one with a damaged length has, at the length it was written with.

    Nor does it ask where a log ends: after one that lost its end it goes on with the next. While a table is made of
    the changes of one log, those that come in go to another, so a crash can leave two.

    Args:
        first_row: what the store writes in front of the changes of each record, as RocksDB has it there.
    """
    logs: dict[int, _Log] = {}
    for file in sorted(rows.iterdir()):
        if file.suffix == ".log" or file.name.startswith("MANIFEST-"):
            log = _read(file.read_bytes())
            if log.damaged_at is not None:
                return f"{file.name} is damaged at byte {log.damaged_at:,}"
            if file.suffix == ".log" and file.stem.isdecimal():
                logs[int(file.stem)] = log
    return _gap_in(rows, logs, first_row)


def _gap_in(rows: Path, logs: dict[int, _Log], first_row: bytes) -> str:
    """The first gap in the logs that RocksDB would read, in words; "" if there is none that it would not see."""
    current = (rows / "CURRENT").read_bytes() if (rows / "CURRENT").is_file() else b""
    name = current.decode("ascii", errors="replace").strip()
    if not (name.startswith("MANIFEST-") and name[9:].isdecimal() and (rows / name).is_file()):
        return ""  # RocksDB says so itself
    manifest = _manifest(int(name[9:]), _read((rows / name).read_bytes(), None))
    if manifest is None:
        return f"{name} lacks its beginning"
    # Whoever opens the store makes a log, and then the manifest: until a table is made, that log is the first one.
    first = manifest.log_number
    if first not in logs:
        first = max(first, manifest.number - 1)
    live = sorted(number for number in logs if number >= manifest.log_number)
    if first not in logs:
        return f"{_name(first)} is missing"
    if live[0] != first:
        return f"{_name(live[0])} is not one of its logs"
    return _gap_between([(_name(number), logs[number]) for number in live], manifest, first_row)


def _gap_between(logs: list[tuple[str, _Log]], manifest: _Manifest, first_row: bytes) -> str:
    """The first gap between the changes in these logs, or between them and the tables, in words; "" if there is none.

    Only the last one may end anywhere. Behind it may be empty ones, of openings that a crash ended. A log of an older
    time would hide what is in tables, as RocksDB looks there last.
    """
    expected, ended, latest_start = 0, "", manifest.last_sequence + 1
    for name, log in logs:
        if ended and log.heads:
            return f"{ended} lacks its end, as {name} continues after it"
        for at, head in log.heads:
            if len(head) < 12:
                continue  # RocksDB says so itself
            sequence, count = int.from_bytes(head[:8], "little"), int.from_bytes(head[8:12], "little")
            if not expected and sequence <= manifest.in_tables:
                return f"{name} begins with change {sequence:,}, which is in a table already"
            if sequence != expected and (expected or sequence > latest_start):
                return f"{name} continues with change {sequence:,} at byte {at:,}, not {expected or latest_start:,}"
            if count and not head[12:].startswith(first_row):
                return f"{name} has changes of another store at byte {at:,}"
            expected = sequence + count
        if not (log.heads and log.is_whole):
            ended = name
    return ""


def _manifest(number: int, log: _Log) -> _Manifest | None:
    """The positions that the manifest names; None if its first edits, which are written together, are not all there."""
    numbers = {_LOG_NUMBER: 0, _LAST_SEQUENCE: 0, _NEXT_FILE: 0}
    in_tables: list[int] = []
    for _, edit in log.heads:
        for tag, found in _numbers_of(edit):
            # Whoever opens the store puts all that came before into tables, and begins a manifest.
            if tag == _NEW_FILE or (tag == _LAST_SEQUENCE and not numbers[_LAST_SEQUENCE]):
                in_tables.append(found)
            numbers[tag] = found
    if numbers[_NEXT_FILE] <= number:
        return None
    return _Manifest(number, numbers[_LOG_NUMBER], numbers[_LAST_SEQUENCE], max(in_tables, default=0))


def _numbers_of(edit: bytes) -> Iterator[tuple[int, int]]:
    """(tag, number) of the numbers in front of an edit, and of the last change in the first table that it adds."""
    at = 0
    while at < len(edit):
        tag, at = _number_at(edit, at)
        number, at = _number_at(edit, at)
        if tag == _COMPARATOR or tag & _MAY_BE_SKIPPED:
            at += number
        elif tag in (_LOG_NUMBER, _NEXT_FILE, _LAST_SEQUENCE):
            yield tag, number
        elif tag == _NEW_FILE:  # its level, number, size, smallest and largest key, first and last change, and more
            at = _number_at(edit, _number_at(edit, at)[1])[1]
            for _ in range(2):
                length, at = _number_at(edit, at)
                at += length
            yield tag, _number_at(edit, _number_at(edit, at)[1])[0]
            return
        elif tag not in _OTHER_NUMBERS:
            return


def _number_at(raw: bytes, at: int) -> tuple[int, int]:
    """(the number that begins there, where it ends): seven bits a byte, the lowest first."""
    number = shift = 0
    while at < len(raw):
        number |= (raw[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if raw[at - 1] < 128:
            break
    return number, at


def _name(number: int) -> str:
    return f"{number:06}.log"


def _read(log: bytes, most: int | None = _HEAD_BYTES) -> _Log:
    heads: list[tuple[int, bytes]] = []
    begun: tuple[int, bytes] | None = None  # a record of several parts, until its last one
    at = 0
    while at + HEADER_BYTES <= len(log):
        room = BLOCK_BYTES - at % BLOCK_BYTES
        if room < HEADER_BYTES:  # the end of a block is filled up with zeros
            at += room
            continue
        length, kind = int.from_bytes(log[at + 4 : at + 6], "little"), log[at + 6]
        if kind in _OF_RECYCLED_LOGS:
            return _Log(heads, False, at)
        if not _FULL <= kind <= _LAST:
            return _Log(heads, False, None)  # RocksDB says so itself, or it is the zeros of a file that was made larger
        behind = at + HEADER_BYTES + length
        if behind > min(at + room, len(log)):
            return _Log(heads, False, at if _is_whole(log[: at + room], at) else None)
        body = log[at + HEADER_BYTES : behind][:most]
        if kind in (_FULL, _FIRST):
            begun = (at, body)
        elif begun is not None:
            begun = (begun[0], (begun[1] + body)[:most])
        if kind in (_FULL, _LAST) and begun is not None:
            heads.append(begun)
            begun = None
        at = behind
    return _Log(heads, begun is None and at >= len(log), None)


def _is_whole(log: bytes, at: int) -> bool:
    """True if the record at `at`, which seems to be cut off, is there with another length than it says."""
    wanted, crc = int.from_bytes(log[at : at + 4], "little"), 0xFFFFFFFF
    for end in range(at + HEADER_BYTES, len(log) + 1):  # masked CRC32C of its type and what follows
        crc = _TABLE[(crc ^ log[end - 1]) & 0xFF] ^ (crc >> 8)
        plain = crc ^ 0xFFFFFFFF
        is_right = (((plain >> 15) | (plain << 17)) + 0xA282EAD8) & 0xFFFFFFFF == wanted
        if is_right and (len(log) - end < HEADER_BYTES or _FULL <= log[end + HEADER_BYTES - 1] <= _LAST):
            return True  # behind it the log ends or another record starts
    return False


def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _table()  # of CRC32C, which Python does not bring along
