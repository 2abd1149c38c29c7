"""Many rows of a store on disk at once: columns of numbers to bytes and back, as the codec does one by one.

Whatever holds more than numbers is left to the codec: each function gives None for it, and for bytes that are damaged.
The compiled loops come first: keys put together and taken apart, numbers written and read with checksums.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.base.arrays import Bytes, Longs
from sessionkit.base.compiled import compiled_loop, inlined
from sessionkit.errors import StoreCorrupted
from sessionkit.records.keys import MAX_KEY_BYTES
from sessionkit.stores.contract import FixedColumns, SessionColumns, StoredColumns, rows_of
from sessionkit.stores.rocksdb.row_space import RowSpace
from sessionkit.stores.rows import KEY_TYPES
from sessionkit.stores.typed_bytes import PlaceColumns, pieces_around_numbers, unpack_value

NULL, INT, FLOAT = ord("N"), ord("i"), ord("d")  # the codec's type bytes


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
def join_rows(head, keys, key_ends, tail, out):  # type: ignore[no-untyped-def]
    """Row i is `head[i]`, then its key, then `tail[i]`, one row behind the other."""
    at, first = 0, 0
    for i in range(key_ends.shape[0]):
        for j in range(head.shape[1]):
            out[at + j] = head[i, j]
        at += head.shape[1]
        for j in range(first, key_ends[i]):
            out[at + j - first] = keys[j]
        at += key_ends[i] - first
        first = key_ends[i]
        for j in range(tail.shape[1]):
            out[at + j] = tail[i, j]
        at += tail.shape[1]


@compiled_loop
def split_rows(rows, row_ends, head, keys, key_ends, tail):  # type: ignore[no-untyped-def]
    """Takes apart what `join_rows` put together; no row is shorter than its head and tail."""
    at, key_at = 0, 0
    for i in range(row_ends.shape[0]):
        for j in range(head.shape[1]):
            head[i, j] = rows[at + j]
        at += head.shape[1]
        behind = row_ends[i] - tail.shape[1]
        while at < behind:
            keys[key_at] = rows[at]
            at += 1
            key_at += 1
        key_ends[i] = key_at
        for j in range(tail.shape[1]):
            tail[i, j] = rows[at + j]
        at += tail.shape[1]


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


class Packed(NamedTuple):
    """Rows of bytes, one behind the other."""

    raw: Bytes
    ends: Longs

    @classmethod
    def of(cls, rows: list[bytes]) -> Packed:
        ends = np.cumsum(np.fromiter(map(len, rows), np.int64, len(rows)))
        return cls(np.frombuffer(b"".join(rows), np.uint8), ends)

    def rows(self) -> list[bytes]:
        """The packed rows, each as bytes of its own."""
        raw, ends = self.raw.tobytes(), self.ends.tolist()
        return [raw[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def pack_places(space: RowSpace, columns: StoredColumns) -> list[Packed] | None:
    """The database keys of these windows: of the rows that hold the values and, if there is one, of the index."""
    keys, places = _raw_keys(columns.key), PlaceColumns(columns.start_ms, columns.time_ms)
    if keys is None or not _are_plain(columns.partition, places, keys):
        return None
    packed = []
    for index in [False, True] if space.index else [False]:
        before, behind = space.around_key(columns.partition, places, index=index)
        ends = keys.ends + np.arange(1, len(keys.ends) + 1) * (before.shape[1] + behind.shape[1])
        raw = np.empty(ends[-1] if len(ends) else 0, np.uint8)
        join_rows(before, keys.raw, keys.ends, behind, raw)
        packed.append(Packed(raw, ends))
    return packed


def pack_fields(rows: Packed, columns: StoredColumns) -> Packed | None:
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
    count = len(rows.ends)
    numbers = np.empty((len(pieces) - 1, count), np.int64)
    kinds = np.full(numbers.shape, INT, np.uint8)
    numbers[: len(fields)] = fields
    for k, column in enumerate((leaf for _, leaves in parts for leaf in leaves), start=len(fields)):  # type: ignore[misc]
        numbers[k] = column.fill_null(0).to_numpy(zero_copy_only=False).view(np.int64)
        kinds[k] = np.where(np.asarray(column.is_valid()), FLOAT if pa.types.is_floating(column.type) else INT, NULL)
    glue, most = Packed.of(pieces), 4 + sum(map(len, pieces)) + 9 * len(numbers)
    raw, ends = np.empty(count * most, np.uint8), np.empty(count, np.int64)
    write_values(*rows, *glue, numbers, kinds, raw, ends)
    return Packed(raw[: ends[-1] if count else 0], ends)


def unpack(
    space: RowSpace, at: list[bytes], values: list[bytes], key_kind: str, names: tuple[str, ...]
) -> StoredColumns | None:
    """The windows in these rows of the database."""
    rows, widths = Packed.of(at), space.widths()
    if not at or np.diff(rows.ends, prepend=0).min() < sum(widths):
        return None
    before, behind = (np.empty((len(at), width), np.uint8) for width in widths)
    keys = Packed(np.empty(len(rows.raw) - before.size - behind.size, np.uint8), np.empty(len(at), np.int64))
    split_rows(*rows, before, *keys, behind)
    key, read = _keys(keys, key_kind), _read_fields(rows, at[0], values)
    if key is None or read is None:
        return None
    aggregate, numbers, own_count = read
    partition, places = space.from_around_key(before, behind)
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


def _read_fields(rows: Packed, first: bytes, values: list[bytes]) -> tuple[Any, list[pa.Array], int] | None:
    """(the aggregate of the first row, the numbers in all rows, how many of them are no aggregates).

    None if another row is not made as the first.
    """
    packed = Packed.of(values)
    try:
        sample = unpack_value(values[0], first)
    except StoreCorrupted:
        return None
    pieces = pieces_around_numbers(sample)
    if pieces is None or not isinstance(sample, tuple) or _has_tuple_or_nothing(sample[-1]):
        return None
    glue, shape = Packed.of(pieces), (len(pieces) - 1, len(values))
    numbers, kinds = np.empty(shape, np.int64), np.empty(shape, np.uint8)
    if not read_values(*rows, *packed, *glue, numbers, kinds):
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
        try:
            return 0, [column.cast(pa.float64() if pa.types.is_floating(kind) else pa.int64())]
        except pa.ArrowInvalid:  # an unsigned number from 2**63 on
            return None
    if not pa.types.is_struct(kind) or column.null_count or not kind.num_fields:
        return None
    inside = [_numbers_in(part) for part in column.flatten()]
    if any(part is None for part in inside):
        return None
    names = [kind.field(i).name for i in range(kind.num_fields)]
    sample = {name: part[0] for name, part in zip(names, inside, strict=True)}  # type: ignore[index]
    return sample, [leaf for part in inside for leaf in part[1]]  # type: ignore[index]


# ---- keys and places


def _are_plain(partition: Longs, places: PlaceColumns, keys: Packed) -> bool:
    """False if a row must be refused, which is done where rows are written one by one."""
    lengths = np.diff(keys.ends, prepend=0)
    refused = (places.start_ms < 0) | (places.time_ms < places.start_ms) | (lengths > MAX_KEY_BYTES)
    return not bool(np.any(refused | (partition < 0) | (partition >= 2**32)))


def _raw_keys(keys: pa.Array) -> Packed | None:
    if keys.type not in KEY_TYPES.values() or keys.null_count:
        return None
    if keys.type == pa.int64():
        raw = keys.to_numpy().astype(">i8").view(np.uint8)
        return Packed(raw, np.arange(8, len(raw) + 1, 8))
    _, offsets, data = keys.buffers()
    bounds = np.frombuffer(offsets, np.int64, len(keys) + 1, 8 * keys.offset) if len(keys) else np.zeros(1, np.int64)
    raw = np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]] if data else np.empty(0, np.uint8)
    return Packed(raw, bounds[1:] - bounds[0])


def _keys(packed: Packed, kind: str) -> pa.Array | None:
    if kind == "int":
        is_int = np.array_equal(packed.ends, np.arange(8, 8 * len(packed.ends) + 1, 8))
        return pa.array(packed.raw.view(">i8").astype(np.int64)) if is_int else None
    offsets = pa.py_buffer(np.concatenate([[0], packed.ends]).astype(np.int64))
    kind_of_key = KEY_TYPES[kind]
    keys = pa.Array.from_buffers(kind_of_key, len(packed.ends), [None, offsets, pa.py_buffer(packed.raw)])
    try:
        keys.validate(full=True)
    except pa.ArrowInvalid:  # no UTF-8
        return None
    return keys
