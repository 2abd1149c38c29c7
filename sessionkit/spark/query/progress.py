"""How far a streaming query came, from what Spark tells of each micro-batch."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from sessionkit.base.durations import show_duration
from sessionkit.base.moments import show_time
from sessionkit.base.text import plural
from sessionkit.spark.worker.shuffle import PACKED_US
from sessionkit.steps.views import ADDED_LATER, WHOLE
from sessionkit.views.words import drops_in_words

OBSERVED = "sessionkit-"  # before the name of a run: what its partitions tell is observed under this name
PACKED = "packed-for-sessionkit-"  # and under this one what its tasks took before the shuffle
KEPT_BATCHES = 200


class PartitionProgress(NamedTuple):
    """A source partition after the last micro-batch that had records of it."""

    partition: int
    position: int  # the last offset
    stream_time_ms: int
    last_close_time_ms: int  # what ends before it is closed
    windows: int  # in the state
    counts: Counter[str]  # the counters of `Run.metrics()` since its first record
    batch: int
    unpack_us: int = 0  # microseconds that unpacking its records behind the shuffle took in this micro-batch
    state_us: int = 0  # and reading the state
    engine_us: int = 0  # and playing the records


class BatchProgress(NamedTuple):
    """A micro-batch."""

    number: int
    records: int
    seconds: float
    behind: int | None  # records that the source has and the query has not; None where the source does not tell
    state_bytes: int  # memory that Spark's state store reports
    spent_ms: Mapping[str, int] = MappingProxyType({})  # where the time went, by Spark's names
    update_ms: int = 0  # what all tasks together took to bring the state up to date
    commit_ms: int = 0  # and to write it
    read_us: int = 0  # and, in microseconds, to wait for the records
    pack_us: int = 0  # and to pack them for the shuffle


class QueryProgress:
    """The facts known of a query; they grow with its partitions, not with its micro-batches.

    Example:
        >>> progress = QueryProgress("clicks")
        >>> progress.line()
        'clicks: waiting for the first micro-batch'
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.run: str | None = None  # the run of sessionkit that it is of
        self.checkpoint: str | None = None  # where it is, if that is known
        self.partitions: dict[int, PartitionProgress] = {}
        self._first: dict[int, PartitionProgress] = {}  # as each was when it was heard of first
        self.batches: deque[BatchProgress] = deque(maxlen=KEPT_BATCHES)
        self.timezone = "UTC"  # in which its times are told
        self.retention_ms = 0  # for so long one stays in the state, a session its own length more; 0: not known
        self.ended = False
        self.error: str | None = None

    def take(self, progress: Mapping[str, Any]) -> None:
        """Takes in what Spark tells of a micro-batch (`StreamingQueryProgress`, as JSON)."""
        number, seen = int(progress["batchId"]), progress.get("observedMetrics", {})
        if not self.batches or number > self.batches[-1].number:
            seconds = progress.get("batchDuration", 0) / 1000
            names, states = ("memoryUsedBytes", "allUpdatesTimeMs", "commitTimeMs"), progress.get("stateOperators", [])
            state_bytes, *state_ms = (sum(int(each.get(name, 0)) for each in states) for name in names)
            behind, spent_ms = _behind(progress["sources"]), dict(progress.get("durationMs", {}))
            read = int(progress["numInputRows"])
            packed: Mapping[str, Any] = next((each for name, each in seen.items() if name.startswith(PACKED)), {})
            packed_us = (packed.get(part) or 0 for part in PACKED_US)
            batch = BatchProgress(number, read, seconds, behind, state_bytes, spent_ms, *state_ms, *packed_us)
            self.batches.append(batch)
        for name, observed in seen.items():
            if name.startswith(OBSERVED):
                self.run = name.removeprefix(OBSERVED)
                for partition in observed["partitions"]:
                    self._take_partition(number, **partition)

    def _take_partition(self, batch: int, *, partition: int, position: int, counts: str, **rest: int) -> None:
        known = self.partitions.get(partition)
        if known is None or position >= known.position:
            counted = Counter(json.loads(counts))
            self.partitions[partition] = PartitionProgress(partition, position, **rest, counts=counted, batch=batch)
            self._first.setdefault(partition, self.partitions[partition])

    def counts(self) -> Counter[str]:
        """The counters of all partitions together; those that were added later only if each partition has kept them."""
        total = Counter(dict.fromkeys(WHOLE, 0))
        for each in self.partitions.values():
            total.update(each.counts)
        for name in ADDED_LATER:
            if not all(name in each.counts for each in self.partitions.values()):
                del total[name]
        return total

    @property
    def windows(self) -> int:
        """How many windows are in the state."""
        return sum(each.windows for each in self.partitions.values())

    @property
    def expected_windows(self) -> int:
        """How many windows the state will come to hold at the rate at which they were made since the query was first
        heard of, sessions without their own length; 0 where nothing can be said yet."""
        rate = 0.0
        for number, now in self.partitions.items():
            then = self._first[number]
            if now.stream_time_ms > then.stream_time_ms and "windows" in then.counts:
                made = now.counts["windows"] - then.counts["windows"]
                rate += made / (now.stream_time_ms - then.stream_time_ms)
        return round(rate * self.retention_ms)

    def is_idle(self, partition: int) -> bool:
        """True if the last micro-batch had no record of this partition, so that its stream time stood still."""
        return self.partitions[partition].batch < self.batches[-1].number

    def line(self) -> str:
        """How far the query is, in a line."""
        if not self.batches:
            waiting = "ended before a micro-batch" if self.ended else "waiting for the first micro-batch"
            return f"{self.name}: {waiting}"
        last, counts = self.batches[-1], self.counts()
        speed = f"{last.records / last.seconds:,.0f}/s" if last.seconds else "at once"
        parts = [
            f"{self.name}: micro-batch {last.number}",
            f"{plural(counts['process-total'], 'record')} ({speed})",
            drops_in_words(counts),
            f"{plural(self.windows, 'window')} in the state",
        ]
        if self.partitions:
            slowest = min(self.partitions.values(), key=lambda each: each.stream_time_ms)
            apart = max(each.stream_time_ms for each in self.partitions.values()) - slowest.stream_time_ms
            parts.append(f"stream time {show_time(slowest.stream_time_ms, self.timezone)} ({self.timezone})")
            if apart:
                parts[-1] += f" and up to {show_duration(apart)} later"
        if last.behind:
            parts.append(f"{plural(last.behind, 'record')} behind")
        if self.ended:
            parts.append("failed" if self.error else "ended")
        return " · ".join(parts)


def _behind(sources: list[Mapping[str, Any]]) -> int | None:
    """How many records wait: Kafka's source tells its offsets by topic and partition, others do not."""
    ends = [(_records(source.get("latestOffset")), _records(source.get("endOffset"))) for source in sources]
    behind = [latest - end for latest, end in ends if latest is not None and end is not None]
    return sum(behind) if behind else None


def _records(offset: Any) -> int | None:
    topics = list(offset.values()) if isinstance(offset, dict) else []
    if not topics or not all(isinstance(partitions, dict) for partitions in topics):
        return None
    return sum(sum(partitions.values()) for partitions in topics)
