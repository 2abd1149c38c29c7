"""Stores: where windows live between records and between runs."""

from __future__ import annotations

import re
from typing import Any

from sessionkit.contracts import STORE_KINDS, one_of
from sessionkit.durations import Duration
from sessionkit.errors import InvalidArgument, problem
from sessionkit.stores import memory as memory
from sessionkit.text import shorten

_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")


def open_store(kind: str, name: str, *, retention: Duration | None = None) -> Any:
    """A store of this kind, to be used alone or under a plan.

    Args:
        kind: "memory".
        name: Kafka's rule: 1 to 249 of A-Z, a-z, 0-9, ".", "_", "-", and not "." or "..".
        retention: how long a session is kept by the store itself; without it a plan decides.
    Raises:
        InvalidArgument: an unknown kind, or a name that breaks the rule.
    Example:
        >>> with sk.open_store("memory", "clicks-store") as store:
        ...     first, second = plan.run(monday, store=store), plan.run(tuesday, store=store)
    """
    one_of("kind of store", kind, tuple(STORE_KINDS))
    if not _is_name(name):
        want = 'letters, digits, ".", "_" and "-", at most 249 of them'
        raise InvalidArgument(problem("this is no name for a store", shorten(repr(name)), want))
    return STORE_KINDS[kind](retention=retention, name=name)


def _is_name(name: object) -> bool:
    return isinstance(name, str) and name not in (".", "..") and _NAME.fullmatch(name) is not None
