"""Random runs, each of many streams: a partition is one, with a stream time and a kind of disorder of its own."""

from typing import Any

import numpy as np
import pyarrow as pa

import sessionkit as sk

PARTITIONS = 50
MOST = 30  # records of a stream
LATEST = 2**53 - 2**30
RESULTS = {
    "count": sk.count(),
    "sum": sk.sum("value"),
    "real_sum": sk.sum("real"),
    "min": sk.min("value"),
    "max": sk.max("real"),
    "mean": sk.mean("value"),
}


def drawn(kind: str, seed: int) -> sk.Run:
    rng = np.random.default_rng([seed, len(kind)])
    unit = int(rng.choice([1, 1, 7, 60_000]))
    windows = windows_of(kind, rng, unit)
    retention = None
    if kind == "session":
        extra = int(rng.choice([0, 0, 1, 7, 60, 10_000])) * unit
        retention = f"{windows.close_lag_ms + extra}ms"
    plan = (
        sk.group_by_key("key", timestamp="at", partition="p", offset="o", on_bad_time="drop", label="value")
        .windowed_by(windows)
        .aggregate(**RESULTS)
    )
    run: sk.Run = plan.run(table(rng, windows.reach_ms, unit), retention=retention)
    return run


def windows_of(kind: str, rng: np.random.Generator, unit: int) -> Any:
    """Windows with short and long lengths; a gap or a grace of 0 among them."""
    grace = int(rng.choice([0, 0, 1, 5, 40, 10_000])) * unit
    if kind == "session":
        return sk.SessionWindows(inactivity_gap_ms=int(rng.choice([0, 1, 3, 10, 50])) * unit, grace_ms=grace)
    size = int(rng.choice([1, 2, 5, 30, 400])) * unit
    advance = size if kind == "tumbling" else max(int(rng.integers(1, size + 1)), -(-size // 40))
    return sk.TimeWindows(size_ms=size, advance_ms=advance, grace_ms=grace)


def table(rng: np.random.Generator, reach: int, unit: int) -> pa.Table:
    """Records of all partitions, mixed."""
    parts = [_stream(rng, partition, reach, unit) for partition in range(PARTITIONS)]
    joined = pa.concat_tables(parts)
    place = np.argsort(np.concatenate([np.sort(rng.random(len(part))) for part in parts]), kind="stable")
    return joined.take(pa.array(place))


def _stream(rng: np.random.Generator, partition: int, reach: int, unit: int) -> pa.Table:
    size = int(rng.integers(0, MOST + 1))
    times = _times(rng, size, max(reach // unit, 1)) * unit
    base = int(rng.choice([0, 0, 1_700_000_000_000, LATEST - int(times.max(initial=0))]))
    nulls = rng.choice([0.0, 0.15])
    keys = rng.choice(["a", "b", "ab", "é", ""][: int(rng.integers(1, 6))], size)
    return pa.table(
        {
            "key": pa.array(keys.tolist(), pa.string(), mask=rng.random(size) < nulls),
            "at": pa.array(times + base, pa.timestamp("ms", "UTC"), mask=rng.random(size) < nulls / 3),
            "p": pa.array(np.full(size, partition * 3), pa.int64()),
            "o": pa.array(np.cumsum(rng.integers(1, 4, size)) - 1, pa.int64()),
            "value": pa.array(rng.integers(-9, 10, size), pa.int64(), mask=rng.random(size) < nulls),
            "real": pa.array(rng.normal(size=size), pa.float64(), mask=rng.random(size) < nulls),
        }
    )


def _times(rng: np.random.Generator, size: int, reach: int) -> np.ndarray:
    shape = rng.integers(0, 6)
    if shape == 0:  # anything goes
        times = rng.integers(0, 40 * (reach + 1), size)
    elif shape == 1:  # in order, with ties
        times = np.cumsum(rng.integers(0, 2 * reach + 2, size))
    elif shape == 2:  # mostly in order, some far behind
        behind = np.where(rng.random(size) < 0.3, rng.integers(0, 6 * reach + 6), 0)
        times = np.cumsum(rng.integers(0, reach + 2, size)) - behind
    elif shape == 3:  # many sessions open at once, then bridges
        times = rng.permutation(size) * (reach + 1) // 2 * 3
    elif shape == 4:  # backwards, with the occasional leap
        times = 30 * size - np.arange(size) * (reach + 2) + np.where(rng.random(size) < 0.1, 100 * reach, 0)
    else:  # a huge pause
        times = np.cumsum(rng.integers(0, reach + 2, size)) + np.where(np.arange(size) > size // 2, 10**8, 0)
    found: np.ndarray = np.maximum(times, 0).astype(np.int64)
    return found


def one_huge_key(windows: Any, *, count: int = 20_000, pauses: bool = True) -> sk.Run:
    """40 keys with some records each, and a key with nearly all: a beat each second, 87 of them dropped far inside.

    Args:
        pauses: the beats have pauses of an hour, so that its windows are not one.
    """
    rng = np.random.default_rng(7)
    beats = np.arange(count) * 1_000 + (np.arange(count) // 500 * 3_600_000 if pauses else 0)
    at = beats.copy()
    at[count // 2 + 40 * np.arange(87)] -= 5_000_000  # in the second half, and much too late
    at[count // 2 + 40 * np.arange(9) + 7] -= 20_000  # late, but kept
    others = np.sort(rng.integers(0, int(beats[-1]), 1_125))
    key = np.append(np.full(count, "the huge one"), [f"key {number:02}" for number in rng.integers(0, 40, len(others))])
    order = np.argsort(np.append(beats, others), kind="stable")
    table = pa.table({"who": key[order], "at": pa.array(np.append(at, others)[order] + 10**12), "n": order % 7})
    plan = sk.group_by_key("who", timestamp="at", unit="ms").windowed_by(windows)
    run: sk.Run = plan.aggregate(count=sk.count(), total=sk.sum("n")).run(table)
    return run
