"""Kafka's default partitioner: a key lands in the partition where a producer of Kafka would put it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.base.calls import called_as
from sessionkit.errors import InvalidArgument, problem
from sessionkit.records.keys import key_bytes

_M, _R, _SEED, _MASK = 0x5BD1E995, 24, 0x9747B28C, 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The 32-bit murmur2 hash of `data`, signed, as Kafka's Utils.murmur2 gives it.

    Example:
        >>> murmur2(b"ada")
        -1834195827
    """
    length = len(data)
    h = _SEED ^ length
    for at in range(0, length - 3, 4):
        k = int.from_bytes(data[at : at + 4], "little") * _M & _MASK
        k ^= k >> _R
        h = (h * _M & _MASK) ^ (k * _M & _MASK)
    tail = data[length & ~3 :]
    if tail:
        h = (h ^ int.from_bytes(tail, "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    h ^= h >> 15
    return h - 2**32 if h >= 2**31 else h


@called_as('sk.partition_for("ada", 4)')
def partition_for(key: str | int | bytes, partitions: int) -> int:
    """The partition of `key` in a topic with `partitions` partitions.

    Raises:
        InvalidArgument: `key` is neither text, an integer nor bytes, or `partitions` is less than 1.
    Source:
        Kafka's BuiltInPartitioner.partitionForKey.
    Example:
        >>> partition_for("ada", 4)
        1
    """
    if type(partitions) is not int or partitions < 1:  # True is an int, too
        raise InvalidArgument(problem("partitions must be an integer of 1 or more", repr(partitions), "such as 4"))
    return (murmur2(key_bytes(key)) & 0x7FFFFFFF) % partitions


def partition_of_keys(keys: pa.Array, partitions: int) -> npt.NDArray[np.int32]:
    """The partition of each of `keys`."""
    return np.array([partition_for(key, partitions) for key in keys.to_pylist()], np.int32)
