"""The folder of a store on disk: its name and place, who holds it, and whether it was closed whole."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from sessionkit.errors import InvalidArgument, StoreCorrupted, StoreFailed, StoreLocked, attempted, problem, shorten
from sessionkit.stores.binding import check_store_name
from sessionkit.stores.rocksdb.disk.logs import damage_in_logs

OPEN_LIMIT_S = 5  # for opening a folder that was not closed; a damaged manifest can make RocksDB hang there
START_LIMIT_S = 60  # for the other Python to start, on a busy machine
FORMAT = 2
IDENTITY = f"sessionkit store, format {FORMAT}, ".encode()
OWNER = b"\x03"  # the row that each batch of changes begins with, which names the store
ROWS = "rows"  # the folder with RocksDB's own files
# What the system says of a sound folder; RocksDB and rocksdict hand it on with or without words of their own.
_REFUSALS = tuple(
    os.strerror(number)
    for number in (
        *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS),
        *(errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.ENOMEM),
    )
)


def store_path(name: str, directory: str | os.PathLike[str]) -> Path:
    """Where the store of this name lies: a folder right inside `directory`; refuses links, files and other names."""
    check_store_name(name)
    try:
        place = Path(directory).resolve()
        path = place / name
        mode = path.lstat().st_mode if os.path.lexists(path) else stat.S_IFDIR
        if place.exists() and not place.is_dir():
            raise NotADirectoryError("it is a file")
    except (OSError, ValueError, TypeError) as error:  # a NUL in it is a ValueError
        raise InvalidArgument(problem("directory cannot be used", shorten(repr(directory)), shorten(error))) from error
    if stat.S_ISLNK(mode) or path.resolve() != path:
        raise InvalidArgument(problem(f"store {name!r} is a link", str(path), "a folder: links are not followed"))
    if not stat.S_ISDIR(mode):
        want = "another name, or another directory"
        raise InvalidArgument(problem(f"store {name!r} is not a folder", str(path), want))
    return path


class StoreFolder:
    """A store's folder, held by this process until `release`.

    Beside RocksDB's files in `rows` it has a line that says what it is and which one (`STORE`: no other has its `id`),
    a file to lock (`LOCK`), and, only while nobody has it open, a seal (`CLOSED`): names, sizes and checksums of
    RocksDB's files. A folder without a seal was not closed whole; one whose files differ from the seal is damaged.
    """

    def __init__(self, name: str, directory: str | os.PathLike[str]) -> None:
        self.name, self.path = name, store_path(name, directory)
        self.rows = self.path / ROWS
        self.id = b""  # known once it was made or held
        self._held: BinaryIO | None = None

    @property
    def is_new(self) -> bool:
        """True if there is nothing yet: no folder, or an empty one."""
        return not self.path.exists() or not any(self.path.iterdir())

    def create(self, fill: Callable[[Path], None]) -> None:
        """Makes the folder whole beside its place and then moves it there, so that a half-made one is never opened."""
        self.id = uuid4().bytes
        making = self.path.with_name(f".{self.name}~{self.id.hex()}")  # "~" is in no store's name
        try:
            making.mkdir(parents=True)
            fill(making / ROWS)
            _write_file(making / "STORE", IDENTITY + self.id.hex().encode() + b"\n")
            _write_file(making / "LOCK", b"")
            _seal(making)
            self._move(making)
            _sync_folder(self.path.parent)
        except OSError as error:
            raise self.failed("cannot be made", error) from error
        finally:
            if making.exists():
                shutil.rmtree(making, ignore_errors=True)  # only the files that were just made

    def hold(self) -> None:
        """Takes the folder for this process and makes sure that it can be opened.

        Raises:
            StoreLocked, StoreCorrupted, StoreFailed.
        """
        try:
            self._check_identity()
            self._lock()
            self._check_files()
            if not self._seal_holds():
                self._check_logs()
                self._try_in_child()
            (self.path / "CLOSED").unlink(missing_ok=True)
            _sync_folder(self.path)
        except OSError as error:
            self.release()
            raise self.failed("cannot be opened", error) from error
        except BaseException:
            self.release()
            raise

    def seal(self) -> None:
        """Writes down that RocksDB has closed its files, and which files these are.

        A disk too full for the seal loses nothing: the folder is then opened as after a crash.
        """
        with suppress(OSError):
            _seal(self.path)

    def release(self) -> None:
        """Lets others have the folder."""
        if self._held is not None:
            self._held.close()
        self._held = None

    def size_bytes(self) -> int:
        size = 0
        for entry in os.scandir(self.rows):
            with suppress(FileNotFoundError):  # RocksDB removes files when it merges them
                size += entry.stat(follow_symlinks=False).st_size
        return size

    # ---- errors

    def corrupted(self, got: object) -> StoreCorrupted:
        """The error for a damaged store: what was found, and how to go on."""
        want = f"nothing was deleted; move {self.path} away and read the source again from its start"
        return StoreCorrupted(problem(f"store {self.name!r} is damaged", shorten(got, 300), want))

    def failed(self, what: str, error: BaseException) -> StoreFailed:
        want = f"check the free space, the permissions and the disk at {self.path}"
        return StoreFailed(problem(f"store {self.name!r} {what}", shorten(error, 300), want))

    def locked(self) -> StoreLocked:
        want = "close it there first: a store has one user at a time"
        return StoreLocked(problem(f"store {self.name!r} is open already", str(self.path), want))

    def _move(self, making: Path) -> None:
        try:
            making.replace(self.path)
        except OSError:
            if self.is_new:
                raise
            # another process was faster, and it is its store that is opened

    def _lock(self) -> None:
        import fcntl  # there is none on Windows, and importing this module should not need it

        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._held = os.fdopen(os.open(self.path / "LOCK", flags, 0o644), "r+b")
        try:
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise self.locked() from error

    def _check_identity(self) -> None:
        identity = _read_small(self.path / "STORE")
        known = re.fullmatch(re.escape(IDENTITY) + b"([0-9a-f]{32})\n", identity or b"")
        if known is None:
            got = "no file STORE" if identity is None else f"file STORE: {identity[:60]!r}"
            raise self.corrupted(f"{got}; it is not a store of this version of sessionkit")
        self.id = bytes.fromhex(known[1].decode())

    def _check_files(self) -> None:
        for folder in (self.path, self.rows):
            if folder.is_symlink() or not folder.is_dir():
                raise self.corrupted(f"{folder.name} is not a folder")
            for entry in os.scandir(folder):
                if entry.is_symlink() or not (entry.is_file() or entry.name == ROWS):
                    raise self.corrupted(f"{entry.name} is not a plain file")

    def _seal_holds(self) -> bool:
        """True if the folder was closed whole and is as it was then; False after a crash."""
        raw = _read_small(self.path / "CLOSED")
        if raw is None or raw[:9] != b"%08x " % zlib.crc32(raw[9:]):
            return False  # there is no seal, or only a part of one
        sealed = attempted(json.loads, raw[9:], but=(ValueError, RecursionError))
        if not isinstance(sealed, dict):  # somebody else wrote it: a right checksum is no proof of who did
            raise self.corrupted(f"file CLOSED is not a list of files: {raw[9:69]!r}")
        found = dict(_fingerprints(self.rows))
        for file in sorted(sealed.keys() | found.keys()):
            if sealed.get(file) != found.get(file):
                change = "is missing" if file not in found else "was not there" if file not in sealed else "was changed"
                raise self.corrupted(f"{file} {change} since the store was closed")
        return True

    def _check_logs(self) -> None:
        first_row = b"\x01%c%b%c%b" % (len(OWNER), OWNER, len(self.id), self.id)  # write_batch.cc: 1 is a put
        damage = damage_in_logs(self.rows, first_row)
        if damage:
            raise self.corrupted(f"it was not closed, and {damage}")

    def _try_in_child(self) -> None:
        """Opens the folder in another process, which can be ended if RocksDB never comes back."""
        script = str(Path(__file__).with_name("open_strictly.py"))
        command = [sys.executable, "-P", script, str(self.rows), str(OPEN_LIMIT_S)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        try:
            done = subprocess.run(command, env=environment, capture_output=True, check=False, timeout=START_LIMIT_S)
        except subprocess.TimeoutExpired as error:
            raise self.corrupted(f"it did not open within {START_LIMIT_S} s") from error
        if done.returncode == -signal.SIGALRM:
            raise self.corrupted(f"it was not closed, and did not open within {OPEN_LIMIT_S} s")
        message = done.stdout.decode(errors="replace") or shorten(done.stderr.decode(errors="replace"), 200)
        if done.returncode:
            raise self.translated(message or f"opening it ended with {done.returncode}", "it was not closed")

    def translated(self, said: str, note: str = "") -> StoreCorrupted | StoreFailed | StoreLocked:
        if "lock hold by" in said or "While lock file" in said:
            return self.locked()
        refused = said.startswith("IO error") or any(words in said for words in _REFUSALS)
        if refused and os.strerror(errno.ENOENT) not in said:
            return self.failed("cannot be read or written", OSError(said))
        return self.corrupted(f"{said} ({note})" if note else said)


def _seal(folder: Path) -> None:
    body = json.dumps(dict(_fingerprints(folder / ROWS))).encode()
    _write_file(folder / "CLOSED~", b"%08x " % zlib.crc32(body) + body)
    (folder / "CLOSED~").replace(folder / "CLOSED")
    _sync_folder(folder)


def _fingerprints(rows: Path) -> Iterator[tuple[str, list[int]]]:
    """Size and checksum of each file that RocksDB reads when it opens; tables check their own blocks when read."""
    for entry in sorted(os.scandir(rows), key=lambda entry: entry.name):
        if entry.name.startswith(("LOG", "LOCK", ".")):
            continue
        crc = 0
        if not entry.name.endswith(".sst"):
            with open(entry.path, "rb") as file:
                while block := file.read(1 << 20):
                    crc = zlib.crc32(block, crc)
        yield entry.name, [entry.stat(follow_symlinks=False).st_size, crc]


def _read_small(path: Path) -> bytes | None:
    """The file; None if there is none, or a link or folder in its place."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)  # a pipe in its place must not hang
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            return None
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        return file.read(64 << 20)


def _write_file(path: Path, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
