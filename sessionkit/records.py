"""Records as canonical columns: any frame with the Arrow stream protocol, or a file, checked at the door."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.columns import implicit_offsets, offsets_rise
from sessionkit.errors import InvalidArgument, InvalidData, MissingColumn, UnsupportedData, problem
from sessionkit.keys import encode_keys
from sessionkit.partitioner import partition_of_keys
from sessionkit.text import shorten
from sessionkit.times import BAD_TIME_CHOICES, TIME_UNITS, to_milliseconds

FrameKind = Literal["pandas", "polars", "arrow"]
NULL_KEY, BAD_TIME, NEGATIVE_TIME = 11, 12, 13


@dataclass(frozen=True, kw_only=True)
class Source:
    """How a plan reads its records: which column is what, and what to do with times that are none."""

    keys: tuple[str, ...]
    timestamp: str
    sep: str | None = None
    unit: str | None = None
    timezone: str | None = None
    ambiguous: str = "raise"
    nonexistent: str = "raise"
    partition: str | None = None
    offset: str | None = None
    partitions: int | None = None
    on_bad_time: str = "refuse"
    sort: bool = False

    def __post_init__(self) -> None:
        if not self.keys:
            raise InvalidArgument(problem("a plan groups by one column or more", "none", 'group_by_key("user", …)'))
        if len(self.keys) > 1 and self.sep is None:
            want = 'sep="@" (or any text that is in none of the values) joins them to one key'
            raise InvalidArgument(problem("several key columns need a separator", list(self.keys), want))
        if self.unit is not None and self.unit not in TIME_UNITS:
            raise InvalidArgument(problem("unit must be a unit of time", repr(self.unit), f"one of {list(TIME_UNITS)}"))
        if self.on_bad_time not in BAD_TIME_CHOICES:
            want = '"refuse" raises, "drop" counts them as dropped'
            raise InvalidArgument(problem("on_bad_time must be a known choice", repr(self.on_bad_time), want))
        if self.partitions is not None and (self.partition is not None or self.partitions < 1):
            want = "1 or more, and without partition=: Kafka's partitioner then places each key"
            raise InvalidArgument(problem("partitions is a number of partitions", self.partitions, want))
        if self.sort and self.offset is None:
            raise InvalidArgument(problem("sort=True sorts by the offset column", "no offset=", "name the column"))

    def columns(self) -> list[str]:
        """The columns that are read besides the values, each once."""
        named = [*self.keys, self.timestamp, self.partition, self.offset]
        return list(dict.fromkeys(name for name in named if name is not None))


@dataclass(frozen=True, kw_only=True)
class RecordBatch:
    """Records of one or more partitions in arrival order, as columns.

    `key` holds codes into `keys` (-1: null), `partition` codes into `partitions`, `rejected` the reason for which a
    record is dropped before any window is looked at (0: none).
    """

    keys: pa.Array
    key: npt.NDArray[np.int32]
    timestamp_ms: npt.NDArray[np.int64]
    partition: npt.NDArray[np.int32]
    partitions: npt.NDArray[np.int64]
    rejected: npt.NDArray[np.uint8] | None = None
    given_offset: npt.NDArray[np.int64] | None = None
    first_offset: npt.NDArray[np.int64] | None = None
    values: Mapping[str, pa.Array] = field(default_factory=dict)
    frame: FrameKind = "arrow"

    def __len__(self) -> int:
        return len(self.timestamp_ms)

    def replace(self, **changes: Any) -> RecordBatch:
        """The same batch with other columns."""
        return dataclasses.replace(self, **changes)

    @cached_property
    def offset(self) -> npt.NDArray[np.int64]:
        """Offset of each record: as given, else its running number within its partition."""
        if self.given_offset is not None:
            return self.given_offset
        first = np.zeros(len(self.partitions), np.int64) if self.first_offset is None else self.first_offset
        return implicit_offsets(self.partition, first)


def to_frame(table: pa.Table, frame: FrameKind) -> Any:
    """`table` as the kind of frame that the user gave."""
    if frame == "pandas":
        return table.to_pandas()
    if frame == "polars":
        import polars

        return polars.from_arrow(table)
    return table


def read_records(data: Any, source: Source, value_columns: tuple[str, ...]) -> RecordBatch:
    """The records of `data` (a frame, or the path of a Parquet or CSV file) as one checked batch.

    Raises:
        UnsupportedData: not a frame, or a column is of a type that cannot be what the plan says it is.
        MissingColumn: a column that the plan names is not there.
        InvalidData: null or impossible times, offsets that do not rise, keys that cannot be kept apart.
    """
    wanted = list(dict.fromkeys([*source.columns(), *value_columns]))
    table, frame = _open(data, wanted, source)
    if source.sort:
        table = _sorted(table, source)
    timestamp_ms, bad_time = to_milliseconds(table[source.timestamp], source)
    keys, key = encode_keys([table[name] for name in source.keys], source.keys, source.sep)
    partition, partitions = _partition_codes(table, source, keys, key)
    offset = _offsets(table, source, partition, partitions)
    return RecordBatch(
        keys=keys,
        key=key,
        timestamp_ms=timestamp_ms,
        partition=partition,
        partitions=partitions,
        rejected=_rejections(key, timestamp_ms, bad_time),
        given_offset=offset,
        values={name: _one_array(table[name]) for name in value_columns},
        frame=frame,
    )


def _rejections(
    key: npt.NDArray[np.int32], timestamp_ms: npt.NDArray[np.int64], bad_time: npt.NDArray[np.bool_] | None
) -> npt.NDArray[np.uint8] | None:
    has_null_key = bool(len(key)) and int(key.min()) < 0
    if bad_time is None and not has_null_key:
        return None
    rejected = np.where(key < 0, NULL_KEY, 0).astype(np.uint8)
    if bad_time is not None:  # Kafka looks at the time first, where the record enters the task
        rejected[timestamp_ms < 0] = NEGATIVE_TIME
        rejected[bad_time] = BAD_TIME
    return rejected


def _open(data: Any, wanted: list[str], source: Source) -> tuple[pa.Table, FrameKind]:
    if isinstance(data, str | os.PathLike):
        from sessionkit.files import read_table

        return read_table(data, wanted, source.keys), "arrow"
    names = _column_names(data)
    _check_columns(names, wanted)
    kind = type(data).__module__.partition(".")[0]
    try:
        if kind == "pandas":
            return pa.Table.from_pandas(data[wanted], preserve_index=False), "pandas"
        table = pa.table(data[wanted] if kind == "polars" else data).select(wanted)
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeError) as error:
        want = "columns of one type each; text must be valid Unicode, without lone surrogates"
        raise UnsupportedData(problem("the frame cannot be read as columns", shorten(error, 200), want)) from error
    return table, "polars" if kind == "polars" else "arrow"


def _column_names(data: Any) -> list[str]:
    if not hasattr(data, "__arrow_c_stream__"):
        want = "a frame with the Arrow stream protocol (pandas, polars, pyarrow, DuckDB) or the path of a Parquet file"
        raise UnsupportedData(problem("these are not records", type(data).__name__, want))
    names = data.columns if type(data).__module__.partition(".")[0] in ("pandas", "polars") else None
    if names is None:
        names = pa.schema(data.__arrow_c_schema__()).names if hasattr(data, "__arrow_c_schema__") else data.schema.names
    return list(names)


def _check_columns(names: list[str], wanted: list[str]) -> None:
    for name in wanted:
        if names.count(name) == 0:
            have = ", ".join(repr(shorten(other)) for other in names) or "no columns"
            raise MissingColumn(problem(f"column {name!r} is not in the data", have, "name one of these in the plan"))
        if names.count(name) > 1:
            raise InvalidData(problem(f"column {name!r} is there {names.count(name)} times", names, "rename all but one"))


def _sorted(table: pa.Table, source: Source) -> pa.Table:
    order = [(name, "ascending") for name in (source.partition, source.offset) if name is not None]
    return table.take(pc.sort_indices(table, sort_keys=order))


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    joined = column.combine_chunks()
    return joined if isinstance(joined, pa.Array) else pa.concat_arrays(joined.chunks)


def _integers(column: pa.ChunkedArray, name: str, what: str) -> npt.NDArray[np.int64]:
    if not pa.types.is_integer(column.type):
        raise UnsupportedData(problem(f"{what} column {name!r} must hold integers", column.type, "cast it"))
    if column.null_count:
        rows = [int(row) for row in np.flatnonzero(np.asarray(column.is_null()))[:3]]
        want = "each record is in one partition, at one offset"
        raise InvalidData(problem(f"{what} column {name!r} has missing values", f"{column.null_count} (rows {rows})", want))
    numbers: npt.NDArray[np.int64] = column.to_numpy()
    return numbers


def _partition_codes(
    table: pa.Table, source: Source, keys: pa.Array, key: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    if source.partitions is not None:
        by_key = np.append(partition_of_keys(keys, source.partitions), 0).astype(np.int32)
        return by_key[key], np.arange(source.partitions)  # code -1 (a null key) takes the last one, partition 0
    if source.partition is None:
        return np.zeros(len(key), np.int32), np.zeros(1, np.int64)
    numbers = _integers(table[source.partition], source.partition, "partition")
    if not len(numbers):
        return np.zeros(0, np.int32), np.zeros(0, np.int64)
    if numbers.min() < 0:
        raise InvalidData(problem("a partition number must be 0 or more", int(numbers.min()), "Kafka counts from 0"))
    if numbers.max() < 4096:  # the usual case, without a sort
        seen = np.flatnonzero(np.bincount(numbers))
        code_of = np.zeros(int(numbers.max()) + 1, np.int32)
        code_of[seen] = np.arange(len(seen))
        dense = len(seen) == len(code_of) and numbers.dtype == np.int32
        return (numbers if dense else code_of[numbers]), seen.astype(np.int64)  # type: ignore[return-value]
    seen, codes = np.unique(numbers, return_inverse=True)
    return codes.astype(np.int32), seen.astype(np.int64)


def _offsets(
    table: pa.Table, source: Source, partition: npt.NDArray[np.int32], partitions: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64] | None:
    if source.offset is None:
        return None
    offset = _integers(table[source.offset], source.offset, "offset").astype(np.int64, copy=False)
    row, before = offsets_rise(partition, offset, len(partitions))
    if row >= 0:
        where = f"partition {partitions[partition[row]]}, row {row}: offset {offset[row]} after {before}"
        if offset[row] == before:
            raise InvalidData(problem("an offset is there twice", where, "remove the duplicate"))
        want = "give the records in offset order, or pass sort=True in the plan"
        raise InvalidData(problem("offsets must rise within a partition", where, want))
    return offset
