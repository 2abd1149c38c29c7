"""What every task of a Python worker passes through: once it is done, what was loaded for it stays in memory."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from sessionkit.errors import SessionkitError

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
Task: TypeAlias = "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]"


def settle() -> None:
    """Keeps what a task loaded in the worker out of the search for garbage, once the task is done.

    pyspark collects garbage after each task. With the modules and compiled loops of a task in memory that takes up to
    150 ms, for which the next task waits; without them one.
    """
    _freeze(len(sys.modules))


@cache
def _freeze(loaded: int) -> None:
    """Frees all that was loaded from garbage collection, once for each number of modules: later tasks load more."""
    gc.collect()
    gc.freeze()


def without_stack(items: Iterator[T]) -> Iterator[T]:
    """The items; errors of our own, which Spark prints whole, are raised without their stack."""
    try:
        yield from items
    except SessionkitError as error:
        raise error.with_traceback(None) from None


def worker_task(task: Task) -> Task:
    """The task, as `mapInArrow` takes one, and what is to do once it is done."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from without_stack(task(batches))
        settle()

    return run
