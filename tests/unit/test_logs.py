"""RocksDB's logs: what a crash leaves is let through, what RocksDB would not notice is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sessionkit.stores.logs import BLOCK_BYTES, damage_in_logs
from sessionkit.stores.rocksdb import RocksDBSessionStore


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A log with small records, and with ones that go over the end of a block."""
    directory = tmp_path_factory.mktemp("state")
    with RocksDBSessionStore(name="clicks", directory=directory) as store:
        for size in (1, 10, 15_000, 20_000, 40_000, 5):
            store.put("ada", 5, 9, "x" * size)
        (file,) = (directory / "clicks" / "rows").glob("*.log")
        raw = file.read_bytes()
    assert len(raw) > 2 * BLOCK_BYTES
    return raw


def damage(tmp_path: Path, raw: bytes, name: str = "000007.log") -> str:
    (tmp_path / name).write_bytes(raw)
    return damage_in_logs(tmp_path)


def headers(log: bytes) -> list[int]:
    found, at = [], 0
    while at + 7 <= len(log):
        if at % BLOCK_BYTES > BLOCK_BYTES - 7:
            at += -at % BLOCK_BYTES
        else:
            found.append(at)
            at += 7 + int.from_bytes(log[at + 4 : at + 6], "little")
    assert at == len(log)
    return found


def test_what_a_crash_leaves_is_no_damage(tmp_path: Path, log: bytes) -> None:
    """A log that ends anywhere, or in zeros."""
    starts = headers(log)
    assert len(starts) > 7
    near = {cut for at in starts for cut in range(at - 3, at + 20)} | {*range(0, len(log), 977), len(log)}
    for cut in near:
        if 0 <= cut <= len(log):
            assert damage(tmp_path, log[:cut]) == "", cut
    for zeros in (1, 7, 100, BLOCK_BYTES):
        assert damage(tmp_path, log + bytes(zeros)) == ""


def test_a_length_beyond_the_end_is_found(tmp_path: Path, log: bytes) -> None:
    """RocksDB would take it for a record that was cut off."""
    last_block = [at for at in headers(log) if at // BLOCK_BYTES == len(log) // BLOCK_BYTES]
    for at in last_block:
        length = int.from_bytes(log[at + 4 : at + 6], "little")
        for bit in range(16):
            other = length ^ 1 << bit
            if at + 7 + other > len(log):
                raw = log[: at + 4] + other.to_bytes(2, "little") + log[at + 6 :]
                assert damage(tmp_path, raw) == f"000007.log is damaged at byte {at:,}"


def test_a_record_of_a_recycled_log_is_found(tmp_path: Path, log: bytes) -> None:
    """RocksDB would take it for the end of this one, or never come back."""
    for at in headers(log):
        raw = log[: at + 6] + bytes([log[at + 6] + 4]) + log[at + 7 :]
        for name in ("000007.log", "MANIFEST-000003"):
            assert damage(tmp_path, raw, name).endswith(f" is damaged at byte {at:,}")
            (tmp_path / name).unlink()


def test_the_end_of_a_block_is_filled_up(tmp_path: Path) -> None:
    """No header begins in its last six bytes."""
    length = BLOCK_BYTES - 7 - 3
    block = bytes(4) + length.to_bytes(2, "little") + b"\1" + bytes(length) + bytes(3)
    assert damage(tmp_path, block + bytes(4) + b"\0\0\1") == ""
    assert damage(tmp_path, block + bytes(4) + b"\0\0\5") == f"000007.log is damaged at byte {BLOCK_BYTES:,}"


@pytest.mark.parametrize("kind", [0, 9, 129])
def test_what_rocksdb_says_itself_is_left_to_it(tmp_path: Path, log: bytes, kind: int) -> None:
    assert damage(tmp_path, log[:6] + bytes([kind]) + log[7:]) == ""


def test_other_files_are_not_read(tmp_path: Path) -> None:
    nothing: Any = bytes(6) + b"\5"
    assert damage(tmp_path, nothing, "000007.sst") == ""
    assert damage(tmp_path, nothing, "LOG") == ""
    assert damage(tmp_path, nothing, "MANIFEST-000001") == "MANIFEST-000001 is damaged at byte 0"
