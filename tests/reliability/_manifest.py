"""What RocksDB was doing when it was killed, told from its files."""

from pathlib import Path
from typing import NamedTuple

_NUMBERS = (2, 3, 4, 9, 10, 200, 203)  # version_edit.h: tags with a number
_COMPARATOR, _CURSOR, _DELETED, _ADDED = 1, 5, 6, 103
_LOG_NUMBER = 2
_SKIPPED = 1 << 13


class State(NamedTuple):
    """What was under way."""

    flushing: bool
    compacting: bool
    deleting: bool


def state_of(rows: Path) -> State:
    """While a table is made of a log, two logs have changes that no table holds. While tables are merged, there are
    files that the manifest does not name; one of them is the flush's, if there is one."""
    if not (rows / "CURRENT").exists():
        return State(False, False, False)
    manifest = (rows / (rows / "CURRENT").read_text().strip()).read_bytes()
    live: set[int] = set()
    named: set[int] = set()
    log_number = 0
    for edit in _records(manifest):
        log_number = _take(edit, live, named) or log_number
    there = {int(file.stem) for file in rows.glob("*.sst")}
    logs = [file for file in rows.glob("*.log") if int(file.stem) >= log_number and file.stat().st_size]
    flushing = len(logs) > 1
    making = there - named
    return State(flushing, len(making) > flushing, bool(there & (named - live)))


def _take(edit: bytes, live: set[int], named: set[int]) -> int:
    """Adds and deletes what the edit says; its log number, 0 if it has none."""
    at = log_number = 0
    while at < len(edit):
        tag, at = _number(edit, at)
        if tag in _NUMBERS:
            value, at = _number(edit, at)
            log_number = value if tag == _LOG_NUMBER else log_number
        elif tag == _COMPARATOR or tag & _SKIPPED:
            at = _behind_text(edit, at)
        elif tag == _CURSOR:
            at = _behind_text(edit, _number(edit, at)[1])
        elif tag in (_DELETED, _ADDED):
            number, at = _number(edit, _number(edit, at)[1])  # behind the level
            named.add(number)
            if tag == _DELETED:
                live.discard(number)
            else:
                live.add(number)
                at = _behind_file(edit, at)
        else:
            raise ValueError(f"tag {tag} in a manifest")
    return log_number


def _behind_file(edit: bytes, at: int) -> int:
    at = _number(edit, at)[1]  # size
    at = _behind_text(edit, _behind_text(edit, at))  # smallest and largest key
    at = _number(edit, _number(edit, at)[1])[1]  # their sequence numbers
    while True:
        tag, at = _number(edit, at)
        if tag == 1:
            return at
        at = _behind_text(edit, at)


def _behind_text(raw: bytes, at: int) -> int:
    length, at = _number(raw, at)
    return at + length


def _number(raw: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte, at = raw[at], at + 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return number, at


def _records(log: bytes) -> list[bytes]:
    """The whole records of a manifest."""
    found, begun, at = [], b"", 0
    while at + 7 <= len(log):
        room = 32_768 - at % 32_768
        if room < 7:
            at += room
            continue
        length, kind = int.from_bytes(log[at + 4 : at + 6], "little"), log[at + 6]
        body, at = log[at + 7 : at + 7 + length], at + 7 + length
        if at > len(log) or not 1 <= kind <= 4:
            break
        begun = body if kind in (1, 2) else begun + body
        if kind in (1, 4):
            found.append(begun)
    return found
