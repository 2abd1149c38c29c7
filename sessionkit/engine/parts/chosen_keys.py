"""Some keys of a partition: their records, and the ticks that they need.

Keys meet in stream time alone. So the records of some keys decide what they do among all others if ticks are among
them: rows that only move stream time, where a record of another key moved it. They need those that they can tell
apart: the last one before each of them, and the first one that closes a window in which one of them can be.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.decisions import IDLE, TICK
from sessionkit.base.durations import INT64_MAX
from sessionkit.engine.parts.idle_partitions import with_idle_ticks
from sessionkit.engine.processor_run import without_null_values
from sessionkit.errors import InvalidArgument, problem, shorten
from sessionkit.records.batch import ChosenFrom, RecordBatch, is_spark_frame
from sessionkit.records.keys import code_of_key
from sessionkit.records.source import Source
from sessionkit.trace.loops import stream_times
from sessionkit.trace.slots import NO_REJECTIONS
from sessionkit.windows.contract import WindowKind

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
NONE_WAITING: Numbers = np.empty(0, np.int64)


class Rows(NamedTuple):
    """Some rows of a batch, rising, and how many records of its partition came before each."""

    at: npt.NDArray[np.intp]
    place: npt.NDArray[np.intp]


class Needed(NamedTuple):
    """The rows that some keys need of a partition, and the instants that no record has passed yet."""

    rows: npt.NDArray[np.intp]
    waiting_ms: Numbers  # their windows close when stream time is larger


def last_rises(stream_time_ms: Numbers, before_ms: int) -> npt.NDArray[np.intp]:
    """For each record of a partition the last one up to it that moved stream time, which was `before_ms`; -1: none."""
    rises = np.diff(stream_time_ms, prepend=before_ms) > 0
    found: npt.NDArray[np.intp] = np.maximum.accumulate(np.where(rises, np.arange(len(rises)), -1))
    return found


def needed_rows(
    windows: WindowKind,
    mine: Mask,
    times_ms: Numbers,
    rises: npt.NDArray[np.intp],
    stream_time_ms: Numbers,
    before_ms: int,
    waiting_ms: Numbers = NONE_WAITING,
) -> Needed:
    """The rows of a partition that some keys need.

    Args:
        mine: their own records.
        times_ms: of those of them that windows look at.
        rises, stream_time_ms: of all records; `before_ms` before them.
        waiting_ms: what no earlier record has passed.
    """
    ticks = np.append(rises[mine], rises[-1])
    closing = np.empty(0, np.intp)
    if windows.is_ever_closed:
        last = windows.last_instants_ms(times_ms)
        limit = last + np.minimum(windows.close_lag_ms, INT64_MAX - last)  # must not wrap
        waiting_ms = np.union1d(waiting_ms, limit[limit >= before_ms])
        at = np.searchsorted(stream_time_ms, waiting_ms, side="right")
        is_passed = at < len(stream_time_ms)
        closing, waiting_ms = at[is_passed], waiting_ms[~is_passed]
    wanted = mine.copy()
    wanted[ticks[ticks >= 0]] = True
    wanted[closing] = True
    return Needed(np.flatnonzero(wanted), waiting_ms)


def checked_keys(source: Source, keys: Any, data: Any, of_all_keys: list[str]) -> list[Any]:
    """The keys that `Plan.run` was given, as they are inside; `of_all_keys` was asked for beside them.

    Raises:
        InvalidArgument: no list of keys, an empty one, or something that only a run of all keys takes.
    """
    if isinstance(keys, str | bytes) or not isinstance(keys, Iterable):
        raise InvalidArgument(problem("keys= takes a list of keys", shorten(repr(keys)), 'such as keys=["ada"]'))
    if is_spark_frame(data):
        want = 'plan.run(df).of("ada"), or leave keys= out'
        raise InvalidArgument(problem("keys= is for records that are read here", "a Spark DataFrame", want))
    named = named_keys(source, keys)
    for got in of_all_keys:  # a state would lack the other keys; stores, caches and buffers hold them together
        raise InvalidArgument(problem("a run of some keys stands by itself", got, f"keys= or {got}, not both"))
    return named


def named_keys(source: Source, keys: Iterable[Any]) -> list[Any]:
    """These keys as they are inside.

    Raises:
        InvalidArgument: there is none.
    """
    named = [source.key_of(key) for key in keys]
    if not named:
        raise InvalidArgument(problem("no key is named", "an empty list", "a key, or all records without keys="))
    return named


def chosen_records(batch: RecordBatch, keys: Iterable[object], windows: WindowKind) -> RecordBatch:
    """The records of these keys, and the ticks that they need.

    Raises:
        UnknownRecord: the batch holds no such key.
    """
    codes = np.unique([code_of_key(batch.keys, key) for key in keys]).astype(np.intp)
    batch = with_idle_ticks(batch if windows.takes_null_values else without_null_values(batch))
    stair = np.empty(len(batch), np.int64)
    rejected = NO_REJECTIONS if batch.rejected is None else batch.rejected
    stream_times(batch.partition, batch.timestamp_ms, rejected, np.full(len(batch.partitions), -1, np.int64), stair)
    return records_of_keys(batch, codes, rows_of_keys(batch, codes, stair, windows))


def rows_of_keys(batch: RecordBatch, keys: npt.NDArray[np.intp], stream_time_ms: Numbers, windows: WindowKind) -> Rows:
    """The records of these keys, by their codes, and the ticks that they need; nothing came before the batch.

    The newest record of each of their partitions is among them. `stream_time_ms` is that after each record.
    """
    mine, is_record = np.isin(batch.key, keys), batch.is_record
    found, places = [np.empty(0, np.intp)], [np.empty(0, np.intp)]
    for code in np.unique(batch.partition[mine]).tolist():
        rows = np.flatnonzero(batch.partition == code)
        own, stair = mine[rows], stream_time_ms[rows]
        times_ms = batch.timestamp_ms[rows[own & batch.usable[rows]]]
        needed = needed_rows(windows, own, times_ms, last_rises(stair, -1), stair, -1).rows
        needed = np.union1d(needed, [len(rows) - 1])
        found.append(rows[needed])
        places.append((np.cumsum(is_record[rows]) - 1)[needed])  # of a row that is no record: of the last one before
    at, place = np.concatenate(found), np.concatenate(places)
    order = np.argsort(at)
    return Rows(at[order], place[order] if batch.chosen_from is None else batch.chosen_from.place[at[order]])


def records_of_keys(batch: RecordBatch, keys: npt.NDArray[np.intp], rows: Rows) -> RecordBatch:
    """A batch of these rows alone, in which those of other keys are ticks."""
    number = np.full(len(batch.keys) + 1, -1, np.int32)
    number[keys] = np.arange(len(keys))
    chosen = batch.replace(given_offset=batch.offset).take(rows.at)
    key, rejected = number[chosen.key], np.zeros(len(rows.at), np.uint8) if chosen.rejected is None else chosen.rejected
    moves = (rejected == 0) | (rejected >= TICK)
    tick_keys = batch.keys.take(pa.array(chosen.key, mask=(key >= 0) | (chosen.key < 0)))
    if chosen.chosen_from is not None:
        tick_keys = pc.coalesce(tick_keys, chosen.chosen_from.tick_keys)
    return chosen.replace(
        keys=batch.keys.take(pa.array(keys)),
        key=key,
        timestamp_ms=np.where((key < 0) & ~moves, -1, chosen.timestamp_ms),
        rejected=np.where((key < 0) & (rejected != IDLE), np.uint8(TICK), rejected),
        chosen_from=ChosenFrom(rows.place, tick_keys),
    )
