"""An audit that kernels play, as no retention can change it, is the one that notices what its results depend on."""

import dataclasses
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.audits import audit as auditing
from sessionkit.audits import by_effects
from tests.deployments import lives_by_kernels
from tests.interpreted import fewer
from tests.kinds import group_in_ms, in_ms

SEEDS = fewer(120)


def drawn(seed: int) -> tuple[sk.Plan, pa.Table, sk.Deployment]:
    """A plan over tumbling or hopping windows, records of which some come late, and a deployment of it."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 150))
    times = np.maximum(np.arange(size) * int(rng.choice([1, 40, 9_000])) - rng.integers(0, 90_000, size), 0)
    table = pa.table(
        {"key": rng.choice(["a", "b", "é"], size).tolist(), "time": times, "value": rng.integers(0, 9, size),
         "partition": rng.integers(0, 2, size)},
    )  # fmt: skip
    advance = int(rng.choice([10_000, 30_000]))
    windows = sk.TimeWindows(
        size_ms=advance * int(rng.integers(1, 4)), advance_ms=advance, grace_ms=int(rng.choice([0, 500, 60_000]))
    )
    grouped = group_in_ms("key", timestamp="time", partition="partition").windowed_by(windows)
    plan = grouped.aggregate(n=sk.count(), total=sk.sum("value")) if rng.random() < 0.5 else grouped.count()
    if rng.random() < 0.6:
        most = None if rng.random() < 0.7 else int(rng.integers(1, 40))
        plan = plan.suppress("until_window_closes") if most is None else plan.suppress(
            "until_time_limit", "20s", max_records=most
        )  # fmt: skip
    how = sk.Deployment(
        store=rng.choice(["memory", "rocksdb"]),
        caching=[False, True, "0B", "300B", "1KB", "10MB"][rng.integers(6)],
        commit_interval=rng.choice(["1s", "30s", "10m"]),
        retention=None if rng.random() < 0.5 else in_ms(windows.retention_ms(None) + int(rng.integers(0, 90_000))),
    )
    return plan, table, how


@pytest.mark.parametrize("first", range(0, SEEDS, max(1, SEEDS // 4)))
def test_both_say_the_same(first: int) -> None:
    compiled = 0
    for seed in range(first, min(SEEDS, first + max(1, SEEDS // 4))):
        plan, table, how = drawn(seed)
        with lives_by_kernels() as by_kernels:
            one = sk.audit(plan, table, how)
        compiled += len(by_kernels)
        with patch.object(auditing, "depends_on_retention", lambda *_: True):
            other = sk.audit(plan, table, how)
            assert one.counts() == other.counts(), seed
            assert one.table().equals(other.table()), seed
            assert one.words()[0] == other.words()[0], seed
            known = other.safe_retentions_ms
        found = one.safe_retentions_ms
        for low, high in known:  # what was noticed can only be too careful
            assert any(a <= low and (b is None or (high is not None and high <= b)) for a, b in found), (
                seed,
                known,
                found,
            )
    assert compiled > 0


def drawn_alone(seed: int, kind: str) -> tuple[sk.Plan, pa.Table, sk.Deployment]:
    """A plan whose results depend on the retention: of sessions, or of final results."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 150))
    step = int(rng.choice([1, 40, 3_000, 9_000, 60_000]))
    gap_ms, grace_ms = step * int(rng.choice([0, 1, 3, 8])), step * int(rng.choice([0, 0, 1, 6]))
    pauses = np.where(rng.random(size) < 0.2, rng.integers(1, 4 * (gap_ms + grace_ms) + 2, size), step)
    late = np.where(rng.random(size) < 0.4, rng.integers(0, 3 * (gap_ms + grace_ms) + 1, size), 0)
    times = np.maximum(1_000_000 + np.cumsum(pauses) - late, 0)
    table = pa.table(
        {"key": rng.choice(["a", "b", "é"], size).tolist(), "time": times, "value": rng.integers(0, 9, size),
         "arrival": 1_000_000 + np.cumsum(rng.integers(0, 20_000, size)), "partition": rng.integers(0, 2, size)},
    )  # fmt: skip
    is_sessions, advance = rng.random() < 0.75, int(rng.choice([10_000, 30_000]))
    if kind == "sliding":
        is_sessions = False
        windows: sk.Windows = sk.SlidingWindows(time_difference_ms=max(gap_ms, 1), grace_ms=grace_ms)
    elif is_sessions:
        windows = sk.SessionWindows(inactivity_gap_ms=gap_ms, grace_ms=grace_ms)
    else:
        windows = sk.TimeWindows(size_ms=advance * int(rng.integers(1, 4)), advance_ms=advance, grace_ms=grace_ms)
    grouped = group_in_ms("key", timestamp="time", partition="partition").windowed_by(windows)
    plan = grouped.aggregate(n=sk.count(), total=sk.sum("value")) if rng.random() < 0.5 else grouped.count()
    if not is_sessions or rng.random() < 0.7:
        plan = plan.emit("on_window_close")
    elif rng.random() < 0.5:
        plan = plan.suppress("until_window_closes")
    how = sk.Deployment(
        store=rng.choice(["memory", "rocksdb"]),
        caching=False,
        emit_interval=[None, "1s", "10s", "10m"][rng.integers(4)],
        clock=[None, "arrival"][rng.integers(2)],
        retention=None if rng.random() < 0.4 else in_ms(windows.retention_ms(None) + int(rng.integers(0, 400_000))),
    )
    if kind == "sliding" and rng.random() < 0.3:
        plan = plan.emit("on_window_update")
        if rng.random() < 0.5:
            plan = plan.suppress("until_window_closes")
    if kind == "behind a cache":
        if is_sessions and plan._strategy == "on_window_close":  # which turns their cache off
            plan = plan.emit("on_window_update")
        intervals, caches = ["1s", "30s", "10m"], [True, "150B", "400B", "1KB", "10MB"]
        how = dataclasses.replace(how, caching=caches[rng.integers(5)], commit_interval=intervals[rng.integers(3)])
    return plan, table, how


def test_final_results_of_sliding_windows_are_played_by_kernels_with_the_default_cache() -> None:
    """On close they have none, whatever its bytes."""
    plan, table, how = drawn_alone(1, "sliding")
    with lives_by_kernels() as by_kernels:
        sk.audit(plan.suppress(None).emit("on_window_close"), table, dataclasses.replace(how, caching="10MB"))
    assert by_kernels


@pytest.mark.lengthy
@pytest.mark.parametrize("kind", ["alone", "behind a cache", "sliding"])
@pytest.mark.parametrize("first", range(4))
def test_what_kernels_notice_is_what_the_store_of_the_processor_notices(first: int, kind: str) -> None:
    met = losing = compiled = 0
    for seed in range(first, fewer(800), 4):
        plan, table, how = drawn_alone(seed, kind)
        with lives_by_kernels() as by_kernels:
            one = sk.audit(plan, table, how)
        compiled += bool(by_kernels)
        with patch.object(auditing, "kernels_know", lambda *_: False):
            other = sk.audit(plan, table, how)
        assert one.counts() == other.counts(), seed
        assert one.table().equals(other.table()), seed
        found, known, unknown = one.safe_retentions_ms, other.safe_retentions_ms, one.unknown_retentions_ms
        # behind a limited cache both stop after so many replays, which take them to other retentions
        reached = sorted([*found, *unknown], key=lambda each: each[0]) if how.caching and unknown else found
        joined = reached[:1]
        for low, high in reached[1:]:
            last = joined[-1][1]
            joined[-1:] = [(joined[-1][0], high)] if last is not None and last + 1 == low else [joined[-1], (low, high)]
        for low, high in known:
            assert any(a <= low and (b is None or (high is not None and high <= b)) for a, b in joined), (
                seed,
                known,
                found,
            )
        lowest_ms = plan._complete_windows.retention_ms(None)
        edges = [(ms, True) for low, high in found for ms in (low, high) if ms is not None]
        edges += [(low - 1, False) for low, _ in found] + [(high + 1, False) for _, high in found if high is not None]
        for ms, is_safe in edges:  # the processor says the same of each edge
            if ms >= lowest_ms and not any(low <= ms <= high for low, high in unknown):
                lost = other._replay(ms)._replayed.losing
                assert (not lost) == is_safe, (seed, ms, found, known)
                losing += bool(lost)
        met += any(isinstance(part, int) for part in one._noticed)
    assert compiled > 0
    assert kind == "behind a cache" or (losing > 0 and (met > 0 or kind == "sliding"))


def drawn_again(seed: int) -> tuple[sk.Plan, pa.Table, sk.Deployment]:
    """A plan of `drawn_alone` whose application is started again, or whose suppress counts bytes."""
    plan, table, how = drawn_alone(seed, "alone")
    rng = np.random.default_rng(seed + 10_000)
    if plan.windows.advance_ms is not None and rng.random() < 0.5:  # type: ignore[union-attr]
        plan = plan.emit("on_window_update")
        how = dataclasses.replace(how, caching=bool(rng.random() < 0.3), commit_interval="30s")
    if plan._strategy == "on_window_update" and rng.random() < 0.5:
        limit = {} if rng.random() < 0.3 else {"max_bytes": int(rng.integers(100, 5_000))}
        plan = plan.suppress("until_time_limit", "20s", **limit)  # type: ignore[arg-type]
    rows = sorted(set(rng.integers(0, len(table), int(rng.integers(1, 4))).tolist()))
    return plan, table, dataclasses.replace(how, restarts=rows)


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("first", range(4))
def test_retentions_of_the_same_effect_are_those_that_the_store_of_the_processor_tells(first: int) -> None:
    settled = left = 0
    for seed in range(first, fewer(400), 4):
        plan, table, how = drawn_again(seed)
        with patch.object(by_effects, "PLAYED_RECORDS", -1), lives_by_kernels() as by_kernels:
            one = sk.audit(plan, table, how)
            found, unknown = one.safe_retentions_ms, one.unknown_retentions_ms
        if not isinstance(one._noticed, by_effects._WhenAsked):
            continue
        assert by_kernels, seed
        with patch.object(auditing, "tells_effects", lambda *_: False):
            other = sk.audit(plan, table, how)
        assert one.counts() == other.counts(), seed
        assert one.table().equals(other.table()), seed
        known, unsure = other.safe_retentions_ms, other.unknown_retentions_ms
        lowest_ms = plan._complete_windows.retention_ms(None)
        edges = {lowest_ms, *(ms for span in (*found, *unknown, *known, *unsure) for ms in span if ms is not None)}
        for ms in sorted({edge + by for edge in edges for by in (-1, 0, 1) if edge + by >= lowest_ms}):
            if not _is_in(ms, unknown) and not _is_in(ms, unsure):
                assert _is_in(ms, found) == _is_in(ms, known), (seed, ms, found, known, unknown, unsure)
        settled, left = settled + (not unknown), left + bool(unknown)
    assert settled > 0
    assert left > 0


@pytest.mark.parametrize("store", ["memory", "rocksdb"])
def test_what_waits_in_the_store_at_the_end_hangs_on_the_retention_as_well(store: str) -> None:
    """The record of "b" closes the session of "a", and no look comes any more: with some retentions it is gone."""
    table = pa.table(
        {"key": ["z", "a", "b"], "time": [0, 1, 10_000_000], "arrival": [1_000_000, 1_000_001, 1_000_002],
         "partition": [0, 0, 0]},
    )  # fmt: skip
    windows = sk.SessionWindows(inactivity_gap_ms=10, grace_ms=0)
    grouped = group_in_ms("key", timestamp="time", partition="partition").windowed_by(windows)
    plan, told = grouped.emit("on_window_close").count(), {"caching": False, "emit_interval": "10m", "clock": "arrival"}
    how = sk.Deployment(store=store, restarts=[0], **told)  # type: ignore[arg-type]
    with patch.object(by_effects, "PLAYED_RECORDS", -1):
        one = sk.audit(plan, table, how)
        found, unknown = one.safe_retentions_ms, one.unknown_retentions_ms
    other = sk.audit(plan, table, how)
    assert one.counts() == other.counts()
    known = other.safe_retentions_ms[-1]
    assert found[-1][1] is known[1] is None
    assert found[-1][0] >= known[0] > 1_000_000
    assert not _is_in(10, found) and not _is_in(10, unknown)


def _is_in(ms: int, spans: Any) -> bool:
    return any(low <= ms and (high is None or ms <= high) for low, high in spans)
