"""The records of a page as columns that take little room: differences in the smallest whole numbers, compressed."""

from __future__ import annotations

import base64
import gzip
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.aggregations.contract import Aggregation
from sessionkit.trace.trace import Trace
from sessionkit.views.page.sample import MOST_EXACT, Sample

RESULTS = ("count", "sum", "min", "max", "mean")  # what the page computes
_WHOLE = ("u1", "i1", "u2", "i2", "u4", "i4")  # the names that the page has for them, small ones first


class Packed(NamedTuple):
    """Columns as one compressed text, and where each lies: (name, type, count)."""

    layout: list[tuple[str, str, int]]
    data: str


def packed(columns: Mapping[str, npt.NDArray[Any]]) -> Packed:
    """Columns in the smallest type that holds them exactly, one behind the other, as base64 of gzip."""
    small = {name: _smallest(column) for name, column in columns.items()}
    content = b"".join(column.tobytes() for column in small.values())
    layout = [(name, column.dtype.str[1:], len(column)) for name, column in small.items()]
    return Packed(layout, base64.b64encode(gzip.compress(content, 9, mtime=0)).decode())


def _smallest(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The column in little-endian bytes."""
    if not len(column):
        return column.astype("<u1")
    if np.issubdtype(column.dtype, np.floating) and not (np.isfinite(column) & (column == np.round(column))).all():
        return column.astype("<f8")
    low, high = column.min(), column.max()
    for name in _WHOLE:
        if np.iinfo(name).min <= low and high <= np.iinfo(name).max and not np.signbit(column[column == 0]).any():
            return column.astype(f"<{name}")
    return column.astype("<f8")


def record_columns(trace: Trace, chosen: Sample) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """The columns of these records, and what it takes to make them whole again.

    `stream` is the stream time at the record's arrival among all records of the run, as its difference from the record
    before it in its partition; `late` is how far its own time lies behind that. Both count in `unit` ms.
    """
    batch, rows = trace.batch, chosen.rows
    partition, stream, offset = batch.partition[rows], trace.stream_time_ms[rows], batch.offset[rows]
    usable = batch.usable[rows] & (batch.key[rows] >= 0)
    late = np.where(usable, stream - batch.timestamp_ms[rows], 0)
    code = np.full(len(trace.keys) + 1, -1, np.int64)
    code[chosen.keys] = np.arange(len(chosen.keys))
    count = max(len(batch.partitions), 1)
    begun = stream >= 0  # there is no stream time before the first usable record
    before = np.bincount(partition[~begun], minlength=count)
    first_stream, rise = _differences(stream, partition, count, begun)
    first_offset, step = _differences(offset, partition, count)
    unit = math.gcd(int(np.gcd.reduce(rise)), int(np.gcd.reduce(late))) or 1 if len(rows) else 1
    columns = {"key": code[batch.key[rows]], "stream": rise // unit, "late": late // unit, "offset": step}
    if count > 1:
        columns["partition"] = partition
    if not usable.all():
        rejected = np.zeros(len(trace), np.uint8) if batch.rejected is None else batch.rejected
        columns["reason"] = np.where(usable, 0, rejected[rows])
    told = {
        "unit": unit,
        "before": before.tolist(),
        "firstStream": first_stream.tolist(),
        "firstOffset": first_offset.tolist(),
        "lastStream": trace.last_stream_time_ms.tolist() or [-1],
        "partitionNumbers": batch.partitions.tolist() or [0],
    }
    return columns, told


def _differences(
    column: npt.NDArray[np.int64],
    partition: npt.NDArray[np.int32],
    partitions: int,
    counts: npt.NDArray[np.bool_] | bool = True,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(the first number of each partition that counts, each number less the one before it in its partition)."""
    first, step = np.zeros(partitions, np.int64), np.zeros(len(column), np.int64)
    for p in range(partitions):
        mine = np.flatnonzero((partition == p) & counts)
        if len(mine):
            first[p] = column[mine[0]]
            step[mine[1:]] = np.diff(column[mine])
    return first, step


class Results(NamedTuple):
    """What the page computes of each window: (name, what, the number of its column, or None); and what it cannot."""

    named: list[tuple[str, str, int | None]]
    columns: dict[str, npt.NDArray[Any]]
    left_out: list[str]


def result_columns(
    aggregations: tuple[tuple[str, Aggregation], ...], values: Mapping[str, Any], chosen: Sample
) -> Results:
    """The numbers that the page's results are made of, each column once; what is missing is marked in another one."""
    found, place = Results([], {}, []), dict[str, int]()
    for name, aggregation in aggregations:
        what, column = aggregation.built_in, next(iter(aggregation.columns), "")
        if what == "count":
            found.named.append((name, what, None))
            continue
        numbers = _numbers(values[column].take(pa.array(chosen.rows))) if what in RESULTS else None
        if numbers is None:
            found.left_out.append(name)
            continue
        if column not in place:
            place[column] = len(place)
            found.columns[f"value{place[column]}"], missing = numbers
            if missing.any():
                found.columns[f"missing{place[column]}"] = missing.astype(np.uint8)
        found.named.append((name, what, place[column]))
    return found


def _numbers(column: pa.Array) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]] | None:
    """A column of numbers with 0 for what is missing, and what is; None if JavaScript has no such numbers."""
    kind, missing = column.type, np.asarray(column.is_null())
    if pa.types.is_null(kind):
        return np.zeros(len(column), np.uint8), missing
    if pa.types.is_boolean(kind):
        return np.asarray(column.cast(pa.uint8()).fill_null(0)), missing
    if pa.types.is_decimal(kind):
        column = column.cast(pa.float64(), safe=False)
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return None
    numbers = np.asarray(column.fill_null(0))
    if (
        pa.types.is_integer(kind)
        and len(numbers)
        and not -MOST_EXACT <= int(numbers.min()) <= int(numbers.max()) < MOST_EXACT
    ):
        return None
    return numbers.astype(np.float64) if numbers.dtype.kind == "f" else numbers, missing
