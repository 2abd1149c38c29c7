"""A Kafka Streams application beside a broker."""

import contextlib
import json
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.differential.oracle import FLAGS, JAR, MEMORY, OracleFailed, build

STOP_TIMEOUT_S = 30


class LiveApp:
    def __init__(self, process: subprocess.Popen[bytes], errors: Path) -> None:
        self.process, self._errors = process, errors

    def wait_until(self, done: Callable[[], bool], *, seconds: float) -> None:
        """Returns once `done()`.

        Raises:
            OracleFailed: the application is gone, or it takes longer.
        """
        deadline = time.monotonic() + seconds
        while not done():
            if self.process.poll() is not None:
                raise OracleFailed(f"the application ended: {self._errors.read_text(errors='replace')[-2000:]}")
            if time.monotonic() > deadline:
                raise OracleFailed(f"the application was not through after {seconds} s")
            time.sleep(0.1)


@contextlib.contextmanager
def state_folder() -> Iterator[Path]:
    """Where an application keeps its state, from one life to the next."""
    with tempfile.TemporaryDirectory(prefix="live-", dir=MEMORY, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@contextlib.contextmanager
def live_app(spec: dict[str, Any], folder: Path, program: str = "LiveApp") -> Iterator[LiveApp]:
    """Runs it until the block ends, where it is stopped unless it was killed; what it prints is in `folder / "stdout"`.

    `spec` is what the program is told, but for the folder of its state.
    """
    java, errors = build(), folder / "stderr"
    told = json.dumps({**spec, "state_dir": str(folder / "state")})
    command = [java, *FLAGS, f"-Djava.io.tmpdir={folder}", "-cp", str(JAR), f"oracle.{program}", told]
    with errors.open("wb") as err, (folder / "stdout").open("wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=err)
    try:
        yield LiveApp(process, errors)
        process.communicate(timeout=STOP_TIMEOUT_S)  # closes its stdin, which ends it
        if process.returncode not in (0, -signal.SIGKILL):
            raise OracleFailed(f"the application failed: {errors.read_text(errors='replace')[-2000:]}")
    finally:
        process.kill()
        process.communicate()
