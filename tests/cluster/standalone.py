"""A cluster of Spark's own (standalone): a master and workers as processes of this machine, on the loopback alone.

Its executors start a bare Python: what they need comes in an archive, as docs/cluster.md tells.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gzip
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sessionkit.spark.environment.java_home import find_java
from tests.memory import MEMORY

ROOT = Path(__file__).parents[2]
HOST = "127.0.0.1"
KEPT = ROOT / "out" / "cluster"  # what pip brought, for the next time
START_TIMEOUT_S = 60
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
EXECUTOR, DAEMON = "CoarseGrainedExecutorBackend", "pyspark.daemon"
# A worker with a small disk of its own for what its executors keep, which nobody else sees.
SMALL_DISK = 'mount -t tmpfs -o size=64m none "$SPARK_LOCAL_DIRS" && exec "$@"'
CAN_MOUNT = ["unshare", "--mount", "--propagation", "private", "sh", "-c", "mount -t tmpfs none /mnt"]

# What draws, and what speaks with other systems: more files than all the rest.
NOT_NEEDED = (
    "tests", "./plotly*", "./_plotly_utils", "./pygments", "./narwhals", "./pydantic*", "./rich", "./share", "./bin",
    "./pyarrow/include",
)  # fmt: skip
LOAD = """
import sessionkit as sk
from sessionkit.spark import prepare

sessions = sk.SessionWindows(inactivity_gap="1s", grace="1s")
prepare(None, sk.group_by_key("key", timestamp="at").windowed_by(sessions).count())
"""


class ClusterFailed(Exception):
    """A process of the cluster did not do what it should in time; the message ends with its last words."""


def archive(folder: Path, python: str) -> Path:
    """An archive with the wheel of the package as it is now, and all that it needs; loops in it are compiled."""
    KEPT.parent.mkdir(exist_ok=True)
    with (KEPT.parent / "cluster.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another cluster may be starting
        return _archive(folder, python)


def _archive(folder: Path, python: str) -> Path:
    deps = KEPT / "deps"
    wanted = (ROOT / "pyproject.toml").read_bytes() + sys.version.encode()
    pip = [sys.executable, "-m", "pip"]
    _call([*pip, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)])
    [wheel] = folder.glob("*.whl")
    note = KEPT / "wanted"
    if not note.exists() or note.read_bytes() != wanted:
        shutil.rmtree(KEPT, ignore_errors=True)
        _call([*pip, "install", "--quiet", "--target", str(deps), str(wheel), "pandas<3", "protobuf>=6.33.5,<8"])
        note.write_bytes(wanted)
    else:
        shutil.rmtree(deps / "sessionkit", ignore_errors=True)
        shutil.rmtree(next(deps.glob("sessionkit_streams-*.dist-info")), ignore_errors=True)
        _call([*pip, "install", "--quiet", "--no-deps", "--target", str(deps), str(wheel)])
    wheel.unlink()
    _call([python, "-c", LOAD], PYTHONPATH=str(deps))
    made = folder / "deps.tar.gz"  # as it stands: to make it small takes longest
    tar = ["tar", "--format=posix", *(f"--exclude={name}" for name in NOT_NEEDED), "-cf", "-", "-C", str(deps), "."]
    with gzip.open(made, "wb", compresslevel=0) as packed, subprocess.Popen(tar, stdout=subprocess.PIPE) as packing:
        assert packing.stdout is not None
        shutil.copyfileobj(packing.stdout, packed, 1 << 20)
    return made


def _call(command: list[str], **settings: str) -> None:
    done = subprocess.run(
        command, env={**os.environ, **settings}, cwd="/", capture_output=True, text=True, timeout=600, check=False
    )
    if done.returncode:
        raise ClusterFailed(f"{' '.join(command[:6])} …: {(done.stdout + done.stderr)[-2_000:]}")


def wait(until: Callable[[], object], seconds: float, what: str) -> None:
    """Returns once it is true, and raises if that takes longer."""
    end = time.monotonic() + seconds
    while not until():
        if time.monotonic() > end:
            raise ClusterFailed(f"{what}: not within {seconds:.0f} s")
        time.sleep(0.05)


# ---- processes


def processes() -> Iterator[tuple[int, int, int, str]]:
    """(number, parent, session, command) of each process."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError, ValueError):
                stat = Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()
                command = Path("/proc", entry, "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if stat[0] != "Z":
                    yield int(entry), int(stat[1]), int(stat[3]), command


def kill(*numbers: int) -> None:
    for number in numbers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)


class Cluster:
    """The cluster and its folder, both gone at the end. Each worker has one core, and a session of processes."""

    def __init__(self, workers: int = 3, *, port: int = 0) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="sessionkit-cluster-", dir=MEMORY))
        self._sessions: dict[int, subprocess.Popen[Any]] = {}
        self._made = 0
        atexit.register(self.stop)
        (self.folder / "tmp").mkdir()
        import pyspark

        python = self.folder / "python"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(python)], check=True, timeout=60)
        self._home = str(Path(pyspark.__file__).parent)
        self.environment = {
            **{
                name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SPARK", "PYSPARK"))
            },
            "PATH": f"{python / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "JAVA_HOME": str(find_java().home),
            "SPARK_HOME": self._home,
            "SPARK_LOCAL_IP": HOST,
            "PYSPARK_PYTHON": "python3",
            "TMPDIR": str(self.folder / "tmp"),  # what is killed leaves files there
            "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={self.folder / 'tmp'}",
        }
        self.archive = archive(self.folder, str(python / "bin" / "python3"))
        log = self._start(MASTER, "--host", HOST, "--port", str(port), "--webui-port", "0")
        self._log = log
        self._await(lambda: re.search(r"Starting Spark master at (\S+)", log.read_text()), log)
        self.master = re.findall(r"Starting Spark master at (\S+)", log.read_text())[0]
        for _ in range(workers):
            self.add_worker()
        self._await(lambda: log.read_text().count("Registering worker") >= workers, log)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self, *command: str, prefix: tuple[str, ...] = (), **settings: str) -> Path:
        self._made += 1
        log = self.folder / f"{self._made}.log"
        daemon = {
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": f"{QUICK_JAVA} -Dspark.deploy.maxExecutorRetries=-1",
            "SPARK_WORKER_CORES": "1",
            "SPARK_WORKER_MEMORY": "2g",
        }
        with log.open("wb") as file:
            process = subprocess.Popen(
                [*prefix, f"{self._home}/bin/spark-class", *command], cwd=self.folder, stdin=subprocess.DEVNULL,
                stdout=file, stderr=file, start_new_session=True, env={**self.environment, **daemon, **settings},
            )  # fmt: skip
        self._sessions[process.pid] = process
        return log

    def include(self, process: subprocess.Popen[Any]) -> None:
        """Has a process, with its session, end with the cluster."""
        self._sessions[process.pid] = process

    def add_worker(self, *, small_disk: bool = False) -> Path:
        """Starts one more worker; with a small disk it has 64 MiB for shuffles and state."""
        work = self.folder / "work" / str(self._made)
        local = work / "local"
        local.mkdir(parents=True)
        prefix = (*CAN_MOUNT[:-1], SMALL_DISK, "sh") if small_disk else ()
        arguments = ("--host", HOST, "--port", "0", "--webui-port", "0", "--work-dir", str(work))
        self._start(WORKER, *arguments, self.master, prefix=prefix, SPARK_LOCAL_DIRS=str(local))
        return local

    def _await(self, until: Callable[[], object], log: Path) -> None:
        try:
            wait(until, START_TIMEOUT_S, "the start of the cluster")
        except ClusterFailed as error:
            raise ClusterFailed(f"{error}: {log.read_text()[-2_000:]}") from None

    # ---- what can be killed

    def workers(self) -> list[int]:
        return [number for number, _, session, command in processes() if WORKER in command and number in self._sessions]

    def executors(self) -> list[int]:
        return [number for number, _, session, line in processes() if EXECUTOR in line and session in self._sessions]

    def pythons(self) -> list[int]:
        """Python workers in which tasks run: children of a daemon, which are forked from it."""
        found = [each for each in processes() if DAEMON in each[3] and each[2] in self._sessions]
        daemons = {number for number, *_ in found}
        return [number for number, parent, *_ in found if parent in daemons]

    def inside(self, worker: int, path: Path) -> Path:
        """A path as this worker sees it, on its own disk."""
        return Path(f"/proc/{worker}/root{path}")

    def tidy(self) -> None:
        """Removes what executors that are gone had unpacked."""
        running = {os.readlink(f"/proc/{number}/cwd") for number in self.executors()}
        for deps in (self.folder / "work").glob("*/app-*/*/deps"):
            if str(deps.parent) not in running:
                shutil.rmtree(deps, ignore_errors=True)

    def stop(self) -> None:
        """Ends every process of the cluster, whatever state it is in, and removes its folder."""
        atexit.unregister(self.stop)
        for _ in range(3):  # one that is just being started comes up again
            kill(*(number for number, _, session, _ in processes() if session in self._sessions))
        for process in self._sessions.values():
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
