"""A query on Spark whose driver is killed inside micro-batches ends with what an undisturbed run gives."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sessionkit as sk
from tests.fault.stream_child import PLAN
from tests.spark.test_spark_batch import in_order, records
from tests.spark.test_spark_stream import write_files

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KILLS = int(os.environ.get("SESSIONKIT_KILLS", "3"))
ROOT = Path(__file__).parents[2]
BATCHES = KILLS * 2 + 3


def started(folder: Path) -> subprocess.Popen[bytes]:
    """The query in a process group of its own: its Java and its workers die with it."""
    command = [sys.executable, "-m", "tests.fault.stream_child", str(folder)]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)


def numbers(folder: Path, name: str) -> set[int]:
    """The micro-batches that this log of the checkpoint names."""
    return {int(file.name) for file in (folder / "checkpoint" / name).glob("[0-9]*")}


def killed_inside(folder: Path, child: subprocess.Popen[bytes], dice: random.Random) -> bool:
    """Kills it while a micro-batch is planned and not committed; False if it ended before."""
    least = len(numbers(folder, "commits")) + dice.choice([0, 0, 2])  # in the one that is done again, or in a later one
    wait = dice.uniform(0, 1.5)
    while child.poll() is None:
        if numbers(folder, "offsets") - numbers(folder, "commits") and len(numbers(folder, "commits")) >= least:
            time.sleep(wait)
            os.killpg(child.pid, signal.SIGSTOP)  # so that what is counted is what is killed
            inside = bool(numbers(folder, "offsets") - numbers(folder, "commits"))
            if inside:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                return True
            os.killpg(child.pid, signal.SIGCONT)
            wait = dice.uniform(0, 0.5)
        time.sleep(0.01)
    return False


def committed(folder: Path) -> pa.Table:
    """What the sink says was written: files of a batch that was not committed lie beside it."""
    files: list[str] = []
    for log in sorted((folder / "out" / "_spark_metadata").glob("[0-9]*"), key=lambda file: int(file.stem)):
        lines = [json.loads(line) for line in log.read_text().splitlines()[1:]]
        if log.suffix == ".compact":
            files = []
        files += [line["path"].removeprefix("file://") for line in lines]
    return pa.concat_tables(pq.read_table(file, partitioning=None) for file in files)


def test_kill_inside_micro_batches_loses_and_doubles_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    table = records(2)
    table = table.set_column(1, "at", table["at"].cast(pa.int64()))
    cuts = [len(table) * place // BATCHES for place in range(1, BATCHES)]
    write_files(table, tmp_path / "in", cuts)
    dice, kills = random.Random(7), 0
    while True:
        child = started(tmp_path)
        if kills < KILLS and killed_inside(tmp_path, child, dice):
            kills += 1
            continue
        assert child.wait(timeout=300) == 0, (tmp_path / "log").read_text()[-3_000:]
        break
    on_disk = len([*(tmp_path / "out").glob("*.parquet")])
    with capsys.disabled():
        print(f"\n{kills} kills inside {BATCHES} micro-batches; {on_disk} files on disk")
    assert kills == KILLS
    assert numbers(tmp_path, "commits") == set(range(BATCHES))
    assert_committed(committed(tmp_path), PLAN.run(table))


def assert_committed(events: pa.Table, local: sk.Run) -> None:
    """Each event of the local run once, with the same numbers, and no other."""
    is_dropped = pa.compute.equal(events["what"], "dropped")
    for got, expected in (
        (events.filter(pa.compute.invert(is_dropped)), local.changelog()),
        (events.filter(is_dropped), local.dropped(missing_grace=False)),
    ):
        assert got.num_rows == expected.num_rows
        by = [name for name in ("partition", "offset", "what", "window_start_ms") if name in expected.column_names]
        got, expected = in_order(got, *by), in_order(expected, *by)
        for name in expected.column_names:
            assert got[name].to_pylist() == expected[name].to_pylist(), name
