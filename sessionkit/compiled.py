"""How the package compiles its loops with numba: to machine code, cached on disk, without holding Python's lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """A compiled pass that makes arrays of its own."""
    return njit(cache=True, nogil=True)(function)


def compiled_loop(function: F) -> F:
    """A compiled loop that only writes into the arrays it is given.

    Without reference counts: numba would count arrays up and down at every call inside the loop, which made the
    session kernel four times slower.
    """
    return njit(cache=True, nogil=True, _nrt=False)(function)


def compiled_inline(function: F) -> F:
    """A small piece of a loop, put in where it is called."""
    return njit(cache=True, nogil=True, _nrt=False, inline="always")(function)
