"""How times lie: whether they rise from row to row, and which are far off all others, as of clocks never set."""

from __future__ import annotations

import numpy as np

from sessionkit.base.arrays import Longs

FEW = 0.01  # share of the records that can be far off all others
SAMPLE = 10_000  # rows in which a trend shows
LONG_BLOCK = 20  # rows on average in each of several histories
SPREADS = 3  # as far off as this many times the spread of those that it is compared with


def usual_span(times: Longs) -> tuple[int, int]:
    """The first and the last of nearly all times; (0, 0) of none.

    Outside it are few, and they lie off by several times its length: an older history, or one that begins slowly, is
    inside.
    """
    few = int(FEW * len(times))
    if not few:
        return int(times.min(initial=0)), int(times.max(initial=0))
    parted = np.partition(times, (few, len(times) - 1 - few))
    low, high = np.sort(parted[: few + 1]), np.sort(parted[-few - 1 :])
    before, after = high[0] - low[1:], high[:-1] - low[-1]  # the length without those that may be far off
    starts = np.flatnonzero((np.diff(low) > SPREADS * before) & (before > 0)) + 1
    ends = np.flatnonzero((np.diff(high) > SPREADS * after) & (after > 0))
    return int(low[starts[-1] if len(starts) else 0]), int(high[ends[0] if len(ends) else -1])


def trend(times: Longs) -> float:
    """From -1 (times fall from row to row) to 1 (they rise), by ranks, in a sample."""
    ranks = _ranks(times)
    return float(np.corrcoef(ranks, np.arange(len(ranks)))[0, 1])


def trend_within(times: Longs) -> float:
    """The trend within stretches of rows that lie before all later ones; 1 if most rows are in no long stretch."""
    ranks = _ranks(times)
    places = np.arange(len(ranks))
    starts = np.flatnonzero(np.append(-1, np.maximum.accumulate(ranks)[:-1]) == places - 1)
    size = np.diff(starts, append=len(ranks))
    is_long, long = np.repeat(size, size) >= LONG_BLOCK, size[size >= LONG_BLOCK].astype(np.float64)
    if 2 * np.count_nonzero(is_long) < len(ranks):
        return 1.0
    return float(1 - 6 * ((ranks - places)[is_long].astype(np.float64) ** 2).sum() / (long**3 - long).sum())


def _ranks(times: Longs) -> Longs:
    some = times[np.linspace(0, len(times) - 1, min(len(times), SAMPLE)).astype(np.intp)]
    return np.argsort(np.argsort(some, kind="stable"), kind="stable")
