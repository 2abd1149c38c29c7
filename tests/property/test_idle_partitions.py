"""Idle partitions on random records: as a plain, slow reference moves them, in one run and in any parts."""

import itertools
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.base.decisions import IDLE
from sessionkit.deployed.deployment import Life
from sessionkit.records.batch import read_records
from sessionkit.run import Run
from tests.interpreted import fewer
from tests.kinds import EACH_KIND, plan_of

STRATEGIES = ("on_window_update", "on_window_close")
SIZE_MS, GRACE_MS = 10, 5


class Drawn(NamedTuple):
    """Records in the order of their arrival, and when a partition is idle."""

    table: pa.Table
    idle_after_ms: int

    def plan(self, windows: Any, emit: Any = "on_window_update", named: Any = None, **more: Any) -> sk.Plan:
        """A plan with the rule over these windows; offsets are those of the column."""
        places = {"partition": "partition", "offset": "offset", "arrival": "arrived", "on_bad_time": "drop"}
        return plan_of(windows, emit, named, **places | {"idle_after": f"{self.idle_after_ms}ms"} | more)


def draw(seed: int, most: int = 70) -> Drawn:
    """Up to four partitions of which some are silent for a while; null keys, missing and late times, equal arrivals."""
    rng = np.random.default_rng(seed)
    size, partitions = int(rng.integers(1, most)), int(rng.integers(1, 5))
    pauses = rng.choice([0, 1, 2, 30], size, p=[0.2, 0.4, 0.35, 0.05])
    stretch = np.arange(size) // int(rng.integers(2, 30))
    spoken = rng.random((int(stretch[-1]) + 1, partitions)) + 0.01
    spoken[rng.random(spoken.shape) < 0.4] = 1e-6
    partition = np.array([rng.choice(partitions, p=spoken[s] / spoken[s].sum()) for s in stretch])
    ahead = rng.integers(0, 30, partitions)
    times = np.maximum(np.arange(size) * int(rng.integers(1, 5)) + ahead[partition] - rng.integers(0, 25, size), 0)
    offset = np.zeros(size, np.int64)
    for p in range(partitions):
        offset[partition == p] = np.cumsum(rng.integers(1, 3, int((partition == p).sum())))
    columns = {
        "key": pa.array(rng.choice(["a", "b", "c"], size).tolist(), pa.string(), mask=rng.random(size) < 0.1),
        "at": pa.array(times, pa.int64(), mask=rng.random(size) < 0.05),
        "arrived": np.cumsum(pauses),
        "partition": partition * 3,
        "offset": offset,
        "n": pa.array(rng.integers(0, 9, size), pa.int64(), mask=rng.random(size) < 0.1),
    }
    return Drawn(pa.table(columns), int(rng.choice([1, 2, 5, 20, 1_000])))


class Met(NamedTuple):
    """A record, and the stream time of its partition with it."""

    row: dict[str, Any]
    stream_time_ms: int


def slowly(rows: list[dict[str, Any]], idle_after_ms: int) -> tuple[list[Met], dict[int, int]]:
    """What the rule says, record by record: (each record with stream time, that of each partition at the end)."""
    time_ms: dict[int, int] = {}
    arrived_ms: dict[int, int] = {}
    met = []

    def follow(now_ms: int) -> None:
        idle = [p for p in arrived_ms if now_ms - arrived_ms[p] >= idle_after_ms]
        others = [time_ms[p] for p in arrived_ms if p not in idle and time_ms[p] >= 0]
        for p in idle if others else []:
            time_ms[p] = max(time_ms[p], min(others))

    for row in sorted(rows, key=lambda row: row["arrived"]):
        p, now_ms = row["partition"], row["arrived"]
        follow(now_ms)
        arrived_ms[p] = now_ms
        counts = row["key"] is not None and row["at"] is not None
        time_ms[p] = max(time_ms.get(p, -1), row["at"] if counts else -1)
        met.append(Met(row, time_ms[p]))
        follow(now_ms)
    return met, time_ms


def moved_count(run: Run) -> int:
    """How many ticks stand among the records."""
    return int((run.trace.decision == IDLE).sum())


@pytest.mark.thorough
def test_stream_time_is_what_the_plain_reference_says() -> None:
    moved = 0
    for seed in range(fewer(400)):
        drawn = draw(seed)
        run = drawn.plan(EACH_KIND["session"]).run(drawn.table)
        met, last = slowly(drawn.table.to_pylist(), drawn.idle_after_ms)
        assert run.trace.records()["stream_time_ms"].to_pylist() == [each.stream_time_ms for each in met], seed
        assert (
            dict(zip(run.trace.batch.partitions.tolist(), run.trace.last_stream_time_ms.tolist(), strict=True)) == last
        )
        run.trace.check()
        # the order of rows of different partitions is of no matter: the clock says which came first
        mixed = drawn.table.take(pa.array(np.argsort(drawn.table["partition"], kind="stable")))
        by_partition = drawn.plan(EACH_KIND["session"]).run(mixed).trace
        known = {(row["partition"], row["offset"]): each for row, each in met}
        found = by_partition.records()
        places = zip(found["partition"].to_pylist(), found["offset"].to_pylist(), strict=True)
        if len(set(drawn.table["arrived"].to_pylist())) == len(drawn.table):  # what came at once is in no order
            assert found["stream_time_ms"].to_pylist() == [known[place] for place in places], seed
        moved += moved_count(run)
    assert moved > fewer(400)


def test_a_table_of_tumbling_windows_is_what_the_plain_reference_says() -> None:
    closed_by_the_rule = 0
    for seed in range(fewer(200)):
        drawn = draw(seed)
        windows = sk.TimeWindows(size_ms=SIZE_MS, grace_ms=GRACE_MS)
        met, last = slowly(drawn.table.to_pylist(), drawn.idle_after_ms)
        counts: dict[tuple[int, str, int], int] = {}
        for row, stream_time_ms in met:
            if row["key"] is not None and row["at"] is not None:
                start_ms = row["at"] // SIZE_MS * SIZE_MS
                if start_ms + SIZE_MS > stream_time_ms - GRACE_MS:
                    place = (row["partition"], row["key"], start_ms)
                    counts[place] = counts.get(place, 0) + 1
        expected = [
            (p, key, start_ms, count, "closed" if start_ms + SIZE_MS <= last[p] - GRACE_MS else "open")
            for (p, key, start_ms), count in sorted(counts.items())
        ]
        names = ["partition", "key", "window_start_ms", "count", "status"]
        for emit in STRATEGIES:
            table = drawn.plan(windows, emit).run(drawn.table).table()
            assert [tuple(row.values()) for row in table.select(names).to_pylist()] == expected, seed
        without = drawn.plan(windows, idle_after=None, arrival=None).run(drawn.table).table()
        closed_by_the_rule += not without.equals(table)
    assert closed_by_the_rule > fewer(200) // 10


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "emit"), [(kind, emit) for kind in EACH_KIND for emit in STRATEGIES])
def test_kernel_equals_processor_where_partitions_are_idle(kind: str, emit: str) -> None:
    moved = 0
    for seed in range(fewer(100)):
        drawn = draw(seed)
        plan = drawn.plan(EACH_KIND[kind], emit, {"count": sk.count(), "all": sk.collect("n")})
        run = plan.run(drawn.table)
        retention_ms = plan._complete_windows.retention_ms(None)
        how = Life(retention_ms=retention_ms, emit=emit, kafka=False)
        other = plan._run_life(read_records(drawn.table, plan.source, plan._value_columns()), None, how)
        assert other.trace.records().equals(run.trace.records()), seed
        assert other.changelog().equals(run.changelog()), seed
        assert other.table().equals(run.table()) and other.metrics() == run.metrics(), seed
        assert plan.run(drawn.table, trace=False).table().equals(run.table()), seed
        moved += moved_count(run)
    assert moved > fewer(100)


# ---- with a store


def parts_of(drawn: Drawn, rng: np.random.Generator, *, again: bool) -> list[pa.Table]:
    """The records cut anywhere, into up to five parts; `again`: a part starts with some that were read before."""
    size = len(drawn.table)
    cuts = sorted({0, size, *rng.integers(0, size + 1, int(rng.integers(1, 5))).tolist()})
    starts = [max(0, cut - int(rng.integers(0, 9))) if again else cut for cut in cuts[:-1]]
    return [drawn.table.slice(start, stop - start) for start, stop in zip(starts, cuts[1:], strict=True)]


def all_that_it_holds(store: Any) -> tuple[Any, ...]:
    """The content of a store, and how far each partition was read."""
    return [*store.rows()], {p: store.snapshot(p) for p in store.read_partitions}


def sent(runs: list[Run], partition: int) -> list[dict[str, Any]]:
    """What went downstream from a partition, in order."""
    rows = [row for run in runs for row in run.changelog().to_pylist()]
    return [row for row in rows if row["partition"] == partition]


@pytest.mark.thorough
@pytest.mark.parametrize("again", [False, True], ids=["cut", "read again"])
@pytest.mark.parametrize(("kind", "emit"), [(kind, emit) for kind in EACH_KIND for emit in STRATEGIES])
def test_any_cut_of_the_records_gives_the_same_with_a_store(kind: str, emit: str, again: bool) -> None:
    moved = 0
    holds = EACH_KIND[kind].holds
    for seed in range(fewer(100)):
        drawn, rng = draw(seed), np.random.default_rng(seed)
        plan = drawn.plan(EACH_KIND[kind], emit, {"count": sk.count(), "total": sk.sum("n")})
        whole = plan.run(drawn.table)
        with sk.open_store("memory", "one", of=holds) as one, sk.open_store("memory", "parts", of=holds) as store:
            plan.run(drawn.table, store=one)
            runs = [plan.run(part, store=store) for part in parts_of(drawn, rng, again=again)]
            assert all_that_it_holds(store) == all_that_it_holds(one), seed
            replay = plan.run(drawn.table, store=store)  # nothing that was read counts twice
            assert all_that_it_holds(store) == all_that_it_holds(one), seed
        assert replay.metrics()["replayed-records"] == len(drawn.table)
        assert len(replay.changelog()) == moved_count(replay) == 0
        for run in runs:
            run.trace.check()
        for p in whole.trace.batch.partitions.tolist():
            assert sent(runs, p) == sent([whole], p), (seed, p)
        read = [row for run in runs for row in run.trace.records().to_pylist() if row["reason"] != "replayed"]
        told = ("partition", "offset", "stream_time_ms", "decision", "reason")
        expected = whole.trace.records().to_pylist()
        assert [[row[name] for name in told] for row in read] == [[row[name] for name in told] for row in expected]
        moved += sum(map(moved_count, runs))
    assert moved > fewer(100)


@pytest.mark.thorough
def test_a_store_on_disk_that_is_opened_again_goes_on_where_it_was(tmp_path: Path) -> None:
    pytest.importorskip("rocksdict")
    for seed in range(fewer(24)):
        drawn, rng = draw(seed), np.random.default_rng(seed)
        plan = drawn.plan(EACH_KIND["session"], "on_window_close")
        with sk.open_store("memory", "one") as one:
            plan.run(drawn.table, store=one)
            expected = all_that_it_holds(one)
        for part in parts_of(drawn, rng, again=True):
            with sk.open_store("rocksdb", f"s{seed}", directory=tmp_path) as store:
                plan.run(part, store=store)
        with sk.open_store("rocksdb", f"s{seed}", directory=tmp_path) as store:
            assert all_that_it_holds(store)[1] == expected[1], seed
            assert len(list(store.rows())) == len(expected[0]), seed


def test_offsets_that_are_counted_go_on_in_the_next_part() -> None:
    for seed in range(fewer(60)):
        drawn, rng = draw(seed), np.random.default_rng(seed)
        plan = drawn.plan(EACH_KIND["tumbling"], offset=None)
        with sk.open_store("memory", "one", of="windows") as one, sk.open_store("memory", "two", of="windows") as two:
            whole = plan.run(drawn.table, store=one)
            runs = [plan.run(part, store=two) for part in parts_of(drawn, rng, again=False)]
            assert all_that_it_holds(one) == all_that_it_holds(two), seed
        offsets = itertools.chain.from_iterable(run.trace.records()["offset"].to_pylist() for run in runs)
        assert [*offsets] == whole.trace.records()["offset"].to_pylist(), seed


# ---- some keys


@pytest.mark.thorough
@pytest.mark.parametrize("kind", EACH_KIND)
def test_a_run_of_some_keys_meets_the_same_stream_time(kind: str) -> None:
    moved = 0
    for seed in range(fewer(100)):
        drawn = draw(seed)
        plan = drawn.plan(EACH_KIND[kind], "on_window_close")
        whole = plan.run(drawn.table)
        for key in whole.trace.keys.to_pylist():
            some = plan.run(drawn.table, keys=[key])
            some.trace.check()
            for view in (sk.Run.table, sk.Run.changelog, sk.Run.dropped, lambda run: run.trace.records()):
                expected = view(whole)
                assert view(some).equals(expected.filter(pa.compute.equal(expected["key"], key))), (seed, key)
            for row in some.trace.records().to_pylist():
                place = {"offset": row["offset"], "partition": row["partition"]}
                assert some.explain(**place) == whole.explain(**place), (seed, place)
            for row in some.table().to_pylist():
                asked = {"key": key, "window_start": row["window_start_ms"], "partition": row["partition"]}
                assert some.explain(**asked) == whole.explain(**asked), (seed, asked)
            moved += moved_count(some)
    assert moved > fewer(100)
