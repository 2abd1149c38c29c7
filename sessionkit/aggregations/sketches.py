"""Sketches: of however many different values a few numbers, by which these are counted nearly, in a bounded size.

A sketch keeps the `MOST` smallest hashes of the values that it has seen, and the next one, and nothing else. So it is
the same, byte for byte, in whatever order values come and sketches are united. The library calls it a theta sketch.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from decimal import Context, Decimal
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.aggregations.list_columns import distinct, without_nulls
from sessionkit.base.arrays import numpy_array
from sessionkit.errors import SketchesUnavailable, StoreCorrupted, errors_as, install, problem

if TYPE_CHECKING:
    from datasketches import compact_theta_sketch

_LOG_MOST = 12
MOST = 2**_LOG_MOST  # hashes of 8 bytes
SKETCH = pa.large_binary()  # as a store keeps one
_MICROSECONDS = {"s": Decimal(1_000_000), "ms": Decimal(1_000), "us": Decimal(1), "ns": Decimal("0.001")}
_ALL_DIGITS = Context(prec=100)  # more than decimals of Arrow have


def check_library() -> None:
    """Refuses approximate aggregations where the library that makes sketches is not installed."""
    if find_spec("datasketches") is None:
        what = "approximate aggregations need Apache DataSketches"
        raise SketchesUnavailable(problem(what, "no datasketches", install("sketches")))


def without_units(column: pa.Array) -> pa.Array:
    """Times and lengths of time as numbers of microseconds, dates as numbers of days; other columns as they are."""
    kind = column.type
    if pa.types.is_date(kind):
        return column.cast(pa.date32()).view(pa.int32())
    if not pa.types.is_temporal(kind):
        return column
    whole = column.view(pa.int32() if kind.bit_width == 32 else pa.int64()).cast(pa.decimal128(19))
    return pc.multiply(whole, pa.scalar(_MICROSECONDS[kind.unit]))


def hashable(value: Any) -> float | str:
    """What the library hashes for a value: the same for equal ones, whatever type their column has."""
    if isinstance(value, float):
        return value
    if isinstance(value, str):
        return f"={value}"  # as the library skips empty texts, and numbers below are texts, too
    if isinstance(value, bytes):
        return f"={value.decode('latin-1')}"
    if isinstance(value, dt.date | dt.time | dt.timedelta):
        exact = value.to_numpy() if hasattr(value, "to_numpy") else value  # one of pandas, with nanoseconds
        return hashable(without_units(pa.array([exact]))[0].as_py())
    number = float(value)
    return number if number == value else f"{_ALL_DIGITS.normalize(Decimal(value)):f}"


def united(sketches: Sequence[bytes], values: Iterable[float | str] = ()) -> bytes:
    """The sketch of all that these have seen and of the values, as `hashable` makes them."""
    from datasketches import theta_union, update_theta_sketch

    added = update_theta_sketch(_LOG_MOST)
    for value in values:
        added.update(value)
    added.trim()  # to the smallest hashes: until then it keeps more of them in one order than in another
    if not sketches:
        return added.compact().serialize()
    union = theta_union(_LOG_MOST)
    union.update(added)
    for each in sketches:
        union.update(_checked(each))
    return union.get_result().serialize()


def how_many(sketch: bytes) -> int:
    """How many different values a sketch has seen: exactly up to `MOST`, estimated beyond."""
    return round(_checked(sketch).get_estimate())


def _checked(held: bytes) -> compact_theta_sketch:
    """What a store holds as the library's object, if it is a sketch that `united` can have made."""
    from datasketches import compact_theta_sketch

    want = "a sketch as it was written"
    with errors_as(StoreCorrupted, "a stored sketch cannot be read", want, (ValueError, IndexError, RuntimeError)):
        sketch = compact_theta_sketch.deserialize(held)
    count = min(sketch.num_retained, MOST + 1, len(held) // 8)
    hashes = np.frombuffer(held, "<u8", count, len(held) - 8 * count)  # they stand last, in order
    rises = not count or bool(hashes[0] > 0 and hashes[-1] < sketch.theta64 and (hashes[1:] > hashes[:-1]).all())
    is_full = count == MOST or (count < MOST and not sketch.is_estimation_mode())
    if not (rises and sketch.is_ordered() and is_full) or sketch.serialize() != held:
        raise StoreCorrupted(problem("a stored sketch is damaged", f"{len(held):,} bytes", want))
    return sketch


def sketches_of(lists: pa.ListArray) -> pa.Array:
    """A sketch for each list of values and sketches."""
    values, sketches = lists.flatten().flatten()
    new = distinct(pa.ListArray.from_arrays(lists.offsets, values))
    old = without_nulls(pa.ListArray.from_arrays(lists.offsets, sketches))
    coded = new.flatten().dictionary_encode()
    names = [hashable(value) for value in coded.dictionary.to_pylist()]
    codes, held = coded.indices.to_pylist(), old.flatten().to_pylist()
    made, a, b = [], 0, 0
    for to_a, to_b in zip(numpy_array(new.offsets)[1:].tolist(), numpy_array(old.offsets)[1:].tolist(), strict=True):
        made.append(united(held[b:to_b], [names[code] for code in codes[a:to_a]]))
        a, b = to_a, to_b
    return pa.array(made, SKETCH)
