"""Looks through RocksDB's logs for the damage at which it stops reading without a word."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

BLOCK_BYTES = 32 * 1024  # log_format.h: no record crosses the end of a block
HEADER_BYTES = 7  # checksum 4, length 2, type 1
_WHOLE_OR_PART = range(1, 5)  # full, first, middle, last
_OF_RECYCLED_LOGS = range(5, 9)  # the store never asks for them; a number that does not fit ends the log


def damage_in_logs(rows: Path) -> str:
    """What is wrong with the write-ahead logs and the manifest in this folder; "" if nothing that can be told here.

    RocksDB checks each record that it reads. But a record that says it is longer than its file counts as cut off by a
    crash, and one of a recycled log as the end of this one: one flipped bit, and what was committed later is missing,
    in the middle of a store if there is a newer log. A record that was cut off by a crash has no right checksum at any
    length; one with a damaged length has, at the length it was written with.
    """
    for file in sorted(rows.iterdir()):
        if file.suffix == ".log" or file.name.startswith("MANIFEST-"):
            at = _damaged_at(file.read_bytes())
            if at is not None:
                return f"{file.name} is damaged at byte {at:,}"
    return ""


def _damaged_at(log: bytes) -> int | None:
    at = 0
    while at + HEADER_BYTES <= len(log):
        room = BLOCK_BYTES - at % BLOCK_BYTES
        if room < HEADER_BYTES:  # the end of a block is filled up with zeros
            at += room
            continue
        length, kind = int.from_bytes(log[at + 4 : at + 6], "little"), log[at + 6]
        if kind in _OF_RECYCLED_LOGS:
            return at
        if kind not in _WHOLE_OR_PART:
            return None  # RocksDB says so itself, or it is the zeros of a file that was made larger
        behind = at + HEADER_BYTES + length
        if behind > min(at + room, len(log)):
            return at if _is_whole(log[: at + room], at) else None
        at = behind
    return None


def _is_whole(log: bytes, at: int) -> bool:
    """True if the record at `at`, which seems to be cut off, is there with another length than it says."""
    wanted = int.from_bytes(log[at : at + 4], "little")
    for end, checksum in _checksums(log, at + HEADER_BYTES - 1):
        if checksum == wanted and _starts_records(log, end):
            return True
    return False


def _starts_records(log: bytes, at: int) -> bool:
    """True where a log may end or another record may start."""
    return at == len(log) or len(log) - at < HEADER_BYTES or log[at + HEADER_BYTES - 1] in _WHOLE_OR_PART


def _checksums(log: bytes, start: int) -> Iterator[tuple[int, int]]:
    """(end, masked CRC32C of the bytes from `start` to there) of every end behind the byte at `start`."""
    crc = 0xFFFFFFFF
    for end in range(start + 1, len(log) + 1):
        crc = _TABLE[(crc ^ log[end - 1]) & 0xFF] ^ (crc >> 8)
        plain = crc ^ 0xFFFFFFFF
        yield end, (((plain >> 15) | (plain << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _table()  # of CRC32C, which Python does not bring along
