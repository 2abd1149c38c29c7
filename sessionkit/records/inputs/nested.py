"""Fields inside a column by names with dots, "payload.total": of objects, and of JSON that is text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.text import literal
from sessionkit.errors import InvalidData, MissingColumn, attempted, problem, shorten
from sessionkit.records.inputs.plain_columns import check_text, is_any
from sessionkit.records.time_text import is_text_type

_LOOKED_AT = 100  # rows that show which fields there are


def beginnings(name: str) -> list[str]:
    """The name and its beginnings up to each dot, the longest first: "a.b.c", "a.b", "a"."""
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(len(parts), 0, -1)]


def root_of(names: Sequence[str], name: str) -> str:
    """The column that holds `name`: that of this very name, else the longest one that it begins with, else `name`."""
    return next((each for each in beginnings(name) if each in names), name)


def columns_for(names: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """The columns to be read for the wanted names, each once."""
    return list(dict.fromkeys(root_of(names, name) for name in wanted))


def with_fields(table: pa.Table, wanted: Sequence[str] | None) -> pa.Table:
    """The wanted columns of a table, fields of its columns among them; None wants it as it is."""
    names = table.column_names
    if wanted is None or names == list(wanted):
        return table
    columns = [table[name] if name in names else field_of(table[root_of(names, name)], name, names) for name in wanted]
    return pa.table(columns, names=list(wanted)) if columns else table.select([])


def with_all_fields(table: pa.Table) -> pa.Table:
    """The table with the fields of its objects, also of JSON that is text, in their place, named as in a plan."""
    for at, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
        if is_text_type(column.type) and next((str(each)[:1] for each in column if each.is_valid), "") == "{":
            with suppress(InvalidData):  # not all are JSON
                table = table.set_column(at, name, _objects(column, name, None))
    while any(map(pa.types.is_struct, table.schema.types)):
        table = table.flatten()
    names = table.column_names
    return table.select([names.index(name) for name in dict.fromkeys(names)])


def perhaps(table: pa.Table, wanted: Sequence[str]) -> str:
    """A field whose name ends in the first missing name, as words for the end of an error; "" if there is none."""
    lacking = next((name for name in wanted if root_of(table.column_names, name) not in table.column_names), None)
    fields = with_all_fields(table.slice(0, _LOOKED_AT)).schema if lacking else pa.schema([])
    found = [literal(name) for name in fields.names if name.endswith(f".{lacking}")]
    lists = [way_of_a_list(each.name, each.type, lacking) for each in fields]
    return f", perhaps {found[0]}" if found else next((f", or {way}" for way in lists if way), "")


def way_of_a_list(name: str, kind: pa.DataType, field: str | None = None) -> str:
    """How records are taken out of a column of lists of objects, which have this field; "" for other columns."""
    inner = kind.value_type if is_any(kind, "list", "large_list", "list_view", "large_list_view") else kind
    if inner is kind or not pa.types.is_struct(inner) or not (field is None or inner.get_field_index(field) >= 0):
        return ""
    rows = f'json_normalize(data).explode({literal(name)}).dropna(subset={literal(name)}).to_dict("records")'
    data = 'json.load(file), for JSON lines [*map(json.loads, file)], for a frame df.to_dict("records")'
    return f"the records in the list {shorten(name)!r}: pandas.json_normalize(pandas.{rows}), where data is {data}"


def field_of(column: pa.ChunkedArray, name: str, names: Sequence[str]) -> pa.ChunkedArray:
    """The field `name` of this column, which is one of those called `names`; its texts must be JSON objects."""
    root = root_of(names, name)
    rest = name[len(root) + 1 :]
    if column.null_count == len(column):
        return pa.chunked_array([pa.nulls(len(column))])
    if is_text_type(column.type):
        check_text(column, root)
        column = _objects(column, root, beginnings(rest))
    fields = [f"{root}.{each.name}" for each in column.type] if pa.types.is_struct(column.type) else []
    inner = root_of(fields, name)
    if inner not in fields:
        got = shorten(", ".join(map(repr, fields)), 400) or f"a column {root!r} of {column.type}"
        want = way_of_a_list(root, column.type) or "name one of these"
        raise MissingColumn(problem(f"column {name!r} is not in the data", got, want))
    found = pc.struct_field(column, [fields.index(inner)])
    return found if inner == name else field_of(found, name, [inner])


def _objects(column: pa.ChunkedArray, name: str, wanted: list[str] | None) -> pa.ChunkedArray:
    """JSON objects in texts, of which a missing one has no fields; with the wanted fields at least, None wants all."""
    from sessionkit.records.files.content import Content
    from sessionkit.records.files.json_text import read_json

    texts = [text if text and text.strip() else "{}" for text in column.cast(pa.large_string()).to_pylist()]
    lines = pa.py_buffer("\n".join(text.replace("\n", " ") for text in texts).encode())
    try:
        table = read_json(Content(name=f"column {name!r}", kind="JSON", open=lambda: lines), wanted, {})
        if len(table) == len(texts):
            return pa.chunked_array(table.to_struct_array().chunks, pa.struct(list(table.schema)))
    except InvalidData as error:
        raise _no_object(texts, name) or error from error
    raise _no_object(texts, name) or AssertionError("each text is one object")


def _no_object(texts: list[str], name: str) -> InvalidData | None:
    for row, text in enumerate(texts):
        if not isinstance(attempted(json.loads, text, but=(ValueError, RecursionError)), dict):
            got = f"row {row}: {shorten(repr(text))}"
            return InvalidData(problem(f"column {name!r} has a text that is no JSON object", got, "JSON in all rows"))
    return None
