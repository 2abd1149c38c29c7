"""A store as queries see it: its reads, and nothing that changes it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

from sessionkit.base.text import escape_html, html_block
from sessionkit.errors import problem
from sessionkit.stores.contract import Store

# Of Kafka's ReadOnlySessionStore and ReadOnlyWindowStore, and `all`. The search over the ends of all keys' sessions is
# for the processor alone (KIP-825).
_ONE = ("fetch_session", "fetch_window")
_MANY = (
    *("find_sessions", "backward_find_sessions", "find_sessions_in_keys", "backward_find_sessions_in_keys"),
    *("fetch", "backward_fetch", "fetch_in_keys", "backward_fetch_in_keys"),
    *("fetch_all", "backward_fetch_all", "all", "backward_all"),
)
READS = (*_ONE, *_MANY, "to_pandas", "rows", "facts", "snapshot", "partitions", "name", "holds", "noun", "retention_ms")


class ReadOnlyStore:
    """A view of a store without its writes. It shows what the store holds at the time of each call.

    A read looks into all partitions, one after another, as Kafka's queries do; with `partition=` into that one.

    Source:
        CompositeReadOnlySessionStore, CompositeReadOnlyWindowStore; KIP-825.
    Example:
        >>> store = sk.open_store("memory", "clicks")
        >>> store.put("ada", 5, 9, 2)
        True
        >>> [session[:3] for session in store.read_only().fetch("ada")]
        [(5, 9, 2)]
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # `copy` asks before there is a `_store`
            raise AttributeError(name)
        if name not in READS or not hasattr(self._store, name):
            want = "one of " + ", ".join(read for read in READS if hasattr(self._store, read))
            raise AttributeError(problem("a read-only store has no such call", repr(name), want))
        found = getattr(self._store, name)
        return self._of_all(name, found) if name in (*_ONE, *_MANY) else found

    def _of_all(self, name: str, read: Callable[..., Any]) -> Callable[..., Any]:
        def ask(*args: Any, partition: int | None = None, **named: Any) -> Any:
            partitions = (self._store.partitions or [0]) if partition is None else [partition]
            answers = (read(*args, partition=each, **named) for each in partitions)
            if name in _ONE:
                return next((answer for answer in answers if answer is not None), None)
            return chain.from_iterable([*answers])  # all are asked now, as the store changes

        ask.__name__, ask.__doc__ = name, read.__doc__
        return ask

    def __dir__(self) -> list[str]:
        return [name for name in READS if hasattr(self._store, name)]

    def __len__(self) -> int:
        return len(self._store)

    def __repr__(self) -> str:
        return f"read-only {self._store!r}"

    def _repr_html_(self) -> str:
        if not hasattr(self._store, "_repr_html_"):  # a cache in front of a store
            return html_block(f"<p>{escape_html(repr(self))}</p>")
        return self._store._repr_html_()


def result_names(store: Any) -> tuple[str, ...]:
    """What the plan that wrote into a store calls the results of a window; () if none did."""
    inner = store._store if isinstance(store, ReadOnlyStore) else store
    noted = getattr(inner, "_noted", None)
    return tuple(noted.names or ()) if noted is not None else ()
