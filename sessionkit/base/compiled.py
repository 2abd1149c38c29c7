"""How the package compiles its loops with numba: to machine code, cached on disk, without holding Python's lock."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from numba import njit
from numba.core import caching as numbas_caching
from numba.core.runtime.nrt import rtsys

Loop = Callable[..., Any]
caching: Any = numbas_caching  # it carries no types


def compiled(function: Loop) -> Loop:
    """A compiled pass that makes arrays of its own."""
    return _kept(njit(nogil=True)(function))


def compiled_loop(function: Loop) -> Loop:
    """A compiled loop that only writes into the arrays it is given.

    Without reference counts: numba would count arrays up and down at every call inside the loop, which made the
    session kernel four times slower.
    """
    return _kept(njit(nogil=True, _nrt=False)(function))  # type: ignore[call-overload]  # not in numba's stubs


def inlined(function: Loop) -> Loop:
    """A compiled loop that is written out where it is called: a call would hand over every field of every array."""
    return _kept(njit(nogil=True, _nrt=False, forceinline=True)(function))  # type: ignore[call-overload]


class _AtHome(caching.UserWideCacheLocator):
    """The user's own folder; without a home numba would make one named "~" where the process happens to be."""

    def ensure_cache_path(self) -> None:
        if not os.path.isabs(self.get_cache_path()):
            raise FileNotFoundError("no home folder is known")
        super().ensure_cache_path()


class _BesideTheSource(caching.InTreeCacheLocator):
    """What lies beside the source, though nothing can be added: whoever installed it may have compiled it."""

    @classmethod
    def from_function(cls, py_func: Loop, py_file: str) -> _BesideTheSource | None:
        return cls(py_func, py_file) if os.path.exists(py_file) else None


class _Places(caching.CompileResultCacheImpl):
    _locator_classes = (
        *(_AtHome if each is caching.UserWideCacheLocator else each for each in caching.CacheImpl._locator_classes),
        _BesideTheSource,
    )


class _Cache(caching.FunctionCache):
    """numba's cache, which compiles anew what it cannot read, and goes on where it cannot write.

    It does not load what numba needs to compile before it knows that something is to be compiled: that takes a fresh
    process a quarter of a second.
    """

    _impl_class = _Places
    counts_references = True  # of the arrays that the loop makes

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            if self.counts_references:
                rtsys.initialize(target_context)  # which compiles what counts them
            with self._guard_against_spurious_io_errors():
                return self._load_overload(sig, target_context)
        except Exception:  # a file that was cut off, or may not be read: numba raises whatever its decoder raises
            self._begin_anew()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            self.disable()
            _tell_not_kept(error.strerror or "it cannot be written")

    def _begin_anew(self) -> None:
        try:
            self.flush()
        except OSError:
            self.disable()


def _kept(loop: Loop) -> Loop:
    if hasattr(loop, "enable_caching"):  # not where numba's compiler is switched off
        cache = _Cache(loop.py_func)  # type: ignore[attr-defined]
        cache.counts_references = loop.targetoptions.get("_nrt", True)  # type: ignore[attr-defined]
        loop._cache = cache  # type: ignore[attr-defined]
    return loop


@cache
def _tell_not_kept(reason: str) -> None:
    said = (
        f"sessionkit cannot keep its compiled loops ({reason}): each process compiles them again, which takes several "
        "seconds for each kind of window; set NUMBA_CACHE_DIR to a folder that can be written to"
    )
    print(said, file=sys.stderr, flush=True)


@cache
def announce_compiling(function: Loop, windows: str) -> None:
    """Says so on stderr, once, if `function` is not compiled yet: then a first run over these windows compiles it.

    It names no number of seconds: where it was measured, sessions and time windows took 3 to 4 s of processor time and
    sliding windows 10 to 13 s, and a machine that is busy takes several times as long.
    """
    if not hasattr(function, "_cache") or function.signatures or _is_kept(function):  # type: ignore[attr-defined]
        return
    once = "" if _tell_not_kept.cache_info().currsize else ", once on this machine"
    said = f"sessionkit compiles its loops for {windows}{once}: this takes several seconds …"
    print(said, file=sys.stderr, flush=True)


def _is_kept(function: Any) -> bool:
    """True if a file holds the compiled loop, as it is now: of another version it is compiled anew."""
    try:
        return bool(function._cache._cache_file._load_index())
    except Exception:  # a file that was cut off, or may not be read, as in `load_overload`
        return False


NOTHING = -1  # no position: the window has no value yet
