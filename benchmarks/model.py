"""What is timed: cases, each of one or more sides that do the same work on the same data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.shapes import shape

OURS = "sessionkit"


@dataclass(frozen=True)
class Side:
    """One way to do the work of a case: `job` is a module of `benchmarks.jobs` and a function in it."""

    name: str
    job: str
    options: Mapping[str, Any] = field(default_factory=dict)
    repeats: int = 2  # warm calls after the first one; none where only the first one counts

    @property
    def slow(self) -> Side:
        """The same with one warm call: for what takes many seconds."""
        return Side(self.name, self.job, self.options, 1)


@dataclass(frozen=True)
class Case:
    """The sides of a case, the first of which is ours; `same` says how far their results must agree.

    "records": all records, and their sum, are in the results of all sides, and rows differ by at most one in a thousand
    (a late record finds its session closed, where a peer that knows no lateness joins it); "nearly": within 1 %, where
    one side drops late records and the other does not; "": they are different things, which the title says.
    """

    title: str
    data: Callable[[], Path]
    records: int
    sides: tuple[Side, ...]
    same: str = ""
    a_row: bool = False  # the times are compared a row of the result, not as a whole
    first: bool = False  # the first call of the process is compared, import included
    kind: str = ""  # cases of one kind, on data that was drawn, have a line together: the median and the worst


@dataclass(frozen=True)
class Topic:
    """A section of the results: what its cases have in common."""

    name: str
    title: str
    words: str
    cases: tuple[Case, ...]
    growth: bool = False  # each case is held against the first one, in nanoseconds a record
    with_first: bool = False  # the first call of a process is told, too


def of(name: str, records: int, **options: Any) -> dict[str, Any]:
    """The data of a case, as its keyword arguments."""
    return {"data": partial(shape, name, records, **options), "records": records}
