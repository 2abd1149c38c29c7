"""What a run asks of its process: threads, and Python's search for garbage."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import Context, copy_context
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from sessionkit.errors import InvalidArgument, problem, shorten

THREADS = "SESSIONKIT_THREADS"
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
Item = TypeVar("Item")
Result = TypeVar("Result")


def thread_count() -> int:
    """How many threads a run may use: SESSIONKIT_THREADS, else what the process may have; one in a task of Spark.

    Raises:
        InvalidArgument: SESSIONKIT_THREADS is no number of threads.
    """
    given = os.environ.get(THREADS)
    if given is not None:
        if not given.isdecimal() or int(given) < 1:
            raise InvalidArgument(problem(f"{THREADS} must be a number of threads", shorten(repr(given)), "1 or more"))
        return int(given)
    if _is_in_task():
        return 1
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(own, pa.cpu_count(), _quota()))


def _is_in_task() -> bool:
    context = getattr(sys.modules.get("pyspark.taskcontext"), "TaskContext", None)
    return context is not None and context.get() is not None


def _quota() -> int:
    """Whole processors of the control group, where it has a limit."""
    try:
        quota, period = _QUOTA.read_text().split()[:2]
        return max(1, int(quota) // int(period))
    except (OSError, ValueError):  # no such file, or "max"
        return sys.maxsize


def in_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """The results of a function that leaves Python's lock alone, in the order of the items.

    What is set for the caller's thread, such as numpy's handling of errors, is set for these as well.
    """
    given = list(items)
    threads = min(thread_count(), len(given))
    if threads < 2:
        return [function(item) for item in given]
    with ThreadPoolExecutor(threads) as several:
        return list(several.map(lambda context, item: context.run(function, item), _contexts(given), given))


def _contexts(items: Iterable[object]) -> list[Context]:
    return [copy_context() for _ in items]  # one can be entered by one thread at a time


def side_by_side(here: Callable[[], Result], aside: Callable[[], Item]) -> tuple[Result, Item]:
    """What both calls return: the first one is made in this thread, the other one meanwhile, if there is one for it."""
    if thread_count() < 2:
        return here(), aside()
    with ThreadPoolExecutor(1) as other:
        waiting = other.submit(copy_context().run, aside)
        return here(), waiting.result()


@contextmanager
def without_collections() -> Iterator[None]:
    """No search for garbage meanwhile: each would look at everything that is kept, for a third of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
