"""Shares of a partition's keys, each in a run of its own, give together what the whole partition gives."""

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.spark.worker.by_key import deal, row_number_name, run_dealt, shares_of
from sessionkit.spark.worker.shuffle import ORDER, SLICES, pieces_in
from sessionkit.steps.job import Job
from sessionkit.steps.partition_run import run_job
from tests.kinds import in_ms, plan_of

pytestmark = pytest.mark.slow
RECORDS = 900
WINDOWS = {
    "sessions": sk.SessionWindows(inactivity_gap_ms=5_000, grace_ms=8_000),
    "until": sk.SessionWindows.until(inactivity_gap_ms=9_000, retention_ms=20_000),
    "hopping": sk.TimeWindows(size_ms=5_000, advance_ms=1_700, grace_ms=4_000),
    "tumbling": sk.TimeWindows(size_ms=3_000, grace=0),
    "sliding": sk.SlidingWindows(time_difference_ms=5_000, grace_ms=4_000),
    "trailing": sk.SlidingWindows(time_difference_ms=5_000, grace=0, trailing_only=True),
}


def records(seed: int = 3) -> pa.Table:
    """Two partitions, one after the other; late records, gaps in offsets, missing keys, values and times."""
    rng = np.random.default_rng(seed)
    partition = np.repeat([0, 3], RECORDS // 2)
    offset = 100 + np.cumsum(rng.integers(1, 4, RECORDS))
    at = (
        1_000
        + np.cumsum(rng.integers(0, 500, RECORDS))
        - rng.integers(0, 18_000, RECORDS) * (rng.random(RECORDS) < 0.5)
    )
    keys = ["ada", "bob", "cy", "é", "", "eve", "fay", None]
    return pa.table(
        {"partition": partition, "offset": offset,
         "key": pa.array([keys[i] for i in rng.integers(0, len(keys), RECORDS)], pa.string()),
         "at": pa.array(at, mask=rng.random(RECORDS) < 0.02),
         "amount": pa.array(rng.integers(-50, 50, RECORDS), mask=rng.random(RECORDS) < 0.1),
         "word": pa.array([None if i % 11 == 0 else f"w{i % 5}" for i in range(RECORDS)], pa.string())},
    )  # fmt: skip


def plan_for(kind: str, strategy: str) -> sk.Plan:
    named = {"n": sk.count(), "total": sk.sum("amount"), "words": sk.collect("word")}
    return plan_of(WINDOWS[kind], strategy, named, partition="partition", offset="offset", on_bad_time="drop")


def job_of(plan: sk.Plan, table: pa.Table, view: str, retention_ms: int | None) -> Job:
    empty = plan.run(table.slice(0, 0), retention=in_ms(retention_ms))
    tables = {"table": empty.table, "changelog": empty.changelog}
    if view == "metrics":
        schema = pa.schema([("name", pa.string()), ("count", pa.int64())])
    elif view == "dropped":
        schema = empty.dropped(missing_grace=False).schema
    else:
        schema = (tables.get(view) or getattr(empty.trace, view))().schema
    return Job(
        columns=tuple(table.column_names),
        source=plan.source,
        windows=plan.windows,
        aggregations=plan._aggregations,
        strategy=plan._strategy,
        retention_ms=plan.windows.retention_ms(in_ms(retention_ms)),
        view=view,
        schema=schema,
        step_records=70,
    )


def shared(job: Job, table: pa.Table, shares: int) -> pa.Table:
    """What the shares give, put together as Spark does it."""
    dealt = pa.Table.from_batches(
        deal(job, iter(table.to_batches(max_chunksize=64)), shares=shares, first=0, width=1), SLICES
    )
    found = []
    for place in np.unique(dealt["place"].to_numpy()):
        mine = dealt.filter(pa.compute.equal(dealt["place"], int(place)))
        mine = mine.sort_by([(name, "ascending") for name in ORDER])
        found += run_dealt(job, mine.to_batches(max_chunksize=3))
    return pa.Table.from_batches(found)


ORDERS = {"changelog": ["partition", "offset"], "touched": ["partition", "offset"], "dropped": ["partition", "offset"]}


def rows_of(table: pa.Table, view: str, *last: str) -> list[Any]:
    names = [name for name in table.column_names if name not in last]
    found = [tuple(map(repr, row.values())) for row in table.select(names).to_pylist()]
    order = [(tuple(row[name] for name in ORDERS.get(view, ())), i) for i, row in enumerate(table.to_pylist())]
    return [found[i] for _, i in sorted(order)] if view in ORDERS else sorted(found)


@pytest.mark.parametrize("strategy", ["on_window_update", "on_window_close"])
@pytest.mark.parametrize("kind", sorted(WINDOWS))
def test_shares_of_the_keys_give_what_all_keys_give(kind: str, strategy: str) -> None:
    if (kind, strategy) in (("trailing", "on_window_update"), ("until", "on_window_close")):
        return
    plan, table = plan_for(kind, strategy), records()
    views = ["table", "changelog", "records", "windows", "dropped"]
    of_sessions = kind in ("sessions", "until")
    for view in views if of_sessions else [*views, "touched"]:
        job = job_of(plan, table, view, 40_000 if kind == "sessions" else None)
        whole = pa.Table.from_batches(run_job(job, iter(table.to_batches(max_chunksize=64))))
        assert whole.num_rows > 10
        expected = rows_of(whole, view)
        for shares in (1, 3):
            got = shared(job, table, shares)
            if view == "changelog" and strategy == "on_window_close":  # of one record: by end and key bytes
                got = got.sort_by([(name, "ascending") for name in ("partition", "offset", "window_end_ms", "key")])
            assert rows_of(got, view, row_number_name(job.schema)) == expected, (view, shares)
    job, local = job_of(plan, table, "metrics", None), plan.run(table).metrics()
    for shares in (1, 3):
        counts: Counter[str] = Counter()
        for row in shared(job, table, shares).to_pylist():
            counts[row["name"]] += row["count"]
        assert {name: counts[name] for name in local} == local


def test_ticks_are_few() -> None:
    """At most two a record, and the last of a step: not a copy of all steps of stream time for each share."""
    plan, table = plan_for("sessions", "on_window_update"), records()
    job = job_of(plan, table, "table", None)
    for shares in (2, 40):
        dealt = list(deal(job, iter(table.to_batches()), shares=shares, first=0, width=1))
        rows = sum(piece.table().num_rows for piece in pieces_in(dealt))
        assert RECORDS < rows <= 3 * RECORDS + len(dealt)


def test_a_share_is_told_by_the_key_alone() -> None:
    for keys in (pa.array(["ada", "bob"]), pa.array([-1, 2**40 + 5]), pa.array([b"x", b"\xff"])):
        shares = shares_of(keys, 1_000)
        assert shares.tolist() == [int(shares_of(keys.slice(i, 1), 1_000)[0]) for i in range(2)]
        assert shares[0] != shares[1]
    even = np.bincount(shares_of(pa.array(np.arange(10_000)), 7), minlength=7)
    assert even.min() > 1_200


def test_a_name_for_the_row_number_that_no_column_has() -> None:
    assert row_number_name(pa.schema([("row", pa.int64()), ("row_", pa.int64())])) == "row__"


@pytest.mark.parametrize("kind", sorted(WINDOWS))
def test_last_instants_are_those_of_the_windows(kind: str) -> None:
    windows = WINDOWS[kind]
    times = np.array([0, 1, 1_699, 1_700, 4_999, 5_000, 5_001, 123_456])
    last = {
        end - (0 if getattr(windows, "inclusive_end", True) else 1)
        for t in times
        for _, end in windows.windows_for(int(t))
    }
    found = windows.last_instants_ms(times)
    assert last <= set(found.tolist())
    assert (np.diff(found) > 0).all()
