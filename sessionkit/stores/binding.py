"""What a store may be called, and what it refuses once a plan keeps its windows there: one rule for every kind."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from sessionkit.base.durations import show_duration
from sessionkit.errors import InvalidArgument, InvalidData, StoreMismatch, problem, shorten

_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
ANOTHER_STORE = "open it as it was made, or use another name"
_WORDS = {
    "holds": "it holds",
    "codec": "values are written as",
    "retention_ms": "retention",
    "segment_interval_ms": "segment_interval",
    "time_ordered": "time_ordered",
    "index": "index",
}


def check_store_name(name: object) -> None:
    """Refuses a name that breaks Kafka's rule: 1 to 249 of A-Z, a-z, 0-9, ".", "_", "-", and not "." or ".."."""
    if not (isinstance(name, str) and name not in (".", "..") and _NAME.fullmatch(name)):
        want = 'letters, digits, ".", "_" and "-", at most 249 of them'
        raise InvalidArgument(problem("this cannot be the name of a store", shorten(repr(name)), want))


def check_results(store: str, held: Collection[str] | None, asked: Iterable[str]) -> None:
    """Refuses a plan whose results are called otherwise than those in the store; None: it holds none yet."""
    if held is not None and set(held) != set(asked):
        got = f"{sorted(held)} in it, {sorted(asked)} in the plan"
        want = "use one store for each plan, or the same names"
        raise InvalidData(problem(f"store {store!r} holds the results of another plan", got, want))


def check_bound(
    store: str, bound: Mapping[str, Any] | None, asked: Mapping[str, Any], want: str = ANOTHER_STORE
) -> None:
    """Refuses a plan whose windows, keys or results are not those that the store is bound to; None: to none yet."""
    if bound is not None and bound != asked:
        names = [name for name in {**bound, **asked} if bound.get(name) != asked.get(name)]
        raise mismatch(store, [f"{name} {bound.get(name)!r}, not {asked.get(name)!r}" for name in names], want)


def check_settings(store: str, held: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Refuses to open a store with other settings than those it was made with."""
    differing = [name for name, value in asked.items() if held.get(name) != value]
    if differing:
        changes = [(_WORDS[name], _setting(name, held.get(name)), _setting(name, asked[name])) for name in differing]
        raise mismatch(store, [f"{word} {old}, not {new}" for word, old, new in changes])


def _setting(name: str, value: Any) -> str:
    if name.endswith("_ms"):
        return "none" if value is None else show_duration(value)
    return str(value)


def mismatch(store: str, differing: list[str], want: str = ANOTHER_STORE) -> StoreMismatch:
    """The error for a store that was made with other settings."""
    return StoreMismatch(problem(f"store {store!r} was made with other settings", "; ".join(differing), want))
