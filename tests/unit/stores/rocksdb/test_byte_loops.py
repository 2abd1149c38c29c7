"""Loops over the bytes of many rows, by hand: keys joined and split, values written and read."""

import struct
import zlib

import numpy as np
import pytest

from sessionkit.stores.rocksdb.columns import FLOAT, INT, NULL, Packed, join_rows, read_values, split_rows, write_values

ROWS, PIECES = [b"row 1", b"row two"], [b"<<", b"|", b">"]
SEVEN, HALF = b"i" + (7).to_bytes(8), b"d" + struct.pack(">d", 0.5)
FIRST, SECOND = b"<<" + SEVEN + b"|" + b"N" + b">", b"<<" + b"N" + b"|" + HALF + b">"


def with_checksum(row: bytes, body: bytes) -> bytes:
    return zlib.crc32(row + body).to_bytes(4) + body


def read(values: list[bytes]) -> tuple[bool, list[list[int]], list[list[int]]]:
    """(whether they were read, the bits of the numbers, their kinds)"""
    numbers, kinds = np.zeros((2, 2), np.int64), np.zeros((2, 2), np.uint8)
    is_read = read_values(*Packed.of(ROWS), *Packed.of(values), *Packed.of(PIECES), numbers, kinds)
    return bool(is_read), numbers.tolist(), kinds.tolist()


VALUES = [with_checksum(ROWS[0], FIRST), with_checksum(ROWS[1], SECOND)]
NUMBERS = [[7, 0], [0, struct.unpack(">q", struct.pack(">d", 0.5))[0]]]
KINDS = [[INT, NULL], [NULL, FLOAT]]


def test_what_was_made_is_read() -> None:
    assert read(VALUES) == (True, NUMBERS, KINDS)


def test_what_is_read_was_made_so() -> None:
    raw, ends = np.empty(99, np.uint8), np.empty(2, np.int64)
    numbers, kinds = np.array(NUMBERS, np.int64), np.array(KINDS, np.uint8)
    write_values(*Packed.of(ROWS), *Packed.of(PIECES), numbers, kinds, raw, ends)
    assert Packed(raw[: ends[-1]], ends).rows() == VALUES


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


def test_keys_are_joined_with_what_stands_around_them_and_split_again() -> None:
    keys = Packed.of([b"ada", b"", b"bob"])
    head, tail = np.array([list(b"1."), list(b"2."), list(b"3.")], np.uint8), np.array([[97], [98], [99]], np.uint8)
    raw = np.empty(15, np.uint8)
    join_rows(head, *keys, tail, raw)
    assert raw.tobytes() == b"1.adaa2.b3.bobc"
    heads, tails = np.empty((3, 2), np.uint8), np.empty((3, 1), np.uint8)
    found = Packed(np.empty(6, np.uint8), np.empty(3, np.int64))
    split_rows(*Packed.of([b"1.adaa", b"2.b", b"3.bobc"]), heads, *found, tails)
    assert (heads.tobytes(), found.rows(), tails.tobytes()) == (b"1.2.3.", keys.rows(), b"abc")
