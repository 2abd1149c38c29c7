"""Key columns as codes into an array of distinct keys, and keys as the bytes that Kafka's serializers write."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.arrays import Codes, Longs, Rows, arrow_array, numpy_array, of_type, texts
from sessionkit.base.process import in_threads, shares
from sessionkit.base.text import OF_ALL, literal, plural
from sessionkit.errors import InvalidArgument, InvalidData, UnknownRecord, UnsupportedData, errors_as, problem, shorten
from sessionkit.records.frames import EXACT_FLOATS
from sessionkit.records.inputs.plain_columns import have_one_dictionary, is_any, whole_numbers, with_one_dictionary
from sessionkit.records.loops import mark_seen, take_codes
from sessionkit.records.time_text import is_text_type

MAX_KEY_BYTES = 32 * 1024
MARKS = ("N/A", "NA", "n/a", "#N/A", "NULL", "null", "None", "NaN", "nan", "-", "?")  # for a missing value
_FLOAT = r"^-?\d\.\d{15,}[eE]\+?\d\d$"  # a number that takes all digits of a float
LOOKED_AT = 1_000  # rows
SPAN_A_RECORD = 2  # integers up to twice as far apart as there are records are numbered by a table


def keys_in(
    table: pa.Table, names: tuple[str, ...], sep: str | None, remarks: list[str] | None = None
) -> tuple[pa.Array, Codes]:
    """What `encode_keys` gives for the columns of these names; without a name all rows are of the key `OF_ALL`."""
    if not names:
        return pa.array([OF_ALL][: len(table)], pa.large_binary()), np.zeros(len(table), np.int32)
    return encode_keys([table[name] for name in names], names, sep, remarks)


def float_text_remarks(table: pa.Table, keys: tuple[str, ...]) -> list[str]:
    """A sentence for each text key that begins with floats as Python writes them: their last digits may be lost."""
    remarks = []
    for name in (name for name in keys if is_text_type(table[name].type)):
        texts = table[name].slice(0, LOOKED_AT).cast(pa.large_string())
        for text in texts.filter(pc.match_substring_regex(texts, _FLOAT))[:1].to_pylist():
            got = f"Keys in {shorten(repr(name))} are floats written as text, such as {text!r}"
            remarks.append(f"{got}: their last digits may be lost, so that one may stand for several.")
    return remarks


def encode_keys(
    columns: list[pa.ChunkedArray], names: tuple[str, ...], sep: str | None, remarks: list[str] | None = None
) -> tuple[pa.Array, Codes]:
    """(distinct keys, code of each record; -1 for a null key). Several columns are joined by `sep`.

    Without `sep` several columns stay apart: the keys are then the numbers of the sets of values that occur, in the
    order of their bytes. `remarks` gets a sentence on each value that is a mark for a missing one.

    Raises:
        UnsupportedData: a key column that holds floats with a fraction, timestamps, lists or the like.
        InvalidData: a key above 32 KiB or beyond 64 bits, invalid UTF-8, or two different sets of values that would
            give the same joined key.
    """
    parts = [_encode(column, name) for column, name in zip(columns, names, strict=True)]
    if remarks is not None:
        remarks += [said for part, name in zip(parts, names, strict=True) for said in mark_remarks(*part, name)]
    keys, codes = parts[0]
    for place in range(1, len(parts)):
        if sep is None:
            keys, codes = _numbered(keys, codes, *parts[place])
            continue
        _check_separator(parts[place - 1][0], sep, names[place - 1])
        keys, codes = _join(keys, codes, *parts[place], sep)
    _check_text(keys, " + ".join(names))
    return keys, codes


def mark_remarks(keys: pa.Array, codes: Codes, name: str) -> list[str]:
    """A sentence on each key that is a mark for a missing value, as other readers take it: it counts as a key."""
    if not pa.types.is_large_string(keys.type):
        return []
    short = np.flatnonzero(numpy_array(pc.binary_length(keys)) <= max(map(len, MARKS)))
    short = short[numpy_array(pc.is_in(keys.take(arrow_array(short)), texts(MARKS, large=True)))]
    found = {keys[code].as_py(): int(np.count_nonzero(codes == code)) for code in short.tolist()}
    return [
        f"{word!r} in {shorten(repr(name))} is a key like any other, of {plural(count, 'record')}; without them: "
        f"df = df[df[{name!r}] != {word!r}]"
        for word, count in found.items()
    ]


def code_of_key(keys: pa.Array, key: object) -> int:
    """The code of a key among these; `UnknownRecord` where it is none of them."""
    code = place_among(keys, key)
    if code < 0:
        some = ", ".join(shorten(repr(each), 30) for each in keys[:3].to_pylist())
        if isinstance(key, str) and pa.types.is_integer(keys.type):
            some += " (numbers, not text)"
        elif isinstance(key, int | np.integer) and pa.types.is_large_string(keys.type):
            some += " (text, not numbers)"
        want = f"one of {plural(len(keys), 'key')}, such as {some}" if len(keys) else "the run holds no records"
        raise UnknownRecord(problem("this key is not in the run", shorten(repr(key)), want))
    return code


def codes_among(keys: pa.Array, wanted: Iterable[object]) -> Rows:
    """The codes, in `keys`, of the wanted keys that occur there, rising."""
    codes = {place_among(keys, key) for key in wanted}
    return np.array(sorted(codes - {-1}), np.intp)


def place_among(keys: pa.Array, key: object) -> int:
    """The code of `key` in `keys`; -1 if it is not there, or is a float that may have lost digits."""
    if isinstance(key, float | np.floating) and not (float(key).is_integer() and abs(float(key)) < EXACT_FLOATS):
        return -1
    try:
        return int(keys.index(pa.scalar(key, keys.type)).as_py())
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return -1


def _encode(column: pa.ChunkedArray, name: str) -> tuple[pa.Array, Codes]:
    value_type = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    column = _whole(column, name) if pa.types.is_floating(value_type) else _uuid_text(column)
    value_type = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    plain = key_type(value_type, name)
    is_coded = pa.types.is_dictionary(column.type)
    if not is_coded:
        column = _cast(column, plain, name)
        if (numbered := _by_span(column)) is not None:
            return numbered
        column = column.dictionary_encode()
    if column.num_chunks == 0:
        return pa.nulls(0, plain), np.empty(0, np.int32)
    keys, codes = _joined(column)
    return _distinct(_cast(keys, plain, name), codes) if is_coded else (keys, codes)


def _joined(column: pa.ChunkedArray) -> tuple[pa.Array, Codes]:
    """One dictionary for all chunks, and the code of each row: -1 for a null. Rows are coded where they belong."""
    if any(chunk.dictionary.null_count for chunk in column.chunks):
        column = with_one_dictionary(column)
    if column.num_chunks == 1:
        return column.chunk(0).dictionary, _codes(column.chunk(0))
    codes, ends = np.empty(len(column), np.int32), np.cumsum([0, *map(len, column.chunks)]).tolist()
    are_one = have_one_dictionary(column)
    keys, places = (column.chunk(0).dictionary, []) if are_one else _as_one([each.dictionary for each in column.chunks])

    def code(number: int) -> None:
        found, own = codes[ends[number] : ends[number + 1]], _codes(column.chunk(number))
        if are_one:
            found[:] = own
        else:
            np.take(np.append(places[number], np.int32(-1)), own, out=found, mode="wrap")

    in_threads(code, range(column.num_chunks))
    return keys, codes


def _as_one(dictionaries: list[pa.Array]) -> tuple[pa.Array, list[Codes]]:
    """One dictionary with the values of all dictionaries, and for each of those the places of its values in it."""
    numbers = [arrow_array(np.arange(len(values), dtype=np.int32)) for values in dictionaries]
    each = [pa.DictionaryArray.from_arrays(*pair) for pair in zip(numbers, dictionaries, strict=True)]
    joined = pa.chunked_array(each).unify_dictionaries()
    return joined.chunk(0).dictionary, [numpy_array(chunk.indices) for chunk in joined.chunks]


def _by_span(column: pa.ChunkedArray) -> tuple[pa.Array, Codes] | None:
    """Distinct integers and codes by a table of their span, quicker than a hash; None if the span is too wide."""
    if not pa.types.is_integer(column.type) or column.null_count or not len(column):
        return None
    lowest, highest = pc.min_max(column).as_py().values()
    if highest - lowest >= SPAN_A_RECORD * len(column):
        return None
    values, span = numpy_array(column), highest - lowest + 1
    parts, seen = shares(len(values)), np.zeros(span, np.bool_)
    in_threads(lambda rows: mark_seen(values[rows], lowest, seen), parts)  # all of them write the same
    known = np.flatnonzero(seen)
    code_of, codes = np.empty(span, np.int32), np.empty(len(values), np.int32)
    code_of[known] = np.arange(len(known))
    in_threads(lambda rows: take_codes(values[rows], lowest, code_of, codes[rows]), parts)
    return arrow_array(known + lowest), codes


def _whole(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    fraction = ("a number with a fraction", f"whole numbers, or text: df[{name!r}].astype(str)")
    column = whole_numbers(column, name, "key column", fraction)
    if column.null_count == len(column):
        return pa.chunked_array([pa.nulls(len(column))])  # pandas' column without any value
    return _cast(column, pa.int64(), name)


def _uuid_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not (isinstance(column.type, pa.BaseExtensionType) and column.type.extension_name == "arrow.uuid"):
        return column
    stored = [chunk.storage if isinstance(chunk, pa.ExtensionArray) else chunk for chunk in column.chunks]
    coded = with_one_dictionary(pa.chunked_array(stored, column.type.storage_type).dictionary_encode())
    if not coded.num_chunks:
        return pa.chunked_array([], pa.large_string())
    texts = pa.array([str(uuid.UUID(bytes=each)) for each in coded.chunk(0).dictionary.to_pylist()], pa.large_string())
    return pa.chunked_array([pa.DictionaryArray.from_arrays(chunk.indices, texts) for chunk in coded.chunks])


def _cast(column: pa.Array | pa.ChunkedArray, plain: pa.DataType, name: str) -> pa.Array | pa.ChunkedArray:
    want = "text as valid UTF-8, integers from -2**63 to 2**63 - 1"
    with errors_as(InvalidData, f"key column {name!r} holds a value that cannot be a key", want, pa.ArrowInvalid):
        return of_type(column, plain)


def _codes(chunk: pa.DictionaryArray) -> Codes:
    indices = chunk.indices
    if indices.null_count:  # unsigned codes have no -1
        indices = indices.cast(pa.int64())
    return numpy_array(indices, absent=-1).astype(np.int32, copy=False)


def _distinct(keys: pa.Array, codes: Codes) -> tuple[pa.Array, Codes]:
    """A frame's own dictionary (a pandas category, say) may hold a null or one value twice."""
    once = keys.dictionary_encode()
    if once.null_count == 0 and len(once.dictionary) == len(keys):
        return keys, codes
    return once.dictionary, np.append(_codes(once), np.int32(-1))[codes]


def key_type(kind: pa.DataType, name: str) -> pa.DataType:
    """The type that keys of such a column have: text, 64-bit integers or bytes; `UnsupportedData` for others."""
    if is_any(kind, "boolean", "date", "decimal", "string", "large_string", "string_view", "null"):
        return pa.large_string()
    if pa.types.is_integer(kind):
        return pa.int64()
    if is_any(kind, "binary", "large_binary", "fixed_size_binary"):
        return pa.large_binary()
    want = f"text, integers, bytes, booleans, dates, decimals or UUIDs; cast it, such as df[{name!r}].astype(str)"
    if pa.types.is_struct(kind) and kind.num_fields:
        want = f"a field of it, such as {literal(f'{name}.{kind[0].name}')}"
    raise UnsupportedData(problem(f"key column {name!r} has a type that cannot be a key", kind, want))


def _check_separator(keys: pa.Array, sep: str, name: str) -> None:
    """Refuses a value after which the separator would not be the first one: two sets of values could look the same.

    So "a" + "aa" + "b" and "" + "aa" + "ab", though neither first value holds the separator "aa".
    """
    keys = _as_text(keys)
    ends = pc.binary_join_element_wise(keys, *texts([sep, ""], large=True))
    early = pc.less(pc.find_substring(ends, sep), pc.binary_length(keys))
    if pc.any(early).as_py():
        value = keys[early.index(True).as_py()].as_py()
        want = f"a separator that is in no value of {name!r}, so that different values stay different keys"
        raise InvalidData(problem(f"sep={sep!r} is part of a key value", shorten(repr(value)), want))


def _join(keys: pa.Array, codes: Codes, more_keys: pa.Array, more_codes: Codes, sep: str) -> tuple[pa.Array, Codes]:
    """Codes of the pairs that occur."""
    keys, more_keys = _as_text(keys), _as_text(more_keys)
    pair = codes.astype(np.int64) * max(len(more_keys), 1) + more_codes
    pair[(codes < 0) | (more_codes < 0)] = -1
    coded = arrow_array(pair, pair < 0).dictionary_encode()
    left, right = (arrow_array(part) for part in np.divmod(numpy_array(coded.dictionary), max(len(more_keys), 1)))
    separator = texts([sep], large=True)[0]
    joined = pc.binary_join_element_wise(keys.take(left), more_keys.take(right), separator)
    return joined, _codes(coded)


def _numbered(keys: pa.Array, codes: Codes, more_keys: pa.Array, more_codes: Codes) -> tuple[pa.Array, Codes]:
    """The pairs that occur, numbered by the bytes of the first value and then of the second, and codes of them."""
    first, second = np.append(key_ranks(keys), -1)[codes], np.append(key_ranks(more_keys), -1)[more_codes]
    pair = first * max(len(more_keys), 1) + second
    coded = arrow_array(pair, (codes < 0) | (more_codes < 0)).dictionary_encode()
    number = np.empty(len(coded.dictionary), np.int32)
    number[np.argsort(numpy_array(coded.dictionary))] = np.arange(len(number))
    return arrow_array(np.arange(len(number))), np.append(number, np.int32(-1))[_codes(coded)]


def _as_text(keys: pa.Array) -> pa.Array:
    if pa.types.is_large_binary(keys.type):
        raise UnsupportedData(problem("several key columns are joined as text", keys.type, "decode the bytes first"))
    return keys.cast(pa.large_string())


def _check_text(keys: pa.Array, name: str) -> None:
    if not len(keys) or pa.types.is_integer(keys.type):
        return
    want = "valid UTF-8, without lone surrogates"
    with errors_as(InvalidData, f"a key of {name} is not text", want, pa.ArrowInvalid):
        keys.validate(full=True)
    lengths = pc.binary_length(keys)
    longest = pc.max(lengths).as_py()
    if longest > MAX_KEY_BYTES:
        got = f"{longest:,} bytes, {shorten(keys[lengths.index(longest).as_py()].as_py())}"
        raise InvalidData(problem(f"a key of {name} is too long", got, f"at most {MAX_KEY_BYTES:,} bytes"))


def key_lengths(keys: pa.Array) -> Longs:
    """The bytes of each key, as a store has it."""
    if pa.types.is_integer(keys.type):
        return np.full(len(keys), 8)
    return numpy_array(pc.binary_length(keys)).astype(np.int64)


def key_bytes(key: Any) -> bytes:
    """`key` as Kafka's serializers write it: text as UTF-8, integers as 8 bytes big-endian, bytes as they are.

    Raises:
        InvalidArgument: any other type, text with a lone surrogate, an integer beyond 64 bits.
    """
    want = "text (valid Unicode), an integer of 64 bits or bytes"
    try:
        if isinstance(key, str):
            return key.encode()
        if isinstance(key, bytes):
            return key
        if isinstance(key, int | np.integer) and not isinstance(key, bool):
            return int(key).to_bytes(8, "big", signed=True)
        got = shorten(repr(key))
    except UnicodeError:
        got = shorten(key)
    except OverflowError:
        got = f"an integer of {key.bit_length():,} bits"
    raise InvalidArgument(problem("this cannot be a key", got, want))


def key_ranks(keys: pa.Array) -> Longs:
    """Place of each key in the order of its bytes, unsigned, as Kafka's stores sort (negative integers come last)."""
    if pa.types.is_integer(keys.type):
        order = np.argsort(numpy_array(keys).view(np.uint64))
    else:
        order = numpy_array(pc.sort_indices(keys.cast(pa.large_binary())))
    ranks = np.empty(len(keys), np.int64)
    ranks[order] = np.arange(len(keys))
    return ranks


def ranks_of(keys: pa.Array, codes: Codes) -> Longs:
    """Place of each code's key in that order, among the keys that are in `codes`: the others are not sorted."""
    used = np.zeros(len(keys), np.bool_)
    used[codes] = True
    some = np.flatnonzero(used)
    ranks = np.empty(len(keys), np.int64)
    ranks[some] = key_ranks(keys.take(arrow_array(some)))
    return ranks[codes]


def list_of_keys(keys: Any) -> Iterable[Any]:
    """Keys given as `keys=`, which must be a list of them, and no text, whose letters would be taken for keys."""
    if isinstance(keys, str | bytes) or not isinstance(keys, Iterable):
        raise InvalidArgument(problem("keys= takes a list of keys", shorten(repr(keys)), 'such as keys=["ada"]'))
    return keys
