"""One query to several places, what is known of it while it runs, and that a micro-batch run again doubles nothing."""

import contextlib
import json
import os
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from sessionkit.errors import InvalidArgument
from sessionkit.spark.query.running import SETTING, choice_in_words, suggested
from tests.spark.common import BASE, WINDOWS, metrics_that_spark_counts, plan_of, read_stream, records, write_files

pytest.importorskip("pyspark", reason="pyspark is not installed")
from pyspark.sql.streaming.listener import StreamingQueryProgress

from tests.optional import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("strategy", ["on_window_update", "on_window_close"])
def test_several_views_from_one_query(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strategy: str
) -> None:
    """A sink that fails once is called again; nothing is lost or doubled, and the counters are those of a local run."""
    read_field_by_field: list[object] = []  # half a second of CPU time each
    monkeypatch.setattr(StreamingQueryProgress, "fromJObject", read_field_by_field.append)
    table, plan = records(2), plan_of(WINDOWS["session"], strategy)
    run = plan.stream(read_stream(spark, write_files(table, tmp_path / "in", [400, 800])))
    local = plan.run(table)
    calls: list[int] = []

    def failing(rows: DataFrame, number: int) -> None:
        calls.append(number)
        if calls == [0, 1]:
            raise OSError("no room")

    def start() -> None:
        query = run.write(
            checkpoint=tmp_path / "checkpoint",
            events=str(tmp_path / "events"),
            changelog=tmp_path / "changelog",
            dropped=failing,
            available_now=True,
            name="clicks",
        )
        query.awaitTermination()

    with contextlib.suppress(Exception):
        start()
    assert calls == [0, 1]
    assert "failed" in run.progress().line()
    start()
    assert calls == [0, 1, 1, 2]
    events = spark.read.parquet(str(tmp_path / "events"))
    assert sorted(row[0] for row in events.select("batch").distinct().collect()) == [0, 1, 2]
    sent = spark.read.parquet(str(tmp_path / "changelog"))
    for got, expected in (
        (sent, local.changelog()),
        (events.where("what <> 'dropped'"), local.changelog()),
        (events.where("what = 'dropped'"), local.dropped(missing_grace=False)),
    ):
        rows = got.select(*expected.column_names).toArrow()
        assert sorted(map(repr, rows.to_pylist())) == sorted(map(repr, expected.cast(rows.schema).to_pylist()))
    counted, metrics = run.metrics(), local.metrics()
    assert counted.pop("windows-in-state") > 0
    assert counted == metrics
    for level in ("info", "debug"):
        assert run.kafka_metrics(level=level).to_pylist() == metrics_that_spark_counts(local, level)
    progress = run.progress()
    assert not read_field_by_field
    assert progress.ended
    assert "clicks: micro-batch 2" in progress.line()
    assert progress.retention_ms == run._retention_ms
    assert sorted(progress.partitions) == sorted(set(table["partition"].to_pylist()))
    for spent in ("unpack_us", "state_us", "engine_us"):
        assert sum(getattr(each, spent) for each in progress.partitions.values()) > 0, spent
    for spent in ("read_us", "pack_us"):
        assert all(getattr(each, spent) > 0 for each in progress.batches), spent
    for number, each in progress.partitions.items():
        mine = local.trace.records().filter(pa.compute.equal(local.trace.records()["partition"], number))
        assert each.stream_time_ms == pa.compute.max(mine["stream_time_ms"]).as_py()
        assert each.position == pa.compute.max(mine["offset"]).as_py()


def test_a_folder_is_replaced_by_its_own_query_alone(spark: SparkSession, tmp_path: Path) -> None:
    """`batch=0` of another query, and what a user put there, went without a word."""
    run = BASE.count().stream(read_stream(spark, write_files(records(1).slice(0, 10), tmp_path / "in", [])))
    out = tmp_path / "out"

    def start(checkpoint: str) -> None:
        run.write(checkpoint=tmp_path / checkpoint, events=out, available_now=True).awaitTermination()

    start("a")
    written, rows = sorted(path.name for path in (out / "batch=0").iterdir()), spark.read.parquet(str(out)).count()
    assert sorted(path.name for path in out.iterdir()) == ["batch=0"]
    told = rf"^another query wrote its results here; got .*/out/batch=0, by the query with the checkpoint {tmp_path}/a "
    with pytest.raises(InvalidArgument, match=told + r"\(id \S+\); another folder, or the checkpoint of that query"):
        start("b")
    (tmp_path / "a" / "commits" / "0").unlink()  # as after a kill before Spark noted that the micro-batch was done
    (tmp_path / "a" / "commits" / ".0.crc").unlink()
    start("a")
    again = sorted(path.name for path in (out / "batch=0").iterdir())
    assert len(again) == len(written) and again != written
    assert spark.read.parquet(str(out)).count() == rows >= 10

    (out / "batch=0" / "mine.csv").write_text("mine", encoding="utf-8")
    (tmp_path / "a" / "commits" / "0").unlink()
    (tmp_path / "a" / "commits" / ".0.crc").unlink()
    with pytest.raises(Exception, match=r"in the way; got .*/out/batch=0/mine\.csv"):
        start("a")
    assert (out / "batch=0" / "mine.csv").read_text(encoding="utf-8") == "mine"
    assert sorted(path.name for path in out.iterdir()) == ["batch=0"]


def test_what_write_refuses(spark: SparkSession, tmp_path: Path) -> None:
    run = BASE.count().stream(read_stream(spark, write_files(records(1).slice(0, 10), tmp_path / "in", [])))
    with pytest.raises(InvalidArgument, match="somewhere to write to"):
        run.write(checkpoint=tmp_path)
    with pytest.raises(InvalidArgument, match="sends no final results"):
        run.write(checkpoint=tmp_path, finals=tmp_path / "finals")
    with pytest.raises(InvalidArgument, match=r"every='1s'"):
        run.write(checkpoint=tmp_path, events=tmp_path / "out", every="1s", available_now=True)
    with pytest.raises(InvalidArgument, match="no query of this run has reported progress yet"):
        run.metrics()


def partitions_of(checkpoint: Path, batch: int) -> tuple[str, int]:
    """What the checkpoint says of its state: by the offsets of a micro-batch, and by its folders."""
    told = json.loads((checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()[1])
    return told["conf"][SETTING], sum(path.name.isdigit() for path in (checkpoint / "state" / "0").iterdir())


def test_write_chooses_the_state_partitions_of_a_new_query(unset: SparkSession, tmp_path: Path) -> None:
    table = records(3).slice(0, 60)
    run = BASE.count().stream(read_stream(unset, write_files(table.slice(0, 40), tmp_path / "in", [])))
    assert repr(run).endswith("a new query started by write() keeps it in 2 state partitions, for 2 cores")

    def write(checkpoint: str) -> Path:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            place = {"checkpoint": tmp_path / checkpoint, "events": tmp_path / f"{checkpoint} events"}
            run.write(**place, available_now=True).awaitTermination()
        return tmp_path / checkpoint

    unset.conf.set(SETTING, "3")
    assert "state partition" not in repr(run)
    assert partitions_of(write("mine"), 0) == ("3", 3), "what the user set stays"
    unset.conf.unset(SETTING)
    later = write_files(table.slice(40), tmp_path / "more", []) / "00000.parquet"
    os.utime(later, (1_700_000_009,) * 2)
    later.rename(tmp_path / "in" / "later.parquet")
    assert partitions_of(write("mine"), 1) == ("3", 3), "a checkpoint keeps its number"
    assert partitions_of(write("new"), 0) == ("2", 2)
    assert SETTING not in unset.conf.getAll and unset.conf.get(SETTING) == "200", "the session is as it was"


def test_a_query_of_the_users_own_is_told_what_to_set(unset: SparkSession, tmp_path: Path) -> None:
    run = BASE.count().stream(read_stream(unset, write_files(records(1).slice(0, 10), tmp_path / "in", [])))
    for view in (run.events, run.changelog, run.dropped):
        with pytest.warns(UserWarning, match=r'in 200 partitions for ever[^\n]+\n.+partitions", 2\) \(for 2 cores\)'):
            view()
    unset.conf.set(SETTING, "200")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        run.events()


@pytest.mark.parametrize(
    ("master", "cores", "number"),
    [("local[1]", 1, 1), ("local[*]", 12, 16), ("local[*]", 500, 128), ("yarn", 2, 16), ("k8s://https://host", 40, 64)],
)
def test_the_number_of_state_partitions_is_a_power_of_two_for_the_cores(master: str, cores: int, number: int) -> None:
    context = SimpleNamespace(master=master, defaultParallelism=cores)
    session: Any = SimpleNamespace(_sc=context)
    assert suggested(session)[0] == number


def test_a_run_can_be_shown_after_spark_has_stopped() -> None:
    stopped: Any = SimpleNamespace(_sc=SimpleNamespace(_jsc=None))
    assert choice_in_words(stopped) == ""
