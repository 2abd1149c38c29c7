"""Eight data sets that are not the flights, each made from a seed."""

import datetime as dt
from collections.abc import Callable, Mapping
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

import sessionkit as sk


class Shape(NamedTuple):
    """Records, a plan over them, and another plan to compare it with."""

    table: pa.Table
    plan: sk.Plan
    other: sk.Plan


def shape(keys: list[str], key: np.ndarray, ms: np.ndarray, gap: str, grace: str, zone: str = "UTC") -> Shape:
    """Sessions of these records, and of a gap twice as long."""
    at = pa.array(ms.astype(np.int64), pa.timestamp("ms")).cast(pa.timestamp("ms", zone))
    table = pa.table({"who": pa.array(keys).take(pa.array(key)), "at": at, "n": np.arange(len(ms)) % 7})
    start = sk.group_by_key("who", timestamp="at")
    named = {"count": sk.count(), "total": sk.sum("n")}
    plan = start.windowed_by(sk.SessionWindows(inactivity_gap=gap, grace=grace)).aggregate(**named)
    wider = plan.windows.inactivity_gap_ms * 2  # type: ignore[union-attr]
    return Shape(table, plan, plan.with_windows(inactivity_gap_ms=wider))


def arrived(rng: np.random.Generator, ms: np.ndarray, late_ms: float, share: float) -> np.ndarray:
    """The order of arrival: this share of the records comes later than its time."""
    delay = rng.exponential(late_ms, len(ms)) * (rng.random(len(ms)) < share)
    return np.argsort(ms + delay, kind="stable")


def sparse_years() -> Shape:
    """Six years of 761 keys, few records each, in clusters."""
    rng, names = np.random.default_rng(1), [f"tool-{number:03}" for number in range(761)]
    visits = 2_400
    begin = dt.datetime(2019, 3, 1, tzinfo=dt.UTC).timestamp() * 1000 + rng.random(visits) * 6 * 365 * 86_400_000
    sizes = rng.geometric(0.4, visits)
    ms = np.repeat(begin, sizes) + rng.exponential(9 * 3_600_000, sizes.sum())
    key = np.repeat(rng.zipf(1.3, visits) % len(names), sizes)
    order = arrived(rng, ms, 2 * 86_400_000, 0.1)
    return shape(names, key[order], ms[order], "1d", "12h")


def one_key() -> Shape:
    """A hundred thousand records of one key, in three weeks."""
    rng, count = np.random.default_rng(2), 100_000
    pauses = np.where(rng.random(count) < 0.004, rng.exponential(2_400_000, count), rng.exponential(7_000, count))
    ms = dt.datetime(2025, 1, 6, tzinfo=dt.UTC).timestamp() * 1000 + np.cumsum(pauses)
    order = arrived(rng, ms, 90_000, 0.05)
    return shape(["sensor"], np.zeros(count, int), ms[order], "10m", "2m")


def many_keys() -> Shape:
    """A hundred thousand keys, one or two records each, in a day."""
    rng, count = np.random.default_rng(3), 100_000
    again = rng.random(count) < 0.4
    key = np.concatenate([np.arange(count), np.flatnonzero(again)])
    first = rng.random(count) * 86_400_000
    ms = np.concatenate([first, first[again] + rng.lognormal(12.5, 1.6, again.sum())])
    ms += dt.datetime(2025, 5, 5, tzinfo=dt.UTC).timestamp() * 1000
    order = arrived(rng, ms, 600_000, 0.2)
    names = [f"{number * 2_654_435_761 % 2**32:08x}" for number in range(count)]
    return shape(names, key[order], ms[order], "15m", "5m")


def change_of_clocks() -> Shape:
    """Twelve keys in Berlin, in the night in which an hour comes twice."""
    rng, count = np.random.default_rng(4), 1_500
    begin = dt.datetime(2024, 10, 26, 21, tzinfo=ZoneInfo("Europe/Berlin")).timestamp() * 1000
    ms = begin + np.sort(rng.random(count)) * 9 * 3_600_000
    names = ["Café Ü", "", "night shift, the one with a long name", "a<b", *(f"desk {number}" for number in range(8))]
    order = arrived(rng, ms, 900_000, 0.15)
    return shape(names, (rng.zipf(1.5, count) % 12)[order], ms[order], "6m", "3m", "Europe/Berlin")


def history() -> Shape:
    """Ten years of a project's commits, one record for each package that it touched: bursts and silences."""
    rng, commits = np.random.default_rng(5), 9_000
    pauses = np.where(rng.random(commits) < 0.8, rng.exponential(2_400_000, commits), rng.lognormal(17, 1.8, commits))
    begin = dt.datetime(2014, 8, 3, tzinfo=dt.UTC).timestamp() * 1000
    authored = np.repeat(begin + np.cumsum(pauses), rng.geometric(0.3, commits))
    names = [f"org.project.module{number % 17}.package_{number}" for number in range(240)]
    merged = authored + np.where(rng.random(len(authored)) < 0.08, rng.exponential(9 * 86_400_000, len(authored)), 0)
    order = np.argsort(merged, kind="stable")
    return shape(names, (rng.zipf(1.4, len(authored)) % 240)[order], authored[order], "8h", "1d")


def access_log() -> Shape:
    """Three and a half days of a site's requests, in order: nothing is ever late."""
    rng, count = np.random.default_rng(6), 20_000
    ms = dt.datetime(2025, 3, 3, 7, tzinfo=dt.UTC).timestamp() * 1000 + np.sort(rng.random(count)) * 3.5 * 86_400_000
    names = [f"{10 + number % 90}.{number % 256}.{number * 7 % 256}.{number * 31 % 256}" for number in range(900)]
    return shape(names, rng.zipf(1.25, count) % len(names), ms // 1000 * 1000, "30m", "1m")


def sensors_over_a_change() -> Shape:
    """Heartbeats of six sensors in New York, 20 s apart, in the night in which an hour is left out; one stood still."""
    begin = dt.datetime(2025, 3, 8, 20, tzinfo=ZoneInfo("America/New_York")).timestamp() * 1000
    rng, beats = np.random.default_rng(7), 2_500
    ms = begin + np.arange(beats)[:, None] * 20_000 + np.arange(6) * 700
    key, ms = np.tile(np.arange(6), beats), ms.ravel()
    alive = ~((key == 4) & (ms > begin + 4 * 3_600_000) & (ms < begin + 7 * 3_600_000)) & (rng.random(len(ms)) > 0.01)
    order = arrived(rng, ms[alive], 240_000, 0.02)
    names = [f"boiler-room/thermometer-{number}/temperature" for number in range(6)]
    return shape(names, key[alive][order], ms[alive][order], "1m", "30s", "America/New_York")


def one_huge_key() -> Shape:
    """A quarter of a million records of one key, and forty keys with a few; one record is two days late."""
    rng, count = np.random.default_rng(8), 250_000
    pauses = np.where(rng.random(count) < 0.001, rng.exponential(1_800_000, count), rng.exponential(900, count))
    ms = dt.datetime(2025, 9, 1, tzinfo=dt.UTC).timestamp() * 1000 + np.cumsum(pauses)
    key = np.where(rng.random(count) < 0.996, 0, rng.integers(1, 41, count))
    order = arrived(rng, ms, 20_000, 0.01)
    ms, key = ms[order], key[order]
    ms[180_000] -= 2 * 86_400_000
    return shape(["anonymous", *(f"user {number}" for number in range(1, 41))], key, ms, "5m", "10s")


SHAPES: Mapping[str, Callable[[], Shape]] = {
    "sparse years": sparse_years,
    "one key": one_key,
    "many keys": many_keys,
    "change of clocks": change_of_clocks,
    "history": history,
    "access log": access_log,
    "sensors": sensors_over_a_change,
    "one huge key": one_huge_key,
}
