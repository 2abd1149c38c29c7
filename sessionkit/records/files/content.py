"""The content of a file or a buffer: which kind of records, how they are compressed, and how to open them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Any, Literal, TypeAlias

import pyarrow as pa

from sessionkit.base.text import literal
from sessionkit.errors import InvalidArgument, problem, shorten

Kind = Literal["Parquet", "CSV", "JSON", "Arrow"]
Kinds: TypeAlias = Mapping[str, pa.DataType]  # types of columns
TAKEN = (
    "Parquet, CSV, TSV, JSON lines, JSON or Feather (.parquet, .csv, .tsv, .txt, .log, .jsonl, .json, .feather, .arrow)"
)

_KINDS: dict[str, Kind] = {
    **dict.fromkeys((".parquet", ".pq"), "Parquet"),
    **dict.fromkeys((".csv", ".tsv", ".txt", ".log"), "CSV"),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "JSON"),
    **dict.fromkeys((".feather", ".arrow", ".ipc"), "Arrow"),
}
_SEPARATORS = {".csv": ",", ".tsv": "\t"}  # unless the first lines tell another; of .txt and .log they always do
_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4", ".br": "brotli"}
# Other formats that people have, and the call that makes a frame of each.
_FRAMES_OF = {
    **dict.fromkeys(
        (".xlsx", ".xls", ".xlsm", ".ods"), "pandas.read_excel({}), or for the command line on its to_csv(…)"
    ),
    **dict.fromkeys((".zip",), "pandas.read_csv({}) if one CSV file is in it; unpack others"),
    **dict.fromkeys((".tar", ".tgz", ".7z", ".rar"), "pandas.read_csv(…) of the file in it, once {} is unpacked"),
    ".avro": "polars.read_avro({})",
    ".orc": "pyarrow.orc.read_table({})",
    ".xml": "pandas.read_xml({})",
    **dict.fromkeys((".html", ".htm"), "pandas.read_html({})[0]"),
    **dict.fromkeys((".db", ".sqlite", ".sqlite3", ".duckdb"), "pandas.read_sql(…) with a connection to {}"),
}
_COMPRESSION_MARKS = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
_ARROW_STREAM = b"\xff\xff\xff\xff"
_KIND_MARKS: dict[bytes, Kind] = {b"PAR1": "Parquet", b"ARROW1": "Arrow", _ARROW_STREAM: "Arrow"}
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, kw_only=True)
class Content:
    """Bytes that hold records.

    `name` is for messages, `path` for lines of code. `open` gives a path of this machine, a buffer, or an open binary
    file. `usual` is the separator that text of this name has, `separator` the one that was said, and `header` is False
    where its first line is a record. `folders` are the columns that the names of its folders give ("day=2024-07-01").
    """

    name: str
    kind: Kind
    open: Callable[[], str | pa.Buffer | IO[bytes]]
    path: str = ""
    compression: str | None = None
    usual: str | None = None
    separator: str | None = None
    header: bool = True
    folders: tuple[tuple[str, str | None], ...] = ()

    def stream(self) -> pa.NativeFile:
        """The bytes from first to last, unpacked."""
        return pa.input_stream(self.open(), compression=self.compression)

    def read_ahead(self) -> pa.NativeFile:
        """`stream()` for a reader of CSV, which goes on reading in a thread of its own after it gave what was asked.

        It closes with the last who holds it. Whoever closed it sooner would have that thread read from the next file
        that is opened, as systems give the number of a closed file again, and the first block of that file were lost.
        """
        return self.stream()

    def seekable(self) -> Any:
        """The bytes for a reader that jumps: a path, or a file of Arrow."""
        if self.compression is not None:
            return pa.BufferReader(self.whole())
        opened = self.open()
        if isinstance(opened, str):
            return opened
        return pa.BufferReader(opened) if isinstance(opened, pa.Buffer) else pa.PythonFile(opened, mode="r")

    def whole(self) -> pa.Buffer:
        """All bytes, unpacked."""
        with self.stream() as stream:
            return stream.read_buffer()


def content_of_file(name: str, path: str, open: Callable[[], str | IO[bytes]], folders: tuple[Any, ...]) -> Content:
    """Content of a file by its name; `InvalidArgument` for a kind that is not read."""
    endings = [ending.lower() for ending in PurePosixPath(name).suffixes]
    compression = _COMPRESSIONS.get(endings[-1]) if endings else None
    if endings and endings[-1] in _FRAMES_OF:
        want = f"run the plan on {_FRAMES_OF[endings[-1]].format(literal(path))}"
        raise InvalidArgument(problem("the file is of a kind that is not read", shorten(name), want))
    ending = next((each for each in reversed(endings) if each in _KINDS), None)
    if ending is None:
        want = f'a file of {TAKEN}, or open({literal(path)}, "rb") in Python; in a folder with others, a glob'
        want += ' such as "clicks/*.parquet"'
        raise InvalidArgument(problem("the file is of an unknown kind", shorten(name), want))
    kind, usual = _KINDS[ending], _SEPARATORS.get(ending)
    return Content(name=name, kind=kind, open=open, path=path, compression=compression, usual=usual, folders=folders)


def content_of_buffer(name: str, path: str, buffer: pa.Buffer) -> Content:
    """Content of a buffer, which may not be empty or a ZIP archive, by its first bytes; CSV if they tell nothing."""
    head = bytes(buffer[:8])
    compression = next((each for mark, each in _COMPRESSION_MARKS.items() if head.startswith(mark)), None)
    if not head:
        want = "one with records; after writing to it, seek(0) goes back to its start"
        raise InvalidArgument(problem("there is nothing to read", shorten(name), want))
    if head.startswith(b"PK\x03\x04"):
        want = "pandas.read_excel(…) if it is an Excel file; unpack it otherwise"
        raise InvalidArgument(problem("a ZIP archive is not read", shorten(name), want))
    content = Content(name=name, kind="CSV", open=lambda: buffer, path=path, compression=compression)
    with content.stream() as stream:
        start = stream.read(4096)
    marked = next((kind for mark, kind in _KIND_MARKS.items() if start.startswith(mark)), None)
    is_json = start.removeprefix(BYTE_ORDER_MARK).lstrip()[:1] in (b"{", b"[")
    return dataclasses.replace(content, kind=marked or ("JSON" if is_json else "CSV"))
