"""Parquet files whose row groups hold one source partition each, so that a task can read its partition by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from sessionkit.errors import InvalidData, problem, shorten
from sessionkit.records.files.parquet import open_parquet, readable

ROW_GROUP_BYTES = 2**30  # a task holds one row group, and twice that if it has to be sorted
FOOTERS_AT_ONCE = 8
_VERSION = b"org.apache.spark.version"
# Times of another calendar, which Spark turns into those of today.
_LEGACY = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_PLAIN = ("is_signed_integer", "is_floating", "is_decimal128", "is_boolean", "is_binary")


class ParquetFile(NamedTuple):
    """A local file as it was when the run was made."""

    path: str
    size: int
    partition: int | None = None  # where the name of its folder tells it


class Wanted(NamedTuple):
    """The columns to read from the files, in their order, with the types that Spark would give them."""

    names: tuple[str, ...]
    schema: pa.Schema
    partition: int  # the place of the partition's column, and of the offset's
    offset: int


class RowGroup(NamedTuple):
    """A row group with the records of one partition from offset `first` to `last`."""

    partition: int
    first: int
    last: int
    rows: int
    path: str
    number: int
    changed_ns: int  # when the file was written
    partition_in_file: bool


class NotApart(Exception):
    """Why the files have to be read by Spark."""


def row_groups(files: Sequence[ParquetFile], wanted: Wanted) -> list[RowGroup]:
    """The row groups by partition and offset, by the ends of the files; `NotApart` where Spark has to read them."""
    with ThreadPoolExecutor(FOOTERS_AT_ONCE) as several:
        try:
            found = [group for groups in several.map(lambda file: _groups_of(file, wanted), files) for group in groups]
        except (OSError, pa.ArrowException) as error:
            raise NotApart(f"a file cannot be read here: {shorten(error, 120)}") from error
    found.sort()
    for one, other in pairwise(found):
        if one.partition == other.partition and other.first <= one.last:
            raise NotApart(f"offsets of partition {one.partition} overlap in {_name(one.path)} and {_name(other.path)}")
    return found


def _groups_of(file: ParquetFile, wanted: Wanted) -> list[RowGroup]:
    info = _info(file.path)
    if info.size != file.size:
        raise NotApart(f"{_name(file.path)} was changed since Spark listed it")
    with _open(file.path) as opened:
        metadata = opened.metadata
        _check_types(file, opened, wanted)
        place = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
        columns = [place[name] for name in _names_in(file, wanted)]
        offset_at = place[wanted.names[wanted.offset]]
        partition_at = None if file.partition is not None else place[wanted.names[wanted.partition]]
        groups = []
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            if not group.num_rows:
                continue
            if sum(group.column(i).total_uncompressed_size for i in columns) > ROW_GROUP_BYTES:
                raise NotApart(f"a row group of {_name(file.path)} is larger than {ROW_GROUP_BYTES:,} bytes")
            first, last = _bounds(group, offset_at, file)
            if partition_at is None:
                partition = file.partition
            else:
                partition, other = _bounds(group, partition_at, file)
                if partition != other:
                    raise NotApart(f"row group {number} of {_name(file.path)} holds partitions {partition} to {other}")
            assert partition is not None
            in_file = partition_at is not None
            groups.append(RowGroup(partition, first, last, group.num_rows, file.path, number, info.mtime_ns, in_file))
    return groups


def _bounds(group: pq.RowGroupMetaData, place: int, file: ParquetFile) -> tuple[int, int]:
    found = group.column(place).statistics
    if found is None or not found.has_min_max or not found.has_null_count or found.null_count:
        raise NotApart(f"{_name(file.path)} has no statistics of partition and offset, or they are missing in a record")
    if found.min < 0:
        raise NotApart(f"{_name(file.path)} has a partition or an offset below 0")
    return int(found.min), int(found.max)


def _check_types(file: ParquetFile, opened: pq.ParquetFile, wanted: Wanted) -> None:
    schema, metadata = opened.schema_arrow, opened.metadata.metadata or {}
    version = metadata.get(_VERSION, b"3")
    if any(mark in metadata for mark in _LEGACY) or int(version.split(b".")[0]) < 3:
        raise NotApart(f"{_name(file.path)} was written by an old version of Spark, which stored times differently")
    lower = [name.lower() for name in schema.names]  # Spark finds a column in whatever case
    for name in _names_in(file, wanted):
        if name not in schema.names or lower.count(name.lower()) != 1:
            raise NotApart(f"{_name(file.path)} has no column {shorten(name)!r}")
        kind, want = schema.field(name).type, wanted.schema.types[wanted.names.index(name)]
        if name in _written_as_int96(opened):
            kind = pa.timestamp("us", "UTC" if _VERSION in metadata else None)
        if not _is_same(kind, want):
            raise NotApart(f"column {shorten(name)!r} is {kind} in {_name(file.path)}, and {want} in Spark")


def _written_as_int96(opened: pq.ParquetFile) -> set[str]:
    """The columns of times that Spark writes in its usual form; of other writers nobody knows the zone."""
    schema = opened.metadata.schema
    columns = (schema.column(i) for i in range(opened.metadata.num_columns))
    return {each.path for each in columns if each.physical_type == "INT96"}


def _is_same(kind: pa.DataType, want: pa.DataType) -> bool:
    """True if Spark hands over the very values that the file holds."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(want):
        return kind.unit in ("ms", "us") and (kind.tz is None) == (want.tz is None)
    if pa.types.is_string(want) or pa.types.is_large_string(want):
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
    return bool(kind == want and any(getattr(pa.types, test)(kind) for test in _PLAIN))


def _names_in(file: ParquetFile, wanted: Wanted) -> list[str]:
    """Names of the wanted columns that are in the file, which the name of its folder is not."""
    return [name for place, name in enumerate(wanted.names) if file.partition is None or place != wanted.partition]


def _open(path: str) -> pq.ParquetFile:
    return open_parquet(path, memory_map=True, coerce_int96_timestamp_unit="us")


def _info(path: str) -> fs.FileInfo:
    info = fs.LocalFileSystem().get_file_info(path)
    if info.type != fs.FileType.File:
        raise FileNotFoundError(path)
    return info


def _name(path: str) -> str:
    return shorten(path.rsplit("/", 1)[-1])


# ---- in a task


def read(groups: Iterable[RowGroup], wanted: Wanted) -> Iterator[pa.RecordBatch]:
    """The records of the row groups, as Spark would hand them over, those of a partition by rising offset."""
    for group in groups:
        if _info(group.path).mtime_ns != group.changed_ns:
            got = f"{_name(group.path)} was written again"
            raise InvalidData(problem("a file has changed since the run was created", got, "create the run again"))
        table = _records(group, wanted)
        offset = table.column(wanted.offset).to_numpy()
        if not (offset[1:] > offset[:-1]).all():
            order = np.argsort(offset, kind="stable")
            table, offset = table.take(pa.array(order)), offset[order]
        numbers = table.column(wanted.partition).to_numpy()
        if offset[0] < group.first or offset[-1] > group.last or (numbers != group.partition).any():
            got = f"row group {group.number} of {_name(group.path)}"
            raise InvalidData(problem("the statistics of a Parquet file are wrong", got, "write the file again"))
        yield from table.to_batches()


def _records(group: RowGroup, wanted: Wanted) -> pa.Table:
    own = [name for place, name in enumerate(wanted.names) if group.partition_in_file or place != wanted.partition]
    with readable(group.path), _open(group.path) as opened:
        table = opened.read_row_group(group.number, columns=own, use_threads=False)
    columns = [table.column(name) for name in own]
    if not group.partition_in_file:
        columns.insert(wanted.partition, pa.array(np.full(len(table), group.partition)))
    return pa.table(columns, names=wanted.schema.names).cast(wanted.schema)
