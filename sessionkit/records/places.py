"""Where records stood: the partition, also as Kafka's partitioner picks it, and the offset, which rises within it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sessionkit.base.arrays import Bytes, Codes, Flags, Longs, numpy_array
from sessionkit.base.calls import called_as
from sessionkit.base.decisions import AHEAD, BAD_TIME, NEGATIVE_TIME, NULL_KEY
from sessionkit.errors import InvalidArgument, InvalidData, UnsupportedData, errors_as, problem
from sessionkit.records.keys import key_bytes
from sessionkit.records.loops import first_not_rising, partition_codes
from sessionkit.records.row_names import counted_rows, row_name
from sessionkit.records.source import Source
from sessionkit.records.time_text import is_text_type

_M, _R, _SEED, _MASK = 0x5BD1E995, 24, 0x9747B28C, 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The 32-bit murmur2 hash of `data`, signed, as Kafka's Utils.murmur2 gives it."""
    length = len(data)
    h = _SEED ^ length
    for at in range(0, length - 3, 4):
        k = int.from_bytes(data[at : at + 4], "little") * _M & _MASK
        k ^= k >> _R
        h = (h * _M & _MASK) ^ (k * _M & _MASK)
    tail = data[length & ~3 :]
    if tail:
        h = (h ^ int.from_bytes(tail, "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    h ^= h >> 15
    return h - 2**32 if h >= 2**31 else h


@called_as('sk.partition_for("ada", 4)')
def partition_for(key: str | int | bytes, partitions: int) -> int:
    """The partition of `key` in a topic with `partitions` partitions.

    Raises:
        InvalidArgument: `key` is neither text, an integer nor bytes, or `partitions` is less than 1.
    Source:
        Kafka's BuiltInPartitioner.partitionForKey.
    Example:
        >>> partition_for("ada", 4)
        1
    """
    if type(partitions) is not int or partitions < 1:  # True is an int, too
        raise InvalidArgument(problem("partitions must be an integer of 1 or more", repr(partitions), "such as 4"))
    return (murmur2(key_bytes(key)) & 0x7FFFFFFF) % partitions


def partition_of_keys(keys: pa.Array, partitions: int) -> Codes:
    """The partition of each of `keys`."""
    return np.array([partition_for(key, partitions) for key in keys.to_pylist()], np.int32)


SMALL_PARTITION_NUMBER = 4096  # smaller ones, or smaller than there are records, are coded without a sort

IN_ORDER = "give the records in offset order, or pass sort=True in the plan"
ONCE = "remove the duplicate"
FROM_A_SOURCE = (
    "a source that delivers each partition in increasing order of offsets, such as Kafka; with files, one range of "
    "offsets each"
)


def not_after(partition: int, offset: int, before: int, *, row: int | None = None, want: str = "") -> InvalidData:
    """The error for an offset that does not come after the one before it in its partition.

    `row` is that of the record, where the user knows it; `want` is used where neither sorting nor removing would do.
    """
    name = "" if row is None else row_name(row)
    place = f"partition {partition}, {name}" if name.startswith("row ") else f"partition {partition}"
    got = f"{place}: offset {offset} after {before}"
    if offset == before:
        return InvalidData(problem("an offset appears twice", got, want or ONCE))
    return InvalidData(problem("offsets must increase within a partition", got, want or IN_ORDER))


def _integers(column: pa.ChunkedArray, name: str, what: str) -> Longs:
    if not pa.types.is_integer(column.type):
        number = f", or number what it names: pandas.factorize(df[{name!r}])[0]"
        number = number if what == "partition" else f", or sort the rows by it: df.sort_values({name!r})"
        got = "string" if is_text_type(column.type) else column.type
        raise UnsupportedData(problem(f"{what} column {name!r} must hold integers", got, "cast it" + number))
    if column.null_count:
        got, want = counted_rows(np.asarray(column.is_null())), "a partition and an offset for every record"
        raise InvalidData(problem(f"{what} column {name!r} has missing values", got, want))
    too_large = f"{what} column {name!r} has a number that is too large"
    with errors_as(InvalidData, too_large, "numbers within 64 bits", pa.ArrowInvalid):
        numbers = numpy_array(column.cast(pa.int64()) if column.type == pa.uint64() else column)
    if len(numbers) and numbers.min() < 0:
        got = f"{numbers.min()} in {row_name(int(np.argmin(numbers)))}"
        raise InvalidData(problem(f"{what} column {name!r} has a negative number", got, "Kafka counts from 0"))
    return numbers


def placed_by_key(source: Source, keys: pa.Array, key: Codes) -> tuple[Codes, Longs]:
    """Codes of partitions, and their numbers, where no column names them."""
    if source.partitions is None:
        return np.zeros(len(key), np.int32), np.zeros(1, np.int64)
    by_key = np.append(partition_of_keys(keys, source.partitions), 0).astype(np.int32)
    return by_key[key], np.arange(source.partitions)  # code -1 (a null key) takes the last one, partition 0


def partitions_in(table: pa.Table, name: str) -> tuple[Codes, Longs]:
    """Codes of the partitions in the column `name`, and their numbers."""
    numbers = _integers(table[name], name, "partition")
    if not len(numbers):
        return np.zeros(0, np.int32), np.zeros(0, np.int64)
    most = int(numbers.max()) + 1
    if most <= max(SMALL_PARTITION_NUMBER, len(numbers)):
        return partition_codes(numbers, most)
    seen, places = np.unique(numbers, return_inverse=True)
    return places.astype(np.int32), seen.astype(np.int64)


def ahead_of_arrival(
    timestamp_ms: Longs, bad: Flags | None, arrival_ms: Longs | None, most_ms: int | None
) -> Flags | None:
    """True for each record that has a time more than `most_ms` after its arrival; None if there is none."""
    if arrival_ms is None or most_ms is None:
        return None
    ahead: Flags = np.maximum(timestamp_ms, 0) - arrival_ms > most_ms
    if bad is not None:
        ahead &= ~bad
    return ahead if ahead.any() else None


def rejections(
    key: Codes, timestamp_ms: Longs, bad_time: Flags | None, ahead: Flags | None, source: Source
) -> Bytes | None:
    """Why each record is in no window, 0 where it may be in one; None if all may."""
    has_null_key = bool(len(key)) and int(key.min()) < 0
    if bad_time is None and ahead is None and not has_null_key:
        return None
    rejected = np.where(key < 0, NULL_KEY, 0).astype(np.uint8)
    if bad_time is not None:  # Kafka looks at the time first, where the record enters the task
        if not source.before_1970:
            rejected[timestamp_ms < 0] = NEGATIVE_TIME
        rejected[bad_time] = BAD_TIME
    if ahead is not None:
        rejected[ahead] = AHEAD
    return rejected


def take_partition_times(
    timestamp_ms: Longs, bad: Flags, partition: Codes, ahead: Flags | None = None
) -> tuple[Longs, int]:
    """The times, with the greatest one so far in its partition for each record that has none; and of how many.

    Those that are `ahead` of their arrival are passed over.

    Source:
        UsePartitionTimeOnInvalidTimestamp; RecordQueue, whose partition time records without a key move, too.
    """
    has_none = bad | (timestamp_ms < 0)
    times, order = np.where(has_none, -1, timestamp_ms), np.argsort(partition, kind="stable")
    known = times if ahead is None else np.where(ahead, -1, times)
    for rows in np.split(order, np.flatnonzero(np.diff(partition[order])) + 1):
        times[rows] = np.where(has_none[rows], np.maximum.accumulate(known[rows]), times[rows])
    if (times < 0).any():
        want = 'a time for the first record of each partition, or on_bad_time="drop"'
        what = "the time of a partition is unknown before its first record with a time"
        raise InvalidData(problem(what, row_name(int(np.argmin(times))), want))
    return times, int(has_none.sum())


def offsets_in(table: pa.Table, source: Source, partition: Codes, partitions: Longs) -> Longs | None:
    """The offsets in the plan's column, which must rise within each partition; None where it names none."""
    if source.offset is None:
        return None
    offset = _integers(table[source.offset], source.offset, "offset").astype(np.int64, copy=False)
    row, before = first_not_rising(partition, offset, np.full(len(partitions), -1, np.int64))
    if row >= 0:
        raise not_after(int(partitions[partition[row]]), int(offset[row]), int(before), row=int(row))
    return offset
