"""Columns of any frame as Arrow's functions take them; what none of them takes is refused before it is touched."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.arrays import Longs
from sessionkit.errors import InvalidData, UnsupportedData, errors_as, problem, shorten
from sessionkit.records.row_names import row_name

_DIGITS = {16: 11, 32: 24, 64: 53}  # binary digits of a float of so many bits: it has every integer that has no more


def plain_table(table: pa.Table, *, joined_later: Collection[str] = ()) -> pa.Table:
    """The table with its columns as `plain_column` makes them; some keep a dictionary for each chunk till later."""
    for at, name in enumerate(table.column_names):
        plain = plain_column(table.column(at), joined=name not in joined_later)
        if plain is not table.column(at):
            table = table.set_column(at, name, plain)
    return table


def plain_column(column: pa.ChunkedArray, *, joined: bool = True) -> pa.ChunkedArray:
    """The column without views and runs, with dictionaries of text and bytes only; the values stay what they are.

    Where it is not joined, each of its chunks keeps a dictionary of its own.
    """
    if any(not len(chunk) for chunk in column.chunks):  # sliced ones from outside cannot be joined (ArrowIndexError)
        column = pa.chunked_array([chunk for chunk in column.chunks if len(chunk)], column.type)
    kind = plain_type(column.type)
    if kind != column.type:
        column = pa.chunked_array([_plain(chunk) for chunk in column.chunks], kind)
    return with_one_dictionary(column) if joined and pa.types.is_dictionary(kind) else column


def decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column with the values themselves where it holds a dictionary, as a category of pandas does."""
    column = plain_column(column)
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def with_one_dictionary(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The dictionaries of all chunks as one; made anew where codes are too few for it, or a value of one is missing."""
    if have_one_dictionary(column):
        return column
    try:
        if not any(chunk.dictionary.null_count for chunk in column.chunks):
            return column.unify_dictionaries()
    except pa.ArrowInvalid:
        pass  # too few codes
    values = [chunk.dictionary.take(chunk.indices) for chunk in column.chunks]
    return pa.chunked_array(values, column.type.value_type).dictionary_encode()


def have_one_dictionary(column: pa.ChunkedArray) -> bool:
    """True if all chunks have the very same dictionary, which has no missing value: nothing is compared."""
    places = set()
    for chunk in column.chunks:
        values = chunk.dictionary
        addresses = (0 if buffer is None else buffer.address for buffer in values.buffers())
        places.add((values.offset, len(values), *addresses))
    return len(places) == 1 and not column.chunk(0).dictionary.null_count


def _plain(array: pa.Array) -> pa.Array:
    """The array as one of `plain_type`, part by part: Arrow's casts know few of the ways, and confuse some."""
    kind, plain = array.type, plain_type(array.type)
    if kind == plain:
        return array
    if pa.types.is_run_end_encoded(kind):
        run = np.searchsorted(np.asarray(array.run_ends), np.arange(array.offset, array.offset + len(array)), "right")
        return _plain(array.values).take(pa.array(run))
    if pa.types.is_dictionary(kind):
        values = _plain(array.dictionary)
        if pa.types.is_dictionary(plain):
            return pa.DictionaryArray.from_arrays(array.indices, values, ordered=kind.ordered)
        return values.take(array.indices)
    if pa.types.is_struct(kind):
        parts = [_plain(array.field(at)) for at in range(kind.num_fields)]
        return pa.StructArray.from_arrays(parts, fields=list(plain), mask=array.is_null())
    if pa.types.is_fixed_size_list(kind):
        size = kind.list_size
        values = _plain(array.values.slice(array.offset * size, len(array) * size))
        return pa.FixedSizeListArray.from_arrays(values, type=plain, mask=array.is_null())
    if pa.types.is_map(kind):
        rows = _rows(array)
        return pa.MapArray.from_arrays(
            _ends(array), *(_plain(part).take(rows) for part in (array.keys, array.items)), plain
        )
    if is_any(kind, "list", "list_view", "large_list", "large_list_view"):
        made = pa.LargeListArray if pa.types.is_large_list(plain) else pa.ListArray
        return made.from_arrays(_ends(array), _plain(array.flatten()), plain)
    return array.cast(plain)


def _sizes(lists: pa.Array) -> Longs:
    """Number of values in each list; 0 for a missing list, whatever its offsets say."""
    sizes = np.asarray(lists.sizes) if hasattr(lists, "sizes") else np.diff(np.asarray(lists.offsets))
    return np.where(np.asarray(lists.is_null()), 0, sizes)


def _ends(lists: pa.Array) -> pa.Array:
    """Offsets of the lists when missing ones hold no values; the offset of a missing list is missing."""
    ends = np.append(0, np.cumsum(_sizes(lists)))
    is_wide = pa.types.is_large_list(plain_type(lists.type))
    return pa.array(ends, pa.int64() if is_wide else pa.int32(), mask=np.append(np.asarray(lists.is_null()), False))


def _rows(maps: pa.MapArray) -> pa.Array:
    """The places of the entries of maps that are not missing."""
    sizes = _sizes(maps)
    ends = np.cumsum(sizes)
    return pa.array(np.repeat(np.asarray(maps.offsets)[:-1] - (ends - sizes), sizes) + np.arange(sizes.sum()))


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type without views and short decimals, as `plain_column` makes it."""
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        return pa.large_string() if pa.types.is_string_view(kind) else pa.large_binary()
    if pa.types.is_decimal(kind) and kind.bit_width < 128:
        return pa.decimal128(kind.precision, kind.scale)
    if pa.types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if pa.types.is_dictionary(kind):
        values = plain_type(kind.value_type)
        is_text = is_any(values, "string", "large_string", "binary", "large_binary")
        return pa.dictionary(kind.index_type, values, kind.ordered) if is_text else values
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(plain_type(kind.value_type)))
    if is_any(kind, "large_list", "large_list_view", "list_view"):  # views may share values: more than 32 bits count
        return pa.large_list(kind.value_field.with_type(plain_type(kind.value_type)))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(plain_type(kind.value_type)), kind.list_size)
    if pa.types.is_map(kind):
        fields = (each.with_type(plain_type(each.type)) for each in (kind.key_field, kind.item_field))
        return pa.map_(*fields, keys_sorted=kind.keys_sorted)
    if pa.types.is_struct(kind):
        return pa.struct([part.with_type(plain_type(part.type)) for part in kind])
    return kind


def is_any(kind: pa.DataType, *names: str) -> bool:
    """True for a type of one of these kinds, by Arrow's names: "string" is `pa.types.is_string`."""
    return any(getattr(pa.types, f"is_{name}")(kind) for name in names)


def parts_of(kind: pa.DataType) -> Iterator[pa.DataType]:
    """The type and all types inside it."""
    yield kind
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        yield from parts_of(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        yield from parts_of(kind.storage_type)
    for at in range(kind.num_fields):
        yield from parts_of(kind.field(at).type)


def can_be_taken(kind: pa.DataType) -> bool:
    """True for values that Arrow can pick from a column."""
    return not any(pa.types.is_union(part) for part in parts_of(kind))


def whole_numbers(column: pa.ChunkedArray, name: str, what: str, fraction: tuple[str, str]) -> pa.ChunkedArray:
    """Whole floats without NaN: pandas makes such floats of integers beside a missing one.

    `fraction` is what an error says of a number with one, and what would be right.
    """
    bits = (column.type.value_type if pa.types.is_dictionary(column.type) else column.type).bit_width
    column = column.cast(pa.float64())
    column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    _refuse(pc.not_equal(pc.floor(column), column), column, f"{what} {name!r} has {fraction[0]}", fraction[1])
    size, digits = pc.abs(column), _DIGITS[bits]
    rounded = pc.and_(pc.greater_equal(size, float(2**digits)), pc.less(size, float(2**63)))
    want = (
        f'read it as integers, such as dtype={{{name!r}: "Int64"}} in pandas.read_csv; '
        f'df[{name!r}].astype("Int64") takes the numbers as they are now'
    )
    _refuse(rounded, column, f"{what} {name!r} has a float from 2**{digits} on, whose last digits may be lost", want)
    return column


def _refuse(wrong: pa.ChunkedArray, column: pa.ChunkedArray, what: str, want: str) -> None:
    if pc.any(wrong).as_py():
        row = int(np.flatnonzero(np.asarray(wrong.fill_null(False)))[0])
        raise UnsupportedData(problem(what, f"{column[row].as_py()!r} in {row_name(row)}", want))


def check_text(column: pa.ChunkedArray, name: str) -> None:
    """Refuses text that is not UTF-8: whoever reads it later would fail, or show something else."""
    if any(is_any(part, "string", "large_string", "string_view") for part in parts_of(column.type)):
        want = "valid UTF-8, or a column of bytes"
        with errors_as(InvalidData, f"column {name!r} holds a value that is not text", want, pa.ArrowInvalid):
            column.validate(full=True)


def check_polars(data: Any) -> None:
    """Refuses Python objects and names with a NUL: they leave polars as addresses in memory, or end the process."""
    for name, column in data.schema.items():
        for kind, field in _polars_parts(column, name):
            if type(kind).__name__ == "Object":
                want = "a column of one type; a pandas frame may hold any objects"
                raise UnsupportedData(problem(f"column {name!r} cannot be read", "Python objects in polars", want))
            if "\0" in field:
                want = "a name without the character NUL"
                raise UnsupportedData(problem("a column of polars cannot be read", shorten(repr(field)), want))


def _polars_parts(kind: Any, field: str = "") -> Iterator[tuple[Any, str]]:
    yield kind, field
    for part in getattr(kind, "fields", ()):
        yield from _polars_parts(part.dtype, part.name)
    if hasattr(kind, "inner"):
        yield from _polars_parts(kind.inner)
