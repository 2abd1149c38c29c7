"""Rows of bytes by the hundred thousand: keys put together and taken apart, numbers written and read with checksums.

What these loops write, `codec.pack_value` writes for one row.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sessionkit.base.compiled import compiled_loop, inlined

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
