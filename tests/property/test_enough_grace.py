"""The grace that is said to be enough for a drop: with it the record is kept, with a millisecond less it is dropped."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.base.decisions import LATE
from tests.interpreted import fewer
from tests.kinds import group_in_ms

DROPS = {"session": 2_000, "tumbling": 400, "hopping": 400, "sliding": 400}
KINDS: dict[str, Any] = {
    "session": sk.SessionWindows(inactivity_gap_ms=40, grace_ms=15),
    "tumbling": sk.TimeWindows(size_ms=60, grace_ms=15),
    "hopping": sk.TimeWindows(size_ms=60, advance_ms=25, grace_ms=15),
    "sliding": sk.SlidingWindows(time_difference_ms=40, grace_ms=15),
}


def stream(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(30, 120))
    at = np.cumsum(rng.integers(0, 25, size)) + 500 - (rng.random(size) < 0.4) * rng.integers(0, 260, size)
    return pd.DataFrame({"key": rng.choice(list("abc"), size), "at": np.maximum(at, 0)})


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_exact(kind: str) -> None:
    plan = group_in_ms("key").windowed_by(KINDS[kind]).count()
    checked, seed = 0, 0
    while checked < fewer(DROPS[kind]):
        seed += 1
        data = stream(seed)
        runs: dict[int, Any] = {}

        def misses(grace_ms: int, offset: int, start_ms: int, runs: dict[int, Any] = runs, data: Any = data) -> bool:
            if grace_ms not in runs:
                runs[grace_ms] = plan.with_windows(grace_ms=grace_ms).run(data).trace
            if kind == "session":
                return bool(runs[grace_ms].decision[offset] == LATE)
            missed = runs[grace_ms].missed
            return bool(((missed.record == offset) & (missed.start_ms == start_ms)).any())

        lost = plan.run(data).dropped()
        starts = lost["window_start_ms"] if "window_start_ms" in lost else lost["offset"]
        for offset, start_ms, enough in zip(lost["offset"], starts, lost["enough_grace_ms"], strict=True):
            assert not misses(int(enough), offset, int(start_ms)), f"seed {seed}, offset {offset}: {enough} drops it"
            assert misses(int(enough) - 1, offset, int(start_ms)), f"seed {seed}, offset {offset}: {enough} is too much"
            checked += 1
    print(f"{kind}: {checked} drops in {seed} streams")
