"""Flink's SQL, run by a program in Java, which is asked once for each call."""

from __future__ import annotations

import subprocess
from pathlib import Path

from benchmarks.jobs.sessions import Job
from benchmarks.running.machine import ROOT

FOLDER = Path(__file__).parents[1] / "flink"
MEMORY = "12g"


def nexmark(path: str, query: str) -> Job:
    """A query of Nexmark; gives its rows and the bids that they count."""
    from examples.kafka.jars import jars_of
    from sessionkit.spark.environment.java_home import find_java

    java = find_java().home / "bin" / "java"
    jars = jars_of(FOLDER / "pom.xml", ROOT / "out" / "flink")
    flags = (f"-Xmx{MEMORY}", "--add-opens=java.base/java.util=ALL-UNNAMED", "-cp", f"{jars}/*")
    program = subprocess.Popen(
        [str(java), *flags, str(FOLDER / "Nexmark.java"), path, query],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def call() -> tuple[int, int]:
        assert program.stdin is not None and program.stdout is not None
        print(file=program.stdin, flush=True)
        rows, counted = program.stdout.readline().split()
        return int(rows), int(counted)

    return call
