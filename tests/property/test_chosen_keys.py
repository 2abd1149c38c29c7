"""What is shown of some keys is worked out from their own records and ticks: it is what it is among all records."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sessionkit as sk
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.views.emissions.emissions import _of_run
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


def plan_over(kind: str, emit: Any) -> sk.Plan:
    named = {"count": sk.count(), "total": sk.sum("n"), "all": sk.collect("n")}
    return plan_of(KINDS[kind], emit, named, partition="partition", on_bad_time="drop")


CASES = [(kind, "on_window_update") for kind in KINDS] + [(kind, "on_window_close") for kind in KINDS if kind != NEVER]


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "emit"), CASES)
def test_what_went_downstream_for_a_key_is_the_same_without_the_other_keys(kind: str, emit: Any) -> None:
    plan = plan_over(kind, emit)
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


# ---- plan.run(data, keys=[…])


def trace_records(run: Any) -> pa.Table:
    return run.trace.records()


def trace_windows(run: Any) -> pa.Table:
    return run.trace.windows()


def full_changelog(run: Any) -> pa.Table:
    return run.changelog(old_values=True)


ROWS: list[Callable[[Any], pa.Table]] = [
    sk.Run.table, full_changelog, sk.Run.dropped, sk.Run.losses, trace_records, trace_windows,
]  # fmt: skip
OF_FINALS: list[Callable[[Any], pa.Table]] = [lambda run: run.latency().table()]
OF_SESSIONS: list[Callable[[Any], pa.Table]] = [sk.Run.merges]
OF_WINDOWS: list[Callable[[Any], pa.Table]] = [lambda run: run.trace.touched()]


def of_keys(table: pa.Table, keys: list[str]) -> pa.Table:
    return table.filter(pc.is_in(table["key"], value_set=pa.array(keys, pa.string())))


def check_rows(some: Any, whole: Any, keys: list[str]) -> None:
    """Every table of the run of some keys has the rows that the run of all has of them."""
    views = [*ROWS, *OF_FINALS, *(OF_SESSIONS if isinstance(some.trace, SessionTrace) else OF_WINDOWS)]
    for view in views:
        assert view(some).equals(of_keys(view(whole), keys)), view


def check_words(some: Any, whole: Any) -> None:
    """Every record and every window of the run of some keys is explained as the run of all explains it."""
    records, windows = some.trace.records(), some.table()
    for offset, number in zip(records["offset"].to_pylist(), records["partition"].to_pylist(), strict=True):
        place = {"offset": offset, "partition": number}
        assert some.explain(**place) == whole.explain(**place)
    for row in windows.select(["key", "window_start_ms", "partition"]).to_pylist():
        place = {"key": row["key"], "window_start": row["window_start_ms"], "partition": row["partition"]}
        assert some.explain(**place) == whole.explain(**place)
        if isinstance(some.trace, SessionTrace):
            start, number = place["window_start"], place["partition"]
            asked = (row["key"], start)
            assert repr(some.lineage(*asked, partition=number)) == repr(whole.lineage(*asked, partition=number))


def check_counts(some: Any, keys: list[str]) -> None:
    """Rows that only move stream time are no records in any count."""
    count = len(some.trace.records())
    assert some.metrics()["process-total"] == count == some.trace.record_count == sum(some.trace.counts().values())
    assert f"{count:,} record" in repr(some.trace)
    assert f"{count:,} record" in some.summary()
    assert set(some.trace.keys.to_pylist()) == set(keys)
    assert some.losses()["records"].to_pylist() and sum(some.losses()["records"].to_pylist()) == count


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "emit"), CASES)
def test_a_run_of_some_keys_gives_of_them_what_a_run_of_all_gives(kind: str, emit: Any) -> None:
    plan = plan_over(kind, emit)
    ticks = 0
    for seed in range(fewer(60)):
        table, rng = records(seed), np.random.default_rng(seed)
        whole = plan.run(table)
        known = whole.trace.keys.to_pylist()
        if not known:
            continue
        keys = rng.choice(known, int(rng.integers(1, len(known) + 1)), replace=False).tolist()
        some = plan.run(table, keys=keys)
        some.trace.check()
        ticks += len(some.trace) - some.trace.record_count
        check_rows(some, whole, keys)
        check_words(some, whole)
        check_counts(some, keys)
        assert plan.run(table, keys=keys, trace=False).table().equals(some.table())
        for key in keys:
            for number in set(of_keys(some.trace.records(), [key])["partition"].to_pylist()):
                one, other = (run.emissions(key, partition=number) for run in (some, whole))
                assert one.table().equals(other.table())
                assert one.words() == other.words()
    assert ticks


OTHERS = "other keys move stream time, too"


def said_in_the_plane(run: Any, key: str) -> dict[str, set[str]]:
    """What the pointer says of each kind of mark."""
    return {each.name: set(each.hovertext) for each in run.plane(key).data if each.hovertext}


@pytest.mark.thorough
@pytest.mark.parametrize("kind", EACH_KIND)
def test_pictures_of_some_keys_are_those_of_a_run_of_all(kind: str) -> None:
    plan = plan_of(KINDS[kind], "on_window_update", partition="partition", on_bad_time="drop")
    for seed in range(fewer(12)):
        table = records(seed)
        whole = plan.run(table)
        if len(whole.trace.keys) < 2:
            continue
        keys = whole.trace.keys.to_pylist()[:2]
        some = plan.run(table, keys=keys)
        assert some.lanes(keys=keys, start=0).data == whole.lanes(keys=keys, start=0).data
        for key in keys:
            said, among = (said_in_the_plane(run, key) for run in (some, whole))
            assert said.pop(OTHERS, set()) <= among.pop(OTHERS, set())
            assert said == among
        assert len(some.open_windows().table()) == some.trace.record_count
        some.open_windows().figure(), some.drop_calendar().words()


@pytest.mark.parametrize("kind", EACH_KIND)
def test_runs_of_some_keys_are_compared_as_runs_of_all(kind: str) -> None:
    plan = plan_of(KINDS[kind], "on_window_update", partition="partition", on_bad_time="drop")
    without = plan.with_windows(grace_ms=0)
    different_ticks = 0
    for seed in range(fewer(40)):
        table = records(seed)
        whole = plan.run(table)
        keys = whole.trace.keys.to_pylist()[:1]
        if not keys:
            continue
        before, after = plan.run(table, keys=keys), without.run(table, keys=keys)
        different_ticks += len(before.trace) != len(after.trace)
        found, among = before.compare(after), whole.compare(without.run(table))
        assert found.table().equals(of_keys(among.table(), keys)), seed
        assert found.records().equals(of_keys(among.records(), keys)), seed
        assert sum(count for name, count in found.counts().items() if name.startswith("records_")) == len(
            before.trace.records()
        )
    assert different_ticks
