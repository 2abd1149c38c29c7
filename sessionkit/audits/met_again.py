"""Sessions that some record meets once they are closed: of a session alone, with any retention, what that depends on.

No session has an effect on another one: what the store has observed, and when final results are looked for, is the same
with any retention. So each is played by itself, and what it meets is noted as the store of an audit notes it.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np

from sessionkit.base.arrays import Flags, Longs
from sessionkit.base.compiled import compiled_loop
from sessionkit.deployed.independent_parts import WHOLE
from sessionkit.deployed.noticed import FOREVER_MS, Noticed
from sessionkit.records.batch import RecordBatch
from sessionkit.stores.segments import Segments
from sessionkit.trace.loops import grouped
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.windows.contract import WindowKind
from sessionkit.windows.session_kernel import session_is_late

Spans = list[tuple[Longs, Longs, Longs]]  # (lowest, highest, record) of the looks of each partition


class MetAgain(NamedTuple):
    """The records of such sessions, and the looks that may find one, by session and then in the order of arrival."""

    session: Longs  # the row of each session
    first: Longs  # its first event; and how many there are
    at: Longs  # the record
    is_look: Flags
    timestamp_ms: Longs  # of a record
    stream_time_ms: Longs
    observed_ms: Longs  # what the store has observed before a record, or when a look comes
    lowest_ms: Longs  # what a look reads
    highest_ms: Longs


def met_again(trace: SessionTrace, close_lag_ms: int) -> Flags:
    """True for each session that a record meets, or leaves, at its close time or behind, where nothing is forgotten."""
    is_met = np.zeros(len(trace.window_columns.key), np.bool_)
    last_ms = np.full(len(is_met), np.iinfo(np.int64).max)
    close_ms = trace.stream_time_ms - close_lag_ms
    meets = np.zeros(len(trace), np.bool_)
    find_late_meetings(trace.window, trace.merges, trace.bounds_after[1], close_ms, last_ms, meets)
    is_met[trace.survivor[meets]] = True
    return is_met


def events_of(trace: SessionTrace, is_met: Flags, spans: Spans) -> MetAgain:
    """What happens to these sessions."""
    at = np.flatnonzero(np.append(is_met, False)[trace.survivor])
    session, partition, times_ms = trace.survivor[at], trace.batch.partition[at], trace.batch.timestamp_ms[at]
    none = np.full(len(at), -1)
    now_ms, before_ms = trace.stream_time_ms[at], trace.stream_time_before_ms[at]
    columns = [(session, at, none > 0, times_ms, now_ms, before_ms, none, none)]
    for p, (lowest_ms, highest_ms, looks) in enumerate(spans):
        mine = np.flatnonzero(partition == p)
        look = np.searchsorted(highest_ms, times_ms[mine])
        mine, look = mine[look < len(looks)], look[look < len(looks)]
        pairs = np.unique(np.stack([session[mine], look]), axis=1)
        now_ms, none = trace.stream_time_ms[looks[pairs[1]]], np.full(len(pairs[0]), -1)
        row = (pairs[0], looks[pairs[1]], none < 0, none, now_ms, now_ms, lowest_ms[pairs[1]], highest_ms[pairs[1]])
        columns.append(row)
    session, at, *rest = (np.concatenate(column) for column in zip(*columns, strict=True))
    order = np.lexsort((rest[0], at, session))  # a record comes before its look
    number = np.flatnonzero(is_met)
    first = np.append(np.searchsorted(session[order], number), len(order))
    sorted_rest: Any = (column[order] for column in (at, *rest))
    return MetAgain(number, first, *sorted_rest)


class Few(NamedTuple):
    """The records of some sessions, and those of others by which stream time and looks are the same for them."""

    batch: RecordBatch
    clock: list[int]  # the number of the last look of its partition at each record: the next one is due with the next


def few_of(trace: SessionTrace, events: MetAgain, looks_at: Longs, suppress_lag_ms: int | None) -> Few:
    """The few records on which it depends what becomes of these sessions, with any retention.

    Args:
        looks_at: the record of each look that comes; one more is noted among the events at the end.
        suppress_lag_ms: how far behind suppress lets go of a session; None: there is no suppress.
    """
    batch, stream_ms = trace.batch, trace.stream_time_ms
    is_needed, is_look = np.zeros((2, len(trace)), np.bool_)
    is_needed[events.at[~events.is_look]] = True
    is_look[np.intersect1d(events.at[events.is_look], looks_at)] = True
    first, by_partition = grouped(batch.partition, len(batch.partitions))
    for p in np.unique(batch.partition[is_needed]).tolist():
        own = by_partition[first[p] : first[p + 1]]
        stair, mine = stream_ms[own], is_needed[own]
        if suppress_lag_ms is not None:
            gone_ms = np.unique(batch.timestamp_ms[own[mine]]) + suppress_lag_ms
            gone = np.concatenate([np.searchsorted(stair, gone_ms), np.searchsorted(stair, gone_ms, "right")])
            mine[gone[gone < len(own)]] = True
        mine |= is_look[own]
        before = np.flatnonzero(mine) - 1
        mine[np.searchsorted(stair, stair[np.append(before[before >= 0], len(own) - 1)])] = True  # moved stream time
        is_needed[own] = mine
    rows = np.flatnonzero(is_needed)
    count, (first, by_partition) = np.zeros(len(rows), np.int64), grouped(batch.partition[rows], len(batch.partitions))
    for own in np.split(by_partition, first[1:-1]):
        count[own] = np.cumsum(is_look[rows[own]])
    return Few(batch.replace(given_offset=batch.offset).take(rows), (count - 1).tolist())


def noticed_of(
    windows: WindowKind, events: MetAgain, retention_ms: int, lowest_ms: int, *, on_disk: bool, is_one: bool
) -> dict[Hashable, Noticed]:
    """What each session depends on with this retention; all of them as one part where they have an effect on others."""
    count, records = len(events.session), len(events.is_look)
    more_than_ms, at_most_ms = np.full(count, -1), np.full(count, FOREVER_MS)
    room = [np.empty(records + 1, np.int64) for _ in range(3)]
    kept = [np.empty(2 * records, np.int64) for _ in range(3)]
    segments = Segments.of_ms(retention_ms)
    notes = play_met(
        events, windows.reach_ms, windows.close_lag_ms, retention_ms, lowest_ms, on_disk, segments.interval_ms,
        *room, more_than_ms, at_most_ms, *kept,
    )  # fmt: skip
    noticed: dict[Hashable, Noticed] = {}
    for session, more, most in zip(events.session.tolist(), more_than_ms.tolist(), at_most_ms.tolist(), strict=True):
        if more >= 0 or most < FOREVER_MS:
            part = noticed.setdefault(WHOLE if is_one else session, Noticed())
            part.within(more, is_true=True)
            part.within(most, is_true=False)
    for d, time_ms, observed_ms in zip(*(column[:notes].tolist() for column in kept), strict=True):
        part = noticed.setdefault(WHOLE if is_one else int(events.session[d]), Noticed())
        part.kept(time_ms, observed_ms, is_true=segments.is_live(time_ms, observed_ms))
    return noticed


@compiled_loop
def find_late_meetings(window, merges, end_after, close_ms, last_end, meets):  # type: ignore[no-untyped-def]
    """Marks each record that meets a session which ends at its close time or before, or that leaves one so.

    `last_end` has room for each session: at first none is there.
    """
    m = 0
    for i in range(window.shape[0]):
        w = window[i]
        if w < 0:
            continue
        meets[i] = last_end[w] <= close_ms[i] or end_after[i] <= close_ms[i]
        while m < merges.at.shape[0] and merges.at[m] == i:
            meets[i] |= last_end[merges.absorbed[m]] <= close_ms[i]
            m += 1
        last_end[w] = end_after[i]


@compiled_loop
def play_met(  # type: ignore[no-untyped-def]
    events, gap, close_lag, retention, lowest, on_disk, interval, starts, ends, is_found, more_than, at_most,
    kept_in, kept_time, kept_observed,
):  # fmt: skip
    """Plays each session by itself, and notes what an answer of the store depended on; how many segments it asked for.

    `starts` and `ends` have room for what is stored of one, which is never deleted as it expires. A session that was
    stored is read by one look at most.

    Source: KStreamSessionWindowAggregate; see also `SessionProcessor.process`, and `ForgettingSessions` for the notes.
    """
    notes = 0
    for d in range(events.session.shape[0]):
        count = 0
        for e in range(events.first[d], events.first[d + 1]):
            observed = events.observed_ms[e]
            if events.is_look[e]:
                for s in range(count):
                    if ends[s] < events.lowest_ms[e] or ends[s] > events.highest_ms[e]:
                        continue
                    if not on_disk:
                        _note_within(observed - ends[s], retention, lowest, d, more_than, at_most)
                    elif observed - ends[s] > lowest:
                        kept_in[notes], kept_time[notes], kept_observed[notes] = d, ends[s], observed
                        notes += 1
                continue
            t = events.timestamp_ms[e]
            start = end = t
            for s in range(count):
                is_found[s] = 0
                if ends[s] >= t - gap and starts[s] <= t + gap:
                    _note_within(observed - ends[s], retention, lowest, d, more_than, at_most)
                    is_found[s] = retention > observed - ends[s]
                if is_found[s]:
                    start, end = min(start, starts[s]), max(end, ends[s])
            if session_is_late(end, events.stream_time_ms[e] - close_lag):
                continue
            observed = max(observed, end)
            is_taken = True
            if not on_disk:
                _note_within(observed - end, retention, lowest, d, more_than, at_most)
                is_taken = retention > observed - end
            elif observed - end > lowest:
                kept_in[notes], kept_time[notes], kept_observed[notes] = d, end, observed
                notes += 1
                is_taken = end // interval >= max(observed - retention, 0) // interval
            left = 0
            for s in range(count):
                is_replaced = is_taken and starts[s] == start and ends[s] == end
                if is_replaced or (is_found[s] and (start != t or end != t)):
                    continue
                starts[left], ends[left] = starts[s], ends[s]
                left += 1
            count = left
            if is_taken:
                starts[count], ends[count] = start, end
                count += 1
    return notes


@compiled_loop
def _note_within(behind, retention, lowest, d, more_than, at_most):  # type: ignore[no-untyped-def]
    """Notes whether a session is read that lies so far behind, where a retention that Kafka allows can change that."""
    if behind >= lowest:
        if retention > behind:
            more_than[d] = max(more_than[d], behind)
        else:
            at_most[d] = min(at_most[d], behind)
