"""What an entry of the buffer weighs, and the bytes of its windowed key, by which entries of one place are sorted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.records.keys import key_bytes, key_ranks
from sessionkit.stores.sizes import RECORD_BYTES

FIXED_BYTES = 8 + RECORD_BYTES  # of each entry: the time that it lies at, and where its record was
Numbers = npt.NDArray[np.int64]


# What follows the key in the bytes of a windowed one, by what a store of the windows holds.
TIMES: Mapping[str, Callable[[Any, Any], tuple[Any, ...]]] = {
    "sessions": lambda start, end: (end, start),
    "windows": lambda start, end: (start,),
}


def windowed_key(key: Any, start_ms: int, end_ms: int, holds: str) -> bytes:
    """The key of a window as Kafka's stores write it.

    Source:
        WindowKeySchema.toBinary (without a number), SessionKeySchema.toBinary.
    """
    return key_bytes(key) + b"".join(time.to_bytes(8, "big") for time in TIMES[holds](start_ms, end_ms))


def ranks_of_windows(keys: pa.Array, code: Numbers, start_ms: Numbers, end_ms: Numbers, holds: str) -> Numbers:
    """The place of each of these windows in the order of the bytes of its windowed key; `code` is into `keys`."""
    times = TIMES[holds](start_ms, end_ms)
    if pa.types.is_integer(keys.type) or _stay_in_order(keys, end_ms):
        order = np.lexsort([*reversed(times), key_ranks(keys)[code]])
    else:
        parts = [keys.cast(pa.large_binary()).take(pa.array(code)), *map(_big_endian, times)]
        order = np.asarray(pc.sort_indices(pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.large_binary()))))
    ranks = np.empty(len(code), np.int64)
    ranks[order] = np.arange(len(code))
    return ranks


def _stay_in_order(keys: pa.Array, end_ms: Numbers) -> bool:
    """Whether keys that are followed by times keep their order: no key goes on with what times begin with."""
    has_nul = pc.any(pc.match_substring(keys.cast(pa.large_binary()), b"\0")).as_py()
    return not has_nul and int(end_ms.max(initial=0)) < 2**56


def _big_endian(times_ms: Numbers) -> pa.Array:
    raw = pa.py_buffer(times_ms.astype(">i8").tobytes())
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(8), len(times_ms), [None, raw]).cast(pa.large_binary())
