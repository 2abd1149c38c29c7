"""Folders that a user names for results: only what sessionkit wrote there is replaced, and only by what is whole."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from uuid import uuid4

from sessionkit.errors import InvalidArgument, WriteFailed, problem, shorten

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MANIFEST = "_sessionkit.json"  # readers of Parquet pass over names that begin so
FORMAT = 1
_ASIDE = re.compile(r"\.sessionkit-[0-9a-f]{32}")
_MOST_NAMED = 3
_DISK = re.compile(
    "No space left on device|Disk quota exceeded|File too large|Read-only file system|Input/output error|"
    "Permission denied"
)
Write = Callable[[Path], object]


class File(NamedTuple):
    """A file as it was written."""

    name: str
    size: int
    sha256: str


class Results:
    """Results on their way into a folder: written aside, then each moved to its place in one rename.

    A manifest lists what was written, by name, size and checksum. What it does not list, or lists otherwise, is the
    user's: it is refused with its name before anything is written, and again when the places are taken.

    What an earlier run wrote and this one does not write is removed, unless somebody changed it since.

    Args:
        names: the files and folders that may be written to `folder`.
        manifest: where in it the manifest lies: in one of these, or beside them.
        owner: whose results they are; those of another are not replaced.
        wrote: who that is, in words.
        alone: True to refuse a folder that has anything else in it and no manifest.
    """

    def __init__(
        self,
        folder: Path,
        names: Sequence[str],
        *,
        manifest: str = MANIFEST,
        owner: str = "",
        wrote: str = "",
        alone: bool = False,
    ) -> None:
        self.folder, self._names, self._manifest = folder, tuple(names), manifest
        self._owner, self.wrote, self._alone = owner, wrote, alone
        self._aside = folder / f".sessionkit-{uuid4().hex}"
        self._lock: int | None = None
        self._known: dict[tuple[int, int, int], File] = {}

    def check(self) -> None:
        """Refuses a folder in which files of the user are in the way."""
        with self.writing(self.folder):
            found = sorted(each.name for each in self.folder.iterdir()) if self.folder.is_dir() else []
            others = [name for name in found if not _ASIDE.fullmatch(name)]
            if self._alone and others and not os.path.lexists(self.folder / self._manifest):
                want = "a new or empty folder, one with an earlier report, or --overwrite to write beside what is there"
                got = str(self.folder / others[0])
                raise InvalidArgument(problem("the folder holds files that sessionkit did not write", got, want))
            for name in self._names:
                self._refuse_strangers(self.folder / name, name)

    def __enter__(self) -> Self:
        self.check()
        self._made = [path for path in (self.folder, *self.folder.parents) if not path.exists()]
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.sweep()
            self._aside.mkdir()
            self._lock = locked(self._aside)
            (self._aside / "new").mkdir()
            (self._aside / "former").mkdir()
        except OSError as error:
            self.__exit__(None, None, None)
            want = "a folder that can be created and written to"
            what = f"{shorten(self.folder, 500)} ({error.strerror})"
            raise WriteFailed(problem("the results cannot be written to this folder", what, want)) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self._aside, ignore_errors=True)  # made a moment ago; the former results were ours to the byte
        if self._lock is not None:
            os.close(self._lock)
        with contextlib.suppress(OSError):  # where something came of it
            for path in self._made:
                path.rmdir()

    def write(self, name: str, write: Write) -> None:
        """Has `write` make `name`, a path below the names, where nobody looks yet."""
        with self.writing(self.folder / name):
            path = self._aside / "new" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write(path)

    @contextlib.contextmanager
    def writing(self, path: Path) -> Iterator[None]:
        """Turns an error of the disk inside the block into `WriteFailed`, which says which result was refused."""
        try:
            yield
        except WriteFailed:
            raise
        except Exception as error:
            found = _DISK.findall(str(error))
            if not isinstance(error, OSError) and not found:
                raise
            cause = error.strerror if isinstance(error, OSError) and error.strerror else found[-1] if found else error
            got = f"{shorten(path, 500)} ({shorten(cause, 200)})"
            want = "a writable disk with free space; earlier results are unchanged"
            raise WriteFailed(problem("the results cannot be written", got, want)) from error

    def place(self) -> None:
        """Moves all that was written to its place.

        Raises:
            InvalidArgument: something of the user's came into a place meanwhile.
            WriteFailed.
        """
        new, inside = self._aside / "new", self._manifest.split("/")[0] in self._names
        written = [name for name in self._names if os.path.lexists(new / name)]
        with self.writing(self.folder / self._manifest):
            files = [self._file(path, name) for each in written for name, path in _leaves(new / each, each)]
            self.check()
            former = [] if inside else self._files()
            self._write_manifest(files if inside else [*former, *files], new if inside else self.folder)
        names = [*self._names, *self._outdated(former)]
        try:
            for name in names:
                with self.writing(self.folder / name):
                    self._swap(name, is_written=name in written)
            if not inside:
                with self.writing(self.folder / self._manifest):
                    self._write_manifest(files, self.folder)
        except BaseException:
            self._put_back(names, written)
            raise

    def _outdated(self, former: Sequence[File]) -> list[str]:
        """Names of unchanged results of an earlier run that this run does not write."""
        names = dict.fromkeys(name.split("/")[0] for name, _, _ in former)
        return [name for name in names if name not in self._names and not self._strangers(self.folder / name, name)]

    def _swap(self, name: str, *, is_written: bool) -> None:
        place, former = self.folder / name, self._aside / "former" / name
        if os.path.lexists(place):
            allowed = self._files()
            os.rename(place, former)
            self._refuse_strangers(former, name, allowed)  # now that nobody can add to it by this name
        if is_written:
            try:
                publish(self._aside / "new" / name, place)
            except OSError:
                self._refuse_strangers(place, name)  # files that came there in the meantime
                raise

    def _put_back(self, names: Sequence[str], written: Sequence[str]) -> None:
        """Moves the former results back to their places; the manifest may still list files that are gone."""
        for name in names:
            place, former, new = self.folder / name, self._aside / "former" / name, self._aside / "new" / name
            if name in written and not os.path.lexists(new):
                os.rename(place, new)
            if os.path.lexists(former) and not os.path.lexists(place):
                publish(former, place)

    def _strangers(self, path: Path, name: str, allowed: Sequence[File] | None = None) -> list[str]:
        """Names of the files at or below `path` that are not as a manifest lists them."""
        if not os.path.lexists(path):
            return []
        known = set(self._files() if allowed is None else allowed)
        own = {self._manifest} if known else set()
        return [
            inner for inner, leaf in _leaves(path, name) if inner not in own and self._file(leaf, inner) not in known
        ]

    def _refuse_strangers(self, path: Path, name: str, allowed: Sequence[File] | None = None) -> None:
        strangers = self._strangers(path, name, allowed)
        owner, wrote, files = self._listed()
        if strangers and files and not self._strangers(path, name, files):
            got = f"{shorten(self.folder / name, 500)}, by {wrote or 'a query'} (id {shorten(owner)})"
            want = "another folder, or the checkpoint of that query, which goes on with it"
            raise InvalidArgument(problem("another query wrote its results here", got, want))
        if strangers:
            shown = ", ".join(shorten(self.folder / inner, 500) for inner in strangers[:_MOST_NAMED])
            more = f" and {len(strangers) - _MOST_NAMED:,} more" if len(strangers) > _MOST_NAMED else ""
            want = "choose another folder for the results, or move these files away"
            raise InvalidArgument(problem("files that sessionkit did not write are in the way", f"{shown}{more}", want))

    def _file(self, path: Path, name: str) -> File:
        """The file as a manifest would list it; a link or a folder as an entry that no manifest has."""
        if path.is_symlink() or not path.is_file():
            return File(name, -1, "")
        found = path.stat()
        place = (found.st_ino, found.st_size, found.st_mtime_ns)
        if place not in self._known:
            with path.open("rb") as file:
                self._known[place] = File(name, found.st_size, hashlib.file_digest(file, "sha256").hexdigest())
        return self._known[place]._replace(name=name)

    def _files(self) -> list[File]:
        """Files that the manifest lists; none if there is no manifest, or it is another owner's."""
        owner, _, files = self._listed()
        return files if owner == self._owner else []

    def _listed(self) -> tuple[str, str, list[File]]:
        """(its owner by name, its owner in words, files) of the manifest; no files if there is none."""
        return listed_in(self.folder / self._manifest)

    def _write_manifest(self, files: Sequence[File], below: Path) -> None:
        body: dict[str, Any] = {"format": FORMAT, "owner": self._owner, "wrote": self.wrote, "files": sorted({*files})}
        draft = self._aside / "manifest"
        draft.write_text(json.dumps(body, indent=1), encoding="utf-8")
        os.replace(draft, below / self._manifest)

    def sweep(self) -> None:
        """Removes what killed processes left aside: it was never moved to its place, or was ours and replaced."""
        for path in self.folder.iterdir():
            if _ASIDE.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
                with contextlib.suppress(OSError):
                    lock = locked(path)
                    if lock is not None:
                        shutil.rmtree(path, ignore_errors=True)
                        os.close(lock)


def write_whole(path: Path, write: Write, *, replaces: bool = True) -> None:
    """Has `write` make a file beside `path`, which takes its place, where nothing is unless it `replaces` it."""
    aside = path.with_name(f".sessionkit-{uuid4().hex}{path.suffix}")
    try:
        write(aside)
        (os.replace if replaces else publish)(aside, path)
    except FileExistsError as error:
        raise taken(path) from error
    except OSError as error:
        want = "a folder that exists and can be written to, on a disk with free space"
        got = f"{shorten(path, 500)} ({error.strerror})"
        raise WriteFailed(problem("the file cannot be written", got, want)) from error
    finally:
        with contextlib.suppress(OSError):  # such as a path through a file
            aside.unlink(missing_ok=True)


def taken(path: Path) -> InvalidArgument:
    """The error where something is in the place of a new file."""
    want = "another name, or --overwrite to replace a file"
    return InvalidArgument(problem("there is something of this name already", shorten(path, 500), want))


def publish(made: Path, place: Path) -> None:
    """Moves what was made to a place where nothing may be: a file that came there meanwhile is not replaced."""
    if made.is_dir():
        os.rename(made, place)  # which takes the place of nothing but an empty folder
        return
    try:
        os.link(made, place)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        copy = place.open("xb")
        try:
            with copy, made.open("rb") as source:
                shutil.copyfileobj(source, copy)
        except BaseException:
            place.unlink()
            raise
    os.unlink(made)


def save(rows: DataFrame, path: Path) -> None:
    """Has Spark write Parquet there, where nothing is yet."""
    save_at(rows, f"file://{path.absolute()}")  # Hadoop takes it as it is, unescaped


def save_at(rows: DataFrame, place: str, mode: str = "error") -> None:
    """Has Spark write Parquet to a place of its own file systems, with times of a kind that every reader knows."""
    conf, name = rows.sparkSession.conf, "spark.sql.parquet.outputTimestampType"
    before = conf.get(name, None)
    conf.set(name, "TIMESTAMP_MICROS")  # Spark's own choice is INT96, which the format has given up
    try:
        rows.write.mode(mode).parquet(place)
    finally:
        if before is None:
            conf.unset(name)
        else:
            conf.set(name, before)


def listed_in(manifest: Path) -> tuple[str, str, list[File]]:
    """(the owner by name, the owner in words, files) of a manifest; no files if there is none that is ours."""
    try:
        told = json.loads(manifest.read_text(encoding="utf-8"))
        files = [File(str(name), int(size), str(digest)) for name, size, digest in told["files"]]
        return str(told["owner"]), str(told.get("wrote", "")), files if told["format"] == FORMAT else []
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return "", "", []


def _leaves(path: Path, name: str) -> Iterator[tuple[str, Path]]:
    """Names and paths at or below `path` that a user could miss: files, links (not followed) and empty folders."""
    inside = sorted(path.iterdir()) if path.is_dir() and not path.is_symlink() else []
    if not inside:
        yield name, path
    for each in inside:
        yield from _leaves(each, f"{name}/{each.name}")


def locked(folder: Path) -> int | None:
    """A lock on the folder for as long as this process lives; None where the system has no such locks."""
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise
    return handle
