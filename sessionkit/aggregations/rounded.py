"""Values of seven binary digits and how often each is there: quantiles within 0.8 % in a bounded size.

Rounding keeps the order of values, so the value of each rank is that of all values, rounded. However many there are, at
most 64 are different between a number and its double. They stand in order, so what is kept is the same in whatever
order records come and sessions merge.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import accumulate
from typing import Any, TypedDict

import numpy as np
import pyarrow as pa

from sessionkit.aggregations.built_ins import as_floats
from sessionkit.aggregations.list_columns import damaged_count
from sessionkit.base.arrays import Floats, arrow_array, is_null, numpy_array

_DROPPED = 46  # of the 52 binary digits that a float has behind the first one


class Counted(TypedDict):
    """A value, and how often it is there."""

    value: float
    count: int


def rounded_column(column: pa.Array) -> pa.Array:
    """The nearest floats of seven binary digits; nulls stay."""
    floats = as_floats(column)
    return arrow_array(rounded(numpy_array(floats, absent=0.0)), is_null(floats) if floats.null_count else None)


def rounded(values: Floats) -> Floats:
    """The nearest floats of seven binary digits, without -0.0; those that are nearest to infinity stay as they are."""
    bits = values.view(np.int64) + (1 << _DROPPED - 1)
    near = (bits & -(1 << _DROPPED)).view(np.float64)
    near = np.where(np.isfinite(near), near, values) + 0.0
    return np.where(np.isnan(values), np.nan, near)


def seen(key: Any, value: Any, held: list[Counted]) -> list[Counted]:
    """What is held with one value more, which is rounded."""
    if value is None:
        return held
    near = rounded(np.array([float(value)])).item()
    return joined(key, held, [Counted(value=near, count=1)])


def joined(key: Any, older: list[Counted], newer: list[Counted]) -> list[Counted]:
    """What both hold, in order, each value once."""
    counts: dict[float, int] = {}
    for each in (*older, *newer):
        if each["count"] < 1:
            raise damaged_count(each["count"])
        value = each["value"] if each["value"] == each["value"] else math.nan  # which is itself, but no other NaN
        counts[value] = counts.get(value, 0) + each["count"]
    last = sorted(counts.items(), key=lambda item: (item[0] != item[0], item[0]))
    return [Counted(value=value, count=count) for value, count in last]


def quantile_of(held: list[Counted], q: float) -> float | None:
    """As pandas has it: between two values in proportion."""
    if not held or held[-1]["value"] != held[-1]["value"]:
        return math.nan if held else None
    ends = list(accumulate(each["count"] for each in held))
    place = q * (ends[-1] - 1)
    low = int(place)
    share, lower = place - low, held[bisect_right(ends, low)]["value"]
    return lower + (held[bisect_right(ends, low + 1)]["value"] - lower) * share if share else lower
