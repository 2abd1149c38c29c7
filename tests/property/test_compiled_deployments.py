"""What the kernels play of a deployment is what the processor plays: decisions, results, what is refused and held."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sessionkit as sk
from sessionkit.deployed.compiled.stores import observed_ms
from sessionkit.deployed.recorder import Forwarded
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.windows.session_kernel import LONG_WALK
from tests.deployments import lives_by_kernels, processor_only
from tests.interpreted import fewer
from tests.kinds import group_in_ms, in_ms
from tests.property.streams import AGGREGATIONS, Stream, draw, rows_of

SEEDS = range(fewer(4_000))
GROUP = max(1, len(SEEDS) // 10)
NAMED: tuple[tuple[str, ...], ...] = (
    ("count",), ("sum", "count"), ("min",), ("min", "max"), ("mean", "real_sum"), ("first", "last"), ("latest",),
    ("earliest", "sum"),
)  # fmt: skip
CACHES: tuple[bool | str, ...] = (False, True, "0B", "150B", "300B", "1KB", "10MB")
RESTARTS = ("disk", "changelog", "killed")


def deployment(rng: np.random.Generator, stream: Stream, plan: sk.Plan) -> tuple[sk.Deployment, list[int] | None]:
    """(a deployment, with a cache where kernels know it; its clock if that is not stream time)."""
    size = len(stream.table)
    knows_cache = plan.windows.holds == "windows" or (plan._strategy == "on_window_update" and not size % 3)
    restarts: list[Any] = []
    if size and rng.random() < 0.4:
        rows = sorted(set(rng.integers(0, size, int(rng.integers(1, 4))).tolist()))
        restarts = [(row, str(rng.choice(RESTARTS))) for row in rows]
    clock = np.cumsum(rng.integers(0, 3, size)).tolist() if rng.random() < 0.5 else None
    every = sorted(set(rng.integers(0, size, 3).tolist())) if size and rng.random() < 0.5 else None
    how = sk.Deployment.plain(
        store=rng.choice(["memory", "rocksdb"]),
        retention=in_ms(stream.retention_ms),
        emit_interval=in_ms(int(rng.choice([0, 0, 1, 7, 50]))),
        commit_interval=in_ms(int(rng.choice([0, 5, 100]))),
        commit_every=every,
        restarts=restarts,
        caching=CACHES[rng.integers(len(CACHES))] if knows_cache else False,
    )
    return how, clock


def in_segments(rng: np.random.Generator, stream: Stream) -> Stream:
    """The stream, in a part of the cases with all lengths and times so much longer that segments of a minute expire."""
    times = np.asarray(stream.table["time"].fill_null(0))
    by = int(rng.choice([1, 1, 999, 7_001, 60_000]))
    if np.abs(times).max(initial=0) > 2**40 or by == 1:
        return stream
    longer = pc.multiply(stream.table["time"], by)
    windows = sk.SessionWindows(
        inactivity_gap_ms=stream.windows.inactivity_gap_ms * by, grace_ms=stream.windows.grace_ms * by
    )
    table = stream.table.set_column(stream.table.column_names.index("time"), "time", longer)
    return Stream(windows, stream.retention_ms * by, table)


def plan_of(rng: np.random.Generator, windows: Any) -> sk.Plan:
    """A plan over these windows, with one of the sets of results and one of the emit strategies."""
    grouped = group_in_ms("key", timestamp="time", partition="partition", offset="offset", on_bad_time="drop")
    named = NAMED[rng.integers(len(NAMED))]
    emit: Any = rng.choice(["on_window_update", "on_window_close"])
    plan = grouped.windowed_by(windows).emit(emit).aggregate(**{name: AGGREGATIONS[name] for name in named})
    if emit == "on_window_close" or rng.random() < 0.5:
        return plan
    most: Any = rng.choice([None, 1, 4, 100])
    if rng.random() < 0.5:
        return plan.suppress("until_window_closes", max_records=None if most is None else int(most) * 50)
    wait = in_ms(int(rng.choice([0, 3, 50])))
    return plan.suppress("until_time_limit", wait, max_records=None if most is None else int(most))


def _states(run: sk.Run) -> list[tuple[Any, ...]]:
    front: Any = run._store
    store = getattr(front, "store", front)  # behind a cache
    numbers = run._outcome.batch.partitions.tolist()
    stands = [(p, store.snapshot(p), observed_ms(store, p), list(store.all(partition=p))) for p in numbers]
    if front is not store:
        caches = sorted(front._caches.items())
        used = sorted if run.plan.windows.advance_ms is None and store.holds == "windows" else list  # by reads, too
        stands += [(p, list(c._by_place.values()), used(c._by_use), list(c._dirty), c.newest_ms) for p, c in caches]
        stands.append((front.most_held, front._budget.held))
    return stands


def _with_one_null(each: Forwarded) -> Forwarded:
    """The result, which replaces null where it replaces several results that are all null."""
    replaced = each.result.replaced
    is_null = isinstance(replaced, dict) and all(value is None for value in replaced.values())
    return each._replace(result=each.result._replace(replaced=None)) if is_null else each


def _facts(run: sk.Run) -> dict[str, Any]:
    """All that a life tells, but for the order of the windows that it found in its store."""
    done, trace = run.deployed, run.trace
    assert done is not None
    trace.check()
    outcome, columns = run._outcome, trace.window_columns
    ids = np.stack([columns.partition, columns.key, columns.opened_by], axis=1)[:, :].tolist()
    windows = sorted(map(str, trace.windows().to_pylist()))
    facts = {
        "records": trace.records().to_pylist(),
        "windows": windows,
        "closes": [(at, ids[w], *rest) for at, w, *rest in zip(*(c.tolist() for c in trace.closes), strict=True)],
        "sent": rows_of(run._changelog_with(old_values=True)),
        "forwarded": [_with_one_null(each) for each in done.forwarded],
        "buffers": [(b.most_records, b.most_size) for b in done.buffers],
        "waiting": [_with_one_null(each)._replace(offset=-1) for each in done.waiting],
        "held": rows_of(run.suppress_buffer()._columns) if run.plan._suppression is not None else None,
        "refused": list(done.refused),
        "looks": list(done.looks),
        "clock": None if done.clock_ms is None else list(done.clock_ms),
        "committed": done.committed_count,
        "snapshots": outcome.snapshots,
        "metrics": run.metrics(),
        "closed": sorted(zip(map(str, ids), outcome.closed.tolist(), strict=True)),
        "table": rows_of(run._table),
    }
    if isinstance(trace, SessionTrace):
        facts["merges"] = [(at, ids[a], ids[b]) for at, a, b in zip(*(c.tolist() for c in trace.merges), strict=True)]
        facts["reopened"] = [
            (at, ids[w], *rest) for at, w, *rest in zip(*(c.tolist() for c in trace.reopenings), strict=True)
        ]
    return facts


def same(plan: sk.Plan, stream: Stream, how: sk.Deployment, clock: list[int] | None, seed: int) -> Sequence[sk.Run]:
    """Plays the deployment both ways and compares them life by life; gives the lives."""
    if "real_sum" in dict(plan._aggregations):  # of nulls alone it is 0 to a function, of which the text is shorter
        real = stream.table.column_names.index("real")
        stream = stream._replace(table=stream.table.set_column(real, "real", stream.table["real"].fill_null(0.5)))

    def lives() -> tuple[Any, Any]:
        try:
            run = plan._run_deployed(stream.batch(), how, clock=clock)
        except sk.errors.BufferFull as error:
            return (), str(error)
        assert run.deployed is not None
        return run.deployed.lives, run

    found, run = lives()
    with processor_only():
        wanted, reference = lives()
    if not wanted:
        assert run == reference, seed
        return found
    assert len(found) == len(wanted)
    for number, (one, other) in enumerate(zip(found, wanted, strict=True)):
        facts, expected = _facts(one), _facts(other)
        for name in expected:
            assert facts[name] == expected[name], (seed, number, name)
    assert _states(run) == _states(reference), seed
    if run.deployed.seen_ms is not None:
        windows = plan._complete_windows
        seen = {
            p: sorted(map(windows.last_instant_ms, reference._store.all(partition=p)))
            for p in run._outcome.batch.partitions.tolist()
        }
        assert {p: sorted(times_ms.tolist()) for p, times_ms in run.deployed.seen_ms.items()} == seen, seed
    return found


def played(rng: np.random.Generator, stream: Stream, seed: int) -> tuple[Sequence[sk.Run], int, int]:
    """(the lives of a random deployment, which are the same both ways; how many were compiled; final results)."""
    plan = plan_of(rng, stream.windows)
    how, clock = deployment(rng, stream, plan)
    with lives_by_kernels() as by_kernels:
        lives = same(plan, stream, how, clock, seed)
    finals = sum(row["what"] == "final" for life in lives for row in pa.table(life._changelog).to_pylist())
    return lives, len(by_kernels), finals


@pytest.mark.parametrize("first", SEEDS[::GROUP])
def test_compiled_sessions_are_those_of_the_processor(first: int) -> None:
    compiled = finals = refused = again = 0
    for seed in range(first, first + GROUP):
        stream, rng = draw(seed), np.random.default_rng(seed)
        if stream.windows.until_ms is not None:
            continue
        stream = in_segments(rng, stream)
        lives, calls, sent = played(rng, stream, seed)
        compiled, finals, again = compiled + calls, finals + sent, again + (calls == len(lives) > 1)
        refused += sum(len(life.deployed.refused) for life in lives if life.deployed is not None)
    assert compiled > GROUP // 2
    assert again > GROUP // 20
    assert finals > 0
    assert refused > 0


@pytest.mark.parametrize("first", SEEDS[::GROUP])
def test_compiled_caches_of_sessions_are_those_of_the_processor(first: int) -> None:
    """What a limited cache evicts decides what a record finds; only RocksDB's order of use has a kernel."""
    compiled = refused = withdrawn = evicted = 0
    for seed in range(first, first + GROUP):
        stream, rng = draw(seed), np.random.default_rng(seed)
        if stream.windows.until_ms is not None:
            continue
        stream = in_segments(rng, stream)
        grouped = group_in_ms("key", timestamp="time", partition="partition", offset="offset", on_bad_time="drop")
        named = NAMED[rng.integers(len(NAMED))]  # of several results, and of first ones, the sizes of values differ
        plan = grouped.windowed_by(stream.windows).aggregate(**{name: AGGREGATIONS[name] for name in named})
        size, caching = len(stream.table), CACHES[1 + rng.integers(len(CACHES) - 1)]
        how = sk.Deployment.plain(
            store="memory" if caching is True else "rocksdb",
            retention=in_ms(stream.retention_ms),
            commit_every=sorted(set(rng.integers(0, size, int(rng.integers(1, 9))).tolist())) if size else None,
            caching=caching,
        )
        with lives_by_kernels() as by_kernels:
            lives = same(plan, stream, how, None, seed)
        compiled += len(by_kernels)
        for life in lives:
            assert life.deployed is not None
            refused += len(life.deployed.refused)
            withdrawn += sum(row["what"] == "tombstone" for row in pa.table(life._changelog).to_pylist())
            store: Any = life._store
            evicted += isinstance(store._budget.most, int) and store.most_held > store._budget.most
    assert compiled > GROUP // 2
    assert evicted > GROUP // 10
    assert withdrawn > 0
    assert refused > 0 or GROUP < 400  # by a store in memory, a session that ends just where its retention does


def test_a_cache_shows_sessions_that_the_store_has_forgotten() -> None:
    """Records of a few keys, about as late as the retention, which is the shortest that Kafka allows."""
    met_again = forgotten = 0
    for seed in range(fewer(200)):
        rng = np.random.default_rng(seed)
        size, gap, grace = 400, int(rng.choice([1_000, 20_000])), int(rng.choice([0, 1_000, 50_000]))
        times = np.arange(size) * int(rng.choice([100, 1_500, 9_000])) + 200_000
        times = times - np.where(rng.random(size) < 0.4, rng.integers(0, 2 * gap + 2 * grace, size), 0)
        if rng.random() < 0.3:
            times = times // 60_000 * 60_000 + 59_999  # where a read of a segment ends
        table = pa.table(
            {"partition": rng.integers(0, 2, size).astype(np.int32), "offset": np.arange(size),
             "key": rng.choice(["a", "b", "ab", "c", "d"][: int(rng.integers(1, 6))], size).tolist(),
             "time": times, "value": rng.integers(0, 10_000, size), "real": np.zeros(size)},
        )  # fmt: skip
        windows = sk.SessionWindows(inactivity_gap_ms=gap, grace_ms=grace)
        stream = Stream(windows, gap + grace + int(rng.choice([0, 500])), table)
        grouped = group_in_ms("key", timestamp="time", partition="partition", offset="offset")
        total = {"total": sk.sum("value")} if rng.random() < 0.5 else {}
        plan = grouped.windowed_by(windows).aggregate(n=sk.count(), **total)
        how = sk.Deployment.plain(
            retention=in_ms(stream.retention_ms),
            store="rocksdb",
            caching=str(rng.choice(["150B", "400B", "1KB", "4KB"])),
            commit_every=int(rng.choice([1, 7, 30, 1_000])),
        )
        (life,) = same(plan, stream, how, None, seed)
        without = plan._run_deployed(stream.batch(), dataclasses.replace(how, caching=False))
        met_again += len(life.trace.reopenings.at)
        forgotten += len(life.trace.window_columns.key) < len(without.trace.window_columns.key)
    assert met_again > 0
    assert forgotten >= max(1, fewer(200) // 10)


def of_time_windows(rng: np.random.Generator, stream: Stream) -> Stream:
    """The records under tumbling or hopping windows, some of which start at no multiple of their length."""
    gap_ms = stream.windows.inactivity_gap_ms
    advance_ms = max(1, int(rng.choice([1, gap_ms // 2, gap_ms])))
    size_ms = advance_ms * int(rng.choice([1, 1, 2, 5])) + int(rng.integers(0, advance_ms))
    windows = sk.TimeWindows(size_ms=size_ms, advance_ms=advance_ms, grace_ms=stream.windows.grace_ms)
    extra_ms = max(0, stream.retention_ms - gap_ms - windows.grace_ms)
    return Stream(windows, size_ms + windows.grace_ms + extra_ms, stream.table)  # type: ignore[arg-type]


def test_a_session_hides_others_whose_end_a_restart_had_forgotten() -> None:
    """Kafka observes 120 with the record of "b" at 112, whose session ends there: it does not find that of "a"."""
    table = pa.table(
        {"partition": np.zeros(6, np.int32), "offset": np.arange(6), "key": ["b", "b", "a", "b", "b", "a"],
         "time": [100, 110, 110, 120, 112, 120]},
    )  # fmt: skip
    windows = sk.SessionWindows(inactivity_gap_ms=10, grace_ms=0)
    stream = Stream(windows, 10, table.append_column("value", table["time"]).append_column("real", table["time"]))
    plan = group_in_ms("key", timestamp="time", partition="partition", offset="offset").windowed_by(windows).count()
    how = sk.Deployment.plain(store="rocksdb", retention="10ms", restarts=[3])
    *_, last = same(plan, stream, how, None, 0)
    assert last.trace.records()["decision"].to_pylist() == ["added", "opened"]


@pytest.mark.parametrize(("late", "compiled"), [([], 2), ([("a", 5)], 1)])
def test_sessions_within_the_gap_that_a_restart_shows_again_are_left_to_kernels_unless_a_record_comes_near_both(
    late: list[tuple[str, int]], compiled: int
) -> None:
    """The record of "a" at 10 did not find the session at 0, which was hidden; on the disk both are there."""
    rows = [("a", 0), ("b", 19), ("a", 10), *late, ("b", 100), ("a", 200)]
    table = pa.table(
        {"partition": np.zeros(len(rows), np.int32), "offset": np.arange(len(rows)), "key": [key for key, _ in rows],
         "time": [at for _, at in rows]},
    )  # fmt: skip
    windows = sk.SessionWindows(inactivity_gap_ms=10, grace_ms=0)
    stream = Stream(windows, 10, table.append_column("value", table["time"]).append_column("real", table["time"]))
    grouped = group_in_ms("key", timestamp="time", partition="partition", offset="offset").windowed_by(windows)
    how = sk.Deployment.plain(store="rocksdb", retention="10ms", restarts=[2])
    with lives_by_kernels() as by_kernels:
        same(grouped.emit("on_window_close").count(), stream, how, None, 0)
    assert len(by_kernels) == compiled


def of_sliding_windows(rng: np.random.Generator, stream: Stream) -> Stream:
    """The records under sliding windows, most of them on the shortest retention that Kafka allows, or near it."""
    difference_ms = max(1, stream.windows.inactivity_gap_ms // int(rng.choice([1, 2, 5])))
    windows = sk.SlidingWindows(time_difference_ms=difference_ms, grace_ms=stream.windows.grace_ms)
    more_ms = int(rng.choice([0, 0, 1, 2, difference_ms, difference_ms + 1, 3 * difference_ms]))
    return Stream(windows, 2 * difference_ms + windows.grace_ms + more_ms, stream.table)  # type: ignore[arg-type]


@pytest.mark.parametrize("of", [of_time_windows, of_sliding_windows])
@pytest.mark.parametrize("first", SEEDS[::GROUP])
def test_compiled_windows_are_those_of_the_processor(
    first: int, of: Callable[[np.random.Generator, Stream], Stream]
) -> None:
    compiled = finals = again = 0
    for seed in range(first, first + GROUP):
        stream, rng = draw(seed), np.random.default_rng(seed)
        if stream.windows.until_ms is not None:
            continue
        stream = of(rng, in_segments(rng, stream))
        lives, calls, sent = played(rng, stream, seed)
        compiled, finals, again = compiled + calls, finals + sent, again + (calls == len(lives) > 1)
    assert compiled > GROUP // 4
    assert again > 0 or GROUP < 50
    assert finals > 0 or GROUP < 50  # of a few streams none may close a window


@pytest.mark.parametrize("of", [lambda _, stream: stream, of_time_windows, of_sliding_windows])
def test_buffers_that_count_bytes_are_those_of_the_processor(
    of: Callable[[np.random.Generator, Stream], Stream],
) -> None:
    """Whatever values weigh, and whether or not a restart takes over what waits."""
    compiled = full = again = early = 0
    for seed in range(fewer(400)):
        stream, rng = draw(seed), np.random.default_rng(seed)
        if stream.windows.until_ms is not None:
            continue
        stream = of(rng, in_segments(rng, stream))
        grouped = group_in_ms("key", timestamp="time", partition="partition", offset="offset", on_bad_time="drop")
        named = NAMED[rng.integers(len(NAMED))]
        plan = grouped.windowed_by(stream.windows).aggregate(**{name: AGGREGATIONS[name] for name in named})
        most = int(rng.choice([0, 100, 300, 1_000, 9_000]))
        if rng.random() < 0.3:
            plan = plan.suppress("until_window_closes", max_bytes=10 * most)
        else:
            plan = plan.suppress("until_time_limit", in_ms(int(rng.choice([0, 3, 50, 5_000]))), max_bytes=most)
        how, clock = deployment(rng, stream, plan)
        with lives_by_kernels() as by_kernels:
            lives = same(plan, stream, how, clock, seed)
        compiled, full, again = compiled + len(by_kernels), full + (not lives), again + (len(by_kernels) > 1)
        early += any(len(life._changelog["what"]) and len(life.deployed.waiting) for life in lives)  # type: ignore[union-attr]
    assert compiled > fewer(400) // 4
    assert early > 0
    assert (full > 0 and again > 0) or fewer(400) < 100


def test_many_open_sessions_of_a_key() -> None:
    """Long walks move a key to the cells, where what the store forgets is overlooked as well."""
    for seed in range(fewer(40)):
        rng = np.random.default_rng(seed)
        size, gap = 500, int(rng.choice([0, 1, 3, 10]))
        grace = int(rng.choice([200, 10_000])) * (gap + 1)
        offsets, zeros = np.arange(size), np.zeros(size, np.int32)
        table = pa.table(
            {"partition": zeros, "offset": offsets, "key": rng.choice(["a", "b"], size).tolist(),
             "time": rng.integers(0, 300 * (gap + 1), size), "value": zeros,
             "real": pa.array(rng.normal(size=size), mask=rng.random(size) < 0.3)},
        )  # fmt: skip
        windows = sk.SessionWindows(inactivity_gap_ms=gap, grace_ms=grace)
        stream = Stream(windows, windows.close_lag_ms + int(rng.choice([0, 50])), table)
        emit: Any = rng.choice(["on_window_update", "on_window_close"])
        plan = plan_of(rng, windows)
        if emit == "on_window_close":  # final results are refused with suppress
            plan = plan.suppress(None).emit(emit)
        retention = in_ms(stream.retention_ms)
        same(plan, stream, sk.Deployment.plain(retention=retention), None, seed)
        if emit == "on_window_update":
            counted = group_in_ms("key", timestamp="time").windowed_by(windows).aggregate(n=sk.count())
            how = sk.Deployment.plain(
                retention=retention, store="rocksdb", caching=CACHES[1 + seed % (len(CACHES) - 1)], commit_every=100
            )
            (life,) = same(counted, stream, how, None, seed)
            assert len(life.trace.window_columns.key) > LONG_WALK
