"""Which files a path means: one, those of a folder, of a glob or of a list, on this machine or behind a URL."""

from __future__ import annotations

import difflib
import glob
import os
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from sessionkit.base.text import literal
from sessionkit.errors import InvalidArgument, attempted, problem, shorten
from sessionkit.records.files.content import TAKEN, Content, content_of_file

Path = str | os.PathLike[str]
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(::[A-Za-z0-9+.-]+)*://")
_PACKAGES = {"s3": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs", "abfs": "adlfs", "abfss": "adlfs"}
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


class Found(NamedTuple):
    """The files, in the order in which they are read, and what they are called together."""

    contents: list[Content]
    name: str
    remarks: tuple[str, ...] = ()


def find(path: Path | Sequence[Path]) -> Found:
    """The files that a path means, in the order of their names.

    Raises:
        InvalidArgument: there are none, they are of a kind that is not read, or of several kinds.
    """
    if isinstance(path, str | os.PathLike):
        found = _find_one(os.fspath(path))
    else:
        found = _of_list([os.fspath(each) for each in path])
    kinds = {content.kind: content.name for content in reversed(found.contents)}
    if len(kinds) > 1:
        got = ", ".join(f"{kind} ({shorten(name)})" for kind, name in sorted(kinds.items()))
        ending = os.path.splitext(found.contents[0].name)[1]
        want = "files of one kind, such as those of a glob: " + literal(f"clicks/*{ending}")
        raise InvalidArgument(problem(f"{shorten(found.name)} holds files of several kinds", got, want))
    return found


def _find_one(path: str) -> Found:
    if _URL.match(path):
        if not path.lower().startswith("file://"):
            return _find_remote(path)
        from urllib.request import url2pathname  # loads the libraries that talk to servers

        path = url2pathname(urlsplit(path.replace("?", "%3F").replace("#", "%23")).path)
    path = os.path.expanduser(path)
    if os.path.isfile(path):  # Path.is_file raises where a name is too long, such as the text of a whole file
        return Found([_local(path)], os.path.basename(path))
    if os.path.isdir(path):
        return _of_folder(path)
    if glob.has_magic(path) and "\0" not in path:
        files = [each for each in glob.iglob(path, recursive=True) if _has_records(each)]
        if files:
            fixed = path[: re.search(r"[*?[]", path).start()]  # type: ignore[union-attr]  # it has magic
            root = os.path.dirname(fixed)
            return Found([_local(each, root) for each in sorted(files)], path)
    raise _no_such_file(path)


def _of_list(paths: list[str]) -> Found:
    if not paths:
        raise InvalidArgument(problem("the list names no file", "an empty list", "the paths of some files"))
    in_order = sorted(paths)
    remark = "the files of the list are read in the order of their names, which is not the order of the list"
    contents = [content for each in in_order for content in _find_one(each).contents]
    return Found(contents, "the list", () if in_order == paths else (remark,))


def _no_such_file(path: str) -> InvalidArgument:
    folder, name = os.path.split(path)
    beside = attempted(os.listdir, folder or ".", but=(OSError, ValueError)) or []  # ValueError: a NUL in the name
    near = difflib.get_close_matches(name, sorted({*beside} - {name}), n=1)
    if path in ("-", "/dev/stdin"):
        return InvalidArgument(problem("what is piped in is not read", path, "a file: sessionkit info rows.csv"))
    want = f"perhaps {literal(near[0])}?" if near else f"the path of a file, a folder or a glob of {TAKEN}"
    return InvalidArgument(problem("there is no such file", shorten(path, 200), want))


def _local(path: str, root: str | None = None) -> Content:
    folders = () if root is None else _folder_columns(os.path.relpath(path, root or "."), os.sep)
    return content_of_file(os.path.basename(path), path, lambda: path, folders)


def _of_folder(path: str) -> Found:
    if os.path.isdir(os.path.join(path, "_delta_log")):
        want = f"deltalake.DeltaTable({literal(shorten(path))}).to_pyarrow_dataset(), which knows its valid files"
        raise InvalidArgument(problem("the folder is a Delta table", shorten(path, 200), want))
    files = sorted(_walk(path, ()))
    if not files:
        want = f"a folder with files of {TAKEN}"
        raise InvalidArgument(problem("the folder holds no file with records", shorten(path, 200), want))
    return Found([_local(each, path) for each in files], path)


def _walk(folder: str, above: tuple[str, ...]) -> Iterator[str]:
    """The files below a folder that have something in them; a link back to a folder above is not followed."""
    here = os.path.realpath(folder)
    if here in above:
        return
    with os.scandir(folder) as entries:
        for entry in entries:
            if _is_hidden(entry.name):
                continue
            if not os.path.exists(entry.path):
                want = "remove the link, or bring the file back"
                raise InvalidArgument(problem("a link in the folder leads nowhere", shorten(entry.path, 200), want))
            if entry.is_dir():
                yield from _walk(entry.path, (*above, here))
            elif _has_records(entry.path):
                yield entry.path


def _has_records(path: str) -> bool:
    return os.path.isfile(path) and not _is_hidden(path) and os.path.getsize(path) > 0


def _is_hidden(path: str) -> bool:
    """True for files that Hadoop and Spark write beside the data: `_SUCCESS`, `.part-0.crc`; not for `_day=1`."""
    name = os.path.basename(path)
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith(".crc")


def _folder_columns(path: str, sep: str) -> tuple[tuple[str, str | None], ...]:
    pairs = [folder.partition("=") for folder in path.split(sep)[:-1] if "=" in folder]
    return tuple((unquote(name), None if value == _NO_VALUE else unquote(value)) for name, _, value in pairs)


def _find_remote(url: str) -> Found:
    scheme = url.partition("://")[0].rpartition("::")[2].lower()
    package = "'fsspec[http]'" if scheme in ("http", "https") else _PACKAGES.get(scheme, "fsspec")
    try:
        from fsspec.core import url_to_fs

        system, inside = url_to_fs(url)
        paths = _remote_paths(system, inside)
    except ImportError as error:
        want = f"pip install {package}, or the path of a file on this machine"
        raise InvalidArgument(problem("this URL is read by a package that is not installed", url, want)) from error
    except Exception as error:  # whatever the service behind the URL raises
        what, got = f"the URL {shorten(url, 200)} cannot be read", f"{type(error).__name__}: {shorten(error, 200)}"
        raise InvalidArgument(problem(what, got, "check its name and your rights")) from error
    if not paths:
        raise InvalidArgument(problem("there is no such file", shorten(url, 200), f"a URL of {TAKEN}"))
    return Found([_remote(system, each, inside) for each in paths], url)


def _remote_paths(system: Any, inside: str) -> list[str]:
    if "*" in inside or "[" in inside:
        return sorted(path for path in system.glob(inside) if not _is_hidden(path) and system.isfile(path))
    if not system.isdir(inside):
        return [inside] if system.exists(inside) else []
    found = system.find(inside, detail=True)
    return sorted(
        path
        for path, facts in found.items()
        if facts.get("size") != 0 and not any(map(_is_hidden, path.removeprefix(inside).strip("/").split("/")))
    )


def _remote(system: Any, path: str, inside: str) -> Content:
    fixed = re.split(r"[*\[]", inside)
    root = inside if len(fixed) == 1 else fixed[0].rpartition("/")[0]
    folders = _folder_columns(path.rpartition("/")[2] if path == inside else path.removeprefix(root), "/")
    name = path.rpartition("/")[2].partition("?")[0]
    return content_of_file(name, system.unstrip_protocol(path), partial(system.open, path, "rb"), folders)
