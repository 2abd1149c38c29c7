"""A run's counters under the names that Kafka Streams registers them by, with its tags and levels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple, get_args

import numpy as np
import pyarrow as pa

from sessionkit.base.arrays import Floats, Longs, Rows
from sessionkit.base.decisions import AHEAD, BAD_TIME, REPLAYED
from sessionkit.base.durations import MINUTE
from sessionkit.base.text import one_of
from sessionkit.deployed.processor_run import Deployed, Look
from sessionkit.trace.trace import Trace

Level = Literal["info", "debug"]
LEVELS = get_args(Level)
THREAD = "sessionkit-StreamThread-1"
NODE = "KSTREAM-AGGREGATE-0000000002"  # behind a source and a store without names, in a topology of its own
SUPPRESS_NODE, SUPPRESS_STORE = "KTABLE-SUPPRESS-0000000003", "KTABLE-SUPPRESS-STATE-STORE-0000000004"  # behind that
DROPPED = "dropped-records-total"
TASK_GROUP, NODE_GROUP = "stream-task-metrics", "stream-processor-node-metrics"
RATE_MS, LEAST_MS = MINUTE, 30_000  # metrics.num.samples of metrics.sample.window.ms; and one of them


class Metric(NamedTuple):
    """One metric of one task: tags, and a value that is None where it takes a clock and the run had none."""

    name: str
    group: str
    level: Level
    thread_id: str
    task_id: str
    processor_node_id: str | None
    value: float | None


class Held(NamedTuple):
    """Which partitions suppress sent results of, and the most that each buffer held: results, and bytes if known."""

    sent: Longs
    most: Mapping[int, tuple[int, int | None]]


def kafka_metrics(
    trace: Trace, finals: Longs, deployed: Deployed | None, level: Level, held: Held | None = None
) -> pa.Table:
    """A row for each metric of each task, from a run's decisions and the partition of each final result."""
    one_of("level", level, LEVELS)
    batch, at = trace.batch, trace.dropped_at
    refused = () if deployed is None else deployed.refused
    dropped = np.concatenate([at[trace.decision[at] != REPLAYED], np.asarray(refused, np.intp)])
    found: list[Metric] = []
    times = None if deployed is None or deployed.clock_ms is None else np.array(deployed.clock_ms, np.int64)
    for code, number in enumerate(batch.partitions.tolist()):
        mine = dropped[batch.partition[dropped] == code]
        found += _of_task(f"0_{number}", len(mine), _rate(times, mine, np.ones(len(mine))))
        if level == "debug":
            own = None if deployed is None else [each for each in deployed.looks if each.partition == code]
            found += _lateness(f"0_{number}", trace, code, times)
            found += _of_node(f"0_{number}", int((finals == number).sum()), own, times)
            if held is not None:
                found += _of_suppress(f"0_{number}", int((held.sent == number).sum()), held.most.get(number, (0, None)))
    return _as_table(found)


def kafka_metrics_of_counts(counts: Mapping[int, Mapping[str, int]], level: Level) -> pa.Table:
    """The same of a run without a clock, from the counters of `Run.metrics()`, which know nothing of lateness."""
    one_of("level", level, LEVELS)
    found: list[Metric] = []
    for number, counted in sorted(counts.items()):
        found += _of_task(f"0_{number}", counted.get(DROPPED, 0), None)
        if level == "debug":
            found += _of_node(f"0_{number}", counted.get("window-aggregate-final-emit-total", 0), None, None)
    return _as_table(found)


def _as_table(found: list[Metric]) -> pa.Table:
    columns = zip(*found, strict=True) if found else [[]] * len(Metric._fields)
    kinds = [pa.float64() if name == "value" else pa.string() for name in Metric._fields]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return pa.table(dict(zip(Metric._fields, arrays, strict=True)))


def _of_task(task_id: str, dropped: int, rate: float | None) -> Iterator[Metric]:
    for name, value in ((DROPPED, dropped), ("dropped-records-rate", rate)):
        yield Metric(name, TASK_GROUP, "info", THREAD, task_id, None, value)


def _lateness(task_id: str, trace: Trace, code: int, clock_ms: Longs | None) -> Iterator[Metric]:
    """How far the records of a partition were behind the newest before them, in the last minute if there is a clock.

    Source:
        PartitionGroup.nextRecord, which counts records without a key, too.
    """
    rejected = np.isin(trace.decision, (BAD_TIME, REPLAYED, AHEAD)) | ~trace.is_record
    own = np.flatnonzero((trace.batch.partition == code) & ~rejected)
    times = trace.batch.timestamp_ms[own]
    first_ms = trace.first_stream_time_ms[code]
    newest = np.maximum.accumulate(np.maximum(trace.batch.moving_ms[own], first_ms))
    behind: Longs = np.maximum(newest - times, 0)  # of one that is ahead and moves nothing
    if clock_ms is not None:
        behind = behind[clock_ms[own] > clock_ms.max(initial=0) - RATE_MS]
    values = (float(behind.mean()), float(behind.max())) if len(behind) else (None, None)
    for name, value in zip(("record-lateness-avg", "record-lateness-max"), values, strict=True):
        yield Metric(name, TASK_GROUP, "debug", THREAD, task_id, None, value)


def _of_suppress(task_id: str, sent: int, most: tuple[int, int | None]) -> Iterator[Metric]:
    """What the node that suppresses counts, and its buffer; averages would need every state of that."""
    yield Metric("suppression-emit-total", NODE_GROUP, "debug", THREAD, task_id, SUPPRESS_NODE, sent)
    for name, value in zip(("suppression-buffer-count-max", "suppression-buffer-size-max"), most, strict=True):
        yield Metric(name, "stream-state-metrics", "debug", THREAD, task_id, SUPPRESS_STORE, value)


def _of_node(task_id: str, finals: int, looks: list[Look] | None, clock_ms: Longs | None) -> Iterator[Metric]:
    """What the node that aggregates counts: by the names of the release, and by those of KIP-825."""
    rate = average = most = None
    if looks is not None and clock_ms is not None:
        at = np.array([each.at for each in looks], np.intp)
        rate = _rate(clock_ms, at, np.array([each.sent for each in looks], np.float64))
        times = [each.took_ms for each in looks]
        average, most = (float(np.mean(times)), float(max(times))) if times else (None, None)
    for sent, took in (
        ("window-aggregate-final-emit", "window-aggregate-final-emit-latency"),
        ("emit-final-records", "emit-final-latency"),
    ):
        values = {f"{sent}-total": finals, f"{sent}-rate": rate, f"{took}-avg": average, f"{took}-max": most}
        yield from (Metric(name, NODE_GROUP, "debug", THREAD, task_id, NODE, value) for name, value in values.items())


def _rate(clock_ms: Longs | None, at: Rows, counts: Floats) -> float | None:
    """Events a second in the last minute of the clock; a run shorter than half a minute counts as half a minute."""
    if clock_ms is None or not len(clock_ms):
        return None
    now = int(clock_ms.max())
    recent = clock_ms[at] > now - RATE_MS
    span_ms = min(max(now - int(clock_ms[0]), LEAST_MS), RATE_MS)
    return float(counts[recent].sum()) * 1000 / span_ms
