"""What a run asks of its process: threads, memory, and Python's search for garbage."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from sessionkit.errors import InvalidArgument, TooLarge, problem, shorten

THREADS = "SESSIONKIT_THREADS"
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_GROUPS, _OWN_GROUP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
_MANY = 1_000_000  # records, with hundreds of bytes each
_MUCH = 2**26  # bytes that are made for all threads, however many there are
Item = TypeVar("Item")
Result = TypeVar("Result")


def thread_count() -> int:
    """How many threads a run may use: SESSIONKIT_THREADS, else what the process may have; one in a task of Spark."""
    given = os.environ.get(THREADS)
    if given is not None:
        if not given.isdecimal() or int(given) < 1:
            raise InvalidArgument(problem(f"{THREADS} must be a number of threads", shorten(repr(given)), "1 or more"))
        return int(given)
    context = getattr(sys.modules.get("pyspark.taskcontext"), "TaskContext", None)
    if context is not None and context.get() is not None:  # in a task of Spark
        return 1
    import pyarrow as pa  # not for the command line's help

    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(own, pa.cpu_count(), _quota()))


def _quota() -> int:
    """Whole processors of the control group, where it has a limit."""
    try:
        quota, period = _QUOTA.read_text().split()[:2]
        return max(1, int(quota) // int(period))
    except (OSError, ValueError):  # no such file, or "max"
        return sys.maxsize


def release_unused(records: int) -> None:
    """Gives the system back what allocators keep of memory that nothing uses any more, if it was for many records."""
    import pyarrow as pa

    if records < _MANY:
        return
    pa.default_memory_pool().release_unused()
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):  # of the GNU library
        trim(0)


def free_bytes() -> int:
    """How much memory this process may still take, as the machine and its control groups say; else any number."""
    free = [sys.maxsize]
    with suppress(OSError, ValueError, KeyError):
        free.append(_numbers(Path("/proc/meminfo"))["MemAvailable:"] * 1024)
        for line in _OWN_GROUP.read_text().splitlines():
            _, names, path = line.split(":", 2)  # names only in version 1
            root, most, used = _GROUPS, "memory.max", "memory.current"
            if names:
                root, most, used = _GROUPS / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
            own = root / path.strip("/")
            for folder in (own, *own.parents) if not names or "memory" in names.split(",") else ():
                with suppress(OSError, ValueError, KeyError):  # no such group, or "max"
                    limit, counted = int((folder / most).read_text()), _numbers(folder / "memory.stat")
                    of_files = counted["inactive_file"] + counted["active_file"]  # kept until memory is wanted
                    free.append(limit - int((folder / used).read_text()) + of_files)
    return max(0, min(free))


def _numbers(file: Path) -> dict[str, int]:
    return {name: int(number) for name, number, *_ in map(str.split, file.read_text().splitlines())}


def has_room(count: float, bytes_each: int) -> bool:
    """Whether `count` things of `bytes_each` bytes would fit into memory."""
    size = count * bytes_each
    return size <= _MUCH or size <= free_bytes()


def check_room(
    count: float, bytes_each: int, what: str, want: str = "shorter windows, or fewer records at a time"
) -> None:
    """Raises `TooLarge`, with the way, if `count` things of `bytes_each` bytes would not fit into memory."""
    if not has_room(count, bytes_each):
        size, free = count * bytes_each / 2**30, free_bytes() / 2**30
        got = f"up to {count:,.0f} {what}, or {size:,.2f} GiB, where {free:,.2f} GiB are free"
        raise TooLarge(problem("the memory would not be enough", got, want))


def shares(count: int, bytes_each: int = 0) -> list[slice]:
    """Slices that cut `count` rows into as many spans of about equal length as there are threads.

    There are fewer where what is made for each takes so many bytes that all of it would take much memory.
    """
    parts = max(1, min(thread_count(), _MUCH // max(1, bytes_each)))
    edges = [count * number // parts for number in range(parts + 1)]
    return [slice(*edge) for edge in pairwise(edges)]


def few_at_once(sizes: Sequence[int], least: int) -> int:
    """How many parts may be made at a time: a quarter of the whole, or `least` of it, but at least two parts."""
    return max(2, max(least, sum(sizes) // 4) // max(1, *sizes, 1))


def in_threads(function: Callable[[Item], Result], items: Iterable[Item], at_once: int = sys.maxsize) -> list[Result]:
    """The results of a function that leaves Python's lock alone, in the order of the items; `at_once` at a time.

    What is set for the caller's thread, such as numpy's handling of errors, is set for these as well.
    """
    work = list(items)
    threads = min(thread_count(), len(work), at_once)
    if threads < 2:
        return [function(item) for item in work]
    with ThreadPoolExecutor(threads) as several:
        contexts = [copy_context() for _ in work]  # one can be entered by one thread at a time
        return list(several.map(lambda context, item: context.run(function, item), contexts, work))


def side_by_side(here: Callable[[], Result], aside: Callable[[], Item]) -> tuple[Result, Item]:
    """The results of both calls; the second one runs in another thread meanwhile, if the run may use one."""
    if thread_count() < 2:
        return here(), aside()
    with ThreadPoolExecutor(1) as other:
        waiting = other.submit(copy_context().run, aside)
        return here(), waiting.result()


# Hands a call over, to be made after those before it; gives a function that waits for its result.
Hand: TypeAlias = Callable[[Callable[[], Any]], Callable[[], Any]]


def at_once(call: Callable[[], Result]) -> Callable[[], Result]:
    """Runs the function in this process."""
    result = call()
    return lambda: result


@contextmanager
def handing_over(*, worth_it: bool = True) -> Iterator[Hand]:
    """A `Hand` that makes calls in order in a second thread, or in this one where that is not `worth_it`."""
    if not worth_it or thread_count() < 2:
        yield at_once
        return
    with ThreadPoolExecutor(1) as other:

        def hand(call: Callable[[], Result]) -> Callable[[], Result]:
            return other.submit(copy_context().run, call).result

        yield hand


def hand_each(hand: Hand, calls: Iterable[Callable[[], object]]) -> None:
    """Hands the calls over one by one, each when the one before is done, and waits for the last."""

    def waiting() -> object:
        return None

    for call in calls:
        waiting()
        waiting = hand(call)
    waiting()


@contextmanager
def without_collections() -> Iterator[None]:
    """Turns garbage collection off inside the block: its searches through all that is kept took a third of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
