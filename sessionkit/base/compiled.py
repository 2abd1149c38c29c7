"""How the package compiles its loops with numba: to machine code, cached on disk, without holding Python's lock."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

from numba import njit
from numba.core import caching as numbas_caching
from numba.core.runtime.nrt import rtsys

from sessionkit.base.own_files import NotOurs, check_ours, make_folder

Loop = Callable[..., Any]
caching: Any = numbas_caching  # it carries no types
_PACKAGE = Path(__file__).resolve().parent.parent


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


_told: set[str] = set()


def _tell(about: str, sentence: str) -> None:
    """Prints the sentence on stderr, once in this process for each `about`."""
    if about not in _told:
        _told.add(about)
        print(sentence, file=sys.stderr, flush=True)


class _Ours(caching._CacheLocator):
    """A folder of numba's cache that nobody else can write to: its files are pickles, which are run."""

    @classmethod
    def get_suitable_cache_subpath(cls, py_file: str) -> str:
        """The name of the folder in a cache of many programs, of what a file of the package says, not of its path.

        Spark unpacks an archive into a new folder for each executor: by their paths none finds what another kept.
        """
        place = Path(py_file).resolve()
        if not place.is_relative_to(_PACKAGE):
            return super().get_suitable_cache_subpath(py_file)
        name, version = str(place.relative_to(_PACKAGE)), sys.modules["sessionkit"].__version__
        says = hashlib.sha256(f"{version}\0{name}\0".encode() + place.read_bytes()).hexdigest()
        return f"{place.parent.name}_{says[:40]}"

    def ensure_cache_path(self) -> None:
        folder = self.get_cache_path()
        if folder.startswith("~"):  # numba would make a folder of this name where the process happens to be
            raise FileNotFoundError("no home folder is known")
        make_folder(folder)
        try:
            check_ours(folder)
        except NotOurs as error:
            if not isinstance(self, caching.InTreeCacheLocator):  # instead of which the user's own folder is as good
                _tell(
                    "not ours",
                    f"sessionkit does not use {os.path.dirname(folder)} for its compiled loops ({error}): what lies "
                    "there is run as code, so it must belong to you or root, and nobody else may be able to change it",
                )
            raise
        super().ensure_cache_path()


class _BesideTheSource(_Ours, caching.InTreeCacheLocator):
    """The cache beside the source, read even if nothing can be added: whoever installed it may have compiled it."""

    @classmethod
    def from_function(cls, py_func: Loop, py_file: str) -> _BesideTheSource | None:
        return cls(py_func, py_file) if os.path.exists(py_file) else None


class _Places(caching.CompileResultCacheImpl):
    _locator_classes = (
        *(type(each.__name__, (_Ours, each), {}) for each in caching.CacheImpl._locator_classes),
        _BesideTheSource,
    )


class _Files(caching.IndexDataCacheFile):
    """The files of a loop: unpickled only where they are ours, and written so that nobody else can change them."""

    def _load_index(self) -> Any:
        ours = copy(self)
        try:
            ours._index_path = check_ours(self._index_path)
        except FileNotFoundError:
            return {}
        return super(_Files, ours)._load_index()

    def _load_data(self, name: str) -> Any:
        return super()._load_data(check_ours(self._data_path(name)))

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[BinaryIO]:
        aside = check_ours(self._cache_path) / f"{uuid4().hex}.tmp"
        try:
            with open(aside, "xb", opener=lambda path, flags: os.open(path, flags, 0o644)) as file:
                yield file
            os.replace(aside, filepath)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise


class _Cache(caching.FunctionCache):
    """numba's cache, which compiles anew what it cannot read, and goes on where it cannot write.

    It does not load what numba needs to compile before it knows that something is to be compiled: that takes a fresh
    process a quarter of a second.
    """

    _impl_class = _Places
    counts_references = True  # of the arrays that the loop makes

    def __init__(self, function: Loop) -> None:
        super().__init__(function)
        place = self._impl.locator
        self._cache_file = _Files(place.get_cache_path(), self._impl.filename_base, place.get_source_stamp())

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
            self._give_up(error)

    def _begin_anew(self) -> None:
        try:
            self.flush()
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self.disable()
        _tell(
            "not kept",
            f"sessionkit cannot keep its compiled loops ({error.strerror or error}): each process compiles them again, "
            "which takes several seconds for each kind of window; set NUMBA_CACHE_DIR to a folder of your own, which "
            "nobody else can write to",
        )


def _kept(loop: Loop) -> Loop:
    if hasattr(loop, "enable_caching"):  # not where numba's compiler is switched off
        cache = _Cache(loop.py_func)  # type: ignore[attr-defined]
        cache.counts_references = loop.targetoptions.get("_nrt", True)  # type: ignore[attr-defined]
        loop._cache = cache  # type: ignore[attr-defined]
    return loop


@cache
def announce_compiling(function: Loop, windows: str) -> None:
    """Says so on stderr, once, if `function` is not compiled yet: then a first run over these windows compiles it.

    It names no number of seconds: where it was measured, sessions and time windows took 3 to 4 s of processor time and
    sliding windows 10 to 13 s, and a machine that is busy takes several times as long.
    """
    if not hasattr(function, "_cache") or function.signatures or _is_kept(function):  # type: ignore[attr-defined]
        return
    once = "" if "not kept" in _told else ", once on this machine"
    sentence = f"sessionkit compiles its loops for {windows}{once}: this takes several seconds …"
    print(sentence, file=sys.stderr, flush=True)


def _is_kept(function: Any) -> bool:
    """True if a file holds the compiled loop, as it is now: of another version it is compiled anew."""
    try:
        return bool(function._cache._cache_file._load_index())
    except Exception:  # a file that was cut off, or may not be read, as in `load_overload`
        return False


NOTHING = -1  # no position: the window has no value yet
