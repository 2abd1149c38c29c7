"""Why many records come too late: rows in another order than they arrived, clocks and sources that are ahead."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sessionkit.base.arrays import Codes, Flags, Longs, Rows
from sessionkit.base.durations import about
from sessionkit.base.moments import SHORT_HISTORY_MS, show_time
from sessionkit.base.text import plural
from sessionkit.errors import shorten
from sessionkit.records.batch import RecordBatch
from sessionkit.records.labels import record_name
from sessionkit.records.loops import stream_times
from sessionkit.records.source import Source
from sessionkit.records.time_statistics import FEW, LONG_BLOCK, SAMPLE, SPREADS, repeated, trend, usual_span
from sessionkit.records.time_text import YEAR_TURNS

MANY = 0.01  # share of late records that is worth a remark
MANY_LATE = 10  # late records after one that is far ahead: so many are worth a remark, too
NAMED = 3  # of them
NEIGHBOURS = 25  # on each side of a record that may be ahead
PARTS, FEWEST_IN_PARTS = 10, 1_000  # of the rows, each looked at by itself; fewer rows show no trend in a part
FEWEST_OF_A_KEY = 5  # records, that tell whether a key is always behind
FEWEST_BEHIND = 20  # one of so many records is always behind, where two sources are mixed
SENT_AGAIN = 0.8  # of the late records, where a source sends records again
SORT = 'sort="timestamp" in group_by_key{} sorts the rows by time.'
TIES = " Rows of one time stay newest first, unless all rows are turned round before, as by df[::-1] in pandas."
WITHOUT_OFFSET = ", without offset=,"
SOURCES = (
    "partition= in group_by_key names the column that tells the sources apart: each then has its own stream time. "
    'Where it holds names, number them: pandas.factorize(df["source"])[0].'
)


class Cause(NamedTuple):
    """Why many records are behind stream time, and what can be done."""

    why: str  # the end of a sentence
    way: str  # a sentence
    is_order: bool = False  # the rows sorted by time are the way
    to_leave_out: Rows | None = None  # of the batch: records that are ahead
    late: int = 0  # records that are behind stream time by more than was asked for
    records: int = 0
    is_behind: bool = False  # it is about records far before all others alone, late or not
    left: int = 0  # of the late ones, without the records to leave out

    @property
    def because(self) -> str:
        """How many of the late records it explains, where not all, and why they are late."""
        share = "" if not self.left else "nearly all " if 10 * self.left <= self.late else "many "
        return f"{share}because {self.why}"

    def words(self, dropped: int | None, lag_ms: int) -> str:
        """How many records were late, why, and what can be done; `dropped` is None before there is a grace."""
        if not self.late:
            return f"{self.why[:1].upper()}{self.why[1:]}. {self.way}"
        count, what = self.late, f"are {f'more than {about(lag_ms)} ' if lag_ms else ''}behind stream time"
        if dropped is not None:
            count, what = dropped, f"came too late and {'was' if dropped == 1 else 'were'} dropped"
        return f"{count:,} of {plural(self.records, 'record')} {what}, {self.because}. {self.way}".rstrip()


class _Stream(NamedTuple):
    """The usable records of one partition, in order of arrival."""

    batch: RecordBatch
    source: Source
    rows: Rows  # of the batch
    times: Longs
    keys: Codes
    late: Flags
    lag_ms: int

    @property
    def sort(self) -> str:
        """The advice to sort the rows."""
        return SORT.format("" if self.source.offset is None else WITHOUT_OFFSET)

    @property
    def late_count(self) -> int:
        return int(np.count_nonzero(self.late))

    def late_within(self, group: npt.NDArray[np.integer], groups: int) -> int:
        """How many records would be late if each group had a stream time of its own."""
        return int(np.count_nonzero(_are_late(self.times, self.lag_ms, group, groups)))

    def late_without(self, left_out: npt.NDArray[np.integer | np.bool_]) -> int:
        """How many of the other records would be late without these."""
        return int(np.count_nonzero(_are_late(np.delete(self.times, left_out), self.lag_ms)))


def _are_late(times: Longs, lag_ms: int, group: npt.NDArray[np.integer] | None = None, groups: int = 1) -> Flags:
    """True for each record that is behind the stream time of its group by more than `lag_ms`."""
    newest = np.empty(len(times), np.int64)
    of = np.zeros(len(times), np.int32) if group is None else group.astype(np.int32)
    stream_times(of, times, np.empty(0, np.uint8), np.full(groups, -1), newest)
    return times < newest - lag_ms


def order_causes(
    batch: RecordBatch, source: Source, lag_ms: int, dropped: int, before_ms: Longs | None = None
) -> list[Cause]:
    """Why so many records were dropped as late, where a cause is found; windows close `lag_ms` after their end.

    `before_ms` is the stream time of each partition before the run, where a store knows it.
    """
    is_many = bool(dropped >= max(MANY_LATE, MANY * np.count_nonzero(batch.usable)))
    before = _read_before(batch, lag_ms, before_ms) if is_many else None
    if before is None and dropped >= MANY_LATE:
        causes = late_causes(batch, source, lag_ms, is_many)
    else:
        causes = [*filter(None, (before, far_behind(batch, lag_ms)))]
    return [cause._replace(way="") if cause.way in batch.remarks else cause for cause in causes]


def _read_before(batch: RecordBatch, lag_ms: int, before_ms: Longs | None) -> Cause | None:
    """The cause if a store was beyond most of these records before the run, as it may have read them; else None."""
    rows = np.flatnonzero(batch.usable)
    if before_ms is None or before_ms.max(initial=-1) < 0:
        return None
    if 2 * np.count_nonzero(batch.timestamp_ms[rows] < before_ms[batch.partition[rows]] - lag_ms) < len(rows):
        return None
    reached = int(before_ms.max())
    when = f"{show_time(reached, batch.timezone)} ({batch.timezone})" if reached >= SHORT_HISTORY_MS else "a later time"
    way = "If it has read these records already, offset= in group_by_key names the column by which it skips them."
    return Cause(f"the store had come to {when} before this run", way, late=len(rows), records=len(rows))


def late_causes(batch: RecordBatch, source: Source, lag_ms: int, is_many: bool = True) -> list[Cause]:
    """Why so many records are late by more than `lag_ms`; and the few that lie far before all others, late or not."""
    cause, behind = _late_cause(batch, source, lag_ms, is_many=is_many), far_behind(batch, lag_ms)
    is_all = cause is not None and behind is not None and cause.late == behind.late
    return [*filter(None, (None if is_all else cause, behind))]


def _late_cause(batch: RecordBatch, source: Source, lag_ms: int, *, is_many: bool) -> Cause | None:
    """Why so many records are behind stream time by more than `lag_ms`; None if they are not, or for no such reason.

    Looked for in the partition that has most of them. Records that are late for reasons of their own are no cause:
    they come between others that are not, and those of a key that is late now are not all late. Where it is not
    `is_many`, only single records that are ahead are looked for.
    """
    rows = np.flatnonzero(batch.usable)
    if batch.chosen_from is not None or len(rows) <= MANY_LATE:
        return None  # the others are not all there
    partition, times = batch.partition[rows], batch.timestamp_ms[rows]
    late = _are_late(times, lag_ms, partition, len(batch.partitions))
    if np.count_nonzero(late) < max(MANY_LATE, MANY * len(rows) if is_many else 0):
        return None
    of = partition == np.bincount(partition[late]).argmax()
    stream = _Stream(batch, source, rows[of], times[of], batch.key[rows[of]], late[of], lag_ms)
    causes = (_out_of_order, _ahead, _sent_again, _sources, _two_clocks, _in_no_order) if is_many else (_ahead,)
    found = next((cause for look in causes if (cause := look(stream)) is not None), None)
    rest = ~np.isin(rows, [] if found is None or found.to_leave_out is None else found.to_leave_out)
    left = 0 if rest.all() else _are_late(times[rest], lag_ms, partition[rest], len(batch.partitions)).sum()
    return found and found._replace(late=int(np.count_nonzero(late)), records=len(rows), left=int(left))


# ---- records far before all others, and ahead of those around them


def far_behind(batch: RecordBatch, lag_ms: int) -> Cause | None:
    """The few records that lie before nearly all others by several times the span of these, late or not."""
    rows = np.flatnonzero(batch.usable)
    times = batch.timestamp_ms[rows]
    first_ms, _ = usual_span(times)
    behind = np.flatnonzero(times < first_ms)
    if not len(behind) or batch.chosen_from is not None:
        return None
    late = int(np.count_nonzero(_are_late(times, lag_ms, batch.partition[rows], len(batch.partitions))[behind]))
    between_ms = first_ms - int(times[behind].max())
    if not late and (len(behind) < MANY_LATE or between_ms < SPREADS * int(np.ptp(times[behind]))):
        return None  # a history that begins slowly
    name, by = record_name(batch, int(rows[behind[0]])), about(first_ms - int(np.median(times[behind])))
    why = f"{plural(len(behind), 'record lies', 'records lie')} some {by} before all others: {name}"
    why += f" and {len(behind) - 1:,} more" if len(behind) > 1 else ""
    way = "Leave it out, or correct its time" if len(behind) == 1 else "Leave them out, or correct their times"
    way += ", if a clock was not set" + ("." if late else ": tables and pictures stretch back to there.")
    return Cause(why, way, to_leave_out=rows[behind], late=late, records=len(rows), is_behind=True)


def _ahead(stream: _Stream) -> Cause | None:
    """Single records that lie far ahead of those around them, if without them fewer are late."""
    ahead = _far_ahead(stream)
    rest = np.delete(stream.times, ahead)
    cured = stream.late_count - stream.late_without(ahead)
    enough = min(stream.late_count / 2, MANY * len(ahead) * len(stream.times))  # each costs many records
    if not len(ahead) or cured < max(enough, MANY_LATE) or 2 * (stream.late_count - cured) > len(stream.times):
        return None
    places = np.minimum(ahead - np.arange(len(ahead)), len(rest) - 1)
    by_ms = stream.times[ahead] - np.median(rest[_around(places, len(rest))], axis=1).astype(np.int64)
    most = np.argsort(-by_ms, kind="stable")[:NAMED]
    names = [record_name(stream.batch, row) for row in stream.rows[ahead[most]].tolist()]
    by = [about(ms) for ms in by_ms[most].tolist()]
    keys, way = np.unique(stream.keys[ahead]), "Leave them out, or correct their times."
    if len(ahead) >= MANY_LATE and len(keys) == 1:
        name, usual = shorten(stream.batch.keys[int(keys[0])].as_py()), about(int(np.median(by_ms)))
        why = f"{len(ahead):,} records of key {name} lie some {usual} ahead of those around them"
    elif len(ahead) == 1:
        time, zone = int(stream.times[ahead[0]]), stream.batch.timezone
        when = f", at {show_time(time, zone)} ({zone})" if time >= SHORT_HISTORY_MS else ""
        why = f"{names[0]} lies {by[0]} ahead of those around it{when}"
        way = "Leave it out, or correct its time."
    else:
        named = ", ".join(f"{name} by {ahead_by}" for name, ahead_by in zip(names, by, strict=True))
        why = f"{len(ahead):,} records lie far ahead of those around them: {named}"
        why += f", and {len(ahead) - NAMED:,} more" if len(ahead) > NAMED else ""
    return Cause(why, way, to_leave_out=stream.rows[ahead])


def _around(places: Rows, count: int) -> Rows:
    """The places around each of these places, one line for each; `count` is how many places there are."""
    return np.clip(places[:, None] + np.arange(-NEIGHBOURS, NEIGHBOURS + 1), 0, count - 1)


def _far_ahead(stream: _Stream) -> Rows:
    """Places of the few records after which many are late, and that lie far ahead of those before and after them."""
    times, ahead = stream.times, np.empty(0, np.intp)
    kept: Rows = np.arange(len(times))
    most = int(FEW * len(times)) + 1
    while len(ahead) <= most:  # one may stand in the shadow of another
        moved = times[kept]
        newest = np.maximum.accumulate(moved)
        leads = np.flatnonzero(np.diff(newest, prepend=newest[0] - 1))
        followers = np.diff(np.cumsum(np.append(0, moved < newest - stream.lag_ms))[[*leads, len(kept)]])
        order = np.argsort(-followers, kind="stable")[:most]
        leads = leads[order[followers[order] >= MANY_LATE]]
        around = moved[_around(leads, len(kept))]
        low, high = np.percentile(around, (25, 75), axis=1) if len(leads) else (leads, leads)
        far = leads[moved[leads] - high > np.maximum(stream.lag_ms, SPREADS * (high - low))]
        if not len(far):
            return np.sort(ahead)
        ahead, kept = np.append(ahead, kept[far]), np.delete(kept, far)
    return np.empty(0, np.intp)  # too many to be single ones


# ---- rows in another order


def _out_of_order(stream: _Stream) -> Cause | None:
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


def _in_no_order(stream: _Stream) -> Cause | None:
    """Rows of which most are late, and whose time hardly goes on: no delay does that."""
    is_none = trend(stream.times, within=True) < 0.7 and 2 * stream.late_count > len(stream.times)
    return Cause("the rows stand in no order of time", stream.sort, is_order=True) if is_none else None


def _shuffled_from(stream: _Stream) -> int | None:
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


def _stands_key_by_key(stream: _Stream) -> bool:
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


def _histories(stream: _Stream) -> list[int]:
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
    is_history = is_long & (several | (len(stream.batch.keys) == 1) | (2 * stream.late_count > len(late)))
    if 2 * size[is_history].sum() < stream.late_count:
        return []
    return np.flatnonzero(late)[first][is_history].tolist()


# ---- sources and clocks


def _sent_again(stream: _Stream) -> Cause | None:
    """Records that repeat one of the same key and time, nearly all of those that are late and hardly any other."""
    again = repeated(stream.keys, stream.times)
    if again[stream.late].mean() < max(SENT_AGAIN, 4 * again[~stream.late].mean()):
        return None
    why = f"{plural(int(np.count_nonzero(again)), 'record')} repeat one of the same key and time that came before"
    return Cause(why, "Leave them out, as df.drop_duplicates() of pandas does.", to_leave_out=stream.rows[again])


def _sources(stream: _Stream) -> Cause | None:
    """One key whose clock is ahead of all others, or sources that lie apart and are mixed, each in order."""
    times, keys, late = stream.times, stream.keys, stream.late
    size, count = np.bincount(keys), len(times)
    newest = np.maximum.accumulate(times)
    leads = np.maximum.accumulate(np.where(np.diff(newest, prepend=newest[0] - 1) > 0, np.arange(count), 0))
    by = about(int(np.median((newest - times)[late])))
    leader = int(np.bincount(keys[leads[late]]).argmax())
    others = keys != leader
    first_ahead = int((times > np.maximum.accumulate(np.where(others, times, times[0])) + stream.lag_ms).argmax())
    leads_most = 5 * size[leader] <= 2 * count and 2 * stream.late_count > np.count_nonzero(others[first_ahead:])
    if leads_most and 4 * stream.late_without(~others) <= stream.late_count:
        why = f"the clock of key {shorten(stream.batch.keys[leader].as_py())} is some {by} ahead of the others"
        wrong, since, then = ~others, ~others & (np.arange(count) >= first_ahead), ""
        if since.sum() < 0.9 * size[leader] and 20 * stream.late_without(since) <= stream.late_count:
            zone, wrong, then = stream.batch.timezone, since, " from then on"
            why += f" from its record at {show_time(int(times[first_ahead]), zone)} ({zone}) on"
        way = f"Leave its {plural(int(wrong.sum()), 'record')}{then} out, or correct their times."
        return Cause(why, way, to_leave_out=stream.rows[wrong])
    if 10 * stream.late_within(keys, len(stream.batch.keys)) > stream.late_count:
        return None
    of_late, behind_ms = keys[late], (newest - times)[late]
    usual = (np.bincount(of_late, behind_ms) / np.maximum(np.bincount(of_late), 1))[of_late]
    if 4 * np.abs(behind_ms - usual).sum() > usual.sum():
        return None  # a source lies behind by much the same time
    first, last = np.zeros(len(size), np.intp), np.zeros(len(size), np.intp)
    last[keys], first[keys[::-1]] = np.arange(count), np.arange(count)[::-1]
    lost = np.bincount(keys[late], minlength=len(size))
    behind = (size >= FEWEST_OF_A_KEY) & (5 * lost >= 3 * size) & (2 * (last - first) >= count)
    if 5 * lost[behind].sum() < 4 * stream.late_count:
        return None
    few = ", ".join(shorten(stream.batch.keys[code].as_py()) for code in np.flatnonzero(behind)[:NAMED].tolist())
    number = np.count_nonzero(behind)
    why = f"sources are mixed in one stream: each key is in order, but {number:,} of "
    why += f"{plural(int(np.count_nonzero(size)), 'key')} ({few}{', …' if number > NAMED else ''}) "
    return Cause(f"{why}{'lies' if number == 1 else 'lie'} some {by} behind the others", SOURCES)


def _two_clocks(stream: _Stream) -> Cause | None:
    """Records that are all behind by much the same time, from the first to the last, with hardly any in between."""
    behind = np.maximum.accumulate(stream.times) - stream.times
    low, usual, high = np.percentile(behind[stream.late], (10, 50, 90))
    places = np.flatnonzero(stream.late)
    between = np.count_nonzero((behind > low / 3) & (behind < 0.9 * low))
    is_always = np.bincount(4 * places // len(behind), minlength=4).min() * FEWEST_BEHIND >= len(behind) / 4
    of_one_source = np.count_nonzero(_are_late(stream.times[places], int(low) // 10))
    most = 2.2 if 10 * of_one_source <= len(places) else 1.5  # in order by themselves, they are a source
    if high > most * low or 10 * between > len(places) or not is_always:
        return None
    why = f"{plural(len(places), 'record')} lie some {about(int(usual))} behind those around them, from first to last: "
    return Cause(f"{why}two sources, or two clocks, seem to be mixed in one stream", SOURCES)
