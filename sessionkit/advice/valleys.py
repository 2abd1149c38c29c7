"""Valleys of the pauses between records: lengths that few pauses have, between many shorter and many longer ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from sessionkit.base.arrays import Floats, Longs
from sessionkit.base.durations import DAY, HOUR, MINUTE, SECOND, about
from sessionkit.base.text import plural
from sessionkit.views.loops import decades

STEP, SPREAD = 0.01, 0.12  # decades of a pause's logarithm: a point of the curve, and how far a pause reaches
SURE = 4  # standard errors by which peaks rise above the valley between them: lower ones are chance
EMPTY_DECADES = 0.6  # so wide a stretch without any pause is a valley by itself
FEW_SHARE, EMPTY_COUNT = 0.01, 10  # of the pauses, on each side of it: fewer are few
FINE = 64  # ticks of the data's clock: in pauses as long the tick does not show
BLOCK = 2**20  # pauses of one length that are spread at once
FEW_TAILS = (1, 2)  # how many times as wide as the upper half of what is below it a stretch is, if few are beyond it


@dataclass(frozen=True)
class Valley:
    """A dent in the curve of pauses: few are about this long, more are shorter, and more are longer.

    `empty_ms`: no pause at all is between these two long; then `depth` counts those on the side that has fewer, and
    `is_rare` if hardly any pause is longer.
    """

    gap_ms: int
    depth: float
    empty_ms: tuple[int, int] | None = None
    is_rare: bool = False

    @property
    def clearness(self) -> tuple[bool, float, float]:
        """A wider empty stretch is clearer than a narrow one, and any than a dent that is not empty, or a rare one."""
        shorter, longer = self.empty_ms or (1, 1)
        return not self.is_rare, longer / shorter, self.depth

    def empty_in_words(self) -> str:
        """The empty stretch, and how few pauses are longer if they are few."""
        shorter, longer = map(about, self.empty_ms or (0, 0))
        few = f", and only {plural(int(self.depth), 'is', 'are')} longer" if self.is_rare else ""
        return f"no pause is between {shorter} and {longer} long{few}"


def curve(lengths: Longs, counts: Longs, tick_ms: int) -> tuple[Floats, Longs, Floats]:
    """Steps of the logarithm of a pause, how many pauses are in each, and that with every pause as a bell.

    Bells are those of pauses that are spread over the tick of the data's clock that they were rounded to: else the
    logarithms of 1, 2 and 3 hours were peaks, and what lies between them valleys.
    """
    logs = decades(lengths)
    low = logs.min() - 4 * SPREAD - STEP / 2  # the smallest pause, and ten times it, lie between edges, not on one
    steps = int((logs.max() + 4 * SPREAD - low) / STEP) + 1
    bins: dict[str, Any] = {"bins": steps, "range": (low, low + steps * STEP)}
    found, _ = np.histogram(logs, weights=counts, **bins)
    is_fine = lengths < FINE * tick_ms
    even, _ = np.histogram(logs[~is_fine], weights=counts[~is_fine], **bins)
    for length, count in zip(lengths[is_fine].tolist(), counts[is_fine].tolist(), strict=True):
        for first in range(0, count, BLOCK):
            part = (np.arange(first, min(first + BLOCK, count)) + 0.5) / count - 0.5
            even += np.histogram(decades(length + part * tick_ms), **bins)[0]
    reach = np.arange(-round(4 * SPREAD / STEP), round(4 * SPREAD / STEP) + 1) * STEP
    # in whole numbers, which add up to the same on every machine
    bell = np.round(2**30 * np.exp(-0.5 * (reach / SPREAD) ** 2)).astype(np.int64)
    return low + (np.arange(steps) + 0.5) * STEP, found, np.convolve(even, bell, "same") / bell.sum()


def dents(logs: Floats, height: Floats) -> list[Valley]:
    """The dents between peaks that rise above them by more than chance, with more than a few pauses on each side."""
    share = np.cumsum(height) / height.sum()  # of the pauses, that are shorter
    counts = height * (2 * math.sqrt(math.pi) * SPREAD / STEP)  # of pauses, with the same standard error as the curve
    inner = counts[1:-1]
    peaks = (np.flatnonzero((inner > counts[:-2]) & (inner >= counts[2:])) + 1).tolist()
    while len(peaks) > 1:
        lows = [left + int(np.argmin(counts[left : right + 1])) for left, right in pairwise(peaks)]
        tops = np.minimum(counts[peaks[:-1]], counts[peaks[1:]])
        is_many = np.minimum(share[lows], 1 - share[lows]) >= FEW_SHARE
        sure = np.where(is_many, (tops - counts[lows]) / np.sqrt(tops + counts[lows]), 0)
        least = int(np.argmin(sure))  # the lower of its peaks is left out
        if sure[least] >= SURE:
            depths = tops / np.maximum(counts[lows], 1e-9)
            return [Valley(rounded(10 ** logs[at]), float(each)) for at, each in zip(lows, depths, strict=True)]
        del peaks[least + int(counts[peaks[least + 1]] < counts[peaks[least]])]
    return []


def empty_valleys(lengths: Longs, counts: Longs) -> list[Valley]:
    """Wide stretches without a pause; the gap is the middle, in logarithmic time.

    Many pauses are shorter than the stretch. Where few are longer, it could be the end of a tail, unless those below
    it lie close together.
    """
    logs, below, total = decades(lengths), np.cumsum(counts)[:-1], int(counts.sum())
    beyond, width, many = total - below, np.diff(logs), max(EMPTY_COUNT, FEW_SHARE * total)
    halves = logs[:-1] - logs[np.searchsorted(below, below / 2)]  # from the middle one of those below to the last
    is_clear = (beyond >= many) | (width >= np.where(beyond >= EMPTY_COUNT, *FEW_TAILS) * halves)
    is_empty = (width >= EMPTY_DECADES) & (below >= many) & is_clear
    return [
        Valley(
            rounded(math.sqrt(lengths[at]) * math.sqrt(lengths[at + 1])),
            float(min(below[at], beyond[at])),
            (int(lengths[at]), int(lengths[at + 1])),
            bool(beyond[at] < many),
        )
        for at in np.flatnonzero(is_empty).tolist()
    ]


def rounded(ms: float) -> int:
    """To two digits and a bit: nobody types 19,191,408 ms, and the valley is not so sharp."""
    for unit in (DAY, HOUR, MINUTE, SECOND):
        if ms >= 10 * unit:
            return round(ms / unit) * unit
        if ms >= unit:
            return round(ms / unit * 10) * unit // 10
    return max(1, round(ms))
