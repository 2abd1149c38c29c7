"""How times lie: whether they rise from row to row, and which are far off all others, as of clocks never set."""

from __future__ import annotations

import numpy as np

from sessionkit.base.arrays import Codes, Flags, Longs
from sessionkit.base.durations import INT64_MAX

FEW = 0.01  # share of the records that can be far off all others
SAMPLE = 10_000  # rows in which a trend shows
LONG_BLOCK = 20  # rows on average in each of several histories
SPREADS = 3  # as far off as this many times the spread of those that it is compared with


def usual_span(times: Longs, counts: Longs | None = None) -> tuple[int, int]:
    """Nearly all times lie from the first of these to the second; 0 and the largest number where none lies far off.

    Outside it are few, and they lie off by several times its length: an older history, or one that begins slowly, is
    inside. `counts` says how many records have each time, which rise then; one, without it.
    """
    few = int(FEW * (len(times) if counts is None else counts.sum()))
    if not few:
        return 0, INT64_MAX
    if counts is None:
        parted = np.partition(times, (few, len(times) - 1 - few))
        return usual_span_between(np.sort(parted[: few + 1]), np.sort(parted[-few - 1 :]))
    first, last = (int(np.searchsorted(np.cumsum(each), few, side="right")) + 1 for each in (counts, counts[::-1]))
    enough = np.minimum(counts, few + 1)
    low, high = np.repeat(times[:first], enough[:first]), np.repeat(times[-last:], enough[-last:])
    return usual_span_between(low[: few + 1], high[-few - 1 :])


def usual_span_between(low: Longs, high: Longs) -> tuple[int, int]:
    """`usual_span` of the times of which these are the lowest and the highest, one more on each side than are few."""
    before, after = high[0] - low[1:], high[:-1] - low[-1]  # the length without those that may be far off
    starts = low[1:][(np.diff(low) > SPREADS * before) & (before > 0)]
    ends = high[:-1][(np.diff(high) > SPREADS * after) & (after > 0)]
    return int(starts.max(initial=0)), int(ends.min(initial=INT64_MAX))


def repeated(keys: Codes, times: Longs) -> Flags:
    """True for each record that has the key and the time of one before it."""
    order = np.lexsort((times, keys))  # equal ones in order of their arrival
    again = np.zeros(len(order), np.bool_)
    again[order[1:]] = (np.diff(keys[order]) == 0) & (np.diff(times[order]) == 0)
    return again


def trend(times: Longs, *, within: bool = False) -> float:
    """From -1 (times fall from row to row) to 1 (they rise), by ranks, in a sample.

    `within`: only inside stretches of rows that lie before all later ones; 1 if few rows are in a long stretch.
    """
    some = times[np.linspace(0, len(times) - 1, min(len(times), SAMPLE)).astype(np.intp)]
    ranks, places = np.argsort(np.argsort(some, kind="stable"), kind="stable"), np.arange(len(some))
    starts = np.append(-1, np.maximum.accumulate(ranks)[:-1]) == places - 1 if within else places == 0
    size = np.diff(np.flatnonzero(starts), append=len(some))
    least = LONG_BLOCK if within else 2
    is_long, long = np.repeat(size, size) >= least, size[size >= least].astype(np.float64)
    if within and 2 * np.count_nonzero(is_long) < len(some):
        return 1.0
    return float(1 - 6 * ((ranks - places)[is_long].astype(np.float64) ** 2).sum() / (long**3 - long).sum())
