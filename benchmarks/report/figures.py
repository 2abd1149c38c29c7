"""From what was measured to the figures of a table: medians over the rounds, and ratios side by side in a round."""

from __future__ import annotations

import statistics
from typing import NamedTuple

from benchmarks.model import Case, Topic
from benchmarks.running.kept import Kept
from benchmarks.running.process import Measured


class Figures(NamedTuple):
    """One side of a case."""

    side: str
    seconds: float  # median of the rounds
    least: float
    most: float
    ratio: float  # median, round by round, of its time to the time of the first side; 1 for that one
    least_ratio: float
    most_ratio: float
    first: float  # seconds of the first call of a process, median
    peak_mib: float
    cores: float
    rows: int
    rounds: int


def figures(topic: Topic, case: Case, kept: Kept) -> list[Figures]:
    """The sides of a case, in their order; none where no round is complete."""
    rounds = kept.rounds(topic.name, case.title, [side.name for side in case.sides])
    if not rounds:
        return []
    found = []
    for number, side in enumerate(case.sides):
        mine = [each[number] for each in rounds]
        seconds = [_seconds(case, each) for each in mine]
        ratios = [_cost(case, each[number]) / _cost(case, each[0]) for each in rounds]
        found.append(
            Figures(
                side.name,
                statistics.median(seconds),
                min(seconds),
                max(seconds),
                statistics.median(ratios),
                min(ratios),
                max(ratios),
                statistics.median(each.first for each in mine),
                max(each.peak_mib for each in mine),
                statistics.median(each.cores for each in mine),
                mine[0].rows,
                len(rounds),
            )
        )
    return found


def _seconds(case: Case, found: Measured) -> float:
    return found.first if case.first else found.warm


def _cost(case: Case, found: Measured) -> float:
    return _seconds(case, found) / (max(found.rows, 1) if case.a_row else 1)
