"""What of a checkpoint is damaged: from what Java says when Spark cannot load it, and from the files themselves."""

from __future__ import annotations

import json
import os
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from sessionkit.errors import StoreCorrupted, problem, shorten

_LOST = re.compile(r"CANNOT_LOAD_STATE_STORE|ChecksumException|FAILED_TO_READ_(OPERATOR_METADATA|STATE_SCHEMA)")
_FILE = re.compile(r"(/[^\n:=]*?/(?:state/\d+|offsets|commits)/[^\s:,;]+)")
_PLACE = re.compile(r"opId=(\d+),partId=(\d+)")
_CAUSE = re.compile(r"^(?:Caused by)?: (.+)$", re.MULTILINE)
_MOST_SUMMED_BYTES = 1 << 20  # Hadoop's own are over 512 bytes each
_SCHEME = re.compile(r"[a-z][\w+.-]*:(//[^/]*)?")
_VERSION = re.compile(r"v\d+|-|")  # a line of a log that is no JSON


def damage_told(text: str, checkpoint: str = "") -> StoreCorrupted | None:
    """The error for a checkpoint that Spark could not load; None if that is not what its own error says."""
    return damage(text, checkpoint) if _LOST.search(text) else None


def damage(text: str, checkpoint: str = "") -> StoreCorrupted:
    """The error for a checkpoint that is damaged, from the text of Spark's error with all that Java says."""
    place = _PLACE.search(text)
    state = os.path.join(checkpoint or "the checkpoint", "state", *(place.groups() if place else ()))
    # its metadata has whole paths, also those of the folder that it was copied from
    folder = _SCHEME.sub("", checkpoint) if _SCHEME.match(checkpoint) else checkpoint and os.path.abspath(checkpoint)
    file = next((file for file in _FILE.findall(text) if folder in file), None)
    if file is None and checkpoint:
        file = next(_damaged_files(Path(checkpoint)), None)
    cause = (_CAUSE.findall(text) or [text])[-1]
    want = (
        "restore a copy of the checkpoint, or use another checkpointLocation and start the source from an earlier "
        "position"
    )
    return StoreCorrupted(problem(f"{file or f'a file of {state}'} is damaged or missing", shorten(cause, 200), want))


def _damaged_files(checkpoint: Path) -> Iterator[str]:
    """The logs and archives of a checkpoint that cannot be read; Spark does not say which one it was."""
    for file in sorted(path for name in ("commits", "offsets", "state") for path in (checkpoint / name).rglob("*")):
        try:
            if file.suffix == ".crc":  # the sum of a file that is to be there
                is_whole = file.with_name(file.name.removeprefix(".").removesuffix(".crc")).exists()
            elif file.suffix == ".zip":
                with zipfile.ZipFile(file) as archive:
                    is_whole = archive.testzip() is None
            else:
                is_whole = not file.name.isdigit() or not file.is_file() or _is_log(file)
        except (OSError, ValueError, EOFError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error):
            is_whole = False
        if not is_whole:
            yield str(file)


def check_files(checkpoint: str, java: Any) -> None:
    """Refuses a checkpoint on this machine for what Spark itself would not refuse.

    RocksDB ends a scan at a damaged block, and Spark does not ask why: so tables without a checksum beside them are
    read. And Java ends if a file of checksums says that each is over a gigabyte, as it makes room for so much.
    """
    for sums in Path(checkpoint).absolute().rglob(".*.crc"):
        size = 0
        with suppress(OSError), sums.open("rb") as file:  # a query that runs may remove it now
            size = int.from_bytes(file.read(8)[4:])
        if size >= _MOST_SUMMED_BYTES:
            raise damage(f"checksums of {size:,} bytes each in {sums}", checkpoint)
    for table in sorted(Path(checkpoint).absolute().glob("state/*/*/SSTs/*.sst")):
        sums = table.with_name(f".{table.name}.crc")
        if sums.exists():
            continue
        java.org.rocksdb.RocksDB.loadLibrary()
        reader = java.org.rocksdb.SstFileReader(java.org.rocksdb.Options())
        try:
            reader.open(str(table))
            reader.verifyChecksum()
        except Exception as error:  # py4j's, of RocksDB's own
            if table.exists() and not sums.exists():  # a query that runs may be writing or removing it
                raise damage(f"{table}\n{error}", checkpoint) from None
        finally:
            reader.close()


def _is_log(file: Path) -> bool:
    lines = file.read_text(encoding="utf-8").splitlines()
    for line in lines:
        if not _VERSION.fullmatch(line):
            json.loads(line)
    return len(lines) > 1
