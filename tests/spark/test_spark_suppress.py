"""Suppress on a stream of Spark: its results are those of a local run, and wait in the checkpoint between queries."""

from pathlib import Path

import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.errors import BufferFull, InvalidArgument, NotBuilt, StoreMismatch
from sessionkit.spark.types import readable_errors
from sessionkit.spark.worker.shared_files import SharedFiles
from tests.optional import SparkSession
from tests.spark.common import (
    BASE,
    WINDOWS,
    assert_same_events,
    collected,
    in_turn,
    plan_of,
    read_stream,
    records,
    run_through,
    write_files,
)

pytest.importorskip("pyspark", reason="pyspark is not installed")

pytestmark = pytest.mark.spark


def suppressed(kind: str, buffer: int) -> sk.Plan:
    plan = plan_of(WINDOWS[kind], "on_window_update")
    options = (("until_window_closes",), ("until_time_limit", "3s"), ("until_time_limit", "3s"))[buffer]
    return plan.suppress(*options, **({"max_bytes": 4_000} if buffer == 2 else {}))  # type: ignore[arg-type]


@pytest.mark.parametrize(("kind", "buffer"), in_turn(WINDOWS, (0, 1, 2)))
def test_a_stream_is_the_local_run(spark: SparkSession, tmp_path: Path, kind: str, buffer: int) -> None:
    """Over a query and another one that goes on without what the first kept in shared memory."""
    table, plan = records(2).slice(0, 700), suppressed(kind, buffer)
    folder, checkpoint = write_files(table.slice(0, 500), tmp_path / "in", [200]), tmp_path / "checkpoint"
    run = plan.stream(read_stream(spark, folder))
    assert "emit on window update, suppress(" in repr(run)
    with collected(run.events(), checkpoint) as batches:
        sent = [*batches]
    SharedFiles(run._name).remove()
    (write_files(table.slice(500), tmp_path / "rest", []) / "00000.parquet").rename(folder / "later.parquet")
    with collected(plan.stream(read_stream(spark, folder)).events(), checkpoint) as batches:
        sent += batches
    assert len(sent) == 3
    events, local = pa.concat_tables(sent), plan.run(table)
    assert_same_events(events, local)
    assert len(local.changelog()) > 50
    assert len(sk.open_store("spark", checkpoint=checkpoint)) == sk.read_state(checkpoint).count() > 0


@pytest.mark.essential
def test_a_checkpoint_belongs_to_a_plan_with_suppress_or_without(spark: SparkSession, tmp_path: Path) -> None:
    """The plan that it was made with goes on with it, after others were refused, and a full buffer says so."""
    table, base = records(1).slice(0, 400), BASE.count()
    waits = base.suppress("until_window_closes")
    for number, (made, other) in enumerate(((base, waits), (waits, base))):
        folder, checkpoint = tmp_path / f"{number} in", tmp_path / f"{number} checkpoint"
        stream = read_stream(spark, write_files(table.slice(0, 200), folder, []))
        with collected(made.stream(stream).changelog(), checkpoint) as batches:
            sent = [*batches]
        rest = write_files(table.slice(200), tmp_path / f"{number} rest", []) / "00000.parquet"
        rest.rename(folder / "later.parquet")
        with pytest.raises(StoreMismatch, match=r"got suppress .*; take the plan that it was made with"):
            run_through(other.stream(stream).events(), checkpoint)
        if made is waits:
            full = base.suppress("until_window_closes", max_records=1)
            with readable_errors(), pytest.raises(BufferFull, match="suppress is full at partition 2, offset"):
                run_through(full.stream(stream).events(), checkpoint)
        with collected(made.stream(stream).changelog(), checkpoint) as batches:
            sent += batches
        expected = made.run(table).changelog()
        assert pa.concat_tables(sent)["count"].to_pylist() == expected["count"].to_pylist() != []


def test_what_is_written_is_what_suppress_lets_through(spark: SparkSession, tmp_path: Path) -> None:
    """To folders by `run.write`, and to Kafka."""
    table, plan = records(2).slice(0, 300), suppressed("tumbling", 0)
    run = plan.stream(read_stream(spark, write_files(table, tmp_path / "in", [100])))
    query = run.write(
        checkpoint=tmp_path / "state", changelog=tmp_path / "changelog", dropped=tmp_path / "late", available_now=True
    )
    with readable_errors():
        query.awaitTermination()
    local = plan.run(table)
    written = spark.read.parquet(str(tmp_path / "changelog"))
    assert {row["what"] for row in written.select("what").distinct().collect()} == {"final"}
    assert written.count() == len(local.changelog())
    assert spark.read.parquet(str(tmp_path / "late")).count() == len(local.dropped())
    with collected(sk.to_kafka(run, partitions=3), tmp_path / "to kafka") as batches:
        assert sum(map(len, batches)) == len(local.changelog())


@pytest.mark.parametrize(("kind", "buffer"), in_turn(WINDOWS, (0, 1, 2)))
def test_what_waits(spark: SparkSession, tmp_path: Path, kind: str, buffer: int) -> None:
    """After several micro-batches, and after another query that went on, from which only the state tells the most."""
    table, plan = records(2).slice(0, 600), suppressed(kind, buffer)
    folder = write_files(table.slice(0, 400), tmp_path / "in", [150])
    for count in (400, 600):
        run = plan.stream(read_stream(spark, folder))
        query = run.write(checkpoint=tmp_path / "state", changelog=tmp_path / "out", available_now=True)
        with readable_errors():
            query.awaitTermination()
        local = plan.run(table.slice(0, count)).suppress_buffer()
        for found in (run.suppress_buffer(), run.suppress_buffer(query)):
            assert found.table().toArrow().to_pylist() == local.table().to_pylist()
            assert (found.most_records, repr(found)) == (local.most_records, repr(local))
            if buffer == 2:
                assert found.most_bytes == local.most_bytes > 0
            else:
                with pytest.raises(NotBuilt, match=r"only counts bytes that are limited; .*max_bytes=…"):
                    _ = found.most_bytes
        if count == 400:
            assert len(local.table()) > 5
            (write_files(table.slice(400), tmp_path / "rest", []) / "00000.parquet").rename(folder / "later.parquet")


def test_what_waits_is_only_told_of_a_query_with_suppress_and_a_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    stream = read_stream(spark, write_files(records(1).slice(0, 10), tmp_path / "in", []))
    with pytest.raises(InvalidArgument, match="this plan holds no results back"):
        BASE.count().stream(stream).suppress_buffer()
    run = BASE.count().suppress("until_window_closes").stream(stream)
    with pytest.raises(InvalidArgument, match="no query of this run has reported progress yet"):
        run.suppress_buffer()
    run_through(run.events(), tmp_path / "of their own")
    with pytest.raises(InvalidArgument, match=r"what waits is read from the checkpoint; got query .*run\.write"):
        run.suppress_buffer()
