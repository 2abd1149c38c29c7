"""A job in a process of its own, which prints what it measured as one line of JSON."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
from typing import NamedTuple

from benchmarks.model import OURS, Side

NO_MEMORY = ("OutOfMemoryError", "MemoryError", "Out of Memory")  # as Java, Python and DuckDB say it


class Measured(NamedTuple):
    """What one process did."""

    first: float  # seconds of the first call of the process, with what it imports
    warm: float  # seconds of the fastest call after the first one; of the first call where there is no other
    cores: float  # processor seconds of that call over its seconds
    peak_mib: float
    rows: int
    records: int  # in the rows: the sum of the counts; -1 where there are none
    total: float  # the sum of the sums

    @property
    def is_out_of_memory(self) -> bool:
        """Whether it ended without a result: all its figures are 0 then, and its times have no end."""
        return self.warm == math.inf


def measured(side: Side, path: str) -> Measured:
    """Runs a side in a fresh process; another one than ours may run out of memory.

    Raises:
        RuntimeError: The process failed; with the end of what it wrote.
    """
    asked = json.dumps({"job": side.job, "path": path, "options": dict(side.options), "repeats": side.repeats})
    command = [sys.executable, "-m", "benchmarks.running.child", asked]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    has_no_memory = done.returncode == -signal.SIGKILL or any(words in done.stderr for words in NO_MEMORY)
    if done.returncode and side.name != OURS and has_no_memory:
        return Measured(math.inf, math.inf, 0, 0, 0, 0, 0)
    if done.returncode:
        raise RuntimeError(f"{side.name} ({side.job}) ended with {done.returncode}:\n{done.stderr[-3_000:]}")
    return Measured(**json.loads(done.stdout.splitlines()[-1]))
