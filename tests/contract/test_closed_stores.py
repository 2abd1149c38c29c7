"""A store that is closed answers nothing any more: no new call, no iterator that was left, no cache in front of it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import sessionkit as sk
from sessionkit.errors import StoreClosed
from sessionkit.stores.cache.sessions import CachingSessionStore
from sessionkit.stores.cache.windows import CachingWindowStore
from tests.contract.examples.sqlite_store import SQLiteSessionStore, SQLiteWindowStore

KINDS = ("memory", "rocksdb", "rows")
CALLS: dict[str, dict[str, Callable[[Any], Iterator[Any]]]] = {
    "sessions": {
        "all": lambda store: store.all(),
        "find_sessions": lambda store: store.find_sessions("ada", 0, 100),
        "nothing found": lambda store: store.find_sessions("zoe", 0, 100),
        "find_sessions_in_keys": lambda store: store.find_sessions_in_keys("a", "z", 0, 100),
        "fetch": lambda store: store.fetch("ada"),
    },
    "windows": {
        "all": lambda store: store.all(),
        "fetch": lambda store: store.fetch("ada", 0, 100),
        "nothing found": lambda store: store.fetch("zoe", 0, 100),
        "fetch_all": lambda store: store.fetch_all(0, 100),
        "fetch_in_keys": lambda store: store.fetch_in_keys("a", "z", 0, 100),
    },
}  # fmt: skip
CASES = [(kind, of, call) for kind in KINDS for of, calls in CALLS.items() for call in calls]


def put(store: Any, key: str, at: int) -> None:
    store.put(key, at, at + 5, 1) if store.holds == "sessions" else store.put(key, at, 1, at)


def filled(kind: str, of: str, folder: Path) -> Any:
    if kind == "rows":
        make = SQLiteSessionStore if of == "sessions" else SQLiteWindowStore
        store: Any = make(name="closed", directory=folder)
    else:
        store = sk.open_store(kind, "closed", of=of, **({"directory": folder} if kind == "rocksdb" else {}))
    for at, key in enumerate(("ada", "ada", "bob")):
        put(store, key, at)
    return store


@pytest.mark.parametrize(("kind", "of", "call"), CASES)
def test_an_iterator_that_was_left_raises_as_well(kind: str, of: str, call: str, tmp_path: Path) -> None:
    """Those of the store in memory went on as if it were open."""
    store = filled(kind, of, tmp_path)
    fresh, begun = (CALLS[of][call](store) for _ in range(2))
    assert call == "nothing found" or next(begun)
    store.close()
    for iterator in (fresh, begun):
        with pytest.raises(StoreClosed, match="store 'closed' is closed; got a call; open it again"):
            list(iterator)


@pytest.mark.parametrize("of", CALLS)
def test_a_cache_asks_for_no_partition_that_is_not_there(of: str, tmp_path: Path) -> None:
    """To see whether the store is open it asked for partition 0, which a store in memory made then."""
    store = sk.open_store("memory", "closed", of=of)
    cache: Any = (CachingSessionStore if of == "sessions" else CachingWindowStore)(store, None)
    cache.put("ada", 1, 5, 1, partition=3)
    assert list(cache.all(partition=3)) and store.read_partitions == [3]


@pytest.mark.parametrize("of", CALLS)
@pytest.mark.parametrize("kind", KINDS[:2])
def test_a_cache_in_front_of_a_closed_store_takes_and_tells_nothing(kind: str, of: str, tmp_path: Path) -> None:
    """A write went into the cache, and was lost."""
    store = filled(kind, of, tmp_path)
    cache: Any = (CachingSessionStore if of == "sessions" else CachingWindowStore)(store, None)
    put(cache, "cat", 7)
    left = cache.all()
    store.close()
    with pytest.raises(StoreClosed):
        put(cache, "dan", 8)
    with pytest.raises(StoreClosed):
        list(left)
    with pytest.raises(StoreClosed):
        list(cache.fetch("cat") if of == "sessions" else cache.fetch("cat", 0, 9))
