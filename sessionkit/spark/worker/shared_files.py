"""States of streams that the workers of a machine share in its memory: files that nobody else can read or change.

They are for speed alone: what is not there, not whole or not surely ours is not used, as Spark has the state too.
"""

from __future__ import annotations

import contextlib
import io
import mmap
import os
import re
import stat
import tempfile
import time
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from sessionkit.base.own_files import NotOurs
from sessionkit.errors import StoreCorrupted, problem, shorten
from sessionkit.stores.state.chunked_state import ChunkedState

_FORGOTTEN_S = 86_400.0  # a folder that nobody has written to for so long belongs to a query that is gone
_KEPT_FILES = 2  # of each state of a partition: a task that is tried again goes on from the one before
_OTHERS = 0o077  # bits of a mode that grant something to others
_CHECKSUM_BYTES = 4
_RUN = re.compile(r"[0-9a-f]{32}")
_FILE = re.compile(r"\.?(\d+)-[0-9a-f]{32,40}\.arrow")  # with a dot while it is written


class SharedFiles:
    """The decoded states of one run on this machine, of which each partition has so many."""

    def __init__(self, run: str, states: int = 1) -> None:
        self._run, self._kept_files = run, _KEPT_FILES * states

    def open(self, of: str, partition: int, token: str) -> ChunkedState | None:
        """The state of a partition after this token's micro-batch, mapped; None if it is not there, whole and ours."""
        try:
            with self._folder() as folder:
                content = _whole(_name(partition, token), folder)
            return None if content is None else ChunkedState.opened(of, partition, content)
        except (OSError, StoreCorrupted):  # not there, or not ours; written by another version
            return None

    def save(self, state: ChunkedState, token: str) -> None:
        """Writes the state, and removes older ones of its partition. Where there is no room, nothing is kept."""
        try:
            with self._folder(make=True) as folder:
                _write(state, _name(state.partition, token), folder)
                _remove_old(state.partition, folder, self._kept_files)
        except NotOurs as error:
            what = "a stream keeps no state in shared memory, and each micro-batch reads Spark's own"
            warnings.warn(
                problem(what, error, "a folder that only this user owns and can read; remove this one"), stacklevel=2
            )
        except OSError:
            pass

    def remove(self) -> None:
        with contextlib.suppress(OSError), _opened_folder(shared_folder(), None) as user:
            _remove_run(self._run, user)

    @contextlib.contextmanager
    def _folder(self, *, make: bool = False) -> Iterator[int]:
        with _opened_folder(shared_folder(), None, make=make) as user:
            is_new = make and self._run not in os.listdir(user)
            with _opened_folder(self._run, user, make=make) as run:
                yield run
            if is_new:
                _sweep(user)


def shared_folder() -> Path:
    """Memory that all workers of a machine share, or else a temporary folder; only this user can read what is in it.

    It bears the user's number: a container may run under one that has no name.
    """
    memory = Path("/dev/shm")  # noqa: S108 (the folder in it is checked to be ours)
    root = memory if os.access(memory, os.W_OK) else Path(tempfile.gettempdir())
    return root / f"sessionkit-{os.geteuid()}"


# ---- ownership: checked on the opened file, so that nobody can put something else in its place in between


@contextlib.contextmanager
def _opened_folder(path: str | Path, parent: int | None, *, make: bool = False) -> Iterator[int]:
    """A folder of ours, as a file descriptor; `NotOurs` for a link, another user's, or one that others may use."""
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700, dir_fd=parent)
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except OSError as error:
        if stat.S_ISDIR(os.lstat(path, dir_fd=parent).st_mode):
            raise
        raise NotOurs(f"{path}, which is not a folder") from error
    try:
        _check_ours(folder, str(path))
        yield folder
    finally:
        os.close(folder)


def _check_ours(opened: int, name: str) -> os.stat_result:
    found = os.fstat(opened)
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & _OTHERS:
        rights = f"of user {found.st_uid}, with mode {stat.S_IMODE(found.st_mode):04o}"
        raise NotOurs(f"{name}, which is {rights}")
    return found


# ---- one file: a state as Arrow writes it, then a checksum over its name, with the token, and all of it


def _name(partition: int, token: str) -> str:
    name = f"{partition}-{token}.arrow"
    if not _FILE.fullmatch(name):
        raise NotOurs(f"{shorten(name)}, which is not the name of a state")
    return name


class _Summed(io.RawIOBase):
    """A file that computes a checksum of all that is written to it."""

    def __init__(self, file: BinaryIO, checksum: int) -> None:
        self._file, self.checksum = file, checksum

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.checksum = zlib.crc32(data, self.checksum)
        return self._file.write(data)


def _write(state: ChunkedState, name: str, folder: int) -> None:
    aside = f".{name}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(aside, flags, 0o600, dir_fd=folder), "wb") as file:
            summed = _Summed(file, zlib.crc32(name.encode()))
            state.save(summed)
            file.write(summed.checksum.to_bytes(_CHECKSUM_BYTES))
        os.rename(aside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(aside, dir_fd=folder)
        raise


def _whole(name: str, folder: int) -> pa.Buffer | None:
    """Content written under this name, mapped into memory; None if it is not that, to the last bit."""
    # without waiting: a pipe would have a reader wait for a writer
    opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        found = _check_ours(opened, name)
        if not stat.S_ISREG(found.st_mode) or found.st_size <= _CHECKSUM_BYTES:
            return None
        raw = pa.py_buffer(mmap.mmap(opened, 0, access=mmap.ACCESS_READ))
    finally:
        os.close(opened)
    content = raw.slice(0, len(raw) - _CHECKSUM_BYTES)
    checksum = zlib.crc32(content, zlib.crc32(name.encode()))
    return content if checksum.to_bytes(_CHECKSUM_BYTES) == raw.slice(len(content)).to_pybytes() else None


# ---- removal


def _remove_old(partition: int, folder: int, kept_files: int) -> None:
    names = [name for name in os.listdir(folder) if (found := _FILE.fullmatch(name)) and int(found[1]) == partition]
    names.sort(key=lambda name: os.lstat(name, dir_fd=folder).st_mtime_ns)
    for name in names[:-kept_files]:
        os.unlink(name, dir_fd=folder)


def _remove_run(run: str, user: int) -> None:
    """The states of a run, and its folder if nothing else is in it."""
    with _opened_folder(run, user) as folder:
        for name in os.listdir(folder):
            if _FILE.fullmatch(name):
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=folder)
    os.rmdir(run, dir_fd=user)


def _sweep(user: int) -> None:
    """Removes what runs that were killed left behind."""
    for name in os.listdir(user):
        with contextlib.suppress(OSError):
            if _RUN.fullmatch(name) and time.time() - os.lstat(name, dir_fd=user).st_mtime > _FORGOTTEN_S:
                _remove_run(name, user)
