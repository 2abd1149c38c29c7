"""The places of one slot's sliding windows: every start that a window of these records can have, in order.

They are known before any record is decided: a record at t can make windows that start at t - d (at 0 where that is
negative) and at t + 1, nothing else; what was loaded has its own starts, and its largest times count like records.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sessionkit.base.arrays import Codes, Longs
from sessionkit.base.compiled import compiled_loop
from sessionkit.windows.sliding.blocks import MOST_LEVELS, tree_length

SHORT = 16


class Line(NamedTuple):
    """Room for the slot in hand. A rank is the number of a distinct time, a place the number of a distinct start."""

    time: Longs  # of its records and of its loaded windows, sorted
    entry: Codes  # which of them
    spare_time: Longs
    spare_entry: Codes
    rank: Codes  # of each entry: records in order of arrival, then loaded windows
    time_of: Longs  # time of a rank
    left: Codes  # the place of the window that ends at the time of a rank (the first, before d)
    right: Codes  # the place of the window that starts just after it
    loaded_start: Longs  # sorted
    loaded: Codes  # which of the loaded windows
    loaded_place: Codes
    start: Longs  # of a place
    number: Codes  # of a place, among those that are taken in the end
    taken: Codes  # a tree: is there a window
    latest: Codes  # a tree: the largest rank in the window
    nodes: Longs


def new_line(entries: int, loaded: int) -> Line:
    """Room for a slot with at most as many records and loaded windows (`entries`), of which so many are loaded."""
    places = 2 * entries + loaded
    nodes = tree_length(places)

    def longs(size: int) -> Longs:
        return np.empty(size, np.int64)

    def ints(size: int) -> Codes:
        return np.empty(size, np.int32)

    return Line(
        time=longs(entries),
        entry=ints(entries),
        spare_time=longs(max(entries, loaded)),
        spare_entry=ints(max(entries, loaded)),
        rank=ints(entries),
        time_of=longs(entries),
        left=ints(entries),
        right=ints(entries),
        loaded_start=longs(loaded),
        loaded=ints(loaded),
        loaded_place=ints(loaded),
        start=longs(places),
        number=ints(places + 1),
        taken=ints(nodes),
        latest=ints(nodes),
        nodes=longs(4 * MOST_LEVELS),
    )


@compiled_loop
def sort_pairs(key, tag, size, spare_key, spare_tag):  # type: ignore[no-untyped-def]
    """Sorts by key, equal ones as they came: short runs by insertion, then by merging what is out of order.

    Times come nearly sorted, and then most runs need no merging, and a merge touches few.
    """
    for begin in range(0, size, SHORT):
        for at in range(begin + 1, min(begin + SHORT, size)):
            moved_key, moved_tag = key[at], tag[at]
            to = at
            while to > begin and key[to - 1] > moved_key:
                key[to] = key[to - 1]
                tag[to] = tag[to - 1]
                to -= 1
            key[to] = moved_key
            tag[to] = moved_tag
    width = SHORT
    while width < size:
        for begin in range(0, size - width, 2 * width):
            _merge(key, tag, begin, begin + width, min(begin + 2 * width, size), spare_key, spare_tag)
        width *= 2


@compiled_loop
def _merge(key, tag, begin, middle, end, spare_key, spare_tag):  # type: ignore[no-untyped-def]
    """Merges two sorted runs; the tail of the first that has to move is put aside."""
    first = middle
    while first > begin and key[first - 1] > key[middle]:
        first -= 1
    aside = middle - first
    for at in range(aside):
        spare_key[at] = key[first + at]
        spare_tag[at] = tag[first + at]
    one = 0
    other = middle
    to = first
    while one < aside:
        if other < end and key[other] < spare_key[one]:
            key[to] = key[other]
            tag[to] = tag[other]
            other += 1
        else:
            key[to] = spare_key[one]
            tag[to] = spare_tag[one]
            one += 1
        to += 1


@compiled_loop
def rank_times(line, entries):  # type: ignore[no-untyped-def]
    """Ranks the times in `line.time`, one an entry, which are sorted by that; returns how many distinct ones."""
    for x in range(entries):
        line.entry[x] = x
    sort_pairs(line.time, line.entry, entries, line.spare_time, line.spare_entry)
    ranks = 0
    for x in range(entries):
        if ranks == 0 or line.time[x] != line.time_of[ranks - 1]:
            line.time_of[ranks] = line.time[x]
            ranks += 1
        line.rank[line.entry[x]] = ranks - 1
    return ranks


@compiled_loop
def find_places(line, ranks, loaded, difference):  # type: ignore[no-untyped-def]
    """Numbers the starts: each rank's two windows', and the loaded ones' in `line.loaded_start`; how many there are."""
    for x in range(loaded):
        line.loaded[x] = x
    sort_pairs(line.loaded_start, line.loaded, loaded, line.spare_time, line.spare_entry)
    places = 0
    left = 0
    right = 0
    entry = 0
    while right < ranks or entry < loaded:
        start = line.time_of[right] + 1 if right < ranks else np.int64(2**63 - 1)
        if left < ranks:
            start = min(start, max(np.int64(0), line.time_of[left] - difference))
        if entry < loaded:
            start = min(start, line.loaded_start[entry])
        line.start[places] = start
        while left < ranks and max(0, line.time_of[left] - difference) == start:
            line.left[left] = places
            left += 1
        if right < ranks and line.time_of[right] + 1 == start:
            line.right[right] = places
            right += 1
        if entry < loaded and line.loaded_start[entry] == start:
            line.loaded_place[line.loaded[entry]] = places
            entry += 1
        places += 1
    return places


@compiled_loop
def clear_trees(line, places, nothing):  # type: ignore[no-untyped-def]
    """No window is there yet."""
    nodes = tree_length(places)
    line.taken[:nodes] = 0
    line.latest[:nodes] = nothing


@compiled_loop
def place_from(start, first, end, start_ms):  # type: ignore[no-untyped-def]
    """The first of the places from `first` to `end` that starts at `start_ms` or later; `end` if none does."""
    while first < end:
        middle = (first + end) >> 1
        if start[middle] < start_ms:
            first = middle + 1
        else:
            end = middle
    return first
