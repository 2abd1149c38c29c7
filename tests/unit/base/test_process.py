"""How many threads a run may use, and what is done in them."""

import os
import platform
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from sessionkit.base import process
from sessionkit.errors import InvalidArgument


def test_the_setting_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SESSIONKIT_THREADS", "3")
    assert process.thread_count() == 3


@pytest.mark.parametrize("given", ["0", "two", "", "-1", "1.5"])
def test_no_number_of_threads(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("SESSIONKIT_THREADS", given)
    with pytest.raises(InvalidArgument, match="SESSIONKIT_THREADS must be a number of threads"):
        process.thread_count()


@pytest.mark.parametrize(("limit", "threads"), [("150000 100000", 1), ("50000 100000", 1), ("max 100000", None)])
def test_the_limit_of_a_control_group(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, limit: str, threads: int | None
) -> None:
    monkeypatch.delenv("SESSIONKIT_THREADS", raising=False)
    (tmp_path / "cpu.max").write_text(limit)
    monkeypatch.setattr(process, "_QUOTA", tmp_path / "cpu.max")
    assert process.thread_count() == (threads or min(len(os.sched_getaffinity(0)), pa.cpu_count()))


def test_results_come_in_the_order_of_the_items(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SESSIONKIT_THREADS", "2")
    both = threading.Barrier(2, timeout=30)  # passed only if two run at the same time
    assert process.in_threads(lambda item: (both.wait(), item * 2)[1], [1, 2]) == [2, 4]
    assert process.side_by_side(lambda: both.wait() * 0, lambda: both.wait() * 0) == (0, 0)
    assert process.side_by_side(threading.get_ident, threading.get_ident)[0] == threading.get_ident()


@pytest.mark.parametrize(("rows", "lengths"), [(10, [3, 3, 4]), (2, [0, 1, 1]), (0, [0, 0, 0])])
def test_rows_are_shared_by_the_threads(monkeypatch: pytest.MonkeyPatch, rows: int, lengths: list[int]) -> None:
    monkeypatch.setenv(process.THREADS, "3")
    found = process.shares(rows)
    assert [span.stop - span.start for span in found] == lengths
    assert [row for span in found for row in range(rows)[span]] == list(range(rows))


def test_one_thread_is_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SESSIONKIT_THREADS", "1")
    assert process.in_threads(lambda _: threading.get_ident(), range(3)) == [threading.get_ident()] * 3


@pytest.mark.parametrize(("threads", "worth_it"), [("1", True), ("2", False), ("2", True)])
def test_what_is_handed_over_is_done_in_order(threads: str, worth_it: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SESSIONKIT_THREADS", threads)
    done: list[int] = []
    with process.handing_over(worth_it=worth_it) as hand:
        waits = [hand(partial(done.append, number)) for number in range(100)]
        by = hand(threading.get_ident)()
        assert waits[99]() is None
    assert done == [*range(100)]
    assert (by == threading.get_ident()) == (threads == "1" or not worth_it)


def test_each_is_handed_over_when_the_one_before_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SESSIONKIT_THREADS", "2")
    done: list[int] = []

    def calls() -> Iterator[Callable[[], None]]:
        for number in range(100):
            assert len(done) >= number - 1  # all but the one before, which may still go on
            yield partial(done.append, number)

    with process.handing_over() as hand:
        process.hand_each(hand, calls())
        assert done == [*range(100)]
        process.hand_each(hand, [])


def test_what_fails_beside_is_raised_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SESSIONKIT_THREADS", "2")

    def fail() -> None:
        raise ArithmeticError("beside")

    with process.handing_over() as hand:
        for calls in ([fail], [fail, int, int]):
            with pytest.raises(ArithmeticError, match="beside"):
                process.hand_each(hand, calls)


def test_what_is_set_for_the_caller_is_set_for_its_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SESSIONKIT_THREADS", "2")
    largest = np.array([2**63 - 1])

    def doubled(_: int) -> int:
        return int(largest[0] * np.int64(2))

    with np.errstate(over="ignore"):
        assert process.in_threads(doubled, range(4)) == [-2] * 4
        assert process.side_by_side(lambda: doubled(0), lambda: doubled(1)) == (-2, -2)


FREED = """
import os
from pathlib import Path

import numpy as np

from sessionkit.base.process import release_unused

def held():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

kept = [np.ones(1_000) for _ in range(20_000)]
kept = kept[-1:]  # behind all that is free
before = held()
release_unused(1_000)
few = held()
release_unused(10_000_000)
print(before - few, before - held())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other libraries have no call for it")
def test_memory_that_nothing_uses_goes_back_to_the_system_after_many_records() -> None:
    done = subprocess.run([sys.executable, "-c", FREED], check=True, capture_output=True, text=True, timeout=60)
    after_few, after_many = map(float, done.stdout.split())
    assert after_few < 10
    assert after_many > 100


def test_other_systems_have_no_such_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process.sys, "platform", "darwin")
    monkeypatch.setattr(process.ctypes, "CDLL", None)
    process.release_unused(10_000_000)
