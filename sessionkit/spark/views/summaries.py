"""What is said and drawn of a run over all keys: Spark's tasks count, and only counts come to this process."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sessionkit.base.arrays import Longs
from sessionkit.base.calls import answers_calls
from sessionkit.base.durations import INT64_MAX
from sessionkit.base.text import key_name, plural
from sessionkit.spark import functions as F
from sessionkit.spark.types import column, readable_errors
from sessionkit.steps.summaries import MOVERS
from sessionkit.suppression.settings import Suppression
from sessionkit.views.explain.clock import Mover, MoversInWords
from sessionkit.views.over_time.over_time import MOST_POINTS, STRETCHES, Course, LatencyInWords, OpenInWords, Waits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sessionkit.spark.batch_run import SparkRun
    from sessionkit.views.words import Said

MOST_DESCRIBED = 50  # movers that come to this process: more than a picture shows


class _Summary:
    """What each of them starts from."""

    def __init__(self, run: SparkRun) -> None:
        self._run = run
        self.windows = run.plan._complete_windows

    @property
    def _said(self) -> Said:
        return self._run._said


@answers_calls("latency")
class SparkLatency(_Summary, LatencyInWords):
    """`Latency` of a run on Spark: how often each delay is there comes to this process.

    Example:
        >>> latency = run.latency()  # doctest: +SKIP
        >>> latency.words(), latency.figure(), latency.table().show(), latency.least_ms  # doctest: +SKIP
    """

    def table(self) -> DataFrame:
        """One row per final result, as `Latency.table` has them, partition after partition."""
        return self._run._form.shown(self._rows)

    @property
    def _rows(self) -> DataFrame:
        return self._run._summary("finals", self._run._empty.latency().table().schema)

    @cached_property
    def _waits(self) -> Waits:
        with readable_errors():
            found = self._rows.groupBy("delay_ms").agg(F.count(F.lit(1)).alias("count")).toArrow().sort_by("delay_ms")
        return Waits(*(found[name].to_numpy() for name in ("delay_ms", "count")))

    @property
    def _open_count(self) -> int:
        return self._run._total("open")


@answers_calls("open_windows")
class SparkOpenWindows(_Summary, OpenInWords):
    """`OpenWindows` of a run on Spark, where the windows of each partition are counted apart.

    Example:
        >>> held = run.open_windows()  # doctest: +SKIP
        >>> held.most, held.at_end, held.words(), held.figure(), held.table().show()  # doctest: +SKIP
    """

    def table(self) -> DataFrame:
        """One row per record: partition, offset, stream_time, open_count (in its partition)."""
        return self._run._form.shown(self._rows)

    @property
    def _rows(self) -> DataFrame:
        return self._run._summary("open", self._run._empty.open_windows().table().schema)

    @property
    def most(self) -> int:
        """The largest number at once in a partition."""
        return int(self._extremes["most"]["open_count"]) if self._extremes["records"] else 0

    @property
    def at_end(self) -> int:
        """The number in all partitions after their last records: windows that nothing has closed."""
        return self._run._total("open")

    @cached_property
    def _extremes(self) -> dict[str, Any]:
        first = F.struct("open_count", -column("partition"), -column("offset"), "stream_time_ms")
        time = column("stream_time_ms")
        found = {"records": F.count(F.lit(1)), "most": F.max(first), "low_ms": F.min(time), "high_ms": F.max(time)}
        with readable_errors():
            [row] = self._rows.agg(*(each.alias(name) for name, each in found.items())).collect()
        return row.asDict(recursive=True)

    @property
    def _first_ms(self) -> int:
        return int(self._extremes["most"]["stream_time_ms"])

    @property
    def _partition_count(self) -> int:
        return len(self._run._partition_rows)

    _note = "several partitions: the numbers are those of each"

    @property
    def _where(self) -> str:  # type: ignore[override]
        return f" in partition {-self._extremes['most']['col2']}" if self._partition_count > 1 else ""

    @property
    def _where_all(self) -> str:  # type: ignore[override]
        return " in all partitions" if self._partition_count > 1 else ""

    def _course(self) -> Course:
        rows, low_ms, time = self._rows, self._extremes["low_ms"], column("stream_time_ms")
        with readable_errors():
            if self._extremes["records"] <= MOST_POINTS:
                found = rows.toArrow()
                times, counts, offsets = (found[name].to_numpy() for name in ("stream_time_ms", "open_count", "offset"))
                return Course(times, counts, counts, counts.astype(np.float64), offsets)
            length = max(self._extremes["high_ms"] - low_ms, 1)
            place = F.least(F.floor((time - low_ms) * STRETCHES / length), F.lit(STRETCHES - 1))
            open_count = column("open_count")
            each = {
                "time": F.min(time), "low": F.min(open_count), "high": F.max(open_count),
                "usual": F.percentile(open_count, F.lit(0.5)),
            }  # fmt: skip
            grouped = rows.groupBy(place.alias("place")).agg(*(found.alias(name) for name, found in each.items()))
            found = grouped.toArrow().sort_by("place")
        times, low, high, usual = (found[name].to_numpy() for name in each)
        return Course(times, low, high, usual, None)


@answers_calls("clock")
class SparkClock(_Summary, MoversInWords):
    """`Clock` of a run on Spark: the records to which most others are lost come to this process.

    Example:
        >>> moved = run.clock()  # doctest: +SKIP
        >>> moved.late_count, moved.words(), moved.figure(), moved.table().show()  # doctest: +SKIP
    """

    def table(self) -> DataFrame:
        """One row for each record to which others were lost, as `Clock.table` has them, those with most first."""
        moved = F.when(column("moved_ms") >= 0, column("moved_ms"))
        share = column("late") / F.lit(max(self.late_count, 1))
        rows = self._ranked.select(
            "partition", "offset", "key", "timestamp_ms", F.lit("record").alias("what"), moved.alias("moved_ms"),
            "late", share.alias("share"),
        )  # fmt: skip
        return self._run._form.shown(rows)

    @property
    def _ranked(self) -> DataFrame:
        rows = self._run._summary("movers", self._run._with_key(MOVERS, at=2))
        return rows.orderBy(F.desc("late"), "partition", "offset")

    @cached_property
    def _lost(self) -> Longs:
        with readable_errors():
            found = self._ranked.groupBy("late").agg(F.count(F.lit(1)).alias("count")).toArrow()
        late, count = (found[name].to_numpy() for name in ("late", "count"))
        order = np.argsort(-late)
        return np.repeat(late[order], count[order])

    @property
    def late_count(self) -> int:
        """How many records came too late."""
        return int(self._lost.sum())

    @property
    def _record_count(self) -> int:
        return self._run._total("records")

    @property
    def _are_dropped(self) -> bool:
        return self._run.counts()["late"] == self.late_count

    @cached_property
    def _top(self) -> list[dict[str, Any]]:
        with readable_errors():
            return [row.asDict() for row in self._ranked.limit(MOST_DESCRIBED).collect()]

    def _mover(self, rank: int) -> Mover:
        row = self._top[rank]
        where = f"partition {row['partition']}, " if len(self._run._partition_rows) > 1 else ""
        name = f"Record {row['offset']} ({where}key {key_name(row['key'])})"
        return Mover(name, row["timestamp_ms"], row["moved_ms"], row["ahead_ms"], row["late"])


@answers_calls("times")
class SparkPartitionTimes(_Summary):
    """`PartitionTimes` of a run on Spark, which does not know how partitions arrived beside each other.

    Example:
        >>> run.partition_times().table().show()  # doctest: +SKIP
    """

    def table(self) -> DataFrame:
        """One row per partition: partition, records, stream_time, behind_ms and open_count, all at the end.

        `behind_ms` is how far it is behind the one that is ahead. What else `PartitionTimes.table` tells goes by the
        order in which records of several partitions arrived.
        """
        rows = self._run._partition_rows
        ahead = max((row["stream_time_ms"] for row in rows), default=-1)
        columns: dict[str, list[Any]] = {
            "partition": [row["partition"] for row in rows],
            "records": [row["records"] for row in rows],
            "stream_time_ms": [row["stream_time_ms"] for row in rows],
            "behind_ms": [ahead - row["stream_time_ms"] if row["stream_time_ms"] >= 0 else None for row in rows],
            "open_count": [row["open"] for row in rows],
        }
        return self._run._shown_here(columns)

    def __repr__(self) -> str:
        count = len(self._run._partition_rows)
        if count <= 1:
            return "There is one partition: nothing is ahead of it or behind it." if count else "There are no records."
        return (
            f"{plural(count, 'partition')}; .table() says how far each is behind the one that is ahead at the end. How "
            "they arrived beside each other is not known."
        )


@answers_calls("buffer")
class SparkSuppressBuffer(_Summary):
    """`SuppressBuffer` of a run on Spark: what waits at the end of each partition.

    Example:
        >>> buffer = run.suppress_buffer()  # doctest: +SKIP
        >>> buffer.most_records, buffer.table().show()  # doctest: +SKIP
    """

    def table(self) -> DataFrame:
        """The results that wait, by partition in the order in which they would go out."""
        return self._run._form.shown(self._rows)

    @property
    def _rows(self) -> DataFrame:
        return self._run._summary("waiting", self._run._empty.changelog().schema)

    @cached_property
    def most_records(self) -> int:
        """The most that a partition's buffer held at once: what `max_records` would have to allow."""
        counted = self._run._counts_by_partition("most_waiting").values()
        return max((each["most"] for each in counted), default=0)

    @cached_property
    def most_bytes(self) -> int:
        """The most bytes that a partition's buffer held at once: what `max_bytes` would have to allow. Starts a job."""
        plan = self._run.plan
        settings = cast(Suppression, plan._suppression)
        counting = settings if settings.most_bytes is not None else replace(settings, most_bytes=INT64_MAX)
        run = replace(self._run, plan=replace(plan, _suppression=counting))
        return max((each["bytes"] for each in run._counts_by_partition("most_waiting").values()), default=0)

    def __repr__(self) -> str:
        with readable_errors():
            waiting = self._rows.count()
        verb, most = "waits" if waiting == 1 else "wait", f"no partition held more than {self.most_records:,} at once"
        return f"buffer of suppress: {plural(waiting, 'result')} {verb}; {most}"
