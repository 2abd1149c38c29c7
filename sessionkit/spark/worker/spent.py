"""Where a task's time goes, in microseconds, so that a board can tell reading, packing, engine and state apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from time import perf_counter_ns
from typing import Generic, TypeVar

T = TypeVar("T")


class Laps(Generic[T]):
    """Items as they come, and how long they were waited for and worked on.

    Example:
        >>> laps = Laps("ab")
        >>> "".join(laps), len(laps.lap())
        ('ab', 2)
    """

    def __init__(self, items: Iterable[T]) -> None:
        self._items, self._begun, self._waited = items, perf_counter_ns(), 0

    def __iter__(self) -> Iterator[T]:
        items = iter(self._items)
        while True:
            asked = perf_counter_ns()
            try:
                item = next(items)
            except StopIteration:
                return
            finally:
                self._waited += perf_counter_ns() - asked
            yield item

    def lap(self) -> tuple[int, int]:
        """The microseconds waited and worked since the lap before."""
        now, waited = perf_counter_ns(), self._waited
        worked = now - self._begun - waited
        self._begun, self._waited = now, 0
        return waited // 1_000, worked // 1_000


class Spent(Counter[str]):
    """What parts of a task took.

    Example:
        >>> spent = Spent()
        >>> with spent.on("engine_us"):
        ...     pass
        >>> [*spent]
        ['engine_us']
    """

    @contextmanager
    def on(self, part: str) -> Iterator[None]:
        """Adds to a part what is done inside."""
        begun = perf_counter_ns()
        yield
        self[part] += (perf_counter_ns() - begun) // 1_000
