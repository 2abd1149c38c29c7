"""A run whose application is started again: its lives, and what they do together.

What each kind of restart does to results is compared with Kafka Streams in tests/conformance and tests/differential.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument, NotBuilt
from tests.deployments import processor_only, run_deployed
from tests.kinds import EACH_KIND, group_in_ms

ROWS = [("a", 0), ("a", 100), ("b", 3), ("a", 12), ("a", 130)]
PLAN = group_in_ms("key").windowed_by(sk.SessionWindows(inactivity_gap_ms=10, grace_ms=5)).count()


def frame(rows: list[tuple[str, int]] = ROWS, **more: Any) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["key", "at"]).assign(**more)


def run_of(restarts: Any, plan: sk.Plan = PLAN, **options: Any) -> Any:
    return run_deployed(plan, frame(), retention="1s", restarts=restarts, **options)


def lives_of(run: sk.Run) -> Sequence[sk.Run]:
    assert run.deployed is not None
    return run.deployed.lives


def sent(run: Any) -> list[tuple[int, str, int, Any]]:
    rows = run.changelog()
    return list(zip(rows["life"], rows["key"], rows["window_start_ms"], rows["count"], strict=True))


def test_late_records_count_after_each_start() -> None:
    never = run_deployed(PLAN, frame(), retention="1s")
    assert never.metrics()["dropped-late"] == 2
    run = run_of([1])
    assert sent(run) == [(0, "a", 0, 1), (0, "a", 100, 1), (1, "b", 3, 1), (1, "a", 12, 1), (1, "a", 130, 1)]
    assert [life._outcome.batch.partition.size for life in lives_of(run)] == [2, 3]
    assert repr(run) == "Run: 5 records in 2 lives · started again after row 1 (disk) · 0 dropped"
    assert "<p>Run: 5 records in 2 lives" in run._repr_html_()
    for life in lives_of(run):
        life.trace.check()


def test_no_restarts_are_a_run_of_one_life() -> None:
    for restarts in ([], ()):
        run = run_of(restarts)
        (life,) = lives_of(run)
        assert "life" not in run.changelog() and run.table().equals(life.table())
    assert len(lives_of(run_of(np.array([1, 3])))) == 3


def test_a_kill_repeats_what_was_not_committed() -> None:
    run = run_of([(3, "killed")], commit_every=[1])
    assert sent(run) == [(0, "a", 0, 1), (0, "a", 100, 1), (1, "b", 3, 1), (1, "a", 12, 1), (1, "a", 130, 1)]
    assert (run.metrics()["process-total"], run.metrics()["dropped-late"]) == (7, 2)
    assert "windows" not in run.metrics()
    whole = run_of([(1, "killed")])  # nothing was committed
    counts = [row[3] for row in sent(whole) if row[1:3] == ("a", 100)]
    assert counts == [1, 2]
    assert repr(whole).startswith("Run: 7 records in 2 lives · started again after row 1 (killed)")


def test_a_kill_loses_what_is_in_the_cache() -> None:
    run = run_of([(1, "killed")], caching=True)
    assert [row for row in sent(run) if row[0] == 0] == []
    assert {row[3] for row in sent(run)} == {1}


def test_final_results_after_the_last_commit_go_out_again() -> None:
    windows = sk.TimeWindows(size_ms=10, grace_ms=0)
    finals = PLAN.windowed_by(windows).emit("on_window_close")
    rows = frame([("a", 0), ("a", 12), ("a", 25), ("a", 40)])
    for kind, expected in (("disk", [0, 10, 20]), ("changelog", [0, 10, 20]), ("killed", [0, 10, 10, 20])):
        run = run_deployed(finals, rows, retention="1s", restarts=[(2, kind)], commit_every=[1])
        assert run.changelog()["window_start_ms"].tolist() == expected, kind


def test_what_suppress_holds_back_waits_in_the_next_life() -> None:
    plan = PLAN.suppress("until_window_closes")
    rows = frame([("a", 0), ("a", 4), ("b", 6), ("b", 40)])
    expected = [("a", 0, 2), ("b", 6, 1)]
    for kind in ("disk", "changelog"):
        run = run_deployed(plan, rows, retention="1s", restarts=[(2, kind)])
        assert [row[1:] for row in sent(run)] == expected
        assert len(lives_of(run)[0].changelog()) == 0 and lives_of(run)[0].suppress_buffer().most_records == 3
    killed = run_deployed(plan, rows, retention="1s", restarts=[(2, "killed")], commit_every=[0])
    # read again, they count twice; and the session [0, 0], which has grown since the commit, goes out as it was then
    assert [row[1:] for row in sent(killed)] == [("a", 0, 1), ("a", 0, 3), ("b", 6, 2)]


@pytest.mark.parametrize("by", ["kernels", "processor"])
@pytest.mark.parametrize("what", [("until_window_closes",), ("until_time_limit", "1h")])
def test_what_waits_is_told_by_its_own_record_whatever_life_it_came_in(by: str, what: tuple[str, ...]) -> None:
    """It was told by a record of the last life in the row that it had in its own, or by none."""
    rows = pd.DataFrame({"key": ["a", "b", "c", "a", "d"], "at": [0, 1, 2, 3, 4], "offset": range(10, 15), "p": 0})
    grouped = group_in_ms("key", timestamp="at", offset="offset", partition="p").windowed_by(
        sk.TimeWindows(size="10ms", grace="0ms")
    )
    plan = grouped.count().suppress(*what)  # type: ignore[arg-type]
    with processor_only() if by == "processor" else nullcontext():
        run = run_deployed(plan, rows, restarts=[2, 3])
        waiting = run.suppress_buffer().table()
    assert sorted(zip(waiting["key"], waiting["offset"].tolist(), strict=True)) == [
        ("a", 13), ("b", 11), ("c", 12), ("d", 14),
    ]  # fmt: skip


def test_suppress_goes_on_over_very_many_lives() -> None:
    """Each took over what the one before left, one call in the other: hundreds nested too deeply."""
    rows = pd.DataFrame({"key": ["a", "b"] * 200, "at": range(400)})
    grouped = group_in_ms("key", timestamp="at").windowed_by(sk.TimeWindows(size="10ms", grace="0ms"))
    plan = grouped.count().suppress("until_window_closes")
    runs = [run_deployed(plan, rows, restarts=range(399))]
    with processor_only():
        runs.append(run_deployed(plan, rows, restarts=range(399)))
    one, other = ((run.changelog(), run.suppress_buffer().table(), run.suppress_buffer().most_bytes) for run in runs)
    pd.testing.assert_frame_equal(one[0], other[0])
    pd.testing.assert_frame_equal(one[1], other[1])
    assert one[2] == other[2]


def test_offsets_count_on_over_the_lives() -> None:
    assert run_of([1]).changelog()["offset"].tolist() == [0, 1, 2, 3, 4]
    assert run_of([(3, "killed")], commit_every=[1]).changelog()["offset"].tolist() == [0, 1, 2, 3, 4]
    given = PLAN.source, frame(offset=[3, 5, 8, 9, 20])
    plan = group_in_ms("key", offset="offset")
    plan = plan.windowed_by(PLAN.windows).count()
    run = run_deployed(plan, given[1], retention="1s", restarts=[(3, "killed"), 4], commit_every=[1])
    assert run.changelog()["offset"].tolist() == [3, 5, 8, 9, 20]
    assert len(lives_of(run)) == 3 and len(lives_of(run)[2].trace) == 0


def test_the_results_are_frames_of_the_kind_that_was_given() -> None:
    run = run_deployed(PLAN, pl.from_pandas(frame()), restarts=[1])
    assert isinstance(run.changelog(), pl.DataFrame)
    texts = run_deployed(PLAN.aggregate(seen=sk.collect("at"), n=sk.count()), frame(), restarts=[1]).changelog()
    assert texts["seen"].map(list).tolist() == [[0], [100], [3], [12], [130]]


def test_a_store_on_disk_goes_on(tmp_path: Path) -> None:
    with sk.open_store("rocksdb", "clicks", directory=tmp_path, retention="1s") as store:
        run = run_deployed(PLAN, frame(), store=store, restarts=[1, (3, "changelog")])
        assert len(lives_of(run)) == 3
        assert store.snapshot(0)[:2] == (4, 130)
        with pytest.raises(InvalidArgument, match=r"known from its beginning only; got RocksDB.*; an empty store, or"):
            run_deployed(PLAN, frame(), store=store, restarts=[(1, "changelog")])
        later = run_deployed(PLAN, frame([("a", 7), ("a", 140)]), store=store, restarts=[0])
        assert later.changelog()["offset"].tolist() == [6, 6]  # the first is late by the stream time of the run before
        assert store.snapshot(0)[:2] == (6, 140)


def test_what_cannot_be_done_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="got \\(5,\\); increasing numbers from 0 to 4"):
        run_of([5])
    named = run_deployed(PLAN.aggregate(life=sk.count()), frame(), restarts=[1])
    with pytest.raises(InvalidArgument, match="a column would appear twice beside the lives; got 'life'"):
        named.changelog()


def test_views_of_one_life_name_the_lives() -> None:
    run = run_of([1, 2])
    for view in (
        run.table, run.dropped, run.kafka_metrics, run.lanes, lambda: run.explain(offset=1), lambda: run.trace,
    ):  # fmt: skip
        with pytest.raises(NotBuilt, match=r"this view is of one life .*; got 3 lives; run\.deployed\.lives\[-1\]"):
            view()
    assert lives_of(run)[-1].table()["key"].tolist().count("b") == 1
    assert run.remarks() == lives_of(run)[0].remarks() == []


def test_what_all_lives_did_stands_by_row() -> None:
    windows = sk.TimeWindows(size_ms=10, grace_ms=0)
    rows = frame([("a", 0), ("a", 12), ("a", 25), ("a", 40)])
    plan = PLAN.windowed_by(windows).emit("on_window_close")
    done = run_deployed(plan, rows, retention="1s", restarts=[(2, "killed")], commit_every=[1]).deployed
    assert done is not None
    assert [look.at for look in done.looks] == [1, 2, 2, 3]  # row 2 is read again
    assert [each.at for each in done.forwarded] == [1, 2, 2, 3]
    assert (done.committed_count, done.clock_ms) == (4, None)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["disk", "changelog", "killed"])
@pytest.mark.parametrize("emit", ["on_window_update", "on_window_close"])
def test_rocksdb_played_in_memory_restarts_as_rocksdb(kind: str, emit: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    rows = pd.DataFrame({"key": rng.choice(["a", "b"], 60), "at": np.abs(np.cumsum(rng.integers(-40, 60, 60)))})
    for name, windows in EACH_KIND.items():
        plan = PLAN.windowed_by(windows).emit(emit)
        told: dict[str, Any] = {"restarts": [(20, kind), (40, kind)], "commit_every": 3, "caching": "500B"}
        holds, options = windows.holds, {"retention": "1m", "time_ordered": emit == "on_window_close"}
        with sk.open_store("rocksdb", "s", of=holds, directory=tmp_path / name, **options) as store:
            on_disk = run_deployed(plan, rows, store=store, **told)
        played = plan.run(rows, deployment=sk.Deployment.plain(store="rocksdb", retention="1m", **told))
        assert played.changelog().equals(on_disk.changelog())
        assert played.metrics() == on_disk.metrics()
