"""The commands of docs/cluster.md, as they stand but for the port: an archive, a cluster, a batch and a stream."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
from sessionkit.spark.environment.java_home import find_java
from tests.cluster.standalone import kill, processes
from tests.docs.pages import ROOT, RUN_BY, Page

pytestmark = [pytest.mark.spark, pytest.mark.fault]
PAGE = Page(ROOT / "docs" / "cluster.md")
NEEDED = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "sessionkit", "data")


def free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


def test_the_commands_of_the_page_run_as_they_stand(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    clone.mkdir()
    for name in NEEDED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, clone / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, clone / name)
    bare, programs, temporary = (tmp_path / name for name in ("bare", "programs", "temporary"))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True, timeout=60)
    programs.mkdir()
    temporary.mkdir()
    (programs / "python3").write_text(f'#!/bin/sh\nexec "{bare}/bin/python3" "$@"\n', encoding="utf-8")
    (programs / "python3").chmod(0o755)
    settings = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK", "SPARK"))
    }
    settings |= {
        "PATH": os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]]),
        "JAVA_HOME": str(find_java().home),
        "TMPDIR": str(temporary),
        "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={temporary} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    blocks = [block.code for block in PAGE.blocks_in("sh") if block.mark == RUN_BY]
    assert len(blocks) == 3
    script = "\n".join(["set -eu", *blocks]).replace("7077", str(free_port()))
    shell = subprocess.Popen(
        ["bash", "-c", script], cwd=clone, env=settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        said, _ = shell.communicate(timeout=900)
    finally:
        kill(*(number for number, _, session, _ in processes() if session == shell.pid))
        os.kill(shell.pid, signal.SIGKILL) if shell.poll() is None else None
        shell.wait()
        executors = "".join(log.read_text(encoding="utf-8") for log in clone.glob("work/**/stderr"))
        shutil.rmtree(clone)
    assert shell.returncode == 0, said[-3_000:]
    assert "Python workers have the loops in memory" in said and " ada|" in said
    assert executors and "sessionkit compiles" not in executors
