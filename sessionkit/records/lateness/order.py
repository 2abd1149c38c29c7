"""Why many records come too late: rows in another order than they arrived, clocks and sources that are ahead."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sessionkit.base.arrays import Longs, Rows, distinct
from sessionkit.base.durations import about
from sessionkit.base.moments import SHORT_HISTORY_MS, show_time
from sessionkit.base.text import of_key, plural
from sessionkit.errors import shorten
from sessionkit.records.batch import RecordBatch
from sessionkit.records.labels import record_name
from sessionkit.records.lateness.causes import Cause, LateStream, are_late
from sessionkit.records.lateness.row_order import in_no_order, out_of_order, stretches
from sessionkit.records.source import Source
from sessionkit.records.time_statistics import FEW, SPREADS, repeated, usual_span

MANY = 0.01  # share of late records that is worth a remark
MANY_LATE = 10  # late records after one that is far ahead: so many are worth a remark, too
NAMED = 3  # of them
NEIGHBOURS = 25  # on each side of a record that may be ahead
FEWEST_OF_A_KEY = 5  # records, that tell whether a key is always behind
FEWEST_BEHIND = 20  # one of so many records is always behind, where two sources are mixed
SENT_AGAIN = 0.8  # of the late records, where a source sends records again
SOURCES = (
    "partition= in group_by_key names the column that tells the sources apart: each then has its own stream time. "
    'Where it holds names, number them: pandas.factorize(df["source"])[0].'
)


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
    return both(late_cause(batch, source, lag_ms, is_many=is_many), far_behind(batch, lag_ms))


def both(cause: Cause | None, behind: Cause | None) -> list[Cause]:
    """Those of the two that there are; one if it explains all."""
    is_all = cause is not None and behind is not None and cause.late == behind.late
    return [*filter(None, (None if is_all else cause, behind))]


class Elsewhere(NamedTuple):
    """Usable and late records of partitions that are not in the batch, and whether there are keys that it lacks."""

    records: int = 0
    late: int = 0
    has_keys: bool = False


NOTHING = Elsewhere()


def late_cause(
    batch: RecordBatch, source: Source, lag_ms: int, *, is_many: bool = True, elsewhere: Elsewhere = NOTHING
) -> Cause | None:
    """Why so many records are behind stream time by more than `lag_ms`; None if they are not, or for no such reason.

    Looked for in the partition of the batch that has most of them. Records that are late for reasons of their own are
    no cause: they come between others that are not, and those of a key that is late now are not all late. Where it is
    not `is_many`, only single records that are ahead are looked for.
    """
    rows = np.flatnonzero(batch.moves)
    records = len(rows) + elsewhere.records
    if batch.chosen_from is not None or records <= MANY_LATE:
        return None  # the others are not all there
    partition, times = batch.partition[rows], batch.timestamp_ms[rows]
    late = are_late(times, lag_ms, partition, len(batch.partitions))
    count = int(np.count_nonzero(late)) + elsewhere.late
    if count < max(MANY_LATE, MANY * records if is_many else 0):
        return None
    of = partition == np.bincount(partition[late]).argmax()
    has_one_key = len(batch.keys) == 1 and not elsewhere.has_keys
    stream = LateStream(batch, source, rows[of], times[of], batch.key[rows[of]], late[of], lag_ms, has_one_key)
    causes = (out_of_order, _ahead, _sent_again, _sources, _two_clocks, in_no_order, stretches)
    found = next((cause for look in (causes if is_many else (_ahead,)) if (cause := look(stream)) is not None), None)
    rest = ~np.isin(rows, [] if found is None or found.to_leave_out is None else found.to_leave_out)
    left = are_late(times[rest], lag_ms, partition[rest], len(batch.partitions)).sum() + elsewhere.late
    found = found and found._replace(late=count, records=records, left=0 if rest.all() else int(left))
    return found and found.with_guard(source.arrival if source.max_ahead is None else None)


# ---- records far before all others, and ahead of those around them


def far_behind(batch: RecordBatch, lag_ms: int) -> Cause | None:
    """The few records that lie before nearly all others by several times the span of these, late or not."""
    rows = np.flatnonzero(batch.moves)
    times = batch.timestamp_ms[rows]
    first_ms, _ = usual_span(times)
    behind = np.flatnonzero(times < first_ms)
    if not len(behind) or batch.chosen_from is not None:
        return None
    late = int(np.count_nonzero(are_late(times, lag_ms, batch.partition[rows], len(batch.partitions))[behind]))
    name = record_name(batch, int(rows[behind[0]]))
    cause = behind_cause(times[behind], first_ms, late, len(rows), name)
    return cause and cause._replace(to_leave_out=rows[behind])


def behind_cause(times: Longs, first_ms: int, late: int, records: int, name: str) -> Cause | None:
    """What is said of the records of these times, so many of them late, which lie before nearly all others.

    `first_ms` is when the others begin, `name` that of the first record.
    """
    between_ms = first_ms - int(times.max())
    if not late and (len(times) < MANY_LATE or between_ms < SPREADS * int(np.ptp(times))):
        return None  # a history that begins slowly
    by = about(first_ms - int(np.median(times)))
    why = f"{plural(len(times), 'record lies', 'records lie')} some {by} before all others: {name}"
    why += f" and {len(times) - 1:,} more" if len(times) > 1 else ""
    way = "Leave it out, or correct its time" if len(times) == 1 else "Leave them out, or correct their times"
    way += ", if a clock was not set" + ("." if late else ": tables and pictures stretch back to there.")
    return Cause(why, way, late=late, records=records, is_behind=True)


def _ahead(stream: LateStream) -> Cause | None:
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
    keys, way = distinct(stream.keys[ahead]), "Leave them out, or correct their times."
    if len(ahead) >= MANY_LATE and len(keys) == 1:
        name, usual = of_key(stream.batch.keys[int(keys[0])].as_py()), about(int(np.median(by_ms)))
        why = f"{len(ahead):,} records of {name} lie some {usual} ahead of those around them"
    elif len(ahead) == 1:
        time, zone = int(stream.times[ahead[0]]), stream.batch.timezone
        when = f", at {show_time(time, zone)} ({zone})" if time >= SHORT_HISTORY_MS else ""
        why = f"{names[0]} lies {by[0]} ahead of those around it{when}"
        way = "Leave it out, or correct its time."
    else:
        named = ", ".join(f"{name} by {ahead_by}" for name, ahead_by in zip(names, by, strict=True))
        why = f"{len(ahead):,} records lie far ahead of those around them: {named}"
        why += f", and {len(ahead) - NAMED:,} more" if len(ahead) > NAMED else ""
    return Cause(why, way, to_leave_out=stream.rows[ahead], is_ahead=True)


def _around(places: Rows, count: int) -> Rows:
    """The places around each of these places, one line for each; `count` is how many places there are."""
    return np.clip(places[:, None] + np.arange(-NEIGHBOURS, NEIGHBOURS + 1), 0, count - 1)


def _far_ahead(stream: LateStream) -> Rows:
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


# ---- sources and clocks


def _sent_again(stream: LateStream) -> Cause | None:
    """Records that repeat one of the same key and time, nearly all of those that are late and hardly any other."""
    again = repeated(stream.keys, stream.times)
    if again[stream.late].mean() < max(SENT_AGAIN, 4 * again[~stream.late].mean()):
        return None
    why = f"{plural(int(np.count_nonzero(again)), 'record')} repeat one of the same key and time that came before"
    return Cause(why, "Leave them out, as df.drop_duplicates() of pandas does.", to_leave_out=stream.rows[again])


def _sources(stream: LateStream) -> Cause | None:
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
        return Cause(why, way, to_leave_out=stream.rows[wrong], is_ahead=True)
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


def _two_clocks(stream: LateStream) -> Cause | None:
    """Records that are all behind by much the same time, from the first to the last, with hardly any in between."""
    behind = np.maximum.accumulate(stream.times) - stream.times
    low, usual, high = np.percentile(behind[stream.late], (10, 50, 90))
    places = np.flatnonzero(stream.late)
    between = np.count_nonzero((behind > low / 3) & (behind < 0.9 * low))
    is_always = np.bincount(4 * places // len(behind), minlength=4).min() * FEWEST_BEHIND >= len(behind) / 4
    of_one_source = np.count_nonzero(are_late(stream.times[places], int(low) // 10))
    most = 2.2 if 10 * of_one_source <= len(places) else 1.5  # in order by themselves, they are a source
    if high > most * low or 10 * between > len(places) or not is_always:
        return None
    why = f"{plural(len(places), 'record')} lie some {about(int(usual))} behind those around them, from first to last: "
    return Cause(f"{why}two sources, or two clocks, seem to be mixed in one stream", SOURCES)
