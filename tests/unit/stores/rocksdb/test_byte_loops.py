"""Loops over the bytes of many rows, by hand: values written and read."""

import struct
import zlib

import numpy as np
import pyarrow as pa
import pytest

from sessionkit.base.arrays import Bytes, Longs
from sessionkit.stores.rocksdb.columns import FLOAT, INT, NULL, as_rows, bytes_in, read_values, write_values

ROWS, PIECES = [b"row 1", b"row two"], [b"<<", b"|", b">"]
SEVEN, HALF = b"i" + (7).to_bytes(8), b"d" + struct.pack(">d", 0.5)
FIRST, SECOND = b"<<" + SEVEN + b"|" + b"N" + b">", b"<<" + b"N" + b"|" + HALF + b">"


def with_checksum(row: bytes, body: bytes) -> bytes:
    return zlib.crc32(row + body).to_bytes(4) + body


def packed(rows: list[bytes]) -> tuple[Bytes, Longs]:
    return bytes_in(pa.array(rows, pa.large_binary()))


def read(values: list[bytes]) -> tuple[bool, list[list[int]], list[list[int]]]:
    """(whether they were read, the bits of the numbers, their kinds)"""
    numbers, kinds = np.zeros((2, 2), np.int64), np.zeros((2, 2), np.uint8)
    is_read = read_values(*packed(ROWS), *packed(values), *packed(PIECES), numbers, kinds)
    return bool(is_read), numbers.tolist(), kinds.tolist()


VALUES = [with_checksum(ROWS[0], FIRST), with_checksum(ROWS[1], SECOND)]
NUMBERS = [[7, 0], [0, struct.unpack(">q", struct.pack(">d", 0.5))[0]]]
KINDS = [[INT, NULL], [NULL, FLOAT]]


def test_what_was_made_is_read() -> None:
    assert read(VALUES) == (True, NUMBERS, KINDS)


def test_what_is_read_was_made_so() -> None:
    raw, ends = np.empty(99, np.uint8), np.empty(2, np.int64)
    numbers, kinds = np.array(NUMBERS, np.int64), np.array(KINDS, np.uint8)
    write_values(*packed(ROWS), *packed(PIECES), numbers, kinds, raw, ends)
    assert as_rows(raw, ends).to_pylist() == VALUES


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<<",  # a number is to come
        b"<",
        b"<>" + SECOND[2:],
        b"<<i\0\0\0\0\0\0\0",
        b"<<x" + SECOND[3:],
        b"<<NN" + HALF + b">",
        b"<<N|d\0\0\0\0\0\0\0",
        SECOND[:-1],
        SECOND[:-1] + b"<",
        SECOND + b">",
        FIRST[:11] + SECOND[3:-1],
    ],
)
@pytest.mark.parametrize("at", [0, 1])
def test_a_value_that_is_not_made_of_the_pieces_and_numbers_is_not_read(body: bytes, at: int) -> None:
    assert not read([with_checksum(ROWS[k], body) if k == at else VALUES[k] for k in (0, 1)])[0]


@pytest.mark.parametrize("at", [0, 1])
def test_a_value_with_another_checksum_is_not_read(at: int) -> None:
    """One of another row has another one; and what is shorter than a checksum has none."""
    raw = VALUES[at]
    changed = [raw[:n] + bytes([raw[n] ^ 1]) + raw[n + 1 :] for n in range(4)]
    for wrong in (*changed, VALUES[1 - at], raw[:3], b""):
        assert not read([wrong if k == at else VALUES[k] for k in (0, 1)])[0]


def test_rows_of_a_part_of_an_array_are_its_own() -> None:
    raw, ends = bytes_in(pa.array([b"before", *ROWS, b"behind"], pa.large_binary())[1:3])
    assert as_rows(raw, ends).to_pylist() == ROWS
    assert bytes_in(pa.array([], pa.large_binary()))[0].size == 0
