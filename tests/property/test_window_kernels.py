"""Time and sliding windows: the compiled kernels and the record-at-a-time processors decide alike."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.aggregations.contract import Aggregation
from sessionkit.deployed.deployment import Life
from sessionkit.deployed.lives import memory_store
from sessionkit.deployed.processor_run import run_processor
from sessionkit.engine.commit import commit
from sessionkit.engine.kernel_run import run_kernel
from sessionkit.engine.outcome import Outcome
from sessionkit.records.batch import RecordBatch, without_null_values
from sessionkit.stores.state.column_state import ColumnState
from sessionkit.views import tables
from sessionkit.views.dropped import dropped_table
from sessionkit.windows import feed as window_columns
from sessionkit.windows.contract import WindowKind
from sessionkit.windows.hopping import TimeWindows
from sessionkit.windows.sliding.windows import SlidingWindows
from tests.interpreted import fewer
from tests.property.streams import AGGREGATIONS, draw, rows_of

SEEDS = range(fewer(2_000))
GROUP = len(SEEDS) // 20


def _sliding(seed: int) -> SlidingWindows:
    rng = np.random.default_rng([seed, 2])
    return SlidingWindows(
        time_difference_ms=int(rng.choice([1, 2, 5, 30, 400])), grace_ms=int(rng.choice([0, 0, 1, 5, 40, 10_000]))
    )


def _times(seed: int) -> TimeWindows:
    rng = np.random.default_rng([seed, 1])
    size = int(rng.choice([1, 2, 5, 30, 400]))
    advance = size if rng.random() < 0.4 else int(rng.integers(1, size + 1))
    advance = max(advance, size // 40)  # a record in thousands of windows is another test's
    return TimeWindows(size_ms=size, advance_ms=advance, grace_ms=int(rng.choice([0, 0, 1, 5, 40, 10_000])))


def _some(seed: int) -> dict[str, Aggregation]:
    """A count and three others, each seed its own: all of them take their turns."""
    names = np.random.default_rng([seed, 4]).permutation([name for name in AGGREGATIONS if name != "count"])
    return {name: AGGREGATIONS[name] for name in ("count", *names[:3].tolist())}


def _run(windows: WindowKind, named: Mapping[str, Aggregation], batch: RecordBatch, **options: Any) -> Outcome:
    return run_kernel(windows, named, batch, retention_ms=windows.retention_ms(None), **options)


def _processed(
    windows: Any, named: Mapping[str, Aggregation], batch: RecordBatch, emit: str
) -> tuple[Outcome, list[Any]]:
    how = Life(retention_ms=windows.retention_ms(None), emit=emit, kafka=False)
    done = run_processor(windows, named, batch, memory_store(windows, None), how)
    assert not done.deployed.refused
    return done.outcome, done.deployed.forwarded


def _same_rows(one: Mapping[str, Any], other: Mapping[str, Any], *, added_alike: bool) -> None:
    """Equal rows; floats that were not added one by one may differ in their last bits."""
    for name, column in one.items():
        ours, theirs = rows_of({name: column}), rows_of({name: other[name]})
        if not added_alike and name.removeprefix("old_") in ("real_sum", "mean"):
            assert [a is None for (a,) in ours] == [b is None for (b,) in theirs]
            np.testing.assert_allclose(*([v for (v,) in side if v is not None] for side in (ours, theirs)), atol=1e-9)
        else:
            assert ours == theirs, name


def assert_same(windows: Any, named: Mapping[str, Aggregation], batch: RecordBatch, emit: str) -> None:
    """The kernel and the processor agree in every view."""
    outcome = _run(windows, named, batch, keep_trace=True)
    outcome.kept_trace.check()
    told, forwarded = _processed(windows, named, batch, emit)
    told.kept_trace.check()
    for one, other in zip(outcome.kept_trace.touches, told.kept_trace.touches, strict=True):
        np.testing.assert_array_equal(one, other)
    assert outcome.kept_trace.records().equals(told.kept_trace.records())
    assert outcome.kept_trace.windows().equals(told.kept_trace.windows())
    one_by_one = isinstance(windows, TimeWindows)
    sent = tables.forwarded_table(told, forwarded, old_values=True)
    _same_rows(
        tables.changelog(outcome, emit, old_values=True), sent, added_alike=one_by_one or emit == "on_window_update"
    )
    shown = (tables.window_table(each, tables.table_rows(each)) for each in (outcome, told))
    _same_rows(*shown, added_alike=one_by_one)
    assert dropped_table(outcome.kept_trace, windows).equals(dropped_table(told.kept_trace, windows))
    source = sk.group_by_key("key", timestamp="at").source
    assert tables.metrics(outcome, 0, 0, windows, source) == tables.metrics(told, 0, 0, windows, source)
    assert outcome.snapshots == told.snapshots


@pytest.mark.thorough
@pytest.mark.parametrize("first", SEEDS[::GROUP])
def test_time_kernel_equals_processor(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(first, first + GROUP):
        monkeypatch.setattr(window_columns, "CHUNK", 7 if seed % 3 else 131_072)
        emit = ("on_window_update", "on_window_close")[seed % 2]
        try:
            assert_same(_times(seed), _some(seed), draw(seed).batch(), emit)
        except Exception:
            print("seed", seed, _times(seed))
            raise


@pytest.mark.thorough
@pytest.mark.parametrize("first", SEEDS[::GROUP])
def test_sliding_kernel_equals_processor(first: int) -> None:
    for seed in range(first, first + GROUP):
        batch = draw(seed).batch()
        batch = without_null_values(batch) if seed % 2 else batch
        try:
            assert_same(_sliding(seed), _some(seed), batch, ("on_window_update", "on_window_close")[seed // 2 % 2])
        except Exception:
            print("seed", seed, _sliding(seed))
            raise


def _in_batches(
    windows: Any, named: Mapping[str, Aggregation], stream: Any, cuts: list[int], open_state: Any
) -> list[Outcome]:
    store, outcomes = open_state(), []
    for lo, hi in pairwise([0, *cuts, len(stream.table)]):
        outcomes.append(_run(windows, named, stream.batch(lo, hi), store=store))
        outcomes[-1].kept_trace.check()
        commit(outcomes[-1], store, windows, windows.retention_ms(None))
    return outcomes


STATES = {
    "memory": lambda: memory_store(TimeWindows(size_ms=1, grace=0), None),
    "columns": lambda: ColumnState("windows"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", [_times, _sliding])
def test_any_cut_into_batches_gives_the_same(kind: Any, state: str) -> None:
    """What comes out of the batches, put together, is what comes out of one run, whatever the state between them."""
    for seed in range(fewer(100)):
        windows, stream = kind(seed), draw(seed)
        rng = np.random.default_rng([seed, 3])
        cuts = sorted(rng.integers(0, len(stream.table) + 1, int(rng.integers(1, 5))).tolist())
        whole = _run(windows, _some(seed), stream.batch())
        parts = _in_batches(windows, _some(seed), stream, cuts, STATES[state])
        added_alike = kind is _times
        for emit in ("on_window_update", "on_window_close"):
            rows = [tables.changelog(part, emit) for part in parts]
            joined = {name: [v for part in rows for (v,) in rows_of({name: part[name]})] for name in rows[0]}
            expected = {name: [v for (v,) in rows_of({name: c})] for name, c in tables.changelog(whole, emit).items()}
            for name, values in expected.items():
                if name in ("real_sum", "mean") and not added_alike:
                    pairs = zip(joined[name], values, strict=True)
                    assert all((a is None and b is None) or abs(a - b) < 1e-9 for a, b in pairs), (seed, name)
                else:
                    assert joined[name] == values, (seed, emit, name)
        records = pa.concat_tables([part.kept_trace.records() for part in parts])
        assert records.equals(whole.kept_trace.records()), seed
        assert sum(part.missed_count for part in parts) == whole.missed_count


def test_without_a_trace_the_windows_are_the_same() -> None:
    for seed in range(fewer(60)):
        windows, batch = _times(seed), draw(seed).batch()
        kept = _run(windows, AGGREGATIONS, batch, keep_trace=True)
        bare = _run(windows, AGGREGATIONS, batch, keep_trace=False)
        assert bare.kept_trace is None
        views = [rows_of(tables.window_table(each, tables.table_rows(each))) for each in (kept, bare)]
        assert views[0] == views[1]
        assert kept.dropped == bare.dropped and kept.missed_count == bare.missed_count
