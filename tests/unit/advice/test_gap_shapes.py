"""Gaps from streams of known structure: the middle of what no pause has, and unsure where no valley is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import sessionkit as sk

PLAN = sk.group_by_key("key", timestamp="time", unit="ms", times="ms")
S, MIN, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000


def stream(pauses: Any, *, keys: int = 30, count: int = 100) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    times = [np.cumsum(np.asarray(pauses(rng, count)).astype(np.int64)) + 10**12 for _ in range(keys)]
    return pd.DataFrame({"key": np.repeat(np.arange(keys).astype(str), count), "time": np.concatenate(times)})


def visits(pause_ms: int, between_ms: int, *, each: int = 10, spread: float = 0) -> Any:
    """Visits of so many records; pauses scatter by `spread`, in their logarithm."""

    def pauses(rng: Any, count: int) -> Any:
        lengths = np.where(np.arange(count) % each == each - 1, between_ms, pause_ms)
        return lengths * np.exp(spread * rng.standard_normal(count))

    return pauses


def test_the_clearest_stream_has_a_gap_in_the_middle_of_its_empty_valley() -> None:
    """Pauses of 2 s in visits, 1 h between them: the middle, in logarithmic time, is 85 s."""
    found = sk.suggest_gap(PLAN, stream(visits(2 * S, HOUR)))
    assert 80 * S <= (found.gap_ms or 0) <= 90 * S
    assert repr(found) == "gap 1 min 24 s: no pause is between 2 s and 1 h long (by key; 2,970 pauses)."


@pytest.mark.parametrize(
    ("pauses", "keys", "count"),
    [
        (visits(2 * S, HOUR, spread=0.3), 30, 100),
        (visits(2 * S, HOUR, each=50), 30, 100),
        (visits(2 * S, HOUR, spread=0.3), 1, 20_000),
        (visits(MIN, 365 * DAY, each=5), 30, 100),
        (visits(5 * MIN, 6 * HOUR, spread=0.4), 30, 100),
        (visits(2 * S, HOUR), 2, 65),
        (visits(2 * S, 10 * MIN), 30, 100),  # the middle is 35 s, but what lies behind it is no burst
    ],
)
def test_the_gap_parts_visits(pauses: Any, keys: int, count: int) -> None:
    data = stream(pauses, keys=keys, count=count)
    found = sk.suggest_gap(PLAN, data)
    lengths = data.groupby("key")["time"].diff().dropna().to_numpy()
    middle = np.exp((np.log(lengths.min()) + np.log(lengths.max())) / 2)
    short, long = lengths[lengths < middle].max(), lengths[lengths > middle].min()
    assert short < (found.gap_ms or 0) < long
    assert found.gap_ms == pytest.approx(np.sqrt(short * long), rel=0.1)
    assert "times as frequent" not in repr(found)


def test_of_three_humps_each_valley_is_named() -> None:
    lengths = np.array([2 * S, 5 * MIN, DAY])
    found = sk.suggest_gap(PLAN, stream(lambda rng, count: rng.choice(lengths, count)))
    assert [valley.gap_ms for valley in found.valleys] == [24 * S, 84 * MIN]
    assert (found.gap_ms, found.burst_ms) == (84 * MIN, 24 * S)


@pytest.mark.parametrize(
    "pauses",
    [
        lambda rng, count: rng.exponential(5 * MIN, count) + 1,
        lambda rng, count: rng.exponential(2 * S, count) + 1,
        lambda rng, count: np.full(count, 5 * S),
        lambda rng, count: rng.uniform(1, HOUR, count),
        lambda rng, count: np.exp(rng.normal(11, 2, count)) + 1,
        lambda rng, count: np.zeros(count),
    ],
)
def test_without_a_valley_it_is_unsure(pauses: Any) -> None:
    found = sk.suggest_gap(PLAN, stream(pauses))
    assert found.gap_ms is None
    assert repr(found).startswith("unsure: ")
