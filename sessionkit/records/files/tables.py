"""Records from files and buffers as one table: only the columns that a plan names, and what is to be said of them."""

from __future__ import annotations

import dataclasses
import os
import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.calls import level_of_user
from sessionkit.base.process import check_room, has_room
from sessionkit.base.text import literal
from sessionkit.errors import InvalidData, MissingColumn, attempted, problem, shorten
from sessionkit.records.files.content import Content, Kinds
from sessionkit.records.files.found import Found, Path, find
from sessionkit.records.files.json_text import read_json
from sessionkit.records.files.parquet import parquet_names, parquet_table, readable, rows_of
from sessionkit.records.files.text import (
    PARTED_BY,
    names_of,
    not_of_type,
    not_utf8,
    read_csv,
    seems_parted,
    separator_of,
    way_of_a_log,
)
from sessionkit.records.inputs.nested import beginnings, columns_for, perhaps, with_fields
from sessionkit.records.inputs.pandas_columns import check_columns, which_of
from sessionkit.records.time_text import shown_in_utc

_SMALL = 2**24  # bytes of files that are read without a look at how many rows they have
_ROW, _CELL = 10, 8  # bytes that a run holds of each record, and of each of its columns
_PACKED = 5  # bytes of text in one that is compressed
_UNTYPED = ("CSV", "JSON")  # kinds whose types are guessed
_HEAD = 2**20  # bytes, in which the columns of rows that are lines show, and offsets
_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")
_NOT_ONE = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError)


class Wanted(NamedTuple):
    """The columns to read from each file, as `read_file` takes them; `kinds` are the types of columns of text files."""

    columns: Sequence[str] | None
    keys: Sequence[str]
    kinds: Kinds
    milliseconds: Collection[str]

    def inside(self, content: Content) -> list[str] | None:
        """The columns that are in a file itself, not in the names of its folders; None for all."""
        folders = dict(content.folders)
        return None if self.columns is None else [name for name in self.columns if name not in folders]


class FromFile(NamedTuple):
    """The columns of files, and what is to be said about how they were read."""

    table: pa.Table
    remarks: list[str]


def read_file(
    path: Path | Sequence[Path] | Found,
    columns: Sequence[str] | None = None,
    keys: Sequence[str] = (),
    types: Mapping[str, str] | None = None,
    milliseconds: Collection[str] = (),
    *,
    separator: str | None = None,
    header: bool = True,
    timezone: str | None = None,
) -> FromFile:
    """`columns` of a file, or all of them; of a folder, a glob or a list of files in the order of their names.

    Args:
        path: Parquet, CSV, TSV, JSON lines, JSON or Arrow, also compressed; "~" and URLs are understood. Or what was
            found already.
        keys: the key columns: dictionaries if the file is Parquet, text if it is text.
        types: of columns of a text file, which has none of its own.
        milliseconds: columns of times of which nothing finer is wanted; they may then come as it.
        separator, header, timezone: those of the plan; a separator of None is the one that the first lines show.
    Raises:
        InvalidArgument: no such file, or one of a kind that is not read.
        MissingColumn: a column is not in a file.
        InvalidData: a file cannot be read, has two columns of one name, or other columns than the first.
        TooLarge: the rows of Parquet files would take more than 80 % of the memory that is free; of text files, whose
            rows are not known, a warning says it.
    """
    found = path if isinstance(path, Found) else find(path)
    contents = [dataclasses.replace(each, separator=separator, header=header) for each in found.contents]
    _check_fits(contents, columns)
    kinds: dict[str, pa.DataType] = dict.fromkeys(keys, pa.string())
    kinds |= {name: pa.type_for_alias(kind) for name, kind in (types or {}).items()}

    def read(kinds: Kinds) -> list[pa.Table]:
        return [_read_one(each, Wanted(columns, keys, kinds, milliseconds)) for each in contents]

    tables = read(kinds)
    is_untyped = contents[0].kind in _UNTYPED
    in_folders = {name for content in contents for name, _ in content.folders}
    mixed = [name for name in _of_several_types(tables) if is_untyped or name in in_folders]
    if mixed:  # text, as it would be in one file
        kinds |= dict.fromkeys((name for name in mixed if name not in kinds), pa.string())
        tables = read(kinds)
    unsigned = dict.fromkeys(_beyond_int64(tables, kinds) if is_untyped else (), pa.uint64())
    with suppress(InvalidData):  # one of them is no integer
        if unsigned:
            tables = read(kinds | unsigned)
    table = _joined(contents, tables)
    guessed = {
        field.name: field.type
        for field in table.schema
        if field.name not in kinds and (is_untyped or field.name in in_folders)
        if not (pa.types.is_string(field.type) or pa.types.is_nested(field.type))
    }
    remarks = [*found.remarks, *_separated(contents[0]), *_remarks(found, guessed)]
    if timezone is None and contents[0].kind == "CSV" and any(getattr(kind, "tz", None) for kind in guessed.values()):
        with contents[0].stream() as stream:
            remarks += shown_in_utc(stream.read(_HEAD).decode(errors="replace"))
    return FromFile(table, remarks)


def _check_fits(contents: Sequence[Content], columns: Sequence[str] | None) -> None:
    """Raises `TooLarge`, or of text warns, if the rows of local files would not fit into memory, before it is read."""
    sizes = [attempted(os.path.getsize, each.path, but=(OSError, ValueError)) or 0 for each in contents]
    first, count = contents[0], 0 if columns is None else len(columns)
    if sum(sizes) < _SMALL or not isinstance(first.open(), str):  # a part of one is at hand already
        return
    way = (
        "plan.write(data, table=…), plan.run(data, keys=[…]) or sk.sessionize(data, …, out=…), which take them in steps"
    )
    if first.kind == "Parquet":
        count = count or len(parquet_names(first.seekable()))
        check_room(sum(map(rows_of, contents)), (_ROW + _CELL * count) * 5 // 4, "records", f"{way}; or fewer records")
    elif first.kind in _UNTYPED:
        with readable(first.name), first.stream() as stream:
            head = stream.read(_HEAD)
        line = len(head) / max(1, head.count(b"\n"))
        rows = sum(sizes) * (1 if first.compression is None else _PACKED) / line
        if not has_room(rows, (_ROW + _CELL * count) * 5 // 4 if count else int(line)):
            said = f"{shorten(first.name)} {'and others have' if len(contents) > 1 else 'has'} some {rows:,.0f} lines"
            warnings.warn(f"{said}, which may not fit into memory: {way}", stacklevel=level_of_user())


def first_rows(path: str | os.PathLike[str]) -> pa.Table:
    """The first rows of a file whose rows are lines, to look at its columns; of Parquet no row, of others all."""
    if (schema := parquet_schema(path)) is not None:
        return schema.empty_table()
    content = find(path).contents[0]
    with content.stream() as stream:
        head = stream.read(_HEAD)
    if len(head) == _HEAD and content.kind != "Arrow" and not head.startswith(b"["):
        lines = pa.py_buffer(head[: head.rfind(b"\n") + 1])
        content = dataclasses.replace(content, open=lambda: lines, compression=None)
    return read_file(Found([content], content.name)).table


def parquet_schema(path: str | os.PathLike[str]) -> pa.Schema | None:
    """The columns of a Parquet file; None for a file of another kind."""
    import pyarrow.parquet as pq

    return attempted(pq.read_schema, path, but=(pa.ArrowInvalid, OSError))


def _read_one(content: Content, wanted: Wanted) -> pa.Table:
    with readable(content.name):
        table = _read_content(content, wanted._replace(columns=wanted.inside(content)))
        return with_folders(table, content, wanted)


def with_folders(table: pa.Table, content: Content, wanted: Wanted) -> pa.Table:
    """What was read of a file as the wanted columns: fields of its columns, and what its folders are called."""
    columns, kinds, folders = wanted.columns, wanted.kinds, dict(content.folders)
    inside = wanted.inside(content)
    table = table if inside is None else _with_fields(table, inside, kinds if content.kind in _UNTYPED else {})
    for name, value in folders.items():
        if name not in table.column_names and (columns is None or name in columns):
            table = table.append_column(name, _folder_column(name, value, len(table), kinds))
    return table if columns is None else table.select(list(columns))


def _with_fields(table: pa.Table, columns: list[str], kinds: Kinds) -> pa.Table:
    """The columns, of which some may be fields of others: these are of the types in `kinds`."""
    inside = [name for name in columns if name in kinds and name not in table.column_names]
    table = with_fields(table, columns)
    for name in inside:
        try:
            table = table.set_column(columns.index(name), name, table[name].cast(kinds[name]))
        except _NOT_ONE as error:
            raise not_of_type(repr(name), error) from error
    return table


def _read_content(content: Content, wanted: Wanted) -> pa.Table:
    columns, keys, kinds, milliseconds = wanted
    if content.kind == "Parquet":
        chosen = check_columns_of(content, parquet_names(content.seekable()), columns)
        try:
            return parquet_table(content.seekable(), chosen, keys, milliseconds)
        except KeyError:  # what is nested has no dictionary
            return parquet_table(content.seekable(), chosen, (), milliseconds)
    if content.kind == "Arrow":
        return _read_arrow(content, columns)
    if content.kind == "CSV":
        chosen = check_columns_of(content, names_of(content), columns)
        return read_csv(content, None if columns is None else chosen, kinds)
    table = read_json(content, None if columns is None else [n for name in columns for n in beginnings(name)], kinds)
    table = table.select(check_columns_of(content, table.column_names, columns))
    try:
        table.validate(full=True)
    except pa.ArrowInvalid as error:
        raise not_utf8(content, shorten(error, 120)) from error
    return table


def check_columns_of(content: Content, names: Sequence[str], columns: Sequence[str] | None) -> list[str]:
    """The columns to read from a file for the wanted ones; refuses a column that is not there."""
    shown = shorten(content.name)
    chosen = list(names) if columns is None else columns_for(names, columns)
    for name in chosen:
        if name not in names:
            want = which_of(names) + (f", or {way}" if (way := way_of_a_log(content)) else "")
            if content.kind == "CSV" and len(names) == 1 and (other := next((c for c in ";|\t," if c in names[0]), "")):
                want = seems_parted(content) or f"pass separator={literal(other)} in group_by_key"
            raise MissingColumn(problem(f"column {name!r} is not in {shown}", shorten(list(names), 500), want))
        if list(names).count(name) > 1:
            want = which_of(names).replace("name one of these", "rename all but one")
            want += f"; df = pandas.read_csv({literal(content.name)}) numbers them" if content.kind == "CSV" else ""
            raise InvalidData(problem(f"column {name!r} is in {shown} more than once", shorten(list(names), 500), want))
    return chosen


def check_named(path: Path, table: pa.Table, named: Sequence[str]) -> None:
    """Refuses a column that the records of a file do not have, with where else it may be: in a field, a list, a log."""
    names = table.column_names
    columns = columns_for(names, named)
    way = "" if {*columns} <= {*names} else perhaps(table, named) or way_of_a_log(find(path).contents[0])
    check_columns(names, columns, way.removeprefix(", ").removeprefix("or "))


def _folder_column(name: str, value: str | None, rows: int, kinds: Kinds) -> pa.Array:
    """A column with the value in a folder's name for all rows below it: text for a key, else a number if it is one."""
    if value is None:
        return pa.nulls(rows, kinds.get(name))
    kind = kinds.get(name, pa.int64() if _NUMBER.fullmatch(value) else pa.string())
    try:
        return pa.repeat(pa.scalar(value, pa.string()).cast(kind), rows)
    except _NOT_ONE as error:
        raise not_of_type(f"a folder {name!r}", error) from error


def _beyond_int64(tables: list[pa.Table], kinds: Kinds) -> list[str]:
    """Names of columns guessed as floats that may be unsigned integers: Arrow rounds those beyond int64."""
    floats = [(each.name, table[each.name]) for table in tables for each in table.schema if each.type == pa.float64()]
    return [name for name, column in floats if name not in kinds and 2**63 <= (pc.max(column).as_py() or 0) <= 2**64]


def _of_several_types(tables: list[pa.Table]) -> list[str]:
    parts: dict[str, list[pa.Schema]] = {}
    for field in (field for table in tables for field in table.schema):
        parts.setdefault(field.name, []).append(pa.schema([field]))
    how: Any = {"promote_options": "permissive", "but": _NOT_ONE}
    return [name for name, schemas in parts.items() if attempted(pa.unify_schemas, schemas, **how) is None]


def _joined(contents: list[Content], tables: list[pa.Table]) -> pa.Table:
    first = tables[0]
    if len(tables) == 1:
        return first
    for content, table in zip(contents, tables, strict=True):
        if odd := set(table.column_names) ^ set(first.column_names):
            what = f"{shorten(content.name)} has other columns than {shorten(contents[0].name)}"
            got = shorten(", ".join(map(repr, sorted(odd))), 200) + " in one of them only"
            raise InvalidData(problem(what, got, "files of the same columns"))
    tables = [table.select(first.column_names) for table in tables]
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except _NOT_ONE as error:
        other = next((each for each in zip(contents, tables, strict=True) if _of_several_types([first, each[1]])), None)
        name = shorten((contents[-1] if other is None else other[0]).name)
        what = f"{name} has other types than {shorten(contents[0].name)}"
        raise InvalidData(problem(what, shorten(error, 200), "files of the same types")) from error


def _separated(content: Content) -> list[str]:
    if content.kind != "CSV":
        return []
    if way := seems_parted(content):
        return [f"{shorten(content.name)} is one column; {way}"]
    separator = separator_of(content)
    if separator in (content.usual, content.separator) or len(names_of(content)) == 1:
        return []
    return [f"{shorten(content.name)} is read as text separated by {PARTED_BY[separator]}, as its first lines have it"]


def _remarks(found: Found, guessed: Kinds) -> list[str]:
    if not guessed:
        return []
    columns = [f"{shorten(name)!r} ({kind})" for name, kind in guessed.items()]
    listed = columns[0] if len(columns) == 1 else f"{', '.join(columns[:-1])} and {columns[-1]}"
    what = f"type of {listed} was" if len(columns) == 1 else f"types of {listed} were"
    way = f'types={{{literal([*guessed][-1])}: "string"}} in group_by_key would set one'
    is_text = f"holds {len(found.contents):,} files" if len(found.contents) > 1 else "is text"
    return [f"{shorten(found.name)} {is_text}, and the {what} guessed; {way}"]


def _read_arrow(content: Content, columns: Sequence[str] | None) -> pa.Table:
    """`columns` of Feather, or of Arrow's own files and streams, or all of them."""
    from pyarrow import ipc

    buffer = content.whole()
    open_ipc = ipc.open_file if bytes(buffer[:6]) == b"ARROW1" else ipc.open_stream
    names = open_ipc(buffer).schema.names
    chosen = check_columns_of(content, names, columns)
    options = ipc.IpcReadOptions(included_fields=[names.index(name) for name in chosen])
    table = open_ipc(buffer, options=options).read_all()
    table.validate(full=True)
    return table.select(chosen)
