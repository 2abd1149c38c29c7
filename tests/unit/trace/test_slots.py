"""Slots: one number for each key in each partition, in the order in which they are met."""

import numpy as np
import pytest

from sessionkit.trace.slots import Slots


@pytest.mark.parametrize("seed", range(50))
def test_slots_are_numbered_as_a_dict_would(seed: int) -> None:
    rng = np.random.default_rng(seed)
    keys, partitions, count = rng.integers(1, 40), rng.integers(1, 40), int(rng.integers(0, 400))
    key = rng.integers(-1, keys, count).astype(np.int32)
    partition = rng.integers(0, partitions, count).astype(np.int32)
    rejected = rng.integers(0, 8, count).astype(np.uint8) // 7
    slots, numbers = Slots(int(keys), int(partitions), count), {}
    expected = [
        -1 if k < 0 or no else numbers.setdefault((k, p), len(numbers))
        for k, p, no in zip(key.tolist(), partition.tolist(), rejected.tolist(), strict=True)
    ]
    half = count // 2
    parts = [slice(0, half), slice(half, count)]
    found = [slots.number(key[p], partition[p], np.empty(len(key[p]), np.int32), rejected[p]).tolist() for p in parts]
    assert found[0] + found[1] == expected
    assert list(zip(slots.key.tolist(), slots.partition.tolist(), strict=True)) == list(numbers)
    assert all(slots.find(*pair) == number for pair, number in numbers.items())
    assert slots.find(int(keys), 0) == -1
