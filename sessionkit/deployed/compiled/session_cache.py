"""The record cache before a store of sessions, over columns: its entries in their orders, use, writes and evictions.

Each function is a step of `stores.cache.sessions` or `stores.cache.named_cache`, which are the readable form.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from sessionkit.base.arrays import Codes, Longs
from sessionkit.base.compiled import compiled_loop
from sessionkit.base.durations import INT64_MAX
from sessionkit.deployed.compiled.chains import NOWHERE, Chain, append, move_behind, take_out
from sessionkit.trace.sent import NO_VALUE

StructArray: TypeAlias = npt.NDArray[np.void]
PLACE = np.dtype(
    [
        ("start", "i8"), ("end", "i8"), ("held", "i8"),  # bytes in the cache; -1: it is not there
        ("step", "i8"), ("stored", "i8"),  # of its value, and of that which the store has there: `NO_VALUE` for none
        ("row", "i4"), ("slot", "i4"), ("older", "i4"), ("newer", "i4"),  # in the order of ends, then starts
        ("is_there", "u1"), ("is_dirty", "u1"),  # else it is removed; the store has not seen it
    ],
    align=True,
)  # fmt: skip
WRITE = np.dtype(
    [("start", "i8"), ("end", "i8"), ("at", "i4"), ("step", "i4"), ("old", "i4"), ("row", "i4"), ("taken", "u1")]
)  # many more than records: no byte is left between them
ANSWER = np.dtype(  # of the store, where a retention that Kafka allows could give another one
    [("at", "i8"), ("time", "i8"), ("observed", "i8"), ("row", "i4"), ("what", "u1"), ("is_true", "u1")], align=True
)
# `what`: by a record or a look; the value that a write replaces; what is written; and, which is no answer of the store,
# the time up to which a look finds windows beside that of the next one: it is used if both lie in one segment
FOUND, IS_OLD, IS_KEPT, AHEAD = range(4)
MOST_OF_A_RECORD = 3  # places: it removes two sessions and puts one
# places in `numbers`
NUMBERS = 7
HELD, MOST_HELD, FREE, PLACES, WRITES, ANSWERS, COMMITS = range(NUMBERS)


class Cache(NamedTuple):
    """The entries of all partitions; those of a slot also lie in a list, in order of time."""

    places: StructArray  # rows of `PLACE`
    used: Chain  # by last use, where entries can be evicted
    dirty: Chain  # by last write
    newest: Codes  # of each slot
    together: Codes  # of each slot the place from which on its places lie one behind the other in `used`
    at_edge: Codes  # how many places of each slot end with a segment
    place_of: Codes  # of each session that is in the cache
    stored: Longs  # the step of the value that the store has of each other session
    observed_ms: Longs  # by the store of each partition
    numbers: Longs
    writes: StructArray  # rows of `WRITE`
    answers: StructArray  # rows of `ANSWER`


class Rules(NamedTuple):
    """What fits into the cache, and how the store behind it forgets."""

    most: int  # bytes; INT64_MAX: all
    retention_ms: int
    lowest_ms: int  # the smallest retention that Kafka allows
    interval_ms: int  # of segments; 0 in memory
    in_cells: bool  # many sessions of a slot are found by cells, which overlook some that the store has forgotten

    @property
    def evicts(self) -> bool:
        """Whether it matters which entries are used."""
        return self.most < INT64_MAX


# ---- the list of a slot


@compiled_loop
def _is_behind(place, end, start):  # type: ignore[no-untyped-def]
    return place.end > end or (place.end == end and place.start > start)


@compiled_loop
def _follows(places, one, other):  # type: ignore[no-untyped-def]
    return _is_behind(places[one], places[other].end, places[other].start)


@compiled_loop
def place_at(cache, rules, slot, start, end):  # type: ignore[no-untyped-def]
    """The place of a slot with these bounds; a new one if there is none."""
    places, numbers = cache.places, cache.numbers
    near, after = cache.newest[slot], NOWHERE
    if near != NOWHERE and _is_behind(places[near], end, start):
        near = cache.together[slot]
        while near != NOWHERE and _is_behind(places[near], end, start):
            near, after = places[near].older, near
        if near != NOWHERE:
            after = places[near].newer
            while after != NOWHERE and not _is_behind(places[after], end, start):
                near, after = after, places[after].newer
    if near != NOWHERE and places[near].end == end and places[near].start == start:
        return near
    place = numbers[FREE]
    if place == NOWHERE:
        place = numbers[PLACES]
        numbers[PLACES] += 1
    else:
        numbers[FREE] = places[place].older
    places[place].start, places[place].end, places[place].slot = start, end, slot
    places[place].held, places[place].stored, places[place].is_dirty = -1, NO_VALUE, 0
    places[place].older, places[place].newer = near, after
    if near != NOWHERE:
        places[near].newer = place
    if after != NOWHERE:
        places[after].older = place
    else:
        cache.newest[slot] = place
    if rules.interval_ms > 0 and (end + 1) % rules.interval_ms == 0:
        cache.at_edge[slot] += 1
    return place


@compiled_loop
def _give_up(cache, rules, place):  # type: ignore[no-untyped-def]
    """Takes a place that is in neither chain out of the cache."""
    places, numbers = cache.places, cache.numbers
    slot, older, newer = places[place].slot, places[place].older, places[place].newer
    if older != NOWHERE:
        places[older].newer = newer
    if newer != NOWHERE:
        places[newer].older = older
    else:
        cache.newest[slot] = older
    if cache.together[slot] == place:
        cache.together[slot] = newer if newer != NOWHERE else older
    if rules.interval_ms > 0 and (places[place].end + 1) % rules.interval_ms == 0:
        cache.at_edge[slot] -= 1
    if places[place].is_there:
        cache.place_of[places[place].row] = NOWHERE
        cache.stored[places[place].row] = places[place].stored
    numbers[HELD] -= places[place].held
    places[place].older = numbers[FREE]
    numbers[FREE] = place


# ---- use and writes


@compiled_loop
def use_places(cache, rules, slot, own, from_ms, until_ms):  # type: ignore[no-untyped-def]
    """Uses the places of a slot that end at `from_ms` or later, in their order, as a read goes through them.

    A read in segments does not reach a place at the very end of one that starts after `until_ms`.
    """
    places, used, together = cache.places, cache.used, cache.together[slot]
    if together == NOWHERE or places[cache.newest[slot]].end < from_ms:
        return
    first = together
    while places[first].end < from_ms:
        first = places[first].newer
    while places[first].older != NOWHERE and places[places[first].older].end >= from_ms:
        first = places[first].older
    cache.together[slot] = first
    if cache.at_edge[slot] == 0:
        run = together if _follows(places, together, first) else first
        while first != run:
            move_behind(used, own, first, first)
            first = places[first].newer
        move_behind(used, own, run, cache.newest[slot])
        return
    while first != NOWHERE:
        newer = places[first].newer
        if places[first].start > until_ms and (places[first].end + 1) % rules.interval_ms == 0:
            cache.together[slot] = newer if newer != NOWHERE else first
        else:
            move_behind(used, own, first, first)
        first = newer


@compiled_loop
def is_within(cache, rules, own, row, end, at, what):  # type: ignore[no-untyped-def]
    """Whether the store still shows what ends there; takes note where that depends on the retention."""
    observed = cache.observed_ms[own]
    is_true = end > observed - rules.retention_ms
    if observed - end >= rules.lowest_ms:
        take_note(cache.answers[cache.numbers[ANSWERS]], row, end, observed, at, what, is_true)
        cache.numbers[ANSWERS] += 1
    return is_true


@compiled_loop
def take_note(answer, row, time, observed, at, what, is_true):  # type: ignore[no-untyped-def]
    """Fills in a row of `ANSWER`."""
    answer.at, answer.time, answer.observed = at, time, observed
    answer.row, answer.what, answer.is_true = row, what, is_true


@compiled_loop
def _is_kept(cache, rules, own, row, end, at):  # type: ignore[no-untyped-def]
    """Whether the store takes what ends there; on disk all of live segments."""
    observed, interval = cache.observed_ms[own], rules.interval_ms
    if interval == 0:
        return is_within(cache, rules, own, row, end, at, IS_KEPT)
    is_true = end >= max(observed - rules.retention_ms, 0) // interval * interval
    if observed - end > rules.lowest_ms:
        take_note(cache.answers[cache.numbers[ANSWERS]], row, end, observed, at, IS_KEPT, is_true)
        cache.numbers[ANSWERS] += 1
    return is_true


@compiled_loop
def _write(cache, rules, own, place, at):  # type: ignore[no-untyped-def]
    """Hands an entry on to the store at a record, and downstream."""
    places, count = cache.places, cache.numbers[WRITES]
    end, row, old = places[place].end, places[place].row, places[place].stored
    if old != NO_VALUE and not is_within(cache, rules, own, row, end, at, IS_OLD):
        old = NO_VALUE
    step = places[place].step if places[place].is_there else NO_VALUE
    if step == NO_VALUE and old == NO_VALUE:
        return  # neither the store nor anyone downstream has seen it
    cache.observed_ms[own] = max(cache.observed_ms[own], end)
    taken = _is_kept(cache, rules, own, row, end, at)
    places[place].stored = step if taken else NO_VALUE
    write = cache.writes[count]
    write.at, write.row, write.taken = at, row, taken
    write.start, write.end, write.step, write.old = places[place].start, end, step, old
    cache.numbers[WRITES] += 1


@compiled_loop
def _flush(cache, rules, own, at):  # type: ignore[no-untyped-def]
    """Writes the dirty entries of a partition in order of their last writes; those that are removed go."""
    place = cache.dirty.first[own]
    cache.dirty.first[own] = cache.dirty.last[own] = NOWHERE
    while place != NOWHERE:
        following = cache.dirty.behind[place]
        cache.places[place].is_dirty = 0
        _write(cache, rules, own, place, at)
        if not cache.places[place].is_there:
            if rules.most < INT64_MAX:
                take_out(cache.used, own, place)
            _give_up(cache, rules, place)
        place = following


@compiled_loop
def put(cache, rules, own, place, row, step, size, at):  # type: ignore[no-untyped-def]
    """Puts a session, or with the step `NO_VALUE` its removal, into its place; too many bytes, and others go."""
    places, used, dirty, numbers = cache.places, cache.used, cache.dirty, cache.numbers
    is_new, slot, older = places[place].held < 0, places[place].slot, places[place].older
    if rules.most < INT64_MAX:
        if not is_new:
            take_out(used, own, place)
        append(used, own, place)
        if places[place].newer != NOWHERE:
            if not _follows(places, cache.together[slot], place):
                cache.together[slot] = places[place].newer
        elif older == NOWHERE or used.before[place] != older:
            cache.together[slot] = place
    else:
        cache.together[slot] = place
    if places[place].is_dirty:
        take_out(dirty, own, place)
    append(dirty, own, place)
    numbers[HELD] += size if is_new else size - places[place].held
    numbers[MOST_HELD] = max(numbers[MOST_HELD], numbers[HELD])
    places[place].is_there, places[place].is_dirty = step != NO_VALUE, 1
    places[place].row, places[place].step, places[place].held = row, step, size
    cache.place_of[row] = place if step != NO_VALUE else NOWHERE
    while numbers[HELD] > rules.most and used.first[own] != NOWHERE:
        oldest = used.first[own]
        take_out(used, own, oldest)
        if places[oldest].is_dirty:
            take_out(dirty, own, oldest)
            _write(cache, rules, own, oldest, at)
            _flush(cache, rules, own, at)
        _give_up(cache, rules, oldest)


@compiled_loop
def commit_until(cache, rules, commits, record):  # type: ignore[no-untyped-def]
    """Does the commits that come before a record."""
    numbers = cache.numbers
    while numbers[COMMITS] < commits.shape[0] and commits[numbers[COMMITS]] < record:
        for own in range(cache.observed_ms.shape[0]):
            _flush(cache, rules, own, commits[numbers[COMMITS]])
        numbers[COMMITS] += 1
