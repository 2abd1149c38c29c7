"""The rows of a frame with the window that each is in beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sessionkit.base.arrays import Longs
from sessionkit.base.decisions import LATE
from sessionkit.base.process import side_by_side
from sessionkit.base.result_columns import timestamps
from sessionkit.base.text import one_of, plural
from sessionkit.engine.outcome import UNKNOWN
from sessionkit.errors import InvalidArgument, problem
from sessionkit.records.batch import arrival_order
from sessionkit.records.frames import to_frame
from sessionkit.records.inputs.opened import Opened, open_whole
from sessionkit.records.inputs.plain_columns import plain_table
from sessionkit.records.keys import ranks_of
from sessionkit.records.source import Source
from sessionkit.records.times import to_milliseconds
from sessionkit.trace.loops import order_of_windows
from sessionkit.trace.trace import Trace
from sessionkit.views.loops import count_rows, order_rows, tell_rows
from sessionkit.views.stable_ids import IDS, Ids, with_ids
from sessionkit.windows.contract import WindowKind, do_overlap

_NONE_LOADED: Longs = np.empty(0, np.int64)


def assigned_names(windows: WindowKind) -> list[str]:
    """The names of the columns that `assigned` gives."""
    noun = windows.noun
    return [f"{noun}_id", f"{noun}_start_ms", f"{noun}_end_ms", f"{noun}_rows", f"position_in_{noun}", "late"]


def assign(data: Any, trace: Trace, windows: WindowKind, source: Source, earlier_rows: Longs, ids: Ids) -> Any:
    """The rows that a run was made of, with the window that each is in: see `Run.assign`."""
    one_of("ids", ids, IDS)
    trace.check_all_keys("assign")
    opened = open_whole(data, source)
    table = plain_table(opened.table)
    times = to_milliseconds(table[source.timestamp], source)[0]
    order, is_record = arrival_order(table, source, times), trace.is_record
    arrived, of_run = times if order is None else times[order], trace.batch.timestamp_ms[is_record]
    arrived = np.where(arrived < 0, of_run, arrived) if source.on_bad_time == "partition_time" else arrived
    if not np.array_equal(arrived, of_run):
        got = plural(len(times), "row")
        want = f"the data that plan.run was given ({plural(trace.record_count, 'row')})"
        raise InvalidArgument(problem("these are not the rows of this run", got, want))
    added = assigned(trace, windows, earlier_rows)
    added = added if is_record.all() else added.filter(pa.array(is_record))
    added = added if order is None else added.take(pa.array(np.argsort(order)))
    added = with_ids(added, opened.table, source.own_columns(), ids)
    return beside(opened, with_timestamps(added, trace.batch.timezone))


def assigned(trace: Trace, windows: WindowKind, earlier_rows: Longs = _NONE_LOADED) -> pa.Table:
    """A row for each record: its window's number, bounds and rows, its own position in it, and whether it was late.

    All but `late` are null where a record is in no window. Windows are numbered from 0 by the bytes of their key, then
    by start; positions count from 1 by time, then by arrival.

    Args:
        earlier_rows: how many records of earlier runs are in each window that a store held, -1 where it does not know.
            They come before those of this run; where they are not known, rows and position are null.
    """
    if do_overlap(windows):
        want = 'sessions, or windows that do not overlap: sk.TimeWindows(size="1h", grace="5m")'
        raise InvalidArgument(problem("a record can be in several of these windows", windows.code(), want))
    window, columns = trace.last_window, trace.window_columns
    size, count = len(columns.key), len(trace)
    found, position = np.empty(count, np.int32), np.empty(count, np.int64)
    before, newest = np.empty(count, np.int32), np.full(size, -1, np.int64)
    rows, spent, unordered = np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.bool_)
    times = trace.batch.timestamp_ms
    left = count_rows(window, trace.ended_in, times, found, position, before, newest, rows, spent, unordered)
    told = [np.empty(count, np.int64) for _ in range(4)]
    before_run = np.zeros(size, np.int64)
    np.add.at(before_run, trace.ended_in[: len(earlier_rows)], np.where(earlier_rows < 0, UNKNOWN, earlier_rows))
    bounds = columns.start_ms, columns.end_ms
    side_by_side(  # neither reads what the other writes
        lambda: tell_rows(found, np.column_stack([_numbers(trace, rows), *bounds, rows + before_run]), *told),
        lambda: order_rows(found, rows, times, unordered, position) if left else None,
    )
    none = found < 0
    unknown = none
    if len(earlier_rows):
        position += np.append(before_run, 0)[found]
        unknown = none | (told[3] < 0)
    number, start_ms, end_ms = (pa.array(column, mask=none if none.any() else None) for column in told[:3])
    count_of, place = (pa.array(column, mask=unknown if unknown.any() else None) for column in (told[3], position))
    columns_added = [number, start_ms, end_ms, count_of, place, pa.array(trace.decision == LATE)]
    return pa.table(columns_added, names=assigned_names(windows))


def with_timestamps(added: pa.Table, timezone: str) -> pa.Table:
    """The columns of `assigned` as they are shown: bounds as timestamps, whose names do not end in `_ms`."""
    for place, column in enumerate(added.column_names):
        name = column.removesuffix("_ms")
        if name != column:
            added = added.set_column(place, name, timestamps(added[place], name, timezone))
    return added


def _numbers(trace: Trace, rows: Longs) -> Longs:
    """The number of each window that has rows: its place by key bytes, start and partition, then by its opening."""
    columns = trace.window_columns
    own = np.flatnonzero(rows)
    rank, start_ms = ranks_of(trace.keys, columns.key)[own], columns.start_ms[own]
    partition = columns.partition[own] if len(trace.batch.partitions) > 1 else None
    number = np.empty(len(rows), np.int64)
    number[own[order_of_windows(rank, max(1, len(trace.keys)), start_ms, partition)]] = np.arange(len(own))
    return number


def beside(opened: Opened, added: pa.Table, way: str = "") -> Any:
    """The user's frame with these columns behind its own; `way` is the argument that gives them other names."""
    data = opened.original
    names = data.column_names if opened.frame == "arrow" else list(data.columns)
    for name in added.column_names:
        if name in names:
            raise taken(name, way)
    if opened.frame == "pandas":
        import pandas as pd

        data = data.copy()
        for name, column in zip(added.column_names, added.columns, strict=True):
            if pa.types.is_int64(column.type) and column.null_count:  # integers stay so beside missing ones
                data[name] = column.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get).array
            else:
                data[name] = to_frame(added.select([name]), "pandas")[name].set_axis(data.index)
        return data
    if opened.frame == "polars":
        import polars

        return data.hstack(polars.from_arrow(added))
    for name in added.column_names:
        data = data.append_column(name, added[name])
    return data


def taken(name: str, way: str = "") -> InvalidArgument:
    """The data has a column that is to be added."""
    want = "rename it or leave it out, as a column of this name is added"
    want += f'; or {way}"new_", which stands before the names of those that are added' if way else ""
    return InvalidArgument(problem("the data has a column of this name already", repr(name), want))
