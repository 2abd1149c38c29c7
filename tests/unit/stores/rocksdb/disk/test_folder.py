"""The folder of a store on disk: what is written in it, what its seal says, and what in it is not followed."""

import json
import os
import shutil
import stat
import zlib
from pathlib import Path

import pytest

from sessionkit.errors import StoreCorrupted, StoreFailed
from sessionkit.stores.rocksdb.disk.folder import StoreFolder
from sessionkit.stores.rocksdb.sessions import RocksDBSessionStore


def test_a_seal_has_size_and_checksum_of_each_file_that_rocksdb_opens(tmp_path: Path) -> None:
    """Another version holds the files against it. Tables check themselves; locks and RocksDB's words are left out."""
    for start in (5, 15):  # the second opening makes a table of the first log
        with RocksDBSessionStore(name="clicks", directory=tmp_path) as store:
            store.put("ada", start, start, 1)
    raw, rows = (tmp_path / "clicks" / "CLOSED").read_bytes(), tmp_path / "clicks" / "rows"
    assert raw[:9] == b"%08x " % zlib.crc32(raw[9:])
    sealed = json.loads(raw[9:])
    assert list(sealed) == sorted(
        file.name for file in rows.iterdir() if file.name[:3] != "LOG" and file.name != "LOCK"
    )
    tables = {name for name in sealed if name.endswith(".sst")}
    assert tables
    for name, (size, checksum) in sealed.items():
        content = (rows / name).read_bytes()
        assert (size, checksum) == (len(content), 0 if name in tables else zlib.crc32(content))


@pytest.fixture
def made(tmp_path: Path) -> StoreFolder:
    """A folder with nothing of RocksDB's in it."""
    folder = StoreFolder("clicks", tmp_path)
    folder.create(Path.mkdir)
    return folder


def test_a_folder_says_what_it_is_and_which_one(made: StoreFolder) -> None:
    """A store of today is opened by a later version: this is the format."""
    assert sorted(os.listdir(made.path)) == ["CLOSED", "LOCK", "STORE", "rows"]
    assert (made.path / "STORE").read_bytes() == b"sessionkit store, format 2, %s\n" % made.id.hex().encode()
    assert (made.path / "CLOSED").read_bytes() == b"%08x {}" % zlib.crc32(b"{}")
    assert len(made.id) == 16
    again = StoreFolder("clicks", made.path.parent)
    again.hold()
    again.release()
    assert again.id == made.id


def test_what_is_written_is_made_sure_of_before_it_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file with its content, then the folder that it is in, and at last the one above."""
    fsync, sure = os.fsync, list[tuple[int, int]]()

    def noted(handle: int) -> None:
        there = os.fstat(handle)
        sure.append((there.st_ino, 0 if stat.S_ISDIR(there.st_mode) else there.st_size))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    handles = len(os.listdir("/proc/self/fd"))
    folder = StoreFolder("clicks", tmp_path)
    folder.create(Path.mkdir)
    inside, above = ((path.stat().st_ino, 0) for path in (folder.path, tmp_path))
    sizes = {name: (folder.path / name).stat() for name in ("STORE", "LOCK", "CLOSED")}
    files = {name: (found.st_ino, found.st_size) for name, found in sizes.items()}
    assert sure == [files["STORE"], files["LOCK"], files["CLOSED"], inside, above]
    sure.clear()
    folder.hold()
    assert not (folder.path / "CLOSED").exists()
    assert sure == [inside]
    folder.seal()
    assert [size for _, size in sure] == [0, len(b"00000000 {}"), 0]
    assert sure[-1] == inside
    folder.release()
    assert len(os.listdir("/proc/self/fd")) == handles


def test_what_a_folder_takes_on_disk(made: StoreFolder) -> None:
    assert made.size_bytes() == 0
    for size in (1, 20):
        (made.rows / f"{size}.sst").write_bytes(bytes(size))
    assert made.size_bytes() == 21


def test_a_lock_that_is_lost_is_made_again(made: StoreFolder) -> None:
    lock = made.path / "LOCK"
    lock.unlink()
    umask = os.umask(0)
    try:
        made.hold()
    finally:
        os.umask(umask)
    assert stat.S_IMODE(lock.stat().st_mode) == 0o644
    made.release()


def test_a_lock_that_is_a_link_is_not_followed(made: StoreFolder, tmp_path: Path) -> None:
    (made.path / "LOCK").unlink()
    (made.path / "LOCK").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreFailed, match="store 'clicks' cannot be opened"):
        made.hold()
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("what", ["a link", "a pipe", "a folder", "nothing"])
@pytest.mark.parametrize("name", ["STORE", "CLOSED"])
def test_what_is_no_plain_file_is_not_read(made: StoreFolder, tmp_path: Path, name: str, what: str) -> None:
    """A link to the right content neither; and a pipe is not waited for."""
    there = made.path / name
    shutil.copy(there, tmp_path / "copy")
    there.unlink()
    if what == "a link":
        there.symlink_to(tmp_path / "copy")
    elif what == "a pipe":
        os.mkfifo(there)
    elif what == "a folder":
        there.mkdir()
    if (name, what) == ("CLOSED", "nothing"):
        assert not made._seal_holds()
        return
    handles = len(os.listdir("/proc/self/fd"))
    said = "no file STORE; it is not a store of this version" if name == "STORE" else "CLOSED is not a plain file"
    with pytest.raises(StoreCorrupted, match=f"store 'clicks' is damaged; got {said}"):
        made.hold()
    assert not made._seal_holds() or name == "STORE"
    assert len(os.listdir("/proc/self/fd")) == handles


def test_a_folder_of_another_format_is_told_by_its_first_words(made: StoreFolder) -> None:
    (made.path / "STORE").write_bytes(b"sessionkit store, format 1, " + made.id.hex().encode() + b"\n" + b"x" * 99)
    with pytest.raises(StoreCorrupted, match=r"got file STORE: b'sessionkit store, format 1, [0-9a-f]{32}'; it is no"):
        made.hold()
