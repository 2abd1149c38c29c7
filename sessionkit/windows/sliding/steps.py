"""The steps of the sliding-window algorithm on one slot after the other, compiled.

`line` is the slot in hand (`places.Line`), `columns` are the records and windows of all slots, slot by slot,
`operations` what is done to the contents of windows; places are of the line here and of the slot's windows at the end.
"""

import numpy as np

from sessionkit.base.compiled import compiled_loop, inlined
from sessionkit.base.decisions import ADDED, LATE, OPENED
from sessionkit.windows.sliding.blocks import (
    NO_PLACE,
    largest_at,
    lay_largest,
    set_largest,
    take,
    taken_before,
    taken_between,
)
from sessionkit.windows.sliding.places import clear_trees, find_places, place_from, rank_times

NO_SOURCE = -1  # the window was made empty
TWICE = -2  # the same, and forwarded twice: as what follows the record before, and as what ends with this one
# places in `counters`
MADE, MISSED, PLACES = range(3)


@compiled_loop
def sliding_is_late(end_ms, close_time_ms):  # type: ignore[no-untyped-def]
    """THE late rule of sliding windows: the end is in the window. The kernel has it as `open_from`, without an end.

    Source: KStreamSlidingWindowAggregate.
    """
    return end_ms < close_time_ms


@compiled_loop
def open_from(stream_time_ms, grace, difference):  # type: ignore[no-untyped-def]
    """The earliest start of a window that is open at this stream time. Source: KStreamSlidingWindowAggregate."""
    return max(stream_time_ms - grace, 0) - difference  # no window ends at 0: the close time need not go below


@inlined
def _note_made(place, source, operations, counters):  # type: ignore[no-untyped-def]
    at = counters[MADE]
    operations.made_place[at] = place
    operations.made_source[at] = source
    counters[MADE] = at + 1


@inlined
def _windows_around(line, places, rank, t, difference, j, columns):  # type: ignore[no-untyped-def]
    """(last window that holds t and more, last before t's own, largest time in it or else in t's own, t was seen).

    Before `difference` there is no room to the left: the first window, from 0, is everybody's own. What a store does
    not show any more are windows that are closed: it still tells which record came before this one.
    """
    own = line.left[rank]
    is_asked = columns.found_from_ms.shape[0] > 0
    first_ms = columns.found_from_ms[j] if is_asked else np.int64(0)
    is_there = line.taken[own] > 0 and line.start[own] >= first_ms
    right = taken_before(line.taken, places, line.right[rank])
    if right <= own:
        right = NO_PLACE
    left = NO_PLACE
    latest = largest_at(line.latest, places, own) if is_there else NO_PLACE
    seen = latest == rank and t >= difference
    if t < difference:
        if right < 0 and latest > rank:
            right = own
        if latest >= rank:
            latest = NO_PLACE
    elif not seen:
        left = taken_before(line.taken, places, own)
        if left >= 0 and t - difference - line.start[left] > difference:
            left = NO_PLACE  # further away than Kafka looks
        if is_asked and left >= 0:
            columns.asked_ms[j] = line.start[left]
            if line.start[left] < first_ms:
                left = NO_PLACE
        if left >= 0:
            latest = largest_at(line.latest, places, left)
    return right, left, latest, seen


@inlined
def _make_windows(line, places, rank, t, first, difference, j, operations, columns, counters):  # type: ignore[no-untyped-def]
    """Makes the record's windows; gives whether one of them holds it, and how many were closed already."""
    own, after = line.left[rank], line.right[rank]
    right, left, latest, seen = _windows_around(line, places, rank, t, difference, j, columns)
    if seen:
        return False, 0
    made, lost = False, 0
    begin = counters[MADE]
    split_rank = NO_PLACE
    if right >= 0 and line.taken[after] == 0:
        split_rank = largest_at(line.latest, places, right)
    if split_rank > rank and t < difference:
        _note_made(after, right, operations, counters)
    following = line.right[latest] if latest >= 0 else NO_PLACE  # starts just after the record before this one
    if following >= own and line.taken[following] == 0:
        if following >= first:
            _note_made(following, TWICE if following == own else NO_SOURCE, operations, counters)
            made = True
        else:
            _note_missed(line, following, j, operations, counters)
            lost = 1
    if line.taken[own] == 0:
        if own < first:
            lost += 1
        elif following != own:
            _note_made(own, left if following > own else NO_SOURCE, operations, counters)
            made = True
    if split_rank > rank and t >= difference:
        _note_made(after, right, operations, counters)
    for at in range(begin, counters[MADE]):
        place = operations.made_place[at]
        take(line.taken, places, place)
        set_largest(line.latest, places, place, split_rank if place == after else rank, NO_PLACE, line.nodes)
    columns.outcome[j].made = counters[MADE] - begin
    return made, lost


@inlined
def _note_missed(line, place, j, operations, counters):  # type: ignore[no-untyped-def]
    at = counters[MISSED]
    operations.missed_at[at] = operations.record[j]
    operations.missed_start_ms[at] = line.start[place]
    counters[MISSED] = at + 1


@inlined
def _decide(line, places, rank, difference, j, operations, columns, counters):  # type: ignore[no-untyped-def]
    """Decides one record of a slot: its windows, its decision, and the range of windows that it is added to."""
    first, end = line.left[rank], line.right[rank]
    missed = 0
    if line.start[first] < columns.record[j].earliest:
        own = first
        first = place_from(line.start, first, end, columns.record[j].earliest)
        missed = taken_between(line.taken, places, own, first, line.nodes)
    columns.outcome[j].made = 0
    t = columns.record[j].time
    made, lost = _make_windows(line, places, rank, t, first, difference, j, operations, columns, counters)
    columns.outcome[j].dropped = missed + lost
    if made:
        columns.outcome[j].decision = OPENED
    elif taken_before(line.taken, places, end) >= first:
        columns.outcome[j].decision = ADDED
    else:
        columns.outcome[j].decision = LATE
        end = first
    lay_largest(line.latest, places, first, end, rank, line.nodes)
    operations.first[j] = first
    operations.end[j] = end


@inlined
def _arrange(line, begin, end, columns, loaded, loaded_start_ms, loaded_timestamp_ms, difference):  # type: ignore[no-untyped-def]
    """Prepares the line for a slot with these records and loaded windows; gives how many places it has."""
    records = end - begin
    for x in range(records):
        line.time[x] = columns.record[begin + x].time
    for x in range(loaded.shape[0]):
        line.time[records + x] = loaded_timestamp_ms[loaded[x]]
        line.loaded_start[x] = loaded_start_ms[loaded[x]]
    ranks = rank_times(line, records + loaded.shape[0])
    places = find_places(line, ranks, loaded.shape[0], difference)
    clear_trees(line, places, NO_PLACE)
    for x in range(loaded.shape[0]):
        take(line.taken, places, line.loaded_place[x])
        line.latest[line.loaded_place[x]] = line.rank[records + x]
    return places


@inlined
def _number_windows(line, places, begin, end, made_begin, loaded, operations, columns, counters):  # type: ignore[no-untyped-def]
    """Leaves out the places that stayed free, so that the slot's windows are numbered by start, and writes them out."""
    base = counters[PLACES]
    number = 0
    for place in range(places):
        line.number[place] = number
        number += line.taken[place]
    line.number[places] = number
    for j in range(begin, end):
        operations.made_count[j] = columns.outcome[j].made
        operations.first[j] = line.number[operations.first[j]]
        operations.end[j] = line.number[operations.end[j]]
    for at in range(made_begin, counters[MADE]):
        place = operations.made_place[at]
        columns.made_start_ms[at] = line.start[place]
        columns.made_timestamp_ms[at] = line.time_of[largest_at(line.latest, places, place)]
        operations.made_place[at] = line.number[place]
        if operations.made_source[at] >= 0:
            operations.made_source[at] = line.number[operations.made_source[at]]
    for x in range(loaded.shape[0]):
        place = line.loaded_place[x]
        columns.loaded_timestamp_ms[loaded[x]] = line.time_of[largest_at(line.latest, places, place)]
        operations.window[base + line.number[place]] = loaded[x]
    counters[PLACES] = base + number


@compiled_loop
def run_slots(  # type: ignore[no-untyped-def]
    columns, loaded_ends, loaded_by_slot, loaded_start_ms, loaded_timestamp_ms, difference, line, operations, counters
):
    """Decides the records of one slot after the other."""
    operations.window_ends[0] = 0
    operations.made_ends[0] = 0
    for s in range(operations.record_ends.shape[0] - 1):
        begin, end = operations.record_ends[s], operations.record_ends[s + 1]
        loaded = loaded_by_slot[loaded_ends[s] : loaded_ends[s + 1]]
        if begin < end or loaded.shape[0] > 0:
            places = _arrange(line, begin, end, columns, loaded, loaded_start_ms, loaded_timestamp_ms, difference)
            for j in range(begin, end):
                _decide(line, places, line.rank[j - begin], difference, j, operations, columns, counters)
            made_begin = operations.made_ends[s]
            _number_windows(line, places, begin, end, made_begin, loaded, operations, columns, counters)
        operations.window_ends[s + 1] = counters[PLACES]
        operations.made_ends[s + 1] = counters[MADE]
