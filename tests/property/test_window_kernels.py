"""Windows of one length: the compiled kernels and the record-at-a-time processors decide alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sessionkit import window_columns
from sessionkit.engine import Outcome
from sessionkit.processing import Deployment, memory_store, run_processor
from sessionkit.records import RecordBatch
from sessionkit.views import tables
from sessionkit.window_engine import run_window_kernel
from sessionkit.windows.timed import TimeWindows
from tests.property.streams import AGGREGATIONS, draw

SEEDS = range(2_000)
GROUP = 100


def _windows(seed: int) -> TimeWindows:
    rng = np.random.default_rng([seed, 1])
    size = int(rng.choice([1, 2, 5, 30, 400]))
    advance = size if rng.random() < 0.4 else int(rng.integers(1, size + 1))
    advance = max(advance, size // 40)  # a record in thousands of windows is another test's
    return TimeWindows(size=size, advance=advance, grace=int(rng.choice([0, 0, 1, 5, 40, 10_000])))


def _rows(columns: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    lists = [c.to_pylist() if isinstance(c, pa.Array | pa.ChunkedArray) else list(c) for c in columns.values()]
    return list(zip(*lists, strict=True))


def _processed(windows: Any, batch: RecordBatch, emit: str) -> tuple[Outcome, list[Any]]:
    how = Deployment(retention_ms=windows.retention_ms(None), emit=emit, kafka=False)
    done = run_processor(windows, AGGREGATIONS, batch, memory_store(windows, None), how)
    assert not done.refused
    return done.outcome, done.forwarded


def assert_same(windows: Any, batch: RecordBatch, emit: str) -> None:
    """The kernel and the processor agree in every view."""
    outcome = run_window_kernel(windows, AGGREGATIONS, batch, keep_trace=True)
    outcome.kept_trace.check()
    told, forwarded = _processed(windows, batch, emit)
    told.kept_trace.check()
    for one, other in zip(outcome.kept_trace.touches, told.kept_trace.touches, strict=True):
        np.testing.assert_array_equal(one, other)
    assert outcome.kept_trace.records().equals(told.kept_trace.records())
    assert outcome.kept_trace.windows().equals(told.kept_trace.windows())
    assert _rows(tables.changelog(outcome, emit)) == _rows(tables.forwarded_table(told, forwarded, old_values=False))
    rows = tables.table_rows(outcome)
    assert _rows(tables.window_table(outcome, rows)) == _rows(tables.window_table(told, tables.table_rows(told)))
    assert tables.dropped_touches(outcome.kept_trace).equals(tables.dropped_touches(told.kept_trace))
    assert tables.metrics(outcome, 0, 0) == tables.metrics(told, 0, 0)
    assert outcome.snapshots == told.snapshots


@pytest.mark.parametrize("first", SEEDS[::GROUP])
def test_time_kernel_equals_processor(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(first, first + GROUP):
        monkeypatch.setattr(window_columns, "CHUNK", 7 if seed % 3 else 131_072)
        emit = ("on_window_update", "on_window_close")[seed % 2]
        try:
            assert_same(_windows(seed), draw(seed).batch(), emit)
        except Exception:
            print("seed", seed, _windows(seed))
            raise


def test_without_a_trace_the_windows_are_the_same() -> None:
    for seed in range(60):
        windows, batch = _windows(seed), draw(seed).batch()
        kept = run_window_kernel(windows, AGGREGATIONS, batch, keep_trace=True)
        bare = run_window_kernel(windows, AGGREGATIONS, batch, keep_trace=False)
        assert bare.kept_trace is None
        views = [_rows(tables.window_table(each, tables.table_rows(each))) for each in (kept, bare)]
        assert views[0] == views[1]
        assert kept.dropped == bare.dropped and kept.missed_count == bare.missed_count
