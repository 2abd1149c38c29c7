"""Axes of lengths of time: round places in the units that a person would choose, logarithmic where most is short."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from sessionkit.base.durations import show_duration

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
ROUND_MS = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(count * SECOND for count in (1, 2, 5, 10, 15, 30)),
    *(count * MINUTE for count in (1, 2, 5, 10, 15, 30)),
    *(count * HOUR for count in (1, 2, 3, 6, 12)),
    *(count * DAY for count in (1, 2, 3, 5, 7, 14, 30, 60, 90, 180, 365, 730, 1_825, 3_650)),
)
MOST_TICKS = 9
SHORT_PART = 10  # a linear axis would show most lengths in less than this part of it


def takes_logarithm(lengths_ms: npt.NDArray[np.int64]) -> bool:
    """Whether nine of ten lengths lie in the first tenth of what is between the smallest and the largest."""
    positive = np.sort(lengths_ms[lengths_ms > 0])
    if not len(positive):
        return False
    low, high = int(positive[0]), int(positive[-1])
    most = int(positive[int(0.9 * (len(positive) - 1))])
    return high >= 2 * low and (most - low) * SHORT_PART < high - low


def lengths_axis(low_ms: float, high_ms: float, *, logarithmic: bool = False) -> dict[str, Any]:
    """Settings of an axis from one length to another, whose places are in milliseconds.

    Args:
        low_ms: above 0 where the axis is logarithmic.
    """
    ticks = _far_apart(low_ms, high_ms) if logarithmic else _evenly(low_ms, high_ms)
    ends = [math.log10(low_ms), math.log10(high_ms)] if logarithmic else [low_ms, high_ms]
    return {
        "type": "log" if logarithmic else "linear",
        "range": ends,
        "tickmode": "array",
        "tickvals": ticks,
        "ticktext": [show_duration(ms) for ms in ticks],
    }


def _evenly(low_ms: float, high_ms: float) -> list[int]:
    span = max(high_ms - low_ms, 1)
    step = next((step for step in ROUND_MS if span / step <= MOST_TICKS), 0)
    step = step or math.ceil(span / MOST_TICKS / (10 * 365 * DAY)) * 10 * 365 * DAY
    return list(range(math.ceil(max(low_ms, 0) / step) * step, math.floor(high_ms) + 1, step))


def _far_apart(low_ms: float, high_ms: float) -> list[int]:
    least = (math.log10(high_ms) - math.log10(low_ms)) / MOST_TICKS
    found: list[int] = []
    for ms in _longer(ROUND_MS, high_ms):
        if low_ms <= ms <= high_ms and (not found or math.log10(ms / found[-1]) >= least):
            found.append(ms)
    return found


def _longer(lengths_ms: Iterable[int], high_ms: float) -> Iterable[int]:
    """The lengths, and multiples of ten years beyond them."""
    last = 1
    for last in lengths_ms:
        yield last
    while (last := 10 * last) <= high_ms:
        yield last
