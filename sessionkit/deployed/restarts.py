"""Where an application of Kafka Streams is stopped and started again, and how it finds its store then."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import NamedTuple, SupportsIndex, TypeAlias

from sessionkit.base.text import one_of
from sessionkit.errors import InvalidArgument, NotBuilt, problem, shorten
from sessionkit.stores.contract import RESTARTS

Restarts: TypeAlias = Sequence[int | tuple[int, str]]


class Restart(NamedTuple):
    """One restart: the row of the records after which it happens, and one of `RESTARTS`."""

    row: int
    kind: str = "disk"


def checked_restarts(restarts: object, count: int | None = None) -> tuple[Restart, ...]:
    """The restarts of a run over `count` records, or over any number; a row alone means "disk".

    Raises:
        InvalidArgument: they are not rows of the records, rising, or of an unknown kind.
    Example:
        >>> checked_restarts([17, (40, "changelog")], 100)
        (Restart(row=17, kind='disk'), Restart(row=40, kind='changelog'))
    """
    found: list[Restart] = []
    for each in restarts if isinstance(restarts, Iterable) else (None,):
        row, *kind = each if isinstance(each, tuple) and each else (each,)
        number, first = _number(row), found[-1].row + 1 if found else 0
        is_row = number is not None and first <= number and (count is None or number < count)
        if number is None or not is_row or len(kind) > 1:
            what = "restarts must list the rows after which the task is started again"
            last = "" if count is None else f" to {count - 1}"
            rows = "none, as there are no records" if count == 0 else f"increasing numbers from 0{last}"
            want = f'{rows}, each alone or with its kind: (40, "changelog")'
            raise InvalidArgument(problem(what, shorten(repr(restarts)), want))
        found.append(Restart(number, *(one_of("the kind of a restart", str(each), RESTARTS) for each in kind)))
    return tuple(found)


def _number(row: object) -> int | None:
    """The whole number that it is, also one of NumPy; None if it is none."""
    return operator.index(row) if isinstance(row, SupportsIndex) and not isinstance(row, bool) else None


def check_guarantee(guarantee: str) -> None:
    """Refuses every processing guarantee but at-least-once: Kafka's other one is not built."""
    if one_of("guarantee", guarantee, ("at_least_once", "exactly_once_v2")) != "at_least_once":
        want = 'guarantee="at_least_once", Kafka\'s default'
        raise NotBuilt(problem("transactions are not modelled", f"guarantee={guarantee!r}", want))
