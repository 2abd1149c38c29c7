"""Round by round: all sides of a case right after each other, so that the machine's mood is in all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.model import Case, Topic
from benchmarks.running.checks import difference
from benchmarks.running.kept import Kept
from benchmarks.running.process import measured


def run_rounds(topics: Sequence[Topic], kept: Kept, rounds: int, ends_at: float, say: Callable[[str], None]) -> None:
    """Measures what is not kept yet. No case is begun after `ends_at` (seconds, `time.monotonic`).

    Raises:
        ValueError: Two sides of a case gave different answers.
    """
    for number in range(rounds):
        for topic in topics:
            for case in topic.cases:
                if time.monotonic() > ends_at:
                    return
                _measure(topic, case, number, kept, say)


def _read_once(data: Path) -> None:
    """Leaves the files in the system's memory, so that the first side does not pay for the disk."""
    for path in data.rglob("*") if data.is_dir() else [data] * data.exists():
        if path.is_file():
            with path.open("rb") as file:
                while file.read(2**24):
                    pass


def _measure(topic: Topic, case: Case, number: int, kept: Kept, say: Callable[[str], None]) -> None:
    missing = [side for side in case.sides if (topic.name, case.title, side.name, number) not in kept]
    if not missing:
        return
    path = str(case.data())
    _read_once(Path(path))
    for side in missing:
        kept.add((topic.name, case.title, side.name, number), measured(side, path))
    names = [side.name for side in case.sides]
    found = kept.rounds(topic.name, case.title, names)[-1]
    times = ", ".join(f"{name} {each.warm:.2f} s" for name, each in zip(names, found, strict=True))
    say(f"round {number + 1}, {topic.name}, {case.title}: {times}")
    if wrong := difference(case, found):
        raise ValueError(f"{topic.name}, {case.title}: {wrong}")
