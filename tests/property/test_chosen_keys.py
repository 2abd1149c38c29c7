"""What is shown of one key is worked out from its own records and ticks: it is what it is among all records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.views.emissions import _of_run
from tests.interpreted import fewer
from tests.kinds import EACH_KIND, plan_of

NEVER = "never closed"
KINDS = {
    **EACH_KIND,
    "no grace": sk.SessionWindows(inactivity_gap_ms=0, grace_ms=0),
    NEVER: sk.SessionWindows.until(inactivity_gap_ms=5, retention_ms=60_000),
}


def records(seed: int) -> pa.Table:
    """Three partitions, keys and times that may be null, late and equal times."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 60))
    partition = rng.integers(0, 3, size)
    times = np.maximum(np.arange(size) * rng.integers(1, 6) - rng.integers(0, 40, size), 0)
    return pa.table(
        {
            "key": pa.array(rng.choice(["a", "b", "c"], size).tolist(), pa.string(), mask=rng.random(size) < 0.1),
            "at": pa.array(times, pa.int64(), mask=rng.random(size) < 0.05),
            "partition": partition,
            "n": pa.array(rng.integers(0, 9, size), pa.int64(), mask=rng.random(size) < 0.1),
        }
    )


CASES = [(kind, "on_window_update") for kind in KINDS] + [(kind, "on_window_close") for kind in KINDS if kind != NEVER]


@pytest.mark.parametrize(("kind", "emit"), CASES)
def test_what_went_downstream_for_a_key_is_the_same_without_the_other_keys(kind: str, emit: Any) -> None:
    named = {"count": sk.count(), "total": sk.sum("n"), "all": sk.collect("n")}
    plan = plan_of(KINDS[kind], emit, named, partition="partition", on_bad_time="drop")
    compared = 0
    for seed in range(fewer(100)):
        run = plan.run(records(seed))
        for key, code in zip(run.trace.keys.to_pylist(), range(len(run.trace.keys)), strict=True):
            inside = np.unique(run.trace.batch.partition[run.trace.batch.key == code])
            for number in inside.tolist():
                alone = run.emissions(key, partition=int(run.trace.batch.partitions[number]))
                among = _of_run(run, key, (code, number))
                assert alone.table().equals(among.table()), (seed, key, number)
                assert (alone.at.tolist(), alone.lane.tolist()) == (among.at.tolist(), among.lane.tolist())
                assert (alone.lanes, alone.words(), alone.code) == (among.lanes, among.words(), among.code)
                compared += 1
    assert compared > fewer(100)
