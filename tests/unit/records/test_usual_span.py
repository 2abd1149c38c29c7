"""The span in which nearly all times lie, of times one by one and of times with how many records have each."""

import numpy as np
import pytest

from sessionkit.records.time_statistics import usual_span


@pytest.mark.parametrize("seed", range(30))
def test_times_with_counts_are_those_times_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    times = 10**9 + rng.integers(0, 50, rng.integers(1, 2_000)) * rng.choice([1, 900])
    far = [[], rng.integers(10**6, 10**7, 3), rng.integers(10**12, 10**13, 3)][seed % 3]
    times = np.sort(np.append(times, far).astype(np.int64))
    span = usual_span(times)
    assert usual_span(*np.unique(times, return_counts=True)) == span
    assert seed % 3 == 0 or len(times) < 400 or not (span[0] <= far[0] <= span[1])
