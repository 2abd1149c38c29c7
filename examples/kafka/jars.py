"""The jars that Maven brings: those of a broker, and those that Spark needs for `format("kafka")`."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
from pathlib import Path

POM = Path(__file__).parent / "pom.xml"
CACHE = Path(__file__).parents[2] / "out" / "kafka"


class Missing(Exception):
    """What this machine lacks, and how it gets it."""


def broker_jars() -> list[Path]:
    """The jars that run a broker."""
    return sorted((jars_of(POM, CACHE) / "broker").glob("*.jar"))


def connector_jars() -> list[Path]:
    """The jars for Spark: `spark.jars`, or ADD JAR in a session that runs."""
    return sorted((jars_of(POM, CACHE) / "connector").glob("*.jar"))


def jars_of(pom: Path, cache: Path) -> Path:
    """The folder of what a pom asks for (it writes to `${jars}`), filled once for each state of the pom.

    Raises:
        Missing: there is no Maven, or it could not get them.
    """
    folder = cache / f"jars-{hashlib.sha256(pom.read_bytes()).hexdigest()[:12]}"
    with pom.open() as lock:  # one process at a time
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            _resolve(pom, folder)
    return folder


def _resolve(pom: Path, folder: Path) -> None:
    if shutil.which("mvn") is None:
        raise Missing("Maven is missing (no mvn on PATH), which brings the jars: apt-get install maven, or the like")
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    command = ["mvn", "-q", "-B", "package", "-f", str(pom), f"-Djars={part}"]
    made = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if made.returncode:
        said = (made.stdout + made.stderr).strip()[-2000:]
        raise Missing(f"Maven could not get the jars of {pom} (is a Maven repository in reach?):\n{said}")
    part.rename(folder)  # whole or not there
