"""Stores: where windows live between records and between runs."""

from __future__ import annotations

import importlib
import os
from typing import Any

from sessionkit.contracts import STORE_KINDS, one_of
from sessionkit.durations import Duration
from sessionkit.errors import InvalidArgument, problem
from sessionkit.stores.binding import check_store_name

# Loaded when a store of the kind is opened: the one on disk brings a library of its own.
_MODULES = {
    "memory": ("sessionkit.stores.memory", "sessionkit.stores.memory_windows"),
    "rocksdb": ("sessionkit.stores.rocksdb", "sessionkit.stores.rocksdb_windows"),
}
HOLDS = ("sessions", "windows")


def open_store(
    kind: str,
    name: str | None = None,
    *,
    of: str = "sessions",
    directory: str | os.PathLike[str] | None = None,
    retention: Duration | None = None,
    time_ordered: bool = False,
    segment_interval: Duration | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    batch: int | None = None,
) -> Any:
    """A store of this kind, to be used alone or under a plan.

    Args:
        kind: "memory"; "rocksdb" for one on disk that outlives the process; "spark" for what a streaming query has in
            its checkpoint, to read from (Spark reads it, and all of it comes to this process).
        name: Kafka's rule: 1 to 249 of A-Z, a-z, 0-9, ".", "_", "-", and not "." or "..". One of "spark" has none.
        of: "sessions", or "windows" for tumbling, hopping and sliding windows.
        directory: where the folder of a store on disk is, or will be made.
        retention: how long a window is kept by the store itself; without it a plan decides.
        time_ordered: of a store on disk: KIP-825's form, in which windows of all keys are found by time.
        segment_interval: of a store on disk: length of the segments in which it expires (KIP-94).
        checkpoint: of "spark": the query's checkpointLocation. What it holds is told by the checkpoint.
        batch: of "spark": after this micro-batch; the last one if not given. Spark keeps the newest 100.
    Raises:
        InvalidArgument: an unknown kind, a name that breaks the rule, or an option that the kind does not have.
        StoreMismatch: a store on disk was made with other settings. StoreLocked: it is open already. StoreCorrupted.
    Example:
        >>> with sk.open_store("memory", "clicks-store") as store:
        ...     first, second = plan.run(monday, store=store), plan.run(tuesday, store=store)
    """
    one_of("kind of store", kind, (*_MODULES, "spark"))
    one_of("of", of, HOLDS)
    if kind == "spark":
        return _open_checkpoint(checkpoint, batch)
    check_store_name(name)
    on_disk = {"directory": directory, "time_ordered": time_ordered, "segment_interval": segment_interval}
    if kind == "memory":
        for option, value in on_disk.items():
            if value:
                want = 'open_store("rocksdb", …), or leave it out'
                raise InvalidArgument(problem("a store in memory has no such option", f"{option}={value!r}", want))
        return store_class(kind, of)(retention=retention, name=name)
    if directory is None:
        want = 'directory="state", where its folder goes'
        raise InvalidArgument(problem("a store on disk needs a place", "directory=None", want))
    return store_class(kind, of)(name=name, retention=retention, **on_disk)


def _open_checkpoint(checkpoint: str | os.PathLike[str] | None, batch: int | None) -> Any:
    if checkpoint is None:
        want = 'checkpoint="…", the checkpointLocation of the query'
        raise InvalidArgument(problem("a store of Spark's is read from a checkpoint", "checkpoint=None", want))
    from sessionkit.spark_store import fill, read_checkpoint

    of, states = read_checkpoint(checkpoint, batch)
    store = store_class("memory", of)(name="checkpoint", retention=None)
    fill(store, states)
    return store.read_only()


def store_class(kind: str, of: str) -> Any:
    """The class of stores of this kind that hold sessions, or windows of one length."""
    importlib.import_module(_MODULES[kind][HOLDS.index(of)])
    return STORE_KINDS[kind, of]
