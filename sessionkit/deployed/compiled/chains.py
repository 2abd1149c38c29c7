"""Entries of a record cache of each partition, one behind the other: by last use, or by last write."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sessionkit.base.arrays import Longs
from sessionkit.base.compiled import compiled_loop

NOWHERE = -1  # in place of an entry


class Chain(NamedTuple):
    """The first and last entry of each partition, and the one before and behind each entry."""

    first: Longs
    last: Longs
    before: Longs
    behind: Longs

    @classmethod
    def none(cls, partitions: int, entries: int) -> Chain:
        return cls(*(np.full(size, NOWHERE) for size in (partitions, partitions, entries, entries)))

    def rows(self) -> list[int]:
        """All entries, one partition after the other, each from its first to its last."""
        found, behind = [], self.behind.tolist()
        for entry in self.first.tolist():
            while entry != NOWHERE:
                found.append(entry)
                entry = behind[entry]
        return found

    def with_room(self, entries: int) -> Chain:
        """The chain with room for so many entries."""
        before, behind = (np.append(each, np.full(entries - len(each), NOWHERE)) for each in self[2:])
        return self._replace(before=before, behind=behind)


@compiled_loop
def append(chain, own, entry):  # type: ignore[no-untyped-def]
    """Puts an entry that is in no place behind all others of the partition."""
    chain.before[entry], chain.behind[entry] = chain.last[own], NOWHERE
    if chain.last[own] == NOWHERE:
        chain.first[own] = entry
    else:
        chain.behind[chain.last[own]] = entry
    chain.last[own] = entry


@compiled_loop
def take_out(chain, own, entry):  # type: ignore[no-untyped-def]
    """Takes an entry out of its place."""
    before, behind = chain.before[entry], chain.behind[entry]
    if before == NOWHERE:
        chain.first[own] = behind
    else:
        chain.behind[before] = behind
    if behind == NOWHERE:
        chain.last[own] = before
    else:
        chain.before[behind] = before


@compiled_loop
def move_behind(chain, own, first, last):  # type: ignore[no-untyped-def]
    """Moves the entries from `first` to `last`, which are one behind the other, behind all others."""
    behind = chain.behind[last]
    if behind == NOWHERE:
        return
    before = chain.before[first]
    if before == NOWHERE:
        chain.first[own] = behind
    else:
        chain.behind[before] = behind
    chain.before[behind] = before
    chain.before[first], chain.behind[chain.last[own]] = chain.last[own], first
    chain.behind[last], chain.last[own] = NOWHERE, last
