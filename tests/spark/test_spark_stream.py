"""A plan on a stream gives what the local run gives, over any micro-batches; what it cannot do exactly, it refuses."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument, InvalidData, NotBuilt, StoreMismatch, UnsupportedData
from sessionkit.spark.worker.shared_files import SharedFiles
from tests.deployments import run_deployed
from tests.optional import SparkSession
from tests.spark.common import (
    BASE,
    FUNCTIONS,
    STRATEGIES,
    WINDOWS,
    assert_events,
    collected,
    in_order,
    plan_of,
    read_stream,
    records,
    run_through,
    write_files,
)

pytest.importorskip("pyspark", reason="pyspark is not installed")

pytestmark = pytest.mark.spark


@pytest.mark.essential
def test_a_query_goes_on_where_it_stopped(spark: SparkSession, tmp_path: Path) -> None:
    """Also without what it kept in shared memory, and in another run of the plan; not with another plan."""
    table, plan = records(2), plan_of(WINDOWS["session"], "on_window_update")
    folder, checkpoint = write_files(table.slice(0, 600), tmp_path / "in", [250]), tmp_path / "checkpoint"
    first = plan.stream(read_stream(spark, folder))
    with collected(first.changelog(), checkpoint) as batches:
        sent = [*batches]
    assert_stores(checkpoint, plan, table, [250, 600])
    SharedFiles(first._name).remove()
    for file in write_files(table.slice(600), tmp_path / "rest", [300]).iterdir():
        file.rename(folder / f"later-{file.name}")
    other = plan.windowed_by(sk.SessionWindows(inactivity_gap_ms=6_000, grace_ms=8_000))
    with pytest.raises(StoreMismatch, match=r"windows .*5s.*, not .*6s.*"):
        run_through(other.stream(read_stream(spark, folder)).events(), checkpoint)
    with collected(plan.stream(read_stream(spark, folder)).changelog(), checkpoint) as batches:
        sent += batches
    assert len(sent) == 4
    changelog = in_order(plan.run(table).changelog(), "partition", "offset")
    assert in_order(pa.concat_tables(sent), "partition").select(changelog.column_names).to_pydict() == (
        changelog.cast(sent[0].schema).to_pydict()
    )


def test_files_whose_offsets_interleave_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = records(1)
    odd = np.arange(len(table)) % 2 == 1
    folder = tmp_path / "in"
    folder.mkdir()
    pq.write_table(table.filter(pa.array(~odd)), folder / "0.parquet")
    pq.write_table(table.filter(pa.array(odd)), folder / "1.parquet")
    run = BASE.count().stream(read_stream(spark, folder))
    with pytest.raises(
        InvalidData, match=r"offsets must increase within a partition; got partition 2: offset \d+ after \d+"
    ):
        run_through(run.events(), tmp_path / "checkpoint")


def test_what_is_refused_before_anything_runs(spark: SparkSession, tmp_path: Path) -> None:
    stream = read_stream(spark, write_files(records(1).slice(0, 10), tmp_path / "in", []))
    run = BASE.count().stream(stream)
    with pytest.raises(NotBuilt, match=r"a stream has no table of all its windows.*changelog\(\)"):
        run.table()
    with pytest.raises(InvalidArgument, match="sends no final results"):
        run.finals()
    with pytest.raises(InvalidArgument, match="a streaming DataFrame"):
        run_deployed(BASE.count(), stream)
    with pytest.raises(UnsupportedData, match=r"must be declared.*with_types\(longest="):
        FUNCTIONS.stream(stream).events()
    assert "state by partition, in order of offset" in repr(run)
    assert "<code>.events()</code>" in run._repr_html_()


def test_python_functions_with_declared_types(spark: SparkSession, tmp_path: Path) -> None:
    table = records(2, seed=5).slice(0, 400)
    folder = write_files(table, tmp_path / "in", [150])
    plan = FUNCTIONS.emit("on_window_close")
    run = plan.stream(read_stream(spark, folder)).with_types(
        longest="string", span="struct<n: bigint, sum: double>", smallest="bigint"
    )
    assert assert_events(run, plan.run(table), tmp_path / "checkpoint") == 2


@pytest.mark.essential
def test_a_store_over_the_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    table, plan, checkpoint = records(2).slice(0, 600), plan_of(WINDOWS["hopping"], STRATEGIES[1]), tmp_path / "state"
    run_through(plan.stream(read_stream(spark, write_files(table, tmp_path / "in", [250]))).events(), checkpoint)
    assert_stores(checkpoint, plan, table, [250, 600])
    with pytest.raises(InvalidArgument, match=r"there is no state to read.*batch 7"):
        sk.open_store("spark", checkpoint=checkpoint, batch=7)
    with pytest.raises(InvalidArgument, match="checkpoint=None"):
        sk.open_store("spark")


def assert_stores(checkpoint: Path, plan: sk.Plan, table: pa.Table, seen: list[int]) -> None:
    """After each micro-batch: what a store under a local run holds after as many records."""
    of = "sessions" if plan.windows == WINDOWS["session"] else "windows"
    for batch, count in (*enumerate(seen), (None, seen[-1])):
        local = sk.open_store("memory", "local", of=of)
        plan.run(table.slice(0, count), store=local)
        store = sk.open_store("spark", checkpoint=checkpoint, batch=batch)
        for partition in (0, 3):
            assert [*store.all(partition=partition)] == [*local.all(partition=partition)] != []
            assert store.snapshot(partition) == local.snapshot(partition)
        assert len(store.to_pandas()) == len(local.to_pandas())
        windows = sk.read_state(checkpoint, batch=batch).toArrow()
        held = [(row["partition"], row["key"], row["window_start_ms"]) for row in local.rows()]
        columns = (windows[name].to_pylist() for name in ("partition", "key", "window_start_ms"))
        assert sorted(zip(*columns, strict=True), key=repr) == sorted(held, key=repr)
        assert sum(windows["count"].to_pylist()) == sum(row["aggregate"]["count"] for row in local.rows())
        assert "checkpoint" in repr(store)
