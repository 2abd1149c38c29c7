"""The compiled kernel and the record-at-a-time processor decide alike, and no cut into batches changes a thing."""

from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sessionkit.aggregations.contract import Aggregation
from sessionkit.deployed.deployment import Life
from sessionkit.deployed.processor_run import run_processor
from sessionkit.engine.commit import commit
from sessionkit.engine.kernel_run import run_kernel
from sessionkit.engine.outcome import Outcome
from sessionkit.stores.memory.sessions import MemorySessionStore
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.views import tables
from sessionkit.windows import feed
from tests.interpreted import fewer
from tests.property.streams import AGGREGATIONS, Stream, draw, rows_of

SEEDS = range(fewer(2_000))
GROUP = len(SEEDS) // 20
STRATEGIES = ("on_window_update", "on_window_close")
BUILT_INS = {name: a for name, a in AGGREGATIONS.items() if a.parts}


def _kernel(stream: Stream, aggregations: Mapping[str, Aggregation] = AGGREGATIONS) -> tuple[Outcome, SessionTrace]:
    outcome = run_kernel(stream.windows, aggregations, stream.batch(), retention_ms=stream.retention_ms)
    assert outcome.kept_trace is not None
    return outcome, outcome.kept_trace


def _same_trace(one: SessionTrace, other: SessionTrace) -> None:
    assert one.records().equals(other.records())
    assert one.windows().equals(other.windows())
    for a, b in zip(
        (*one.merges, *one.reopenings, *one.closes), (*other.merges, *other.reopenings, *other.closes), strict=True
    ):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("first", SEEDS[::GROUP])
def test_kernel_equals_processor(first: int) -> None:
    """Trace, windows, closes, values of every aggregation, and a changelog against what the processor sent on."""
    for seed in range(first, first + GROUP):
        stream = draw(seed)
        outcome, trace = _kernel(stream)
        trace.check()
        emit = STRATEGIES[seed % 2]
        how = Life(retention_ms=stream.retention_ms, emit=emit, kafka=False)
        done = run_processor(stream.windows, AGGREGATIONS, stream.batch(), MemorySessionStore(), how)
        told = done.outcome
        assert told.kept_trace is not None, seed
        _same_trace(trace, told.kept_trace)
        assert not done.deployed.refused, seed
        sent = tables.forwarded_table(told, done.deployed.forwarded, old_values=True)
        assert rows_of(tables.changelog(outcome, emit, old_values=True)) == rows_of(sent), seed
        rows = tables.table_rows(outcome)
        assert rows_of(tables.window_table(outcome, rows)) == rows_of(tables.window_table(told, rows)), seed
        assert outcome.snapshots == told.snapshots, seed


def _in_batches(stream: Stream, cuts: list[int], aggregations: Mapping[str, Aggregation]) -> list[Outcome]:
    store, outcomes = MemorySessionStore(), []
    for lo, hi in zip([0, *cuts], [*cuts, len(stream.table)], strict=True):
        batch = stream.batch(lo, hi)
        outcome = run_kernel(stream.windows, aggregations, batch, retention_ms=stream.retention_ms, store=store)
        commit(outcome, store, stream.windows, stream.retention_ms)
        outcomes.append(outcome)
    return outcomes


def _last_seen(traces: list[SessionTrace]) -> dict[tuple[int, int], dict[str, Any]]:
    """Each window as the last batch that met it left it, its parents from all batches."""
    seen: dict[tuple[int, int], dict[str, Any]] = {}
    for trace in traces:
        for row in trace.windows().to_pylist():
            before = seen.get((row["partition"], row["window_id"]), {"parents": []})
            seen[row["partition"], row["window_id"]] = {**row, "parents": before["parents"] + row["parents"]}
    return seen


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(0, 3 * GROUP, GROUP))
def test_any_split_gives_the_same_trace(first: int) -> None:
    for seed in range(first, first + GROUP):
        stream = draw(seed)
        whole, trace = _kernel(stream)
        cuts = sorted(np.random.default_rng(seed).integers(0, len(stream.table) + 1, 3).tolist())
        outcomes = _in_batches(stream, cuts, AGGREGATIONS)
        traces = [outcome.kept_trace for outcome in outcomes if outcome.kept_trace is not None]
        for part in traces:
            part.check()
        assert pa.concat_tables(part.records() for part in traces).equals(trace.records()), seed
        assert _last_seen(traces) == _last_seen([trace]), seed
        for strategy in STRATEGIES:
            parts = [rows_of(tables.changelog(each, strategy)) for each in outcomes]
            assert list(chain(*parts)) == rows_of(tables.changelog(whole, strategy)), seed
        assert {p: s for o in outcomes for p, s in o.snapshots.items()} == whole.snapshots, seed


@pytest.mark.parametrize("chunk", [1, 7])
def test_the_chunk_does_not_matter(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(fewer(100)):
        stream = draw(seed)
        whole, trace = _kernel(stream, BUILT_INS)
        monkeypatch.setattr(feed, "CHUNK", chunk)
        other, chunked = _kernel(stream, BUILT_INS)
        monkeypatch.undo()
        _same_trace(trace, chunked)
        rows = tables.table_rows(whole)
        assert rows_of(tables.window_table(whole, rows)) == rows_of(tables.window_table(other, rows)), seed


@pytest.mark.thorough
def test_many_open_sessions_of_one_key() -> None:
    """Long walks move a key to the cells; the answers stay those of the processor."""
    aggregations = {"count": AGGREGATIONS["count"], "collect": AGGREGATIONS["collect"]}
    for seed in range(fewer(20)):
        stream = draw(seed, most=10)
        rng = np.random.default_rng(seed)
        size, gap = 700, int(rng.choice([0, 1, 3, 10]))
        times = pa.array(rng.integers(0, 300 * (gap + 1), size) + int(rng.choice([0, 10**12])))
        keys = pa.array(rng.choice(["a", "b"], size).tolist())
        zeros = pa.array(np.zeros(size, np.int32))
        columns = {
            "partition": zeros, "offset": np.arange(size), "key": keys, "time": times, "value": zeros,
            "real": pa.nulls(size, pa.float64()),
        }  # fmt: skip
        windows = type(stream.windows)(inactivity_gap_ms=gap, grace_ms=int(rng.choice([30, 200, 10_000])) * (gap + 1))
        stream = Stream(windows, windows.close_lag_ms + int(rng.choice([0, 50])), pa.table(columns))
        outcome, trace = _kernel(stream, aggregations)
        trace.check()
        how = Life(retention_ms=stream.retention_ms, emit="on_window_close", kafka=False)
        told = run_processor(windows, aggregations, stream.batch(), MemorySessionStore(), how).outcome
        assert told.kept_trace is not None
        _same_trace(trace, told.kept_trace)
        rows = tables.table_rows(outcome)
        assert rows_of(tables.window_table(outcome, rows)) == rows_of(tables.window_table(told, rows)), seed


def test_without_a_trace_the_windows_are_the_same() -> None:
    for seed in range(fewer(200)):
        stream = draw(seed)
        whole, _ = _kernel(stream, BUILT_INS)
        bare = run_kernel(stream.windows, BUILT_INS, stream.batch(), retention_ms=stream.retention_ms, keep_trace=False)
        rows = tables.table_rows(whole)
        assert rows_of(tables.window_table(whole, rows)) == rows_of(
            tables.window_table(bare, tables.table_rows(bare))
        ), seed
        assert (bare.dropped, bare.merge_count, bare.snapshots) == (whole.dropped, whole.merge_count, whole.snapshots)


def test_permuting_keys_inside_a_partition_changes_results() -> None:
    """The control: stream time is shared by the keys of a partition, so these tests can fail."""
    changed = 0
    for seed in range(fewer(100)):
        stream = draw(seed)
        _, trace = _kernel(stream, BUILT_INS)
        order = np.random.default_rng(seed).permutation(len(stream.table))
        mixed = stream.table.take(pa.array(order)).set_column(1, "offset", pa.array(np.arange(len(order))))
        _, other = _kernel(stream._replace(table=mixed), BUILT_INS)
        changed += trace.counts() != other.counts()
    assert changed >= 1
