"""Kafka Streams as a process: built when its sources are newer, started once, asked case after case."""

import fcntl
import json
import os
import queue
import re
import shutil
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.memory import MEMORY

FOLDER = Path(__file__).parent.parent / "oracle"
KAFKA_VERSION, OLDER_VERSIONS = "4.4.0", ("4.3.1", "3.9.2")
JAR = FOLDER / "target" / "oracle.jar"
OLDEST_JAVA = 17
ANSWER_TIMEOUT_S = 300
FLAGS = ("-XX:+UseSerialGC", "-Xmx1g", "-XX:-UsePerfData", "-XX:TieredStopAtLevel=1")


class OracleUnavailable(Exception):
    """What is missing on this machine."""


class OracleFailed(Exception):
    """The process ended, or gave no answer."""


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not Path(java).exists():
        raise OracleUnavailable(f"Java {OLDEST_JAVA} or newer is not installed")
    version = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', version)
    if found is None or int(found[1]) < OLDEST_JAVA:
        raise OracleUnavailable(f"Java {OLDEST_JAVA} or newer is needed; {java} says {version.strip()[:60]!r}")
    return java


def target(version: str) -> Path:
    """Where the program for this version of Kafka is built."""
    return FOLDER / ("target" if version == KAFKA_VERSION else f"target-{version}")


def _is_built(version: str) -> bool:
    sources, built = [FOLDER / "pom.xml", *(FOLDER / "src").rglob("*.java")], target(version) / "built"
    is_there = (target(version) / JAR.name).exists() and built.exists()
    return is_there and all(built.stat().st_mtime >= source.stat().st_mtime for source in sources)


def build(version: str = KAFKA_VERSION) -> str:
    """Builds the jar if need be; the Java that runs it.

    Raises:
        OracleUnavailable: no Java, or nothing to build with.
        OracleFailed: the build failed; the message is Maven's.
    """
    java = _java()
    with open(FOLDER / "pom.xml") as lock:  # one build at a time
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _is_built(version):
            if shutil.which("mvn") is None:
                raise OracleUnavailable("Maven (mvn) is not installed, and tests/oracle is not built yet")
            options = {"kafka.version": version, "target": target(version).name}
            if version.startswith("3."):  # the application beside a broker uses what 3.9 had not yet
                options["without"] = "oracle/LiveApp.java"
            command = ["mvn", "-q", "-B", "package", *(f"-D{name}={value}" for name, value in options.items())]
            made = subprocess.run(
                command, cwd=FOLDER, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
            )
            if made.returncode:
                raise OracleFailed(f"mvn package failed in {FOLDER}:\n{(made.stdout + made.stderr).strip()[-3000:]}")
            (target(version) / "built").touch()  # after a build that went through
    return java


@contextmanager
def skipped_without() -> Iterator[None]:
    """Skips the test whose lines here need Kafka Streams, where it cannot be run."""
    import pytest

    try:
        yield
    except OracleUnavailable as missing:
        pytest.skip(f"{missing}; install Java 17 or newer (a JDK) and Maven, e.g. apt-get install maven")


def running_oracle(*flags: str, version: str = KAFKA_VERSION) -> Iterator["Oracle"]:
    """One process for all tests of a module, as a fixture has it."""
    with skipped_without():
        running = Oracle(*flags, version=version)
    with running:
        yield running


class Oracle:
    """One running oracle, of a version of Kafka; a context manager.

    With `*flags` such as "--exported" it answers another kind of question.
    """

    def __init__(self, *flags: str, version: str = KAFKA_VERSION) -> None:
        java, self.version = build(version), version
        jar = target(version) / JAR.name
        self._scratch = tempfile.TemporaryDirectory(prefix="oracle-", dir=MEMORY, ignore_cleanup_errors=True)
        self._errors = Path(self._scratch.name) / "stderr"
        command = [java, *FLAGS, f"-Djava.io.tmpdir={self._scratch.name}", "-jar", str(jar), *flags, "-", "-"]
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._process.kill()
        self._pipe_in().close()
        self._process.wait()
        self._reader.join()
        self._scratch.cleanup()

    def ask(self, case: dict[str, Any]) -> dict[str, Any]:
        self._send(case)
        return self._answer(case)

    def answers(
        self, cases: Iterable[dict[str, Any]], ahead: int = 16
    ) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Cases with their answers, in order; the next ones are under way meanwhile.

        Take all of them before asking anything else.
        """
        waiting: deque[dict[str, Any]] = deque()
        for case in cases:
            self._send(case)
            waiting.append(case)
            if len(waiting) > ahead:
                yield waiting[0], self._answer(waiting.popleft())
        while waiting:
            yield waiting[0], self._answer(waiting.popleft())

    def _pipe_in(self) -> Any:
        return self._process.stdin

    def _read(self) -> None:
        """Empties the pipe all the time: were it to fill up, both sides would wait for each other."""
        stdout: Any = self._process.stdout
        with stdout:
            for line in stdout:
                self._lines.put(line)
        self._lines.put(b"")

    def _send(self, case: dict[str, Any]) -> None:
        try:
            self._pipe_in().write(json.dumps(case).encode() + b"\n")
            self._pipe_in().flush()
        except BrokenPipeError:
            raise OracleFailed(self._last_words()) from None

    def _answer(self, case: dict[str, Any]) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=ANSWER_TIMEOUT_S)
        except queue.Empty:
            raise OracleFailed(f"no answer to case {case['id']} within {ANSWER_TIMEOUT_S} s") from None
        if not line:
            raise OracleFailed(f"case {case['id']}: {self._last_words()}")
        answer: dict[str, Any] = json.loads(line)
        if (answer["id"], answer["kafka_version"]) != (case["id"], self.version):
            raise OracleFailed(f"asked {case['id']} of {self.version}, answered {answer['id']}")
        return answer

    def _last_words(self) -> str:
        return "the oracle ended: " + self._errors.read_text(errors="replace").strip()[-2000:]
