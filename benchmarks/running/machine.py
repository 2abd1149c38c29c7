"""On what, and with which versions, it was measured."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("numba", "numpy", "pyarrow", "pandas", "polars", "duckdb", "pyspark")


def machine() -> dict[str, str]:
    """What a reader needs to judge the figures."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "processor": f"{_processor()}, {len(os.sched_getaffinity(0))} cores used",
        "memory": f"{memory:.0f} GiB",
        "system": f"{platform.system()}, {platform.machine()}",
        "Python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
    }


def _processor() -> str:
    found = Path("/proc/cpuinfo")
    lines = found.read_text().splitlines() if found.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"


def commit() -> str:
    """The short name of the commit, with "-changed" where the files are not those of the commit."""
    name = _git("rev-parse", "--short", "HEAD")
    return f"{name}-changed" if _git("status", "--porcelain", "--untracked-files=no") else name


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, check=False, capture_output=True, text=True)
    return done.stdout.strip()
