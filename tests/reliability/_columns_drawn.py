"""Columns at random: what each row holds in plain Python, and the same rows in one of Arrow's many forms."""

import datetime as dt
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

PER_S = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
EPOCH = dt.datetime(1970, 1, 1)
WORDS = ["", "a", "b", "ab", "é", "e\u0301", "a\0b", "7", "007", "NA", "null", " ", "\U0001f600", "z" * 70, "<b>", "\n"]
NUL_BYTES = [b"", b"\0", b"a", b"\xff", b"\xff\0", b"a\0"]


@dataclass(frozen=True)
class Kind:
    """A type of Arrow: how a value is drawn, and what it is in plain Python."""

    type: pa.DataType
    draw: Callable[[Random], Any]
    meaning: Callable[[Any], Any] = lambda raw: raw
    build: Callable[[list[Any], pa.DataType], pa.Array] = pa.array
    family: str = "other"


@dataclass
class Column:
    """Rows as drawn: `rows` in plain Python (None: missing), `array` in Arrow."""

    kind: Kind
    rows: list[Any]
    array: pa.Array | pa.ChunkedArray
    forms: list[str] = field(default_factory=list)


def plain(value: Any) -> Any:
    """A value of any library as plain Python that can be compared: numbers as numbers, times in nanoseconds."""
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64 | np.timedelta64):
        value = value.item()
    if isinstance(value, float):
        if value != value or abs(value) == float("inf"):
            return "nan" if value != value else value
        return int(value) if value.is_integer() else Fraction(value)
    if isinstance(value, bool | int):
        return int(value)
    if isinstance(value, Decimal):
        return Fraction(value)
    if isinstance(value, np.datetime64 | np.timedelta64):
        unit = np.datetime_data(value.dtype)[0]
        return None if np.isnat(value) else ("t", int(value.astype(np.int64)) * (10**9 // PER_S[unit]))
    if isinstance(value, pd.Timestamp | pd.Timedelta):
        return "t", int(value.to_numpy().astype(np.int64)) * (10**9 // PER_S[value.unit])
    if isinstance(value, dt.datetime):
        naive = value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
        return "t", (naive - EPOCH) // dt.timedelta(microseconds=1) * 1000
    if isinstance(value, dt.date):
        return "t", (value.toordinal() - EPOCH.toordinal()) * 86_400 * 10**9
    if isinstance(value, dt.timedelta):
        return "t", value // dt.timedelta(microseconds=1) * 1000
    if isinstance(value, dt.time):
        return "t", ((value.hour * 60 + value.minute) * 60 + value.second) * 10**9 + value.microsecond * 1000
    return _plain_other(value)


def _plain_other(value: Any) -> Any:
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, dict):
        if list(value) == ["key", "value"]:  # an entry of a map, in polars
            return plain(value["key"]), plain(value["value"])
        return tuple((name, plain(part)) for name, part in value.items())  # as a map of polars, too
    if hasattr(value, "months") and hasattr(value, "nanoseconds"):  # a DateOffset of pandas, or Arrow's own
        return "i", value.months, value.days, value.nanoseconds
    if isinstance(value, list | tuple | np.ndarray) or type(value).__name__ == "Series":
        return tuple(plain(part) for part in value)
    return value


def _integers(bits: int, *, signed: bool) -> Callable[[Random], int]:
    least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)

    def draw(rng: Random) -> int:
        return rng.choice([least, most, most // 2 + 1]) if rng.random() < 0.05 else max(least, rng.randint(-3, 9))

    return draw


def _quarters(rng: Random) -> float:
    if rng.random() < 0.06:
        return rng.choice([float("nan"), float("inf"), float("-inf"), -0.0])
    return rng.randint(-40, 40) / 4


def _span(lowest: int, highest: int, wide: int, step: int) -> Callable[[Random], int]:
    def draw(rng: Random) -> int:
        if rng.random() < 0.01:
            return rng.randint(-wide, wide) // step * step
        return rng.randint(0 if rng.random() < 0.9 else lowest, highest) // step * step

    return draw


def _moment(kind: pa.DataType, unit: str, family: str, draw: Callable[[Random], int]) -> Kind:
    def build(raws: list[Any], wanted: pa.DataType) -> pa.Array:
        storage = pa.int32() if wanted.bit_width == 32 else pa.int64()
        return pa.array(raws, storage).view(wanted)

    factor = 86_400 * 10**9 if unit == "d" else 10**9 // PER_S[unit]
    return Kind(kind, draw, lambda raw: ("t", raw * factor), build, family)


def _moments() -> list[Kind]:
    found = []
    for unit, per in PER_S.items():
        wide, step = 2**62 // (10**9 // per), 1000 if unit == "ns" else 1  # Python's times have microseconds
        for zone in (None, "UTC", "Europe/Berlin"):
            found.append(_moment(pa.timestamp(unit, zone), unit, "timestamp", _span(-5 * per, 90 * per, wide, step)))
        found.append(_moment(pa.duration(unit), unit, "time", _span(-9 * per, 99 * per, wide, step)))
    found.append(_moment(pa.date32(), "d", "time", lambda rng: rng.randint(-400, 40_000)))
    days = 86_400_000
    found.append(_moment(pa.date64(), "ms", "time", lambda rng: rng.randint(-400, 40_000) * days))
    for kind, unit in (
        (pa.time32("s"), "s"),
        (pa.time32("ms"), "ms"),
        (pa.time64("us"), "us"),
        (pa.time64("ns"), "ns"),
    ):
        step = 1000 if unit == "ns" else 1
        found.append(_moment(kind, unit, "time", lambda rng, u=unit, s=step: rng.randrange(0, 86_400 * PER_S[u], s)))
    return found


def _words(rng: Random) -> str:
    return rng.choice(WORDS)


def _bytes(rng: Random) -> bytes:
    return rng.choice(NUL_BYTES)


def _maybe(draw: Callable[[Random], Any]) -> Callable[[Random], Any]:
    return lambda rng: None if rng.random() < 0.15 else draw(rng)


def _lists(draw: Callable[[Random], Any], count: int | None = None) -> Callable[[Random], Any]:
    return lambda rng: [_maybe(draw)(rng) for _ in range(rng.randint(0, 3) if count is None else count)]


def _union(raws: list[Any], kind: pa.DataType) -> pa.Array:
    values = [pa.array([raw or 0 for raw in raws], pa.int64()), pa.array([str(raw) for raw in raws])]
    codes = pa.array([0] * len(raws), pa.int8())
    if kind.mode == "sparse":
        return pa.UnionArray.from_sparse(codes, values, ["n", "t"])
    return pa.UnionArray.from_dense(codes, pa.array(range(len(raws)), pa.int32()), values, ["n", "t"])


def _extension(raws: list[Any], kind: pa.DataType) -> pa.Array:
    return pa.ExtensionArray.from_storage(kind, pa.array(raws, kind.storage_type))


INTS = [getattr(pa, name)() for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")]
TEXTS = [pa.string(), pa.large_string(), pa.string_view()]
BYTES = [pa.binary(), pa.large_binary(), pa.binary_view()]
NUMBERS = [
    *(Kind(kind, _integers(kind.bit_width, signed=pa.types.is_signed_integer(kind)), family="int") for kind in INTS),
    *(Kind(kind, _quarters, plain, family="float") for kind in (pa.float16(), pa.float32(), pa.float64())),
    Kind(pa.bool_(), lambda rng: rng.random() < 0.5, plain, family="bool"),
]
KEYS = [
    *(Kind(kind, _words, family="text") for kind in TEXTS),
    *(Kind(kind, _bytes, family="bytes") for kind in BYTES),
    Kind(pa.binary(2), lambda rng: rng.choice([b"ab", b"\0\0", b"\xff\0"]), family="bytes"),
    *NUMBERS[:8],
]
MOMENTS = _moments()
_DEEP = pa.struct([("x", pa.list_(pa.string_view())), ("y", pa.struct([("z\0", pa.int64())]))])
NESTED = [
    *(
        Kind(make(inner), _lists(draw), plain, family="nested")
        for make in (pa.list_, pa.large_list, pa.list_view, pa.large_list_view)
        for inner, draw in ((pa.string_view(), _words), (pa.int64(), _integers(64, signed=True)))
    ),
    Kind(pa.list_(pa.int64(), 2), _lists(_integers(64, signed=True), 2), plain, family="nested"),
    Kind(pa.list_(pa.string_view(), 2), _lists(_words, 2), plain, family="nested"),
    Kind(
        pa.struct([("a", pa.int8()), ("b", pa.string())]), lambda rng: {"a": 1, "b": _words(rng)}, plain,
        family="nested",
    ),
    Kind(_DEEP, lambda rng: {"x": _lists(_words)(rng), "y": {"z\0": 5}}, plain, family="nested"),
    Kind(pa.map_(pa.string_view(), pa.int32()), lambda rng: [(w, 3) for w in {_words(rng)}], plain, family="nested"),
]  # fmt: skip
OTHERS = [
    *(
        Kind(make(5, 2), lambda rng: Decimal(rng.randint(-999, 999)) / 4, plain)
        for make in (pa.decimal32, pa.decimal64)
    ),
    *(
        Kind(make(9, 2), lambda rng: Decimal(rng.randint(-999, 999)) / 4, plain)
        for make in (pa.decimal128, pa.decimal256)
    ),
    Kind(pa.month_day_nano_interval(), lambda rng: (rng.randint(-9, 9), 2, 3), lambda raw: ("i", *raw)),
    Kind(pa.null(), lambda rng: None),
    Kind(pa.dense_union([pa.field("n", pa.int64()), pa.field("t", pa.string())]), lambda rng: 1, build=_union),
    Kind(pa.sparse_union([pa.field("n", pa.int64()), pa.field("t", pa.string())]), lambda rng: 1, build=_union),
    Kind(pa.uuid(), lambda rng: rng.randbytes(16), build=_extension, family="extension"),
    Kind(pa.json_(), lambda rng: "{}", build=_extension, family="extension"),
    Kind(pa.bool8(), lambda rng: rng.randint(0, 1), build=_extension, family="extension"),
    Kind(pa.opaque(pa.string(), "thing", "somebody"), _words, build=_extension, family="extension"),
]  # fmt: skip
VALUES = [*NUMBERS, *KEYS, *MOMENTS, *NESTED, *OTHERS]


FORMS = ["as it is", "as it is", "sliced", "dictionary", "chunks", "chunks of dictionaries", "runs"]


def draw_column(rng: Random, kind: Kind, size: int, *, missing: float | None = None, runs: bool = True) -> Column:
    """`size` rows of this kind, whole or in chunks, sliced out of more, as a dictionary, in runs, or as it is."""
    if missing is None:
        missing = rng.choice([0, 0, 0.2, 0.2, 1])
    raws = [None if rng.random() < missing else kind.draw(rng) for _ in range(size)]
    if pa.types.is_union(kind.type):
        raws = [1 for _ in raws]
    rows = [None if raw is None else kind.meaning(raw) for raw in raws]
    form = rng.choice(FORMS if runs else FORMS[:-1])
    if pa.types.is_union(kind.type):  # Arrow finds two of one type unequal
        form = "as it is"
    array: Any
    if form == "sliced":
        before, after = rng.randint(0, 3), rng.randint(0, 3)
        around = [[_raw(rng, kind) for _ in range(count)] for count in (before, after)]
        array = kind.build([*around[0], *raws, *around[1]], kind.type).slice(before, size)
    elif form in ("chunks", "chunks of dictionaries"):
        cuts = sorted(rng.randint(0, size) for _ in range(rng.randint(0, 3)))
        pairs = zip([0, *cuts], [*cuts, size], strict=True)
        chunks = [kind.build(raws[lo:hi], kind.type) for lo, hi in pairs]
        if form == "chunks of dictionaries" and _codes_well(kind):
            codes = rng.choice(INTS)
            chunks = [_dictionary(rng, chunk, codes) for chunk in chunks]
        array = pa.chunked_array(chunks)
    else:
        array = kind.build(raws, kind.type)
        if form == "dictionary" and _codes_well(kind):
            array = _dictionary(rng, array, rng.choice(INTS))
        elif form == "runs" and not pa.types.is_null(kind.type):
            array = _runs(rng, array)
        else:
            form = "as it is"
    return Column(kind, rows, array, [form])


def _raw(rng: Random, kind: Kind) -> Any:
    return 1 if pa.types.is_union(kind.type) else kind.draw(rng)


def _codes_well(kind: Kind) -> bool:
    return kind.family != "extension" and not pa.types.is_union(kind.type)


def _dictionary(rng: Random, array: pa.Array, codes: pa.DataType) -> pa.Array:
    """Every row its own entry, or missing by its code or by its entry, with one more entry that nobody uses."""
    size = len(array)
    order = list(range(size))
    rng.shuffle(order)
    entries = array.take(pa.array(order, pa.int64())) if not _has_views(array.type) else None
    place = {row: code for code, row in enumerate(order)}
    if entries is None:
        entries, place = array, {row: row for row in range(size)}
    drop = rng.random() < 0.5
    indices = [None if drop and not array[row].is_valid else place[row] for row in range(size)]
    return pa.DictionaryArray.from_arrays(pa.array(indices, codes), entries)


def _has_views(kind: pa.DataType) -> bool:
    return "view" in str(kind)


def _runs(rng: Random, array: pa.Array) -> pa.Array:
    """Each row a run; or the first a run of two, whose first row is cut off, so that the offset begins no run."""
    ends = rng.choice([pa.int16(), pa.int32(), pa.int64()])
    lead = 1 if len(array) and rng.random() < 0.5 else 0
    ended = range(1 + lead, len(array) + 1 + lead)
    return pa.RunEndEncodedArray.from_arrays(pa.array(ended, ends), array).slice(lead, len(array))
