"""Files as tables that follow each other: the rows that `read_file` gives at once, in memory that does not grow."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import pyarrow as pa

from sessionkit.base.process import few_at_once, in_threads
from sessionkit.errors import InvalidData, problem, shorten
from sessionkit.records.files.content import Content, Kinds
from sessionkit.records.files.found import Found, find
from sessionkit.records.files.json_text import read_json
from sessionkit.records.files.parquet import open_parquet, parquet_names, readable, rows_of
from sessionkit.records.files.tables import FromFile, Wanted, check_columns_of, read_file, with_folders
from sessionkit.records.files.text import csv_batches
from sessionkit.records.inputs.nested import beginnings

HEAD_BYTES = 2**24  # of the text of all files, from which the types of columns are guessed
_LEAST_HEAD = 2**20  # of one file
_BLOCK = 2**23  # bytes of JSON that are read at a time
_GROUPS_BYTES = 2**28  # of row groups that are read side by side
_LOOKED_AT = 1_000  # rows that show the fields inside a column


class FilePieces(NamedTuple):
    """No rows of the files, but their columns and remarks; how many rows they have, if that is known; what they are."""

    head: FromFile
    rows: int | None
    marks: list[str]
    contents: list[Content]
    wanted: Wanted

    def read(self, first: int, most: int) -> Iterator[pa.Table]:
        """The rows from `first` on, about `most` at a time."""
        for content in self.contents:
            if content.kind == "Parquet":
                skipped, tables = _parquet(content, self.wanted, first, most)
                first -= skipped
            else:
                tables = _TABLES[content.kind](content, self.wanted)
            for table in tables:
                if len(table) <= first:
                    first -= len(table)
                    continue
                yield self._fitted(with_folders(table, content, self.wanted).slice(first), content)
                first = 0

    def _fitted(self, table: pa.Table, content: Content) -> pa.Table:
        """The table with columns of the types that the first rows have."""
        for at, field in enumerate(self.head.table.schema):
            kind = table.schema.types[at]
            if kind == field.type or (pa.types.is_dictionary(kind) and kind.value_type == field.type):
                continue
            try:
                table = table.set_column(at, field.name, table.column(at).cast(field.type))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
                raise _of_another_type(content, shorten(error, 200)) from error
        return table


def file_pieces(
    path: Any, columns: Sequence[str] | None, keys: Sequence[str], types: dict[str, str], **form: Any
) -> FilePieces:
    """The files, to be read in pieces; arguments and errors are those of `read_file`.

    Types of text that are not said are guessed from the first rows of each file: a later row that does not fit is
    refused when it is read.
    """
    found = path if isinstance(path, Found) else find(path)
    said: Any = {name: form[name] for name in ("separator", "header")}
    contents = [dataclasses.replace(each, **said) for each in found.contents]
    size = max(_LEAST_HEAD, HEAD_BYTES // len(contents))
    heads = [dataclasses.replace(each, **_head(each, columns or (), size)) for each in contents]
    table, remarks = read_file(found._replace(contents=heads), columns, keys, types, **form)
    schema = pa.schema([(each.name, _plain(each.type)) for each in table.schema])
    kinds: Kinds = {each.name: each.type for each in schema}
    rows = None
    if contents[0].kind == "Parquet":
        rows = sum(map(rows_of, contents))
    marks = [_mark(each) for each in contents]
    wanted = Wanted(columns or schema.names, keys, kinds, ())
    return FilePieces(FromFile(schema.empty_table(), remarks), rows, marks, contents, wanted)


def first_piece(path: Any, columns: Sequence[str] | None, keys: Sequence[str], **form: Any) -> FromFile:
    """Some rows from the beginning; arguments and errors are those of `read_file`."""
    pieces = file_pieces(path, columns, keys, **form)
    return pieces.head._replace(table=next(pieces.read(0, _LOOKED_AT), pieces.head.table))


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _mark(content: Content) -> str:
    """The file as it is now: its path, size and time of change; "" for one that cannot be looked at again."""
    try:
        found = os.stat(content.path)
        return f"{os.path.realpath(content.path)} {found.st_size} {found.st_mtime_ns}"
    except (OSError, ValueError):
        return ""


# ---- the first rows of a file, as a file of its own


def _head(content: Content, columns: Sequence[str], size: int) -> dict[str, Any]:
    if content.kind in ("Parquet", "Arrow"):
        with readable(content.name):
            table = _first_rows(content, columns)
        sink = pa.BufferOutputStream()
        if content.kind == "Arrow":
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
        else:
            import pyarrow.parquet as pq

            pq.write_table(table, sink)
        held = sink.getvalue()
        return {"open": lambda: held, "compression": None}
    with readable(content.name), content.stream() as stream:
        raw = stream.read(size)
        is_whole = len(raw) < size
    if is_whole:
        return {}
    cut = _end_of_json(raw) if content.kind == "JSON" else _end_of_lines(raw)
    if not cut:  # one value over many lines, or one long line
        return {}
    head = pa.py_buffer(raw[:cut])
    return {"open": lambda: head, "compression": None}


def _first_rows(content: Content, columns: Sequence[str]) -> pa.Table:
    """No rows of a file with types of its own, or some where fields inside its columns are wanted."""
    if content.kind == "Parquet":
        with open_parquet(content.seekable()) as file:
            names = file.schema_arrow.names
            if len({*names}) < len(names):
                check_columns_of(content, names, columns)
            inside = [name for name in columns if name not in {*names, *dict(content.folders)}]
            found = next(file.iter_batches(_LOOKED_AT), None) if inside else None
            return file.schema_arrow.empty_table() if found is None else pa.Table.from_batches([found])
    reader, batches = _arrow_batches(content)
    found = next(iter(batches), None)
    return reader.schema.empty_table() if found is None else pa.Table.from_batches([found]).slice(0, _LOOKED_AT)


def _end_of_lines(raw: bytes) -> int:
    """Where the last whole line ends that no open quote goes on; 0 if there is none."""
    end = raw.rfind(b"\n") + 1
    while end and raw.count(b'"', 0, end) % 2:
        end = raw.rfind(b"\n", 0, end - 1) + 1
    return end


def _end_of_json(raw: bytes) -> int:
    """Where the last value ends that another follows; 0 if none does. Between } and { a comma stands everywhere else.

    So where none does, no value is open: also where each goes over several lines.
    """
    end = len(raw)
    while (end := raw.rfind(b"{", 0, end)) > 0:
        if raw[max(0, end - 64) : end].rstrip().endswith(b"}"):
            return end
    return 0


# ---- the tables of a file


def _parquet(content: Content, wanted: Wanted, first: int, most: int) -> tuple[int, Iterator[pa.Table]]:
    """(rows of whole row groups before the row `first`, which are left out; the tables of the others)."""
    with readable(content.name):
        source = content.seekable()
        source = pa.OSFile(source) if isinstance(source, str) else source
        chosen = check_columns_of(content, parquet_names(source), wanted.inside(content) or [])
        options: dict[str, Any] = {"read_dictionary": [name for name in wanted.keys if name in chosen]}
        try:
            file = open_parquet(source, **options)
        except KeyError:  # what is nested has no dictionary
            options, file = {}, open_parquet(source)
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    skipped, start = 0, 0
    while start < len(groups) and skipped + groups[start].num_rows <= first:
        skipped += groups[start].num_rows
        start += 1
    read = partial(_group, source, file.metadata, options, chosen)
    return skipped, _row_groups(content, groups, start, most, file, chosen, read)


def _group(source: Any, metadata: Any, options: dict[str, Any], chosen: list[str], number: int) -> pa.Table:
    with open_parquet(source, metadata=metadata, **options) as own:
        return own.read_row_group(number, columns=chosen, use_threads=False)


def _row_groups(
    content: Content, groups: list[Any], start: int, most: int, file: Any, chosen: list[str], read: Any
) -> Iterator[pa.Table]:
    with readable(content.name):
        while start < len(groups):
            rows, size, stop = 0, 0, start
            while stop < len(groups) and rows + groups[stop].num_rows <= most and size < _GROUPS_BYTES:
                rows, size, stop = rows + groups[stop].num_rows, size + groups[stop].total_byte_size, stop + 1
            if stop == start:  # one that is larger than a piece
                for batch in file.iter_batches(most, [start], columns=chosen):
                    yield pa.Table.from_batches([batch])
                start += 1
                continue
            sizes = [each.total_byte_size for each in groups[start:stop]]
            yield pa.concat_tables(in_threads(read, range(start, stop), few_at_once(sizes, _GROUPS_BYTES)))
            start = stop


def _arrow_batches(content: Content) -> tuple[Any, Iterator[pa.RecordBatch]]:
    from pyarrow import ipc

    opened: Any = content.open() if content.compression is None else content.whole()
    source = pa.memory_map(opened) if isinstance(opened, str) else opened
    with content.stream() as stream:
        is_file = stream.read(6) == b"ARROW1"
    if not is_file:
        reader = ipc.open_stream(source)
        return reader, iter(reader)
    reader = ipc.open_file(source)
    return reader, (reader.get_batch(number) for number in range(reader.num_record_batches))


def _arrow(content: Content, wanted: Wanted) -> Iterator[pa.Table]:
    with readable(content.name):
        reader, batches = _arrow_batches(content)
        chosen = check_columns_of(content, reader.schema.names, wanted.inside(content) or [])
        for batch in batches:
            table = pa.Table.from_batches([batch]).select(chosen)
            table.validate(full=True)
            yield table


def _csv(content: Content, wanted: Wanted) -> Iterator[pa.Table]:
    inside = wanted.inside(content) or []
    with readable(content.name):
        yield from csv_batches(content, inside, wanted.kinds, partial(check_columns_of, content))


def _json(content: Content, wanted: Wanted) -> Iterator[pa.Table]:
    roots = {root for name in wanted.inside(content) or [] for root in beginnings(name)}
    kinds = {name: kind for name, kind in wanted.kinds.items() if not pa.types.is_nested(kind)}
    with readable(content.name), content.stream() as stream:
        rest = b""
        for number in count():
            block = stream.read(None if rest.lstrip()[:1] == b"[" else _BLOCK)  # an array is one value
            raw = rest + block
            cut = len(raw) if not block else _end_of_json(raw)
            rest = raw[cut:]
            if (cut and raw[:cut].strip()) or (not number and not block):
                piece = dataclasses.replace(content, open=partial(pa.py_buffer, raw[:cut]), compression=None)
                yield _with_missing(read_json(piece, [*roots], kinds), content, wanted)
            if not block:
                return


def _with_missing(table: pa.Table, content: Content, wanted: Wanted) -> pa.Table:
    """The table with the columns that none of its objects has, as they are missing in each."""
    for name in wanted.inside(content) or []:
        root = name.partition(".")[0]
        if not {name, root} & {*table.column_names}:
            table = table.append_column(name, pa.nulls(len(table), wanted.kinds[name]))
    return table


def _of_another_type(content: Content, reason: str) -> InvalidData:
    want = "types= for this column, as in group_by_key: in a file that is read in pieces its first rows tell the type"
    return InvalidData(
        problem(f"{shorten(content.name)} has a value of another type than its first rows", reason, want)
    )


_TABLES = {"Arrow": _arrow, "CSV": _csv, "JSON": _json}
