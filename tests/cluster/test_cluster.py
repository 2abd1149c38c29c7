"""Batches and streams on a cluster whose processes are killed, or whose disk is full, end as a local run does."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
from tests.cluster.kills import IN_PART, MARKED, Rounds, shown
from tests.cluster.standalone import CAN_MOUNT, Cluster, ClusterFailed, kill, processes, wait

pytestmark = [pytest.mark.spark, pytest.mark.fault]
KILLED = [("executor", "batch", MARKED), ("worker", "stream", MARKED), ("driver", "stream", "before")]


@pytest.fixture(scope="module")
def rounds() -> Iterator[Rounds]:
    with Cluster() as cluster:
        rounds = Rounds(cluster)
        try:
            yield rounds
        finally:
            rounds.end()


@pytest.mark.parametrize(("kind", "of", "where"), KILLED)
def test_what_is_killed_loses_and_doubles_nothing(rounds: Rounds, kind: str, of: str, where: str) -> None:
    """The worker is replaced by one that joins late."""
    killed = rounds.killed(kind, of, where)
    assert (killed.lost, killed.doubled) == (0, 0), shown([killed])


def test_executors_lost_when_results_are_written_in_part(rounds: Rounds) -> None:
    """Times that tasks took went through the shuffle, so that Spark 4.2 took it for indeterminate and ended the job."""
    killed = rounds.killed("executors", "stream", IN_PART)
    assert (killed.lost, killed.doubled) == (0, 0), shown([killed])


def fill(place: Path) -> None:
    """Takes all the room that is left on a disk."""
    with (place / "full").open("wb", buffering=0) as file:
        try:
            while file.write(bytes(1 << 16)):
                pass
        except OSError as error:
            assert "No space left" in str(error)


@pytest.mark.parametrize("of", ["batch", "stream"])
def test_an_executor_with_a_full_disk(rounds: Rounds, of: str) -> None:
    """Its tasks run elsewhere, or the job says what is the matter, and goes on once there is room."""
    if subprocess.run(CAN_MOUNT, capture_output=True, check=False).returncode:
        pytest.skip("a disk of its own needs the right to mount, in a namespace of its own")
    cluster = rounds.cluster
    executors = set(cluster.executors())
    local = cluster.add_worker(small_disk=True)
    wait(lambda: set(cluster.executors()) - executors, 60, "an executor on the new worker")
    [new] = set(cluster.executors()) - executors
    [worker] = [parent for number, parent, *_ in processes() if number == new]
    disk = cluster.inside(worker, local)
    wait(lambda: any(disk.glob("*/*")), 60, "folders of the executor")
    rounds.do("prepare")
    fill(disk)
    line = rounds.begin(of)
    try:
        place = rounds.finish(line)
    except ClusterFailed as error:
        assert re.search("No space left on device|ENOSPC", f"{error} {rounds.log()}"), error
        os.unlink(disk / "full")
        rounds.say(line)
        place = rounds.finish(line)
    assert rounds.compared(of, place) == (0, 0)
    kill(worker)
    wait(lambda: new not in cluster.executors(), 30, "the end of the executor")
