"""Values as typed bytes, and keys whose bytes sort as Kafka's do."""

import enum
import math
import pickle
import struct
import zlib
from collections import Counter, namedtuple
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionkit.errors import StoreCorrupted, UnsupportedData
from sessionkit.records.keys import key_bytes
from sessionkit.stores.typed_bytes import (
    MAX_DEPTH,
    OWN_DEPTH,
    SESSIONS,
    WINDOWS,
    Layout,
    Place,
    key_bounds,
    kind_of_key,
    pack_value,
    time_bounds,
    unpack_key,
    unpack_value,
)

PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | st.decimals(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.binary()
)
VALUES = st.recursive(
    PLAIN,
    lambda parts: (
        st.lists(parts, max_size=4)
        | st.lists(parts, max_size=4).map(tuple)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), parts, max_size=4)
    ),
    max_leaves=20,
)


def same(first: Any, second: Any) -> bool:
    """Equal in value and type, down to the bits of a float and the order of a dict."""
    if type(first) is not type(second):
        return False
    if isinstance(first, float):
        return struct.pack(">d", first) == struct.pack(">d", second)
    if isinstance(first, dict):
        return same(list(first), list(second)) and same(list(first.values()), list(second.values()))
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(same, first, second))
    return bool(first == second)


@given(VALUES)
def test_what_is_packed_comes_back(value: Any) -> None:
    assert same(unpack_value(pack_value(value)), value)


def test_bytes_are_written_down() -> None:
    """A store of today is read by a later version: this is the format."""
    body = b"m" + b"\0\0\0\2" + b"s\0\0\0\1n" + b"i\0\0\0\0\0\0\0\7" + b"s\0\0\0\1x" + b"l\0\0\0\5" + b"NTF"
    body += b"d\x7f\xf0\0\0\0\0\0\0" + b"t\0\0\0\1" + b"b\0\0\0\2\0\xff"
    value = {"n": 7, "x": [None, True, False, math.inf, (b"\0\xff",)]}
    assert pack_value(value) == zlib.crc32(body).to_bytes(4) + body


@pytest.mark.parametrize("value", [math.nan, -0.0, math.inf, 5e-324, 2**63 - 1, -(2**63), "", b"", [], {}, (), "\0"])
def test_corner_values(value: Any) -> None:
    assert same(unpack_value(pack_value(value)), value)


@pytest.mark.parametrize(
    ("value", "plain"),
    [(np.int64(7), 7), (np.uint8(7), 7), (np.float64(0.5), 0.5), (np.float32(0.5), 0.5), (np.True_, True)],
)
def test_numbers_of_numpy_become_those_of_python(value: Any, plain: Any) -> None:
    assert same(unpack_value(pack_value(value)), plain)
    assert same(unpack_value(pack_value([value])), [plain])


class Colour(enum.IntEnum):
    """An int that would come back as another type."""

    RED = 1


class Rude:
    """Cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError


Pair = namedtuple("Pair", "a b")
ITSELF: list[Any] = []
ITSELF.append(ITSELF)
DEEP: Any = 1
for _ in range(MAX_DEPTH + 1):
    DEEP = [DEEP]


def test_times_have_no_bytes_and_their_refusal_names_the_way() -> None:
    with pytest.raises(UnsupportedData, match=r'times as integers: a column made by df\["at"\].astype\("int64"\)'):
        pack_value(pd.Timestamp("2026-03-02", tz="UTC"))


@pytest.mark.parametrize(
    "value",
    [
        2**63, -(2**63) - 1, np.uint64(2**63), 10**5000, "\ud800", {1: 2}, {"a": {b"k": 1}}, {1, 2}, 1j, Fraction(1, 3),
        np.datetime64("2024-01-01"), np.array([1]), bytearray(b"a"), Colour.RED, Pair(1, 2), Counter("a"), object(),
        Rude(), len, ITSELF, DEEP,
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_has_no_bytes_is_refused(value: Any) -> None:
    for offered in (value, {"kept": [value]}):
        with pytest.raises(UnsupportedData) as caught:
            pack_value(offered)
        assert "an aggregate cannot be written to a store on disk; got " in str(caught.value)
        assert "this aggregation has no encode= and decode= for other types" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_size_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sessionkit.stores.typed_bytes.MAX_BYTES", 20)
    assert unpack_value(pack_value("x" * 20)) == "x" * 20
    with pytest.raises(UnsupportedData, match="at most 32 in each other and 1 GiB"):
        pack_value(["x" * 20])


def test_depth_is_bounded_on_both_sides() -> None:
    value: Any = 1
    own: Any = 1
    for _ in range(MAX_DEPTH):
        value = [value]
    assert unpack_value(pack_value(value)) == value
    for _ in range(OWN_DEPTH):
        own = [own]
    assert unpack_value(pack_value((own,))) == (own,), "in a row"
    with pytest.raises(UnsupportedData, match="32 in each other"):
        pack_value(([own],))
    body = b"l\0\0\0\1" * 5000 + b"N"
    with pytest.raises(StoreCorrupted, match="too many lists"):
        unpack_value(zlib.crc32(body).to_bytes(4) + body)


# ---- damage


@given(VALUES, st.data())
def test_every_flipped_bit_is_noticed(value: Any, data: st.DataObject) -> None:
    raw = bytearray(pack_value(value, b"row"))
    at = data.draw(st.integers(0, len(raw) * 8 - 1))
    raw[at // 8] ^= 1 << at % 8
    with pytest.raises(StoreCorrupted):
        unpack_value(bytes(raw), b"row")


@given(VALUES, st.integers(0, 400))
def test_every_cut_is_noticed(value: Any, length: int) -> None:
    raw = pack_value(value)
    with pytest.raises(StoreCorrupted):
        unpack_value(raw[: min(length, len(raw) - 1)])
    with pytest.raises(StoreCorrupted):
        unpack_value(raw + b"\0")


def test_a_value_belongs_to_its_row() -> None:
    raw = pack_value(7, b"row of ada")
    assert unpack_value(raw, b"row of ada") == 7
    with pytest.raises(StoreCorrupted, match="a stored value fails its checksum"):
        unpack_value(raw, b"row of bob")


@pytest.mark.parametrize(
    "body",
    [
        b"", b"x", b"i\0", b"d\0\0", b"s\0\0", b"s\0\0\0\2a", b"s\0\0\0\1\xff", b"l\xff\xff\xff\xffN", b"l\0\0\0\2N",
        b"m\0\0\0\1NN", b"m\0\0\0\2s\0\0\0\1aNNN", b"m\0\0\0\1s\0\0\0\1a", b"NN", b"\x80\x04N.",
    ],
)  # fmt: skip
def test_bytes_with_a_right_checksum_and_a_wrong_content(body: bytes) -> None:
    with pytest.raises(StoreCorrupted):
        unpack_value(zlib.crc32(body).to_bytes(4) + body)


@pytest.mark.parametrize(
    ("body", "telling"),
    [(b"s\0\0\0\2a", "2 parts in 1 byte"), (b"l\0\0\0\3NN", "3 parts in 2 bytes"), (b"x", "type byte b'x'")],
)
def test_what_cannot_be_read_is_named(body: bytes, telling: str) -> None:
    with pytest.raises(
        StoreCorrupted, match=f"a stored value cannot be read; got {telling}; a value as it was written"
    ):
        unpack_value(zlib.crc32(body).to_bytes(4) + body)


class Attack:
    """Runs when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (pytest.fail, ("a pickle was run",))


def test_a_pickle_is_only_bytes() -> None:
    raw = pickle.dumps(Attack())
    for bomb in (raw, zlib.crc32(raw).to_bytes(4) + raw):
        with pytest.raises(StoreCorrupted):
            unpack_value(bomb)


# ---- keys


@pytest.mark.parametrize("key", ["", "ada", "é\0", 0, -1, 2**63 - 1, -(2**63), b"", b"\0\xff"])
def test_keys_come_back(key: Any) -> None:
    assert same(unpack_key(key_bytes(key), kind_of_key(key)), key)


@pytest.mark.parametrize(("raw", "kind"), [(b"\xff", "str"), (b"\0" * 7, "int"), (b"", "int"), (b"a", "unknown")])
def test_bytes_that_are_no_key(raw: bytes, kind: str) -> None:
    with pytest.raises(StoreCorrupted, match="a stored key cannot be read"):
        unpack_key(raw, kind)


def test_layouts_are_those_of_kafka() -> None:
    session, window = Place(b"ada", 5, 258), Place(b"ada", 258, 258)
    end, start, sequence = b"\0\0\0\0\0\0\1\2", b"\0\0\0\0\0\0\0\5", b"\0\0\0\0"
    assert SESSIONS.by_key(session) == b"ada" + end + start
    assert SESSIONS.by_time(session) == end + start + b"ada"
    assert WINDOWS.by_key(window) == b"ada" + end + sequence
    assert WINDOWS.by_time(window) == end + b"ada" + sequence


RAW_KEYS = st.binary(max_size=4) | st.text("\0\x01a\x7f", max_size=3).map(str.encode)
TIMES = st.integers(0, 300) | st.integers(0, 2**63 - 1)


@st.composite
def places(draw: st.DrawFn) -> Place:
    start, end = sorted((draw(TIMES), draw(TIMES)))
    return Place(draw(RAW_KEYS), start, end)


@given(places())
def test_places_come_back(place: Place) -> None:
    window = place._replace(start_ms=place.time_ms)
    for layout, there in ((SESSIONS, place), (WINDOWS, window)):
        assert layout.from_by_key(layout.by_key(there)) == there
        assert layout.from_by_time(layout.by_time(there)) == there
        assert layout.is_long_enough(layout.by_key(there))
    assert not SESSIONS.is_long_enough(b"\0" * 15)
    assert not WINDOWS.is_long_enough(b"\0" * 11)


@given(st.lists(places(), max_size=12))
def test_bytes_sort_by_key_and_time(found: list[Place]) -> None:
    """Where no key starts with another, as among integers."""
    found = [place._replace(key=key_bytes(len(place.key))) for place in found]
    by_key = sorted(found, key=lambda p: (p.key, p.time_ms, p.start_ms))
    assert sorted(found, key=SESSIONS.by_key) == by_key
    by_time = sorted(found, key=lambda p: (p.time_ms, p.start_ms, p.key))
    assert sorted(found, key=SESSIONS.by_time) == by_time


def test_a_shorter_key_comes_before_its_extension() -> None:
    keys = [b"", b"B", b"a", b"aa", b"ab", b"\xc3\xa9"]
    assert sorted(set(keys), key=lambda key: SESSIONS.by_key(Place(key, 5, 9))) == keys


@given(places(), st.none() | RAW_KEYS, st.none() | RAW_KEYS, TIMES, TIMES, st.sampled_from([SESSIONS, WINDOWS]))
def test_bounds_leave_nothing_out(
    place: Place, low: bytes | None, high: bytes | None, first: int, last: int, layout: Layout
) -> None:
    first, last = sorted((first, last))
    place = place if layout.has_end else place._replace(start_ms=place.time_ms)
    is_in_keys = (low is None or low <= place.key) and (high is None or place.key <= high)
    if is_in_keys and first <= place.time_ms <= last:
        lower, upper = key_bounds(low, high, first, last)
        assert lower <= layout.by_key(place) and (upper is None or layout.by_key(place) < upper)
    lower, upper = time_bounds(first, last)
    assert (lower <= layout.by_time(place) < upper) == (first <= place.time_ms <= last)


@given(places(), TIMES)
def test_bounds_of_one_key_hold_no_time_outside(place: Place, first: int) -> None:
    lower, upper = key_bounds(place.key, place.key, first, 2**63 - 1)
    assert (lower <= SESSIONS.by_key(place) < (upper or b"")) == (place.time_ms >= first)


def test_a_prefix_of_the_highest_key_is_within_the_bounds() -> None:
    """Its time may be larger than what follows in the key."""
    for high, key, end in (
        (b"\x7f\x7f", b"", 2**63 - 1),
        (b"a\0", b"a", 300),
        (b"a\0\0", b"a", 300),
        (b"a\0", b"a", 0),
        (b"\0\0", b"", 9),
    ):
        _, upper = key_bounds(None, high, 0, end)
        assert SESSIONS.by_key(Place(key, end, end)) < (upper or b"")


@pytest.mark.parametrize("high", [b"a\0\xff", b"a\0\0\0\1", b"\0" * 9 + b"\1", b"a\0\0" + b"\xff" * 20])
def test_the_highest_key_is_within_the_bounds_though_it_goes_on_like_a_time(high: bytes) -> None:
    for end in (0, 300, 2**62):
        _, upper = key_bounds(None, high, 0, end)
        assert SESSIONS.by_key(Place(high, end, end)) < (upper or b"")


def test_bounds_of_a_long_key_are_found_quickly() -> None:
    key_bounds(b"", b"\0" * 32_768, 0, 2**63 - 1)
