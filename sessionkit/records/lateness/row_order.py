"""Rows that stand in another order than they arrived in, which makes many of them late."""

from __future__ import annotations

import numpy as np

from sessionkit.base.durations import about
from sessionkit.errors import shorten
from sessionkit.records.labels import record_name
from sessionkit.records.lateness.causes import TIES, Cause, LateStream, are_late
from sessionkit.records.time_statistics import LONG_BLOCK, SAMPLE, trend
from sessionkit.records.time_text import YEAR_TURNS

PARTS, FEWEST_IN_PARTS = 10, 1_000  # of the rows, each looked at by itself; fewer rows show no trend in a part


def out_of_order(stream: LateStream) -> Cause | None:
    """Rows that stand newest first, key by key, history by history, or in no order, or whose texts have no year."""
    if turns := next((each for each in stream.batch.remarks if YEAR_TURNS in each), None):
        return Cause(YEAR_TURNS, turns)
    way = stream.sort
    steps, rise = np.diff(stream.times), trend(stream.times)
    back, forward = np.count_nonzero(steps < 0), np.count_nonzero(steps > 0)
    ties = TIES if np.any(steps == 0) else ""
    if (back > forward and rise < -0.5) or (back > 3 * forward and rise < 0.5):
        why, way = "the newest row stands first", way + ties
    elif back > 3 * forward and 10 * stream.late_count > len(stream.times):
        why, way = "the newest row stands first in each of several stretches", way + ties
    elif _stands_key_by_key(stream):
        keys = np.count_nonzero(np.bincount(stream.keys))
        by = shorten(", ".join(stream.source.keys))
        why = f"the {keys:,} keys stand one after another, as in a table sorted by {by}"
    elif blocks := _histories(stream):
        first = blocks[0]
        name, by = record_name(stream.batch, int(stream.rows[first])), about(-int(steps[first - 1]))
        times = "once" if len(blocks) == 1 else f"{len(blocks):,} times"
        why = f"histories stand one behind the other: the rows go back in time {times}, first by {by} at {name}"
    elif abs(rise) < 0.2 and 2 * stream.late_count > len(stream.times):
        why = "the rows stand in no order of time"
    elif len(stream.times) >= FEWEST_IN_PARTS and (at := _shuffled_from(stream)) is not None:
        why = f"a stretch of rows in no order of time begins at {record_name(stream.batch, int(stream.rows[at]))}"
    else:
        return None
    return Cause(why, way, is_order=True)


def in_no_order(stream: LateStream) -> Cause | None:
    """Rows of which most are late, and whose time hardly goes on: no delay does that."""
    is_none = trend(stream.times, within=True) < 0.7 and 2 * stream.late_count > len(stream.times)
    return Cause("the rows stand in no order of time", stream.sort, is_order=True) if is_none else None


def stretches(stream: LateStream) -> Cause | None:
    """Short stretches of several keys, each in order by itself, behind later rows: the nights of service days."""
    steps = np.diff(stream.times, prepend=stream.times[0])
    starts = stream.late & (~np.roll(stream.late, 1) | (steps < -stream.lag_ms))
    stretch = np.cumsum(starts, dtype=np.int64)[stream.late]
    many, keys = int(starts.sum()), stream.keys[stream.late]
    if stream.late_count < 4 * many or many < 2:
        return None
    first = np.flatnonzero(np.diff(stretch, prepend=0))
    is_several = np.maximum.reduceat(keys, first) != np.minimum.reduceat(keys, first)
    of_several = np.diff(first, append=len(keys))[is_several].sum()
    within = are_late(stream.times[stream.late], stream.lag_ms, stretch, many + 1)
    if 4 * of_several < 3 * stream.late_count or 10 * np.count_nonzero(within) > stream.late_count:
        return None
    behind = np.maximum.accumulate(stream.times) - stream.times
    by, name = about(int(np.median(behind[stream.late]))), record_name(stream.batch, int(stream.rows[starts.argmax()]))
    why = f"earlier rows stand behind later ones in {many:,} places, half of them by {by} or more, first at {name}"
    return Cause(why, stream.sort, is_order=True)


def _shuffled_from(stream: LateStream) -> int | None:
    """Where a stretch of rows in no order begins, if other rows stand in order; None if there is no such stretch."""
    some = np.linspace(0, len(stream.times) - 1, min(len(stream.times), SAMPLE)).astype(np.intp)
    parts = np.array_split(some, PARTS)
    steps = [np.diff(stream.times[part]) for part in parts]
    is_back = [np.mean(each < -stream.lag_ms) > 0.25 for each in steps]
    at = next((n for n in range(PARTS) if is_back[n] and abs(trend(stream.times[parts[n]])) < 0.2), None)
    far = 0 if at is None else np.median(np.abs(steps[at])) / 4
    if at is None or min(np.mean(each < -far) for each in steps) > 0.05:
        return None
    start = int(parts[max(at - 1, 0)][0])  # it may begin in the part before
    score = np.where(np.abs(np.diff(stream.times[start : parts[at][-1] + 1], prepend=0)) > far, 1, -1)
    return start + int(np.argmin(np.cumsum(score) - score))


def _stands_key_by_key(stream: LateStream) -> bool:
    """True if nearly each key has its rows in one piece, and is late only because of the keys before it."""
    times, late, starts = stream.times, stream.late, np.flatnonzero(np.diff(stream.keys, prepend=-1))
    keys, are_long = np.count_nonzero(np.bincount(stream.keys)), len(starts) * LONG_BLOCK <= len(times)
    if not 2 <= keys <= len(times) / 2 or len(starts) > (3 if are_long else 1.1) * keys:  # a name may come again
        return False
    if 4 * stream.late_within(stream.keys, len(stream.batch.keys)) > stream.late_count:
        return False
    spans = np.maximum.reduceat(times, starts) - np.minimum.reduceat(times, starts)
    of_key, behind = np.repeat(spans, np.diff(starts, append=len(times))), np.maximum.accumulate(times) - times
    # short keys that come in order of time, of which some are late as a whole, are a stream
    return trend(times[starts]) < 0.9 or bool(np.median(of_key[late]) >= np.median(behind[late]))


def _histories(stream: LateStream) -> list[int]:
    """Places where long histories of several keys begin anew, each in order by itself; none if they do not."""
    steps, late = np.diff(stream.times, prepend=stream.times[0]), stream.late
    starts = np.flatnonzero(late & (steps < -stream.lag_ms))
    if 4 * len(starts) > stream.late_count:
        return []
    few = np.arange(5)  # the level falls: it is not one record that is ahead, or late
    before = np.median(stream.times[np.maximum(starts[:, None] - 1 - few, 0)], axis=1)
    after = np.median(stream.times[np.minimum(starts[:, None] + few, len(late) - 1)], axis=1)
    starts = starts[before - stream.lag_ms > after]
    if stream.late_count < LONG_BLOCK * len(starts):
        return []
    block = np.repeat(np.arange(len(starts) + 1), np.diff(starts, prepend=0, append=len(late)))
    if 10 * stream.late_within(block, len(starts) + 1) > stream.late_count:
        return []
    of_block, times, keys = block[late], stream.times[late], stream.keys[late]
    first = np.flatnonzero(np.diff(of_block, prepend=-1))
    low, high, ordered = np.minimum.reduceat(times, first), np.maximum.reduceat(times, first), np.sort(stream.times)
    span, size = high - low, np.diff(first, append=len(times))
    is_alone = 10 * (np.searchsorted(ordered, high, "right") - np.searchsorted(ordered, low)) <= 11 * size  # as a year
    several = np.maximum.reduceat(keys, first) != np.minimum.reduceat(keys, first)  # one key: it was offline
    is_long = (span >= np.ptp(stream.times) / np.where(is_alone, 20, 4)) | (10 * stream.late_count >= 3 * len(late))
    is_history = is_long & (several | stream.has_one_key | (2 * stream.late_count > len(late)))
    if 2 * size[is_history].sum() < stream.late_count:
        return []
    return np.flatnonzero(late)[first][is_history].tolist()
