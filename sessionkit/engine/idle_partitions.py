"""Idle partitions: a rule of sessionkit's own, which Kafka Streams does not have.

A plan with `idle_after=` names a clock, the column that says when each record arrived. A partition that got no record
for so long by this clock is idle: its stream time moves to the smallest stream time of the partitions that are not, and
never back. The clock is read with each record of any partition, before the record counts and after it.

The rule is worked out here, before the engine runs. It leaves ticks among the records, rows that only move stream time,
so that no kernel, processor, trace or view has a rule of its own. A partition gets at most one tick between two of its
records, and one at the end: what lies between them no record can tell apart. The arrival of its last record is kept in
the store with its stream time, so that records that are read in parts, or once more, come to the same.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sessionkit.base.arrays import Longs, Rows
from sessionkit.base.compiled import compiled
from sessionkit.base.decisions import IDLE, REPLAYED
from sessionkit.base.durations import INT64_MAX
from sessionkit.engine.outcome import Outcome, without_replayed
from sessionkit.errors import InvalidData, problem
from sessionkit.records.batch import IdleRule, RecordBatch
from sessionkit.records.loops import stream_times
from sessionkit.stores.contract import PlanStore, Snapshot
from sessionkit.trace.slots import NO_REJECTIONS


def with_idle_ticks(batch: RecordBatch, store: PlanStore | None = None) -> RecordBatch:
    """The batch with a tick wherever a partition, one of the store's too, was idle and the others had gone on."""
    rule = batch.idle
    if rule is None or rule.arrival_ms is None:
        return batch
    batch, before = _with_stored(batch, store)
    batch, _ = without_replayed(batch, dict(zip(batch.partitions.tolist(), before, strict=True)))
    rejected = NO_REJECTIONS if batch.rejected is None else batch.rejected
    is_new = np.ones(len(batch), np.bool_) if batch.rejected is None else batch.rejected != REPLAYED
    last_ms = np.array([each.last_arrival_ms for each in before], np.int64)
    clock_ms = np.empty(len(batch), np.int64)  # of a partition, never back
    stream_times(batch.partition, rule.arrival_ms, np.where(is_new, 0, REPLAYED), last_ms.copy(), clock_ms)
    order = np.flatnonzero(is_new)
    order = order[np.argsort(clock_ms[order], kind="stable")]
    _check_order(batch, clock_ms, order, last_ms)
    moves_ms = batch.moving_ms if batch.rejected is None else np.where(rejected == 0, batch.moving_ms, -1)
    stream_time_ms = np.array([each.stream_time_ms for each in before], np.int64)
    before_ms, after_ms = _ticks(order, batch.partition, moves_ms, clock_ms, rule.after_ms, stream_time_ms, last_ms)
    batch = batch.replace(idle=IdleRule(rule.after_ms, None, last_ms))
    return _among(batch, before_ms, after_ms, np.array([each.position for each in before], np.int64))


def with_arrivals(outcome: Outcome) -> Mapping[int, Snapshot]:
    """How far each partition has come, with the arrival of its last record where the plan goes by it."""
    batch = outcome.batch
    if batch.idle is None or batch.idle.last_arrival_ms is None:
        return outcome.snapshots
    last_ms = dict(zip(batch.partitions.tolist(), batch.idle.last_arrival_ms.tolist(), strict=True))
    return {p: each._replace(last_arrival_ms=last_ms[p]) for p, each in outcome.snapshots.items()}


def _with_stored(batch: RecordBatch, store: PlanStore | None) -> tuple[RecordBatch, list[Snapshot]]:
    """The batch with the partitions that the store has read as well, and how far each was read."""
    if store is None:
        return batch, [Snapshot()] * len(batch.partitions)
    numbers = np.union1d(batch.partitions, np.array(store.read_partitions, np.int64))
    code = np.searchsorted(numbers, batch.partitions).astype(np.int32)
    batch = batch.replace(partition=code[batch.partition], partitions=numbers)
    return batch, [store.snapshot(number) for number in numbers.tolist()]


def _check_order(batch: RecordBatch, clock_ms: Longs, order: Rows, last_ms: Longs) -> None:
    """Refuses records that belong before what was read: in one run they would have come first."""
    newest_ms = int(last_ms.max(initial=-1))
    if not len(order) or clock_ms[order[0]] >= newest_ms:
        return
    row = int(order[0])
    got = f"{clock_ms[row]} ms in row {row} (partition {batch.partitions[batch.partition[row]]}) after {newest_ms} ms"
    want = "runs over one store in the order of arrival, so that no later run has an earlier record"
    raise InvalidData(problem("a record arrived before those that the store has read", got, want))


@compiled
def _ticks(order, partition, moves_ms, clock_ms, after_ms, stream_time_ms, last_ms):  # type: ignore[no-untyped-def]
    """(stream time that each record's partition was moved to before it, that of each partition at the end); -1: none.

    Args:
        order: int64[new records]: the rows, by the clock.
        moves_ms: int64[records]: the time to which a record moves stream time; -1 for none.
        stream_time_ms, last_ms: int64[partitions]: the clocks of the partitions, before and after.
    """
    before_ms = np.full(partition.shape[0], np.int64(-1))
    own_ms = stream_time_ms.copy()  # as the last record or tick of each partition left it
    least, next_idle_ms = np.int64(-1), np.int64(-1)
    for i in order:
        p, now = partition[i], clock_ms[i]
        if now >= next_idle_ms:
            least, next_idle_ms = _follow(now, after_ms, stream_time_ms, last_ms)
        met = stream_time_ms[p]
        if met > own_ms[p]:
            before_ms[i] = met
        last_ms[p] = now
        stream_time_ms[p] = own_ms[p] = max(met, moves_ms[i])
        if met <= least:  # what lay above the smallest cannot change it
            least, next_idle_ms = _follow(now, after_ms, stream_time_ms, last_ms)
    return before_ms, np.where(stream_time_ms > own_ms, stream_time_ms, -1)


@compiled
def _follow(now, after_ms, stream_time_ms, last_ms):  # type: ignore[no-untyped-def]
    """Moves the idle partitions on; gives the smallest stream time of the others, and when one of them can be idle.

    A partition that got no record yet is not known, and one that has no stream time holds no other one back.
    """
    least, next_idle_ms = np.int64(INT64_MAX), np.int64(INT64_MAX)
    for p in range(last_ms.shape[0]):
        if last_ms[p] >= 0 and now - last_ms[p] < after_ms:
            next_idle_ms = min(next_idle_ms, last_ms[p] + min(after_ms, INT64_MAX - last_ms[p]))
            if stream_time_ms[p] >= 0:
                least = min(least, stream_time_ms[p])
    if least < INT64_MAX:
        for p in range(last_ms.shape[0]):
            if last_ms[p] >= 0 and now - last_ms[p] >= after_ms:
                stream_time_ms[p] = max(stream_time_ms[p], least)
    return least, next_idle_ms


def _among(batch: RecordBatch, before_ms: Longs, after_ms: Longs, position: Longs) -> RecordBatch:
    """The batch with these ticks as rows, each with the offset of the last record of its partition before it.

    What they move stream time to is given as `_ticks` gives it.
    """
    before, after = np.flatnonzero(before_ms >= 0), np.flatnonzero(after_ms >= 0)
    if not len(before) and not len(after):
        return batch
    count = len(batch)
    rows = np.append(np.insert(np.arange(count), before, before), np.full(len(after), count - 1))
    is_tick = np.zeros(len(rows), np.bool_)
    is_tick[before + np.arange(len(before))] = True
    is_tick[len(rows) - len(after) :] = True
    made = batch.replace(given_offset=batch.offset).take(rows)
    partition, time_ms = made.partition.copy(), made.timestamp_ms.copy()
    partition[len(rows) - len(after) :] = after
    time_ms[is_tick] = np.append(before_ms[before], after_ms[after])
    rejected = np.zeros(count, np.uint8)[rows] if made.rejected is None else made.rejected.copy()
    rejected[is_tick] = IDLE
    last_offset = np.empty(len(rows), np.int64)
    stream_times(partition, np.where(is_tick, -1, made.offset), NO_REJECTIONS, position.copy(), last_offset)
    return made.replace(
        key=np.where(is_tick, np.int32(-1), made.key),
        timestamp_ms=time_ms,
        partition=partition,
        rejected=rejected,
        still=None if made.still is None else made.still & ~is_tick,
        given_offset=np.where(is_tick, last_offset, made.offset),
    )
