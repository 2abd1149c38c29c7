"""A stream on Spark that is killed, or whose disk is full, ends with what an undisturbed run gives."""

import contextlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sessionkit as sk
from tests.fault.stream_child import deadly, run_of, start
from tests.optional import SparkSession
from tests.spark.common import assert_same_events, records, write_files

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.fault]

KILLS = int(os.environ.get("SESSIONKIT_KILLS", "1"))
ROOT = Path(__file__).parents[2]
BATCHES = KILLS + 3
SINKS = ("files", "table")
WORKER_KILLS = [0.97, 0.98, 0.99][:KILLS]  # where among the records


def child(folder: Path, *sinks: str) -> list[str]:
    return [sys.executable, "-m", "tests.fault.stream_child", str(folder), *sinks]


def started(command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    """In a process group of its own: its Java and its workers die with it."""
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)


def told(folder: Path) -> str:
    return (folder / "log").read_text()[-3_000:]


def numbers(folder: Path, sink: str, name: str) -> set[int]:
    """The micro-batches that this log of the checkpoint names."""
    return {int(file.name) for file in (folder / "checkpoint" / sink / name).glob("[0-9]*")}


def inside(folder: Path, sink: str) -> bool:
    """Whether a micro-batch is planned and not committed."""
    return bool(numbers(folder, sink, "offsets") - numbers(folder, sink, "commits"))


def killed_inside(folder: Path, process: subprocess.Popen[bytes], sink: str, dice: random.Random) -> list[str]:
    """Kills it inside a micro-batch of `sink`; the sinks for which it was inside one, none if it ended before."""
    # in the one that is done again, or in a later one
    least = len(numbers(folder, sink, "commits")) + dice.choice([0, 0, 1])
    wait = dice.uniform(0, 1.5)
    while process.poll() is None:
        if inside(folder, sink) and len(numbers(folder, sink, "commits")) >= least:
            time.sleep(wait)
            os.killpg(process.pid, signal.SIGSTOP)  # so that what is counted is what is killed
            hit = [name for name in SINKS if inside(folder, name)]
            if sink in hit:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return hit
            os.killpg(process.pid, signal.SIGCONT)
            wait = dice.uniform(0, 0.5)
        time.sleep(0.01)
    return []


def run_to_its_end(folder: Path) -> None:
    """Spark gives a Python worker ten seconds to start; where that was too little the query is started again."""
    for _ in range(5):
        if started(child(folder, *SINKS), folder).wait(timeout=300) == 0:
            return
        if "Python worker failed to connect back" not in told(folder):
            break
    raise AssertionError(told(folder))


def in_files(folder: Path) -> pa.Table:
    """What the sink says was written: files of a batch that was not committed lie beside it."""
    files: list[str] = []
    for log in sorted((folder / "files" / "_spark_metadata").glob("[0-9]*"), key=lambda file: int(file.stem)):
        lines = [json.loads(line) for line in log.read_text().splitlines()[1:]]
        if log.suffix == ".compact":
            files = []
        files += [line["path"].removeprefix("file://") for line in lines]
    return pa.concat_tables(pq.read_table(file, partitioning=None) for file in files)


def in_table(folder: Path) -> pa.Table:
    """Everything that lies there."""
    folders = sorted((folder / "table").iterdir(), key=lambda folder: int(folder.name.removeprefix("batch=")))
    return pa.concat_tables(pq.read_table(part, partitioning=None) for part in folders)


def input_of(table: pa.Table, folder: Path, batches: int) -> None:
    write_files(table, folder / "in", [len(table) * place // batches for place in range(1, batches)])


def mark(folder: Path, local: sk.Run, places: list[float]) -> None:
    """At the records that stand there among those that count, each of which is handed to a Python function."""
    records = local.trace.records()
    offsets = records.filter(pa.compute.not_equal(records["decision"], "dropped"))["offset"]
    (folder / "kills").mkdir()
    for place in places:
        (folder / "kills" / str(offsets[int(place * len(offsets))].as_py())).touch()


def test_killed_drivers_and_workers_lose_and_double_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Drivers inside micro-batches, then workers inside tasks: these are tried again, and the last query ends."""
    table, dice = records(7), random.Random(7)
    input_of(table, tmp_path, BATCHES)
    local = deadly(tmp_path).run(table)
    kills = dict.fromkeys(SINKS, 0)
    for kill in range(KILLS):
        process = started(child(tmp_path, *SINKS), tmp_path)
        hit = killed_inside(tmp_path, process, SINKS[kill % 2], dice)
        assert hit, f"it ended after {kill} kills: {told(tmp_path)}"
        for sink in hit:
            kills[sink] += 1
    mark(tmp_path, local, WORKER_KILLS)
    run_to_its_end(tmp_path)
    assert not [*(tmp_path / "kills").iterdir()]
    on_disk = len([*(tmp_path / "files").glob("*.parquet")])
    with capsys.disabled():
        each = ", ".join(f"{count} inside one that writes the {sink}" for sink, count in kills.items())
        print(f"\n{KILLS} drivers killed in {BATCHES} micro-batches ({each}), {len(WORKER_KILLS)} workers; ", end="")
        print(f"{on_disk} files on disk; 0 lost, 0 twice")
    for sink, read in zip(SINKS, (in_files, in_table), strict=True):
        assert numbers(tmp_path, sink, "commits") == set(range(BATCHES))
        assert_same_events(read(tmp_path), local)


def test_a_killed_worker_that_is_not_tried_again(spark: SparkSession, tmp_path: Path) -> None:
    """`local[2]` tries nothing again: the query fails, and goes on where it was."""
    table = records(7)
    input_of(table, tmp_path, 3)
    local = deadly(tmp_path).run(table)
    mark(tmp_path, local, [0.5])
    with pytest.raises(Exception, match="Python worker exited unexpectedly"):
        start(run_of(spark, tmp_path), tmp_path, "table").awaitTermination()
    assert numbers(tmp_path, "table", "commits") == {0}
    start(run_of(spark, tmp_path), tmp_path, "table").awaitTermination()
    assert numbers(tmp_path, "table", "commits") == {0, 1, 2}
    assert_same_events(in_table(tmp_path), local)


# ---- a disk that takes no more


@contextlib.contextmanager
def full(process: int) -> Iterator[None]:
    """No file of this process grows."""
    limits = resource.prlimit(process, resource.RLIMIT_FSIZE)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        yield
    finally:
        resource.prlimit(process, resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_full_disk_stops_the_query_and_room_lets_it_go_on(spark: SparkSession, tmp_path: Path, when: str) -> None:
    """In the second micro-batch: before its state is written, and when only its commit is still to be written."""
    table, java = records(7), spark._jvm.java.lang.ProcessHandle.current().pid()
    input_of(table, tmp_path, 3)
    with contextlib.ExitStack() as stack:
        calls: list[str] = []

        def fill(now: str) -> None:
            calls.append(now)
            if now == when and calls.count(when) == 2:
                stack.enter_context(full(java))

        with pytest.raises(Exception, match="File too large"):
            start(run_of(spark, tmp_path), tmp_path, "table", fill).awaitTermination()
    assert numbers(tmp_path, "table", "commits") == {0}
    assert (tmp_path / "table" / "batch=1" / "_SUCCESS").exists() == (when == "after")
    start(run_of(spark, tmp_path), tmp_path, "table").awaitTermination()
    assert numbers(tmp_path, "table", "commits") == {0, 1, 2}
    assert_same_events(in_table(tmp_path), deadly(tmp_path).run(table))


# A disk of its own for the checkpoint, which grows each time that it is full.
SMALL_DISK = """
checkpoint=$1; shift
mount -t tmpfs -o size=4k none $checkpoint || exit 9
for size in 100k 200k 300k; do
  mount -o remount,size=$size $checkpoint
  "$@" && exit 8
  echo full at $size, committed: $(ls $checkpoint/table/commits)
done
mount -o remount,size=64m $checkpoint
exec "$@"
"""


def test_a_disk_that_is_full_again_and_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A real one: it needs the right to mount (as root of a namespace of its own)."""
    table = records(2)
    input_of(table, tmp_path, 8)
    (tmp_path / "checkpoint").mkdir()
    command = ["unshare", "-Urm", "sh", "-c", SMALL_DISK, "sh", str(tmp_path / "checkpoint"), *child(tmp_path, "table")]
    assert started(command, tmp_path).wait(timeout=900) == 0, told(tmp_path)
    said = (tmp_path / "log").read_text()
    with capsys.disabled():
        print("", *[line for line in said.splitlines() if line.startswith("full at")], sep="\n")
    assert said.count("full at") == 3 and "No space left on device" in said
    assert_same_events(in_table(tmp_path), deadly(tmp_path).run(table))
