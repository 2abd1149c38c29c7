"""Some keys of a partition: their records, and the ticks that they need.

Keys meet in stream time alone. So the records of some keys decide what they do among all others if ticks are among
them: rows that only move stream time, where a record of another key moved it. They need those that they can tell
apart: the last one before each of them, and the first one that closes a window in which one of them can be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.arrays import Bytes, Codes, Flags, Longs, distinct
from sessionkit.base.decisions import IDLE, TICK
from sessionkit.base.durations import INT64_MAX
from sessionkit.engine.idle_partitions import with_idle_ticks
from sessionkit.errors import InvalidArgument, UnknownRecord, problem, shorten
from sessionkit.records.batch import ChosenFrom, RecordBatch, is_spark_frame, without_null_values
from sessionkit.records.keys import list_of_keys, place_among
from sessionkit.records.loops import stream_times
from sessionkit.records.source import Source
from sessionkit.trace.slots import NO_REJECTIONS
from sessionkit.windows.contract import WindowKind


class Rows(NamedTuple):
    """Some rows of a batch, rising, and how many records of its partition came before each."""

    at: npt.NDArray[np.intp]
    place: npt.NDArray[np.intp]


class PartitionSoFar:
    """How far the records of a partition have been read, part by part, for some sets of keys.

    It keeps the stream time, and of each set the instants that no record has passed yet.
    """

    def __init__(self, windows: WindowKind, sets: int = 1) -> None:
        self._windows = windows
        self._stream_time_ms = np.full(1, -1, np.int64)
        self._waiting_ms = [np.empty(0, np.int64)] * sets  # their windows close when stream time is larger

    def needed_rows(
        self, timestamp_ms: Longs, moving_ms: Longs, rejected: Bytes | None, mine: Iterable[Flags]
    ) -> Iterator[npt.NDArray[np.intp]]:
        """The rows of the next part that each set of keys needs, rising: its records and their ticks.

        Args:
            moving_ms: to when each record may move stream time.
            rejected: why each record is none that windows look at, 0 if it is one; None if all are.
            mine: for each set which of these records have one of its keys.
        """
        before_ms, stair = int(self._stream_time_ms[0]), np.empty(len(timestamp_ms), np.int64)
        reasons = NO_REJECTIONS if rejected is None else rejected
        stream_times(np.zeros(len(stair), np.int32), moving_ms, reasons, self._stream_time_ms, stair)
        is_rise = np.diff(stair, prepend=before_ms) > 0
        rises = np.maximum.accumulate(np.where(is_rise, np.arange(len(stair)), -1))  # the last one up to each record
        for number, own in enumerate(mine):
            closing = np.empty(0, np.intp)
            if self._windows.is_ever_closed:
                times_ms = timestamp_ms[own if rejected is None else own & (rejected == 0)]
                closing = self._closing(number, times_ms, stair, before_ms)
            ticks = np.append(rises[own], rises[-1])
            wanted = own.copy()
            wanted[ticks[ticks >= 0]] = True
            wanted[closing] = True
            yield np.flatnonzero(wanted)

    def _closing(self, number: int, times_ms: Longs, stair: Longs, before_ms: int) -> npt.NDArray[np.intp]:
        """The first row that passes each instant of a set, whose newest records have these times."""
        last_ms = self._windows.last_instants_ms(times_ms)
        limit_ms = last_ms + np.minimum(self._windows.close_lag_ms, INT64_MAX - last_ms)  # must not wrap
        waiting_ms = distinct(np.append(self._waiting_ms[number], limit_ms[limit_ms >= before_ms]))
        at = np.searchsorted(stair, waiting_ms, side="right")
        is_passed = at < len(stair)
        self._waiting_ms[number] = waiting_ms[~is_passed]
        return at[is_passed]


class PartitionsSoFar:
    """How far the records of all partitions have been read, part by part, for one set of keys."""

    def __init__(self, windows: WindowKind) -> None:
        self._windows = windows
        self._partitions: dict[int, PartitionSoFar] = {}
        self._counts: Counter[int] = Counter()  # of the records of each

    def needed_rows(self, batch: RecordBatch, mine: Flags, codes: Codes | None = None) -> Rows:
        """The rows of the next part that the keys need: its records, their ticks, and the newest row of each partition.

        Args:
            mine: which records have one of the keys.
            codes: of the partitions that are looked at; all of them if not given.
        """
        is_record = batch.is_record
        found, places = [np.empty(0, np.intp)], [np.empty(0, np.intp)]
        for code in np.unique(batch.partition).tolist() if codes is None else codes.tolist():
            rows, number = np.flatnonzero(batch.partition == code), int(batch.partitions[code])
            so_far = self._partitions.setdefault(number, PartitionSoFar(self._windows))
            rejected = None if batch.rejected is None else batch.rejected[rows]
            times_ms, moving_ms = batch.timestamp_ms[rows], batch.moving_ms[rows]
            (needed,) = so_far.needed_rows(times_ms, moving_ms, rejected, [mine[rows]])
            needed = distinct(np.append(needed, len(rows) - 1))
            place = self._counts[number] + np.cumsum(is_record[rows]) - 1  # of what is no record: of the last one
            found.append(rows[needed])
            places.append(place[needed])
            self._counts[number] = int(place[-1]) + 1
        at, places_in_order = np.concatenate(found), np.concatenate(places)
        order = np.argsort(at)
        return Rows(at[order], places_in_order[order])


def checked_keys(source: Source, keys: Any, data: Any, of_all_keys: list[str]) -> list[Any]:
    """The keys that `Plan.run` was given, as they are inside; `of_all_keys` was asked for beside them."""
    list_of_keys(keys)
    if not source.keys:
        got = f"keys={shorten(repr(keys))}"
        raise InvalidArgument(problem("a plan without a key column has no keys to choose from", got, "all records"))
    if is_spark_frame(data):
        want = 'plan.run(df).of("ada"), or leave keys= out'
        raise InvalidArgument(problem("keys= is for records that are read here", "a Spark DataFrame", want))
    named = named_keys(source, keys)
    for got in of_all_keys:  # a state would lack the other keys; stores, caches and buffers hold them together
        raise InvalidArgument(problem("a run of some keys stands by itself", got, f"keys= or {got}, not both"))
    return named


def named_keys(source: Source, keys: Iterable[Any]) -> list[Any]:
    """These keys as they are inside; refuses an empty list."""
    named = [source.key_of(key) for key in keys]
    if not named:
        raise InvalidArgument(problem("no key is named", "an empty list", "a key, or all records without keys="))
    return named


def chosen_records(batch: RecordBatch, codes: Iterable[int], windows: WindowKind) -> RecordBatch:
    """The records of the keys with these codes, and the ticks that they need."""
    keys = distinct(np.array([*codes], np.intp))
    batch = with_idle_ticks(batch if windows.takes_null_values else without_null_values(batch))
    return records_of_keys(batch, keys, rows_of_keys(batch, keys, windows))


def picked_records(
    batch: RecordBatch, place: Longs, keys: Iterable[Any], windows: WindowKind, unknown: str
) -> RecordBatch:
    """As `chosen_records`, from a batch that has no more than these keys need; `place` is where each row stood.

    Raises:
        UnknownRecord: one of the keys is not there, as `unknown` says.
    """
    codes = []
    for key in keys:
        codes.append(place_among(batch.keys, key))
        if codes[-1] < 0:
            raise UnknownRecord(problem(unknown, shorten(repr(key)), "another key"))
    ticks = pa.nulls(len(batch), batch.keys.type)
    return chosen_records(batch.replace(chosen_from=ChosenFrom(place, ticks)), codes, windows)


def rows_of_keys(batch: RecordBatch, keys: npt.NDArray[np.intp], windows: WindowKind) -> Rows:
    """The records of these keys, by their codes, and the ticks that they need; nothing came before the batch.

    The newest record of each of their partitions is among them.
    """
    chosen = np.isin(batch.key, keys)
    rows = PartitionsSoFar(windows).needed_rows(batch, chosen, np.unique(batch.partition[chosen]))
    return rows if batch.chosen_from is None else rows._replace(place=batch.chosen_from.place[rows.at])


def records_of_keys(batch: RecordBatch, keys: npt.NDArray[np.intp], rows: Rows) -> RecordBatch:
    """A batch of these rows alone, in which those of other keys are ticks."""
    number = np.full(len(batch.keys) + 1, -1, np.int32)
    number[keys] = np.arange(len(keys))
    chosen = batch.replace(given_offset=batch.offset).take(rows.at)
    key, rejected = number[chosen.key], np.zeros(len(rows.at), np.uint8) if chosen.rejected is None else chosen.rejected
    moves = chosen.moves | (rejected >= TICK)
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
