"""Records from JSON: one object a line, or an array of objects. Texts stay texts, also those that look like times."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sessionkit.base.text import is_text, literal, way_of_marks
from sessionkit.errors import InvalidData, problem, shorten
from sessionkit.records.files.content import BYTE_ORDER_MARK, Content, Kinds
from sessionkit.records.files.text import BLOCK_BYTES, not_of_type, not_utf8
from sessionkit.records.inputs.plain_columns import is_any, parts_of

_DEEP = 500  # Arrow's reader ends the process at some tens of thousands of brackets within each other
_STEP = np.zeros(256, np.int8)
_NUMBERED = re.compile(r"\d+(,\d+)*")
_STEP[list(b"[{")], _STEP[list(b"]}")] = 1, -1


def read_json(content: Content, columns: Sequence[str] | None, kinds: Kinds) -> pa.Table:
    """All columns of a JSON file that Arrow reads, else `columns`, of the types in `kinds`; mixed fields are text."""
    raw = content.whole()
    if raw.size and _can_be_lines(raw):
        try:
            table = _by_arrow(raw, kinds)
            _refuse_a_frame(content, table.to_pylist()[0] if len(table) == 1 else {})
            return table
        except pa.ArrowInvalid:
            pass  # of several types in a column, over several lines, or none: told below
        except UnicodeDecodeError as error:
            raise not_utf8(content, "a name of a column") from error
    return _by_python(content, raw, columns, kinds)


def _can_be_lines(raw: pa.Buffer) -> bool:
    """True for an object at the start, and nothing nested so deep that Arrow's reader would not survive it."""
    if bytes(raw[:4096]).removeprefix(BYTE_ORDER_MARK).lstrip()[:1] != b"{":
        return False
    letters = np.frombuffer(raw, np.uint8)
    steps = [_STEP[letters[lo : lo + 2**22]] for lo in range(0, len(letters), 2**22)]
    depth = np.concatenate([[0], np.cumsum(np.concatenate([step[step != 0] for step in steps]), dtype=np.int64)])
    return int((depth - np.minimum.accumulate(depth)).max()) <= _DEEP


def _by_arrow(raw: pa.Buffer, kinds: Kinds) -> pa.Table:
    table = _arrow_table(raw, {})
    texts = {field.name: _without_times(field.type) for field in table.schema}
    typed = {name: kind for name, kind in kinds.items() if name in texts and not pa.types.is_string(kind)}
    other = {
        name: kind for name, kind in (texts | typed).items() if kind != table.schema.field(name).type
    }  # what Arrow guessed otherwise: times above all, whose zones it drops
    table = _arrow_table(raw, other) if other else table
    for place, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
        if name in kinds and column.type != kinds[name]:
            if not is_any(column.type, "integer", "boolean", "null"):
                raise pa.ArrowInvalid(name)  # Arrow tells of no other number how it was written
            table = table.set_column(place, name, column.cast(pa.string()))
    return table


def _arrow_table(raw: pa.Buffer, kinds: Kinds) -> pa.Table:
    from pyarrow import json as arrow_json

    how = arrow_json.ParseOptions(explicit_schema=pa.schema(list(kinds.items())) if kinds else None)
    for block in BLOCK_BYTES:
        try:
            return arrow_json.read_json(pa.BufferReader(raw), arrow_json.ReadOptions(block_size=block), how)
        except pa.ArrowInvalid as error:
            if "straddling object" not in str(error) or block > raw.size:
                raise
    raise pa.ArrowInvalid("an object is larger than a block")


def _without_times(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.string()
    if not any(pa.types.is_timestamp(part) for part in parts_of(kind)):
        return kind
    if pa.types.is_struct(kind):
        return pa.struct([part.with_type(_without_times(part.type)) for part in kind])
    return pa.list_(_without_times(kind.value_type))


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


def _by_python(content: Content, raw: pa.Buffer, columns: Sequence[str] | None, kinds: Kinds) -> pa.Table:
    rows = _rows(content, raw)
    _refuse_a_frame(content, rows[0] if len(rows) == 1 else {})
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if is_text(name)]
    wanted = names if columns is None else [name for name in columns if name in names]
    exact = {*(columns or ())} - {name.rpartition(".")[0] for name in columns or ()}  # of the others a field is wanted
    made = {name: _column(content, name, [row.get(name) for row in rows], kinds, exact) for name in wanted}
    return pa.table(made | {name: pa.nulls(len(rows)) for name in names if name not in made})


def _refuse_a_frame(content: Content, row: Mapping[str, Any]) -> None:
    """Refuses the one object that pandas writes of a frame."""
    inner = {",".join(value) if isinstance(value, dict) else "" for value in row.values()}
    names = inner.pop() if len(inner) == 1 else ""
    is_numbered = [_NUMBERED.fullmatch(each) for each in (names, names and ",".join(row))]
    orient = "columns" if is_numbered[0] else "index" if is_numbered[1] else ""
    if orient := "split" if {"columns", "index", "data"} <= row.keys() else orient:
        got = f'one object, as df.to_json(orient="{orient}") of pandas writes a frame'
        want = f'pandas.read_json({literal(content.path)}, orient="{orient}", dtype=False) for a plan to run on'
        raise InvalidData(problem(f"{shorten(content.name)} holds no records", got, want))


def _rows(content: Content, raw: pa.Buffer) -> list[dict[str, Any]]:
    try:
        text = raw.to_pybytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise not_utf8(content, shorten(error, 120)) from error
    try:
        values = list(_values(text))
    except json.JSONDecodeError as error:
        want = f"check that {shorten(content.name)} is complete: an object on each line, or an array of objects"
        raise InvalidData(problem("the file cannot be read", shorten(error, 200), want)) from error
    except RecursionError as error:
        got = f"brackets within brackets in {shorten(content.name)}"
        raise InvalidData(problem("the JSON is nested too deep", got, "records with fewer levels")) from error
    if len(values) == 1 and isinstance(values[0], list):
        values = values[0]
    for row, value in enumerate(values):
        if not isinstance(value, dict):
            got, want = f"row {row}: {shorten(repr(value))}", 'objects such as {"user": "ada", "at": 1}'
            raise InvalidData(problem(f"{shorten(content.name)} holds something that is no record", got, want))
    if not values and not text.strip().startswith("["):
        want = f"check that {shorten(content.name)} is complete"
        raise InvalidData(problem("the file cannot be read", "no JSON in it", want))
    return values


def _values(text: str) -> Iterator[Any]:
    decoder = json.JSONDecoder(parse_int=_Number, parse_float=_Number, object_pairs_hook=_once)
    place, end = 0, len(text.rstrip())
    while place < end:
        while text[place] in " \t\r\n":
            place += 1
        value, place = decoder.raw_decode(text, place)
        yield value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidData(problem("an object has two values of one name", shorten(repr(twice)), "rename one of them"))
    return found


def _column(content: Content, name: str, values: list[Any], kinds: Kinds, exact: set[str]) -> pa.Array:
    shown, kind = shorten(repr(name)), kinds.get(name)
    try:
        if kind is not None:
            texts = [_text(value, name, row) for row, value in enumerate(values)]
            return pa.array(texts, pa.string()).cast(kind)
        try:
            return pa.array([_plain(value) for value in values])
        except (OverflowError, pa.ArrowInvalid):
            if not all(value is None or isinstance(value, _Number | float) for value in values):
                raise
            return pa.array([None if value is None else float(value) for value in values])  # integers beyond 64 bits
    except UnicodeEncodeError as error:
        what, want = f"column {shown} of {shorten(content.name)} is not text", "valid Unicode, without lone surrogates"
        raise InvalidData(problem(what, shorten(error, 120), want)) from error
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, OverflowError) as error:
        if kind is not None:
            raise not_of_type(shorten(content.name), error) from error
        types, missing = {*map(type, values)} - {type(None)}, pa.array([value is None for value in values])
        if types == {dict}:
            names = filter(is_text, dict.fromkeys(each for value in values for each in value or ()))
            inner = {each: [(value or {}).get(each) for value in values] for each in names}
            parts = [_column(content, f"{name}.{each}", inner[each], kinds, exact) for each in inner]
            return pa.StructArray.from_arrays(parts, [*inner], mask=missing)
        if types == {list}:
            items = _column(content, name, [each for value in values for each in value or ()], kinds, exact)
            ends = pa.array(np.cumsum([0, *(len(value or ()) for value in values)]), pa.int32())
            return pa.ListArray.from_arrays(ends, items, mask=missing)
        if is_free := not any(f"{name}.".startswith(f"{each}.") for each in exact):
            values = [json.dumps(_plain(value)) if isinstance(value, dict | list) else value for value in values]
        if is_free or types & {dict, list}:  # which are refused as text, too
            return _column(content, name, values, {name: pa.string()}, exact)
        words = sorted({value for value in values if type(value) is str})
        want = "" if bool in types else way_of_marks(words, name)
        want += f'{", or " if want else ""}types={{{literal(name)}: "string"}} in group_by_key reads all as text'
        firsts = [next(value for value in values if type(value) is kind) for kind in sorted(types, key=str)]
        got = " and ".join(shorten(json.dumps(_plain(each))) for each in firsts)
        what = f"column {shown} of {shorten(content.name)} holds values of several types"
        raise InvalidData(problem(what, got, want)) from error


def _text(value: Any, name: str, row: int) -> str | None:
    if isinstance(value, dict | list):
        got = f"row {row}: {shorten(repr(_plain(value)))}"
        want = "text, a number, true or false; for JSON of columns run the plan on pandas.read_json(…)"
        if isinstance(value, dict) and value:
            want = f"a field of it, such as {literal(f'{name}.{next(iter(value))}')}"
        raise InvalidData(problem(f"column {name!r} must hold single values", got, want))
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, _Number):
        try:
            return int(value)
        except ValueError:  # a fraction, or thousands of digits
            return float(value)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return value
