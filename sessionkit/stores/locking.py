"""Who may use a store: one thread at a time, and no process that was forked while it was in use."""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import FunctionType, TracebackType
from typing import Any
from weakref import WeakSet

from sessionkit.base.calls import refusal
from sessionkit.errors import SessionkitError, StoreLocked, problem
from sessionkit.stores.contract import TaskStore

_SHOWN = ("__len__", "__repr__", "_repr_html_")
_FORKED = 'start a new process, as multiprocessing does with "spawn", or fork before a store is used'


class SharedStore:
    """The base of every store: a call waits until no other thread is inside one, or runs a plan over the store."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lock: AbstractContextManager[Any] = threading.RLock()
        _stores.add(self)

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        for name, member in _own_members(cls):
            if isinstance(member, FunctionType):
                setattr(cls, name, _one_at_a_time(member))
            elif isinstance(member, property) and member.fget is not None:
                setattr(cls, name, property(_one_at_a_time(member.fget), doc=member.__doc__))


def _own_members(store: type[SharedStore]) -> list[tuple[str, Any]]:
    """Members that a class of stores defines, or has from classes that are no stores, if others may call them."""
    found: dict[str, tuple[type, Any]] = {}
    for origin in reversed(store.__mro__):  # the nearest one counts
        found |= {name: (origin, member) for name, member in vars(origin).items()}
    return [
        (name, member)
        for name, (origin, member) in found.items()
        if (origin is store or not issubclass(origin, SharedStore)) and (not name.startswith("_") or name in _SHOWN)
    ]


def _one_at_a_time(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def locked(self: SharedStore, *arguments: Any, **options: Any) -> Any:
        try:
            with self.lock:
                return call(self, *arguments, **options)
        except Exception as error:
            answer = None if isinstance(error, SessionkitError) else refusal(call, (self, *arguments), options, "store")
            if answer is None:
                raise
            raise answer from None

    return locked


def alone_with(store: TaskStore | None) -> AbstractContextManager[Any]:
    """Keeps other threads out of the store, if there is one, for a whole run: what it reads, decides and commits."""
    return nullcontext() if store is None else store.lock


class _Torn:
    """The lock of a store that another thread was changing when this process was forked: half a change is in it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        what = f"another thread was using store {self._name!r} when this process was forked"
        raise StoreLocked(problem(what, f"process {os.getpid()}", _FORKED))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        return None


# ---- RocksDB: its threads do not come along into a forked process, where it would wait for them for ever


class _RocksDBUse:
    """Whether RocksDB was ever used in this process, and in one that this was forked from."""

    here = False
    before_fork = False


def note_rocksdb() -> None:
    """Notes that RocksDB is about to be used here; refuses it in a process forked from one that had used it."""
    refuse_after_fork("a store on disk cannot be opened")
    _RocksDBUse.here = True


def refuse_after_fork(what: str) -> None:
    """Refuses what needs RocksDB in a process that was forked from one that had used it."""
    if _RocksDBUse.before_fork:
        got = f"process {os.getpid()}, forked from one that had used RocksDB"
        raise StoreLocked(problem(what, got, _FORKED))


def never_drop(opened: object) -> None:
    """Keeps an object of RocksDB's from being closed when this process ends: it belongs to the process forked from."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(opened))


def _after_fork() -> None:
    _RocksDBUse.before_fork = _RocksDBUse.before_fork or _RocksDBUse.here
    for store in list(_stores):
        lock: Any = store.lock
        if isinstance(lock, _Torn):
            continue
        if lock.acquire(blocking=False):
            lock.release()
        else:
            store.lock = _Torn(store.name)


_stores: WeakSet[SharedStore] = WeakSet()
if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_after_fork)
