"""Gaps from streams of known structure: the middle of what no pause has, and unsure where no valley is."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import sessionkit as sk
from tests.shapes import SHAPES, plan_of_shape

PLAN = sk.group_by_key("key", timestamp="time", unit="ms")
S, MIN, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000


def stream(pauses: Any, *, keys: int = 30, count: int = 100, seed: int = 7) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
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


@pytest.mark.parametrize(("tick", "unit"), [(DAY, DAY), (7 * DAY, DAY), (HOUR, HOUR), (6 * HOUR, HOUR)])
def test_the_gap_of_days_is_of_whole_days_and_parts_the_same_visits(tick: int, unit: int) -> None:
    """Of polls, which have a day and no clock, it was 7 d 16 h 48 min."""
    data = stream(lambda rng, count: tick * rng.choice([1, 2, 3, 19, 23], count))
    gap_ms = sk.suggest_gap(PLAN, data).gap_ms or 0
    assert gap_ms % unit == 0 and 3 * tick <= gap_ms < 19 * tick


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
)  # fmt: skip
def test_without_a_valley_it_is_unsure(pauses: Any) -> None:
    found = sk.suggest_gap(PLAN, stream(pauses))
    assert found.gap_ms is None
    assert repr(found).startswith("unsure: ")


def beats(every_ms: int, pauses_ms: Any, count: int = 10_000, spread: float = 0.0) -> pd.DataFrame:
    """One key with a record every so often, and these pauses among them."""
    rng = np.random.default_rng(5)
    lengths = (every_ms * np.exp(spread * rng.standard_normal(count))).astype(np.int64)
    lengths[np.linspace(50, count - 50, len(pauses_ms)).astype(int)] = pauses_ms
    return pd.DataFrame({"key": "sensor", "time": 10**12 + np.cumsum(lengths)})


@pytest.mark.parametrize(("name", "gap_ms", "said"), [
    ("heartbeats", 134 * S, "gap 2 min 12 s: no pause is between 5 s and 1 h long, and only 24 are longer (by user; "),
    ("minute_beats", 657 * S, "gap 11 min: no pause is between 1 min and 2 h long, and only 20 are longer (by user; "),
])  # fmt: skip
def test_heartbeats_have_a_gap_however_few_pauses_are_longer(name: str, gap_ms: int, said: str) -> None:
    found = sk.suggest_gap(plan_of_shape(), SHAPES[name]())
    assert found.gap_ms == pytest.approx(gap_ms, rel=0.02)
    assert repr(found).startswith(said)


def test_hundreds_of_records_a_visit_at_random_have_a_gap() -> None:
    data = stream(lambda rng, count: np.where(np.arange(count) % 300, rng.exponential(10 * S, count), 2 * HOUR) + 1,
                  keys=4, count=3_000)  # fmt: skip
    found = sk.suggest_gap(PLAN, data)
    assert 2 * MIN < (found.gap_ms or 0) < HOUR
    assert "long, and only 36 are longer (by key; " in repr(found)


@pytest.mark.parametrize("spread", [0, 0.2])
@pytest.mark.parametrize("count", [2, 3, 9])
def test_a_few_long_pauses_are_a_gap_but_not_for_sure(count: int, spread: float) -> None:
    found = sk.suggest_gap(PLAN, beats(MIN, [DAY] * count, spread=spread))
    assert MIN < (found.gap_ms or 0) < DAY
    assert ", but not for sure: no pause is between " in repr(found)
    assert f"and only {count} are longer" in repr(found)


@pytest.mark.parametrize("spread", [0, 0.2])
def test_one_long_pause_is_told_and_is_no_gap(spread: float) -> None:
    found = sk.suggest_gap(PLAN, beats(MIN, [DAY], spread=spread))
    assert found.gap_ms is None
    assert repr(found).startswith("unsure: no pause is between ")
    assert "and only 1 is longer (by key; 9,999 pauses); it may be a mere interruption." in repr(found)


def web_log(rng: Any, count: int) -> Any:
    """Pauses of pages half a minute apart, and of visits that come back at any hour of two weeks: 3 % of the pauses."""
    back = np.exp(rng.uniform(np.log(HOUR / 2), np.log(14 * DAY), count))
    return np.where(rng.random(count) < 0.03, back, rng.lognormal(np.log(30 * S), 0.8, count)) + 1


def test_a_low_hump_of_many_pauses_makes_a_valley() -> None:
    found = sk.suggest_gap(PLAN, stream(web_log, count=1_000))
    assert 10 * MIN < (found.gap_ms or 0) < HOUR and found.depth > 5
    assert "are rare, shorter and longer ones" in repr(found)


def test_a_gap_needs_no_column_of_an_aggregation() -> None:
    data = stream(web_log, count=1_000)
    without = sk.suggest_gap(PLAN.aggregate(most=sk.max("no such column")), data)
    assert without.gap_ms and repr(without) == repr(sk.suggest_gap(PLAN, data))


@pytest.mark.parametrize("count", [100, 300])
def test_chance_makes_no_valley(count: int) -> None:
    """Of pauses drawn from one process, without visits, up to 39 of 40 streams had a clear valley."""
    draws: dict[str, Any] = {
        "exponential": lambda rng, n: rng.exponential(5 * MIN, n) + 1, "wide": lambda rng, n: rng.lognormal(11, 2, n),
        "narrow": lambda rng, n: rng.lognormal(11, 1, n), "uniform": lambda rng, n: rng.uniform(1, HOUR, n),
        "pareto": lambda rng, n: S * (1 + rng.pareto(1, n)), "weibull": lambda rng, n: MIN * rng.weibull(0.5, n) + 1,
        "even": lambda rng, n: np.exp(rng.uniform(7, 16, n)),
    }  # fmt: skip
    for name, draw in draws.items():
        found = [sk.suggest_gap(PLAN, stream(draw, keys=1, count=count, seed=seed)) for seed in range(100)]
        assert sum(each.gap_ms is not None or each.burst_ms is not None for each in found) <= 1, name


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("tail", ["lognormal", "exponential", "pareto"])
def test_the_end_of_a_smooth_tail_is_no_valley(tail: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = {
        "lognormal": lambda: np.exp(rng.normal(9, 2, 4_000)),
        "exponential": lambda: rng.exponential(5 * MIN, 4_000),
        "pareto": lambda: 1_000 * (1 + rng.pareto(1, 4_000)),
    }[tail]()
    lengths[[100, 200, 300]] = 8 * lengths.max()  # a few that stray
    times = 10**12 + np.cumsum(lengths.astype(np.int64) + 1)
    assert sk.suggest_gap(PLAN, pd.DataFrame({"key": "a", "time": times})).gap_ms is None


def test_a_valley_with_many_on_both_sides_goes_before_a_wider_one_with_few() -> None:
    """Visits of every other hour, and two absences of a year."""
    data = stream(visits(2 * S, HOUR), keys=1, count=2_000)
    data.loc[700:, "time"] += 365 * DAY
    data.loc[1_300:, "time"] += 365 * DAY
    assert 80 * S <= (sk.suggest_gap(PLAN, data).gap_ms or 0) <= 90 * S


def test_dips_between_whole_days_are_told_as_the_rhythm_of_the_day() -> None:
    """Records near the same hour of random days: the figure has dips between whole days, and no visit ends there."""

    def daily(rng: Any, count: int) -> Any:
        hours = np.cumsum(rng.geometric(0.4, count)) * DAY + rng.normal(0, 3 * HOUR, count)
        return np.diff(np.sort(hours), prepend=0)

    found = sk.suggest_gap(PLAN, stream(daily))
    assert found.gap_ms is None
    assert "53.42% of the pauses of 18 h or more are within 3 h of whole days" in repr(found)
    of_days = sk.suggest_gap(PLAN, stream(lambda rng, count: rng.geometric(0.3, count) * DAY))
    assert "whole days" not in repr(of_days)


def test_devices_that_miss_one_report_now_and_then_have_a_gap_too() -> None:
    """Readings by the hour, of which each device lacks one: a gap between one hour and two parts them there."""
    found = sk.suggest_gap(PLAN, stream(lambda rng, count: np.where(np.arange(count) == 50, 2, 1) * HOUR))
    assert "Nearly all pauses are about 1 h long, as of a device that reports so often: a gap of 1 h 30 min" in repr(
        found
    )


def test_the_lengths_of_a_curve_are_the_same_on_every_processor() -> None:
    """Powers of numpy differ in their last digits; of long pauses these digits stood in the saved notebooks."""
    at = pd.Timestamp("2026-01-01", tz="UTC") + pd.to_timedelta(np.cumsum(np.geomspace(1, 1e7, 150)), unit="s")
    plan = sk.group_by_key("user", timestamp="at")
    figure = sk.suggest_gap(plan, pd.DataFrame({"user": "ada", "at": at.round("ms")})).figure()
    lengths = [float(x) for x in figure.data[0].x]
    assert max(lengths) > 1e9
    assert lengths == [float(f"{x:.12g}") for x in lengths]
