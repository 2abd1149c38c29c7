"""Keys as codes and as bytes: distinct values stay distinct, in the order of Kafka's stores."""

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionkit.errors import InvalidArgument, InvalidData, UnsupportedData
from sessionkit.records.keys import MAX_KEY_BYTES, SPAN_A_RECORD, encode_keys, key_bytes, key_ranks

INT64 = st.integers(-(2**63), 2**63 - 1)
# Few letters, so that separators and values collide.
LETTERS = st.text("ab@", max_size=4)


def decoded(*columns: pa.ChunkedArray, sep: str | None = None) -> list[Any]:
    """The key of each record, by way of its code."""
    names = tuple("uvw"[: len(columns)])
    keys, codes = encode_keys(list(columns), names, sep)
    assert codes.dtype == np.int32
    assert len(set(keys.to_pylist())) == len(keys)
    return [None if code < 0 else keys[int(code)].as_py() for code in codes]


def column(values: Any, kind: pa.DataType | None = None) -> pa.ChunkedArray:
    return pa.chunked_array([values], kind)


@given(st.lists(st.text() | st.none()), st.integers(0, 5))
def test_text_comes_back_whatever_its_chunks(values: list[str | None], cut: int) -> None:
    parts = [values[:cut], values[cut:]]
    assert decoded(pa.chunked_array(parts, pa.string())) == values
    assert decoded(pa.chunked_array([pa.array(part, pa.string()).dictionary_encode() for part in parts])) == values


@given(st.lists(INT64 | st.none()))
def test_integers_come_back(values: list[int | None]) -> None:
    assert decoded(column(values, pa.int64())) == values


@given(INT64, st.lists(st.integers(0, 60), min_size=1), st.booleans())
def test_integers_are_numbered_by_their_span_where_they_lie_close_together(
    lowest: int, steps: list[int], far: bool
) -> None:
    values = [min(lowest + step, 2**63 - 1) for step in steps] + ([-(2**63)] if far else [])
    keys, codes = encode_keys([pa.chunked_array([values[:3], values[3:]], pa.int64())], ("u",), None)
    assert keys.take(pa.array(codes)).to_pylist() == values
    assert codes.dtype == np.int32
    close = max(values) - min(values) < SPAN_A_RECORD * len(values)
    in_order = sorted(set(values)) if close else list(dict.fromkeys(values))
    assert keys.to_pylist() == in_order


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["a", "b", "a"], pa.string()),
        (["a", "b", "a"], pa.large_string()),
        (["a", "b", "a"], pa.string_view()),
        ([b"a", b"\xff", b"a"], pa.binary()),
        ([b"a", b"\xff", b"a"], pa.binary(1)),
        ([1, 2, 1], pa.int8()),
        ([1, 2, 1], pa.uint64()),
        (["a", None, "a"], pa.dictionary(pa.int8(), pa.string())),
        ([None, None], pa.null()),
        ([None, None], pa.float64()),  # what pandas makes of a column without any value
        ([None, None], pa.dictionary(pa.int8(), pa.float64())),  # and of such a category
        ([], pa.float64()),
    ],
)
def test_types_that_are_keys(values: list[Any], kind: pa.DataType) -> None:
    assert decoded(column(values, kind)) == values


def test_a_dictionary_may_hold_nulls_and_doubles() -> None:
    words = pa.array(["a", None, "a", "b"])
    assert decoded(column(pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3, None]), words))) == [
        "a", None, "a", "b", None,
    ]  # fmt: skip


def test_composed_and_decomposed_letters_are_two_keys() -> None:
    assert decoded(column(["é", "e\u0301", "\0", "", "a\0b"])) == ["é", "e\u0301", "\0", "", "a\0b"]


@pytest.mark.parametrize(("values", "kind", "telling"), [
    ([dt.datetime(2020, 1, 1)], pa.timestamp("ms"),
     "key column 'u' has a type that cannot be a key; got timestamp[ms]; text, integers, bytes, booleans, dates"),
    ([2.0, 1.5], pa.float64(), "key column 'u' has a number with a fraction; got 1.5 in row 1; whole numbers, or"),
    ([[1]], pa.list_(pa.int64()), "got list"), ([{"a": 1}], pa.struct({"a": pa.int64()}), "got struct"),
    ([0.5], pa.float32(), "got 0.5 in row 0"),
])  # fmt: skip
def test_types_that_are_none(values: list[Any], kind: pa.DataType, telling: str) -> None:
    with pytest.raises(UnsupportedData) as caught:
        decoded(column(values, kind))
    assert telling in str(caught.value)


@pytest.mark.parametrize(("bad", "telling"), [
    (pa.array([2**63], pa.uint64()),
     "key column 'u' holds a value that cannot be a key; got Integer value 9223372036854775808"),
    (pa.array([2**63], pa.uint64()).dictionary_encode(), "key column 'u' holds a value that cannot be a key"),
    (pa.array([b"\xed\xa0\x80"]).view(pa.string()), "valid UTF-8, without lone surrogates"),
    (pa.array(["a", "x" * (MAX_KEY_BYTES + 1)]), "a key of u is too long; got 32,769 bytes, xxxx"),
    (pa.array([b"x" * 2**20]), "a key of u is too long; got 1,048,576 bytes, b'xxx"),
])  # fmt: skip
def test_values_that_are_no_key(bad: pa.Array, telling: str) -> None:
    with pytest.raises(InvalidData) as caught:
        decoded(column(bad))
    assert telling in str(caught.value)
    assert len(str(caught.value)) < 300


def test_the_longest_key_is_taken() -> None:
    longest = "é" * (MAX_KEY_BYTES // 2)
    assert decoded(column([longest])) == [longest]


def test_columns_are_joined() -> None:
    assert decoded(column(["UA", "B6", "UA"]), column([1, 2, 1]), sep="@") == ["UA@1", "B6@2", "UA@1"]
    assert decoded(column(["a"]), column(["b"]), column(["c"]), sep="@") == ["a@b@c"]


def test_a_part_that_is_null_makes_the_key_null() -> None:
    assert decoded(column(["a", None, "a", "a"]), column(["b", "b", None, "c"]), sep="|") == ["a|b", None, None, "a|c"]


def test_the_last_part_may_hold_the_separator() -> None:
    assert decoded(column(["a", "a"]), column(["b@c", "@"]), sep="@") == ["a@b@c", "a@@"]


@pytest.mark.parametrize(
    ("first", "second", "sep", "column_name"), [("a@b", "c", "@", "u"), ("a", "b", "aa", "u"), ("é@", "c", "@", "u")]
)
def test_a_separator_inside_an_earlier_part(first: str, second: str, sep: str, column_name: str) -> None:
    with pytest.raises(InvalidData) as caught:
        decoded(column(["x", first]), column(["y", second]), sep=sep)
    telling = f"sep={sep!r} is part of a key value; got {first!r}; a separator that is in no value of {column_name!r}"
    assert telling in str(caught.value)


def test_a_separator_inside_the_middle_part() -> None:
    with pytest.raises(InvalidData, match="got 'b@'; a separator that is in no value of 'v'"):
        decoded(column(["a"]), column(["b@"]), column(["c"]), sep="@")


@given(
    st.lists(st.tuples(LETTERS, LETTERS, LETTERS), min_size=1, max_size=6),
    st.sampled_from(["@", "a", "aa", "ab", "aba", "b@"]),
)
def test_joined_keys_are_as_distinct_as_their_parts(rows: list[tuple[str, ...]], sep: str) -> None:
    try:
        keys = decoded(*(column(list(values)) for values in zip(*rows, strict=True)), sep=sep)
    except InvalidData:
        return
    assert keys == [sep.join(row) for row in rows]
    assert len(set(keys)) == len(set(rows))


def test_bytes_are_not_joined() -> None:
    with pytest.raises(
        UnsupportedData, match="several key columns are joined as text; got large_binary; decode the bytes"
    ):
        decoded(column([b"a"]), column([b"b"]), sep="@")


@pytest.mark.parametrize(
    ("key", "raw"),
    [
        ("é", b"\xc3\xa9"), ("", b""), (b"\xff", b"\xff"), (1, b"\0\0\0\0\0\0\0\1"), (-1, b"\xff" * 8),
        (2**63 - 1, b"\x7f" + b"\xff" * 7), (np.int64(1), b"\0\0\0\0\0\0\0\1"), (np.uint8(1), b"\0\0\0\0\0\0\0\1"),
    ],
)  # fmt: skip
def test_key_bytes(key: Any, raw: bytes) -> None:
    assert key_bytes(key) == raw


NO_KEYS = [
    1.0, True, np.bool_(True), None, ("a",), [1], {}, object(), float("nan"), "\ud800", 2**63, -(2**63) - 1, 10**6_000,
]  # fmt: skip


@pytest.mark.parametrize("key", NO_KEYS, ids=[type(key).__name__ for key in NO_KEYS])
def test_what_has_no_key_bytes(key: Any) -> None:
    with pytest.raises(
        InvalidArgument, match=r"this cannot be a key; got .*; text \(valid Unicode\), an integer of 64 bits or bytes"
    ):
        key_bytes(key)


@given(st.lists(st.text(), unique=True))
def test_ranks_of_text_are_those_of_its_bytes(keys: list[str]) -> None:
    ranks = key_ranks(pa.array(keys, pa.large_string())).tolist()
    by_bytes = sorted(keys, key=str.encode)
    assert ranks == [by_bytes.index(key) for key in keys]


@given(st.lists(INT64, unique=True))
def test_ranks_of_integers_are_those_of_their_bytes(keys: list[int]) -> None:
    by_bytes = sorted(keys, key=key_bytes)
    assert key_ranks(pa.array(keys, pa.int64())).tolist() == [by_bytes.index(key) for key in keys]


def test_negative_integers_come_last() -> None:
    assert key_ranks(pa.array([-1, 0, 5], pa.int64())).tolist() == [2, 0, 1]


def test_text_in_many_chunks_is_hashed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow codes all chunks by one dictionary: to join it with itself took as long again, chunk by chunk."""
    monkeypatch.setattr("sessionkit.records.keys._as_one", lambda dictionaries: pytest.fail("they are one already"))
    keys, codes = encode_keys([pa.chunked_array([["b", "a"], ["c", None], ["a"]])], ("u",), None)
    assert (keys.to_pylist(), codes.tolist()) == (["b", "a", "c"], [0, 1, 2, -1, 1])
