"""Records as canonical columns: any frame with the Arrow stream protocol, or a file, checked at the door."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.arrays import Bytes, Codes, Flags, Longs, Rows, arrow_array, is_null, numpy_array, read_only
from sessionkit.base.decisions import NULL_VALUE, TICK
from sessionkit.base.moments import known_zone
from sessionkit.base.process import side_by_side
from sessionkit.base.result_columns import AS_STORED, ResultForm
from sessionkit.base.text import plural
from sessionkit.errors import InvalidArgument, UnsupportedData, problem, shorten
from sessionkit.records.finer_times import beyond_milliseconds
from sessionkit.records.frames import FrameKind
from sessionkit.records.inputs.opened import Opened, open_table
from sessionkit.records.inputs.pandas_columns import is_a_value
from sessionkit.records.inputs.plain_columns import check_text, plain_table
from sessionkit.records.keys import LOOKED_AT, float_text_remarks, key_ranks, keys_in
from sessionkit.records.labels import NO_LABELS, Labels
from sessionkit.records.loops import implicit_offsets, stream_times
from sessionkit.records.places import (
    ahead_of_arrival,
    offsets_in,
    partitions_in,
    placed_by_key,
    rejections,
    take_partition_times,
)
from sessionkit.records.row_names import arrival_remarks, lacking_remarks, rows_moved
from sessionkit.records.source import Source
from sessionkit.records.times import to_arrivals, to_milliseconds


class PythonObjects:
    """A column of objects that Arrow cannot hold, with those methods of Arrow's arrays that Python functions need."""

    type = pa.opaque(pa.null(), "python objects", "sessionkit")

    def __init__(self, objects: list[Any]) -> None:
        self._objects = objects

    def __len__(self) -> int:
        return len(self._objects)

    def __getitem__(self, rows: slice) -> PythonObjects:
        return PythonObjects(self._objects[rows])

    def slice(self, lo: int, count: int) -> PythonObjects:
        """`count` of the objects from `lo` on."""
        return self[lo : lo + count]

    def to_pylist(self) -> list[Any]:
        """The objects themselves, None for a missing one."""
        return self._objects


class ChosenFrom(NamedTuple):
    """Where the rows of a batch stood among all records, of which it holds those of some keys, and ticks."""

    place: Longs  # how many records of its partition came before each row
    tick_keys: pa.Array  # the key of each tick, null for all other rows


class IdleRule(NamedTuple):
    """The plan's rule for idle partitions, and what it goes by: see `engine/idle_partitions.py`."""

    after_ms: int
    arrival_ms: Longs | None  # of each record; None once ticks stand among the records for it
    last_arrival_ms: Longs | None = None  # of each partition after all records; known with the ticks

    def at(self, rows: Any) -> IdleRule:
        return self if self.arrival_ms is None else self._replace(arrival_ms=self.arrival_ms[rows])


@dataclass(frozen=True, kw_only=True)
class RecordBatch:
    """Records of one or more partitions in arrival order, as columns.

    `key` holds codes into `keys` (-1: null), `partition` codes into `partitions`, `rejected` the reason for which a
    record is dropped before any window is looked at (0: none). `still` marks those that count and move no stream time.
    """

    keys: pa.Array
    key: Codes
    timestamp_ms: Longs
    partition: Codes
    partitions: Longs
    rejected: Bytes | None = None
    still: Flags | None = None
    given_offset: Longs | None = None
    first_offset: Longs | None = None
    row: Rows | None = None  # of the data, where its rows were sorted by time
    values: Mapping[str, pa.Array | PythonObjects] = field(default_factory=dict)
    labels: Labels = NO_LABELS
    frame: FrameKind = "arrow"
    remarks: tuple[str, ...] = ()  # on how they were read
    timezone: str = "UTC"  # in which their times are told
    form: ResultForm = AS_STORED  # of results
    chosen_from: ChosenFrom | None = None  # None: nothing was left out
    idle: IdleRule | None = None  # None: no partition is ever idle
    finer: str = ""  # the column of times, where these are finer than a millisecond

    def __post_init__(self) -> None:
        for name in ("key", "timestamp_ms", "partition", "rejected", "still", "given_offset", "row"):
            column = getattr(self, name)
            if column is not None:
                object.__setattr__(self, name, read_only(column))

    def __len__(self) -> int:
        return len(self.timestamp_ms)

    def replace(self, **changes: Any) -> RecordBatch:
        """This batch with some of its columns changed."""
        return dataclasses.replace(self, **changes)

    def slice(self, start: int, stop: int) -> RecordBatch:
        """The records from row `start` up to row `stop`, of the same keys and partitions."""
        if start == 0 and stop == len(self):
            return self  # with what is known of it
        rows = slice(start, stop)
        return self._at(rows, values={name: column[rows] for name, column in self.values.items()})

    def take(self, rows: Rows) -> RecordBatch:
        """The records at these rows, in that order."""
        chosen = self.chosen_from
        if chosen is not None:
            chosen = ChosenFrom(chosen.place[rows], chosen.tick_keys.take(pa.array(rows)))
        return self._at(rows, values={name: taken(c, rows) for name, c in self.values.items()}, chosen_from=chosen)

    def _at(self, rows: Any, **changes: Any) -> RecordBatch:
        return self.replace(
            key=self.key[rows],
            timestamp_ms=self.timestamp_ms[rows],
            partition=self.partition[rows],
            rejected=None if self.rejected is None else self.rejected[rows],
            still=None if self.still is None else self.still[rows],
            given_offset=None if self.given_offset is None else self.given_offset[rows],
            row=None if self.row is None else self.row[rows],
            idle=None if self.idle is None else self.idle.at(rows),
            labels=self.labels.at(rows),
            **changes,
        )

    def without_ticks(self) -> RecordBatch:
        """The records alone, without the rows that only move stream time."""
        if self.rejected is None or self.is_record.all():
            return self
        return self.take(np.flatnonzero(self.is_record))

    def key_at(self, row: int) -> Any:
        """The key of the record at a row, also of one that only moves stream time here; None for a null key."""
        code = int(self.key[row])
        if code >= 0 or self.chosen_from is None:
            return self.keys[code].as_py() if code >= 0 else None
        return self.chosen_from.tick_keys[row].as_py()

    def count_after(self, row: int, last: int) -> int:
        """How many records of its partition came after the one at `row`, up to the one at `last`."""
        if self.chosen_from is not None:
            return int(self.chosen_from.place[last] - self.chosen_from.place[row])
        between = slice(row + 1, last + 1)
        return int(np.count_nonzero((self.partition[between] == self.partition[row]) & self.is_record[between]))

    @property
    def is_record(self) -> Flags:
        """True for each row that is a record, False for one that only moves stream time."""
        return np.ones(len(self), np.bool_) if self.rejected is None else self.rejected < TICK

    @property
    def usable(self) -> Flags:
        """True for each record that windows look at: those that are not rejected."""
        return np.ones(len(self), np.bool_) if self.rejected is None else self.rejected == 0

    @property
    def moves(self) -> Flags:
        """True for each of the usable records that stream time goes by."""
        return self.usable if self.still is None else self.usable & ~self.still

    def stream_times_ms(self, last_ms: Longs) -> Longs:
        """Stream time of its partition once each record was seen; `last_ms` is that of all partitions, moved along."""
        out, rejected = np.empty(len(self), np.int64), self.rejected
        rejected = np.empty(0, np.uint8) if rejected is None else rejected
        stream_times(self.partition, self.moving_ms, rejected, last_ms, out)
        return out

    @cached_property
    def own_stream_times_ms(self) -> Longs:
        """The same where no record came before these."""
        return self.stream_times_ms(np.full(len(self.partitions), -1))

    @cached_property
    def moving_ms(self) -> Longs:
        """The time to which each record may move stream time: its own, or -1 where it is to leave it as it is."""
        return self.timestamp_ms if self.still is None else np.where(self.still, -1, self.timestamp_ms)

    @cached_property
    def key_ranks(self) -> Longs:
        """Place of each of the keys in the order of its bytes."""
        return key_ranks(self.keys)

    @cached_property
    def offset(self) -> Longs:
        """Offset of each record: as given, else its running number within its partition."""
        if self.given_offset is not None:
            return self.given_offset
        first = np.zeros(len(self.partitions), np.int64) if self.first_offset is None else self.first_offset
        return implicit_offsets(self.partition, first.copy())


def without_null_values(batch: RecordBatch, columns: Collection[str] | None = None) -> RecordBatch:
    """The batch with the records marked that have no value in any of these columns, as sliding windows drop them."""
    values = [column for name, column in batch.values.items() if columns is None or name in columns]
    if not values:
        return batch
    null = batch.usable
    for column in values:
        missing = is_null(column) if isinstance(column, pa.Array) else [each is None for each in column.to_pylist()]
        null &= np.asarray(missing, np.bool_)
    if not null.any():
        return batch
    rejected = np.zeros(len(batch), np.uint8) if batch.rejected is None else batch.rejected.copy()
    rejected[null] = NULL_VALUE
    said = _lacking(rejected, {NULL_VALUE: ("value", batch.values if columns is None else columns)})
    return batch.replace(rejected=rejected, remarks=(*batch.remarks, *said))


def is_spark_frame(data: Any) -> bool:
    """True for a DataFrame of Spark, told without loading it."""
    return type(data).__module__.startswith("pyspark.")


def read_records(
    data: Any, source: Source, value_columns: tuple[str, ...], *, frame: FrameKind | None = None
) -> RecordBatch:
    """The records of `data` (a frame, a path, plain values, an open file) as one checked batch.

    Args:
        frame: the kind of frame of the results; by default that of the data.
    Raises:
        InvalidArgument: a Spark DataFrame, whose rows are not here and have no order; no such file.
        UnsupportedData: not a frame, or a column is of a type that cannot be what the plan says it is.
        MissingColumn: a column that the plan names is not there.
        InvalidData: null or impossible times, offsets that do not rise, keys that cannot be kept apart.
    """
    if is_spark_frame(data):
        want = (
            "a local frame with some of them, such as "
            'data.where("partition = 0").orderBy("offset").limit(1_000_000).toPandas()'
        )
        raise InvalidArgument(problem("this needs local records, in order", "a Spark DataFrame", want))
    wanted = list(dict.fromkeys([*source.columns(), *value_columns]))
    only_times = {source.timestamp} - {*source.keys, *value_columns}
    return batch_of(open_table(data, wanted, source, milliseconds=only_times), source, value_columns, frame)


def record_as_names(source: Source) -> list[str]:
    """The remark that the first line of a file was taken for names, if the name of the times is one of them."""
    if not is_a_value(source.timestamp, source.format):
        return []
    finding = f"The first line, with {shorten(repr(source.timestamp))}, is taken for names and looks like a record"
    return [f"{finding}; header=False in group_by_key (pandas: header=None) reads it as one."]


def batch_of(
    opened: Opened, source: Source, value_columns: tuple[str, ...] = (), frame: FrameKind | None = None
) -> RecordBatch:
    """The opened records as one checked batch, whose results are of this kind of frame, else of their own."""
    # the dictionaries of keys are joined beside the other columns, where nothing else looks at them
    only_keys = set() if source.sort else {*source.keys} - {source.timestamp, *value_columns}
    table = plain_table(_with_coded_views(opened.table, source.keys), joined_later=only_keys)
    order = _by_offset(table, source) if source.sort is True else None
    table = table if order is None else table.take(arrow_array(order))
    remarks: list[str] = [*opened.remarks, *record_as_names(source)]
    marked: list[str] = []
    with rows_moved(order):
        (timestamp_ms, bad_time, arrival_ms, named, values), (keys, key) = side_by_side(
            lambda: (
                *to_milliseconds(table[source.timestamp], source, remarks),
                None if source.arrival is None else to_arrivals(table[source.arrival], source.arrival, source),
                None if source.partition is None else partitions_in(table, source.partition),
                {name: _value_column(table[name], name, opened.objects.get(name)) for name in value_columns},
            ),
            lambda: keys_in(table, source.keys, source.sep, marked),
        )
        partition, partitions = placed_by_key(source, keys, key) if named is None else named
        offset = offsets_in(table, source, partition, partitions)
        remarks += arrival_remarks(arrival_ms, partition, source)
        ahead = ahead_of_arrival(timestamp_ms, bad_time, arrival_ms, source.max_ahead_ms)
        if bad_time is not None and source.on_bad_time == "partition_time":
            timestamp_ms, count = take_partition_times(timestamp_ms, bad_time, partition, ahead)
            remarks.append(f"{plural(count, 'record')} without a usable time took that of the partition")
            bad_time = None
    still, ahead = (ahead, None) if source.ahead == "keep" else (None, ahead)
    remarks += [] if still is None else [source.kept_ahead]
    rejected = rejections(key, timestamp_ms, bad_time, ahead, source)
    zone = known_zone(source.timezone or source.shown_in or getattr(table[source.timestamp].type, "tz", None) or "UTC")
    frame = opened.frame if frame is None else frame
    key_types = [_shown_type(table[name].type, frame, keys) for name in source.keys]
    some_times = table[source.timestamp].slice(0, LOOKED_AT)
    batch = RecordBatch(
        finer="" if beyond_milliseconds(some_times, source) is None else source.timestamp,
        keys=keys,
        key=key,
        timestamp_ms=timestamp_ms,
        partition=partition,
        partitions=partitions,
        rejected=rejected,
        still=still,
        given_offset=offset,
        values=values,
        labels=NO_LABELS if source.label is None else Labels.of(table, source.label),
        frame=frame,
        remarks=(*remarks, *float_text_remarks(table, source.keys), *marked, *_lacking(rejected, source.lacks)),
        timezone=zone,
        form=source.result_form(key_types, zone),
        idle=None if source.idle_after_ms is None else IdleRule(source.idle_after_ms, arrival_ms),
    )
    if source.sort != "timestamp":
        return batch
    rows = _by_time(batch.timestamp_ms)
    return batch.take(rows).replace(row=rows)


def _lacking(rejected: Bytes | None, causes: Mapping[int, tuple[str, Iterable[str | None]]]) -> list[str]:
    """A sentence each on the records that are rejected for these causes, which say what they lack, in which columns."""
    if rejected is None:
        return []
    counts = {code: int(np.count_nonzero(rejected == code)) for code in causes}
    return lacking_remarks(counts, len(rejected), causes)


def _with_coded_views(table: pa.Table, keys: tuple[str, ...]) -> pa.Table:
    """The table with key columns of views, as polars has them, as dictionaries: plain text of all rows costs more."""
    for name in keys:
        if pa.types.is_string_view(table[name].type):
            with suppress(pa.ArrowNotImplementedError):  # an older Arrow
                table = table.set_column(table.column_names.index(name), name, table[name].dictionary_encode())
    return table


def _shown_type(given: pa.DataType, frame: FrameKind, keys: pa.Array) -> pa.DataType:
    """The type that a key column has in results: its own, as far as the kind of frame tells types apart."""
    kind = given.value_type if pa.types.is_dictionary(given) else given
    if pa.types.is_integer(kind):
        return kind
    if pa.types.is_floating(kind) and not pa.types.is_null(keys.type):
        return pa.int64()
    if pa.types.is_large_binary(keys.type):
        return keys.type
    return kind if frame == "arrow" and pa.types.is_string(kind) else pa.large_string()


def arrival_order(table: pa.Table, source: Source, timestamp_ms: Longs) -> Rows | None:
    """The rows of `table`, which have these times, in the order in which they arrive; None where they stand in it."""
    if source.sort == "timestamp":
        return _by_time(timestamp_ms)
    return _by_offset(table, source) if source.sort else None


def _by_offset(table: pa.Table, source: Source) -> Rows:
    order = [(name, "ascending") for name in (source.partition, source.offset) if name is not None]
    return numpy_array(pc.sort_indices(table, sort_keys=order)).astype(np.intp)


def _by_time(timestamp_ms: Longs) -> Rows:
    """The rows in the order of these times; those of one time stay in their order."""
    return np.argsort(timestamp_ms, kind="stable")


def taken(column: pa.Array | PythonObjects, order: Rows) -> pa.Array | PythonObjects:
    """The values of these rows."""
    if isinstance(column, PythonObjects):
        objects = column.to_pylist()
        return PythonObjects([objects[row] for row in order.tolist()])
    return column.take(arrow_array(order))


def _value_column(column: pa.ChunkedArray, name: str, objects: list[Any] | None) -> pa.Array | PythonObjects:
    if objects is not None:
        return PythonObjects([objects[place] for place in column.to_pylist()])
    check_text(column, name)
    if column.num_chunks == 1:
        return column.chunk(0)  # joining would copy it
    try:
        return column.combine_chunks()
    except pa.ArrowNotImplementedError as error:  # unions
        want = "a column of one chunk, or another type"
        raise UnsupportedData(problem(f"column {name!r} cannot be joined", column.type, want)) from error
