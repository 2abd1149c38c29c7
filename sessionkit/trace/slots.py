"""Slots: a number for each key in each partition in which it occurs."""

from __future__ import annotations

import numpy as np

from sessionkit.base.arrays import Bytes, Codes, read_only
from sessionkit.base.compiled import compiled_loop

NO_REJECTIONS = read_only(np.empty(0, np.uint8))


@compiled_loop
def _place(key, partition, mask):  # type: ignore[no-untyped-def]
    h = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(partition) * np.uint64(0xC2B2AE3D27D4EB4F)
    h = (h ^ (h >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.int64(h >> np.uint64(33)) & mask


@compiled_loop
def number_slots(key, partition, rejected, first, slot_key, slot_partition, table, count, slot):  # type: ignore[no-untyped-def]
    """Fills `slot` with the number of each key and partition, -1 for a null key or a rejected record; new pairs get the
    next numbers, from `count` on. Returns how many there are then.

    Nearly every key is in one partition, so `first` has a slot of each key (and 1); `table` is a hash of the others.
    """
    any_rejected = rejected.shape[0] > 0
    mask = table.shape[0] - 1
    for i in range(key.shape[0]):
        k, p = key[i], partition[i]
        if k < 0 or (any_rejected and rejected[i] != 0):
            slot[i] = -1
            continue
        found = first[k] - 1
        if found < 0:
            first[k] = count + 1
        elif slot_partition[found] != p:
            at = _place(k, p, mask)
            found = table[at] - 1
            while found >= 0 and (slot_key[found] != k or slot_partition[found] != p):
                at = (at + 1) & mask
                found = table[at] - 1
            if found < 0:
                table[at] = count + 1
        if found < 0:
            found = count
            slot_key[found], slot_partition[found] = k, p
            count += 1
        slot[i] = found
    return count


class Slots:
    """The slots of a run, numbered in the order in which they are met."""

    def __init__(self, keys: int, partitions: int, most: int) -> None:
        """Room for `most` slots at most. Memory that none of them needs is never touched."""
        self.most = min(keys * partitions, most)
        self.count = 0
        self._key, self._partition = np.empty(self.most, np.int32), np.empty(self.most, np.int32)
        self._first = np.zeros(keys, np.int32)
        self._table = np.zeros(2 << self.most.bit_length(), np.int32)

    @classmethod
    def known(cls, key: Codes, partition: Codes) -> Slots:
        """The slots of these keys and partitions, to which no others come."""
        slots = cls(0, 0, 0)
        slots._key, slots._partition = key, partition
        slots.count = slots.most = len(key)
        return slots

    @property
    def key(self) -> Codes:
        """The key of each slot, as a code."""
        return self._key[: self.count]

    @property
    def partition(self) -> Codes:
        """The partition of each slot, as a code."""
        return self._partition[: self.count]

    def number(self, key: Codes, partition: Codes, slot: Codes, rejected: Bytes = NO_REJECTIONS) -> Codes:
        """Fills `slot` with that of each key and partition; -1 for a null key, and for what was rejected."""
        key, partition, rejected = (read_only(column) for column in (key, partition, rejected))
        self.count = number_slots(
            key, partition, rejected, self._first, self._key, self._partition, self._table, self.count, slot
        )
        return slot

    def find(self, key: int, partition: int) -> int:
        """The slot of a key in a partition; -1 if there is none."""
        found = np.flatnonzero((self.key == key) & (self.partition == partition))
        return int(found[0]) if len(found) else -1
