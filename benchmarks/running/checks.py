"""Sides of a case answer the same question: a fast wrong answer is no result."""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchmarks.model import Case
from benchmarks.running.process import Measured

ROWS, NEARLY = 0.001, 0.01


def difference(case: Case, found: Sequence[Measured]) -> str:
    """What differs between the first side and another one, in words; empty where they agree as far as they must."""
    if not case.same:
        return ""
    rows, records = (ROWS, 0.0) if case.same == "records" else (NEARLY, NEARLY)
    one = found[0]
    for side, other in zip(case.sides[1:], found[1:], strict=True):
        if other.is_out_of_memory:
            continue
        if not math.isclose(one.rows, other.rows, rel_tol=rows):
            return f"{one.rows:,} rows in {case.sides[0].name}, {other.rows:,} in {side.name}"
        if not math.isclose(one.records, other.records, rel_tol=records):
            return f"{one.records:,} records in {case.sides[0].name}, {other.records:,} in {side.name}"
        if not math.isclose(one.total, other.total, rel_tol=max(records, 1e-9)):
            return f"the sums add up to {one.total} in {case.sides[0].name}, to {other.total} in {side.name}"
    return ""
