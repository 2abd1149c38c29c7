"""Many rows of a store on disk at once: columns of numbers to bytes and back, as the codec does one by one.

Whatever holds more than numbers is left to the codec: each function gives None for it, and for bytes that are damaged.
The compiled loops come first: numbers written and read with checksums.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.arrays import Bytes, Longs
from sessionkit.base.compiled import compiled_loop, inlined
from sessionkit.errors import StoreCorrupted, attempted
from sessionkit.records.keys import MAX_KEY_BYTES
from sessionkit.stores.contract import FixedColumns, SessionColumns, StoredColumns, rows_of
from sessionkit.stores.rocksdb.row_space import RowSpace
from sessionkit.stores.rows import KEY_TYPES
from sessionkit.stores.typed_bytes import PlaceColumns, pieces_around_numbers, unpack_value

NULL, INT, FLOAT = ord("N"), ord("i"), ord("d")  # the codec's type bytes
_END = 2**31 - 1  # behind the end of any key
RawRows: TypeAlias = pa.LargeBinaryArray  # rows of bytes, one behind the other


def _checksum_tables() -> npt.NDArray[np.uint32]:
    """For eight bytes at a time ("slicing by 8"): table k continues a byte's checksum by k zero bytes."""
    tables = np.zeros((8, 256), np.uint32)
    values = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        values = np.where(values & 1, (values >> 1) ^ np.uint32(0xEDB88320), values >> 1)
    tables[0] = values
    for k in range(1, 8):
        tables[k] = (tables[k - 1] >> 8) ^ values[tables[k - 1] & 0xFF]
    return tables


_TABLES = _checksum_tables()


@inlined
def _crc32(crc, data, at, end):  # type: ignore[no-untyped-def]
    """zlib.crc32 of `data[at:end]`, going on from `crc`."""
    c = np.uint32(~crc)
    while at + 8 <= end:
        low = c ^ (
            np.uint32(data[at])
            | (np.uint32(data[at + 1]) << 8)
            | (np.uint32(data[at + 2]) << 16)
            | (np.uint32(data[at + 3]) << 24)
        )
        c = np.uint32(
            _TABLES[7, low & 0xFF]
            ^ _TABLES[6, (low >> 8) & 0xFF]
            ^ _TABLES[5, (low >> 16) & 0xFF]
            ^ _TABLES[4, (low >> 24) & 0xFF]
            ^ _TABLES[3, data[at + 4]]
            ^ _TABLES[2, data[at + 5]]
            ^ _TABLES[1, data[at + 6]]
            ^ _TABLES[0, data[at + 7]]
        )
        at += 8
    while at < end:
        c = np.uint32(_TABLES[0, (c ^ data[at]) & 0xFF] ^ (c >> 8))
        at += 1
    return np.uint32(~c)


@compiled_loop
def write_values(rows, row_ends, pieces, piece_ends, numbers, kinds, out, out_ends):  # type: ignore[no-untyped-def]
    """Writes a value for each row: the pieces, with the row's numbers between them, behind a checksum over it all.

    `numbers[k, i]` holds the 64 bits of number k of row i, and `kinds[k, i]` its type byte.
    """
    at, row_at = 0, 0
    for i in range(row_ends.shape[0]):
        start = at
        at += 4
        first = 0
        for k in range(piece_ends.shape[0]):
            for j in range(first, piece_ends[k]):
                out[at] = pieces[j]
                at += 1
            first = piece_ends[k]
            if k < numbers.shape[0]:
                out[at] = kinds[k, i]
                at += 1
                if kinds[k, i] != NULL:
                    for j in range(8):
                        out[at + j] = np.uint8((numbers[k, i] >> (56 - 8 * j)) & 0xFF)
                    at += 8
        crc = _crc32(_crc32(np.uint32(0), rows, row_at, row_ends[i]), out, start + 4, at)
        for j in range(4):
            out[start + j] = np.uint8((crc >> (24 - 8 * j)) & 0xFF)
        row_at = row_ends[i]
        out_ends[i] = at


@compiled_loop
def read_values(rows, row_ends, values, value_ends, pieces, piece_ends, numbers, kinds):  # type: ignore[no-untyped-def]
    """Reads what `write_values` wrote; False if a value is damaged or is not made of these pieces and numbers."""
    at, row_at = 0, 0
    for i in range(row_ends.shape[0]):
        start, end = at, value_ends[i]
        if end - start < 4:
            return False
        crc = _crc32(_crc32(np.uint32(0), rows, row_at, row_ends[i]), values, start + 4, end)
        for j in range(4):
            if values[start + j] != np.uint8((crc >> (24 - 8 * j)) & 0xFF):
                return False
        row_at = row_ends[i]
        at += 4
        first = 0
        for k in range(piece_ends.shape[0]):
            if at + piece_ends[k] - first > end:
                return False
            for j in range(first, piece_ends[k]):
                if values[at] != pieces[j]:
                    return False
                at += 1
            first = piece_ends[k]
            if k < numbers.shape[0]:
                if at >= end:
                    return False
                kind = values[at]
                at += 1
                bits = np.int64(0)
                if kind != NULL:
                    if (kind != INT and kind != FLOAT) or at + 8 > end:
                        return False
                    for j in range(8):
                        bits = (bits << 8) | np.int64(values[at + j])
                    at += 8
                kinds[k, i] = kind
                numbers[k, i] = bits
        if at != end:
            return False
    return True


def bytes_in(rows: RawRows) -> tuple[Bytes, Longs]:
    """(the bytes of all rows, one behind the other; where each row ends)."""
    _, offsets, data = rows.buffers()
    bounds = np.frombuffer(offsets, np.int64, len(rows) + 1, 8 * rows.offset) if len(rows) else np.zeros(1, np.int64)
    raw = np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]] if data else np.empty(0, np.uint8)
    return raw, bounds[1:] - bounds[0]


def as_rows(raw: Bytes, ends: Longs) -> RawRows:
    """What `bytes_in` was given."""
    offsets = np.append(np.int64(0), ends)
    return pa.Array.from_buffers(pa.large_binary(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(raw)])


def _lines(matrix: Bytes) -> RawRows:
    return as_rows(np.ascontiguousarray(matrix), np.arange(1, len(matrix) + 1) * matrix.shape[1])


def _matrix(lines: RawRows, width: int) -> Bytes:
    return bytes_in(lines)[0].reshape(len(lines), width)


def pack_places(space: RowSpace, columns: StoredColumns) -> list[RawRows] | None:
    """The database keys of these windows: of the rows that hold the values and, if there is one, of the index."""
    keys, places = _raw_keys(columns.key), PlaceColumns(columns.start_ms, columns.time_ms)
    if keys is None or not _are_plain(columns.partition, places, keys):
        return None
    packed = []
    for index in [False, True] if space.index else [False]:
        before, behind = map(_lines, space.around_key(columns.partition, places, index=index))
        packed.append(pc.binary_join_element_wise(before, keys, behind, pa.scalar(b"", pa.large_binary())))
    return packed


def pack_fields(rows: RawRows, columns: StoredColumns) -> RawRows | None:
    """The value of each window, written for its row."""
    fields = [columns.opened_by, columns.closed_by, rows_of(columns)]
    if isinstance(columns, FixedColumns):
        fields.insert(0, columns.timestamp_ms)
    parts = [_numbers_in(column) for column in columns.aggregates.values()]
    if not parts or any(part is None for part in parts):
        return None
    samples = [sample for sample, _ in parts]  # type: ignore[misc]
    sample = samples[0] if len(samples) == 1 else dict(zip(columns.aggregates, samples, strict=True))
    pieces = pieces_around_numbers((*[0] * len(fields), sample))
    assert pieces is not None, "a sample is made of numbers"
    count = len(rows)
    numbers = np.empty((len(pieces) - 1, count), np.int64)
    kinds = np.full(numbers.shape, INT, np.uint8)
    numbers[: len(fields)] = fields
    for k, column in enumerate((leaf for _, leaves in parts for leaf in leaves), start=len(fields)):  # type: ignore[misc]
        numbers[k] = column.fill_null(0).to_numpy(zero_copy_only=False).view(np.int64)
        kinds[k] = np.where(np.asarray(column.is_valid()), FLOAT if pa.types.is_floating(column.type) else INT, NULL)
    glue, most = pa.array(pieces, pa.large_binary()), 4 + sum(map(len, pieces)) + 9 * len(numbers)
    raw, ends = np.empty(count * most, np.uint8), np.empty(count, np.int64)
    write_values(*bytes_in(rows), *bytes_in(glue), numbers, kinds, raw, ends)
    return as_rows(raw, ends)


def unpack(
    space: RowSpace, at: list[bytes], values: list[bytes], key_kind: str, names: tuple[str, ...]
) -> StoredColumns | None:
    """The windows in these rows of the database."""
    rows, (head, tail) = pa.array(at, pa.large_binary()), space.widths()
    if not at or pc.min(pc.binary_length(rows)).as_py() < head + tail:
        return None
    raw_keys, behind = pc.binary_replace_slice(rows, 0, head, b""), pc.binary_slice(rows, 0, 0)
    if tail:
        raw_keys, behind = pc.binary_replace_slice(raw_keys, -tail, _END, b""), pc.binary_slice(rows, -tail)
    key, read = _keys(raw_keys, key_kind), _read_fields(rows, at[0], values)
    if key is None or read is None:
        return None
    aggregate, numbers, own_count = read
    before = _matrix(pc.binary_slice(rows, 0, head), head)
    partition, places = space.from_around_key(before, _matrix(behind, tail))
    own, leaves = numbers[:own_count], iter(numbers[own_count:])
    if any(column.type != pa.int64() or column.null_count for column in own):
        return None
    parts = {names[0]: aggregate} if len(names) == 1 else aggregate
    if not (isinstance(parts, dict) and parts.keys() == set(names)):
        return None
    aggregates = {name: _column(part, leaves) for name, part in parts.items()}
    fixed = [column.to_numpy() for column in own]
    last_ms = places.time_ms if space.layout.has_end else fixed.pop(0)
    opened_by, closed_by, *counts = fixed
    make = SessionColumns if space.layout.has_end else FixedColumns
    rows_in = counts[0] if counts else None
    return make(key, partition, places.start_ms, last_ms, opened_by, closed_by, aggregates, rows_in)


def _read_fields(rows: RawRows, first: bytes, values: list[bytes]) -> tuple[Any, list[pa.Array], int] | None:
    """(the aggregate of the first row, the numbers in all rows, how many of them are no aggregates).

    None if another row is not made as the first.
    """
    sample = attempted(unpack_value, values[0], first, but=StoreCorrupted)
    pieces = pieces_around_numbers(sample)
    if pieces is None or not isinstance(sample, tuple) or _has_tuple_or_nothing(sample[-1]):
        return None
    packed, glue = (bytes_in(pa.array(each, pa.large_binary())) for each in (values, pieces))
    shape = (len(pieces) - 1, len(values))
    numbers, kinds = np.empty(shape, np.int64), np.empty(shape, np.uint8)
    if not read_values(*bytes_in(rows), *packed, *glue, numbers, kinds):
        return None
    columns = []
    for bits, kind in zip(numbers, kinds, strict=True):
        found = [each for each in (INT, FLOAT) if np.any(kind == each)]
        if len(found) == 2:
            return None
        column = bits.view(np.float64) if found == [FLOAT] else bits
        is_null = kind == NULL
        columns.append(pa.array(column, mask=is_null if is_null.any() else None) if found else pa.nulls(len(bits)))
    return sample[-1], columns, len(sample) - 1


def _has_tuple_or_nothing(aggregate: Any) -> bool:
    """True for what Arrow's structs cannot give back as it was."""
    if isinstance(aggregate, dict):
        return not aggregate or any(map(_has_tuple_or_nothing, aggregate.values()))
    return isinstance(aggregate, tuple)


def _column(sample: Any, numbers: Iterator[pa.Array]) -> pa.Array:
    if not isinstance(sample, dict):
        return next(numbers)
    return pa.StructArray.from_arrays([_column(part, numbers) for part in sample.values()], list(sample))


def _numbers_in(column: pa.Array | npt.NDArray[np.object_]) -> tuple[Any, list[pa.Array]] | None:
    """(a value that such a column could hold, the columns of 64-bit numbers in it)."""
    if not isinstance(column, pa.Array):
        return None
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        found = attempted(column.cast, pa.float64() if pa.types.is_floating(kind) else pa.int64(), but=pa.ArrowInvalid)
        return None if found is None else (0, [found])  # None: an unsigned number from 2**63 on
    if not pa.types.is_struct(kind) or column.null_count or not kind.num_fields:
        return None
    inside = [_numbers_in(part) for part in column.flatten()]
    if any(part is None for part in inside):
        return None
    names = [kind.field(i).name for i in range(kind.num_fields)]
    sample = {name: part[0] for name, part in zip(names, inside, strict=True)}  # type: ignore[index]
    return sample, [leaf for part in inside for leaf in part[1]]  # type: ignore[index]


# ---- keys and places


def _are_plain(partition: Longs, places: PlaceColumns, keys: RawRows) -> bool:
    """False if a row must be refused, which is done where rows are written one by one."""
    lengths = pc.binary_length(keys).to_numpy()
    refused = (places.start_ms < 0) | (places.time_ms < places.start_ms) | (lengths > MAX_KEY_BYTES)
    return not bool(np.any(refused | (partition < 0) | (partition >= 2**32)))


def _raw_keys(keys: pa.Array) -> RawRows | None:
    if keys.type not in KEY_TYPES.values() or keys.null_count:
        return None
    if keys.type == pa.int64():
        return _lines(keys.to_numpy().astype(">i8").view(np.uint8).reshape(-1, 8))
    return keys.cast(pa.large_binary())


def _keys(raw: RawRows, kind: str) -> pa.Array | None:
    if kind == "int":
        is_int = pc.all(pc.equal(pc.binary_length(raw), 8)).as_py()
        return pa.array(bytes_in(raw)[0].view(">i8").astype(np.int64)) if is_int else None
    return attempted(raw.cast, KEY_TYPES[kind], but=pa.ArrowInvalid)  # None: no UTF-8
