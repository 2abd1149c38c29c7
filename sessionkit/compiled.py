"""How the package compiles its loops with numba: to machine code, cached on disk, without holding Python's lock."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit

Loop = Callable[..., Any]


def compiled(function: Loop) -> Loop:
    """A compiled pass that makes arrays of its own."""
    loop: Loop = njit(cache=True, nogil=True)(function)
    return loop


def compiled_loop(function: Loop) -> Loop:
    """A compiled loop that only writes into the arrays it is given.

    Without reference counts: numba would count arrays up and down at every call inside the loop, which made the
    session kernel four times slower.
    """
    return njit(cache=True, nogil=True, _nrt=False)(function)  # type: ignore[call-overload]  # not in numba's stubs


def inlined(function: Loop) -> Loop:
    """A compiled loop that is written out where it is called: a call would hand over every field of every array."""
    return njit(cache=True, nogil=True, _nrt=False, forceinline=True)(function)  # type: ignore[call-overload]


@cache
def announce_compiling(function: Loop) -> None:
    """Says so once, on stderr, when `function` has never been compiled on this machine and the first run will do it."""
    stats = getattr(function, "stats", None)  # none where numba's compiler is switched off
    if stats is not None and not any(Path(stats.cache_path).glob(f"*.{function.__name__}-*.nbi")):
        print("sessionkit compiles its loops, this once: about 10 seconds …", file=sys.stderr, flush=True)
