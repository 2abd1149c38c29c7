"""How much memory processes have held, and how long processors worked for them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil


def peak_bytes(process: int | str) -> int:
    """The most that the program of a process has held ("self": of this one); 0 where the system does not tell."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return max((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), default=0)


def peak_mib() -> float:
    """The most that this process and each of those that it started have held, added up."""
    return _of_all(lambda each: peak_bytes(each.pid) or each.memory_info().rss) / 2**20


def processor_seconds() -> float:
    """Of this process and of all that it started, those that have ended, too."""
    return _of_all(lambda each: sum(each.cpu_times()[:4]))


def _of_all(figure: Callable[[psutil.Process], float]) -> float:
    this, total = psutil.Process(), 0.0
    for each in (this, *this.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):  # Spark ends idle workers
            total += figure(each)
    return total
