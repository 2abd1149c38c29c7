"""The sliding-window algorithm over columns: which windows there are, and which of them each record counts in.

Keys are independent once stream time is known, so one slot (a key and partition) after the other is decided, its
records in order of arrival. Whatever the overlap, a record does at most four things to the contents of windows:
it makes up to three windows, each empty or as a copy of what another one held just before, and then it is added to all
windows that start in one range. That is what is kept here, and what the folds go by (`finals.py`, `running.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sessionkit.base.arrays import Bytes, Codes, Longs
from sessionkit.base.compiled import compiled, compiled_loop
from sessionkit.base.decisions import LATE
from sessionkit.base.durations import INT64_MAX, check_reach
from sessionkit.trace.loops import grouped
from sessionkit.windows.feed import NOTHING_HIDDEN
from sessionkit.windows.sliding.places import new_line
from sessionkit.windows.sliding.steps import MADE, MISSED, PLACES, open_from, run_slots

NOT_YET = -1
NOT_ASKED = INT64_MAX


class SlidingOperations(NamedTuple):
    """Changes of the contents of windows, slot by slot; places are the slot's windows by start, from 0."""

    record_ends: Longs  # where a slot's records end; slot s has those from [s] to [s + 1]
    record: Codes  # records in order of arrival, but not those that were late as a whole
    first: Codes  # the record was added to the windows from here …
    end: Codes  # … to before here
    made_count: Bytes  # how many windows the record made before that
    made_ends: Longs  # where a slot's rows of windows made end
    made_place: Codes  # one row a window made
    made_source: Codes  # place of the window that it is a copy of; NO_SOURCE, TWICE: it was empty
    window_ends: Longs
    window: Codes  # row of the window at a place
    missed_at: Codes  # records that would have made the window after the one before, were it not closed
    missed_start_ms: Longs


class SlidingRecords(NamedTuple):
    """The records that were decided, as they were given."""

    slot: Codes
    timestamp_ms: Longs
    stream_time_ms: Longs
    time_difference_ms: int
    grace_ms: int


class SlidingStructure(NamedTuple):
    """What records did, and the windows: loaded ones first, then the others in the order in which they were made."""

    decision: Bytes  # opened, added or late; 0 for a record without a slot
    dropped: Codes  # in how many closed windows the record does not count
    slot: Codes
    start_ms: Longs
    timestamp_ms: Longs  # the largest record time in the window
    opened_at: Longs  # the record that made it, -1: it was loaded
    asked_ms: Longs  # of each record the start of the window before, if it asked for it; else `NOT_ASKED`
    loaded_count: int
    operations: SlidingOperations
    records: SlidingRecords


# What goes to and fro between the order of arrival and that of the slots, together: a row is far from the one before.
RECORD = np.dtype([("time", "i8"), ("earliest", "i8")])
OUTCOME = np.dtype([("dropped", "i4"), ("decision", "u1"), ("made", "u1")], align=True)


class _Columns(NamedTuple):
    """Records and the windows that they made, slot by slot, so that nothing is fetched from afar while deciding."""

    record: npt.NDArray[np.void]  # a window that starts before `earliest` is closed for the record
    outcome: npt.NDArray[np.void]
    made_start_ms: Longs
    made_timestamp_ms: Longs
    loaded_timestamp_ms: Longs  # of the loaded windows, in the end
    found_from_ms: Longs  # the first start that a store shows to each record; empty: it shows all
    asked_ms: Longs


@compiled
def sort_records(slot, times, stair, slots, difference, grace, sorted_records, outcome):  # type: ignore[no-untyped-def]
    """(ends, records) by slot, and their times into `sorted_records`.

    Records late as a whole are left out, as even their last window [t, t + d] is closed: they go into `outcome` here.
    """
    ends = np.zeros(slots + 1, np.int64)
    for i in range(slot.shape[0]):
        if slot[i] >= 0:
            if times[i] >= open_from(stair[i], grace, difference):
                ends[slot[i] + 1] += 1
            else:
                outcome[i].decision = LATE
                outcome[i].dropped = 1
    for s in range(slots):
        ends[s + 1] += ends[s]
    filled = ends[:-1].copy()
    record = np.empty(ends[-1], np.int32)
    for i in range(slot.shape[0]):
        if slot[i] >= 0:
            earliest = open_from(stair[i], grace, difference)
            if times[i] >= earliest:
                at = filled[slot[i]]
                record[at] = i
                sorted_records[at].time = times[i]
                sorted_records[at].earliest = earliest
                filled[slot[i]] = at + 1
    return ends, record


@compiled_loop
def by_arrival(operations, columns, outcome):  # type: ignore[no-untyped-def]
    """Brings what records did into the order of arrival. Loops that go far away do that only, so that it overlaps."""
    for j in range(operations.record.shape[0]):
        i = operations.record[j]
        outcome[i].decision = columns.outcome[j].decision
        outcome[i].dropped = columns.outcome[j].dropped
        outcome[i].made = columns.outcome[j].made


@compiled_loop
def number_windows(outcome, loaded, decision, dropped, first_row):  # type: ignore[no-untyped-def]
    """Spreads out what records did, and numbers the windows that they made: rows from the record's first one on."""
    row = loaded
    for i in range(outcome.shape[0]):
        decision[i] = outcome[i].decision
        dropped[i] = outcome[i].dropped
        first_row[i] = row
        row += outcome[i].made


@compiled_loop
def fill_windows(outcome, loaded, slot_of_record, slot, opened_at):  # type: ignore[no-untyped-def]
    """Where the new windows belong, and which record made them."""
    row = loaded
    for i in range(outcome.shape[0]):
        for _ in range(outcome[i].made):
            slot[row] = slot_of_record[i]
            opened_at[row] = i
            row += 1


@compiled_loop
def place_windows(operations, first_row, rows):  # type: ignore[no-untyped-def]
    """Tells at each place the row of its window; `rows` has room for the records of a slot."""
    at = 0
    for s in range(operations.record_ends.shape[0] - 1):
        begin, end = operations.record_ends[s], operations.record_ends[s + 1]
        base = operations.window_ends[s]
        for j in range(begin, end):
            rows[j - begin] = first_row[operations.record[j]]
        for j in range(begin, end):
            for row in range(rows[j - begin], rows[j - begin] + operations.made_count[j]):
                operations.window[base + operations.made_place[at]] = row
                at += 1


@compiled_loop
def spread_windows(operations, made, column):  # type: ignore[no-untyped-def]
    """Brings a column of the windows made into the order of their rows."""
    for s in range(operations.record_ends.shape[0] - 1):
        base = operations.window_ends[s]
        for at in range(operations.made_ends[s], operations.made_ends[s + 1]):
            column[operations.window[base + operations.made_place[at]]] = made[at]


def sliding_structure(
    slot: Codes,
    times: Longs,
    stair: Longs,
    slots: int,
    loaded_slot: Codes,
    loaded_start_ms: Longs,
    loaded_timestamp_ms: Longs,
    *,
    time_difference_ms: int,
    grace_ms: int,
    found_from_ms: Longs = NOTHING_HIDDEN,
) -> SlidingStructure:
    """What the records of a batch do, given the windows that a store holds of their slots.

    `slot` is -1 for a record to be skipped; `stair` is the stream time of the record's partition with the record in it.
    `found_from_ms` is the first start that a store shows to each record; empty: it shows all, and is not asked.
    Of the windows that were there before, those that end more than twice the time difference before the close time
    can be left out: no record reaches them.
    """
    check_reach(int(times.max(where=slot >= 0, initial=0)), time_difference_ms + 1, "time_difference")
    records = SlidingRecords(slot, times, stair, time_difference_ms, grace_ms)
    sorted_records, outcome = np.empty(len(slot), RECORD), np.zeros(len(slot), OUTCOME)
    ends, record = sort_records(slot, times, stair, slots, time_difference_ms, grace_ms, sorted_records, outcome)
    loaded_ends, loaded = grouped(loaded_slot, slots)
    most = 2 * (len(record) + len(loaded))  # a distinct time makes at most two windows, a loaded one's too
    columns = _Columns(
        record=sorted_records,
        outcome=np.empty(len(record), OUTCOME),
        made_start_ms=np.empty(most, np.int64),
        made_timestamp_ms=np.empty(most, np.int64),
        loaded_timestamp_ms=np.empty(len(loaded), np.int64),
        found_from_ms=found_from_ms[record] if len(found_from_ms) else found_from_ms,
        asked_ms=np.full(len(record) if len(found_from_ms) else 0, NOT_ASKED),
    )
    operations = _room(ends, record, most)
    entries = int((np.diff(ends) + np.diff(loaded_ends)).max(initial=0))
    line = new_line(entries, int(np.diff(loaded_ends).max(initial=0)))
    counters = np.zeros(3, np.int64)
    run_slots(
        columns,
        loaded_ends,
        loaded,
        loaded_start_ms,
        loaded_timestamp_ms,
        time_difference_ms,
        line,
        operations,
        counters,
    )
    by_arrival(operations, columns, outcome)
    return _structure(records, columns, outcome, _trimmed(operations, counters), loaded_slot, loaded_start_ms)


def _structure(
    records: SlidingRecords,
    columns: _Columns,
    outcome: npt.NDArray[np.void],
    operations: SlidingOperations,
    loaded_slot: Codes,
    loaded_start_ms: Longs,
) -> SlidingStructure:
    """The structure in its final order. Columns that were read are filled anew, as fresh memory is slower."""
    count, windows, loaded = len(records.slot), len(operations.window), len(loaded_slot)
    decision, dropped, first_row = np.empty(count, np.uint8), np.empty(count, np.int32), np.empty(count, np.int32)
    number_windows(outcome, loaded, decision, dropped, first_row)
    place_windows(operations, first_row, np.empty(int(np.diff(operations.record_ends).max(initial=0)), np.int32))
    start_ms = np.empty(windows, np.int64)
    spread_windows(operations, columns.made_start_ms, start_ms)
    start_ms[:loaded] = loaded_start_ms
    timestamp_ms = columns.made_start_ms[:windows]
    spread_windows(operations, columns.made_timestamp_ms, timestamp_ms)
    timestamp_ms[:loaded] = columns.loaded_timestamp_ms
    slot, opened_at = np.empty(windows, np.int32), columns.made_timestamp_ms[:windows]
    fill_windows(outcome, loaded, records.slot, slot, opened_at)
    slot[:loaded] = loaded_slot
    opened_at[:loaded] = NOT_YET
    asked_ms = np.full(count, NOT_ASKED)
    if len(columns.asked_ms):
        asked_ms[operations.record] = columns.asked_ms
    return SlidingStructure(
        decision, dropped, slot, start_ms, timestamp_ms, opened_at, asked_ms, loaded, operations, records
    )


def _room(ends: Longs, record: Codes, windows: int) -> SlidingOperations:
    """Room for the operations of these records, which make `windows` windows. Unused pages cost nothing."""
    return SlidingOperations(
        record_ends=ends,
        record=record,
        first=np.empty(len(record), np.int32),
        end=np.empty(len(record), np.int32),
        made_count=np.empty(len(record), np.uint8),
        made_ends=np.empty(len(ends), np.int64),
        made_place=np.empty(windows, np.int32),
        made_source=np.empty(windows, np.int32),
        window_ends=np.empty(len(ends), np.int64),
        window=np.empty(windows, np.int32),
        missed_at=np.empty(len(record), np.int32),
        missed_start_ms=np.empty(len(record), np.int64),
    )


def _trimmed(operations: SlidingOperations, counters: Longs) -> SlidingOperations:
    made, missed, windows = (int(counters[place]) for place in (MADE, MISSED, PLACES))
    return operations._replace(
        made_place=operations.made_place[:made],
        made_source=operations.made_source[:made],
        window=operations.window[:windows],
        missed_at=operations.missed_at[:missed].copy(),
        missed_start_ms=operations.missed_start_ms[:missed].copy(),
    )
