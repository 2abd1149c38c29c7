"""Every view that a local run has, a run on Spark has: equal to the local one, however its steps are cut."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument, UnknownRecord
from tests.optional import SparkSession
from tests.spark.common import BASE, WINDOWS, in_order, in_turn, records, shuffled

if TYPE_CHECKING:
    from sessionkit.spark.batch_run import SparkRun

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("small_steps")]

PLAN = BASE.aggregate(count=sk.count(), total=sk.sum("amount"))


def both(spark: SparkSession, plan: sk.Plan, partitions: int, seed: int = 3) -> tuple[SparkRun, sk.Run, pa.Table]:
    """The run on Spark, and the local one of the same rows in order of partition and offset."""
    table = records(partitions, seed)
    return plan.run(shuffled(spark, table)), plan.run(in_order(table, "partition", "offset")), table


def assert_rows(of_spark: Any, local: pa.Table, *order: str) -> None:
    """The same columns, and the same rows; in the same order, or in that of these columns."""
    got = of_spark.toArrow()
    assert got.column_names == local.column_names
    got, expected = (in_order(table, *order) if order else table for table in (got, local.cast(got.schema)))
    assert got.to_pylist() == expected.to_pylist()


def in_partition(table: pa.Table, plan: sk.Plan) -> list[sk.Run]:
    """A local run for each partition."""
    numbers = sorted(pc.unique(table["partition"]).to_pylist())
    return [plan.run(table.filter(pc.equal(table["partition"], number))) for number in numbers]


@pytest.mark.essential
@pytest.mark.parametrize(("kind", "partitions"), in_turn(WINDOWS, (7, 1, 2)))
def test_what_is_counted_over_all_keys_is_the_local_answer(spark: SparkSession, kind: str, partitions: int) -> None:
    plan = PLAN.windowed_by(WINDOWS[kind])
    run, local, table = both(spark, plan, partitions)
    assert_rows(run.losses(), local.losses())
    assert_rows(run.losses(3), local.losses(3))
    assert_rows(run.latency().table(), local.latency().table(), "partition", "closed_by", "window_end", "key")
    assert run.latency().words() == local.latency().words()
    assert run.latency().figure().to_json() == local.latency().figure().to_json()
    drops, expected = run.drop_calendar(), local.drop_calendar()
    assert repr(drops) == repr(expected)
    assert_rows(drops.table(), expected.table())
    assert drops.figure().to_json() == expected.figure().to_json()
    assert run.most_eventful_key() == local.most_eventful_key()
    apart = in_partition(table, plan)
    held, each = run.open_windows(), [one.open_windows() for one in apart]
    assert_rows(held.table(), pa.concat_tables([one.table() for one in each]))
    assert held.most == max(one.most for one in each)
    assert held.at_end == sum(one.at_end for one in each)
    if partitions == 1:
        assert held.words() == each[0].words()
        assert held.figure().to_json() == each[0].figure().to_json()


@pytest.mark.parametrize(("kind", "partitions"), in_turn(["session", "hopping"], (2, 7, 1)))
def test_who_moved_the_clock_and_where_partitions_stand(spark: SparkSession, kind: str, partitions: int) -> None:
    plan = PLAN.windowed_by(WINDOWS[kind])
    run, local, _ = both(spark, plan, partitions)
    moved, expected = run.clock(), local.clock()
    assert moved.words() == expected.words()
    assert moved.late_count == expected.late_count > 20
    assert_rows(moved.table(), expected.table(), "late", "partition", "offset")
    assert moved.figure().to_json() == expected.figure().to_json()
    times = local.partition_times().table()
    assert_rows(
        run.partition_times().table(), times.select(["partition", "records", "stream_time", "behind_ms", "open_count"])
    )
    assert repr(run.partition_times()).startswith(repr(local.partition_times()).partition(";")[0])


@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_merges_and_the_sessions_of_rows(spark: SparkSession, partitions: int) -> None:
    run, local, table = both(spark, PLAN, partitions)
    assert_rows(run.merges(), local.merges())
    assert len(local.merges()) > 10
    ordered = in_order(table, "partition", "offset")
    for ids in ("key", "hash"):
        assert_rows(run.assign(ids=ids), local.assign(ordered, ids=ids), "partition", "offset")
        assert_rows(run.merges(ids=ids), local.merges(ids=ids))
    with pytest.raises(InvalidArgument, match="uuid"):
        run.merges(ids="uuid")  # type: ignore[arg-type]
    rows = in_order(run.assign().toArrow(), "partition", "offset")
    expected = local.assign(ordered)
    assert (
        rows.drop_columns("session_id").to_pylist() == expected.cast(rows.schema).drop_columns("session_id").to_pylist()
    )
    pairs = set(zip(rows["session_id"].to_pylist(), expected["session_id"].to_pylist(), strict=True))
    assert len(pairs) == len({one for one, _ in pairs}) == len({other for _, other in pairs})


def test_tumbling_windows_of_rows(spark: SparkSession) -> None:
    run, local, table = both(spark, PLAN.windowed_by(WINDOWS["tumbling"]), 2)
    ordered = in_order(table, "partition", "offset")
    assert_rows(run.assign(ids="key"), local.assign(ordered, ids="key"), "partition", "offset")
    with pytest.raises(InvalidArgument, match="these are not the rows of this run; got another DataFrame"):
        run.assign(spark.range(3))
    with pytest.raises(InvalidArgument, match="a record can be in several of these windows"):
        both(spark, PLAN.windowed_by(WINDOWS["hopping"]), 2)[0].assign()


@pytest.mark.essential
@pytest.mark.parametrize(("kind", "partitions"), in_turn(["session", "tumbling", "sliding"], (7, 1)))
def test_two_runs_beside_each_other(spark: SparkSession, kind: str, partitions: int) -> None:
    plan = PLAN.windowed_by(WINDOWS[kind])
    other = plan.with_windows(grace="20s").aggregate(count=sk.count(), most=sk.max("amount"))
    table = records(partitions)
    frame, ordered = shuffled(spark, table), in_order(table, "partition", "offset")
    found, expected = plan.run(frame).compare(other.run(frame)), plan.run(ordered).compare(other.run(ordered))
    assert found.counts() == expected.counts()
    assert found.words() == expected.words()
    assert expected.counts()["records_gained"] > 10
    assert_rows(found.table(), expected.table(), "partition", "key", "start")
    assert_rows(found.records(), expected.records(), "partition", "offset")
    assert "data" in found.figure().to_json()
    for wrong, match in (
        (plan.run(ordered), "compared with its like; got Run"),
        (plan.run(spark.createDataFrame(ordered)), "only runs of the same records can be compared; got two DataFrames"),
        (BASE.windowed_by(WINDOWS["hopping" if kind == "session" else "session"]).count().run(frame), "of one kind"),
    ):
        with pytest.raises(InvalidArgument, match=match):
            plan.run(frame).compare(wrong).counts()  # type: ignore[arg-type]


def test_what_is_shown_of_keys(spark: SparkSession, tmp_path: Path) -> None:
    run, local, table = both(spark, PLAN, 2)
    key = local.most_eventful_key()
    alone = PLAN.run(table.filter(pc.equal(table["partition"], 0)), keys=[key])
    assert run.plane(key, partition=0).to_json() == alone.plane(key).to_json()
    assert run.emissions(key, partition=0).table().to_pylist() == local.emissions(key, partition=0).table().to_pylist()
    [merge] = local.merges().slice(0, 1).to_pylist()
    asked: dict[str, Any] = {
        "key": merge["key"],
        "window_start": merge["window_start"],
        "partition": merge["partition"],
    }
    assert str(run.lineage(**asked)) == str(local.lineage(**asked))
    of_partition = PLAN.run(table.filter(pc.equal(table["partition"], merge["partition"])))
    assert str(run.explain(**asked)) == str(of_partition.explain(**asked))
    decisions = local.trace.records()
    for decision in ("opened", "added", "merged", "dropped"):
        [row] = decisions.filter(pc.equal(decisions["decision"], decision)).slice(3, 1).to_pylist()
        alone = PLAN.run(table.filter(pc.equal(table["partition"], row["partition"])))
        found = run.explain(offset=row["offset"], partition=row["partition"])
        assert str(found) == str(alone.explain(offset=row["offset"]))
    for sort in ("drops", "merges", "activity", "key"):
        shown, whole = run.lanes(most=3, sort=sort), local.lanes(most=3, sort=sort, start=0)
        assert len(shown.layout.yaxis.ticktext) == len(whole.layout.yaxis.ticktext) == 3
    assert run.lanes(keys=["bob", "ada"]).layout.yaxis.ticktext
    assert run.write_html(tmp_path / "page.html", keys=[key]).stat().st_size > 100_000
    with pytest.raises(UnknownRecord, match="this record is not in the run"):
        run.explain(offset=1, partition=0)


def test_what_waits_in_suppress(spark: SparkSession) -> None:
    plan = PLAN.suppress("until_time_limit", "10s")
    run, local, _ = both(spark, plan, 2)
    buffer, expected = run.suppress_buffer(), local.suppress_buffer()
    assert repr(buffer) == repr(expected)
    assert_rows(buffer.table(), expected.table())
    assert buffer.most_bytes == expected.most_bytes > 1_000
    with pytest.raises(InvalidArgument, match="this plan holds no results back"):
        PLAN.run(shuffled(spark, records(1))).suppress_buffer()


@pytest.mark.parametrize(("kind", "most"), in_turn([*WINDOWS], (900, 500)))
def test_suppress_by_bytes_is_the_local_one_of_each_partition(spark: SparkSession, kind: str, most: int) -> None:
    """Its limit lets results go early; what is dropped and decided does not wait."""
    plan = PLAN.windowed_by(WINDOWS[kind]).suppress("until_time_limit", "10s", max_bytes=most)
    run, local, table = both(spark, plan, 2)
    parts = in_partition(table, plan)
    assert_rows(run.changelog(), pa.concat_tables(part.changelog() for part in parts))
    unlimited = PLAN.windowed_by(WINDOWS[kind]).suppress("until_time_limit", "10s")
    assert len(local.changelog()) > len(unlimited.run(in_order(table, "partition", "offset")).changelog())
    assert_rows(run.table(), local.table())
    assert_rows(run.dropped(missing_grace=False), local.dropped(missing_grace=False))
    assert run.metrics() == local.metrics()
    buffer, expected = run.suppress_buffer(), [part.suppress_buffer() for part in parts]
    assert_rows(buffer.table(), pa.concat_tables(each.table() for each in expected))
    assert len(expected[0].table()) > 0
    assert buffer.most_bytes == max(each.most_bytes for each in expected) > most
    assert buffer.most_records == max(each.most_records for each in expected)
    assert run.emissions("ada", partition=0).table().to_pylist() == parts[0].emissions("ada").table().to_pylist()


def test_remarks_name_the_cause_of_drops(spark: SparkSession) -> None:
    """Histories of three keys, one after the other in each partition: all but one are late."""
    at = np.tile(1_767_225_600_000 + np.arange(60) * 60_000, 3)
    table = pa.table(
        {"key": np.repeat(["a", "b", "c"], 60), "at": pa.array(at * 1000, pa.timestamp("us", tz="UTC")),
         "partition": np.zeros(180, np.int32), "offset": np.arange(180), "amount": np.arange(180)}
    )  # fmt: skip
    run, local = PLAN.run(shuffled(spark, table)), PLAN.run(table)
    assert run.remarks() == local.remarks() != []
    days = PLAN.windowed_by(sk.TimeWindows(size="1d", grace="0s"))
    zoned = days.run(shuffled(spark, table))
    assert zoned.remarks() == days.run(table).remarks()
