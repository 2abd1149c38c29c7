"""A run takes as much memory with many processors as with two."""

import tracemalloc
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.base.process import THREADS
from tests.interpreted import INTERPRETED

pytestmark = pytest.mark.skipif(INTERPRETED, reason="loops over millions of records are compiled ones")
PLAN = sk.group_by_key("key", timestamp="at", unit="ms")
SESSIONS = PLAN.windowed_by(sk.SessionWindows(inactivity_gap="10s", grace="10s")).aggregate(n=sk.count())
HOPPING = PLAN.windowed_by(sk.TimeWindows(size="60s", advance="10s", grace="10s")).aggregate(n=sk.count())


def records(rows: int, keys: int) -> pa.Table:
    return pa.table({"key": np.arange(rows) * 7 % keys, "at": 1_700_000_000_000 + np.arange(rows) * 1_000})


SHAPES: dict[str, Any] = {
    "sessions of many keys": (SESSIONS, records(2_000_000, 1_900_000)),
    "sessions of 40 keys": (SESSIONS, records(4_000_000, 40)),
    "hopping windows": (HOPPING, records(2_000_000, 500_000)),
}


def peak_of(call: Any) -> int:
    """The most that NumPy and Python held at a time."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_a_run_takes_no_more_memory_with_64_threads_than_with_8(monkeypatch: pytest.MonkeyPatch, shape: str) -> None:
    plan, table = SHAPES[shape]

    def peak(threads: int) -> int:
        monkeypatch.setenv(THREADS, str(threads))
        return peak_of(lambda: plan.run(table, trace=False))

    peak(2)  # compiles
    assert peak(64) < 1.25 * peak(8)
