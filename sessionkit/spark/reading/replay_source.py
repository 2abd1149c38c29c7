"""A table as a stream: a Python data source for Spark that plays a Parquet file in the order in which it was written.

Loaded by Spark's own Python processes, so it imports pyspark; the rest of sessionkit does not need it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import SparkContext
from pyspark.sql.datasource import CaseInsensitiveDict, DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from sessionkit.base.arrays import Floats
from sessionkit.errors import InvalidArgument, attempted, problem
from sessionkit.records.files.parquet import open_parquet, read_parquet, readable
from sessionkit.records.inputs.pandas_columns import check_columns
from sessionkit.spark.environment.worker_python import settle_python_of

ROWS_PER_BATCH = 10_000
_OPTIONS = ("path", "rowsPerBatch", "rowsPerSecond", "speed", "arrival")
_PLACES = {"partition": pa.int32(), "offset": pa.int64()}


class ReplaySource(DataSource):
    """`format("sessionkit.replay")`: replays a Parquet file whose rows are in order of arrival.

    Options:
        path: the file. Without the columns `partition` and `offset` it is one partition, numbered by row.
        rowsPerBatch: at most this many rows per micro-batch, 10,000 by default.
        rowsPerSecond: how many rows arrive in a second.
        speed: how many times as fast as it happened, by the times in the column that `arrival` names.

    Without a speed everything has already arrived. A stopped query continues where it was; `availableNow` replays all
    that is left, in micro-batches of `rowsPerBatch`.

    Example:
        >>> spark.dataSource.register(ReplaySource)  # doctest: +SKIP
        >>> spark.readStream.format("sessionkit.replay").options(path=path, rowsPerSecond=500).load()  # doctest: +SKIP
    """

    @classmethod
    def name(cls) -> str:
        """The name that `format` takes."""
        context = SparkContext._active_spark_context
        if context is not None:  # Spark registers the source, with the Python that is to load it
            settle_python_of(context)
        return "sessionkit.replay"

    def schema(self) -> StructType:
        """The file's columns, with those that say where a record stands."""
        return _schema(_path(self.options))

    def streamReader(self, schema: StructType) -> ReplayReader:
        return ReplayReader(self.options)


class Stretch(InputPartition):
    """Rows of the file, from `first` to before `end`."""

    def __init__(self, first: int, end: int) -> None:
        self.first, self.end = first, end


class ReplayReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Says what has arrived, and reads it. An offset is the number of rows that were played."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._path, options = _path(given), CaseInsensitiveDict(given)
        self._rows = int(pq.read_metadata(self._path).num_rows)
        self._most = int(_number(options, "rowsPerBatch", ROWS_PER_BATCH))
        self._per_second = _number(options, "rowsPerSecond", 0)
        self._speed = _number(options, "speed", 0)
        self._arrival_s = _arrival(self._path, options) if self._speed else np.empty(0)  # fails now rather than later
        self._begun: tuple[float, int] | None = None  # when it started to play here, and at which row
        self._is_all_there = not (self._per_second or self._speed)

    def initialOffset(self) -> dict[str, int]:
        return {"row": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        """The number of rows that a micro-batch may have."""
        return ReadMaxRows(self._most)

    def prepareForTriggerAvailableNow(self) -> None:
        """Has all rows of the file arrive at once."""
        self._is_all_there = True

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        first = start["row"]
        arrived = self._rows if self._is_all_there else self._arrived(first)
        most = self._rows if isinstance(limit, ReadAllAvailable) else first + getattr(limit, "max_rows", self._most)
        return {"row": max(first, min(arrived, most, self._rows))}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[Stretch]:
        """The rows between the offsets, as one stretch, which one task reads."""
        return [Stretch(start["row"], end["row"])] if end["row"] > start["row"] else []

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        with readable(self._path), open_parquet(self._path) as file:
            ends = [*accumulate(file.metadata.row_group(group).num_rows for group in range(file.num_row_groups))]
            starts = [0, *ends]
            groups = [g for g, end in enumerate(ends) if end > partition.first and starts[g] < partition.end]
            table = file.read_row_groups(groups)
        table = table.slice(partition.first - starts[groups[0]], partition.end - partition.first)
        places = {"partition": np.zeros(len(table), np.int32), "offset": np.arange(partition.first, partition.end)}
        for name, numbers in places.items():
            if name not in table.column_names:
                table = table.append_column(name, pa.array(numbers))
        yield from table.cast(to_arrow_schema(_schema(self._path), timezone="UTC")).to_batches(max_chunksize=50_000)

    def _arrived(self, first: int) -> int:
        """How many rows have arrived by now; the clock starts with the first call."""
        now = time.monotonic()
        begun, row = self._begun = self._begun or (now, first)
        if self._per_second:
            return row + int((now - begun) * self._per_second)
        if row >= self._rows:
            return self._rows
        until_s = self._arrival_s[row] + (now - begun) * self._speed
        return int(np.searchsorted(self._arrival_s, until_s, "right"))


def _schema(path: str) -> StructType:
    schema = pq.read_schema(path)
    for name, kind in _PLACES.items():
        if name not in schema.names:
            schema = schema.append(pa.field(name, kind))
    return from_arrow_schema(schema)


def _path(options: Mapping[str, str]) -> str:
    known = {name.lower() for name in _OPTIONS}
    for name in options:
        if name.lower() not in known:
            raise InvalidArgument(problem("sessionkit.replay has no such option", repr(name), f"one of {[*_OPTIONS]}"))
    path = CaseInsensitiveDict(options).get("path")
    if path is None:
        want = '.option("path", "flights.parquet")'
        raise InvalidArgument(problem("sessionkit.replay needs a file", "no path", want))
    return path


def _number(options: Mapping[str, str], name: str, otherwise: float) -> float:
    text = options.get(name)
    number = otherwise if text is None else attempted(float, text, but=ValueError)
    if number is None or not (0 < number < float("inf") or text is None):
        raise InvalidArgument(problem(f"{name} is a number above 0", repr(text), "such as 500"))
    return number


def _arrival(path: str, options: Mapping[str, str]) -> Floats:
    """When each row arrived, in seconds; never before the row in front of it."""
    name = options.get("arrival")
    if name is None:
        want = '.option("arrival", "departed"), the column that says when a record arrived'
        raise InvalidArgument(problem("speed needs the times of arrival", "no arrival", want))
    check_columns(pq.read_schema(path).names, [name])
    column = read_parquet(path, [name])[name]
    if not pa.types.is_timestamp(column.type):
        raise InvalidArgument(problem(f"arrival {name!r} is not a column of times", column.type, "a timestamp"))
    seconds = column.cast(pa.timestamp("ns")).to_numpy().astype(np.int64) / 1e9
    return np.maximum.accumulate(seconds)
