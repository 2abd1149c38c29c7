"""Suppress: the compiled buffer does what the one that goes result by result does, however the changelog is cut."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.deployed.deployment import Life
from sessionkit.deployed.lives import memory_store
from sessionkit.errors import BufferFull
from sessionkit.records.batch import read_records
from sessionkit.run import Run
from sessionkit.suppression.stage import Suppressor
from tests.interpreted import fewer
from tests.kinds import EACH_KIND, plan_of
from tests.property.streams import rows_of

NAMED: dict[str, Any] = {
    "count": {"count": sk.count()},
    "all null, or not": {"least": sk.min("n"), "last": sk.last("word")},
    "several parts": {"mean": sk.mean("n")},
    "a list": {"median": sk.median("n")},
    "text": {"word": sk.last("word")},
    "Python": {"own": sk.reduce(lambda older, newer: None if newer == 3 else newer, "n")},
}
BUFFERS: dict[str, Any] = {
    "until closed": ("until_window_closes", {}),
    "until closed, few records": ("until_window_closes", {"max_records": 3}),
    "for a time": ("until_time_limit", {"wait": "4ms"}),
    "no time": ("until_time_limit", {"wait": 0}),
    "for a time, few records": ("until_time_limit", {"wait": "20ms", "max_records": 3}),
    "for a time, or not at all": ("until_time_limit", {"wait": "30ms", "max_records": 3, "when_full": "shut_down"}),
}


def records(seed: int) -> pa.Table:
    """Three partitions; keys of text, or integers, of which one begins as another ends; late records, nulls."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(0, 60))
    keys = rng.choice([-3, 0, 7], size) if seed % 3 == 0 else rng.choice(["a", "a\0", "ab", "é", ""], size)
    times = np.maximum(np.arange(size) * rng.integers(1, 6) - rng.integers(0, 30, size), 0)
    return pa.table(
        {"key": pa.array(keys.tolist(), pa.int64() if seed % 3 == 0 else pa.string(), mask=rng.random(size) < 0.05),
         "at": times, "partition": rng.integers(0, 3, size),
         "n": pa.array(rng.integers(0, 5, size), mask=rng.random(size) < 0.3),
         "word": pa.array([None if i % 4 == 0 else "w" * int(i % 5) for i in range(size)], pa.string())},
    )  # fmt: skip


def _plan(kind: str, named: str, buffer: str) -> sk.Plan:
    until, options = BUFFERS[buffer]
    plan = plan_of(EACH_KIND[kind], "on_window_update", NAMED[named], partition="partition")
    return plan.suppress(until, options.get("wait"), **{name: v for name, v in options.items() if name != "wait"})


def _by_processor(plan: sk.Plan, table: pa.Table) -> Run:
    windows = plan._complete_windows
    how = Life(retention_ms=windows.retention_ms(None), emit="on_window_update", kafka=False)
    return plan._run_life(read_records(table, plan.source, plan._value_columns()), memory_store(windows, None), how)


@pytest.mark.thorough
@pytest.mark.parametrize("buffer", BUFFERS)
@pytest.mark.parametrize("kind", EACH_KIND)
def test_columns_equal_result_by_result(kind: str, buffer: str) -> None:
    sent = failed = 0
    for seed in range(fewer(60)):
        plan, table = _plan(kind, list(NAMED)[seed % len(NAMED)], buffer), records(seed)
        try:
            expected: Any = _by_processor(plan, table)
        except BufferFull as full:
            failed += 1
            with pytest.raises(BufferFull) as caught:
                plan.run(table)
            assert str(caught.value) == str(full), seed
            continue
        run = plan.run(table)
        assert rows_of(run._changelog) == rows_of(expected._changelog), seed
        one, other = run.suppress_buffer(), expected.suppress_buffer()
        assert one.most_records == other.most_records, seed
        assert one.table().to_pylist() == other.table().to_pylist(), seed
        sent += len(run.changelog())
    assert sent or failed
    assert bool(failed) is ("until closed, few" in buffer or "or not at all" in buffer)


@pytest.mark.thorough
@pytest.mark.parametrize("buffer", [name for name in BUFFERS if "few" not in name and "or not" not in name])
@pytest.mark.parametrize("kind", EACH_KIND)
def test_any_cut_of_the_changelog_gives_the_same(kind: str, buffer: str) -> None:
    for seed in range(fewer(40)):
        plan, table = _plan(kind, list(NAMED)[seed % len(NAMED)], buffer), records(seed)
        run = plan.run(table)
        assert plan._suppression is not None
        whole = plan_of(EACH_KIND[kind], named=NAMED[list(NAMED)[seed % len(NAMED)]], partition="partition").run(table)
        columns = whole._changelog
        count = len(columns["offset"])
        cuts = sorted(np.random.default_rng(seed).integers(0, count + 1, 3).tolist())
        stage = Suppressor(plan._suppression, plan._complete_windows, dict(plan._aggregations))
        rows = []
        for lo, hi in zip([0, *cuts], [*cuts, count], strict=True):
            rows += rows_of(stage.step({name: column[lo:hi] for name, column in columns.items()}))
        assert rows == rows_of(run._changelog), seed
        buffer_of = run.suppress_buffer()
        assert stage.most_records == buffer_of.most_records, seed
